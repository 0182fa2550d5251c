"""Two versions of Viewkeeper on one folder: each in a process of its own, compiling one view to other state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import viewkeeper as vk
from tests.cli.command import environment
from viewkeeper.errors import ConflictError

pytestmark = pytest.mark.slow

OTHER = """
import sys
from viewkeeper.operators import layouts
from viewkeeper.plan import rules
from viewkeeper.plan.rules.push_down_filters import push_down_filters

rules.RULES = tuple(rule for rule in rules.RULES if rule is not push_down_filters)
layouts.FORMATS["groups"] += 1
import viewkeeper as vk

with vk.connect(sys.argv[1], executor="local") as db:
    db.sql(sys.argv[2])
"""
JOINED = "SELECT o.id, c.id AS c, c.region FROM orders o JOIN customers c ON o.customer = c.id WHERE o.amount > 3"
SUMS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
PLAIN = "SELECT id, amount FROM orders WHERE amount < 9"


def by_the_other_version(path: Path, sql: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(path), sql], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_store_goes_from_one_version_to_another_and_back(tmp_path: Path) -> None:
    path = tmp_path / "shop.vk"
    with vk.connect(path, executor="local") as db:
        db.sql("CREATE TABLE customers (id INT, region STRING, PRIMARY KEY (id))")
        db.sql("CREATE TABLE orders (id INT, customer INT, amount INT, PRIMARY KEY (id))")
        db.put_batch("customers", [{"id": key, "region": "north"} for key in range(4)])
        db.put_batch("orders", [{"id": key, "customer": key % 5, "amount": key} for key in range(20)])
    views = "; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in
                      (("joined", JOINED), ("sums", SUMS), ("plain", PLAIN)))  # fmt: skip
    by_the_other_version(path, views)
    with vk.connect(path, executor="local") as db:
        db.put("customers", {"id": 1, "region": "east"})
        db.put("orders", {"id": 5, "customer": 0, "amount": 1})
        with pytest.raises(ConflictError, match="STATE_OUTDATED"):
            db.refresh()
        found = {view["name"]: view["state"] for view in db.status()["views"]}
        assert found == {"joined": "NEEDS_REBUILD", "sums": "NEEDS_REBUILD", "plain": "ACTIVE"}
        assert db.get("joined", (6, 1)) == {"id": 6, "c": 1, "region": "north"}
        assert db.get("plain", 5) == {"id": 5, "amount": 1}
        db.sql("ALTER MATERIALIZED VIEW joined RESUME; ALTER MATERIALIZED VIEW sums RESUME")
        for name, query in (("joined", JOINED), ("sums", SUMS), ("plain", PLAIN)):
            shown, wanted = (db.sql(sql).rows() for sql in (f"SELECT * FROM {name}", query))
            assert sorted(map(str, shown)) == sorted(map(str, wanted))
    by_the_other_version(path, "ALTER MATERIALIZED VIEW sums SUSPEND; ALTER MATERIALIZED VIEW sums RESUME")
    with vk.connect(path, executor="local") as db:
        db.put("orders", {"id": 6, "customer": 0, "amount": 1})
        with pytest.raises(ConflictError, match="View 'sums' must be filled anew"):
            db.refresh()
        found = {view["name"]: view["state"] for view in db.status()["views"]}
        assert found == {"joined": "NEEDS_REBUILD", "sums": "NEEDS_REBUILD", "plain": "ACTIVE"}
