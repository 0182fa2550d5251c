"""PIVOT and UNPIVOT, of one column and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Field, Query

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

# What is looked for, by class.
_VALUES = {
    "integer": ("1", "7", "0"),
    "string": ("'a'", "'12'", "''"),
    "date": ("DATE '2024-02-29'", "DATE '1970-01-01'"),
}
_ADDED = ("integer", "decimal")


def pivoted(builder: QueryBuilder, depth: int) -> Query:
    """Aggregates by values of a column or two, of which the rest groups."""
    choices = builder.choices
    groups = [(f"g{i}", choices.pick(("integer", "string"))) for i in range(choices.pick((1, 0, 2)))]
    keys = [(f"k{i}", choices.pick(tuple(_VALUES))) for i in range(choices.pick((1, 1, 2)))]
    calls = [_aggregate(builder, f"v{i}", f"m{i}") for i in range(choices.pick((1, 2)))]
    inner = _inner(builder, [*groups, *keys, *((f"v{i}", kind) for i, (_, kind, _) in enumerate(calls))])
    names = ("a", "b")[: choices.pick((2, 1))]
    values = [_row([choices.pick(_VALUES[kind]) for _, kind in keys]) for _ in names]
    if len(keys) == 1 and choices.chance(20):
        values[0] = "NULL"
    listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    of = ", ".join(text for text, _, _ in calls)
    sql = f"SELECT * FROM ({inner}) PIVOT ({of} FOR {_row([name for name, _ in keys])} IN ({listed}))"
    found = [
        (f"{name}_m{i}" if len(calls) > 1 else name, kind) for name in names for i, (_, _, kind) in enumerate(calls)
    ]
    return Query(sql, tuple(Field(name, kind) for name, kind in (*groups, *found)), False)


def unpivoted(builder: QueryBuilder, depth: int) -> Query:
    """Two columns of a class below each other, or two rows of columns."""
    choices = builder.choices
    kinds = [choices.pick(("integer", "string", "date", "decimal")) for _ in range(choices.pick((1, 1, 2)))]
    columns = [[f"u{row}{i}" for i in range(len(kinds))] for row in range(2)]
    of = [(name, kind) for row in columns for name, kind in zip(row, kinds, strict=True)]
    inner = _inner(builder, [("o", "integer"), *of])
    names = [f"v{i}" for i in range(len(kinds))]
    aliases = choices.pick((("", ""), (" AS x", " AS y"), (" AS x", "")))
    listed = ", ".join(f"{_row(row)}{alias}" for row, alias in zip(columns, aliases, strict=True))
    nulls = choices.pick(("", " INCLUDE NULLS", " EXCLUDE NULLS"))
    sql = f"SELECT * FROM ({inner}) UNPIVOT{nulls} ({_row(names)} FOR n IN ({listed}))"
    found = (Field("o", "integer"), Field("n", "string"), *map(Field, names, kinds))
    return Query(sql, found, False)


def _inner(builder: QueryBuilder, columns: Sequence[tuple[str, str]]) -> str:
    """Return a selection with columns of such names and classes."""
    source, scope = builder.source()
    items = ", ".join(f"{builder.expression(scope, kind, 0)} AS {name}" for name, kind in columns)
    return f"SELECT {items} FROM {source}{builder.where(scope, 30)}"


def _aggregate(builder: QueryBuilder, column: str, name: str) -> tuple[str, str, str]:
    """Return an aggregate of ``column`` called ``name``, the column's class and its own."""
    kind = builder.choices.pick(("integer", "string", "decimal", "date", "boolean"))
    function = builder.choices.pick(("COUNT", "MAX", "MIN", *(("SUM",) if kind in _ADDED else ())))
    return f"{function}({column}) AS {name}", kind, "integer" if function == "COUNT" else kind


def _row(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


FAMILY = Family(queries=(Production(unpivoted, size=3), Production(pivoted, size=3)))
