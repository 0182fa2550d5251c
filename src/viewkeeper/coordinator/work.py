"""What is asked of whoever holds the maintainer's lock, done the same way by the asker itself and by a maintainer."""

from __future__ import annotations

from collections.abc import Collection

from viewkeeper.coordinator import builds
from viewkeeper.coordinator.core import Coordinator, Outcome, Published
from viewkeeper.coordinator.requests import Request
from viewkeeper.errors import ViewkeeperError
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import BUILDING


def perform(
    coordinator: Coordinator,
    request: Request,
    progress: builds.Progress | None = None,
    published: Published | None = None,
) -> list[Outcome]:
    """Do what ``request`` asks for, and return the epochs that were run.

    The caller holds the maintainer's lock, and has put the store in order (``upkeep.begin``).

    Args:
        coordinator: runs the epochs.
        request: refresh cadences, or fill a view.
        progress: called while a view is filled.
        published: called after each other epoch.

    Raises:
        ViewkeeperError: what keeps it from being done.
    """
    if request.kind == "build":
        return builds.build(coordinator, request.view, progress, published)
    return coordinator.catch_up_each(request.cadences, request.position, published)


def is_moot(error: ViewkeeperError) -> bool:
    """Return whether work failed since nobody wants it any more: its view was dropped or replaced meanwhile."""
    return error.code == "VIEW_CHANGED"


def unfinished(catalog: Catalog, wanted: Collection[int] | None = None) -> list[Request]:
    """Return the requests that fill views whose creator may have died while it filled them.

    Args:
        catalog: tables and views.
        wanted: only these views, and new versions of them; None for all.
    """
    building = (view for view in catalog.views.values() if view.state == BUILDING)
    return [
        Request("build", view=view.id)
        for view in building
        if wanted is None or view.id in wanted or view.replaces in wanted
    ]
