"""Each refusal has an example that is refused with its code, at a place; and the page of limitations is the table."""

from pathlib import Path

import pytest

from viewkeeper.errors import UnsupportedSql
from viewkeeper.plan.examples import T, U, plan_example
from viewkeeper.plan.limits import recomputed
from viewkeeper.plan.refusals import EXAMPLE_TABLES, REFUSALS, limitations_page

PAGE = Path(__file__).parents[2] / "docs" / "limitations.md"

MORE = [
    ("SELECT k FROM t SORT BY k", "ORDER_BY_IN_VIEW"),
    ("SELECT k FROM t DISTRIBUTE BY k", "ORDER_BY_IN_VIEW"),
    ("SELECT k FROM t CLUSTER BY k", "ORDER_BY_IN_VIEW"),
    ("SELECT k FROM (SELECT k FROM t ORDER BY a) q", "ORDER_BY_IN_VIEW"),
    ("SELECT k, INTERVAL '1-2' YEAR TO MONTH AS i FROM t", "TYPE_NOT_SUPPORTED"),
    ("SELECT k FROM t WHERE a IN (SELECT id FROM u WHERE v = b UNION SELECT v FROM u LIMIT 2)", "CORRELATION_NOT_YET"),
    ("SELECT t.k FROM t, LATERAL (SELECT SUM(v) AS s FROM u WHERE v = b LIMIT 0) q", "CORRELATION_NOT_YET"),
    ("SELECT k FROM t WHERE EXISTS (SELECT explode(tags) FROM u WHERE v = b)", "CORRELATION_NOT_YET"),
    (
        "SELECT t.k FROM t, LATERAL (WITH w AS (SELECT v FROM u WHERE v = b) SELECT v FROM u WHERE v IN (TABLE w)) q",
        "CORRELATION_NOT_YET",
    ),
    (
        "SELECT t.k FROM t, LATERAL (WITH RECURSIVE w(n) AS (SELECT b UNION ALL SELECT n + 1 FROM w) TABLE w) q",
        "CORRELATION_NOT_YET",
    ),
    ("SELECT min_by(DISTINCT a, b, 2) AS s FROM t", "AGGREGATE_NOT_YET"),
    ("SELECT k, PERCENTILE(a, 0.5) OVER (PARTITION BY c ORDER BY k) AS s FROM t", "WINDOW_FUNCTION_NOT_YET"),
    (
        "SELECT k, MODE() WITHIN GROUP (ORDER BY a) OVER (PARTITION BY b ORDER BY k) AS s FROM t",
        "WINDOW_FUNCTION_NOT_YET",
    ),
    ("SELECT k, json_tuple(c, name) AS tag FROM t JOIN u ON k = t_k", "LATERAL_VIEW_NOT_YET"),
    ("SELECT k, json_tuple(c, 'it''s') AS tag FROM t", "LATERAL_VIEW_NOT_YET"),
    ("SELECT t.k FROM t, LATERAL variant_explode(c) v", "LATERAL_VIEW_NOT_YET"),
    ("SELECT t.k FROM t JOIN LATERAL (SELECT v FROM u) q ON q.v IN (SELECT v FROM u)", "SUBQUERY_NOT_YET"),
    ("SELECT id FROM range(10)", "QUERY_WITHOUT_TABLE"),
    ("SELECT a FROM (VALUES (1), (2)) AS v(a)", "QUERY_WITHOUT_TABLE"),
    ("SELECT 1 AS a UNION ALL SELECT 2", "QUERY_WITHOUT_TABLE"),
    ("WITH t AS (SELECT 1 AS a) SELECT a FROM t", "QUERY_WITHOUT_TABLE"),
    ("SELECT k FROM t JOIN (SELECT *) q", "QUERY_WITHOUT_TABLE"),
    ("SELECT k FROM t WHERE EXISTS (SELECT 1 WHERE a > 5)", "QUERY_WITHOUT_TABLE"),
    ("SELECT k FROM t WHERE c = current_date", "NONDETERMINISTIC_EXPRESSION"),
    ("SELECT k, now() AS n FROM t", "NONDETERMINISTIC_EXPRESSION"),
    ("SELECT k, uuid() AS n FROM t", "NONDETERMINISTIC_EXPRESSION"),
    ("SELECT t.k FROM t ASOF JOIN u ON t.k = u.t_k", "CLAUSE_NOT_YET"),
    ("SELECT k FROM t TABLESAMPLE (5 ROWS)", "TABLESAMPLE_NOT_YET"),
    ("SELECT k FROM IDENTIFIER('t')", "CLAUSE_NOT_YET"),
    ("VALUES (1, 2)", "QUERY_WITHOUT_TABLE"),
    (
        "SELECT a FROM (VALUES (1) UNION ALL VALUES (2)) AS v(a) LEFT JOIN range(3) r ON r.id = v.a",
        "QUERY_WITHOUT_TABLE",
    ),
    (
        "SELECT k FROM t LEFT JOIN (SELECT k AS j FROM t) u ON j = k FULL JOIN sql_keywords() ON true",
        "TABLE_FUNCTION_NOT_YET",
    ),
]

