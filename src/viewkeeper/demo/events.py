"""The demo's stream of changes: a year of flights as transactions, one a simulated hour.

1. Each flight is put with its day's schedule at midnight in New York, again when it departs, again when it arrives;
   instead of these it may be cancelled (at its scheduled departure) or diverted (when it should have arrived).
2. Injected changes (`demo.injections`) re-time, correct or delete one flight in a hundred; a re-timed flight whose hour
   changes gets another primary key, so its old row is deleted in the same transaction.
3. Within an hour the last image of each key stays. Hours without events have no transaction.

Everything is computed as a few numpy arrays up front, so the number of transactions is known, any of them can be made
without those before it, and the same arguments always give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.demo.data import TIMESTAMP, DemoData
from viewkeeper.demo.flights import (
    KEY,
    SCHEMA,
    STATIC,
    Booleans,
    Flights,
    Instants,
    Integers,
    flights_of,
    hours_of_day,
    minutes,
    timestamps,
    to_new_york,
)
from viewkeeper.demo.injections import CORRECTED, DEFAULT_SEED, DELETED, NAMES, RETIMED, Injections, draw, last_instants
from viewkeeper.errors import InputError

EVENT_KINDS = ("scheduled", "departed", "arrived", "cancelled", "diverted", "re-timed", "corrected", "deleted")
INJECTED_KINDS = EVENT_KINDS[5:]
DAYS = 365

_SCHEDULED, _DEPARTED, _ARRIVED, _CANCELLED, _DIVERTED, _RETIMED, _CORRECTED, _DELETED = range(8)
_MOVED_AWAY = 8  # the old key of a re-timed flight: a delete that belongs to that event and is none of its own
_STATUS = pa.array(["scheduled", "departed", "arrived", "cancelled", "diverted", "scheduled", "arrived"])
_SHOWS_DEPARTURE = np.isin(range(9), (_DEPARTED, _ARRIVED, _DIVERTED, _CORRECTED))
_SHOWS_ARRIVAL = np.isin(range(9), (_ARRIVED, _CORRECTED))
_DELETES = np.isin(range(9), (_DELETED, _MOVED_AWAY))
_MINUTES_PER_HOUR = 60
_MINUTE_MICROSECONDS = 60_000_000
_HOUR_MICROSECONDS = _MINUTES_PER_HOUR * _MINUTE_MICROSECONDS
_TRANSACTIONS_PER_BLOCK = 48  # rows are gathered for so many transactions at a time and then sliced


@dataclass(frozen=True)
class HourTransaction:
    """What one simulated hour changes, to be applied as one transaction; no key is both put and deleted.

    Args:
        hour: start of the hour, UTC.
        date: New York's date in that hour.
        puts: full rows of ``flights`` to put, one a key.
        deletes: keys of rows to delete, one a key.
        counts: events by kind (`EVENT_KINDS`), those included that a later one of the hour replaced.
    """

    hour: datetime
    date: date
    puts: pa.Table
    deletes: pa.Table
    counts: Mapping[str, int]

    @property
    def injected(self) -> int:
        """Events that are not in the data."""
        return sum(self.counts[kind] for kind in INJECTED_KINDS)

    @property
    def row_count(self) -> int:
        """Rows that the transaction puts or deletes."""
        return int(self.puts.num_rows + self.deletes.num_rows)


@dataclass(frozen=True)
class _Images:
    """Versions of the flights' rows: the data's, then the re-timed and corrected ones, in the drawn order."""

    static: pa.Table
    dep_delay: Integers
    arr_delay: Integers
    air_time: Integers

    def rows(self, image: Integers, kind: Integers) -> pa.Table:
        """Return rows of the images as they look after an event of ``kind``."""
        static = self.static.take(pa.array(image))
        departed, arrived = _SHOWS_DEPARTURE[kind], _SHOWS_ARRIVAL[kind]
        columns = {
            "dep_delay": pa.array(self.dep_delay[image], pa.int32(), mask=~departed),
            "arr_delay": pa.array(self.arr_delay[image], pa.int32(), mask=~arrived),
            "air_time": pa.array(self.air_time[image], pa.int32(), mask=~arrived),
            "status": _STATUS.take(pa.array(kind)),
        }
        ordered = [columns[name] if name in columns else static.column(name) for name in SCHEMA.names]
        return pa.table(ordered, schema=SCHEMA)

    def keys(self, image: Integers) -> pa.Table:
        """Return the primary keys of the images."""
        return self.static.select(KEY).take(pa.array(image))


@dataclass(frozen=True)
class _Changes:
    """Images to put (or to delete) in the order of the transactions, and where each transaction's begin."""

    image: Integers
    kind: Integers
    starts: Integers

    def of(self, first: int, last: int) -> tuple[Integers, Integers, Integers]:
        """Return images and kinds of the transactions ``first`` up to ``last``, and their starts among these."""
        low, high = self.starts[first], self.starts[last]
        return self.image[low:high], self.kind[low:high], self.starts[first : last + 1] - low


