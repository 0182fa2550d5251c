"""Arrays, maps and structs: elements, fields, what is searched in them, and arrays made of values.

Columns of tables that are arrays have classes of their own (``parts.NESTED``). A map or a struct is read in parts only,
since neither Spark nor we compare maps: tables have those parts as columns (``parts.nested_fields``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.families.selections import column
from viewkeeper.testing.grammar.family import Family, Production, Template
from viewkeeper.testing.grammar.parts import AT_KEY, LIST, Field, Item, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def made(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """An array of two values, or of the pieces of a text."""
    scope.in_duckdb = False
    if builder.choices.chance(30):
        return _list(name, f"SPLIT({builder.expression(scope, 'string', 1)}, '[12]')")
    kind = builder.any_kind(scope)
    return _list(name, f"ARRAY({builder.expression(scope, kind, 1)}, {builder.expression(scope, kind, 0)})")


def read(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """What is in a map or an array of a table; a column as it is where there is none."""
    maps = [field.name.removesuffix(AT_KEY) for field in scope.fields if field.name.endswith(AT_KEY)]
    of_arrays = [(kind, t) for kind, templates in _READS.items() for t in templates if scope.nested(t.arguments[0])]
    if not maps and not of_arrays:
        return column(builder, scope, name)
    scope.in_duckdb = False
    if not maps or (of_arrays and builder.choices.chance(40)):
        kind, template = builder.choices.pick(of_arrays)
        arguments = [builder.expression(scope, argument, 0) for argument in template.arguments]
        return Item(template.sql.format(*arguments), Field(name, kind))
    map_ = builder.choices.pick(maps)
    drawn = builder.choices.pick(("MAP_KEYS", "MAP_KEYS", "MAP_VALUES", "SIZE", "at"))
    if drawn == "SIZE":
        return Item(f"SIZE({map_})", Field(name, "integer"))
    if drawn == "at":
        return Item(f"{map_}[{builder.expression(scope, 'string', 0)}]", Field(name, "integer"))
    return _list(name, f"{drawn}({map_})")


def _list(name: str, text: str) -> Item:
    return Item(text, Field(name, LIST, exact=False, settled=True))


_READS = {
    "integer": (
        Template("SIZE({})", ("integers",)),
        Template("SIZE({})", ("strings",)),
        Template("GET({}, CAST({} % 3 AS INT))", ("integers", "integer")),
        Template("ARRAY_POSITION({}, {})", ("strings", "string")),
    ),
    "string": (Template("GET({}, 1)", ("strings",)), Template("ARRAY_JOIN({}, ',')", ("strings",))),
    "boolean": (Template("ARRAY_CONTAINS({}, {})", ("strings", "string")),),
}
FAMILY = Family(
    items=(Production(made, size=2), Production(read, weight=6, size=2)),
    safe={**_READS, "string": (*_READS["string"], Template("SPLIT_PART({}, '2', 1)", ("string",)))},
    risky={
        "integer": (Template("{}[CAST({} % 3 AS INT)]", ("integers", "integer")),),
        "string": (Template("SPLIT({}, '2')[1]", ("string",)),),
    },
)
