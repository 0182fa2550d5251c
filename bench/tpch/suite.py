"""TPC-H as a suite."""

from __future__ import annotations

from pathlib import Path

from bench.harness import Scale
from bench.suites.suite import Suite
from bench.tpch.data import generate, load
from bench.tpch.queries import NUMBERS, query
from bench.tpch.refreshes import Refreshes
from bench.tpch.tables import NAMES, create_table

_SEED = 22
_ABOUT = """\
A round inserts so many new orders, deletes as many, each with their line items, and updates as large a part of the
customers, parts and suppliers.
"""


def _refreshes(folder: Path, scale: Scale) -> Refreshes:
    return Refreshes(load(generate(folder, scale.scale_factor)), _SEED)


TPCH = Suite(
    name="tpch",
    title="TPC-H",
    about=_ABOUT,
    counted="orders",
    parts=(0.0001, 0.001, 0.01, 0.1),
    repeated_max=0.001,
    judged=0.001,
    create_tables={name: create_table(name) for name in NAMES},
    numbers=NUMBERS,
    query=lambda number, scale: query(number, scale.scale_factor),
    folder=lambda scale: f"sf{scale.scale_factor:g}-refreshed",
    stream=_refreshes,
)