class FlightEvents:
    """All transactions of the demo, known in advance.

    Args:
        data: the files.
        days: play the flights of so many days from 1 January on; all 365 by default.
        seed: fixes what is injected.

    Raises:
        InputError: ``DEMO_DAYS_INVALID`` when ``days`` is not within 1 to 365.

    Example:
        >>> from viewkeeper.demo.data import load
        >>> events = FlightEvents(load(), days=1)
        >>> index, first = next(events.transactions())
        >>> index, first.hour.isoformat(), first.puts.num_rows
        (0, '2013-01-01T05:00:00+00:00', 842)
    """

    def __init__(self, data: DemoData, days: int | None = None, seed: int = DEFAULT_SEED) -> None:
        flights = flights_of(data)
        kept = _flights_kept(flights, days)
        injections = draw(flights, seed).of_flights(kept)
        self._images, image_key = _images(flights, injections)
        instant, image, kind = _events(flights, injections, kept)
        hour_of_event = instant.astype("datetime64[h]")
        self._hours, ordinal = np.unique(hour_of_event, return_inverse=True)
        self._dates = to_new_york(self._hours.astype("datetime64[m]")).astype("datetime64[D]")
        named = kind != _MOVED_AWAY
        cells = np.bincount(
            ordinal[named] * len(EVENT_KINDS) + kind[named], minlength=len(self._hours) * len(EVENT_KINDS)
        )
        self._counts = cells.reshape(len(self._hours), len(EVENT_KINDS))

        last = _last_of_each_key(ordinal, image_key[image], (instant - hour_of_event).astype(np.int64))
        ordinal, image, kind = ordinal[last], image[last], kind[last]
        self._puts = _changes(ordinal, image, kind, ~_DELETES[kind], len(self._hours))
        self._deletes = _changes(ordinal, image, kind, _DELETES[kind], len(self._hours))

    @property
    def transaction_count(self) -> int:
        """Number of transactions."""
        return len(self._hours)

    @property
    def counts(self) -> dict[str, int]:
        """Events of all transactions by kind."""
        return self.counts_before(self.transaction_count)

    @property
    def event_count(self) -> int:
        """Events of all transactions."""
        return int(self._counts.sum())

    @property
    def row_count(self) -> int:
        """Rows that all transactions put or delete: fewer than events, for within an hour the last image stays."""
        return len(self._puts.image) + len(self._deletes.image)

    @property
    def last_day_index(self) -> int:
        """Index of the transaction that puts the schedule of the last day played."""
        return int(np.flatnonzero(self._counts[:, _SCHEDULED])[-1])

    def counts_before(self, index: int) -> dict[str, int]:
        """Return events by kind of the transactions before ``index``, for going on where a demo stopped."""
        sums = self._counts[:index].sum(axis=0)
        return {name: int(count) for name, count in zip(EVENT_KINDS, sums, strict=True)}

    def date_of(self, index: int) -> date:
        """Return New York's date in the hour of transaction ``index``."""
        day: date = self._dates[index].item()
        return day

    def hour_of(self, index: int) -> datetime:
        """Return the start of the hour of transaction ``index``, UTC."""
        start: datetime = self._hours[index].astype("datetime64[s]").item()
        return start.replace(tzinfo=UTC)

    def transactions(self, start_index: int = 0) -> Iterator[tuple[int, HourTransaction]]:
        """Yield index and transaction from ``start_index`` on; their content does not depend on where one starts."""
        for first in range(start_index, self.transaction_count, _TRANSACTIONS_PER_BLOCK):
            yield from self._block(first, min(first + _TRANSACTIONS_PER_BLOCK, self.transaction_count))

    def _block(self, first: int, last: int) -> Iterator[tuple[int, HourTransaction]]:
        image, kind, put_starts = self._puts.of(first, last)
        puts = self._images.rows(image, kind)
        deleted, _, delete_starts = self._deletes.of(first, last)
        deletes = self._images.keys(deleted)
        for index in range(first, last):
            put_range, delete_range = put_starts[index - first :], delete_starts[index - first :]
            yield (
                index,
                HourTransaction(
                    hour=self.hour_of(index),
                    date=self.date_of(index),
                    puts=puts.slice(put_range[0], put_range[1] - put_range[0]),
                    deletes=deletes.slice(delete_range[0], delete_range[1] - delete_range[0]),
                    counts=dict(zip(EVENT_KINDS, self._counts[index].tolist(), strict=True)),
                ),
            )


