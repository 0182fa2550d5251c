"""A new view over an operator whose rows stand in state that others keep is filled from that state, not from tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.coordinator.stores import CountingSpace, Shop
from tests.quick import quick_first
from viewkeeper.coordinator import builds, swaps
from viewkeeper.coordinator.core import Coordinator
from viewkeeper.log import retention
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.store.memory import MemorySpace
from viewkeeper.store.tables import format_of
from viewkeeper.testing.faults import At, SimulatedCrash, crash

GROUPS = "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer"
RANKED = "SELECT id, customer, amount, RANK() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders"
FIRST = (
    "SELECT id, customer, amount FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) < 3"
)
LENT = {
    "groups": GROUPS,
    "joined": "SELECT c.region, COUNT(*) AS n FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
    "ends": "SELECT customer, MIN(amount) AS least, MAX(amount) AS most FROM orders GROUP BY customer",
    "lists": (
        "SELECT customer, LISTAGG(CAST(amount AS STRING), '+') AS all, PERCENTILE(amount, 0.5) AS middle,"
        " COUNT(DISTINCT amount) AS n FROM orders GROUP BY customer"
    ),
    "all": "SELECT COUNT(*) AS n, MAX(amount) AS most FROM orders",
    "sets": "SELECT customer, amount % 3 AS a, COUNT(*) AS n FROM orders GROUP BY CUBE (customer, amount % 3)",
    "distinct": "SELECT DISTINCT customer, amount % 4 AS a FROM orders",
    "ranked": RANKED,
    "summed": "SELECT id, customer, SUM(amount) OVER (PARTITION BY customer ORDER BY id) AS running FROM orders",
    "first": FIRST,
    "last": "SELECT id, customer, amount FROM orders ORDER BY amount DESC, id LIMIT 3",
}
BORROWING = (
    ("groups", f"SELECT customer, n + 1 AS n, total FROM ({GROUPS}) WHERE n > 3"),
    ("groups", f"SELECT c.region, SUM(g.n) AS n, MAX(g.total) AS most FROM customers c JOIN ({GROUPS}) g"
               " ON c.id = g.customer GROUP BY c.region"),
    ("groups", f"SELECT c.id, g.n, g.total FROM customers c LEFT JOIN ({GROUPS}) g ON c.id = g.customer"),
    ("groups", f"SELECT c.id FROM customers c LEFT ANTI JOIN ({GROUPS}) g ON c.id = g.customer AND g.total > 20 + g.n"),
    ("groups", f"SELECT a.customer, a.n, a.total, b.n AS m, b.total AS t FROM ({GROUPS}) a JOIN ({GROUPS}) b"
               " ON a.customer + 1 = b.customer"),
    ("groups", f"SELECT customer, n, total, RANK() OVER (PARTITION BY n ORDER BY total) AS r FROM ({GROUPS})"),
    ("groups", f"SELECT customer, n, total FROM ({GROUPS}) UNION ALL SELECT id, -1, -1 FROM customers"),
    ("groups", "SELECT l.customer, l.total FROM lends l WHERE l.total > 20"),
    ("groups", "SELECT COUNT(*) AS n, SUM(total) AS total FROM lends"),
    ("joined", "SELECT region, n FROM lends WHERE n > 1"),
    ("ends", "SELECT customer, most - least AS span FROM lends"),
    ("lists", "SELECT n, all, middle FROM lends WHERE n > 1"),
    ("all", "SELECT n - 1 AS n, most FROM lends"),
    ("all", "SELECT c.id, l.n FROM customers c CROSS JOIN lends l"),
    ("sets", "SELECT customer, a, n FROM lends WHERE n > 1"),
    ("distinct", "SELECT a, COUNT(*) AS n FROM lends GROUP BY a"),
    ("ranked", "SELECT * FROM lends WHERE r < 3"),
    ("summed", "SELECT running, COUNT(*) AS n FROM lends GROUP BY running"),
    ("first", "SELECT customer, SUM(amount) AS total FROM lends GROUP BY customer"),
    ("last", "SELECT customer, amount FROM lends"),
)  # fmt: skip


class ReadCountingSpace(MemorySpace):
    """Counts what is scanned, by sub-database."""

    def __init__(self) -> None:
        super().__init__()
        self.scanned: Counter[str] = Counter()

    @contextmanager
    def read(self) -> Iterator[Any]:
        with super().read() as txn:
            yield _CountingReads(txn, self.scanned)


@dataclass
class _CountingReads:
    txn: Any
    scanned: Counter[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.txn, name)

    def scan(self, database: str, *rest: Any, **more: Any) -> Iterator[Any]:
        for pair in self.txn.scan(database, *rest, **more):
            self.scanned[database] += 1
            yield pair

    def scan_keys(self, database: str, *rest: Any) -> Iterator[bytes]:
        for key in self.txn.scan_keys(database, *rest):
            self.scanned[database] += 1
            yield key


def orders_scanned(shop: Shop) -> int:
    assert isinstance(shop.base, ReadCountingSpace)
    (table,) = (t for t in shop.db._engine.coordinator.catalog().tables.values() if t.name == "orders")
    return shop.base.scanned[format_of(table).database]


@pytest.mark.parametrize(("lent", "query"), BORROWING)
def test_no_base_row_below_is_read_and_nothing_that_is_kept_is_written(lent: str, query: str) -> None:
    shop = Shop(base=ReadCountingSpace())
    shop.db.put("orders", {"id": 50, "customer": None, "amount": 4})
    shop.create("lends", LENT[lent])
    kept = set(shop.tables())
    before = orders_scanned(shop)
    assert before > 0
    shop.views.written.clear()
    shop.views.deleted.clear()
    records = shop.create_seen("borrows", query)
    totals = [record.build.rows_total for record in records if record.build is not None]
    assert orders_scanned(shop) == before
    assert len(set(totals)) == 1
    written = {name for name, count in (shop.views.written + shop.views.deleted).items() if count}
    here = {name.rpartition("/")[2] for name in written if name != "published"}
    assert not here & {name.rpartition("/")[2] for name in kept}
    assert shop.shows("borrows", query)
    shop.db.put("orders", {"id": 3, "customer": 1, "amount": 100})
    shop.db.delete("orders", 7)
    shop.db.refresh()
    assert shop.shows("borrows", query)


@pytest.mark.parametrize(("lent", "query"), quick_first(BORROWING, 4))
def test_the_lender_goes_on_while_its_rows_are_read(lent: str, query: str) -> None:
    shop = Shop()
    shop.create("lends", LENT[lent])

    def write(arrival: int) -> None:
        record = shop.build()
        assert record is not None
        assert record.loan is not None
        assert len(record.loan.kept_rows) == 1
        if arrival > 9:
            return
        shop.other.put("orders", {"id": 3 * arrival % 25, "customer": arrival % 7, "amount": arrival % 4})
        shop.other.put("orders", {"id": 30 + arrival, "customer": None if arrival % 2 else 20, "amount": None})
        shop.other.delete("orders", 2 * arrival % 20)
        shop.other.delete("orders", 5 * arrival % 20)
        if arrival % 3 == 0:
            shop.other.delete("customers", arrival % 4)
        else:
            shop.other.put("customers", {"id": arrival % 5, "region": f"r{arrival}"})
        shop.epoch()

    for point in ("publish:before", "publish:after", "build:before-swap"):
        with shop.at(point, write):
            shop.create("borrows", query)
        assert shop.shows("borrows", query), point
        shop.db.put("orders", {"id": 1, "customer": 2, "amount": 9})
        shop.db.refresh()
        assert shop.shows("borrows", query), point
        assert shop.shows("lends", LENT[lent])
        shop.db.sql("DROP MATERIALIZED VIEW borrows")


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT o.id, g.n, g.total FROM orders o JOIN ({GROUPS}) g ON o.customer = g.customer",
        f"SELECT customer, n, total FROM ({GROUPS}) UNION ALL SELECT id, 1, 2 FROM orders",
    ],
)
def test_rows_of_a_table_that_is_read_elsewhere_come_from_that_table(query: str) -> None:
    """All of one table shows one moment while a view is filled."""
    shop = Shop(base=ReadCountingSpace())
    shop.create("lends", GROUPS)
    before = orders_scanned(shop)
    shop.create("borrows", query)
    assert orders_scanned(shop) >= before + 20
    assert shop.shows("borrows", query)


def test_of_operators_over_one_table_the_lowest_that_serves_all_is_read() -> None:
    shop = Shop(base=ReadCountingSpace())
    of_all = f"SELECT SUM(n) AS n, SUM(total) AS total FROM ({GROUPS})"
    shop.create("lends", GROUPS)
    shop.create("sums", of_all)
    before = orders_scanned(shop)
    query = (
        f"SELECT g.customer, g.n, g.total, s.n AS all_n, s.total AS all_total FROM ({GROUPS}) g CROSS JOIN ({of_all}) s"
    )
    shop.create("borrows", query)
    assert orders_scanned(shop) == before
    assert shop.shows("borrows", query)


def test_a_dead_creator_is_followed_by_another_behind_its_last_piece() -> None:
    shop = Shop()
    shop.create("lends", RANKED)
    for id_ in range(20, 40):
        shop.db.put("orders", {"id": id_, "customer": id_ % 8, "amount": id_})
    shop.db.refresh()
    query = "SELECT * FROM lends WHERE r < 3"
    with pytest.raises(SimulatedCrash), hooked(At("publish:after", 4, crash)):
        shop.create("borrows", query)
    record = shop.build()
    assert record is not None
    assert record.build is not None
    assert record.build.rows_total == 40
    # Pieces of four rows: each goes on to the end of a partition.
    assert 12 <= record.build.rows_done < 40
    for arrival in range(3):
        shop.other.delete("orders", 8 + arrival)
        shop.other.put("orders", {"id": 60 + arrival, "customer": arrival, "amount": -arrival})
        shop.epoch()
    shop.db = shop.connect()
    shop.db.refresh()
    assert shop.shows("borrows", query)
    assert not [name for name in shop.tables() if name.startswith("build-")]


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_the_right_side_of_a_semi_join_is_complete(kind: str) -> None:
    """It is asked for each row of the left side, which is read: of it nothing need be filled."""
    shop = Shop(base=ReadCountingSpace())
    shop.create("lends", f"SELECT c.id, c.region FROM customers c LEFT {kind} JOIN orders o ON o.customer = c.id")
    kept = {name.rpartition("/")[2] for name in shop.tables()}
    before = orders_scanned(shop)
    shop.views.written.clear()
    query = "SELECT region, COUNT(*) AS n FROM lends GROUP BY region"
    shop.create("borrows", query)
    assert orders_scanned(shop) == before
    assert not kept & {name.rpartition("/")[2] for name, count in shop.views.written.items() if count}
    assert shop.shows("borrows", query)


def test_partitions_whose_keys_are_cut_are_read_whole() -> None:
    """The first bytes of a long partition's keys are those of others, too."""
    shop = Shop()
    for id_ in range(24):
        shop.db.put("customers", {"id": id_, "region": "long" * 150 + str(id_ % 5) if id_ % 3 else f"r{id_ % 2}"})
    partition = "region, region || 'a', region || 'b', region || 'c', id % 2"
    ranked = (
        f"SELECT id, region, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY region || id) AS r FROM customers"
    )
    shop.create("lends", ranked)
    query = "SELECT r, COUNT(*) AS n, MAX(id) AS most, MIN(region) AS least FROM lends GROUP BY r"
    records = shop.create_seen("borrows", query)
    kept_rows = [len(record.loan.kept_rows) for record in records if record.loan is not None]
    assert len(kept_rows) > 3
    assert set(kept_rows) == {1}
    assert shop.shows("borrows", query)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP MATERIALIZED VIEW lends",
        "ALTER MATERIALIZED VIEW lends SUSPEND",
        "REFRESH MATERIALIZED VIEW lends FULL",
        "ALTER TABLE orders ADD COLUMN more INT DEFAULT 3",
        "TRUNCATE TABLE orders",
    ],
)
@pytest.mark.parametrize("point", ["publish:before", "publish:after", "build:before-swap"])
def test_what_becomes_of_the_lender(statement: str, point: str) -> None:
    shop = Shop()
    shop.create("lends", GROUPS)
    query = f"SELECT customer, n FROM ({GROUPS}) WHERE total > 5"

    def happens(arrival: int) -> None:
        if arrival == (1 if point == "build:before-swap" else 2):
            shop.other.sql(statement)
            shop.other.put("customers", {"id": 1, "region": "east"})
            shop.other.delete("orders", 7)
            if "continuous" in shop.cadences():
                shop.epoch()

    with shop.at(point, happens):
        shop.create("borrows", query)
    assert shop.shows("borrows", query)
    shop.db.delete("orders", 8)
    shop.db.refresh("borrows")
    assert shop.shows("borrows", query)


