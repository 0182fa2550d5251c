"""A snapshot shows one moment, its tables, views and columns included."""

from __future__ import annotations

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError, StoreError


def test_snapshot_keeps_views_and_columns_that_are_changed_meanwhile(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t; CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    with db.snapshot() as s:
        db.put("t", {"k": 3, "v": 30})
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, v, v * 2 AS z FROM t")
        db.sql("ALTER TABLE t ADD COLUMN q INT DEFAULT 5; DROP MATERIALIZED VIEW w")
        db.sql("CREATE MATERIALIZED VIEW x AS SELECT k FROM t")
        assert list(s.scan("v")) == list(s.scan("t")) == [{"k": 1, "v": 10}, {"k": 2, "v": 20}]
        assert s.get("v", 2) == {"k": 2, "v": 20}
        assert list(s.scan("w")) == [{"k": 1}, {"k": 2}]
        assert s.position_of("v") <= s.position
        with pytest.raises(InputError, match="TABLE_OR_VIEW_NOT_FOUND"):
            list(s.scan("x"))
    with pytest.raises(StoreError, match="SNAPSHOT_ENDED"):
        s.get("v", 1)
