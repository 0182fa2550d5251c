"""The writer stays within the window, the window follows the speed of the epochs, and the counts are right."""

from __future__ import annotations

import threading
from datetime import date

from viewkeeper.clock import SimulatedClock
from viewkeeper.demo.pace import EPOCH_SECONDS_AIM, WINDOW_ROWS_MAX, WINDOW_ROWS_MIN, Committed, Pace

LEAST = WINDOW_ROWS_MIN["local"]


def transaction(position: int, rows: int = 100, events: int = 110, injected: int = 1) -> Committed:
    return Committed(position, rows, events, injected, date(2013, 1, position))


def test_progress_counts_what_the_views_show() -> None:
    clock = SimulatedClock(100.0)
    pace = Pace(events=1_000, injected=10, held_after=99, clock=clock)
    assert pace.progress().day is None
    pace.committed(transaction(1))
    clock.sleep(2.0)
    pace.committed(transaction(2, rows=300))
    clock.sleep(1.0)
    before = pace.progress()
    assert (before.events, before.behind_seconds) == (1_000, 3.0)
    assert (before.behind_transactions, before.behind_rows) == (2, 400)
    pace.refreshed(position=1, seconds=0.5, epochs=1, executor="local")
    after = pace.progress()
    assert (after.events, after.injected, after.day) == (1_110, 11, date(2013, 1, 1))
    assert (after.behind_seconds, after.behind_transactions, after.behind_rows) == (1.0, 1, 300)
    assert after.changes_per_second == 200.0
    pace.refreshed(position=2, seconds=0.5, epochs=1, executor="spark")
    last = pace.progress()
    assert (last.behind_seconds, last.behind_transactions) == (0.0, 0)
    assert last.executor == "spark"
    assert last.epochs == {"local": 1, "spark": 1}
    assert last.rows == {"local": 100, "spark": 300}


def test_a_refresh_without_epochs_changes_no_count() -> None:
    pace = Pace(0, 0, 99, SimulatedClock())
    pace.refreshed(position=0, seconds=0.1, epochs=0, executor="none")
    assert pace.progress().executor == ""
    assert pace.progress().epochs == {}


def test_the_window_follows_the_speed_within_bounds() -> None:
    clock = SimulatedClock()
    pace = Pace(0, 0, 10_000, clock)
    assert pace.window_rows == LEAST
    for position in range(1, 20):
        pace.committed(transaction(position, rows=pace.window_rows // 2))
        seconds = pace.window_rows / 2 / 5_000
        clock.sleep(seconds)
        pace.refreshed(position, seconds, 1, "local")
    assert pace.window_rows == 2 * 5_000 * EPOCH_SECONDS_AIM
    pace.committed(transaction(20, rows=10))
    pace.refreshed(20, 60.0, 1, "local")
    assert pace.window_rows == LEAST
    for position in range(21, 28):
        pace.committed(transaction(position, rows=1_000_000))
        pace.refreshed(position, 0.1, 1, "local")
    assert pace.window_rows == WINDOW_ROWS_MAX


def test_the_first_epoch_of_an_executor_does_not_set_the_window() -> None:
    pace = Pace(0, 0, 99, SimulatedClock())
    pace.committed(transaction(1, rows=1_000_000))
    pace.refreshed(1, 1.0, 1, "local")
    assert pace.window_rows == LEAST
    pace.committed(transaction(2, rows=10))
    pace.refreshed(2, 30.0, 1, "spark")
    assert pace.window_rows == WINDOW_ROWS_MIN["spark"]


def test_slow_epochs_of_spark_do_not_become_small_ones() -> None:
    pace = Pace(0, 0, 99, SimulatedClock())
    for position in range(1, 6):
        pace.committed(transaction(position, rows=pace.window_rows // 2))
        pace.refreshed(position, 30.0, 1, "spark")
    assert pace.window_rows == WINDOW_ROWS_MIN["spark"]


def test_the_writer_waits_for_room_and_for_spark() -> None:
    pace = Pace(0, 0, held_after=2)
    committed: list[int] = []

    def write() -> None:
        for position in range(1, 5):
            if not pace.wait_for_room():
                return
            pace.committed(transaction(position, rows=LEAST))
            committed.append(position)
        pace.written()

    writer = threading.Thread(target=write)
    writer.start()
    assert pace.wait_for_work()
    pace.refreshed(1, 0.1, 1, "local")
    while pace.progress().behind_transactions == 0:
        pass
    pace.refreshed(2, 0.1, 1, "local")
    assert pace.progress().is_held
    assert committed[:2] == [1, 2]
    assert len(committed) == 2
    pace.open_up()
    while pace.wait_for_work():
        pace.refreshed(4, 0.1, 1, "local")
    writer.join()
    assert committed == [1, 2, 3, 4]
    assert not pace.progress().is_held


def test_an_end_wakes_everybody() -> None:
    pace = Pace(0, 0, held_after=0)
    answers: list[bool] = []
    threads = [
        threading.Thread(target=lambda: answers.append(pace.wait_for_room())),
        threading.Thread(target=lambda: answers.append(pace.wait_for_work())),
    ]
    for thread in threads:
        thread.start()
    pace.end()
    for thread in threads:
        thread.join()
    assert answers == [False, False]
    assert pace.is_over
