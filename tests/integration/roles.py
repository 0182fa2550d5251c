"""What the killed processes do: write, refresh, maintain, create views. Run in children of the nursery."""

from __future__ import annotations

import json
import os
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import viewkeeper as vk
from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.coordinator.lanes import SideBySide
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.database.engine import Engine
from viewkeeper.errors import InputError, ViewkeeperError
from viewkeeper.runtime import open_store
from viewkeeper.settings import Settings
from viewkeeper.testing.cases import apply_step, load_case

Say = Callable[[object], None]
Operations = list[tuple[str, str, Any]]

LOCAL = {"executor": "local", "epoch_rows_max": 40, "build_rows": 25}
# Of all that is written, and of the moments at which processes die; `make sim` has a fresh one.
SEED = int(os.environ.get("VIEWKEEPER_TEST_SEED", "0"))


def operations(seed: int, number: int) -> Operations:
    """Return transaction ``number`` of the writer ``seed``: rows, and the writer's mark of how far it is."""
    chance = Random(f"{SEED}/{seed}/{number}")
    made: Operations = []
    for _ in range(chance.randint(1, 6)):
        key = chance.randrange(40)
        if chance.random() < 0.2:
            made.append(("delete", "orders", key))
            continue
        row = {"id": key, "customer": chance.randrange(6), "amount": chance.randrange(100), "x": chance.choice((1, 2))}
        made.append(("put", "orders", row))
    if chance.random() < 0.3:
        key = chance.randrange(6)
        made.append(("put", "customers", {"id": key, "region": chance.choice(("north", "south", None))}))
    made.append(("put", "progress", {"id": seed, "number": number}))
    return made


def write_one(database: vk.Database, seed: int, number: int) -> int:
    """Commit one of the writer's transactions and return its position."""
    with database.transaction() as tx:
        for kind, *values in operations(seed, number):
            getattr(tx, kind)(*values)
    assert tx.position is not None
    return tx.position.sequence_number


def write(say: Say, path: str, seed: int, first: int, last: int, durability: str = "commit") -> None:
    """Write, and say each confirmed transaction: its number and position."""
    with vk.connect(path, durability=durability, **LOCAL) as database:
        say("ready")
        for number in range(first, last):
            say(json.dumps([number, write_one(database, seed, number)]))


def refresh(say: Say, path: str, rounds: int = 1, **settings: Any) -> None:
    """Refresh all views."""
    with vk.connect(path, **{**LOCAL, **settings}) as database:
        say("ready")
        for _ in range(rounds):
            say(database.refresh().executor)


def sql(say: Say, path: str, text: str, **settings: Any) -> None:
    """Run statements."""
    with vk.connect(path, **{**LOCAL, **settings}) as database:
        say("ready")
        database.sql(text)
        say("done")


def maintain(say: Say, path: str, seconds: float = 30.0, **more: Any) -> None:
    """Maintain; say each epoch."""
    settings = Settings.of({**LOCAL, **more})
    store = open_store(path, settings, create=False)
    lock = store.lock
    assert lock is not None
    lock.acquire()
    end = SYSTEM_CLOCK.monotonic_seconds() + seconds
    say("ready")
    coordinator = Engine(store, settings).coordinator
    maintainer = Maintainer(
        coordinator, lambda outcome: say(outcome.epoch), note=lock.note, lanes=SideBySide(coordinator)
    )
    maintainer.run(lambda: SYSTEM_CLOCK.monotonic_seconds() > end)


def hold(say: Say, path: str) -> None:
    """Take the maintainer's lock and do nothing with it, as a maintainer does that hangs."""
    store = open_store(path, Settings.of(LOCAL), create=False)
    assert store.lock is not None
    store.lock.acquire()
    say("ready")
    while True:
        SYSTEM_CLOCK.sleep(60)


def wait_for(say: Say, path: str, seed: int, rounds: int) -> None:
    """Write, wait for the view to show it, and read it."""
    with vk.connect(path, **LOCAL) as database:
        say("ready")
        for number in range(rounds):
            key = 1000 * seed + number
            position = database.put("orders", {"id": key, "customer": 1, "amount": number, "x": 1})
            database.wait_for(position, "mirrored")
            row = database.get("mirrored", key)
            assert row is not None, f"{key} is not shown"
            assert row["amount"] == number
        say("done")


def refused(say: Say, path: str) -> None:
    """Try to maintain and say why that is refused."""
    try:
        maintain(lambda line: None, path)
    except ViewkeeperError as error:
        say(str(error))


