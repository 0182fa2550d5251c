"""Expressions: CASE, COALESCE, NULLIF over any class, and what each class has of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production, Template
from viewkeeper.testing.grammar.parts import NESTED, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def own(builder: QueryBuilder, scope: Scope, kind: str, depth: int) -> str:
    """An expression that only this class has; a condition where the class has none."""
    risky = builder.grammar.risky.get(kind, ()) if scope.risky else ()
    known = (*builder.grammar.safe.get(kind, ()), *risky)
    templates = [t for t in known if all(scope.nested(argument) for argument in t.arguments if argument in NESTED)]
    if not templates:
        return f"({builder.condition(scope, 0)})"
    template = builder.choices.pick(templates)
    arguments = [builder.expression(scope, argument, depth - 1) for argument in template.arguments]
    if template in risky and not any(field.name in text for field in scope.fields for text in arguments):
        # Spark computes constants while it plans, and fails though no row would be computed.
        return builder.literal(kind)
    scope.in_duckdb = scope.in_duckdb and template.in_duckdb
    return template.sql.format(*arguments)


def coalesce(builder: QueryBuilder, scope: Scope, kind: str, depth: int) -> str:
    """COALESCE of two."""
    return f"COALESCE({builder.expression(scope, kind, depth - 1)}, {builder.expression(scope, kind, 0)})"


def nullif(builder: QueryBuilder, scope: Scope, kind: str, depth: int) -> str:
    """NULLIF of a literal."""
    return f"NULLIF({builder.expression(scope, kind, 0)}, {builder.literal(kind)})"


def case(builder: QueryBuilder, scope: Scope, kind: str, depth: int) -> str:
    """CASE of one branch."""
    then, other = builder.expression(scope, kind, depth - 1), builder.expression(scope, kind, depth - 1)
    return f"CASE WHEN {builder.condition(scope, 0)} THEN {then} ELSE {other} END"


FAMILY = Family(
    values=(
        Production(own, weight=3, size=1),
        Production(coalesce, size=2),
        Production(nullif, size=2),
        Production(case, size=3),
    ),
    safe={
        "integer": (
            Template("({} % 7)", ("integer",), in_duckdb=True),
            Template("LENGTH({})", ("string",)),
            Template("YEAR({})", ("date",)),
        ),
        "decimal": (Template("CAST({} AS DECIMAL(38,2))", ("integer",)),),
        "floating": (
            Template("({} + CAST({} AS DOUBLE))", ("floating", "integer")),
            Template("CAST({} AS DOUBLE)", ("decimal",)),
        ),
        "string": (
            Template("CONCAT({}, {})", ("string", "string")),
            Template("UPPER({})", ("string",)),
            Template("CAST({} AS STRING)", ("integer",)),
            Template("SUBSTRING({}, 2, 3)", ("string",)),
            Template("TRIM({})", ("string",)),
        ),
        "binary": (Template("CAST({} AS BINARY)", ("string",)),),
        "date": (Template("CAST({} AS DATE)", ("timestamp",)),),
        "timestamp": (Template("CAST({} AS TIMESTAMP)", ("timestamp_ntz",)),),
        "timestamp_ntz": (Template("CAST({} AS TIMESTAMP_NTZ)", ("timestamp",)),),
    },
    risky={
        "integer": (
            Template("({} + {})", ("integer", "integer"), in_duckdb=True),
            Template("({} - {})", ("integer", "integer"), in_duckdb=True),
            Template("({} * {})", ("integer", "integer"), in_duckdb=True),
            Template("({} % {})", ("integer", "integer")),
            Template("({} DIV {})", ("integer", "integer")),
            Template("CAST({} AS TINYINT)", ("integer",)),
            Template("CAST({} AS INT)", ("string",)),
            Template("ABS({})", ("integer",), in_duckdb=True),
        ),
        "decimal": (
            Template("({} + {})", ("decimal", "decimal")),
            Template("({} * {})", ("decimal", "integer")),
            Template("CAST({} AS DECIMAL(5,2))", ("decimal",)),
        ),
        "floating": (
            Template("({} / {})", ("floating", "integer")),
            Template("({} * {})", ("floating", "floating")),
        ),
        "date": (Template("CAST({} AS DATE)", ("string",)),),
    },
)
