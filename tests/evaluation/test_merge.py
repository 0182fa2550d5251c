"""MERGE: all kinds of clauses, in Spark's order, over look-ups, joins and nested loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.evaluation.stores import Store
from viewkeeper.errors import EvaluationError, SqlError
from viewkeeper.evaluation.pairs import all_pairs, equal_pairs
from viewkeeper.zset.schema import BIGINT, INT, STRING

Rows = list[tuple[object, ...]]


@pytest.fixture
def store() -> Store:
    made = Store.new()
    columns = {"k": BIGINT, "a": INT, "s": STRING}
    made.create("t", columns, ("k",), [(i, i, f"t{i}") for i in range(5)], defaults={"a": 7})
    made.create("u", columns, ("k",), [(i, i * 10, f"u{i}") for i in range(3, 7)])
    return made


START = [(i, i, f"t{i}") for i in range(5)]
MERGES = {
    "upsert by star": (
        "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        4,
        [*START[:3], (3, 30, "u3"), (4, 40, "u4"), (5, 50, "u5"), (6, 60, "u6")],
    ),
    "first clause that holds": (
        """MERGE INTO t AS x USING (SELECT k + 1 AS k, s FROM u WHERE k < 5) y ON x.k = y.k
        WHEN MATCHED AND x.k > 9 THEN DELETE
        WHEN MATCHED THEN UPDATE SET a = DEFAULT, s = x.s || y.s
        WHEN NOT MATCHED AND y.k > 9 THEN INSERT (k) VALUES (0)
        WHEN NOT MATCHED THEN INSERT (s, k) VALUES (upper(y.s), k)""",
        2,
        [*START[:4], (4, 7, "t4u3"), (5, 7, "U4")],
    ),
    "rows that the source lacks": (
        """MERGE INTO t USING u ON t.k = u.k
        WHEN NOT MATCHED BY SOURCE AND t.k = 0 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND t.k < 2 THEN UPDATE SET s = 'lone'""",
        2,
        [(1, 1, "lone"), *START[2:]],
    ),
    "no equality": ("MERGE INTO t USING u ON t.k > u.k AND u.s <> '' WHEN MATCHED THEN DELETE", 1, START[:4]),
    "no key": ("MERGE INTO t USING u ON t.a = u.k AND t.s LIKE '%4' WHEN MATCHED THEN DELETE", 1, START[:4]),
    "moved keys": (
        "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET k = u.a",
        2,
        [*START[:3], (30, 3, "t3"), (40, 4, "t4")],
    ),
    "never": ("MERGE INTO t USING u ON FALSE WHEN MATCHED THEN DELETE", 0, START),
    "null keys": (
        "MERGE INTO t USING (SELECT CAST(NULL AS BIGINT) AS k FROM u) y ON t.k = y.k WHEN MATCHED THEN DELETE",
        0,
        START,
    ),
    "one row of constants": (
        """MERGE INTO t USING (SELECT 9L AS k, 'new' AS s -- the row
        ) y ON t.k = y.k WHEN MATCHED THEN UPDATE SET s = y.s WHEN NOT MATCHED THEN INSERT (k, s) VALUES (y.k, y.s)""",
        1,
        [*START, (9, 7, "new")],
    ),
    "empty source": (
        "MERGE INTO t USING (SELECT k FROM u WHERE k > 100) y ON t.k = y.k WHEN MATCHED THEN DELETE",
        0,
        START,
    ),
}


@pytest.mark.parametrize(("sql", "affected", "after"), MERGES.values(), ids=MERGES)
def test_merge(store: Store, sql: str, affected: int, after: Rows) -> None:
    assert store.run(sql).rows_affected == affected
    assert store.table("t") == after


@pytest.mark.parametrize("on", ["t.k = u.k", "t.k + 0 = u.k", "t.k <= u.k AND t.k >= u.k"])
def test_every_way_to_pair_gives_the_same(store: Store, on: str) -> None:
    store.run(f"MERGE INTO t USING u ON {on} WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *")
    assert [row[2] for row in store.table("t")] == ["t0", "t1", "t2", "u3", "u4", "u5", "u6"]


def test_two_source_rows_for_one_target_row(store: Store) -> None:
    twice = "(SELECT k FROM u UNION ALL SELECT k FROM u) y"
    before = store.table("t")
    for clause in ("UPDATE SET a = 1", "DELETE WHEN MATCHED THEN UPDATE SET a = 1"):
        text = f"MERGE INTO t USING {twice} ON t.k = y.k WHEN MATCHED AND y.k > 100 THEN {clause}"
        with pytest.raises(EvaluationError, match="with k = 3") as raised:
            store.run(text)
        assert raised.value.code == "MERGE_CARDINALITY_VIOLATION"
        assert store.table("t") == before
    assert store.run(f"MERGE INTO t USING {twice} ON t.k = y.k WHEN MATCHED THEN DELETE").rows_affected == 2


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET a = nope", "UNRESOLVED_COLUMN"),
        ("MERGE INTO t USING u ON k = u.k WHEN MATCHED THEN DELETE", "AMBIGUOUS_REFERENCE"),
        ("MERGE INTO t USING u ON t.k WHEN MATCHED THEN DELETE", "DATATYPE_MISMATCH"),
        ("MERGE INTO t USING u ON t.k = u.k WHEN NOT MATCHED THEN INSERT (k, a) VALUES (t.k, 1)", "UNRESOLVED_COLUMN"),
        ("MERGE INTO t USING u ON t.k = u.k WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = u.a", "UNRESOLVED_COLUMN"),
        ("MERGE INTO t USING (SELECT k FROM u) y ON t.k = y.k WHEN MATCHED THEN UPDATE SET *", "UNRESOLVED_COLUMN"),
        ("MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET a = u.s", "INCOMPATIBLE_DATA_FOR_TABLE"),
        ("MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET a = 1 / (u.a - 30)", "DIVIDE_BY_ZERO"),
        ("MERGE INTO t USING u ON t.k = u.k + 100 WHEN NOT MATCHED THEN INSERT *", "DUPLICATE_KEY"),
        ("MERGE INTO t USING u ON t.k = u.k + 100 WHEN NOT MATCHED THEN INSERT (k) VALUES (99)", "DUPLICATE_KEY"),
        ("MERGE INTO t USING u ON t.k = u.k WHEN NOT MATCHED THEN INSERT (a) VALUES (1)", "NULL_IN_NOT_NULL_COLUMN"),
        ("MERGE INTO t USING nowhere ON t.k = nowhere.k WHEN MATCHED THEN DELETE", "TABLE_OR_VIEW_NOT_FOUND"),
        ("MERGE INTO nowhere USING u ON u.k = 1 WHEN MATCHED THEN DELETE", "TABLE_NOT_FOUND"),
    ],
)
def test_refusals_change_nothing(store: Store, sql: str, code: str) -> None:
    before = store.table("t")
    assert store.code(sql) == code
    assert store.table("t") == before


def test_errors_point_into_the_source(store: Store) -> None:
    with pytest.raises(SqlError, match="line 2, column 9"):
        store.run("MERGE INTO t USING (\n SELECT idd FROM u) y ON t.k = y.idd WHEN MATCHED THEN DELETE")
    with pytest.raises(SqlError, match="line 2, column 17"):
        store.run("MERGE INTO t USING (\n SELECT 1 AS k, nope AS s) y ON t.k = y.k WHEN MATCHED THEN DELETE")


def test_a_clause_looks_only_at_the_rows_left_to_it(store: Store) -> None:
    sql = (
        "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND u.k = 3 THEN DELETE"
        " WHEN MATCHED AND 1 / (u.k - 3) > 0 THEN UPDATE SET a = 1 / (t.k - 3)"
    )
    assert store.run(sql).rows_affected == 2
    assert store.table("t")[3:] == [(4, 1, "t4")]


def test_equal_pairs_against_a_nested_loop() -> None:
    generator = np.random.default_rng(7)
    for _ in range(50):
        sizes = generator.integers(0, 12, 2)
        columns = [
            [pa.array([None if v == 4 else v for v in generator.integers(0, 5, n)], pa.int64()) for _ in range(2)]
            for n in sizes
        ]
        found = sorted(zip(*(a.tolist() for a in equal_pairs(*columns)), strict=True))
        rows = [list(zip(*(c.to_pylist() for c in side), strict=True)) for side in columns]
        wanted = [(i, j) for i, a in enumerate(rows[0]) for j, b in enumerate(rows[1]) if a == b and None not in a]
        assert found == wanted


def test_all_pairs_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.evaluation.pairs.PAIRS_MAX", 4)
    parts = [list(zip(a.tolist(), b.tolist(), strict=True)) for a, b in all_pairs(5, 2)]
    assert [len(part) for part in parts] == [4, 4, 2]
    assert [pair for part in parts for pair in part] == [(i, j) for i in range(5) for j in range(2)]
    assert [len(lefts) for lefts, _ in all_pairs(3, 0)] == [0]
