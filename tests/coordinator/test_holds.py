"""Who holds the log: cadences that live, as long as they live, and nobody else; what has lost its hold is told so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.coordinator.stores import ROWS, SUMS, Shop
from viewkeeper.coordinator import upkeep
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.errors import ConflictError, ViewkeeperError
from viewkeeper.log import retention
from viewkeeper.pipeline.failpoints import hooked

OTHER = "SELECT id, amount FROM orders"


@pytest.fixture
def shop() -> Shop:
    made = Shop()
    made.create("lends", ROWS)
    return made


def holders(shop: Shop) -> list[str]:
    with shop.base.read() as txn:
        return [held.consumer.name for held in retention.consumers(txn)]


def lose_hold(shop: Shop) -> None:
    with shop.base.write() as txn:
        assert retention.release(txn, "cadence/continuous")


def reason(shop: Shop) -> object:
    (view,) = shop.db.status()["views"]
    return view["state"], view["reason"]


def once(point: str, happens: Callable[[], object]) -> Callable[[str], None]:
    """Return a hook by which something happens at the first arrival at a failpoint."""
    left = [happens]

    def hook(name: str) -> None:
        if name == point and left:
            with hooked(lambda name: None):
                left.pop()()

    return hook


def test_a_view_that_joins_while_the_last_one_goes_holds_the_log(shop: Shop) -> None:
    with hooked(once("remove:between", lambda: shop.other.sql(f"CREATE MATERIALIZED VIEW other AS {OTHER}"))):
        shop.db.sql("DROP MATERIALIZED VIEW lends")
    assert holders(shop) == ["cadence/continuous"]
    shop.db.put("orders", {"id": 70, "customer": 1, "amount": 3})
    upkeep.purge(shop.other._engine.coordinator)
    shop.db.refresh()
    assert shop.shows("other", OTHER)


def test_a_view_that_goes_while_its_fill_waits_for_the_lender_leaves_no_hold(shop: Shop) -> None:
    shop.db.put("orders", {"id": 70, "customer": 1, "amount": 3})
    with (
        hooked(once("publish:after", lambda: shop.other.sql("DROP MATERIALIZED VIEW borrows"))),
        pytest.raises(ConflictError, match="VIEW_CHANGED"),
    ):
        shop.create("borrows", SUMS)
    assert holders(shop) == ["cadence/continuous"]


def test_a_cadence_without_a_hold_gets_one_while_the_log_is_there(shop: Shop) -> None:
    lose_hold(shop)
    upkeep.begin(shop.other._engine.coordinator)
    assert holders(shop) == ["cadence/continuous"]
    shop.db.put("orders", {"id": 70, "customer": 1, "amount": 3})
    upkeep.purge(shop.other._engine.coordinator)
    shop.db.refresh()
    assert shop.shows("lends", ROWS)


@pytest.mark.parametrize("names", [(), ("lends",)])
def test_a_cadence_behind_which_the_log_has_gone_is_left_behind(shop: Shop, names: tuple[str, ...]) -> None:
    lose_hold(shop)
    shop.db.put("orders", {"id": 70, "customer": 1, "amount": 3})
    retention.purge(shop.base)
    with pytest.raises(ConflictError, match="the log that it had not read yet is gone") as caught:
        shop.db.refresh(*names)
    assert caught.value.code == "NEEDS_REBUILD"
    assert reason(shop) == ("NEEDS_REBUILD", "the log that it had not read yet is gone")
    shop.db.refresh()
    shop.db.sql("ALTER MATERIALIZED VIEW lends RESUME")
    assert shop.shows("lends", ROWS)
    assert holders(shop) == ["cadence/continuous"]


def test_a_maintainer_leaves_behind_what_has_lost_its_log(shop: Shop) -> None:
    lose_hold(shop)
    shop.db.put("orders", {"id": 70, "customer": 1, "amount": 3})
    retention.purge(shop.base)
    complaints: list[ViewkeeperError] = []
    troubles: list[object] = []
    Maintainer(shop.other._engine.coordinator, complain=complaints.append, note=troubles.append).round()
    assert reason(shop) == ("NEEDS_REBUILD", "the log that it had not read yet is gone")
    assert [error.code for error in complaints] == ["NEEDS_REBUILD"]
    assert not troubles
