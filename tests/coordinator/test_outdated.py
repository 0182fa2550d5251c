"""Stores whose state another version of Viewkeeper has written: found before anything goes on from it, and mended.

The other version is this one with another planner (a rule less) or another form of state (a format's number), both for
real: what fills and what goes on are two connections that compile views differently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from tests.coordinator.stores import JOIN, ROWS, SUMS, Shop
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.database import Database
from viewkeeper.errors import ConflictError, ViewkeeperError
from viewkeeper.evaluation.verify import recompute_local
from viewkeeper.operators.layouts import FORMATS
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.layouts import STATE_OUTDATED
from viewkeeper.pipeline.records import DATABASE, ViewRecord, read_view, read_views, write_view
from viewkeeper.plan import rules
from viewkeeper.plan.rules.push_down_filters import push_down_filters
from viewkeeper.testing.faults import At, SimulatedCrash, crash

FILTERED = f"SELECT o.id, c.id AS customer, c.region FROM {JOIN} WHERE o.amount > 3"
Upgrade = Callable[[], None]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def upgrade(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """Gives what turns this program into one that plans views with filters otherwise; connections are opened anew."""

    def make() -> None:
        without = tuple(rule for rule in rules.RULES if rule is not push_down_filters)
        monkeypatch.setattr(rules, "RULES", without)
        reopen(shop)

    return make


def reopen(shop: Shop) -> None:
    shop.db, shop.other = shop.connect(), shop.connect()


def states(database: Database) -> dict[str, str]:
    return {view["name"]: view["state"] for view in database.status()["views"]}


def change(shop: Shop) -> None:
    """Move customers and orders; what is looked up under wrong names is missed."""
    shop.db.put("customers", {"id": 1, "region": "east"})
    shop.db.put("orders", {"id": 3, "customer": 1, "amount": 50})
    shop.db.delete("orders", 6)


def refresh_refused(shop: Shop, *names: str) -> ConflictError:
    with pytest.raises(ConflictError) as refused:
        shop.db.refresh(*names)
    assert refused.value.code == "NEEDS_REBUILD"
    assert STATE_OUTDATED in refused.value.message
    assert "RESUME" in refused.value.message
    return refused.value


def resume(shop: Shop, name: str) -> None:
    shop.db.sql(f"ALTER MATERIALIZED VIEW {name} RESUME")


def older_records(shop: Shop, *views: int) -> None:
    """Leave records as programs wrote them that knew no layouts."""
    with shop.views.write() as txn:
        for record in read_views(txn):
            if not views or record.view in views:
                fields = msgspec.to_builtins(record)
                assert fields.pop("layout")
                del fields["rows"]
                txn.put(DATABASE, b"view/" + record.view.to_bytes(8, "big"), msgspec.msgpack.encode(fields))


def test_a_view_that_is_planned_otherwise_waits_and_the_others_go_on(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("same", ROWS)
    shop.create("other", FILTERED)
    shown = shop.db.sql("SELECT * FROM other").rows()
    upgrade()
    change(shop)
    refresh_refused(shop)
    assert shop.shows("same", ROWS)
    assert shop.db.sql("SELECT * FROM other").rows() == shown
    assert shop.db.get("other", (5, 0)) == {"id": 5, "customer": 0, "region": "south"}
    refresh_refused(shop, "other")
    change(shop)
    refresh_refused(shop)
    assert shop.shows("same", ROWS)
    resume(shop, "other")
    assert shop.shows("other", FILTERED)
    change(shop)
    shop.db.refresh()
    assert shop.shows("other", FILTERED)
    assert shop.shows("same", ROWS)
    assert states(shop.db) == {"same": "ACTIVE", "other": "ACTIVE"}


def test_what_the_other_version_has_left_goes(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("same", ROWS)
    shop.create("other", FILTERED)
    upgrade()
    with pytest.raises(ConflictError):
        shop.db.refresh()
    resume(shop, "other")
    fresh = Shop()
    fresh.create("same", ROWS)
    fresh.create("other", FILTERED)
    kept = sorted(name for name in shop.tables() if not name.rpartition("/")[2].startswith("v"))
    assert kept == sorted(name for name in fresh.tables() if not name.rpartition("/")[2].startswith("v"))


def test_the_older_version_finds_what_the_newer_one_has_filled(
    shop: Shop, upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.create("other", FILTERED)
    before = rules.RULES
    upgrade()
    with pytest.raises(ConflictError):
        shop.db.refresh()
    resume(shop, "other")
    monkeypatch.setattr(rules, "RULES", before)
    reopen(shop)
    change(shop)
    refresh_refused(shop)
    shop.db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW other AS {FILTERED}")
    change(shop)
    shop.db.refresh()
    assert shop.shows("other", FILTERED)


KINDS = {
    "arrangement": FILTERED,
    "groups": "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer",
    "values": "SELECT MAX(amount) AS most FROM orders",
    "pairs": "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id AND o.amount > c.id",
    "rows in order": "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 3",
    "rows": "SELECT id FROM orders WHERE amount > 3",
    "errors": "SELECT id, 10 / amount AS share FROM orders WHERE amount > 0",
    "recursion": "WITH RECURSIVE r (id) AS (SELECT id FROM orders UNION SELECT id + 1 FROM r WHERE id < 30)"
    " SELECT id FROM r",
    "candidates": "SELECT id FROM orders WHERE amount > 4",
}
CLAUSES = {"candidates": "(id, PRIMARY KEY (id))"}


def test_all_kinds_of_state_are_drawn() -> None:
    assert set(KINDS) == set(FORMATS)


@pytest.mark.parametrize("kind", KINDS)
def test_state_in_another_form_under_the_same_name(shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    shop.create(f"concerned {CLAUSES.get(kind, '')}", KINDS[kind])
    shop.create("apart", ROWS, "REFRESH EVERY 5 SECONDS")
    monkeypatch.setitem(FORMATS, kind, FORMATS[kind] + 1)
    reopen(shop)
    change(shop)
    refresh_refused(shop)
    found = states(shop.db)
    assert found["concerned"] == "NEEDS_REBUILD"
    assert (found["apart"] == "ACTIVE") == (kind not in ("arrangement", "rows"))
    for name, query in (("concerned", KINDS[kind]), ("apart", ROWS)):
        resume(shop, name)
        assert shop.shows(name, query)


def test_views_on_views_wait_together(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("below", FILTERED)
    shop.create("above", "SELECT region, COUNT(*) AS n FROM below GROUP BY region")
    shop.create("beside", ROWS)
    upgrade()
    change(shop)
    refresh_refused(shop)
    assert states(shop.db) == {"below": "NEEDS_REBUILD", "above": "NEEDS_REBUILD", "beside": "ACTIVE"}
    resume(shop, "below")
    assert states(shop.db) == {"below": "ACTIVE", "above": "ACTIVE", "beside": "ACTIVE"}
    assert shop.shows("above", "SELECT region, COUNT(*) AS n FROM below GROUP BY region")


def test_a_view_does_not_get_ahead_of_one_that_it_reads(shop: Shop) -> None:
    shop.create("below", ROWS)
    shop.create("above", "SELECT id FROM below")
    older_records(shop, shop.db._engine.coordinator.catalog().view("below").id)
    reopen(shop)
    refresh_refused(shop)
    reasons = {view["name"]: view["reason"] for view in shop.db.status()["views"]}
    assert "the state of 'below', which it reads" in reasons["above"]
    resume(shop, "below")
    assert set(states(shop.db).values()) == {"ACTIVE"}


def test_a_store_of_before_layouts_were_kept_is_filled_anew(shop: Shop) -> None:
    shop.create("one", ROWS)
    shop.create("two", SUMS)
    older_records(shop)
    reopen(shop)
    change(shop)
    shown = shop.db.sql("SELECT * FROM two").rows()
    refresh_refused(shop)
    assert set(states(shop.db).values()) == {"NEEDS_REBUILD"}
    assert shop.db.sql("SELECT * FROM two").rows() == shown
    assert shop.cadences() == {}
    for name, query in (("one", ROWS), ("two", SUMS)):
        resume(shop, name)
        assert shop.shows(name, query)


def test_it_is_told_before_anybody_refreshes(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("other", FILTERED)
    shop.create("same", ROWS)
    upgrade()
    before = shop.db._engine.coordinator.catalog().version
    assert states(shop.db) == {"other": "NEEDS_REBUILD", "same": "ACTIVE"}
    shown = {row["name"]: row["state"] for row in shop.db.sql("SHOW MATERIALIZED VIEWS").rows()}
    assert shown == {"other": "NEEDS_REBUILD", "same": "ACTIVE"}
    described = {row["col_name"]: row["data_type"] for row in shop.db.sql("DESCRIBE EXTENDED other").rows()}
    assert described["# state"] == "NEEDS_REBUILD"
    assert described["# reason"].startswith(STATE_OUTDATED)
    assert "next epoch: none before a refresh marks" in shop.db.explain("EXPLAIN MATERIALIZED VIEW other")
    # Looking changes nothing: where a maintainer of the other version runs, the view is as it must be.
    assert shop.db._engine.coordinator.catalog().version == before


def test_waiting_for_it_ends_at_once(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("other", FILTERED)
    upgrade()
    position = shop.db.put("orders", {"id": 3, "customer": 1, "amount": 50})
    with pytest.raises(ConflictError, match=STATE_OUTDATED) as refused:
        shop.db.wait_for(position, "other", timeout_seconds=60)
    assert refused.value.code == "NEEDS_REBUILD"


def test_verify_says_so(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("other", FILTERED)
    upgrade()
    engine = shop.db._engine
    from viewkeeper.database.script import context_of

    report = recompute_local(context_of(engine), "other")
    assert not report.ok
    assert report.is_wrong
    assert [state.kind for state in report.wrong_states] == ["state of another version"]


def test_a_maintainer_says_so(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("same", ROWS)
    shop.create("other", FILTERED)
    upgrade()
    change(shop)
    complaints: list[ViewkeeperError] = []
    maintainer = Maintainer(shop.other._engine.coordinator, complain=complaints.append)
    while maintainer.round():
        pass
    assert [complaint.code for complaint in complaints] == ["NEEDS_REBUILD"]
    assert "'other'" in complaints[0].message
    assert shop.shows("same", ROWS)


def test_no_epoch_is_planned_over_it(shop: Shop, upgrade: Upgrade) -> None:
    """Also where nobody has looked before."""
    shop.create("other", FILTERED)
    upgrade()
    change(shop)
    with pytest.raises(ConflictError) as refused:
        shop.other._engine.coordinator.epoch("continuous")
    assert refused.value.code == STATE_OUTDATED


def test_no_epoch_is_published_over_it(shop: Shop) -> None:
    """A program of before layouts were kept publishes between two epochs of this one: the second is refused."""
    shop.create("one", ROWS)
    change(shop)
    shop.db.refresh()
    older_records(shop)
    shop.db.put("orders", {"id": 1, "customer": 1, "amount": 51})
    with pytest.raises(ConflictError) as refused:
        shop.db.refresh()
    assert refused.value.code == STATE_OUTDATED
    refresh_refused(shop)
    resume(shop, "one")
    assert shop.shows("one", ROWS)


@pytest.mark.parametrize("point", ["publish:after#2", "build:before-swap#1", "build:after-swap#1"])
@pytest.mark.parametrize("kept", [(), ("same",)])
def test_a_fill_that_the_other_version_began(shop: Shop, upgrade: Upgrade, point: str, kept: tuple[str, ...]) -> None:
    for name in kept:
        shop.create(name, ROWS)
    place, _, number = point.partition("#")
    with hooked(At(place, int(number), crash)), pytest.raises(SimulatedCrash):
        shop.create("other", FILTERED)
    upgrade()
    change(shop)
    if place == "build:after-swap":
        refresh_refused(shop)
        resume(shop, "other")
    else:
        shop.db.refresh()
    assert shop.shows("other", FILTERED)
    change(shop)
    shop.db.refresh()
    assert shop.shows("other", FILTERED)
    assert all(shop.shows(name, ROWS) for name in kept)


def test_a_new_view_takes_nothing_over_from_one_that_is_outdated(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("other", FILTERED)
    upgrade()
    change(shop)
    shop.create("equal", FILTERED)
    assert states(shop.db) == {"other": "NEEDS_REBUILD", "equal": "ACTIVE"}
    assert shop.shows("equal", FILTERED)
    change(shop)
    with pytest.raises(ConflictError, match="'other' must be filled anew"):
        shop.db.refresh()
    assert shop.shows("equal", FILTERED)


def test_a_suspended_view_is_filled_anew_anyhow(shop: Shop, upgrade: Upgrade) -> None:
    shop.create("other", FILTERED)
    shop.db.sql("ALTER MATERIALIZED VIEW other SUSPEND")
    upgrade()
    assert states(shop.db) == {"other": "SUSPENDED"}
    shop.db.refresh()
    resume(shop, "other")
    assert shop.shows("other", FILTERED)


def test_a_view_that_had_failed_needs_a_rebuild(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    query = f"SELECT o.id, 10 / o.amount AS share FROM {JOIN} WHERE o.amount > 3 OR o.id = 0"
    with pytest.raises(ViewkeeperError):
        shop.create("failing", query)
    monkeypatch.setitem(FORMATS, "errors", 2)
    reopen(shop)
    shop.db.put("orders", {"id": 0, "customer": 1, "amount": 5})
    refresh_refused(shop)
    assert states(shop.db) == {"failing": "NEEDS_REBUILD"}
    resume(shop, "failing")
    assert shop.shows("failing", query)


def test_rows_of_another_form_are_read_as_they_were_written(shop: Shop) -> None:
    """Another planner may choose another key, and other hidden columns: gets and scans go by what is stored."""
    shop.create("v", FILTERED)
    shown = shop.db.sql("SELECT * FROM v").rows()
    _store_otherwise(shop, "v", key=(0, 3))
    reopen(shop)
    assert sorted(shop.db.scan("v"), key=str) == sorted(shown, key=str)
    assert shop.db.table("v").to_arrow().to_pylist() == shown
    assert shop.db.sql("SELECT * FROM v WHERE id = 5").rows() == [{"id": 5, "customer": 0, "region": "south"}]
    with pytest.raises(ViewkeeperError) as refused:
        shop.db.get("v", (5, 0))
    assert refused.value.code == "VIEW_HAS_NO_KEY"
    refresh_refused(shop)
    resume(shop, "v")
    assert shop.db.get("v", (5, 0)) == {"id": 5, "customer": 0, "region": "south"}


def test_a_query_that_needs_other_hidden_columns_is_refused(shop: Shop) -> None:
    shop.create("v", f"SELECT c.region, o.amount FROM {JOIN}")
    shown = shop.db.sql("SELECT * FROM v").rows()
    _store_otherwise(shop, "v", key=(1, 3))
    reopen(shop)
    assert sorted(shop.db.scan("v"), key=str) == sorted(shown, key=str)
    with pytest.raises(ConflictError) as refused:
        shop.db.sql("SELECT * FROM v")
    assert refused.value.code == "NEEDS_REBUILD"
    refresh_refused(shop)
    resume(shop, "v")
    assert sorted(shop.db.sql("SELECT * FROM v").rows(), key=str) == sorted(shown, key=str)


def _store_otherwise(shop: Shop, name: str, key: tuple[int, ...]) -> None:
    """Store a view's rows as a planner would have done that adds one more hidden column, a number, and has ``key``."""
    from viewkeeper.views.reads import StoredView
    from viewkeeper.views.row_form import RowForm
    from viewkeeper.zset.keys import KeyCodec
    from viewkeeper.zset.rows import RowCodec
    from viewkeeper.zset.schema import BIGINT

    coordinator = shop.db._engine.coordinator
    catalog = coordinator.catalog()
    view = catalog.view(name)
    with shop.views.write() as txn:
        record = read_view(txn, view.id)
        assert isinstance(record, ViewRecord)
        stored = StoredView.of(view, coordinator.planner.plan(catalog, view), record.state, record.rows)
        rows = [stored.decode_row(raw) for _, raw in txn.scan(record.state)]
        form = RowForm((*stored.schema.types, BIGINT), key)
        keys = KeyCodec(tuple(form.types[i] for i in key))
        txn.drop(record.state)
        for number, row in enumerate(rows):
            written = (*row, number)
            value = RowCodec(form.types).encode_values(written)
            txn.put(record.state, keys.encode_values(tuple(written[i] for i in key)), value)
        write_view(txn, replace(record, layout="of before", rows=form.encode()))
