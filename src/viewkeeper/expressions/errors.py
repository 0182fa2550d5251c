"""What resolving an expression can raise: types that Spark refuses, and what only Spark can compute."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.errors import SqlError
from viewkeeper.zset.schema import SqlType


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
    message = f"{function}({given}) cannot be computed: {wanted}. Cast the arguments explicitly."
    return SqlError("DATATYPE_MISMATCH", message, {"function": function})