def step(say: Say, path: str, case: str, number: int) -> None:
    """Do one step of a case and refresh, then wait to be killed."""
    with vk.connect(path, durability="none", executor="local") as database:
        apply_step(database, load_case(Path(case)), number)
        say("written")
        database.refresh()
        say("fresh")
        while True:
            SYSTEM_CLOCK.sleep(60)


def fill_disk(say: Say, path: str, room_bytes: int, of_views: bool) -> None:
    """Work on a store whose files may grow by so much only, and say which error that gives."""
    import resource

    with vk.connect(path, **LOCAL) as database:
        if of_views:
            database.put_batch("orders", rows_of(20_000))
        part = Path(path, "views" if of_views else "base", "data.mdb")
        limit = part.stat().st_size + room_bytes
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        say("ready")
        try:
            if of_views:
                database.refresh()
            else:
                database.put_batch("orders", rows_of(20_000))
        except ViewkeeperError as error:
            say(error.code)


def rows_of(number: int) -> list[dict[str, Any]]:
    """Return so many orders behind all others."""
    return [{"id": 10_000 + n, "customer": n % 6, "amount": n, "x": 1} for n in range(number)]


# ---- one thread closes what the others use ----


def close_under_load(say: Say, path: str, rounds: int, durability: str) -> None:
    """Close a connection while its threads write, refresh, read and query; say with what each round of them ended."""
    before = threading.active_count()
    say("ready")
    for number in range(rounds):
        database = vk.connect(path, executor="local", durability=durability, sync_interval_seconds=0.01)
        ends: list[str] = []
        works = [work(database, number) for work in WORKS]
        started = [threading.Event() for _ in works]
        pairs, go = zip(works, started, strict=True), threading.Event()
        threads = [threading.Thread(target=_work_on, args=(work, event, go, ends)) for work, event in pairs]
        for thread in threads:
            thread.start()
        for event in started:
            event.wait()
        go.set()
        for _ in range(number * 40):  # now sooner, now later
            database.get("t", 1)
        database.close()
        for thread in threads:
            thread.join()
        assert len(ends) == len(works), ends
        say(",".join(sorted(set(ends))))
    say(f"{threading.active_count() - before} threads left")


def _work_on(work: Callable[[], object], started: threading.Event, go: threading.Event, ends: list[str]) -> None:
    """Do the same again and again until it fails; once first, which others may wait for, who get no turn later."""
    try:
        work()
        started.set()
        go.wait()
        while True:
            work()
    except ViewkeeperError as error:
        ends.append(error.code)
        if error.code != "STORE_CLOSED":
            traceback.print_exc()
    except BaseException as error:
        ends.append(f"{type(error).__name__}: {error}")
        traceback.print_exc()
    finally:
        started.set()


def _writing(database: vk.Database, number: int) -> Callable[[], object]:
    keys = count()

    def write() -> None:
        with database.transaction() as tx:
            for _ in range(5):
                key = number * 1_000 + next(keys) % 500
                tx.put("t", {"k": key, "g": key % 7, "v": next(keys)})

    return write


def _snapshot(database: vk.Database, number: int) -> Callable[[], object]:
    def read() -> None:
        with database.snapshot() as snapshot:
            assert sum(row["n"] for row in snapshot.scan("sums")) == len(list(snapshot.scan("pairs")))

    return read


WORKS: tuple[Callable[[vk.Database, int], Callable[[], object]], ...] = (
    _writing,
    lambda database, number: database.refresh,
    lambda database, number: database.refresh,
    lambda database, number: lambda: list(database.scan("t")),
    _snapshot,
    lambda database, number: lambda: database.get("sums", 3),
    lambda database, number: lambda: database.multi_get("t", list(range(500))),
    lambda database, number: lambda: database.sql("SELECT g, MAX(v) AS m FROM t GROUP BY g").rows(),
    lambda database, number: database.status,
    lambda database, number: lambda: database.sql("CREATE OR REPLACE MATERIALIZED VIEW more AS SELECT k FROM t"),
)


# ---- generators x (n - m) x v: every state of the sums is divisible by N ----

MODULUS = 17