RECOMPUTED_FORMS = [
    "SELECT k FROM t OFFSET 2",
    "SELECT k FROM t WHERE a IN (SELECT v FROM u OFFSET 1)",
    "SELECT k FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY k) > 1",
    "SELECT k FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY k) = 1 OR a = 1",
    "SELECT c, SUM(COUNT(*)) OVER () AS n FROM t GROUP BY c",
    "SELECT k, SUM(a) OVER (PARTITION BY c) AS p, SUM(a) OVER () AS s FROM t",
    "SELECT k, n FROM t, LATERAL (SELECT COUNT(*) OVER () AS n FROM u) q",
]


@pytest.mark.parametrize("code", REFUSALS)
def test_refusal(code):
    with pytest.raises(UnsupportedSql) as caught:
        plan_example(REFUSALS[code].example, is_strict=True)
    error = caught.value
    assert error.code == code
    assert error.message.endswith(REFUSALS[code].instead)
    assert error.details["line"] == 1
    assert error.details["column"] >= 1
    assert error.details["near"]


ADVICE = [
    ("SELECT vector_sum(tags) AS s FROM t", "Aggregate the elements one by one: SUM(v[0]), AVG(v[1])."),
    ("SELECT collect_union(tags) AS s FROM t", "Write array_distinct(flatten(collect_list(…)))."),
    ("SELECT COUNT(DISTINCT *) AS n FROM t", "Name the columns: COUNT(DISTINCT a, b)."),
    ("SELECT max_by(DISTINCT a, b, 2) AS n FROM t", "or read from a subquery SELECT DISTINCT …."),
    ("SELECT SUM(INTERVAL '1' MONTH) AS m FROM t", "Add up months as integers."),
    ("SELECT percentile_approx(DISTINCT a, 0.5) AS n FROM t", "Write PERCENTILE(DISTINCT …), which is exact."),
    ("SELECT percentile(a, array()) AS n FROM t", "Name at least one: array(0.5)."),
    (
        "SELECT median(timestamp_micros(k) - timestamp_micros(a)) AS n FROM t",
        "Take that of numbers: unix_micros(b) - unix_micros(a).",
    ),
    (
        "SELECT listagg(DISTINCT a, ',') WITHIN GROUP (ORDER BY a) AS n FROM t",
        "Cast the argument to string, there and behind ORDER BY.",
    ),
    (
        "SELECT k, PERCENTILE(a, 0.5) OVER (PARTITION BY c ORDER BY k) AS s FROM t",
        "the rows of its frame and aggregate those.",
    ),
    ("SELECT bitmap_construct_agg(a) AS n FROM t", REFUSALS["AGGREGATE_NOT_YET"].instead),
]


@pytest.mark.parametrize(("sql", "instead"), ADVICE)
def test_what_is_refused_is_told_what_works_instead(sql, instead):
    with pytest.raises(UnsupportedSql) as caught:
        plan_example(sql)
    assert caught.value.message.endswith(instead)


@pytest.mark.parametrize(("sql", "code"), MORE)
def test_refusal_of_other_forms(sql, code):
    with pytest.raises(UnsupportedSql) as caught:
        plan_example(sql, is_strict=True)
    assert caught.value.code == code


@pytest.mark.parametrize("sql", [refusal.example for refusal in REFUSALS.values() if refusal.part] + RECOMPUTED_FORMS)
def test_other_policies_compute_anew_what_incremental_refuses(sql):
    with pytest.raises(UnsupportedSql) as caught:
        plan_example(sql, is_strict=True)
    assert recomputed(plan_example(sql).root) == caught.value.code


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        (
            "SELECT SUM(a) OVER w AS p, AVG(a) OVER v AS q FROM t WINDOW w AS (PARTITION BY c), v AS (ORDER BY k)",
            "AVG(a) OVER v",
        ),
        (
            "SELECT k FROM (SELECT k, SUM(a) OVER () AS s FROM t) QUALIFY ROW_NUMBER() OVER (ORDER BY s DESC) < 3",
            "SUM(a)",
        ),
        ("SELECT SUM(a) OVER (ORDER BY k) AS s FROM t LEFT JOIN (SELECT v FROM u LIMIT 2147483647) ON v = a", "SUM(a)"),
    ],
)
def test_a_refusal_names_the_window_that_is_over_all_rows(sql, near):
    with pytest.raises(UnsupportedSql) as caught:
        plan_example(sql, is_strict=True)
    assert caught.value.details["near"].startswith(near)


@pytest.mark.parametrize(
    "sql",
    ["SELECT k FROM t ORDER BY a LIMIT 2147483647", "SELECT k FROM t QUALIFY RANK() OVER (ORDER BY a) <= 2147483648"],
)
def test_any_bound_is_a_bound(sql):
    assert recomputed(plan_example(sql, is_strict=True).root) is None


def test_example_tables_are_those_of_the_examples():
    for relation in (T, U):
        names = [part.split()[0] for part in EXAMPLE_TABLES[relation.name].split(", ")]
        assert tuple(names[: len(relation.schema)]) == relation.schema.names


def test_page_of_limitations_is_written_from_the_table():
    assert PAGE.read_text() == limitations_page()
