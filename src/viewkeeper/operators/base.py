"""What every operator is: a ``step`` over deltas and a plain twin ``whole``, held together by an equation.

    whole(inputs + deltas) = whole(inputs) + step(deltas)

Operators are frozen dataclasses: picklable, compared by value, shared by all views that need the same one. They see
state through ``StepContext`` only, and rows by position only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa

from viewkeeper.errors import StoreError
from viewkeeper.expressions.evaluate import Errors
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


class Operator(Protocol):
    """One node of a circuit."""

    @property
    def schema(self) -> Schema:
        """The columns of the output."""

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the state tables that it writes, its error bag apart."""

    @property
    def looks_up(self) -> tuple[str, ...]:
        """Names of the state tables of others that it reads."""

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return what ``inputs`` change in the output, given the state published before them.

        Deltas of stateful operators arrive consolidated and complete for their partition keys. Rows that cannot be
        computed go to ``context.writes`` as an error delta and not to the output.
        """

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the output over complete ``inputs``, computed without state."""

    def query(self) -> Query:
        """Return the output as a query over the inputs, for Spark: what VERIFY computes."""

    def contents(self) -> tuple[Contents, ...]:
        """Return what each state table must hold, as queries over the inputs."""


class Stateless:
    """What operators say that keep nothing and look nothing up; those that do override it."""

    @property
    def states(self) -> tuple[str, ...]:
        """No state tables."""
        return ()

    @property
    def looks_up(self) -> tuple[str, ...]:
        """No state tables of others."""
        return ()


@dataclass(frozen=True)
class ErrorSite:
    """Where the rows of an operator go that cannot be computed.

    Args:
        state: the error bag's state table.
        names: names of the key columns, for messages.
        columns: positions of the key columns in the operator's input.
    """

    state: str
    names: tuple[str, ...]
    columns: tuple[int, ...]

    def record(self, delta: Delta, errors: Errors, context: StepContext) -> None:
        """Add the failing rows of ``delta`` to the bag with their weights."""
        failing = np.flatnonzero(errors.rows)
        for row in failing:
            entry = self.entry(str(errors.reasons[row]), [delta.rows.column(c)[int(row)] for c in self.columns])
            context.writes.merge(self.state, entry, int(delta.weights[row]))

    def entry(self, reason: str, key: Sequence[pa.Scalar]) -> bytes:
        """Return the entry of a row; its key becomes text because it is only ever shown."""
        return msgspec.json.encode([reason, {n: _shown(v) for n, v in zip(self.names, key, strict=True)}])


def _shown(scalar: pa.Scalar) -> object:
    value = scalar.as_py()
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def keep_good(
    delta: Delta, errors: Errors | None, site: ErrorSite | None, context: StepContext
) -> tuple[Delta, np.ndarray | None]:
    """Return ``delta`` without its failing rows, which go to ``site``, and the mask of the rows kept (None: all)."""
    if errors is None or not errors.rows.any():
        return delta, None
    if site is None:
        raise AssertionError("an expression of an operator without an error site has failed")
    site.record(delta, errors, context)
    good = ~errors.rows
    return delta.filter(good), good


def state_is_broken(state: str) -> StoreError:
    """Return the error for state that contradicts the deltas, such as a negative count."""
    message = f"The state {state!r} contradicts the log. Run VERIFY MATERIALIZED VIEW ... REPAIR on its views."
    return StoreError("STATE_BROKEN", message, {"state": state})
