"""REFRESH POLICY: whether an epoch steps a view or recomputes it, by what both have cost before.

Views of policy INCREMENTAL are always stepped, those of FULL always recomputed. AUTO takes what is predicted to be
cheaper, view by view, where views that keep state together decide together. All of it is a pure function of figures
that were measured and stored, so the same figures always give the same decision.

    incremental   rows of the log that concern the view   -> seconds
    full          rows of the tables that the view reads  -> seconds

A view with a part that every change computes anew as a whole, such as a window over all rows, is recomputed while its
tables are small; where they are not, the costs decide as for any other, for what lies below that part may be much.

Figures are kept by the size of the epoch, as neither is a straight line: changes of one row cancel, and epochs cost
something whatever they hold. Kept calm in three ways. A figure is the median of the last five measurements of a size;
with fewer than three, their smallest, as a busy machine only ever makes things slower. The way that was taken last
stays unless the other is predicted to be cheaper by a sixth. And what was not measured with about so many rows, or not
for long, is tried once where it promises not to cost more than twice as much: without that the first misjudgement would
stand for ever. A prediction for more rows than were ever measured is too high where an epoch costs much whatever it
holds, as one of Spark's does; so what promises then is what fewer rows have taken. Too low a promise costs one epoch,
too high a one would never be put right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from viewkeeper.plan.refusals import RECOMPUTED, anew

Way = Literal["INCREMENTAL", "FULL"]
INCREMENTAL: Way = "INCREMENTAL"
FULL: Way = "FULL"

# Why a way was taken.
POLICY, NO_CHANGES, FEW_CHANGES, NOT_MEASURED = "POLICY", "NO_CHANGES", "FEW_CHANGES", "NOT_MEASURED"
CHEAPER, NEARLY_EQUAL, TRIED, MEMORY = "CHEAPER", "NEARLY_EQUAL", "TRIED", "MEMORY"
TOGETHER = "TOGETHER"

QUICK_SECONDS = 0.02
"""What takes less is not worth being weighed or measured."""

SPARK_EPOCH_SECONDS = 0.5
"""What an epoch of Spark's takes whatever it holds, at most: recomputing by Spark takes that as well."""

_SAMPLES_KEPT = 5
_SAMPLES_ENOUGH = 3
# With fewer rows what an epoch costs whatever it holds outweighs the rows.
ROWS_THAT_TELL = 1_024
# Before anything is measured: about what a row of a join costs, on a slow machine.
_ROW_SECONDS_FIRST = 20e-6
# A base row needs no old row and no lookup, so it costs less than a change; how much less, one try tells.
_FULL_PART_FIRST = 0.5
_MARGIN = 0.85
_TRY_MOST = 2.0
_TRY_AFTER = 50


@dataclass(frozen=True)
class Size:
    """Epochs of about one size, newest last.

    Args:
        rows: how many rows each read.
        seconds: what each took.
        at: which of the view's decisions was the last of them.
    """

    rows: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    at: int = 0

    def with_measured(self, rows: int, seconds: float, at: int) -> Size:
        """Return the epochs with one more, without the oldest where there are too many."""
        return Size((*self.rows, rows)[-_SAMPLES_KEPT:], (*self.seconds, seconds)[-_SAMPLES_KEPT:], at)

    @property
    def typical_rows(self) -> float:
        """How many rows they read."""
        return float(median(self.rows))

    @property
    def typical_seconds(self) -> float:
        """What they take."""
        return _typical(self.seconds)

    @property
    def row_seconds(self) -> float:
        """What a row of them takes."""
        return _typical([taken / max(rows, 1) for rows, taken in zip(self.rows, self.seconds, strict=True)])


