"""The algebra between SQL and operators: frozen dataclasses, typed, with positions instead of names.

Every node knows its ``schema`` and its ``key``: the positions of columns that together tell its rows apart, or None
where rows may repeat. Queries keep the key columns of their inputs as hidden columns behind the visible ones until an
aggregate needs them no more; so each view has a derived key even when its SELECT list leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Scalar, Session
from viewkeeper.operators.windows.call import Bound
from viewkeeper.zset.schema import Schema, SqlType

NO_COLUMNS = Schema(())


@dataclass(frozen=True)
class Relation:
    """A base table or a view as the catalog knows it.

    Args:
        id: the catalog's number; log and storage use it, never the name.
        name: as its creator wrote it.
        kind: ``table`` or ``view``.
        schema: the visible columns.
        key: positions of the key columns; None where a view's key is not among its columns.
        hidden: a view's hidden columns, stored behind the visible ones.
        full_key: where ``key`` is None, the positions of the view's key among visible and hidden columns.
        identity: where the key is declared, what tells rows apart for certain: a promise may be broken for a while.
        numbers: a table's column numbers, by which state is named; empty where they are the positions.
        places: where a table's columns stand in its rows now; empty where they stand as here.
    """

    id: int
    name: str
    kind: str
    schema: Schema
    key: tuple[int, ...] | None
    hidden: Schema = NO_COLUMNS
    full_key: tuple[int, ...] | None = None
    identity: tuple[int, ...] | None = None
    numbers: tuple[int, ...] = ()
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scan:
    """The rows of a relation, restricted to ``columns``.

    Views are scanned with their hidden key columns (behind the visible ones) where they have any.
    """

    relation: Relation
    columns: tuple[int, ...]
    schema: Schema
    key: tuple[int, ...] | None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of ``columns``: what they are called whatever becomes of the table."""
        return tuple(self.relation.numbers[i] for i in self.columns) if self.relation.numbers else self.columns


@dataclass(frozen=True)
class Filter:
    """Rows for which ``condition`` is true."""

    input: Node
    condition: Expression
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class Project:
    """One output column per expression."""

    input: Node
    expressions: tuple[Expression, ...]
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class SortKey:
    """One item of an order: the position of a column and how it sorts."""

    column: int
    ascending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Join:
    """Rows that match: their key columns are equal (NULL equals nothing; all NaN are equal, -0.0 equals 0.0).

    Columns are those of the left input, then those of the right one; of ``semi`` and ``anti`` only the left one's.
    ``left_keys[i]`` and ``right_keys[i]`` have the same type: the plan casts beforehand. Without keys every pair of
    rows is looked at.

    Args:
        left: the left input.
        right: the right input.
        left_keys: positions of the key columns in the left input.
        right_keys: likewise in the right input.
        residual: a further condition of matching, over the left columns, then the right ones.
        schema: the columns.
        key: their key.
        kind: ``inner``, ``left``, ``right``, ``full`` (which add rows without a partner, NULLs beside them), ``semi``
            and ``anti`` (left rows with a partner, without one).
        null_safe: indexes of the key pairs in which NULL equals NULL.
    """

    left: Node
    right: Node
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None
    schema: Schema
    key: tuple[int, ...] | None
    kind: str = "inner"
    null_safe: frozenset[int] = frozenset()


_ORDERED_BY_KEY = frozenset(("first", "last", "min_by", "max_by", "collect_list", "listagg"))


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of an Aggregate node.

    Args:
        function: ``count_star``, ``count``, ``sum``, ``avg``, ``min``, ``max``, ...
        argument: position of the argument in the input; None for ``count_star``.
        filter: position of a BOOLEAN column: only rows where it is true count; None for all rows.
        type: the result type by Spark's rules.
        nullable: whether the result may be NULL.
        more: positions of further arguments (``corr``, ``min_by``).
        distinct: whether equal arguments count once.
        order: WITHIN GROUP (ORDER BY ...), over positions of the input.
        constants: arguments that are constants (a percentage, a delimiter).
    """

    function: str
    argument: int | None
    filter: int | None
    type: SqlType
    nullable: bool
    more: tuple[int, ...] = ()
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    constants: tuple[Scalar, ...] = ()

    @property
    def needs_key(self) -> bool:
        """Whether the answer depends on the key of the input's rows, which completes the order."""
        return not self.distinct and self.function in _ORDERED_BY_KEY

    @property
    def reads(self) -> frozenset[int]:
        """Positions of the input that it reads."""
        single = (p for p in (self.argument, self.filter) if p is not None)
        return frozenset((*single, *self.more, *(key.column for key in self.order)))

    def shifted(self, mapping: Mapping[int, int]) -> AggregateCall:
        """Return the call over an input whose columns have moved, old -> new position."""
        return replace(
            self,
            argument=None if self.argument is None else mapping[self.argument],
            filter=None if self.filter is None else mapping[self.filter],
            more=tuple(mapping[position] for position in self.more),
            order=shifted_order(self.order, mapping),
        )


