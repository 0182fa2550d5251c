"""The state behind a view's rows, checked: arrangements, groups, values of MIN and MAX, candidates, error bags.

All state tables of a view are copied at one moment, decoded to rows that mean something, and compared with what they
must hold at the position of the view's cadence. State above rows that cannot be computed now has no right contents
and is left unchecked, saying so; the bag with those rows is checked by letting Spark fail on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import pyarrow as pa

from viewkeeper.errors import StoreError
from viewkeeper.evaluation.comparison import Row, compare
from viewkeeper.evaluation.moments import EvaluationContext, Moment
from viewkeeper.evaluation.spool import Spool
from viewkeeper.operators.circuit import Node, Source
from viewkeeper.operators.contents import Contents, distinct_names
from viewkeeper.pipeline.bags import entries_of
from viewkeeper.pipeline.layouts import is_outdated
from viewkeeper.pipeline.records import ViewRecord, read_cadence
from viewkeeper.plan.compile import Compilation
from viewkeeper.views.definition import ACTIVE, ViewDefinition
from viewkeeper.zset.schema import STRING, Column, Schema

PAIRS_PER_BATCH = 65_536
MEMORY_BYTES_MAX = 16 << 20
ROWS_SHOWN = 20
_TEXT_LENGTH_MAX = 200
_UNREADABLE = (StoreError, ValueError, LookupError, TypeError, OverflowError)

ENTRY = Schema((Column("entry", STRING, False),))
"""How the rows of an error bag are compared: by their text, which tells the reason and the row's key."""


class Expected(Protocol):
    """What state tables must hold at a position, computed by somebody."""

    def contents(self, node: Node, contents: Contents) -> Iterable[pa.RecordBatch]:
        """Return what a state table of ``node`` must hold."""

    def entries(self, node: Node, is_empty: bool) -> Iterable[pa.RecordBatch] | None:
        """Return what the error bag of ``node`` must hold (``is_empty``: it is); None where it may be what it is."""


