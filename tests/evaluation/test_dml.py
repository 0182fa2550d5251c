"""INSERT, UPDATE and DELETE: what they change, what they refuse, and that others may write meanwhile."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from tests.evaluation.stores import Store
from viewkeeper.errors import EvaluationError, InputError, SqlError
from viewkeeper.evaluation import changes as module
from viewkeeper.evaluation.assignment import can_store
from viewkeeper.evaluation.changes import Changes
from viewkeeper.evaluation.spool import Spool, SpooledFiles
from viewkeeper.log.position import Position
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, STRING, Column, Schema

COLUMNS = {"k": BIGINT, "a": INT, "s": STRING, "x": DOUBLE}


@pytest.fixture
def store() -> Store:
    made = Store.new()
    made.create("t", COLUMNS, ("k",), [(i, i % 3, f"s{i}", i / 2) for i in range(6)], defaults={"a": 7})
    return made


def test_insert_values(store: Store) -> None:
    done = store.run("INSERT INTO t VALUES (10, -1, 'it''s', 1.5), (11, NULL, NULL, 2)")
    assert (done.rows_affected, done.rows()) == (2, [{"num_affected_rows": 2}])
    assert done.position is not None
    assert done.position > Position(1)
    assert store.table("t")[6:] == [(10, -1, "it's", 1.5), (11, None, None, 2.0)]


def test_insert_takes_defaults(store: Store) -> None:
    store.run("INSERT INTO t (s, k) VALUES (upper('abc'), 10), (:p, :k)", p="q", k=11)
    store.run("INSERT INTO t VALUES (12, DEFAULT, DEFAULT, 1), (13, 1, 'x', DEFAULT)")
    assert store.table("t")[6:] == [(10, 7, "ABC", None), (11, 7, "q", None), (12, 7, None, 1.0), (13, 1, "x", None)]


def test_insert_brings_values_to_their_common_type_first(store: Store) -> None:
    store.run("INSERT INTO t (k, s) VALUES (10, 1), (11, 2.5), (12L, -3)")
    assert [row[2] for row in store.table("t")[6:]] == ["1.0", "2.5", "-3.0"]


def test_insert_select(store: Store) -> None:
    assert store.run("INSERT INTO t SELECT k + 100, a, s, x FROM t WHERE k < 2").rows_affected == 2
    assert store.table("t")[6:] == [(100, 0, "s0", 0.0), (101, 1, "s1", 0.5)]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("INSERT INTO t (k) VALUES (3)", "DUPLICATE_KEY"),
        ("INSERT INTO t (k) VALUES (30), (30)", "DUPLICATE_KEY"),
        ("INSERT INTO t (k, a) VALUES (10, 3000000000)", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("INSERT INTO t (k, a) VALUES (10, 'x')", "INCOMPATIBLE_DATA_FOR_TABLE"),
        ("INSERT INTO t (k, a) VALUES (10, TRUE)", "INCOMPATIBLE_DATA_FOR_TABLE"),
        ("INSERT INTO t (a) VALUES (1)", "NULL_IN_NOT_NULL_COLUMN"),
        ("INSERT INTO t (k) VALUES (NULL)", "NULL_IN_NOT_NULL_COLUMN"),
        ("INSERT INTO t VALUES (1, 2)", "INSERT_COLUMN_ARITY_MISMATCH"),
        ("INSERT INTO t (k, a) SELECT k FROM t", "INSERT_COLUMN_ARITY_MISMATCH"),
        ("INSERT INTO t (k, nope) VALUES (1, 2)", "UNKNOWN_COLUMN"),
        ("INSERT INTO nowhere VALUES (1)", "TABLE_NOT_FOUND"),
        ("INSERT INTO t (k, a) VALUES (10, 1), (11)", "INVALID_INLINE_TABLE"),
        ("INSERT INTO t (k, a) VALUES (10, TRUE), (11, 1)", "INVALID_INLINE_TABLE"),
        ("INSERT INTO t (k, a) VALUES (10, 1 / 0)", "DIVIDE_BY_ZERO"),
        ("INSERT INTO t (k, a) VALUES (10, )", "SYNTAX_ERROR"),
        ("INSERT INTO t (k, s) VALUES (10, soundex('x'))", "EXPRESSION_NEEDS_SPARK"),
        ("INSERT INTO t (k, s) VALUES (10, nope)", "UNRESOLVED_COLUMN"),
        ("UPDATE t SET a = 1 / a", "DIVIDE_BY_ZERO"),
        ("UPDATE t SET a = k * 1000000000", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("UPDATE t SET a = 'x'", "INCOMPATIBLE_DATA_FOR_TABLE"),
        ("UPDATE t SET k = NULL", "NULL_IN_NOT_NULL_COLUMN"),
        ("UPDATE t SET k = 3 WHERE k = 1", "DUPLICATE_KEY"),
        ("UPDATE t SET k = 50 WHERE k < 2", "DUPLICATE_KEY"),
        ("UPDATE t SET nope = 1", "UNKNOWN_COLUMN"),
        ("UPDATE t SET a = nope", "UNRESOLVED_COLUMN"),
        ("UPDATE t SET a = 1 WHERE k", "DATATYPE_MISMATCH"),
        ("UPDATE t SET a = 1 WHERE 1 / (k - 2) > 0", "DIVIDE_BY_ZERO"),
        ("DELETE FROM t WHERE nope = 1", "UNRESOLVED_COLUMN"),
        ("DELETE FROM t u WHERE t.k = 1", "UNRESOLVED_COLUMN"),
    ],
)
def test_refusals_change_nothing(store: Store, sql: str, code: str) -> None:
    before = store.table("t")
    assert store.code(sql) == code
    assert store.table("t") == before


def test_errors_name_column_row_and_place(store: Store) -> None:
    with pytest.raises(EvaluationError, match="column 'a' of table 't', which is INT"):
        store.run("INSERT INTO t (k, a) VALUES (10, 3000000000)")
    with pytest.raises(EvaluationError, match="for the row with k = 0"):
        store.run("UPDATE t SET a = 1 / a")
    with pytest.raises(SqlError, match="line 2, column 5"):
        store.run("UPDATE t SET\na = nope")
    with pytest.raises(SqlError, match="line 1, column 34"):
        store.run("INSERT INTO t (k, s) VALUES (10, nope)")


def test_update(store: Store) -> None:
    assert store.run("UPDATE t SET a = a + 10, s = DEFAULT, x = k WHERE k >= 4").rows_affected == 2
    assert store.table("t")[4:] == [(4, 11, None, 4.0), (5, 12, None, 5.0)]
    assert store.run("UPDATE t u SET a = DEFAULT WHERE u.k = :k", k=0).rows_affected == 1
    assert store.table("t")[0] == (0, 7, "s0", 0.0)
    assert store.run("UPDATE t SET a = 1 WHERE k = 99").rows_affected == 0


def test_values_of_set_are_those_before_the_statement(store: Store) -> None:
    store.run("UPDATE t SET a = CAST(k AS INT), x = a WHERE k = 5")
    assert store.table("t")[5] == (5, 5, "s5", 2.0)


def test_keys_may_move_past_each_other(store: Store) -> None:
    assert store.run("UPDATE t SET k = k + 1").rows_affected == 6
    assert [(row[0], row[2]) for row in store.table("t")] == [(i + 1, f"s{i}") for i in range(6)]
    store.run("UPDATE t SET k = 7 - k")
    assert [(row[0], row[2]) for row in store.table("t")] == [(i, f"s{6 - i}") for i in range(1, 7)]


def test_delete(store: Store) -> None:
    assert store.run("DELETE FROM t WHERE a = 1 OR x > 2.2").rows_affected == 3
    assert [row[0] for row in store.table("t")] == [0, 2, 3]
    assert store.run("DELETE FROM t WHERE NULL").rows_affected == 0
    assert store.run("DELETE FROM t").rows_affected == 3
    assert store.table("t") == []


def test_a_condition_that_is_null_changes_nothing(store: Store) -> None:
    store.run("UPDATE t SET a = NULL WHERE k = 0")
    assert store.run("DELETE FROM t WHERE a = 0 OR a <> 0").rows_affected == 5


def test_all_types_are_stored() -> None:
    store = Store.new()
    columns = {
        "k": INT,
        "d": types.DATE,
        "at": types.TIMESTAMP,
        "n": types.decimal(6, 2),
        "y": types.BINARY,
        "b": types.BOOLEAN,
    }
    store.create("t", columns, ("k",))
    store.run("INSERT INTO t VALUES (1, DATE'2024-02-29', TIMESTAMP'2024-01-01 12:00:00+02:00', 1.5, X'00ff', TRUE)")
    at = datetime.datetime(2024, 1, 1, 10, tzinfo=datetime.UTC)
    assert store.table("t") == [(1, datetime.date(2024, 2, 29), at, Decimal("1.50"), b"\0\xff", True)]
    assert store.code("INSERT INTO t (k, n) VALUES (2, 12345.678)") == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert store.code("INSERT INTO t (k, d) VALUES (2, '2024-01-01')") == "INCOMPATIBLE_DATA_FOR_TABLE"


def test_store_assignment_of_nested_types() -> None:
    assert can_store(types.array(BIGINT), types.array(INT))
    assert not can_store(types.array(STRING), types.array(INT))
    assert not can_store(types.array(INT), STRING)
    assert can_store(types.DATE, types.TIMESTAMP)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_statements_are_evaluated_again_when_others_write(
    store: Store, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Another writer comes between evaluation and commit; at last the lock keeps it out."""
    left, locked = [times], []
    open_moment = module.open_moment

    def disturbed(context: object) -> object:
        return open_moment(context)  # type: ignore[arg-type]

    original = Changes.operations

    def operations(changes: Changes) -> object:
        locked.append(changes.rows_affected)
        return original(changes)

    real_commit = module.TableStore.commit

    def commit(tables: object, work: object, guard: object = None) -> object:
        if guard is not None and left[0]:
            left[0] -= 1
            real_commit(tables, [module.PutBatch(store.catalog().table("t"), _row(left[0]))])  # type: ignore[arg-type]
        return real_commit(tables, work, guard)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "open_moment", disturbed)
    monkeypatch.setattr(module.TableStore, "commit", commit)
    monkeypatch.setattr(Changes, "operations", operations)
    done = store.run("UPDATE t SET a = 100 WHERE k < 100")
    assert done.rows_affected == 6 + min(times, 2)
    assert {row[1] for row in store.table("t")} == {100}
    assert len(locked) == min(times, 2) + 1


