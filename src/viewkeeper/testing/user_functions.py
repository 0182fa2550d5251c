"""Functions in Python that drawn queries call: registered with a store, and with Spark for its answer.

They take and give NULL and never raise: how failing ones behave has tests of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from viewkeeper.database.connection import Database


def drawn_number(value: int | None) -> int | None:
    """Return a number that many values share, NULL for some that are none and 9 for NULL."""
    if value is None:
        return 9
    return None if value == 2 else value * 3 % 5


def drawn_text(text: str | None, number: int | None) -> str | None:
    """Return ``text`` turned around, with ``number`` behind it."""
    return None if text is None else f"{text[::-1]}{'' if number is None else number}"


TYPES: dict[Callable[..., Any], str] = {drawn_number: "BIGINT", drawn_text: "STRING"}


def register_with(database: Database, queries: Iterable[str]) -> None:
    """Let a store know the functions that ``queries`` call.

    Args:
        database: the store.
        queries: SQL.
    """
    queries = list(queries)
    for function, type_ in TYPES.items():
        if any(f"{function.__name__}(" in query for query in queries):
            database.register_function(function.__name__, function, type_, deterministic=True)


def register_with_spark(session: Any) -> None:
    """Let a SparkSession know all of them."""
    for function, type_ in TYPES.items():
        session.udf.register(function.__name__, function, type_)
