"""The condition that a row's key lies in a range, in the order in which a view's rows are stored, and where it stops.

Pushed towards the scans, it says which base rows a range of a view's keys needs (``samples.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Session
from viewkeeper.plan.nodes import Filter, Node, Scan, inputs_of, walk
from viewkeeper.zset.buffers import one_array
from viewkeeper.zset.schema import BOOLEAN, SqlType
from viewkeeper.zset.values import to_raw

Key: TypeAlias = Sequence[object]
_SESSION = Session()
_FALSE = Literal(False, BOOLEAN)
_TRUE = Literal(True, BOOLEAN)


def key_range(columns: Sequence[ColumnRef], start: Key | None, stop: Key | None) -> Expression | None:
    """Return the condition that a key is at or behind ``start`` and before ``stop``.

    NULL is before all values, as stored keys have it. What the first column must be stands apart too: it alone may
    reach one side of a join.

    Args:
        columns: the key columns.
        start: values of all of them; None: from the first key on.
        stop: likewise; None: to the last one.
    """
    parts = []
    if start is not None:
        parts += [_at_or_behind(columns[:1], start), _at_or_behind(columns, start)]
    if stop is not None:
        parts += [_at_or_before(columns[0], stop[0]), _before(columns, stop)]
    return _folded("and", parts) if parts else None


def _folded(function: str, parts: Sequence[Expression]) -> Expression:
    result = parts[0]
    for part in parts[1:]:
        result = resolve(function, [result, part], _SESSION)
    return result


def _at_or_behind(columns: Sequence[ColumnRef], bound: Key) -> Expression:
    return _compared(columns, bound, _TRUE, _greater)


def _before(columns: Sequence[ColumnRef], bound: Key) -> Expression:
    return _compared(columns, bound, _FALSE, _less)


def _at_or_before(column: ColumnRef, value: object) -> Expression:
    return _compared([column], [value], _TRUE, _less)


def _compared(
    columns: Sequence[ColumnRef], bound: Key, if_equal: Expression, differs: Callable[[ColumnRef, object], Expression]
) -> Expression:
    """Return the comparison by the first column that differs."""
    result = if_equal
    for column, value in reversed(list(zip(columns, bound, strict=False))):
        equal = resolve("eq_null_safe", [column, _literal(value, column.type)], _SESSION)
        result = resolve("or", [differs(column, value), resolve("and", [equal, result], _SESSION)], _SESSION)
    return result


def _greater(column: ColumnRef, value: object) -> Expression:
    if value is None:
        return resolve("is_not_null", [column], _SESSION)
    return resolve("gt", [column, _literal(value, column.type)], _SESSION)


def _less(column: ColumnRef, value: object) -> Expression:
    if value is None:
        return _FALSE
    smaller = resolve("lt", [column, _literal(value, column.type)], _SESSION)
    return resolve("or", [resolve("is_null", [column], _SESSION), smaller], _SESSION)


def _literal(value: Any, sql_type: SqlType) -> Literal:
    if value is None or sql_type.name == "DECIMAL":
        return Literal(value, sql_type)
    return Literal(to_raw(sql_type)(value), sql_type)


# ---- which base rows ----


@dataclass(frozen=True)
class Wanted:
    """Which rows of a base table a plan looks at: those for which one of some conditions holds.

    Args:
        conditions: each with the places of its columns in the table's rows.
    """

    conditions: tuple[tuple[Expression, tuple[int, ...]], ...]

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return those of some rows of the table that are wanted."""
        kept = np.zeros(batch.num_rows, dtype=bool)
        for condition, places in self.conditions:
            columns = [batch.column(place) for place in places]
            read = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
            found = evaluate(condition, read, _SESSION)
            kept |= one_array(found.values).fill_null(False).to_numpy(zero_copy_only=False)
            if found.errors is not None:
                kept |= found.errors.rows
        return batch.filter(pa.array(kept))


def wanted_of(roots: Sequence[Node], table: int, types: Sequence[SqlType]) -> Wanted | None:
    """Return which rows of a base table some plans look at; None where one of them looks at all.

    Args:
        roots: the plans.
        table: the table's id.
        types: of the table's columns as they are now.
    """
    found = []
    for scan, parent in ((child, node) for root in roots for child, node in _with_parents(root)):
        if not isinstance(scan, Scan) or scan.relation.id != table:
            continue
        at = scan.relation.places or range(len(types))
        places = tuple(at[i] for i in scan.columns)
        # A column that has become wider since is cast above the scan: a condition there is for the old type.
        if not isinstance(parent, Filter) or tuple(types[place] for place in places) != scan.schema.types:
            return None
        found.append((parent.condition, places))
    return Wanted(tuple(found))


def _with_parents(root: Node) -> Iterator[tuple[Node, Node | None]]:
    yield root, None
    for node in walk(root):
        for child in inputs_of(node):
            yield child, node
