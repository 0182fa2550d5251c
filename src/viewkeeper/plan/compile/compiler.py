"""Plans to a circuit: which operators, which arrangements, what is shared, and where rows must move.

Views of one cadence are compiled together. Equal subplans become one node and equal arrangements one state table,
found by fingerprint: a hash over operators, positions, types and inputs, never over names. A view that reads a view
continues that view's own nodes; over another cadence's view it gets them in its own cadence (docs/decisions/0004).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.spark_sql import column_name, uncaptured, with_calls
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Session, SparkExpression
from viewkeeper.expressions.user_calls import capture, capture_type, captured
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.base import ErrorSite
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.circuit import AnyOperator, Circuit, Node, Source, kept_entry
from viewkeeper.operators.exchange import Exchange
from viewkeeper.operators.kept_rows import Keeper, KeptRows
from viewkeeper.operators.layouts import layout_of
from viewkeeper.operators.project import Project
from viewkeeper.operators.range_order import RangeOrder
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.plan import nodes as plan
from viewkeeper.zset.schema import Column, Schema

Partition = tuple[frozenset[int], ...]


@dataclass(frozen=True)
class CompiledView:
    """A view's place in a circuit.

    Args:
        view: the view's id.
        root: id of the node whose rows are the view's, before they are written.
        rows: id of the ViewRows node.
        state: the state table with its rows.
        error_states: the error bags that must be empty for the view to be good.
        checks: ids of the nodes that check declared keys of views below: where one is broken, this view waits too.
    """

    view: int
    root: int
    rows: int
    state: str
    error_states: tuple[str, ...]
    checks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Compilation:
    """A circuit and the views in it."""

    circuit: Circuit
    views: Mapping[int, CompiledView]

    @cached_property
    def layouts(self) -> Mapping[int, str]:
        """By view the layout of its state: what must be equal where state of before is gone on from."""
        return {
            id_: layout_of(self.circuit, self.nodes_of(id_), view.rows, view.state.rpartition("/")[0])
            for id_, view in self.views.items()
        }

    def nodes_of(self, view: int) -> tuple[int, ...]:
        """Return the ids of the nodes that ``view`` needs, shared ones included."""
        compiled = self.views[view]
        ends = (compiled.rows, *compiled.checks)
        wanted = {node for end in ends for node in _ancestors(self.circuit.nodes, end)}
        # What is written beside the path, an arrangement, belongs to those that look it up.
        used = {state for i in wanted for state in self.circuit.nodes[i].operator.looks_up}
        beside = {n.id for n in self.circuit.nodes if used & set(n.operator.states)}
        paths = {i for i in wanted if not isinstance(self.circuit.nodes[i].operator, Arrange)}
        return tuple(sorted(paths | beside))

    def states_of(self, view: int) -> tuple[str, ...]:
        """Return all state tables that ``view`` needs, shared ones included."""
        found = [state for i in self.nodes_of(view) for state in states_of_operator(self.circuit.nodes[i].operator)]
        return tuple(dict.fromkeys(found))

    def bag_of(self, node: int) -> str | None:
        """Return the error bag of ``node`` itself."""
        site = getattr(self.circuit.nodes[node].operator, "errors", None)
        return None if site is None else str(site.state)

    def bags_below(self, node: int) -> tuple[str, ...]:
        """Return the error bags that must be empty for the inputs of ``node`` to be complete."""
        below = sorted(_ancestors(self.circuit.nodes, node) - {node})
        return tuple(dict.fromkeys(bag for i in below if (bag := self.bag_of(i)) is not None))


@dataclass
class Compiled:
    """A compiled subplan: its node, and which positions of its rows decide their owner (None: anybody has them)."""

    id: int
    schema: Schema
    key: tuple[int, ...] | None
    partition: Partition | None


def compile_views(
    plans: Mapping[int, plan.ViewPlan],
    view_ids: tuple[int, ...],
    tables: Mapping[int, Schema],
    namespace: str,
    lineages: Mapping[int, int] | None = None,
    kept: frozenset[str] = frozenset(),
) -> Compilation:
    """Compile views into one circuit.

    Args:
        plans: plans of ``view_ids`` and of every view that they read, by view id.
        view_ids: the views whose rows are kept.
        tables: the present columns of the base tables, by table id; plans may know fewer.
        namespace: prefix of the state tables: one a cadence.
        lineages: numbers that views keep when they are filled anew, by view id; what is kept to check a declared key
            is named by them. None: they are the ids.
        kept: fingerprints of operators whose output is read from their state (``kept_rows.Keeper``); what is below
            them stands in the circuit still, read by nobody.
    """
    compiler = Compiler(plans, tables, namespace, frozenset(view_ids), lineages or {}, kept)
    views = {view: compiler.view(view) for view in view_ids}
    return Compilation(Circuit(tuple(compiler.nodes)), views)


CompileNode: TypeAlias = "Callable[[Compiler, Any, Session], Compiled]"
_COMPILERS: dict[type, CompileNode] = {}


def compiles(kind: type) -> Callable[[CompileNode], CompileNode]:
    """Register the function that compiles plan nodes of ``kind``."""

    def register(function: CompileNode) -> CompileNode:
        _COMPILERS[kind] = function
        return function

    return register


@dataclass
class Compiler:
    """Adds the nodes of one view after another; one compilation each.

    What is particular to a kind of plan node stands in the modules beside this one: see ``compiles``.
    """

    plans: Mapping[int, plan.ViewPlan]
    tables: Mapping[int, Schema]
    namespace: str
    members: frozenset[int]
    lineages: Mapping[int, int] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    nodes: list[Node] = field(default_factory=list)
    known: dict[tuple[str, tuple[int, ...], int], int] = field(default_factory=dict)
    roots: dict[int, Compiled] = field(default_factory=dict)
    compiled: dict[tuple[int, Session], tuple[plan.Node, Compiled]] = field(default_factory=dict)

    def view(self, view: int) -> CompiledView:
        """Compile a view down to its rows in the store."""
        definition = self.plans[view]
        root = self.root(view)
        derived = key_of(root)
        lineage = self.lineages.get(view, view)
        declared = f"{definition.key} {definition.declared}"
        netted = self.exchange(root, definition.key, nets=True)
        state = f"{self.namespace}/v{view}"
        site = self.site(f"view {lineage} {declared}", root.schema, definition.key) if definition.declared else None
        candidates = f"{self.namespace}/k{lineage}" if definition.declared else None
        kept = state if view in self.members else None
        operator = ViewRows(root.schema, definition.key, derived, kept, candidates, site)
        rows = self.add(operator, (netted.id,), f"view {view} {declared}")
        checks = tuple(self.view(below).rows for below in self._declared_below(view))
        bags = dict.fromkeys(bag for node in (rows, *checks) for bag in self.error_states(node))
        return CompiledView(view, root.id, rows, state, tuple(bags), checks)

    def _declared_below(self, view: int) -> tuple[int, ...]:
        """Return the views that ``view`` reads, directly or not, whose keys are declared."""
        found: dict[int, None] = {}
        waiting = [r.id for r in plan.relations_of(self.plans[view].root) if r.kind == "view"]
        while waiting:
            below = waiting.pop()
            if below not in found:
                found[below] = None
                waiting += [r.id for r in plan.relations_of(self.plans[below].root) if r.kind == "view"]
        return tuple(below for below in sorted(found) if self.plans[below].declared)

    def node(self, node: plan.Node, session: Session) -> Compiled:
        """Compile a subplan; one that stands in several places, as below a join by branches, once."""
        known = self.compiled.get((id(node), session))
        if known is None:
            # The node is held, so that its id stays its own.
            known = self.compiled[id(node), session] = (node, self._compiled(node, session))
        return known[1]

    def _compiled(self, node: plan.Node, session: Session) -> Compiled:
        made = _COMPILERS[type(node)](self, node, session)
        operator, fingerprint = self.nodes[made.id].operator, self.fingerprint(made.id)
        if fingerprint not in self.kept or not isinstance(operator, Keeper):
            return made
        return Compiled(self._kept_rows(operator, fingerprint), made.schema, made.key, None)

    def _kept_rows(self, keeper: Keeper, fingerprint: str) -> int:
        """Add a source with the fingerprint of what it stands for, so that all above keeps its name."""
        place = (f"kept {fingerprint}", (), 0)
        if place not in self.known:
            self.known[place] = len(self.nodes)
            table = kept_entry(sorted(self.kept).index(fingerprint))
            source = Source(table, keeper.schema, kept=KeptRows(keeper))
            self.nodes.append(Node(len(self.nodes), source, (), 0, fingerprint))
        return self.known[place]

    def root(self, view: int) -> Compiled:
        """Compile the query of a view, once."""
        if view not in self.roots:
            definition = self.plans[view]
            self.roots[view] = self.node(definition.root, definition.session)
        return self.roots[view]

    def by_spark(
        self, source: Compiled, expressions: tuple[Expression, ...], session: Session
    ) -> tuple[Compiled, tuple[Expression, ...]]:
        """Let Spark compute those of ``expressions`` that are not portable; the others stay as they are."""
        foreign = tuple(dict.fromkeys(e for e in expressions if isinstance(e, SparkExpression)))
        if not foreign:
            return source, expressions
        source, places = self._spark_columns(source, foreign, session, captures=False)
        return source, tuple(places[e] if isinstance(e, SparkExpression) else e for e in expressions)

    def _spark_columns(
        self, source: Compiled, foreign: tuple[SparkExpression, ...], session: Session, captures: bool
    ) -> tuple[Compiled, dict[SparkExpression, ColumnRef]]:
        """Add the columns of ``foreign`` behind those of ``source``."""
        source, plain = self._called(source, foreign, session)
        text = f"spark {plain!r} {session!r}{' captures' if captures else ''}"
        site = self.site(f"{text} {self.fingerprint(source.id)}", source.schema, source.key)
        operator = Catalyst(source.schema, plain, session, site, captures)
        id_ = self.add(operator, (source.id,), text, self.nodes[source.id].level + 1)
        width, columns = len(source.schema), operator.schema.columns
        places = {e: ColumnRef(width + i, columns[width + i].type, e.nullable) for i, e in enumerate(foreign)}
        return Compiled(id_, operator.schema, source.key, None), places

    def _called(
        self, source: Compiled, foreign: tuple[SparkExpression, ...], session: Session
    ) -> tuple[Compiled, tuple[SparkExpression, ...]]:
        """Compute the users' functions that ``foreign`` calls as columns behind those of ``source``.

        What they return, and what Spark computes for their arguments, may be of a branch that is not taken: failures
        travel along in the columns.
        """
        calls = tuple(dict.fromkeys(call for e in foreign for _, call in e.calls if isinstance(call, Call)))
        if not calls:
            return source, foreign
        inner = tuple(dict.fromkeys(a for c in calls for a in c.arguments if isinstance(a, SparkExpression)))
        places: dict[SparkExpression, ColumnRef] = {}
        if inner:
            source, places = self._spark_columns(source, inner, session, captures=True)
        ready = [
            replace(
                c, arguments=tuple(captured(places[a]) if isinstance(a, SparkExpression) else a for a in c.arguments)
            )
            for c in calls
        ]
        width = len(source.schema)
        given = [ColumnRef(i, c.type, c.nullable) for i, c in enumerate(source.schema.columns)]
        expressions: tuple[Expression, ...] = (*given, *map(capture, ready))
        added = (Column(f"__call_{width + i}", capture_type(call.type)) for i, call in enumerate(calls))
        schema = Schema((*source.schema.columns, *added))
        text = f"calls {expressions!r} {session!r}"
        site = self.site_for(expressions, source, text)
        id_ = self.add(Project(schema, expressions, session, site), (source.id,), text)
        columns = {call: width + i for i, call in enumerate(calls)}
        return Compiled(id_, schema, source.key, source.partition), tuple(_over_columns(e, columns) for e in foreign)

    def arrange(
        self,
        source: Compiled,
        columns: tuple[int, ...],
        key: tuple[int, ...],
        skip_null_keys: bool = True,
        order: RangeOrder | None = None,
    ) -> Arrange:
        """Keep the rows of ``source`` under ``columns``, those of one key in ``order``, unless that is done already."""
        nulls = "" if skip_null_keys else " with nulls"
        ordered = "" if order is None else f" {order!r}"
        text = f"arrange {columns} {key} {tuple(map(str, source.schema.types))}{nulls}{ordered}"
        state = f"{self.namespace}/a{digest(f'{text} {self.fingerprint(source.id)}')}"
        operator = Arrange(source.schema, columns, key, state, skip_null_keys, order)
        if not any(isinstance(n.operator, Arrange) and n.operator.state == state for n in self.nodes):
            self.add(operator, (source.id,), text)
        return operator

    def exchange(self, source: Compiled, columns: tuple[int, ...], nets: bool, level: int | None = None) -> Compiled:
        """Bring rows to the owner of ``columns``; where they are there already, only net them."""
        wanted = self.level_for(source, columns) if level is None else level
        stays = wanted == self.nodes[source.id].level
        operator = Exchange(source.schema, columns, nets, wanted)
        id_ = self.add(operator, (source.id,), f"exchange {columns} {nets} {wanted}", wanted)
        partition = source.partition if stays else tuple(frozenset((c,)) for c in columns)
        return Compiled(id_, source.schema, source.key, partition)

    def level_for(self, source: Compiled, columns: tuple[int, ...], exactly: bool = False) -> int:
        """Return the level at which rows of one key are with one owner; ``exactly``: the one that the ring names."""
        here, partition = self.nodes[source.id].level, source.partition
        if partition is None:
            there = False
        elif exactly:
            there = len(partition) == len(columns) and all(c in p for c, p in zip(columns, partition, strict=True))
        else:
            there = all(p & set(columns) for p in partition)
        return here if there else here + 1

    def site_for(self, expressions: tuple[Expression, ...], source: Compiled, text: str) -> ErrorSite | None:
        """Return where rows go on which ``expressions`` fail; None where they cannot."""
        if not any(map(can_raise, expressions)):
            return None
        return self.site(f"{text} {self.fingerprint(source.id)}", source.schema, source.key)

    def site(self, text: str, schema: Schema, key: tuple[int, ...] | None) -> ErrorSite:
        """Return the error bag of the operator that ``text`` describes."""
        # Below an aggregate the key may have been pruned: then the whole row tells which it is.
        columns = tuple(range(len(schema))) if key is None else key
        names = tuple(schema.names[i] for i in columns)
        return ErrorSite(f"{self.namespace}/e{digest(text)}", names, columns)

    def add(self, operator: AnyOperator, inputs: tuple[int, ...], text: str, level: int | None = None) -> int:
        """Add a node, or return the equal one that is there."""
        if level is None:
            level = max((self.nodes[i].level for i in inputs), default=0)
        if not isinstance(operator, Exchange | Catalyst):
            inputs = tuple(self._brought(i, level) for i in inputs)
        known = self.known.get((text, inputs, level))
        if known is not None:
            return known
        # An exchange changes no rows: state must keep its name when a circuit grows and levels move.
        moves = isinstance(operator, Exchange)
        fingerprint = (
            self.fingerprint(inputs[0]) if moves else digest(f"{text} {' '.join(self.fingerprint(i) for i in inputs)}")
        )
        node = Node(len(self.nodes), operator, inputs, level, fingerprint)
        self.nodes.append(node)
        self.known[text, inputs, level] = node.id
        return node.id

    def _brought(self, node: int, level: int) -> int:
        """Let the rows of a node go along to a later level, as a branch of UNION ALL that is done before the others."""
        below = self.nodes[node]
        if below.level == level:
            return node
        schema = below.operator.schema
        columns = tuple(i for i, column in enumerate(schema.columns) if not column.type.contains_map)[:1]
        return self.exchange(Compiled(node, schema, None, None), columns, nets=False, level=level).id

    def fingerprint(self, node: int) -> str:
        """Return the fingerprint of a node: equal for equal subplans."""
        return self.nodes[node].fingerprint

    def error_states(self, node: int) -> tuple[str, ...]:
        """Return the error bags of a node and all that it reads."""
        sites = (getattr(self.nodes[i].operator, "errors", None) for i in sorted(_ancestors(self.nodes, node)))
        return tuple(dict.fromkeys(site.state for site in sites if site is not None))


def _over_columns(expression: SparkExpression, columns: Mapping[Call, int]) -> SparkExpression:
    """Return ``expression`` with its calls read from the columns that hold what they have captured."""
    places = {name: columns[call] for name, call in expression.calls if isinstance(call, Call)}
    sql = with_calls(expression.sql, {name: uncaptured(column_name(i)) for name, i in places.items()})
    inputs = tuple(sorted({*expression.inputs, *places.values()}))
    return replace(expression, sql=sql, inputs=inputs, calls=())


def states_of_operator(operator: AnyOperator) -> tuple[str, ...]:
    """Return the state tables that an operator writes, its error bag included."""
    site = getattr(operator, "errors", None)
    return (*operator.states, *([site.state] if site is not None else []))


def key_of(source: Compiled) -> tuple[int, ...]:
    """Return the key of a subplan that must have one."""
    if source.key is None:
        raise AssertionError("the planner keeps the keys of views and of the inputs of joins")
    return source.key


def through(partition: Partition | None, expressions: tuple[Expression, ...]) -> Partition | None:
    """Follow the partition's positions through a projection; None where a column of it is lost."""
    if partition is None:
        return None
    moved = tuple(
        frozenset(i for i, e in enumerate(expressions) if isinstance(e, ColumnRef) and e.index in positions)
        for positions in partition
    )
    return moved if all(moved) else None


def through_positions(partition: Partition | None, positions: tuple[int, ...]) -> Partition | None:
    """Follow the partition's positions through a choice of columns; None where one is lost."""
    if partition is None:
        return None
    moved = tuple(frozenset(i for i, p in enumerate(positions) if p in wanted) for wanted in partition)
    return moved if all(moved) else None


def _ancestors(nodes: list[Node] | tuple[Node, ...], node: int) -> set[int]:
    found, waiting = set(), [node]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += nodes[at].inputs
    return found


def digest(text: str) -> str:
    """Return 24 hexadecimal digits of ``text``, for names of state tables."""
    return blake2b(text.encode(), digest_size=12).hexdigest()
