"""Delta: rows with weights, the one thing that flows between operators (a Z-set).

A weight of +1 says that the row was inserted, −1 that it was deleted; equal rows add their weights, and a row whose
weights add to zero is not there. Columns are found by position: their names mean nothing here and may repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewkeeper.zset.buffers import BoolArray, Int64Array
from viewkeeper.zset.grouping import first_equal_rows, key_words, row_words

WEIGHT_NAME = "__weight"
_EXACT_IN_DOUBLE = 1 << 53


@dataclass(frozen=True, eq=False)
class Delta:
    """Rows and their weights.

    Args:
        rows: one Arrow batch; a batch without columns counts its rows by ``weights``.
        weights: one int64 a row.

    Example:
        >>> delta = Delta.from_rows(pa.record_batch({"a": [1, 2, 1]}))
        >>> delta.consolidate().to_arrow().to_pydict()
        {'a': [1, 2], '__weight': [2, 1]}
    """

    rows: pa.RecordBatch
    weights: Int64Array

    @classmethod
    def empty(cls, schema: pa.Schema) -> Delta:
        """Return no rows of ``schema``."""
        return cls(_empty_batch(schema), _zeros(0))

    @classmethod
    def from_rows(cls, batch: pa.RecordBatch, weight: int = 1) -> Delta:
        """Return the rows of ``batch``, each with ``weight``."""
        return cls(batch, np.full(batch.num_rows, weight, np.int64))

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch) -> Delta:
        """Return the delta whose last column is the weight: the inverse of ``to_arrow``."""
        last = batch.num_columns - 1
        fields = [batch.schema.field(i) for i in range(last)]
        rows = _batch(batch.columns[:last], pa.schema(fields))
        return cls(rows, batch.column(last).to_numpy())

    @classmethod
    def concat(cls, deltas: Sequence[Delta], schema: pa.Schema) -> Delta:
        """Return the rows of all ``deltas`` in order, under ``schema``; nothing is consolidated."""
        parts = [delta for delta in deltas if delta.num_rows]
        if not parts:
            return cls.empty(schema)
        if len(parts) == 1:
            return cls(_batch(parts[0].rows.columns, schema), parts[0].weights)
        columns = [pa.concat_arrays([part.rows.column(i) for part in parts]) for i in range(len(schema))]
        return cls(_batch(columns, schema), np.concatenate([part.weights for part in parts]))

    @classmethod
    def from_ipc(cls, buffer: bytes | memoryview | pa.Buffer, schema: pa.Schema) -> Delta:
        """Return the delta that ``to_ipc`` wrote; columns point into ``buffer``.

        Args:
            buffer: an Arrow IPC record batch message without its schema.
            schema: the schema of the rows, without the weight.
        """
        source = buffer if isinstance(buffer, pa.Buffer) else pa.py_buffer(buffer)
        return cls.from_arrow(pa.ipc.read_record_batch(source, _with_weight(schema)))

    @property
    def num_rows(self) -> int:
        """How many rows there are, whatever their weights."""
        return len(self.weights)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows, without the weight."""
        return self.rows.schema

    @property
    def byte_size(self) -> int:
        """How many bytes rows and weights take in memory."""
        return int(self.rows.nbytes + self.weights.nbytes)

    def __len__(self) -> int:
        return self.num_rows

    def negate(self) -> Delta:
        """Return what undoes this delta."""
        return Delta(self.rows, -self.weights)

    def filter(self, mask: BoolArray) -> Delta:
        """Return the rows where ``mask`` is true."""
        if mask.all():
            return self
        return self.take(np.flatnonzero(mask))

    def take(self, indices: npt.NDArray[np.integer]) -> Delta:
        """Return the rows at ``indices``, in that order."""
        rows = self.rows.take(pa.array(indices)) if self.rows.num_columns else self.rows
        return Delta(rows, self.weights[indices])

    def slice(self, start: int, stop: int) -> Delta:
        """Return the rows from ``start`` up to, not including, ``stop``, without copying."""
        rows = self.rows.slice(start, stop - start) if self.rows.num_columns else self.rows
        return Delta(rows, self.weights[start:stop])

    def select(self, positions: Sequence[int]) -> Delta:
        """Return the columns at ``positions``, in that order, repeats allowed."""
        fields = [self.schema.field(i) for i in positions]
        return Delta(_batch([self.rows.column(i) for i in positions], pa.schema(fields)), self.weights)

    def with_columns(self, arrays: Sequence[pa.Array], schema: pa.Schema | None = None) -> Delta:
        """Return other columns under the same weights.

        Args:
            arrays: one array a column, as long as the delta.
            schema: names and types; without it the columns are called c0, c1, ….
        """
        if schema is None:
            schema = pa.schema([pa.field(f"c{i}", column.type) for i, column in enumerate(arrays)])
        return Delta(_batch(list(arrays), schema), self.weights)

    def with_weights(self, weights: Int64Array) -> Delta:
        """Return the same rows under other weights."""
        return Delta(self.rows, weights)

    def consolidate(self) -> Delta:
        """Return each row once with the sum of its weights, without rows whose weights add to zero.

        Rows are equal when their bits are, NULL equals NULL, and all NaN are one; −0.0 and 0.0 are different rows, so
        that nothing a user can see is merged. Rows stay in the order of their first occurrence.
        """
        if self.num_rows <= 1:
            return self.filter(self.weights != 0)
        words = [word for column in self.rows.columns for word in row_words(column)]
        first = first_equal_rows(words, self.num_rows)
        is_first = first == np.arange(self.num_rows, dtype=first.dtype)
        if is_first.all():
            return self.filter(self.weights != 0)
        weights = _sums(self.weights, first, self.num_rows)
        return Delta(self.rows, weights).take(np.flatnonzero(is_first & (weights != 0)))

    def group(self, positions: Sequence[int]) -> tuple[Int64Array, Int64Array]:
        """Number the rows by their key columns, as GROUP BY compares them.

        NULL equals NULL, −0.0 equals 0.0, all NaN are one. Groups are numbered from 0 by their first row.

        Args:
            positions: the key columns; with none, all rows are one group.

        Returns:
            The group of each row, and the first row of each group.

        Example:
            >>> delta = Delta.from_rows(pa.record_batch({"k": [-0.0, 7.0, 0.0]}))
            >>> groups, first_rows = delta.group([0])
            >>> groups.tolist(), first_rows.tolist()
            ([0, 1, 0], [0, 1])
        """
        return group_rows([self.rows.column(i) for i in positions], self.num_rows)

    def to_arrow(self) -> pa.RecordBatch:
        """Return rows and weights as one batch, the weight last, called ``__weight``."""
        return _batch([*self.rows.columns, pa.array(self.weights)], _with_weight(self.schema))

    def to_ipc(self) -> bytes:
        """Return an Arrow IPC record batch message, without schema, with the weight as last column."""
        return bytes(self.to_arrow().serialize())


