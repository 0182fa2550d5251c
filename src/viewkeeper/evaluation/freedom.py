"""Whether Spark may answer a query in several ways: by the order in which it happens to read rows, or approximately.

Of rows that tie it shows any first; lists without an order, and FIRST, MODE or MIN_BY among equals, take rows as they
come; TRY_SUM and TRY_AVG are NULL where they overflow on the way; sketches estimate. Ours follow one rule each, that of
the operators' pages. Where Spark's whole answer to such a query differs from ours, it proves nothing.
"""

from __future__ import annotations

import re

from viewkeeper.plan.nodes import Aggregate, Node, TopK, Window, walk
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.planning import Planner

_TOTALS = ("try_sum", "try_avg")
_AGGREGATES = frozenset(("first", "last", "min_by", "max_by", "mode", "collect_list", "listagg", *_TOTALS))
# RANK, DENSE_RANK, and sums by RANGE give rows that tie one value.
_WINDOWS = frozenset((
    "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value",
    "collect_list", "collect_set", "listagg", "mode", *_TOTALS,
))  # fmt: skip
_SKETCHES = re.compile(r"\b(approx_count_distinct|approx_percentile|percentile_approx)\s*\(", re.IGNORECASE)


def has_many_answers(planner: Planner, catalog: Catalog, view: ViewDefinition) -> bool:
    """Return whether Spark may answer a view's query, or that of a view which it reads, in several ways.

    Args:
        planner: plans the queries.
        catalog: of the moment at which the view is looked at.
        view: the view.
    """
    if _SKETCHES.search(view.sql) or any(map(_is_free, walk(planner.plan(catalog, view).root))):
        return True
    below = (catalog.views[id_] for id_ in view.read_ids if id_ in catalog.views)
    return any(has_many_answers(planner, catalog, one) for one in below)


def _is_free(node: Node) -> bool:
    if isinstance(node, Aggregate):
        return any(call.function in _AGGREGATES for call in node.calls)
    if isinstance(node, Window):
        return any(call.function in _WINDOWS or call.unit == "rows" for call in node.calls)
    return isinstance(node, TopK)
