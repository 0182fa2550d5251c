"""Keeping views fresh: refresh, waiting for one's own writes, and continuous maintenance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewkeeper.coordinator import requests, upkeep, work
from viewkeeper.coordinator.core import Outcome
from viewkeeper.coordinator.upkeep import must_be_filled_anew
from viewkeeper.errors import InputError, ViewFailed, ViewkeeperError, WaitTimeout
from viewkeeper.expressions.errors import remedy
from viewkeeper.log.position import Position
from viewkeeper.pipeline.layouts import STATE_OUTDATED
from viewkeeper.pipeline.records import ViewRecord, read_view
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, NEEDS_REBUILD, ViewDefinition

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

Progress = Callable[[int, int, Outcome], None]


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did.

    Args:
        epochs: epochs published.
        log_rows: log rows read.
        rows: view rows changed.
        seconds: how long it took.
        executors: the executors that ran the epochs.
        position: the log position that the views now show.
    """

    epochs: int
    log_rows: int
    rows: int
    seconds: float
    executors: tuple[str, ...]
    position: Position

    @property
    def executor(self) -> str:
        """The executors in one word or two; ``none`` where nothing waited."""
        return " and ".join(self.executors) or "none"


def wanted_views(catalog: Catalog, names: Sequence[str]) -> tuple[ViewDefinition, ...]:
    """Return the views called ``names``; all that serve where none are named."""
    if names:
        return tuple(catalog.view(name) for name in names)
    return tuple(v for v in catalog.views.values() if v.replaces is None)


def refresh(engine: Engine, names: Sequence[str], full: bool = False, progress: Progress | None = None) -> Refreshed:
    """Bring views up to the log's end.

    Raises:
        ViewFailed: after all epochs, naming the views that cannot show the current answer.
        InputError: ``VIEW_NOT_FOUND``, or ``VIEW_SUSPENDED`` for a view that was named.
        ConflictError: ``NEEDS_REBUILD`` for a view that was named, or whose state another version wrote.
    """
    started = engine.clock.monotonic_seconds()
    outcomes: list[Outcome] = []
    catalog = engine.coordinator.catalog()
    views = wanted_views(catalog, names)
    for view in views:
        if names and view.state not in (ACTIVE, BUILDING):
            raise not_refreshing(view)
    for request in work.unfinished(catalog, {view.id for view in views}):
        try:
            outcomes += _perform(engine, request, progress)
        except ViewkeeperError as error:
            if not work.is_moot(error):
                raise
    if full:
        for view in views:
            outcomes += rebuild_in_full(engine, view, progress)
    views = wanted_views(engine.coordinator.catalog(), names)
    serving = {view.id for view in views if view.state == ACTIVE}
    head = engine.coordinator.head()
    outcomes += run_until(engine, views, head)
    seconds = engine.clock.monotonic_seconds() - started
    used = tuple(dict.fromkeys(o.executor for o in outcomes))
    rows = sum(o.view_rows for o in outcomes)
    done = Refreshed(len(outcomes), sum(o.log_rows for o in outcomes), rows, seconds, used, Position(head))
    views = wanted_views(engine.coordinator.catalog(), names)
    raise_failed(engine, views)
    left = [view for view in views if view.state == NEEDS_REBUILD]
    left = [view for view in left if view.id in serving or STATE_OUTDATED in (view.reason or "")]
    if left:
        raise must_be_filled_anew(*left)
    return done


def rebuild_in_full(engine: Engine, view: ViewDefinition, progress: Progress | None) -> list[Outcome]:
    """Fill ``view`` anew from the base tables beside what it shows, with the views of its cadence that read it."""
    from viewkeeper.database.definitions import rebuild

    id_ = rebuild(engine, view.name, f"REFRESH MATERIALIZED VIEW {view.name} FULL")
    return [] if id_ is None else fill(engine, id_, progress)


def fill(engine: Engine, view: int, progress: Progress | None = None) -> list[Outcome]:
    """Fill a BUILDING view, here or by the maintainer that runs elsewhere.

    Raises:
        ViewkeeperError: what keeps it from being filled, and what there is of the view by now.
    """
    try:
        return _perform(engine, requests.Request("build", view=view), progress)
    except ViewkeeperError as error:
        left = _left_building(engine.coordinator.catalog(), view)
        raise type(error)(error.code, f"{error.message}{left}", error.details) from error


def fill_all(engine: Engine, views: Sequence[int], progress: Progress | None) -> None:
    """Fill BUILDING views, as ``fill``, and tell which cannot be computed now, those among them that read others.

    Raises:
        ViewFailed: after all, naming the views that cannot show the current answer.
    """
    catalog = engine.coordinator.catalog()
    readers = [reader.id for view in views for reader in catalog.dependants(view) if reader.state == BUILDING]
    for view in views:
        fill(engine, view, progress)
    catalog = engine.coordinator.catalog()
    filled = dict.fromkeys((*views, *readers))
    raise_failed(engine, [catalog.views[view] for view in filled if view in catalog.views])


def _left_building(catalog: Catalog, view: int) -> str:
    """Return what there is of a view whose filling has failed, to stand behind a sentence; "" where nothing is."""
    version = catalog.views.get(view)
    if version is None or version.state != BUILDING:
        return ""
    again = f"REFRESH MATERIALIZED VIEW {version.name}"
    if version.replaces is None:
        drop = f"DROP MATERIALIZED VIEW {version.name}"
        return f" View {version.name!r} is there now, BUILDING and without rows: {again} goes on, {drop} gives it up."
    return f" View {version.name!r} shows what it showed; {again} goes on to fill its new version."


