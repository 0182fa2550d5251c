"""The other aggregates: DISTINCT, statistics, truth, bits, ends, ranks, lists.

Where Spark's answer depends on the order of rows or on its rounding, the column is inexact: it is checked against our
own rule, and nothing is computed from it. Nor from a settled one, but Spark is asked about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import DrawItem, Family, Production
from viewkeeper.testing.grammar.parts import INTERVAL, LIST, MOVED, NUMERIC, Field, Item, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_STATISTICS = ("STDDEV", "STDDEV_POP", "VARIANCE", "VAR_POP", "SKEWNESS", "KURTOSIS")
_PAIRS = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_SXX", "REGR_SXY")
_ENDS = ("FIRST({})", "LAST({})", "FIRST({}, TRUE)", "ANY_VALUE({})", "MODE({})", "LAST({}, TRUE)")
_RANKS = (
    "MEDIAN({})",
    "MEDIAN(DISTINCT {})",
    "PERCENTILE(DISTINCT {}, ARRAY(0.2, 0.7))",
    "PERCENTILE({}, 0.3)",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {} DESC)",
    "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY {})",
    "PERCENTILE(CAST({} AS DOUBLE), ARRAY(0.0, 0.5, 1.0))",
)


def distinct(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """COUNT(DISTINCT …) of one or two arguments."""
    arguments = [_drawn(builder, scope)[0] for _ in range(builder.choices.pick((1, 1, 2)))]
    scope.in_duckdb = scope.in_duckdb and len(arguments) == 1
    return Item(f"COUNT(DISTINCT {', '.join(arguments)})", Field(name, "integer"))


def distinct_sum(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """SUM(DISTINCT x): of floating values inexact."""
    argument, kind = _drawn(builder, scope, NUMERIC)
    scope.in_duckdb = False
    scale = f"SUM(ABS(CAST({argument} AS DOUBLE)))" if kind == "floating" else ""
    return Item(f"SUM(DISTINCT {argument})", Field(name, kind, exact=not scale), scale)


def tolerant(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """TRY_SUM or TRY_AVG, of numbers that do not cancel: else Spark's answer depends on the order of rows."""
    argument, kind = _drawn(builder, scope, ("integer", "decimal"))
    scope.in_duckdb = False
    function = builder.choices.pick(("TRY_SUM", "TRY_AVG")) if kind == "decimal" else "TRY_SUM"
    return Item(f"{function}(CASE WHEN {argument} > 0 THEN {argument} END)", Field(name, kind))


