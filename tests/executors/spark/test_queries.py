"""Queries, DML and VERIFY by Spark over a store in a folder."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.evaluation.stores import Store
from viewkeeper.adapters.lmdb.folder import StoreFolder, open_folder
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.database import connect
from viewkeeper.errors import ConflictError, EvaluationError, InputError, SqlError, UnsupportedSql
from viewkeeper.evaluation.queries import run_query
from viewkeeper.evaluation.verify import recompute_local, verify_view
from viewkeeper.executors.spark.queries import SparkQueryRunner
from viewkeeper.executors.spark.source import register
from viewkeeper.executors.spark.types import from_spark_schema, to_spark_schema
from viewkeeper.expressions.tree import Session
from viewkeeper.pipeline.records import read_view
from viewkeeper.store.key_value import Space
from viewkeeper.views.inputs import TableInput
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, STRING, Column, Schema

pytestmark = pytest.mark.spark

OPTIONS = EnvironmentOptions(durability="none")
EVERY_TYPE = {
    "k": BIGINT, "b": types.BOOLEAN, "t": types.TINYINT, "s": types.SMALLINT, "i": INT, "f": types.FLOAT, "d": DOUBLE,
    "n": types.decimal(20, 3), "x": STRING, "y": types.BINARY, "day": types.DATE, "at": types.TIMESTAMP,
    "local": types.TIMESTAMP_NTZ, "tags": types.array(STRING), "counts": types.map_of(STRING, INT),
    "point": types.struct(x=INT, y=DOUBLE),
}  # fmt: skip
VALUES = (
    1, True, -128, 32767, -(2**31), 1.5, float("inf"), Decimal("12345678901234567.125"), "Köln \0 🚲", b"\0\xff",
    datetime.date(1582, 10, 4), datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, datetime.UTC),
    datetime.datetime(1969, 12, 31, 23, 59, 59), ["a", None], {"p": 1, "q": None}, {"x": 1, "y": -0.5},
)  # fmt: skip


@dataclass(frozen=True)
class OpenAt:
    path: str

    def __call__(self) -> tuple[Space, Space]:
        return open_at(self.path)


def open_at(path: str) -> tuple[Space, Space]:
    folder = open_folder(path, create=False, options=OPTIONS)
    return folder.base, folder.views


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreFolder]:
    path: Path = tmp_path_factory.mktemp("queries")
    with open_folder(path / "store", options=OPTIONS) as opened:
        yield opened


@pytest.fixture(scope="module")
def runner(spark: SparkSession, folder: StoreFolder) -> SparkQueryRunner:
    return SparkQueryRunner(lambda: spark, OpenAt(folder.path))


@pytest.fixture(scope="module")
def store(folder: StoreFolder, runner: SparkQueryRunner) -> Store:
    made = Store.new(folder.base, folder.views, spark=lambda: runner, rows_local=50)
    made.create("everything", EVERY_TYPE, ("k",), [VALUES, (2,) + (None,) * 15])
    made.create(
        "t", {"k": BIGINT, "a": INT, "s": STRING, "x": DOUBLE}, ("k",), [(i, i % 3, f"s{i}", i / 7) for i in range(100)]
    )
    made.create_view("v", "SELECT a, COUNT(*) AS n, SUM(x) AS total FROM t GROUP BY a")
    made.create_view("w", "SELECT n, COUNT(*) AS groups FROM v GROUP BY n")
    return made


def by_spark(store: Store, sql: str, **parameters: object) -> list[tuple[object, ...]]:
    result = run_query(store.context, sql, parameters)
    assert result.executor == "spark"
    return list(result.tuples())


def test_all_types_come_back_as_they_were_put(store: Store) -> None:
    rows = by_spark(store, "SELECT * EXCEPT (counts) FROM everything TABLESAMPLE (100 PERCENT) ORDER BY k")
    without = tuple(v for n, v in zip(EVERY_TYPE, VALUES, strict=True) if n != "counts")
    assert rows == [without, (2,) + (None,) * 14]
    assert by_spark(store, "SELECT counts, size(map_entries(counts)) FROM everything ORDER BY k LIMIT 1") == [
        ({"p": 1, "q": None}, 2)
    ]


def test_a_map_without_types_is_empty(store: Store) -> None:
    query = "SELECT map() AS none, map(1, map()) AS inner, size(map()) AS n"
    assert by_spark(store, query) == [({}, {1: {}}, 0)]


def test_types_go_both_ways() -> None:
    schema = Schema(tuple(Column(name, t, i % 2 == 0) for i, (name, t) in enumerate(EVERY_TYPE.items())))
    assert from_spark_schema(to_spark_schema(schema)) == schema


def test_result_types_and_nullability_are_sparks(store: Store) -> None:
    result = run_query(store.context, "SELECT k, STDDEV(a) AS s FROM t GROUP BY k LIMIT 0")
    assert result.schema == Schema((Column("k", BIGINT, False), Column("s", DOUBLE, True)))


def test_order_is_kept_across_partitions_and_names_may_repeat(store: Store) -> None:
    result = run_query(store.context, "SELECT k, k FROM t ORDER BY k DESC")
    assert result.columns == ("k", "k")
    assert [row[0] for row in result.tuples()] == list(range(99, -1, -1))


def test_views_are_read_as_they_are_published(store: Store) -> None:
    assert by_spark(store, "SELECT SUM(n) FROM v WHERE a IN (SELECT a FROM t)") == [(100,)]


def test_parameters_have_the_types_that_they_have_in_process(store: Store) -> None:
    instant = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    sql = "SELECT DISTINCT typeof(:i), typeof(:d), typeof(:b), :i, :d, :b, :t, :day, :s, :none, :f FROM t"
    day = datetime.date(2024, 2, 29)
    given = {
        "i": -5,
        "d": Decimal("1.50"),
        "b": b"\0a",
        "t": instant,
        "day": day,
        "s": "it's",
        "none": None,
        "f": 1e300,
    }
    (row,) = by_spark(store, sql, **given)
    assert row[:3] == ("bigint", "decimal(3,2)", "binary")
    assert row[3:] == (-5, Decimal("1.50"), b"\0a", instant, day, "it's", None, 1e300)


def test_the_session_decides_on_zone_and_mode(store: Store) -> None:
    here = replace(store.context, session=Session("Asia/Tokyo", ansi=False))
    result = run_query(here, "SELECT DISTINCT CAST(at AS STRING) AS at, 1 / 0 AS q FROM everything WHERE k = 1")
    assert result.rows() == [{"at": "2024-03-01 08:59:59.999999", "q": None}]


@pytest.mark.parametrize(
    ("sql", "kind", "code"),
    [
        ("SELECT k / (k - 5) AS q FROM t ORDER BY k", EvaluationError, "DIVIDE_BY_ZERO"),
        ("SELECT (SELECT k FROM t) AS q FROM t", EvaluationError, "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("SELECT nowhere(k) FROM t", SqlError, "UNRESOLVED_ROUTINE"),
        ("SELECT DISTINCT k FROM t UNION SELECT nope FROM t", SqlError, "UNRESOLVED_COLUMN"),
        ("SELECT parse_json(s) AS j FROM t", UnsupportedSql, "TYPE_NOT_SUPPORTED"),
    ],
)
def test_errors_are_sparks_under_our_kinds(store: Store, sql: str, kind: type[Exception], code: str) -> None:
    with pytest.raises(kind) as raised:
        run_query(store.context, sql)
    assert raised.value.code == code  # type: ignore[attr-defined]
    assert "SQLSTATE" not in str(raised.value)


def test_reads_base_tables_as_of_the_moment(store: Store, runner: SparkQueryRunner) -> None:
    from viewkeeper.evaluation.moments import open_moment

    made = store.create("moving", {"k": BIGINT, "a": INT}, ("k",), [(i, 0) for i in range(20)])
    with open_moment(store.context) as moment, moment.held(store.context):
        store.run("UPDATE moving SET a = 1 WHERE k < 10")
        store.run("DELETE FROM moving WHERE k > 15")
        answer = runner.sql("SELECT COUNT(*), SUM(a) FROM moving", {"moving": TableInput(made, moment.position)})
        assert [tuple(b.to_pylist()[0].values()) for b in answer.batches] == [(20, 0)]


def test_a_table_whose_columns_change_under_a_query_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with connect(tmp_path / "shop.vk", durability="none", executor="local") as db:
        db.sql("CREATE TABLE moving (k INT PRIMARY KEY, a INT); INSERT INTO moving VALUES (1, 10)")
        table = db._engine.coordinator.catalog().table("moving")
        runner = SparkQueryRunner(lambda: spark, OpenAt(str(tmp_path / "shop.vk")))
        answer = runner.sql("SELECT k, a FROM moving", {"moving": TableInput(table, db.status()["position"])})
        db.sql("ALTER TABLE moving ALTER COLUMN a TYPE BIGINT")
        db.put("moving", {"k": 2, "a": 20})
        with pytest.raises(ConflictError) as caught:
            list(answer.batches)
    assert caught.value.code == "TABLE_CHANGED"
    assert caught.value.message == "Columns of table 'moving' were changed while it was read: run it again."


def test_dml_with_expressions_of_spark(store: Store) -> None:
    store.create("target", {"k": BIGINT, "s": STRING, "n": INT}, ("k",), [(i, f"s{i}", i) for i in range(5)])
    done = store.run(
        "UPDATE target SET s = soundex(s), n = (SELECT MAX(a) FROM t) -- of t\n WHERE k IN (SELECT a FROM t)"
    )
    assert (done.rows_affected, done.executor) == (3, "spark")
    assert store.table("target")[:4] == [(0, "S000", 2), (1, "S000", 2), (2, "S000", 2), (3, "s3", 3)]
    assert store.run("DELETE FROM target WHERE k > (SELECT MAX(a) FROM t)").rows_affected == 2
    assert store.run("INSERT INTO target SELECT DISTINCT a + 10, 'new', 0 FROM t").rows_affected == 3
    assert store.run("INSERT INTO target (k, s) VALUES (20, soundex('Robert'))").rows_affected == 1
    assert store.table("target")[3:] == [(10, "new", 0), (11, "new", 0), (12, "new", 0), (20, "R163", None)]
    assert store.code("INSERT INTO target SELECT DISTINCT a + 10, 'new', 0 FROM t") == "DUPLICATE_KEY"
    merged = store.run(
        "MERGE INTO target USING (SELECT DISTINCT a AS k FROM t) u ON target.k = u.k WHEN MATCHED THEN DELETE"
    )
    assert merged.rows_affected == 3


def test_merge_with_expressions_of_spark(store: Store) -> None:
    store.create("names", {"k": BIGINT, "s": STRING, "x": DOUBLE}, ("k",), [(1, "Robert", 1.5), (2, "Rupert", 0.1)])
    done = store.run(
        """MERGE INTO names USING (SELECT k + 1 AS k, s FROM t WHERE k < 3) u ON names.k = u.k AND soundex(u.s) <> ''
        WHEN MATCHED AND soundex(names.s) = 'R163' THEN UPDATE SET s = names.x
        WHEN NOT MATCHED THEN INSERT (k, s) VALUES (u.k, soundex(u.s))"""
    )
    assert done.rows_affected == 3
    assert [row[:2] for row in store.table("names")] == [(1, "1.5"), (2, "0.1"), (3, "S000")]


def test_statements_of_spark_never_wait_under_the_write_lock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers could not open the store while it is held: the statement is given up instead."""
    monkeypatch.setattr("viewkeeper.evaluation.changes.tables_changed_since", lambda *_: True)
    monkeypatch.setattr("viewkeeper.evaluation.changes.OPTIMISTIC_ATTEMPTS", 1)
    monkeypatch.setattr("viewkeeper.evaluation.changes.SPARK_ATTEMPTS", 2)
    store.create("busy", {"k": BIGINT, "s": STRING}, ("k",), [(i, f"s{i}") for i in range(5)])
    assert store.code("DELETE FROM busy WHERE soundex(s) = 'S000'") == "READ_ROWS_CHANGED"
    assert len(store.table("busy")) == 5
    assert store.run("DELETE FROM busy WHERE k = 1").rows_affected == 1


