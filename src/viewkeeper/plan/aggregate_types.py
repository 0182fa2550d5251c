"""The types of SUM and AVG by Spark's rules, and whether their totals may not fit them."""

from __future__ import annotations

from viewkeeper.zset.schema import BIGINT, DOUBLE, INTERVAL_DAY_TIME, MAX_PRECISION, SqlType, decimal


def sum_type(argument: SqlType) -> SqlType:
    """Return the type of SUM over ``argument``."""
    if argument.is_integer:
        return BIGINT
    if argument.name == INTERVAL_DAY_TIME.name:
        return argument
    if argument.name == "DECIMAL":
        return decimal(min(MAX_PRECISION, argument.precision + 10), argument.scale)
    return DOUBLE


def avg_type(argument: SqlType) -> SqlType:
    """Return the type of AVG over ``argument``."""
    if argument.name == INTERVAL_DAY_TIME.name:
        return INTERVAL_DAY_TIME
    if argument.name != "DECIMAL":
        return DOUBLE
    # Spark bounds both parts: decimal(38,38) stays as it is.
    return decimal(min(MAX_PRECISION, argument.precision + 4), min(MAX_PRECISION, argument.scale + 4))


def overflows(function: str, argument: SqlType) -> bool:
    """Return whether a total of ``sum`` or ``avg`` over ``argument`` may not fit: averages of integers are DOUBLE."""
    return argument.name in ("DECIMAL", INTERVAL_DAY_TIME.name) or (function == "sum" and argument.is_integer)
