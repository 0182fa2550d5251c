"""AUTO's rule: what figures predict, what is decided by them, and that it stays calm."""

from __future__ import annotations

import pytest

from viewkeeper.pipeline.policy import (
    CHEAPER,
    FULL,
    INCREMENTAL,
    MEMORY,
    NEARLY_EQUAL,
    NOT_MEASURED,
    TRIED,
    Choice,
    Executors,
    Figures,
    Prospect,
    Samples,
    Way,
    is_quick,
    reason,
    weigh,
)

LOCAL = Executors()
ROWS = 100_000


def figures(incremental: float, full: float | None = None, way: Way = INCREMENTAL, times: int = 3) -> Figures:
    """Return the figures of a view whose epochs of ``ROWS`` rows have taken so many seconds."""
    known = Figures(1)
    for _ in range(times):
        known = known.with_measured(INCREMENTAL, "local", ROWS, incremental)
        if full is not None:
            known = known.with_measured(FULL, "local", ROWS, full)
    return known if way == known.way else known.with_measured(way, "local", ROWS, full if way == FULL else incremental)


def decided(*known: Figures, changed: int = ROWS, base: int = ROWS, fits: bool = True) -> tuple[Way, str]:
    return weigh([Prospect(f, changed, base) for f in known], LOCAL, fits)


def test_a_figure_is_the_smallest_of_two_and_the_median_of_more() -> None:
    samples = Samples()
    assert samples.seconds(2_000) is None
    for taken, predicted in ((4.0, 4.0), (2.0, 2.0), (3.0, 3.0), (90.0, 3.5), (3.0, 3.0), (3.0, 3.0)):
        samples = samples.with_measured(2_000, taken, 1)
        assert samples.seconds(2_000) == pytest.approx(predicted)
    (size,) = samples.sizes.values()
    assert len(size.rows) == len(size.seconds) == 5


def test_figures_are_kept_by_the_size_of_the_epoch() -> None:
    samples = Samples().with_measured(10, 0.5, 1)
    assert samples.seconds(10) == samples.seconds(900) == 0.5
    assert samples.seconds(50_000) is None  # few rows say nothing of many
    samples = samples.with_measured(100_010, 1.5, 2)
    assert samples.seconds(50_010) == pytest.approx(1.0)
    assert samples.seconds(400_040) == pytest.approx(6.0)
    # Four changes of one row cost little more than one.
    samples = samples.with_measured(400_040, 1.8, 3)
    assert samples.seconds(400_040) == pytest.approx(1.8)
    assert samples.seconds(250_025) == pytest.approx(1.65)
    assert samples.seconds(800_080) == pytest.approx(2.2)
    assert Samples().with_measured(8_000, 0.8, 1).seconds(2_000) == pytest.approx(0.2)


def test_nothing_is_recomputed_before_stepping_was_measured() -> None:
    assert decided(Figures(1)) == (INCREMENTAL, NOT_MEASURED)


def test_recomputing_is_tried_once_where_it_promises_to_pay() -> None:
    # A base row counts as half a changed row while it was never recomputed.
    assert decided(figures(1.0)) == (FULL, TRIED)
    assert decided(figures(1.0), base=10 * ROWS) == (INCREMENTAL, CHEAPER)
    assert decided(figures(1.0, full=5.0)) == (INCREMENTAL, CHEAPER)