def final_flights(data: DemoData, days: int | None = None, seed: int = DEFAULT_SEED) -> pa.Table:
    """Return the rows of ``flights`` after all transactions, in the order of their keys, computed without the stream.

    What the file says of each flight is its end state; the list of injected changes is then applied to it.

    Args:
        data: the files.
        days: as for `FlightEvents`.
        seed: as for `FlightEvents`.

    Raises:
        InputError: ``DEMO_DAYS_INVALID`` when ``days`` is not within 1 to 365.
    """
    flights = flights_of(data)
    kept = _flights_kept(flights, days)
    injections = draw(flights, seed)
    kind, change = np.full(len(kept), -1), np.zeros(len(kept), dtype=np.int64)
    kind[injections.flight], change[injections.flight] = injections.kind, injections.change_minutes
    shift, correction = (pa.array(np.where(kind == which, change, 0)) for which in (RETIMED, CORRECTED))
    raw = data.flights
    columns = {name: flights.static.column(name) for name in STATIC}
    for name in ("sched_dep", "sched_arr"):
        columns[name] = pc.add(columns[name], pc.multiply(shift, _MINUTE_MICROSECONDS).cast(pa.duration("us")))
    # In whole numbers, because Arrow's temporal functions want a time zone database even for UTC.
    hours = pc.divide(columns["sched_dep"].cast(pa.int64()), _HOUR_MICROSECONDS)
    columns["time_hour"] = pc.multiply(hours, _HOUR_MICROSECONDS).cast(TIMESTAMP)
    hhmm = raw.column("sched_dep_time")
    minute_of_day = pc.add(pc.subtract(hhmm, pc.multiply(pc.divide(hhmm, 100), 40)), shift)
    columns["sched_hour"] = pc.divide(minute_of_day, _MINUTES_PER_HOUR).cast(pa.int32())
    columns["dep_delay"] = pc.add(raw.column("dep_delay"), correction.cast(pa.int32()))
    columns["arr_delay"] = pc.add(raw.column("arr_delay"), correction.cast(pa.int32()))
    columns["air_time"] = raw.column("air_time")
    columns["status"] = pc.case_when(
        pc.make_struct(pc.is_null(raw.column("dep_time")), pc.is_null(raw.column("arr_delay"))),
        "cancelled",
        "diverted",
        "arrived",
    )
    columns["injected"] = pa.array(NAMES).take(pa.array(kind, mask=kind < 0))
    table = pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)
    return table.filter(pa.array(kept & (kind != DELETED))).sort_by([(name, "ascending") for name in KEY])


def check_days(days: int) -> None:
    """Raise InputError ``DEMO_DAYS_INVALID`` when ``days`` is not within 1 to 365."""
    if not 1 <= days <= DAYS:
        raise InputError("DEMO_DAYS_INVALID", f"The demo's data has {DAYS} days: choose 1 to {DAYS}, not {days}.")


def _flights_kept(flights: Flights, days: int | None) -> Booleans:
    if days is None:
        days = DAYS
    check_days(days)
    day = flights.static.column("flight_date").to_numpy()
    kept: Booleans = day < np.datetime64("2013-01-01") + days
    return kept


