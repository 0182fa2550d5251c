"""ALTER TABLE: columns are renamed and dropped under views, and rows and log entries of before stay readable."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError
from viewkeeper.pipeline.failpoints import hooked


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with vk.connect(tmp_path / "shop.vk", executor="local") as db:
        db.sql("CREATE TABLE t (k BIGINT, a INT, b STRING, c DOUBLE, PRIMARY KEY (k))")
        db.sql("INSERT INTO t VALUES (1, 10, 'x', 0.5), (2, 20, 'y', 1.5)")
        yield db


def rows(db: Database, sql: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.sql(sql).rows())


def test_a_renamed_column_has_its_new_name_everywhere_but_in_views(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT b, SUM(a) AS s FROM t GROUP BY b")
    db.sql("INSERT INTO t VALUES (3, 30, 'x', 2.5)")
    db.sql("ALTER TABLE t RENAME COLUMN a TO amount")
    assert db.get("t", 1) == {"k": 1, "amount": 10, "b": "x", "c": 0.5}
    db.put("t", {"k": 4, "amount": 40, "b": "y"})
    db.sql("UPDATE t SET amount = amount + 1 WHERE k = 1")
    db.refresh()
    assert db.get("v", 4) == {"k": 4, "a": 40, "b": "y", "c": None}
    assert rows(db, "SELECT b, s FROM sums") == [("x", 41), ("y", 60)]
    assert rows(db, "SELECT k, amount FROM t") == [(1, 11), (2, 20), (3, 30), (4, 40)]
    with pytest.raises(InputError, match="UNKNOWN_COLUMN"):
        db.put("t", {"k": 5, "a": 1})
    shown = "\n".join(row["statement"] for row in db.sql("SHOW CREATE sums").rows())
    assert "SELECT b, SUM(a) AS s FROM t" in shown
    assert "-- column a of t is called amount by now" in shown
    db.sql("ALTER TABLE t ADD COLUMN a INT DEFAULT 7")
    db.refresh()
    assert rows(db, "SELECT b, s FROM sums") == [("x", 41), ("y", 60)]


def test_a_column_is_dropped_where_no_view_needs_it(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT b, SUM(c) AS s, COUNT(*) AS n FROM t GROUP BY b")
    with db.snapshot() as before:
        db.sql("INSERT INTO t VALUES (3, 30, 'x', 2.5)")
        db.sql("ALTER TABLE t DROP COLUMN a")
        assert before.get("t", 1) == {"k": 1, "a": 10, "b": "x", "c": 0.5}
    assert db.get("t", 3) == {"k": 3, "b": "x", "c": 2.5}
    db.sql("INSERT INTO t VALUES (4, 'y', 3.0)")
    db.sql("UPDATE t SET c = c + 1 WHERE k = 1; DELETE FROM t WHERE k = 2")
    db.refresh()
    assert rows(db, "SELECT b, s, n FROM sums") == [("x", 4.0, 2), ("y", 3.0, 1)]
    db.sql("ALTER TABLE t ADD COLUMN a STRING DEFAULT 'new'")
    assert db.get("t", 3) == {"k": 3, "b": "x", "c": 2.5, "a": "new"}
    assert [row["col_name"] for row in db.sql("DESCRIBE t").rows()] == ["k", "b", "c", "a"]
    db.put("t", {"k": 5, "b": "x", "c": 1.0, "a": "own"})
    db.refresh("sums", full=True)
    assert rows(db, "SELECT b, s, n FROM sums") == [("x", 5.0, 3), ("y", 3.0, 1)]


def test_state_keeps_its_name_when_a_column_before_it_is_dropped(db: Database) -> None:
    db.sql("CREATE TABLE u (id BIGINT, b STRING, w INT, PRIMARY KEY (id))")
    db.sql("INSERT INTO u VALUES (1, 'x', 5), (2, 'y', 6)")
    db.sql("CREATE MATERIALIZED VIEW joined AS SELECT t.k, u.id, t.c, u.w FROM t JOIN u ON t.b = u.b")
    db.sql("ALTER TABLE t DROP COLUMN a")
    db.sql("INSERT INTO u VALUES (3, 'x', 7)")
    db.refresh()
    assert rows(db, "SELECT k, id, c, w FROM joined") == [(1, 1, 0.5, 5), (1, 3, 0.5, 7), (2, 2, 1.5, 6)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT k FROM t WHERE a > 1",
        "SELECT k FROM (SELECT k, a AS z FROM t) q",
        "SELECT q.k, q.b FROM t AS q NATURAL JOIN (SELECT k, a FROM t) p",
    ],
)
def test_a_column_that_a_view_needs_is_not_dropped(db: Database, query: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    with pytest.raises(InputError, match=r"COLUMN_IN_USE.*'a' of table 't': v\.") as raised:
        db.sql("ALTER TABLE t DROP COLUMN a")
    assert raised.value.details["views"] == ["v"]
    db.sql("DROP MATERIALIZED VIEW v; ALTER TABLE t DROP COLUMNS (a, b)")
    assert db.get("t", 1) == {"k": 1, "c": 0.5}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER TABLE t DROP COLUMN k", "KEY_COLUMN_CANNOT_CHANGE"),
        ("ALTER TABLE t DROP COLUMN z", "UNKNOWN_COLUMN"),
        ("ALTER TABLE t RENAME COLUMN z TO y", "UNKNOWN_COLUMN"),
        ("ALTER TABLE t RENAME COLUMN a TO B", "COLUMN_EXISTS"),
        ("ALTER TABLE t ADD COLUMN a INT", "COLUMN_EXISTS"),
        ("ALTER TABLE t ALTER COLUMN k TYPE DECIMAL(20, 0)", "KEY_COLUMN_CANNOT_CHANGE"),
        ("ALTER TABLE t ALTER COLUMN a TYPE SMALLINT", "TYPE_NOT_WIDER"),
        ("ALTER TABLE t ALTER COLUMN a TYPE FLOAT", "TYPE_NOT_WIDER"),
        ("ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(10, 1)", "TYPE_NOT_WIDER"),
        ("ALTER TABLE t ALTER COLUMN b TYPE BINARY", "TYPE_NOT_WIDER"),
        ("ALTER TABLE nowhere DROP COLUMN a", "TABLE_NOT_FOUND"),
    ],
)
def test_changes_that_are_refused(db: Database, statement: str, code: str) -> None:
    with pytest.raises(InputError, match=code):
        db.sql(statement)


def test_a_view_far_behind_reads_log_entries_of_every_version(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v REFRESH ON DEMAND AS SELECT k, b, c FROM t")
    changes = {30: "DROP COLUMN a", 60: "RENAME COLUMN c TO d", 80: "ADD COLUMN e INT DEFAULT 3"}
    for i in range(100):
        if i in changes:
            db.sql(f"ALTER TABLE t {changes[i]}")
        third = "c" if i < 60 else "d"
        db.put("t", {"k": i, "b": f"b{i}", third: float(i)})
        if i % 10 == 5:
            # Many rows stand in the log in another form than few.
            db.put_batch("t", [{"k": 100 + j, "b": f"z{i}", third: float(j)} for j in range(400)])
    db.refresh("v")
    assert rows(db, "SELECT k, b, c FROM v") == rows(db, "SELECT k, b, d FROM t")
    assert len(rows(db, "SELECT k FROM v")) == 500


def test_defaults_and_comments_stay_with_their_columns(db: Database, tmp_path: Path) -> None:
    columns = "k INT, a INT DEFAULT 1, b INT COMMENT 'kept', c DATE DEFAULT DATE '2020-01-02'"
    db.sql(f"CREATE TABLE d ({columns}, PRIMARY KEY (k))")
    db.put("d", {"k": 1})
    db.sql("ALTER TABLE d DROP COLUMN a")
    db.put("d", {"k": 2})
    with vk.connect(tmp_path / "shop.vk", executor="local") as again:
        first, second = again.get("d", 1), again.get("d", 2)
        assert first is not None
        assert second == {**first, "k": 2}
        assert [row["comment"] for row in again.sql("DESCRIBE d").rows()] == [None, "kept", None]


def test_a_wider_type_refills_the_views_that_it_concerns(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW names AS SELECT k, b FROM t")
    db.sql("CREATE MATERIALIZED VIEW doubled AS SELECT k, a, a * 2 AS d FROM t")
    query = "SELECT b, MAX(d) AS m FROM doubled NATURAL JOIN names GROUP BY b"
    db.sql(f"CREATE MATERIALIZED VIEW top REFRESH EVERY 1 HOUR AS {query}")
    ids = {name: db._engine.coordinator.catalog().view(name).id for name in ("names", "doubled")}
    db.put_batch("t", [{"k": 100 + i, "a": i, "b": "z", "c": 1.0} for i in range(400)])
    db.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    types = {row["col_name"]: row["data_type"] for row in db.sql("DESCRIBE doubled").rows()}
    assert types == {"k": "bigint", "a": "bigint", "d": "bigint"}
    assert db.get("t", 1) == {"k": 1, "a": 10, "b": "x", "c": 0.5}
    db.put("t", {"k": 3, "a": 3_000_000_000, "b": "x", "c": 1.0})
    db.sql("UPDATE t SET a = a + 4000000000 WHERE k = 1")
    db.refresh()
    assert rows(db, "SELECT b, m FROM top") == [("x", 8_000_000_020), ("y", 40), ("z", 798)]
    assert rows(db, "SELECT k, a FROM doubled") == rows(db, "SELECT k, a FROM t")
    catalog = db._engine.coordinator.catalog()
    assert catalog.view("names").id == ids["names"]
    assert catalog.view("doubled").id != ids["doubled"]


def test_the_old_version_goes_on_from_its_state_until_the_new_one_is_filled(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT b, SUM(a) AS s, COUNT(*) AS n FROM t GROUP BY b")
    coordinator, shown = db._engine.coordinator, []
    before = db.get("sums", "x")

    def write(point: str) -> None:
        if point == "build:before-swap":
            with hooked(lambda name: None):
                db.put("t", {"k": 50, "a": 7, "b": "x", "c": 1.0})
                coordinator.epoch("continuous")
                shown.append(db.get("sums", "x"))

    with hooked(write):
        db.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    assert before is not None
    assert shown[0] == {"b": "x", "s": before["s"] + 7, "n": before["n"] + 1}
    assert db.get("sums", "x") == shown[0]


def test_a_suspended_view_follows_a_wider_type_that_it_does_not_read(db: Database) -> None:
    """What it reads keeps the type of its rows until RESUME; what it does not read has the present type at once."""
    db.sql("ALTER TABLE t ADD COLUMN n INT")
    db.sql("CREATE MATERIALIZED VIEW names AS SELECT k, b FROM t")
    db.sql("CREATE MATERIALIZED VIEW doubled AS SELECT k, a, a * 2 AS d FROM t")

    def types(view: str) -> list[str]:
        return [row["data_type"] for row in db.sql(f"DESCRIBE {view}").rows()]

    def known(view: str) -> dict[str, str]:
        [(_, columns)] = db._engine.coordinator.catalog().view(view).columns_read
        return {column.name: str(column.type) for column in columns}

    before = {name: rows(db, f"SELECT * FROM {name}") for name in ("names", "doubled")}
    for name in before:
        db.sql(f"ALTER MATERIALIZED VIEW {name} SUSPEND")
    db.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT; ALTER TABLE t ALTER COLUMN n TYPE BIGINT")
    db.put("t", {"k": 3, "a": 3_000_000_000, "b": "x", "c": 1.0, "n": 4_000_000_000})
    assert (known("names")["a"], known("names")["n"]) == ("bigint", "bigint")
    assert (known("doubled")["a"], known("doubled")["n"]) == ("int", "int")
    assert (types("names"), types("doubled")) == (["bigint", "string"], ["bigint", "int", "int"])
    assert {name: rows(db, f"SELECT * FROM {name}") for name in before} == before
    for name in before:
        db.sql(f"ALTER MATERIALIZED VIEW {name} RESUME")
    assert known("doubled")["n"] == "bigint"
    assert (types("names"), types("doubled")) == (["bigint", "string"], ["bigint", "bigint", "bigint"])
    assert db.get("doubled", 3) == {"k": 3, "a": 3_000_000_000, "d": 6_000_000_000}
    assert db.get("names", 3) == {"k": 3, "b": "x"}
    db.sql("UPDATE t SET n = n + 1, a = a + 1 WHERE k = 3")
    db.refresh()
    assert db.get("doubled", 3) == {"k": 3, "a": 3_000_000_001, "d": 6_000_000_002}


@pytest.mark.parametrize("policy", ["INCREMENTAL", "FULL"])
def test_a_view_over_one_that_a_wider_type_refills_keeps_no_state_of_before(db: Database, policy: str) -> None:
    db.sql("CREATE TABLE d (b STRING, PRIMARY KEY (b))")
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT b, SUM(a) AS s FROM t GROUP BY b")
    query = "SELECT b FROM sums INTERSECT SELECT b FROM d"
    db.sql(f"CREATE MATERIALIZED VIEW both REFRESH POLICY {policy} AS {query}")
    db.sql(f"CREATE MATERIALIZED VIEW many AS SELECT COUNT(*) AS n FROM ({query})")
    db.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    db.sql("INSERT INTO d VALUES ('x')")
    db.refresh()
    assert rows(db, "SELECT b FROM both") == [("x",)]
    db.sql("DELETE FROM t WHERE b = 'x'")
    db.sql("INSERT INTO d VALUES ('y')")
    db.refresh()
    assert rows(db, "SELECT b FROM both") == [("y",)]
    assert db.get("many", ()) == {"n": 1}


def test_views_far_behind_and_rows_of_before_follow_a_wider_type(db: Database) -> None:
    db.sql("CREATE TABLE w (k INT, i INT DEFAULT 7, f FLOAT, d DECIMAL(5, 2), day DATE, s STRING, PRIMARY KEY (k))")
    db.sql("CREATE MATERIALIZED VIEW v REFRESH ON DEMAND AS SELECT * FROM w")
    wider = {8: "i TYPE DECIMAL(14, 1)", 16: "f TYPE DOUBLE", 24: "d TYPE DECIMAL(9, 4)", 32: "day TYPE TIMESTAMP_NTZ"}
    for n in range(40):
        if n in wider:
            db.sql(f"ALTER TABLE w ALTER COLUMN {wider[n]}")
        db.sql(f"INSERT INTO w VALUES ({n}, {n}, {n}.5, {n}.25, DATE '2020-01-01', 's{n}')")
        db.sql(f"INSERT INTO w VALUES ({1000 + n}, NULL, NULL, NULL, NULL, NULL)")
        db.sql(f"UPDATE w SET i = i + 1, s = 'u' WHERE k = {n // 2}")
    db.refresh("v")
    assert sorted(map(str, db.scan("v"))) == sorted(map(str, db.scan("w")))
    last = db.get("w", 39)
    assert last is not None
    assert last["i"] == Decimal("39.0")
    assert last["day"] == datetime(2020, 1, 1)
    old = db.get("w", 1007)
    assert old == {"k": 1007, "i": None, "f": None, "d": None, "day": None, "s": None}
    db.put("w", {"k": -1})
    assert rows(db, "SELECT i FROM w WHERE k = -1") == [(Decimal("7.0"),)]
    types = [row["data_type"] for row in db.sql("DESCRIBE v").rows()]
    assert types == ["int", "decimal(14,1)", "double", "decimal(9,4)", "timestamp_ntz", "string"]


@pytest.mark.parametrize("change", ["ADD COLUMN d INT", "RENAME COLUMN e TO d", "ALTER COLUMN e TYPE BIGINT"])
def test_a_table_that_never_had_rows_changes_before_a_view_that_reads_it_is_recomputed(
    db: Database, change: str
) -> None:
    db.sql("CREATE TABLE u (k BIGINT, e INT, PRIMARY KEY (k))")
    db.sql("CREATE MATERIALIZED VIEW keys REFRESH POLICY FULL AS SELECT k FROM t UNION ALL SELECT k FROM u")
    db.sql("INSERT INTO t VALUES (3, 30, 'x', 2.5)")
    db.sql("ALTER TABLE u ADD COLUMN f INT")
    db.sql(f"ALTER TABLE u {change}")
    db.refresh()
    assert rows(db, "SELECT k FROM keys") == [(1,), (2,), (3,)]
