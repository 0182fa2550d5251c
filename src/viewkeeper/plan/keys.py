"""Keys of intermediate results: which columns are equal on every row, and how a projection keeps the key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from viewkeeper.expressions.tree import Call, ColumnRef, Expression
from viewkeeper.plan.nodes import Aggregate, Filter, Generate, Join, Node, Project, TopK, Window, reference
from viewkeeper.zset.schema import BOOLEAN, Column, Schema

_HIDDEN = re.compile(r"^__key_\d+_")


class Equalities:
    """Sets of positions whose columns hold the same value on every row."""

    def __init__(self) -> None:
        self._representative: dict[int, int] = {}

    def unite(self, left: int, right: int) -> None:
        """Declare two columns equal."""
        first, second = sorted((self.find(left), self.find(right)))
        self._representative[second] = first

    def find(self, position: int) -> int:
        """Return the position that stands for all columns equal to ``position``."""
        while self._representative.get(position, position) != position:
            position = self._representative[position]
        return position

    def same(self, left: int, right: int) -> bool:
        """Return whether two columns are known to be equal."""
        return self.find(left) == self.find(right)

    def pairs(self) -> Iterable[tuple[int, int]]:
        """Return each known position with the one that stands for it."""
        return [(position, self.find(position)) for position in self._representative]


def equal_columns(node: Node) -> Equalities:
    """Return what joins and filters below make equal: plain columns of one type, floating ones apart.

    Floating columns do not count: -0.0 equals 0.0 and still is another value to show.
    """
    result = Equalities()
    if isinstance(node, Join):
        _of_join(result, node)
    elif isinstance(node, Filter):
        _add(result, equal_columns(node.input), {i: i for i in range(len(node.schema))})
        for condition in conjuncts_of(node.condition):
            if isinstance(condition, Call) and condition.function == "eq":
                left_side, right_side = condition.arguments
                if isinstance(left_side, ColumnRef) and isinstance(right_side, ColumnRef):
                    _unite_plain(result, left_side.index, right_side.index, node.schema)
    elif isinstance(node, Project):
        _through_projection(result, node)
    elif isinstance(node, TopK | Window):
        _add(result, equal_columns(node.input), {i: i for i in range(len(node.input.schema))})
    elif isinstance(node, Generate):
        _through_columns(result, equal_columns(node.input), enumerate(node.kept))
    elif isinstance(node, Aggregate):
        below = equal_columns(node.input)
        for i, left in enumerate(node.group):
            for j, right in enumerate(node.group[:i]):
                if below.same(left, right):
                    result.unite(j, i)
    return result


def _of_join(result: Equalities, node: Join) -> None:
    # Beside a row without a partner all columns are NULL, and so still equal.
    _add(result, equal_columns(node.left), {i: i for i in range(len(node.left.schema))})
    shift = len(node.left.schema)
    if node.kind not in ("semi", "anti"):
        _add(result, equal_columns(node.right), {i: i + shift for i in range(len(node.right.schema))})
    if node.kind == "inner":
        for left, right in zip(node.left_keys, node.right_keys, strict=True):
            _unite_plain(result, left, right + shift, node.schema)


def hidden_key_name(name: str, number: int) -> str:
    """Return the name of a hidden key column: its number among the hidden ones, and the name that it came with.

    Example:
        >>> hidden_key_name("id", 0), hidden_key_name("__key_3_id", 1)
        ('__key_0_id', '__key_1_id')
    """
    return f"__key_{number}_{_HIDDEN.sub('', name)}"


def conjuncts_of(condition: Expression) -> list[Expression]:
    """Return the conditions that AND connects, in order."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in conjuncts_of(argument)]
    return [condition]


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """Return the conjunction of ``conditions``, None for none; a balanced tree, so that many do not nest deeply."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else None
    middle = (len(conditions) + 1) // 2
    left, right = all_of(conditions[:middle]), all_of(conditions[middle:])
    assert left is not None
    assert right is not None
    return Call("and", (left, right), BOOLEAN, left.nullable or right.nullable)


def where(node: Node, conditions: Sequence[Expression]) -> Node:
    """Return the rows of ``node`` for which all ``conditions`` are true; itself where there are none."""
    condition = all_of(conditions)
    return node if condition is None else Filter(node, condition, node.schema, node.key)


def project_with_key(node: Node, expressions: Sequence[Expression], names: Sequence[str]) -> Project:
    """Return the projection of ``node`` on ``expressions``, with the columns of its key that are missing behind them.

    A key column that is selected plainly, or equals one that is, stays visible instead of being repeated.
    """
    outputs = list(expressions)
    columns = [Column(name, e.type, e.nullable) for name, e in zip(names, expressions, strict=True)]
    key: list[int] = []
    equalities = equal_columns(node)
    for position in node.key or ():
        found = _position_of(position, outputs, equalities)
        if found is None:
            found = len(outputs)
            column = node.schema.columns[position]
            outputs.append(reference(node, position))
            columns.append(
                Column(hidden_key_name(column.name, len(outputs) - len(expressions) - 1), column.type, column.nullable)
            )
        if found not in key:
            key.append(found)
    return Project(node, tuple(outputs), Schema(tuple(columns)), None if node.key is None else tuple(key))


def _position_of(position: int, outputs: Sequence[Expression], equalities: Equalities) -> int | None:
    plain = [(i, output.index) for i, output in enumerate(outputs) if isinstance(output, ColumnRef)]
    exact = [i for i, index in plain if index == position]
    equal = [i for i, index in plain if equalities.same(index, position)]
    return next(iter([*exact, *equal]), None)


def _add(result: Equalities, below: Equalities, mapping: dict[int, int]) -> None:
    for position, representative in below.pairs():
        result.unite(mapping[position], mapping[representative])


def _through_projection(result: Equalities, node: Project) -> None:
    plain = ((i, e.index) for i, e in enumerate(node.expressions) if isinstance(e, ColumnRef))
    _through_columns(result, equal_columns(node.input), plain)


def _through_columns(result: Equalities, below: Equalities, columns: Iterable[tuple[int, int]]) -> None:
    first: dict[int, int] = {}
    for i, position in columns:
        result.unite(first.setdefault(below.find(position), i), i)


def _unite_plain(result: Equalities, left: int, right: int, schema: Schema) -> None:
    left_type, right_type = schema.columns[left].type, schema.columns[right].type
    if left_type == right_type and not _holds_floating(schema, left):
        result.unite(left, right)


def _holds_floating(schema: Schema, position: int) -> bool:
    pending = [schema.columns[position].type]
    while pending:
        current = pending.pop()
        if current.is_floating:
            return True
        pending += current.children
    return False
