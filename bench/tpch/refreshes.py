"""Streams of refreshes: TPC-H's functions (new orders, old orders go, each with their line items), updates of others.

tpchgen-cli makes no refresh sets, so they are drawn here, from a seed. A new order takes the dates, the texts and the
number of line items of an order that is there, so that they are distributed as TPC-H's are; its customer, parts,
suppliers, quantities and prices are drawn anew, the pairs of part and supplier from partsupp.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.suites.suite import Round
from bench.tpch.tables import PRIMARY_KEYS, SCHEMAS

SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_NATIONS = 25
_SIZES = 50
_HUNDRED, _HUNDREDTH = Decimal(100), Decimal("0.01")


class Refreshes:
    """A seeded stream of rounds over tables that change with it.

    Args:
        tables: the generated tables; they are not changed, ``tables`` of the stream are what they have become.
        seed: of the draws.
    """

    def __init__(self, tables: Mapping[str, pa.Table], seed: int) -> None:
        self.tables = dict(tables)
        self._random = np.random.default_rng(seed)
        self._next_order = int(pc.max(self.tables["orders"]["o_orderkey"]).as_py()) + 1

    def take(self, part: float) -> Round:
        """Return the next round.

        Args:
            part: of the orders, how many are inserted and how many deleted; of customer, part and supplier, how many
                rows are updated; at least one of each.
        """
        inserted = self._inserts(part)
        gone = self._sample("orders", part)["o_orderkey"]
        lines = self.tables["lineitem"]
        lines_gone = lines.filter(pc.is_in(lines["l_orderkey"], gone)).select(PRIMARY_KEYS["lineitem"])
        puts = {
            **inserted,
            "customer": self._customers(part),
            "part": self._parts(part),
            "supplier": self._suppliers(part),
        }
        deletes = {"orders": pa.table({"o_orderkey": gone}), "lineitem": lines_gone}
        self._apply(puts, gone)
        return Round(puts, deletes)

    def _sample(self, table: str, part: float) -> pa.Table:
        rows = self.tables[table]
        count = min(len(rows), max(1, round(part * len(rows))))
        return rows.take(pa.array(self._random.choice(len(rows), count, replace=False)))

    def _inserts(self, part: float) -> dict[str, pa.Table]:
        """Return new orders and their line items."""
        templates = self._sample("orders", part)
        keys = np.arange(self._next_order, self._next_order + len(templates))
        self._next_order += len(templates)
        lines = self.tables["lineitem"]
        lines = lines.filter(pc.is_in(lines["l_orderkey"], templates["o_orderkey"]))
        order = pc.index_in(lines["l_orderkey"], templates["o_orderkey"].combine_chunks()).to_numpy()
        lines = self._new_lines(lines, keys[order])
        # o_totalprice is the sum of extendedprice × (1 + tax) × (1 − discount), rounded to cents.
        charged = (
            _cents(lines["l_extendedprice"]) * (100 + _cents(lines["l_tax"])) * (100 - _cents(lines["l_discount"]))
        )
        totals = np.zeros(len(templates), np.int64)
        np.add.at(totals, order, (charged + 5_000) // 10_000)
        customers = self.tables["customer"]["c_custkey"].to_numpy()
        orders = _replaced(
            templates,
            o_orderkey=pa.array(keys),
            o_custkey=pa.array(self._random.choice(customers, len(templates))),
            o_totalprice=_money(totals),
        )
        return {"orders": orders, "lineitem": lines}

    def _new_lines(self, lines: pa.Table, keys: np.ndarray) -> pa.Table:
        pairs = self.tables["partsupp"].take(
            pa.array(self._random.integers(0, len(self.tables["partsupp"]), len(lines)))
        )
        parts = self.tables["part"]
        priced = parts["p_retailprice"].take(pc.index_in(pairs["ps_partkey"], parts["p_partkey"].combine_chunks()))
        quantities = self._random.integers(1, 51, len(lines))
        return _replaced(
            lines,
            l_orderkey=pa.array(keys),
            l_partkey=pairs["ps_partkey"],
            l_suppkey=pairs["ps_suppkey"],
            l_quantity=_money(quantities * 100),
            l_extendedprice=_money(quantities * _cents(priced)),
        )

    def _customers(self, part: float) -> pa.Table:
        rows = self._sample("customer", part)
        nations, phones = self._moved(rows["c_phone"])
        segments = pa.array(self._random.choice(SEGMENTS, len(rows)).tolist())
        return _replaced(
            rows, c_nationkey=nations, c_phone=phones, c_acctbal=self._balances(len(rows)), c_mktsegment=segments
        )

    def _suppliers(self, part: float) -> pa.Table:
        rows = self._sample("supplier", part)
        nations, phones = self._moved(rows["s_phone"])
        return _replaced(rows, s_nationkey=nations, s_phone=phones, s_acctbal=self._balances(len(rows)))

    def _parts(self, part: float) -> pa.Table:
        rows, donors = self._sample("part", part), self._sample("part", part)
        sizes = pa.array(self._random.integers(1, _SIZES + 1, len(rows)), pa.int32())
        taken = {name: donors[name] for name in ("p_brand", "p_type", "p_container", "p_name")}
        return _replaced(rows, p_size=sizes, **taken)

    def _moved(self, phones: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
        """Return other nations, and the phones with the country code (10 + nation) that goes with them."""
        nations = self._random.integers(0, _NATIONS, len(phones))
        codes = [
            f"{10 + nation}{phone[2:]}" for nation, phone in zip(nations.tolist(), phones.to_pylist(), strict=True)
        ]
        return pa.array(nations), pa.array(codes)

    def _balances(self, count: int) -> pa.Array:
        return _money(self._random.integers(-99_999, 1_000_000, count))

    def _apply(self, puts: Mapping[str, pa.Table], gone: pa.ChunkedArray) -> None:
        for table, rows in puts.items():
            old = self.tables[table]
            key = "l_orderkey" if table == "lineitem" else PRIMARY_KEYS[table][0]
            away = gone if table in ("orders", "lineitem") else rows[key]
            kept = old.filter(pc.invert(pc.is_in(old[key], away)))
            self.tables[table] = pa.concat_tables([kept, rows]).combine_chunks()


def _replaced(rows: pa.Table, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    schema = next(schema for schema in SCHEMAS.values() if schema.names == rows.schema.names)
    return pa.table([columns.get(name, rows[name]) for name in schema.names], names=schema.names).cast(schema)


def _cents(money: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return decimals as whole cents, exactly."""
    return pc.multiply(money, pa.scalar(_HUNDRED)).cast(pa.int64()).to_numpy(zero_copy_only=False)


def _money(cents: np.ndarray) -> pa.Array:
    """Return whole cents as decimals, exactly."""
    return pc.multiply(pa.array(cents), pa.scalar(_HUNDREDTH)).cast(SCHEMAS["lineitem"].field("l_tax").type)
