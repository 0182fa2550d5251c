"""Every stable code of an error has a test that makes its mistake: here, or where another test names the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import lmdb
import pytest

import viewkeeper as vk
from tests.architecture.project import ROOT, python_files
from tools.docs_errors import entries_in
from viewkeeper.adapters.lmdb.failures import translated
from viewkeeper.adapters.lmdb.locks import ProcessLock
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.clock import SimulatedClock
from viewkeeper.coordinator import requests
from viewkeeper.database.connection import Database
from viewkeeper.errors import ViewkeeperError
from viewkeeper.expressions.tree import Session
from viewkeeper.log.position import Position
from viewkeeper.plan.build import plan_query
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation
from viewkeeper.plan.place import Place
from viewkeeper.plan.refusals import REFUSALS
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import Space
from viewkeeper.views.catalog import read_catalog, write_catalog
from viewkeeper.views.definition import SparkTyped
from viewkeeper.views.planning import Planner
from viewkeeper.zset.schema import INT, STRING, Column, Schema, SqlType

# A mistake in SQL by its code, over t (k BIGINT, c STRING, a INT, b INT, m MAP<STRING, INT>).
IN_SQL = {
    "CANNOT_PARSE_INTERVAL": "SELECT window(DATE(c), '5 min') AS w FROM t",
    "DISTINCT_WITHOUT_AGGREGATE": "SELECT upper(DISTINCT c) AS u FROM t",
    "GROUPING_SIZE_LIMIT_EXCEEDED": f"SELECT 1 AS n FROM t GROUP BY CUBE ({', '.join(f'k + {n}' for n in range(13))})",
    "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE": "SELECT m, COUNT(*) AS n FROM t GROUP BY m",
    "INVALID_KEY_TYPE": "CREATE MATERIALIZED VIEW w (m, PRIMARY KEY (m)) AS SELECT m FROM t",
    "INVALID_LATERAL_JOIN_TYPE": "SELECT t.k FROM t RIGHT JOIN LATERAL (SELECT k FROM t u WHERE u.a = t.a) q ON true",
    "INVALID_SQL_SYNTAX": "SELECT SUM(a) IGNORE NULLS AS s FROM t",
    "INVALID_SUBQUERY_EXPRESSION": "SELECT k, (SELECT a, b FROM t LIMIT 1) AS s FROM t",
    "INVALID_WINDOW_SPEC_FOR_AGGREGATION_FUNC": "SELECT k, MEDIAN(a) OVER (PARTITION BY b ORDER BY k) AS m FROM t",
    "INVALID_WITHIN_GROUP_EXPRESSION": "SELECT percentile_cont(0.5) AS p FROM t",
    "NON_AGGREGATE_IN_PIVOT": "SELECT * FROM (SELECT a, b, c FROM t) PIVOT (upper(c) FOR a IN (1, 2))",
    "NON_LITERAL_PIVOT_VALUES": "SELECT * FROM (SELECT a, b, c FROM t) PIVOT (SUM(b) FOR a IN (array(1), 2))",
    "ORDER_BY_NOT_SELECTED": "SELECT DISTINCT a FROM t ORDER BY b",
    "PIVOT_VALUE_DATA_TYPE_MISMATCH": "SELECT k FROM t PIVOT (SUM(b) FOR (a, c) IN ((1, 'x', 2)))",
    "SET_OPERATION_ON_MAP_TYPE": "SELECT m FROM t UNION SELECT m FROM t",
    "UNEXPECTED_INPUT_TYPE": "SELECT t.k FROM t, range(1, 5, 0) r",
    "UNPIVOT_VALUE_DATA_TYPE_MISMATCH": "SELECT * FROM (SELECT k, m, a FROM t) UNPIVOT (v FOR name IN (m, a))",
    "UNPIVOT_VALUE_SIZE_MISMATCH": "SELECT * FROM (SELECT k, a, b FROM t) UNPIVOT ((v, w) FOR name IN ((a), (b)))",
    "UNSUPPORTED_GENERATOR": "SELECT k, explode(array(a)) + 1 AS e FROM t",
    "UNSUPPORTED_GROUPING_EXPRESSION": "SELECT a, grouping(a) AS g FROM t GROUP BY a",
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": "SELECT k, (SELECT SUM(u.a + t.a) FROM t u) AS s FROM t",
}  # fmt: skip


def in_memory() -> Database:
    """Return a connection to a store in memory with a view."""
    db = Database(memory_store(), Settings(executor="local"))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    return db


def wait_for_nobody() -> None:
    with in_memory() as db:
        db.wait_for(db.put("t", {"k": 1}), timeout_seconds=0)


def write_a_stale_catalog() -> None:
    with in_memory() as db, db._engine.store.base.write() as txn:
        before = read_catalog(txn)
        for _ in range(2):
            write_catalog(txn, before, before, "-- twice", ())


def suspend_a_view_that_is_filled() -> None:
    with in_memory() as db:
        db.sql("CREATE MATERIALIZED VIEW w WITH NO DATA AS SELECT k FROM t; ALTER MATERIALIZED VIEW w SUSPEND")


def read_what_has_no_key() -> None:
    relation = Relation(1, "r", "view", Schema((Column("a", INT),)), None)
    sql = "SELECT a FROM r"
    plan_query(sql, FixedRelations([relation]), Session(), place=Place(sql))


def delete_rows_that_the_state_never_had() -> None:
    with in_memory() as db:
        db.sql("INSERT INTO t VALUES (1), (2)")
        db.sql("CREATE MATERIALIZED VIEW g AS SELECT k DIV 10 AS d, COUNT(*) AS n FROM t GROUP BY k DIV 10")
        with db._engine.store.views.write() as txn:
            for name in txn.databases():
                if name.startswith("continuous/") and not name.startswith("continuous/v"):
                    for key, _ in list(txn.scan(name)):
                        txn.delete(name, key)
        db.delete("t", 1)
        db.refresh()


def plan_with_an_answer_that_was_not_kept() -> None:
    with in_memory() as db:
        catalog = db._engine.coordinator.catalog()
        Planner().plan(catalog, replace(catalog.view("v"), sql="SELECT k, soundex(CAST(k AS STRING)) AS s FROM t"))


def refresh_in_process_what_only_spark_evaluates() -> None:
    with in_memory() as db:
        db.sql("CREATE MATERIALIZED VIEW w WITH NO DATA AS SELECT k, 'x' AS s FROM t")
        with db._engine.store.base.write() as txn:
            # As a connection with Spark would have made it.
            before = read_catalog(txn)
            kept = SparkTyped("SOUNDEX(CAST(`_c0` AS STRING)) over bigint not null", STRING, True)
            sql = "SELECT k, soundex(CAST(k AS STRING)) AS s FROM t"
            after = before.with_view(replace(before.view("w"), sql=sql, spark_typed=(kept,)))
            write_catalog(txn, before, after, "-- with Spark", ())
        db.refresh("w")


def recur_through_what_only_spark_evaluates() -> None:
    def types(sql: str, schema: Schema) -> tuple[SqlType, bool, bool]:
        return STRING, True, True

    word = Relation(1, "r", "table", Schema((Column("c", STRING),)), (0,))
    sql = "WITH RECURSIVE w AS (SELECT c FROM r UNION SELECT soundex(c) FROM w) SELECT c FROM w"
    plan_query(sql, FixedRelations([word]), Session(), place=Place(sql), spark_types=types)


def drop_a_view_while_it_is_filled() -> None:
    with in_memory() as db:
        db.put("t", {"k": 1})
        filled = "CREATE MATERIALIZED VIEW w AS SELECT k FROM t WHERE k > 0"
        db.sql(filled, progress=lambda done, rows, epoch: db.sql("DROP MATERIALIZED VIEW w"))


class Impatient(SimulatedClock):
    """A clock by which all requests are gone as soon as somebody waits."""

    def __init__(self, base: Space) -> None:
        super().__init__()
        self._base = base

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        with self._base.write() as txn:
            for name, _ in list(requests.all_of(txn)):
                txn.delete(requests.DATABASE, name)


def remove_the_request_of_one_who_waits(db: Database) -> None:
    store = db._engine.store
    assert store.location is not None
    assert store.lock is not None
    with ProcessLock(Path(store.location) / "maintainer.lock"):
        request = requests.Request("refresh")
        requests.run_or_hand_over(store.base, store.lock, Impatient(store.base), request, list)


def fail(error: ViewkeeperError) -> None:
    raise error


# A call by its code.
IN_CALLS: dict[str, Callable[[Database], object]] = {
    "DURABILITY_UNKNOWN": lambda db: EnvironmentOptions(durability="eventual"),  # type: ignore[arg-type]
    "INVALID_DEFAULT": lambda db: db.sql("CREATE TABLE d (k INT PRIMARY KEY, v INT DEFAULT 'x')"),
    "NULL_MAP_KEY": lambda db: db.put("t", {"k": 1, "m": {None: 1}}),
    "POSITION_AHEAD": lambda db: db.wait_for(Position(10**9)),
    "SETTING_OUT_OF_RANGE": lambda db: EnvironmentOptions(durability="none", databases_max=1),
    "STORE_OUT_OF_MEMORY": lambda db: fail(translated(lmdb.MemoryError("x"), "shop.vk")),
    "STORE_KIND_UNKNOWN": lambda db: vk.connect("hbase://host/shop"),
    "WAIT_TIMEOUT": lambda db: wait_for_nobody(),
    "STORE_IN_MEMORY": lambda db: in_memory().maintain(),
    "CATALOG_CHANGED": lambda db: write_a_stale_catalog(),
    "RELATION_HAS_NO_KEY": lambda db: read_what_has_no_key(),
    "STATE_BROKEN": lambda db: delete_rows_that_the_state_never_had(),
    "VIEW_BUILDING": lambda db: suspend_a_view_that_is_filled(),
    "EXPRESSION_NOT_KNOWN": lambda db: plan_with_an_answer_that_was_not_kept(),
    "SPARK_NEEDED": lambda db: refresh_in_process_what_only_spark_evaluates(),
    "RECURSIVE_EXPRESSION_NEEDS_SPARK": lambda db: recur_through_what_only_spark_evaluates(),
    "VIEW_CHANGED": lambda db: drop_a_view_while_it_is_filled(),
    "REQUEST_LOST": remove_the_request_of_one_who_waits,
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A store with one table, which no mistake changes."""
    place = tmp_path_factory.mktemp("codes") / "shop.vk"
    with vk.connect(place, executor="local", durability="none") as db:
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, c STRING, a INT, b INT, m MAP<STRING, INT>)")
        yield db


@pytest.mark.parametrize("code", IN_SQL)
def test_in_sql(shop: Database, code: str) -> None:
    with pytest.raises(ViewkeeperError) as caught:
        shop.sql(IN_SQL[code])
    assert caught.value.code == code


@pytest.mark.parametrize("code", IN_CALLS)
def test_in_calls(shop: Database, code: str) -> None:
    with pytest.raises(ViewkeeperError) as caught:
        IN_CALLS[code](shop)
    assert caught.value.code == code


def test_every_code_has_a_test_that_makes_its_mistake() -> None:
    package = ROOT / "src" / "viewkeeper"
    codes = {entry.code for entry in entries_in(package)}
    elsewhere = [path for path in python_files("tests") if path.name.startswith("test_") and path != Path(__file__)]
    named = {word for path in elsewhere for word in re.findall(r"\w+", path.read_text())}
    # Each example of a refusal is planned by tests/plan/test_refusals.py.
    assert codes - named - IN_SQL.keys() - IN_CALLS.keys() - REFUSALS.keys() == set()
    assert (IN_SQL.keys() | IN_CALLS.keys()) - codes == set()
