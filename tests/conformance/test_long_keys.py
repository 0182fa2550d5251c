"""Keys beyond LMDB's 511 bytes, everywhere: both stores must do what a plain model of rows does.

Keys share prefixes of more than 511 bytes, differ behind them only, hold 0x00 and NULL, and have one or several
columns; random sequences of writes are compared after each step by gets, scans of every kind, and views over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

import viewkeeper as vk
from tests.quick import quick_first
from viewkeeper.database.connection import Database
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

PREFIXES = (
    "",
    "a",
    "p" * 120,
    "p" * 129,
    "p" * 505,
    "p" * 511,
    "p" * 512,
    "p" * 700,
    "\x00" * 520,
    "é" * 256,
    "p" * 2_000,
)
ENDS = ("", "\x00", "\x00\x00", "\x01", "a", "b", "\x7f", "é", "\U0001f600", "\x00a", "p" * 600)
SEEDS = range(6)
STEPS = 60

TABLES = {
    "one": ("k STRING, v INT, g STRING, PRIMARY KEY (k)", ("k",)),
    "raw": ("k BINARY, v INT, g STRING, PRIMARY KEY (k)", ("k",)),
    "two": ("a STRING, b STRING, v INT, g STRING, PRIMARY KEY (a, b)", ("a", "b")),
    "mixed": ("n INT, a STRING, b BINARY, v INT, g STRING, PRIMARY KEY (n, a, b)", ("n", "a", "b")),
}
Row = dict[str, Any]
Key = tuple[Any, ...]


def values_of(kind: str, chance: Random, some: list[str]) -> Any:
    text = chance.choice(some)
    return {"STRING": text, "BINARY": text.encode(), "INT": chance.choice((-1, 0, 7))}[kind]


class Case:
    """Tables with long keys in both stores, views over them, and the model.

    Args:
        stores: connections to the stores that are compared.
        chance: draws what happens.
    """

    def __init__(self, stores: list[Database], chance: Random) -> None:
        self.stores = stores
        self.chance = chance
        prefixes = chance.sample(PREFIXES, 3)
        self.texts = [prefix + end for prefix in prefixes for end in chance.sample(ENDS, 5)]
        self.rows: dict[str, dict[Key, Row]] = {name: {} for name in TABLES}
        self.types = {}
        for name, (columns, key) in TABLES.items():
            pairs = dict(column.split() for column in columns.partition(", PRIMARY")[0].split(", "))
            self.types[name] = [pairs[column] for column in key]
            for store in stores:
                store.sql(f"CREATE TABLE {name} ({columns})")
        for store in stores:
            store.sql(VIEWS)

    def key(self, name: str) -> Key:
        if self.rows[name] and self.chance.random() < 0.5:
            return self.chance.choice(sorted(self.rows[name]))
        return tuple(values_of(kind, self.chance, self.texts) for kind in self.types[name])

    # ---- writing ----

    def step(self) -> None:
        """One write, in all stores and the model."""
        name = self.chance.choice(list(TABLES))
        columns = TABLES[name][1]
        kind = self.chance.choice(("put", "put", "batch", "update", "delete", "check", "transaction"))
        key = self.key(name)
        model = self.rows[name]
        if kind == "delete":
            model.pop(key, None)
            for store in self.stores:
                store.delete(name, key if len(key) > 1 else key[0])
            return
        if kind == "update":
            if key not in model:
                return
            changes = {"v": self.chance.randrange(9), "g": self.group()}
            model[key] = {**model[key], **changes}
            for store in self.stores:
                store.update(name, dict(zip(columns, key, strict=True)), changes)
            return
        rows = [self.row(columns, k) for k in {key, *(self.key(name) for _ in range(0 if kind == "put" else 4))}]
        if kind == "check":
            rows = rows[:1]
            there = model.get(self.key_of(name, rows[0]))
            expected = None if there is None else {"v": there["v"], "g": there["g"]}
            for store in self.stores:
                assert store.check_and_put(name, rows[0], expected)
                assert not store.check_and_put(name, rows[0], {"v": -5})
        else:
            for store in self.stores:
                if kind == "transaction":
                    with store.transaction() as tx:
                        for row in rows:
                            tx.put(name, row)
                else:
                    store.put_batch(name, rows)
        model.update({self.key_of(name, row): row for row in rows})

    def row(self, columns: Key, key: Key) -> Row:
        return {**dict(zip(columns, key, strict=True)), "v": self.chance.randrange(9), "g": self.group()}

    def group(self) -> str | None:
        return self.chance.choice((None, *self.texts))

    def key_of(self, name: str, row: Row) -> Key:
        return tuple(row[column] for column in TABLES[name][1])

    # ---- proof ----

    def check_tables(self) -> None:
        for name, model in self.rows.items():
            ordered = [model[key] for key in sorted(model, key=in_order)]
            asked = [*sorted(model), *(self.key(name) for _ in range(5))]
            bounds = sorted((self.key(name) for _ in range(2)), key=in_order)
            start, stop = (in_order(bound) for bound in bounds)
            within = [row for row in ordered if start <= in_order(self.key_of(name, row)) < stop]
            first = bounds[0][0]
            prefixed = [row for row in ordered if self.key_of(name, row)[0] == first]
            limit = self.chance.randrange(1, 5)
            for store in self.stores:
                plain = [key if len(key) > 1 else key[0] for key in asked]
                assert store.multi_get(name, plain) == [model.get(key) for key in asked]
                assert [store.get(name, key) for key in plain] == [model.get(key) for key in asked]
                assert list(store.scan(name)) == ordered
                assert list(store.scan(name, reverse=True)) == ordered[::-1]
                given = {"start": bounds[0], "stop": bounds[1]}
                assert list(store.scan(name, **given)) == within
                assert list(store.scan(name, **given, reverse=True)) == within[::-1]
                assert list(store.scan(name, **given, limit=limit)) == within[:limit]
                assert list(store.scan(name, **given, reverse=True, limit=limit)) == within[::-1][:limit]
                assert list(store.scan(name, prefix=(first,))) == prefixed
                assert list(store.scan(name, prefix=(first,), reverse=True)) == prefixed[::-1]

    def check_views(self) -> None:
        two, one = self.rows["two"], self.rows["one"]
        both = [*two.values(), *one.values()]
        groups = {row["g"] for row in both}
        expected: dict[str, list[Row]] = {
            "grouped": [
                {"g": g, "n": len(some), "s": sum(row["v"] for row in some), "least": min(row["k"] for row in some)}
                for g in {row["g"] for row in one.values()}
                for some in [[row for row in one.values() if row["g"] == g]]
            ],
            "mirrored": [{"b": row["b"], "a": row["a"], "w": row["v"] + 1} for row in two.values()],
            "joined": [
                {"k": left["k"], "a": right["a"], "b": right["b"], "v": right["v"]}
                for left in one.values()
                for right in two.values()
                if left["k"] == right["b"]
            ],
            "apart": [{"g": g} for g in groups],
            "pairs": [
                {"a": a, "g": g, "n": sum((row["a"], row["g"]) == (a, g) for row in two.values())}
                for a, g in {(row["a"], row["g"]) for row in two.values()}
            ],
        }
        for store in self.stores:
            store.refresh()
            for name, rows in expected.items():
                wanted = sorted(rows, key=repr)
                assert sorted(store.scan(name), key=repr) == wanted, name
                forth, back = list(store.scan(name)), list(store.scan(name, reverse=True))
                assert back == forth[::-1], name
                assert forth == sorted(forth, key=lambda row: in_order([row[k] for k in KEYS[name]])), name
                for row in wanted:
                    assert store.get(name, {k: row[k] for k in KEYS[name]}) == row, name


VIEWS = """
CREATE MATERIALIZED VIEW grouped AS SELECT g, COUNT(*) AS n, SUM(v) AS s, MIN(k) AS least FROM one GROUP BY g;
CREATE MATERIALIZED VIEW mirrored AS SELECT b, a, v + 1 AS w FROM two;
CREATE MATERIALIZED VIEW joined AS SELECT o.k, t.a, t.b, t.v FROM one o JOIN two t ON o.k = t.b;
CREATE MATERIALIZED VIEW apart AS SELECT g FROM one UNION SELECT g FROM two;
CREATE MATERIALIZED VIEW pairs AS SELECT a, g, COUNT(*) AS n FROM two GROUP BY a, g
"""
KEYS: dict[str, tuple[str, ...]] = {
    "grouped": ("g",), "mirrored": ("a", "b"), "joined": ("k", "a", "b"), "apart": ("g",), "pairs": ("a", "g"),
}  # fmt: skip


def in_order(key: Any) -> list[tuple[bool, Any]]:
    """Return what sorts as stored keys do: NULL first, texts by their bytes."""
    return [(value is not None, value.encode() if isinstance(value, str) else value) for value in key]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Database]]:
    with ExitStack() as opened:
        settings = {"executor": "local", "durability": "none", "epoch_rows_max": 7, "build_rows": 5}
        lmdb = opened.enter_context(vk.connect(tmp_path / "store", **settings))
        yield [lmdb, opened.enter_context(Database(memory_store(), Settings.of(settings)))]


@pytest.mark.parametrize("seed", quick_first(SEEDS, 1))
def test_long_keys_are_as_good_as_short_ones(stores: list[Database], seed: int) -> None:
    case = Case(stores, Random(seed))
    for number in range(STEPS):
        case.step()
        if number % 6 == 5:
            case.check_tables()
        if number % 20 == 19:
            case.check_views()
