"""Days since 1970 to year, month and day and back, for whole columns, in the proleptic Gregorian calendar.

Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms. Valid for all int64 years that matter here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from viewkeeper.expressions.vectors import Vector

MICROSECONDS_A_DAY = 86_400_000_000
_DAYS_BEFORE_MONTH = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def civil(days: Vector) -> tuple[Vector, Vector, Vector]:
    """Return year, month and day of each day number."""
    shifted = np.asarray(days, dtype=np.int64) + 719_468
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = np.where(shifted_month < 10, shifted_month + 3, shifted_month - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: Any, month: Any, day: Any) -> Any:
    """Return the day number of each date; the inverse of :func:`civil`."""
    year = year - (month <= 2)
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def is_leap(year: Any) -> Any:
    """Return whether each year has 366 days."""
    return (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))


def month_length(year: Any, month: Any) -> Any:
    """Return the number of days of each month."""
    return _DAYS_BEFORE_MONTH[month] + ((month == 2) & is_leap(year))
