"""PIVOT as an aggregate with FILTER, UNPIVOT as rows of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.expressions import coercion, registry
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal
from viewkeeper.plan.binding import aggregate_name, bind, bound_column, has_aggregate, has_query, references_of
from viewkeeper.plan.context import Context
from viewkeeper.plan.folding import constant_of
from viewkeeper.plan.generators import stacked
from viewkeeper.plan.joins import FromClause
from viewkeeper.plan.keys import all_of, project_with_key
from viewkeeper.plan.names import spark_name
from viewkeeper.plan.nodes import Filter, Node
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.plan.selects import plan_select
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Schema, SqlType


@dataclass(frozen=True)
class _Value:
    """A pivoted value: what its columns are called, and the condition under which a row has it."""

    name: str
    condition: exp.Expr


def pivoted(source: Source, clause: exp.Expr, context: Context) -> Source:
    """Return ``source`` under a PIVOT or UNPIVOT clause.

    Raises:
        SqlError: values that are no constants, columns without a common type.
        UnsupportedSql: ``PIVOT_NOT_YET`` for lists of values that are not written out.
    """
    fields = list(clause.args.get("fields") or ())
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not fields[0].expressions:
        raise context.refusal("PIVOT_NOT_YET", clause)
    for value in fields[0].expressions:
        if isinstance(value, exp.PivotAny) or has_query(value):
            raise context.refusal("PIVOT_NOT_YET", value)
    if clause.args.get("unpivot"):
        return _unpivoted(source, clause, fields[0], context)
    return _pivoted(source, clause, fields[0], context)


def _pivoted(source: Source, clause: exp.Expr, in_: exp.In, context: Context) -> Source:
    scope = Scope(source.columns, source.node.schema, context)
    columns = [bind(tree, scope, aggregates="PIVOT ... FOR") for tree in _parts(in_.this)]
    calls = [_bound_call(tree, scope, context) for tree in clause.expressions]
    values = [_value(tree, columns, scope, context) for tree in in_.expressions]
    read = {r.index for tree in (*columns, *(tree for _, tree in calls)) for r in references_of(tree)}
    groups = [column for column in source.columns if not column.merged and column.position not in read]
    items = [_item(bound_column(scope.reference(column.position)), column.name) for column in groups]
    for value in values:
        items += [_item(_only(tree, value.condition), name) for name, tree in calls]
    for value in values:
        count = exp.Anonymous(this="count", expressions=[exp.Star()])
        items.append(_item(_only(count, value.condition), "rows"))
    select = exp.Select(expressions=items)
    if groups:
        by = [bound_column(scope.reference(column.position)) for column in groups]
        select.set("group", exp.Group(expressions=by))
    from_ = FromClause(context)
    from_.add(source)
    inner, _ = plan_select(select, from_, context)
    names = [column.name for column in groups]
    single = len(calls) == 1
    names += [v.name if single else f"{v.name}_{name}" for v in values for name, _ in calls]
    return _present(inner.node, len(groups), len(calls), names, context)


def _present(node: Node, groups: int, calls: int, names: Sequence[str], context: Context) -> Source:
    """Return the pivoted columns, where Spark has them so NULL for values of which a group has no row.

    Spark picks results that are numbers or truths from an aggregate by group and value, so there they are NULL, also
    counts; where one result is of another type it aggregates conditional arguments, so there counts are 0.
    """
    references = [ColumnRef(i, column.type, column.nullable) for i, column in enumerate(node.schema.columns)]
    results = references[groups : len(names)]
    outputs: list[Expression] = [*references[:groups]]
    picked = all(r.type.is_numeric or r.type == types.BOOLEAN for r in results)
    for number, result in enumerate(results):
        if picked:
            rows = references[len(names) + number // calls]
            present = registry.resolve("gt", [rows, Literal(0, types.BIGINT)], context.session)
            outputs.append(registry.resolve("case", [present, result], context.session))
        else:
            outputs.append(result)
    project = project_with_key(node, outputs, names)
    return Source(project, tuple(NamedColumn(None, name, i) for i, name in enumerate(names)))


def _bound_call(tree: exp.Expr, scope: Scope, context: Context) -> tuple[str, exp.Expr]:
    name = tree.alias if isinstance(tree, exp.Alias) else spark_name(tree)
    bound = bind(tree.this if isinstance(tree, exp.Alias) else tree, scope)
    if not has_aggregate(bound):
        message = f"PIVOT takes aggregates, which {name} is not: write SUM, MAX or another."
        raise context.error("NON_AGGREGATE_IN_PIVOT", message, tree)
    return name, bound


def _only(tree: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """Return ``tree`` with its aggregates over the rows under ``condition``."""
    if isinstance(tree, exp.Filter):
        both = exp.and_(tree.expression.this.copy(), condition.copy(), copy=False)
        return exp.Filter(this=tree.this.copy(), expression=exp.Where(this=both))
    if aggregate_name(tree):
        return exp.Filter(this=tree.copy(), expression=exp.Where(this=condition.copy()))
    result = tree.copy()
    for child, copy in zip(list(tree.iter_expressions()), list(result.iter_expressions()), strict=True):
        copy.replace(_only(child, condition))
    return result


def _value(tree: exp.Expr, columns: Sequence[exp.Expr], scope: Scope, context: Context) -> _Value:
    alias = tree.args["alias"].name if isinstance(tree, exp.PivotAlias) else ""
    parts = _parts(tree.this if isinstance(tree, exp.PivotAlias) else tree)
    if len(parts) != len(columns):
        message = f"The value has {len(parts)} parts for {len(columns)} pivoted columns: give one for each."
        raise context.error("PIVOT_VALUE_DATA_TYPE_MISMATCH", message, tree)
    texts, conditions = [], []
    for part, column in zip(parts, columns, strict=True):
        literal = _constant(part, context)
        texts.append(_text(literal, context))
        target = Translator(scope.schema, context).expression(column).type
        wanted = exp.cast(part.copy(), str(target), dialect="spark")
        conditions.append(exp.NullSafeEQ(this=column.copy(), expression=wanted))
    name = alias or (texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}")
    return _Value(name, exp.and_(*conditions, copy=False))


def _constant(tree: exp.Expr, context: Context) -> Literal:
    bound = bind(tree, Scope((), Schema(()), context), aggregates="PIVOT ... IN")
    found = constant_of(Translator(Schema(()), context).expression(bound), context.session)
    if not isinstance(found, Literal):
        raise context.error("NON_LITERAL_PIVOT_VALUES", "The values of PIVOT must be constants.", tree)
    return found


def _text(literal: Literal, context: Context) -> str:
    if literal.value is None:
        return "null"
    text = literal if literal.type == types.STRING else registry.cast(literal, types.STRING, context.session)
    found = constant_of(text, context.session)
    return str(found.value) if isinstance(found, Literal) else str(literal.value)


def _unpivoted(source: Source, clause: exp.Expr, in_: exp.In, context: Context) -> Source:
    node = source.node
    scope, translator = Scope(source.columns, node.schema, context), Translator(node.schema, context)
    values = [name.name for name in _parts(clause.expressions[0])]
    names, rows = [], []
    for tree in in_.expressions:
        parts = _parts(tree.this if isinstance(tree, exp.PivotAlias) else tree)
        if len(parts) != len(values):
            message = f"UNPIVOT names {len(values)} value columns, but {len(parts)} columns stand here: name as many."
            raise context.error("UNPIVOT_VALUE_SIZE_MISMATCH", message, tree)
        alias = tree.args["alias"].name if isinstance(tree, exp.PivotAlias) else ""
        names.append(alias or "_".join(part.name for part in parts))
        rows.append([translator.expression(bind(part, scope, aggregates="UNPIVOT")) for part in parts])
    kinds = [_common([row[i] for row in rows], clause, context) for i in range(len(values))]
    cast = [
        [Literal(name, types.STRING), *(translator.cast(clause, v, k) for v, k in zip(row, kinds, strict=True))]
        for name, row in zip(names, rows, strict=True)
    ]
    read = {e.index for row in rows for e in row if isinstance(e, ColumnRef)}
    outputs = [in_.this.name, *values]
    nullables = [any(row[i].nullable for row in cast) for i in range(1, len(values) + 1)]
    expanded, made = stacked(node, cast, outputs, [False, *nullables])
    ids = [column for column in source.columns if not column.merged and column.position not in read]
    columns = (*(NamedColumn(None, c.name, c.position) for c in ids), *made)
    if clause.args.get("include_nulls"):
        return Source(expanded, columns)
    return Source(_with_a_value(expanded, [column.position for column in made[1:]], context), columns)


def _with_a_value(node: Node, positions: Sequence[int], context: Context) -> Node:
    """Return the rows of which a value is not NULL."""
    columns = [ColumnRef(i, node.schema.columns[i].type, True) for i in positions]
    absent = all_of([registry.resolve("is_null", [column], context.session) for column in columns])
    assert absent is not None
    return Filter(node, registry.resolve("not", [absent], context.session), node.schema, node.key)


def _common(values: Sequence[Expression], clause: exp.Expr, context: Context) -> SqlType:
    found = coercion.fold([value.type for value in values], coercion.without_strings)
    if found is None:
        listed = ", ".join(str(value.type).upper() for value in values)
        message = f"The columns of UNPIVOT have no common type ({listed}): cast them in a subquery."
        raise context.error("UNPIVOT_VALUE_DATA_TYPE_MISMATCH", message, clause)
    return found


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    if isinstance(tree, exp.Paren):
        return [tree.this]
    return list(tree.expressions) if isinstance(tree, exp.Tuple) else [tree]


def _item(tree: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(tree, name, quoted=True, copy=False)
