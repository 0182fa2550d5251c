"""REFRESH POLICY as users see it: set, explained beforehand, compared with what it took, and told afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from viewkeeper.database import described, maintenance
from viewkeeper.errors import ConflictError, UnsupportedSql, ViewFailed
from viewkeeper.evaluation.result import Result
from viewkeeper.pipeline.decisions import Decision, read_decisions, read_figures
from viewkeeper.pipeline.layouts import STATE_OUTDATED
from viewkeeper.pipeline.policy import Choice, reason
from viewkeeper.statements import model as st
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE, ViewDefinition
from viewkeeper.zset.schema import BIGINT, DOUBLE, STRING, TIMESTAMP

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

_COLUMNS = (
    ("view", STRING), ("number", BIGINT), ("epoch", BIGINT), ("position", BIGINT), ("way", STRING), ("why", STRING),
    ("changed_rows", BIGINT), ("base_rows", BIGINT), ("incremental_seconds", DOUBLE), ("full_seconds", DOUBLE),
    ("rows", BIGINT), ("seconds", DOUBLE), ("executor", STRING), ("published", TIMESTAMP), ("reason", STRING),
)  # fmt: skip


def set_policy(engine: Engine, s: st.AlterViewPolicy) -> None:
    """ALTER MATERIALIZED VIEW … SET REFRESH POLICY: from the next epoch on; also of a version that is being filled.

    Raises:
        UnsupportedSql: the view has what INCREMENTAL refuses, at its place in the view's query.
    """

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        view = before.view(s.name)
        versions = [view, *(v for v in before.views.values() if v.replaces == view.id)]
        after = before
        for version in versions:
            if s.policy == "INCREMENTAL":
                _check_strict(engine, before, version)
            after = after.with_view(replace(version, policy=s.policy))
        return after, ()

    engine.change_catalog(change, s.sql)


def _check_strict(engine: Engine, catalog: Catalog, view: ViewDefinition) -> None:
    try:
        engine.coordinator.planner.check_strict(catalog, view)
    except UnsupportedSql as error:
        message = f"View {view.name!r} keeps policy {view.policy}. In its query, {error.message}"
        raise UnsupportedSql(error.code, message, error.details) from error


def decisions(engine: Engine, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the decisions that are kept of views, newest first."""
    catalog = engine.coordinator.catalog()
    views = {view.id: view.name for view in maintenance.wanted_views(catalog, names)}
    with engine.store.views.read() as txn:
        found = read_decisions(txn, views)
    found.sort(key=lambda d: (d.published_seconds, d.number, -d.view), reverse=True)
    return [_decision(views[d.view], d) for d in found]


def _decision(name: str, d: Decision) -> dict[str, Any]:
    return {
        "view": name,
        "number": d.number,
        "epoch": d.epoch,
        "position": d.position,
        "way": d.choice.way,
        "why": d.choice.why,
        "changed_rows": d.choice.changed_rows,
        "base_rows": d.choice.base_rows,
        "incremental_seconds": d.choice.incremental_seconds,
        "full_seconds": d.choice.full_seconds,
        "rows": d.rows,
        "seconds": d.seconds,
        "executor": d.executor,
        "published": datetime.fromtimestamp(d.published_seconds, UTC),
        "reason": reason(d.choice),
    }


def show_decisions(engine: Engine, name: str | None) -> Result:
    """SHOW REFRESH DECISIONS [FOR view]."""
    rows = decisions(engine, () if name is None else (name,))
    return described.result_of(_COLUMNS, [tuple(row[column] for column, _ in _COLUMNS) for row in rows])


def _next_choice(engine: Engine, view: ViewDefinition) -> Choice | None:
    """Return how the next epoch would refresh a view; None where nothing waits."""
    plan = engine.coordinator.planned(view.cadence, closely=True)
    return None if plan is None else plan.choices.get(view.id)


def explain_next(engine: Engine, name: str) -> str:
    """Return what the next epoch of a view is predicted to do, for EXPLAIN."""
    view = engine.coordinator.catalog().view(name)
    lines = [f"policy: {view.policy}"]
    if view.state != ACTIVE:
        return "\n".join([*lines, f"next epoch: none, the view is {view.state}"])
    try:
        choice = _next_choice(engine, view)
    except ConflictError as error:
        if error.code != STATE_OUTDATED:
            raise
        waits = f"a refresh marks the views whose state another version of Viewkeeper wrote ({STATE_OUTDATED})"
        return "\n".join([*lines, f"next epoch: none before {waits}"])
    if choice is None:
        return "\n".join([*lines, "next epoch: nothing waits"])
    return "\n".join([*lines, f"next epoch: {reason(choice)}", *_predictions(choice)])


def _predictions(choice: Choice) -> list[str]:
    return [
        f"  incremental: {choice.changed_rows:,} changed rows, {_predicted(choice.incremental_seconds)}",
        f"  full: {choice.base_rows:,} base rows, {_predicted(choice.full_seconds)}",
    ]


def _predicted(seconds: float | None) -> str:
    return "not measured yet" if seconds is None else f"{seconds:.3g} s predicted"


def explain_analyzed(engine: Engine, name: str) -> str:
    """Refresh a view and return what each epoch was predicted to do and what it did, for EXPLAIN ANALYZE."""
    view = engine.coordinator.catalog().view(name)
    with engine.store.views.read() as txn:
        before = read_figures(txn, view.id).decided
    predicted = explain_next(engine, name)
    failed = ""
    with engine.coordinator.ways.measuring_all():
        try:
            done = maintenance.refresh(engine, (name,))
        except ViewFailed as error:
            failed, done = str(error), None
    with engine.store.views.read() as txn:
        epochs = [d for d in reversed(read_decisions(txn, [view.id])) if d.number > before]
    lines = [predicted, *(_compared(d) for d in epochs)]
    if done is not None and not done.epochs:
        lines.append("measured: no epoch, nothing waited")
    elif not epochs:
        lines.append("measured: by the maintainer, in less than 0.02 s")
    return "\n".join([*lines, *([failed] if failed else [])])


def _compared(d: Decision) -> str:
    """Return prediction and measurement of one epoch in a line."""
    predicted, known = d.choice.predicted_rows, d.choice.predicted_seconds
    times = "" if not known else f", {d.seconds / known:.2f} of what was predicted"
    rows = f"{d.rows:,} rows of {predicted:,} predicted"
    return f"measured: epoch {d.epoch} {d.choice.way} by {d.executor}, {rows}, {d.seconds:.3g} s{times}"