@dataclass(frozen=True)
class Aggregate:
    """Group columns first, then one column per call; ``group`` empty means one row, on empty input too."""

    input: Node
    group: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class UnionAll:
    """The rows of all inputs; their schemas have the same types, in order.

    The planner appends to each input a branch number and the padded key columns of all branches, so ``key`` is theirs.
    """

    inputs: tuple[Node, ...]
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class Repeat:
    """Each row as many times as its last column says, the number of the copy (BIGINT, from 1) in place of the count.

    Args:
        input: the rows, no two of them equal but for the count.
        schema: the columns.
        key: all columns.
    """

    input: Node
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class Expand:
    """Each row once per projection: what GROUPING SETS, CUBE and ROLLUP aggregate.

    Args:
        input: the rows.
        projections: lists of columns and constants of the same types, over the input.
        schema: their columns.
        key: None, or the input's key columns and one that tells the projections apart.
    """

    input: Node
    projections: tuple[tuple[ColumnRef | Literal, ...], ...]
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class Generate:
    """Each row once per element of a collection (explode, posexplode, inline, stack).

    Args:
        input: the rows.
        kept: positions of the input's columns that stay: not the collection itself, which would be repeated for each
            of its elements, unless somebody reads it.
        collection: an ARRAY or MAP over the input.
        outer: whether a row without elements stays, with NULLs.
        inline: whether the elements are STRUCTs whose fields become columns.
        schema: the kept columns, the position of the element (INT, from 0), then its columns (key and value of a MAP;
            fields where ``inline``).
        key: the input's key and the position.
    """

    input: Node
    kept: tuple[int, ...]
    collection: Expression
    outer: bool
    inline: bool
    schema: Schema
    key: tuple[int, ...] | None


ENDLESS = (1 << 31) - 1
"""The last rank of rows without a bound, and of nothing else."""
RANKS_MAX = ENDLESS - 1


@dataclass(frozen=True)
class TopK:
    """The first rows of each partition in an order; ties that the order leaves are broken by the input's key.

    Args:
        input: the rows, with a key.
        partition: positions of the partition columns; none for one partition of all rows.
        order: the order.
        limit: the greatest rank that is kept.
        offset: how many ranks are left out first.
        ranking: ``row_number``, ``rank`` or ``dense_rank``.
        schema: the input's columns, then the rank (INT).
        key: the input's key.
    """

    input: Node
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    limit: int
    offset: int
    ranking: str
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class WindowCall:
    """One window function.

    Args:
        function: ``row_number``, ``rank``, ``lag``, ``sum``, ...
        arguments: positions of its arguments.
        constants: arguments that are constants (an offset, a number of buckets).
        unit: ``rows`` or ``range``: what the bounds of the frame count.
        start: rows or distance before the current row; None for the partition's start; negative for behind it.
        stop: rows or distance behind the current row; None for the partition's end; negative for before it.
        ignore_nulls: whether NULL arguments are passed over.
        type: the result type by Spark's rules.
        nullable: whether the result may be NULL.
        filter: position of a BOOLEAN column: only rows where it is true count; None for all rows.
    """

    function: str
    arguments: tuple[int, ...]
    constants: tuple[Scalar, ...]
    unit: str
    start: Bound
    stop: Bound
    ignore_nulls: bool
    type: SqlType
    nullable: bool
    filter: int | None = None

    @property
    def reads(self) -> frozenset[int]:
        """Positions of the input that it reads."""
        return frozenset(self.arguments) | ({self.filter} if self.filter is not None else set())

    def shifted(self, mapping: Mapping[int, int]) -> WindowCall:
        """Return the call over an input whose columns have moved, old -> new position."""
        arguments = tuple(mapping[position] for position in self.arguments)
        return replace(self, arguments=arguments, filter=None if self.filter is None else mapping[self.filter])


