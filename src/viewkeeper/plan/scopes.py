"""Names → positions: what a query block sees of the relations in its FROM clause."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef
from viewkeeper.plan.catalog import suggestion
from viewkeeper.plan.context import Context
from viewkeeper.plan.nodes import Node
from viewkeeper.zset.schema import Schema, SqlType

CARRIED = "\0carried"
"""Qualifier of columns that tie a subquery to the query around it; SQL cannot write it."""

CALLED = "time_window"
"""Mark in ``meta`` of calls of ``window()`` whose column is made, and of the columns that stand for them."""


@dataclass(frozen=True)
class NamedColumn:
    """A column that SQL can name.

    Args:
        qualifier: the alias of its relation; None for the result of a query block.
        name: its name.
        position: its position in the node.
        merged: whether USING or NATURAL has merged it into a column of another relation: then only its qualified
            name finds it.
    """

    qualifier: str | None
    name: str
    position: int
    merged: bool = False


@dataclass(frozen=True)
class Source:
    """A node and the columns of it that SQL can name; the node's other columns are hidden keys."""

    node: Node
    columns: tuple[NamedColumn, ...]

    def aliased(self, alias: str) -> Source:
        """Return the source with all its columns under the qualifier ``alias``."""
        return replace(self, columns=tuple(replace(column, qualifier=alias, merged=False) for column in self.columns))


class OuterNames(Protocol):
    """The names of the query around a subquery."""

    def bound(self, node: exp.Column, inner: Scope, pulling: bool) -> exp.Expr | None:
        """Return the bound tree of an outer column in the scope ``inner``, None where ``node`` is none."""

    def qualified(self, node: exp.Column) -> str | None:
        """Return the qualified name of an outer column, None where ``node`` is none."""

    def aggregate(self, call: exp.Expr, inner: Scope, pulling: bool) -> exp.Expr | None:
        """Return the bound tree of an aggregate of the query around in the scope ``inner``, None where it is none."""


class Subqueries(Protocol):
    """What binds subqueries."""

    def bound(self, node: exp.Expr, scope: Scope, bind: Callable[[exp.Expr], exp.Expr]) -> exp.Expr | None:
        """Return the bound tree that stands for the subquery ``node``, None where it is none."""


