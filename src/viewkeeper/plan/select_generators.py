"""Generators in a SELECT list: their rows are made below the list, or above an aggregate whose values they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.plan.binding import has_aggregate
from viewkeeper.plan.context import Context
from viewkeeper.plan.generators import aliased, call_of, generated
from viewkeeper.plan.keys import project_with_key
from viewkeeper.plan.scopes import NamedColumn, OuterNames, Scope, Source


def generated_items(
    select: exp.Select, source: Source, context: Context, outer: OuterNames | None = None
) -> tuple[Source, Mapping[int, Sequence[NamedColumn]]]:
    """Return ``source`` with the rows of the list's generators, and each generator's columns by its place in the list.

    Args:
        select: the block.
        source: its joined and filtered FROM clause; ``*`` does not show what generators add.
        context: the statement.
        outer: in a subquery, the names of the query around it.
    """
    made: dict[int, tuple[NamedColumn, ...]] = {}
    for number, item in enumerate(select.expressions):
        call = call_of(item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item)
        if call is None or call.function in ("values", "range"):
            continue
        source, columns = generated(source, call, context, outer)
        made[number] = _named(item, columns, context)
    return source, made


def generates_over_aggregates(select: exp.Select) -> bool:
    """Return whether generators of the list take what an aggregate makes: then their rows are made above it."""
    items = select.expressions
    if not any(map(_is_generator, items)):
        return False
    return bool(select.args.get("group") or select.args.get("having")) or any(map(has_aggregate, items))


def generated_over_aggregates(select: exp.Select, plan: Callable[[exp.Select], Source], context: Context) -> Source:
    """Return the rows of a block with generators over aggregates.

    Args:
        select: the block.
        plan: plans the block without generators.
        context: the statement.
    """
    inner = select.copy()
    inner.set("distinct", None)
    for number, (item, copy) in enumerate(zip(select.expressions, list(inner.expressions), strict=True)):
        if not _is_generator(item):
            continue
        call = copy.this if isinstance(copy, (exp.Alias, exp.Aliases)) else copy
        if len(call.expressions) != 1 and call.name.lower() != "json_tuple":
            raise context.refusal("LATERAL_VIEW_NOT_YET", item, f"{call.name.lower()}() over aggregates")
        copy.replace(exp.alias_(call.expressions[0].copy(), f"__collection_{number}", quoted=True))
    source = plan(inner)
    shown: list[NamedColumn] = []
    for position, item in enumerate(select.expressions):
        if not _is_generator(item):
            shown.append(source.columns[position])
            continue
        call_tree = (item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item).copy()
        # Behind a JSON text stand the names of fields, which are constants.
        rest = call_tree.expressions[1:]
        call_tree.set("expressions", [exp.column(f"__collection_{position}", quoted=True), *rest])
        found = call_of(call_tree)
        assert found is not None
        source, columns = generated(source, replace(found, origin=item), context)
        shown += _named(item, columns, context)
    scope = Scope(shown, source.node.schema, context)
    outputs = [scope.reference(column.position) for column in shown]
    project = project_with_key(source.node, outputs, [column.name for column in shown])
    return Source(project, tuple(NamedColumn(None, column.name, i) for i, column in enumerate(shown)))


def _is_generator(item: exp.Expr) -> bool:
    call = call_of(item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item)
    return call is not None and call.function not in ("values", "range")


def _named(item: exp.Expr, columns: tuple[NamedColumn, ...], context: Context) -> tuple[NamedColumn, ...]:
    names = [item.alias] if isinstance(item, exp.Alias) else []
    if isinstance(item, exp.Aliases):
        names = [identifier.name for identifier in item.expressions]
    if not names:
        return columns
    alias = exp.TableAlias(columns=[exp.to_identifier(name, quoted=True) for name in names])
    return tuple(replace(column, qualifier=None) for column in aliased(columns, alias, context, item))
