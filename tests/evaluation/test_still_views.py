"""Verifying views that stand still: compared where their log is there, else said to need filling anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from viewkeeper.coordinator import upkeep
from viewkeeper.database.connection import Database
from viewkeeper.database.script import context_of
from viewkeeper.evaluation.verify import VerifyReport, recompute_local
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

SETUP = """
CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k));
INSERT INTO t VALUES (1, 5), (2, 6);
CREATE MATERIALIZED VIEW s AS SELECT SUM(v) AS total FROM t;
CREATE MATERIALIZED VIEW other REFRESH ON DEMAND AS SELECT k FROM t;
ALTER MATERIALIZED VIEW s SUSPEND
"""


@pytest.fixture
def db() -> Iterator[Database]:
    database = Database(memory_store(), Settings(executor="local"))
    database.sql(SETUP)
    database.put("t", {"k": 3, "v": 9})
    yield database
    database.close()


def verified(db: Database) -> VerifyReport:
    return recompute_local(context_of(db._engine), "s")


def test_a_suspended_view_is_compared_while_its_log_is_there(db: Database) -> None:
    report = verified(db)
    assert (report.ok, report.is_compared, report.unchecked) == (True, True, None)
    assert next(iter(db.scan("s"))) == {"total": 11}


def test_a_suspended_view_whose_log_is_purged_says_what_to_do(db: Database) -> None:
    db.refresh("other")
    upkeep.purge(db._engine.coordinator)
    report = verified(db)
    assert (report.ok, report.is_compared, report.is_wrong) == (False, False, False)
    remedy = "ALTER MATERIALIZED VIEW s RESUME"
    assert str(report) == (
        "View 's' could not be compared: it is SUSPENDED, and the log behind its position is purged: "
        f"{remedy} fills it anew. It was left at position {report.position}."
    )
    assert remedy in report.checks[0].note
    db.sql(remedy)
    assert verified(db).ok
    assert next(iter(db.scan("s"))) == {"total": 20}


def test_a_view_that_was_left_behind_says_what_to_do(db: Database) -> None:
    db.sql("ALTER MATERIALIZED VIEW s RESUME")
    upkeep.leave_behind(db._engine.coordinator, ["continuous"], "it waited too long")
    report = verified(db)
    assert not report.is_compared
    assert "NEEDS_REBUILD (it waited too long): ALTER MATERIALIZED VIEW s RESUME fills it anew" in str(report)
    db.sql("ALTER MATERIALIZED VIEW s RESUME")
    assert verified(db).ok
