"""GENERATE: each row once per element of a collection, for EXPLODE, POSEXPLODE, INLINE and range().

Rule:   step(d) = sum over rows r of d and elements e of c(r) of  (r, position of e, e)         (linear)
State:  none.
Why:    the elements follow from the row alone, so a row taken away takes away exactly the rows that it once made; the
        position tells equal elements apart. OUTER adds (r, NULL, NULL) where c(r) has no element, and so is linear too.
Work:   one output row for each element of each changed row. The collection itself is not repeated beside its elements
        unless somebody reads it.
Errors: a row whose collection cannot be computed goes to the error bag with its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.spark_sql import spark_sql
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good
from viewkeeper.operators.contents import Contents, Query, cast_named, columns_sql
from viewkeeper.operators.matching import expand
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Generate(Stateless):
    """Rows by the elements of a collection.

    Args:
        schema: the kept columns, the position of the element, then its columns.
        kept: positions of the input's columns that stay.
        collection: an ARRAY or MAP over the input.
        outer: whether a row without elements stays, with NULLs.
        inline: whether the elements are STRUCTs whose fields become columns.
        session: time zone and ANSI mode in force.
        errors: where rows go whose collection cannot be computed.
    """

    schema: Schema
    kept: tuple[int, ...]
    collection: Expression
    outer: bool
    inline: bool
    session: Session
    errors: ErrorSite | None

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the rows of the elements that come and go."""
        (delta,) = inputs
        if not delta.num_rows:
            return Delta.empty(self.schema.to_arrow())
        result = evaluate(self.collection, delta.rows, self.session)
        delta, good = keep_good(delta, result.errors, self.errors, context)
        values = result.values if good is None else result.values.filter(pa.array(good))
        rows, places, positions = self._elements(values)
        kept = [delta.rows.column(column).take(pa.array(rows)) for column in self.kept]
        columns = [*kept, positions, *self._columns(values, places)]
        arrow = self.schema.to_arrow()
        typed = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, arrow, strict=True)]
        return Delta(pa.RecordBatch.from_arrays(typed, schema=arrow), delta.weights[rows])

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the rows of all elements; raises EvaluationError where a collection cannot be computed."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return LATERAL VIEW over the input's rows."""
        word = "LATERAL VIEW OUTER" if self.outer else "LATERAL VIEW"
        names = ["key", "value"] if self.collection.type.name == "MAP" else ["col"]
        listed = list(names)
        if self.inline:
            listed = [f"col.`{field.replace('`', '``')}`" for field in self.collection.type.children[0].field_names]
        first = len(self.kept)
        made = [cast_named(text, self.schema.types[first + i], first + i) for i, text in enumerate(["g.pos", *listed])]
        items = ", ".join([*columns_sql(self.kept, "i0"), *made])
        call = f"posexplode({spark_sql(self.collection)})"
        return Query(f"SELECT {items} FROM i0 {word} {call} g AS pos, {', '.join(names)}", self.schema, self.session)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()

    def _elements(self, values: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
        """Return for each output row its input row, and its element's place among the values and in its collection."""
        offsets = values.offsets.to_numpy()
        present = values.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.where(present, offsets[1:] - offsets[:-1], 0).astype(np.int64)
        starts = offsets[:-1].astype(np.int64)
        counts = np.maximum(lengths, 1) if self.outer else lengths
        rows, places = expand(starts, starts + counts)
        missing = lengths[rows] == 0
        positions = places - starts[rows]
        return rows, pa.array(places, mask=missing), pa.array(positions.astype(np.int32), mask=missing)

    def _columns(self, values: pa.Array, places: pa.Array) -> list[pa.Array]:
        if isinstance(values, pa.MapArray):
            return [values.keys.take(places), values.items.take(places)]
        elements = values.values.take(places)
        return list(elements.flatten()) if self.inline else [elements]
