"""Statements as frozen dataclasses, each with its own text and its place in what the user wrote.

Statements are equal when they say the same; their text and place do not count, so that a statement can be compared
with the one that its canonical SQL gives.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import Literal

from viewkeeper.zset.schema import SqlType

RefreshKind = Literal["CONTINUOUS", "EVERY", "ON_DEMAND"]
RefreshPolicy = Literal["AUTO", "INCREMENTAL", "FULL"]
MergeKind = Literal["MATCHED", "NOT_MATCHED", "NOT_MATCHED_BY_SOURCE"]
MergeAction = Literal["UPDATE", "DELETE", "INSERT"]

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, order=True)
class Place:
    """Where something stands in the user's text.

    Args:
        line: line, counted from 1.
        column: character of the line, counted from 1.
        offset: character of the whole text, counted from 0.
    """

    line: int
    column: int
    offset: int

    def __str__(self) -> str:
        """Return the place as errors write it, for example ``line 2, column 8``."""
        return f"line {self.line}, column {self.column}"


class Places:
    r"""Turns offsets into a text into places; lines end as editors end them (LF, CR LF or CR).

    Example:
        >>> str(Places("a\nbc").at(3))
        'line 2, column 2'
    """

    def __init__(self, text: str) -> None:
        self._line_starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text))]

    def at(self, offset: int) -> Place:
        """Return the place of the character at ``offset``."""
        line = bisect.bisect_right(self._line_starts, offset)
        return Place(line, offset - self._line_starts[line - 1] + 1, offset)


@dataclass(frozen=True)
class SqlText:
    """A piece of SQL exactly as the user wrote it, which a later stage parses.

    Args:
        text: the SQL, comments and parameter markers (``:name``) included.
        place: where it begins in the user's text.
    """

    text: str
    place: Place = field(compare=False)

    def __str__(self) -> str:
        """Return the SQL."""
        return self.text

    def place_at(self, offset: int) -> Place:
        r"""Return the place in the user's text of the character at ``offset`` of this piece.

        Example:
            >>> SqlText("a +\n b", Place(3, 10, 40)).place_at(5)
            Place(line=4, column=2, offset=45)
        """
        inner = Places(self.text).at(offset)
        column = inner.column if inner.line > 1 else self.place.column + inner.column - 1
        return Place(self.place.line + inner.line - 1, column, self.place.offset + offset)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What all statements have.

    Args:
        sql: the statement's own text, without the semicolon and the comments around it.
        place: where it begins in the user's text.
    """

    sql: str = field(compare=False, repr=False)
    place: Place = field(compare=False, repr=False)


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of CREATE TABLE or ADD COLUMN; columns of the primary key are never nullable."""

    name: str
    type: SqlType
    nullable: bool = True
    default_sql: SqlText | None = None
    comment: str | None = None


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE; ``primary_key`` holds names as the columns spell them."""

    name: str
    if_not_exists: bool
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]


@dataclass(frozen=True)
class DropTable(Statement):
    """DROP TABLE [IF EXISTS] name [CASCADE]."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class TruncateTable(Statement):
    """TRUNCATE TABLE name."""

    name: str


@dataclass(frozen=True)
class AlterTableAddColumn(Statement):
    """ALTER TABLE table ADD COLUMN[S]."""

    table: str
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True)
class AlterTableRenameColumn(Statement):
    """ALTER TABLE table RENAME COLUMN column TO new_name."""

    table: str
    column: str
    new_name: str


@dataclass(frozen=True)
class AlterTableDropColumns(Statement):
    """ALTER TABLE table DROP COLUMN[S]."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class AlterTableWidenColumn(Statement):
    """ALTER TABLE table ALTER COLUMN column TYPE type."""

    table: str
    column: str
    type: SqlType


