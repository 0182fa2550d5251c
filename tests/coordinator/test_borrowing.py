"""A new view over arrangements that are kept already is filled without filling them, whatever happens meanwhile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.coordinator.stores import JOIN, ROWS, SETTINGS, SUMS, Shop
from tests.quick import quick_first
from viewkeeper.errors import ViewFailed
from viewkeeper.log import reader
from viewkeeper.pipeline import memory
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.testing.actions import generate_sharing
from viewkeeper.testing.faults import At, SimulatedCrash, crash
from viewkeeper.testing.simulation import simulate

COUNTED = "(SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)"
SHARES = "(SELECT id, 10 / ({}) AS share FROM customers)"
SEEDS, ACTIONS = 16, 26


@pytest.fixture
def shop() -> Shop:
    made = Shop()
    made.create("lends", ROWS)
    return made


def test_nothing_that_is_kept_is_written_again(shop: Shop) -> None:
    kept = set(shop.tables())
    shop.views.written.clear()
    shop.create("borrows", SUMS)
    written = {name for name, count in (shop.views.written + shop.views.deleted).items() if name != "published"}
    assert not kept & written
    assert {name.partition("/")[2][0] for name in written} == {"g", "v"}
    assert shop.shows("borrows", SUMS)
    shop.db.put("customers", {"id": 4, "region": "east"})
    shop.db.refresh()
    assert shop.shows("borrows", SUMS)


def test_a_build_that_follows_writes_nothing_that_is_kept() -> None:
    """Also where groups come and go: of borrowed state only old values are noted, by the lender's epoch."""
    shop = Shop()
    query = f"SELECT c.id, g.n FROM customers c JOIN {COUNTED} g ON c.id = g.customer"
    shop.create("lends", query)
    borrowed: set[str] = set()

    def write(arrival: int) -> None:
        record = shop.build()
        if arrival == 1 and record is not None and record.loan is not None:
            borrowed.update(f"{record.name}/{state}" for state in record.loan.states)
            for key in range(20):
                if key % 5 in (1, 2):
                    shop.other.delete("orders", key)
            shop.other.put("orders", {"id": 50, "customer": 2, "amount": 1})
            shop.other.put("orders", {"id": 51, "customer": 9, "amount": 1})
            shop.epoch()
            with shop.views.read() as txn:
                noted.update({name: txn.count(name) for name in borrowed})
            assert {name: shop.views.written[name] for name in borrowed} == noted

    noted: dict[str, int] = {}
    with shop.at("build:before-swap", write):
        shop.create("borrows", query)
    assert len(borrowed) == 3
    assert sum(noted.values()) == 6
    assert {name: shop.views.written[name] for name in borrowed} == noted
    assert not any(shop.views.deleted[name] for name in borrowed)
    assert shop.shows("borrows", query)


def test_what_others_keep_complete_is_not_read(shop: Shop) -> None:
    records = shop.create_seen("borrows", SUMS)
    totals = [record.build.rows_total for record in records if record.build is not None]
    assert set(totals) == {20}


@pytest.mark.parametrize(
    ("query", "is_borrowing"),
    quick_first(
        [
            (SUMS, True),
            (f"SELECT o.id, c.region FROM {JOIN} WHERE o.amount > 3", True),
            ("SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id", True),
            (
                "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id AND o.amount > c.id",
                True,
            ),
            ("SELECT o.id, o.amount FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.id", True),
            ("SELECT c.id, c.region FROM customers c LEFT SEMI JOIN orders o ON o.customer = c.id", True),
            (f"SELECT c.id, g.n FROM customers c JOIN {COUNTED} g ON c.id = g.customer", True),
            (f"SELECT COUNT(*) AS n, MAX(o.amount) AS most FROM {JOIN}", True),
            (
                f"SELECT l.region, COUNT(*) AS n FROM lends l JOIN {COUNTED} g ON l.id = g.customer GROUP BY l.region",
                True,
            ),
            (f"SELECT o.id FROM {JOIN} UNION ALL SELECT id FROM customers", True),
            ("SELECT o.id, c.id AS other FROM orders o FULL JOIN customers c ON o.customer = c.id", False),
            ("SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer", False),
            ("SELECT region, COUNT(*) AS n FROM customers GROUP BY region", True),
            ("SELECT id, region FROM customers WHERE id > 1", False),
        ],
        4,
    ),
)
def test_the_lender_goes_on_while_a_view_is_filled(shop: Shop, query: str, is_borrowing: bool) -> None:
    shop.create("equal", query)

    def write(arrival: int) -> None:
        record = shop.build()
        assert record is not None
        assert (record.loan is not None) == is_borrowing
        if arrival > 12:
            return
        shop.other.put("customers", {"id": arrival % 5, "region": f"r{arrival}"})
        shop.other.put("orders", {"id": 3 * arrival % 25, "customer": arrival % 6, "amount": arrival})
        shop.other.delete("orders", 2 * arrival % 20)
        if arrival % 3 == 0:
            shop.other.delete("customers", arrival % 4)
        shop.epoch()

    for point in ("publish:before", "publish:after", "build:before-swap"):
        with shop.at(point, write):
            shop.create("borrows", query)
        assert shop.shows("borrows", query), point
        shop.create("undisturbed", query)
        assert shop.shows("undisturbed", query), point
        shop.db.sql("DROP MATERIALIZED VIEW undisturbed")
        shop.db.refresh()
        assert shop.shows("borrows", query), point
        assert shop.shows("lends", ROWS)
        shop.db.sql("DROP MATERIALIZED VIEW borrows")


