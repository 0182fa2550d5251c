"""What a statement gives back: rows, or how many it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from viewkeeper.log.position import Position
from viewkeeper.zset.buffers import one_array
from viewkeeper.zset.schema import BIGINT, Column, Schema
from viewkeeper.zset.values import from_raw, is_identity, to_raw_list

_AFFECTED = Schema((Column("num_affected_rows", BIGINT, False),))


class Result:
    """Rows in memory, in order; names may repeat.

    Args:
        schema: the columns.
        batches: the rows.
        executor: ``local`` or ``spark``: who computed them.
        rows_affected: for DML, how many rows it changed.
        position: for DML, its place in the log.

    Example:
        >>> result = Result(Schema((Column("n", BIGINT),)), [pa.record_batch({"n": [1, 2]})])
        >>> result.rows(), len(result), result.columns
        ([{'n': 1}, {'n': 2}], 2, ('n',))
    """

    def __init__(
        self,
        schema: Schema,
        batches: Sequence[pa.RecordBatch],
        executor: str = "local",
        rows_affected: int | None = None,
        position: Position | None = None,
    ) -> None:
        self.schema = schema
        self.executor = executor
        self.rows_affected = rows_affected
        self.position = position
        arrow = schema.to_arrow()
        self._batches = [pa.RecordBatch.from_arrays(b.columns, schema=arrow) for b in batches if b.num_rows]

    @staticmethod
    def of_change(rows_affected: int, sequence_number: int, executor: str = "local") -> Result:
        """Return what INSERT, UPDATE, DELETE and MERGE give back.

        Example:
            >>> Result.of_change(2, 7)
            <2 rows affected, position 7>
        """
        batch = pa.record_batch([pa.array([rows_affected], pa.int64())], names=["num_affected_rows"])
        return Result(_AFFECTED, [batch], executor, rows_affected, Position(sequence_number))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.sql("SELECT id, price FROM orders").columns
            ('id', 'price')
        """
        return self.schema.names

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._batches)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts; of columns with one name the last counts."""
        names = self.schema.names
        for values in self.tuples():
            yield dict(zip(names, values, strict=True))

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples, in the forms that ``get`` and ``scan`` give values in.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     list(db.sql("SELECT * FROM sales ORDER BY product").tuples())
            [('jam', 7), ('tea', 9)]
        """
        for batch in self._batches:
            columns = [_values(batch.column(i), t) for i, t in enumerate(self.schema.types)]
            yield from zip(*columns, strict=True)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dicts.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.sql("SELECT * FROM sales ORDER BY product").rows()
            [{'product': 'jam', 'total': 7}, {'product': 'tea', 'total': 9}]
        """
        return list(self)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.sql("SELECT * FROM sales").to_arrow().num_rows
            2
        """
        return pa.Table.from_batches(self._batches, schema=self.schema.to_arrow())

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     int(db.sql("SELECT * FROM sales").to_pandas()["total"].sum())
            16
        """
        return self.to_arrow().to_pandas()

    def show(self, limit: int = 20, console: Console | None = None) -> None:
        """Print the rows as a table.

        Args:
            limit: how many rows at most.
            console: where to; the terminal by default.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.sql("SELECT * FROM sales ORDER BY product").show()
            ┏━━━━━━━━━┳━━━━━━━┓
            ┃ product ┃ total ┃
            ┡━━━━━━━━━╇━━━━━━━┩
            │ jam     │     7 │
            │ tea     │     9 │
            └─────────┴───────┘
        """
        table = Table()
        for name, sql_type in zip(self.schema.names, self.schema.types, strict=True):
            table.add_column(name, justify="right" if sql_type.is_numeric else "left")
        for number, values in enumerate(self.tuples()):
            if number >= limit:
                break
            table.add_row(*map(_shown, values))
        target = console or Console()
        target.print(table)
        if len(self) > limit:
            target.print(f"{limit} of {len(self)} rows")

    def __repr__(self) -> str:
        if self.rows_affected is not None:
            return f"<{self.rows_affected} rows affected, position {self.position}>"
        return f"<{len(self)} rows of ({', '.join(self.columns)})>"


def _values(column: pa.Array, sql_type: Any) -> list[Any]:
    raw = to_raw_list(one_array(column))
    if is_identity(sql_type):
        return raw
    convert = from_raw(sql_type)
    return [None if value is None else convert(value) for value in raw]


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return value.hex() if isinstance(value, bytes) else str(value)
