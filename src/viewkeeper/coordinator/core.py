"""The coordinator: runs the epochs of cadences, one after the other, and publishes them.

It keeps nothing that matters in memory: any process may be the coordinator at any moment; two that race on a cadence
are told apart by the fence, so the slower one plans again. That is also the whole recovery: an epoch that was not
published is planned from what is published, and gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.coordinator.cadences import consumer, is_build, members_of, views_elsewhere
from viewkeeper.coordinator.plans import ALL_ROWS, next_epoch
from viewkeeper.coordinator.turns import Turns
from viewkeeper.coordinator.ways import Ways
from viewkeeper.errors import ConflictError, FunctionUnavailable
from viewkeeper.log import reader, retention
from viewkeeper.pipeline.choose import choose
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, Members
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.layouts import STATE_OUTDATED, check_layouts
from viewkeeper.pipeline.memory import EpochMemory, EpochSize
from viewkeeper.pipeline.publish import publish
from viewkeeper.pipeline.records import CadenceRecord, read_cadence, read_cadences
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import ReadTransaction, Space, WriteTransaction
from viewkeeper.views.catalog import Catalog, catalog_version, read_catalog
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.planning import Planner

# Of what an epoch may take, how much of the log lies between two marks for builds that borrow (``pipeline/loans.py``).
_MARKED_PART = 1 / 4


class Executor(Protocol):
    """A way to run an epoch."""

    name: str

    def run(self, plan: EpochPlan) -> EpochResult:
        """Run ``plan``, publish nothing, return what to publish."""

    def clear(self, plan: EpochPlan) -> None:
        """Remove what attempts at ``plan`` and earlier epochs have staged: it has been published."""


@dataclass(frozen=True)
class Outcome:
    """A published epoch.

    Args:
        cadence: whose it was.
        epoch: its number.
        position: the log position that it reached.
        log_rows: log rows (or base rows, while filling) that it read.
        view_rows: view rows that it changed.
        seconds: from planning to published.
        executor: which executor ran it.
    """

    cadence: str
    epoch: int
    position: int
    log_rows: int
    view_rows: int
    seconds: float
    executor: str


# Called with each epoch when it is published; what it raises ends the work between two of them.
Published = Callable[[Outcome], None]


class Coordinator:
    """Runs epochs over one store.

    Args:
        base: the base space.
        views: the views space.
        executors: by name, ``local`` always among them; ``spark`` where it can be had.
        settings: which executor when, how large an epoch may be.
        clock: where time comes from.
        staging_path: where executors stage files; None where none does.
        turns: shared with the coordinators of other threads of this process.
    """

    def __init__(
        self,
        base: Space,
        views: Space,
        executors: Mapping[str, Callable[[], Executor]],
        settings: Settings,
        clock: Clock = SYSTEM_CLOCK,
        staging_path: str | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.base = base
        self.views = views
        self.settings = settings
        self.clock = clock
        self.staging_path = staging_path
        self.turns = turns or Turns()
        self.planner = Planner()
        self._factories = dict(executors)
        self._executors: dict[str, Executor] = {}
        self._members: dict[str, Members] = {}
        self._catalog = Catalog()
        # The version of the catalog at which everything was last in order (coordinator.upkeep).
        self.swept_version = -1
        # Likewise that at which all state was last of this program's layout.
        self.compared_version = -1
        self._compared: dict[str, Members] = {}
        self.epoch_size = EpochSize(settings.memory_bytes, settings.publish_seconds_max)
        self.ways = Ways(self.planner, settings, tuple(executors))

    def beside(self) -> Coordinator:
        """Return a coordinator for another thread, which shares nothing with this one but store and turns."""
        return Coordinator(
            self.base, self.views, self._factories, self.settings, self.clock, self.staging_path, self.turns
        )

    # ---- what there is ----

    def catalog(self) -> Catalog:
        """Return the catalog as it stands now."""
        with self.base.read() as txn:
            # In a variable, since another thread may put there the catalog of an earlier moment.
            known = self._catalog
            if catalog_version(txn) != known.version:
                known = self._catalog = read_catalog(txn)
        return known

    def members(self, catalog: Catalog, cadence: str) -> Members | None:
        """Return the compiled views of ``cadence``, None where it has none."""
        known = self._members.get(cadence)
        if known is not None and known.catalog_version == catalog.version:
            return known
        views = members_of(catalog, cadence)
        if not views:
            self._members.pop(cadence, None)
            return None
        self._forget_gone(catalog)
        made = self._compile(catalog, cadence, views)
        if known is not None and known.signature == made.signature:
            # The same circuit, so what is remembered of it (codecs, pickled forms) stays of use.
            made = replace(made, compilation=known.compilation)
        self._members[cadence] = made
        return made

    def _forget_gone(self, catalog: Catalog) -> None:
        """Keep nothing of views and cadences that are no more: there may be any number of them in time.

        A connection's other threads may add to what is gone through here; what they add is made anew where it is lost.
        """
        cadences = {view.cadence for view in catalog.views.values()}
        self._members = {name: members for name, members in list(self._members.items()) if name in cadences}
        self._compared = {name: members for name, members in list(self._compared.items()) if name in cadences}
        self.planner.keep(catalog.views)
        self.ways.keep(cadences, catalog.views)

    def _compile(self, catalog: Catalog, cadence: str, views: tuple[ViewDefinition, ...]) -> Members:
        compilation = self.planner.compile(catalog, views, cadence)
        tables = {id_: catalog.tables[id_] for id_ in compilation.circuit.tables}
        needs_spark = any(self.planner.needs_spark(catalog, view) for view in views)
        forms = [(t.id, t.versions, t.schema.names) for _, t in sorted(tables.items())]
        signature = repr([(v.id, v.cadence) for v in views]) + repr(forms)
        return Members(cadence, catalog.version, signature, compilation, tables, needs_spark)

    # ---- epochs ----

    def epoch(self, cadence: str, limit: int | None = None) -> Outcome | None:
        """Run and publish the next epoch of ``cadence``; None where nothing waits.

        Args:
            cadence: its name.
            limit: a log position that it must not pass.

        Raises:
            ConflictError: ``LOG_PURGED``, ``STATE_OUTDATED``; races with other coordinators are resolved here.
        """
        with self.turns.of(cadence), self._turn_of_lender(cadence):
            while True:
                started, part = self.clock.monotonic_seconds(), self.turns.free_part
                plan = self.planned(cadence, limit, part=part)
                if plan is None:
                    return None
                try:
                    return self.run(plan, started, part)
                except ConflictError as error:
                    if error.code != "EPOCH_SUPERSEDED":
                        raise

    @contextmanager
    def _turn_of_lender(self, cadence: str) -> Iterator[None]:
        """Let the lender of a build's state stand while the build follows the log to where it stands."""
        record = self.record(cadence) if is_build(cadence) else None
        with self.turns.of(cadence if record is None or record.loan is None else record.loan.lender):
            yield

    def planned(
        self, cadence: str, limit: int | None = None, closely: bool = False, part: float = 1.0
    ) -> EpochPlan | None:
        """Return the next epoch of ``cadence`` as it would be run now; None where nothing waits.

        Args:
            cadence: its name.
            limit: a log position that it must not pass.
            closely: predict also what is too quick to be weighed.
            part: which part of the memory it may take.

        Raises:
            ConflictError: ``LOG_PURGED``, ``STATE_OUTDATED``.
        """
        catalog = self.catalog()
        members = self.members(catalog, cadence)
        if members is None:
            return None
        with self.base.read() as base, self.views.read() as views:
            self._check_layouts(views, members)
            log_bytes = self.epoch_size.within(part)
            plan = next_epoch(base, views, catalog, members, limit, self.settings.epoch_rows_max, log_bytes)
            if plan is None or is_build(cadence):
                return plan

            def replan() -> EpochPlan | None:
                return next_epoch(base, views, catalog, members, limit, ALL_ROWS, None)

            return self.ways.decided(base, views, catalog, plan, replan, log_bytes, closely)

    def _check_layouts(self, views: ReadTransaction, members: Members) -> None:
        """Refuse state of another version of Viewkeeper, once for each compilation; fills are looked at when begun."""
        if self._compared.get(members.cadence) is members or is_build(members.cadence):
            return
        try:
            check_layouts(views, members.compilation)
        except ConflictError:
            self.compared_version = -1
            raise
        self._compared[members.cadence] = members

    def run(self, plan: EpochPlan, started: float, part: float = 1.0) -> Outcome:
        """Run and publish a planned epoch.

        Args:
            plan: the epoch.
            started: when its planning began.
            part: which part of the memory it was planned for.

        Raises:
            ConflictError: ``EPOCH_SUPERSEDED``: it must be planned again.
        """
        is_large = plan.scan is not None or self.epoch_size.is_looked_at(plan.log_bytes)
        if plan.scan is None and plan.members.mixed is None:
            part = min(self.epoch_size.part_of(plan.log_bytes), part)
        with self.turns.part(part if is_large else 0.0) as is_granted:
            if not is_granted:
                message = f"Others need the memory that cadence {plan.members.cadence!r} was to have: refresh again."
                raise ConflictError("EPOCH_SUPERSEDED", message)
            return self._run(plan, started, is_large)

    def _run(self, plan: EpochPlan, started: float, is_looked_at: bool) -> Outcome:
        executor = self.executor(choose(plan, self.settings, tuple(self._factories)))
        kept = 0 if plan.scan is not None else self.epoch_size.pages_kept_bytes(plan.log_bytes)
        memory = EpochMemory((self.base, self.views), is_looked_at, kept)
        result = self._result(executor, plan)
        memory.has_run()
        if self.settings.durability != "none":
            # What the views show must not outlive the writes that it shows, with whatever durability they were made.
            self.base.sync()
        rows, publish_seconds = self._publish(plan, result)
        seconds = self.clock.monotonic_seconds() - started
        executor.clear(plan)
        use = memory.is_over(result.memory)
        if plan.scan is None and plan.members.mixed is None:
            self.epoch_size.measured(plan.log_bytes, use)
            self.epoch_size.published(plan.log_bytes, publish_seconds)
        members = plan.members
        return Outcome(members.cadence, plan.number, plan.to, plan.rows, rows, seconds, executor.name)

    def _result(self, executor: Executor, plan: EpochPlan) -> EpochResult:
        try:
            return executor.run(plan)
        except ConflictError as error:
            if error.code != "TABLE_CHANGED" or self.catalog().version == plan.members.catalog_version:
                raise
            # It was planned under a catalog of before; the next plan reads the present one.
            message = (
                f"A table's columns changed after the epoch of cadence {plan.members.cadence!r} was planned: refresh."
            )
            raise ConflictError("EPOCH_SUPERSEDED", message, error.details) from error

    def _publish(self, plan: EpochPlan, result: EpochResult) -> tuple[int, float]:
        """Publish an epoch; return how many view rows changed, and how long nobody else could publish."""
        same_views = self._same_views(plan.members)
        locked = 0.0

        def check() -> None:
            nonlocal locked
            same_views()
            locked = self.clock.monotonic_seconds()

        def note(txn: WriteTransaction) -> None:
            taken = self.clock.monotonic_seconds() - locked
            self.ways.note(txn, plan, result, taken, self.clock.now_seconds())

        def is_much(position: int) -> bool:
            with self.base.read() as txn:
                return reader.bytes_waiting(txn, position, plan.to) > self.epoch_size.within(_MARKED_PART)

        try:
            rows = publish(self.views, plan, result.writes, result.executor, self.clock, check, note, is_much)
        except ConflictError as error:
            if error.code == STATE_OUTDATED:
                # A program that knows nothing of layouts has published meanwhile: all must be compared again.
                self.compared_version = -1
                self._compared.clear()
            raise
        return rows, self.clock.monotonic_seconds() - locked

    def executor(self, name: str) -> Executor:
        """Return the executor ``name``, made at its first use."""
        if name not in self._executors:
            self._executors[name] = self._factories[name]()
        return self._executors[name]

    def _same_views(self, members: Members) -> Callable[[], None]:
        def check() -> None:
            now = self.members(self.catalog(), members.cadence)
            if now is None or now.signature != members.signature:
                message = (
                    f"The views of cadence {members.cadence!r} have changed since the epoch was planned: refresh again."
                )
                raise ConflictError("EPOCH_SUPERSEDED", message)

        return check

    def catch_up(self, cadence: str, position: int, published: Published | None = None) -> list[Outcome]:
        """Run epochs of ``cadence`` until it has read up to ``position``; those that it waits for go first."""
        outcomes: list[Outcome] = []
        for below in self._cadences_below(cadence):
            outcomes += self.catch_up(below, position, published)
        while True:
            record = self.record(cadence)
            if record is None or record.position >= position:
                return outcomes
            outcome = self.epoch(cadence, position)
            if outcome is None:
                return outcomes
            outcomes.append(outcome)
            if published is not None:
                published(outcome)

    def catch_up_each(
        self, cadences: Iterable[str], position: int, published: Published | None = None
    ) -> list[Outcome]:
        """Run epochs of all ``cadences`` until they have read up to ``position``.

        Raises:
            FunctionUnavailable: at the end, where one cannot go on in this process.
        """
        outcomes: list[Outcome] = []
        missing: FunctionUnavailable | None = None
        for cadence in cadences:
            try:
                outcomes += self.catch_up(cadence, position, published)
            except FunctionUnavailable as error:
                missing = missing or error
        if missing is not None:
            raise missing
        return outcomes

    def _cadences_below(self, cadence: str) -> tuple[str, ...]:
        if is_build(cadence):
            return ()
        catalog = self.catalog()
        below = views_elsewhere(catalog, members_of(catalog, cadence), cadence)
        return tuple(dict.fromkeys(view.cadence for view in below))

    # ---- records ----

    def head(self) -> int:
        """Return the sequence number of the last transaction."""
        with self.base.read() as txn:
            return reader.head(txn)

    def record(self, cadence: str) -> CadenceRecord | None:
        """Return what is published of ``cadence``."""
        with self.views.read() as txn:
            return read_cadence(txn, cadence)

    def purge(self) -> int:
        """Move the log's consumers to what is published and remove what all have read; return the pieces removed."""
        with self.views.read() as txn:
            records = read_cadences(txn)
        failpoint("purge:before")
        with self.base.write() as txn:
            wanted = {consumer(r.name): r.position for r in records}
            for held in retention.consumers(txn):
                name = held.consumer.name
                if held.consumer.kind == "cadence" and name in wanted and not held.consumer.needs_rebuild:
                    retention.advance(txn, name, wanted[name])
        purged = retention.purge(
            self.base, self.settings.log_held_bytes_max, between=lambda: failpoint("purge:between")
        )
        failpoint("purge:after")
        return purged.pieces