@dataclass(frozen=True)
class Samples:
    """What one way has cost a view on one executor, by the size of the epoch.

    Args:
        sizes: by the binary digits of the number of rows; 0 for all epochs with few rows.

    Example:
        >>> known = Samples().with_measured(100_000, 1.0, 1).with_measured(300_000, 2.0, 2)
        >>> known.seconds(110_000), known.seconds(200_000), known.seconds(900_000)
        (1.1, 1.5, 5.0)
    """

    sizes: Mapping[int, Size] = field(default_factory=dict)

    def with_measured(self, rows: int, seconds: float, at: int) -> Samples:
        """Return the samples with one more.

        Args:
            rows: how many rows there were.
            seconds: what they took.
            at: which of the view's decisions it was.
        """
        number = _size(rows)
        return Samples({**self.sizes, number: self.sizes.get(number, Size()).with_measured(rows, seconds, at)})

    def seconds(self, rows: int) -> float | None:
        """Return what ``rows`` are predicted to take; None while nothing of use was measured.

        Between two sizes on a line; beyond the largest on that from the smallest to it, below the smallest in
        proportion to the rows.
        """
        number = _size(rows)
        if number in self.sizes:
            here = self.sizes[number]
            return here.row_seconds * rows if number else here.typical_seconds
        below = [self.sizes[n] for n in sorted(self.sizes) if n < number]
        above = [self.sizes[n] for n in sorted(self.sizes) if n > number]
        if below and above:
            return _between(below[-1], above[0], rows)
        if above:
            return above[0].row_seconds * rows
        # Few rows say nothing of many.
        telling = [size for n, size in sorted(self.sizes.items()) if n]
        return _beyond(telling[0], telling[-1], rows) if telling else None

    def promised_seconds(self, rows: int) -> float | None:
        """Return what ``rows`` that were never measured take at least: what fewer have taken, else the prediction."""
        predicted = self.seconds(rows)
        fewer = [size for n, size in sorted(self.sizes.items()) if n < _size(rows)]
        if predicted is None or not fewer or _size(rows) in self.sizes:
            return predicted
        return min(fewer[-1].typical_seconds, predicted)

    def times(self, rows: int) -> int:
        """Return how many epochs of the size of ``rows`` are known, up to as many as are kept."""
        return len(self.sizes[_size(rows)].rows) if _size(rows) in self.sizes else 0

    def measured_at(self, rows: int) -> int | None:
        """Return which decision was the last that measured about so many rows; None where none was."""
        number = _size(rows)
        near = [self.sizes[n].at for n in (number - 1, number, number + 1) if n in self.sizes]
        return max(near, default=None)


Ask = Callable[[Samples, int], "float | None"]


def _size(rows: int) -> int:
    return rows.bit_length() if rows >= ROWS_THAT_TELL else 0


def _between(below: Size, above: Size, rows: int) -> float:
    part = (rows - below.typical_rows) / max(above.typical_rows - below.typical_rows, 1.0)
    return below.typical_seconds + part * (above.typical_seconds - below.typical_seconds)


def _beyond(smallest: Size, largest: Size, rows: int) -> float:
    in_proportion = largest.row_seconds * rows
    if smallest is largest:
        return in_proportion
    # Sizes that differ little differ by chance.
    return min(max(_between(smallest, largest, rows), largest.typical_seconds), in_proportion)


def _typical(values: Sequence[float]) -> float:
    return median(values) if len(values) >= _SAMPLES_ENOUGH else min(values)


