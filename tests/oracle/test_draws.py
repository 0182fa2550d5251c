"""The oracle's draws: the same by the same seed, shrunk where one fails, kept as JSON, and every family takes part."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from viewkeeper.testing.draws import OracleFailure, for_scripts
from viewkeeper.testing.evolution import TABLE_CHANGES, DropColumn, MoveRow
from viewkeeper.testing.generators import TIME_ZONES
from viewkeeper.testing.grammar.families import FAMILIES, GRAMMAR
from viewkeeper.testing.grammar.family import Family, Production, merged
from viewkeeper.testing.model import TableModel
from viewkeeper.testing.scripts import AlterView, Commit, Create, Refresh, Script

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
        for_scripts(5, 200, check)
    script = raised.value.script
    # One table, view, refresh, put and delete would do; hypothesis may stop a little before that.
    assert len(script.tables) + len(script.views) <= 4
    assert sum(isinstance(step, Refresh) for step in script.steps) <= 3
    assert sum(len(step.operations) for step in script.steps if isinstance(step, Commit)) <= 8
    assert Script.from_json(str(raised.value).split("regressions:\n")[1]).to_json() == script.to_json()


@pytest.mark.slow
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
        *(
            "MODE() WITHIN",
            "TRY_SUM(",
            "TRY_AVG(",
            "COLLECT_LIST(",
            "SIZE(COLLECT_SET(",
            " LATERAL (SELECT",
            "WITH RECURSIVE ",
        ),
        *(" USING (", " NATURAL ", " JOIN ", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"),
        *(") INTERSECT", ") EXCEPT", "CUBE(", "GROUPING SETS (", "GROUPING(", "GROUPING_ID("),
        *(" ANY (SELECT", " SOME (SELECT", " ALL (SELECT", ") = ANY (SELECT", ") <> ALL (SELECT"),
        *("FROM (SELECT", "(SELECT COUNT(*)", "FOR (k0, k1) IN", "IN ((u00, u01)"),
        *(" MONTH PRECEDING", " DAY PRECEDING", " WINDOW ", "PERCENT_RANK(", "CUME_DIST(", "NTILE(3)", "NTH_VALUE("),
        *("DATEDIFF(", "MONTHS_BETWEEN(", "DATE_ADD(", "ADD_MONTHS(", "DATE_TRUNC(", "+ INTERVAL", "AS TIMESTAMP)"),
        *("FROM_UTC_TIMESTAMP(", "TO_UTC_TIMESTAMP(", "AS TIMESTAMP_NTZ)", "DATE_FORMAT(", "UNIX_MICROS("),
        *("ARRAY(", "SPLIT(", "SIZE(s", "ARRAY_CONTAINS(", "GET(", "['a']", ".a ", "MAP_KEYS("),
        *("GROUP BY window(", "window.start", "window.end", "'1 day')", "'4 days')", "GROUP BY session_window("),
    }
    patterns = {
        # IN of several columns, QUALIFY by a call, HAVING by itself.
        *(rf"[ (]\([^()]+, [^()]+\) {word} \(SELECT" for word in ("IN", "NOT IN")),
        # Constant rows on each side of an outer join, and as a branch.
        *(
            r"(LEFT|RIGHT|FULL|SEMI|ANTI) JOIN (\(?VALUES|range\()",
            r" FROM (\(?VALUES|range\()[^F]* (LEFT|RIGHT|FULL) JOIN t\d",
        ),
        *(r"UNION ALL VALUES \(", r"VALUES [^F]* AS v\d+\(.* SELECT "),
        *(r" WITHIN GROUP \(ORDER BY .*\) OVER", r"QUALIFY \w+\(\) OVER", r"FROM \w+ s\d+ HAVING"),
        # Over all rows.
        r"(SUM|COUNT|MIN|MAX)\([^()]*\) OVER \((?!PARTITION)",
    }
    called: set[str] = set()
    grammar = recorded(GRAMMAR, called)
    missing = {*map(re.escape, words), *patterns, *names(GRAMMAR)}
    # Most often 250 scripts have them all; by 800 none may be missing.
    for seed in range(80):
        if missing:
            found: list[Script] = []
            for_scripts(6 + seed, 10, found.append, grammar=grammar)
            text = " ".join(query for script in found for query in script.queries())
            missing = {word for word in missing - called if not re.search(word, text)}
    assert not missing


def test_every_time_zone_takes_part() -> None:
    assert {script.time_zone for script in drawn(1, 50)} == set(TIME_ZONES)


def happenings(script: Script) -> set[str]:
    """Return what a script has of the steps that change tables and views, told apart by how they end."""
    model, found = TableModel(script), set()
    for step in script.steps:
        if isinstance(step, Create):
            model.define(script.view(step.view))
        elif isinstance(step, AlterView):
            found.add("a read view altered" if model.readers_of(step.view) else "a view altered")
            model.alter(step)
        elif isinstance(step, Commit):
            for operation in step.operations:
                model.apply(operation)
        elif not isinstance(step, Refresh):
            refusal = model.refusal(step)
            found.add(type(step).__name__ if refusal is None else f"{type(step).__name__}: {refusal}")
            if refusal is None:
                model.change(step)
    return found


def test_every_change_of_tables_and_views_takes_part() -> None:
    missing = {kind.__name__ for kind in TABLE_CHANGES.values()}
    missing |= {f"{DropColumn.__name__}: COLUMN_IN_USE", f"{MoveRow.__name__}: DUPLICATE_KEY"}
    missing |= {"a read view altered", "a view altered"}
    for seed in range(25):
        if missing:
            missing -= {happening for script in drawn(6 + seed, 10) for happening in happenings(script)}
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
