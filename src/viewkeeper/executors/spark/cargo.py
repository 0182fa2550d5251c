"""What travels to the tasks of an epoch, small, and unpacked once a worker rather than once a task.

The views of a cadence stay the same for many epochs, so they travel as one string of bytes that each worker unpacks
when it first sees it and keeps, codecs and all; the rest of the plan is a few numbers.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any

from viewkeeper.clock import new_identifier
from viewkeeper.errors import StoreError
from viewkeeper.pipeline.differences import Part
from viewkeeper.pipeline.epoch import EpochPlan, Members
from viewkeeper.pipeline.intake import Share
from viewkeeper.pipeline.ring import Ring
from viewkeeper.store.key_value import Space

OpenSpaces = Callable[[], tuple[Space, Space]]

# What opening a folder fails with where another machine has the store.
_ELSEWHERE = frozenset({"NOT_A_STORE", "STORE_NOT_FOUND"})


@dataclass(frozen=True)
class Cargo:
    """What every task of an epoch gets.

    Args:
        members: the cadence's views, packed.
        plan: the rest of the plan.
        shares: per partition, what it reads at level 0.
        comparisons: per partition, what it compares of what was recomputed; nothing where no view was.
        levels: how many levels the circuit has.
        open_spaces: opens the store: base and views.
        staging_path: the folder of staged files.
        run: an identifier of the job, for the names of its staged files.
    """

    members: bytes
    plan: Mapping[str, Any]
    shares: tuple[tuple[Share, ...], ...]
    comparisons: tuple[tuple[Part, ...], ...]
    levels: int
    open_spaces: OpenSpaces
    staging_path: str
    run: str

    @property
    def partitions(self) -> int:
        """How many tasks a stage has."""
        return len(self.shares)

    @property
    def stages(self) -> int:
        """How many stages the job has: one a level, and one that compares."""
        return self.levels + bool(self.comparisons)

    def epoch_plan(self) -> EpochPlan:
        """Return the plan that was loaded."""
        return EpochPlan(members=unpack_members(self.members), **self.plan)


def load(
    plan: EpochPlan,
    shares: tuple[tuple[Share, ...], ...],
    comparisons: tuple[tuple[Part, ...], ...],
    open_spaces: OpenSpaces,
    staging_path: str,
) -> Cargo:
    """Return what the tasks of ``plan`` need.

    Args:
        plan: the epoch.
        shares: per partition, what it reads at level 0.
        comparisons: per partition, what it compares of what was recomputed.
        open_spaces: opens the store in a worker.
        staging_path: the folder of staged files.
    """
    rest = {f.name: getattr(plan, f.name) for f in fields(plan) if f.name not in ("members", "choices", "waiting")}
    levels = plan.members.circuit.levels
    packed, run = pack_members(plan.members), new_identifier()
    return Cargo(packed, rest, shares, comparisons, levels, open_spaces, staging_path, run)


class _Pickler(pickle.Pickler):
    """Pickles frozen dataclasses by their fields: codecs that they have cached are neither small nor picklable."""

    def reducer_override(self, obj: Any) -> Any:
        if is_dataclass(obj) and not isinstance(obj, type) and type(obj).__dataclass_params__.frozen:  # type: ignore[attr-defined]
            return type(obj), tuple(getattr(obj, f.name) for f in fields(obj))
        return NotImplemented


def pack_members(members: Members) -> bytes:
    """Return ``members`` as bytes, equal for equal members of one process."""
    target = BytesIO()
    _Pickler(target, pickle.HIGHEST_PROTOCOL).dump(members)
    return target.getvalue()


@lru_cache(maxsize=16)
def unpack_members(packed: bytes) -> Members:
    """Return the members that ``pack_members`` packed: in one process, one object for equal bytes."""
    members: Members = pickle.loads(packed)
    return members


@lru_cache(maxsize=4)
def opened(open_spaces: OpenSpaces) -> tuple[Space, Space]:
    """Return the spaces that ``open_spaces`` opens; a worker keeps those of the stores it last worked for open.

    Raises:
        StoreError: ``STORE_NOT_SHARED`` where this worker does not see the folder that the driver has open.
    """
    try:
        return open_spaces()
    except StoreError as error:
        if error.code not in _ELSEWHERE:
            raise
        host, path = socket.gethostname(), error.details.get("path")
        message = (
            f"The Spark worker on {host} does not see the store {path}, which the driver has open: keep the store on a "
            "path that all machines of the cluster share, or run Spark on the driver's machine alone."
        )
        raise StoreError("STORE_NOT_SHARED", message, {"path": path, "host": host, "cause": str(error)}) from error


@contextmanager
def borrowed(open_spaces: OpenSpaces) -> Iterator[tuple[Space, Space]]:
    """Open the spaces for a moment, in a process that is not ours to keep a store open in."""
    spaces = open_spaces()
    try:
        yield spaces
    finally:
        for space in spaces:
            close = getattr(space, "close", None)
            if close is not None:
                close()


@lru_cache(maxsize=16)
def ring_of(owners: int) -> Ring:
    """Return the ring of ``owners`` equal owners."""
    return Ring(owners)
