"""Plans to a circuit: which operators, which arrangements, what is shared, and where rows must move.

Views of one cadence are compiled together. Equal subplans become one node and equal arrangements one state table,
found by fingerprint: a hash over operators, positions, types and inputs, never over names. A view that reads a view
continues that view's own nodes; over another cadence's view it gets them in its own cadence (docs/decisions/0004).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from viewkeeper.errors import UnsupportedSql
from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import ColumnRef, Expression, Session, SparkExpression
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.base import ErrorSite
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.circuit import AnyOperator, Circuit, Node, Source
from viewkeeper.operators.exchange import Exchange
from viewkeeper.operators.extremes import Extremes
from viewkeeper.operators.filter import Filter
from viewkeeper.operators.group_query import Extreme
from viewkeeper.operators.join import Join
from viewkeeper.operators.partial_aggregate import Call, ExtremeValues, PartialAggregate
from viewkeeper.operators.project import Project
from viewkeeper.operators.union import UnionAll
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

    def states_of(self, view: int) -> tuple[str, ...]:
        """Return all state tables that ``view`` needs, shared ones included."""
        compiled = self.views[view]
        ends = (compiled.rows, *compiled.checks)
        wanted = {node for end in ends for node in _ancestors(self.circuit.nodes, end)}
        beside = {n.id for n in self.circuit.nodes if isinstance(n.operator, Arrange) and n.inputs[0] in wanted}
        # An arrangement is written beside the path: it belongs to the joins that look it up.
        joins = [self.circuit.nodes[i].operator for i in wanted]
        used = {a.state for j in joins if isinstance(j, Join) for a in (j.left, j.right)}
        found: list[str] = []
        for node in sorted(wanted | beside):
            operator = self.circuit.nodes[node].operator
            if not isinstance(operator, Arrange) or operator.state in used:
                found += states_of_operator(operator)
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
class _Compiled:
    """A compiled subplan: its node, and which positions of its rows decide their owner (None: anybody has them)."""

    id: int
    schema: Schema
    key: tuple[int, ...] | None
    partition: Partition | None


def compile_views(
    plans: Mapping[int, plan.ViewPlan], view_ids: tuple[int, ...], tables: Mapping[int, Schema], namespace: str
) -> Compilation:
    """Compile views into one circuit.

    Args:
        plans: plans of ``view_ids`` and of every view that they read, by view id.
        view_ids: the views whose rows are kept.
        tables: the present columns of the base tables, by table id; plans may know fewer.
        namespace: prefix of the state tables: one a cadence.
    """
    compiler = _Compiler(plans, tables, namespace, frozenset(view_ids))
    views = {view: compiler.view(view) for view in view_ids}
    return Compilation(Circuit(tuple(compiler.nodes)), views)


@dataclass
class _Compiler:
    plans: Mapping[int, plan.ViewPlan]
    tables: Mapping[int, Schema]
    namespace: str
    members: frozenset[int]
    nodes: list[Node] = field(default_factory=list)
    known: dict[tuple[str, tuple[int, ...], int], int] = field(default_factory=dict)
    roots: dict[int, _Compiled] = field(default_factory=dict)

    def view(self, view: int) -> CompiledView:
        definition = self.plans[view]
        root = self.root(view)
        derived = _key(root)
        fingerprint = f"view {view} {definition.key} {definition.declared}"
        netted = self.exchange(root, definition.key, nets=True)
        state = f"{self.namespace}/v{view}"
        site = self.site(fingerprint, root.schema, definition.key) if definition.declared else None
        candidates = f"{self.namespace}/k{view}" if definition.declared else None
        kept = state if view in self.members else None
        operator = ViewRows(root.schema, definition.key, derived, kept, candidates, site)
        rows = self.add(operator, (netted.id,), fingerprint)
        checks = tuple(self.view(below).rows for below in self._declared_below(view))
        bags = dict.fromkeys(bag for node in (rows, *checks) for bag in self._error_states(node))
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

    def root(self, view: int) -> _Compiled:
        if view not in self.roots:
            definition = self.plans[view]
            self.roots[view] = self.node(definition.root, definition.session)
        return self.roots[view]

    def node(self, node: plan.Node, session: Session) -> _Compiled:
        if isinstance(node, plan.Scan):
            return self.scan(node)
        if isinstance(node, plan.Filter):
            return self.filter(node, session)
        if isinstance(node, plan.Project):
            return self.project(node, session)
        if isinstance(node, plan.Join):
            return self.join(node, session)
        if isinstance(node, plan.Aggregate):
            return self.aggregate(node, session)
        return self.union(node, session)

    def scan(self, node: plan.Scan) -> _Compiled:
        if node.relation.kind == "view":
            source = self.root(node.relation.id)
        else:
            schema = self.tables[node.relation.id]
            source_id = self.add(Source(node.relation.id, schema), (), f"table {node.relation.id}")
            source = _Compiled(source_id, schema, node.relation.key or (), None)
        # Also where all columns are taken: the table may get more, and state must keep its name then.
        references = tuple(ColumnRef(i, source.schema.types[i]) for i in node.columns)
        operator = Project(node.schema, references, Session(), None)
        id_ = self.add(operator, (source.id,), f"columns {node.columns}")
        return _Compiled(id_, node.schema, node.key, _through(source.partition, references))

    def filter(self, node: plan.Filter, session: Session) -> _Compiled:
        given = self.node(node.input, session)
        source, (condition,) = self.by_spark(given, (node.condition,), session)
        text = f"filter {condition!r} {session!r}"
        site = self.site_for((condition,), source, text)
        id_ = self.add(Filter(source.schema, condition, session, site), (source.id,), text)
        if source is not given:
            # The column that Spark computed has done its work.
            kept = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(given.schema.columns))
            id_ = self.add(Project(node.schema, kept, session, None), (id_,), f"columns {len(kept)}")
        return _Compiled(id_, node.schema, node.key, source.partition)

    def project(self, node: plan.Project, session: Session) -> _Compiled:
        source, expressions = self.by_spark(self.node(node.input, session), node.expressions, session)
        text = f"project {expressions!r} {session!r}"
        site = self.site_for(expressions, source, text)
        id_ = self.add(Project(node.schema, expressions, session, site), (source.id,), text)
        return _Compiled(id_, node.schema, node.key, _through(source.partition, expressions))

    def by_spark(
        self, source: _Compiled, expressions: tuple[Expression, ...], session: Session
    ) -> tuple[_Compiled, tuple[Expression, ...]]:
        """Let Spark compute those of ``expressions`` that are not portable; the others stay as they are."""
        foreign = tuple(dict.fromkeys(e for e in expressions if isinstance(e, SparkExpression)))
        if not foreign:
            return source, expressions
        text = f"spark {foreign!r} {session!r}"
        site = self.site(f"{text} {self._fp(source.id)}", source.schema, source.key)
        operator = Catalyst(source.schema, foreign, session, site)
        id_ = self.add(operator, (source.id,), text, self.nodes[source.id].level + 1)
        width = len(source.schema)
        places = {e: ColumnRef(width + i, e.type, e.nullable) for i, e in enumerate(foreign)}
        replaced = tuple(places[e] if isinstance(e, SparkExpression) else e for e in expressions)
        return _Compiled(id_, operator.schema, source.key, None), replaced

    def union(self, node: plan.UnionAll, session: Session) -> _Compiled:
        sources = [self.node(child, session) for child in node.inputs]
        id_ = self.add(UnionAll(node.schema, len(sources)), tuple(s.id for s in sources), "union")
        return _Compiled(id_, node.schema, node.key, None)

    def join(self, node: plan.Join, session: Session) -> _Compiled:
        left, right = self.node(node.left, session), self.node(node.right, session)
        # Both sides of a key must meet: an owner by fewer or other columns than the join's does for neither.
        level = max(self._level_for(left, node.left_keys, True), self._level_for(right, node.right_keys, True))
        moved_left = self.exchange(left, node.left_keys, nets=True, level=level)
        moved_right = self.exchange(right, node.right_keys, nets=True, level=level)
        arranged_left = self.arrange(moved_left, node.left_keys, _key(left))
        arranged_right = self.arrange(moved_right, node.right_keys, _key(right))
        text = f"join {node.left_keys} {node.right_keys} {node.residual!r} {session!r}"
        site = None
        if node.residual is not None and can_raise(node.residual):
            site = self.site(f"{text} {self._fp(left.id)} {self._fp(right.id)}", node.schema, node.key)
        operator = Join(node.schema, arranged_left, arranged_right, node.residual, session, site)
        id_ = self.add(operator, (moved_left.id, moved_right.id), text)
        offset = len(left.schema)
        pairs = zip(node.left_keys, node.right_keys, strict=True)
        return _Compiled(id_, node.schema, node.key, tuple(frozenset((a, b + offset)) for a, b in pairs))

    def arrange(self, source: _Compiled, columns: tuple[int, ...], key: tuple[int, ...]) -> Arrange:
        text = f"arrange {columns} {key} {tuple(map(str, source.schema.types))}"
        state = f"{self.namespace}/a{_digest(f'{text} {self._fp(source.id)}')}"
        operator = Arrange(source.schema, columns, key, state, skip_null_keys=True)
        if not any(isinstance(n.operator, Arrange) and n.operator.state == state for n in self.nodes):
            self.add(operator, (source.id,), text)
        return operator

    def aggregate(self, node: plan.Aggregate, session: Session) -> _Compiled:
        source = self.node(node.input, session)
        groups = tuple(source.schema.columns[i] for i in node.group)
        calls, values, outputs = _split_calls(node, source.schema)
        text = f"aggregate {node.group} {node.calls!r}"
        first = self.add(PartialAggregate(node.group, groups, calls), (source.id,), f"partial {text}")
        width = tuple(range(len(groups)))
        partition = _through_positions(source.partition, node.group)
        partial = _Compiled(first, self.nodes[first].operator.schema, width, partition)
        inputs = [self.exchange(partial, width, nets=False).id]
        extremes = []
        for argument, condition in values:
            schema = Schema((*groups, Column("value", source.schema.types[argument])))
            operator = ExtremeValues(node.group, argument, condition, schema)
            id_ = self.add(operator, (source.id,), f"values {node.group} {argument} {condition}")
            inputs.append(self.exchange(_Compiled(id_, schema, width, partition), width, nets=True).id)
            digest = _digest(f"extremes {node.group} {argument} {condition} {self._fp(source.id)}")
            extremes.append(Extremes(schema, f"{self.namespace}/x{digest}"))
        state = f"{self.namespace}/g{_digest(f'{text} {self._fp(source.id)}')}"
        overflows = any(
            c.function in ("sum", "avg") and c.argument_type and not c.argument_type.is_floating for c in calls
        )
        site = self.site(f"{text} {self._fp(source.id)}", node.schema, width) if overflows else None
        aggregate = Aggregate(node.schema, groups, calls, tuple(extremes), outputs, state, site)
        id_ = self.add(aggregate, tuple(inputs), text)
        return _Compiled(id_, node.schema, width, tuple(frozenset((i,)) for i in width))

    def exchange(self, source: _Compiled, columns: tuple[int, ...], nets: bool, level: int | None = None) -> _Compiled:
        """Bring rows to the owner of ``columns``; where they are there already, only net them."""
        wanted = self._level_for(source, columns) if level is None else level
        stays = wanted == self.nodes[source.id].level
        operator = Exchange(source.schema, columns, nets, wanted)
        id_ = self.add(operator, (source.id,), f"exchange {columns} {nets} {wanted}", wanted)
        partition = source.partition if stays else tuple(frozenset((c,)) for c in columns)
        return _Compiled(id_, source.schema, source.key, partition)

    def _level_for(self, source: _Compiled, columns: tuple[int, ...], exactly: bool = False) -> int:
        """Return the level at which rows of one key are with one owner; ``exactly``: the one that the ring names."""
        here, partition = self.nodes[source.id].level, source.partition
        if partition is None:
            there = False
        elif exactly:
            there = len(partition) == len(columns) and all(c in p for c, p in zip(columns, partition, strict=True))
        else:
            there = all(p & set(columns) for p in partition)
        return here if there else here + 1

    def site_for(self, expressions: tuple[Expression, ...], source: _Compiled, text: str) -> ErrorSite | None:
        if not any(map(can_raise, expressions)):
            return None
        return self.site(f"{text} {self._fp(source.id)}", source.schema, source.key)

    def site(self, text: str, schema: Schema, key: tuple[int, ...] | None) -> ErrorSite:
        # Below an aggregate the key may have been pruned: then the whole row tells which it is.
        columns = tuple(range(len(schema))) if key is None else key
        names = tuple(schema.names[i] for i in columns)
        return ErrorSite(f"{self.namespace}/e{_digest(text)}", names, columns)

    def add(self, operator: AnyOperator, inputs: tuple[int, ...], text: str, level: int | None = None) -> int:
        """Add a node, or return the equal one that is there."""
        if level is None:
            level = max((self.nodes[i].level for i in inputs), default=0)
        known = self.known.get((text, inputs, level))
        if known is not None:
            return known
        # An exchange changes no rows: state must keep its name when a circuit grows and levels move.
        moves = isinstance(operator, Exchange)
        fingerprint = self._fp(inputs[0]) if moves else _digest(f"{text} {' '.join(self._fp(i) for i in inputs)}")
        node = Node(len(self.nodes), operator, inputs, level, fingerprint)
        self.nodes.append(node)
        self.known[text, inputs, level] = node.id
        return node.id

    def _fp(self, node: int) -> str:
        return self.nodes[node].fingerprint

    def _error_states(self, node: int) -> tuple[str, ...]:
        sites = (getattr(self.nodes[i].operator, "errors", None) for i in sorted(_ancestors(self.nodes, node)))
        return tuple(dict.fromkeys(site.state for site in sites if site is not None))


def states_of_operator(operator: AnyOperator) -> list[str]:
    """Return the state tables that an operator writes."""
    states = [operator.state] if isinstance(operator, Arrange | Aggregate | ViewRows) and operator.state else []
    if isinstance(operator, Aggregate):
        states += [e.state for e in operator.extremes]
    if isinstance(operator, ViewRows) and operator.candidates is not None:
        states.append(operator.candidates)
    site = getattr(operator, "errors", None)
    return states + ([site.state] if site is not None else [])


def _split_calls(
    node: plan.Aggregate, schema: Schema
) -> tuple[tuple[Call, ...], list[tuple[int, int | None]], tuple[int | Extreme, ...]]:
    """Part the calls into those that add and those that are extremes of shared sets of values."""
    calls: list[Call] = []
    values: list[tuple[int, int | None]] = []
    outputs: list[int | Extreme] = []
    for call in node.calls:
        if call.function in ("min", "max"):
            if call.argument is None:
                raise UnsupportedSql("AGGREGATE_NOT_YET", f"{call.function} needs an argument.")
            wanted = (call.argument, call.filter)
            if wanted not in values:
                values.append(wanted)
            outputs.append(Extreme(values.index(wanted), call.function == "max"))
            continue
        argument_type = None if call.argument is None else schema.types[call.argument]
        outputs.append(len(calls))
        calls.append(Call(call.function, call.argument, call.filter, argument_type, call.type))
    return tuple(calls), values, tuple(outputs)


def _key(source: _Compiled) -> tuple[int, ...]:
    if source.key is None:
        raise AssertionError("the planner keeps the keys of views and of the inputs of joins")
    return source.key


def _through(partition: Partition | None, expressions: tuple[Expression, ...]) -> Partition | None:
    """Follow the partition's positions through a projection; None where a column of it is lost."""
    if partition is None:
        return None
    moved = tuple(
        frozenset(i for i, e in enumerate(expressions) if isinstance(e, ColumnRef) and e.index in positions)
        for positions in partition
    )
    return moved if all(moved) else None


def _through_positions(partition: Partition | None, positions: tuple[int, ...]) -> Partition | None:
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


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
