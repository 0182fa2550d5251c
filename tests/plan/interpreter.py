"""Executes plans on small tables, row by row and without state: what the nodes mean."""

import math
from decimal import Decimal

import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.nodes import Aggregate, Expand, Filter, Generate, Join, Project, Repeat, Scan, UnionAll
from viewkeeper.zset.schema import to_arrow_type


def execute(node, tables):
    """Return the rows of ``node``; ``tables`` maps relation ids to lists of tuples."""
    if isinstance(node, Scan):
        return [tuple(row[i] for i in node.columns) for row in tables[node.relation.id]]
    if isinstance(node, Filter):
        rows = execute(node.input, tables)
        return [row for row, (keep,) in zip(rows, computed([node.condition], node.input, rows), strict=True) if keep]
    if isinstance(node, Project):
        rows = execute(node.input, tables)
        return computed(node.expressions, node.input, rows)
    if isinstance(node, Join):
        return _join(node, execute(node.left, tables), execute(node.right, tables))
    if isinstance(node, UnionAll):
        return [row for child in node.inputs for row in execute(child, tables)]
    if isinstance(node, Expand):
        rows = execute(node.input, tables)
        return [row for projection in node.projections for row in computed(projection, node.input, rows)]
    if isinstance(node, Generate):
        return _generated(node, execute(node.input, tables))
    if isinstance(node, Repeat):
        return [(*row[:-1], copy + 1) for row in execute(node.input, tables) for copy in range(row[-1])]
    assert isinstance(node, Aggregate)
    return _aggregate(node, execute(node.input, tables))


def computed(expressions, node, rows):
    """Return the values of ``expressions`` over ``rows`` of ``node``; no row may fail."""
    arrays = [pa.array([row[i] for row in rows], to_arrow_type(c.type)) for i, c in enumerate(node.schema.columns)]
    names = [f"c{i}" for i in range(len(arrays))]
    schema = pa.schema(list(zip(names, (a.type for a in arrays), strict=True)))
    batch = pa.RecordBatch.from_pylist([], schema) if not rows else pa.RecordBatch.from_arrays(arrays, schema=schema)
    columns = []
    for expression in expressions:
        result = evaluate(expression, batch, Session())
        assert result.errors is None or not result.errors.rows.any(), "an expression failed on a row"
        columns.append(result.values.to_pylist())
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def _generated(node, rows):
    made = []
    for row, (collection,) in zip(rows, computed([node.collection], node.input, rows), strict=True):
        kept = tuple(row[i] for i in node.kept)
        width = len(node.schema) - len(kept) - 1
        for position, element in enumerate(collection or ()):
            values = tuple((element or {}).values()) if node.inline else element if width == 2 else (element,)
            made.append((*kept, position, *(values or (None,) * width)))
        if node.outer and not collection:
            made.append((*kept, None, *(None,) * width))
    return made


def _join(node, left, right):
    joined = [
        a + b
        for a in left
        for b in right
        if all(a[i] is not None and a[i] == b[j] for i, j in zip(node.left_keys, node.right_keys, strict=True))
    ]
    if node.residual is None:
        return joined
    return [row for row, (keep,) in zip(joined, computed([node.residual], node, joined), strict=True) if keep]


def _aggregate(node, rows):
    groups = {} if node.group else {(): []}
    for row in rows:
        groups.setdefault(tuple(row[i] for i in node.group), []).append(row)
    return [group + tuple(_called(call, members) for call in node.calls) for group, members in groups.items()]


def _called(call, rows):
    if call.filter is not None:
        rows = [row for row in rows if row[call.filter]]
    if call.function == "count_star":
        return len(rows)
    values = [row[call.argument] for row in rows if row[call.argument] is not None]
    if call.function == "count":
        return len(values)
    if not values:
        return None
    if call.function == "avg":
        return sum(values) / len(values)
    return {"sum": sum, "min": min, "max": max}[call.function](values)


def comparable(rows):
    """Return rows sorted, with numbers in one form."""

    def value(item):
        if isinstance(item, (float, Decimal, int)) and not isinstance(item, bool):
            number = float(item)
            return ("number", "nan") if math.isnan(number) else ("number", f"{number:.9g}")
        return (type(item).__name__, str(item))

    return sorted(tuple(map(value, row)) for row in rows)
