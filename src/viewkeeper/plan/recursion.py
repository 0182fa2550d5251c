"""WITH RECURSIVE: the anchor and the recursive member of a common table expression → a Recursion node.

Types and names are the anchor's. The recursive member reads the rows of the round before, once, and through filters,
projections and joins only: then a change of those rows gives a change of what it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, is_portable
from viewkeeper.plan.context import Context
from viewkeeper.plan.nodes import (
    Filter,
    Join,
    Node,
    Project,
    Recursion,
    RecursiveScan,
    Repeat,
    expressions_of,
    inputs_of,
    reference,
    walk,
)
from viewkeeper.plan.scopes import NamedColumn, Source
from viewkeeper.plan.translate import Translator, common_type
from viewkeeper.zset.schema import BIGINT, INT, Column, Schema

DEFAULT_LIMIT = 100
"""Spark's ``spark.sql.cteRecursionLevelLimit``."""

_ROUND = Column("__round", INT, False)
_COUNT = Column("__count", BIGINT, False)
_KEPT_SIDES = {"inner": (0, 1), "left": (0,), "right": (1,), "semi": (0,), "anti": (0,)}

PlanMember = Callable[[exp.Expr, Source | None], Source]


@dataclass(frozen=True)
class RecursiveTable:
    """A common table expression that reads itself.

    Args:
        name: its name.
        query: its query.
        names: the names of its columns; none for those of the anchor.
        limit: how many rounds there may be, the anchor's among them.
    """

    name: str
    query: exp.Expr
    names: tuple[str, ...]
    limit: int


def reads_itself(table: exp.CTE) -> bool:
    """Return whether a common table expression reads a table of its own name."""
    return _reads(table.this, table.alias)


def _reads(query: exp.Expr, name: str) -> bool:
    return any(not found.db and found.name.lower() == name.lower() for found in query.find_all(exp.Table))


def plan_recursion(table: RecursiveTable, plan: PlanMember, context: Context) -> Source:
    """Return the source of a recursive common table expression.

    Args:
        table: the expression.
        plan: plans its anchor (with None), and its recursive member (with the rows of the round before).
        context: the statement.

    Raises:
        SqlError: ``INVALID_RECURSIVE_CTE``, ``INVALID_RECURSIVE_REFERENCE``, ``RECURSIVE_EXPRESSION_NEEDS_SPARK``, or
            types that the anchor's cannot hold.
    """
    body = table.query
    while isinstance(body, exp.Subquery) and isinstance(body.this, exp.Query):
        body = body.this
    if not isinstance(body, exp.Union) or _reads(body.this, table.name):
        message = (
            f"'{table.name}' reads itself: write it as a query that does not read it, UNION ALL or UNION, and one that "
            "does."
        )
        raise context.error("INVALID_RECURSIVE_CTE", message, body)
    anchor = plan(body.this, None)
    columns = _anchor_columns(table, anchor, context)
    distinct = bool(body.args.get("distinct"))
    # As in Spark, the member reads columns that may be NULL, whatever the anchor's are.
    read = [replace(column, nullable=True) for column in columns]
    member = plan(body.expression, Source(_rows(read, distinct), _named(read)))
    made = _next(table, member, read, distinct, body.expression, context)
    columns = [
        replace(column, nullable=column.nullable or c.nullable)
        for column, c in zip(columns, made.schema.columns, strict=False)
    ]
    rows = _rows(columns, distinct)
    first = _cast(anchor, columns, body.this, context)
    every = tuple(range(len(rows.schema)))
    node: Node = Recursion(first, replace(made, schema=rows.schema), distinct, table.limit, rows.schema, every)
    if not distinct:
        copies = Schema((*rows.schema.columns[:-1], Column("__copy", BIGINT, False)))
        node = Repeat(node, copies, every)
    return Source(node, _named(columns))


def _anchor_columns(table: RecursiveTable, anchor: Source, context: Context) -> list[Column]:
    shown = [column for column in anchor.columns if not column.merged]
    names = table.names or tuple(column.name for column in shown)
    if len(names) != len(shown):
        message = f"'{table.name}' names {len(names)} columns, its anchor has {len(shown)}: name each, or none."
        raise context.error("ASSIGNMENT_ARITY_MISMATCH", message, table.query)
    columns = [
        Column(name, anchor.node.schema.columns[s.position].type, anchor.node.schema.columns[s.position].nullable)
        for name, s in zip(names, shown, strict=True)
    ]
    for column in columns:
        if column.type.contains_map:
            message = f"'{column.name}' holds a MAP: rows of a recursive query are compared, so they cannot hold one."
            raise context.error("SET_OPERATION_ON_MAP_TYPE", message, table.query)
    return columns


