"""Query trees → nodes: set operations, common table expressions, what stands in FROM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Expression
from viewkeeper.plan.binding import bind, bound_column, conjuncts, has_query
from viewkeeper.plan.catalog import suggestion
from viewkeeper.plan.context import Context
from viewkeeper.plan.correlated_tables import without_correlated_tables
from viewkeeper.plan.correlation import Block, Key, Outer, names_outer
from viewkeeper.plan.from_items import FromItems, joins_lateral, makes_rows, only_relations
from viewkeeper.plan.function_names import GENERATORS
from viewkeeper.plan.generators import call_in, refused_generator, rows_apart
from viewkeeper.plan.joins import FromClause
from viewkeeper.plan.keys import project_with_key
from viewkeeper.plan.lateral import LateralJoins, LateralQuery, lateral_query
from viewkeeper.plan.limits import limited, sort_keys
from viewkeeper.plan.nodes import Relation, Scan
from viewkeeper.plan.one_row import one_row
from viewkeeper.plan.ordering import OrderItem, ending_of
from viewkeeper.plan.pivots import pivoted
from viewkeeper.plan.recursion import DEFAULT_LIMIT, RecursiveTable, plan_recursion, reads_itself
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.plan.selects import plan_select
from viewkeeper.plan.set_operations import plan_set_operation
from viewkeeper.plan.subqueries import SubqueryBinder
from viewkeeper.plan.subquery_blocks import plan_block
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.unread_tables import check_unread
from viewkeeper.zset.schema import Schema

# By the words before JOIN: LEFT, SEMI, ...
_JOIN_KINDS = {
    ("", ""): "inner", ("", "INNER"): "inner", ("", "CROSS"): "inner", ("LEFT", ""): "left", ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right", ("RIGHT", "OUTER"): "right", ("FULL", ""): "full", ("FULL", "OUTER"): "full",
    ("", "SEMI"): "semi", ("LEFT", "SEMI"): "semi", ("", "ANTI"): "anti", ("LEFT", "ANTI"): "anti",
}  # fmt: skip
_ENDINGS = ("order", "sort", "cluster", "distribute", "limit", "offset", "fetch")
_UNORDERED = {
    "sort": "ORDER_BY_IN_VIEW", "cluster": "ORDER_BY_IN_VIEW", "distribute": "ORDER_BY_IN_VIEW",
    "fetch": "CLAUSE_NOT_YET",
}  # fmt: skip


@dataclass(frozen=True)
class CommonTable:
    """A common table expression and what its query sees.

    Args:
        query: its query.
        names: its columns' names; none for those of the query.
        visible: the expressions before it.
        limit: of one that reads itself, the greatest round; else None.
        newest: inside of its recursive member, the rows of the round before.
    """

    query: exp.Query
    names: tuple[str, ...]
    visible: Mapping[str, CommonTable] = field(repr=False)
    limit: int | None = None
    newest: Source | None = None


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
    outer: Outer | None = None,
) -> Planned:
    """Return the plan of a query tree.

    Args:
        query: the tree.
        context: the statement.
        tables: the common table expressions that it may read, by lower-case name.
        order: ORDER BY items of an ad hoc query, which may use columns that are not selected.
        outer: of a part of a subquery, the query around the subquery, whose columns it must not name.
    """
    if outer is not None:
        query = _untied(query, context, tables or {}, outer)
    tables = _with_tables(query, context, tables or {})
    for clause, code in _UNORDERED.items():
        found = query.args.get(clause)
        if found is not None:
            raise context.refusal(code, found if isinstance(found, exp.Expr) else query)
    ending = ending_of(query, context)
    if query.args.get("order") is None and query.args.get("limit") is None and query.args.get("offset") is None:
        return _plan_body(query, context, tables, order, outer)
    body = _plan_body(query, context, tables, () if ending.all else ending.items, outer)
    source = limited(body.source, sort_keys(body.source, body.order, ending), ending, query, context)
    return _ordered_set(source, order, context)


def _plan_body(
    query: exp.Expr,
    context: Context,
    tables: Mapping[str, CommonTable],
    order: Sequence[OrderItem],
    outer: Outer | None = None,
) -> Planned:
    """Return the plan of a query tree without what ends it."""
    if isinstance(query, exp.Select):
        joined = _from_clause(query, context, tables, outer)
        source, positions = plan_select(query, joined, context, order, _binder(context, tables))
        return Planned(source, positions)
    if isinstance(query, exp.SetOperation):
        if query.args.get("by_name"):
            raise context.refusal("CLAUSE_NOT_YET", query, "UNION BY NAME")
        branches = [plan_tree(branch, context, tables, outer=outer).source for branch in _branches(query)]
        return _ordered_set(plan_set_operation(query, branches, context), order, context)
    if isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        return plan_tree(query.this, context, tables, order, outer)
    raise context.refusal("CLAUSE_NOT_YET", query)


def _binder(context: Context, tables: Mapping[str, CommonTable]) -> SubqueryBinder:
    return SubqueryBinder(lambda query, outer, kind: _block(query, context, tables, outer, kind))


def _block(query: exp.Expr, context: Context, tables: Mapping[str, CommonTable], outer: Outer, kind: str) -> Block:
    """Return the plan of a subquery."""
    select, tables = _plain(query, context, tables, kind, outer)
    if isinstance(select, exp.Select) and _is_block(select):
        clause = _from_clause(select, context, tables, outer)
        return plan_block(select, clause, outer, context, kind, _binder(context, tables))
    united = isinstance(select, exp.SetOperation) and select.args.get("limit") is None
    if isinstance(select, exp.SetOperation) and united and outer.domain:
        return _united_block(select, context, tables, outer)
    if united and any(isinstance(b, exp.Select) and b.args.get("from_") is None for b in _branches(select)):
        # A branch of constants needs the rows of the domain, whichever branch names outer columns.
        outer.demand_all(select)
    around = outer if united else outer.within("beside rows that the SELECT list makes, or LIMIT of a set operation")
    source = plan_tree(select, context, tables, outer=around).source
    shown = [column for column in source.columns if not column.merged]
    scope = Scope(source.columns, source.node.schema, context)
    values = tuple(bound_column(scope.reference(column.position)) for column in shown)
    return Block(source.node, values, names=tuple(column.name for column in shown))


def _is_block(select: exp.Select) -> bool:
    items = (node for item in select.expressions for node in item.find_all(exp.Anonymous))
    return not any(select.args.get(clause) for clause in _UNORDERED) and not any(
        node.name.lower() in GENERATORS for node in items
    )


def _united_block(query: exp.SetOperation, context: Context, tables: Mapping[str, CommonTable], outer: Outer) -> Block:
    """Return the plan of a set operation that names outer columns: each branch is joined to their values."""
    laterals = LateralJoins(context, _binder(context, tables), outer)
    branches = []
    for branch in _branches(query):
        source, columns = laterals.joined(outer.domain_source(), LateralQuery(branch))
        values = tuple(NamedColumn(None, "outer", column.position) for column in outer.domain_source().columns)
        branches.append(Source(source.node, (*values, *columns)))
    source = plan_set_operation(query, branches, context)
    shown = source.columns[len(outer.positions) :]
    scope = Scope(shown, source.node.schema, context)
    return Block(
        source.node,
        tuple(bound_column(scope.reference(column.position)) for column in shown),
        tuple(outer.positions),
        tuple(Key(i, ColumnRef(i, column.type, column.nullable), True) for i, column in enumerate(outer.columns())),
        names=tuple(column.name for column in shown),
        stand_in=outer.domain_source().node,
    )


def _plain(
    query: exp.Expr, context: Context, tables: Mapping[str, CommonTable], kind: str, outer: Outer
) -> tuple[exp.Expr, Mapping[str, CommonTable]]:
    """Return a subquery without parentheses, and without the ORDER BY and LIMIT that its use makes idle."""
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        if any(query.args.get(clause) for clause in ("with_", *_ENDINGS)):
            return query, tables
        query = query.this
    query = _untied(query, context, tables, outer)
    tables = _with_tables(query, context, tables)
    copy = query.copy()
    copy.parent = query.parent
    copy.set("with_", None)
    limit = copy.args.get("limit")
    if kind == "exists" and isinstance(limit, exp.Limit) and not copy.args.get("offset"):
        rows = limit.expression
        if isinstance(rows, exp.Literal) and not rows.is_string and int(rows.name) > 0:
            copy.set("limit", None)
    if not any(copy.args.get(clause) for clause in ("limit", "offset", "fetch")):
        copy.set("order", None)
    return copy, tables


def _untied(query: exp.Expr, context: Context, tables: Mapping[str, CommonTable], outer: Outer) -> exp.Expr:
    """Return a subquery whose WITH names no columns of the query around it."""

    def planned(common: exp.Expr, around: exp.Expr) -> Planned:
        return plan_tree(common, context, _common_tables(around, context, tables))

    return without_correlated_tables(query, outer, context, planned)


def _with_tables(query: exp.Expr, context: Context, tables: Mapping[str, CommonTable]) -> Mapping[str, CommonTable]:
    visible = _common_tables(query, context, tables)
    relations = context.relations.apart()
    if visible is not tables and relations is not None:
        apart = replace(context, relations=relations)
        check_unread(query, lambda table: _common(visible[table.alias.lower()], table.args["alias"].this, apart))
    return visible


def _common_tables(query: exp.Expr, context: Context, tables: Mapping[str, CommonTable]) -> Mapping[str, CommonTable]:
    with_ = query.args.get("with_")
    if with_ is None:
        return tables
    visible = dict(tables)
    seen: set[str] = set()
    for table in with_.expressions:
        name = table.alias.lower()
        if name in seen:
            message = f"WITH defines '{table.alias}' twice: give one of them another name."
            raise context.error("DUPLICATED_CTE_NAMES", message, table.args["alias"])
        seen.add(name)
        names = tuple(identifier.name for identifier in table.args["alias"].args.get("columns") or ())
        recursive = with_.args.get("recursive") and reads_itself(table)
        limit = table.meta.get("recursion_limit", DEFAULT_LIMIT) if recursive else None
        visible[name] = CommonTable(table.this, names, dict(visible), limit)
    return visible


def _from_clause(
    select: exp.Select, context: Context, tables: Mapping[str, CommonTable], outer: Outer | None = None
) -> FromClause | FromItems:
    from_ = select.args.get("from_")
    if from_ is None:
        return _constants_clause(select, context, outer)
    joins, laterals = select.args.get("joins") or (), select.args.get("laterals") or ()
    tied = [_tied(from_.this, outer), *(_tied_join(join, outer).this for join in joins)]
    if not only_relations(tied, laterals):
        return _from_items(select, context, tables, outer)
    clause = FromClause(context, outer)
    if outer is not None and outer.domain:
        clause.add(outer.domain_source())
    inside = _inside(outer)
    clause.add(_relation(from_.this, context, tables, inside))
    _add_joins(clause, joins, context, tables, inside)
    _add_where(clause, select)
    return clause


def _constants_clause(select: exp.Select, context: Context, outer: Outer | None) -> FromClause:
    """Return the clause of a query without FROM."""
    if outer is not None:
        outer.demand_all(select)
    beside_outer = outer is not None and outer.domain
    if beside_outer or select.is_star or select.args.get("laterals"):
        raise context.refusal("QUERY_WITHOUT_TABLE", select)
    clause = FromClause(context, outer)
    clause.add(one_row(select, context))
    _add_where(clause, select)
    return clause


def _add_where(clause: FromClause, select: exp.Select) -> None:
    where = select.args.get("where")
    for part in () if where is None else conjuncts(where.this):
        if has_query(part) or names_outer(part, clause.scope()):
            clause.later.append(part)
        else:
            clause.add_where(part)


def _from_items(
    select: exp.Select, context: Context, tables: Mapping[str, CommonTable], outer: Outer | None
) -> FromItems:
    """Return the clause of a FROM that makes rows of others' rows."""
    items = FromItems(
        context,
        lambda item: _relation(item, context, tables, _inside(outer)),
        lambda clause, join: _add_joins(clause, (join,), context, tables, _inside(outer)),
        LateralJoins(context, _binder(context, tables), outer),
    )
    first = select.args["from_"].this
    if outer is not None and makes_rows(first) and lateral_query(first) is None:
        outer.demand_all(first)
    if outer is not None and outer.domain:
        items.begin(outer.domain_source())
    items.add(_tied(first, outer))
    for join in select.args.get("joins") or ():
        items.add_joined(_tied_join(join, outer))
    for lateral in select.args.get("laterals") or ():
        items.add_lateral(lateral)
    where = select.args.get("where")
    if where is not None:
        items.add_where(where.this)
    return items


