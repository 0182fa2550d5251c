"""Comparing bags of rows, and a view with its recomputation; VERIFY itself is tested with Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.evaluation.stores import Store
from viewkeeper.errors import InputError
from viewkeeper.evaluation.comparison import Differences, compare
from viewkeeper.evaluation.verify import query_of, recompute_local, verify_view
from viewkeeper.expressions.tree import Session
from viewkeeper.views.inputs import QueryInput, TableInput
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, Column, Schema

SCHEMA = Schema((Column("k", INT), Column("x", DOUBLE)))
NAN = float("nan")
Rows = list[tuple[object, object]]


def batch(rows: Rows) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA.to_arrow(), strict=True)], schema=SCHEMA.to_arrow()
    )


def compared(expected: Rows, stored: Rows, key: tuple[int, ...] | None, limit: int = 20) -> Differences:
    return compare([batch(expected)], [batch(stored)], SCHEMA, key, len(stored), limit)


def counts(found: Differences) -> tuple[int, int, int]:
    return found.missing_count, found.unexpected_count, found.different_count


@pytest.mark.parametrize("key", [(0,), None])
@pytest.mark.parametrize(
    ("expected", "stored"),
    [
        ([], []),
        ([(1, 1.0), (2, None)], [(2, None), (1, 1.0)]),
        ([(1, NAN), (None, -0.0)], [(None, 0.0), (1, -NAN)]),
        ([(1, 0.1 + 0.2)], [(1, 0.3)]),
        ([(1, float("inf"))], [(1, float("inf"))]),
        ([(1, 1e300), (2, 0.3)], [(2, 0.1 + 0.2), (1, 1e300 * (1 + 1e-15))]),
    ],
)
def test_equal_bags(expected: Rows, stored: Rows, key: tuple[int, ...] | None) -> None:
    assert counts(compared(expected, stored, key)) == (0, 0, 0)


def test_repeated_rows_count() -> None:
    found = compared([(1, 1.0), (1, 1.0), (2, 0.3)], [(1, 1.0), (2, 0.1 + 0.2), (2, 0.3)], None)
    assert counts(found) == (1, 1, 0)
    assert found.missing == [{"k": 1, "x": 1.0}]


@pytest.mark.parametrize(
    ("there", "stored"),
    [(1.0, 1.1), (NAN, 1.0), (None, 0.0), (float("inf"), float("-inf")), (1.0, None), (1e9, 1e9 + 2)],
)
def test_different_values(there: object, stored: object) -> None:
    assert counts(compared([(1, there), (2, 5.0)], [(1, stored), (2, 5.0)], (0,))) == (0, 0, 1)
    assert counts(compared([(1, there), (2, 5.0)], [(1, stored), (2, 5.0)], None)) == (1, 1, 0)


def test_rows_shown_are_limited_and_counted() -> None:
    found = compared([(i, 1.0) for i in range(50)], [(i, 2.0) for i in range(40)], (0,), limit=3)
    assert counts(found) == (10, 0, 40)
    assert len(found.missing) == len(found.different) == 3
    assert found.different[0] == ({"k": 0, "x": 1.0}, {"k": 0, "x": 2.0})


def test_large_bags_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.evaluation.comparison.ROWS_PER_PART", 10)
    rows: Rows = [(i, i / 3) for i in range(100)]
    found = compared(rows, [(50, 0.0), *rows[:50], *rows[51:99], (1000, 1.0)], (0,))
    assert counts(found) == (1, 1, 1)
    assert (found.missing, found.unexpected) == ([{"k": 99, "x": 33.0}], [{"k": 1000, "x": 1.0}])
    assert found.rows == 100


def test_maps_and_nested_floats_compare_whole() -> None:
    schema = Schema((Column("m", types.map_of(types.STRING, INT)), Column("p", types.struct(x=DOUBLE))))
    rows = pa.RecordBatch.from_pylist(
        [{"m": [("a", 1)], "p": {"x": -0.0}}, {"m": None, "p": {"x": NAN}}], schema.to_arrow()
    )
    other = pa.RecordBatch.from_pylist(
        [{"m": None, "p": {"x": NAN}}, {"m": [("a", 1)], "p": {"x": 0.0}}], schema.to_arrow()
    )
    assert counts(compare([rows], [other], schema, None, 2, 5)) == (0, 0, 0)
    assert counts(compare([rows], [other.slice(1)], schema, None, 1, 5)) == (1, 0, 0)


@pytest.fixture
def store() -> Store:
    made = Store.new()
    made.create("t", {"k": BIGINT, "a": INT, "x": DOUBLE}, ("k",), [(i, i % 3, i / 7) for i in range(50)])
    made.create_view("v", "SELECT a, SUM(x) AS total FROM t GROUP BY a")
    made.create_view("w", "SELECT MAX(total) AS most FROM v", session=Session("Asia/Tokyo"))
    return made


def test_recomputed_at_the_views_own_position(store: Store) -> None:
    store.run("DELETE FROM t WHERE k < 10")
    for name in ("v", "w"):
        report = recompute_local(store.context, name)
        assert report.ok, str(report)
        assert int(str(report.position)) < int(str(store.run("DELETE FROM t WHERE k = -1").position))
    assert "is right: 3 rows" in str(recompute_local(store.context, "v"))


def test_views_are_expanded_to_queries_over_base_tables(store: Store) -> None:
    catalog = store.catalog()
    query = query_of(catalog, catalog.view("w"), 7)
    inner = query.inputs["v"]
    assert isinstance(inner, QueryInput)
    assert query.session == Session("Asia/Tokyo")
    table = catalog.table("t")
    assert inner.inputs == {"t": TableInput(table, 7, table.columns_read())}


def test_what_cannot_be_verified(store: Store) -> None:
    for name, code in (("v", "VERIFY_NEEDS_SPARK"), ("nowhere", "VERIFY_NEEDS_SPARK")):
        with pytest.raises(InputError, match=code):
            verify_view(store.context, name)
    with pytest.raises(InputError, match="VIEW_NOT_FOUND"):
        recompute_local(store.context, "nowhere")
