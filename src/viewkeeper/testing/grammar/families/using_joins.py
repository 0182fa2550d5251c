"""Joins by columns of the same name, USING and NATURAL, and what these are called then: by their name alone, too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import CLASSES, IN_DUCKDB, Field, Query, Relation, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_KINDS = ("INNER", "LEFT", "RIGHT", "FULL")


def using_join(builder: QueryBuilder, scope: Scope) -> str:
    """One more relation or two by names; nothing where no column of a name compares."""
    return "".join(_join(builder, scope) for _ in range(builder.choices.pick((1, 1, 2))))


def natural_rows(builder: QueryBuilder, depth: int) -> Query:
    """All columns of two relations in a NATURAL join, or all of one side; rows of one relation if they have none.

    A view keeps the columns that it was made with; DuckDB, asked later, would join and show those that came since.
    """
    choices = builder.choices
    left, right = choices.pick(builder.relations), choices.pick(builder.relations)
    names = _names(left.fields, right)
    is_plain = all(f.kind in CLASSES and f.name.isidentifier() for f in (*left.fields, *right.fields))
    if not names or not is_plain or not _is_natural(left.fields, right, names):
        return builder.rows()
    first, second = builder.name("s"), builder.name("s")
    scope = Scope(left.qualified(first), choices.chance(30), left.in_duckdb)
    source = f"{left.name} {first} NATURAL {choices.pick(_KINDS)} JOIN {right.name} {second}"
    _merge(scope, names, right, second)
    star = choices.pick(("*", f"{first}.*", f"{second}.*"))
    joined = tuple(f for f in left.fields if f.name in names)
    rest = tuple(f for f in (*left.fields, *right.fields) if f.name not in names)
    fields = {"*": (*joined, *rest), f"{first}.*": left.fields, f"{second}.*": right.fields}[star]
    return Query(f"SELECT {star} FROM {source}{builder.where(scope, 30)}", fields, in_duckdb=False)


def _join(builder: QueryBuilder, scope: Scope) -> str:
    choices = builder.choices
    relation, alias = choices.pick(builder.relations), builder.name("s")
    visible = _visible(scope)
    names = _names(visible, relation)
    if not names:
        return ""
    if _is_natural([f.called(_bare(f)) for f in scope.fields], relation, names) and choices.chance(30):
        _merge(scope, names, relation, alias)
        scope.in_duckdb = False
        return f" NATURAL {choices.pick(_KINDS)} JOIN {relation.name} {alias}"
    names = choices.some(names, 1, 2)
    kind = choices.pick((*_KINDS, "LEFT SEMI", "LEFT ANTI"))
    if kind in _KINDS:
        _merge(scope, names, relation, alias)
    else:
        scope.in_duckdb = False
    return f" {kind} JOIN {relation.name} {alias} USING ({', '.join(names)})"


def _visible(scope: Scope) -> list[Field]:
    """Return the columns that mean one column where they are written without alias."""
    numbers = Counter(_bare(f) for f in scope.qualified())
    merged = {f.name for f in scope.fields if "." not in f.name}
    unique = [f.called(_bare(f)) for f in scope.fields if _bare(f) not in merged and numbers[_bare(f)] == 1]
    return [*(f for f in scope.fields if f.name in merged), *unique]


def _names(fields: Sequence[Field], relation: Relation) -> list[str]:
    """Return the names that a column of each side has, of which the classes compare; never a part of a column."""
    pairs = [(a, b) for a in fields for b in relation.fields if a.name == b.name and a.name.isidentifier()]
    return [a.name for a, b in pairs if a.kind == b.kind and a.exact and b.exact]


def _is_natural(fields: Sequence[Field], relation: Relation, names: Sequence[str]) -> bool:
    """Return whether those names are all that both sides have."""
    theirs = {_column(f.name) for f in relation.fields}
    return {_column(f.name) for f in fields if _column(f.name) in theirs} == set(names)


def _merge(scope: Scope, names: Sequence[str], relation: Relation, alias: str) -> None:
    """Let the scope read the relation, and the joined columns by their names alone."""
    theirs = {f.name: f for f in relation.fields}
    scope.in_duckdb = scope.in_duckdb and relation.in_duckdb and all(_in_duckdb(theirs[name]) for name in names)
    # Another column of the name makes it ambiguous.
    scope.fields = [f for f in scope.fields if f.name not in theirs] + relation.qualified(alias)
    scope.fields += [theirs[name] for name in names]


def _bare(field: Field) -> str:
    return field.name.partition(".")[2] or field.name


def _column(name: str) -> str:
    """Return the column that a name without alias is a part of."""
    return re.split(r"[.\[]", name)[0]


def _in_duckdb(field: Field) -> bool:
    return field.kind in IN_DUCKDB


FAMILY = Family(
    queries=(Production(natural_rows, size=2),),
    joins=(Production(using_join, weight=4, size=2),),
)