def _inside(outer: Outer | None) -> Outer | None:
    """Return the query around for a subquery in FROM that is not LATERAL: by a domain nothing comes into it."""
    return outer.within("in this subquery in FROM") if outer is not None and outer.domain else outer


def _tied(item: exp.Expr, outer: Outer | None) -> exp.Expr:
    """Return an item of FROM; a subquery that may name columns of the query around is LATERAL, beside their domain."""
    if outer is None or not outer.domain or not isinstance(item, exp.Subquery) or not isinstance(item.this, exp.Query):
        return item
    if not any(outer.located(column) is not None for column in item.find_all(exp.Column) if not column.is_star):
        return item
    return exp.Lateral(this=exp.Subquery(this=item.this.copy()), alias=item.args.get("alias"))


def _tied_join(join: exp.Join, outer: Outer | None) -> exp.Join:
    tied = _tied(join.this, outer)
    if tied is join.this or not joins_lateral(join):
        return join
    result = join.copy()
    result.parent = join.parent
    result.set("this", tied)
    return result


def _add_joins(
    clause: FromClause,
    joins: Sequence[exp.Join],
    context: Context,
    tables: Mapping[str, CommonTable],
    outer: Outer | None = None,
) -> None:
    for join in joins:
        side, kind, method = (str(join.args.get(part) or "").upper() for part in ("side", "kind", "method"))
        found = _JOIN_KINDS.get((side, kind))
        if found is None or method not in ("", "NATURAL"):
            raise context.refusal("CLAUSE_NOT_YET", join)
        if found in ("right", "full") and clause.has_domain:
            raise context.refusal("CORRELATION_NOT_YET", join, "a column of the outer query beside RIGHT or FULL JOIN")
        clause.add_joined(_relation(join.this, context, tables, outer), join, found)


