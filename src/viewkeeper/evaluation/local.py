"""Queries in process: complete inputs through the operators' plain twins, or batch after batch where all is linear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from viewkeeper.errors import ConflictError
from viewkeeper.evaluation.constants import ONE_BATCH, ONE_ID, ONE_SCHEMA
from viewkeeper.evaluation.moments import EvaluationContext, Moment
from viewkeeper.evaluation.pinned import Key, pinned_keys
from viewkeeper.operators.circuit import Circuit
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile import compile_views
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema

_QUERY = 0


class LocalQuery:
    """A query that can run in process.

    Args:
        context: the store.
        moment: when.
        view: its plan; all expressions are portable.
    """

    def __init__(self, context: EvaluationContext, moment: Moment, view: plan.ViewPlan) -> None:
        self._context = context
        self._moment = moment
        self._relations = {relation.id: relation for relation in plan.relations_of(view.root)}
        self._pinned = pinned_keys(view.root)
        # Stored rows of views are read, not their queries: to the circuit all are tables.
        root = _over_tables(view.root)
        tables = {r.id: _whole_schema(r, moment) for r in self._relations.values()}
        compiled = compile_views({_QUERY: replace(view, root=root)}, (_QUERY,), tables, "query")
        self._circuit: Circuit = compiled.circuit
        self._root = compiled.views[_QUERY].root
        self.is_streamed = all(isinstance(n, plan.Scan | plan.Filter | plan.Project) for n in plan.walk(root))
        self.schema: Schema = view.root.schema

    def check_readable(self) -> None:
        """Refuse views whose rows another version of Viewkeeper wrote without hidden columns that the plan needs.

        Raises:
            ConflictError: ``NEEDS_REBUILD``.
        """
        for relation in self._relations.values():
            if relation.kind == "view":
                self._stored(relation)

    def _stored(self, relation: plan.Relation) -> StoredView:
        view = self._moment.stored_view(self._context, self._moment.catalog.views[relation.id])
        is_readable = not relation.hidden.columns and view.visible_schema.types == relation.schema.types
        if not (view.is_as_planned or is_readable):
            message = (
                f"Another version of Viewkeeper wrote the rows of view {view.name!r} in another form, so only Spark,"
                f" gets and scans read them: ALTER MATERIALIZED VIEW {view.name} RESUME fills it anew."
            )
            raise ConflictError("NEEDS_REBUILD", message, {"views": [view.name]})
        return view

    def input_rows(self) -> int:
        """Return how many rows it reads."""
        return sum(self._rows_of(relation) for relation in self._relations.values())

    def _rows_of(self, relation: plan.Relation) -> int:
        if relation.id == ONE_ID:
            return 1
        if relation.id in self._pinned:
            return len(self._pinned[relation.id])
        catalog = self._moment.catalog
        if relation.kind == "table":
            return self._moment.table_rows(catalog.tables[relation.id])
        return self._moment.stored_view(self._context, catalog.views[relation.id]).count(self._moment.views)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, hidden columns included.

        Raises:
            EvaluationError: an expression cannot be computed for some row.
        """
        if self.is_streamed:
            (relation,) = self._relations.values()
            for batch in self._read(relation):
                yield from self._output({relation.id: Delta.from_rows(batch)})
            return
        inputs = {}
        for relation in self._relations.values():
            deltas = [Delta.from_rows(batch) for batch in self._read(relation)]
            inputs[relation.id] = Delta.concat(deltas, _whole_schema(relation, self._moment).to_arrow())
        yield from self._output(inputs)

    def _output(self, inputs: Mapping[int, Delta]) -> Iterator[pa.RecordBatch]:
        output = self._circuit.whole(inputs)[self._root]
        if (output.weights != 1).any():
            output = output.consolidate()
            output = output.take(np.repeat(np.arange(output.num_rows), output.weights))
        if output.num_rows:
            yield output.rows

    def _read(self, relation: plan.Relation) -> Iterator[pa.RecordBatch]:
        if relation.id == ONE_ID:
            return iter((ONE_BATCH,))
        keys = self._pinned.get(relation.id)
        catalog = self._moment.catalog
        if relation.kind == "table":
            table = catalog.tables[relation.id]
            if keys is not None:
                return iter((rows_at(self._moment, table, keys),))
            return self._moment.table_batches(self._context, table)
        view = self._stored(relation)
        if not view.is_as_planned:
            return view.batches(self._moment.views)
        if keys is not None:
            return iter((view.batch_at(self._moment.views, keys),))
        return view.batches(self._moment.views, hidden=True)


def rows_at(moment: Moment, table: Table, keys: list[Key]) -> pa.RecordBatch:
    """Return the rows of ``table`` at ``keys``, those that are there."""
    format_ = format_of(table)
    encoded = sorted({format_.key_codec.encode_values(key) for key in keys})
    found = moment.base.multi_get(format_.database, encoded)
    return format_.decode([row for row in found if row is not None])


def _over_tables(node: plan.Node) -> plan.Node:
    if isinstance(node, plan.Scan):
        return replace(node, relation=replace(node.relation, kind="table", key=node.key))
    return plan.with_inputs(node, [_over_tables(child) for child in plan.inputs_of(node)])


def _whole_schema(relation: plan.Relation, moment: Moment) -> Schema:
    if relation.id == ONE_ID:
        return ONE_SCHEMA
    if relation.kind == "table":
        return moment.catalog.tables[relation.id].schema
    return Schema(relation.schema.columns + relation.hidden.columns)