def _rows(columns: Sequence[Column], distinct: bool) -> RecursiveScan:
    schema = Schema(tuple(columns) if distinct else (*columns, _ROUND, _COUNT))
    return RecursiveScan(schema, tuple(range(len(schema))))


def _named(columns: Sequence[Column]) -> tuple[NamedColumn, ...]:
    return tuple(NamedColumn(None, column.name, i) for i, column in enumerate(columns))


def _next(
    table: RecursiveTable,
    member: Source,
    columns: Sequence[Column],
    distinct: bool,
    tree: exp.Expr,
    context: Context,
) -> Project:
    """Return the recursive member's rows: the columns, for UNION ALL with their round and count."""
    leaf = _leaf(member.node)
    if leaf is None:
        message = (
            f"The recursive member may read '{table.name}' once, and only filter, compute and join it: no aggregates, "
            "DISTINCT, set operations, windows, LIMIT, or the side of an outer join that may be missing."
        )
        raise context.error("INVALID_RECURSIVE_REFERENCE", message, tree)
    inner = [node for node in walk(member.node) if any(isinstance(n, RecursiveScan) for n in walk(node))]
    if not all(is_portable(expression) for node in inner for expression in expressions_of(node)):
        message = (
            "The recursive member has an expression that only Spark can evaluate: compute the value in the anchor, a "
            "joined subquery, or outside of the recursion."
        )
        raise context.error("RECURSIVE_EXPRESSION_NEEDS_SPARK", message, tree)
    outputs = list(_cast(member, columns, tree, context).expressions)
    if not distinct:
        width = len(columns)
        of_leaf = {_traced(member.node, position): position for position in member.node.key or ()}
        number = reference(member.node, of_leaf[width])
        outputs.append(resolve("add", [number, Literal(1, INT)], context.session))
        outputs.append(reference(member.node, of_leaf[width + 1]))
    names = [*(column.name for column in columns), _ROUND.name, _COUNT.name]
    schema = Schema(tuple(Column(n, e.type, e.nullable) for n, e in zip(names, outputs, strict=False)))
    return Project(member.node, tuple(outputs), schema, None)


def _cast(source: Source, columns: Sequence[Column], tree: exp.Expr, context: Context) -> Project:
    translator = Translator(source.node.schema, context)
    shown = [column for column in source.columns if not column.merged]
    if len(shown) != len(columns):
        message = f"The recursive member has {len(shown)} columns, the anchor {len(columns)}: select as many."
        raise context.error("NUM_COLUMNS_MISMATCH", message, tree)
    outputs: list[Expression] = []
    for number, (named, column) in enumerate(zip(shown, columns, strict=True), 1):
        found = reference(source.node, named.position)
        wider = common_type(column.type, found.type, translator, tree, f"The columns {number} of the recursive query")
        if wider != column.type:
            message = (
                f"Column {number} is {str(found.type).upper()} in the recursive member, but {str(column.type).upper()} "
                "in the anchor, which gives the type: CAST one of them."
            )
            raise context.error("DATATYPE_MISMATCH", message, tree)
        outputs.append(translator.cast(tree, found, column.type))
    return Project(source.node, tuple(outputs), Schema(tuple(columns)), None)


def _leaf(node: Node) -> RecursiveScan | None:
    """Return the one RecursiveScan that ``node`` reads through filters, projections and joins that keep its rows."""
    if isinstance(node, RecursiveScan):
        return node
    reading = [i for i, child in enumerate(inputs_of(node)) if any(isinstance(n, RecursiveScan) for n in walk(child))]
    if len(reading) != 1 or not isinstance(node, Filter | Project | Join):
        return None
    if isinstance(node, Join) and reading[0] not in _KEPT_SIDES.get(node.kind, ()):
        return None
    return _leaf(inputs_of(node)[reading[0]])


def _traced(node: Node, position: int) -> int | None:
    """Return which column of the RecursiveScan the column at ``position`` is; None where it is none of them."""
    if isinstance(node, RecursiveScan):
        return position
    if isinstance(node, Filter):
        return _traced(node.input, position)
    if isinstance(node, Project):
        output = node.expressions[position]
        return _traced(node.input, output.index) if isinstance(output, ColumnRef) else None
    if isinstance(node, Join):
        width = len(node.left.schema)
        return _traced(node.left, position) if position < width else _traced(node.right, position - width)
    return None
