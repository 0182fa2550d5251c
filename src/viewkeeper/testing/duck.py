"""DuckDB as a second opinion, for queries that mean the same there; needs the package ``duckdb``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa


class DuckDb:
    """Asks queries over Arrow batches."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        # One thread: queries over a dozen rows only wait for others.
        self._connection.execute("SET threads = 1")

    def __call__(self, sql: str, tables: Mapping[str, pa.RecordBatch]) -> list[tuple[Any, ...]] | None:
        """Return the rows of ``sql``, None where DuckDB refuses or fails: it may overflow where Spark is wider.

        Args:
            sql: a query.
            tables: what its names mean.
        """
        for name, batch in tables.items():
            self._connection.register(name, pa.Table.from_batches([batch]))
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        except duckdb.Error:
            return None
        return rows
