"""TPC-H's queries with subqueries beside DuckDB, over few random rows with NULLs, after every epoch."""

from __future__ import annotations

import random
import re
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from bench.tpch.queries import query
from bench.tpch.tables import NAMES, PRIMARY_KEYS, SCHEMAS, create_table
from tests.integration.test_subqueries import Beside

QUERIES = (2, 4, 11, 15, 16, 17, 18, 20, 21, 22)
SIZES = {"region": 2, "nation": 3, "supplier": 4, "customer": 4, "part": 3, "partsupp": 8, "orders": 3, "lineitem": 12}
POOLS: dict[str, tuple[Any, ...]] = {
    "r_name": ("EUROPE", "EUROPE", "ASIA"),
    "n_name": ("GERMANY", "CANADA", "SAUDI ARABIA"),
    "p_size": (15, 15, 49),
    "p_type": ("LARGE BRASS", "LARGE BRASS", "MEDIUM POLISHED TIN"),
    "p_brand": ("Brand#23", "Brand#23", "Brand#45"),
    "p_container": ("MED BOX", "MED BOX", "JUMBO PKG"),
    "p_name": ("forest green", "forest red", "red"),
    "s_comment": ("none", "none", "Customer has Complaints"),
    "c_phone": ("13-1", "31-2", "99-3"),
    "ps_availqty": (1, 300, 500),
    "o_orderstatus": ("F", "O"),
    "l_quantity": (Decimal(1), Decimal(30), Decimal(200)),
}
DATES = (date(1993, 7, 15), date(1994, 2, 1), date(1996, 2, 1), date(1996, 3, 1))


def value(chance: random.Random, name: str, arrow_type: Any) -> Any:
    if chance.random() < 0.03:
        return None
    if name in POOLS:
        return chance.choice(POOLS[name])
    text = str(arrow_type)
    if text.startswith("date"):
        return chance.choice(DATES)
    if text.startswith("decimal"):
        return Decimal(chance.randrange(-2, 8)) if name == "c_acctbal" else Decimal(chance.randrange(1, 5)) / 10
    if text.startswith("int"):
        wanted = next(
            (table for table, keys in PRIMARY_KEYS.items() if keys[0].split("_")[1] == name.split("_")[1]), ""
        )
        return chance.randrange(SIZES.get(wanted, 3))
    return chance.choice(("a", "b"))


def row(chance: random.Random, table: str) -> dict[str, Any]:
    drawn = {field.name: value(chance, field.name, field.type) for field in SCHEMAS[table]}
    return {
        n: chance.randrange(SIZES[table]) if v is None and n in PRIMARY_KEYS[table] else v for n, v in drawn.items()
    }


def text_of(number: int) -> str:
    # Which rows a LIMIT cuts is another test's matter.
    return re.sub(r"\nORDER BY.*", "", query(number, 1), flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_beside_duckdb(seed: int) -> None:
    columns = {
        table: create_table(table).partition("(")[2].rpartition(")")[0].replace(" NOT NULL", "") for table in NAMES
    }
    beside = Beside(columns, PRIMARY_KEYS)
    views = {f"q{number}": text_of(number) for number in QUERIES}
    chance = random.Random(seed)
    for table in NAMES:
        for _ in range(5 * SIZES[table]):
            beside.put(table, row(chance, table))
    for name, sql in views.items():
        beside.database.sql(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    seen = dict.fromkeys(views, 0)
    for _ in range(20):
        for _ in range(chance.randrange(1, 6)):
            table = chance.choice(("lineitem", "lineitem", "orders", "partsupp", *NAMES))
            drawn = row(chance, table)
            if chance.random() < 0.15:
                beside.delete(table, tuple(drawn[key] for key in PRIMARY_KEYS[table]))
            else:
                beside.put(table, drawn)
        beside.database.refresh()
        beside.check(views)
        for name in views:
            seen[name] += len(beside.database.sql(f"SELECT * FROM {name}").rows())
    assert sum(map(bool, seen.values())) >= 6, list(seen.items())
