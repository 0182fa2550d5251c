"""Rows that meet are with one owner, whoever their owner was before: an epoch in several tasks is that in one."""

from __future__ import annotations

import pytest

from tests.coordinator.stores import JOIN, SETTINGS, Shop
from viewkeeper.clock import SYSTEM_CLOCK, seeded
from viewkeeper.database.connection import Database
from viewkeeper.runtime import OpenStore
from viewkeeper.testing.faults import FaultyExecutor

GROUPS = f"SELECT o.customer, o.amount, COUNT(*) AS n FROM {JOIN} GROUP BY o.customer, o.amount"
COUNTS = f"SELECT o.customer, o.amount, COUNT(DISTINCT o.id) AS n, MAX(o.id) AS m FROM {JOIN} GROUP BY ALL"


class _TasksShop(Shop):
    """A shop whose epochs run in several tasks, and are compared with what they are in one."""

    def connect(self) -> Database:
        executor = FaultyExecutor(self.base, self.views, seeded(3), SYSTEM_CLOCK)
        store = OpenStore(None, self.base, self.views, None, None, lambda: None, {"local": lambda: executor})
        return Database(store, SETTINGS)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT g.*, l.note FROM ({GROUPS}) g JOIN labels l ON l.customer = g.customer AND l.amount = g.amount",
        f"SELECT g.*, l.note FROM ({GROUPS}) g LEFT JOIN labels l ON l.customer = g.customer AND l.amount = g.amount",
        f"SELECT g.* FROM ({COUNTS}) g LEFT SEMI JOIN labels l ON l.customer = g.customer AND l.amount = g.amount",
        f"SELECT customer, amount FROM ({GROUPS}) INTERSECT SELECT customer, amount FROM labels",
    ],
)
def test_groups_of_rows_that_were_with_the_owner_of_a_part_of_the_group(query: str) -> None:
    """A join by customer leaves its pairs with the customer's owner, which is not that of customer and amount."""
    shop = _TasksShop()
    shop.db.sql("CREATE TABLE labels (customer INT, amount BIGINT, note STRING, PRIMARY KEY (customer, amount))")
    shop.create("labelled", query)
    for epoch in range(6):
        with shop.db.transaction() as tx:
            for number in range(12):
                amount = 100 * epoch + number
                tx.put("orders", {"id": 1000 + amount, "customer": number % 4, "amount": amount})
                tx.put("labels", {"customer": number % 4, "amount": amount, "note": "new"})
        shop.db.refresh()
        assert shop.shows("labelled", query)
