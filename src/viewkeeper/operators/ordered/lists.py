"""COLLECT_LIST, COLLECT_SET, ARRAY_AGG, STRING_AGG and LISTAGG: all entries of a group, by one scan of it.

The answer is as large as the group, so reading the group costs no more than writing the answer. Nothing is kept beside
the entries: the old answer is read from them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name, spark_sql
from viewkeeper.expressions.tree import Literal
from viewkeeper.operators.ordered.reader import Reader, gathered
from viewkeeper.operators.ordered.values import Entry, OrderedValues
from viewkeeper.zset.keys import full_order
from viewkeeper.zset.schema import BINARY, STRING, SqlType, to_arrow_type


@dataclass(frozen=True)
class Direction:
    """How one column of an entry orders a list."""

    column: int
    ascending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Collected:
    """The first column that the entries hold, as an ARRAY.

    Args:
        type: the ARRAY.
        order: how the list is ordered; within that, and without, as the entries are.
    """

    type: SqlType
    order: tuple[Direction, ...] = ()

    @property
    def kept(self) -> tuple[SqlType, ...]:
        """Nothing."""
        return ()

    def advance(self, reader: Reader, old: Sequence[pa.Array]) -> list[pa.Array]:
        """Return nothing."""
        return []

    def answer(self, reader: Reader, kept: Sequence[pa.Array], now: bool) -> pa.Array:
        """Return the lists; of none an empty one."""
        values, offsets = gathered(reader, (self._ordered(reader, entries) for entries in reader.each_group(now)))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=to_arrow_type(self.type))

    @property
    def empty_sql(self) -> str | None:
        """An empty list."""
        return f"CAST(array() AS {self.type})"

    def answer_sql(self, values: OrderedValues) -> str:
        """Return the values, in the order of the entries."""
        kept = column_name(values.kept[0])
        orders = ", ".join(column_name(values.groups + i) for i in range(values.orders))
        if values.counted:
            return f"sort_array(collect_set({kept}) RESPECT NULLS)"
        if not orders:
            return f"collect_list({kept}) RESPECT NULLS"
        # Not the values themselves are compared: they may be MAPs.
        rows = f"collect_list(named_struct('o', struct({orders}), 'v', {kept}))"
        order = "(l, r) -> CASE WHEN l.o < r.o THEN -1 WHEN l.o > r.o THEN 1 ELSE 0 END"
        return f"transform(array_sort({rows}, {order}), x -> x.v)"

    def kept_sql(self, values: OrderedValues) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def _ordered(self, reader: Reader, entries: Iterator[Entry]) -> list[Entry]:
        found = list(entries)
        if not self.order or len(found) < 2:
            return found
        codec = reader.entries.row_codec
        rows = [codec.decode_values(row) for _, row in found]
        at = list(range(len(found)))
        # Sorting keeps the order of equals: from the last column of the order to the first.
        for direction in reversed(self.order):
            encode = full_order((codec.types[direction.column],))
            keys = [encode((row[direction.column],)) for row in rows]
            at.sort(key=keys.__getitem__, reverse=not direction.ascending)
            null = [(row[direction.column] is None) != direction.nulls_first for row in rows]
            at.sort(key=null.__getitem__)
        return [found[i] for i in at]


@dataclass(frozen=True)
class Joined:
    """The texts that ``Collected`` gives, one behind the other.

    Args:
        collected: the texts.
        delimiter: what stands between them.
    """

    collected: Collected
    delimiter: str | bytes

    @property
    def kept(self) -> tuple[SqlType, ...]:
        """Nothing."""
        return ()

    def advance(self, reader: Reader, old: Sequence[pa.Array]) -> list[pa.Array]:
        """Return nothing."""
        return []

    def answer(self, reader: Reader, kept: Sequence[pa.Array], now: bool) -> pa.Array:
        """Return the joined texts; of none NULL."""
        lists = self.collected.answer(reader, kept, now)
        texts = [self.delimiter.join(texts) if texts else None for texts in lists.to_pylist()]
        return pa.array(texts, lists.type.value_type)

    @property
    def empty_sql(self) -> str | None:
        """NULL."""
        return None

    def answer_sql(self, values: OrderedValues) -> str:
        """Return Spark's LISTAGG, its order completed by that of the entries."""
        kept = column_name(values.kept[0])
        delimiter = spark_sql(Literal(self.delimiter, STRING if isinstance(self.delimiter, str) else BINARY))
        items = [
            f"{column_name(values.stored[d.column])} {'ASC' if d.ascending else 'DESC'}"
            f" NULLS {'FIRST' if d.nulls_first else 'LAST'}"
            for d in self.collected.order
        ]
        if values.counted:
            return f"listagg(DISTINCT {kept}, {delimiter}) WITHIN GROUP (ORDER BY {items[0] if items else kept})"
        items += [column_name(values.groups + i) for i in range(values.orders)]
        within = f" WITHIN GROUP (ORDER BY {', '.join(items)})" if items else ""
        return f"listagg({kept}, {delimiter}){within}"

    def kept_sql(self, values: OrderedValues) -> tuple[str, ...]:
        """Return nothing."""
        return ()