def _images(flights: Flights, injections: Injections) -> tuple[_Images, Integers]:
    """Return all versions of the rows, and for each a number that stands for its primary key."""
    again = injections.kind != DELETED
    flight, change = injections.flight[again], injections.change_minutes[again]
    retimed = injections.kind[again] == RETIMED
    shift, correction = np.where(retimed, change, 0), np.where(retimed, 0, change)
    sched_dep = flights.sched_dep[flight] + minutes(shift)
    changed = {
        "time_hour": timestamps(sched_dep.astype("datetime64[h]")),
        "sched_hour": hours_of_day(to_new_york(sched_dep)),
        "sched_dep": timestamps(sched_dep),
        "sched_arr": timestamps(flights.sched_arr[flight] + minutes(shift)),
        "injected": pa.array(NAMES).take(pa.array(injections.kind[again])),
    }
    versions = flights.static.take(pa.array(flight))
    second = pa.table(
        [changed[name] if name in changed else versions.column(name) for name in STATIC], schema=flights.static.schema
    )
    total = len(flights.sched_dep)
    new_number = total + np.arange(len(flight))
    key = np.concatenate([np.arange(total), np.where(injections.new_key[again], new_number, flight)])
    images = _Images(
        static=pa.concat_tables([flights.static, second]).combine_chunks(),
        dep_delay=np.concatenate([flights.dep_delay, flights.dep_delay[flight] + correction]),
        arr_delay=np.concatenate([flights.arr_delay, flights.arr_delay[flight] + correction]),
        air_time=np.concatenate([flights.air_time, flights.air_time[flight]]),
    )
    return images, key


def _events(flights: Flights, injections: Injections, kept: Booleans) -> tuple[Instants, Integers, Integers]:
    """Return instant, image and kind of every event, those of one flight in their order."""
    total = len(flights.sched_dep)
    again = injections.kind != DELETED
    second_image = total + np.arange(np.count_nonzero(again))
    retimed = injections.kind[again] == RETIMED
    moved = injections.flight[again][retimed]
    shift = np.zeros(total, dtype=np.int64)
    shift[moved] = injections.change_minutes[again][retimed]
    # From its re-timing on, a flight's events carry its second image; a correction or a deletion comes after them all.
    current = np.arange(total)
    current[moved] = second_image[retimed]

    departure = flights.sched_dep + minutes(shift + flights.dep_delay)
    end = last_instants(flights) + minutes(shift)
    end_kind = np.select([~flights.departed, flights.arrived], [_CANCELLED, _ARRIVED], _DIVERTED)
    took_off = kept & flights.departed
    moved_away = injections.flight[injections.new_key]
    injected_image = injections.flight.copy()
    injected_image[again] = second_image
    injected_kind = np.array([_RETIMED, _CORRECTED, _DELETED])[injections.kind]
    parts: list[tuple[Instants, Integers, Integers]] = [
        (flights.day_start[kept], np.flatnonzero(kept), _filled(np.count_nonzero(kept), _SCHEDULED)),
        (injections.instant[injections.new_key], moved_away, _filled(len(moved_away), _MOVED_AWAY)),
        (departure[took_off], current[took_off], _filled(np.count_nonzero(took_off), _DEPARTED)),
        (end[kept], current[kept], end_kind[kept]),
        (injections.instant, injected_image, injected_kind),
    ]
    instant, image, kind = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return instant, image, kind


def _filled(count: int | np.intp, kind: int) -> Integers:
    return np.full(int(count), kind, dtype=np.int64)


def _last_of_each_key(ordinal: Integers, key: Integers, minute: Integers) -> npt.NDArray[np.intp]:
    """Return the positions of each key's last event in each transaction, by transaction and key."""
    group = ordinal * (int(key.max()) + 1) + key
    order = np.argsort(group * _MINUTES_PER_HOUR + minute, kind="stable")
    grouped = group[order]
    last: npt.NDArray[np.intp] = order[np.append(grouped[1:] != grouped[:-1], True)]
    return last


def _changes(ordinal: Integers, image: Integers, kind: Integers, chosen: Booleans, transaction_count: int) -> _Changes:
    starts = np.searchsorted(ordinal[chosen], np.arange(transaction_count + 1))
    return _Changes(image[chosen].astype(np.int64), kind[chosen].astype(np.int64), starts)
