"""Work handed to the maintainer of another process, and its answers.

One process maintains a store at a time. Others that need an epoch or a new view filled write a request into the base
space; the maintainer answers in the same place. When it dies, the lock falls free and the asker does the work itself.
When the asker dies, whoever keeps the store in order removes its request, answered or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from viewkeeper.clock import Clock, new_identifier
from viewkeeper.coordinator.core import Outcome
from viewkeeper.coordinator.retries import Trouble
from viewkeeper.errors import ConflictError, StoreError, ViewkeeperError
from viewkeeper.log.processes import ProcessMark
from viewkeeper.store.key_value import ReadTransaction, Space

DATABASE = "requests"
ANSWERING = "answering requests"
_POLL_SECONDS = 0.005


class Holder(Protocol):
    """Who has the maintainer's lock."""

    @property
    def troubles(self) -> Sequence[Trouble]:
        """What it could not do, and tries again."""


class Lock(Protocol):
    """The maintainer's lock."""

    @property
    def held(self) -> bool:
        """Whether this process has it, by this object."""

    def acquire(self, blocking: bool = False) -> None:
        """Take it; ConflictError MAINTAINER_RUNNING where somebody has it."""

    def release(self) -> None:
        """Give it back."""

    def holder(self) -> Holder | None:
        """Return who has it."""


@dataclass(frozen=True)
class Request:
    """Something to do: ``refresh`` cadences up to a position, or ``build`` a view.

    Args:
        kind: ``refresh`` or ``build``.
        cadences: which to refresh.
        position: up to where.
        view: which view to fill.
        outcomes: the answer: epochs that were run; None while it waits.
        error: the answer: code and message of what went wrong.
        asker: the process that waits for the answer.
    """

    kind: str
    cadences: tuple[str, ...] = ()
    position: int = 0
    view: int = 0
    outcomes: tuple[Outcome, ...] | None = None
    error: tuple[str, str] | None = None
    asker: ProcessMark = field(default_factory=ProcessMark)


def run_or_hand_over(
    base: Space, lock: Lock, clock: Clock, request: Request, here: Callable[[], list[Outcome]]
) -> list[Outcome]:
    """Do the work here under the maintainer's lock, or let the maintainer elsewhere do it and wait.

    Args:
        base: the base space.
        lock: the maintainer's lock.
        clock: paces the waiting.
        request: the work, for somebody else.
        here: does the work in this process.

    Raises:
        StoreError: what keeps the maintainer from answering, for example ``DISK_FULL``.
        ViewkeeperError: what came of the work.
    """
    name: bytes | None = None
    while True:
        if not _is_acquired(lock):
            if name is None:
                name = ask(base, request)
            answer = _answer(base, name)
            if answer is not None:
                return answer
            _check_answering(base, name, lock)
            clock.sleep(_POLL_SECONDS)
            continue
        try:
            if name is not None:
                _forget(base, name)
            return here()
        finally:
            lock.release()


def _is_acquired(lock: Lock) -> bool:
    """Take the lock where nobody else has it."""
    # Looking is quick, while taking a lock that somebody has tries for a tenth of a second.
    if not lock.held and lock.holder() is not None:
        return False
    try:
        lock.acquire(blocking=False)
    except ConflictError as error:
        if error.code != "MAINTAINER_RUNNING":
            raise
        return False
    return True


def waiting(txn: ReadTransaction) -> Iterator[tuple[bytes, Request]]:
    """Yield the requests that nobody has answered and somebody waits for, in order of their names."""
    for name, request in all_of(txn):
        if request.outcomes is None and request.error is None and not request.asker.is_dead:
            yield name, request


def is_waiting(txn: ReadTransaction, name: bytes) -> bool:
    """Return whether request ``name`` is there and not answered."""
    raw = txn.get(DATABASE, name)
    if raw is None:
        return False
    request = msgspec.msgpack.decode(raw, type=Request)
    return request.outcomes is None and request.error is None


def clear(base: Space) -> int:
    """Remove the requests whose askers are dead, and return how many there were."""
    with base.read() as txn:
        dead = [name for name, request in all_of(txn) if request.asker.is_dead]
    if dead:
        with base.write() as txn:
            txn.multi_delete(DATABASE, dead)
    return len(dead)


def all_of(txn: ReadTransaction) -> Iterator[tuple[bytes, Request]]:
    """Yield all requests, answered ones too, in order of their names."""
    for name, raw in txn.scan(DATABASE):
        yield name, msgspec.msgpack.decode(raw, type=Request)


def reply(base: Space, name: bytes, request: Request, work: Callable[[], list[Outcome]]) -> None:
    """Do ``work`` and write what came of it as the answer to ``request``, where nobody has answered it yet."""
    with base.read() as txn:
        if not is_waiting(txn, name):
            return
    try:
        answered = replace(request, outcomes=tuple(work()))
    except ViewkeeperError as error:
        answered = replace(request, error=(error.code, error.message))
    with base.write() as txn:
        if is_waiting(txn, name):
            txn.put(DATABASE, name, msgspec.msgpack.encode(answered))


def ask(base: Space, request: Request) -> bytes:
    """Write ``request`` for the maintainer to find, and return its name."""
    name = new_identifier().encode()
    with base.write() as txn:
        txn.put(DATABASE, name, msgspec.msgpack.encode(replace(request, asker=ProcessMark.own())))
    return name


def _forget(base: Space, name: bytes) -> None:
    with base.write() as txn:
        txn.delete(DATABASE, name)


def _check_answering(base: Space, name: bytes, lock: Lock) -> None:
    """Give up where the maintainer cannot answer; its own error is news to the asker, and may last."""
    holder = lock.holder()
    for trouble in () if holder is None else holder.troubles:
        if trouble.task == ANSWERING:
            _forget(base, name)
            raise StoreError(trouble.code, f"The maintainer cannot answer: {trouble.message}")


def _answer(base: Space, name: bytes) -> list[Outcome] | None:
    with base.read() as txn:
        raw = txn.get(DATABASE, name)
    if raw is None:
        raise StoreError("REQUEST_LOST", "The request to the maintainer has gone: run it again.")
    request = msgspec.msgpack.decode(raw, type=Request)
    if request.error is not None:
        _forget(base, name)
        raise StoreError(*request.error)
    if request.outcomes is None:
        return None
    _forget(base, name)
    return list(request.outcomes)
