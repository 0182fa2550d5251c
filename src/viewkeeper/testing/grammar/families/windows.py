"""Window functions, rank filters, and ORDER BY … LIMIT.

Where an answer depends on the order of rows, the order ends with all columns: what then still ties is equal, so every
engine gives the same bag of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, LIST, LITERALS, NUMERIC, Field, Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_RANKINGS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
_CALLS = ("ranking", "aggregate", "sliding", "offset", "value", "range", "list", "percentile", "share")
_ROWS = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "",
)
_PERCENTILES = (
    "MEDIAN({})",
    "PERCENTILE({}, ARRAY(0.0, 0.3, 1.0))",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {} DESC)",
    "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY {})",
)
_RANGES = (
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
    "RANGE BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING",
)


def first_of_each(builder: QueryBuilder, depth: int) -> Query:
    """The rows of a partition up to a rank."""
    choices = builder.choices
    source, scope = builder.source()
    kept = _items(builder, scope)
    partition = f"PARTITION BY {_column(builder, scope)} " if choices.chance(80) else ""
    ranking = choices.pick(_RANKINGS)
    order = _order(builder, scope, total=ranking == "ROW_NUMBER" or choices.chance(30))
    rank = f"{ranking}() OVER ({partition}ORDER BY {order})"
    where = builder.where(scope, 30)
    listed = ", ".join(item.listed for item in kept)
    bound = choices.pick(("<= 2", "= 1", "< 4", "<= 1"))
    # Where a column has the name too, Spark calls it ambiguous.
    number = builder.name("rank")
    while any(field.name.rpartition(".")[2] == number for field in scope.fields):
        number = builder.name("rank")
    fields = (*(item.field for item in kept), Field(number, "integer"))
    form = choices.pick(("around", "around", "qualify", "qualify", "unseen"))
    if form == "around":
        name = builder.name("w")
        sql = f"SELECT * FROM (SELECT {listed}, {rank} AS {number} FROM {source}{where}) {name} WHERE {number} {bound}"
    elif form == "qualify":
        sql = f"SELECT {listed}, {rank} AS {number} FROM {source}{where} QUALIFY {number} {bound}"
    else:
        fields = fields[:-1]
        word = choices.pick(("OR", "AND"))
        sql = f"SELECT {listed} FROM {source}{where} QUALIFY {rank} {bound} {word} {builder.condition(scope)}"
    return Query(sql, fields, scope.in_duckdb)


def limited(builder: QueryBuilder, depth: int) -> Query:
    """The first rows of an order."""
    choices = builder.choices
    source, scope = builder.source()
    kept = _items(builder, scope)
    where = builder.where(scope, 30)
    listed = ", ".join(item.listed for item in kept)
    offset = choices.pick(("", "", " OFFSET 1", " OFFSET 3"))
    order = _order(builder, scope, total=True)
    sql = f"SELECT {listed} FROM {source}{where} ORDER BY {order} LIMIT {choices.pick((3, 1, 5, 0))}{offset}"
    return Query(sql, tuple(item.field for item in kept), scope.in_duckdb)


def windowed(builder: QueryBuilder, depth: int) -> Query:
    """Columns beside window functions, some of them over the same window."""
    choices = builder.choices
    source, scope = builder.source(joins=int(choices.chance(20)))
    items = _items(builder, scope)
    orders = {total: _order(builder, scope, total) for total in (False, True)}
    partition = "" if choices.chance(15) else f"PARTITION BY {_column(builder, scope)}"
    for number in range(choices.pick((1, 2, 3))):
        other = partition if choices.chance(70) else f"PARTITION BY {_column(builder, scope)}"
        items.append(_call(builder, scope, f"w{number}", other, orders))
    where = builder.where(scope, 30)
    listed = ", ".join(item.listed for item in items)
    fields = tuple(item.field for item in items)
    named = _window_of(items[-1].sql) if choices.chance(25) else ""
    if named:
        name = builder.name("over")
        listed, where = listed.replace(f"OVER {named}", f"OVER {name}"), f"{where} WINDOW {name} AS {named}"
    return Query(f"SELECT {listed} FROM {source}{where}", fields, scope.in_duckdb)


def _window_of(call: str) -> str:
    """Return the window with which a call ends, empty where something stands around the call."""
    window = call.rpartition(" OVER ")[2]
    return window if window.count("(") == window.count(")") else ""


def _items(builder: QueryBuilder, scope: Scope) -> list[Item]:
    return builder.choices.many(lambda number: builder.item(scope, f"c{number}"), 1, 2)


def _call(builder: QueryBuilder, scope: Scope, name: str, by: str, orders: dict[bool, str]) -> Item:
    choices = builder.choices
    total, loose = orders[True], orders[False]
    kind = choices.pick(scope.kinds())
    value = builder.expression(scope, kind, int(choices.chance(20)))
    drawn = choices.pick(_CALLS)
    if drawn == "ranking":
        function = choices.pick(("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(2)", "NTILE(3)"))
        return Item(f"{function} OVER ({by} ORDER BY {total})", Field(name, "integer"))
    if drawn == "share":
        function = choices.pick(("PERCENT_RANK", "CUME_DIST"))
        return Item(f"{function}() OVER ({by} ORDER BY {choices.pick((loose, total))})", Field(name, "floating"))
    if drawn == "aggregate":
        call, field = _aggregate(builder, scope, name)
        return Item(f"{call} OVER ({by}{choices.pick(('', f' ORDER BY {loose}'))})", field)
    if drawn == "sliding":
        call, field = _aggregate(builder, scope, name)
        return Item(f"{call} OVER ({by} ORDER BY {total} {choices.pick(_ROWS)})", field)
    if drawn == "offset":
        distance = choices.pick(("", ", 2", f", 1, {builder.expression(scope, kind, 0)}"))
        return Item(
            f"{choices.pick(('LAG', 'LEAD'))}({value}{distance}) OVER ({by} ORDER BY {total})", Field(name, kind)
        )
    if drawn == "value":
        function, more = choices.pick((("FIRST_VALUE", ""), ("LAST_VALUE", ""), ("NTH_VALUE", ", 2")))
        nulls = " IGNORE NULLS" if choices.chance(30) else ""
        # DuckDB wants IGNORE NULLS inside the parentheses.
        scope.in_duckdb = scope.in_duckdb and not nulls
        frame = choices.pick(_ROWS)
        return Item(f"{function}({value}{more}){nulls} OVER ({by} ORDER BY {total} {frame})", Field(name, kind))
    if drawn == "list":
        return _list(builder, scope, name, (value, kind), f"{by} ORDER BY {total}")
    if drawn == "percentile":
        return _percentile(builder, scope, name, by)
    call, field = _aggregate(builder, scope, name)
    distances = [f.name for f in scope.fields if f.kind == "integer" and f.exact]
    scope.in_duckdb = False
    if not distances:
        return Item(f"{call} OVER ({by})", field)
    direction = choices.pick(("", " DESC", " NULLS LAST"))
    # Small numbers: Spark fails where a bound leaves the column's type.
    measured = f"({choices.pick(distances)} % 7){direction}"
    return Item(f"{call} OVER ({by} ORDER BY {measured} {choices.pick(_RANGES)})", field)


def _list(builder: QueryBuilder, scope: Scope, name: str, argument: tuple[str, str], window: str) -> Item:
    """COLLECT_LIST in a total order, what a COLLECT_SET holds: one answer, unless Spark is loose about the order's."""
    choices, (value, kind) = builder.choices, argument
    scope.in_duckdb = False
    chosen = f" FILTER (WHERE {builder.condition(scope, 0)})" if choices.chance(20) else ""
    frame = choices.pick((*_ROWS, "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"))
    over = f"{chosen} OVER ({window} {frame})"
    settled = all(field.exact and field.kind != "floating" for field in scope.fields)
    # What is searched in a list must be portable.
    searched = ("ARRAY_CONTAINS",) if kind in IN_DUCKDB else ()
    drawn = choices.pick(("COLLECT_LIST", "ARRAY_AGG", "LISTAGG", "SIZE", *searched))
    if drawn == "LISTAGG" and kind in ("string", "integer"):
        return Item(f"LISTAGG({value}, ','){over}", Field(name, "string", exact=False, settled=settled))
    if drawn == "SIZE":
        return Item(f"SIZE(COLLECT_SET({value}){over})", Field(name, "integer", settled))
    if drawn == "ARRAY_CONTAINS":
        found = f"COALESCE(ARRAY_CONTAINS(COLLECT_SET({value}){over}, {value}), FALSE)"
        return Item(found, Field(name, "boolean", settled))
    if drawn == "LISTAGG":
        drawn, over = "COLLECT_LIST", f"{chosen} RESPECT NULLS OVER ({window} {frame})"
    return Item(f"{drawn}({value}){over}", Field(name, LIST, exact=False, settled=settled))


