"""One window function as the WINDOW operator has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.expressions.tree import Scalar
from viewkeeper.zset.schema import INTERVAL_YEAR_MONTH, SqlType

OFFSETS = frozenset(("lag", "lead"))
RANKINGS = frozenset(("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"))
VALUES = frozenset(("first_value", "last_value", "nth_value"))
EXTREMES = frozenset(("min", "max"))
LISTS = frozenset(("collect_list", "collect_set", "listagg"))
"""The other functions are aggregates whose partial states add."""


@dataclass(frozen=True)
class CalendarDistance:
    """A distance that is not equally long everywhere: months, or days where clocks change.

    Args:
        count: months or microseconds; below 0 the other way.
        unit: the type of an interval: of months, or of microseconds whose days are those of the time zone.
        time_zone: by which a TIMESTAMP is moved.
    """

    count: int
    unit: SqlType
    time_zone: str

    @property
    def is_months(self) -> bool:
        """Whether months are counted."""
        return self.unit == INTERVAL_YEAR_MONTH

    def __neg__(self) -> CalendarDistance:
        return CalendarDistance(-self.count, self.unit, self.time_zone)


Bound: TypeAlias = Scalar | CalendarDistance


@dataclass(frozen=True)
class Call:
    """A window function over one partitioning and order.

    Args:
        function: ``row_number``, ``lag``, ``first_value``, ``sum``, ...
        arguments: positions of its arguments.
        constants: arguments that are constants (an offset, a number of buckets).
        unit: ``rows`` or ``range``: what the bounds of the frame count.
        start: rows or distance before the current row; None for the partition's start; negative for behind it.
        stop: rows or distance behind the current row; None for the partition's end; negative for before it.
        ignore_nulls: whether NULL arguments are passed over.
        filter: position of a BOOLEAN column: only rows where it is true count; None for all rows.
        argument_types: types of the arguments.
        type: the result type.
    """

    function: str
    arguments: tuple[int, ...]
    constants: tuple[Scalar, ...]
    unit: str
    start: Bound
    stop: Bound
    ignore_nulls: bool
    filter: int | None
    argument_types: tuple[SqlType, ...]
    type: SqlType

    @property
    def has_frame(self) -> bool:
        """Whether the frame takes part; rankings and offsets look at the whole partition."""
        return self.function not in RANKINGS and self.function not in OFFSETS

    @property
    def can_overflow(self) -> bool:
        """Whether a total may not fit its type."""
        return self.function in ("sum", "avg") and not self.argument_types[0].is_floating