def group_rows(columns: Sequence[pa.Array], num_rows: int) -> tuple[Int64Array, Int64Array]:
    """Number rows by key columns, as ``Delta.group`` does, for columns that belong to no delta.

    Args:
        columns: the key columns.
        num_rows: how many rows there are.

    Returns:
        The group of each row, and the first row of each group.
    """
    if num_rows == 0:
        return _zeros(0), _zeros(0)
    first = first_equal_rows([word for column in columns for word in key_words(column)], num_rows)
    is_first = first == np.arange(num_rows, dtype=first.dtype)
    first_rows = np.flatnonzero(is_first)
    if len(first_rows) == num_rows:
        return first_rows, first_rows
    numbers = np.cumsum(is_first, dtype=np.int64)
    numbers -= 1
    return numbers[first], first_rows


def _sums(weights: Int64Array, groups: npt.NDArray[np.integer], num_groups: int) -> Int64Array:
    largest = max(int(weights.max()), -int(weights.min()))
    if largest * len(weights) < _EXACT_IN_DOUBLE:
        return np.bincount(groups, weights, num_groups).astype(np.int64)
    sums = _zeros(num_groups)
    np.add.at(sums, groups, weights)
    return sums


def _zeros(count: int) -> Int64Array:
    return np.zeros(count, np.int64)


def _with_weight(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(WEIGHT_NAME, pa.int64()))


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return _batch([pa.array([], field.type) for field in schema], schema)


def _batch(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), schema=schema)
