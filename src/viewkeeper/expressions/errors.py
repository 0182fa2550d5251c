"""What resolving an expression can raise: types that Spark refuses, and what only Spark can compute."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.errors import SqlError
from viewkeeper.zset.schema import SqlType

TIME_WITHOUT_DATE = "TIME_WITHOUT_DATE"
# Of a view that would be ahead of a FAILED one that it reads: no row of its own is the reason.
READS_FAILED_VIEW = "READS_FAILED_VIEW"

_REMEDIES = {
    "DIVIDE_BY_ZERO": "divide by NULLIF(…, 0), or filter such rows out",
    "REMAINDER_BY_ZERO": "divide by NULLIF(…, 0), or filter such rows out",
    "ARITHMETIC_OVERFLOW": "cast an operand to a wider type, as BIGINT or DECIMAL",
    "INTERVAL_ARITHMETIC_OVERFLOW": "add up less, or use TRY_SUM or TRY_AVG, which give NULL",
    "CAST_OVERFLOW": "cast to a wider type, or use TRY_CAST, which gives NULL",
    "CAST_INVALID_INPUT": "correct the text, or use TRY_CAST, which gives NULL",
    "NUMERIC_VALUE_OUT_OF_RANGE": "cast to a DECIMAL of more digits",
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": "a DECIMAL has at most 38 digits: use DOUBLE",
    "DATETIME_OVERFLOW": "such a date is out of range: filter it out",
    "NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION": "a frequency is 0 or more: leave such rows out by FILTER (WHERE …)",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": "a subquery that is a value has one row: take MAX(…) or ANY_VALUE(…), or use IN",
    "FUNCTION_RAISED": "call the function with this row's values to see why; filter such rows out, or return None",
    "FUNCTION_RESULT_UNFIT": "return None or a value of the declared type",
    "KEY_NOT_UNIQUE": "declare a PRIMARY KEY that tells the view's rows apart, or keep one row of each key",
    READS_FAILED_VIEW: "see why that view is FAILED",
    TIME_WITHOUT_DATE: "a time of day alone would take today's date: write a date before it",
}


def code_of(reason: str) -> str:
    """Return the stable code of a reason, which may say more behind a colon.

    Example:
        >>> code_of("FUNCTION_RAISED: score() raised ValueError"), code_of("DIVIDE_BY_ZERO")
        ('FUNCTION_RAISED', 'DIVIDE_BY_ZERO')
    """
    return reason.partition(":")[0]


def remedy(reason: str) -> str:
    """Return what to do about a row that cannot be computed, with a colon in front; "" where nothing is known.

    Example:
        >>> remedy("CAST_INVALID_INPUT")
        ': correct the text, or use TRY_CAST, which gives NULL'
    """
    code = code_of(reason)
    return f": {_REMEDIES[code]}" if code in _REMEDIES else ""


class NotPortable(Exception):
    """The expression may be right, but only Spark is proven to compute it: the planner hands it to Catalyst.

    Args:
        function: the function's name.
        reason: why, in a few words.
    """

    def __init__(self, function: str, reason: str) -> None:
        super().__init__(f"{function}: {reason}")
        self.function = function
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.function, self.reason))


def mismatch(function: str, types: Iterable[SqlType], wanted: str) -> SqlError:
    """Return the error of arguments that Spark's analyzer would refuse.

    Args:
        function: the function's name.
        types: the types that it was given.
        wanted: what it takes, in words.
    """
    given = ", ".join(str(t).upper() for t in types)
    what_to_do = (
        "Give as many." if wanted.startswith("it takes") and "argument" in wanted else "Cast the arguments explicitly."
    )
    message = f"{function}({given}) cannot be computed: {wanted}. {what_to_do}"
    return SqlError("DATATYPE_MISMATCH", message, {"function": function})
