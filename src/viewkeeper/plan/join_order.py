"""Joins the inputs of a FROM clause, left-deep, each inner join with equalities to work with where there are any.

Where all joins are inner ones, inputs that give each row of another one partner at most are joined to that one first
(``join_arms.py``). Inner joins are put in an order: the inputs are joined one by one in FROM order, and one that no
equality connects yet waits for a later one to connect it; in the end it is joined without keys. An outer, semi or anti
join keeps its place behind the inputs before it, and so parts the inner ones into *runs*. A condition that stands
behind such a join may be a join key before it where it cannot raise: all joins here keep or drop whole left rows.

What an equality of plain columns or of safe expressions connects becomes a join key; an expression that can raise
becomes one only where nothing else connects the sides, since keys are computed below the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, columns_of, is_portable, shift_columns
from viewkeeper.plan.context import Context
from viewkeeper.plan.join_arms import Part, is_filtered, key_of, with_arms
from viewkeeper.plan.keys import all_of, hidden_key_name
from viewkeeper.plan.nodes import Filter, Join, Node, Project
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema

_REJECT_NULL = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "is_not_null"))


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
    """A condition that can be a join key: ``left`` = ``right``, of one type; or ``left`` <=> ``right``."""

    condition: Condition
    left: Expression
    right: Expression
    null_safe: bool


class Assembly:
    """Joins the inputs of a FROM clause; ``position`` maps global positions to those of ``node``.

    Args:
        inputs: the nodes to join.
        kinds: how each is joined to those before it; of the first one it means nothing.
        conditions: of ON and WHERE.
        schema: all columns side by side, as what follows sees them.
        context: the statement.
    """

    def __init__(
        self,
        inputs: Sequence[Node],
        kinds: Sequence[str],
        conditions: Sequence[Condition],
        schema: Schema,
        context: Context,
    ) -> None:
        self.translator = Translator(schema, context)
        self.schema = schema
        self.inputs = tuple(inputs)
        self.pending = list(conditions)
        self._owner = [i for i, node in enumerate(inputs) for _ in node.schema.columns]
        self._offsets = [self._owner.index(i) if i in self._owner else len(self._owner) for i in range(len(inputs))]
        self.kinds = [self._kind_given_later(i, kinds) for i in range(len(kinds))]
        self.parts = {i: self._part(i) for i in range(len(inputs))}
        # The part in which an input is joined.
        self._home = list(range(len(inputs)))
        if all(kind == "inner" for kind in self.kinds[1:]):
            self._join_arms()
        first = min(self.parts)
        self.node = self.parts[first].node
        self.position = dict(self.parts[first].position)
        self.placed = {first}
        # Inputs whose keys tell the joined rows apart, and columns that are needed beside them.
        self._keyed = set(self.parts[first].keys)
        self._marks: tuple[int, ...] = ()

    def joined(self) -> Node:
        """Join all inputs and filter by what remains of WHERE."""
        start = min(self.parts) + 1
        while start < len(self.inputs):
            stop = next((i for i in range(start, len(self.inputs)) if self.kinds[i] != "inner"), len(self.inputs))
            self._join_run([i for i in range(start, stop) if i in self.parts], stop)
            if stop < len(self.inputs):
                self._join_apart(stop)
            start = stop + 1
        may_be_null = {position for i, position in self.position.items() if self.schema.columns[i].nullable}
        columns = (replace(c, nullable=c.nullable or i in may_be_null) for i, c in enumerate(self.node.schema.columns))
        node = replace(self.node, schema=Schema(tuple(columns)), key=self._key()) if len(self.inputs) > 1 else self.node
        condition = self._all(self.pending, "WHERE", self.position)
        return node if condition is None else Filter(node, condition, node.schema, node.key)

    # ---- arms ----

    def _part(self, number: int) -> Part:
        node, offset = self.inputs[number], self._offsets[number]
        key = None if node.key is None else tuple(offset + position for position in node.key)
        position = {offset + i: i for i in range(len(node.schema))}
        return Part(node, position, {number: key}, is_filtered(node) or self._is_restricted(number))

    def _is_restricted(self, number: int) -> bool:
        return any({self._owner[p] for p in columns_of(c.expression)} == {number} for c in self.pending)

    def _join_arms(self) -> None:
        equalities = [e for e in map(self._equality, self.pending) if e is not None and not e.null_safe]
        plain = [
            (e, e.left.index, e.right.index)
            for e in equalities
            if isinstance(e.left, ColumnRef) and isinstance(e.right, ColumnRef)
        ]
        links = [(left, right) for _, left, right in plain if self._owner[left] != self._owner[right]]
        together = [frozenset(self._owner[p] for p in columns_of(e.condition.expression)) for e in equalities]
        self.parts = with_arms(self.parts, links, together)
        homes = {number: part for part, joined in self.parts.items() for number in joined.keys}
        self._home = [homes[number] for number in range(len(self.inputs))]
        inside = {
            id(e.condition)
            for e, left, right in plain
            if self._owner[left] != self._owner[right] and self._inputs(e.left) == self._inputs(e.right)
        }
        self.pending = [condition for condition in self.pending if id(condition) not in inside]

    # ---- runs of inner joins ----

    def _kind_given_later(self, number: int, kinds: Sequence[str]) -> str:
        """A left join is an inner one where a later condition drops the rows without a partner."""
        if kinds[number] != "left":
            return kinds[number]
        later = [c for c in self.pending if c.home is None or (c.home > number and kinds[c.home] in ("inner", "semi"))]
        return "inner" if any(self._rejects(condition.expression, number) for condition in later) else "left"

    def _rejects(self, expression: Expression, number: int) -> bool:
        if not isinstance(expression, Call) or expression.function not in _REJECT_NULL or can_raise(expression):
            return False
        columns = [a for a in expression.arguments if isinstance(a, ColumnRef)]
        return any(self._owner[column.index] == number for column in columns)

    def _join_run(self, waiting: list[int], stop: int) -> None:
        while waiting:
            chosen, keys = self._choose(waiting, stop)
            waiting.remove(chosen)
            used = {id(key.condition) for key in keys}
            self.pending = [condition for condition in self.pending if id(condition) not in used]
            placed = self.placed | {chosen}
            here = [c for c in self.pending if self._is_due(c, placed)]
            self.pending = [condition for condition in self.pending if condition not in here]
            self._join(chosen, keys, here)

    def _is_due(self, condition: Condition, placed: set[int]) -> bool:
        """Return whether a condition of ON can be judged when ``placed`` are joined."""
        written = condition.home is not None and self._home[condition.home] in placed
        return written and self._inputs(condition.expression) <= placed

    def _choose(self, waiting: list[int], stop: int) -> tuple[int, list[Equality]]:
        usable = [condition for condition in self.pending if self._usable(condition, stop)]
        for safe in (True, False):
            for candidate in waiting:
                keys = self._keys(candidate, usable, safe)
                if keys:
                    return candidate, keys
        connected = [c for c in waiting if any(self._connects(condition.expression, c) for condition in usable)]
        return (connected or waiting)[0], []

    def _connects(self, expression: Expression, candidate: int) -> bool:
        inputs = self._inputs(expression)
        return candidate in inputs and bool(inputs & self.placed)

    def _usable(self, condition: Condition, stop: int) -> bool:
        """Return whether a condition may be a key in the run that ends before the input ``stop``."""
        if condition.home is not None and self.kinds[condition.home] != "inner":
            return False
        written_here = stop == len(self.inputs) or (condition.home is not None and condition.home < stop)
        return written_here or not can_raise(condition.expression)

    # ---- keys ----

    def _keys(self, candidate: int, conditions: Sequence[Condition], safe: bool) -> list[Equality]:
        found = []
        for condition in conditions:
            equality = self._equality(condition)
            if equality is None or (can_raise(equality.left) or can_raise(equality.right)) == safe:
                continue
            sides = self._inputs(equality.left), self._inputs(equality.right)
            if sides[1] == {candidate} and sides[0] <= self.placed:
                found.append(equality)
            elif sides[0] == {candidate} and sides[1] <= self.placed:
                found.append(Equality(condition, equality.right, equality.left, equality.null_safe))
        return found

    def _equality(self, condition: Condition) -> Equality | None:
        """Return the sides of ``condition`` where it is an equality of two values of one type."""
        expression = condition.expression
        null_safe = isinstance(condition.tree, exp.NullSafeEQ)
        if isinstance(expression, Call) and expression.function in ("eq", "eq_null_safe"):
            left, right = expression.arguments
            null_safe = expression.function == "eq_null_safe"
        elif isinstance(condition.tree, (exp.EQ, exp.NullSafeEQ)) and not is_portable(expression):
            left = self.translator.expression(condition.tree.this)
            right = self.translator.expression(condition.tree.expression)
        else:
            return None
        if left.type != right.type or not columns_of(left) or not columns_of(right):
            return None
        # Where a NULL is on one side only, it has no equal: then both equalities mean the same.
        return Equality(condition, left, right, null_safe and left.nullable and right.nullable)

    # ---- joins ----

    def _join_apart(self, chosen: int) -> None:
        """Join an input of an outer, semi or anti join: by the conditions of its ON, and no others."""
        own = [condition for condition in self.pending if condition.home == chosen]
        self.pending = [condition for condition in self.pending if condition.home != chosen]
        keys = self._keys(chosen, own, True) or self._keys(chosen, own, False)
        used = {id(key.condition) for key in keys}
        self._join(chosen, keys, [condition for condition in own if id(condition) not in used])

    def _join(self, chosen: int, keys: list[Equality], conditions: Sequence[Condition]) -> None:
        kind = self.kinds[chosen]
        right_node, local = self.parts[chosen].node, dict(self.parts[chosen].position)
        left, left_keys = with_keys(self.node, [shift_columns(key.left, self.position) for key in keys])
        right, right_keys = with_keys(right_node, [shift_columns(key.right, local) for key in keys])
        if kind == "full" and not self._has_sure_key(left, right_node):
            left = self._marked(left)
        null_safe: dict[tuple[int, int], bool] = {}
        for pair, key in zip(zip(left_keys, right_keys, strict=True), keys, strict=True):
            null_safe[pair] = null_safe.get(pair, True) and key.null_safe
        width = len(left.schema)
        both = self.position | {i: width + position for i, position in local.items()}
        residual = self._all(conditions, "ON", both)
        self._extend_key(chosen, left_keys, right_keys)
        self.placed.add(chosen)
        if kind not in ("semi", "anti"):
            self.position = both
        self.node = Join(
            left,
            right,
            tuple(pair[0] for pair in null_safe),
            tuple(pair[1] for pair in null_safe),
            residual,
            _columns_of_join(left.schema, right.schema, kind),
            self._key(),
            kind,
            frozenset(number for number, safe in enumerate(null_safe.values()) if safe),
        )

    def _extend_key(self, chosen: int, left_keys: Sequence[int], right_keys: Sequence[int]) -> None:
        """Add the key of the input ``chosen``; where an outer row has one partner at most, its own key is enough."""
        kind, left, right = self.kinds[chosen], self._key(), self.inputs[chosen].key
        if kind in ("semi", "anti") or (kind == "left" and right is not None and set(right) <= set(right_keys)):
            return
        if kind == "right" and left is not None and set(left) <= set(left_keys):
            self._keyed, self._marks = set(), ()
        self._keyed |= set(self.parts[chosen].keys)

    def _has_sure_key(self, left: Node, right: Node) -> bool:
        """Return whether a key column tells a row without a right partner from one without a left one."""
        key = [left.schema.columns[i] for i in self._key() or ()] + [right.schema.columns[i] for i in right.key or ()]
        return not all(column.nullable for column in key)

    def _marked(self, left: Node) -> Node:
        mark = Column(hidden_key_name("in_left", len(self._marks)), types.BOOLEAN, False)
        self._marks += (len(left.schema),)
        own = tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(left.schema.columns))
        schema = Schema((*left.schema.columns, mark))
        return Project(left, (*own, Literal(True, types.BOOLEAN)), schema, self._key())

    def _key(self) -> tuple[int, ...] | None:
        """Return the key of what is joined so far: the keys of its inputs together."""
        every = {number: key for part in self.parts.values() for number, key in part.keys.items()}
        key = key_of({number: every[number] for number in self._keyed}, self.position)
        return None if key is None else (*self._marks, *key)

    def _all(self, conditions: Sequence[Condition], where: str, position: dict[int, int]) -> Expression | None:
        kept = [c for c in conditions if c.expression != Literal(True, types.BOOLEAN)]
        if not kept:
            return None
        whole = all_of([condition.expression for condition in kept])
        if len(kept) > 1 and not all(is_portable(condition.expression) for condition in kept):
            trees = [exp.Paren(this=condition.tree.copy()) for condition in kept]
            whole = self.translator.condition(exp.and_(*trees, copy=False), where)
        return None if whole is None else shift_columns(whole, position)

    def _inputs(self, expression: Expression) -> set[int]:
        return {self._home[self._owner[position]] for position in columns_of(expression)}


def _columns_of_join(left: Schema, right: Schema, kind: str) -> Schema:
    """Return the columns of a join: those beside which a partner can be missing may be NULL."""
    if kind in ("semi", "anti"):
        return left
    first, second = list(left.columns), list(right.columns)
    if kind in ("right", "full"):
        first = [replace(column, nullable=True) for column in first]
    if kind in ("left", "full"):
        second = [replace(column, nullable=True) for column in second]
    return Schema((*first, *second))


def with_keys(node: Node, keys: Sequence[Expression]) -> tuple[Node, list[int]]:
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
