"""Window functions as Spark SQL: what VERIFY asks Spark for.

Spark's order within peers is arbitrary, ours is the key's. So a query numbers the rows of each partition first (``rn``,
ties by the key), and whatever depends on single rows is said by that number. What Spark sums inexactly is collected,
and summed where the rows arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from viewkeeper.expressions.spark_sql import cast_sql, column_name, spark_sql
from viewkeeper.expressions.tree import Literal
from viewkeeper.operators.functions.tolerant import TOLERANT, tolerant_sql
from viewkeeper.operators.ordered.percentiles import APPROXIMATE, CONTINUOUS, Percentile
from viewkeeper.operators.windows.call import LISTS, OFFSETS, RANKINGS, VALUES, Bound, CalendarDistance, Call
from viewkeeper.operators.windows.whole import list_order
from viewkeeper.zset.schema import BINARY, SqlType
from viewkeeper.zset.sort_keys import OrderItem

NUMBER = "rn"


def over(partition: Sequence[int], order: Sequence[OrderItem], frame: str | None) -> str:
    """Return a window specification over columns by position.

    Example:
        >>> over((1,), (OrderItem(0, False, False),), None)
        '(PARTITION BY `_c1` ORDER BY `_c0` DESC NULLS LAST)'
    """
    items = ", ".join(_item(item) for item in order) or "1"
    return _specified(partition, f"ORDER BY {items}", *([] if frame is None else [frame]))


def _specified(partition: Sequence[int], *clauses: str) -> str:
    """Return a window specification of a partition and what follows it."""
    by = [f"PARTITION BY {', '.join(map(column_name, partition))}"] if partition else []
    return f"({' '.join([*by, *clauses])})"


def _item(item: OrderItem) -> str:
    direction = "ASC" if item.ascending else "DESC"
    return f"{column_name(item.column)} {direction} NULLS {'FIRST' if item.nulls_first else 'LAST'}"


def call_sql(
    call: Call, partition: Sequence[int], order: Sequence[OrderItem], types: Sequence[SqlType], exact: bool
) -> str:
    """Return ``call`` over rows that are numbered by ``rn``; where not ``exact``, the values that its frame holds."""
    arguments = list(map(column_name, call.arguments))
    if call.function in RANKINGS:
        numbered = _specified(partition, f"ORDER BY {NUMBER}")
        window = over(partition, order, None) if call.function in _OF_PEERS else numbered
        return f"{call.function}({', '.join(map(str, call.constants))}) OVER {window}"
    if call.function in OFFSETS:
        values = ", ".join([arguments[0], str(call.constants[0]), *arguments[1:]])
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        return f"{call.function}({values}){nulls} OVER {_specified(partition, f'ORDER BY {NUMBER}')}"
    window = _framed(call, partition, order, types)
    if call.function in VALUES:
        return _value_sql(call, arguments[0], window)
    if call.function == "mode" or (call.function == "listagg" and list_order(call.constants)):
        return _whole_sql(call, arguments, partition)
    if call.function == "listagg":
        texts, delimiter = _list_sql(call, arguments[0], window), spark_sql(Literal(call.constants[0], call.type))
        joined = f"array_join({texts}, {delimiter})"
        if call.type == BINARY:
            joined = f"unhex(array_join(transform({texts}, x -> hex(x)), hex({delimiter})))"
        return f"CASE WHEN size({texts}) > 0 THEN {joined} END"
    if call.function in LISTS:
        return _list_sql(call, arguments[0], window)
    if call.function == "percentile":
        return _percentile_sql(call, arguments, partition, window)
    chosen = f" FILTER (WHERE {column_name(call.filter)})" if call.filter is not None else ""
    if call.function in TOLERANT:
        return tolerant_sql(call.function, arguments[0], call.argument_types[0], call.type, f"{chosen} OVER {window}")
    function = "COUNT" if call.function == "count_star" else call.function
    if not exact:
        return f"collect_list({arguments[0]}){chosen} OVER {window}"
    return cast_sql(f"{function}({', '.join(arguments) or '*'}){chosen} OVER {window}", call.type)


_OF_PEERS = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))


def _value_sql(call: Call, argument: str, window: str) -> str:
    conditions = [f"{argument} IS NOT NULL"] if call.ignore_nulls else []
    if call.filter is not None:
        conditions.append(column_name(call.filter))
    number = f"CASE WHEN {' AND '.join(conditions)} THEN {NUMBER} END" if conditions else NUMBER
    if call.function == "nth_value":
        held = f"CASE WHEN {number} IS NOT NULL THEN struct({NUMBER} AS n, {argument} AS v) END"
        place = call.constants[0]
        assert isinstance(place, int)
        return f"get(array_sort(collect_list({held}) OVER {window}), {place - 1}).v"
    chosen = "min_by" if call.function == "first_value" else "max_by"
    return f"{chosen}(struct({argument} AS v), {number}) OVER {window}.v"


def _list_sql(call: Call, argument: str, window: str) -> str:
    conditions = [f"{argument} IS NOT NULL"] if call.ignore_nulls else []
    conditions += [] if call.filter is None else [column_name(call.filter)]
    if call.function == "collect_set":
        chosen = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        return f"sort_array(collect_set({argument}){chosen} RESPECT NULLS OVER {window})"
    counted = f"CASE WHEN {' AND '.join(conditions) or 'TRUE'} THEN"
    # Not the values themselves are compared: they may be MAPs.
    rows = f"collect_list({counted} named_struct('n', {NUMBER}, 'v', {argument}) END) OVER {window}"
    return f"transform(array_sort({rows}, (l, r) -> l.n - r.n), x -> x.v)"


def _whole_sql(call: Call, arguments: Sequence[str], partition: Sequence[int]) -> str:
    chosen = f" FILTER (WHERE {column_name(call.filter)})" if call.filter is not None else ""
    whole = f"{chosen} OVER {_specified(partition)}"
    if call.function == "mode":
        return f"mode() WITHIN GROUP (ORDER BY {arguments[0]}{' DESC' * bool(call.constants[0])}){whole}"
    text, *order = arguments
    items = [
        f"{argument} {'ASC' if ascending else 'DESC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        for argument, (ascending, nulls_first) in zip(order, list_order(call.constants), strict=True)
    ]
    delimiter = spark_sql(Literal(call.constants[0], call.type))
    return f"listagg({text}, {delimiter}) WITHIN GROUP (ORDER BY {', '.join([*items, NUMBER])}){whole}"


def _percentile_sql(call: Call, arguments: Sequence[str], partition: Sequence[int], window: str) -> str:
    argument, *frequency = arguments
    wanted = Percentile.of_constants(call.constants, call.type)
    chosen = f" FILTER (WHERE {column_name(call.filter)})" if call.filter is not None else ""
    shares = [f"{percentage!r}D" for percentage in wanted.percentages]
    if wanted.kind != APPROXIMATE:
        share = f"array({', '.join(shares)})" if wanted.listed else shares[0]
        function = "percentile_cont" if wanted.kind == CONTINUOUS else "percentile_disc"
        whole = f"{chosen} OVER {_specified(partition)}"
        if frequency:
            return f"percentile({argument}, {share}, {frequency[0]}){whole}"
        order = f"ORDER BY {argument}{' DESC' * wanted.descending}"
        return f"{function}({share}) WITHIN GROUP ({order}){whole}"
    values = f"sort_array(collect_list({argument}){chosen} OVER {window})"
    found = [f"get({values}, CAST(greatest(ceil({share} * size({values})), 1) - 1 AS INT))" for share in shares]
    if not wanted.listed:
        return found[0]
    return f"CASE WHEN size({values}) > 0 THEN array({', '.join(found)}) END"


def _framed(call: Call, partition: Sequence[int], order: Sequence[OrderItem], types: Sequence[SqlType]) -> str:
    if call.unit == "rows":
        bounds = f"ROWS BETWEEN {_bound(call.start, 'PRECEDING')} AND {_bound(call.stop, 'FOLLOWING')}"
        return _specified(partition, f"ORDER BY {NUMBER}", bounds)
    if not order:
        return over(partition, (), "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
    sql_type = types[order[0].column]
    start, stop = _bound(call.start, "PRECEDING", sql_type), _bound(call.stop, "FOLLOWING", sql_type)
    return over(partition, order, f"RANGE BETWEEN {start} AND {stop}")


def _bound(distance: Bound, direction: str, sql_type: SqlType | None = None) -> str:
    if distance is None:
        return f"UNBOUNDED {direction}"
    months = isinstance(distance, CalendarDistance) and distance.is_months
    number = distance.count if isinstance(distance, CalendarDistance) else distance
    assert isinstance(number, int | float | Decimal)
    if number == 0:
        return "CURRENT ROW"
    if number < 0:
        number, direction = -number, "FOLLOWING" if direction == "PRECEDING" else "PRECEDING"
    text = str(number)
    if months:
        text = f"INTERVAL '{number}' MONTH"
    elif sql_type is not None and sql_type.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        text = f"INTERVAL '{number // 1_000_000}.{number % 1_000_000:06}' SECOND"
    elif sql_type is not None and sql_type.name != "DATE":
        text = cast_sql(f"'{number}'", sql_type)
    return f"{text} {direction}"
