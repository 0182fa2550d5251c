"""The state behind views, checked by our own operators run afresh; by Spark in tests/executors/spark/test_states.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.evaluation import corrupted
from viewkeeper.database import Database
from viewkeeper.database.maintenance import rebuild_in_full
from viewkeeper.database.script import context_of
from viewkeeper.errors import ViewFailed
from viewkeeper.evaluation.verify import VerifyReport, recompute_local
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(memory_store(), Settings(executor="local")) as opened:
        corrupted.make(opened)
        yield opened


def checked(db: Database, view: str) -> VerifyReport:
    return recompute_local(context_of(db._engine), view)


def repair(db: Database, view: str) -> None:
    rebuild_in_full(db._engine, db._engine.coordinator.catalog().view(view), None)


def test_right_state_is_right(db: Database) -> None:
    kinds = set()
    for view in corrupted.VIEWS:
        report = checked(db, view)
        assert report.ok, str(report)
        assert all(check.unchecked is None for check in report.checks)
        kinds |= {check.kind for check in report.checks}
    assert kinds == {"view", "arrangement", "groups", "values", "candidates", "rows", "errors", "pending"}


@pytest.mark.parametrize("damage", corrupted.DAMAGES, ids=str)
def test_damage_is_named_and_healed(db: Database, damage: corrupted.Damage) -> None:
    state = damage.do(db)
    report = checked(db, damage.view)
    (wrong,) = report.wrong_states
    assert (wrong.state, wrong.kind) == (state, damage.kind)
    assert (wrong.missing_count, wrong.unexpected_count, wrong.different_count) == damage.counts
    assert wrong.note
    assert not report.ok
    assert wrong.name in str(report)
    repair(db, damage.view)
    assert all(checked(db, view).ok for view in corrupted.VIEWS)
    db.sql("UPDATE sales SET cents = 1, shop = 'b' WHERE id < 8")
    db.refresh()
    assert all(checked(db, view).ok for view in corrupted.VIEWS)


def test_a_changed_sum_is_shown_with_its_group(db: Database) -> None:
    corrupted.Damage("by_shop", "groups", corrupted.other_sum, (0, 0, 1)).do(db)
    (wrong,) = checked(db, "by_shop").wrong_states
    ((expected, found),) = wrong.different
    assert expected["shop"] == found["shop"]
    assert found["count_2"] == expected["count_2"] + 1
    assert wrong.note.startswith(f"expected shop {expected['shop']!r}")


def test_stray_entries_of_error_bags_and_rows_that_wait(db: Database) -> None:
    bag = corrupted.fill_bag(db)
    waiting = corrupted.leave_waiting(db)
    wrong = {state.kind: state for state in checked(db, "by_shop").wrong_states}
    assert (wrong["errors"].state, wrong["errors"].unexpected_count) == (bag, 1)
    assert wrong["errors"].unexpected == [{"entry": '["ARITHMETIC_OVERFLOW",{"shop":"z"}]'}]
    assert (wrong["pending"].state, wrong["pending"].unexpected_count) == (waiting, 1)
    repair(db, "by_shop")
    assert checked(db, "by_shop").ok


def test_state_above_rows_that_cannot_be_computed_is_not_judged(db: Database) -> None:
    db.sql(
        "CREATE MATERIALIZED VIEW shares AS SELECT 10 / cents AS share, COUNT(*) AS n FROM sales GROUP BY 10 / cents"
    )
    db.sql("UPDATE sales SET cents = 0 WHERE id = 1")
    with pytest.raises(ViewFailed):
        db.refresh()
    report = checked(db, "by_shop")
    assert report.ok, str(report)
    assert all(check.unchecked is None for check in report.checks)
    report = checked(db, "shares")
    assert report.ok, str(report)
    assert report.is_failed
    assert {check.kind for check in report.checks if check.unchecked is not None} == {"view", "groups", "rows"}
    assert "its last good rows is purged" in str(report)


def test_a_broken_declared_key_is_an_entry_that_must_be_there(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW one (town, PRIMARY KEY (town)) AS SELECT town FROM shops")
    db.sql("INSERT INTO shops VALUES ('e', 'Bonn')")
    with pytest.raises(ViewFailed):
        db.refresh()
    report = checked(db, "one")
    assert report.ok, str(report)
    kinds = {check.kind: check for check in report.checks}
    assert (kinds["errors"].rows, kinds["candidates"].rows) == (1, 4)
    assert kinds["candidates"].unchecked is None


def test_a_suspended_view_has_rows_only(db: Database) -> None:
    db.sql("ALTER MATERIALIZED VIEW placed SUSPEND")
    report = checked(db, "placed")
    assert report.ok
    assert [check.kind for check in report.checks] == ["view"]
