"""REFRESH POLICY: whichever way views go their rows are those of their queries; how the choice is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.clock import seeded
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError, UnsupportedSql, ViewFailed
from viewkeeper.evaluation.recomputation import FreshState
from viewkeeper.operators.circuit import Source
from viewkeeper.pipeline.decisions import DECISIONS_KEPT
from viewkeeper.pipeline.policy import FULL, INCREMENTAL, TRIED
from viewkeeper.testing.oracle import batch_of
from viewkeeper.testing.ways import draw_ways
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.zset.delta import Delta

QUERIES = {
    "sums": "SELECT g, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS low FROM orders GROUP BY g",
    "joined": "SELECT o.k, o.x, c.name FROM orders o JOIN clients c ON o.g = c.g",
    "lonely": "SELECT c.g, o.k FROM clients c LEFT JOIN orders o ON o.g = c.g AND o.x > 4",
    "total": "SELECT SUM(x) AS s, MAX(x) AS high, COUNT(DISTINCT g) AS n FROM orders WHERE x > 3",
    "running": "SELECT k, SUM(x) OVER (PARTITION BY g ORDER BY k) AS s FROM orders",
    "first": "SELECT k, x FROM orders ORDER BY x DESC, k LIMIT 3",
    "quotient": "SELECT k, 10 DIV x AS q FROM orders",
    "names": "SELECT name, COUNT(*) AS n, MIN(x) AS low FROM {joined} GROUP BY name",
    "reached": """WITH RECURSIVE r(a, b) AS (
        SELECT k, x FROM orders UNION SELECT r.a, o.x FROM r JOIN orders o ON o.k = r.b) SELECT a, b FROM r""",
}
POLICIES = ("AUTO", "INCREMENTAL", "FULL")
ROWS = 3_000


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as database:
        database.sql("CREATE TABLE orders (k BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (k))")
        database.sql("CREATE TABLE clients (g BIGINT, name STRING, PRIMARY KEY (g))")
        yield database


def create(db: Database, query: str, policy: str, refresh: str = "CONTINUOUS") -> None:
    sql = QUERIES[query].format(joined=f"joined_{policy}")
    db.sql(f"CREATE MATERIALIZED VIEW {query}_{policy} REFRESH {refresh} REFRESH POLICY {policy} AS {sql}")


def change(db: Database, chance: Random) -> None:
    """A transaction on both tables; a divisor of 0 fails ``quotient`` for a while."""
    with db.transaction() as tx:
        for _ in range(chance.randint(1, 8)):
            key, group = chance.randrange(12), chance.randrange(4)
            if chance.random() < 0.3:
                tx.delete("orders", {"k": key})
            else:
                tx.put("orders", {"k": key, "g": group, "x": chance.randrange(0 if chance.random() < 0.4 else 1, 9)})
            if chance.random() < 0.3:
                tx.put("clients", {"g": chance.randrange(4), "name": chance.choice("abc")})
            elif chance.random() < 0.1:
                tx.delete("clients", {"g": chance.randrange(4)})


def refresh(db: Database) -> bool:
    """Refresh all views; return whether one is FAILED, as several are where one is."""
    try:
        db.refresh()
    except ViewFailed:
        return True
    return False


def rows(db: Database, name: str) -> list[str]:
    return sorted(map(str, db.scan(name)))


def states_are_right(db: Database, view: ViewDefinition) -> None:
    """Compare each state table of a view with what one step over its tables makes of nothing."""
    coordinator, store = db._engine.coordinator, db._engine.store
    catalog = coordinator.catalog()
    compiled = coordinator.planner.compile(catalog, (view,), view.cadence)
    read = (catalog.tables[id_] for id_ in compiled.circuit.tables)
    tables = {t.id: Delta.from_rows(batch_of(t.schema, list(db.scan(t.name)))) for t in read}
    fresh = FreshState(compiled.circuit, tables)
    with store.views.read() as txn:
        for node in compiled.circuit.nodes:
            if isinstance(node.operator, Source):
                continue
            for contents in node.operator.contents():
                wanted = [r for batch in fresh.contents(node, contents) for r in batch.to_pylist()]
                pairs = list(txn.scan(contents.state))
                columns = contents.decode([key for key, _ in pairs], [value for _, value in pairs])
                found = [dict(zip(contents.query.schema.names, r, strict=True)) for r in zip(*columns, strict=True)]
                shown = [{n: v.as_py() for n, v in r.items()} for r in found]
                assert sorted(map(str, shown)) == sorted(map(str, wanted)), contents.state


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_each_policy_shows_the_same_rows_after_every_epoch(shop: Database, seed: int) -> None:
    draw_ways(shop._engine.coordinator.ways, seeded(seed))
    for policy in POLICIES:
        for query in QUERIES:
            create(shop, query, policy)
    chance = Random(seed)
    failures = 0
    for number in range(40):
        change(shop, chance)
        failures += refresh(shop)
        for query in QUERIES:
            shown = [rows(shop, f"{query}_{policy}") for policy in POLICIES]
            assert shown[0] == shown[1] == shown[2], (number, query)
    assert 0 < failures < 40
    ways = {view["name"]: {d["way"] for d in shop.decisions(view["name"])} for view in shop.status()["views"]}
    assert ways["sums_AUTO"] == {FULL, INCREMENTAL}
    assert ways["sums_INCREMENTAL"] == {INCREMENTAL}
    assert FULL in ways["sums_FULL"]


@pytest.mark.slow
def test_state_is_the_same_too_so_that_the_next_epoch_may_go_the_other_way(shop: Database) -> None:
    draw_ways(shop._engine.coordinator.ways, seeded(5))
    for query in QUERIES:
        create(shop, query, "AUTO")
    chance = Random(5)
    for _ in range(12):
        change(shop, chance)
        if not refresh(shop):
            for view in shop._engine.coordinator.catalog().views.values():
                states_are_right(shop, view)


def test_an_emptied_table_leaves_the_row_of_a_global_aggregate(shop: Database) -> None:
    for policy in POLICIES:
        create(shop, "total", policy)
    shop.sql("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 9)")
    shop.refresh()
    assert rows(shop, "total_FULL") == ["{'s': 14, 'high': 9, 'n': 1}"]
    shop.sql("TRUNCATE TABLE orders")
    shop.refresh()
    assert rows(shop, "total_FULL") == rows(shop, "total_INCREMENTAL") == ["{'s': None, 'high': None, 'n': 0}"]


def test_views_of_one_cadence_share_state_and_go_different_ways(shop: Database) -> None:
    """An arrangement that a stepped view keeps is written by the step alone; both stand at one position."""
    create(shop, "joined", "INCREMENTAL")
    create(shop, "joined", "FULL")
    shop.sql("INSERT INTO clients VALUES (1, 'a'), (2, 'b'); INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6)")
    shop.refresh()
    plan = shop._engine.coordinator.planned("continuous")
    assert plan is None
    shop.sql("UPDATE clients SET name = 'c' WHERE g = 1")
    plan = shop._engine.coordinator.planned("continuous")
    assert plan is not None
    mixed = plan.members.mixed
    assert mixed is not None
    assert [stored for _, stored in mixed.tables] == list(mixed.rows)  # the arrangements are the stepped view's
    done = shop.refresh()
    assert done.epochs == 1
    assert rows(shop, "joined_FULL") == rows(shop, "joined_INCREMENTAL") == [
        "{'k': 1, 'x': 5, 'name': 'c'}", "{'k': 2, 'x': 6, 'name': 'b'}",
    ]  # fmt: skip
    positions = {view["position"] for view in shop.status()["views"]}
    assert len(positions) == 1


def test_only_what_differs_is_published(shop: Database) -> None:
    create(shop, "sums", "FULL")
    shop.put_batch("orders", [{"k": k, "g": k % 50, "x": k} for k in range(500)])
    shop.refresh()
    shop.sql("UPDATE orders SET x = 0 WHERE k = 7")
    assert shop.refresh().rows == 2  # a group goes, a group comes


def test_a_table_of_others_that_changes_costs_no_recomputing(shop: Database) -> None:
    create(shop, "sums", "FULL")
    create(shop, "joined", "INCREMENTAL")
    shop.sql("INSERT INTO clients VALUES (1, 'a')")
    shop.refresh()
    assert {v["name"]: v["why"] for v in shop.status()["views"]}["sums_FULL"] == "NO_CHANGES"


def test_a_backlog_is_one_epoch_where_every_view_is_recomputed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"executor": "local", "durability": "none", "epoch_rows_max": 10}
    with vk.connect(tmp_path / "shop.vk", **settings) as db:
        db.sql("CREATE TABLE orders (k BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (k))")
        create(db, "sums", "FULL")
        for k in range(40):
            db.put("orders", {"k": k, "g": 0, "x": 1})
        assert db.refresh().epochs == 1
        create(db, "sums", "INCREMENTAL")
        for k in range(40):
            db.put("orders", {"k": k, "g": 0, "x": 2})
        assert db.refresh().epochs >= 4
        assert rows(db, "sums_FULL") == rows(db, "sums_INCREMENTAL") == ["{'g': 0, 's': 80, 'n': 40, 'low': 2}"]


# ---- how it is told ----


def fill(db: Database, number: int = 0) -> None:
    db.put_batch("orders", [{"k": k, "g": k % 7, "x": k + number} for k in range(ROWS)])


def judge(db: Database, way: Any, why: str = TRIED) -> None:
    ways = db._engine.coordinator.ways
    ways.judge, ways.quick_seconds = (lambda group, executors, fits: (way, why)), 0.0


def test_decisions_are_kept_with_prediction_and_measurement(shop: Database) -> None:
    create(shop, "sums", "AUTO")
    judge(shop, INCREMENTAL)
    fill(shop)
    shop.refresh()
    judge(shop, FULL)
    fill(shop, 1)
    shop.refresh()
    newest, first = shop.decisions("sums_AUTO")
    assert (first["way"], first["why"], first["changed_rows"], first["rows"]) == (INCREMENTAL, TRIED, ROWS, ROWS)
    assert (first["incremental_seconds"], first["full_seconds"]) == (None, None)
    assert (newest["way"], newest["changed_rows"], newest["base_rows"]) == (FULL, 2 * ROWS, ROWS)
    assert newest["rows"] == ROWS
    assert newest["incremental_seconds"] == pytest.approx(2 * first["seconds"])
    assert newest["full_seconds"] == pytest.approx(first["seconds"] / 2)
    assert newest["seconds"] > 0
    assert newest["executor"] == "local"
    assert newest["reason"].startswith("FULL: 3,000 base rows in ")
    (view,) = shop.status()["views"]
    assert (view["policy"], view["way"], view["why"]) == ("AUTO", FULL, TRIED)
    assert view["decision"] == newest["reason"]
    assert shop.sql("SHOW MATERIALIZED VIEWS").rows()[0]["decision"] == newest["reason"]
    shown = shop.sql("SHOW REFRESH DECISIONS FOR sums_AUTO").rows()
    assert [row["number"] for row in shown] == [2, 1]
    assert shown == shop.sql("SHOW REFRESH DECISIONS").rows()
    assert {"# policy", "# decision"} <= {r["col_name"] for r in shop.sql("DESCRIBE EXTENDED sums_AUTO").rows()}


def test_the_log_of_decisions_is_bounded_and_goes_with_its_view(shop: Database) -> None:
    create(shop, "sums", "FULL")
    for k in range(DECISIONS_KEPT + 5):
        shop.put("orders", {"k": k, "g": 1, "x": 1})
        shop.refresh()
    kept = shop.decisions("sums_FULL")
    assert [d["number"] for d in kept] == list(range(DECISIONS_KEPT + 5, 5, -1))
    shop.sql("DROP MATERIALIZED VIEW sums_FULL")
    create(shop, "sums", "FULL")
    assert shop.decisions() == []
    with pytest.raises(InputError, match="VIEW_NOT_FOUND"):
        shop.decisions("nothing")


def test_figures_are_kept_in_the_store(shop: Database, tmp_path: Path) -> None:
    create(shop, "sums", "AUTO")
    judge(shop, INCREMENTAL)
    fill(shop)
    shop.refresh()
    fill(shop, 1)
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as other:
        plan = other._engine.coordinator.planned("continuous", closely=True)
        assert plan is not None
        (choice,) = plan.choices.values()
        assert choice.changed_rows == 2 * ROWS
        assert choice.incremental_seconds is not None
        assert choice.incremental_seconds > 0


def test_explain_predicts_and_explain_analyze_compares(shop: Database) -> None:
    create(shop, "sums", "FULL")
    shop.refresh()
    assert "policy: FULL\nnext epoch: nothing waits" in shop.explain("EXPLAIN MATERIALIZED VIEW sums_FULL")
    fill(shop)
    text = shop.explain("EXPLAIN MATERIALIZED VIEW sums_FULL")
    assert "next epoch: FULL: by REFRESH POLICY FULL" in text
    assert "  incremental: 3,000 changed rows, not measured yet" in text
    assert "  full: 3,000 base rows, not measured yet" in text
    assert shop.status()["views"][0]["rows"] == 0  # EXPLAIN has run nothing
    text = "\n".join(row["plan"] for row in shop.sql("EXPLAIN ANALYZE MATERIALIZED VIEW sums_FULL").rows())
    assert "measured: epoch 3 FULL by local, 3,000 rows of 3,000 predicted" in text
    assert shop.status()["views"][0]["rows"] == 7
    fill(shop, 1)
    text = shop.explain("EXPLAIN ANALYZE MATERIALIZED VIEW sums_FULL")
    assert "full: 3,000 base rows, " in text
    assert "s predicted" in text
    assert "of what was predicted" in text
    assert "no epoch, nothing waited" in shop.explain("EXPLAIN ANALYZE MATERIALIZED VIEW sums_FULL")


def test_explain_of_a_query_tells_what_it_would_read(shop: Database) -> None:
    fill(shop)
    assert "base rows: 3,000, read once to fill it" in shop.explain(QUERIES["sums"])


def test_explain_analyze_measures_what_is_quick(shop: Database) -> None:
    create(shop, "sums", "AUTO")
    shop.put("orders", {"k": 1, "g": 1, "x": 1})
    text = shop.explain("EXPLAIN ANALYZE MATERIALIZED VIEW sums_AUTO")
    assert "next epoch: INCREMENTAL: few changes, not weighed" in text
    assert "measured: epoch 2 INCREMENTAL by local, 1 rows of 1 predicted" in text


def test_a_policy_is_set_and_shown(shop: Database) -> None:
    create(shop, "sums", "AUTO")
    shop.sql("ALTER MATERIALIZED VIEW sums_AUTO SET REFRESH POLICY FULL")
    assert "REFRESH POLICY FULL" in shop.sql("SHOW CREATE sums_AUTO").rows()[2]["statement"]
    fill(shop)
    shop.refresh()
    assert shop.decisions()[0]["why"] == "POLICY"
    shop.sql("ALTER MATERIALIZED VIEW sums_AUTO SET REFRESH POLICY INCREMENTAL STRICT")
    fill(shop, 1)
    shop.refresh()
    assert shop.status()["views"][0]["way"] == INCREMENTAL
    with pytest.raises(UnsupportedSql, match="SET_REFRESH_NOT_YET"):
        shop.sql("ALTER MATERIALIZED VIEW sums_AUTO SET REFRESH ON DEMAND")


def test_auto_learns_both_ways_and_takes_the_cheaper_one(shop: Database) -> None:
    """Twice as many changed rows as base rows are worth a try; afterwards what was measured decides."""
    ways = shop._engine.coordinator.ways
    create(shop, "sums", "AUTO")
    ways.quick_seconds = 0.0
    taken = []
    for number in range(8):
        fill(shop, number)
        plan = shop._engine.coordinator.planned("continuous")
        assert plan is not None
        (choice,) = plan.choices.values()
        taken.append(choice.why)
        shop.refresh()
    assert taken[:2] == ["NOT_MEASURED", TRIED]
    assert set(taken[2:]) <= {"CHEAPER", "NEARLY_EQUAL"}
