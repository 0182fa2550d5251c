"""A circuit computed by Spark: each node's rows, and what each state table must hold, from base rows.

Nodes become queries over queries (``operators/contents.py`` says which); a node whose rows SQL alone cannot say is
computed once, finished batch by batch and kept in files, which the queries above it read. Nothing is held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

import pyarrow as pa

from viewkeeper.errors import EvaluationError
from viewkeeper.evaluation.spool import SpooledFiles
from viewkeeper.expressions.tree import Session
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.operators.circuit import Circuit, Node, Source
from viewkeeper.operators.contents import Contents, Query, Rounds
from viewkeeper.operators.recursion import TOO_DEEP, Recursion
from viewkeeper.operators.state import StepContext, WriteSet
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.operators.whole import NoState
from viewkeeper.views.inputs import FilesInput, Input, QueryInput, SparkQueries, spark_functions
from viewkeeper.zset.delta import Delta


class Recomputation:
    """Computes a circuit's rows and state by Spark.

    Args:
        circuit: the operators.
        tables: the base tables as they are read, by id.
        spark: Spark SQL.
        files: where rows are kept that several queries read; open while answers are read.
        functions: users' functions that the operators may call.
    """

    def __init__(
        self,
        circuit: Circuit,
        tables: Mapping[int, Input],
        spark: SparkQueries,
        files: SpooledFiles,
        functions: Iterable[UserFunction] = (),
    ) -> None:
        self._circuit = circuit
        self._tables = tables
        self._spark = spark
        self._files = files
        self._functions = spark_functions(functions)
        self._known: dict[int, Input] = {}

    def rows(self, node: Node) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``node``.

        Raises:
            EvaluationError: an expression cannot be computed for some row.
        """
        assert not isinstance(node.operator, Source)
        return self._answer(node, node.operator.query())

    def contents(self, node: Node, contents: Contents) -> Iterator[pa.RecordBatch]:
        """Yield what a state table of ``node`` must hold; raises as ``rows`` does."""
        return self._answer(node, contents.query)

    def entries(self, node: Node, is_empty: bool) -> Iterator[pa.RecordBatch] | None:
        """Return what the error bag of ``node`` must hold; None where Spark fails too, and does not say on which rows.

        An empty bag is right without looking: where it should have rows, what is computed above it would fail.
        """
        if isinstance(node.operator, ViewRows):
            return self._answer(node, node.operator.violations())
        if not is_empty:
            if self._may_have_no_end(node):
                return None
            try:
                for _ in self.rows(node):
                    pass
            except EvaluationError:
                return None
        return iter(())

    def _may_have_no_end(self, node: Node) -> bool:
        """Return whether a set without end may be below: a step that gives one up says so, and Spark would go on."""
        operator = node.operator
        if isinstance(operator, Recursion) and operator.distinct:
            return True
        return any(self._may_have_no_end(self._circuit.nodes[id_]) for id_ in node.inputs)

    def _answer(self, node: Node, query: Query) -> Iterator[pa.RecordBatch]:
        if query.rounds is not None:
            return self._in_rounds(node, query, query.rounds)
        return self._once(node, query)

    def _in_rounds(self, node: Node, query: Query, rounds: Rounds) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a recursion, which Spark SQL alone knows without cycles only."""
        schema = query.schema.renamed(_numbered(len(query.schema)))
        inputs = self._inputs(node)
        known: dict[str, Input] = {}
        sql = query.sql
        for number in count():
            batches = list(self._spark.sql(sql, inputs, query.session, functions=self._functions).batches)
            if not any(batch.num_rows for batch in batches):
                return
            if number >= rounds.limit and not rounds.distinct:
                raise EvaluationError(TOO_DEEP, f"The recursion has more than {rounds.limit} rounds ({TOO_DEEP}).")
            yield from (pa.RecordBatch.from_arrays(b.columns, schema=query.schema.to_arrow()) for b in batches)
            kept = FilesInput(schema, self._files.write(batches, schema))
            known[f"known{len(known)}"] = kept
            inputs = {**inputs, **(known if rounds.distinct else {}), "newest": kept}
            sql = rounds.sql
            if rounds.distinct:
                sql += "".join(f" EXCEPT SELECT * FROM {name}" for name in known)

    def _once(self, node: Node, query: Query) -> Iterator[pa.RecordBatch]:
        answer = self._spark.sql(query.sql, self._inputs(node), query.session, functions=self._functions)
        arrow = query.schema.to_arrow()
        for batch in answer.batches:
            columns = batch.columns if query.finish is None else query.finish(batch)
            yield pa.RecordBatch.from_arrays(columns[: len(arrow)], schema=arrow)

    def _inputs(self, node: Node) -> dict[str, Input]:
        return {f"i{number}": self._input(self._circuit.nodes[id_]) for number, id_ in enumerate(node.inputs)}

    def _input(self, node: Node) -> Input:
        if node.id not in self._known:
            self._known[node.id] = self._made(node)
        return self._known[node.id]

    def _made(self, node: Node) -> Input:
        if isinstance(node.operator, Source):
            columns = _numbered(len(node.operator.schema))
            return QueryInput("SELECT * FROM i0", {"i0": self._tables[node.operator.table]}, Session(), columns)
        query = node.operator.query()
        if query.finish is None and query.rounds is None:
            return QueryInput(query.sql, self._inputs(node), query.session, functions=self._functions)
        schema = query.schema.renamed(_numbered(len(query.schema)))
        return FilesInput(schema, self._files.write(self._answer(node, query), schema))


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"_c{i}" for i in range(count))


class FreshState:
    """State as one step over complete tables makes it: for tests, since our own operators prove less than Spark.

    Args:
        circuit: the operators, without expressions that need Spark.
        tables: the base tables' rows, by id.
    """

    def __init__(self, circuit: Circuit, tables: Mapping[int, Delta]) -> None:
        self._writes = WriteSet()
        circuit.step(tables, StepContext(NoState(), self._writes))

    def contents(self, node: Node, contents: Contents) -> Iterator[pa.RecordBatch]:
        """Yield what a state table of ``node`` must hold."""
        arrow = contents.query.schema.to_arrow()
        for piece in self._writes.tables.get(contents.state, ()):
            there = [(key, value) for key, value in zip(piece.keys, piece.values, strict=True) if value is not None]
            columns = contents.decode([key for key, _ in there], [value for _, value in there])
            yield pa.RecordBatch.from_arrays(list(columns), schema=arrow)

    def entries(self, node: Node, is_empty: bool) -> Iterator[pa.RecordBatch]:
        """Yield what the error bag of ``node`` must hold."""
        site = getattr(node.operator, "errors", None)
        counts = {} if site is None else self._writes.merges.get(site.state, {})
        entries = [text.decode() for text, weight in counts.items() if weight]
        yield pa.RecordBatch.from_arrays([pa.array(entries, pa.string())], names=["entry"])
