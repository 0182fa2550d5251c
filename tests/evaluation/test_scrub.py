"""The scrub: what is damaged is found, and nothing else, whatever the view and whoever writes meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.evaluation import corrupted
from viewkeeper.clock import SimulatedClock, seeded
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.database import Database
from viewkeeper.database.background import scrub_of
from viewkeeper.database.maintenance import rebuild_in_full
from viewkeeper.database.script import context_of
from viewkeeper.errors import InputError, ViewkeeperError
from viewkeeper.evaluation import samples
from viewkeeper.evaluation.samples import NotSampled, open_sample
from viewkeeper.evaluation.scrub import HELD_SECONDS_MAX, Scrub
from viewkeeper.pipeline.scrubs import read_scrubs
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import WriteTransaction
from viewkeeper.testing.draws import for_scripts
from viewkeeper.testing.oracle import Run, in_memory
from viewkeeper.testing.scripts import Script


def compared(db: Database, view: int, rows_max: int) -> Iterator[tuple[int, str]]:
    """Compare a whole view, range after range; yield the rows and the finding of each."""
    start: bytes | None = None
    while True:
        with ExitStack() as opened:
            sample = open_sample(context_of(db._engine), view, start, rows_max, 10_000, opened)
            while sample.advance():
                pass
            yield sample.rows, sample.finding()
        start = sample.behind
        if start is None:
            return


def check_drawn(script: Script, counts: Counter[str]) -> None:
    with in_memory() as db:
        Run(script, db).all_steps()
        catalog = db._engine.coordinator.catalog()
        for view in catalog.views.values():
            try:
                found = list(compared(db, view.id, 1))
            except NotSampled as error:
                counts[str(error)] += 1
                continue
            wrong = [finding for _, finding in found if finding]
            assert wrong == [], f"{view.name}: {view.sql}"
            assert sum(rows for rows, _ in found) == db.table(view.name).to_arrow().num_rows
            counts["ranges"] += len(found)
            counts["views"] += 1


@pytest.mark.slow
def test_right_views_are_right() -> None:
    counts: Counter[str] = Counter()
    for_scripts(9000, 12, lambda script: check_drawn(script, counts))
    assert counts["ranges"] > counts["views"] > 10


INTERVAL_SECONDS = 60.0


class _Scrubbed:
    """A store with every kind of view, its maintainer and its scrub, under a clock that only the test moves."""

    def __init__(self, rows_max: int = 2) -> None:
        self.clock = SimulatedClock(1000.0)
        settings = Settings(executor="local", scrub_interval_seconds=INTERVAL_SECONDS, scrub_rows=rows_max)
        self.db = Database(memory_store(), settings, clock=self.clock)
        corrupted.make(self.db)
        self.told: list[ViewkeeperError] = []
        self.scrub = scrub_of(self.db._engine)
        self.maintainer = Maintainer(self.db._engine.coordinator, complain=self.told.append, scrub=self.scrub)

    def turn(self) -> None:
        """Let a view's turn come, and all be done that then is to do."""
        self.clock.sleep(INTERVAL_SECONDS)
        while self.maintainer.round():
            pass

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.turn()

    def turns_until(self, is_over: Callable[[], object]) -> None:
        """Let views' turns come until it is over; all of them have come several times in so many."""
        for _ in range(8 * len(corrupted.VIEWS)):
            self.turn()
            if is_over():
                return
        raise AssertionError("so many turns were not enough")

    def troubles(self) -> list[tuple[str, str]]:
        return [(trouble["task"], trouble["code"]) for trouble in self.db.status()["troubles"]]

    def scrubbed(self, view: str) -> Any:
        (found,) = (v["scrubbed"] for v in self.db.status()["views"] if v["name"] == view)
        return found


def change_a_value(txn: WriteTransaction, operator: object, state: str) -> None:
    """Change the last row's last column."""
    key, value = list(txn.scan(state))[-1]
    txn.put(state, key, value[:-1] + bytes([value[-1] ^ 1]))


