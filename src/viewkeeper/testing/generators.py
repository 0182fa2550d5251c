"""What the oracle runs, drawn by hypothesis: schemas, awkward rows, views, transactions, epochs, cadences.

Values come from small pools, one a type and script, so that keys meet, groups are shared and joins find partners. A
pool holds ordinary values and, sometimes, what breaks things: the ends of a type's range, NaN, −0.0, empty and very
long texts that differ only behind their common beginning, 0x00.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from viewkeeper.testing.choices import Choices
from viewkeeper.testing.grammar.builder import QueryBuilder
from viewkeeper.testing.grammar.families import GRAMMAR
from viewkeeper.testing.grammar.family import Family
from viewkeeper.testing.grammar.parts import Field, Query, Relation
from viewkeeper.testing.scripts import (
    Commit,
    Create,
    Operation,
    Refresh,
    Row,
    Script,
    ScriptTable,
    ScriptView,
    Step,
    TableModel,
    comparable,
)

_LONG = "x" * 128
_EARLY, _LATE = map(datetime.fromisoformat, ("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"))
_MOMENTS = tuple(
    map(datetime.fromisoformat, ("2024-02-29T12:00:00", "1970-01-01T00:00:00", "2024-03-31T02:30:00.000001"))
)
_TEXTS = ("a", "b", "", "é", "12", " 7", "x", "2024-02-29")

# Per SQL type: its class, ordinary values, awkward ones.
TYPES: dict[str, tuple[str, tuple[Any, ...], tuple[Any, ...]]] = {
    "TINYINT": ("integer", (0, 1, 2, -1, 7), (127, -128)),
    "SMALLINT": ("integer", (0, 1, 2, -1, 7), (32767, -32768)),
    "INT": ("integer", (0, 1, 2, -1, 7), (2147483647, -2147483648)),
    "BIGINT": ("integer", (0, 1, 2, -1, 7), (9223372036854775807, -9223372036854775808)),
    "DECIMAL(5,2)": ("decimal", (Decimal("0.00"), Decimal("1.25"), Decimal("-2.00")), (Decimal("999.99"),)),
    "DECIMAL(18,0)": ("decimal", (Decimal(0), Decimal(1), Decimal(10)), (Decimal("-999999999999999999"),)),
    "DECIMAL(38,10)": (
        "decimal",
        (Decimal("0.0000000001"), Decimal("1.2500000000")),
        (Decimal(f"{'9' * 28}.{'9' * 10}"),),
    ),
    "FLOAT": ("floating", (0.0, 0.5, -1.0, 2.0), (-0.0, float("nan"), float("inf"), 16777216.0)),
    "DOUBLE": (
        "floating",
        (0.0, 0.5, -1.0, 0.1),
        (-0.0, float("nan"), float("inf"), float("-inf"), 1e300, -1e16, 5e-324),
    ),
    "STRING": ("string", _TEXTS, ("\0", "a\0", "日本", "\U0001f600", _LONG + "1", _LONG + "2", _LONG, "é" * 100)),
    "BINARY": ("binary", (b"", b"a", b"b"), (b"\0", b"\0\0", b"\xff", b"x" * 200, b"x" * 201)),
    "BOOLEAN": ("boolean", (True, False), ()),
    "DATE": ("date", (date(2024, 2, 29), date(1970, 1, 1)), (date.min, date.max)),
    "TIMESTAMP": (
        "timestamp",
        tuple(m.replace(tzinfo=UTC) for m in _MOMENTS),
        (_EARLY.replace(tzinfo=UTC), _LATE.replace(tzinfo=UTC)),
    ),
    "TIMESTAMP_NTZ": ("timestamp_ntz", _MOMENTS, (_EARLY, _LATE)),
}
_DUCKDB_TYPES = frozenset(("TINYINT", "SMALLINT", "INT", "BIGINT", "STRING", "BOOLEAN", "DATE"))
REFRESHES = (*["REFRESH CONTINUOUS"] * 4, "REFRESH ON DEMAND", "REFRESH EVERY 1 SECONDS", "REFRESH EVERY 2 SECONDS")
# AUTO follows where the oracle draws ways.
POLICIES = (*[""] * 3, " REFRESH POLICY INCREMENTAL", " REFRESH POLICY FULL", " REFRESH POLICY FULL")
_MAX_KEY_VALUES = 4


@dataclass(frozen=True)
class _Pool:
    """The values of one type; those for keys are all different as keys."""

    values: tuple[Any, ...]
    keys: tuple[Any, ...]


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
    pools = {kind: _pool(choices, kind) for kind in types}
    tables = tuple(_table(choices, f"t{number}", types) for number in range(choices.pick((1, 1, 2, 2, 3))))
    views = _views(choices, tables, refreshes, grammar)
    return Script(tables, views, _Steps(choices, tables, views, pools).all())


def _pool(choices: Choices, kind: str) -> _Pool:
    _, ordinary, awkward = TYPES[kind]
    chosen = choices.some(ordinary, 1, 4)
    if awkward and choices.chance(40):
        chosen += choices.some(awkward, 1, 3)
    keys = {comparable(value): value for value in chosen}
    return _Pool(tuple(chosen), tuple(list(keys.values())[:_MAX_KEY_VALUES]))


def _table(choices: Choices, name: str, types: Sequence[str]) -> ScriptTable:
    """Draw a table: one or two key columns, one to four others."""
    key = [(f"k{i}", choices.pick(types), False) for i in range(choices.pick((1, 1, 2)))]
    others = [(f"v{i}", choices.pick(types), choices.chance(75)) for i in range(choices.pick((1, 2, 3, 4)))]
    return ScriptTable(name, tuple(key + others), tuple(column for column, _, _ in key))


def _views(
    choices: Choices, tables: Sequence[ScriptTable], refreshes: Sequence[str], grammar: Family
) -> tuple[ScriptView, ...]:
    relations = [
        Relation(
            t.name,
            tuple(Field(name, TYPES[kind][0]) for name, kind, _ in t.columns),
            all(kind in _DUCKDB_TYPES for _, kind, _ in t.columns),
        )
        for t in tables
    ]

    def view(number: int) -> ScriptView:
        query = QueryBuilder(choices, relations, grammar).query()
        name = f"view{number}"
        refresh = choices.pick(refreshes) + choices.pick(POLICIES)
        names = tuple(f.name for f in query.fields)
        key = _declared_key(choices, query)
        inexact = tuple(f.name for f in query.fields if not f.exact and not f.settled)
        scaled = (query.scaled, query.scaled_sql)
        relations.append(Relation(name, query.fields, query.in_duckdb))
        return ScriptView(name, query.sql, names, refresh, key, inexact, *scaled, query.in_duckdb, query.spark_sql)

    drawn = choices.many(view, 1, 3)
    if choices.chance(30):
        # What it joins is kept already where both refresh together: then it is filled with that.
        drawn.append(replace(choices.pick(drawn), name=f"view{len(drawn)}"))
    return tuple(drawn)


def _declared_key(choices: Choices, query: Query) -> tuple[str, ...]:
    """Declare a key now and then: rows may break it, and mend it."""
    if not choices.chance(12):
        return ()
    exact = [f.name for f in query.fields if f.exact]
    return tuple(choices.some(exact, 1, 2)) if exact else ()


class _Steps:
    """Draws commits of all sizes, refreshes of all or some views between them, and views created on the way.

    Args:
        choices: makes the choices.
        tables: what is written to.
        views: what is created.
        pools: the values, by type.
    """

    def __init__(
        self, choices: Choices, tables: Sequence[ScriptTable], views: Sequence[ScriptView], pools: Mapping[str, _Pool]
    ) -> None:
        self._choices = choices
        self._tables = tables
        self._pools = pools
        self._model = TableModel(Script(tuple(tables), (), ()))
        self._created: list[str] = []
        self._waiting = [view.name for view in views]

    def all(self) -> tuple[Step, ...]:
        """Return the steps; the last one refreshes everything."""
        steps: list[Step] = []
        if not self._choices.chance(50):
            steps += self._create(len(self._waiting))
        steps.append(self._commit(2, 12))
        for round_ in self._choices.many(lambda _: self._round(), 1, 5):
            steps += round_
        return (*steps, *self._create(len(self._waiting)), Refresh())

    def _create(self, number: int) -> list[Step]:
        names, self._waiting = self._waiting[:number], self._waiting[number:]
        self._created += names
        return [Create(name) for name in names]

    def _round(self) -> list[Step]:
        """Draw what comes up to a refresh, and that."""
        choices = self._choices
        steps = self._create(int(choices.chance(50)))
        steps += choices.many(lambda _: self._commit(1, 6), 0, 3)
        some = choices.pick(self._created) if self._created and choices.chance(25) else None
        return [*steps, Refresh((some,) if some else ())]

    def _commit(self, least: int, most: int) -> Commit:
        drawn = self._choices.many(lambda _: self._operation(), least, most)
        return Commit(tuple(operation for operation in drawn if operation is not None))

    def _operation(self) -> Operation | None:
        """Draw a write; None where it would update a row that is not there."""
        choices, table = self._choices, self._choices.pick(self._tables)
        kind = choices.pick(("put", "put", "put", "update", "update", "delete", "delete", "same"))
        there = list(self._model.rows[table.name].values())
        known = choices.pick(there) if there and kind != "put" else None
        operation = self._write(table, kind, known)
        return operation if self._model.apply(operation) else None

    def _write(self, table: ScriptTable, kind: str, known: Row | None) -> Operation:
        choices = self._choices
        if kind == "same" and known is not None:
            return Operation("put", table.name, dict(known))
        if known is not None and not choices.chance(10):
            at = {name: known[name] for name in table.key}
        else:
            at = {name: choices.pick(self._pools[k].keys) for name, k, _ in table.columns if name in table.key}
        if kind == "delete":
            return Operation("delete", table.name, at)
        others = [column for column in table.columns if column[0] not in table.key]
        if kind == "update" and known is not None:
            changed = choices.some(others, 1, 2)
            return Operation("update", table.name, {n: self._value(k, null) for n, k, null in changed}, at)
        return Operation("put", table.name, {**at, **{n: self._value(k, null) for n, k, null in others}})

    def _value(self, kind: str, nullable: bool) -> Any:
        if nullable and self._choices.chance(17):
            return None
        return self._choices.pick(self._pools[kind].values)
