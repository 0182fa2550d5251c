"""Aggregates that are no sums, to sets of ordered values and what is read from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewkeeper.operators.group_values import GroupValues
from viewkeeper.operators.ordered.ends import End, Ends
from viewkeeper.operators.ordered.frequencies import Frequencies
from viewkeeper.operators.ordered.lists import Collected, Direction, Joined
from viewkeeper.operators.ordered.percentiles import Percentile
from viewkeeper.operators.ordered.reader import Ordered, OrderedFunction
from viewkeeper.operators.ordered.values import OrderedValues
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, digest, through_positions
from viewkeeper.zset.schema import Column, Schema, array

COUNTED, UNIQUE, FREQUENT = "counted", "unique", "frequent"


@dataclass(frozen=True)
class ValueSet:
    """Which values an aggregate ranges over, by positions of the input.

    Args:
        kind: ``counted``, ``unique`` (the input's key ends the order) or ``frequent``.
        orders: the columns that order them.
        kept: the columns that are read, where those that order are not.
        required: the columns that must not be NULL.
        filter: position of the FILTER column, or None.
        distinct: whether equal values count once.
        weighted: whether the last column that orders says how often a value counts.
    """

    kind: str
    orders: tuple[int, ...]
    kept: tuple[int, ...]
    required: tuple[int, ...]
    filter: int | None
    distinct: bool = False
    weighted: bool = False


def value_set(call: plan.AggregateCall, key: tuple[int, ...] | None) -> ValueSet:
    """Return the values over which ``call`` ranges.

    Args:
        call: an aggregate that is no sum.
        key: the input's key.
    """
    assert call.argument is not None
    value = (call.argument,)
    if call.function == "percentile":
        counted = (*value, *call.more)
        return ValueSet(COUNTED, counted, (), counted, call.filter, call.distinct, bool(call.more))
    # The only constant of a list says that it holds NULLs too.
    required = () if call.function == "collect_list" and call.constants else value
    if call.function in ("min", "max") or call.distinct:
        return ValueSet(COUNTED, value, (), required, call.filter)
    if call.function == "mode":
        return ValueSet(FREQUENT, value, (), value, call.filter)
    assert key is not None, "the planner keeps the key below aggregates whose order it completes"
    if call.function in ("min_by", "max_by"):
        return ValueSet(UNIQUE, (*call.more, *key), value, call.more, call.filter)
    if call.function in ("first", "last"):
        return ValueSet(UNIQUE, key, value, value if call.constants[0] else (), call.filter)
    more = tuple(sort.column for sort in call.order)
    return ValueSet(UNIQUE, key, (*value, *more), required, call.filter)


def compile_values(
    compiler: Compiler, source: Compiled, group: tuple[int, ...], wanted: ValueSet
) -> tuple[Compiled, OrderedValues | Frequencies]:
    """Return the changes of a set of values (before rows move), and its arrangement."""
    counted = wanted.kind != UNIQUE
    # A column of the group tells nothing apart in it; but values that are counted stand for themselves.
    orders = tuple(position for position in wanted.orders if counted or position not in group)
    positions = (*group, *orders, *wanted.kept)
    columns = [source.schema.columns[position] for position in positions]
    schema = Schema(tuple(Column(f"v{i}", c.type, c.nullable) for i, c in enumerate(columns)))
    keys = len(group) + len(orders)
    text = f"values {positions} {keys} {wanted.required} {wanted.filter}"
    operator = GroupValues(positions, keys, wanted.required, wanted.filter, schema)
    id_ = compiler.add(operator, (source.id,), text)
    changes = Compiled(id_, schema, None, through_positions(source.partition, positions))
    name = f"{text} {wanted.kind} {compiler.fingerprint(source.id)}"
    state = f"{compiler.namespace}/x{digest(name)}"
    kept = tuple(range(keys, len(positions))) or tuple(range(len(group), keys if wanted.weighted else len(group) + 1))
    values = OrderedValues(schema, len(group), len(orders), kept, counted, state, wanted.weighted)
    if wanted.kind != FREQUENT:
        return changes, values
    return changes, Frequencies(values, f"{compiler.namespace}/x{digest(f'by frequency {name}')}")


def _by(last: bool) -> Callable[[plan.AggregateCall], OrderedFunction]:
    def function(call: plan.AggregateCall) -> OrderedFunction:
        if not call.constants:
            return End(call.type, last)
        (count,) = call.constants
        assert isinstance(count, int)
        return Ends(call.type, last, count)

    return function


def _end(last: bool) -> Callable[[plan.AggregateCall], OrderedFunction]:
    return lambda call: End(call.type, last)


def _mode(call: plan.AggregateCall) -> OrderedFunction:
    return End(call.type, bool(call.constants[0]), by_frequency=True)


def _percentile(call: plan.AggregateCall) -> OrderedFunction:
    return Percentile.of_constants(call.constants, call.type)


def _collected(call: plan.AggregateCall) -> Collected:
    list_type = call.type if call.type.name == "ARRAY" else array(call.type)
    directions = tuple(
        # An entry holds the argument first, then the columns of the order; of distinct values only themselves.
        Direction(0 if call.distinct else 1 + i, sort.ascending, sort.nulls_first)
        for i, sort in enumerate(call.order)
    )
    return Collected(list_type, directions)


def _listagg(call: plan.AggregateCall) -> OrderedFunction:
    (delimiter,) = call.constants
    assert isinstance(delimiter, str | bytes)
    return Joined(_collected(call), delimiter)


_FUNCTIONS: dict[str, Callable[[plan.AggregateCall], OrderedFunction]] = {
    "min": _end(False),
    "max": _end(True),
    "min_by": _by(False),
    "max_by": _by(True),
    "first": _end(False),
    "last": _end(True),
    "mode": _mode,
    "percentile": _percentile,
    "collect_list": _collected,
    "listagg": _listagg,
}


def as_output(call: plan.AggregateCall, sets: list[ValueSet], key: tuple[int, ...] | None) -> Ordered:
    """Return the output of ``call`` over one of ``sets``, to which its values are added where they are not there."""
    wanted = value_set(call, key)
    if wanted not in sets:
        sets.append(wanted)
    return Ordered(sets.index(wanted), _FUNCTIONS[call.function](call))
