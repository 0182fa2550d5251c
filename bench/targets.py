"""The targets of design.md, section 11, as this bench checks them."""

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
    "lag": Target("≤ 5 s behind at the end", 5.0, at_least=False),
    "memory": Target("peak RSS ≤ memory_bytes", 1.0, at_least=False),
}
