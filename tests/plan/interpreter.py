"""Executes plans on small tables, row by row and without state: what the nodes mean."""

import math
from decimal import Decimal

import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.nodes import Aggregate, Expand, Filter, Join, Project, Repeat, Scan, UnionAll
from viewkeeper.zset.schema import Schema, to_arrow_type


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


def _join(node, left, right):
    pairs = [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if _keys_match(node, a, b)]
    if node.residual is not None and pairs:
        both = Schema(node.left.schema.columns + node.right.schema.columns)
        passes = computed([node.residual], Project(node, (), both, None), [left[i] + right[j] for i, j in pairs])
        pairs = [pair for pair, (keep,) in zip(pairs, passes, strict=True) if keep]
    has, is_had = {i for i, _ in pairs}, {j for _, j in pairs}
    if node.kind in ("semi", "anti"):
        return [row for i, row in enumerate(left) if (i in has) == (node.kind == "semi")]
    rows = [left[i] + right[j] for i, j in pairs]
    if node.kind in ("left", "full"):
        rows += [row + (None,) * len(node.right.schema) for i, row in enumerate(left) if i not in has]
    if node.kind in ("right", "full"):
        rows += [(None,) * len(node.left.schema) + row for j, row in enumerate(right) if j not in is_had]
    return rows


def _keys_match(node, left, right):
    pairs = enumerate(zip(node.left_keys, node.right_keys, strict=True))
    return all(left[i] == right[j] and (left[i] is not None or n in node.null_safe) for n, (i, j) in pairs)


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
