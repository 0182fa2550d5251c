"""REFRESH POLICY: whether an epoch steps a view or recomputes it, by what both have cost before.

    incremental   fixed seconds + seconds per changed row × rows of the log that concern the view
    full          fixed seconds + seconds per base row × rows of the tables that the view reads

Views of policy INCREMENTAL are always stepped, those of FULL always recomputed. AUTO takes what is predicted to be
cheaper, view by view, where views that keep state together decide together. All of it is a pure function of figures
that were measured and stored, so the same figures always give the same decision.

Kept calm in three ways. A figure is the median of the last five measurements; with fewer than three, their smallest,
as a busy machine only ever makes things slower. The way that was taken last stays unless the other is predicted to
be cheaper by a sixth. And what has not been measured for long, or never, is tried once where it promises not to cost
more than twice as much: without that the first misjudgement would stand for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

Way = Literal["INCREMENTAL", "FULL"]
INCREMENTAL: Way = "INCREMENTAL"
FULL: Way = "FULL"

# Why a way was taken.
POLICY, NO_CHANGES, FEW_CHANGES, NOT_MEASURED = "POLICY", "NO_CHANGES", "FEW_CHANGES", "NOT_MEASURED"
CHEAPER, NEARLY_EQUAL, TRIED, MEMORY = "CHEAPER", "NEARLY_EQUAL", "TRIED", "MEMORY"

QUICK_SECONDS = 0.02
"""What takes less is not worth being weighed or measured."""

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
class Samples:
    """What one way has cost a view on one executor, newest last.

    Args:
        fixed: seconds of epochs with few rows, without what their rows cost.
        per_row: seconds a row of epochs with many, without what epochs cost whatever they hold.
        at: which of the view's decisions was measured last.
    """

    fixed: tuple[float, ...] = ()
    per_row: tuple[float, ...] = ()
    at: int = 0

    def with_measured(self, rows: int, seconds: float, at: int) -> Samples:
        """Return the samples with one more.

        Args:
            rows: how many rows there were.
            seconds: what they took.
            at: which of the view's decisions it was.
        """
        if rows < ROWS_THAT_TELL:
            left = max(seconds - rows * (_typical(self.per_row) or 0.0), 0.0)
            return replace(self, fixed=(*self.fixed, left)[-_SAMPLES_KEPT:], at=at)
        left = max(seconds - (_typical(self.fixed) or 0.0), 0.0)
        return replace(self, per_row=(*self.per_row, left / rows)[-_SAMPLES_KEPT:], at=at)

    def seconds(self, rows: int) -> float | None:
        """Return what ``rows`` are predicted to take; None while nothing of use was measured."""
        fixed, per_row = _typical(self.fixed), _typical(self.per_row)
        if per_row is None:
            return None if fixed is None or rows >= ROWS_THAT_TELL else fixed
        return (fixed or 0.0) + rows * per_row


def _typical(values: Sequence[float]) -> float | None:
    if not values:
        return None
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

    def incremental_seconds(self, executor: str, rows: int) -> float | None:
        """Return what stepping ``rows`` changed rows is predicted to take; None where it was never measured."""
        return _first(self.incremental, executor, rows)

    def full_seconds(self, executor: str, rows: int) -> float | None:
        """Return what recomputing over ``rows`` base rows is predicted to take; None where nothing was measured.

        While it was never done, a base row counts as half a changed row.
        """
        known = _first(self.full, executor, rows)
        if known is not None:
            return known
        guess = _first(self.incremental, executor, rows)
        return None if guess is None else guess * _FULL_PART_FIRST

    def is_full_measured(self, executor: str) -> bool:
        """Whether recomputing was done on ``executor`` with enough rows to tell."""
        return bool(self.full.get(executor, Samples()).per_row)

    def times_fixed(self, executor: str) -> int:
        """Return how many small epochs were measured on ``executor``, up to as many as are kept."""
        return len(self.incremental[executor].fixed) if executor in self.incremental else 0

    def age(self, way: Way, executor: str) -> int:
        """Return how many decisions ago ``way`` was measured on ``executor``."""
        known = self.full if way == FULL else self.incremental
        return self.decided - known.get(executor, Samples()).at


def _first(known: Mapping[str, Samples], executor: str, rows: int) -> float | None:
    """Return the prediction for ``executor``, else that of another one: better than none."""
    for name in (executor, *sorted(known)):
        seconds = known[name].seconds(rows) if name in known else None
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
            ``TRIED``, ``MEMORY``.
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
    one for which the machine was busy.

    Args:
        figures: of the view.
        executor: the executor that would run the epoch.
        rows: rows of the log.
        bound_seconds: what is quick.
    """
    if rows < ROWS_THAT_TELL and figures.times_fixed(executor) < _SAMPLES_ENOUGH:
        return rows * _ROW_SECONDS_FIRST < bound_seconds
    known = figures.incremental_seconds(executor, rows) if figures.incremental else None
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
    if _is_worth_a_try(group, other, executors) and predicted[other] < _TRY_MOST * predicted[way]:
        return other, TRIED
    if predicted[other] < _MARGIN * predicted[way]:
        return other, CHEAPER
    return way, CHEAPER if predicted[way] <= predicted[other] else NEARLY_EQUAL


def _is_worth_a_try(group: Sequence[Prospect], way: Way, executors: Executors) -> bool:
    if way == FULL and not all(p.figures.is_full_measured(executors.full) for p in group):
        return True
    executor = executors.full if way == FULL else executors.incremental
    return all(p.figures.age(way, executor) >= _TRY_AFTER for p in group)


def reason(choice: Choice) -> str:
    """Return why a way was taken, for people.

    Example:
        >>> reason(Choice("FULL", "CHEAPER", 900_000, 1_000_000, 2.0, 0.8))
        'FULL: 1,000,000 base rows in 0.8 s against 900,000 changed rows in 2 s'
    """
    stepping = f"{choice.changed_rows:,} changed rows{_in(choice.incremental_seconds)}"
    recomputing = f"{choice.base_rows:,} base rows{_in(choice.full_seconds)}"
    taken, other = (recomputing, stepping) if choice.way == FULL else (stepping, recomputing)
    return {
        POLICY: f"{choice.way}: by REFRESH POLICY {choice.way}",
        NO_CHANGES: "INCREMENTAL: none of its tables has changed",
        FEW_CHANGES: "INCREMENTAL: few changes, not weighed",
        NOT_MEASURED: f"INCREMENTAL: {stepping}; what they cost is not measured yet",
        CHEAPER: f"{choice.way}: {taken} against {other}",
        NEARLY_EQUAL: f"{choice.way}: {taken} against {other}, not enough less to change the way",
        TRIED: f"{choice.way}: {taken} against {other}, done to measure it",
        MEMORY: f"INCREMENTAL: {recomputing} would not fit into memory_bytes",
    }[choice.why]


def _in(seconds: float | None) -> str:
    return "" if seconds is None else f" in {seconds:.3g} s"