def test_analyze(runner: SparkQueryRunner) -> None:
    schema = Schema((Column("_c0", BIGINT, False), Column("_c1", types.decimal(10, 2), True)))
    assert runner.analyze("`_c0` + 1", schema) == (BIGINT, False, True)
    assert runner.analyze("`_c0` * `_c1`", schema) == (types.decimal(31, 2), True, True)
    assert runner.analyze("rand() + `_c0`", schema)[2] is False
    with pytest.raises(SqlError, match="DATATYPE_MISMATCH"):
        runner.analyze("soundex(array(1))", schema)
    for text in ("sum(`_c0`)", "inline(array(struct(`_c0`)))", "row_number() OVER (ORDER BY `_c0`)"):
        with pytest.raises(UnsupportedSql, match="EXPRESSION_NOT_SCALAR"):
            runner.analyze(text, schema)


def test_verify_proves_a_right_view_at_its_own_position(store: Store) -> None:
    store.create("base", {"k": BIGINT, "a": INT, "x": DOUBLE}, ("k",), [(i, i % 4, i / 3) for i in range(500)])
    store.create_view("sums", "SELECT a, SUM(x) AS total, AVG(k) AS mean FROM base GROUP BY a")
    store.create_view("over", "SELECT COUNT(*) AS n, MAX(total) AS most FROM sums")
    store.run("DELETE FROM base WHERE k < 100")
    for name, rows in (("sums", 4), ("over", 1)):
        report = verify_view(store.context, name)
        assert report.ok, str(report)
        assert (report.rows, report.is_failed) == (rows, False)
        assert recompute_local(store.context, name).ok


