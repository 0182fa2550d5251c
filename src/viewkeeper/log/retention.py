"""How long the log is kept: consumers hold it at their positions, and what all have passed is purged.

A consumer is whoever still needs the log behind a position: a cadence, a subscriber, a running ``scan_as_of``. It
stands in the sub-database ``consumers`` of the base space (name → msgpack of ``Consumer``), so every process sees it.
A consumer that belongs to a process goes when that process is dead. One that holds back more than the limit is marked
NEEDS_REBUILD: it keeps its place in the list, the log goes on without it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from viewkeeper.clock import SYSTEM_CLOCK, Clock, new_identifier
from viewkeeper.errors import ConflictError
from viewkeeper.log.processes import ProcessMark
from viewkeeper.log.reader import bytes_waiting, check_not_purged, head, purged_to, range_of
from viewkeeper.store.changes import DDL, LOG, LOG_ROWS, META, PURGED_KEY, SEQUENCE_KEY
from viewkeeper.store.key_value import ReadTransaction, Space, WriteTransaction

CONSUMERS = "consumers"
PIECES_PER_TRANSACTION = 4_096


class Consumer(msgspec.Struct, frozen=True):
    """Who holds the log, and where.

    Args:
        name: unique among consumers.
        kind: what it is, for example ``cadence``, ``subscriber``, ``scan``.
        position: it has everything up to here; what comes behind is kept for it.
        process_id: the process that it goes with; 0 for one that outlives processes.
        process_mark: tells that process from a later one of the same number; empty where the system does not say.
        host: the machine of that process.
        held_since_seconds: Unix time at which it was registered.
        needs_rebuild: it held back too much and was left behind.
    """

    name: str
    kind: str
    position: int
    process_id: int
    process_mark: str
    host: str
    held_since_seconds: float
    needs_rebuild: bool = False


@dataclass(frozen=True)
class Held:
    """A consumer and how many bytes of the log lie behind its position."""

    consumer: Consumer
    log_bytes: int


@dataclass(frozen=True)
class Purged:
    """What a purge did.

    Args:
        floor: the log up to here is no longer needed.
        pieces: how many pieces were removed.
        dropped: names of consumers whose process is dead.
        left_behind: names of consumers that were marked NEEDS_REBUILD.
    """

    floor: int
    pieces: int
    dropped: tuple[str, ...]
    left_behind: tuple[str, ...]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Consumer).decode


# ---- holding ----


def hold(
    txn: WriteTransaction,
    name: str,
    kind: str,
    position: int | None = None,
    of_this_process: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> int:
    """Register a consumer, in place of one of the same name.

    Args:
        txn: a write transaction of the base space.
        name: unique among consumers.
        kind: what it is.
        position: what comes behind is kept for it; None: the log's head.
        of_this_process: let it go when this process is dead.
        clock: where the time comes from.

    Returns:
        Its position.

    Raises:
        ConflictError: ``LOG_PURGED`` where the log behind ``position`` is no longer complete.
    """
    if position is None:
        position = head(txn)
    check_not_purged(txn, position)
    own = ProcessMark.own() if of_this_process else ProcessMark(host=socket.gethostname())
    consumer = Consumer(name, kind, position, own.process_id, own.start, own.host, clock.now_seconds())
    txn.put(CONSUMERS, name.encode(), _encode(consumer))
    return position


def advance(txn: WriteTransaction, name: str, position: int) -> None:
    """Move a consumer forward: it has everything up to ``position``.

    Args:
        txn: a write transaction of the base space.
        name: the consumer.
        position: where it is now; a smaller one than before does nothing.

    Raises:
        ConflictError: ``CONSUMER_NOT_FOUND``, or ``NEEDS_REBUILD`` where it was left behind.
    """
    consumer = find(txn, name)
    if consumer is None:
        raise ConflictError("CONSUMER_NOT_FOUND", f"No consumer {name!r} holds the log: register it by hold.")
    if consumer.needs_rebuild:
        raise ConflictError(
            "NEEDS_REBUILD",
            f"Consumer {name!r} held back too much of the log and was left behind at {consumer.position}:"
            " fill what it maintains anew.",
            {"consumer": name, "position": consumer.position},
        )
    if position > consumer.position:
        txn.put(CONSUMERS, name.encode(), _encode(msgspec.structs.replace(consumer, position=position)))


def release(txn: WriteTransaction, name: str) -> bool:
    """Remove a consumer; return whether there was one."""
    return txn.delete(CONSUMERS, name.encode())


@contextmanager
def holding(space: Space, kind: str, position: int | None = None, clock: Clock = SYSTEM_CLOCK) -> Iterator[int]:
    """Hold the log behind a position for as long as the block runs, or this process lives.

    Args:
        space: the base space.
        kind: what for, for example ``scan``.
        position: what comes behind is kept; None: the log's head.
        clock: where the time comes from.

    Yields:
        The position.

    Raises:
        ConflictError: ``LOG_PURGED``.
    """
    name = f"{kind}-{new_identifier()}"
    with space.write() as txn:
        position = hold(txn, name, kind, position, of_this_process=True, clock=clock)
    try:
        yield position
    finally:
        with space.write() as txn:
            release(txn, name)


# ---- who holds ----


def find(txn: ReadTransaction, name: str) -> Consumer | None:
    """Return the consumer called ``name``, None where there is none."""
    found = txn.get(CONSUMERS, name.encode())
    return None if found is None else _decode(found)


def consumers(txn: ReadTransaction) -> list[Held]:
    """Return all consumers, by name, with the bytes of the log that each holds back."""
    last = head(txn)
    found = [_decode(record) for _, record in txn.scan(CONSUMERS)]
    return [Held(c, 0 if c.needs_rebuild else bytes_waiting(txn, c.position, last)) for c in found]


def floor(txn: ReadTransaction) -> int:
    """Return up to which sequence number nobody needs the log."""
    positions = [held.consumer.position for held in consumers(txn) if not held.consumer.needs_rebuild]
    return min(positions, default=head(txn))


def is_dead(consumer: Consumer) -> bool:
    """Return whether ``consumer`` belonged to a process of this machine that is no more."""
    return ProcessMark(consumer.process_id, consumer.process_mark, consumer.host).is_dead


# ---- purging ----


def purge(
    space: Space,
    held_bytes_max: int | None = None,
    pieces_per_transaction: int = PIECES_PER_TRANSACTION,
    between: Callable[[], None] = lambda: None,
) -> Purged:
    """Remove the log that every consumer has passed, in write transactions of bounded length.

    Args:
        space: the base space.
        held_bytes_max: consumers that hold back more are marked NEEDS_REBUILD; None: no limit.
        pieces_per_transaction: how many pieces one transaction removes at most.
        between: called after each transaction but the last; a crash there leaves pieces that the next purge removes.

    Returns:
        What was removed, and which consumers went.
    """
    with space.read() as txn:
        before, purged = consumers(txn), purged_to(txn)
        is_new = purged < floor(txn) or _may_change(before, held_bytes_max)
        if not is_new and not _has_rest(txn, purged):
            return Purged(purged, 0, (), ())
    with space.write() as txn:
        dropped, left_behind = _clear(txn, held_bytes_max)
        target = max(floor(txn), purged_to(txn))
        # Written before the first piece goes: from here on nobody can register behind it.
        txn.put(META, PURGED_KEY, SEQUENCE_KEY.pack(target))
    removed: dict[str, int] = {}
    for database, stop in _doomed(target):
        removed[database] = 0
        is_over = False
        while not is_over:
            between()
            with space.write() as txn:
                count = txn.delete_range(database, None, stop, pieces_per_transaction)
            removed[database] += count
            is_over = count < pieces_per_transaction
    return Purged(target, removed[LOG], dropped, left_behind)


def _doomed(target: int) -> tuple[tuple[str, bytes], ...]:
    """Return what goes with the log up to ``target``: sub-databases, and the key up to which they are emptied."""
    # The totals at the floor stay: what waits behind it is counted from there.
    return (
        (LOG, range_of(0, target).stop_key),
        (LOG_ROWS, SEQUENCE_KEY.pack(target)),
        (DDL, SEQUENCE_KEY.pack(target + 1)),
    )


def _has_rest(txn: ReadTransaction, purged: int) -> bool:
    """Return whether a purge was cut short by the end of its process."""
    return any(next(txn.scan_keys(database, None, stop), None) is not None for database, stop in _doomed(purged))


def _may_change(held: list[Held], held_bytes_max: int | None) -> bool:
    over = held_bytes_max is not None and any(item.log_bytes > held_bytes_max for item in held)
    return over or any(is_dead(item.consumer) for item in held)


def _clear(txn: WriteTransaction, held_bytes_max: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Drop the consumers of dead processes, mark those that hold back too much."""
    dropped: list[str] = []
    left_behind: list[str] = []
    for held in consumers(txn):
        consumer = held.consumer
        if is_dead(consumer):
            release(txn, consumer.name)
            dropped.append(consumer.name)
        elif held_bytes_max is not None and held.log_bytes > held_bytes_max:
            txn.put(CONSUMERS, consumer.name.encode(), _encode(msgspec.structs.replace(consumer, needs_rebuild=True)))
            left_behind.append(consumer.name)
    return tuple(dropped), tuple(left_behind)
