"""What the oracle runs, drawn: schemas, awkward rows, views of the grammar, transactions, epochs, cadences.

Values come from small pools, one a type and script, so that keys meet, groups are shared and joins find partners. A
pool holds ordinary values and, sometimes, what breaks things: the ends of a type's range, NaN, −0.0, empty and very
long texts that differ only behind their common beginning, 0x00.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from viewkeeper.clock import seeded
from viewkeeper.testing.choices import Choices, SeededChoices
from viewkeeper.testing.generated_queries import Field, Query, QueryBuilder, Relation
from viewkeeper.testing.scripts import (
    Commit,
    Create,
    Operation,
    Refresh,
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
_MAX_KEY_VALUES = 4


@dataclass(frozen=True)
class _Pool:
    """The values of one type; those for keys are all different as keys."""

    values: tuple[Any, ...]
    keys: tuple[Any, ...]


def script_of(seed: int, refreshes: Sequence[str] = REFRESHES) -> Script:
    """Return the script that ``seed`` stands for.

    Args:
        seed: any number.
        refreshes: REFRESH clauses to choose from.
    """
    return make_script(SeededChoices(seeded(seed)), refreshes)


def make_script(choices: Choices, refreshes: Sequence[str] = REFRESHES) -> Script:
    """Return a script.

    Args:
        choices: makes the choices.
        refreshes: REFRESH clauses to choose from.
    """
    types = choices.some(list(TYPES), 2, 5)
    pools = {kind: _pool(choices, kind) for kind in types}
    tables = tuple(_table(choices, f"t{number}", types) for number in range(choices.pick((1, 1, 2, 2, 3))))
    views = _views(choices, tables, refreshes)
    return Script(tables, views, tuple(_steps(choices, tables, views, pools)))


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


def _views(choices: Choices, tables: Sequence[ScriptTable], refreshes: Sequence[str]) -> tuple[ScriptView, ...]:
    relations = [
        Relation(
            t.name,
            tuple(Field(name, TYPES[kind][0]) for name, kind, _ in t.columns),
            all(kind in _DUCKDB_TYPES for _, kind, _ in t.columns),
        )
        for t in tables
    ]
    views = []
    for number in range(choices.pick((1, 2, 2, 3))):
        query = QueryBuilder(choices, relations).query()
        name = f"view{number}"
        refresh = choices.pick(refreshes)
        names = tuple(f.name for f in query.fields)
        key = _declared_key(choices, query)
        inexact = tuple(f.name for f in query.fields if not f.exact)
        scaled = (query.scaled, query.scaled_sql)
        views.append(ScriptView(name, query.sql, names, refresh, key, inexact, *scaled, query.in_duckdb))
        relations.append(Relation(name, query.fields, query.in_duckdb))
    return tuple(views)


def _declared_key(choices: Choices, query: Query) -> tuple[str, ...]:
    """Declare a key now and then: rows may break it, and mend it."""
    if not choices.chance(12):
        return ()
    exact = [f.name for f in query.fields if f.exact]
    return tuple(choices.some(exact, 1, 2)) if exact else ()


def _steps(
    choices: Choices, tables: Sequence[ScriptTable], views: Sequence[ScriptView], pools: dict[str, _Pool]
) -> list[Step]:
    """Draw commits of all sizes, refreshes of all or some views between them, and views created on the way."""
    model = TableModel(Script(tuple(tables), (), ()))
    steps: list[Step] = []
    waiting = [view.name for view in views]
    if choices.chance(50):
        steps += [Create(name) for name in waiting]
        waiting = []
    steps.append(_commit(choices, tables, pools, model, (3, 6, 10)))
    for _ in range(choices.pick((2, 3, 4, 5))):
        if waiting and choices.chance(50):
            steps.append(Create(waiting.pop(0)))
        for _ in range(choices.pick((1, 1, 2, 3))):
            steps.append(_commit(choices, tables, pools, model, (1, 2, 3, 6)))
        created = [view.name for view in views if view.name not in waiting]
        some = choices.pick(created) if created and choices.chance(25) else None
        steps.append(Refresh((some,) if some else ()))
    return [*steps, *(Create(name) for name in waiting), Refresh()]


def _commit(
    choices: Choices, tables: Sequence[ScriptTable], pools: dict[str, _Pool], model: TableModel, sizes: Sequence[int]
) -> Commit:
    operations = []
    for _ in range(choices.pick(sizes)):
        operation = _operation(choices, choices.pick(tables), pools, model)
        if model.apply(operation):
            operations.append(operation)
    return Commit(tuple(operations))


def _operation(choices: Choices, table: ScriptTable, pools: dict[str, _Pool], model: TableModel) -> Operation:
    kind = choices.pick(("put", "put", "put", "update", "update", "delete", "delete", "same"))
    there = list(model.rows[table.name].values())
    known = choices.pick(there) if there and kind != "put" else None
    if kind == "same" and known is not None:
        return Operation("put", table.name, dict(known))
    if known is not None and choices.chance(90):
        at = {name: known[name] for name in table.key}
    else:
        at = {name: choices.pick(pools[k].keys) for name, k, _ in table.columns if name in table.key}
    if kind == "delete":
        return Operation("delete", table.name, at)
    others = [column for column in table.columns if column[0] not in table.key]
    if kind == "update" and known is not None:
        changed = choices.some(others, 1, 2)
        return Operation("update", table.name, {n: _value(choices, pools[k], null) for n, k, null in changed}, at)
    return Operation("put", table.name, {**at, **{n: _value(choices, pools[k], null) for n, k, null in others}})


def _value(choices: Choices, pool: _Pool, nullable: bool) -> Any:
    if nullable and choices.chance(17):
        return None
    return choices.pick(pool.values)
