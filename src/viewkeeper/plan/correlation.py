"""Names of the query around a subquery: what they mean inside it, and what becomes of the conditions that use them.

A subquery is planned by itself, and joined with the query around it (``subquery_joins.py``). What connects the two is
found in one of two ways:

*Pulled up*: conditions of its WHERE that name outer columns are left out of it and become conditions of the join. An
equality between an inner and an outer side becomes a join key; the inner side is carried along as a column, which an
aggregate groups by.

*By domain*: where names of outer columns stand anywhere else, the distinct values of those columns in the outer query,
the domain, become an input of its FROM clause; so the names are its own, and the domain's columns are what is carried
along and joined on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, columns_of
from viewkeeper.plan.arguments import with_fields
from viewkeeper.plan.binding import aggregate_name, bound_column
from viewkeeper.plan.context import Context
from viewkeeper.plan.nodes import Node, Relation, Scan, inputs_of, with_inputs
from viewkeeper.plan.scopes import CARRIED, NamedColumn, Scope, Source
from viewkeeper.zset.schema import Column, Schema


class NeedsDomain(Exception):
    """Outer columns are named where conditions cannot be pulled up from: the subquery is planned again, by domain."""

    def __init__(self, outer: Outer) -> None:
        super().__init__("planned again")
        self.outer = outer


@dataclass
class Outer:
    """The query around a subquery.

    Args:
        scope: what its names mean.
        positions: the columns of it that the subquery names, in order of first use.
        domain: whether they come into the subquery by a domain.
        closed: where the subquery cannot name them at all, why: "in a UNION".
    """

    scope: Scope
    positions: list[int] = field(default_factory=list)
    domain: bool = False
    closed: str = ""

    @property
    def depth(self) -> int:
        """How many queries are around."""
        above = self.scope.outer
        return 1 + (above.depth if isinstance(above, Outer) else 0)

    def within(self, reason: str) -> Outer:
        """Return it for a part of the subquery in which its names are refused."""
        return Outer(self.scope, closed=reason)

    def bound(self, node: exp.Column, inner: Scope, pulling: bool) -> exp.Expr | None:
        """Return the bound tree of an outer column, None where ``node`` is none.

        Pulled up, outer columns stand behind those of ``inner``, in the order of ``positions``.

        Raises:
            NeedsDomain: if the column is named where it cannot be pulled up from.
            UnsupportedSql: ``CORRELATION_NOT_YET``.
        """
        found = self.located(node)
        if found is None:
            return None
        position, fields = found
        return with_fields(self._inside(position, node, inner, pulling), fields)

    def aggregate(self, call: exp.Expr, inner: Scope, pulling: bool) -> exp.Expr | None:
        """Return the bound tree of an aggregate over outer columns alone, where they are grouped: in HAVING.

        Raises:
            SqlError: ``UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY`` for one over columns of both queries.
            NeedsDomain: if it stands where it cannot be pulled up from.
            UnsupportedSql: ``CORRELATION_NOT_YET``.
        """
        columns = _columns(call)
        if any(inner.find(node) is not None for node in columns):
            outer = next((n for n in columns if inner.find(n) is None and self.qualified(n) is not None), None)
            if outer is None:
                return None
            raise mixed_aggregate(call, outer, inner.context)
        position = self.grouped(call)
        return None if position is None else self._inside(position, call, inner, pulling)

    def grouped(self, call: exp.Expr) -> int | None:
        """Return the position of an aggregate of the outer query, or through it of one around it, None for others."""
        columns = _columns(call)
        own = [node for node in columns if self.scope.find(node) is not None]
        if not columns or call.find(exp.Query) is not None:
            return None
        if own:
            return self.scope.aggregate(call) if len(own) == len(columns) else None
        above = self.scope.outer
        position = above.grouped(call) if isinstance(above, Outer) else None
        return None if position is None else self._from_above(position, call)

    def _inside(self, position: int, node: exp.Expr, inner: Scope, pulling: bool) -> exp.Expr:
        if self.closed:
            raise inner.context.refusal("CORRELATION_NOT_YET", node, f"a column of the outer query {self.closed}")
        if self.domain:
            self._check_comparable(position, node)
            return bound_column(inner.reference(self.own(position, inner)), node)
        if not pulling:
            raise self.demanded(position)
        if position not in self.positions:
            self.positions.append(position)
        kind = self.scope.schema.columns[position]
        index = len(inner.schema) + self.positions.index(position)
        return bound_column(ColumnRef(index, kind.type, kind.nullable), node)

    def qualified(self, node: exp.Column) -> str | None:
        """Return the qualified name of an outer column, None where ``node`` is none."""
        found = self.scope.find(node)
        if found is None:
            return self.scope.outer.qualified(node) if self.scope.outer is not None else None
        return ".".join(part for part in (found[0].qualifier, found[0].name, *found[1]) if part)

    def located(self, node: exp.Column) -> tuple[int, tuple[str, ...]] | None:
        """Return the position of ``node`` in the outer query, or through it in those around it, and STRUCT fields."""
        found = self.scope.find(node)
        if found is not None:
            return found[0].position, found[1]
        selected = self.scope.output(node)
        if selected is not None:
            return selected, ()
        above = self.scope.outer
        if not isinstance(above, Outer):
            return None
        located = above.located(node)
        if located is None:
            return None
        return self._from_above(located[0], node), located[1]

    def positions_in(self, tree: exp.Expr, inner: Scope | None = None, into_queries: bool = False) -> Iterator[int]:
        """Yield the positions of the outer columns and aggregates that ``tree`` names.

        Args:
            tree: an expression or a query, as parsed.
            inner: what names mean in it first; None where that is not known.
            into_queries: whether the subqueries in it count.
        """
        inside: set[int] = set()
        for node in tree.walk(prune=lambda n: isinstance(n, exp.Query) and not into_queries):
            if id(node) in inside:
                continue
            position = None
            if aggregate_name(node) is not None:
                position = self.grouped(node)
                inside |= set() if position is None else {id(part) for part in node.walk()}
            elif isinstance(node, exp.Column) and not node.is_star and (inner is None or inner.find(node) is None):
                located = self.located(node)
                position = None if located is None else located[0]
            if position is not None:
                yield position

    def _from_above(self, position: int, node: exp.Expr) -> int:
        """Return where a column of the query around the outer one stands in this."""
        above = self.scope.outer
        assert isinstance(above, Outer)
        if above.closed:
            raise self.scope.context.refusal("CORRELATION_NOT_YET", node, f"a column of the outer query {above.closed}")
        if not above.domain:
            raise above.demanded(position)
        above._check_comparable(position, node)
        return above.own(position, self.scope)

    def _check_comparable(self, position: int, node: exp.Expr) -> None:
        """Refuse a column whose values a domain cannot tell apart."""
        column = self.scope.schema.columns[position]
        if column.type.contains_map:
            message = (
                f"'{node.sql(dialect='spark')}' of the outer query is {str(column.type).upper()}, and a MAP has no "
                "order by which a subquery could be joined: read what it needs of it in a subquery in FROM, outside."
            )
            raise self.scope.context.error("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", message, node)

    def own(self, position: int, inner: Scope) -> int:
        """Return where the domain's column for ``position`` stands in ``inner``."""
        for column in inner.columns:
            if column.qualifier == CARRIED and column.name == str(position):
                return column.position
        raise self.demanded(position)

    def demanded(self, *positions: int) -> NeedsDomain:
        """Ask for a domain with these columns."""
        if not self.domain:
            self.domain, self.positions = True, []
        self.positions += [position for position in positions if position not in self.positions]
        return NeedsDomain(self)

    def demand_all(self, tree: exp.Expr) -> None:
        """Ask for all outer columns that ``tree`` may name: of a query that reads nothing else.

        Raises:
            NeedsDomain: if there are any, and no domain.
        """
        found = list(self.positions_in(tree, into_queries=True))
        if found and not self.domain and not self.closed:
            raise self.demanded(*found)

    def columns(self) -> tuple[Column, ...]:
        """Return the outer columns that the subquery names, in order."""
        return tuple(self.scope.schema.columns[position] for position in self.positions)

    def domain_source(self) -> Source:
        """Return what stands for the domain until the outer query's node is known: see ``with_domain``."""
        columns = (Column(f"outer_{i}", column.type, column.nullable) for i, column in enumerate(self.columns()))
        schema = Schema(tuple(columns))
        key = tuple(range(len(schema)))
        node = Scan(Relation(-self.depth, "domain", "table", schema, key), key, schema, key)
        named = (NamedColumn(CARRIED, str(position), i, True) for i, position in enumerate(self.positions))
        return Source(node, tuple(named))


