"""One file a family, its productions in ``FAMILY``. A file put here belongs to the grammar: there is no list to extend.

A production is a function that gets the builder and returns SQL (``family.py`` has the places); it draws what it
contains by the builder and clears ``scope.in_duckdb`` where DuckDB may mean something else.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from viewkeeper.testing.grammar.family import Family, merged

FAMILIES: dict[str, Family] = {
    module.name: import_module(f"{__name__}.{module.name}").FAMILY for module in iter_modules(__path__)
}
GRAMMAR = merged(FAMILIES.values())
