"""A suite's figures of one run side by side: our epochs, the recomputations, the state, where they cross."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.harness import Row, median, shown
from bench.suites.suite import Suite, view_name


@dataclass(frozen=True)
class Compared:
    """What was measured of one query.

    Args:
        name: its view's.
        epochs: by part of the tables changed, milliseconds by the local executor: the median of its rounds; by Spark's
            where what the view computes needs Spark.
        by_spark: the same by Spark's.
        recomputed: by system, milliseconds.
        state: MiB kept for the view.
        state_ratio: the same ÷ the base tables that it reads.
    """

    name: str
    epochs: dict[float, float]
    by_spark: dict[float, float]
    recomputed: dict[str, float]
    state: float
    state_ratio: float

    def ratio(self, system: str, part: float) -> float | None:
        """Return the recomputation's time ÷ the epoch's, None where one is not measured."""
        if system not in self.recomputed or part not in self.epochs:
            return None
        return self.recomputed[system] / self.epochs[part]

    def crossover(self, system: str) -> float | None:
        """Return the part of the tables at which the epoch takes as long as recomputing.

        Between two measured parts it is interpolated, in logarithms; 0 where every epoch is slower, infinity where
        every one is faster.
        """
        if system not in self.recomputed or not self.epochs:
            return None
        bound = self.recomputed[system]
        parts = sorted(self.epochs)
        slower = next((part for part in parts if self.epochs[part] > bound), None)
        if slower is None:
            return math.inf
        if slower == parts[0]:
            return 0.0
        faster = parts[parts.index(slower) - 1]
        low, high = math.log(self.epochs[faster]), math.log(self.epochs[slower])
        along = (math.log(bound) - low) / (high - low)
        return math.exp(math.log(faster) + along * (math.log(slower) - math.log(faster)))


def compared(rows: Sequence[Row], suite: Suite) -> list[Compared]:
    """Return the suite's queries that ``rows`` have figures of, in order."""
    found = {number: [row for row in rows if row.measure == suite.measure(number)] for number in suite.numbers}
    return [_compared(view_name(number), some) for number, some in found.items() if some]


def _compared(name: str, rows: Sequence[Row]) -> Compared:
    recomputed = {row.what.removesuffix(" recomputes"): row.value for row in rows if row.what.endswith(" recomputes")}
    state = next((row for row in rows if row.what == "state"), None)
    size, ratio = math.nan, math.nan
    if state is not None:
        size, ratio = state.value, state.value * 2**20 / state.details["base_bytes"]
    by_spark = _medians(rows, "spark")
    return Compared(name, _medians(rows, "local") or by_spark, by_spark, recomputed, size, ratio)


def _medians(rows: Sequence[Row], executor: str) -> dict[float, float]:
    times: dict[float, list[float]] = {}
    for row in rows:
        if "part" in row.details and row.executor == executor:
            times.setdefault(row.details["part"], []).append(row.value)
    return {part: median(values) for part, values in times.items()}


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def lines(rows: Sequence[Row], suite: Suite) -> Iterator[str]:
    """Yield a suite's table of a report; nothing where no query is measured."""
    queries = compared(rows, suite)
    parts = sorted({part for each in queries for part in each.epochs})
    if not parts:
        return
    yield (
        f"| query | recomputed by Spark; DuckDB, ms | our epoch, ms (by Spark), {suite.counted} changed: "
        + " | ".join(f"{part:.2%}" for part in parts)
        + " | Spark ÷ ours | DuckDB ÷ ours | crossover with Spark; DuckDB | state, MiB (÷ base tables read) |"
    )
    yield "| --- |" + " --- |" * (len(parts) + 5)
    for each in queries:
        recomputed = "; ".join(shown(each.recomputed[s]) for s in ("spark", "duckdb") if s in each.recomputed)
        epochs = [_epoch(each, part) for part in parts]
        ratios = [" / ".join(_ratio(each.ratio(system, part)) for part in parts) for system in ("spark", "duckdb")]
        crossings = "; ".join(_part(each.crossover(system)) for system in ("spark", "duckdb"))
        state = f"{shown(each.state)} ({each.state_ratio:.2f})"
        cells = [each.name, recomputed, *epochs, *ratios, crossings, state]
        yield f"| {' | '.join(cells)} |"
    means = [
        " / ".join(_mean([each.ratio(system, part) for each in queries]) for part in parts)
        for system in ("spark", "duckdb")
    ]
    yield f"| geometric mean |{' |' * (len(parts) + 1)} {' | '.join(means)} | | |"


def _epoch(each: Compared, part: float) -> str:
    if part not in each.epochs:
        return ""
    by_spark = f" ({shown(each.by_spark[part])})" if part in each.by_spark else ""
    return shown(each.epochs[part]) + by_spark


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else shown(ratio)


def _mean(ratios: Sequence[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio is not None]
    return shown(geometric_mean(known)) if known else ""


def _part(part: float | None) -> str:
    if part is None:
        return ""
    return "above all" if part == math.inf else "below all" if part == 0 else f"{part:.2%}"
