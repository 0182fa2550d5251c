"""The next epoch of a cadence: how far it may go by the log, by what its views read elsewhere, by what they borrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.coordinator.cadences import is_build, is_joining, views_elsewhere
from viewkeeper.pipeline.epoch import EpochPlan, Members, plan_epoch
from viewkeeper.pipeline.loans import borrowed_by, ends_of_following
from viewkeeper.pipeline.records import read_cadence, read_view
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
    failed = {r.view: r.position for _, r in records if r is not None and r.is_failed}
    if not failed or bound is None:
        return plan_epoch(base, views, members, rows_max, bound, bytes_max)
    # A view below shows an older state than its cadence has reached. Where that is, this one fails as well; in between
    # it might be good, and would be ahead of what it reads, so it shows nothing of that.
    if len(set(bounds)) == 1 and bound == bounds[0]:
        plan = plan_epoch(base, views, members, rows_max, bound, bytes_max)
        return plan if plan is None or plan.to == bound else replace(plan, waiting=_waiting(catalog, plan, failed))
    return plan_epoch(base, views, members, rows_max, min(bound, *failed.values()), bytes_max)


def _waiting(catalog: Catalog, plan: EpochPlan, failed: Mapping[int, int]) -> dict[int, str]:
    """Return the views of an epoch that would be ahead of FAILED ones elsewhere, and one of these each.

    Args:
        catalog: has the views.
        plan: the epoch.
        failed: what FAILED views show, by their ids.
    """
    found: dict[int, str] = {}
    for id_ in plan.members.compilation.views:
        for below in views_elsewhere(catalog, [catalog.views[id_]], plan.members.cadence):
            if failed.get(below.id, plan.to) < plan.to:
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