class Scope:
    """Finds columns by name, as Spark does: without regard to case, qualified or not, ambiguity being an error.

    Args:
        columns: the columns that can be named.
        schema: the schema that their positions refer to.
        context: for errors.
        outer: in a subquery, the names of the query around it.
        subqueries: what binds subqueries; None where there can be none.
        pulling: whether the expression is a condition that can be pulled up out of a subquery.
        later: lower-case names that exist only after the clause, for errors: aliases of the SELECT list.
    """

    def __init__(
        self,
        columns: Sequence[NamedColumn],
        schema: Schema,
        context: Context,
        outer: OuterNames | None = None,
        subqueries: Subqueries | None = None,
        pulling: bool = False,
        later: Collection[str] = (),
    ) -> None:
        self.columns = tuple(columns)
        self.schema = schema
        self.context = context
        self.outer = outer
        self.subqueries = subqueries
        self.pulling = pulling
        self.later = later
        # Behind the columns, what is computed of them once they are grouped: see ``HavingScope``.
        self.computed: dict[int, exp.Expr] = {}
        # The column that ``window()`` makes, which no star shows.
        self.time_window: NamedColumn | None = None

    def reference(self, position: int) -> ColumnRef:
        """Return the expression for the column at ``position``."""
        column = self.schema.columns[position]
        return ColumnRef(position, column.type, column.nullable)

    def output(self, node: exp.Column) -> int | None:
        """Return the position of the selected value that subqueries know by the name ``node``; outside HAVING none."""
        return None

    def aggregate(self, call: exp.Expr) -> int | None:
        """Return the position of an aggregate that subqueries ask for; outside HAVING none."""
        return None

    def find(self, node: exp.Column) -> tuple[NamedColumn, tuple[str, ...]] | None:
        """Return the column that ``node`` names and the STRUCT fields that follow; None where there is none.

        Raises:
            SqlError: ``AMBIGUOUS_REFERENCE``.
        """
        if self.time_window is not None and node.meta.get(CALLED):
            return self.time_window, ()
        parts = [part.name for part in node.parts]
        if len(parts) > 1:
            own = [column for column in self.columns if column.qualifier and _same(column.qualifier, parts[0])]
            qualified = [column for column in own if _same(column.name, parts[1])]
            if qualified:
                return self._only(qualified, node), tuple(parts[2:])
        plain = [c for c in self.columns if not c.merged and _same(c.name, parts[0])]
        if plain and (len(parts) == 1 or _has_fields(self.schema.columns[plain[0].position].type)):
            return self._only(plain, node), tuple(parts[1:])
        if self.time_window is not None and _same(self.time_window.name, parts[0]):
            return self.time_window, tuple(parts[1:])
        return None

    def displayed(self, tree: exp.Expr) -> exp.Expr:
        """Return an expression as Spark names its column: fields as ``s.a``, outer columns as ``outer(t.a)``."""
        outer = self.outer
        if isinstance(tree, exp.Column):
            return tree

        def replacement(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.is_star or node.find_ancestor(exp.Query) is not None:
                return node
            found = self.find(node)
            if found is not None:
                parts = [part.name for part in node.parts]
                return exp.column(".".join(parts[-len(found[1]) - 1 :]), quoted=True) if found[1] else node
            name = outer.qualified(node) if outer is not None else None
            return node if name is None else exp.Anonymous(this="outer", expressions=[exp.Var(this=name)])

        return tree.transform(replacement)

    def unresolved(self, node: exp.Column, more: Sequence[str] = ()) -> Exception:
        """Return the error for a name that nothing here has; ``more`` are further names to suggest."""
        name = ".".join(part.name for part in node.parts)
        qualified = len(node.parts) > 1
        named = [column for column in self.columns if column.qualifier != CARRIED]
        known = [f"{c.qualifier}.{c.name}" if qualified and c.qualifier else c.name for c in named]
        known = [name for name in known if not name.startswith("__")]
        hint = self._of_later(name) or suggestion(name, [*known, *more])
        if hint.startswith("There are") and not qualified:
            hint += f" A text goes in single quotes: '{name}'."
        message = f"There is no column '{name}'. {hint}"
        return self.context.error("UNRESOLVED_COLUMN", message, node)

    def _of_later(self, name: str) -> str:
        if name.lower() not in self.later:
            return ""
        return (
            f"The SELECT list, which has an alias '{name}', is computed after this clause: write the expression here "
            "again, or put the SELECT into a subquery in FROM."
        )

    def has_table(self, name: str) -> bool:
        """Return whether a relation is called ``name``."""
        return any(c.qualifier is not None and _same(c.qualifier, name) for c in self.columns)

    def expand_star(self, node: exp.Expr, qualifier: str | None) -> list[NamedColumn]:
        """Return the columns of ``*`` or ``qualifier.*``.

        Raises:
            SqlError: ``UNRESOLVED_QUALIFIER`` where no relation is called so.
        """
        if qualifier is None:
            return [column for column in self.columns if not column.merged]
        found = [c for c in self.columns if c.qualifier is not None and _same(c.qualifier, qualifier)]
        if not found:
            known = dict.fromkeys(c.qualifier for c in self.columns if c.qualifier)
            message = f"There is no table '{qualifier}' in FROM. {suggestion(qualifier, [str(k) for k in known])}"
            raise self.context.error("UNRESOLVED_QUALIFIER", message, node)
        return found

    def _only(self, found: list[NamedColumn], node: exp.Column) -> NamedColumn:
        if len({column.position for column in found}) > 1:
            name = ".".join(part.name for part in node.parts)
            owners = [f"{c.qualifier}.{c.name}" if c.qualifier else c.name for c in found]
            message = f"'{name}' may be {' or '.join(map(repr, owners))}: qualify it, as {owners[0]}."
            raise self.context.error("AMBIGUOUS_REFERENCE", message, node)
        return found[0]


def _has_fields(sql_type: SqlType) -> bool:
    """Return whether a dot and a name can follow: of an ARRAY it takes the field of each element, of a MAP a value."""
    of_elements = sql_type.name == "ARRAY" and sql_type.children[0].name == "STRUCT"
    return sql_type.name in ("STRUCT", "MAP") or of_elements


def _same(left: str, right: str) -> bool:
    return left.lower() == right.lower()
