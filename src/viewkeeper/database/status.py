"""What there is and how fresh it is, as data: views, cadences, log, maintainer, readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from viewkeeper.coordinator.outdated import reasons_by_view
from viewkeeper.coordinator.retries import Trouble
from viewkeeper.errors import ViewkeeperError
from viewkeeper.evaluation.scrub import view_wrong
from viewkeeper.log import reader, retention
from viewkeeper.pipeline.decisions import read_decision, read_figures
from viewkeeper.pipeline.policy import FULL, INCREMENTAL, Choice, reason
from viewkeeper.pipeline.records import CadenceRecord, ViewRecord, publishing_count, read_cadences, read_view
from viewkeeper.pipeline.scrubs import WRONG, ScrubRecord, read_scrubs
from viewkeeper.plan.limits import recomputed
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import BUILDING, NEEDS_REBUILD, ViewDefinition

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

HINT = "Nobody maintains this store: run `viewkeeper maintain`, or call db.maintain() or db.refresh()."


def status(engine: Engine) -> dict[str, Any]:
    """Return the state of the store."""
    catalog = engine.coordinator.catalog()
    with engine.store.base.read() as base, engine.store.views.read() as views:
        head = reader.head(base)
        cadences = {c.name: c for c in read_cadences(views)}
        held = retention.consumers(base)
        scrubs = read_scrubs(views)
        rows = [
            _view(engine, view, base, views, head)
            | {"filled": _filled(view, cadences.get(view.cadence)), "scrubbed": _scrubbed(scrubs.get(view.id))}
            | {"recomputed": _recomputed(engine, catalog, view)}
            for view in _marked(engine, catalog, views)
        ]
        count = publishing_count(views)
        tables = [
            {"name": t.name, "rows": base.count(f"t{t.id}"), "columns": len(t.schema)} for t in catalog.tables.values()
        ]
    oldest = _oldest_reader(engine)
    holder = None if engine.store.lock is None else engine.store.lock.holder()
    maintainer = None if holder is None else {"process_id": holder.pid, "host": holder.host}
    waiting = () if holder is None else holder.troubles
    return {
        "store": engine.store.location or "memory",
        "position": head,
        "publishings": count,
        "maintainer": maintainer,
        "hint": _hint(catalog, holder is not None),
        "troubles": [_trouble(trouble) for trouble in (*waiting, *_found_wrong(engine, catalog, scrubs))],
        "tables": tables,
        "views": rows,
        "cadences": [
            {"name": c.name, "epoch": c.epoch, "position": c.position, "behind": head - c.position}
            for c in cadences.values()
        ],
        "log": [
            {
                "consumer": h.consumer.name,
                "kind": h.consumer.kind,
                "position": h.consumer.position,
                "held_bytes": h.log_bytes,
                "needs_rebuild": h.consumer.needs_rebuild,
            }
            for h in held
        ],
        "bytes": {"base": engine.store.base.size_bytes(), "views": engine.store.views.size_bytes()},
        "oldest_reader": None if oldest is None else {"process_id": oldest[0], "age_seconds": oldest[1]},
    }


def hint(engine: Engine) -> str | None:
    """Return what to run where nobody maintains the views that wait for it, None where somebody does or none waits."""
    is_maintained = engine.store.lock is not None and engine.store.lock.holder() is not None
    return _hint(engine.coordinator.catalog(), is_maintained)


def _hint(catalog: Catalog, is_maintained: bool) -> str | None:
    waits = any(view.refresh.kind != "ON_DEMAND" for view in catalog.views.values())
    return HINT if waits and not is_maintained else None


def _oldest_reader(engine: Engine) -> tuple[int, float] | None:
    """Return who holds back most of a space; of two spaces, whose age is not known, or who has read for longer."""
    first = [readers[0] for space in (engine.store.base, engine.store.views) if (readers := space.readers())]
    return max(first, key=lambda reader: (reader[1] < 0, reader[1]), default=None)


def _marked(engine: Engine, catalog: Catalog, txn: ReadTransaction) -> list[ViewDefinition]:
    """Return the views, marked as they will be where somebody maintains them with this version of Viewkeeper.

    Who maintains them now has marked them itself.
    """
    views = list(catalog.views.values())
    if engine.store.lock is not None and engine.store.lock.holder() is not None:
        return views
    try:
        reasons = reasons_by_view(engine.coordinator, txn, catalog)
    except ViewkeeperError:
        # A view that cannot be planned here says so where it is refreshed; status tells of all others.
        return views
    return [replace(v, state=NEEDS_REBUILD, reason=reasons[v.id]) if v.id in reasons else v for v in views]


def _view(engine: Engine, view: ViewDefinition, base: Any, views: Any, head: int) -> dict[str, Any]:
    record = read_view(views, view.id)
    refresh = {"CONTINUOUS": "CONTINUOUS", "ON_DEMAND": "ON DEMAND"}.get(
        view.refresh.kind, f"EVERY {view.refresh.every_seconds:g} SECONDS" if view.refresh.every_seconds else ""
    )
    found: dict[str, Any] = {
        "name": view.name,
        "state": "FAILED" if record is not None and record.is_failed and view.state != NEEDS_REBUILD else view.state,
        "refresh": refresh,
        "cadence": view.cadence,
        "rows": 0 if record is None else views.count(record.state),
        "position": None if record is None else record.position,
        "behind": None if record is None else head - record.position,
        "rows_behind": None
        if record is None or record.position < 0
        else reader.rows_waiting(base, record.position, head),
        "published": None if record is None else datetime.fromtimestamp(record.published_seconds, UTC),
        "executor": None if record is None else record.executor,
        "policy": view.policy,
        "way": None if record is None else record.way or None,
        "why": None if record is None else record.why or None,
        "decision": _last_reason(views, view, record),
        "failures": [],
        "failure_count": 0,
        "reason": view.reason,
    }
    if record is not None and record.is_failed:
        found["failures"] = [{"reason": f.reason, "key": f.key} for f in record.failures]
        found["failure_count"] = record.failure_count
    return found


def _recomputed(engine: Engine, catalog: Catalog, view: ViewDefinition) -> str | None:
    """Return the code of what every change to a view's rows computes anew as a whole, None where there is nothing."""
    try:
        return recomputed(engine.coordinator.planner.plan(catalog, catalog.views[view.id]).root)
    except ViewkeeperError:
        # A view that cannot be planned here says so where it is refreshed; status tells of all others.
        return None


