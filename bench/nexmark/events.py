"""Persons, auctions and bids from a seed, in Nexmark's proportions: 1 to 3 to 46, half of the bids on hot auctions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.nexmark.tables import SCHEMAS

_KINDS = ("person", "auction", "bid")
_PERSONS, _AUCTIONS, _BIDS = 1, 3, 46
_TOGETHER = _PERSONS + _AUCTIONS + _BIDS
# Nexmark's numbering begins there.
_FIRST = 1_000
_CATEGORIES = (10, 11, 12, 13, 14)
_SIDE_ROWS = 10_000
_START = np.datetime64("2026-03-01T00:00:00", "us")
# Two seconds an event: some thousands of events see days and nights.
_STEP_MICROSECONDS = 2_000_000
_HOT_AUCTIONS = 10
_HOT_PART = 0.5
_EVENTS_OPEN = 2_000
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-17", "channel-42")
_LETTERS = np.array(list("abcdefghij"))


def generate(events: int, seed: int) -> dict[str, pa.Table]:
    """Return the tables after so many events.

    Args:
        events: of persons, auctions and bids together, at least 50.
        seed: of the draws.
    """
    random = np.random.default_rng(seed)
    number = np.arange(events)
    place = number % _TOGETHER
    times = _START + number * np.timedelta64(_STEP_MICROSECONDS, "us")
    person, auction = place < _PERSONS, (place >= _PERSONS) & (place < _PERSONS + _AUCTIONS)
    bid = ~(person | auction)
    # How many persons and auctions there are when an event happens.
    persons, auctions = np.cumsum(person), np.cumsum(auction)
    made = {
        "person": _person_rows(random, times[person]),
        "auction": _auction_rows(random, times[auction], persons[auction]),
        "bid": _bid_rows(random, times[bid], persons[bid], auctions[bid]),
        "side_input": {"key": np.arange(_SIDE_ROWS), "value": [f"side {key}" for key in range(_SIDE_ROWS)]},
    }
    return {name: pa.table(columns, schema=SCHEMAS[name]) for name, columns in made.items()}


def rounds(tables: Mapping[str, pa.Table], count: int) -> Iterator[dict[str, pa.Table]]:
    """Cut the events into ``count`` equal spans of time and yield the rows of each; ``side_input`` comes first."""
    last = max(pc.max(tables[name]["date_time"]).as_py() for name in _KINDS)
    edges = np.linspace(_START.astype(np.int64), np.datetime64(last, "us").astype(np.int64) + 1, count + 1).astype(
        np.int64
    )
    for number in range(count):
        found = {"side_input": tables["side_input"]} if number == 0 else {}
        yield found | _within(tables, int(edges[number]), int(edges[number + 1]))


def between(tables: Mapping[str, pa.Table], first: int, stop: int) -> dict[str, pa.Table]:
    """Return the persons, auctions and bids of the events with first <= number < stop."""
    low, high = (int(_START.astype(np.int64)) + number * _STEP_MICROSECONDS for number in (first, stop))
    return _within(tables, low, high)


def _within(tables: Mapping[str, pa.Table], start: int, stop: int) -> dict[str, pa.Table]:
    """Return the events of a span of time, in microseconds."""
    low, high = (pa.scalar(edge, pa.timestamp("us")) for edge in (start, stop))
    times = {name: tables[name]["date_time"] for name in _KINDS}
    inside = {name: pc.and_(pc.greater_equal(t, low), pc.less(t, high)) for name, t in times.items()}
    return {name: tables[name].filter(mask).combine_chunks() for name, mask in inside.items()}


def prices(random: np.random.Generator, count: int) -> np.ndarray:
    """Return what so many bids offer."""
    return (10 ** (random.random(count) * 6) * 100).astype(np.int64)


def _person_rows(random: np.random.Generator, times: np.ndarray) -> dict[str, object]:
    count = len(times)
    names = [
        f"{a} {b}" for a, b in zip(_drawn(random, _FIRST_NAMES, count), _drawn(random, _LAST_NAMES, count), strict=True)
    ]
    return {
        "id": _FIRST + np.arange(count),
        "name": names,
        "email_address": [f"{name.replace(' ', '.').lower()}@example.com" for name in names],
        "credit_card": [f"{number:016d}" for number in random.integers(0, 10**16, count).tolist()],
        "city": _drawn(random, _CITIES, count),
        "state": _drawn(random, _STATES, count),
        "date_time": times,
        "extra": _words(random, count),
    }


def _auction_rows(random: np.random.Generator, times: np.ndarray, persons: np.ndarray) -> dict[str, object]:
    count = len(times)
    first = random.integers(1, 10_000_000, count)
    open_for = random.integers(1, _EVENTS_OPEN, count) * np.timedelta64(_STEP_MICROSECONDS, "us")
    return {
        "id": _FIRST + np.arange(count),
        "item_name": _words(random, count),
        "description": _words(random, count),
        "initial_bid": first,
        "reserve": first + random.integers(0, 10_000_000, count),
        "date_time": times,
        "expires": times + open_for,
        "seller": _FIRST + random.integers(0, persons),
        "category": random.choice(_CATEGORIES, count),
        "extra": _words(random, count),
    }


def _bid_rows(
    random: np.random.Generator, times: np.ndarray, persons: np.ndarray, auctions: np.ndarray
) -> dict[str, object]:
    count = len(times)
    hot = np.maximum(0, auctions - 1 - random.integers(0, _HOT_AUCTIONS, count))
    anyone = random.integers(0, auctions)
    channels = _drawn(random, _CHANNELS, count)
    words = ["/".join((a, b, c)) for a, b, c in zip(*(_words(random, count) for _ in range(3)), strict=True)]
    # Those of no known name tell their channel in the address, most of them.
    known = random.random(count) < 0.9
    tails = [
        f"&channel_id={c[8:]}" if c.startswith("channel-") and k else "" for c, k in zip(channels, known, strict=True)
    ]
    return {
        "id": np.arange(count),
        "auction": _FIRST + np.where(random.random(count) < _HOT_PART, hot, anyone),
        "bidder": _FIRST + random.integers(0, persons),
        "price": prices(random, count),
        "channel": channels,
        "url": [
            f"https://www.example.com/{word}/item.htm?query=1{tail}" for word, tail in zip(words, tails, strict=True)
        ],
        "date_time": times,
        "extra": _words(random, count),
    }


def _drawn(random: np.random.Generator, choices: tuple[str, ...], count: int) -> list[str]:
    return [choices[place] for place in random.integers(0, len(choices), count).tolist()]


def _words(random: np.random.Generator, count: int) -> list[str]:
    return ["".join(letters) for letters in _LETTERS[random.integers(0, len(_LETTERS), (count, 12))].tolist()]