@dataclass(frozen=True)
class Key:
    """An equality of a subquery with the query around it.

    Args:
        inner: position in the subquery's node.
        outer: what it equals, over the outer columns by their number in ``Block.outer``.
        null_safe: whether NULL equals NULL.
    """

    inner: int
    outer: Expression
    null_safe: bool


@dataclass(frozen=True)
class Block:
    """A planned subquery.

    Args:
        node: its rows; of a global aggregate the aggregate, which is empty for keys that no row has.
        values: its columns, bound trees over ``node``; of one that LATERAL joins, over the outer columns behind it too.
        outer: positions of the outer columns that it names.
        keys: the equalities that connect it with the query around it.
        residual: further conditions, over the columns of ``node``, then the outer ones.
        names: what its columns are called.
        single: whether it is one row for each outer row: a global aggregate.
        having: of a global aggregate, the condition under which that row is there.
        stand_in: the scan that stands for the domain.
    """

    node: Node
    values: tuple[exp.Expr, ...]
    outer: tuple[int, ...] = ()
    keys: tuple[Key, ...] = ()
    residual: tuple[Expression, ...] = ()
    names: tuple[str, ...] = ()
    single: bool = False
    having: exp.Expr | None = None
    stand_in: Node | None = None

    def with_domain(self, domain: Node) -> Node:
        """Return the node over the domain, now that it is known."""
        return self.node if self.stand_in is None else _replaced(self.node, self.stand_in, domain)


