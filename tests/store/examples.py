"""Tables that the tests of store and log share."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from viewkeeper.log import reader
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.scans import scan
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, STRING, Column, Schema, SqlType
from viewkeeper.zset.versions import StoredColumn, first_layout


def make_table(
    columns: Mapping[str, SqlType],
    key: tuple[str, ...],
    table_id: int = 1,
    not_null: tuple[str, ...] = (),
    defaults: Mapping[str, object] | None = None,
) -> Table:
    names = list(columns)
    schema = Schema(tuple(Column(n, t, n not in not_null and n not in key) for n, t in columns.items()))
    by_name = defaults or {}
    return Table(
        id=table_id,
        name=f"table_{table_id}",
        schema=schema,
        key=tuple(names.index(name) for name in key),
        defaults=tuple(by_name.get(name) for name in names),
        versions=(first_layout(schema.types),),
        added_defaults=(None,) * len(names),
    )


def with_column(table: Table, name: str, sql_type: SqlType, default: object = None) -> Table:
    return Table(
        id=table.id,
        name=table.name,
        schema=Schema((*table.schema.columns, Column(name, sql_type))),
        key=table.key,
        defaults=(*table.defaults, default),
        versions=(*table.versions, (*table.versions[-1], StoredColumn(table.next_number, sql_type))),
        added_defaults=(*table.added_defaults, default),
    )


def rows_of(txn: ReadTransaction, table: Table) -> list[tuple[object, ...]]:
    return list(scan(table, txn))


def delta_of(txn: ReadTransaction, table: Table, after: int, to: int) -> Delta:
    return reader.read_many(txn, {table.id: table}, reader.range_of(after, to))[table.id]


def counted(delta: Delta) -> dict[tuple[object, ...], int]:
    """Return the rows of a delta with the sums of their weights, without zeros; floats by their text."""
    sums: dict[tuple[object, ...], int] = {}
    columns = [column.to_pylist() for column in delta.rows.columns]
    for row, weight in zip(zip(*columns, strict=True), delta.weights.tolist(), strict=True):
        shown = tuple(repr(value) for value in row)
        sums[shown] = sums.get(shown, 0) + weight
    return {row: weight for row, weight in sums.items() if weight}


def as_counted(rows: list[tuple[object, ...]]) -> dict[tuple[object, ...], int]:
    return {tuple(repr(value) for value in row): 1 for row in rows}


ITEMS = make_table({"k": BIGINT, "a": STRING, "v": DOUBLE}, ("k",))
PAIRS = make_table({"x": INT, "k1": STRING, "k2": INT}, ("k1", "k2"), table_id=2)


def items(*rows: tuple[int, str | None, float | None]) -> pa.RecordBatch:
    """Return rows of ITEMS."""
    return pa.RecordBatch.from_pydict(
        dict(zip("kav", map(list, zip(*rows, strict=True)), strict=True)), schema=ITEMS.schema.to_arrow()
    )


def many(start: int, stop: int, text: str = "row") -> pa.RecordBatch:
    """Return rows of ITEMS with the keys from ``start`` to ``stop``."""
    return items(*[(k, f"{text} {k}", k / 2) for k in range(start, stop)])
