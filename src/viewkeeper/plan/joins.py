"""The FROM clause: inner joins put in an order in which each one has equalities to work with.

All conditions of ON, USING and WHERE are translated over *global* positions, the columns of all inputs side by side in
FROM order. Then the inputs are joined one by one, left-deep, in FROM order; an input that no equality connects yet
waits for a later one to connect it. What an equality of plain columns or of safe expressions connects becomes a join
key; an expression that can raise becomes one only where nothing else connects the sides, since keys are computed
below the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, columns_of, is_portable, shift_columns
from viewkeeper.plan.binding import bind, bound_column, conjuncts
from viewkeeper.plan.context import Context
from viewkeeper.plan.keys import all_of
from viewkeeper.plan.nodes import Filter, Join, Node, Project
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema


@dataclass(frozen=True)
class Condition:
    """One condition between the inputs, over global positions.

    Args:
        tree: its bound tree.
        expression: its typed expression.
        home: the input at whose join it was written; None for WHERE.
    """

    tree: exp.Expr
    expression: Expression
    home: int | None


@dataclass(frozen=True)
class Equality:
    """A condition that can be a join key: ``left`` = ``right``, of one type."""

    condition: Condition
    left: Expression
    right: Expression


class FromClause:
    """Collects inputs and conditions, then joins them.

    Args:
        context: the statement.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.inputs: list[Source] = []
        self.offsets: list[int] = []
        self.columns: list[NamedColumn] = []
        self.conditions: list[Condition] = []
        self.origins: list[exp.Expr] = []

    @property
    def schema(self) -> Schema:
        """The columns of all inputs side by side."""
        return Schema(tuple(column for source in self.inputs for column in source.node.schema.columns))

    def add(self, source: Source, origin: exp.Expr) -> None:
        """Add an input whose columns all stay visible."""
        offset = len(self.schema)
        self.inputs.append(source)
        self.offsets.append(offset)
        self.origins.append(origin)
        self.columns += [replace(column, position=column.position + offset) for column in source.columns]

    def add_joined(self, source: Source, join: exp.Join) -> None:
        """Add the right side of an inner join with its ON, USING or NATURAL.

        Raises:
            SqlError: names that are unknown, ambiguous or used twice.
        """
        left_columns = list(self.columns)
        first = len(self.columns)
        self.add(source, join)
        using = [identifier.name for identifier in join.args.get("using") or ()]
        if str(join.args.get("method") or "").upper() == "NATURAL":
            names = {column.name.lower() for column in self.columns[first:] if not column.merged}
            using = [column.name for column in left_columns if not column.merged and column.name.lower() in names]
        if using:
            self._merge(using, left_columns, first, join)
        on = join.args.get("on")
        if on is not None:
            self._add_conditions(bind(on, self.scope(), aggregates="ON"), len(self.inputs) - 1)

    def add_where(self, where: exp.Expr) -> None:
        """Add the conditions of WHERE, after all inputs."""
        select = where.find_ancestor(exp.Select)
        later = {item.alias.lower() for item in select.expressions if item.alias} if select is not None else set()
        scope = Scope(self.columns, self.schema, self.context, later)
        self._add_conditions(bind(where, scope, aggregates="WHERE"), None)

    def scope(self, columns: Sequence[NamedColumn] | None = None) -> Scope:
        """Return the scope of ``columns`` (all by default) over global positions."""
        return Scope(self.columns if columns is None else columns, self.schema, self.context)

    def joined(self) -> Source:
        """Join all inputs and filter by what remains of WHERE.

        Raises:
            UnsupportedSql: ``CROSS_JOIN_NOT_YET``, ``NON_EQUI_JOIN_NOT_YET``.
        """
        return _Assembly(self).source()

    def _merge(self, using: list[str], left_columns: list[NamedColumn], first: int, join: exp.Join) -> None:
        left_scope, right_scope = self.scope(left_columns), self.scope(self.columns[first:])
        merged: list[NamedColumn] = []
        for name in using:
            pair = []
            for scope in (left_scope, right_scope):
                node = exp.Column(this=exp.to_identifier(name))
                node.parent = join
                found = scope.find(node)
                if found is None:
                    raise scope.unresolved(node)
                pair.append(found[0])
            left, right = pair
            merged += [left, self._hidden(right)]
            trees = [bound_column(self.scope().reference(column.position)) for column in pair]
            condition = exp.EQ(this=trees[0], expression=trees[1])
            condition.parent = join
            self._add_conditions(condition, len(self.inputs) - 1)
        # Spark shows the columns of USING first.
        self.columns = [*merged, *(column for column in self.columns if column not in merged)]

    def _hidden(self, column: NamedColumn) -> NamedColumn:
        hidden = replace(column, merged=True)
        self.columns[self.columns.index(column)] = hidden
        return hidden

    def _add_conditions(self, tree: exp.Expr, home: int | None) -> None:
        translator = Translator(self.schema, self.context)
        for part in conjuncts(tree):
            expression = translator.condition(part, "WHERE" if home is None else "ON")
            self.conditions.append(Condition(part, expression, home))


