"""The algebra between SQL and operators: frozen dataclasses, typed, with positions instead of names.

Every node knows its ``schema`` and its ``key``: the positions of columns that together tell its rows apart, or None
where rows may repeat. Queries keep the key columns of their inputs as hidden columns behind the visible ones until an
aggregate needs them no more; so each view has a derived key even when its SELECT list leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.expressions.tree import Expression, Session
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
    """

    id: int
    name: str
    kind: str
    schema: Schema
    key: tuple[int, ...] | None
    hidden: Schema = NO_COLUMNS
    full_key: tuple[int, ...] | None = None
    identity: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Scan:
    """The rows of a relation, restricted to ``columns``.

    Views are scanned with their hidden key columns (behind the visible ones) where they have any.
    """

    relation: Relation
    columns: tuple[int, ...]
    schema: Schema
    key: tuple[int, ...] | None


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
class Join:
    """Inner join: pairs whose key columns are equal (NULL equals nothing; all NaN are equal, -0.0 equals 0.0).

    Columns are those of the left input, then those of the right one. ``left_keys[i]`` and ``right_keys[i]`` have the
    same type: the plan casts beforehand. ``residual`` reads the joined row. Without keys it is a cross join, which is
    refused before it gets here.
    """

    left: Node
    right: Node
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None
    schema: Schema
    key: tuple[int, ...] | None


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of an Aggregate node.

    Args:
        function: ``count_star``, ``count``, ``sum``, ``avg``, ``min`` or ``max``.
        argument: position of the argument in the input; None for ``count_star``.
        filter: position of a BOOLEAN column: only rows where it is true count; None for all rows.
        type: the result type by Spark's rules.
        nullable: whether the result may be NULL.
    """

    function: str
    argument: int | None
    filter: int | None
    type: SqlType
    nullable: bool


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


Node: TypeAlias = Scan | Filter | Project | Join | Aggregate | UnionAll


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
class SortKey:
    """One ORDER BY item of an ad hoc query: a position in the root and how it sorts."""

    column: int
    ascending: bool
    nulls_first: bool


@dataclass(frozen=True)
class QueryPlan:
    """An ad hoc SELECT: the view grammar, plus ORDER BY, LIMIT and OFFSET at its end."""

    view: ViewPlan
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0


def inputs_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that ``node`` reads, in order."""
    if isinstance(node, Scan):
        return ()
    if isinstance(node, Join):
        return (node.left, node.right)
    if isinstance(node, UnionAll):
        return node.inputs
    return (node.input,)


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and everything below it, inputs first."""
    for child in inputs_of(node):
        yield from walk(child)
    yield node


def relations_of(node: Node) -> tuple[Relation, ...]:
    """Return the relations that ``node`` reads, each once, in order of first appearance."""
    found = {n.relation.id: n.relation for n in walk(node) if isinstance(n, Scan)}
    return tuple(found.values())
