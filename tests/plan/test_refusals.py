"""Each refusal has an example that is refused with its code, at a place; and the page of limitations is the table."""

from pathlib import Path

import pytest

from viewkeeper.errors import UnsupportedSql
from viewkeeper.plan.examples import T, U, plan_example
from viewkeeper.plan.refusals import EXAMPLE_TABLES, REFUSALS, limitations_page

PAGE = Path(__file__).parents[2] / "docs" / "limitations.md"

MORE = [
    ("SELECT k FROM t SORT BY k", "ORDER_BY_IN_VIEW"),
    ("SELECT k FROM t DISTRIBUTE BY k", "ORDER_BY_IN_VIEW"),
    ("SELECT k FROM t CLUSTER BY k", "ORDER_BY_IN_VIEW"),
    ("SELECT k FROM (SELECT k FROM t ORDER BY a) q", "ORDER_BY_IN_VIEW"),
    ("SELECT k FROM t OFFSET 2", "OFFSET_WITHOUT_LIMIT"),
    ("SELECT k FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY k) > 1", "WINDOW_WITHOUT_PARTITION"),
    ("SELECT c, SUM(COUNT(*)) OVER () AS n FROM t GROUP BY c", "WINDOW_WITHOUT_PARTITION"),
    (
        "SELECT k, COUNT(*) OVER (PARTITION BY c ORDER BY DATE(c) RANGE INTERVAL 1 MONTH PRECEDING) AS n FROM t",
        "WINDOW_FUNCTION_NOT_YET",
    ),
    ("SELECT k FROM t WHERE a IN (SELECT id FROM u WHERE v = b UNION SELECT v FROM u)", "CORRELATION_NOT_YET"),
    ("SELECT k, (SELECT SUM(v) FROM u WHERE v = b GROUP BY ROLLUP(id)) AS s FROM t", "CORRELATION_NOT_YET"),
    ("SELECT PERCENTILE(DISTINCT a, 0.5) AS s FROM t", "AGGREGATE_NOT_YET"),
    ("SELECT min_by(a, b, 2) AS s FROM t", "AGGREGATE_NOT_YET"),
    ("SELECT collect_list(a) RESPECT NULLS AS s FROM t", "AGGREGATE_NOT_YET"),
    ("SELECT k, json_tuple(c, 'a') AS tag FROM t", "LATERAL_VIEW_NOT_YET"),
    ("SELECT t.k FROM t, LATERAL (SELECT v FROM u) q", "LATERAL_VIEW_NOT_YET"),
    ("SELECT t.k FROM t LEFT JOIN LATERAL explode(tags) e ON k = 1", "LATERAL_VIEW_NOT_YET"),
    ("SELECT v.id FROM (VALUES (1)) v(id) LEFT JOIN t ON v.id = t.a", "VALUES_NOT_YET"),
    ("SELECT id FROM range(10)", "QUERY_WITHOUT_TABLE"),
    ("SELECT a FROM (VALUES (1), (2)) AS v(a)", "QUERY_WITHOUT_TABLE"),
    ("SELECT k FROM t WHERE c = current_date", "NONDETERMINISTIC_EXPRESSION"),
    ("SELECT k, now() AS n FROM t", "NONDETERMINISTIC_EXPRESSION"),
    ("SELECT k, uuid() AS n FROM t", "NONDETERMINISTIC_EXPRESSION"),
    ("SELECT t.k FROM t ASOF JOIN u ON t.k = u.t_k", "CLAUSE_NOT_YET"),
    ("SELECT k FROM t TABLESAMPLE (5 ROWS)", "TABLESAMPLE_NOT_YET"),
    ("VALUES (1, 2)", "VALUES_NOT_YET"),
]


@pytest.mark.parametrize("code", REFUSALS)
def test_refusal(code):
    with pytest.raises(UnsupportedSql) as caught:
        plan_example(REFUSALS[code].example)
    error = caught.value
    assert error.code == code
    assert error.message.endswith(REFUSALS[code].instead)
    assert error.details["line"] == 1
    assert error.details["column"] >= 1
    assert error.details["near"]


@pytest.mark.parametrize(("sql", "code"), MORE)
def test_refusal_of_other_forms(sql, code):
    with pytest.raises(UnsupportedSql) as caught:
        plan_example(sql)
    assert caught.value.code == code


def test_example_tables_are_those_of_the_examples():
    for relation in (T, U):
        names = [part.split()[0] for part in EXAMPLE_TABLES[relation.name].split(", ")]
        assert tuple(names[: len(relation.schema)]) == relation.schema.names


def test_page_of_limitations_is_written_from_the_table():
    assert PAGE.read_text() == limitations_page()
