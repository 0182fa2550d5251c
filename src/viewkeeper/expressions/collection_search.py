"""Arrays and maps searched: ARRAY_CONTAINS, ARRAY_POSITION, GET, TRY_ELEMENT_AT, MAP_KEYS, MAP_VALUES, ARRAY_JOIN.

Source: Spark 4.3, ``ArrayContains``, ``ArrayPosition``, ``Get``, ``ElementAt``, ``MapKeys``, ``MapValues``,
``ArrayJoin``. Only plain elements are compared, and only columns are searched: of computed arrays Spark knows whether
elements can be NULL, which our types do not tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import kernel, make, rule
from viewkeeper.expressions.implicit import check_count
from viewkeeper.expressions.strings import by_row
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import Evaluated, Operand, all_valid, as_array, numbers, validity
from viewkeeper.zset.schema import BIGINT, BOOLEAN, INT, STRING, array, to_arrow_type

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_PLAIN = frozenset(("STRING", "TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN", "DATE"))


def _column(function: str, collection: Expression, kind: str) -> None:
    if not isinstance(collection, ColumnRef) or collection.type.name != kind:
        raise NotPortable(function, f"other than a column of type {kind}")


@rule("array_contains", "array_position")
def _search_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    collection, wanted = arguments
    _column(function, collection, "ARRAY")
    if wanted.type != collection.type.children[0] or wanted.type.name not in _PLAIN:
        raise NotPortable(function, f"{wanted.type} in {collection.type}")
    if function == "array_contains":
        return make(function, arguments, BOOLEAN, True)
    return make(function, arguments, BIGINT)


def _first_places(values: pa.Array, wanted: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return for each array the position from 1 of its first equal element, 0 for none; and whether it holds NULL."""
    offsets = values.offsets.to_numpy().astype(np.int64)
    present = values.is_valid().to_numpy(zero_copy_only=False)
    sizes = np.where(present, offsets[1:] - offsets[:-1], 0)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    elements = values.values.take(pa.array(np.repeat(offsets[:-1], sizes) + within))
    same = pc.fill_null(pc.equal(elements, wanted.take(pa.array(owner))), False).to_numpy(zero_copy_only=False)
    places = np.zeros(len(sizes), dtype=np.int64)
    found = np.flatnonzero(same)[::-1]
    places[owner[found]] = within[found] + 1
    absent = np.zeros(len(sizes), dtype=bool)
    absent[owner[np.asarray(elements.is_null().to_numpy(zero_copy_only=False))]] = True
    return places, absent


@kernel("array_contains", "array_position")
def _search(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    values, wanted = (as_array(operand, length) for operand in operands)
    places, holds_null = _first_places(values, wanted)
    valid = np.broadcast_to(all_valid(values, wanted), (length,))
    if call.function == "array_position":
        return Evaluated(pa.array(places, pa.int64(), mask=~valid))
    return Evaluated(pa.array(places > 0, pa.bool_(), mask=~valid | ((places == 0) & holds_null)))


@rule("array_size")
def _size_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if arguments[0].type.name != "ARRAY" or not session.ansi:
        raise NotPortable(function, f"{arguments[0].type} argument")
    return make("size", arguments, INT)


@rule("get", "try_element_at")
def _get_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    collection, position = arguments
    if function == "try_element_at":
        # Of a position 0 it makes an error.
        known = isinstance(position, Literal) and isinstance(position.value, int) and position.value > 0
        if not known:
            raise NotPortable(function, "a position that is not a constant above 0")
    _column(function, collection, "ARRAY")
    if not position.type.is_integer or position.type == BIGINT:
        raise NotPortable(function, f"a position of type {position.type}")
    return make("get", arguments, collection.type.children[0], True, first=1 if function == "try_element_at" else 0)


@kernel("get")
def _get(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    collection, position = (as_array(operand, length) for operand in operands)
    first = call.option("first")
    assert isinstance(first, int)
    valid = np.broadcast_to(validity(collection) & validity(position), (length,))
    offsets = collection.offsets.to_numpy().astype(np.int64)
    index = numbers(position, call.arguments[1].type).astype(np.int64) - first
    inside = valid & (index >= 0) & (index < offsets[1:] - offsets[:-1])
    places = np.where(inside, offsets[:-1] + index, 0)
    return Evaluated(collection.values.take(pa.array(places, mask=~inside)))


@rule("map_keys", "map_values")
def _map_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    _column(function, arguments[0], "MAP")
    return make(function, arguments, array(arguments[0].type.children[0 if function == "map_keys" else 1]))


@kernel("map_keys", "map_values")
def _map(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    entries = as_array(operands[0], length)
    parts = entries.keys if call.function == "map_keys" else entries.items
    made = pa.ListArray.from_arrays(entries.offsets, parts, mask=entries.is_null())
    return Evaluated(made.cast(to_arrow_type(call.type)))


@rule("array_join")
def _join_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 3)
    if arguments[0].type != array(STRING) or any(a.type != STRING for a in arguments[1:]):
        raise NotPortable(function, "other than texts")
    return make(function, arguments, STRING)


def _joined(texts: list[str | None], delimiter: str, replacement: str | None = None) -> str:
    present = [replacement if text is None else text for text in texts]
    return delimiter.join(text for text in present if text is not None)


@kernel("array_join")
def _join(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(by_row(_joined, operands, STRING, length))