def _percentile(builder: QueryBuilder, scope: Scope, name: str, by: str) -> Item:
    """A percentile of the whole partition."""
    choices = builder.choices
    scope.in_duckdb = False
    kind = choices.pick([kind for kind in scope.kinds() if kind in NUMERIC] or ["integer"])
    text = choices.pick(_PERCENTILES).format(builder.expression(scope, kind, 0))
    chosen = f" FILTER (WHERE {builder.condition(scope, 0)})" if choices.chance(20) else ""
    field = Field(name, LIST if "ARRAY(" in text else "floating", exact=False, settled=kind != "floating")
    return Item(f"{text}{chosen} OVER ({by})", field)


def _aggregate(builder: QueryBuilder, scope: Scope, name: str) -> tuple[str, Field]:
    choices = builder.choices
    function = choices.pick(("COUNT(*)", "SUM", "MIN", "MAX", "COUNT"))
    if function == "COUNT(*)":
        return function, Field(name, "integer")
    usable = scope.kinds() if function != "SUM" else [k for k in scope.kinds() if k in ("integer", "decimal")]
    kind = choices.pick(usable or ["integer"])
    argument = builder.expression(scope, kind, int(choices.chance(20)))
    return f"{function}({argument})", Field(name, "integer" if function == "COUNT" else kind)


def _column(builder: QueryBuilder, scope: Scope) -> str:
    kind = builder.choices.pick(scope.kinds())
    text = builder.expression(scope, kind, 0)
    # ORDER BY reads a bare number as a position.
    return f"COALESCE({text})" if text in LITERALS["integer"] else text


def _order(builder: QueryBuilder, scope: Scope, total: bool) -> str:
    """Return ORDER BY items; ``total`` ones end with all columns."""
    choices = builder.choices
    chosen = [f"{_column(builder, scope)}{_direction(builder)}" for _ in range(choices.pick((1, 1, 2)))]
    if total:
        scope.in_duckdb = scope.in_duckdb and all(f.kind in IN_DUCKDB and f.exact for f in scope.fields)
        chosen += [f"{f.name}{_direction(builder)}" for f in scope.fields]
    return ", ".join(chosen)


def _direction(builder: QueryBuilder) -> str:
    return builder.choices.pick((" ASC NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST"))


FAMILY = Family(
    queries=(
        Production(first_of_each, weight=2, size=3),
        Production(limited, size=2),
        Production(windowed, weight=2, size=4),
    ),
)
