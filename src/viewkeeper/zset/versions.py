"""Rows of a table whose columns have changed: each stands as it was written and reads as the table is now.

A column has a number for as long as its table lives. ADD COLUMN, DROP COLUMN and a wider type make a new version of the
layout and rewrite nothing; another name makes none. A row of an older version is read column by column: what the table
dropped is left out, what has become wider is converted, what the row lacks reads as the default it was added with.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewkeeper.errors import StoreError
from viewkeeper.zset.rows import VERSION, RowCodec
from viewkeeper.zset.schema import SqlType, to_arrow_type
from viewkeeper.zset.values import from_raw_list, to_raw

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}


@dataclass(frozen=True)
class StoredColumn:
    """A column as rows of one version hold it.

    Args:
        number: which column of the table it is; numbers are never used again.
        type: its type in that version.
    """

    number: int
    type: SqlType


Layout = tuple[StoredColumn, ...]


def first_layout(types: Sequence[SqlType]) -> Layout:
    """Return the layout of a table that has just been created."""
    return tuple(StoredColumn(number, sql_type) for number, sql_type in enumerate(types))


def can_widen(old: SqlType, new: SqlType) -> bool:
    """Return whether every value of ``old`` is a value of ``new``: the changes of type that Spark's tables allow.

    Example:
        >>> from viewkeeper.zset.schema import BIGINT, FLOAT, INT, decimal
        >>> can_widen(INT, BIGINT), can_widen(INT, decimal(12, 2)), can_widen(INT, FLOAT), can_widen(BIGINT, INT)
        (True, True, False, False)
    """
    if old.name in _INTEGERS:
        if new.name in _INTEGERS:
            return _INTEGERS.index(new.name) > _INTEGERS.index(old.name)
        if new.name == "DECIMAL":
            return new.precision - new.scale >= _DIGITS[old.name]
        return new.name == "DOUBLE" and old.name != "BIGINT"
    if old.name == "DECIMAL" and new.name == "DECIMAL":
        more_digits = new.precision - new.scale >= old.precision - old.scale
        return new != old and new.scale >= old.scale and more_digits
    return (old.name, new.name) in (("FLOAT", "DOUBLE"), ("DATE", "TIMESTAMP_NTZ"))


def widened_value(value: object, old: SqlType, new: SqlType) -> object:
    """Return a Python value of ``old`` as one of ``new``, which is the same type or a wider one."""
    if value is None or old == new:
        return value
    codec = RowCodec((new,))
    column = from_raw_list([to_raw(old)(value)], old).cast(to_arrow_type(new))
    return codec.decode_values(codec.encode([column])[0])[0]


class VersionedRows:
    """Rows of a table whose columns have changed: written in the newest version, read from any.

    Args:
        versions: the layout of each version.
        added_defaults: per column of the newest the Python value that rows written before it existed show.

    Example:
        >>> from viewkeeper.zset.schema import BIGINT, INT
        >>> one = first_layout((INT, INT))
        >>> two = (StoredColumn(1, BIGINT), StoredColumn(2, INT))  # 0 dropped, 1 widened, 2 added
        >>> VersionedRows((one, two), (None, 7)).decode_values(
        ...     VersionedRows((one,), (None, None)).encode_values((1, 5))
        ... )
        (5, 7)
    """

    def __init__(self, versions: Sequence[Layout], added_defaults: Sequence[object]) -> None:
        self.versions = tuple(versions)
        self.added_defaults = tuple(added_defaults)
        self.types = _types(self.versions[-1])
        self._codecs = [RowCodec(_types(layout), number) for number, layout in enumerate(self.versions)]
        self._newest = self._codecs[-1]
        self._newest_prefix = VERSION.pack(len(self.versions) - 1)
        self._sources = [self._sources_in(layout) for layout in self.versions]
        self._is_wider = [
            any(s is not None and layout[s].type != t for s, t in zip(sources, self.types, strict=True))
            for layout, sources in zip(self.versions, self._sources, strict=True)
        ]

    def __reduce__(self) -> tuple[object, ...]:
        return (VersionedRows, (self.versions, self.added_defaults))

    def _sources_in(self, layout: Layout) -> list[int | None]:
        """Return for each column of the newest version where it stands in ``layout``, None where that lacks it."""
        places = {column.number: i for i, column in enumerate(layout)}
        return [places.get(column.number) for column in self.versions[-1]]

    def encode(self, columns: pa.RecordBatch | Sequence[pa.Array | pa.ChunkedArray]) -> list[bytes]:
        """Return one value a row, in the newest version; ``columns`` are all columns of the table."""
        return self._newest.encode(columns)

    def encode_values(self, values: Sequence[object]) -> bytes:
        """Return the row of Python values, in the newest version.

        Raises:
            InputError: WRONG_TYPE, VALUE_OUT_OF_RANGE or WRONG_ROW_LENGTH.
        """
        return self._newest.encode_values(values)

    def decode(self, values: Sequence[bytes]) -> pa.RecordBatch:
        """Return rows of any versions as one batch of the newest, in order, with the columns c0, c1, ….

        Raises:
            StoreError: ROW_UNREADABLE.
        """
        prefix = self._newest_prefix
        if all(value.startswith(prefix) for value in values):
            return self._newest.decode(values)
        numbers = np.frombuffer(b"".join([value[:2] for value in values]), "<u2")
        parts: list[pa.RecordBatch] = []
        places: list[npt.NDArray[np.int64]] = []
        for number in np.unique(numbers).tolist():
            indices = np.flatnonzero(numbers == number)
            batch = self._codec(number).decode([values[i] for i in indices.tolist()])
            columns = self.as_now(batch.columns, number, batch.num_rows)
            parts.append(pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))]))
            places.append(indices)
        columns = [pa.concat_arrays([part.column(i) for part in parts]) for i in range(len(self.types))]
        joined = pa.RecordBatch.from_arrays(columns, schema=parts[0].schema)
        return joined.take(pa.array(np.argsort(np.concatenate(places))))

    def decode_values(self, value: bytes) -> tuple[Any, ...]:
        """Return one row of any version as Python values.

        Raises:
            StoreError: ROW_UNREADABLE.
        """
        if value.startswith(self._newest_prefix):
            return self._newest.decode_values(value)
        number = int.from_bytes(value[:2], "little")
        codec = self._codec(number)
        if self._is_wider[number]:
            return self._newest.decode_values(self._newest.encode(self.decode([value]))[0])
        row = codec.decode_values(value)
        pairs = zip(self._sources[number], self.added_defaults, strict=True)
        return tuple(_of_its_own(default) if source is None else row[source] for source, default in pairs)

    def as_now(self, columns: Sequence[pa.Array], number: int, count: int) -> list[pa.Array]:
        """Return the columns of ``count`` rows of version ``number`` as those of the newest."""
        arrays = []
        for source, default, sql_type in zip(self._sources[number], self.added_defaults, self.types, strict=True):
            if source is None:
                raw = None if default is None else to_raw(sql_type)(default)
                arrays.append(from_raw_list([raw], sql_type).take(pa.array(np.zeros(count, np.int64))))
            elif self.versions[number][source].type != sql_type:
                arrays.append(columns[source].cast(to_arrow_type(sql_type)))
            else:
                arrays.append(columns[source])
        return arrays

    def _codec(self, number: int) -> RowCodec:
        if number >= len(self._codecs):
            raise StoreError(
                "ROW_UNREADABLE",
                f"A stored row has schema version {number}, newer than the table's {len(self._codecs) - 1}: "
                "the store is damaged.",
                {"version": number},
            )
        return self._codecs[number]


def _of_its_own(default: object) -> object:
    """Return a default that a caller may change: the one that is kept is that of all rows, in all of this process."""
    return deepcopy(default) if isinstance(default, list | dict) else default


def _types(layout: Layout) -> tuple[SqlType, ...]:
    return tuple(column.type for column in layout)