def _relation(
    tree: exp.Expr, context: Context, tables: Mapping[str, CommonTable], outer: Outer | None = None
) -> Source:
    """Return the source for one item of FROM, under its alias."""
    if tree.args.get("pivots"):
        return _pivoted(tree, context, tables)
    if tree.args.get("sample") is not None:
        raise context.refusal("TABLESAMPLE_NOT_YET", tree)
    if tree.args.get("version") is not None or tree.args.get("when") is not None:
        raise context.refusal("TIME_TRAVEL_NOT_YET", tree)
    if isinstance(tree, exp.Lateral):
        raise refused_generator(tree, "LATERAL_VIEW_NOT_YET", context)
    call = call_in(tree)
    if call is not None:
        source = rows_apart(call, context, outer)
    elif isinstance(tree, exp.Table):
        for lateral in tree.args.get("laterals") or ():
            raise context.refusal("LATERAL_VIEW_NOT_YET", lateral)
        source = _table(tree, context, tables)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        source = plan_tree(tree, context, tables, outer=outer).source
    elif isinstance(tree, exp.Subquery):
        source = _relation(tree.this, context, tables, outer)
    else:
        raise context.refusal("CLAUSE_NOT_YET", tree)
    if tree.args.get("joins"):
        clause = FromClause(context)
        clause.add(_aliased(source, tree, context))
        _add_joins(clause, tree.args["joins"], context, tables, outer)
        return clause.joined()
    return _aliased(source, tree, context)


