"""Query trees → nodes: set operations, common table expressions, what stands in FROM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Expression, Literal
from viewkeeper.plan.binding import bind
from viewkeeper.plan.catalog import suggestion
from viewkeeper.plan.context import Context
from viewkeeper.plan.joins import FromClause
from viewkeeper.plan.keys import hidden_key_name, project_with_key
from viewkeeper.plan.nodes import Node, Project, Relation, Scan, UnionAll
from viewkeeper.plan.ordering import OrderItem
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.plan.selects import plan_select
from viewkeeper.plan.translate import Translator, common_type
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema, SqlType

_ENDINGS = {
    "order": "ORDER_BY_IN_VIEW",
    "sort": "ORDER_BY_IN_VIEW",
    "cluster": "ORDER_BY_IN_VIEW",
    "distribute": "ORDER_BY_IN_VIEW",
    "limit": "LIMIT_IN_VIEW_NOT_YET",
    "offset": "LIMIT_IN_VIEW_NOT_YET",
    "fetch": "LIMIT_IN_VIEW_NOT_YET",
}
_SET_OPERATIONS: dict[type[exp.Expr], str] = {exp.Intersect: "INTERSECT_NOT_YET", exp.Except: "EXCEPT_NOT_YET"}
_SIDES = {"LEFT": "LEFT_JOIN_NOT_YET", "RIGHT": "RIGHT_JOIN_NOT_YET", "FULL": "FULL_JOIN_NOT_YET"}
_KINDS = {"SEMI": "SEMI_JOIN_NOT_YET", "ANTI": "ANTI_JOIN_NOT_YET"}
_KNOWN_KINDS = frozenset(("", "INNER", "CROSS"))


@dataclass(frozen=True)
class CommonTable:
    """A common table expression and what its query sees."""

    query: exp.Query
    names: tuple[str, ...]
    visible: Mapping[str, CommonTable] = field(repr=False)


@dataclass(frozen=True)
class Planned:
    """A planned query: its source, and the positions by which an ad hoc query is ordered."""

    source: Source
    order: tuple[int, ...] = ()


def plan_tree(
    query: exp.Expr,
    context: Context,
    tables: Mapping[str, CommonTable] | None = None,
    order: Sequence[OrderItem] = (),
) -> Planned:
    """Return the plan of a query tree.

    Args:
        query: the tree.
        context: the statement.
        tables: the common table expressions that it may read, by lower-case name.
        order: ORDER BY items of an ad hoc query, which may use columns that are not selected.
    """
    tables = _with_tables(query, context, tables or {})
    for clause, code in _ENDINGS.items():
        found = query.args.get(clause)
        if found is not None:
            raise context.refusal(code, found if isinstance(found, exp.Expr) else query)
    if isinstance(query, exp.Select):
        source, positions = plan_select(query, _from_clause(query, context, tables), context, order)
        return Planned(source, positions)
    if isinstance(query, exp.Union) and not query.args.get("distinct"):
        if query.args.get("by_name"):
            raise context.refusal("CLAUSE_NOT_YET", query, "UNION ALL BY NAME")
        source = _union_all(query, context, tables)
        return _ordered_union(source, order, context)
    if isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        return plan_tree(query.this, context, tables, order)
    otherwise = "UNION_DISTINCT_NOT_YET" if isinstance(query, exp.Union) else "VALUES_NOT_YET"
    raise context.refusal(_SET_OPERATIONS.get(type(query), otherwise), query)


def _with_tables(query: exp.Expr, context: Context, tables: Mapping[str, CommonTable]) -> Mapping[str, CommonTable]:
    with_ = query.args.get("with_")
    if with_ is None:
        return tables
    if with_.args.get("recursive"):
        raise context.refusal("RECURSIVE_CTE_NOT_YET", with_)
    visible = dict(tables)
    seen: set[str] = set()
    for table in with_.expressions:
        name = table.alias.lower()
        if name in seen:
            message = f"WITH defines '{table.alias}' twice."
            raise context.error("DUPLICATED_CTE_NAMES", message, table.args["alias"])
        seen.add(name)
        names = tuple(identifier.name for identifier in table.args["alias"].args.get("columns") or ())
        visible[name] = CommonTable(table.this, names, dict(visible))
    return visible


def _from_clause(select: exp.Select, context: Context, tables: Mapping[str, CommonTable]) -> FromClause:
    from_ = select.args.get("from_")
    for lateral in select.args.get("laterals") or ():
        raise context.refusal("LATERAL_VIEW_NOT_YET", lateral)
    if from_ is None:
        raise context.refusal("QUERY_WITHOUT_TABLE", select)
    clause = FromClause(context)
    clause.add(_relation(from_.this, context, tables), from_.this)
    _add_joins(clause, select.args.get("joins") or (), context, tables)
    where = select.args.get("where")
    if where is not None:
        clause.add_where(where.this)
    return clause


def _add_joins(
    clause: FromClause, joins: Sequence[exp.Join], context: Context, tables: Mapping[str, CommonTable]
) -> None:
    for join in joins:
        side, kind = (str(join.args.get(part) or "").upper() for part in ("side", "kind"))
        method = str(join.args.get("method") or "").upper()
        code = _KINDS.get(kind) or _SIDES.get(side)
        if code is None and (kind not in _KNOWN_KINDS or method not in ("", "NATURAL")):
            code = "CLAUSE_NOT_YET"
        if code is not None:
            raise context.refusal(code, join)
        clause.add_joined(_relation(join.this, context, tables), join)


def _relation(tree: exp.Expr, context: Context, tables: Mapping[str, CommonTable]) -> Source:
    """Return the source for one item of FROM, under its alias."""
    if tree.args.get("pivots"):
        raise context.refusal("PIVOT_NOT_YET", tree)
    if tree.args.get("sample") is not None:
        raise context.refusal("TABLESAMPLE_NOT_YET", tree)
    if tree.args.get("version") is not None or tree.args.get("when") is not None:
        raise context.refusal("TIME_TRAVEL_NOT_YET", tree)
    if isinstance(tree, (exp.Lateral, exp.Unnest)):
        raise context.refusal("LATERAL_VIEW_NOT_YET", tree)
    if isinstance(tree, exp.Values):
        raise context.refusal("VALUES_NOT_YET", tree)
    if isinstance(tree, exp.Table):
        for lateral in tree.args.get("laterals") or ():
            raise context.refusal("LATERAL_VIEW_NOT_YET", lateral)
        source = _table(tree, context, tables)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        source = plan_tree(tree, context, tables).source
    elif isinstance(tree, exp.Subquery):
        source = _relation(tree.this, context, tables)
    else:
        raise context.refusal("CLAUSE_NOT_YET", tree)
    if tree.args.get("joins"):
        clause = FromClause(context)
        clause.add(_aliased(source, tree, context), tree)
        _add_joins(clause, tree.args["joins"], context, tables)
        return clause.joined()
    return _aliased(source, tree, context)


def _aliased(source: Source, tree: exp.Expr, context: Context) -> Source:
    alias = tree.args.get("alias")
    if alias is None:
        return source
    columns = alias.args.get("columns") or ()
    if columns:
        source = _renamed(source, tuple(identifier.name for identifier in columns), context, tree)
    return source.aliased(alias.name) if alias.name else source


def _renamed(source: Source, names: tuple[str, ...], context: Context, tree: exp.Expr) -> Source:
    shown = [column for column in source.columns if not column.merged]
    if len(names) != len(shown):
        message = f"There are {len(names)} column aliases for {len(shown)} columns."
        raise context.error("ASSIGNMENT_ARITY_MISMATCH", message, tree)
    return replace(source, columns=tuple(replace(c, name=n) for c, n in zip(shown, names, strict=True)))


def _table(tree: exp.Table, context: Context, tables: Mapping[str, CommonTable]) -> Source:
    if isinstance(tree.this, exp.Func):
        raise context.refusal("TABLE_FUNCTION_NOT_YET", tree)
    if context.place.is_string(tree.this):
        message = f"A text stands where a table is named; names go in backticks or bare: `{tree.name}`."
        raise context.error("SYNTAX_ERROR", message, tree)
    common = tables.get(tree.name.lower()) if not tree.db else None
    if common is not None:
        source = plan_tree(common.query, context, common.visible).source
        if common.names:
            source = _renamed(source, common.names, context, tree)
        return source.aliased(tree.name)
    relation = context.relations.relation(tree.name) if not tree.db else None
    if relation is None:
        name = ".".join(part.name for part in tree.parts)
        message = f"There is no table or view '{name}'. {suggestion(name, [*context.relations.names(), *tables])}"
        raise context.error("TABLE_OR_VIEW_NOT_FOUND", message, tree)
    return scan(relation).aliased(relation.name)


def scan(relation: Relation) -> Source:
    """Return the scan of all columns of ``relation``, its hidden key columns behind them."""
    schema = Schema(relation.schema.columns + relation.hidden.columns)
    key = next((k for k in (relation.identity, relation.key, relation.full_key) if k is not None), None)
    node = Scan(relation, tuple(range(len(schema))), schema, key)
    columns = tuple(NamedColumn(None, column.name, i) for i, column in enumerate(relation.schema.columns))
    return Source(node, columns)


def _union_all(query: exp.Union, context: Context, tables: Mapping[str, CommonTable]) -> Source:
    branches = [plan_tree(branch, context, tables).source for branch in _branches(query)]
    width = len(branches[0].columns)
    for number, branch in enumerate(branches[1:], 2):
        if len(branch.columns) != width:
            message = f"The first query of UNION ALL has {width} columns, query {number} has {len(branch.columns)}."
            raise context.error("NUM_COLUMNS_MISMATCH", message, query)
    translator = Translator(branches[0].node.schema, context)
    columns = []
    for i in range(width):
        parts = [branch.node.schema.columns[branch.columns[i].position] for branch in branches]
        sql_type = parts[0].type
        for part in parts[1:]:
            sql_type = common_type(sql_type, part.type, translator, query, f"The columns {i + 1} of UNION ALL")
        columns.append(Column(branches[0].columns[i].name, sql_type, any(part.nullable for part in parts)))
    nodes = _padded(branches, columns, translator, query)
    schema = nodes[0].schema
    key = None if any(b.node.key is None for b in branches) else tuple(range(width, len(schema)))
    source = UnionAll(tuple(nodes), schema, key)
    return Source(source, tuple(NamedColumn(None, column.name, i) for i, column in enumerate(columns)))


def _branches(query: exp.Expr) -> list[exp.Expr]:
    """Return the inputs of nested UNION ALLs without WITH, ORDER BY or LIMIT of their own."""
    inner = query
    while isinstance(inner, exp.Subquery) and not any(inner.args.get(a) for a in ("with_", *_ENDINGS)):
        inner = inner.this
    if not isinstance(inner, exp.Union) or inner.args.get("distinct") or inner.args.get("by_name"):
        return [query]
    if inner is not query and any(inner.args.get(argument) for argument in ("with_", *_ENDINGS)):
        return [query]
    return [*_branches(inner.this), *_branches(inner.expression)]


def _padded(
    branches: Sequence[Source], columns: Sequence[Column], translator: Translator, query: exp.Expr
) -> list[Project]:
    """Return the branches cast to ``columns``, followed by the branch's number and the keys of all, NULL for others."""
    keys = [[branch.node.schema.columns[position] for position in branch.node.key or ()] for branch in branches]
    hidden = [Column("__branch", types.INT, False)]
    for column in (column for own in keys for column in own):
        hidden.append(Column(hidden_key_name(column.name, len(hidden) - 1), column.type, True))
    nodes = []
    for number, branch in enumerate(branches):
        node = branch.node
        outputs: list[Expression] = [
            translator.cast(query, _reference(node, named.position), column.type)
            for named, column in zip(branch.columns, columns, strict=True)
        ]
        outputs.append(Literal(number, types.INT))
        for i, own in enumerate(keys):
            outputs += [_reference(node, p) for p in node.key or ()] if i == number else map(_null, own)
        schema = Schema((*columns, *hidden))
        key = None if node.key is None else tuple(range(len(columns), len(schema)))
        nodes.append(Project(node, tuple(outputs), schema, key))
    return nodes


def _reference(node: Node, position: int) -> Expression:
    column = node.schema.columns[position]
    return ColumnRef(position, column.type, column.nullable)


def _null(column: Column) -> Literal:
    sql_type: SqlType = column.type
    return Literal(None, sql_type)


def _ordered_union(source: Source, order: Sequence[OrderItem], context: Context) -> Planned:
    """Return the source with the columns that ORDER BY computes behind its own."""
    if not order:
        return Planned(source)
    node = source.node
    scope = Scope(source.columns, node.schema, context)
    translator = Translator(node.schema, context)
    expressions: list[Expression] = [_reference(node, column.position) for column in source.columns]
    positions = []
    for item in order:
        position = item.output_position(len(source.columns), context)
        if position is None:
            expression = translator.expression(bind(item.tree, scope, aggregates="ORDER BY after UNION ALL"))
            if expression not in expressions:
                expressions.append(expression)
            position = expressions.index(expression)
        positions.append(position)
    names = [column.name for column in source.columns]
    hidden = [f"__order_{i}" for i in range(len(expressions) - len(names))]
    project = project_with_key(node, expressions, [*names, *hidden])
    return Planned(Source(project, source.columns), tuple(positions))
