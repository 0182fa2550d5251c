"""What a view is: its SQL, the session that made it, how it refreshes, and where its state lies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from viewkeeper.expressions.tree import Session
from viewkeeper.store.model import ColumnRead
from viewkeeper.zset.schema import SqlType

ACTIVE, BUILDING, SUSPENDED, NEEDS_REBUILD = "ACTIVE", "BUILDING", "SUSPENDED", "NEEDS_REBUILD"


@dataclass(frozen=True)
class Refresh:
    """When a view refreshes: ``CONTINUOUS``, ``EVERY`` so many seconds, or ``ON_DEMAND``."""

    kind: Literal["CONTINUOUS", "EVERY", "ON_DEMAND"] = "CONTINUOUS"
    every_seconds: float | None = None

    def cadence(self, view: int, needs_spark: bool, functions: Iterable[int] = ()) -> str:
        """Return the name of the cadence of a view that refreshes so.

        Args:
            view: its id.
            needs_spark: whether only Spark can evaluate it.
            functions: ids of the users' functions that it needs: where one of them cannot be run, the views of other
                cadences go on.
        """
        if self.kind == "ON_DEMAND":
            return f"on-demand-{view}"
        name = "continuous" if self.kind == "CONTINUOUS" else f"every-{self.every_seconds:g}"
        called = "+".join(map(str, sorted(functions)))
        return f"{name}{'-spark' if needs_spark else ''}{'-f' + called if called else ''}"


@dataclass(frozen=True)
class SparkTyped:
    """What Spark's analyzer said of an expression that is not portable: planning again then needs no Spark.

    Args:
        asked: the expression over the types of its columns (``planning.expression_asked``).
        type: its type.
        nullable: whether it may be NULL.
    """

    asked: str
    type: SqlType
    nullable: bool


@dataclass(frozen=True)
class ViewDefinition:
    """A materialised view.

    Args:
        id: the catalog's number.
        name: as its creator wrote it.
        sql: its query.
        columns: names given in CREATE, or None.
        declared_key: columns of a declared PRIMARY KEY, or None.
        comment: its COMMENT, or None.
        column_comments: comments of the columns given in CREATE.
        refresh: when it refreshes.
        policy: ``AUTO``, ``INCREMENTAL`` or ``FULL``.
        session: time zone and ANSI mode of its creation.
        reads: names in ``sql`` (lower case) and the ids that they meant when the view was created.
        columns_read: per table id the columns that the table had then: SELECT * keeps them, and their names.
        spark_typed: types of expressions that are not portable.
        cadence: the cadence that it refreshes with.
        state: ``ACTIVE``, ``BUILDING``, ``SUSPENDED`` or ``NEEDS_REBUILD``.
        reason: why it needs a rebuild, or None.
        replaces: id of the version that serves until this one is built, or None.
        functions: names of users' functions that ``sql`` calls (lower case) and the ids that they meant.
        origin: id of the first version of this query, where this is a later one; see ``lineage``.
    """

    id: int
    name: str
    sql: str
    columns: tuple[str, ...] | None
    declared_key: tuple[str, ...] | None
    comment: str | None
    column_comments: tuple[str | None, ...]
    refresh: Refresh
    policy: Literal["AUTO", "INCREMENTAL", "FULL"]
    session: Session
    reads: tuple[tuple[str, int], ...]
    columns_read: tuple[tuple[int, tuple[ColumnRead, ...]], ...]
    spark_typed: tuple[SparkTyped, ...]
    cadence: str
    state: str
    reason: str | None = None
    replaces: int | None = None
    functions: tuple[tuple[str, int], ...] = ()
    origin: int | None = None

    @property
    def lineage(self) -> int:
        """The number that all versions of one query have; readers name by it what they keep to check its key."""
        return self.id if self.origin is None else self.origin

    @property
    def read_ids(self) -> tuple[int, ...]:
        """Ids of the tables and views that it reads."""
        return tuple(dict.fromkeys(id_ for _, id_ in self.reads))