@dataclass(frozen=True)
class Figures:
    """What is known of a view's costs; stored with it.

    Args:
        view: the view's id.
        way: the way that was taken last.
        decided: how many of its epochs were weighed or measured.
        incremental: by executor, what stepping it has cost, a row being a changed row.
        full: by executor, what recomputing it has cost, a row being a base row.
    """

    view: int
    way: Way = INCREMENTAL
    decided: int = 0
    incremental: Mapping[str, Samples] = field(default_factory=dict)
    full: Mapping[str, Samples] = field(default_factory=dict)

    def with_measured(self, way: Way, executor: str, rows: int, seconds: float) -> Figures:
        """Return the figures after one more epoch.

        Args:
            way: how the view was refreshed.
            executor: by which executor.
            rows: changed rows, or base rows.
            seconds: what of the epoch's time was the view's.
        """
        at = self.decided + 1
        known = self.full if way == FULL else self.incremental
        grown = {**known, executor: known.get(executor, Samples()).with_measured(rows, seconds, at)}
        if way == FULL:
            return replace(self, way=way, decided=at, full=grown)
        return replace(self, way=way, decided=at, incremental=grown)

    def incremental_seconds(self, executor: str, rows: int, ask: Ask = Samples.seconds) -> float | None:
        """Return what stepping ``rows`` changed rows is predicted to take; None where it was never measured.

        Args:
            executor: by which executor.
            rows: how many.
            ask: what is asked of the samples: their prediction, or what they promise.
        """
        return _first(self.incremental, executor, rows, ask)

    def full_seconds(self, executor: str, rows: int, ask: Ask = Samples.seconds) -> float | None:
        """Return what recomputing over ``rows`` base rows is predicted to take; None where nothing was measured.

        While it was never done, a base row counts as half a changed row; that is a guess, and promises no less.

        Args:
            executor: by which executor.
            rows: how many.
            ask: what is asked of the samples.
        """
        known = _first(self.full, executor, rows, ask)
        if known is not None:
            return known
        guess = _first(self.incremental, executor, rows, Samples.seconds)
        return None if guess is None else guess * _FULL_PART_FIRST

    def is_known(self, way: Way, executor: str, rows: int) -> bool:
        """Whether ``way`` was measured on ``executor`` with about so many rows, and not too many decisions ago."""
        known = self.full if way == FULL else self.incremental
        at = known.get(executor, Samples()).measured_at(rows)
        return at is not None and self.decided - at < _TRY_AFTER

    def times_small(self, executor: str) -> int:
        """Return how many small epochs were measured on ``executor``, up to as many as are kept."""
        return self.incremental.get(executor, Samples()).times(0)


def _first(known: Mapping[str, Samples], executor: str, rows: int, ask: Ask) -> float | None:
    """Return the answer for ``executor``, else that of another one: better than none."""
    for name in (executor, *sorted(known)):
        seconds = ask(known[name], rows) if name in known else None
        if seconds is not None:
            return seconds
    return None


@dataclass(frozen=True)
class Prospect:
    """A view before a decision.

    Args:
        figures: what is known of its costs.
        changed_rows: rows of the log that concern it.
        base_rows: rows of the tables that it reads.
    """

    figures: Figures
    changed_rows: int
    base_rows: int


@dataclass(frozen=True)
class Choice:
    """How an epoch refreshes a view, and why.

    Args:
        way: ``INCREMENTAL`` or ``FULL``.
        why: a code: ``POLICY``, ``NO_CHANGES``, ``FEW_CHANGES``, ``NOT_MEASURED``, ``CHEAPER``, ``NEARLY_EQUAL``,
            ``TRIED``, ``MEMORY``, ``TOGETHER``, or one of ``refusals.RECOMPUTED``.
        changed_rows: rows of the log that concern it.
        base_rows: rows of the tables that it reads.
        incremental_seconds: what stepping it was predicted to take; None where nothing was known.
        full_seconds: what recomputing it was predicted to take.
    """

    way: Way
    why: str
    changed_rows: int = 0
    base_rows: int = 0
    incremental_seconds: float | None = None
    full_seconds: float | None = None

    @property
    def predicted_rows(self) -> int:
        """How many rows the way that was taken was predicted to read."""
        return self.base_rows if self.way == FULL else self.changed_rows

    @property
    def predicted_seconds(self) -> float | None:
        """What the way that was taken was predicted to take."""
        return self.full_seconds if self.way == FULL else self.incremental_seconds


@dataclass(frozen=True)
class Executors:
    """Which executor an epoch would use: by what a decision predicts.

    Args:
        incremental: for its changed rows.
        full: for its base rows.
    """

    incremental: str = "local"
    full: str = "local"


def is_quick(figures: Figures, executor: str, rows: int, bound_seconds: float = QUICK_SECONDS) -> bool:
    """Return whether stepping a view is so quick that nothing need be weighed.

    Small epochs that take long must have done so three times: of quick ones nothing is written down that would outweigh
    one for which the machine was busy. By Spark those are quick that take what any epoch takes there.

    Args:
        figures: of the view.
        executor: the executor that would run the epoch.
        rows: rows of the log.
        bound_seconds: what is quick.
    """
    if rows < ROWS_THAT_TELL and figures.times_small(executor) < _SAMPLES_ENOUGH:
        return rows * _ROW_SECONDS_FIRST < bound_seconds
    known = figures.incremental_seconds(executor, rows) if figures.incremental else None
    if bound_seconds and executor == "spark" and rows < ROWS_THAT_TELL:
        bound_seconds = max(bound_seconds, SPARK_EPOCH_SECONDS)
    return (rows * _ROW_SECONDS_FIRST if known is None else known) < bound_seconds


