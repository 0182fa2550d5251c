"""Every function of Spark's catalogue in views, by both executors, against Spark's own answer to the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, DayTimeIntervalType

from tests.functions import moments, nested, numbers, sketches, strings
from tests.functions.rows import ROWS, rows, schema
from tests.interpreted import INTERPRETED
from viewkeeper.database import Database, connect
from viewkeeper.errors import UnsupportedSql
from viewkeeper.executors.spark.session import spark_session
from viewkeeper.executors.spark.types import to_spark_schema
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.function_catalog import BY_CATALYST, PORTABLE, every_function
from viewkeeper.plan.nodes import Relation

pytestmark = pytest.mark.spark

ZONE = "America/New_York"
TABLE = "f"
VIEW_COLUMNS_MAX = 120
CALLS = {
    **numbers.CALLS, **strings.CALLS, **moments.CALLS, **nested.CALLS,
    "literals": strings.LITERALS, "accesses": nested.ACCESSES,
}  # fmt: skip


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session(settings=INTERPRETED)
    session.conf.set("spark.sql.session.timeZone", ZONE)
    yield session
    session.stop()


def _is_portable(call: str) -> bool:
    relations = FixedRelations([Relation(1, TABLE, "table", schema(), (0,))])
    try:
        plan_view(f"SELECT k, {call} AS v FROM {TABLE}", relations, Session(ZONE))
    except UnsupportedSql as error:
        if error.code != "EXPRESSION_NEEDS_SPARK":
            raise
        return False
    return True


def test_every_function_of_spark_is_known(spark: SparkSession) -> None:
    """The catalogue is complete, and each scalar function in it is called here."""
    theirs = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert theirs ^ every_function() == set()
    scalar = {name for family in (*PORTABLE.values(), *BY_CATALYST.values()) for name in family}
    assert scalar ^ ({*CALLS, *sketches.CALLS} - {"literals", "accesses"}) == set()


def test_portable_functions_need_no_spark() -> None:
    """A function stands among the portable ones exactly where some call of it is planned without Spark."""
    portable = {name for name, calls in CALLS.items() if any(map(_is_portable, calls))} - {"literals", "accesses"}
    assert portable ^ {name for family in PORTABLE.values() for name in family} == set()


def _views(calls: Sequence[str]) -> list[str]:
    parts = [calls[start : start + VIEW_COLUMNS_MAX] for start in range(0, len(calls), VIEW_COLUMNS_MAX)]
    return [f"SELECT k, {', '.join(f'{call} AS v{n}' for n, call in enumerate(part))} FROM {TABLE}" for part in parts]


def _plain(values: pa.ChunkedArray) -> list[str]:
    """Return values as texts that tell -0.0 from 0.0 and NaN from NULL; moments beyond Python's as numbers."""
    try:
        return [repr(value) for value in values.to_pylist()]
    except (ValueError, OverflowError):
        counted = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
        return [repr(value) for value in counted.to_pylist()]


def _type(spark_type: DataType) -> str:
    """Return Spark's name of a type; our intervals have every unit from days to seconds."""
    return (
        "INTERVAL DAY TO SECOND" if isinstance(spark_type, DayTimeIntervalType) else spark_type.simpleString().upper()
    )


def _described(database: Database, view: str) -> list[str]:
    columns = database.sql(f"DESCRIBE {view}").to_arrow().to_pylist()
    return [f"{c['data_type'].upper()}{'' if c['nullable'] else ' NOT NULL'}" for c in columns]


def _differences(database: Database, spark: SparkSession, views: Sequence[str]) -> list[str]:
    given = database.table(TABLE).to_arrow()
    spark.createDataFrame(given, to_spark_schema(schema())).createOrReplaceTempView(TABLE)
    found: list[str] = []
    for number, sql in enumerate(views):
        frame = spark.sql(sql)
        kinds = [f"{_type(f.dataType)}{'' if f.nullable else ' NOT NULL'}" for f in frame.schema]
        for name, kind, ours in zip(frame.columns, kinds, _described(database, f"w{number}"), strict=True):
            if ours != kind:
                found.append(f"{sql[:60]}… {name}: {ours}, Spark {kind}")
        theirs = frame.toArrow().sort_by("k")
        ours_rows = database.table(f"w{number}").to_arrow().sort_by("k")
        for name in theirs.column_names:
            one, other = _plain(ours_rows.column(name)), _plain(theirs.column(name))
            wrong = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
            if wrong:
                found.append(f"{sql[:60]}… {name}: {len(wrong)} rows, first {wrong[0]}")
    return found


@pytest.mark.parametrize("executor", ["spark", "local"])
def test_views(spark: SparkSession, tmp_path: Path, executor: str) -> None:
    """Filled, then changed by an epoch that inserts, updates and deletes; types, nullability and rows as Spark's."""
    spark.createDataFrame(rows(), to_spark_schema(schema())).createOrReplaceTempView(TABLE)
    made = {name: spark.sql(f"SELECT hex({call}) FROM {TABLE}").first()[0] for name, call in sketches.SKETCHES.items()}
    constants = {name: f"if(z, X'{text}', NULL)" for name, text in made.items()}
    of_sketches = [call.format(**constants) for calls in sketches.CALLS.values() for call in calls]
    calls = [call for group in CALLS.values() for call in group]
    chosen = [call for call in calls if _is_portable(call)] if executor == "local" else calls + of_sketches
    views = _views(chosen)
    settings = {"executor": executor, "durability": "none", "time_zone": ZONE}
    with connect(tmp_path / "functions.vk", spark=spark, **settings) as database:
        columns = ", ".join(f"{column.name} {column.type}" for column in schema().columns)
        database.sql(f"CREATE TABLE {TABLE} ({columns}, PRIMARY KEY (k))")
        database.put_batch(TABLE, rows(count=ROWS - 4))
        for number, sql in enumerate(views):
            database.sql(f"CREATE MATERIALIZED VIEW w{number} AS {sql}")
        assert _differences(database, spark, views) == []
        database.put_batch(TABLE, rows(start=1).slice(ROWS // 2))
        for key in range(0, ROWS, 5):
            database.delete(TABLE, {"k": key})
        database.refresh()
        assert _differences(database, spark, views) == []
