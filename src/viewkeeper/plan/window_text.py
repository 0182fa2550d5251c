"""Windows and first rows as text, for EXPLAIN and for golden files."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from viewkeeper.operators.windows.call import Bound, CalendarDistance
from viewkeeper.plan.nodes import SortKey, TopK, Window, WindowCall

_UNFRAMED = frozenset((
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
))  # fmt: skip


def window_title(node: TopK | Window) -> str:
    """Return ``node`` as one line."""
    names = node.input.schema.names
    per = f" per {', '.join(names[i] for i in node.partition)}" if node.partition else ""
    order = f", order {order_text(node.order, names)}" if node.order else ""
    if isinstance(node, TopK):
        skipped = f" after {node.offset}" if node.offset else ""
        return f"First {node.limit - node.offset}{skipped} by {node.ranking}{per}{order}"
    outputs = zip(node.schema.names[len(names) :], node.calls, strict=True)
    return f"Window{per}{order}: {', '.join(f'{name} := {_call(call, names)}' for name, call in outputs)}"


def order_text(order: Sequence[SortKey], names: Sequence[str]) -> str:
    """Return an order over columns of ``names``; NULLs are told where they do not stand where Spark puts them.

    Example:
        >>> order_text((SortKey(0, False, False), SortKey(1, True, False)), ["a", "b"])
        'a desc, b nulls last'
    """
    return ", ".join(_item(item, names) for item in order)


def _item(item: SortKey, names: Sequence[str]) -> str:
    nulls = "" if item.nulls_first == item.ascending else f" nulls {'first' if item.nulls_first else 'last'}"
    return f"{names[item.column]}{'' if item.ascending else ' desc'}{nulls}"


def _call(call: WindowCall, names: Sequence[str]) -> str:
    arguments = ", ".join([*(names[i] for i in call.arguments), *map(str, call.constants)])
    text = f"{call.function}({arguments})"
    if call.ignore_nulls:
        text += " ignore nulls"
    if call.filter is not None:
        text += f" filter {names[call.filter]}"
    if call.function not in _UNFRAMED and (call.start is not None or call.stop is not None):
        text += f" {call.unit} {_bound(call.start, -1)} to {_bound(call.stop, 1)}"
    return text


def _bound(distance: Bound, sign: int) -> str:
    if distance is None:
        return "first" if sign < 0 else "last"
    if isinstance(distance, CalendarDistance):
        unit = "months" if distance.is_months else f"microseconds in {distance.time_zone}"
        return f"{sign * distance.count:+} {unit}"
    assert isinstance(distance, int | float | Decimal)
    return f"{sign * distance:+}" if distance else "current"
