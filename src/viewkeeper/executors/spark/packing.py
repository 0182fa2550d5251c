"""PACKED EXCHANGE: what travels between the stages of an epoch: few large rows, whatever the number and types of views.

A row of the exchange has four columns:

    owner   the partition that wants it: the ring's owner of the rows' key
    level   the stage that wants it; tasks of earlier stages pass it on; -1: a task's report, for the driver
    target  the exchange (a node of the circuit) at which it arrives; -1 for a report; -2 for a path
    payload rows of one delta, all of one owner (payload.py), about 8 MB at most; of a path, the staged file of what a
            task has recomputed, for those that compare it with what is stored

Spark so moves few large rows and knows nothing of what is in them. A large payload travels as a reference to the file
that holds it (payload_files.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from viewkeeper.executors.spark import payload_files
from viewkeeper.executors.spark.payload import ALIGNMENT, from_payload, to_payload
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.circuit import Node
from viewkeeper.operators.exchange import Exchange
from viewkeeper.pipeline.memory import MemoryUse
from viewkeeper.pipeline.ring import Ring
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.hashing import hash_columns

SCHEMA = pa.schema([("owner", pa.int32()), ("level", pa.int32()), ("target", pa.int32()), ("payload", pa.binary())])
REPORT = -1
PATH = -2
PAYLOAD_BYTES = 8 << 20
_BATCH_BYTES = 32 << 20


class Parcel(NamedTuple):
    """One row of the exchange."""

    owner: int
    level: int
    target: int
    payload: bytes


@dataclass(frozen=True)
class TaskReport:
    """What a task tells the driver: where its write set is, and what it did.

    Args:
        level: its level of the circuit.
        partition: its number within the level.
        path: the staged file; None where it has nothing to write.
        rows: how many delta rows it took in.
        seconds: how long it worked, without waiting for its input.
        error: a pickled ViewkeeperError that ended it, or None.
        memory: what its process and those above it used, in bytes by process id.
        node_seconds: by node of the circuit, what it took.
        node_rows: by node, how many rows came out of it.
    """

    level: int
    partition: int
    path: str | None
    rows: int
    seconds: float
    error: bytes | None = None
    memory: dict[int, MemoryUse] = field(default_factory=dict)
    node_seconds: dict[int, float] = field(default_factory=dict)
    node_rows: dict[int, int] = field(default_factory=dict)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TaskReport).decode


def pack_report(report: TaskReport, owner: int) -> Parcel:
    """Return ``report`` as a row that later stages pass on through ``owner``."""
    text = _encode(report)
    size = len(text).to_bytes(4, "big")
    return Parcel(owner, REPORT, REPORT, (size + text).ljust(-(-(len(text) + 4) // ALIGNMENT) * ALIGNMENT, b"\0"))


def unpack_report(payload: bytes) -> TaskReport:
    """Return the report that ``pack_report`` packed."""
    return _decode(payload[4 : 4 + int.from_bytes(payload[:4], "big")])


def pack(node: Node, delta: Delta, ring: Ring) -> Iterator[Parcel]:
    """Yield the rows of ``delta`` for the exchange ``node``, owner by owner.

    Args:
        node: an exchange, or a way through Spark's own expressions, to which rows go in even shares.
        delta: what leaves for it.
        ring: who owns which keys.
    """
    if isinstance(node.operator, Catalyst):
        shares = _even_shares(delta, ring)
    elif isinstance(node.operator, Exchange):
        shares = _by_owner(node.operator, delta, ring)
    else:
        raise AssertionError("rows travel to exchanges only")
    for owner, rows in shares:
        for piece in _pieces(rows):
            yield Parcel(owner, node.level, node.id, to_payload(piece))


def _even_shares(delta: Delta, ring: Ring) -> Iterator[tuple[int, Delta]]:
    cuts = [delta.num_rows * owner // ring.count for owner in range(ring.count + 1)]
    for owner in range(ring.count):
        if cuts[owner] < cuts[owner + 1]:
            yield owner, delta.slice(cuts[owner], cuts[owner + 1])


def _by_owner(exchange: Exchange, delta: Delta, ring: Ring) -> Iterator[tuple[int, Delta]]:
    if ring.count == 1 or not exchange.columns:
        yield 0, delta
        return
    columns = [delta.rows.column(i) for i in exchange.columns]
    types = [exchange.schema.types[i] for i in exchange.columns]
    # Numpy sorts 16-bit numbers by radix: many times faster than wider ones.
    owners = ring.owners_of(hash_columns(columns, types, delta.num_rows)).astype(np.uint16)
    if (owners == owners[0]).all():
        yield int(owners[0]), delta
        return
    order = np.argsort(owners, kind="stable")
    ordered = delta.take(order)
    cuts = np.searchsorted(owners[order], np.arange(ring.count + 1))
    for owner in range(ring.count):
        if cuts[owner] < cuts[owner + 1]:
            yield owner, ordered.slice(int(cuts[owner]), int(cuts[owner + 1]))


def _pieces(delta: Delta) -> Iterator[Delta]:
    count = min(-(-delta.byte_size // PAYLOAD_BYTES), delta.num_rows)
    if count <= 1:
        yield delta
        return
    rows = -(-delta.num_rows // count)
    for start in range(0, delta.num_rows, rows):
        yield delta.slice(start, min(start + rows, delta.num_rows))


def by_file(parcels: Sequence[Parcel], nodes: Sequence[Node], path: str) -> list[Parcel]:
    """Return ``parcels`` with their large payloads in the file ``path``.

    Args:
        parcels: what leaves a task.
        nodes: the circuit. What is for Spark's own expressions stays: its rows go through Java in any case.
        path: a new path in the staging folder.

    Raises:
        StoreError: ``STAGING_FAILED`` where the file cannot be written.
    """
    here = [parcel for parcel in parcels if isinstance(nodes[parcel.target].operator, Catalyst)]
    others = [parcel for parcel in parcels if not isinstance(nodes[parcel.target].operator, Catalyst)]
    payloads = payload_files.by_file([parcel.payload for parcel in others], path)
    return here + [parcel._replace(payload=payload) for parcel, payload in zip(others, payloads, strict=True)]


def to_batches(parcels: Iterable[Parcel]) -> Iterator[pa.RecordBatch]:
    """Yield ``parcels`` as batches of bounded size."""
    some: list[Parcel] = []
    size = 0
    for parcel in parcels:
        if some and size + len(parcel.payload) > _BATCH_BYTES:
            yield _batch(some)
            some, size = [], 0
        some.append(parcel)
        size += len(parcel.payload)
    if some:
        yield _batch(some)


def _batch(parcels: list[Parcel]) -> pa.RecordBatch:
    columns = zip(*parcels, strict=True)
    arrays = [pa.array(column, f.type) for column, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def arrival_schema(node: Node) -> pa.Schema:
    """Return the columns with which rows arrive at ``node``."""
    if not isinstance(node.operator, Catalyst | Exchange):
        raise AssertionError("rows arrive at exchanges only")
    return node.operator.arrives.to_arrow()


@dataclass
class Arrivals:
    """What arrives at a task: keeps what its level wants and passes on the rest.

    Args:
        level: the task's level.
    """

    level: int
    failed: bool = False
    payloads: dict[int, list[pa.Buffer]] = field(default_factory=dict)

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take in ``batch`` and yield of it what is for later stages or for the driver."""
        levels = batch.column("level").to_numpy()
        targets = batch.column("target").to_pylist()
        payloads = batch.column("payload")
        for row in np.flatnonzero(levels == self.level).tolist():
            self.payloads.setdefault(targets[row], []).append(payloads[row].as_buffer())
        for row in np.flatnonzero(levels == REPORT).tolist():
            self.failed = self.failed or unpack_report(payloads[row].as_py()).error is not None
        later = np.flatnonzero(levels != self.level)
        if len(later):
            yield pa.RecordBatch.from_arrays(batch.take(pa.array(later)).columns, schema=SCHEMA)

    def paths(self) -> list[str]:
        """Return the paths that have arrived, in order."""
        return sorted(payload.to_pybytes().decode() for payload in self.payloads.get(PATH, ()))

    def deltas(self, nodes: Mapping[int, Node]) -> dict[int, Delta]:
        """Return what has arrived, by exchange, and let go of it.

        Args:
            nodes: the exchanges by id.

        Raises:
            StoreError: ``STAGED_FILE_LOST`` where a file that holds some of it is gone.
        """
        found: dict[int, Delta] = {}
        for target in sorted(self.payloads):
            schema = arrival_schema(nodes[target])
            parts = [from_payload(payload_files.fetched(payload), schema) for payload in self.payloads.pop(target)]
            found[target] = Delta.concat(parts, schema)
        return found
