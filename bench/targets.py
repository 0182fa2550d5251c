"""The targets that we have set ourselves: the bounds that figures are judged by, and the goals that they make up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A bound: at least or at most ``bound``, shown as ``text``."""

    text: str
    bound: float
    at_least: bool = True

    def met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


TARGETS = {
    "W1": Target("≥ 2.3 M changes/s", 2.3e6),
    "W2": Target("≥ 0.8 M changes/s", 0.8e6),
    "W3": Target("≥ 0.3 M changes/s", 0.3e6),
    "selection": Target("≥ 0.6 M changes/s", 0.6e6),
    "index": Target("≥ 0.6 M changes/s", 0.6e6),
    "views": Target("20 views ≤ 3 × one view", 3.0, at_least=False),
    "base_size": Target("largest ≤ 1.5 × smallest", 1.5, at_least=False),
    "batch_local": Target("1,000 changes ≤ 10 ms", 10.0, at_least=False),
    "fresh_local_p50": Target("p50 ≤ 5 ms", 5.0, at_least=False),
    "fresh_local_p99": Target("p99 ≤ 20 ms", 20.0, at_least=False),
    "fresh_spark_p50": Target("≤ 300 ms", 300.0, at_least=False),
    "get": Target("p50 ≤ 5 µs", 5.0, at_least=False),
    "writes": Target("≥ 70 % of the rate without views", 0.7),
    "tpch_spark": Target("geometric mean ≥ 20 ×", 20.0),
    "tpch_each": Target("each query ≥ 1 ×", 1.0),
    "tpch_duckdb": Target("geometric mean ≥ 1 ×", 1.0),
    "lag": Target("≤ 5 s behind at the end", 5.0, at_least=False),
    "memory": Target("peak RSS ≤ memory_bytes", 1.0, at_least=False),
}


@dataclass(frozen=True)
class Goal:
    """A line of the table of goals.

    Args:
        what: what is to be reached.
        targets: the keys of the bounds that judge it.
        later: for a goal that nothing measures yet, or not in full, what is left for later.
    """

    what: str
    targets: tuple[str, ...] = ()
    later: str = ""


GOALS = (
    Goal("changes/s maintained, SUM and COUNT by 10,000 groups and by a million", ("W1", "W2")),
    Goal("selection, projection, index views", ("selection", "index")),
    Goal("join on a foreign key, both sides changing", ("W3",)),
    Goal("cost against base size, 10⁴ to 10⁷ rows", ("base_size",)),
    Goal("TPC-H, 0.1 % changed, against full recomputation", ("tpch_spark", "tpch_each", "tpch_duckdb")),
    Goal("freshness of one write, continuous", ("fresh_local_p50", "fresh_local_p99", "fresh_spark_p50")),
    Goal("a batch of 1,000 changes at base sizes 10⁴ to 10⁷", ("batch_local",)),
    Goal("ON COMMIT, one row, 5 views", later="comes with REFRESH ON COMMIT"),
    Goal("get by key from a view", ("get",), "over HTTP: comes with the server"),
    Goal("base writes with 5 async views against none", ("writes", "lag")),
    Goal("20 views on one table", ("views",)),
    Goal("memory", ("memory",)),
)