def test_groups_that_cannot_be_computed_are_made_anew() -> None:
    shop = Shop(base=ReadCountingSpace())
    shop.db.put("orders", {"id": 60, "customer": 1, "amount": 9_000_000_000_000_000_000})
    shop.db.put("orders", {"id": 61, "customer": 1, "amount": 9_000_000_000_000_000_000})
    query = f"SELECT customer, n FROM ({GROUPS}) WHERE total > 5"
    with pytest.raises(Exception, match="OVERFLOW"):
        shop.create("lends", GROUPS)
    before = orders_scanned(shop)
    with pytest.raises(Exception, match="OVERFLOW"):
        shop.create("borrows", query)
    assert orders_scanned(shop) > before
    shop.db.delete("orders", 60)
    shop.db.refresh()
    assert shop.shows("borrows", query)


def test_explain_tells_what_is_read_where_others_keep_it() -> None:
    shop = Shop()
    shop.create("lends", GROUPS)
    planned = shop.db.explain(
        f"CREATE MATERIALIZED VIEW borrows AS SELECT customer FROM ({GROUPS}) WHERE n + total > 3"
    )
    assert "base rows: 0, rows of state that others keep: 5, read once to fill it" in planned
    assert planned.count("shared with lends, borrowed while the view is filled") == 1


