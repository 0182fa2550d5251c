"""Names in HAVING, as subqueries in it see them: what is selected, and aggregates over the columns of the query around.

    SELECT k, SUM(v) AS s FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.x > MAX(t.v) AND u.y < s)

In the WHERE and ON of the subquery ``MAX(t.v)`` and ``s`` are columns of the groups, as ``k`` is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from viewkeeper.expressions.tree import Expression
from viewkeeper.plan.binding import bind, normalized
from viewkeeper.plan.scopes import Scope
from viewkeeper.zset.schema import Column, Schema


class HavingScope(Scope):
    """What names mean in HAVING.

    Args:
        scope: what they mean in the query.
        selected: the bound SELECT list by names in lower case.
        over_groups: the typed expression over the groups of a tree that is bound to the query's columns.
    """

    def __init__(
        self, scope: Scope, selected: Mapping[str, exp.Expr], over_groups: Callable[[exp.Expr], Expression]
    ) -> None:
        super().__init__(scope.columns, scope.schema, scope.context, scope.outer, scope.subqueries)
        self.time_window = scope.time_window
        self._selected = selected
        self._over_groups = over_groups

    def output(self, node: exp.Column) -> int | None:
        """Return the position of what the SELECT list calls so, None where nothing is."""
        tree = self._selected.get(node.name.lower()) if len(node.parts) == 1 else None
        return None if tree is None else self._position(tree)

    def aggregate(self, call: exp.Expr) -> int | None:
        """Return the position of an aggregate over the columns of the query."""
        return self._position(bind(call, Scope(self.columns, self.schema, self.context)))

    def _position(self, tree: exp.Expr) -> int:
        plain = normalized(tree)
        for position, known in self.computed.items():
            if normalized(known) == plain:
                return position
        expression = self._over_groups(tree)
        column = Column(f"computed_{len(self.computed)}", expression.type, expression.nullable)
        self.computed[len(self.schema)] = tree
        self.schema = Schema((*self.schema.columns, column))
        return len(self.schema) - 1