class _Assembly:
    """Joins the inputs of a FROM clause; ``position`` maps global positions to those of ``node``."""

    def __init__(self, clause: FromClause) -> None:
        self.clause = clause
        self.context = clause.context
        self.translator = Translator(clause.schema, clause.context)
        self.pending = list(clause.conditions)
        self.node: Node = clause.inputs[0].node
        self.position = {i: i for i in range(len(self.node.schema))}
        self.placed = {0}
        self._owner = [i for i, source in enumerate(clause.inputs) for _ in source.node.schema.columns]

    def source(self) -> Source:
        waiting = list(range(1, len(self.clause.inputs)))
        while waiting:
            chosen, keys = self._choose(waiting)
            waiting.remove(chosen)
            self._join(chosen, keys)
        columns = tuple(replace(c, position=self.position[c.position]) for c in self.clause.columns)
        return Source(self._filtered(replace(self.node, key=self._key())), columns)

    def _choose(self, waiting: list[int]) -> tuple[int, list[Equality]]:
        for safe in (True, False):
            for candidate in waiting:
                keys = self._keys(candidate, safe)
                if keys:
                    return candidate, keys
        connects = any(
            len(self._inputs(condition.expression)) > 1 and waiting[0] in self._inputs(condition.expression)
            for condition in self.pending
        )
        code = "NON_EQUI_JOIN_NOT_YET" if connects else "CROSS_JOIN_NOT_YET"
        raise self.context.refusal(code, self.clause.origins[waiting[0]])

    def _keys(self, candidate: int, safe: bool) -> list[Equality]:
        found = []
        for condition in self.pending:
            equality = self._equality(condition)
            if equality is None or (can_raise(equality.left) or can_raise(equality.right)) == safe:
                continue
            sides = self._inputs(equality.left), self._inputs(equality.right)
            if sides[1] == {candidate} and sides[0] <= self.placed:
                found.append(equality)
            elif sides[0] == {candidate} and sides[1] <= self.placed:
                found.append(Equality(condition, equality.right, equality.left))
        return found

    def _equality(self, condition: Condition) -> Equality | None:
        """Return the sides of ``condition`` where it is an equality of two values of one type."""
        expression = condition.expression
        if isinstance(expression, Call) and expression.function == "eq":
            left, right = expression.arguments
        elif isinstance(condition.tree, exp.EQ) and not is_portable(expression):
            left = self.translator.expression(condition.tree.this)
            right = self.translator.expression(condition.tree.expression)
        else:
            return None
        if left.type != right.type or not columns_of(left) or not columns_of(right):
            return None
        return Equality(condition, left, right)

    def _join(self, chosen: int, keys: list[Equality]) -> None:
        right_node = self.clause.inputs[chosen].node
        offset = self.clause.offsets[chosen]
        local = {offset + i: i for i in range(len(right_node.schema))}
        left, left_keys = _with_keys(self.node, [shift_columns(key.left, self.position) for key in keys])
        right, right_keys = _with_keys(right_node, [shift_columns(key.right, local) for key in keys])
        pairs = list(dict.fromkeys(zip(left_keys, right_keys, strict=True)))
        self.position |= {i: len(left.schema) + position for i, position in local.items()}
        self.placed.add(chosen)
        used = {id(key.condition) for key in keys}
        self.pending = [condition for condition in self.pending if id(condition) not in used]
        here = [c for c in self.pending if c.home is not None and self._inputs(c.expression) | {c.home} <= self.placed]
        self.pending = [condition for condition in self.pending if condition not in here]
        self.node = Join(
            left,
            right,
            tuple(pair[0] for pair in pairs),
            tuple(pair[1] for pair in pairs),
            self._all(here, "ON"),
            Schema(left.schema.columns + right.schema.columns),
            self._key(),
        )

    def _key(self) -> tuple[int, ...] | None:
        """Return the key of what is joined so far: the keys of its inputs together."""
        key: list[int] = []
        for number, (source, offset) in enumerate(zip(self.clause.inputs, self.clause.offsets, strict=True)):
            if number not in self.placed:
                continue
            if source.node.key is None:
                return None
            key += [self.position[offset + position] for position in source.node.key]
        return tuple(key)

    def _filtered(self, node: Node) -> Node:
        condition = self._all(self.pending, "WHERE")
        return node if condition is None else Filter(node, condition, node.schema, node.key)

    def _all(self, conditions: Sequence[Condition], where: str) -> Expression | None:
        kept = [c for c in conditions if c.expression != Literal(True, types.BOOLEAN)]
        if not kept:
            return None
        whole = all_of([condition.expression for condition in kept])
        if len(kept) > 1 and not all(is_portable(condition.expression) for condition in kept):
            trees = [exp.Paren(this=condition.tree.copy()) for condition in kept]
            whole = self.translator.condition(exp.and_(*trees, copy=False), where)
        return None if whole is None else shift_columns(whole, self.position)

    def _inputs(self, expression: Expression) -> set[int]:
        return {self._owner[position] for position in columns_of(expression)}


def _with_keys(node: Node, keys: Sequence[Expression]) -> tuple[Node, list[int]]:
    """Return ``node`` with the key expressions that are not plain columns behind its own, and all keys' positions."""
    added: list[Expression] = []
    positions = []
    for key in keys:
        if isinstance(key, ColumnRef):
            positions.append(key.index)
            continue
        if key not in added:
            added.append(key)
        positions.append(len(node.schema) + added.index(key))
    if not added:
        return node, positions
    own = tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(node.schema.columns))
    columns = tuple(Column(f"__join_{i}", key.type, key.nullable) for i, key in enumerate(added))
    return Project(node, (*own, *added), Schema(node.schema.columns + columns), node.key), positions
