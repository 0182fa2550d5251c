"""Windows of time: what falls into each, by group too, each row beside its windows, and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import MOVED, Field, Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_DURATIONS = ("'1 hour'", "'2 days', '1 day'", "'7 hours', '3 hours', '-1 hour'", "'1 week', '1 week', '4 days'")
_GAPS = ("'3 seconds'", "'23 hours 59 minutes'", "'1 microsecond'")


def windows_of_time(builder: QueryBuilder, depth: int) -> Query:
    """One of the three: as many of their own would leave too little to others."""
    return builder.choices.pick((_grouped_by_window, _grouped_by_session, _beside_windows))(builder)


def _grouped_by_window(builder: QueryBuilder) -> Query:
    """Aggregates by window, and perhaps by a column."""
    source, scope = builder.source(joins=int(builder.choices.chance(25)))
    return _grouped(builder, source, scope, "window", builder.choices.pick(_DURATIONS), 40)


def _grouped_by_session(builder: QueryBuilder) -> Query:
    """Aggregates by session, most often within the values of a column."""
    source, scope = builder.source()
    return _grouped(builder, source, scope, "session_window", builder.choices.pick(_GAPS), 80)


def _grouped(builder: QueryBuilder, source: str, scope: Scope, function: str, length: str, others: int) -> Query:
    found = _moment(builder, scope)
    if found is None:
        return builder.rows()
    kind, moment = found
    where = builder.where(scope, 30)
    by, items = f"{function}({moment}, {length})", _ends(builder, function, kind)
    if builder.choices.chance(others):
        group = builder.choices.pick(scope.kinds())
        column = f"COALESCE({builder.expression(scope, group, 0)})"
        by, items = f"{by}, {column}", [*items, Item(column, Field("g0", group))]
    calls = builder.choices.many(lambda number: builder.aggregate(scope, f"a{number}"), 1, 2)
    items += [item for item in calls if not item.scale] or [Item("COUNT(*)", Field("a0", "integer"))]
    having = f" HAVING COUNT(*) {builder.choices.pick(('> 1', '<= 2'))}" if builder.choices.chance(20) else ""
    listed = ", ".join(item.listed for item in items)
    sql = f"SELECT {listed} FROM {source}{where} GROUP BY {by}{having}"
    return Query(sql, tuple(item.field for item in items), in_duckdb=False)


def _beside_windows(builder: QueryBuilder) -> Query:
    """Each row, once for each of its windows."""
    source, scope = builder.source()
    found = _moment(builder, scope)
    if found is None:
        return builder.rows()
    kind, moment = found
    where = builder.where(scope, 30)
    items = builder.choices.many(lambda number: builder.item(scope, f"c{number}"), 0, 2)
    start = f"window({moment}, {builder.choices.pick(_DURATIONS)}).start"
    items = [Item(start, Field("w0", kind)), *_ends(builder, "window", kind)[1:], *items]
    listed = ", ".join(item.listed for item in items)
    return Query(f"SELECT {listed} FROM {source}{where}", tuple(item.field for item in items), in_duckdb=False)


def _moment(builder: QueryBuilder, scope: Scope) -> tuple[str, str] | None:
    """Return the class of a moment and the moment, of the years in which windows begin and end within Python's.

    None where no column has one: of constants Spark makes no windows over WITH.
    """
    kinds = [kind for kind in ("timestamp", "timestamp_ntz", "integer") if scope.of(kind)]
    if not kinds:
        return None
    kind = builder.choices.pick(kinds)
    moment = builder.choices.pick(scope.of(kind))
    if kind == "integer":
        kind, moment = "timestamp", f"TIMESTAMP_SECONDS({moment} % 100000000)"
    return kind, MOVED[kind].format(moment)


def _ends(builder: QueryBuilder, function: str, kind: str) -> list[Item]:
    """Return the beginning of the window, and perhaps its end."""
    ends = [Item(f"{function}.{end}", Field(f"w{number}", kind)) for number, end in enumerate(("start", "end"))]
    return ends[: builder.choices.pick((1, 2))]


FAMILY = Family(queries=(Production(windows_of_time, size=3),))
