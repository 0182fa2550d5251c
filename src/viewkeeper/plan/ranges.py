"""Which ranges a join can seek: from its further conditions to the order of a side and the ends of a range of it.

    a.t BETWEEN b.lo AND b.hi      a ordered by t:   a row of b seeks t >= lo and t <= hi
                                   b ordered by lo:  a row of a seeks lo <= t        (hi >= t is judged on those)
    a.t >= b.t - 5 AND a.t <= b.t  b ordered by t:   a row of a seeks t <= a.t + 5 and t >= a.t

A seek passes over pairs for which such a comparison is not true. So that the same pairs fail from whichever side they
are found, conditions that cannot fail are judged first, then the comparisons that can, then the others; and a row on
whose account a comparison fails is found by all rows of the other side (``operators/range_order.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import Call, Expression, Literal, Session, columns_of, is_portable, shift_columns
from viewkeeper.expressions.user_calls import functions_in
from viewkeeper.operators.range_seeks import Bound
from viewkeeper.plan.keys import all_of, conjuncts_of
from viewkeeper.plan.nodes import Join
from viewkeeper.zset.keys import KeyCodec
from viewkeeper.zset.schema import BOOLEAN, DATE, INT

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_INVERSE = {"add": "subtract", "subtract": "add"}
_MICROSECONDS_A_DAY = 86_400_000_000
_DAYS = {"date_add": "add", "date_sub": "subtract", "date_plus_days": "add"}
_FIRST_DAY = Literal(0, DATE)


@dataclass(frozen=True)
class SideRange:
    """How one side is ordered, and what the other side's rows seek in it.

    Args:
        value: what orders, over the side's columns.
        bounds: the ends of a range, over the other side's columns.
    """

    value: Expression
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class JoinRanges:
    """What a join seeks.

    Args:
        left: the range of the left side; None where none is sought.
        right: that of the right side.
        left_checks: over the left columns: parts of the comparisons that can fail.
        right_checks: over the right columns.
        conditions: the join's further conditions in the order in which they are to be judged.
    """

    left: SideRange | None
    right: SideRange | None
    left_checks: tuple[Expression, ...]
    right_checks: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


@dataclass(frozen=True)
class _Comparison:
    """A condition: ``left`` stands in ``function`` to ``right``, each over its own side's columns."""

    left: Expression
    function: str
    right: Expression

    @property
    def can_raise(self) -> bool:
        """Whether a row of either side can make it fail."""
        return can_raise(self.left) or can_raise(self.right)

    def in_days(self) -> _Comparison:
        """Return the same condition of dates as one of numbers of days."""
        return _Comparison(_days(self.left), self.function, _days(self.right))

    def mirrored(self) -> _Comparison:
        """Return the same condition seen from the other side."""
        return _Comparison(self.right, _MIRRORED[self.function], self.left)


def ranges_of(node: Join) -> JoinRanges | None:
    """Return what ``node`` can seek; None where that is nothing.

    Example:
        >>> from viewkeeper.plan.examples import plan_example
        >>> from viewkeeper.plan.nodes import walk
        >>> sql = "SELECT t.k, id FROM t LEFT JOIN u ON a = t_k AND x < v"
        >>> (join,) = [n for n in walk(plan_example(sql).root) if isinstance(n, Join)]
        >>> found = ranges_of(join)
        >>> [bound.function for bound in found.left.bounds]
        ['lt']
    """
    if node.residual is None or not is_portable(node.residual):
        return None
    conditions = conjuncts_of(node.residual)
    compared = _compared(conditions, len(node.left.schema))
    left = right = None
    if not _is_unique(node.left.key, node.left_keys):
        left = _side(list(compared.values()), node)
    if not _is_unique(node.right.key, node.right_keys):
        right = _side([c.mirrored() for c in compared.values()], node)
    if left is None and right is None:
        return None
    failing = [c for c in compared.values() if c.can_raise]
    stages: list[list[Expression]] = [[], [], []]
    for i, condition in enumerate(conditions):
        stages[0 if not can_raise(condition) else 1 if i in compared else 2].append(condition)
    return JoinRanges(
        left,
        right,
        tuple(dict.fromkeys(c.left for c in failing if can_raise(c.left))),
        tuple(dict.fromkeys(c.right for c in failing if can_raise(c.right))),
        tuple(whole for stage in stages if (whole := all_of(stage)) is not None),
    )


def _compared(conditions: Sequence[Expression], width: int) -> dict[int, _Comparison]:
    """Return the comparisons by their places; those that can fail only before others that can, which may spare them."""
    found: dict[int, _Comparison] = {}
    others_can_raise = False
    for i, condition in enumerate(conditions):
        comparison = _comparison(condition, width)
        if comparison is None:
            others_can_raise |= can_raise(condition)
        elif not (others_can_raise and comparison.can_raise):
            found[i] = comparison
    # Days that are added to a date count as numbers do, which fail where a date would wrap around.
    if any(_adds_days(c.left) or _adds_days(c.right) for c in found.values()):
        return {i: c.in_days() if c.left.type == DATE else c for i, c in found.items()}
    return found