def interval(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """SUM, AVG, MIN or MAX of what lies between moments."""
    kind = builder.choices.pick([k for k in scope.kinds() if k in ("timestamp", "timestamp_ntz")] or ["timestamp_ntz"])
    until, since = (MOVED[kind].format(builder.expression(scope, kind, 0)) for _ in range(2))
    scope.in_duckdb = False
    function = builder.choices.pick(("SUM", "AVG", "MAX", "MIN", "TRY_SUM", "TRY_AVG"))
    return Item(f"{function}({until} - {since})", Field(name, INTERVAL, exact=False, settled=True))


def statistic(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """A function of one numeric argument, sometimes DISTINCT."""
    argument, _ = _drawn(builder, scope, NUMERIC)
    text = f"{builder.choices.pick(_STATISTICS)}({'DISTINCT ' * builder.choices.chance(20)}{argument})"
    return _inexact(scope, name, text)


def pair(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """A function of two numeric arguments."""
    arguments = [_drawn(builder, scope, NUMERIC)[0] for _ in range(2)]
    return _inexact(scope, name, f"{builder.choices.pick(_PAIRS)}({', '.join(arguments)})")


def truth(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """BOOL_AND, BOOL_OR or COUNT_IF of a condition."""
    function = builder.choices.pick(("BOOL_AND", "BOOL_OR", "COUNT_IF"))
    scope.in_duckdb = False
    kind = "integer" if function == "COUNT_IF" else "boolean"
    return Item(f"{function}({builder.condition(scope, 0)})", Field(name, kind))


def bits(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """BIT_AND, BIT_OR or BIT_XOR."""
    argument, _ = _drawn(builder, scope, ("integer",))
    scope.in_duckdb = False
    return Item(f"{builder.choices.pick(('BIT_AND', 'BIT_OR', 'BIT_XOR'))}({argument})", Field(name, "integer"))


def end(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """FIRST, LAST, ANY_VALUE or MODE."""
    argument, kind = _drawn(builder, scope)
    return _inexact(scope, name, builder.choices.pick(_ENDS).format(argument), kind)


def by(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """MIN_BY or MAX_BY, of one value or of several; by the value itself Spark has one answer."""
    (value, kind), (order, _) = _drawn(builder, scope), _drawn(builder, scope)
    count = builder.choices.pick(("", "", ", 2", ", 3"))
    settled = kind != "floating" and builder.choices.chance(40)
    text = f"{builder.choices.pick(('MIN_BY', 'MAX_BY'))}({value}, {value if settled else order}{count})"
    return _inexact(scope, name, text, LIST if count else kind, settled)


def rank(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """MEDIAN and percentiles."""
    argument, kind = _drawn(builder, scope, NUMERIC)
    if builder.choices.chance(20):
        frequency, _ = _drawn(builder, scope, ("integer",))
        text = f"PERCENTILE({argument}, ARRAY(0.25, 0.7), PMOD({frequency}, 4))"
    else:
        text = builder.choices.pick(_RANKS).format(argument)
    return _inexact(scope, name, text, LIST if "ARRAY(" in text else "floating", kind != "floating")


def approximate_rank(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """PERCENTILE_APPROX, of which any answer within Spark's accuracy is right."""
    argument, kind = _drawn(builder, scope, NUMERIC)
    return _inexact(scope, name, f"PERCENTILE_APPROX({argument}, 0.5)", kind)


def collected(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """COLLECT_LIST or COLLECT_SET."""
    argument, _ = _drawn(builder, scope)
    function = builder.choices.pick(("COLLECT_LIST({})", "COLLECT_SET({})", "COLLECT_LIST(DISTINCT {})"))
    return _inexact(scope, name, function.format(argument), LIST)


def joined(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """LISTAGG, ordered by another expression, or DISTINCT and ordered by itself."""
    text = builder.expression(scope, "string", 0)
    if builder.choices.chance(50):
        return _inexact(
            scope, name, f"LISTAGG(DISTINCT {text}, ',') WITHIN GROUP (ORDER BY {text} DESC)", "string", True
        )
    order, _ = _drawn(builder, scope)
    direction = builder.choices.pick(("", " DESC", " NULLS LAST"))
    return _inexact(scope, name, f"LISTAGG({text}, ',') WITHIN GROUP (ORDER BY {order}{direction})", "string")


def _drawn(builder: QueryBuilder, scope: Scope, kinds: Sequence[str] | None = None) -> tuple[str, str]:
    usable = [kind for kind in scope.kinds() if kinds is None or kind in kinds]
    kind = builder.choices.pick(usable or ["integer"])
    return builder.expression(scope, kind, int(builder.choices.chance(20))), kind


def _inexact(scope: Scope, name: str, text: str, kind: str = "floating", settled: bool = False) -> Item:
    # Nothing is computed from it, but a UNION puts it beside others of its class.
    scope.in_duckdb = False
    return Item(text, Field(name, kind, False, settled))


_DRAWS: tuple[DrawItem, ...] = (
    distinct, distinct_sum, tolerant, interval, statistic, pair, truth, bits, end, by, rank, approximate_rank,
    collected, joined,
)  # fmt: skip

FAMILY = Family(aggregates=tuple(Production(draw) for draw in _DRAWS))
