"""Scans whose filter fixes the whole key are look-ups: which keys, found from the plan alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Session, columns_of, is_portable
from viewkeeper.plan.nodes import Filter, Node, Scan, walk
from viewkeeper.zset.buffers import one_array
from viewkeeper.zset.schema import INTEGER_BITS, SqlType
from viewkeeper.zset.values import from_raw, is_identity, to_raw_list

Key = tuple[object, ...]

ONE_ROW = pa.record_batch([pa.array([0], pa.int32())], names=["one"])


def pinned_keys(root: Node) -> dict[int, list[Key]]:
    """Return, by relation, the keys that are all that the plan needs of it; relations read otherwise are left out.

    Args:
        root: the plan.
    """
    found: dict[int, list[Key]] = {}
    scanned: set[int] = set()
    filtered: set[int] = set()
    for node in walk(root):
        if isinstance(node, Filter) and isinstance(node.input, Scan):
            filtered.add(id(node.input))
            key = _pinned(node.condition, node.input)
            if key is None:
                scanned.add(node.input.relation.id)
            else:
                found.setdefault(node.input.relation.id, []).extend(key)
    for node in walk(root):
        if isinstance(node, Scan) and id(node) not in filtered:
            scanned.add(node.relation.id)
    return {relation: list(dict.fromkeys(keys)) for relation, keys in found.items() if relation not in scanned}


def _pinned(condition: Expression, scan: Scan) -> list[Key] | None:
    """Return the key that ``condition`` allows, none at all where it can never hold, None where it allows several."""
    relation = scan.relation
    key = relation.key if relation.key is not None else relation.full_key
    if not key:
        return None
    values: dict[int, object] = {}
    for part in conjuncts(condition):
        fixed = _equality(part)
        if fixed is None:
            continue
        column, value, is_possible = fixed
        if not is_possible:
            return []
        values.setdefault(scan.columns[column], value)
    if not all(position in values for position in key):
        return None
    return [tuple(values[position] for position in key)]


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the parts that are joined by AND."""
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


def _equality(part: Expression) -> tuple[int, object, bool] | None:
    """Return (column, constant, whether they can be equal) of ``column = constant``, None for anything else."""
    if not isinstance(part, Call) or part.function != "eq":
        return None
    left, right = part.arguments
    if columns_of(left):
        left, right = right, left
    if columns_of(left) or not is_portable(left):
        return None
    column = right
    if isinstance(right, Call) and right.function == "cast" and right.type.is_integer:
        column = right.arguments[0]
    if not isinstance(column, ColumnRef) or not (column is right or column.type.is_integer):
        return None
    computed = evaluate(left, ONE_ROW, Session())
    if computed.errors is not None:
        return None
    raw = to_raw_list(one_array(computed.values))[0]
    if raw is None or not _fits(raw, column.type):
        return column.index, None, False
    value = raw if is_identity(left.type) else from_raw(left.type)(raw)
    return column.index, value, True


def _fits(raw: object, sql_type: SqlType) -> bool:
    if not sql_type.is_integer or not isinstance(raw, int):
        return True
    limit = 1 << (INTEGER_BITS[sql_type.name] - 1)
    return -limit <= raw < limit