def test_partitions_whose_keys_stand_on_both_sides_of_another_are_read_whole() -> None:
    """Some rows of a partition have keys that fit, others keys that are cut: what stands between is no place to cut."""
    shop = Shop()
    store_long_partitions(shop)
    ranked = "SELECT k, d, RANK() OVER (PARTITION BY a, b, c, d ORDER BY k) AS r FROM long"
    shop.create("lends", ranked)
    query = "SELECT k, r FROM lends WHERE r > 0"
    records = shop.create_seen("borrows", query)
    kept_rows = [len(record.loan.kept_rows) for record in records if record.loan is not None]
    assert set(kept_rows) == {1}
    assert shop.shows("borrows", f"SELECT k, r FROM ({ranked})")


def test_an_epoch_reads_a_partition_once_whose_keys_begin_as_those_of_another() -> None:
    shop = Shop()
    store_long_partitions(shop)
    counted = "SELECT k, d, COUNT(*) OVER (PARTITION BY a, b, c, d) AS n FROM long"
    query = f"SELECT d, SUM(n) AS n, COUNT(*) AS m FROM ({counted}) GROUP BY d"
    shop.create("counted", query, "REFRESH POLICY INCREMENTAL")
    with shop.db.transaction() as transaction:
        for key, last in (("7", "d" * 122), ("8", "e")):
            transaction.put("long", {"k": key, "a": "a" * 122, "b": "b" * 122, "c": "c" * 122, "d": last})
    shop.db.refresh()
    assert shop.shows("counted", query)


