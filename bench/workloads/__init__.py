"""The measurements, one family a file; ``NAMES`` is their order, ``chosen`` finds them by what the command says."""

from __future__ import annotations

from collections.abc import Callable

from bench.harness import Bench
from bench.suites.known import SUITES
from bench.workloads import (
    base_size,
    freshness,
    memory,
    peers,
    policy,
    reads,
    second_view,
    suites,
    throughput,
    views,
    writes,
)

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
    "policy": policy.run,
    "policy-spark-sums": policy.sums_by_spark,
    "policy-spark-join": policy.join_by_spark,
    "second_view": second_view.run,
    **{name: measure for suite in SUITES for name, measure in suites.measurements(suite).items()},
    **peers.measurements(),
}

# Measurements that one word names.
FAMILIES = {
    **{suite.name: tuple(suites.measurements(suite)) for suite in SUITES},
    "peers": tuple(peers.measurements()),
}


def chosen(said: str) -> list[str]:
    """Return the measurements that a comma-separated list names, in their order; all where it is empty.

    Raises:
        KeyError: for a name that there is not.
    """
    wanted: set[str] = set()
    for name in filter(None, said.split(",")):
        if name not in NAMES and name not in FAMILIES:
            raise KeyError(name)
        wanted.update(FAMILIES.get(name, (name,)))
    return [name for name in NAMES if name in wanted or not wanted]
