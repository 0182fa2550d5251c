"""State of another layout than this program's: found before anything goes on from it (``operators/layouts.py``).

Each view's record has the layout of its state, written with the first piece that fills it. Where an epoch is planned,
and again under the lock that publishes it, the record is compared with the circuit.
"""

from __future__ import annotations

from viewkeeper.errors import ConflictError
from viewkeeper.pipeline.records import CadenceRecord, ViewRecord, read_view
from viewkeeper.plan.compile import Compilation
from viewkeeper.store.key_value import ReadTransaction

STATE_OUTDATED = "STATE_OUTDATED"


def is_outdated(record: ViewRecord | None, compilation: Compilation) -> bool:
    """Return whether the state behind ``record`` is of another layout; before anything is published there is none."""
    return record is not None and record.layout != compilation.layouts[record.view]


def outdated_views(txn: ReadTransaction, compilation: Compilation) -> tuple[int, ...]:
    """Return ids of the views whose state is of another layout.

    Args:
        txn: a transaction of the views space.
        compilation: the views of a cadence.
    """
    return tuple(id_ for id_ in compilation.views if is_outdated(read_view(txn, id_), compilation))


def has_outdated_fill(txn: ReadTransaction, record: CadenceRecord, compilation: Compilation) -> bool:
    """Return whether a build has been filled, wholly or in part, with state of another layout, or noted old values so.

    Args:
        txn: a transaction of the views space.
        record: the build's.
        compilation: its views.
    """
    if record.loan is not None and not record.loan.marks:
        return True
    has_pieces = record.build is None or (record.build.is_begun and record.build.table >= 0)
    return has_pieces and bool(outdated_views(txn, compilation))


def check_layouts(txn: ReadTransaction, compilation: Compilation) -> None:
    """Refuse to go on from state of another layout.

    Args:
        txn: a transaction of the views space.
        compilation: the views of a cadence.

    Raises:
        ConflictError: ``STATE_OUTDATED``.
    """
    found = outdated_views(txn, compilation)
    if found:
        raise state_is_outdated(found)


def state_is_outdated(views: tuple[int, ...]) -> ConflictError:
    """Return the error of an epoch over state of another layout."""
    message = (
        "Another version of Viewkeeper wrote state that an epoch needs, under other names or in another form: refresh"
        " again; the views are then NEEDS_REBUILD, and ALTER MATERIALIZED VIEW … RESUME fills them anew."
    )
    return ConflictError(STATE_OUTDATED, message, {"views": list(views)})