def test_a_build_that_follows_sees_what_it_has_passed(shop: Shop) -> None:
    """Old values are those of the build's position: where that moves on, they are forgotten."""

    def write(arrival: int) -> None:
        if arrival == 1:
            shop.other.put("customers", {"id": 1, "region": "east"})
        elif arrival == 2:
            shop.other.put("orders", {"id": 100, "customer": 1, "amount": 1000})
        else:
            return
        shop.epoch()

    with shop.at("build:before-swap", write):
        shop.create("borrows", SUMS)
    assert shop.shows("borrows", SUMS)


@pytest.mark.parametrize(
    "query",
    quick_first(
        [
            SUMS,
            "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id AND o.amount > c.id",
            "SELECT c.id, c.region FROM customers c LEFT SEMI JOIN orders o ON o.customer = c.id",
            f"SELECT c.id, g.n FROM customers c JOIN {COUNTED} g ON c.id = g.customer",
        ],
        1,
    ),
)
def test_a_build_follows_much_of_the_log_in_several_epochs(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is as large as any epoch may be; its lender goes on between them."""
    # What this process really uses depends on the tests before.
    monkeypatch.setattr(memory, "peak_bytes", lambda: 0)
    shop = Shop(settings=replace(SETTINGS, memory_bytes=1 << 15, publish_seconds_max=3600.0))
    shop.create("lends", ROWS)
    shop.create("counted", COUNTED.strip("()"))
    bound = shop.db._engine.coordinator.epoch_size.log_bytes
    positions: list[int] = []

    def write(number: int) -> None:
        shop.other.put("orders", {"id": number % 31, "customer": number % 6, "amount": number})
        shop.other.put("customers", {"id": number % 6, "region": f"region {number % 7}"})
        if not number % 5:
            shop.other.delete("orders", (number * 3) % 31)
        shop.epoch()

    def look(arrival: int) -> None:
        record = shop.build()
        if record is None or record.build is not None:
            return
        assert record.loan is not None
        if not positions:
            for number in range(60):
                write(number)
        elif len(positions) < 8:
            write(60 + len(positions))
        if record.position not in positions:
            positions.append(record.position)

    with shop.at("publish:after", look):
        shop.create("borrows", query)
    with shop.base.read() as txn:
        sizes = [reader.bytes_waiting(txn, *pair) for pair in pairwise(positions)]
    assert len(sizes) > 5
    assert max(sizes) <= bound < sum(sizes) / 5
    assert shop.shows("borrows", query)
    assert shop.shows("lends", ROWS)


def test_an_epoch_of_a_build_ends_where_the_lender_stands(shop: Shop) -> None:
    """The lender goes on between the plan of such an epoch and its publishing: then it is planned anew."""
    ran: list[int] = []

    def first(arrival: int) -> None:
        if arrival == 1:
            shop.other.put("customers", {"id": 1, "region": "east"})
            shop.epoch()

    def then(name: str) -> None:
        record = shop.build()
        if name == "build:before-swap":
            first(len(ran) + 1)
        if name != "publish:before" or record is None or record.build is not None or ran:
            return
        ran.append(1)
        with hooked(lambda name: None):
            shop.other.put("customers", {"id": 1, "region": "west"})
            shop.epoch()
            shop.other.put("orders", {"id": 100, "customer": 1, "amount": 1000})

    with hooked(then):
        shop.create("borrows", SUMS)
    assert ran
    assert shop.shows("borrows", SUMS)


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP MATERIALIZED VIEW lends",),
        ("DROP MATERIALIZED VIEW lends", f"CREATE MATERIALIZED VIEW lends AS {ROWS}"),
        ("ALTER MATERIALIZED VIEW lends SUSPEND",),
        ("ALTER MATERIALIZED VIEW lends SUSPEND", "ALTER MATERIALIZED VIEW lends RESUME"),
        ("CREATE OR REPLACE MATERIALIZED VIEW lends AS SELECT id, region FROM customers",),
        ("REFRESH MATERIALIZED VIEW lends FULL",),
        ("ALTER MATERIALIZED VIEW lends RENAME TO lent",),
        ("ALTER TABLE orders ADD COLUMN more INT DEFAULT 3", "INSERT INTO orders VALUES (40, 1, 5, 6)"),
        ("TRUNCATE TABLE customers",),
    ],
)
@pytest.mark.parametrize("point", ["publish:after", "build:before-swap"])
def test_what_becomes_of_the_lender(shop: Shop, statements: tuple[str, ...], point: str) -> None:
    def happens(arrival: int) -> None:
        if arrival == (2 if point == "publish:after" else 1):
            for statement in statements:
                shop.other.sql(statement)
            shop.other.put("customers", {"id": 1, "region": "east"})
            shop.other.put("orders", {"id": 7, "customer": 3, "amount": 70})
            if "continuous" in shop.cadences():
                shop.epoch()

    with shop.at(point, happens):
        shop.create("borrows", SUMS)
    assert shop.shows("borrows", SUMS)
    shop.db.put("customers", {"id": 2, "region": "west"})
    shop.db.refresh("borrows")
    assert shop.shows("borrows", SUMS)


def test_a_lender_whose_cadence_is_made_anew_lends_no_more(shop: Shop) -> None:
    """Its last view goes and its remover dies; one that was filled beside it brings equal state, of another moment."""
    shop.db.sql("DROP MATERIALIZED VIEW lends")

    def happens(arrival: int) -> None:
        if arrival > 1:
            return
        shop.other.put("customers", {"id": 1, "region": "east"})
        shop.other.sql(f"CREATE MATERIALIZED VIEW lends AS {ROWS}")
        with hooked(At("publish:after", 3, crash)), pytest.raises(SimulatedCrash):
            shop.connect().sql(f"CREATE MATERIALIZED VIEW borrows AS {SUMS}")
        with hooked(At("remove:before", 1, crash)), pytest.raises(SimulatedCrash):
            shop.other.sql("DROP MATERIALIZED VIEW lends")

    with shop.at("build:before-swap", happens):
        shop.create("equal", ROWS.replace("o.amount", "o.amount, o.customer"))
    shop.db.refresh()
    assert shop.shows("borrows", SUMS)


def test_a_dead_creator_is_followed_by_another_behind_its_last_piece(shop: Shop) -> None:
    crashes = At("publish:after", 4, crash)
    with pytest.raises(SimulatedCrash), hooked(crashes):
        shop.create("borrows", SUMS)
    record = shop.build()
    assert record is not None
    assert record.build is not None
    assert record.build.rows_done == 8
    assert record.loan is not None
    assert len(record.loan.states) == 2
    shop.other.put("customers", {"id": 1, "region": "east"})
    shop.epoch()
    shop.other.put("orders", {"id": 2, "customer": 1, "amount": 50})
    with shop.views.read() as txn:
        noted = {name: txn.count(name) for name in txn.databases() if name.startswith("build-") and "/a" in name}
    assert list(noted.values()) == [1]
    shop.db = shop.connect()
    shop.db.refresh()
    assert shop.shows("borrows", SUMS)
    assert not [name for name in shop.tables() if name.startswith("build-")]


def test_what_leaves_out_rows_that_fail_is_not_borrowed() -> None:
    shop = Shop()
    failing = (
        "SELECT o.id, c.share FROM orders o JOIN (SELECT id, 10 / id AS share FROM customers) c ON o.customer = c.id"
    )
    with pytest.raises(ViewFailed):
        shop.create("lends", failing)
    with pytest.raises(ViewFailed):
        shop.create("borrows", failing.replace("o.id,", "o.id, o.amount,"))
    shop.db.delete("customers", 0)
    shop.db.refresh()
    assert shop.shows("borrows", failing.replace("o.id,", "o.id, o.amount,"))


def test_a_lender_that_fails_meanwhile_lends_on() -> None:
    shop = Shop()
    shares = f"SELECT o.id, c.share FROM orders o JOIN {SHARES.format('id + 1')} c ON o.customer = c.id"
    shop.create("lends", shares)
    sums = shares.replace("o.id, c.share", "COUNT(*) AS n, SUM(c.share) AS total")

    def fail(arrival: int) -> None:
        if arrival == 2:
            shop.other.put("customers", {"id": -1, "region": "nowhere"})
            shop.epoch()

    with pytest.raises(ViewFailed), shop.at("publish:after", fail):
        shop.create("borrows", sums)
    shop.db.delete("customers", -1)
    shop.db.refresh()
    assert shop.shows("borrows", sums)
    assert shop.shows("lends", shares)


def test_explain_tells_what_is_borrowed(shop: Shop) -> None:
    planned = shop.db.explain(f"CREATE MATERIALIZED VIEW borrows AS {SUMS}")
    assert planned.count("shared with lends, borrowed while the view is filled") == 2
    assert "base rows: 20, read once" in planned
    apart = shop.db.explain(f"CREATE MATERIALIZED VIEW borrows REFRESH EVERY 5 SECONDS AS {SUMS}")
    assert "borrowed" not in apart
    assert "base rows: 24, read once" in apart
    anew = shop.db.explain(f"CREATE OR REPLACE MATERIALIZED VIEW lends AS {SUMS}")
    assert "borrowed" not in anew
    with pytest.raises(SimulatedCrash), hooked(At("publish:after", 2, crash)):
        shop.create("borrows", SUMS)
    shop.db = shop.connect()
    building = shop.db.explain("EXPLAIN MATERIALIZED VIEW borrows")
    assert building.count("shared with lends, borrowed while the view is filled") == 2


@pytest.mark.slow
def test_histories_by_seed() -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        counts += simulate(seed, ACTIONS, generate_sharing)
    assert counts["interferences"] > 10
    assert counts["comparisons"] > 30
