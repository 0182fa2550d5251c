"""One connection used by several callers: transactions, scripts, threads, maintainers."""

from __future__ import annotations

import threading

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.errors import ConflictError, SqlError


def test_transaction_keeps_what_was_passed_when_it_was_passed(db: Database) -> None:
    with db.transaction() as tx:
        rows: list[dict[str, object]] = [{"k": 7, "v": 70}]
        tx.put_batch("t", rows)
        rows[0]["v"] = 0
        rows.clear()
        key = {"k": 1}
        tx.delete("t", key)
        key["k"] = 2
    assert list(db.scan("t")) == [{"k": 2, "v": 20}, {"k": 7, "v": 70}]


def test_explain_create_inside_a_script_explains_that_statement(db: Database) -> None:
    plan = db.sql("SELECT k FROM t; EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
    assert any("Aggregate by v" in row["plan"] for row in plan.rows())


def test_places_of_errors_belong_to_the_callers_own_text(db: Database) -> None:
    wrong: list[tuple[int, object]] = []

    def run(indent: int) -> None:
        for _ in range(30):
            try:
                db.sql(" " * indent + "SELECT zz FROM t")
            except SqlError as error:
                if error.details["column"] != indent + 8:
                    wrong.append((indent, error.details))

    threads = [threading.Thread(target=run, args=(indent,)) for indent in (0, 3, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
def test_a_second_maintain_leaves_the_first_to_be_stopped_by_close(db: Database) -> None:
    first = db.maintain()
    with pytest.raises(ConflictError, match="MAINTAINER_RUNNING"):
        db.maintain()
    assert first.process_id is not None
    db.close()
    assert first.process_id is None
