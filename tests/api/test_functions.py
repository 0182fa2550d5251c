"""Users' functions in process: views, queries, DML, failing rows, replacing, code that is missing or has changed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.coordinator.core import Outcome
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.errors import FunctionUnavailable, InputError, SqlError, UnsupportedSql, ViewFailed, ViewkeeperError
from viewkeeper.expressions.user_functions import loaded


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def db(path: str) -> Iterator[vk.Database]:
    with vk.connect(path, executor="local") as database:
        database.sql("CREATE TABLE t (k BIGINT, v INT, s STRING, m DECIMAL(10,2), PRIMARY KEY (k))")
        database.put_batch("t", [{"k": k, "v": None if k == 3 else k, "s": "ab"[k % 2]} for k in range(6)])
        yield database


def rows(database: vk.Database, name: str) -> list[dict[str, Any]]:
    return list(database.scan(name))


def twice(v: Any) -> Any:
    return None if v is None else 2 * v


def strict(v: Any) -> Any:
    if v == 13:
        raise ValueError(object())
    return twice(v)


QUERIES = {
    "selected": "SELECT k, twice(v) AS w FROM t",
    "filtered": "SELECT k FROM t WHERE twice(v) > 3 OR twice(v) IS NULL",
    "grouped": "SELECT twice(v) % 4 AS g, SUM(twice(v)) AS s, COUNT_IF(twice(v) > 2) AS n FROM t GROUP BY 1",
    "having": "SELECT s, MAX(twice(v)) AS m FROM t GROUP BY s HAVING twice(MAX(v)) > 8",
    "joined": "SELECT a.k, b.k AS other FROM t a JOIN t b ON twice(a.v) = b.v AND twice(b.v) > a.v",
    "outer_joined": "SELECT a.k, b.k AS other FROM t a LEFT JOIN t b ON twice(a.v) = b.v",
    "distinct_rows": "SELECT DISTINCT TWICE(v) % 3 AS d FROM t",
    "first": "SELECT k FROM t ORDER BY twice(v) DESC, k LIMIT 2",
    "ranked": "SELECT k, RANK() OVER (PARTITION BY s ORDER BY twice(v)) AS r FROM t",
    "nested": "SELECT k, twice(twice(v)) AS w, CASE WHEN v > 2 THEN twice(v) ELSE 0 END AS c FROM t",
    "in_subquery": "SELECT k FROM t WHERE v IN (SELECT twice(v) FROM t)",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_follows_as_if_the_function_were_sql(db: vk.Database, name: str) -> None:
    db.register_function("Twice", twice, "INT", deterministic=True, by_value=True)
    plain = QUERIES[name].replace("TWICE", "twice").replace("twice(", "(2 * ")
    db.sql(f"CREATE MATERIALIZED VIEW w AS {QUERIES[name]}; CREATE MATERIALIZED VIEW p AS {plain}")
    for change in ({"k": 1, "v": 9, "s": "a"}, {"k": 7, "v": None, "s": "b"}, {"k": 3, "v": 4, "s": "b"}, None):
        if change is None:
            db.delete("t", 2)
        else:
            db.put("t", change)
        db.refresh()
        found = sorted(map(repr, rows(db, "w")))
        assert found == sorted(map(repr, rows(db, "p")))
        assert found == sorted(map(repr, db.sql(QUERIES[name]).rows()))


@pytest.mark.parametrize("takes", [None, "arrow", "pandas"])
def test_each_way_of_calling_gives_the_same(db: vk.Database, takes: str | None) -> None:
    def plus(a: Any, b: Any) -> Any:
        if takes is None and (a is None or b is None):
            return None
        if takes == "arrow":
            import pyarrow.compute as pc

            return pc.add(a, b)
        return a + b

    assert db.register_function("plus", plus, "BIGINT", deterministic=True, vectorized=takes) is plus
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, plus(k, v) AS p FROM t")
    db.put("t", {"k": 4, "v": 40})
    db.refresh()
    assert [row["p"] for row in rows(db, "w")] == [0, 2, 4, None, 44, 10]


def test_a_failing_row_fails_the_view_until_it_is_mended(db: vk.Database) -> None:
    db.register_function("strict", strict, "TINYINT", deterministic=True, by_value=True)
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT s, SUM(strict(v)) AS n FROM t GROUP BY s")
    db.sql("CREATE MATERIALIZED VIEW other AS SELECT COUNT(*) AS n FROM t")
    good = rows(db, "w")
    db.put("t", {"k": 8, "v": 13, "s": "a"})
    db.put("t", {"k": 9, "v": 100, "s": "b"})
    with pytest.raises(ViewFailed) as caught:
        db.refresh()
    reasons = sorted(reason for reason, _ in caught.value.details["views"]["w"])  # type: ignore[index]
    assert reasons == [
        "FUNCTION_RAISED: strict() raised ValueError",
        "FUNCTION_RESULT_UNFIT: strict() returned int (VALUE_OUT_OF_RANGE), which does not fit TINYINT",
    ]
    assert (rows(db, "w"), rows(db, "other")) == (good, [{"n": 8}])
    db.delete("t", 8)
    db.put("t", {"k": 9, "v": 1, "s": "b"})
    db.refresh()
    assert rows(db, "w") == [{"s": "a", "n": 12}, {"s": "b", "n": 14}]
    with pytest.raises(ViewkeeperError) as caught_too:
        db.sql("SELECT strict(v * 100) AS n FROM t")
    assert caught_too.value.code == "FUNCTION_RESULT_UNFIT"


def test_dml_calls_functions(db: vk.Database) -> None:
    db.register_function("twice", twice, "INT", deterministic=True, by_value=True)
    db.register_function("cents", lambda v: Decimal(v) / 100, "DECIMAL(10,2)")
    db.sql("INSERT INTO t (k, v, m) VALUES (20, twice(4), cents(twice(150)))")
    db.sql("INSERT INTO t (k, v) SELECT k + 100, twice(v) FROM t WHERE k = 20")
    db.sql("UPDATE t SET v = twice(v) WHERE twice(k) = 4")
    db.sql("DELETE FROM t WHERE twice(v) = 10")
    db.sql(
        "MERGE INTO t USING (SELECT 1 AS k, twice(7) AS v) n ON t.k = n.k WHEN MATCHED THEN UPDATE SET v = twice(n.v)"
    )
    assert {r["k"]: r["v"] for r in rows(db, "t")} == {0: 0, 1: 28, 2: 4, 3: None, 4: 4, 20: 8, 120: 16}
    assert db.get("t", 20)["m"] == Decimal("3.00")  # type: ignore[index]


@pytest.mark.parametrize(
    ("return_type", "code", "told"),
    [
        ("TEXT", "UNSUPPORTED_TYPE", "'TEXT': columns cannot be TEXT; it is not a type of Spark: use STRING."),
        ("INTT", "UNSUPPORTED_TYPE", "'INTT': there is no type 'INTT'; did you mean INT?"),
        ("DECIMAL(50,2)", "INVALID_TYPE", "'DECIMAL(50,2)': the precision of a DECIMAL is 1 to 38, not 50."),
        ("INT, INT", "SYNTAX_ERROR", "'INT, INT': One type is expected: write one, as 'INT'."),
        ("", "SYNTAX_ERROR", "'': One type is expected: write one, as 'INT'."),
    ],
)
def test_a_wrong_return_type_is_told_as_the_argument(db: vk.Database, return_type: str, code: str, told: str) -> None:
    with pytest.raises(SqlError) as caught:
        db.register_function("f", twice, return_type)
    assert caught.value.message == f"The argument return_type of f(), {told}"
    assert (caught.value.code, caught.value.details) == (code, {"name": "f", "argument": "return_type"})


def test_registering_is_checked(db: vk.Database) -> None:
    def code(*arguments: Any, **options: Any) -> str:
        with pytest.raises(InputError) as caught:
            db.register_function(*arguments, **options)
        return caught.value.code

    lock = threading.Lock()
    assert code("a b", twice, "INT") == "INVALID_FUNCTION_NAME"
    assert code("select", twice, "INT") == "INVALID_FUNCTION_NAME"
    assert code("Upper", twice, "INT") == "FUNCTION_NAME_TAKEN"
    assert code("soundex", twice, "INT") == "FUNCTION_NAME_TAKEN"
    assert code("f", 1, "INT") == "WRONG_TYPE"
    assert code("f", twice) == "WRONG_TYPE"
    assert code("f", twice, 5) == "WRONG_TYPE"
    assert code("f", twice, "INTT") == "UNSUPPORTED_TYPE"
    assert code("f", twice, "INT, INT") == "SYNTAX_ERROR"
    assert code("f", twice, "INT", vectorized="polars") == "WRONG_TYPE"
    assert code("f", lambda v: lock and v, "INT") == "FUNCTION_NOT_PICKLABLE"
    assert code("f", lambda v: v, "INT", by_value=False) == "FUNCTION_NOT_IMPORTABLE"
    large = "x" * (1 << 19)
    assert code("f", lambda v: large, "INT") == "FUNCTION_TOO_LARGE"
    assert db.functions() == []


def test_calls_are_checked_at_their_place(db: vk.Database) -> None:
    db.register_function("pick", lambda a, b=1, *more: b, "INT", deterministic=True)
    db.register_function("one", lambda a: a, "INT", deterministic=True)
    db.register_function("any_number", lambda a: 1, "INT")
    assert db.sql("SELECT pick(v), pick(v, 5), pick(v, 6, 'x') FROM t WHERE k = 1").to_arrow().num_rows == 1
    for call in ("pick()", "one()", "one(v, v)"):
        with pytest.raises(SqlError) as caught:
            db.sql(f"CREATE MATERIALIZED VIEW w AS SELECT k, {call} AS p FROM t")
        assert caught.value.code == "WRONG_NUM_ARGS"
        assert caught.value.details["column"] == 41
    with pytest.raises(UnsupportedSql, match=r"any_number.*deterministic=True") as refused:
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, any_number(v) AS p FROM t")
    assert refused.value.code == "NONDETERMINISTIC_EXPRESSION"
    assert len(db.sql("SELECT any_number(v) FROM t").rows()) == 6


def test_functions_are_shown_and_dropped(db: vk.Database) -> None:
    db.register_function("Twice", twice, "int", deterministic=True, by_value=True)
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, twice(v) AS p FROM t")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert db.sql("SHOW USER FUNCTIONS").rows() == db.sql("SHOW FUNCTIONS").rows() == [
        {"name": "Twice", "return_type": "INT", "deterministic": True, "takes": "values",
         "kept": f"code of Python {version}", "views": "w"}
    ]  # fmt: skip
    assert "p := Twice(v)" in db.explain("SELECT k, twice(v) AS p FROM t")
    with pytest.raises(InputError, match="w") as caught:
        db.sql("DROP FUNCTION TWICE")
    assert caught.value.code == "FUNCTION_IN_USE"
    db.sql("DROP MATERIALIZED VIEW w; DROP FUNCTION twice; DROP FUNCTION IF EXISTS twice")
    with pytest.raises(InputError) as gone:
        db.drop_function("twice")
    assert gone.value.code == "FUNCTION_NOT_FOUND"


def test_another_function_replaces_it_under_its_views(db: vk.Database) -> None:
    db.register_function("f", twice, "INT", deterministic=True, by_value=True)
    db.sql("CREATE MATERIALIZED VIEW low AS SELECT k, s, f(v) AS p FROM t")
    db.sql("CREATE MATERIALIZED VIEW high AS SELECT s, SUM(p) AS n FROM low GROUP BY s")
    db.sql("CREATE MATERIALIZED VIEW late REFRESH ON DEMAND AS SELECT k, p FROM low WHERE p > 4")
    db.sql("CREATE MATERIALIZED VIEW other AS SELECT COUNT(*) AS n FROM t")
    db.register_function("f", twice, "INT", deterministic=True, by_value=True)
    with pytest.raises(InputError, match="low") as caught:
        db.register_function("f", lambda v: None if v is None else 3 * v, "INT", deterministic=True)
    assert caught.value.code == "FUNCTION_EXISTS"
    db.register_function("f", lambda v: None if v is None else 3 * v, "INT", deterministic=True, or_replace=True)
    assert [row["p"] for row in rows(db, "low")] == [0, 3, 6, None, 12, 15]
    assert rows(db, "high") == [{"s": "a", "n": 18}, {"s": "b", "n": 18}]
    assert [row["k"] for row in rows(db, "late")] == [2, 4, 5]
    db.put("t", {"k": 0, "v": 10, "s": "a"})
    db.refresh()
    assert rows(db, "high") == [{"s": "a", "n": 48}, {"s": "b", "n": 18}]
    assert len(rows(db, "late")) == 4
    with pytest.raises(InputError) as refused:
        db.register_function("f", lambda v: [v], "ARRAY<INT>", deterministic=True, or_replace=True)
    assert refused.value.code == "VIEW_IN_USE"
    assert len(db.sql("SHOW FUNCTIONS").rows()) == 1
    assert {v["state"] for v in db.status()["views"]} == {"ACTIVE"}


def module(folder: Path, name: str, source: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(source)
    return path


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that can be imported, of a name that no other test has."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield module(folder, f"rules_{tmp_path.name}", "def score(v):\n    return None if v is None else v + 1\n")
    sys.modules.pop(f"rules_{tmp_path.name}", None)
    loaded.cache_clear()


def forget(rules: Path) -> None:
    """Be a process that has not imported the module yet."""
    sys.modules.pop(rules.stem, None)
    loaded.cache_clear()


def test_views_wait_where_a_module_is_missing_and_go_on_when_it_is_there(
    db: vk.Database, path: str, rules: Path
) -> None:
    score = __import__(rules.stem).score
    db.register_function("score", score, "INT", deterministic=True)
    assert db.sql("SHOW FUNCTIONS").rows()[0]["kept"] == f"{rules.stem}:score"
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT s, SUM(score(v)) AS n FROM t GROUP BY s")
    db.sql("CREATE MATERIALIZED VIEW above AS SELECT s FROM w WHERE n > 5")
    db.sql("CREATE MATERIALIZED VIEW other AS SELECT COUNT(*) AS n FROM t")
    source = rules.read_text()
    rules.unlink()
    forget(rules)
    before = rows(db, "w")
    db.put("t", {"k": 30, "v": 5, "s": "a"})
    with pytest.raises(FunctionUnavailable, match=rules.stem) as caught:
        db.refresh()
    assert caught.value.code == "FUNCTION_NOT_LOADABLE"
    assert (rows(db, "w"), rows(db, "other")) == (before, [{"n": 7}])
    with pytest.raises(FunctionUnavailable):
        db.sql("CREATE MATERIALIZED VIEW more AS SELECT k, score(v) AS n FROM t")
    assert "more" not in db.views()

    said: list[str] = []
    epochs: list[Outcome] = []
    maintainer = Maintainer(db._engine.coordinator, epochs.append, lambda error: said.append(error.code))
    db.put("t", {"k": 31, "v": 5, "s": "b"})
    for _ in range(3):
        maintainer.round()
    assert said == ["FUNCTION_NOT_LOADABLE"]
    assert (rows(db, "w"), rows(db, "other")) == (before, [{"n": 8}])
    assert {v["name"]: v["state"] for v in db.status()["views"]} == dict.fromkeys(("w", "above", "other"), "ACTIVE")

    rules.write_text("# as before\n" + source)
    db.refresh()
    assert rows(db, "w") == [{"s": "a", "n": 15}, {"s": "b", "n": 14}]


def test_code_that_has_changed_is_not_run(db: vk.Database, rules: Path) -> None:
    db.register_function("score", __import__(rules.stem).score, "INT", deterministic=True)
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, score(v) AS n FROM t")
    rules.write_text("def score(v):\n    return None if v is None else v + 1000\n")
    forget(rules)
    db.put("t", {"k": 30, "v": 5, "s": "a"})
    with pytest.raises(FunctionUnavailable) as caught:
        db.refresh()
    assert caught.value.code == "FUNCTION_CHANGED"
    assert db.get("w", 30) is None
    db.register_function("score", __import__(rules.stem).score, "INT", deterministic=True, or_replace=True)
    assert db.get("w", 30) == {"k": 30, "n": 1005}
    assert db.get("w", 1) == {"k": 1, "n": 1001}


def test_another_connection_finds_what_was_kept(db: vk.Database, path: str) -> None:
    offset = 7
    db.register_function("shifted", lambda v: None if v is None else v + offset, "INT", deterministic=True)
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, shifted(v) AS n FROM t")
    loaded.cache_clear()
    with vk.connect(path, executor="local") as second:
        second.put("t", {"k": 30, "v": 5, "s": "a"})
        second.refresh()
        assert second.get("w", 30) == {"k": 30, "n": 12}
        assert second.functions() == ["shifted"]
