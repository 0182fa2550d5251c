"""Scripts: tables, views, transactions and refreshes as plain data, drawn by generators and kept as regressions.

A script says everything that a run needs, so a failing one is shrunk (``shrink.py``), written as JSON and replayed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, TypeVar

from viewkeeper.testing.evolution import TableChange, as_plain, change_of, prefixed

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ScriptTable:
    """A base table.

    Args:
        name: its name.
        columns: name, SQL type, and whether NULL is allowed.
        key: names of the key columns.
    """

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    key: tuple[str, ...]

    @property
    def definition(self) -> str:
        """The CREATE TABLE statement."""
        return f"CREATE TABLE {self.name} ({self.columns_sql}, PRIMARY KEY ({', '.join(self.key)}))"

    @property
    def columns_sql(self) -> str:
        """Its columns as a statement has them."""
        return ", ".join(f"{name} {kind}{'' if nullable else ' NOT NULL'}" for name, kind, nullable in self.columns)


@dataclass(frozen=True)
class ScriptView:
    """A view.

    Args:
        name: its name.
        sql: its query; all output columns have names.
        columns: names of the output columns.
        refresh: its REFRESH clause.
        key: columns of a declared key; empty for a derived one.
        inexact: names of the columns whose answer in Spark depends on row order: sums of DOUBLE.
        scaled: names of those of them for which ``scaled_sql`` has the scale.
        scaled_sql: the query with one more column for each ``scaled`` one: the sum of its group's absolute values.
        in_duckdb: whether DuckDB gives the query the same meaning.
        spark_sql: where Spark refuses the query, which then is an extension of ours, an equal one; empty elsewhere.
    """

    name: str
    sql: str
    columns: tuple[str, ...]
    refresh: str = "REFRESH CONTINUOUS"
    key: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    scaled_sql: str = ""
    in_duckdb: bool = False
    spark_sql: str = ""

    @property
    def for_spark(self) -> str:
        """The query as Spark takes it."""
        return self.spark_sql or self.sql

    @property
    def definition(self) -> str:
        """The CREATE MATERIALIZED VIEW statement."""
        columns = f" ({', '.join(self.columns)}, PRIMARY KEY ({', '.join(self.key)}))" if self.key else ""
        return f"CREATE MATERIALIZED VIEW {self.name}{columns} {self.refresh} AS {self.sql}"


@dataclass(frozen=True)
class Operation:
    """One write: ``put`` a row, ``update`` some columns of the row at a key, ``delete`` a key."""

    kind: Literal["put", "update", "delete"]
    table: str
    values: Row
    key: Row | None = None


@dataclass(frozen=True)
class Commit:
    """One transaction."""

    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Create:
    """Create a view, over what the tables hold by then."""

    view: str


@dataclass(frozen=True)
class Refresh:
    """Refresh the views named (none: all); what the cadences then read is one epoch or more."""

    views: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterView:
    """A view gets another query under its old clauses; its fields are those of ``ScriptView``."""

    view: str
    sql: str
    columns: tuple[str, ...]
    inexact: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    scaled_sql: str = ""
    in_duckdb: bool = False
    spark_sql: str = ""

    @property
    def statement(self) -> str:
        """What the store is told."""
        return f"ALTER MATERIALIZED VIEW {self.view} AS {self.sql}"

    def applied(self, view: ScriptView) -> ScriptView:
        """Return the view with the other query."""
        return replace(
            view, **{field.name: getattr(self, field.name) for field in fields(self) if field.name != "view"}
        )


Queried = TypeVar("Queried", ScriptView, AlterView)
Step = Commit | Create | Refresh | AlterView | TableChange


@dataclass(frozen=True)
class Script:
    """A whole run.

    Args:
        tables: the tables, as they are created.
        views: the views, as they are created.
        steps: what happens.
        time_zone: of the session.
    """

    tables: tuple[ScriptTable, ...]
    views: tuple[ScriptView, ...]
    steps: tuple[Step, ...]
    time_zone: str = "UTC"

    def view(self, name: str) -> ScriptView:
        """Return the view called ``name``."""
        return next(view for view in self.views if view.name == name)

    def queries(self) -> Iterator[str]:
        """Yield the queries that its views have at some time."""
        yield from (view.sql for view in self.views)
        yield from (step.sql for step in self.steps if isinstance(step, AlterView))

    def prefixed(self, prefix: str) -> Script:
        """Return the script with ``prefix`` before the names of tables and views, for several in one store."""
        names = [t.name for t in self.tables] + [v.name for v in self.views]
        pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

        def renamed(sql: str) -> str:
            return pattern.sub(lambda found: prefix + found.group(), sql)

        tables = tuple(replace(t, name=prefix + t.name) for t in self.tables)
        views = tuple(replace(_rewritten(v, renamed), name=prefix + v.name) for v in self.views)
        steps = tuple(_prefixed_step(s, prefix, renamed) for s in self.steps)
        return Script(tables, views, steps, self.time_zone)

    def to_json(self) -> str:
        """Return the script as JSON text; ``from_json`` reads it."""
        return json.dumps(_plain(self), ensure_ascii=True, indent=1)

    @staticmethod
    def from_json(text: str) -> Script:
        """Return the script that ``to_json`` wrote."""
        raw = json.loads(text)
        tables = tuple(
            ScriptTable(t["name"], tuple((n, k, bool(nullable)) for n, k, nullable in t["columns"]), tuple(t["key"]))
            for t in raw["tables"]
        )
        views = tuple(
            ScriptView(
                v["name"],
                v["sql"],
                tuple(v["columns"]),
                v["refresh"],
                tuple(v["key"]),
                tuple(v["inexact"]),
                tuple(v["scaled"]),
                v["scaled_sql"],
                v["in_duckdb"],
                v.get("spark_sql", ""),
            )
            for v in raw["views"]
        )
        return Script(tables, views, tuple(_step(s) for s in raw["steps"]), raw.get("time_zone", "UTC"))


def comparable(value: Any) -> Any:
    """Return ``value`` in a form that is equal where SQL groups values together.

    Example:
        >>> comparable(float("nan")) == comparable(float("nan")), comparable(-0.0)
        (True, 0.0)
    """
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(map(comparable, value.values()))
    return tuple(map(comparable, value)) if isinstance(value, list) else value


def _rewritten(query: Queried, rewrite: Callable[[str], str]) -> Queried:
    """Return a view, or another query for one, with all its texts rewritten."""
    sql, scaled_sql, spark_sql = map(rewrite, (query.sql, query.scaled_sql, query.spark_sql))
    return replace(query, sql=sql, scaled_sql=scaled_sql, spark_sql=spark_sql)


def _prefixed_step(step: Step, prefix: str, renamed: Callable[[str], str]) -> Step:
    if isinstance(step, Commit):
        return Commit(tuple(replace(o, table=prefix + o.table) for o in step.operations))
    if isinstance(step, Create):
        return Create(prefix + step.view)
    if isinstance(step, AlterView):
        return replace(_rewritten(step, renamed), view=prefix + step.view)
    if isinstance(step, Refresh):
        return Refresh(tuple(prefix + name for name in step.views))
    return prefixed(step, prefix)


def _plain(value: Any) -> Any:
    if isinstance(value, Commit):
        return {"commit": [_plain(o) for o in value.operations]}
    if isinstance(value, Create):
        return {"create": value.view}
    if isinstance(value, Refresh):
        return {"refresh": list(value.views)}
    if isinstance(value, Operation):
        key = None if value.key is None else {n: _tagged(v) for n, v in value.key.items()}
        return [value.kind, value.table, {n: _tagged(v) for n, v in value.values.items()}, key]
    if isinstance(value, AlterView):
        return {"alter view": [_plain(getattr(value, field.name)) for field in fields(value)]}
    if isinstance(value, TableChange):
        name, arguments = as_plain(value)
        return {name: _tagged(arguments)}
    if isinstance(value, Script | ScriptTable | ScriptView):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _tagged(value: Any) -> Any:
    """Return ``value`` as JSON has it; what JSON lacks becomes an object of its type and text."""
    if isinstance(value, float):
        return {"double": repr(value)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes):
        return {"binary": value.hex()}
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, dict):
        return {"mapping": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
    return [_tagged(item) for item in value] if isinstance(value, tuple | list) else value


_READERS: dict[str, Any] = {
    "double": float,
    "decimal": Decimal,
    "binary": bytes.fromhex,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "mapping": lambda pairs: {_untagged(key): _untagged(item) for key, item in pairs},
}


def _untagged(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return _READERS[kind](text)
    return [_untagged(item) for item in value] if isinstance(value, list) else value


def _step(raw: dict[str, Any]) -> Step:
    if "create" in raw:
        return Create(raw["create"])
    if "refresh" in raw:
        return Refresh(tuple(raw["refresh"]))
    if "alter view" in raw:
        view, sql, columns, inexact, scaled, *asked = raw["alter view"]
        return AlterView(view, sql, tuple(columns), tuple(inexact), tuple(scaled), *asked)
    if "commit" not in raw:
        ((name, arguments),) = raw.items()
        return change_of(name, _untagged(arguments))
    operations = []
    for kind, table, values, key in raw["commit"]:
        at = None if key is None else {n: _untagged(v) for n, v in key.items()}
        operations.append(Operation(kind, table, {n: _untagged(v) for n, v in values.items()}, at))
    return Commit(tuple(operations))
