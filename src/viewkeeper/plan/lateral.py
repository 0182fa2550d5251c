"""LATERAL subqueries: each row of the FROM clause so far beside the rows that a subquery makes of it.

    a list without FROM          a projection of the row itself
    rows                         a join by the conditions that name the row's columns; what the list computes of both
                                 sides is computed above it
    a global aggregate           a left join by its keys, COUNT being 0 where there is no row
    ORDER BY … LIMIT, windows    the first rows, the windows, of each of the keys: then a join
    other uses of the row        the same over the distinct values that are named, joined back by them

``subquery_blocks.py`` finds which; LEFT JOIN LATERAL keeps rows beside which there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Expression, is_portable
from viewkeeper.plan.binding import bind, bound_column, conjuncts, has_aggregate, rebound
from viewkeeper.plan.context import Context
from viewkeeper.plan.correlation import Block, Key, Outer
from viewkeeper.plan.generators import aliased
from viewkeeper.plan.generators import filtered as filtered_rows
from viewkeeper.plan.names import spark_name
from viewkeeper.plan.nodes import Node, Project, reference
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.plan.select_generators import generated_items
from viewkeeper.plan.selects import check_clauses, items_of
from viewkeeper.plan.subqueries import (
    SubqueryBinder,
    correlation,
    filtered,
    single_row,
    with_subqueries,
)
from viewkeeper.plan.subquery_calls import Subquery
from viewkeeper.plan.subquery_joins import SubqueryJoins, distinct_values, over_domain, references
from viewkeeper.plan.translate import Translator
from viewkeeper.zset.schema import Column, Schema

Made = tuple[Source, tuple[NamedColumn, ...]]

_OF_ROWS = ("from_", "joins", "laterals", "group", "having", "distinct", "qualify", "order", "limit", "offset", "with_")


@dataclass(frozen=True)
class LateralQuery:
    """A LATERAL subquery as parsed.

    Args:
        query: the subquery.
        alias: its table alias, perhaps with names of its columns.
        optional: whether a row stays beside which it makes none: LEFT JOIN.
        conditions: of ON.
    """

    query: exp.Expr
    alias: exp.Expr | None = None
    optional: bool = False
    conditions: tuple[exp.Expr, ...] = ()


class LateralJoins:
    """Joins LATERAL subqueries to rows.

    Args:
        context: the statement.
        binder: plans subqueries.
        outer: where the FROM clause is that of a subquery, the names of the query around it.
    """

    def __init__(self, context: Context, binder: SubqueryBinder, outer: Outer | None = None) -> None:
        self.context = context
        self.binder = binder
        self.outer = outer

    def joined(self, source: Source, lateral: LateralQuery) -> Made:
        """Return ``source`` beside the rows of ``lateral``, and the columns that this adds.

        Raises:
            SqlError: what is wrong inside the subquery.
            UnsupportedSql: ``CORRELATION_NOT_YET``, and what else it holds that is refused.
        """
        scope = Scope(source.columns, source.node.schema, self.context, self.outer, self.binder)
        query = _without_parentheses(lateral.query)
        if isinstance(query, exp.Select) and _is_list(query):
            return self._computed(query, source, scope, lateral)
        block = self.binder.block(query, scope, "optional" if lateral.optional else "lateral")
        if block.single and (not lateral.optional or (block.having is None and not lateral.conditions)):
            return self._beside_aggregate(block, source, lateral)
        return self._beside(self._by_values(block, source) if block.single else block, source, lateral)

    def _computed(self, query: exp.Select, source: Source, scope: Scope, lateral: LateralQuery) -> Made:
        """Compute a list without FROM of each row."""
        check_clauses(query, self.context)
        where = query.args.get("where")
        conditions = conjuncts(where.this) if where is not None else []
        if lateral.optional and (where is not None or lateral.conditions):
            return self._computed_where(query, source, scope, lateral)
        for condition in conditions:
            tree = bind(condition, scope, aggregates="WHERE")
            source = replace(source, node=filtered(source.node, tree, self.context, "WHERE"))
        for star in query.expressions:
            if star.is_star:
                message = "* stands for the columns of FROM, and this query has none: name what it computes."
                raise self.context.error("UNRESOLVED_COLUMN", message, star)
        made_of, made = generated_items(query, source, self.context, self.outer)
        if made and lateral.optional:
            raise self.context.refusal("CORRELATION_NOT_YET", query, "a generator inside of LEFT JOIN LATERAL")
        items = items_of(query, Scope(source.columns, made_of.node.schema, self.context, self.outer, self.binder), made)
        node, trees = with_subqueries(made_of.node, [item.tree for item in items], self.context)
        names = [item.name for item in items] if made else self._names(query, scope)
        return self._restricted(source, node, trees, names, lateral)

    def _names(self, query: exp.Select, scope: Scope) -> list[str]:
        """Return what the columns of a list without FROM are called: all that it names is outer."""
        inside = Scope((), Schema(()), self.context, Outer(scope))
        return [item.alias or spark_name(inside.displayed(item)) for item in query.expressions]

    def _computed_where(self, query: exp.Select, source: Source, scope: Scope, lateral: LateralQuery) -> Made:
        """Compute a list without FROM of the rows for which its WHERE and ON are true; NULLs beside the others."""
        where = query.args.get("where")
        there: exp.Expr = exp.Boolean(this=True)
        if where is not None:
            there = bind(where.this, scope, aggregates="WHERE")
        items = items_of(query, scope)
        trees = [_where(there, item.tree) for item in items]
        node, trees = with_subqueries(source.node, [*trees, there], self.context)
        first = len(source.node.schema)
        node, columns = self._shown(node, trees, [*self._names(query, scope), "there"], True, first)
        flag = bound_column(reference(node, columns[-1].position))
        columns = aliased(columns[:-1], lateral.alias, self.context, lateral.query)
        around = Scope((*source.columns, *columns), node.schema, self.context, self.outer)
        on = [bind(part, around, aggregates="ON") for part in lateral.conditions]
        kept = exp.and_(flag, *map(_in_parentheses, on), copy=False)
        values = [_where(kept, bound_column(reference(node, column.position))) for column in columns]
        node, shown = self._shown(node, values, [column.name for column in columns], True, first)
        named = zip(shown, columns, strict=True)
        return Source(node, source.columns), tuple(replace(s, qualifier=c.qualifier) for s, c in named)

    def _beside_aggregate(self, block: Block, source: Source, lateral: LateralQuery) -> Made:
        """Join the one row that a global aggregate has for each row."""
        inner = over_domain(block, source.node, block.outer)
        joining = SubqueryJoins(source.node, inner, block.outer, self.context)
        node, trees, having = single_row(joining, Subquery("lateral", block))
        if having is not None:
            node = filtered(node, having, self.context, "HAVING")
        return self._restricted(source, node, trees, block.names, lateral)

    def _by_values(self, block: Block, source: Source) -> Block:
        """Return a global aggregate as rows, one for all rows that name the same values, where HAVING lets it."""
        width = len(block.outer)
        if width:
            around = source.node.schema.select(block.outer)
            values = distinct_values(source.node, block.outer, around)
            inner = over_domain(block, source.node, block.outer)
            joining = SubqueryJoins(values, inner, tuple(range(width)), self.context)
            node, trees, having = single_row(joining, Subquery("lateral", block))
        else:
            node, trees = with_subqueries(
                block.node, [*block.values, *([block.having] if block.having else [])], self.context
            )
            having = trees.pop() if block.having is not None else None
        if having is not None:
            node = filtered(node, having, self.context, "HAVING")
        node, columns = self._shown(node, trees, block.names, False, 0)
        keys = (Key(i, ColumnRef(i, c.type, c.nullable), True) for i, c in enumerate(node.schema.columns[:width]))
        shown = tuple(bound_column(reference(node, column.position)) for column in columns)
        return Block(node, shown, block.outer, tuple(keys), names=block.names)

    def _beside(self, block: Block, source: Source, lateral: LateralQuery) -> Made:
        """Join the rows of a block by what ties them to ``source``, and by ON."""
        around = source.node
        inner = over_domain(block, around, block.outer)
        # All columns around are operands: ON may name any of them.
        joining = SubqueryJoins(around, inner, (*block.outer, *range(len(around.schema))), self.context)
        match = correlation(joining, Subquery("lateral", block))
        on = self._on(joining, block, source, lateral)
        translator = Translator(joining.schema(), self.context)
        conditions = [translator.condition(tree, "ON") for tree in on]
        kind = "left" if lateral.optional else "inner"
        if all(map(is_portable, conditions)):
            match, lateral = match.with_conditions(conditions, joining.width), replace(lateral, conditions=())
        elif lateral.optional:
            if match.residual:
                what = "an ON of LEFT JOIN LATERAL that only Spark can evaluate, beside a comparison in the subquery,"
                raise self.context.refusal("LATERAL_VIEW_NOT_YET", lateral.conditions[0], what)
            whole = translator.condition(exp.and_(*map(_in_parentheses, on), copy=False), "ON")
            match, lateral = replace(match, residual=(whole,)), replace(lateral, conditions=())
        node, offset = joining.paired(match, kind)
        moved = {i: offset + i for i in range(joining.width)}
        moved |= {joining.width + number: position for number, position in enumerate(joining.operands)}
        trees = [rebound(value, node.schema, moved) for value in block.values]
        return self._restricted(source, node, trees, block.names, replace(lateral, optional=False))

    def _on(self, joining: SubqueryJoins, block: Block, source: Source, lateral: LateralQuery) -> list[exp.Expr]:
        """Return the conditions of ON, bound over the subquery's rows, then the operands."""
        if not lateral.conditions:
            return []
        below = joining.schema()
        values = [Translator(below, self.context).expression(value) for value in block.values]
        made = (Column(name, v.type, v.nullable) for name, v in zip(block.names, values, strict=True))
        first = joining.width + len(block.outer)
        own = (replace(column, position=first + column.position) for column in source.columns)
        added = tuple(NamedColumn(None, name, len(below) + i) for i, name in enumerate(block.names))
        added = aliased(added, lateral.alias, self.context, lateral.query)
        scope = Scope((*own, *added), Schema((*below.columns, *made)), self.context, self.outer)

        def computed(part: exp.Expr) -> exp.Expr:
            reference = part.meta.get("reference")
            if isinstance(reference, ColumnRef) and reference.index >= len(below):
                return exp.Paren(this=block.values[reference.index - len(below)].copy())
            return part

        return [bind(part, scope, aggregates="ON").transform(computed) for part in lateral.conditions]

    def _shown(
        self, node: Node, trees: Sequence[exp.Expr], names: Sequence[str], optional: bool, first: int
    ) -> tuple[Node, tuple[NamedColumn, ...]]:
        """Return ``node`` with ``trees`` as columns: those from ``first`` on, or computed behind them."""
        translator = Translator(node.schema, self.context)
        outputs: list[Expression] = list(references(node))
        columns = list(node.schema.columns)
        named = []
        for name, expression in zip(names, map(translator.expression, trees), strict=True):
            plain = isinstance(expression, ColumnRef) and expression.index >= first
            if isinstance(expression, ColumnRef) and plain and (expression.nullable or not optional):
                named.append(NamedColumn(None, name, expression.index))
                continue
            named.append(NamedColumn(None, name, len(columns)))
            outputs.append(expression)
            columns.append(Column(name, expression.type, expression.nullable or optional))
        if len(outputs) > len(node.schema):
            node = Project(node, tuple(outputs), Schema(tuple(columns)), node.key)
        return node, tuple(named)

    def _restricted(
        self, source: Source, node: Node, trees: Sequence[exp.Expr], names: Sequence[str], lateral: LateralQuery
    ) -> Made:
        """Show ``trees`` over ``node`` beside the columns of ``source``, and apply ON where it only restricts."""
        node, columns = self._shown(node, trees, names, lateral.optional, len(source.node.schema))
        columns = aliased(columns, lateral.alias, self.context, lateral.query)
        joined = Source(node, (*source.columns, *columns))
        return Source(
            filtered_rows(joined, lateral.conditions, "ON", self.context, self.outer).node, source.columns
        ), columns


def lateral_query(item: exp.Expr) -> exp.Expr | None:
    """Return the subquery that an item of FROM is, if it is LATERAL."""
    inner = item.this if isinstance(item, exp.Lateral) else None
    return inner if isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Query) else None


def _is_list(query: exp.Expr) -> bool:
    """Return whether a query only computes a row of expressions."""
    if not isinstance(query, exp.Select) or any(query.args.get(clause) for clause in _OF_ROWS):
        return False
    return query.find(exp.Window) is None and not any(map(has_aggregate, query.expressions))


def _without_parentheses(query: exp.Expr) -> exp.Expr:
    while isinstance(query, exp.Subquery) and [name for name, value in query.args.items() if value] == ["this"]:
        query = query.this
    return query


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])


def _in_parentheses(tree: exp.Expr) -> exp.Expr:
    return exp.Paren(this=tree)
