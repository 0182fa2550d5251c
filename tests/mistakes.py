"""What an error has to say of a mistake in SQL: code, place, remedy, and the line with a mark below the place."""

from __future__ import annotations

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.errors import ViewkeeperError


def assert_told(database: Database, marked: str, code: str, remedy: str) -> None:
    """Run SQL in which ``^`` stands before the mistake, behind another statement, and check how it is refused."""
    before, _, after = f"SHOW TABLES;\n {marked}".partition("^")
    with pytest.raises(ViewkeeperError) as caught:
        database.sql(before + after)
    error = caught.value
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (error.code, error.details["line"], error.details["column"]) == (code, line, column)
    assert remedy in error.message
    assert f"line {line}, column {column}" in error.message
    text = (before + after).split("\n")[line - 1]
    # Of a longer line only the part around the place is shown.
    if len(text) <= 100:
        assert error.__notes__ == [f"  {text}\n  {' ' * (column - 1)}^"]