def fixed_choice(prospect: Prospect, way: Way, why: str, executors: Executors) -> Choice:
    """Return a choice that was made by something else than costs."""
    return Choice(
        way,
        why,
        prospect.changed_rows,
        prospect.base_rows,
        prospect.figures.incremental_seconds(executors.incremental, prospect.changed_rows),
        prospect.figures.full_seconds(executors.full, prospect.base_rows),
    )


def weigh(group: Sequence[Prospect], executors: Executors, fits: bool) -> tuple[Way, str]:
    """Decide for views of policy AUTO that keep state together.

    Args:
        group: the views, in a fixed order.
        executors: which executor either way would use.
        fits: whether recomputing them fits into memory.

    Returns:
        The way, and why.
    """
    stepping = [p.figures.incremental_seconds(executors.incremental, p.changed_rows) for p in group]
    recomputing = [p.figures.full_seconds(executors.full, p.base_rows) for p in group]
    if None in stepping or None in recomputing:
        return INCREMENTAL, NOT_MEASURED
    if not fits:
        return INCREMENTAL, MEMORY
    predicted = {INCREMENTAL: sum(filter(None, stepping)), FULL: sum(filter(None, recomputing))}
    way = group[0].figures.way
    other = FULL if way == INCREMENTAL else INCREMENTAL
    if not _is_known(group, other, executors) and _promised(group, other, executors) < _TRY_MOST * predicted[way]:
        return other, TRIED
    if predicted[other] < _MARGIN * predicted[way]:
        return other, CHEAPER
    return way, CHEAPER if predicted[way] <= predicted[other] else NEARLY_EQUAL


def _promised(group: Sequence[Prospect], way: Way, executors: Executors) -> float:
    """Return what ``way`` promises to take for all of the views."""
    ask = Samples.promised_seconds
    if way == FULL:
        return sum(p.figures.full_seconds(executors.full, p.base_rows, ask) or 0.0 for p in group)
    return sum(p.figures.incremental_seconds(executors.incremental, p.changed_rows, ask) or 0.0 for p in group)


def _is_known(group: Sequence[Prospect], way: Way, executors: Executors) -> bool:
    """Whether ``way`` was measured lately, with about so many rows, for each of the views."""
    if way == FULL:
        return all(p.figures.is_known(FULL, executors.full, p.base_rows) for p in group)
    return all(p.figures.is_known(INCREMENTAL, executors.incremental, p.changed_rows) for p in group)


def reason(choice: Choice) -> str:
    """Return why a way was taken, for people.

    Example:
        >>> reason(Choice("FULL", "CHEAPER", 900_000, 1_000_000, 2.0, 0.8))
        'FULL: 1,000,000 base rows in 0.8 s against 900,000 changed rows in 2 s'
    """
    stepping = f"{choice.changed_rows:,} changed rows{_in(choice.incremental_seconds)}"
    recomputing = f"{choice.base_rows:,} base rows{_in(choice.full_seconds)}"
    taken, other = (recomputing, stepping) if choice.way == FULL else (stepping, recomputing)
    if choice.why in RECOMPUTED:
        return f"{choice.way}: {anew(choice.why)}"
    return {
        POLICY: f"{choice.way}: by REFRESH POLICY {choice.way}",
        NO_CHANGES: "INCREMENTAL: none of its tables has changed",
        FEW_CHANGES: "INCREMENTAL: few changes, not weighed",
        NOT_MEASURED: f"INCREMENTAL: {stepping}; what they cost is not measured yet",
        CHEAPER: f"{choice.way}: {taken} against {other}",
        NEARLY_EQUAL: f"{choice.way}: {taken} against {other}, not enough less to change the way",
        TRIED: f"{choice.way}: {taken} against {other}, done to measure it",
        TOGETHER: "FULL: it keeps state together with a view that has a part which every change computes anew",
        MEMORY: f"INCREMENTAL: {recomputing} would not fit into memory_bytes",
    }[choice.why]


def _in(seconds: float | None) -> str:
    return "" if seconds is None else f" in {seconds:.3g} s"
