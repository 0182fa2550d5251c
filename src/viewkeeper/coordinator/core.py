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
from viewkeeper.coordinator.turns import Turns
from viewkeeper.coordinator.ways import Ways
from viewkeeper.errors import ConflictError, FunctionUnavailable
from viewkeeper.log import reader, retention
from viewkeeper.pipeline.choose import choose
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, Members, plan_epoch
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.layouts import STATE_OUTDATED, check_layouts
from viewkeeper.pipeline.loans import borrowed_by
from viewkeeper.pipeline.memory import EpochMemory, EpochSize
from viewkeeper.pipeline.publish import publish
from viewkeeper.pipeline.records import BUILD_PREFIX, CadenceRecord, read_cadence, read_cadences, read_view
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import ReadTransaction, Space, WriteTransaction
from viewkeeper.views.catalog import Catalog, catalog_version, read_catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, ViewDefinition
from viewkeeper.views.planning import Planner

# More rows than any log holds.
_ALL = 1 << 62


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
        """Keep nothing of views and cadences that are no more: there may be any number of them in time."""
        cadences = {view.cadence for view in catalog.views.values()}
        self._members = {name: members for name, members in self._members.items() if name in cadences}
        self._compared = {name: members for name, members in self._compared.items() if name in cadences}
        self.planner.keep(catalog.views)

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
                started = self.clock.monotonic_seconds()
                plan = self.planned(cadence, limit)
                if plan is None:
                    return None
                try:
                    return self.run(plan, started)
                except ConflictError as error:
                    if error.code != "EPOCH_SUPERSEDED":
                        raise

    @contextmanager
    def _turn_of_lender(self, cadence: str) -> Iterator[None]:
        """Let the lender of a build's state stand while the build follows the log to where it stands."""
        record = self.record(cadence) if is_build(cadence) else None
        with self.turns.of(cadence if record is None or record.loan is None else record.loan.lender):
            yield

    def planned(self, cadence: str, limit: int | None = None, closely: bool = False) -> EpochPlan | None:
        """Return the next epoch of ``cadence`` as it would be run now; None where nothing waits.

        Args:
            cadence: its name.
            limit: a log position that it must not pass.
            closely: predict also what is too quick to be weighed.

        Raises:
            ConflictError: ``LOG_PURGED``, ``STATE_OUTDATED``.
        """
        catalog = self.catalog()
        members = self.members(catalog, cadence)
        if members is None:
            return None
        with self.base.read() as base, self.views.read() as views:
            self._check_layouts(views, members)
            log_bytes = self._log_bytes
            plan = self._plan(base, views, catalog, members, limit, self.settings.epoch_rows_max, log_bytes)
            if plan is None or is_build(cadence):
                return plan

            def replan() -> EpochPlan | None:
                return self._plan(base, views, catalog, members, limit, _ALL, None)

            return self.ways.decided(base, views, catalog, plan, replan, log_bytes, closely)

    @property
    def _log_bytes(self) -> int:
        """How much of the log the next epoch may take: those that run beside it have their parts of the memory."""
        return max(self.epoch_size.log_bytes // (1 + self.turns.large_running), 1)

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

    def run(self, plan: EpochPlan, started: float) -> Outcome:
        """Run and publish a planned epoch.

        Raises:
            ConflictError: ``EPOCH_SUPERSEDED``: it must be planned again.
        """
        is_large = plan.scan is not None or self.epoch_size.is_looked_at(plan.log_bytes)
        with self.turns.large(is_large):
            return self._run(plan, started, is_large)

    def _run(self, plan: EpochPlan, started: float, is_looked_at: bool) -> Outcome:
        executor = self.executor(choose(plan, self.settings, tuple(self._factories)))
        memory = EpochMemory((self.base, self.views), is_looked_at)
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

        try:
            rows = publish(self.views, plan, result.writes, result.executor, self.clock, check, note)
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

    def _plan(
        self,
        base: ReadTransaction,
        views: ReadTransaction,
        catalog: Catalog,
        members: Members,
        limit: int | None,
        rows_max: int,
        bytes_max: int | None,
    ) -> EpochPlan | None:
        """Plan the next epoch, of so much of the log, behind the views that it reads in other cadences."""
        if is_build(members.cadence):
            return _plan_build(base, views, members, limit, rows_max, bytes_max)
        below = _views_elsewhere(catalog, [catalog.views[v] for v in members.compilation.views], members.cadence)
        if is_joining(catalog, views, members.cadence):
            # Between the two steps of a swap: only who finishes it may go on.
            return None
        records = [(read_cadence(views, view.cadence), read_view(views, view.id)) for view in below]
        bounds = [cadence.position for cadence, _ in records if cadence is not None]
        bound = min([*bounds, *([] if limit is None else [limit])], default=None)
        failed = [record.position for _, record in records if record is not None and record.is_failed]
        if not failed or bound is None:
            return plan_epoch(base, views, members, rows_max, bound, bytes_max)
        # A view below shows an older state than its cadence has reached. Where that is, this one fails as well; in
        # between it might be good, and would be ahead of what it reads.
        if len(set(bounds)) == 1 and bound == bounds[0]:
            plan = plan_epoch(base, views, members, _ALL, bound)
            if plan is None or plan.to == bound:
                return plan
        return plan_epoch(base, views, members, rows_max, min(bound, *failed), bytes_max)

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
        below = _views_elsewhere(catalog, members_of(catalog, cadence), cadence)
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


def _plan_build(
    base: ReadTransaction,
    views: ReadTransaction,
    members: Members,
    limit: int | None,
    rows_max: int,
    bytes_max: int | None,
) -> EpochPlan | None:
    """Plan the next epoch of a build that is filled: with borrowed state, to where the lender stands; else None."""
    record = read_cadence(views, members.cadence)
    if record is None or record.build is not None:
        return None
    if record.loan is None:
        return plan_epoch(base, views, members, rows_max, limit, bytes_max)
    lender = read_cadence(views, record.loan.lender)
    if lender is None:
        return None
    members = replace(members, borrowed=borrowed_by(record, members.compilation.circuit))
    plan = plan_epoch(base, views, members, _ALL, lender.position)
    return plan if plan is not None and plan.to == lender.position else None


def consumer(cadence: str) -> str:
    """Return the name under which ``cadence`` holds the log."""
    return f"cadence/{cadence}"


def is_build(cadence: str) -> bool:
    """Return whether views are filled in ``cadence``."""
    return cadence.startswith(BUILD_PREFIX)


def is_joining(catalog: Catalog, txn: ReadTransaction, cadence: str) -> bool:
    """Return whether a view's state has joined ``cadence`` and the catalog does not say so yet."""
    filling = (v for v in catalog.views.values() if v.state == BUILDING)
    records = (read_view(txn, view.id) for view in filling if view.cadence != cadence)
    return any(r is not None and r.state.startswith(f"{cadence}/") for r in records)


def members_of(catalog: Catalog, cadence: str) -> tuple[ViewDefinition, ...]:
    """Return the views that refresh with ``cadence``."""
    live = (v for v in catalog.views.values() if v.cadence == cadence and v.state in (ACTIVE, BUILDING))
    return tuple(sorted(live, key=lambda v: v.id))


def _views_elsewhere(catalog: Catalog, views: Iterable[ViewDefinition], cadence: str) -> list[ViewDefinition]:
    """Return the ACTIVE views of other cadences that ``views`` of ``cadence`` read, each once."""
    found = {
        below.id: below
        for view in views
        for below in _views_below(catalog, view)
        if below.cadence != cadence and below.state == ACTIVE
    }
    return list(found.values())


def _views_below(catalog: Catalog, view: ViewDefinition) -> tuple[ViewDefinition, ...]:
    found: dict[int, ViewDefinition] = {}
    waiting = [i for i in view.read_ids if i in catalog.views]
    while waiting:
        below = catalog.views[waiting.pop()]
        if below.id not in found:
            found[below.id] = below
            waiting += [i for i in below.read_ids if i in catalog.views]
    return tuple(found.values())
