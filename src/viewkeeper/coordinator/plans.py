"""The next epoch of a cadence: how far it may go by the log, by what its views read elsewhere, by what they borrow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from viewkeeper.coordinator.cadences import is_build, is_joining, views_elsewhere
from viewkeeper.expressions.errors import READS_FAILED_VIEW
from viewkeeper.pipeline.epoch import EpochPlan, Members, plan_epoch
from viewkeeper.pipeline.loans import borrowed_by, ends_of_following
from viewkeeper.pipeline.records import CadenceRecord, ViewRecord, read_cadence, read_view
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.views.catalog import Catalog

# More rows than any log holds.
ALL_ROWS = 1 << 62


def next_epoch(
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
    below = views_elsewhere(catalog, [catalog.views[v] for v in members.compilation.views], members.cadence)
    if is_joining(catalog, views, members.cadence):
        # Between the two steps of a swap: only who finishes it may go on.
        return None
    records = [(read_cadence(views, view.cadence), read_view(views, view.id)) for view in below]
    bounds = [cadence.position for cadence, _ in records if cadence is not None]
    bound = min([*bounds, *([] if limit is None else [limit])], default=None)
    plan = plan_epoch(base, views, members, rows_max, bound, bytes_max)
    ahead = set() if plan is None else {r.view for c, r in records if r is not None and _shows_less(plan.to, c, r)}
    return plan if plan is None or not ahead else replace(plan, waiting=_waiting(catalog, plan, ahead))


def _shows_less(position: int, cadence: CadenceRecord | None, view: ViewRecord) -> bool:
    """Return whether a view that reads the FAILED ``view`` might be good at ``position``, and so ahead of it.

    Where the cadence of ``view`` stands, its readers fail as well, unless it only waits for what it reads itself.
    """
    if not view.is_failed or view.position >= position:
        return False
    waits = any(failure.reason == READS_FAILED_VIEW for failure in view.failures)
    return waits or cadence is None or cadence.position != position


def _waiting(catalog: Catalog, plan: EpochPlan, ahead: Collection[int]) -> dict[int, str]:
    """Return the views of an epoch that must show nothing of it, each with a view elsewhere that it would be ahead of.

    Args:
        catalog: has the views.
        plan: the epoch.
        ahead: ids of the FAILED views that show less.
    """
    found: dict[int, str] = {}
    for id_ in plan.members.compilation.views:
        for below in views_elsewhere(catalog, [catalog.views[id_]], plan.members.cadence):
            if below.id in ahead:
                found[id_] = below.name
    return found


def _plan_build(
    base: ReadTransaction,
    views: ReadTransaction,
    members: Members,
    limit: int | None,
    rows_max: int,
    bytes_max: int | None,
) -> EpochPlan | None:
    """Plan the next epoch of a build that is filled.

    With borrowed state it ends where the lender stands or at a mark before, as far as the bounds allow but at the first
    mark at least; None where DDL stands between.
    """
    record = read_cadence(views, members.cadence)
    if record is None or record.build is not None:
        return None
    if record.loan is None:
        return plan_epoch(base, views, members, rows_max, limit, bytes_max)
    members = replace(members, borrowed=borrowed_by(record, members.compilation.circuit))
    chosen = None
    for end in ends_of_following(views, record):
        plan = plan_epoch(base, views, members, ALL_ROWS, end)
        if plan is None or plan.to != end:
            break
        if chosen is not None and (plan.rows > rows_max or (bytes_max is not None and plan.log_bytes > bytes_max)):
            break
        chosen = plan
    return chosen
