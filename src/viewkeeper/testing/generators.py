"""What the oracle runs, drawn by hypothesis: schemas, awkward rows, views, transactions, epochs, cadences.

``pools.py`` has the values, ``drawn_views.py`` the views, ``drawn_steps.py`` what happens to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from viewkeeper.testing.choices import Choices
from viewkeeper.testing.drawn_steps import StepDrawer
from viewkeeper.testing.drawn_views import ViewDrawer
from viewkeeper.testing.grammar.families import GRAMMAR
from viewkeeper.testing.grammar.family import Family
from viewkeeper.testing.model import TableModel
from viewkeeper.testing.pools import NESTED_TYPES, TYPES, drawn_pool
from viewkeeper.testing.scripts import Script, ScriptTable

REFRESHES = (*["REFRESH CONTINUOUS"] * 4, "REFRESH ON DEMAND", "REFRESH EVERY 1 SECONDS", "REFRESH EVERY 2 SECONDS")
# Two with hours that come twice a year, one of them half ones; one that is never at a full hour.
TIME_ZONES = (*["UTC"] * 4, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


@st.composite
def scripts(draw: DrawFn, refreshes: Sequence[str] = REFRESHES, grammar: Family = GRAMMAR) -> Script:
    """Draw a script.

    Args:
        draw: hypothesis' draw function.
        refreshes: REFRESH clauses to choose from.
        grammar: the productions of its queries.
    """
    choices = Choices(draw)
    types = choices.some(list(TYPES), 2, 5)
    time_zone = choices.pick(TIME_ZONES)
    nested = choices.some(list(NESTED_TYPES), 1, 2) if choices.chance(35) else []
    pools = {kind: drawn_pool(choices, kind, time_zone) for kind in (*types, *nested)}
    tables = tuple(_table(choices, f"t{number}", types, nested) for number in range(choices.pick((1, 1, 2, 2, 3))))
    model = TableModel(Script(tables, (), ()))
    views = ViewDrawer(choices, model, refreshes, grammar)
    steps = StepDrawer(choices, model, views, pools).all()
    return Script(tables, tuple(views.drawn), steps, time_zone)


def _table(choices: Choices, name: str, types: Sequence[str], nested: Sequence[str]) -> ScriptTable:
    """Draw a table: one or two key columns, one to four others; those alone are of types that hold values."""
    key = [(f"k{i}", choices.pick(types), False) for i in range(choices.pick((1, 1, 2)))]
    others = [(f"v{i}", choices.pick((*types, *nested)), choices.chance(75)) for i in range(choices.pick((1, 2, 3, 4)))]
    return ScriptTable(name, tuple(key + others), tuple(column for column, _, _ in key))
