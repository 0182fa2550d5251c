"""The oracle's draws: the same by the same seed, shrunk where one fails, kept as JSON, and every family takes part."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from viewkeeper.testing.draws import OracleFailure, for_scripts
from viewkeeper.testing.grammar.families import FAMILIES, GRAMMAR
from viewkeeper.testing.grammar.family import Family, Production, merged
from viewkeeper.testing.scripts import Commit, Refresh, Script

PLACES = ("queries", "nested", "joins", "items", "aggregates", "conditions", "values")


def drawn(seed: int, cases: int) -> list[Script]:
    found: list[Script] = []
    for_scripts(seed, cases, found.append)
    return found


def test_a_seed_draws_the_same_scripts_again() -> None:
    first = drawn(3, 5)
    assert [script.to_json() for script in first] == [script.to_json() for script in drawn(3, 5)]
    assert [script.to_json() for script in first] != [script.to_json() for script in drawn(4, 5)]


def test_a_script_survives_json() -> None:
    for script in drawn(5, 20):
        assert Script.from_json(script.to_json()).to_json() == script.to_json()


@pytest.mark.slow
def test_a_failing_script_is_shrunk_by_structure_and_printed() -> None:
    def check(script: Script) -> None:
        deletes = [o for s in script.steps if isinstance(s, Commit) for o in s.operations if o.kind == "delete"]
        assert not (deletes and any(" JOIN " in view.sql for view in script.views))

    with pytest.raises(OracleFailure) as raised:
        for_scripts(3, 200, check)
    script = raised.value.script
    # One table, view, refresh, put and delete would do; hypothesis may stop a little before that.
    assert len(script.tables) + len(script.views) <= 4
    assert sum(isinstance(step, Refresh) for step in script.steps) <= 3
    assert sum(len(step.operations) for step in script.steps if isinstance(step, Commit)) <= 8
    assert Script.from_json(str(raised.value).split("regressions:\n")[1]).to_json() == script.to_json()


def test_every_family_takes_part() -> None:
    assert {
        "selections",
        "inner_joins",
        "groups",
        "unions",
        "derived_tables",
        "conditions",
        "scalars",
        "windows",
        "recursion",
    } < set(FAMILIES)
    assert merged(FAMILIES.values()) == GRAMMAR


@pytest.mark.slow
def test_every_production_is_drawn() -> None:
    words = {
        *("GROUP BY", "HAVING", "UNION ALL", "WITH ", "(SELECT", "FILTER", "BETWEEN", "CASE", "DISTINCT"),
        *("INTERSECT", "EXCEPT", "ROLLUP", " OVER ", "QUALIFY", "LIMIT", "EXISTS (SELECT", "IN (SELECT"),
        *("COLLECT_LIST(", "SIZE(COLLECT_SET(", " LATERAL (SELECT", "WITH RECURSIVE "),
        *(" USING (", " NATURAL ", " JOIN ", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"),
        *(") INTERSECT", ") EXCEPT", "CUBE(", "GROUPING SETS (", "GROUPING(", "GROUPING_ID("),
        *(" ANY (SELECT", " SOME (SELECT", " ALL (SELECT", ") = ANY (SELECT", ") <> ALL (SELECT"),
        *("FROM (SELECT", "(SELECT COUNT(*)", "FOR (k0, k1) IN", "IN ((u00, u01)"),
    }
    patterns = {
        # IN of several columns, QUALIFY by a call, HAVING by itself.
        *(rf"[ (]\([^()]+, [^()]+\) {word} \(SELECT" for word in ("IN", "NOT IN")),
        *(r"QUALIFY \w+\(\) OVER", r"FROM \w+ s\d+ HAVING"),
    }
    called: set[str] = set()
    grammar = recorded(GRAMMAR, called)
    missing = {*map(re.escape, words), *patterns, *names(GRAMMAR)}
    # Most often 250 scripts have them all; by 500 none may be missing.
    for seed in range(50):
        if missing:
            found: list[Script] = []
            for_scripts(6 + seed, 10, found.append, grammar=grammar)
            text = " ".join(view.sql for script in found for view in script.views)
            missing = {word for word in missing - called if not re.search(word, text)}
    assert not missing


def names(grammar: Family) -> set[str]:
    """Return what the productions are called."""
    return {name_of(production) for place in PLACES for production in getattr(grammar, place)}


def name_of(production: Production[Any]) -> str:
    return f"{production.draw.__module__}.{production.draw.__qualname__}"


def recorded(grammar: Family, called: set[str]) -> Family:
    """Return the grammar with productions that put their names into ``called``."""

    def recording(production: Production[Any]) -> Production[Any]:
        def draw(*given: Any) -> Any:
            called.add(name_of(production))
            return production.draw(*given)

        return replace(production, draw=draw)

    return replace(grammar, **{place: tuple(map(recording, getattr(grammar, place))) for place in PLACES})
