"""All errors that users can meet: one root, few kinds, each instance with a stable code.

The kind tells what the caller can do (correct the input, fix the store, retry, repair a view); the code is stable and
part of the API; the message is for people and is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import Repr

_REPR = Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 100


def shown(value: object) -> str:
    """Return a value as messages show it: its repr, the middle of a long one cut out.

    Example:
        >>> shown("Jo"), len(shown("x" * 1_000_000))
        ("'Jo'", 100)
    """
    try:
        return _REPR.repr(value)
    except ValueError:  # Python refuses to write out an int of more than 4,300 digits
        return f"<{type(value).__name__}>"


class ViewkeeperError(Exception):
    """Root of all errors raised on purpose.

    Args:
        code: stable identifier in upper snake case, for example ``TABLE_NOT_FOUND``.
        message: what happened, where, and what to do about it.
        details: machine-readable facts that belong to the error (names, keys, places).

    Example:
        >>> str(ViewkeeperError("TABLE_NOT_FOUND", "There is no table 'x'."))
        "[TABLE_NOT_FOUND] There is no table 'x'."
    """

    def __init__(self, code: str, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code
        self.message = message
        self.details = dict(details or {})

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel between processes (Spark workers, the maintainer): rebuild them from their three parts.
        return (type(self), (self.code, self.message, self.details))


class InputError(ViewkeeperError):
    """The caller passed something wrong: correct the input and call again."""


class SqlError(InputError):
    """SQL that cannot be read, resolved or supported.

    ``details`` holds ``line`` and ``column`` (1-based) and ``near`` (the piece of SQL) where the place is known.
    """


class UnsupportedSql(SqlError):
    """Valid SQL that cannot be maintained (yet): the code is the reason, the message names what works instead."""


class StoreError(ViewkeeperError):
    """The store cannot do it now: missing or foreign folder, full disk, newer format."""


class FunctionUnavailable(StoreError):
    """A user's function cannot be run in this process: views that call it wait, all others go on."""


class ConflictError(ViewkeeperError):
    """Somebody else was faster: read again and retry."""


class ViewFailed(ViewkeeperError):
    """A view cannot show the current answer; ``details['views']`` maps each failed view to its reasons."""


class WaitTimeout(ViewkeeperError):
    """Something did not happen within the time the caller allowed."""


class EvaluationError(ViewkeeperError):
    """An expression cannot be computed for a row (division by zero, overflow, bad cast) under ANSI rules."""
