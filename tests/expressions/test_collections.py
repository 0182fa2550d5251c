"""Arrays, maps and structs against Spark: type, nullability, value and error of each row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.expressions.cases import planned
from tests.expressions.spark_oracle import Oracle
from viewkeeper.errors import SqlError
from viewkeeper.expressions.tree import Session
from viewkeeper.zset import schema as s
from viewkeeper.zset.schema import Column

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_PAIR = s.struct(p=s.INT, q=s.STRING)
_ITEMS: dict[str, tuple[s.SqlType, list[object]]] = {
    "i": (s.INT, [None, 0, 1, -1, 2, 7, -3, 100]),
    "l": (s.BIGINT, [None, 0, 2**63 - 1, -(2**63), 2, 1, -1]),
    "d": (s.DOUBLE, [None, 0.0, -0.0, float("nan"), 1.5, float("inf")]),
    "t": (s.STRING, [None, "", "a", "a,b", ",", "a,,b,", "é, x", "1-2 - 3"]),
    "a": (s.array(s.INT), [None, [], [1], [None], [1, None, 3], [5, 6, 7, 8]]),
    "n": (s.array(s.STRING), [None, [], ["a"], [None, ""], ["x", "y"]]),
    "o": (s.array(_PAIR), [None, [], [{"p": 1, "q": "z"}], [None, {"p": None, "q": "é"}]]),
    "m": (s.map_of(s.STRING, s.INT), [None, {}, {"a": 1}, {"a": None, "": 2, "a,b": 3}]),
    "w": (s.map_of(s.BIGINT, s.STRING), [None, {}, {0: "a", 2: None}, {-1: "x"}]),
    "r": (_PAIR, [None, {"p": 1, "q": None}, {"p": None, "q": "z"}]),
}
_EXPRESSIONS = (
    "array(i, 1)", "array(i, l)", "array(1, 2, 3)", "array(t, 'x')", "array(i, 2.5)", "array(a, a)",
    "array(r, r)", "array(t, NULL)", "array(m)", "sequence(i, 3)", "sequence(1, i)", "sequence(i, i + 4)",
    "sequence(1, 9, 3)", "sequence(9, 1, -4)", "sequence(5, 5, 2)", "sequence(l, l)", "sequence(2L, i)",
    "split(t, ',')", "split(t, ', ')", "split(t, '-')", "split('a,b', ',')", "split(t, 'a')",
    "a[0]", "a[i]", "n[1]", "o[0]", "o[1].q", "o[i].p", "a[CAST(i AS SMALLINT)]",
    "m['a']", "m[t]", "m[CAST(NULL AS STRING)]", "w[i]", "w[l]", "w[2]", "r.p", "r.q", "r.Q", "o[0].P",
    "split(t, ',')[0]", "split(t, ',')[5]",
    "size(split(t, ','))", "size(array(i, l))", "size(sequence(i, 3))", "size(m)", "size(a)",
    "array_contains(a, i)", "array_contains(a, 3)", "array_contains(n, t)", "array_contains(n, NULL || t)",
    "array_position(a, i)", "array_position(n, '')", "array_size(a)", "get(a, i)", "get(o, 1)", "get(n, -1)",
    "try_element_at(a, 2)", "try_element_at(n, 1)", "map_keys(m)", "map_values(m)", "map_keys(w)", "map_values(w)",
    "array_join(n, ',')", "array_join(n, t, '-')", "array_join(n, t)", "size(map_keys(m))",
    "CASE WHEN i > 0 THEN a[0] ELSE 7 END", "coalesce(m['a'], i)", "COALESCE(a, array(i))",
)  # fmt: skip
_NOT_PORTABLE = (
    "split(t, '')", "split(t, ',', 2)", "split(t, t)", "sequence(1, 9, i)",
    "sequence(1, 9, -1)", "a[l]", "array(i, 1)[0]", "split(t, ',')[i]", "array()", "r.nothing",
    "sequence(DATE'2020-01-01', DATE'2020-02-01')", "array_contains(array(i), 1)", "array_contains(a, 1L)",
    "get(a, l)", "try_element_at(a, i)", "map_keys(map(t, i))", "array_join(n, ',', NULL)",
)  # fmt: skip
_ROWS = 200


def _batch() -> tuple[pa.RecordBatch, list[Column]]:
    """Return columns in which all pairs of the values of two neighbours meet."""
    arrays = [
        pa.array([values[row * (number + 1) // 3 % len(values)] for row in range(_ROWS)], s.to_arrow_type(kind))
        if kind.name != "MAP"
        else pa.array(
            [_pairs(values[row * (number + 1) // 3 % len(values)]) for row in range(_ROWS)], s.to_arrow_type(kind)
        )
        for number, (kind, values) in enumerate(_ITEMS.values())
    ]
    return pa.record_batch(arrays, names=list(_ITEMS)), [Column(n, kind) for n, (kind, _) in _ITEMS.items()]


def _pairs(value: object) -> object:
    return list(value.items()) if isinstance(value, dict) else value


def test_against_spark(spark: SparkSession) -> None:
    """Every expression on rows in which edge values meet."""
    batch, columns = _batch()
    oracle = Oracle(spark, batch, columns, Session())
    cases = [planned(sql, columns, oracle.session) for sql in _EXPRESSIONS]
    assert [(case.sql, case.expression) for case in cases if isinstance(case.expression, Exception)] == []
    assert "\n".join(oracle.problems(cases)) == ""


@pytest.mark.parametrize("sql", _NOT_PORTABLE)
def test_left_to_spark(sql: str) -> None:
    """What is not proven equal is not portable."""
    columns = [Column(name, kind) for name, (kind, _) in _ITEMS.items()]
    found = planned(sql, columns, Session()).expression
    assert isinstance(found, SqlError)
    assert found.code == "EXPRESSION_NEEDS_SPARK"
