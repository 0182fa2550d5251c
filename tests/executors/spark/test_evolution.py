"""Tables that change under views, on Spark: the fused job reads every version, VERIFY keeps to the views' own names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from viewkeeper.database import columns
from viewkeeper.database.connection import Database
from viewkeeper.database.maintenance import raise_failed
from viewkeeper.errors import InputError, ViewFailed
from viewkeeper.statements import model as st
from viewkeeper.statements.parse import parse_statement

pytestmark = pytest.mark.spark

VIEWS = {
    "sums": "SELECT g, SUM(a) AS s, COUNT(*) AS n FROM t GROUP BY g",
    "sounds": "SELECT k, soundex(g) AS code, a FROM t",
    "joined": "SELECT t.k, u.id, t.a, u.w FROM t JOIN u ON t.g = u.g",
    "later": "SELECT code, MAX(a) AS m FROM sounds GROUP BY code",
}


def check(db: Database) -> None:
    db.refresh()
    for name in VIEWS:
        report = db.verify(name)
        assert report.ok, str(report)


def test_views_on_spark_follow_their_changing_tables(spark: SparkSession, tmp_path: Path) -> None:
    with vk.connect(tmp_path / "shop.vk", spark=spark, executor="spark", durability="none") as db:
        db.sql("CREATE TABLE t (k BIGINT, unused INT, a INT, g STRING, PRIMARY KEY (k))")
        db.sql("CREATE TABLE u (id BIGINT, g STRING, w INT, unread INT, PRIMARY KEY (id))")
        db.sql("INSERT INTO t VALUES (1, 0, 10, 'rose'), (2, 0, 20, 'lily'), (3, 0, 30, 'rose')")
        db.sql("INSERT INTO u VALUES (1, 'rose', 1, 1), (2, 'lily', 2, 2)")
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.sql("UPDATE t SET a = a + 1 WHERE k = 1")
        db.sql("ALTER TABLE t DROP COLUMN unused")
        db.sql("ALTER TABLE t RENAME COLUMN a TO b; ALTER TABLE t RENAME COLUMN g TO h")
        db.sql("INSERT INTO t VALUES (4, 40, 'iris'); UPDATE t SET k = k + 1")
        check(db)
        with pytest.raises(InputError, match=r"COLUMN_IN_USE.*sums, sounds, joined, later"):
            db.sql("ALTER TABLE t DROP COLUMN b")
        db.sql("ALTER TABLE t ALTER COLUMN b TYPE BIGINT")
        db.sql("INSERT INTO t VALUES (9, 9000000000, 'rose')")
        check(db)
        db.sql("ALTER TABLE u ALTER COLUMN unread TYPE BIGINT; INSERT INTO u VALUES (3, 'iris', 3, 9000000000)")
        check(db)
        assert {row["g"]: row["s"] for row in db.scan("sums")} == {"rose": 9_000_000_041, "lily": 20, "iris": 40}
        db.sql("ALTER MATERIALIZED VIEW sounds AS SELECT k, upper(soundex(h)) AS code, b AS a FROM t WHERE b < 1000")
        check(db)
        assert {row["code"]: row["m"] for row in db.scan("later")} == {"R200": 30, "L400": 20, "I620": 40}


def test_until_they_are_refilled_views_read_a_wider_column_as_they_know_it(spark: SparkSession, tmp_path: Path) -> None:
    with vk.connect(tmp_path / "shop.vk", spark=spark, executor="spark", durability="none") as db:
        db.sql("CREATE TABLE t (k BIGINT, a INT, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 10)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, a * 2 AS d FROM t")
        statement = parse_statement("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
        assert isinstance(statement, st.AlterTableWidenColumn)
        # As if the process had died before it could fill the new version.
        assert len(columns.widen_column(db._engine, statement)) == 1
        coordinator = db._engine.coordinator
        db.put("t", {"k": 2, "a": 20})
        coordinator.catch_up("continuous", coordinator.head())
        assert db.get("v", 2) == {"k": 2, "d": 40}
        db.put("t", {"k": 3, "a": 3_000_000_000})
        coordinator.catch_up("continuous", coordinator.head())
        with pytest.raises(ViewFailed, match="CAST_OVERFLOW"):
            raise_failed(db._engine, [coordinator.catalog().view("v")])
        db.refresh()
        assert db.get("v", 3) == {"k": 3, "d": 6_000_000_000}