def is_range(condition: Expression, width: int) -> bool:
    """Return whether ``condition`` compares the columns before position ``width`` with those behind, by order."""
    return _comparison(condition, width) is not None


def _comparison(condition: Expression, width: int) -> _Comparison | None:
    if isinstance(condition, Call) and condition.function == "not":
        found = _comparison(condition.arguments[0], width)
        return None if found is None else replace(found, function=_OPPOSITE[found.function])
    if not isinstance(condition, Call) or condition.function not in _MIRRORED or not is_portable(condition):
        return None
    if any(functions_in(condition)):
        return None  # state must not stand in an order that is a user's code
    first, second = condition.arguments
    reads = columns_of(first), columns_of(second)
    if first.type != second.type or first.type.is_nested or first.type.name == "VOID" or not all(reads):
        return None
    if max(reads[0]) < width <= min(reads[1]):
        return _Comparison(first, condition.function, _moved(second, width))
    if max(reads[1]) < width <= min(reads[0]):
        return _Comparison(second, _MIRRORED[condition.function], _moved(first, width))
    return None


def _moved(expression: Expression, width: int) -> Expression:
    return shift_columns(expression, {i: i - width for i in columns_of(expression)})


def _is_unique(key: tuple[int, ...] | None, columns: Sequence[int]) -> bool:
    """Return whether at most one row stands under each join key: then there is no range to seek."""
    return key is not None and set(key) <= set(columns)


def _side(comparisons: Sequence[_Comparison], node: Join) -> SideRange | None:
    """Return the best order of the side on the left of ``comparisons``: one with two ends, else the first."""
    bounds: dict[Expression, list[Bound]] = {}
    for comparison in comparisons:
        value, other = _isolated(comparison.left, comparison.right)
        bounds.setdefault(value, []).append(Bound(comparison.function, other))
    types = [node.left.schema.types[i] for i in node.left_keys]
    # Where key and order may be too long for a key, its order is lost; BOOLEAN is for rows that stand apart.
    fitting = {v: found for v, found in bounds.items() if KeyCodec((*types, BOOLEAN, v.type)).always_kept}
    two_ended = [v for v, found in fitting.items() if len({bound.is_lower for bound in found}) == 2]
    chosen = next(iter(two_ended or fitting), None)
    return None if chosen is None else SideRange(chosen, tuple(fitting[chosen]))


def _isolated(ordered: Expression, other: Expression) -> tuple[Expression, Expression]:
    """Bring a constant that is added to ``ordered`` to the other side: both ends of ``t - 5 .. t + 5`` then order by t.

    Only where the sum is exact or fails: not for floats, which round, nor for a moment and days of a time zone, whose
    length changes.
    """
    if not isinstance(ordered, Call) or not can_raise(ordered):
        return ordered, other
    if ordered.function in _INVERSE and len({ordered.type, *(a.type for a in ordered.arguments)}) == 1:
        value, constant = ordered.arguments
        if ordered.function == "add" and isinstance(value, Literal):
            value, constant = constant, value
        if not ordered.type.is_integer or not ordered.option("ansi") or _number(constant) is None:
            return ordered, other
        moved = Call(_INVERSE[ordered.function], (other, constant), ordered.type, ordered.nullable, ordered.options)
        return _isolated(value, moved)
    if ordered.function == "plus_duration":
        value, constant = ordered.arguments
        duration = _number(constant)
        if duration is None or value.type != ordered.type:
            return ordered, other
        if abs(duration) >= _MICROSECONDS_A_DAY and ordered.option("time_zone") != "UTC":
            return ordered, other
        options = tuple((name, not v if name == "minus" else v) for name, v in ordered.options)
        moved = Call("plus_duration", (other, constant), ordered.type, ordered.nullable, options)
        return _isolated(value, moved)
    return ordered, other


def _number(expression: Expression) -> int | None:
    return expression.value if isinstance(expression, Literal) and isinstance(expression.value, int) else None


def _adds_days(expression: Expression) -> bool:
    """Return whether ``expression`` is a date to which a constant number of days is added."""
    return (
        isinstance(expression, Call) and expression.function in _DAYS and _number(expression.arguments[1]) is not None
    )


def _days(expression: Expression) -> Expression:
    """Return the number of the day that ``expression`` is; it fails where the date has wrapped around."""
    if not isinstance(expression, Call) or not _adds_days(expression):
        return Call("datediff", (expression, _FIRST_DAY), INT, expression.nullable)
    days = _number(expression.arguments[1])
    assert days is not None
    if expression.function == "date_plus_days":
        days = days // _MICROSECONDS_A_DAY * (-1 if expression.option("minus") else 1)
    return resolve(_DAYS[expression.function], [_days(expression.arguments[0]), Literal(days, INT)], Session())


def in_dates(expression: Expression) -> Expression:
    """Return ``expression`` as it is to be shown: dates in place of their numbers."""
    if not isinstance(expression, Call):
        return expression
    if expression.function == "datediff" and expression.arguments[1] == _FIRST_DAY:
        return in_dates(expression.arguments[0])
    return replace(expression, arguments=tuple(map(in_dates, expression.arguments)))
