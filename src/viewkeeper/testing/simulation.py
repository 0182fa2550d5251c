"""Deterministic simulation: a seed makes a script of actions, and a script always runs the same way.

    seed ──generate──▶ script: writes, epochs, refreshes, DDL, time, purges; each with a crash or another process's
                               action at some failpoint
         ──simulate──▶ two connections (processes) over one store in memory; after each action the auditor compares

A crash is an exception at a failpoint that nothing catches: open transactions are dropped, the connection is thrown
away, another one goes on with what the store holds. A script that fails is shortened (``shortest``) and kept in
``tests/simulation/regressions``; it is plain JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from viewkeeper.clock import SimulatedClock, seeded
from viewkeeper.coordinator import upkeep
from viewkeeper.coordinator.core import Coordinator
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.database.connection import Database
from viewkeeper.database.engine import Engine
from viewkeeper.errors import ViewkeeperError
from viewkeeper.log import reader
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import read_cadences
from viewkeeper.runtime import OpenStore
from viewkeeper.settings import Settings
from viewkeeper.store.memory import MemorySpace
from viewkeeper.testing.actions import TABLES, Action, generate
from viewkeeper.testing.auditor import Auditor, Tables, apply
from viewkeeper.testing.faults import At, FaultyExecutor, SimulatedCrash, crash
from viewkeeper.testing.ways import draw_ways

# What a script may meet by chance: a view that is not there or there already, suspended, read by others, or failed.
EXPECTED = frozenset({
    "VIEW_FAILED", "VIEW_IN_USE", "VIEW_NOT_FOUND", "VIEW_EXISTS", "VIEW_SUSPENDED", "VIEW_NOT_ACTIVE", "NEEDS_REBUILD",
    "TABLE_OR_VIEW_NOT_FOUND", "NOT_A_VIEW", "VIEW_CHANGED", "COLUMN_EXISTS", "VIEW_NOT_FILLED", "VIEW_BUILDING",
})  # fmt: skip
SETTINGS = Settings(executor="local", epoch_rows_max=6, build_rows=3, local_rows_max=3)


class SimulationFailed(AssertionError):
    """A store was wrong after some action; ``script`` ends with that action."""

    def __init__(self, script: Sequence[Action], reason: str) -> None:
        super().__init__(f"{reason}\nafter {len(script)} actions, the last one: {script[-1]}")
        self.script = list(script)


@dataclass(frozen=True)
class _Process:
    """What one process holds: a connection, and the coordinator that a maintainer or a deposed coordinator has."""

    database: Database
    coordinator: Coordinator


class Simulation:
    """One store in memory with two connections, driven by a script.

    Args:
        script: what happens.
        seed: draws what executors do wrong.
    """

    def __init__(self, script: Sequence[Action], seed: int = 0) -> None:
        self._script = list(script)
        self._chance = seeded(seed)
        self.clock = SimulatedClock()
        self.base = MemorySpace(self.clock)
        self.views = MemorySpace(self.clock)
        self.auditor = Auditor(self.base, self.views)
        self.counts: Counter[str] = Counter()
        self._processes = [self._connect(), self._connect()]

    def run(self) -> Counter[str]:
        """Run the script.

        Returns:
            How often what happened.

        Raises:
            SimulationFailed: where the store is not what it must be.
        """
        for statement in TABLES:
            self._processes[0].database.sql(statement)
        for number, action in enumerate(self._script):
            try:
                self.act(action)
                self.auditor.check()
            except AssertionError as error:
                raise SimulationFailed(self._script[: number + 1], str(error)) from error
            except Exception as error:
                raise SimulationFailed(self._script[: number + 1], f"{type(error).__name__}: {error}") from error
        self.counts["comparisons"] = self.auditor.comparisons
        return self.counts

    def act(self, action: Action) -> None:
        """Do one action; a crash in it replaces its connection."""
        who = int(action.get("who", 0))
        point = action.get("at")
        self.counts[str(action["do"])] += 1
        with ExitStack() as stack:
            if point is not None:
                stack.enter_context(hooked(self._at(point)))
            try:
                getattr(self, f"_{action['do']}")(self._processes[who], action)
            except SimulatedCrash:
                self.counts["crashes"] += 1
                self._processes[who] = self._connect()
            except ViewkeeperError as error:
                if error.code not in EXPECTED:
                    raise
                self.counts[error.code] += 1

    def _at(self, point: Action) -> At:
        return At(point["name"], point["arrival"], self._happening(point["then"]), point.get("times", 1))

    def _happening(self, then: Any) -> Any:
        if then == "crash":
            return crash

        def interfere() -> None:
            self.counts["interferences"] += 1
            with hooked(lambda name: None):
                self.act(then)

        return interfere

    def _connect(self) -> _Process:
        faulty = FaultyExecutor(self.base, self.views, self._chance, self.clock)
        store = OpenStore(None, self.base, self.views, None, None, lambda: None, {"local": lambda: faulty})
        database = Database(store, SETTINGS, clock=self.clock)
        coordinator = Engine(store, SETTINGS, clock=self.clock).coordinator
        for each in (database._engine.coordinator, coordinator):
            draw_ways(each.ways, self._chance)
        return _Process(database, coordinator)

    # ---- actions ----

    def _write(self, process: _Process, action: Action) -> None:
        transaction = process.database.transaction()

        def write() -> int | None:
            with transaction as tx:
                for kind, *values in action["operations"]:
                    getattr(tx, kind)(*values)
            return None if tx.position is None else tx.position.sequence_number

        self._note(write, lambda tables: apply(tables, action["operations"]))

    def _truncate(self, process: _Process, action: Action) -> None:
        table = action["table"]

        def write() -> int | None:
            position = process.database.sql(f"TRUNCATE TABLE {table}").position
            return None if position is None else position.sequence_number

        self._note(write, lambda tables: tables.get(table, {}).clear())

    def _note(self, write: Callable[[], int | None], change: Callable[[Tables], None]) -> None:
        """Tell the auditor of a transaction; of one whose writer died, the log knows whether it was committed."""
        before = self._head()
        try:
            position = write()
        except SimulatedCrash:
            if self._head() > before:
                self.auditor.committed(self._head(), change)
            raise
        if position is not None:
            self.auditor.committed(position, change)

    def _sql(self, process: _Process, action: Action) -> None:
        process.database.sql(action["text"])

    def _refresh(self, process: _Process, action: Action) -> None:
        head = self._head()
        process.database.refresh(*action["views"])
        for view in process.database.status()["views"]:
            if not action["views"] and view["state"] == "ACTIVE":
                assert view["position"] >= head, f"{view['name']} is behind after a refresh"

    def _epoch(self, process: _Process, action: Action) -> None:
        """One epoch of some cadence: what a coordinator does that has lost its lock and does not know it."""
        with self.views.read() as txn:
            names = [record.name for record in read_cadences(txn)]
        if names:
            process.coordinator.epoch(names[action["cadence"] % len(names)])

    def _advance(self, process: _Process, action: Action) -> None:
        """A transaction, then one epoch of each cadence, by a coordinator that may have lost its lock."""
        self._write(process, action)
        with self.views.read() as txn:
            names = [record.name for record in read_cadences(txn)]
        for name in names:
            process.coordinator.epoch(name)

    def _maintain(self, process: _Process, action: Action) -> None:
        left: int = action["rounds"]

        def is_over() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        Maintainer(process.coordinator).run(is_over)

    def _purge(self, process: _Process, action: Action) -> None:
        upkeep.purge(process.coordinator)

    def _wait(self, process: _Process, action: Action) -> None:
        self.clock.sleep(action["seconds"])

    def _snapshot(self, process: _Process, action: Action) -> None:
        """Views read in one snapshot and in one cadence are at one position."""
        with process.database.snapshot() as snapshot:
            positions: dict[str, set[object]] = {}
            for view in process.database.status()["views"]:
                if view["state"] == "ACTIVE":
                    positions.setdefault(view["cadence"], set()).add(snapshot.position_of(view["name"]))
                    assert len(list(snapshot.scan(view["name"]))) == snapshot.to_arrow(view["name"]).num_rows
            assert all(len(found) == 1 for found in positions.values()), f"views stand apart: {positions}"

    def _head(self) -> int:
        with self.base.read() as txn:
            return reader.head(txn)


def simulate(seed: int, actions: int = 40, draw: Callable[[int, int], Sequence[Action]] = generate) -> Counter[str]:
    """Run the script of ``seed``.

    Args:
        seed: any number.
        actions: how many actions it has.
        draw: makes the script.

    Raises:
        SimulationFailed: with the script up to the action after which the store was wrong.
    """
    return Simulation(draw(seed, actions), seed).run()


def shortest(script: Sequence[Action], seed: int = 0) -> list[Action]:
    """Return a script without the actions that the failure of ``script`` does not need."""
    found = list(script)
    size = max(len(found) // 2, 1)
    while size:
        for shorter in _without(found, size):
            failed = _failure(shorter, seed)
            if failed is not None:
                found = failed
                break
        else:
            size //= 2
    return found


def _without(script: Sequence[Action], size: int) -> Iterator[list[Action]]:
    for start in range(0, len(script), size):
        yield [*script[:start], *script[start + size :]]
    if size == 1:
        for place, action in enumerate(script):
            if "at" in action:
                plain = {name: value for name, value in action.items() if name != "at"}
                yield [*script[:place], plain, *script[place + 1 :]]


def _failure(script: Sequence[Action], seed: int) -> list[Action] | None:
    try:
        Simulation(script, seed).run()
    except SimulationFailed as failed:
        return failed.script
    return None