def mixed_aggregate(call: exp.Expr, column: exp.Column, context: Context) -> SqlError:
    """Return the error of an aggregate over columns of a subquery and ``column`` of the query around it."""
    message = (
        f"{aggregate_name(call)}() aggregates columns of this query and '{column.sql(dialect='spark')}' of the outer "
        "one: compute what it aggregates in a subquery in FROM, or outside with what is aggregated."
    )
    return context.error("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", message, call)


def names_outer(tree: exp.Expr, scope: Scope) -> bool:
    """Return whether ``tree`` itself, not a subquery in it, names a column of the query around."""
    outer = scope.outer
    if not isinstance(outer, Outer) or outer.domain:
        return False
    return any(True for _ in outer.positions_in(tree, scope))


def _columns(call: exp.Expr) -> list[exp.Column]:
    return [node for node in call.find_all(exp.Column) if not node.is_star]


def equality_sides(condition: Expression, width: int) -> tuple[Expression, Expression, bool] | None:
    """Return the inner and the outer side of an equality between them, and whether NULL equals NULL in it.

    Args:
        condition: over ``width`` inner columns, then the outer ones.
        width: the number of inner columns.
    """
    if not isinstance(condition, Call) or condition.function not in ("eq", "eq_null_safe"):
        return None
    first, second = condition.arguments
    if first.type != second.type or not columns_of(first) or not columns_of(second):
        return None
    null_safe = condition.function == "eq_null_safe"
    if max(columns_of(first)) < width <= min(columns_of(second)):
        return first, second, null_safe
    if max(columns_of(second)) < width <= min(columns_of(first)):
        return second, first, null_safe
    return None


def sorted_out(
    conditions: Sequence[Expression], width: int
) -> tuple[list[tuple[Expression, Expression, bool]], list[Expression]]:
    """Return the equalities among ``conditions`` as in ``equality_sides``, and the others."""
    keys, residual = [], []
    for condition in conditions:
        sides = equality_sides(condition, width)
        if sides is None:
            residual.append(condition)
        else:
            keys.append(sides)
    return keys, residual


def _replaced(node: Node, old: Node, new: Node) -> Node:
    if isinstance(node, Scan):
        return new if isinstance(old, Scan) and node.relation == old.relation else node
    return with_inputs(node, [_replaced(child, old, new) for child in inputs_of(node)])
