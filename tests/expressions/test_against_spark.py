"""Every portable function against Spark's own analyzer and evaluation: type, nullability, value, error of each row."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.expressions.cases import FAMILIES
from tests.expressions.edges import edge_batch, random_batch
from tests.expressions.spark_oracle import Case, Oracle
from viewkeeper.expressions.casemap import lower, upper
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.spark_sql import spark_sql
from viewkeeper.expressions.time_windows import WindowSpec, window_between, window_of, windows_of
from viewkeeper.expressions.tree import ColumnRef, Session
from viewkeeper.expressions.zones import to_local, to_utc
from viewkeeper.zset.schema import TIMESTAMP, TIMESTAMP_NTZ, Column

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HOUR, DAY = 3_600_000_000, 86_400_000_000
_LEAST_PORTABLE = {"casts": 450, "comparisons": 900, "arithmetic": 1000, "logic": 850, "strings": 550, "dates": 350}


@pytest.fixture(scope="module")
def edges(spark: SparkSession) -> Oracle:
    """The edge values in a zone with daylight saving time."""
    return Oracle(spark, *edge_batch(), Session("America/New_York"))


@pytest.mark.parametrize("family", FAMILIES)
def test_edges(edges: Oracle, family: str) -> None:
    """All pairs of edge values, over the matrix of types."""
    cases = list(FAMILIES[family](edges.session))
    assert edges.problems(cases) == []
    portable = [case for case in cases if not isinstance(case.expression, NotPortable)]
    assert len(portable) >= _LEAST_PORTABLE[family]


@pytest.mark.parametrize("session", [Session("America/New_York"), Session("Asia/Kolkata", ansi=False)], ids=str)
def test_trees_become_sql_again(spark: SparkSession, session: Session) -> None:
    """Every eighth case of each family, as ``spark_sql`` writes it: type, value and error of each row."""
    batch, columns = edge_batch()
    names = [f"_c{i}" for i in range(len(columns))]
    numbered = [Column(name, column.type, column.nullable) for name, column in zip(names, columns, strict=True)]
    oracle = Oracle(spark, batch.rename_columns(names), numbered, session)
    cases = [case for family in FAMILIES.values() for case in list(family(session))[::8]]
    portable = [case for case in cases if not isinstance(case.expression, Exception)]
    assert len(portable) > 300
    # Constants are written as calls, which Spark may take for nullable: that alone may differ.
    rendered = [Case(spark_sql(case.expression), case.expression, case.strict) for case in portable]
    assert [problem for problem in oracle.problems(rendered) if ": types" not in problem] == []
    for start in range(0, len(rendered), 60):
        some = rendered[start : start + 60]
        text = ", ".join(f"{case.sql} AS r{i}" for i, case in enumerate(some))
        types = [field.dataType.simpleString() for field in spark.sql(f"SELECT {text} FROM edges").schema.fields]
        assert types == [str(case.expression.type) for case in some]


@pytest.mark.parametrize("batch", [edge_batch, lambda: random_batch(22, 300)], ids=["edges", "random"])
def test_windows_of_time(spark: SparkSession, batch: Callable[[], tuple[pa.RecordBatch, list[Column]]]) -> None:
    """Windows of every moment, as ``spark_sql`` writes them: Spark's own ``window`` is no expression."""
    given, columns = batch()
    names = [f"_c{i}" for i in range(len(columns))]
    for i, column in enumerate(columns):
        if column.type in (TIMESTAMP, TIMESTAMP_NTZ):
            # Inside of windows, Python knows no years beyond its own.
            counted = given.column(i).cast(pa.int64())
            given = given.filter(pc.fill_null(pc.less(pc.abs(counted), pa.scalar(2 * 10**16)), True))
    numbered = [Column(name, column.type, column.nullable) for name, column in zip(names, columns, strict=True)]
    oracle = Oracle(spark, given.rename_columns(names), numbered, Session("America/New_York"))
    moments = [ColumnRef(i, c.type) for i, c in enumerate(columns) if c.type in (TIMESTAMP, TIMESTAMP_NTZ)]
    specs = [
        WindowSpec(1, 1),
        WindowSpec(HOUR, HOUR),
        WindowSpec(7 * DAY, 7 * DAY, 4 * DAY),
        WindowSpec(HOUR, HOUR, 1 - HOUR),
    ]
    trees = [window_of(moment, spec) for moment in moments for spec in specs]
    specs = [WindowSpec(HOUR, HOUR // 2), WindowSpec(DAY + 1, 7 * HOUR, -HOUR), WindowSpec(5, 2, 1)]
    trees += [windows_of(moment, spec) for moment in moments for spec in specs]
    between = [(one, other) for one in moments for other in moments if one.type == other.type]
    trees += [window_between(one, other) for one, other in between]
    assert len(trees) == 36
    cases = [Case(spark_sql(tree), tree, tree) for tree in trees]
    assert [problem for problem in oracle.problems(cases) if ": types" not in problem] == []


@pytest.mark.parametrize("family", ["casts", "strings", "dates"])
def test_random_values(spark: SparkSession, family: str) -> None:
    """Values drawn by seed, texts near the formats that casts read among them."""
    oracle = Oracle(spark, *random_batch(20, 500), Session("Europe/Paris"))
    assert oracle.problems(list(FAMILIES[family](oracle.session))) == []


def test_random_decimals_and_doubles(spark: SparkSession) -> None:
    """Arithmetic on decimals and rounding of doubles, where intermediate precision shows."""
    oracle = Oracle(spark, *random_batch(21, 500), Session())
    cases = list(FAMILIES["arithmetic"](oracle.session))
    chosen = [c for c in cases if re.match(r"\(?[eghk]1 . [eghk]2|b?round|pmod\([egh]1, [egh]2", c.sql)]
    assert len(chosen) > 100
    assert oracle.problems(chosen) == []


@pytest.mark.parametrize("family", ["casts", "dates"])
def test_outside_ansi_mode(spark: SparkSession, family: str) -> None:
    """What is portable outside ANSI mode gives Spark's NULLs and wrapped values."""
    oracle = Oracle(spark, *edge_batch(), Session("Asia/Kolkata", ansi=False))
    assert oracle.problems(list(FAMILIES[family](oracle.session))) == []


def test_case_of_every_character(spark: SparkSession) -> None:
    """Upper and lower case of all code points."""
    points = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    table = pa.table({"c": [chr(code) for code in points]})
    result = spark.createDataFrame(table).selectExpr("c", "upper(c) AS u", "lower(c) AS l").toArrow()
    rows = zip(*(result.column(name).to_pylist() for name in ("c", "u", "l")), strict=True)
    wrong = [hex(ord(c)) for c, u, l_ in rows if upper(c) != u or lower(c) != l_]
    assert wrong == []


@pytest.mark.parametrize(
    "zone", ["America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Sao_Paulo", "+05:45"]
)
def test_time_zones(spark: SparkSession, zone: str) -> None:
    """Both directions of a zone, at random moments from year 1 to 9999 and around every change since 1970."""
    generator = np.random.default_rng(1)
    moments = np.concatenate(
        [
            generator.integers(-62_135_500_000, 253_402_200_000, 3000),
            generator.integers(0, 4_000_000_000, 3000) // 1800 * 1800,
        ]
    )
    microseconds = moments * 1_000_000
    table = pa.table({"t": pa.array(microseconds, pa.timestamp("us", tz="UTC"))})
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    shifted = spark.createDataFrame(table).selectExpr(
        f"from_utc_timestamp(t, '{zone}') AS a", f"to_utc_timestamp(t, '{zone}') AS b"
    )
    result = shifted.toArrow()
    for name, ours in (("a", to_local(microseconds, zone)), ("b", to_utc(microseconds, zone))):
        theirs = pa.concat_arrays(result.column(name).chunks).cast(pa.int64()).to_numpy()
        assert (ours == theirs).all()