def store_long_partitions(shop: Shop) -> None:
    shop.db.sql("CREATE TABLE long (k STRING, a STRING, b STRING, c STRING, d STRING, PRIMARY KEY (k))")
    for number in range(3):
        for key, last in ((str(number), "d" * 122), (str(number) * 50, "d" * 122), (f"x{number}", "e")):
            shop.db.put("long", {"k": key, "a": "a" * 122, "b": "b" * 122, "c": "c" * 122, "d": last})


def test_a_lender_that_stands_before_the_log_that_is_held_lends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lender goes while a fill begins; another view, filled at an earlier position, takes its cadence's name."""
    shop = Shop()
    shop.other.sql(f"CREATE MATERIALIZED VIEW second WITH NO DATA AS {GROUPS}")
    other = shop.other._engine.coordinator
    (view,) = (v for v in other.catalog().views.values() if v.name == "second")
    builds._fill(other, view.cadence, None, None)
    shop.create("first", GROUPS)
    position = other.head()
    catch_up, hold = Coordinator.catch_up, retention.hold
    happened: list[str] = []

    def caught_up(self: Coordinator, cadence: str, *rest: Any) -> Any:
        outcomes = catch_up(self, cadence, *rest)
        if not happened:
            happened.append("gone")
            shop.other.sql("DROP MATERIALIZED VIEW first")
            shop.other.delete("orders", 7)
        return outcomes

    def held(*arguments: Any, **more: Any) -> int:
        found = hold(*arguments, **more)
        if happened == ["gone"]:
            happened.append("held")
        return found

    @contextmanager
    def write() -> Iterator[Any]:
        if happened == ["gone", "held"]:
            happened.append("swapped")
            # The other process has looked at the log's end before.
            with monkeypatch.context() as patch:
                patch.setattr(Coordinator, "head", lambda self: position)
                assert swaps.swap(other, (view.cadence,))
        with CountingSpace.write(shop.views) as txn:
            yield txn

    monkeypatch.setattr(Coordinator, "catch_up", caught_up)
    monkeypatch.setattr(retention, "hold", held)
    monkeypatch.setattr(shop.views, "write", write)
    query = f"SELECT customer, n FROM ({GROUPS}) WHERE total > 5"
    shop.create("borrows", query)
    assert happened == ["gone", "held", "swapped"]
    assert shop.shows("borrows", query)
    assert shop.shows("second", GROUPS)