@dataclass(frozen=True)
class StateReport:
    """What VERIFY found in one state table.

    Args:
        state: the state table.
        kind: ``arrangement``, ``groups``, ``values``, ``candidates``, ``errors``, ``pending``, or ``rows`` (the view's,
            hidden columns included); ``view`` for the visible rows against the view's own SQL; ``state of another
            version``, of Viewkeeper, for state that an epoch would not go on from.
        rows: how many rows it has.
        missing: some of the rows that it lacks.
        unexpected: some of the rows that it should not have, or that stand under a wrong key or cannot be read.
        different: some of the rows that differ under one key, as (expected, stored).
        missing_count: how many it lacks.
        unexpected_count: how many it should not have.
        different_count: how many differ.
        unchecked: why it was not compared; None where it was.
    """

    state: str
    kind: str
    rows: int
    missing: list[Row] = field(default_factory=list)
    unexpected: list[Row] = field(default_factory=list)
    different: list[tuple[Row, Row]] = field(default_factory=list)
    missing_count: int = 0
    unexpected_count: int = 0
    different_count: int = 0
    unchecked: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong."""
        return not (self.missing_count or self.unexpected_count or self.different_count)

    @property
    def name(self) -> str:
        """What was checked, in one word or two."""
        return f"{self.kind} {self.state}".rstrip()

    @property
    def note(self) -> str:
        """One difference, or why nothing was compared; empty for what is right."""
        if self.unchecked is not None:
            return f"not checked: {self.unchecked}"
        if self.different:
            expected, found = self.different[0]
            return f"expected {_text(expected)}, found {_text(found)}"
        if self.missing:
            return f"missing {_text(self.missing[0])}"
        return f"unexpected {_text(self.unexpected[0])}" if self.unexpected else ""

    def __str__(self) -> str:
        """Return what was found, for people."""
        if self.unchecked is not None:
            return f"{self.name}: {self.note}"
        if self.ok:
            return f"{self.name}: right, {self.rows} rows"
        counts = f"{self.missing_count} missing, {self.unexpected_count} unexpected, {self.different_count} different"
        return f"{self.name}: wrong, {counts} ({self.note or 'rows that wait'})"


def _text(row: Row) -> str:
    parts = (f"{name} {value.hex() if isinstance(value, bytes) else value!r}" for name, value in row.items())
    text = ", ".join(parts)
    return text if len(text) <= _TEXT_LENGTH_MAX else f"{text[:_TEXT_LENGTH_MAX]}..."


@dataclass(frozen=True)
class StoredState:
    """A state table as it is.

    Args:
        node: whose state it is.
        state: the state table.
        kind: what it is.
        contents: what it must hold; None for an error bag.
        rows: its rows.
        misplaced: some rows that stand under a wrong key, or cannot be read.
        misplaced_count: how many there are.
        unchecked: why it has no right contents now.
    """

    node: Node
    state: str
    kind: str
    contents: Contents | None
    rows: Spool
    misplaced: tuple[Row, ...]
    misplaced_count: int
    unchecked: str | None


@dataclass(frozen=True)
class StoredStates:
    """What is kept for a view beside its visible rows, at one moment.

    Args:
        compilation: the view's circuit.
        position: the log position at which all of it stands.
        states: the state tables and error bags.
        pending: the rows that wait, of which there must be none while the view is good; or that another version of
            Viewkeeper wrote the state.
    """

    compilation: Compilation
    position: int
    states: tuple[StoredState, ...]
    pending: StateReport


def read_states(
    context: EvaluationContext, moment: Moment, view: ViewDefinition, record: ViewRecord, opened: ExitStack
) -> StoredStates | None:
    """Return what is kept for a view; None for one that keeps nothing but its rows: it does not follow a cadence.

    Args:
        context: the store.
        moment: when.
        view: the view.
        record: what is published of it.
        opened: keeps the copies.
    """
    cadence = read_cadence(moment.views, view.cadence)
    if view.state != ACTIVE or cadence is None or cadence.build is not None:
        return None
    compilation = context.planner.compile(moment.catalog, (view,), view.cadence)
    if is_outdated(record, compilation):
        found: Row = {"layout": record.layout or "none"}
        written = StateReport("", "state of another version", 0, unexpected=[found], unexpected_count=1)
        return StoredStates(compilation, cadence.position, (), written)
    needed = set(compilation.states_of(view.id))
    states: list[StoredState] = []
    for node in compilation.circuit.nodes:
        if isinstance(node.operator, Source):
            continue
        full = [bag for bag in compilation.bags_below(node.id) if moment.views.count(bag)]
        blocked = "rows below it cannot be computed now" if full else None
        for contents in node.operator.contents():
            if contents.state in needed:
                held = record.is_failed and contents.state == record.state
                why = "the view is FAILED and shows its last good rows" if held else blocked
                states.append(_copied(moment, node, contents, why, opened))
        bag = compilation.bag_of(node.id)
        if bag is not None and bag in needed:
            states.append(_copied_bag(moment, node, bag, blocked, opened))
    waiting = 0 if record.is_failed else moment.views.count(record.pending)
    pending = StateReport(record.pending, "pending", waiting, unexpected_count=waiting)
    return StoredStates(compilation, cadence.position, tuple(states), pending)


def _copied(moment: Moment, node: Node, contents: Contents, why: str | None, opened: ExitStack) -> StoredState:
    rows = opened.enter_context(Spool(contents.query.schema, MEMORY_BYTES_MAX))
    wrong: list[Row] = []
    wrong_count = 0
    pairs = moment.views.scan(contents.state)
    while why is None and (some := list(islice(pairs, PAIRS_PER_BATCH))):
        batch, bad = _decoded(contents, some)
        rows.write(batch)
        wrong_count += len(bad)
        wrong += [{"key": key.hex(), "value": value.hex()} for key, value in bad[: ROWS_SHOWN - len(wrong)]]
    return StoredState(node, contents.state, contents.kind, contents, rows, tuple(wrong), wrong_count, why)


def _decoded(
    contents: Contents, pairs: Sequence[tuple[bytes, bytes]]
) -> tuple[pa.RecordBatch, list[tuple[bytes, bytes]]]:
    """Return the rows of stored pairs, and the pairs that stand under another key than theirs or cannot be read."""
    schema = contents.query.schema.to_arrow()
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    try:
        columns = contents.decode(keys, values)
        right = [mine == key for mine, key in zip(contents.keys_of(columns), keys, strict=True)]
    except _UNREADABLE:
        if len(pairs) == 1:
            return pa.RecordBatch.from_pylist([], schema), list(pairs)
        middle = len(pairs) // 2
        parts = [_decoded(contents, half) for half in (pairs[:middle], pairs[middle:])]
        rows = pa.Table.from_batches([batch for batch, _ in parts], schema).combine_chunks().to_batches()
        return rows[0] if rows else parts[0][0], [pair for _, bad in parts for pair in bad]
    batch = pa.RecordBatch.from_arrays(list(columns), schema=schema)
    if all(right):
        return batch, []
    return batch.filter(pa.array(right)), [pair for pair, ok in zip(pairs, right, strict=True) if not ok]


def _copied_bag(moment: Moment, node: Node, bag: str, why: str | None, opened: ExitStack) -> StoredState:
    rows = opened.enter_context(Spool(ENTRY, MEMORY_BYTES_MAX))
    entries = entries_of(moment.views, bag)
    while some := [text.decode(errors="replace") for text in islice(entries, PAIRS_PER_BATCH)]:
        rows.write(pa.RecordBatch.from_arrays([pa.array(some, pa.string())], schema=ENTRY.to_arrow()))
    return StoredState(node, bag, "errors", None, rows, (), 0, why)


def check_states(stored: StoredStates, expected: Expected, limit: int) -> tuple[StateReport, ...]:
    """Compare each state table with what it must hold.

    Args:
        stored: the state tables.
        expected: computes what they must hold at ``stored.position``.
        limit: how many rows of each kind are returned at most.

    Raises:
        EvaluationError: an expression cannot be computed although no error bag says so.
    """
    reports = [_checked(state, expected, limit) for state in stored.states]
    return (*reports, stored.pending)


def _checked(stored: StoredState, expected: Expected, limit: int) -> StateReport:
    if stored.unchecked is not None:
        return StateReport(stored.state, stored.kind, stored.rows.rows, unchecked=stored.unchecked)
    key: tuple[int, ...] = (0,)
    if stored.contents is None:
        schema = ENTRY
        wanted = expected.entries(stored.node, not stored.rows.rows)
        if wanted is None:
            return StateReport(stored.state, stored.kind, stored.rows.rows)
    else:
        schema, key = distinct_names(stored.contents.query.schema), stored.contents.key
        wanted = expected.contents(stored.node, stored.contents)
    found = compare(wanted, stored.rows, schema, key, stored.rows.rows, limit)
    return StateReport(
        stored.state,
        stored.kind,
        stored.rows.rows + stored.misplaced_count,
        found.missing,
        [*stored.misplaced, *found.unexpected][:limit],
        found.different,
        found.missing_count,
        found.unexpected_count + stored.misplaced_count,
        found.different_count,
    )