def _pivoted(tree: exp.Expr, context: Context, tables: Mapping[str, CommonTable]) -> Source:
    plain = tree.copy()
    plain.set("pivots", None)
    source = _relation(plain, context, tables)
    for clause in tree.args["pivots"]:
        source = _aliased(pivoted(source, clause, context), clause, context)
    return source


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
        message = f"There are {len(names)} column aliases for {len(shown)} columns: name each, or none."
        raise context.error("ASSIGNMENT_ARITY_MISMATCH", message, tree)
    return replace(source, columns=tuple(replace(c, name=n) for c, n in zip(shown, names, strict=True)))


def _table(tree: exp.Table, context: Context, tables: Mapping[str, CommonTable]) -> Source:
    if isinstance(tree.this, exp.Func):
        raise refused_generator(tree, "TABLE_FUNCTION_NOT_YET", context)
    if context.place.is_string(tree.this):
        message = f"A text stands where a table is named; names go in backticks or bare: `{tree.name}`."
        raise context.error("SYNTAX_ERROR", message, tree)
    common = tables.get(tree.name.lower()) if not tree.db else None
    if common is not None:
        return _common(common, tree, context).aliased(tree.name)
    relation = context.relations.relation(tree.name) if not tree.db else None
    if relation is None:
        name = ".".join(part.name for part in tree.parts)
        message = f"There is no table or view '{name}'. {suggestion(name, [*context.relations.names(), *tables])}"
        raise context.error("TABLE_OR_VIEW_NOT_FOUND", message, tree)
    return scan(relation).aliased(relation.name)


