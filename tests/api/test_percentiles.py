"""PERCENTILE with a frequency: a row counts as often as it says, and a frequency below 0 is an error of its row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from viewkeeper import errors
from viewkeeper.database import Database
from viewkeeper.testing.oracle import in_memory

AS_OFTEN = "SELECT g, percentile(a, array(0.0, 0.5), often) AS p FROM t GROUP BY g"


@pytest.fixture
def db() -> Iterator[Database]:
    with in_memory() as database:
        database.sql("CREATE TABLE t (k BIGINT NOT NULL, g STRING, a INT, often INT, PRIMARY KEY (k))")
        database.sql("INSERT INTO t VALUES (1, 'x', 10, 2), (2, 'x', 20, 0), (3, 'x', 30, NULL), (4, 'x', 40, 3)")
        yield database


def answer(db: Database, view: str = "v") -> list[tuple[object, ...]]:
    db.refresh()
    return [tuple(row.values()) for row in db.sql(f"SELECT * FROM {view}").rows()]


def test_the_percentile_moves_with_the_frequencies(db: Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {AS_OFTEN}")
    assert answer(db) == [("x", [10.0, 40.0])]
    db.sql("UPDATE t SET often = 3 WHERE k = 1")
    assert answer(db) == [("x", [10.0, 25.0])]
    db.sql("UPDATE t SET often = 1000000000 WHERE k = 3")
    assert answer(db) == [("x", [10.0, 30.0])]
    db.sql("UPDATE t SET often = 0")
    assert answer(db) == [("x", None)]


def test_a_negative_frequency_is_an_error_row_until_it_is_mended(db: Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {AS_OFTEN}")
    db.sql("INSERT INTO t VALUES (5, 'x', NULL, -1)")
    assert answer(db) == [("x", [10.0, 40.0])]
    db.sql("UPDATE t SET often = -1 WHERE k = 1")
    with pytest.raises(errors.ViewFailed, match=r"NEGATIVE_VALUES_IN_FREQUENCY.* a frequency is 0 or more"):
        db.refresh()
    db.sql("UPDATE t SET often = 1 WHERE k = 1")
    assert answer(db) == [("x", [10.0, 40.0])]


def test_what_a_filter_leaves_out_is_not_computed(db: Database) -> None:
    db.sql("UPDATE t SET a = 0, often = -1 WHERE k = 1")
    chosen = "FILTER (WHERE a <> 0)"
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT g, MAX(80 / a) {chosen} AS m FROM t GROUP BY g")
    db.sql(f"CREATE MATERIALIZED VIEW w AS SELECT percentile(a, 0.5, often) {chosen} AS p FROM t")
    over = "OVER (PARTITION BY g)"
    db.sql(f"CREATE MATERIALIZED VIEW o AS SELECT k, percentile(a, 0.5, often) {chosen} {over} AS p FROM t WHERE k < 2")
    assert (answer(db), answer(db, "w"), answer(db, "o")) == ([("x", 4.0)], [(40.0,)], [(1, None)])


@pytest.mark.parametrize("frequency", ["CAST(often AS DOUBLE)", "'3'", "TRUE", "2.0"])
def test_a_frequency_is_an_integer(db: Database, frequency: str) -> None:
    with pytest.raises(errors.SqlError) as raised:
        db.sql(f"SELECT percentile(a, 0.5, {frequency}) FROM t")
    assert raised.value.code == "DATATYPE_MISMATCH"