def _filled(view: ViewDefinition, cadence: CadenceRecord | None) -> float | None:
    """Return which part of what a view is filled from has been read; None of a view that is not being filled."""
    if view.state != BUILDING or cadence is None:
        return None
    build = cadence.build
    return 1.0 if build is None else build.rows_done / build.rows_total if build.rows_total else 0.0


def _trouble(trouble: Trouble) -> dict[str, Any]:
    """Return work that the maintainer could not do and tries again."""
    return {
        "task": trouble.task,
        "code": trouble.code,
        "message": trouble.message,
        "since": datetime.fromtimestamp(trouble.since_seconds, UTC),
        "attempts": trouble.attempts,
        "pause_seconds": trouble.pause_seconds,
    }


def _scrubbed(record: ScrubRecord | None) -> dict[str, Any] | None:
    """Return what came of the last scrub of a view."""
    if record is None:
        return None
    at = datetime.fromtimestamp(record.at_seconds, UTC)
    return {"at": at, "result": record.result, "rows": record.rows, "note": record.note}


def _found_wrong(engine: Engine, catalog: Catalog, scrubs: Mapping[int, ScrubRecord]) -> list[Trouble]:
    """Return what the scrub has found wrong, which it looks at again when the view's turn comes."""
    return [
        Trouble(
            f"checking view {catalog.views[id_].name}",
            "VIEW_WRONG",
            view_wrong(catalog.views[id_].name, record),
            record.since_seconds,
            record.checks,
            engine.settings.scrub_interval_seconds,
        )
        for id_, record in scrubs.items()
        if record.result == WRONG and id_ in catalog.views
    ]


def _last_reason(txn: ReadTransaction, view: ViewDefinition, record: ViewRecord | None) -> str | None:
    """Return why the last epoch of a view went the way that it went, with its figures where they were kept."""
    if record is None or not record.way:
        return None
    last = read_decision(txn, view.id, read_figures(txn, view.id).decided)
    if last is not None and last.epoch == record.epoch and last.position == record.position:
        return reason(last.choice)
    return reason(Choice(FULL if record.way == FULL else INCREMENTAL, record.why))