@pytest.mark.parametrize(
    ("view", "damage", "says"),
    [
        ("placed", corrupted.lose_a_key, "1 missing: {'id': 1, "),
        ("by_shop", corrupted.lose_a_key, "1 missing: {'shop': None, "),
        ("towns", corrupted.stray_row, "rows stand under keys that are not theirs: {'town': None, "),
        ("declared", corrupted.other_row, "rows stand under keys that are not theirs: {'id': 1, "),
        ("by_shop", change_a_value, "1 different: {'shop': 'd', "),
        ("by_shop", corrupted.unreadable, "some of its rows cannot be read"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_damage_is_found_and_told_until_it_is_repaired(view: str, damage: corrupted.Break, says: str) -> None:
    store = _Scrubbed()
    with store.db._engine.store.views.write() as txn:
        damage(txn, None, corrupted.record_of(store.db, view).state)
    store.turns_until(lambda: store.told)
    # It is looked at again, and told once.
    store.turns(len(corrupted.VIEWS))
    (error,) = store.told
    assert error.code == "VIEW_WRONG"
    assert f"View {view!r} is not what its query gives" in error.message
    assert says in error.message
    assert f"VERIFY MATERIALIZED VIEW {view} REPAIR" in error.message
    assert store.troubles() == [(f"checking view {view}", "VIEW_WRONG")]
    assert store.scrubbed(view)["result"] == "wrong"
    rebuild_in_full(store.db._engine, store.db._engine.coordinator.catalog().view(view), None)
    assert store.troubles() == []
    store.turns_until(lambda: store.scrubbed(view) is not None)
    assert store.scrubbed(view)["result"] == "right"
    assert len(store.told) == 1


def test_a_row_too_many_is_found() -> None:
    store = _Scrubbed()
    store.db.sql("DELETE FROM sales WHERE id = 11")
    state = corrupted.record_of(store.db, "placed").state
    with store.db._engine.store.views.read() as txn:
        key, value = list(txn.scan(state))[-1]
    store.db.refresh()
    with store.db._engine.store.views.write() as txn:
        txn.put(state, key, value)
    store.turns_until(lambda: store.told)
    assert "1 unexpected: {'id': 11, " in store.told[0].message


def test_views_take_turns_and_each_goes_on_where_it_was() -> None:
    store = _Scrubbed()
    assert not store.maintainer.round()
    store.turns(4)
    assert all(store.scrubbed(view)["result"] == "right" for view in corrupted.VIEWS)
    before = _starts(store)
    store.turns(4)
    assert all(before[view] != start for view, start in _starts(store).items())
    # Another maintainer goes on there, too, and is not early.
    other = Maintainer(store.db._engine.coordinator, scrub=scrub_of(store.db._engine))
    other.round()
    assert not other.round()


def _starts(store: _Scrubbed) -> dict[int, bytes]:
    with store.db._engine.store.views.read() as txn:
        return {view: record.start for view, record in read_scrubs(txn).items()}


@pytest.mark.slow
def test_nothing_is_wrong_while_writers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "CHUNK_ROWS", 4)
    store = _Scrubbed(100)
    db, chance = store.db, seeded(3)
    db.sql("""
        CREATE MATERIALIZED VIEW first_two AS SELECT shop, id, cents FROM sales ORDER BY cents LIMIT 2;
        CREATE MATERIALIZED VIEW listed AS SELECT shop, collect_list(cents) AS all, mode(cents) AS often FROM sales
          GROUP BY shop;
        CREATE MATERIALIZED VIEW numbered AS SELECT id, ROW_NUMBER() OVER (PARTITION BY shop ORDER BY cents) AS place
          FROM sales;
        CREATE MATERIALIZED VIEW above AS SELECT n, COUNT(*) AS shops FROM by_shop GROUP BY n
    """)
    views = [view["name"] for view in db.status()["views"]]
    assert not store.scrub.step()
    steps = 0
    for _ in views:
        store.clock.sleep(INTERVAL_SECONDS)
        while store.scrub.step():
            steps += 1
            # Between two chunks of one table: views move on, the log behind them goes where nobody holds it.
            key, shop = chance.randrange(20), chance.choice("abcd")
            db.put("sales", {"id": key, "shop": shop, "cents": chance.randrange(4), "weight": 0.1})
            if steps % 2:
                db.refresh()
    assert steps > 3 * len(views)
    assert {store.scrubbed(view)["result"] for view in views} == {"right"}
    assert [held["kind"] for held in db.status()["log"] if held["kind"] == "scrub"] == []


def test_ranges_need_no_more_base_rows_than_is_kept() -> None:
    store = _Scrubbed(16)
    store.db.sql("""
        CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n FROM sales;
        CREATE MATERIALIZED VIEW by_cents AS SELECT cents, COUNT(*) AS n FROM sales GROUP BY cents
    """)
    store.db.put_batch("sales", [{"id": 100 + i, "shop": "a", "cents": i % 30} for i in range(1_000)])
    store.turns(30)
    assert store.troubles() == []
    # Sixteen groups are of 600 rows; two are of 70, and may be kept.
    assert store.scrubbed("by_cents") | {"at": None} == {"at": None, "result": "right", "rows": 2, "note": ""}
    skipped = store.scrubbed("total")
    assert (skipped["result"], skipped["note"]) == ("skipped", "a part of it needs more than 160 base rows at once")


def test_views_that_stand_still_are_skipped_and_busy_maintainers_give_up() -> None:
    store = _Scrubbed()
    store.db.sql("ALTER MATERIALIZED VIEW towns SUSPEND; INSERT INTO sales VALUES (50, 'a', 2147483647, 0.0)")
    store.turns(8)
    assert store.scrubbed("towns")["note"] == "it is SUSPENDED"
    assert store.scrubbed("placed")["note"] == "it is FAILED"
    store.clock.sleep(INTERVAL_SECONDS)
    assert store.scrub.step(True)
    assert not store.scrub.step(False)
    store.clock.sleep(HELD_SECONDS_MAX + 1.0)
    assert not store.scrub.step(False)
    notes = [store.scrubbed(view)["note"] for view in corrupted.VIEWS]
    assert "its base tables were not read within 600 s" in notes
    assert [held["kind"] for held in store.db.status()["log"] if held["kind"] == "scrub"] == []


def test_it_can_be_switched_off() -> None:
    assert Settings.of({"scrub_interval_seconds": 0}).scrub_interval_seconds == 0
    with pytest.raises(InputError, match="or 0 for never"):
        Settings.of({"scrub_interval_seconds": -1.0})
    with pytest.raises(InputError):
        Settings.of({"scrub_rows": 0})
    store = _Scrubbed()
    never = Scrub(context_of(store.db._engine), 0.0, clock=store.clock)
    store.clock.sleep(1e9)
    assert not never.step()