def _perform(engine: Engine, request: requests.Request, progress: Progress | None = None) -> list[Outcome]:
    """Do what ``request`` asks for, here or by the maintainer that runs elsewhere."""

    def here() -> list[Outcome]:
        with engine.turn:
            upkeep.begin(engine.coordinator)
            outcomes = work.perform(engine.coordinator, request, progress)
            if request.kind == "refresh":
                upkeep.purge(engine.coordinator)
        return outcomes

    lock = engine.store.lock
    if lock is None:
        return here()
    return requests.run_or_hand_over(engine.store.base, lock, engine.clock, request, here)


def run_until(engine: Engine, views: Sequence[ViewDefinition], position: int) -> list[Outcome]:
    """Run the epochs that bring ``views`` to ``position``, here or by the maintainer that runs elsewhere."""
    cadences = tuple(dict.fromkeys(v.cadence for v in views if v.state == ACTIVE))
    behind = [c for c in cadences if _position(engine, c) < position]
    if not behind:
        return []
    return _perform(engine, requests.Request("refresh", cadences=tuple(behind), position=position))


def _position(engine: Engine, cadence: str) -> int:
    record = engine.coordinator.record(cadence)
    return -1 if record is None else record.position


def not_refreshing(view: ViewDefinition) -> ViewkeeperError:
    """Return the error for a view that does not follow the log."""
    if view.state == NEEDS_REBUILD:
        return must_be_filled_anew(view)
    remedy = f"ALTER MATERIALIZED VIEW {view.name} RESUME"
    return InputError(f"VIEW_{view.state}", f"View {view.name!r} is {view.state}: {remedy}.")


def records_of(engine: Engine, views: Sequence[ViewDefinition]) -> list[ViewRecord | None]:
    """Return what is published of ``views``."""
    with engine.store.views.read() as txn:
        return [read_view(txn, view.id) for view in views]


def raise_failed(engine: Engine, views: Sequence[ViewDefinition]) -> None:
    """Raise ViewFailed naming those of ``views`` that cannot show the current answer."""
    pairs = zip(views, records_of(engine, views), strict=True)
    failed = {v.name: r for v, r in pairs if r is not None and r.is_failed and v.state != NEEDS_REBUILD}
    if not failed:
        return
    empty = "; ".join(_why_failed(name, record) for name, record in failed.items() if record.position < 0)
    kept = "; ".join(_why_failed(name, record) for name, record in failed.items() if record.position >= 0)
    message = (
        (f"These views are there, FAILED and without rows: {empty}. " if empty else "")
        + (f"These views stay at their last good epoch: {kept}. " if kept else "")
        + "They go on by themselves when the rows are mended; the query is changed by CREATE OR REPLACE"
        + (", and DROP MATERIALIZED VIEW gives a view up." if empty else ".")
    )
    details = {"views": {n: [(f.reason, f.key) for f in r.failures] for n, r in failed.items()}}
    raise ViewFailed("VIEW_FAILED", message, details)


def _why_failed(name: str, record: ViewRecord) -> str:
    first = record.failures[0]
    more = f" and {record.failure_count - 1} more" if record.failure_count > 1 else ""
    return f"{name!r}: {first.reason} at {first.key}{more}{remedy(first.reason)}"


def _sequence_number(position: object) -> int:
    if not isinstance(position, Position):
        message = f"A position is what a write returned, or Position.parse of its text, not {position!r}."
        raise InputError("INVALID_POSITION", message)
    return position.sequence_number


def wait_for(engine: Engine, position: Position, names: Sequence[str], timeout_seconds: float) -> None:
    """Return when ``names`` (default all) show ``position``.

    Raises:
        WaitTimeout: ``WAIT_TIMEOUT``.
        ViewFailed, InputError, ConflictError: at once, for a view that will not get there by itself.
    """
    deadline = engine.clock.monotonic_seconds() + timeout_seconds
    target = _sequence_number(position)
    if target > engine.coordinator.head():
        raise InputError(
            "POSITION_AHEAD",
            f"Position {position} is ahead of the log: wait for one that a write to this store returned.",
        )
    while True:
        views = wanted_views(engine.coordinator.catalog(), names)
        for view in views:
            if view.state not in (ACTIVE, BUILDING):
                raise not_refreshing(view)
        records = records_of(engine, views)
        behind = [v for v, r in zip(views, records, strict=True) if r is None or r.position < target]
        if not behind:
            return
        raise_failed(engine, behind)
        if engine.clock.monotonic_seconds() >= deadline:
            names_behind = ", ".join(v.name for v in behind)
            message = (
                f"After {timeout_seconds:g} s these views are still behind position {position}: {names_behind}. "
                "Wait longer, or see by status what keeps them."
            )
            raise WaitTimeout("WAIT_TIMEOUT", message + _troubles(engine))
        lock = engine.store.lock
        if lock is None or lock.holder() is None or any(v.cadence.startswith("on-demand") for v in behind):
            run_until(engine, behind, target)
        else:
            engine.clock.sleep(engine.settings.poll_interval_seconds)


def _troubles(engine: Engine) -> str:
    """Return what keeps the maintainer from its work, to stand behind a sentence."""
    holder = None if engine.store.lock is None else engine.store.lock.holder()
    troubles = () if holder is None else holder.troubles
    return "".join(f" The maintainer has trouble {t.task}: [{t.code}] {t.message}" for t in troubles)