@dataclass(frozen=True)
class Window:
    """Window functions over one partitioning and order; ties that it leaves are broken by the input's key.

    Args:
        input: the rows, with a key.
        partition: positions of the partition columns; views need at least one.
        order: the order within a partition; none for all rows alike.
        calls: the functions.
        schema: the input's columns, then one a call.
        key: the input's key.
    """

    input: Node
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class RecursiveScan:
    """Inside a Recursion's ``next``: the rows of the round before."""

    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class Recursion:
    """WITH RECURSIVE: the rows of ``first``, and again and again what ``next`` makes of the newest rows.

    Args:
        first: the anchor.
        next: the recursive member; holds a RecursiveScan, and no other Recursion's.
        distinct: UNION: rows that were there are not new. Otherwise UNION ALL.
        limit: how many rounds there may be, the anchor's among them.
        schema: the columns, then for UNION ALL the round (INT) and what tells equal rows apart.
        key: the columns that tell rows apart.
    """

    first: Node
    next: Node
    distinct: bool
    limit: int
    schema: Schema
    key: tuple[int, ...] | None


Node: TypeAlias = (
    Scan
    | Filter
    | Project
    | Join
    | Aggregate
    | UnionAll
    | Repeat
    | Expand
    | Generate
    | TopK
    | Window
    | RecursiveScan
    | Recursion
)


@dataclass(frozen=True)
class ViewPlan:
    """A query ready to be maintained.

    Args:
        root: its last node; the first ``visible`` columns of its schema are the query's, the others are hidden.
        visible: how many columns the user sees.
        key: positions (in the root) of the derived or declared key.
        declared: whether ``key`` was declared by the user and must be checked.
        session: time zone and ANSI mode in force when it was made.
    """

    root: Node
    visible: int
    key: tuple[int, ...]
    declared: bool
    session: Session

    @property
    def schema(self) -> Schema:
        """The columns that the user sees."""
        return self.root.schema.select(tuple(range(self.visible)))

    @property
    def visible_key(self) -> tuple[int, ...] | None:
        """The key's positions where all of them are visible, else None: such a view can be scanned but not got."""
        return self.key if all(i < self.visible for i in self.key) else None


@dataclass(frozen=True)
class QueryPlan:
    """An ad hoc SELECT: the view grammar, plus ORDER BY, LIMIT and OFFSET at its end."""

    view: ViewPlan
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0


def shifted_order(order: tuple[SortKey, ...], mapping: Mapping[int, int]) -> tuple[SortKey, ...]:
    """Return an order over an input whose columns have moved, old -> new position."""
    return tuple(replace(key, column=mapping[key.column]) for key in order)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that ``node`` reads, in order."""
    if isinstance(node, Scan | RecursiveScan):
        return ()
    if isinstance(node, Join):
        return (node.left, node.right)
    if isinstance(node, Recursion):
        return (node.first, node.next)
    if isinstance(node, UnionAll):
        return node.inputs
    return (node.input,)


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """Return ``node`` over other inputs that have the same columns."""
    if isinstance(node, Scan | RecursiveScan):
        return node
    if isinstance(node, Join):
        return replace(node, left=inputs[0], right=inputs[1])
    if isinstance(node, Recursion):
        return replace(node, first=inputs[0], next=inputs[1])
    if isinstance(node, UnionAll):
        return replace(node, inputs=tuple(inputs))
    return replace(node, input=inputs[0])


def reference(node: Node, position: int) -> ColumnRef:
    """Return the expression for the column of ``node`` at ``position``."""
    column = node.schema.columns[position]
    return ColumnRef(position, column.type, column.nullable)


def expressions_of(node: Node) -> tuple[Expression, ...]:
    """Return the expressions that ``node`` itself computes."""
    if isinstance(node, Filter):
        return (node.condition,)
    if isinstance(node, Project):
        return node.expressions
    if isinstance(node, Join) and node.residual is not None:
        return (node.residual,)
    if isinstance(node, Generate):
        return (node.collection,)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and everything below it, inputs first."""
    for child in inputs_of(node):
        yield from walk(child)
    yield node


def relations_of(node: Node) -> tuple[Relation, ...]:
    """Return the relations that ``node`` reads, each once, in order of first appearance."""
    found = {n.relation.id: n.relation for n in walk(node) if isinstance(n, Scan)}
    return tuple(found.values())