def _common(common: CommonTable, tree: exp.Expr, context: Context) -> Source:
    """Return the rows of a common table expression, which is read at ``tree``."""
    if common.newest is not None:
        return common.newest
    if common.limit is not None:
        return _recursive(tree.name, common, common.limit, context)
    source = plan_tree(common.query, context, common.visible).source
    return _renamed(source, common.names, context, tree) if common.names else source


def _recursive(name: str, common: CommonTable, limit: int, context: Context) -> Source:
    def member(query: exp.Expr, newest: Source | None) -> Source:
        itself = replace(common, newest=newest)
        tables = common.visible if newest is None else {**common.visible, name.lower(): itself}
        return plan_tree(query, context, tables).source

    return plan_recursion(RecursiveTable(name, common.query, common.names, limit), member, context)


def scan(relation: Relation) -> Source:
    """Return the scan of all columns of ``relation``, its hidden key columns behind them."""
    schema = Schema(relation.schema.columns + relation.hidden.columns)
    key = next((k for k in (relation.identity, relation.key, relation.full_key) if k is not None), None)
    node = Scan(relation, tuple(range(len(schema))), schema, key)
    columns = tuple(NamedColumn(None, column.name, i) for i, column in enumerate(relation.schema.columns))
    return Source(node, columns)


def _branches(query: exp.Expr) -> list[exp.Expr]:
    """Return the inputs of a set operation; of nested UNION ALLs without WITH, ORDER BY or LIMIT of their own, all."""
    if not _is_union_all(query):
        return [query.this, query.expression]
    return _united(query)


def _is_union_all(query: exp.Expr) -> bool:
    return isinstance(query, exp.Union) and not query.args.get("distinct") and not query.args.get("by_name")


def _united(query: exp.Expr) -> list[exp.Expr]:
    inner = query
    while isinstance(inner, exp.Subquery) and not any(inner.args.get(a) for a in ("with_", *_ENDINGS)):
        inner = inner.this
    if not _is_union_all(inner):
        return [query]
    if inner is not query and any(inner.args.get(argument) for argument in ("with_", *_ENDINGS)):
        return [query]
    return [*_united(inner.this), *_united(inner.expression)]


def _ordered_set(source: Source, order: Sequence[OrderItem], context: Context) -> Planned:
    """Return the source with the columns that ORDER BY computes behind its own."""
    if not order:
        return Planned(source)
    node = source.node
    scope = Scope(source.columns, node.schema, context)
    translator = Translator(node.schema, context)
    expressions: list[Expression] = [scope.reference(column.position) for column in source.columns]
    positions = []
    for item in order:
        position = item.output_position(len(source.columns), context)
        if position is None:
            expression = translator.expression(bind(item.tree, scope, aggregates="ORDER BY after a set operation"))
            if expression not in expressions:
                expressions.append(expression)
            position = expressions.index(expression)
        positions.append(position)
    names = [column.name for column in source.columns]
    hidden = [f"__order_{i}" for i in range(len(expressions) - len(names))]
    project = project_with_key(node, expressions, [*names, *hidden])
    return Planned(Source(project, source.columns), tuple(positions))
