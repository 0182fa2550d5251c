"""Running SQL cases: tables, views, steps, and the rows that each view must hold after each step.

The format is that of ``tests/cases/README.md``. A case can be run in several ways; what it expects stays the same.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from viewkeeper.clock import seeded
from viewkeeper.database.connection import Database
from viewkeeper.zset.schema import Schema, SqlType

RELATIVE_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Case:
    """One case file.

    Args:
        id: its name.
        tables: name, columns as (name, type), key.
        views: name, SQL, columns as (name, type) that Spark gives it.
        steps: operations, and the expected rows by view.
    """

    id: str
    tables: tuple[tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]], ...]
    views: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]
    steps: tuple[tuple[tuple[tuple[str, str, Mapping[str, Any]], ...], Mapping[str, Sequence[Sequence[Any]]]], ...]


def load_case(path: Path) -> Case:
    """Return the case in the file ``path``."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    tables = tuple((t["name"], tuple((n, k) for n, k in t["columns"]), tuple(t["key"])) for t in raw["tables"])
    views = tuple((v["name"], v["sql"], tuple((n, k) for n, k in v["columns"])) for v in raw["views"])
    steps = tuple((tuple((o[0], o[1], o[2]) for o in s["ops"]), s["expect"]) for s in raw["steps"])
    return Case(raw["id"], tables, views, steps)


def create_tables(database: Database, case: Case) -> None:
    """Create the case's tables."""
    for name, columns, key in case.tables:
        parts = [f"`{column}` {kind}{' NOT NULL' if column in key else ''}" for column, kind in columns]
        keys = ", ".join(f"`{k}`" for k in key)
        database.sql(f"CREATE TABLE `{name}` ({', '.join(parts)}, PRIMARY KEY ({keys}))")


def create_view(database: Database, name: str, sql: str, refresh: str = "REFRESH CONTINUOUS") -> None:
    """Create one of the case's views."""
    database.sql(f"CREATE MATERIALIZED VIEW `{name}` {refresh} AS {sql}")


def apply_step(
    database: Database, case: Case, number: int, shuffle_seed: int | None = None, repeat: bool = False
) -> None:
    """Do the operations of a step as one transaction.

    Args:
        database: where.
        case: the case.
        number: which step.
        shuffle_seed: do operations on different keys in another order.
        repeat: do everything twice.
    """
    operations = list(case.steps[number][0])
    if shuffle_seed is not None:
        operations = shuffled(case, operations, shuffle_seed)
    types = {name: dict(columns) for name, columns, _ in case.tables}
    with database.transaction() as tx:
        for _ in range(2 if repeat else 1):
            for kind, table, values in operations:
                given = {c: python_value(v, types[table][c]) for c, v in values.items()}
                if kind == "put":
                    tx.put(table, given)
                else:
                    tx.delete(table, given)


def shuffled(case: Case, operations: list[tuple[str, str, Mapping[str, Any]]], seed: int) -> list[Any]:
    """Return the operations in another order that keeps the order of those on one key."""
    keys = {name: key for name, _, key in case.tables}

    def place(operation: tuple[str, str, Mapping[str, Any]]) -> str:
        return repr((operation[1], [operation[2][k] for k in keys[operation[1]]]))

    waiting: dict[str, list[Any]] = {}
    for operation in operations:
        waiting.setdefault(place(operation), []).append(operation)
    chance = seeded(seed)
    out = []
    while waiting:
        chosen = chance.choice(sorted(waiting))
        out.append(waiting[chosen].pop(0))
        if not waiting[chosen]:
            del waiting[chosen]
    return out


def python_value(value: Any, kind: str) -> Any:
    """Return a case's JSON value as users pass it."""
    if value is None:
        return None
    name = kind.upper().split("(")[0]
    if name == "DECIMAL":
        return Decimal(value)
    if name in ("DOUBLE", "FLOAT"):
        return float(value)
    if name == "DATE":
        return date.fromisoformat(value)
    if name == "TIMESTAMP":
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    if name == "BINARY":
        return bytes.fromhex(value.removeprefix("hex:"))
    return value


def difference(schema: Schema, got: Iterable[Sequence[Any]], want: Iterable[Sequence[Any]]) -> str | None:
    """Return how two bags of rows differ, None where they are equal by the cases' rules.

    Args:
        schema: the columns.
        got: rows of the view.
        want: expected rows, as JSON values.
    """
    kinds = [str(t) for t in schema.types]
    expected = [tuple(python_value(v, k) for v, k in zip(row, kinds, strict=True)) for row in want]
    left = Counter(_comparable(row, schema.types) for row in got)
    right = Counter(_comparable(row, schema.types) for row in expected)
    if left == right or _near(list((left - right).elements()), list((right - left).elements())):
        return None
    return f"unexpected {list((left - right).elements())}, missing {list((right - left).elements())}"


def _comparable(row: Sequence[Any], types: Sequence[SqlType]) -> tuple[Any, ...]:
    return tuple(_plain(value) for value, _ in zip(row, types, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def _near(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> bool:
    """Match rows one to one, with doubles within the tolerance."""
    if len(left) != len(right):
        return False
    rest = list(right)
    for row in left:
        found = next((other for other in rest if _same(row, other)), None)
        if found is None:
            return False
        rest.remove(found)
    return True


def _same(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    for a, b in zip(row, other, strict=True):
        both_floats = isinstance(a, float) and isinstance(b, float)
        if a != b and not (both_floats and math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE)):
            return False
    return True


Rows = Callable[[str], list[tuple[Any, ...]]]


def check_step(database: Database, case: Case, number: int, only: Sequence[str] | None = None) -> None:
    """Assert that each view holds what the step expects, with the stated names and types.

    Raises:
        AssertionError: naming the case, step and view, with the rows that differ.
    """
    declared = {name: columns for name, _, columns in case.views}
    for view, want in case.steps[number][1].items():
        if only is not None and view not in only:
            continue
        result = database.sql(f"SELECT * FROM `{view}`")
        columns = tuple(zip(result.schema.names, map(str, result.schema.types), strict=True))
        place = f"{case.id}, step {number + 1}, view {view}"
        assert columns == declared[view], f"{place}: columns {columns}, expected {declared[view]}"
        problem = difference(result.schema, list(result.tuples()), want)
        assert problem is None, f"{place}: {problem}"
