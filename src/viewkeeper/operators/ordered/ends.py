"""MIN, MAX, MIN_BY, MAX_BY, FIRST, LAST, ANY_VALUE and MODE: one entry of a group, or a few, found by a seek."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.ordered.reader import Reader, chosen, gathered
from viewkeeper.operators.ordered.values import OrderedValues, decoded
from viewkeeper.zset.schema import SqlType, to_arrow_type


@dataclass(frozen=True)
class End:
    """The first or the last entry of a group.

    Args:
        type: the type of the answer, which is the first column that the entries hold.
        last: whether the last entry is meant.
        by_frequency: whether entries are ordered by frequency: the last one is then the last of the most frequent.
    """

    type: SqlType
    last: bool
    by_frequency: bool = False

    @property
    def kept(self) -> tuple[SqlType, ...]:
        """The answer."""
        return (self.type,)

    def advance(self, reader: Reader, old: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the new answers."""
        groups = range(len(reader.prefixes))
        changed = [reader.changed(group) is not None for group in groups]
        rows = [self._row(reader, group) for group in groups if changed[group]]
        new = decoded(reader.entries.row_codec, rows, 0, to_arrow_type(self.type))
        return [chosen(changed, new, old[0])]

    def _row(self, reader: Reader, group: int) -> bytes | None:
        if not self.by_frequency:
            return next((row for _, row in reader.walk(group, self.last)), None)
        first = next(reader.walk(group), None)
        if first is None or not self.last:
            return first and first[1]
        codec = reader.entries.key_codec
        same = first[0][: codec.component_end(first[0], len(codec.types) - 2)]
        return next(reader.walk(group, True, within=same))[1]

    def answer(self, reader: Reader, kept: Sequence[pa.Array], now: bool) -> pa.Array:
        """Return the answers."""
        return kept[0]

    @property
    def empty_sql(self) -> str | None:
        """NULL."""
        return None

    def answer_sql(self, values: OrderedValues) -> str:
        """Return MIN, MAX, MODE, or what stands beside the least or greatest of what orders."""
        kept = column_name(values.kept[0])
        orders = [column_name(values.groups + i) for i in range(values.orders)]
        if self.by_frequency:
            return f"mode() WITHIN GROUP (ORDER BY {kept}{' DESC' if self.last else ''})"
        if values.counted:
            return f"{'MAX' if self.last else 'MIN'}({kept})"
        if not orders:
            return f"first({kept})"
        return f"{'max_by' if self.last else 'min_by'}({kept}, struct({', '.join(orders)}))"

    def kept_sql(self, values: OrderedValues) -> tuple[str, ...]:
        """Return the answer."""
        return (self.answer_sql(values),)


@dataclass(frozen=True)
class Ends:
    """The first or the last entries of a group, as an ARRAY: MIN_BY and MAX_BY with a number.

    Args:
        type: the ARRAY.
        last: whether the last entries are meant, from the last on.
        count: how many.
    """

    type: SqlType
    last: bool
    count: int

    @property
    def kept(self) -> tuple[SqlType, ...]:
        """Nothing: the old answer is read as the new one is."""
        return ()

    def advance(self, reader: Reader, old: Sequence[pa.Array]) -> list[pa.Array]:
        """Return nothing."""
        return []

    def answer(self, reader: Reader, kept: Sequence[pa.Array], now: bool) -> pa.Array:
        """Return the arrays; of no entries NULL."""
        groups = reader.each_group(now, self.last)
        values, offsets = gathered(reader, (islice(entries, self.count) for entries in groups))
        starts = [None if start == stop else start for start, stop in pairwise(offsets)]
        at = pa.array([*starts, offsets[-1]], pa.int32())
        return pa.ListArray.from_arrays(at, values, type=to_arrow_type(self.type))

    @property
    def empty_sql(self) -> str | None:
        """NULL."""
        return None

    def answer_sql(self, values: OrderedValues) -> str:
        """Return the values beside the least or the greatest of what orders."""
        kept = column_name(values.kept[0])
        orders = ", ".join(column_name(values.groups + i) for i in range(values.orders))
        # Not the values themselves are compared: they may be MAPs.
        rows = f"collect_list(named_struct('o', struct({orders}), 'v', {kept}))"
        signs = (1, -1) if self.last else (-1, 1)
        order = f"(l, r) -> CASE WHEN l.o < r.o THEN {signs[0]} WHEN l.o > r.o THEN {signs[1]} ELSE 0 END"
        found = f"slice(transform(array_sort({rows}, {order}), x -> x.v), 1, {self.count})"
        return f"CASE WHEN COUNT(1) > 0 THEN {found} END"

    def kept_sql(self, values: OrderedValues) -> tuple[str, ...]:
        """Return nothing."""
        return ()
