"""Aggregates to operators: partial sums before rows move, values by group for the ordered ones."""

from __future__ import annotations

from viewkeeper.errors import UnsupportedSql
from viewkeeper.expressions.tree import Session
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.extremes import Extremes
from viewkeeper.operators.group_query import Extreme
from viewkeeper.operators.partial_aggregate import Call, ExtremeValues, PartialAggregate
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, compiles, digest, through_positions
from viewkeeper.zset.schema import Column, Schema


@compiles(plan.Aggregate)
def _aggregate(compiler: Compiler, node: plan.Aggregate, session: Session) -> Compiled:
    source = compiler.node(node.input, session)
    groups = tuple(source.schema.columns[i] for i in node.group)
    calls, values, outputs = _split_calls(node, source.schema)
    text = f"aggregate {node.group} {node.calls!r}"
    first = compiler.add(PartialAggregate(node.group, groups, calls), (source.id,), f"partial {text}")
    width = tuple(range(len(groups)))
    partition = through_positions(source.partition, node.group)
    partial = Compiled(first, compiler.nodes[first].operator.schema, width, partition)
    inputs = [compiler.exchange(partial, width, nets=False).id]
    extremes = []
    for argument, condition in values:
        schema = Schema((*groups, Column("value", source.schema.types[argument])))
        operator = ExtremeValues(node.group, argument, condition, schema)
        id_ = compiler.add(operator, (source.id,), f"values {node.group} {argument} {condition}")
        inputs.append(compiler.exchange(Compiled(id_, schema, width, partition), width, nets=True).id)
        name = digest(f"extremes {node.group} {argument} {condition} {compiler.fingerprint(source.id)}")
        extremes.append(Extremes(schema, f"{compiler.namespace}/x{name}"))
    state = f"{compiler.namespace}/g{digest(f'{text} {compiler.fingerprint(source.id)}')}"
    overflows = any(c.function in ("sum", "avg") and c.argument_type and not c.argument_type.is_floating for c in calls)
    site = compiler.site(f"{text} {compiler.fingerprint(source.id)}", node.schema, width) if overflows else None
    aggregate = Aggregate(node.schema, groups, calls, tuple(extremes), outputs, state, site)
    id_ = compiler.add(aggregate, tuple(inputs), text)
    return Compiled(id_, node.schema, width, tuple(frozenset((i,)) for i in width))


def _split_calls(
    node: plan.Aggregate, schema: Schema
) -> tuple[tuple[Call, ...], list[tuple[int, int | None]], tuple[int | Extreme, ...]]:
    """Part the calls into those that add and those that are extremes of shared sets of values."""
    calls: list[Call] = []
    values: list[tuple[int, int | None]] = []
    outputs: list[int | Extreme] = []
    for call in node.calls:
        if call.function in ("min", "max"):
            if call.argument is None:
                raise UnsupportedSql("AGGREGATE_NOT_YET", f"{call.function} needs an argument.")
            wanted = (call.argument, call.filter)
            if wanted not in values:
                values.append(wanted)
            outputs.append(Extreme(values.index(wanted), call.function == "max"))
            continue
        argument_type = None if call.argument is None else schema.types[call.argument]
        outputs.append(len(calls))
        calls.append(Call(call.function, call.argument, call.filter, argument_type, call.type))
    return tuple(calls), values, tuple(outputs)
