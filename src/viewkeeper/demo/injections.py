"""Changes that the data does not have, drawn from a seed for one flight in a hundred: re-timed, corrected, deleted.

They make the demo's views lose rows, move rows between groups and give up minima and maxima. The draw is over the whole
year, so a shorter demo sees the same changes for the days that it plays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewkeeper.clock import seeded
from viewkeeper.demo.flights import Booleans, Flights, Instants, Integers, minutes

DEFAULT_SEED = 2013
FLIGHTS_PER_INJECTION = 100
RETIMED, CORRECTED, DELETED = 0, 1, 2
NAMES = ("re-timed", "corrected", "deleted")

_SHIFT_MINUTES = (-90, -60, -45, -30, -20, -10, 10, 20, 30, 45, 60, 90, 120)
_CORRECTION_MINUTES = tuple(minute for minute in range(-30, 31) if minute)
_LATE_BY_MINUTES = (60, 24 * 60)
# Earlier departures leave no hour between the day's schedule and the take-off in which a flight could be re-timed.
_RETIMED_AFTER_MINUTES = 4 * 60


@dataclass(frozen=True)
class Injections:
    """The drawn changes, one an affected flight, in the order of the flights.

    Args:
        flight: positions of the affected flights.
        kind: `RETIMED`, `CORRECTED` or `DELETED`.
        change_minutes: re-timed: the whole flight moves by this; corrected: both delays change by it; deleted: 0.
        instant: when it happens.
        new_key: whether the flight gets another primary key, being re-timed into another hour.
    """

    flight: Integers
    kind: Integers
    change_minutes: Integers
    instant: Instants
    new_key: Booleans

    def of_flights(self, kept: Booleans) -> Injections:
        """Return those whose flight is ``kept`` (one boolean a flight)."""
        mask = kept[self.flight]
        return Injections(
            self.flight[mask], self.kind[mask], self.change_minutes[mask], self.instant[mask], self.new_key[mask]
        )


def draw(flights: Flights, seed: int = DEFAULT_SEED) -> Injections:
    """Draw the year's injected changes.

    Args:
        flights: all flights of the year.
        seed: fixes every draw.
    """
    generator = seeded(seed)
    total = len(flights.sched_dep)
    flight = np.array(sorted(generator.sample(range(total), total // FLIGHTS_PER_INJECTION)), dtype=np.int64)
    count = len(flight)
    kind = np.array(generator.choices((RETIMED, CORRECTED, DELETED), k=count), dtype=np.int64)
    shift = np.array(generator.choices(_SHIFT_MINUTES, k=count), dtype=np.int64)
    correction = np.array(generator.choices(_CORRECTION_MINUTES, k=count), dtype=np.int64)
    lateness = np.array([generator.randrange(*_LATE_BY_MINUTES) for _ in range(count)], dtype=np.int64)
    fraction = np.array([generator.random() for _ in range(count)])

    # What never arrived has no delays to correct.
    kind[(kind == CORRECTED) & ~flights.arrived[flight]] = RETIMED
    early = flights.sched_dep[flight] < flights.day_start[flight] + minutes(_RETIMED_AFTER_MINUTES)
    kind[(kind == RETIMED) & early] = DELETED
    retimed = kind == RETIMED
    shift[retimed] = _within_free_keys(flights, flight[retimed], shift[retimed])
    change = np.select([retimed, kind == CORRECTED], [shift, correction], 0)
    late = last_instants(flights)[flight] + minutes(lateness)
    instant = np.where(retimed, _before_departure(flights, flight, shift, fraction), late)
    return Injections(flight, kind, change, instant, retimed & _changes_hour(flights, flight, change))


def last_instants(flights: Flights) -> Instants:
    """Return when each flight's last event in the data happens: arrival, diversion or cancellation."""
    moved = flights.dep_delay * ~flights.arrived + flights.arr_delay
    return np.where(flights.departed, flights.sched_arr + minutes(moved), flights.sched_dep)


def _changes_hour(flights: Flights, flight: Integers, shift: Integers) -> Booleans:
    before = flights.sched_dep[flight]
    changed: Booleans = before.astype("datetime64[h]") != (before + minutes(shift)).astype("datetime64[h]")
    return changed


def _within_free_keys(flights: Flights, flight: Integers, shift: Integers) -> Integers:
    """Return shifts that lead to no key in use and to no other day; the others become shifts within the hour."""
    hour_count = 1 << 20
    carrier = flights.static.column("carrier").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    number = flights.static.column("flight").to_numpy().astype(np.int64)
    identity = (carrier * 10_000 + number) * hour_count
    key = identity + flights.sched_dep.astype("datetime64[h]").astype(np.int64)
    moved = flights.sched_dep[flight] + minutes(shift)
    new_key = identity[flight] + moved.astype("datetime64[h]").astype(np.int64)
    changed = _changes_hour(flights, flight, shift)
    # The keys wanted by two re-timed flights go to neither: a rule that needs no order.
    _, inverse, uses = np.unique(new_key, return_inverse=True, return_counts=True)
    taken = changed & (np.isin(new_key, key) | (uses[inverse] > 1))
    day = flights.day_start[flight]
    outside = (moved < day) | (moved >= day + minutes(23 * 60))
    minute = (flights.sched_dep[flight] - flights.sched_dep[flight].astype("datetime64[h]")).astype(np.int64)
    within_hour = np.where(minute < 30, 15, -15)
    return np.where(taken | outside, within_hour, shift)


def _before_departure(
    flights: Flights, flight: Integers, shift: Integers, fraction: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> Instants:
    """Return an instant after the hour of the day's schedule, before the flight leaves and is due to, old and new."""
    earliness = np.minimum(flights.dep_delay[flight], 0) + np.minimum(shift, 0)
    departure = flights.sched_dep[flight] + minutes(earliness)
    start = flights.day_start[flight] + minutes(60)
    span = (departure - start).astype(np.int64)
    return start + minutes((fraction * span).astype(np.int64))
