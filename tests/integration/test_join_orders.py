"""Random joins of several inputs, stars, chains and cycles of keys, with semi joins above them, beside DuckDB."""

from __future__ import annotations

import random

import pytest

from tests.integration.test_subqueries import Beside

TABLES = {
    "t": "k INT, a INT, b INT, PRIMARY KEY (k)",
    "u": "k INT, a INT, b INT, PRIMARY KEY (k)",
    "w": "k INT, a INT, b INT, PRIMARY KEY (k, a)",
}
KEYS = {"t": ("k",), "u": ("k",), "w": ("k", "a")}
COLUMNS = ("k", "a", "b")
VALUES = 5


def query(chance: random.Random) -> str:
    """Draw a query: each input after the first is compared with an earlier one, mostly by its key."""
    count = chance.randrange(3, 6)
    tables = [chance.choice(list(TABLES)) for _ in range(count)]
    conditions = []
    for number in range(1, count):
        other = f"r{chance.randrange(number)}"
        key = KEYS[tables[number]] if chance.random() < 0.8 else (chance.choice(COLUMNS),)
        conditions += [f"r{number}.{column} = {other}.{chance.choice(COLUMNS)}" for column in key]
    if chance.random() < 0.15:
        conditions.append(f"r0.{chance.choice(COLUMNS)} = r{count - 1}.{chance.choice(COLUMNS)}")
    if chance.random() < 0.4:
        conditions.append(f"r{chance.randrange(count)}.{chance.choice(COLUMNS)} > {chance.randrange(2)}")
    if chance.random() < 0.3:
        one, other = f"r{chance.randrange(count)}", f"r{chance.randrange(count)}"
        conditions.append(f"(({one}.a < 2 AND {other}.b > 1) OR ({one}.a > 1 AND {other}.b < 3))")
    if chance.random() < 0.3:
        conditions.append(f"r0.{chance.choice(COLUMNS)} <= r{count - 1}.{chance.choice(COLUMNS)}")
    if chance.random() < 0.5:
        inner = chance.choice(("SELECT a FROM u WHERE b > 1", "SELECT a FROM t GROUP BY a HAVING SUM(b) > 3"))
        conditions.append(f"r{chance.randrange(count)}.{chance.choice(COLUMNS)} IN ({inner})")
    chance.shuffle(conditions)
    order = list(range(count))
    chance.shuffle(order)
    items = ", ".join(f"{tables[i]} AS r{i}" for i in order)
    selected = ", ".join(f"r{i}.{chance.choice(COLUMNS)} AS x{i}" for i in range(count))
    return f"SELECT {selected} FROM {items} WHERE {' AND '.join(conditions)}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_beside_duckdb(seed: int) -> None:
    chance = random.Random(seed)
    beside = Beside(TABLES, KEYS)
    views = {f"v{number}": query(chance) for number in range(8)}

    def put() -> None:
        table = chance.choice(list(TABLES))
        row = {
            c: chance.choice((None, *range(VALUES), *range(VALUES))) if c == "b" else chance.randrange(VALUES)
            for c in COLUMNS
        }
        beside.put(table, row)

    for _ in range(60):
        put()
    for name, sql in views.items():
        beside.database.sql(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    beside.check(views)
    for _ in range(4):
        for _ in range(chance.randrange(1, 6)):
            put()
            if chance.random() < 0.3:
                table = chance.choice(list(TABLES))
                beside.delete(table, tuple(chance.randrange(VALUES) for _ in KEYS[table]))
        beside.database.refresh()
        beside.check(views)
    found = [len(beside.database.sql(f"SELECT * FROM {name}").rows()) for name in views]
    assert sum(map(bool, found)) >= 2, found
