"""Aggregates to operators: partial sums before rows move, values by group for the ordered ones, DISTINCT by two steps.

DISTINCT composes: an aggregate without calls by group and arguments has one row for each that occurs, and only when
its count leaves or reaches 0 does that row come or go; the calls are sums over those rows. Its partial rows join those
of the plain calls, so one aggregate by group has plain calls and any number of sets of DISTINCT arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeeper.expressions.tree import Session
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.functions.registry import ADDITIVE
from viewkeeper.operators.group_values import GroupValues
from viewkeeper.operators.ordered.frequencies import Frequencies
from viewkeeper.operators.ordered.reader import Ordered
from viewkeeper.operators.ordered.values import OrderedValues
from viewkeeper.operators.partial_aggregate import Call, PartialAggregate
from viewkeeper.operators.union import UnionAll
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, compiles, digest, through_positions
from viewkeeper.plan.compile.ordered import ValueSet, as_output, compile_values
from viewkeeper.zset.schema import Column


@dataclass(frozen=True)
class _Parts:
    """The calls of an aggregate by the way in which they are computed."""

    calls: tuple[Call, ...]
    values: tuple[ValueSet, ...]
    outputs: tuple[int | Ordered, ...]

    @property
    def distinct(self) -> Mapping[tuple[tuple[int, ...], int | None], frozenset[int]]:
        """The sets of DISTINCT arguments (and filters), each with the calls over it."""
        sets: dict[tuple[tuple[int, ...], int | None], frozenset[int]] = {}
        for number, call in enumerate(self.calls):
            if call.distinct:
                wanted = (_arguments(call), call.filter)
                sets[wanted] = sets.get(wanted, frozenset()) | {number}
        return sets


@compiles(plan.Aggregate)
def _aggregate(compiler: Compiler, node: plan.Aggregate, session: Session) -> Compiled:
    source = compiler.node(node.input, session)
    groups = tuple(source.schema.columns[i] for i in node.group)
    parts = _parted(node, source)
    text = f"aggregate {node.group} {node.calls!r}"
    width = tuple(range(len(groups)))
    partials = [_partial(compiler, source, node.group, groups, parts.calls, None, f"partial {text}")]
    for (arguments, condition), only in parts.distinct.items():
        rows = _distinct_rows(compiler, source, node.group, arguments, condition)
        calls = tuple(_moved(c, arguments, len(groups)) if i in only else c for i, c in enumerate(parts.calls))
        partials.append(_partial(compiler, rows, width, groups, calls, only, f"partial {sorted(only)} {text}"))
    changes = [_values(compiler, source, node.group, wanted) for wanted in parts.values]
    arriving = [*partials, *(rows for rows, _ in changes)]
    level = max(compiler.level_for(rows, width) for rows in arriving)
    moved = [compiler.exchange(rows, width, i >= len(partials), level) for i, rows in enumerate(arriving)]
    inputs = [rows.id for rows in moved]
    sums = tuple(inputs[: len(partials)])
    if len(sums) > 1:
        sums = (compiler.add(UnionAll(partials[0].schema, len(sums)), sums, "partials"),)
    state = f"{compiler.namespace}/g{digest(f'{text} {compiler.fingerprint(source.id)}')}"
    overflows = any(c.function in ("sum", "avg") and c.argument_type and not c.argument_type.is_floating
                    for c in parts.calls)  # fmt: skip
    site = compiler.site(f"{text} {compiler.fingerprint(source.id)}", node.schema, width) if overflows else None
    values = tuple(arrangement for _, arrangement in changes)
    aggregate = Aggregate(node.schema, groups, parts.calls, values, parts.outputs, state, site)
    id_ = compiler.add(aggregate, (*sums, *inputs[len(partials) :]), text)
    # Rows that were with the owner of some of the group columns stay there: that is not the owner of all of them.
    return Compiled(id_, node.schema, width, moved[0].partition)


def _parted(node: plan.Aggregate, source: Compiled) -> _Parts:
    calls: list[Call] = []
    values: list[ValueSet] = []
    outputs: list[int | Ordered] = []
    for call in node.calls:
        if call.function not in ADDITIVE:
            outputs.append(as_output(call, values, source.key))
            continue
        outputs.append(len(calls))
        argument_type = None if call.argument is None else source.schema.types[call.argument]
        more = tuple(source.schema.types[position] for position in call.more)
        calls.append(
            Call(call.function, call.argument, call.filter, argument_type, call.type, call.more, more, call.distinct)
        )
    return _Parts(tuple(calls), tuple(values), tuple(outputs))


def _partial(
    compiler: Compiler,
    source: Compiled,
    group: tuple[int, ...],
    groups: tuple[Column, ...],
    calls: tuple[Call, ...],
    only: frozenset[int] | None,
    text: str,
) -> Compiled:
    operator = PartialAggregate(group, groups, calls, only)
    id_ = compiler.add(operator, (source.id,), text)
    key = tuple(range(len(groups)))
    return Compiled(id_, operator.schema, key, through_positions(source.partition, group))


def _values(
    compiler: Compiler, source: Compiled, group: tuple[int, ...], wanted: ValueSet
) -> tuple[Compiled, OrderedValues | Frequencies]:
    """Return the changes of a set of ordered values, and its arrangement; of DISTINCT ones over the rows of those."""
    if not wanted.distinct:
        return compile_values(compiler, source, group, wanted)
    rows = _distinct_rows(compiler, source, group, wanted.orders, wanted.filter)
    width = tuple(range(len(group)))
    once = tuple(len(group) + i for i in range(len(wanted.orders)))
    return compile_values(compiler, rows, width, ValueSet(wanted.kind, once, (), once, None, weighted=wanted.weighted))


def _distinct_rows(
    compiler: Compiler, source: Compiled, group: tuple[int, ...], arguments: tuple[int, ...], condition: int | None
) -> Compiled:
    """Return one row for each group and combination of non-NULL arguments that occurs in it."""
    positions = (*group, *arguments)
    everything = tuple(range(len(positions)))
    schema = source.schema.select(positions)
    text = f"distinct {group} {arguments} {condition}"
    rows = GroupValues(positions, len(positions), arguments, condition, schema)
    id_ = compiler.add(rows, (source.id,), f"rows of {text}")
    values = Compiled(id_, schema, None, through_positions(source.partition, positions))
    partial = _partial(compiler, values, everything, schema.columns, (), None, f"partial {text}")
    # Rows of a group go to its owner at once; those of the one group of all are spread by their arguments.
    owner = everything[: len(group)] or everything
    counted = compiler.exchange(partial, owner, nets=False)
    state = f"{compiler.namespace}/g{digest(f'{text} {compiler.fingerprint(source.id)}')}"
    id_ = compiler.add(Aggregate(schema, schema.columns, (), (), (), state, None), (counted.id,), text)
    return Compiled(id_, schema, everything, counted.partition)


def _arguments(call: Call) -> tuple[int, ...]:
    return (*([] if call.argument is None else [call.argument]), *call.more)


def _moved(call: Call, arguments: tuple[int, ...], start: int) -> Call:
    """Return a DISTINCT call over the rows of its arguments, which stand from ``start``."""
    at = {position: start + i for i, position in enumerate(arguments)}
    assert call.argument is not None
    return replace(call, argument=at[call.argument], more=tuple(at[p] for p in call.more), filter=None)
