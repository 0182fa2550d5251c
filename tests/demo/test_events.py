"""The stream of the demo: replayed, it leaves the rows that the data and the list of injected changes say."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.quick import quick_first
from viewkeeper.demo.data import DemoData, load
from viewkeeper.demo.events import EVENT_KINDS, INJECTED_KINDS, FlightEvents, HourTransaction, final_flights
from viewkeeper.demo.flights import KEY, SCHEMA, Flights, flights_of, to_utc
from viewkeeper.demo.injections import CORRECTED, DELETED, RETIMED, draw
from viewkeeper.errors import InputError

# What all tests of this file look at is made once, by one worker.
pytestmark = pytest.mark.xdist_group("demo-events")

Row = dict[str, Any]
Key = tuple[datetime, str, int]


@pytest.fixture(scope="module")
def data() -> DemoData:
    return load()


@pytest.fixture(scope="module")
def flights(data: DemoData) -> Flights:
    return flights_of(data)


@pytest.fixture(scope="module")
def three_days(data: DemoData) -> FlightEvents:
    return FlightEvents(data, days=3)


@pytest.fixture(scope="module")
def year(data: DemoData) -> FlightEvents:
    return FlightEvents(data)


def key_of(row: Row) -> Key:
    return (row["time_hour"], row["carrier"], row["flight"])


def apply(rows: dict[Key, Row], transaction: HourTransaction) -> None:
    """Apply one transaction as a store would, insisting that each delete finds its row."""
    for row in transaction.deletes.to_pylist():
        del rows[key_of(row)]
    for row in transaction.puts.to_pylist():
        rows[key_of(row)] = row


def replay(events: FlightEvents, rows: dict[Key, Row] | None = None) -> dict[Key, Row]:
    rows = {} if rows is None else rows
    for _, transaction in events.transactions():
        apply(rows, transaction)
    return rows


@pytest.mark.parametrize("seed", quick_first([2013, 1, 2], 1))
def test_replay_of_three_days_gives_the_final_rows(data: DemoData, seed: int) -> None:
    rows = replay(FlightEvents(data, days=3, seed=seed))
    assert [rows[key] for key in sorted(rows)] == final_flights(data, days=3, seed=seed).to_pylist()


def test_three_days_hold_every_kind_of_event(three_days: FlightEvents) -> None:
    assert three_days.counts == {
        "scheduled": 2_699,
        "departed": 2_677,
        "arrived": 2_659,
        "cancelled": 22,
        "diverted": 18,
        "re-timed": 14,
        "corrected": 10,
        "deleted": 8,
    }


@pytest.mark.slow
def test_replay_of_the_year_gives_the_final_rows(data: DemoData, year: FlightEvents) -> None:
    """All transactions of the year by arrays: the last image of each key is the final row."""
    puts, deletes = [], []
    for index, transaction in year.transactions():
        puts.append(transaction.puts.append_column("index", pa.array([index] * transaction.puts.num_rows, pa.int32())))
        keys = transaction.deletes
        deletes.append(keys.append_column("deleted", pa.array([index] * keys.num_rows, pa.int32())))
    written = pa.concat_tables(puts)
    newest = written.group_by(list(KEY)).aggregate([("index", "max")])
    last_delete = pa.concat_tables(deletes).group_by(list(KEY)).aggregate([("deleted", "max")])
    newest = newest.join(last_delete, list(KEY), join_type="left outer")
    alive = newest.filter(pc.fill_null(pc.greater(newest["index_max"], newest["deleted_max"]), True))
    alive = alive.select([*KEY, "index_max"]).rename_columns([*KEY, "index"])
    rows = written.join(alive, [*KEY, "index"], join_type="left semi")
    rows = rows.select(SCHEMA.names).sort_by([(name, "ascending") for name in KEY])
    assert rows.num_rows == 335_670
    assert rows.equals(final_flights(data))


def test_counts_of_the_year(year: FlightEvents) -> None:
    counts = year.counts
    assert {kind: counts[kind] for kind in EVENT_KINDS if kind not in INJECTED_KINDS} == {
        "scheduled": 336_776,
        "departed": 328_521,
        "arrived": 327_346,
        "cancelled": 8_255,
        "diverted": 1_175,
    }
    assert sum(counts[kind] for kind in INJECTED_KINDS) == 3_367  # 1 % of the flights
    assert year.event_count == sum(counts.values()) == 1_005_440


def test_totals_are_the_sums_of_the_transactions(three_days: FlightEvents) -> None:
    transactions = [transaction for _, transaction in three_days.transactions()]
    assert len(transactions) == three_days.transaction_count
    assert sum(transaction.row_count for transaction in transactions) == three_days.row_count
    total: Counter[str] = Counter()
    for index, transaction in enumerate(transactions):
        assert three_days.counts_before(index) == {kind: total[kind] for kind in EVENT_KINDS}
        total.update(transaction.counts)
        assert transaction.injected == sum(transaction.counts[kind] for kind in INJECTED_KINDS)
    assert three_days.counts == dict(total)


@pytest.mark.slow
def test_any_index_can_be_resumed_with_the_same_content(data: DemoData, three_days: FlightEvents) -> None:
    whole = list(three_days.transactions())
    again = FlightEvents(data, days=3)
    for start in (0, 1, 47, 48, 49, len(whole) - 1):
        resumed = list(again.transactions(start))
        assert [index for index, _ in resumed] == list(range(start, len(whole)))
        for (_, ours), (_, theirs) in zip(resumed, whole[start:], strict=True):
            assert ours == theirs
    assert list(again.transactions(len(whole))) == []


def test_transactions_are_hours_in_order(three_days: FlightEvents) -> None:
    hours = [transaction.hour for _, transaction in three_days.transactions()]
    assert hours[0] == datetime(2013, 1, 1, 5, tzinfo=UTC)  # midnight in New York
    assert all(hour.minute == 0 and hour.tzinfo is UTC for hour in hours)
    assert hours == sorted(set(hours))
    assert hours == [three_days.hour_of(index) for index in range(three_days.transaction_count)]


def test_no_key_twice_in_a_transaction(three_days: FlightEvents) -> None:
    for _, transaction in three_days.transactions():
        keys = [key_of(row) for table in (transaction.puts, transaction.deletes) for row in table.to_pylist()]
        assert len(keys) == len(set(keys)) == transaction.row_count > 0
        assert transaction.puts.schema == SCHEMA
        assert transaction.deletes.column_names == list(KEY)


def test_dates_are_new_yorks_on_both_sides_of_summer_time(year: FlightEvents) -> None:
    of_hour = {year.hour_of(index): year.date_of(index) for index in range(year.transaction_count)}
    assert of_hour[datetime(2013, 1, 2, 4, tzinfo=UTC)] == date(2013, 1, 1)
    assert of_hour[datetime(2013, 7, 1, 4, tzinfo=UTC)] == date(2013, 7, 1)
    assert of_hour[datetime(2013, 7, 1, 3, tzinfo=UTC)] == date(2013, 6, 30)
    assert year.date_of(year.last_day_index) == date(2013, 12, 31)
    assert year.hour_of(year.last_day_index) == datetime(2013, 12, 31, 5, tzinfo=UTC)


@pytest.mark.slow
def test_each_days_schedule_comes_at_its_midnight(year: FlightEvents, flights: Flights) -> None:
    days = flights.static["flight_date"].to_pylist()
    per_day = Counter(days)
    starts = {day: start.item() for day, start in zip(days, flights.day_start, strict=True)}
    scheduled = {
        year.hour_of(index).replace(tzinfo=None): count
        for index, (_, transaction) in enumerate(year.transactions())
        if (count := transaction.counts["scheduled"])
    }
    assert scheduled == {starts[day]: count for day, count in per_day.items()}
    assert starts[date(2013, 3, 10)] == datetime(2013, 3, 10, 5)
    assert starts[date(2013, 3, 11)] == datetime(2013, 3, 11, 4)
    assert starts[date(2013, 11, 3)] == datetime(2013, 11, 3, 4)
    assert starts[date(2013, 11, 4)] == datetime(2013, 11, 4, 5)


def test_scheduled_departure_agrees_with_the_files_own_instant(data: DemoData, flights: Flights) -> None:
    hours = flights.sched_dep.astype("datetime64[h]").astype("datetime64[us]").astype(np.int64)
    assert pa.chunked_array([pa.array(hours)]).equals(data.flights["time_hour"].cast(pa.int64()))


def test_arrivals_are_after_departures_and_plausible(flights: Flights) -> None:
    hours = (flights.sched_arr - flights.sched_dep).astype(np.int64) / 60
    assert hours.min() > 0
    assert hours.max() < 13
    took_off, landed = (
        flights.sched_dep + flights.dep_delay.astype("timedelta64[m]"),
        flights.sched_arr + flights.arr_delay.astype("timedelta64[m]"),
    )
    assert (landed > took_off)[flights.arrived].all()


@pytest.mark.parametrize(
    ("local", "offset_hours", "has_summer_time", "utc"),
    [
        ("2013-01-01T12:00", -10, False, "2013-01-01T22:00"),  # Honolulu
        ("2013-07-01T12:00", -7, False, "2013-07-01T19:00"),  # Phoenix
        ("2013-07-01T12:00", -4, False, "2013-07-01T16:00"),  # San Juan
        ("2013-07-01T23:30", -8, True, "2013-07-02T06:30"),  # Los Angeles
        ("2013-03-10T01:59", -5, True, "2013-03-10T06:59"),
        ("2013-03-10T03:00", -5, True, "2013-03-10T07:00"),
        ("2013-11-03T01:30", -5, True, "2013-11-03T05:30"),  # happens twice: the first
        ("2013-11-03T02:00", -5, True, "2013-11-03T07:00"),
    ],
)
def test_local_times_become_instants(local: str, offset_hours: int, has_summer_time: bool, utc: str) -> None:
    instants = to_utc(np.array([local], "M8[m]"), np.array([offset_hours]), np.array([has_summer_time]))
    assert instants.tolist() == np.array([utc], "M8[m]").tolist()


def test_arrival_in_another_zone_and_past_midnight(flights: Flights) -> None:
    """UA 1545 to Houston leaves 05:15, due 08:19 there; B6 739 to Ponce leaves 23:59, due 04:45 there."""
    first_days = flights.static.filter(pc.less(flights.static["flight_date"], date(2013, 1, 3)))
    rows = {(row["flight_date"], row["carrier"], row["flight"]): row for row in first_days.to_pylist()}
    houston = rows[date(2013, 1, 1), "UA", 1545]
    assert houston["sched_dep"] == datetime(2013, 1, 1, 10, 15, tzinfo=UTC)
    assert houston["sched_arr"] == datetime(2013, 1, 1, 14, 19, tzinfo=UTC)
    ponce = rows[date(2013, 1, 2), "B6", 739]
    assert (ponce["dest"], ponce["sched_hour"], houston["sched_hour"]) == ("PSE", 23, 5)
    assert ponce["sched_dep"] == datetime(2013, 1, 3, 4, 59, tzinfo=UTC)
    assert ponce["sched_arr"] == datetime(2013, 1, 3, 8, 45, tzinfo=UTC)


def test_images_show_what_has_happened_only(three_days: FlightEvents) -> None:
    known = {"scheduled": (0, 0), "cancelled": (0, 0), "departed": (1, 0), "diverted": (1, 0), "arrived": (1, 1)}
    seen = set()
    for _, transaction in three_days.transactions():
        for row in transaction.puts.to_pylist():
            shown = (row["dep_delay"] is not None, row["arr_delay"] is not None)
            assert shown == known[row["status"]]
            assert (row["air_time"] is not None) == shown[1]
            assert row["time_hour"] == row["sched_dep"].replace(minute=0)
            seen.add(row["status"])
    assert seen == set(known)


@pytest.mark.slow
def test_injected_changes_are_marked_and_hold_their_rules(data: DemoData, flights: Flights) -> None:
    drawn = draw(flights)
    assert len(set(drawn.flight.tolist())) == len(drawn.flight) == 3_367
    assert set(drawn.kind.tolist()) == {RETIMED, CORRECTED, DELETED}
    retimed = drawn.kind == RETIMED
    assert (drawn.change_minutes[drawn.kind != DELETED] != 0).all()
    assert flights.arrived[drawn.flight[drawn.kind == CORRECTED]].all()
    assert 0 < np.count_nonzero(drawn.new_key) < np.count_nonzero(retimed)
    assert (drawn.instant[retimed] < flights.sched_dep[drawn.flight[retimed]]).all()
    final = final_flights(data)
    marks = Counter(final["injected"].to_pylist())
    assert marks["re-timed"] == np.count_nonzero(retimed)
    assert marks["corrected"] == np.count_nonzero(drawn.kind == CORRECTED)
    assert final.num_rows == 336_776 - np.count_nonzero(drawn.kind == DELETED)
    assert final.group_by(list(KEY)).aggregate([]).num_rows == final.num_rows


@pytest.mark.slow
def test_seed_decides_and_days_do_not(data: DemoData, flights: Flights) -> None:
    assert draw(flights, 7).flight.tolist() == draw(flights, 7).flight.tolist() != draw(flights, 8).flight.tolist()
    final_keys = [final_flights(data, days).select(KEY).to_pylist() for days in (1, 2)]
    assert {key_of(row) for row in final_keys[0]} < {key_of(row) for row in final_keys[1]}


@pytest.mark.parametrize("days", [0, -1, 366])
def test_days_outside_the_year_are_refused(data: DemoData, days: int) -> None:
    for play in (FlightEvents, final_flights):
        with pytest.raises(InputError, match="choose 1 to 365") as caught:
            play(data, days=days)
        assert caught.value.code == "DEMO_DAYS_INVALID"
