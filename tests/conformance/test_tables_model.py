"""Base tables and their log against a model, by random histories with awkward keys, on every raw space."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.examples import as_counted, counted, delta_of, make_table, rows_of
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.errors import InputError
from viewkeeper.log import reader
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.store.memory import MemorySpace
from viewkeeper.store.tables import format_of
from viewkeeper.store.transactions import (
    CheckAndPut,
    DeleteBatch,
    DeleteRow,
    PutBatch,
    PutRow,
    TableStore,
    Truncate,
    UpdateRow,
)
from viewkeeper.zset.schema import DOUBLE, STRING

_KEYS = st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf"), -2.5])
_WORDS = st.one_of(st.none(), st.sampled_from(["", "a", "a\x00", "ä€😀", "x" * 200]))
AWKWARD = make_table({"v": STRING, "k": DOUBLE, "s": STRING}, ("k", "s"), table_id=4)
_VALUES = st.tuples(_WORDS, _KEYS, st.sampled_from(["", "\x00", "b", "y" * 130 + "1", "y" * 130 + "2"]))


@st.composite
def operations(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["put", "put", "batch", "delete", "delete batch", "update", "check", "truncate"]))
    values = draw(_VALUES)
    if kind == "put":
        return PutRow(AWKWARD, values)
    if kind == "delete":
        return DeleteRow(AWKWARD, values[1:])
    if kind == "update":
        return UpdateRow(AWKWARD, values[1:], {0: values[0]})
    if kind == "check":
        return CheckAndPut(AWKWARD, values, draw(st.one_of(st.none(), st.just({0: values[0]}))))
    if kind == "truncate":
        return Truncate(AWKWARD) if draw(st.booleans()) else PutRow(AWKWARD, values)
    columns = list(zip(*draw(st.lists(_VALUES, min_size=1, max_size=60)), strict=True))
    schema = AWKWARD.schema.to_arrow()
    arrays = [pa.array(values, arrow_type) for values, arrow_type in zip(columns, schema.types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return PutBatch(AWKWARD, batch) if kind == "batch" else DeleteBatch(AWKWARD, batch.select([1, 2]))


def _key(values: tuple[Any, ...]) -> tuple[Any, ...]:
    k, s = values
    return ("nan" if k != k else k + 0.0, s)


def _apply(model: dict[Any, tuple[Any, ...]], operation: Any) -> bool:
    """Apply ``operation`` to the model; return whether it is legal."""
    match operation:
        case PutRow(_, values):
            model[_key(values[1:])] = values
        case DeleteRow(_, key):
            model.pop(_key(key), None)
        case UpdateRow(_, key, changes):
            if _key(key) not in model:
                return False
            model[_key(key)] = (changes[0], *model[_key(key)][1:])
        case CheckAndPut(_, values, expected):
            shown = model.get(_key(values[1:]))
            if (expected is None and shown is None) or (expected and shown and shown[0] == expected[0]):
                model[_key(values[1:])] = values
        case PutBatch(_, rows):
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                model[_key(row[1:])] = row
        case DeleteBatch(_, keys):
            for key in zip(*(column.to_pylist() for column in keys.columns), strict=True):
                model.pop(_key(key), None)
        case _:
            model.clear()
    return True


@pytest.mark.parametrize("kind", ["memory", "lmdb"])
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(history=st.lists(st.lists(operations(), min_size=1, max_size=6), min_size=1, max_size=8))
def test_tables_and_log_follow_the_model(kind: str, history: list[list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        space: Any = MemorySpace() if kind == "memory" else LmdbSpace(folder, EnvironmentOptions(durability="none"))
        try:
            _run(space, history)
        finally:
            space.close()


def _run(space: Any, history: list[list[Any]]) -> None:
    store = TableStore(space)
    states: list[dict[Any, tuple[Any, ...]]] = [{}]
    for transaction in history:
        model = dict(states[-1])
        legal = all(_apply(model, operation) for operation in transaction)
        before = len(states) - 1
        if not legal:
            with pytest.raises(InputError, match="ROW_NOT_FOUND"):
                store.commit(transaction)
            continue
        number = store.commit(transaction).sequence_number
        if repr(sorted(model.items(), key=repr)) != repr(sorted(states[-1].items(), key=repr)):
            assert number == before + 1
            states.append(model)
        else:
            assert number == before
    contents = [as_counted(list(state.values())) for state in states]
    with space.read() as txn:
        assert reader.head(txn) == len(states) - 1
        assert as_counted(rows_of(txn, AWKWARD)) == contents[-1]
        assert txn.count(format_of(AWKWARD).database) == len(states[-1])
        for after in range(len(states)):
            difference = dict(contents[-1])
            for row in contents[after]:
                difference[row] = difference.get(row, 0) - 1
            expected = {row: weight for row, weight in difference.items() if weight}
            assert counted(delta_of(txn, AWKWARD, after, len(states) - 1)) == expected
    for position, content in enumerate(contents):
        rows = [row for b in scan_as_of(space, AWKWARD, position, batch_rows=3) for row in _tuples(b)]
        assert as_counted(rows) == content
        assert len(rows) == len(content)


def _tuples(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
