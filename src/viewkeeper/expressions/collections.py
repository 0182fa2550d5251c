"""Arrays, maps and structs: making them, taking an element, a value or a field out of them.

Search by a map's key compares plain values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import kernel, make, rule
from viewkeeper.expressions.implicit import accept, check_count, unify
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import Evaluated, Operand, all_valid, as_array, failing, numbers, validity
from viewkeeper.zset.schema import BIGINT, VOID, array, to_arrow_type

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]

_ELEMENTS_MAX = 2**31 - 16
_PLAIN_KEYS = frozenset(("STRING", "TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN", "DATE"))


@rule("array")
def _array_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    if not arguments or all(argument.type == VOID for argument in arguments):
        raise NotPortable(function, "elements without a type")
    elements = unify(function, arguments, session)
    return make(function, elements, array(elements[0].type), False)


@kernel("array", strict="all")
def _array(call: Call, arguments: Sequence[Operand], length: int) -> Evaluated:
    width = len(arguments)
    columns = [as_array(argument, length) for argument in arguments]
    joined = pa.concat_arrays(columns)
    places = (np.arange(length)[:, None] + np.arange(width) * length).ravel()
    offsets = pa.array(np.arange(length + 1) * width, pa.int32())
    values = joined.take(pa.array(places))
    return Evaluated(pa.ListArray.from_arrays(offsets, values).cast(to_arrow_type(call.type)))


@rule("sequence")
def _sequence_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 3)
    if any(not argument.type.is_integer for argument in arguments):
        raise NotPortable(function, "a sequence of other values than integers")
    if len(arguments) == 3 and not _is_range(arguments):
        raise NotPortable(function, "a step that may lead away from the end")
    ends = unify(function, arguments, session)
    return make(function, ends, array(ends[0].type))


def _is_range(arguments: Arguments) -> bool:
    """Return whether start, stop and step are constants of which the step leads from one to the other."""
    start, stop, step = (a.value if isinstance(a, Literal) else None for a in arguments)
    if not isinstance(start, int) or not isinstance(stop, int) or not isinstance(step, int) or not step:
        return False
    return start == stop or (stop > start) == (step > 0)


def _may_be_long(call: Call) -> bool:
    """Return whether a sequence may have more elements than an array can hold."""
    small = call.type.children[0].name in ("TINYINT", "SMALLINT")
    return not small and not all(isinstance(argument, Literal) for argument in call.arguments)


@kernel("sequence", raises=_may_be_long)
def _sequence(call: Call, arguments: Sequence[Operand], length: int) -> Evaluated:
    kind = call.type.children[0]
    valid = np.broadcast_to(all_valid(*arguments), (length,))
    start, stop, *steps = (np.broadcast_to(numbers(a, kind), (length,)).astype(object) for a in arguments)
    step = steps[0] if steps else np.where(start <= stop, 1, -1).astype(object)
    counts = np.where(valid, (stop - start) // step + 1, 0)
    errors = failing((counts > _ELEMENTS_MAX).astype(bool), "COLLECTION_SIZE_LIMIT_EXCEEDED")
    sizes = np.where(counts > _ELEMENTS_MAX, 0, counts).astype(np.int64)
    offsets = np.r_[0, np.cumsum(sizes)]
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    values = np.repeat(start.astype(np.int64), sizes) + within * np.repeat(step.astype(np.int64), sizes)
    absent = ~valid if errors is None else ~valid | errors.rows
    elements = pa.array(values).cast(to_arrow_type(kind))
    made = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, mask=pa.array(absent))
    return Evaluated(made.cast(to_arrow_type(call.type)), errors)


@rule("element")
def _element_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    collection, key = arguments
    if collection.type.name == "MAP":
        return _map_value(function, collection, key, session)
    if collection.type.name != "ARRAY" or not session.ansi:
        raise NotPortable(function, f"an element of {collection.type}")
    if not key.type.is_integer or key.type == BIGINT:
        # Of a BIGINT Spark takes the lower half.
        raise NotPortable(function, "a position that is no INT")
    if isinstance(collection, Call) and not (collection.function == "split" and isinstance(key, Literal)):
        # Spark calls such elements NOT NULL by rules of its own.
        raise NotPortable(function, "an element of a computed array")
    return make(function, arguments, collection.type.children[0], True)


def _map_value(function: str, collection: Expression, key: Expression, session: Session) -> Expression:
    wanted, value = collection.type.children
    if wanted.name not in _PLAIN_KEYS or isinstance(collection, Call):
        raise NotPortable(function, f"a value of {collection.type}")
    return make(function, (collection, accept(function, key, session, wanted)), value, True)


def _is_array(call: Call) -> bool:
    return call.arguments[0].type.name == "ARRAY"


@kernel("element", raises=_is_array)
def _element(call: Call, arguments: Sequence[Operand], length: int) -> Evaluated:
    collection, key = (as_array(argument, length) for argument in arguments)
    if call.arguments[0].type.name == "MAP":
        return Evaluated(_values(collection, key))
    valid = np.broadcast_to(validity(collection) & validity(key), (length,))
    offsets = collection.offsets.to_numpy().astype(np.int64)
    position = numbers(key, call.arguments[1].type).astype(np.int64)
    outside = valid & ((position < 0) | (position >= offsets[1:] - offsets[:-1]))
    places = np.where(valid & ~outside, offsets[:-1] + position, 0)
    values = collection.values.take(pa.array(places, mask=~valid | outside))
    return Evaluated(values, failing(outside, "INVALID_ARRAY_INDEX"))


def _values(collection: pa.Array, wanted: pa.Array) -> pa.Array:
    """Return for each map the value under the wanted key: NULL where it has none."""
    offsets = collection.offsets.to_numpy().astype(np.int64)
    sizes = np.where(collection.is_valid().to_numpy(zero_copy_only=False), offsets[1:] - offsets[:-1], 0)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.repeat(offsets[:-1], sizes) + within
    same = pc.equal(collection.keys.take(pa.array(places)), wanted.take(pa.array(owner)))
    found = np.flatnonzero(pc.fill_null(same, False).to_numpy(zero_copy_only=False))
    where = np.full(len(sizes), -1)
    where[owner[found]] = places[found]
    return collection.items.take(pa.array(where, mask=where < 0))


@rule("field")
def _field_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    (struct,) = arguments
    name = str(options["name"])
    if struct.type.name != "STRUCT":
        raise NotPortable(function, f"a field of {struct.type}")
    found = [i for i, field in enumerate(struct.type.field_names) if field.lower() == name.lower()]
    if len(found) != 1:
        raise NotPortable(function, "no such field, or several")
    return make(function, arguments, struct.type.children[found[0]], True, number=found[0])


@kernel("field")
def _field(call: Call, arguments: Sequence[Operand], length: int) -> Evaluated:
    number = call.option("number")
    assert isinstance(number, int)
    # ``flatten`` carries the NULLs of the structs into their fields.
    return Evaluated(as_array(arguments[0], length).flatten()[number])


def holds_null(collection: Expression) -> bool:
    """Return whether Spark calls the elements of a portable ARRAY nullable, the values of a portable MAP.

    Example:
        >>> from viewkeeper.expressions.registry import resolve
        >>> from viewkeeper.expressions.tree import ColumnRef
        >>> holds_null(resolve("sequence", [Literal(1, BIGINT), ColumnRef(0, BIGINT)], Session()))
        False
    """
    if not isinstance(collection, Call):
        return True
    if collection.function == "array":
        return any(argument.nullable for argument in collection.arguments)
    return collection.function not in ("sequence", "split", "map_keys")