def generate(say: Say, path: str, seed: int) -> None:
    """Until killed: move amounts that are multiples of N; a transaction adds one and takes one away, of two tables."""
    chance = Random(seed)
    with vk.connect(path, **LOCAL) as database:
        say("ready")
        while True:
            with database.transaction() as tx:
                n, m = chance.randrange(50), chance.randrange(50)
                # Of each pair of rows only the sum is a multiple of N: half an epoch would show.
                part = chance.randrange(1000)
                value = MODULUS * chance.randrange(1000)
                tx.put("lefts", {"id": seed * 100 + n, "g": n % 5, "v": value + part})
                tx.put("rights", {"id": seed * 100 + n, "g": n % 5, "v": -part})
                tx.delete("lefts", seed * 100 + m)
                tx.delete("rights", seed * 100 + m)


def read_sums(say: Say, path: str, states: int) -> None:
    """Read two views in snapshots until so many states were seen: each divisible by N, and the views agree."""
    with vk.connect(path, **LOCAL) as database:
        say("ready")
        seen: set[Any] = set()
        while len(seen) < states:
            with database.snapshot() as snapshot:
                (total,) = snapshot.scan("total")
                groups = list(snapshot.scan("by_group"))
                positions = {snapshot.position_of("total"), snapshot.position_of("by_group")}
            assert len(positions) == 1
            assert (total["v"] or 0) % MODULUS == 0, total
            assert all(group["v"] % MODULUS == 0 for group in groups), groups
            assert sum(group["v"] for group in groups) == (total["v"] or 0)
            assert sum(group["n"] for group in groups) == total["n"]
            seen |= positions
        say(len(seen))


def altered_row(names: Iterable[str], key: int) -> dict[str, object]:
    """Return a row each value of which tells its column: c7 holds 7 thousand and something, whatever c7 is called."""
    return {"k": key, **{name: 1000 * int(name[1:]) + key for name in names}}


def alter(say: Say, path: str, seed: int, changes: int) -> None:
    """Let columns of a table come, go, get other names and wider types, and write rows after each change."""
    chance = Random(seed)
    with vk.connect(path, durability="none", **LOCAL) as database:
        say("ready")
        narrow, names = {"c0"}, ["c0"]
        for number in range(1, changes):
            change = chance.choice(("add", "drop", "rename", "widen"))
            column = chance.choice(names)
            if change == "add" or len(names) == 1:
                database.sql(f"ALTER TABLE t ADD COLUMN c{number} INT DEFAULT {number}999")
                names.append(f"c{number}")
                narrow.add(names[-1])
            elif change == "drop" and column[1:] != "0":
                # Most often another one of its type takes its place, so that rows keep their length.
                database.sql(f"ALTER TABLE t DROP COLUMN {column}")
                names.remove(column)
                narrow.discard(column)
                if chance.random() < 0.7:
                    database.sql(f"ALTER TABLE t ADD COLUMN c{number} INT DEFAULT {number}999")
                    names.append(f"c{number}")
                    narrow.add(names[-1])
            elif change == "widen" and column in narrow and column[1:] != "0":
                database.sql(f"ALTER TABLE t ALTER COLUMN {column} TYPE BIGINT")
                narrow.remove(column)
            else:
                new = ("d" if column.startswith("c") else "c") + column[1:]
                database.sql(f"ALTER TABLE t RENAME COLUMN {column} TO {new}")
                names[names.index(column)] = new
                narrow = {new if name == column else name for name in narrow}
            database.put_batch("t", [altered_row(names, key) for key in chance.sample(range(20), 4)])
        database.put("over", {"k": 1})
        say("done")


def read_altered(say: Say, path: str) -> None:
    """Read the table that is altered in every way and write to it until that is over: values keep to their columns."""
    with vk.connect(path, durability="none", **LOCAL) as database:
        seen: set[tuple[str, ...]] = set()
        is_over = False
        while not is_over:
            is_over = database.get("over", 1) is not None
            for row in _read_in_every_way(database):
                values = [(name, value) for name, value in row.items() if name not in ("k", "s")]
                assert all(value // 1000 == int(name[1:]) for name, value in values), row
                if not seen:
                    say("ready")
                seen.add(tuple(row))
            names = [name for name in database.table("t").schema.names if name not in ("k", "s")]
            try:
                database.put("t", altered_row(names, 10))
            except InputError as error:
                if error.code != "UNKNOWN_COLUMN":
                    raise
        say(len(seen))


def _read_in_every_way(database: vk.Database) -> Iterator[dict[str, Any]]:
    yield from filter(None, map(partial(database.get, "t"), range(4)))
    yield from filter(None, database.multi_get("t", [4, 5, 6]))
    yield from database.scan("t")
    yield from database.table("t").to_arrow().to_pylist()
    yield from database.sql("SELECT * FROM t").rows()
