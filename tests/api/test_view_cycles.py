"""Views that would read themselves, at once or through others: refused, with nothing half done."""

from __future__ import annotations

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.errors import ViewkeeperError

# What is there before, the statement that would close a circle, and its code.
CIRCLES = {
    "a new view reads itself": ((), "CREATE MATERIALIZED VIEW a AS SELECT k FROM a", "TABLE_OR_VIEW_NOT_FOUND"),
    "OR REPLACE of a view that reads itself": (
        ("CREATE MATERIALIZED VIEW a AS SELECT k FROM t",),
        "CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT k FROM a",
        "VIEW_READS_ITSELF",
    ),
    "ALTER AS of a view that reads itself": (
        ("CREATE MATERIALIZED VIEW a AS SELECT k FROM t",),
        "ALTER MATERIALIZED VIEW a AS SELECT k FROM a",
        "VIEW_READS_ITSELF",
    ),
    "through another of the same cadence": (
        ("CREATE MATERIALIZED VIEW b AS SELECT k FROM t", "CREATE MATERIALIZED VIEW a AS SELECT k FROM b"),
        "CREATE OR REPLACE MATERIALIZED VIEW b AS SELECT k FROM a",
        "VIEW_READS_ITSELF",
    ),
    "through another cadence": (
        (
            "CREATE MATERIALIZED VIEW b REFRESH EVERY 5 SECONDS AS SELECT k FROM t",
            "CREATE MATERIALIZED VIEW a REFRESH CONTINUOUS AS SELECT k FROM b",
        ),
        "CREATE OR REPLACE MATERIALIZED VIEW b REFRESH EVERY 5 SECONDS AS SELECT k FROM a",
        "VIEW_READS_ITSELF",
    ),
    "through two cadences": (
        (
            "CREATE MATERIALIZED VIEW c REFRESH ON DEMAND AS SELECT k FROM t",
            "CREATE MATERIALIZED VIEW b REFRESH EVERY 5 SECONDS AS SELECT k FROM c",
            "CREATE MATERIALIZED VIEW a AS SELECT k FROM b",
        ),
        "ALTER MATERIALIZED VIEW c AS SELECT k FROM a",
        "VIEW_READS_ITSELF",
    ),
    "by a name that has moved": (
        (
            "CREATE MATERIALIZED VIEW b AS SELECT k FROM t",
            "CREATE MATERIALIZED VIEW a AS SELECT k FROM b",
            "ALTER MATERIALIZED VIEW b RENAME TO c",
        ),
        "CREATE OR REPLACE MATERIALIZED VIEW c AS SELECT k FROM a",
        "VIEW_READS_ITSELF",
    ),
}


@pytest.mark.parametrize("case", CIRCLES)
def test_a_circle_of_views_is_refused_and_changes_nothing(db: Database, case: str) -> None:
    before, closing, code = CIRCLES[case]
    for statement in before:
        db.sql(statement)
    views = db.views()
    definitions = {name: db.sql(f"SHOW CREATE MATERIALIZED VIEW {name}").rows() for name in views}
    with pytest.raises(ViewkeeperError) as caught:
        db.sql(closing)
    assert caught.value.code == code
    assert caught.value.details["line"] == 1
    assert "line 1, column" in caught.value.message
    assert db.views() == views
    assert {name: db.sql(f"SHOW CREATE MATERIALIZED VIEW {name}").rows() for name in views} == definitions
    db.put("t", {"k": 3, "v": 30})
    db.refresh()
    assert {view["state"] for view in db.status()["views"]} <= {"ACTIVE"}
    for name in views:
        assert sorted(row["k"] for row in db.scan(name)) == [1, 2, 3]


def test_a_cadence_may_be_read_from_both_sides_as_long_as_views_form_no_circle(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW a AS SELECT k, v FROM t")
    db.sql("CREATE MATERIALIZED VIEW b REFRESH EVERY 5 SECONDS AS SELECT k, v FROM a")
    db.sql("CREATE MATERIALIZED VIEW c AS SELECT k, v FROM b")
    db.sql("CREATE MATERIALIZED VIEW d AS SELECT k, v FROM t")
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW d AS SELECT k, v FROM c")
    db.put("t", {"k": 3, "v": 30})
    db.refresh()
    for name in "abcd":
        assert list(db.scan(name)) == [{"k": 1, "v": 10}, {"k": 2, "v": 20}, {"k": 3, "v": 30}]
