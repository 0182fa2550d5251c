"""Windows of time: what falls into each, by group too, and each row beside its windows; several at once or one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.families.times import LOCAL, MOMENT
from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Field, Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_DURATIONS = ("'1 hour'", "'2 days', '1 day'", "'7 hours', '3 hours', '-1 hour'", "'1 week', '1 week', '4 days'")


def grouped_by_window(builder: QueryBuilder, depth: int) -> Query:
    """Aggregates by window, and perhaps by a column."""
    source, scope = builder.source(joins=int(builder.choices.chance(25)))
    found = _call(builder, scope)
    if found is None:
        return builder.rows()
    kind, call = found
    where = builder.where(scope, 30)
    groups = [Item(call, Field("w", kind))]
    if builder.choices.chance(40):
        group = builder.choices.pick(scope.kinds())
        groups.append(Item(f"COALESCE({builder.expression(scope, group, 0)})", Field("g0", group)))
    calls = builder.choices.many(lambda number: builder.aggregate(scope, f"a{number}"), 1, 2)
    settled = [item for item in calls if not item.scale]
    items = [*_ends(builder, kind), *groups[1:], *(settled or [Item("COUNT(*)", Field("a0", "integer"))])]
    having = f" HAVING COUNT(*) {builder.choices.pick(('> 1', '<= 2'))}" if builder.choices.chance(20) else ""
    scope.in_duckdb = False
    listed, by = (", ".join(texts) for texts in ((i.listed for i in items), (g.sql for g in groups)))
    return Query(f"SELECT {listed} FROM {source}{where} GROUP BY {by}{having}", tuple(i.field for i in items), False)


def beside_windows(builder: QueryBuilder, depth: int) -> Query:
    """Each row, once for each of its windows."""
    source, scope = builder.source()
    found = _call(builder, scope)
    if found is None:
        return builder.rows()
    kind, call = found
    where = builder.where(scope, 30)
    items = builder.choices.many(lambda number: builder.item(scope, f"c{number}"), 0, 2)
    ends = [Item(f"{call}.start", Field("w0", kind)), *_ends(builder, kind)[1:]]
    listed = ", ".join(item.listed for item in [*ends, *items])
    return Query(f"SELECT {listed} FROM {source}{where}", tuple(item.field for item in [*ends, *items]), False)


def _call(builder: QueryBuilder, scope: Scope) -> tuple[str, str] | None:
    """Return a call, and the class of what begins and ends the windows.

    None where no column has a moment: of constants Spark makes no windows over WITH RECURSIVE.
    """
    kinds = [kind for kind in ("timestamp", "timestamp_ntz", "integer") if scope.of(kind)]
    if not kinds:
        return None
    kind = builder.choices.pick(kinds)
    moment = builder.choices.pick(scope.of(kind))
    if kind == "integer":
        kind, moment = "timestamp", f"TIMESTAMP_SECONDS({moment} % 100000000)"
    within = (MOMENT if kind == "timestamp" else LOCAL).format(moment)
    return kind, f"window({within}, {builder.choices.pick(_DURATIONS)})"


def _ends(builder: QueryBuilder, kind: str) -> list[Item]:
    """Return the beginning of the window, and perhaps its end."""
    ends = [Item("window.start", Field("w0", kind)), Item("window.end", Field("w1", kind))]
    return ends[: builder.choices.pick((1, 2))]


FAMILY = Family(queries=(Production(grouped_by_window, size=3), Production(beside_windows, size=3)))
