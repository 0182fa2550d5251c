"""Arrangements and equal subplans stand once for all views of a cadence, and go with the last view that needs them."""

from __future__ import annotations

import pytest

from tests.coordinator.stores import JOIN, ROWS, SUMS, Shop
from viewkeeper.errors import ViewFailed

COUNTED = "(SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)"


@pytest.fixture
def shop() -> Shop:
    return Shop()


def _kinds(names: set[str]) -> str:
    """Return the kinds of state tables by the letters that their names begin with: a for arrangements."""
    return "".join(sorted(name.partition("/")[2][0] for name in names))


def test_two_views_over_one_join_keep_its_arrangements_once(shop: Shop) -> None:
    shop.create("one", ROWS)
    before = shop.tables()
    assert _kinds(set(before)) == "aav"
    shop.create("two", SUMS)
    after = shop.tables()
    assert {name: after[name] for name in before} == before
    assert _kinds(set(after) - set(before)) == "gv"


def test_equal_subplans_are_kept_once(shop: Shop) -> None:
    shop.create("one", f"SELECT c.id, g.n FROM customers c JOIN {COUNTED} g ON c.id = g.customer")
    before = shop.tables()
    shop.create("two", f"SELECT o.id, g.n FROM orders o JOIN {COUNTED} g ON o.customer = g.customer")
    after = shop.tables()
    assert {name: after[name] for name in before} == before
    assert _kinds(set(after) - set(before)) == "av"


def test_explain_tells_with_whom(shop: Shop) -> None:
    shop.create("one", ROWS)
    shop.create("two", SUMS)
    shop.create("apart", SUMS, "REFRESH EVERY 5 SECONDS")
    for name, others in (("one", "two"), ("two", "one"), ("apart", "")):
        lines = shop.db.explain(f"EXPLAIN MATERIALIZED VIEW {name}").splitlines()
        arrangements = [line.strip() for line in lines if line.endswith(others) and "  Arrange" in line]
        assert len(arrangements) == 2
        assert all(("shared with " + others in line) == bool(others) for line in arrangements)


def test_views_of_other_cadences_keep_their_own(shop: Shop) -> None:
    shop.create("one", ROWS)
    shop.create("two", ROWS, "REFRESH EVERY 5 SECONDS")
    assert _kinds(set(shop.tables())) == "aaaavv"


@pytest.mark.parametrize("first", ["one", "two"])
def test_dropping_a_view_drops_what_no_other_needs(shop: Shop, first: str) -> None:
    shop.create("one", ROWS)
    shop.create("two", SUMS)
    shop.db.sql(f"DROP MATERIALIZED VIEW {first}")
    assert _kinds(set(shop.tables())) == ("aagv" if first == "one" else "aav")
    other, query = ("two", SUMS) if first == "one" else ("one", ROWS)
    shop.db.put("customers", {"id": 1, "region": "east"})
    shop.db.refresh()
    assert shop.shows(other, query)
    shop.db.sql(f"DROP MATERIALIZED VIEW {other}")
    assert shop.tables() == {}
    assert shop.cadences() == {}


@pytest.mark.parametrize("statement", ["CREATE OR REPLACE MATERIALIZED VIEW two AS", "ALTER MATERIALIZED VIEW two AS"])
def test_another_query_drops_what_only_the_old_one_needed(shop: Shop, statement: str) -> None:
    shop.create("one", ROWS)
    shop.create("two", "SELECT a.id, b.amount FROM orders a JOIN orders b ON a.id = b.amount")
    assert _kinds(set(shop.tables())) == "aaaavv"
    shop.db.sql(f"{statement} {SUMS}")
    assert _kinds(set(shop.tables())) == "aagvv"
    shop.db.put("orders", {"id": 100, "customer": 2, "amount": 7})
    shop.db.refresh()
    assert shop.shows("one", ROWS)
    assert shop.shows("two", SUMS)


def test_suspending_a_view_keeps_what_others_need(shop: Shop) -> None:
    shop.create("one", ROWS)
    shop.create("two", f"SELECT o.id FROM {JOIN}")
    shop.db.sql("ALTER MATERIALIZED VIEW one SUSPEND")
    shop.db.put("orders", {"id": 100, "customer": 2, "amount": 7})
    shop.db.refresh("two")
    assert shop.shows("two", f"SELECT o.id FROM {JOIN}")
    shop.db.sql("ALTER MATERIALIZED VIEW one RESUME")
    assert shop.shows("one", ROWS)


def test_who_checks_a_key_below_goes_on_when_the_view_below_is_filled_anew(shop: Shop) -> None:
    """What checks the declared key of a view in another cadence keeps its name while the query is the same."""
    below = "SELECT customer, id FROM orders WHERE id < 5"
    shop.db.sql(f"CREATE MATERIALIZED VIEW low (customer, id, PRIMARY KEY (customer)) AS {below}")
    shop.create("high", "SELECT customer, id FROM low", "REFRESH EVERY 5 SECONDS")
    shop.db.refresh("low", full=True)
    shop.db.put("orders", {"id": 4, "customer": 2, "amount": 0})
    with pytest.raises(ViewFailed) as failed:
        shop.db.refresh()
    assert set(failed.value.details["views"]) == {"low", "high"}
    shop.db.put("orders", {"id": 4, "customer": 7, "amount": 0})
    shop.db.refresh()
    assert shop.shows("high", below)
