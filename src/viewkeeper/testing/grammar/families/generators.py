"""Rows made of rows: explode of sequences and arrays, VALUES, range()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Field, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def exploded(builder: QueryBuilder, scope: Scope) -> str:
    """LATERAL VIEW over a short array or sequence; nothing may follow it in FROM, so it is drawn last of all."""
    scope.in_duckdb = False
    kind = builder.choices.pick(("integer", "string"))
    alias, name = builder.name("e"), builder.name("x")
    first, second = builder.expression(scope, kind, 0), builder.expression(scope, kind, 0)
    collection = f"array({first}, {second})"
    if kind == "integer" and builder.choices.chance(50):
        collection = f"sequence({first} % 3, {second} % 4)"
    outer = builder.choices.pick(("", "_outer"))
    scope.fields.append(Field(f"{alias}.{name}", kind))
    return f", LATERAL explode{outer}({collection}) AS {alias}({name})"


def constant_rows(builder: QueryBuilder, scope: Scope) -> str:
    """A join with VALUES, or with range()."""
    alias, name = builder.name("e"), builder.name("x")
    if builder.choices.chance(30):
        scope.in_duckdb = False
        scope.fields.append(Field(f"{alias}.{name}", "integer"))
        return f", range({builder.choices.pick(('2', '0', '1, 3', '3, 0, -2'))}) AS {alias}({name})"
    kind = builder.choices.pick(("integer", "string", "date"))
    rows = ", ".join(f"({builder.literal(kind)})" for _ in range(builder.choices.pick((1, 2, 3))))
    join = f" JOIN (VALUES {rows}) AS {alias}({name})"
    columns = scope.of(kind)
    scope.fields.append(Field(f"{alias}.{name}", kind))
    return f"{join} ON {builder.choices.pick(columns)} = {alias}.{name}" if columns else f" CROSS{join}"


FAMILY = Family(
    joins=(Production(exploded, size=2), Production(constant_rows, size=2)),
)
