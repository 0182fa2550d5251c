"""The worked example of an operator's page, taken from its blocks and run through the real operator.

sql query            the view's query
text table t KEY     a base table before the epoch, its key columns behind its name
text change t        what the epoch changes in it
text arrived         (Catalyst) the rows as Spark hands them back
text output          what the operator gives
text state           the rows of its state afterwards
text errors          the error bag afterwards
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from tests.docs.markdown import Block
from viewkeeper.expressions.tree import Session
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.base import Operator
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.circuit import Circuit, Node, Source
from viewkeeper.operators.ordered.values import OrderedValues
from viewkeeper.operators.state import StepContext, WriteSet
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.compile import compile_views
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.notation import format as format_delta
from viewkeeper.zset.notation import parse
from viewkeeper.zset.schema import BIGINT, STRING, Column, Schema, SqlType


@dataclass
class Store:
    """State tables in memory, published between epochs; every lookup is counted."""

    tables: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    bags: dict[str, dict[bytes, int]] = field(default_factory=dict)

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        assert list(keys) == sorted(keys)
        return [self.tables.get(state, {}).get(key) for key in keys]

    def scan(
        self, state: str, start: bytes, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        pairs = sorted(self.tables.get(state, {}).items(), reverse=reverse)
        yield from (pair for pair in pairs if pair[0] >= start and (stop is None or pair[0] < stop))

    def multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[np.ndarray, list[bytes]]:
        pairs = sorted(self.tables.get(state, {}).items())
        keys = [key for key, _ in pairs]
        found: list[tuple[int, bytes]] = []
        for number, prefix in enumerate(prefixes):
            start = at = bisect_left(keys, prefix)
            stop = len(keys) if limits is None else min(len(keys), start + limits[number])
            while at < stop and keys[at].startswith(prefix):
                found.append((number, pairs[at][1]))
                at += 1
        return np.array([n for n, _ in found], np.int64), [value for _, value in found]

    def publish(self, writes: WriteSet) -> None:
        for state, pieces in writes.tables.items():
            table = self.tables.setdefault(state, {})
            for piece in pieces:
                for key, value in zip(piece.keys, piece.values, strict=True):
                    if value is None:
                        table.pop(key, None)
                    else:
                        table[key] = value
        for bag, weights in writes.merges.items():
            counts = self.bags.setdefault(bag, {})
            for text, weight in weights.items():
                counts[text] = counts.get(text, 0) + weight


@dataclass(frozen=True)
class Example:
    """A page's example.

    Args:
        query: the view's query.
        tables: the base tables before the epoch.
        changes: what changes, by table name.
        arrived: what Spark hands back, as text, or nothing.
    """

    query: str
    tables: dict[str, tuple[Relation, Delta]]
    changes: dict[str, Delta]
    arrived: str

    @staticmethod
    def of(blocks: Sequence[Block]) -> Example:
        """Return the example that stands in the blocks of a page."""
        query, arrived = "", ""
        tables: dict[str, tuple[Relation, Delta]] = {}
        changes: dict[str, Delta] = {}
        for block in blocks:
            kind, *rest = (block.language, *block.words)
            if kind == "sql" and rest == ["query"]:
                query = block.text
            elif rest[:1] == ["table"]:
                schema, delta = parse(block.text)
                key = tuple(schema.index(name) for name in rest[2:])
                tables[rest[1]] = (Relation(len(tables) + 1, rest[1], "table", schema, key), delta)
            elif rest[:1] == ["change"]:
                changes[rest[1]] = parse(block.text, tables[rest[1]][0].schema)[1]
            elif rest == ["arrived"]:
                arrived = block.text
        return Example(query, tables, changes, arrived)

    def run(self, kind: type[Operator], last: bool = False) -> Outcome:
        """Run two epochs, the tables and then the change, and return what the operator of ``kind`` did in the second.

        Args:
            kind: the operator's class.
            last: take the last operator of the class, not the first.
        """
        relations = [relation for relation, _ in self.tables.values()]
        plan = plan_view(self.query, FixedRelations(relations), Session(), spark_types=_typed_by_spark)
        schemas = {relation.id: relation.schema for relation in relations}
        circuit = compile_views({1: plan}, (1,), schemas, "example").circuit
        mine = [node for node in circuit.nodes if isinstance(node.operator, kind)][-1 if last else 0]
        store = Store()
        outputs = {}
        for changes in ({n: d for n, (_, d) in self.tables.items()}, self.changes):
            writes = WriteSet()
            outputs = self._step(circuit, changes, StepContext(store, writes))
            store.publish(writes)
        return Outcome(mine, outputs[mine.id], store)

    def _step(self, circuit: Circuit, changes: dict[str, Delta], context: StepContext) -> dict[int, Delta]:
        values: dict[int, Delta] = {}
        by_id = {self.tables[name][0].id: delta for name, delta in changes.items()}
        for node in circuit.nodes:
            operator = node.operator
            if isinstance(operator, Source):
                values[node.id] = by_id.get(operator.table, Delta.empty(operator.schema.to_arrow()))
            elif isinstance(operator, Catalyst):
                rows = parse(self.arrived, operator.arrives)[1] if changes is self.changes else None
                given = Delta.empty(operator.arrives.to_arrow()) if rows is None else rows
                values[node.id] = operator.step((given,), context)
            else:
                values[node.id] = operator.step(tuple(values[i] for i in node.inputs), context)
        return values


@dataclass(frozen=True)
class Outcome:
    """What the operator did in the example's epoch."""

    node: Node
    output_delta: Delta
    store: Store

    @property
    def output(self) -> str:
        """The rows that it gives."""
        return _sorted(format_delta(self.output_delta.consolidate(), self.node.operator.schema))

    @property
    def state(self) -> str:
        """The rows of its state table, decoded."""
        operator = self.node.operator
        if isinstance(operator, Aggregate):
            return self._aggregate_state(operator)
        assert isinstance(operator, Arrange | ViewRows)
        assert operator.state is not None
        return self._rows(operator.state, operator, operator.schema)

    def _aggregate_state(self, operator: Aggregate) -> str:
        if operator.values:
            values = operator.values[0]
            assert isinstance(values, OrderedValues)
            names = (Column("value", values.schema.types[-1]), Column("count", BIGINT))
            return self._rows(values.state, values, Schema(names))
        return self._rows(operator.state, operator, operator.partial_schema)

    def _rows(self, state: str, operator: Arrange | ViewRows | Aggregate | OrderedValues, schema: Schema) -> str:
        pairs = sorted(self.store.tables.get(state, {}).items())
        rows = operator.row_codec.decode([value for _, value in pairs])
        return format_delta(Delta.from_rows(rows), schema)

    @property
    def errors(self) -> str:
        """The entries of its error bag with their counts."""
        site = getattr(self.node.operator, "errors", None)
        assert site is not None
        entries = [(msgspec.json.decode(text), n) for text, n in self.store.bags.get(site.state, {}).items() if n]
        lines = [f"{reason} | {msgspec.json.encode(msgspec.json.encode(key).decode()).decode()} | {count}"
                 for (reason, key), count in entries]  # fmt: skip
        schema, delta = parse("\n".join(["reason:string | key:string | __weight", *lines]))
        return _sorted(format_delta(delta, schema))


def _typed_by_spark(sql: str, schema: Schema) -> tuple[SqlType, bool, bool]:
    """Stand for Spark's analyzer: the example's foreign expressions are nullable, deterministic texts."""
    return STRING, True, True


def _sorted(table: str) -> str:
    header, *rows = table.split("\n")
    return "\n".join([header, *sorted(rows)])