def test_the_cheaper_way_is_taken_by_the_rows_of_the_epoch() -> None:
    known = figures(1.0, full=1.0)
    assert decided(known, changed=ROWS // 10) == (INCREMENTAL, CHEAPER)
    assert decided(known, changed=ROWS * 3) == (FULL, CHEAPER)
    assert decided(known, changed=ROWS * 3, fits=False) == (INCREMENTAL, MEMORY)


def test_a_way_stays_until_the_other_is_clearly_cheaper() -> None:
    stepped, recomputed = figures(1.0, full=0.9), figures(0.9, full=1.0, way=FULL)
    assert decided(stepped) == (INCREMENTAL, NEARLY_EQUAL)
    assert decided(recomputed) == (FULL, NEARLY_EQUAL)
    assert decided(figures(1.0, full=0.8)) == (FULL, CHEAPER)
    assert decided(figures(0.8, full=1.0, way=FULL)) == (INCREMENTAL, CHEAPER)


def test_one_slow_epoch_changes_nothing() -> None:
    known = figures(1.0, full=2.0)
    slow = known.with_measured(INCREMENTAL, "local", ROWS, 50.0)
    assert decided(slow) == (INCREMENTAL, CHEAPER)


def test_what_was_not_measured_for_long_is_tried_again_where_it_cannot_cost_much() -> None:
    near, far = figures(1.0, full=1.5), figures(1.0, full=3.0)
    for _ in range(50):
        near, far = (f.with_measured(INCREMENTAL, "local", ROWS, 1.0) for f in (near, far))
    assert decided(near) == (FULL, TRIED)
    assert decided(far) == (INCREMENTAL, CHEAPER)
    again = near.with_measured(FULL, "local", ROWS, 1.5)
    assert decided(again) == (INCREMENTAL, CHEAPER)


def test_another_size_is_measured_before_it_counts() -> None:
    """Eight times the rows are predicted to take eight times as long, and take twice as long."""
    known = figures(1.0, full=3.0)
    assert decided(known, changed=8 * ROWS) == (FULL, CHEAPER)
    known = known.with_measured(FULL, "local", ROWS, 3.0)
    assert decided(known, changed=8 * ROWS) == (INCREMENTAL, TRIED)
    slow = known.with_measured(INCREMENTAL, "local", 8 * ROWS, 9.0)
    assert decided(slow, changed=8 * ROWS) == decided(slow, changed=15 * ROWS) == (FULL, CHEAPER)
    known = known.with_measured(INCREMENTAL, "local", 8 * ROWS, 2.0)
    assert decided(known, changed=8 * ROWS) == (INCREMENTAL, CHEAPER)
    assert decided(known, changed=5 * ROWS) == (INCREMENTAL, CHEAPER)


def test_beyond_what_was_measured_lies_a_line_within_bounds() -> None:
    samples = Samples().with_measured(2_000, 0.22, 1).with_measured(20_000, 0.40, 2)
    assert samples.seconds(200_000) == pytest.approx(2.2)
    noisy = Samples().with_measured(2_000, 0.24, 1).with_measured(4_200, 0.21, 2)
    assert noisy.seconds(400_000) == pytest.approx(0.21)
    steep = Samples().with_measured(2_000, 0.01, 1).with_measured(4_000, 0.4, 2)
    assert steep.seconds(400_000) == pytest.approx(40.0)


# By Spark: seconds of any epoch, of a changed row, and of recomputing a million rows, as measured for a join and sums.
SPARK = ((0.22, 2.3e-6, 5.8), (0.2, 0.06e-6, 0.55))


@pytest.mark.parametrize(("fixed", "row", "full"), SPARK)
@pytest.mark.parametrize("parts", [(0.001, 0.6, 0.1, 0.01), (0.6, 0.001, 0.1), (0.01, 0.6, 0.1), (0.1, 0.001, 0.6)])
def test_what_epochs_cost_whatever_they_hold_misleads_for_some_epochs_only(
    parts: tuple[float, ...], fixed: float, row: float, full: float
) -> None:
    base, known = 1_000_000, Figures(1)
    by_spark = Executors("spark", "spark")
    for part in parts:
        changed = int(2 * part * base)
        ways = []
        for _ in range(6):
            way, _why = weigh([Prospect(known, changed, base)], by_spark, True)
            rows, seconds = (base, full) if way == FULL else (changed, fixed + row * changed)
            known = known.with_measured(way, "spark", rows, seconds)
            ways.append(way)
        assert ways[3:] == [INCREMENTAL] * 3, (part, ways)


def test_views_that_keep_state_together_decide_by_their_sum() -> None:
    cheap, dear = figures(1.0, full=0.5), figures(1.0, full=4.0)
    assert decided(cheap) == (FULL, CHEAPER)
    assert decided(cheap, dear) == (INCREMENTAL, CHEAPER)
    assert decided(cheap, figures(1.0, full=1.1)) == (FULL, CHEAPER)


def test_the_same_figures_give_the_same_decision() -> None:
    known = figures(1.0, full=0.7)
    assert {decided(known) for _ in range(20)} == {(FULL, CHEAPER)}


def test_figures_of_the_other_executor_count_while_there_are_none() -> None:
    known = figures(1.0, full=0.5)
    by_spark = Executors("spark", "spark")
    assert weigh([Prospect(known, ROWS, ROWS)], by_spark, True) == (FULL, TRIED)
    both = known.with_measured(FULL, "spark", ROWS, 9.0)
    assert weigh([Prospect(both, ROWS, ROWS)], by_spark, True) == (INCREMENTAL, TRIED)


@pytest.mark.parametrize(
    ("executor", "seconds", "quick"), [("spark", 0.3, True), ("spark", 0.9, False), ("local", 0.3, False)]
)
def test_of_few_rows_what_any_epoch_of_sparks_takes_is_quick(executor: str, seconds: float, quick: bool) -> None:
    known = Figures(1).with_measured(INCREMENTAL, executor, 100_000, 0.6)
    for _ in range(3):
        known = known.with_measured(INCREMENTAL, executor, 1, seconds)
    assert is_quick(known, executor, 1) is quick
    # Many rows are weighed, and where all is to be, few are, too.
    assert not is_quick(known, executor, 100_000)
    assert not is_quick(known, executor, 1, 0.0)


def test_what_is_quick_is_not_weighed() -> None:
    assert is_quick(Figures(1), "local", 900)
    assert not is_quick(Figures(1), "local", 2_000)
    assert is_quick(figures(0.1), "local", 10_000)
    # A window without partitions takes long however little has changed; once or twice may be the machine.
    slow = Figures(1)
    for expected in (True, True, True, False):
        assert is_quick(slow, "local", 1) is expected
        slow = slow.with_measured(INCREMENTAL, "local", 1, 0.4)


@pytest.mark.parametrize("why", ["POLICY", "NO_CHANGES", "FEW_CHANGES", "NOT_MEASURED", "NEARLY_EQUAL", "MEMORY"])
def test_each_reason_is_a_sentence_with_its_way(why: str) -> None:
    assert reason(Choice(INCREMENTAL, why, 5, 7, 0.5, None)).startswith("INCREMENTAL: ")