@dataclass(frozen=True)
class Refresh:
    """When a view is refreshed; ``every_seconds`` is set for the kind EVERY only."""

    kind: RefreshKind = "CONTINUOUS"
    every_seconds: float | None = None


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE MATERIALIZED VIEW; ``columns`` are (name, comment) pairs, empty where the query names them."""

    name: str
    query: SqlText
    or_replace: bool = False
    if_not_exists: bool = False
    columns: tuple[tuple[str, str | None], ...] = ()
    primary_key: tuple[str, ...] = ()
    comment: str | None = None
    refresh: Refresh = Refresh()
    policy: RefreshPolicy = "AUTO"
    with_no_data: bool = False


@dataclass(frozen=True)
class RefreshView(Statement):
    """REFRESH MATERIALIZED VIEW name [FULL]."""

    name: str
    full: bool = False


@dataclass(frozen=True)
class AlterViewAs(Statement):
    """ALTER MATERIALIZED VIEW name AS query."""

    name: str
    query: SqlText


@dataclass(frozen=True)
class AlterViewSuspend(Statement):
    """ALTER MATERIALIZED VIEW name SUSPEND."""

    name: str


@dataclass(frozen=True)
class AlterViewResume(Statement):
    """ALTER MATERIALIZED VIEW name RESUME."""

    name: str


@dataclass(frozen=True)
class AlterViewRename(Statement):
    """ALTER MATERIALIZED VIEW name RENAME TO new_name."""

    name: str
    new_name: str


@dataclass(frozen=True)
class AlterViewPolicy(Statement):
    """ALTER MATERIALIZED VIEW name SET REFRESH POLICY policy."""

    name: str
    policy: RefreshPolicy


@dataclass(frozen=True)
class DropView(Statement):
    """DROP MATERIALIZED VIEW [IF EXISTS] name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class VerifyView(Statement):
    """VERIFY MATERIALIZED VIEW name [REPAIR]."""

    name: str
    repair: bool = False


@dataclass(frozen=True)
class DropFunction(Statement):
    """DROP FUNCTION [IF EXISTS] name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ShowFunctions(Statement):
    """SHOW [USER] FUNCTIONS."""


@dataclass(frozen=True)
class ShowTables(Statement):
    """SHOW TABLES."""


@dataclass(frozen=True)
class ShowViews(Statement):
    """SHOW MATERIALIZED VIEWS."""


@dataclass(frozen=True)
class ShowDecisions(Statement):
    """SHOW REFRESH DECISIONS [FOR name]; without a name those of all views."""

    name: str | None


@dataclass(frozen=True)
class ShowCreate(Statement):
    """SHOW CREATE [TABLE | MATERIALIZED VIEW] name."""

    name: str


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE [TABLE | MATERIALIZED VIEW] [EXTENDED] name."""

    name: str
    extended: bool = False


@dataclass(frozen=True)
class ExplainCreate(Statement):
    """EXPLAIN CREATE MATERIALIZED VIEW …; ``create`` has its own text and place."""

    create: CreateView


@dataclass(frozen=True)
class ExplainView(Statement):
    """EXPLAIN [ANALYZE] MATERIALIZED VIEW name; ANALYZE refreshes it."""

    name: str
    analyze: bool = False


@dataclass(frozen=True)
class ExplainQuery(Statement):
    """EXPLAIN query."""

    query: SqlText


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO table [(columns)] query; ``query`` is a SELECT, WITH, FROM, TABLE or VALUES."""

    table: str
    columns: tuple[str, ...] | None
    query: SqlText


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE table [alias] SET column = value, … [WHERE condition]."""

    table: str
    alias: str | None
    assignments: tuple[tuple[str, SqlText], ...]
    where: SqlText | None = None


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE FROM table [alias] [WHERE condition]."""

    table: str
    alias: str | None = None
    where: SqlText | None = None


@dataclass(frozen=True)
class MergeClause:
    """One WHEN … THEN … of MERGE.

    Args:
        kind: which rows it is for.
        condition: what stands behind AND.
        action: what is done with them.
        star: whether the action is ``UPDATE SET *`` or ``INSERT *``; the other fields are empty then.
        assignments: columns and values of UPDATE SET.
        columns: columns of INSERT.
        values: values of INSERT, as many as columns.
    """

    kind: MergeKind
    condition: SqlText | None
    action: MergeAction
    star: bool = False
    assignments: tuple[tuple[str, SqlText], ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[SqlText, ...] = ()


@dataclass(frozen=True)
class Merge(Statement):
    """MERGE INTO target USING source ON condition WHEN …; ``source`` is a name or a subquery in parentheses."""

    target: str
    target_alias: str | None
    source: SqlText
    source_alias: str | None
    on: SqlText
    clauses: tuple[MergeClause, ...]


@dataclass(frozen=True)
class Query(Statement):
    """SELECT, WITH, VALUES, TABLE or FROM-first query."""

    query: SqlText
