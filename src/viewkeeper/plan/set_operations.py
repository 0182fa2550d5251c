"""UNION, INTERSECT and EXCEPT, with and without ALL, and DISTINCT: composed of what other nodes do.

    SELECT DISTINCT q       Aggregate(q by all columns)
    a UNION b               Aggregate(a + b by all columns)
    a INTERSECT b           rows of the counted union with l > 0 and r > 0
    a EXCEPT b              rows of the counted union with l > 0 and r = 0
    a INTERSECT ALL b       Repeat(counted union, least(l, r))
    a EXCEPT ALL b          Repeat(counted union, l - r where that is positive)

The counted union is Aggregate(a, marked, + b by all columns: l := rows of a, r := rows of b). NULLs are equal here, as
GROUP BY has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal
from viewkeeper.plan.context import Context
from viewkeeper.plan.keys import hidden_key_name
from viewkeeper.plan.nodes import Aggregate, AggregateCall, Filter, Node, Project, Repeat, UnionAll, reference
from viewkeeper.plan.scopes import NamedColumn, Source
from viewkeeper.plan.translate import Translator, common_type
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import BIGINT, BOOLEAN, Column, Schema, SqlType

_NAMES: dict[type[exp.Expr], str] = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


def plan_set_operation(query: exp.SetOperation, branches: Sequence[Source], context: Context) -> Source:
    """Return the source of a set operation over its planned branches.

    Args:
        query: the operation; of UNION ALL the outermost one.
        branches: its inputs; two, or any number of UNION ALL.
        context: the statement.

    Raises:
        SqlError: ``NUM_COLUMNS_MISMATCH``, types without a common one, and MAP columns where rows are compared.
    """
    every = not query.args.get("distinct")
    name = _NAMES[type(query)] + (" ALL" if every else "")
    columns = _columns(query, branches, name, context)
    if isinstance(query, exp.Union) and every:
        return _union_all(query, branches, columns, context)
    _check_comparable(columns, name, query, context)
    translator = Translator(branches[0].node.schema, context)
    plain = [_cast(branch, columns, translator, query) for branch in branches]
    if isinstance(query, exp.Union):
        node: Node = _grouped(UnionAll(tuple(plain), Schema(tuple(columns)), None), len(columns))
    else:
        kept = _counted_union(plain, columns)
        node = _copies(kept, columns, query, context) if every else _present(kept, columns, query, context)
    return Source(node, tuple(NamedColumn(None, column.name, i) for i, column in enumerate(columns)))


def distinct(source: Source, tree: exp.Expr, context: Context) -> Source:
    """Return the distinct rows of a query block's visible columns.

    Raises:
        SqlError: for MAP columns, which cannot be compared.
    """
    shown = [column for column in source.columns if not column.merged]
    node = source.node
    columns = [
        Column(named.name, node.schema.columns[named.position].type, node.schema.columns[named.position].nullable)
        for named in shown
    ]
    _check_comparable(columns, "DISTINCT", tree, context)
    outputs = tuple(ColumnRef(n.position, c.type, c.nullable) for n, c in zip(shown, columns, strict=True))
    grouped = _grouped(Project(node, outputs, Schema(tuple(columns)), None), len(columns))
    return Source(grouped, tuple(NamedColumn(None, column.name, i) for i, column in enumerate(columns)))


def _columns(query: exp.Expr, branches: Sequence[Source], name: str, context: Context) -> list[Column]:
    """Return the columns that all branches are cast to, named by the first."""
    width = len(_shown(branches[0]))
    for number, branch in enumerate(branches[1:], 2):
        if len(_shown(branch)) != width:
            message = (
                f"The first query of {name} has {width} columns, query {number} has {len(_shown(branch))}: "
                "select as many in each, NULL where there is none."
            )
            raise context.error("NUM_COLUMNS_MISMATCH", message, query)
    translator = Translator(branches[0].node.schema, context)
    columns = []
    for i in range(width):
        parts = [branch.node.schema.columns[_shown(branch)[i].position] for branch in branches]
        sql_type = parts[0].type
        for part in parts[1:]:
            sql_type = common_type(sql_type, part.type, translator, query, f"The columns {i + 1} of {name}")
        # A row of INTERSECT is in both branches, one of EXCEPT in the first.
        nullables = [part.nullable for part in parts]
        nullable = any(nullables)
        if isinstance(query, exp.Intersect):
            nullable = all(nullables)
        elif isinstance(query, exp.Except):
            nullable = nullables[0]
        columns.append(Column(_shown(branches[0])[i].name, sql_type, nullable))
    return columns


def _shown(source: Source) -> list[NamedColumn]:
    return [column for column in source.columns if not column.merged]


def _check_comparable(columns: Sequence[Column], name: str, tree: exp.Expr, context: Context) -> None:
    for column in columns:
        if column.type.contains_map:
            message = (
                f"{name} compares rows, and '{column.name}' holds a MAP, which cannot be compared: "
                f"leave it out, or use map_entries({column.name})."
            )
            raise context.error("SET_OPERATION_ON_MAP_TYPE", message, tree)


def _cast(branch: Source, columns: Sequence[Column], translator: Translator, query: exp.Expr) -> Project:
    outputs = tuple(
        translator.cast_column(query, reference(branch.node, named.position), column.type)
        for named, column in zip(_shown(branch), columns, strict=True)
    )
    schema = Schema(tuple(Column(c.name, c.type, e.nullable) for c, e in zip(columns, outputs, strict=True)))
    return Project(branch.node, outputs, schema, None)


def _grouped(node: Node, width: int) -> Aggregate:
    group = tuple(range(width))
    return Aggregate(node, group, (), node.schema, group)


def _counted_union(branches: Sequence[Node], columns: Sequence[Column]) -> Aggregate:
    """Return the distinct rows of both branches, each with how often the left one and the right one have it."""
    width = len(columns)
    marked = []
    names = [*(column.name for column in columns), "in_left", "in_right"]
    for number, branch in enumerate(branches):
        marks = [Literal(number == side, BOOLEAN) for side in (0, 1)]
        outputs: list[Expression] = [*(reference(branch, i) for i in range(width)), *marks]
        held = tuple(Column(n, e.type, e.nullable) for n, e in zip(names, outputs, strict=True))
        marked.append(Project(branch, tuple(outputs), Schema(held), None))
    below = tuple(
        Column(names[i], marked[0].schema.types[i], any(m.schema.columns[i].nullable for m in marked))
        for i in range(width + 2)
    )
    united = UnionAll(tuple(marked), Schema(below), None)
    calls = tuple(AggregateCall("count_star", None, width + side, BIGINT, False) for side in (0, 1))
    schema = Schema((*below[:width], Column("left_rows", BIGINT, False), Column("right_rows", BIGINT, False)))
    group = tuple(range(width))
    return Aggregate(united, group, calls, schema, group)


def _present(counted: Aggregate, columns: Sequence[Column], query: exp.Expr, context: Context) -> Node:
    width = len(columns)
    in_left = _call("gt", [reference(counted, width), Literal(0, BIGINT)], context)
    wanted = "gt" if isinstance(query, exp.Intersect) else "eq"
    in_right = _call(wanted, [reference(counted, width + 1), Literal(0, BIGINT)], context)
    condition = _call("and", [in_left, in_right], context)
    kept = Filter(counted, condition, counted.schema, counted.key)
    outputs = tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(columns))
    return Project(kept, outputs, Schema(tuple(columns)), counted.key)


def _copies(counted: Aggregate, columns: Sequence[Column], query: exp.Expr, context: Context) -> Node:
    width = len(columns)
    left, right = reference(counted, width), reference(counted, width + 1)
    if isinstance(query, exp.Intersect):
        copies = _call("least", [left, right], context)
    else:
        copies = _call("subtract", [left, right], context)
    outputs = (*(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(columns)), copies)
    number = Column(hidden_key_name("copy", 0), BIGINT, False)
    schema = Schema((*columns, number))
    counts = Project(counted, outputs, schema, tuple(range(width)))
    positive = _call("gt", [ColumnRef(width, BIGINT, copies.nullable), Literal(0, BIGINT)], context)
    kept = Filter(counts, positive, schema, counts.key)
    return Repeat(kept, schema, tuple(range(width + 1)))


def _call(function: str, arguments: list[Expression], context: Context) -> Expression:
    return resolve(function, arguments, context.session)


def _union_all(query: exp.Expr, branches: Sequence[Source], columns: Sequence[Column], context: Context) -> Source:
    nodes = _padded(branches, columns, Translator(branches[0].node.schema, context), query)
    schema = nodes[0].schema
    key = None if any(b.node.key is None for b in branches) else tuple(range(len(columns), len(schema)))
    source = UnionAll(tuple(nodes), schema, key)
    return Source(source, tuple(NamedColumn(None, column.name, i) for i, column in enumerate(columns)))


def _padded(
    branches: Sequence[Source], columns: Sequence[Column], translator: Translator, query: exp.Expr
) -> list[Project]:
    """Return the branches cast to ``columns``, followed by the branch's number and the keys of all, NULL for others."""
    keys = [[branch.node.schema.columns[position] for position in branch.node.key or ()] for branch in branches]
    hidden = [Column("__branch", types.INT, False)]
    for column in (column for own in keys for column in own):
        hidden.append(Column(hidden_key_name(column.name, len(hidden) - 1), column.type, True))
    nodes = []
    for number, branch in enumerate(branches):
        node = branch.node
        outputs: list[Expression] = [
            translator.cast_column(query, reference(node, named.position), column.type)
            for named, column in zip(_shown(branch), columns, strict=True)
        ]
        outputs.append(Literal(number, types.INT))
        for i, own in enumerate(keys):
            outputs += [reference(node, p) for p in node.key or ()] if i == number else map(_null, own)
        schema = Schema((*columns, *hidden))
        key = None if node.key is None else tuple(range(len(columns), len(schema)))
        nodes.append(Project(node, tuple(outputs), schema, key))
    return nodes


def _null(column: Column) -> Literal:
    sql_type: SqlType = column.type
    return Literal(None, sql_type)