def _row(number: int) -> object:
    import pyarrow as pa

    schema = Schema(tuple(Column(n, t) for n, t in COLUMNS.items())).to_arrow()
    return pa.RecordBatch.from_pylist([{"k": 50 + number, "a": 0, "s": None, "x": None}], schema)


def test_large_statements_go_through_a_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    schema = Schema((Column("n", INT),))
    with Spool(schema, memory_bytes_max=100) as spool:
        for i in range(50):
            spool.write(pa.record_batch([pa.array([i, i], pa.int32())], ["n"]))
        assert spool.rows == 100
        for _ in range(2):
            assert [v for b in spool for v in b.column(0).to_pylist()] == [i for i in range(50) for _ in range(2)]
    monkeypatch.setattr("viewkeeper.evaluation.spool.ROWS_PER_FILE", 10)
    with SpooledFiles() as files:
        batches = [pa.record_batch([pa.array([i] * 5, pa.int32())], ["n"]) for i in range(6)]
        paths = files.write(batches, schema)
        assert len(paths) == 3
        assert [pa.ipc.open_stream(path).read_all().num_rows for path in paths] == [10, 10, 10]
        assert len(files.write([], schema)) == 1


def test_a_large_table_is_updated_as_of_one_position(store: Store) -> None:
    small = store.with_options(rows_local=2)
    assert small.run("UPDATE t SET a = a + 1 WHERE k > 2").rows_affected == 3
    assert [row[1] for row in store.table("t")] == [0, 1, 2, 1, 2, 3]
    assert small.rows("SELECT COUNT(*) FROM t") == [(6,)]


def test_views_cannot_be_written(store: Store) -> None:
    store.create_view("v", "SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    with pytest.raises(InputError, match="NOT_A_TABLE"):
        store.run("DELETE FROM v")
    assert store.run("INSERT INTO t SELECT n * 100 + a, a, 'v', n FROM v").rows_affected == 3


def test_decimals_become_the_nearest_float() -> None:
    store = Store.new()
    store.create("t", {"k": INT, "f": types.FLOAT, "s": STRING}, ("k",))
    store.run("INSERT INTO t (k, f) VALUES (1, 0.1), (2, 1.000000059604644775390626), (3, 1.000000059604644775390625)")
    assert [row[1] for row in store.table("t")] == [0.10000000149011612, 1.0000001192092896, 1.0]
    assert store.code("INSERT INTO t (k, s) VALUES (4, 0.5D)") == "EXPRESSION_NEEDS_SPARK"
    assert store.code("UPDATE t SET s = f") == "EXPRESSION_NEEDS_SPARK"
