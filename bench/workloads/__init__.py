"""The measurements, one family a file; ``NAMES`` is their order."""

from __future__ import annotations

from collections.abc import Callable

from bench.harness import Bench
from bench.workloads import base_size, freshness, memory, peers, reads, throughput, views, writes

NAMES: dict[str, Callable[[Bench], None]] = {
    "W1": throughput.w1,
    "W2": throughput.w2,
    "selection": throughput.selection,
    "index": throughput.index,
    "W3": throughput.w3,
    "minmax": throughput.minmax,
    "views": views.run,
    "base_size": base_size.run,
    "freshness": freshness.run,
    "reads": reads.run,
    "writes": writes.run,
    "memory": memory.run,
    "peers": peers.run,
}