def test_verify_finds_what_is_wrong(store: Store) -> None:
    store.create("facts", {"k": BIGINT, "a": INT}, ("k",), [(i, i % 5) for i in range(50)])
    store.create_view("counted", "SELECT a, COUNT(*) AS n FROM facts GROUP BY a")
    view = store.catalog().view("counted")
    plan = store.context.planner.plan(store.catalog(), view)
    with store.context.views.read() as txn:
        record = read_view(txn, view.id)
    assert record is not None
    wrong = pa.record_batch(
        [pa.array([0, 1, 2, 3, 9], pa.int32()), pa.array([10, 10, 11, 10, 1], pa.int64())], ["a", "n"]
    )
    store.write_rows(record.state, wrong, plan.root.schema, plan.key)
    for report in (verify_view(store.context, "counted"), recompute_local(store.context, "counted")):
        assert not report.ok
        assert report.missing == [{"a": 4, "n": 10}]
        assert report.unexpected == [{"a": 9, "n": 1}]
        assert report.different == [({"a": 2, "n": 10}, {"a": 2, "n": 11})]
        assert "1 missing, 1 unexpected, 1 different rows" in str(report)


def test_verify_says_that_a_view_is_failed(store: Store) -> None:
    store.create("some", {"k": BIGINT}, ("k",), [(1,)])
    store.create_view("failing", "SELECT k, 10 / k AS q FROM some")
    store.fill("failing", failures=3)
    report = verify_view(store.context, "failing")
    assert (report.ok, report.is_failed, report.failure_count) == (True, True, 3)
    assert "FAILED" in str(report)


def test_data_source_reads_tables_and_views(store: Store, spark: SparkSession, folder: StoreFolder) -> None:
    register(spark, open_at)
    read: Callable[[str], object] = lambda name: spark.read.format("viewkeeper").option("store", folder.path).load(name)  # noqa: E731
    frame = read("v")
    assert [f.name for f in frame.schema] == ["a", "n", "total"]  # type: ignore[attr-defined]
    assert sorted((r.a, r.n) for r in frame.collect()) == [(0, 34), (1, 33), (2, 33)]  # type: ignore[attr-defined]
    assert read("t").where("k < 10").count() == 10  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="TABLE_NOT_FOUND"):
        read("nowhere").schema  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(Exception, match=r"MISSING_OPTION.*Name the store and the table or view"):
        spark.read.format("viewkeeper").load("t")
    with pytest.raises(InputError, match="VERIFY_NEEDS_SPARK"):
        verify_view(store.with_options(spark=None).context, "v")
