"""Plans as text, and as rows: each golden query is planned, compared with its file, and executed beside DuckDB."""

import os
from pathlib import Path

import duckdb
import pytest

from tests.plan.interpreter import comparable, execute
from viewkeeper.plan.examples import T, U, plan_example
from viewkeeper.plan.explain import explain

FOLDER = Path(__file__).parent.parent / "golden" / "plans"
ROWS_T = [
    (1, 1, 2, "one", 1.5, ["p"]),
    (2, 2, 3, "two", None, []),
    (3, 3, 1, "one", 2.5, None),
    (4, None, None, None, -1.0, ["q"]),
    (5, 4, 4, "ONE", 0.5, ["p", "q"]),
    (6, 1, 2, "one", 7.25, []),
]
ROWS_U = [
    (1, 1, 4, "ONE"),
    (2, 1, 2, "one"),
    (3, 3, 5, None),
    (4, None, 1, "two"),
    (5, 9, None, "none"),
    (6, 5, 9, "x"),
]


# What DuckDB writes otherwise: it counts one argument only, and knows UNNEST in place of LATERAL VIEW.
IN_DUCKDB = {
    "COUNT(a, b)": "COUNT(a + b)",
    "LEFT SEMI": "SEMI",
    "LEFT ANTI": "ANTI",
    "<=>": "IS NOT DISTINCT FROM",
    "LATERAL VIEW explode(tags) e AS tag": ", UNNEST(tags) AS e(tag)",
    "LATERAL VIEW OUTER explode(tags) e AS tag": "LEFT JOIN UNNEST(tags) AS e(tag) ON TRUE",
    "LATERAL VIEW posexplode(tags) e AS p, tag": ", UNNEST(tags) WITH ORDINALITY AS e(tag, q)",
    "explode(sequence(a, b)) AS n": "UNNEST(range(a, b + sign(b - a + 0.5)::INT, sign(b - a + 0.5)::INT)) AS n",
    "LATERAL explode(array(c, 'two')) AS e(x)": "LATERAL (SELECT UNNEST([c, 'two']) AS x) AS e",
    "p + 1 AS q": "q",
    "OR p = 1": "OR q = 2",
    ", range(1, 6, 2) AS r": ", (SELECT UNNEST(range(1, 6, 2)) AS id) AS r",
    # Unknown it is NULL there, FALSE in Spark.
    "a NOT IN (SELECT v FROM u WHERE t_k = k) AS m": "COALESCE(a NOT IN (SELECT v FROM u WHERE t_k = k), FALSE) AS m",
}


def pairs():
    for path in sorted(FOLDER.glob("*.sql")):
        for block in path.read_text().strip().split("\n\n"):
            lines = block.splitlines()
            sql = "\n".join(line for line in lines if not line.startswith("--"))
            yield path, sql, "\n".join(line[3:] for line in lines if line.startswith("-- "))


def update():
    blocks = {}
    for path, sql, _ in pairs():
        plan = "\n".join(f"-- {line}" for line in explain(plan_example(sql)).splitlines())
        blocks.setdefault(path, []).append(f"{sql}\n{plan}")
    for path, texts in blocks.items():
        path.write_text("\n\n".join(texts) + "\n")


if os.environ.get("VIEWKEEPER_UPDATE_GOLDEN"):
    update()
PAIRS = [pytest.param(sql, text, id=f"{path.stem}-{i}") for i, (path, sql, text) in enumerate(pairs())]


@pytest.fixture(scope="module")
def oracle():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (k BIGINT, a INT, b INT, c VARCHAR, x DOUBLE, tags VARCHAR[])")
    connection.execute("CREATE TABLE u (id INT, t_k BIGINT, v INT, name VARCHAR)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", ROWS_T)
    connection.executemany("INSERT INTO u VALUES (?, ?, ?, ?)", ROWS_U)
    yield connection
    connection.close()


@pytest.mark.parametrize(("sql", "text"), PAIRS)
def test_plan(sql, text):
    assert explain(plan_example(sql)) == text


@pytest.mark.parametrize(("sql", "text"), PAIRS)
def test_rows(sql, text, oracle):
    plan = plan_example(sql)
    rows = execute(plan.root, {T.id: ROWS_T, U.id: ROWS_U})
    assert [len(row) for row in rows] == [len(plan.root.schema)] * len(rows)
    keys = [repr([row[i] for i in plan.key]) for row in rows]
    assert len(set(keys)) == len(keys), "the derived key tells rows apart"
    for ours, theirs in IN_DUCKDB.items():
        sql = sql.replace(ours, theirs)
    expected = oracle.execute(sql).fetchall()
    assert comparable(row[: plan.visible] for row in rows) == comparable(expected)
