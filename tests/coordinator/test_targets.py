"""Which build cadences belong together, and in which order they join."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.coordinator.targets import linked_builds
from viewkeeper.database.connection import Database
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import BUILDING


def filling(**reads: str) -> Catalog:
    """Return a catalog in which each named view is filled in a cadence of its name and reads the views named."""
    with Database(memory_store(), Settings(executor="local")) as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY)")
        for name in reads:
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT k FROM t")
        catalog = db._engine.coordinator.catalog()
    ids = {name: catalog.view(name).id for name in reads}
    for name, below in reads.items():
        changed = replace(
            catalog.view(name), state=BUILDING, cadence=f"build-{name}", reads=tuple((one, ids[one]) for one in below)
        )
        catalog = catalog.with_view(changed)
    return catalog


def test_those_below_come_first() -> None:
    catalog = filling(a="b", b="cd", c="d", d="", e="", f="e")
    for name in "abcd":
        assert linked_builds(catalog, f"build-{name}") == ("build-d", "build-c", "build-b", "build-a")
    assert linked_builds(catalog, "build-e") == ("build-e", "build-f")
    assert linked_builds(catalog, "build-none") == ("build-none",)


def test_a_circle_ends() -> None:
    catalog = filling(a="b", b="c", c="a", d="a")
    found = linked_builds(catalog, "build-a")
    assert sorted(found) == ["build-a", "build-b", "build-c", "build-d"]
    assert found.index("build-a") < found.index("build-d")
