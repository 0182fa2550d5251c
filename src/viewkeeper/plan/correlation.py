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

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.expressions.tree import Call, ColumnRef, Expression, columns_of
from viewkeeper.plan.arguments import with_fields
from viewkeeper.plan.binding import bound_column
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
        if self.closed:
            raise inner.context.refusal("CORRELATION_NOT_YET", node, f"a column of the outer query {self.closed}")
        if self.domain:
            column = bound_column(inner.reference(self.own(position, inner)), node)
        elif not pulling:
            raise self.demanded(position)
        else:
            if position not in self.positions:
                self.positions.append(position)
            kind = self.scope.schema.columns[position]
            index = len(inner.schema) + self.positions.index(position)
            column = bound_column(ColumnRef(index, kind.type, kind.nullable), node)
        return with_fields(column, fields)

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
        above = self.scope.outer
        if not isinstance(above, Outer):
            return None
        located = above.located(node)
        if located is None:
            return None
        if above.closed:
            raise self.scope.context.refusal("CORRELATION_NOT_YET", node, f"a column of the outer query {above.closed}")
        if not above.domain:
            raise above.demanded(located[0])
        return above.own(located[0], self.scope), located[1]

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
        columns = (column for column in tree.find_all(exp.Column) if not column.is_star)
        found = [located[0] for column in columns if (located := self.located(column)) is not None]
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


def names_outer(tree: exp.Expr, scope: Scope) -> bool:
    """Return whether ``tree`` itself, not a subquery in it, names a column of the query around."""
    outer = scope.outer
    if not isinstance(outer, Outer) or outer.domain:
        return False
    columns = (n for n in tree.walk(prune=lambda n: isinstance(n, exp.Query)) if isinstance(n, exp.Column))
    return any(scope.find(n) is None and outer.located(n) is not None for n in columns if not n.is_star)


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
