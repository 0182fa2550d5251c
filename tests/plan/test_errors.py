"""What is wrong in a query is said with its code and its place."""

import pytest

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.examples import FixedRelations, T, U, plan_example
from viewkeeper.plan.nodes import Relation
from viewkeeper.plan.place import Place
from viewkeeper.zset.schema import BIGINT, INT, STRING, Column, Schema, map_of

WRONG = [
    ("SELECT zz FROM t", "UNRESOLVED_COLUMN", 1, 8, "zz"),
    ("SELECT nam FROM u", "UNRESOLVED_COLUMN", 1, 8, "nam"),
    ("SELECT t.zz FROM t", "UNRESOLVED_COLUMN", 1, 8, "t.zz"),
    ("SELECT t.a FROM t AS s", "UNRESOLVED_COLUMN", 1, 8, "t.a"),
    ("SELECT a\nFROM tt", "TABLE_OR_VIEW_NOT_FOUND", 2, 6, "tt"),
    ("SELECT a FROM other.t", "TABLE_OR_VIEW_NOT_FOUND", 1, 15, "other.t"),
    ("SELECT k FROM t AS x JOIN t AS y ON x.k = y.k", "AMBIGUOUS_REFERENCE", 1, 8, "k"),
    ("SELECT y.* FROM t", "UNRESOLVED_QUALIFIER", 1, 8, "y.*"),
    ("SELECT k, a, A FROM t", "COLUMN_ALREADY_EXISTS", 1, 8, "k, a, A FROM t"),
    ("SELECT a, SUM(b) AS s FROM t", "MISSING_GROUP_BY", 1, 8, "a"),
    ("SELECT a, SUM(b) AS s FROM t GROUP BY c", "MISSING_AGGREGATION", 1, 8, "a"),
    ("SELECT SUM(SUM(a)) AS s FROM t", "NESTED_AGGREGATE_FUNCTION", 1, 8, "SUM(SUM(a))"),
    ("SELECT k, a + 1 AS n, SUM(n) OVER (PARTITION BY k) AS s FROM t", "UNSUPPORTED_FEATURE", 1, 27, "n"),
    (
        "SELECT k, a AS n, RANK() OVER w AS s FROM t WINDOW w AS (PARTITION BY k ORDER BY n)",
        "UNSUPPORTED_FEATURE",
        1,
        82,
        "n",
    ),
    ("SELECT k, COUNT(*) AS n, SUM(1) OVER (PARTITION BY n) AS s FROM t GROUP BY k", "UNSUPPORTED_FEATURE", 1, 52, "n"),
    ("SELECT t.k, e.col FROM t, explode(t.tags) AS e", "UNRESOLVED_COLUMN", 1, 35, "t.tags"),
    ("SELECT t.k, e.col FROM t JOIN posexplode(tags) AS e", "UNRESOLVED_COLUMN", 1, 42, "tags"),
    ("SELECT t.k, e.col FROM explode(t.tags) AS e, t", "UNRESOLVED_COLUMN", 1, 32, "t.tags"),
    ("SELECT t.k, e.col FROM t LEFT JOIN explode(tags) AS e ON e.col = c", "UNRESOLVED_COLUMN", 1, 44, "tags"),
    (
        "SELECT k FROM t JOIN LATERAL explode(tags) e(c) USING (c)",
        "INVALID_LATERAL_JOIN_TYPE",
        1,
        30,
        "explode(tags) e(c) USING (c)",
    ),
    ("SELECT v FROM t NATURAL JOIN LATERAL (SELECT v FROM u) q", "INVALID_LATERAL_JOIN_TYPE", 1, 46, "v FROM u) q"),
    ("SELECT k FROM t FULL JOIN LATERAL range(3) r ON true", "INVALID_LATERAL_JOIN_TYPE", 1, 35, "range(3) r"),
    ("SELECT k FROM t, LATERAL VALUES (1) v(n)", "SYNTAX_ERROR", 1, 34, "1) v(n"),
    ("SELECT k FROM t WHERE a IN (VALUES (1), (2))", "SYNTAX_ERROR", 1, 23, "a IN (VALUES (1), (2))"),
    ("SELECT k FROM t UNION ALL VALUES (1), (2) JOIN t ON true", "SYNTAX_ERROR", 1, 43, "JOIN"),
    ("SELECT k FROM t UNION ALL VALUES (1), (2, 3)", "INVALID_INLINE_TABLE", 1, 35, "1), (2, 3"),
    ("SELECT k, n FROM t JOIN VALUES (t.a) v(n)", "INVALID_INLINE_TABLE", 1, 33, "t.a"),
    ("SELECT k, n FROM t, LATERAL (VALUES (a)) v(n)", "INVALID_INLINE_TABLE", 1, 38, "a"),
    ("SELECT k, n FROM t LEFT JOIN LATERAL (VALUES (a)) v(n) ON n > k", "INVALID_INLINE_TABLE", 1, 47, "a"),
    ("SELECT k FROM t LEFT JOIN VALUES (1), (X'00') v(n) ON n = a", "INVALID_INLINE_TABLE", 1, 35, "1), (X'00') v(n"),
    ("SELECT k FROM t WHERE SUM(a) > 1", "INVALID_WHERE_CONDITION", 1, 23, "SUM(a)"),
    ("SELECT k FROM t WHERE k IN (SELECT id FROM u WHERE v > SUM(t.a))", "INVALID_WHERE_CONDITION", 1, 56, "SUM(t.a)"),
    (
        "SELECT k, (SELECT MAX(v) FROM u WHERE v > SUM(t.a)) AS m FROM t GROUP BY k",
        "INVALID_WHERE_CONDITION",
        1,
        43,
        "SUM(t.a)",
    ),
    (
        "SELECT k FROM t GROUP BY k HAVING k IN (SELECT id FROM u WHERE v > COUNT(*))",
        "INVALID_WHERE_CONDITION",
        1,
        68,
        "COUNT(*)",
    ),
    (
        "SELECT k FROM t GROUP BY k HAVING k IN (SELECT id FROM u WHERE v > SUM(v))",
        "INVALID_WHERE_CONDITION",
        1,
        68,
        "SUM(v)",
    ),
    (
        "SELECT k FROM t GROUP BY k HAVING k IN (SELECT id FROM u WHERE v > MAX(SUM(t.a)))",
        "NESTED_AGGREGATE_FUNCTION",
        1,
        68,
        "MAX(SUM(t.a))",
    ),
    ("SELECT t.k FROM t JOIN u ON COUNT(*) = u.id", "MISPLACED_AGGREGATE", 1, 29, "COUNT(*)"),
    ("SELECT 1 AS x FROM t GROUP BY 2", "GROUP_BY_POS_OUT_OF_RANGE", 1, 31, "2"),
    ("SELECT SUM(a) AS s FROM t GROUP BY 1", "GROUP_BY_AGGREGATE", 1, 36, "1"),
    ("SELECT k FROM t WHERE a", "DATATYPE_MISMATCH", 1, 23, "a"),
    ("SELECT SUM(a > 1) AS s FROM t", "DATATYPE_MISMATCH", 1, 12, "a > 1"),
    ("SELECT c AND TRUE AS x FROM t WHERE a AND TRUE", "DATATYPE_MISMATCH", 1, 37, "a"),
    ("SELECT SUM(a, b) AS s FROM t", "WRONG_NUM_ARGS", 1, 8, "SUM(a, b)"),
    ("SELECT COUNT() AS s FROM t", "WRONG_NUM_ARGS", 1, 8, "COUNT"),
    ("SELECT k, a FROM t UNION ALL SELECT id FROM u", "NUM_COLUMNS_MISMATCH", 1, 8, None),
    ("SELECT k, tags FROM t UNION ALL SELECT id, v FROM u", "INCOMPATIBLE_COLUMN_TYPE", 1, 8, None),
    ("SELECT x FROM (SELECT a FROM t) AS q(x, y)", "ASSIGNMENT_ARITY_MISMATCH", 1, 23, None),
    ("WITH q AS (SELECT a FROM t), Q AS (SELECT b FROM t) SELECT a FROM q", "DUPLICATED_CTE_NAMES", 1, 30, "Q"),
    ("WITH q AS (SELECT * FROM nosuch) SELECT k FROM t", "TABLE_OR_VIEW_NOT_FOUND", 1, 26, "nosuch"),
    ("WITH q AS (SELECT nosuch FROM t) SELECT k FROM t", "UNRESOLVED_COLUMN", 1, 19, "nosuch"),
    ("WITH q AS (SELECT a + tags AS x FROM t) SELECT k FROM t", "DATATYPE_MISMATCH", 1, 19, "a + tags"),
    ("WITH q(x, y) AS (SELECT a FROM t) SELECT k FROM t", "ASSIGNMENT_ARITY_MISMATCH", 1, 1, "WITH q"),
    ("WITH q AS (SELECT a FROM r), r AS (SELECT a FROM t) SELECT a FROM r", "TABLE_OR_VIEW_NOT_FOUND", 1, 26, "r"),
    ("WITH t AS (SELECT nosuch FROM t) SELECT v FROM u", "UNRESOLVED_COLUMN", 1, 19, "nosuch"),
    ("WITH q AS (WITH r AS (SELECT nosuch FROM t) SELECT a FROM t) SELECT a FROM q", "UNRESOLVED_COLUMN", 1, 30, None),
    (
        "WITH q AS (SELECT a, nosuch FROM t) SELECT x FROM (WITH q AS (SELECT a AS x FROM t) SELECT x FROM q) r",
        "UNRESOLVED_COLUMN",
        1,
        22,
        "nosuch",
    ),
    (
        "SELECT k FROM t WHERE EXISTS (WITH q AS (SELECT nosuch FROM u) SELECT 1 FROM u WHERE v = a)",
        "UNRESOLVED_COLUMN",
        1,
        49,
        "nosuch",
    ),
    (
        "WITH RECURSIVE q(n) AS (SELECT a FROM t UNION ALL SELECT nosuch FROM q) SELECT k FROM t",
        "UNRESOLVED_COLUMN",
        1,
        58,
        "nosuch",
    ),
    ("SELECT k FROM t JOIN (SELECT t_k FROM u) AS w USING (k)", "UNRESOLVED_COLUMN", 1, None, None),
    ("SELECT UPPER(*) AS x FROM t", "INVALID_USAGE_OF_STAR", 1, 8, "UPPER(*)"),
    ("SELECT CAST(a AS DECIMAL(50, 2)) AS x FROM t", "INVALID_TYPE", 1, None, None),
    ("SELECT k FROM t WHERE a = :limit", "UNBOUND_SQL_PARAMETER", 1, 27, ":limit"),
    (
        "SELECT k FROM t WHERE RANK() OVER (PARTITION BY c ORDER BY a) = 1",
        "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
        1,
        23,
        None,
    ),
    ("SELECT k, rank() AS r FROM t", "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE", 1, 11, None),
    ("SELECT k, RANK() OVER (PARTITION BY c) AS r FROM t", "WINDOW_FUNCTION_FRAME_NOT_ORDERED", 1, 11, None),
    (
        "SELECT k, LAG(a) OVER (PARTITION BY c ORDER BY k ROWS 1 PRECEDING) AS r FROM t",
        "INVALID_WINDOW_FRAME",
        1,
        11,
        None,
    ),
    ("SELECT k, SUM(a) OVER w AS s FROM t", "MISSING_WINDOW_SPECIFICATION", 1, 23, "w"),
    (
        "SELECT k, SUM(DISTINCT a) OVER (PARTITION BY c) AS s FROM t",
        "DISTINCT_WINDOW_FUNCTION_UNSUPPORTED",
        1,
        None,
        None,
    ),
    ("SELECT k, RANK() OVER (PARTITION BY b ORDER BY a) AS a FROM t QUALIFY a = 1", "AMBIGUOUS_REFERENCE", 1, 71, "a"),
    ("SELECT k, b + 0 AS b, SUM(b) OVER (PARTITION BY c) AS s FROM t QUALIFY b = 1", "AMBIGUOUS_REFERENCE", 1, 72, "b"),
    (
        "SELECT c, SUM(a) AS s FROM t GROUP BY c QUALIFY RANK() OVER (ORDER BY SUM(a)) = 1",
        "MISSING_GROUP_BY",
        1,
        71,
        "SUM(a)",
    ),
    ("SELECT k FROM t QUALIFY a = 1", "QUALIFY_REQUIRES_WINDOW_FUNCTION", 1, None, None),
    ("SELECT k, NTILE(0) OVER (PARTITION BY c ORDER BY k) AS n FROM t", "DATATYPE_MISMATCH", 1, 11, None),
    (
        "SELECT k, SUM(a) OVER (PARTITION BY c ORDER BY k ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS n FROM t",
        "DATATYPE_MISMATCH",
        1,
        11,
        None,
    ),
    (
        "SELECT k, SUM(a) OVER (PARTITION BY c ORDER BY c RANGE 1 PRECEDING) AS n FROM t",
        "DATATYPE_MISMATCH",
        1,
        None,
        None,
    ),
    (
        "SELECT k, SUM(a) OVER (PARTITION BY c ORDER BY DATE(c) RANGE BETWEEN INTERVAL 1 MONTH PRECEDING"
        " AND INTERVAL 2 DAY FOLLOWING) AS n FROM t",
        "DATATYPE_MISMATCH",
        1,
        11,
        None,
    ),
    ("SELECT DATE_ADD(DATE(c), k) AS d FROM t", "DATATYPE_MISMATCH", 1, None, None),
    ("SELECT k, LAG(a, b) OVER (PARTITION BY c ORDER BY k) AS n FROM t", "DATATYPE_MISMATCH", 1, 18, "b"),
    ("SELECT k, e FROM t LATERAL VIEW explod(tags) q AS e", "UNRESOLVED_ROUTINE", 1, 20, None),
    ("SELECT k, e FROM t, LATERAL explod(tags) AS q(e)", "UNRESOLVED_ROUTINE", 1, 29, "explod(tags)"),
    ("SELECT k FROM t, numbers(3) q", "UNRESOLVED_ROUTINE", 1, 18, "numbers(3)"),
    ("SELECT tags.* FROM t", "UNRESOLVED_QUALIFIER", 1, 8, "tags.*"),
    ("SELECT k, a FROM t WHERE a >", "SYNTAX_ERROR", 1, 28, ">"),
    ("SELECT k FROM t; SELECT k FROM t", "SYNTAX_ERROR", 1, 1, None),
    ("SELECT 'k FROM t", "SYNTAX_ERROR", 1, 1, None),
    ("DELETE FROM t", "SYNTAX_ERROR", 1, 1, None),
]


@pytest.mark.parametrize(("sql", "code", "line", "column", "near"), WRONG, ids=[case[0] for case in WRONG])
def test_wrong_sql(sql, code, line, column, near):
    with pytest.raises(SqlError) as caught:
        plan_example(sql)
    error = caught.value
    assert (error.code, error.details["line"]) == (code, line)
    assert not isinstance(error, UnsupportedSql)
    if column is not None:
        assert error.details["column"] == column
    if near is not None:
        assert error.details["near"] == near
        assert near in error.message


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT nam FROM u", "Did you mean 'name'?"),
        ("SELECT u.nam FROM u", "Did you mean 'u.name'?"),
        ("SELECT a FROM tt", "Did you mean 't'?"),
        ("SELECT tt.* FROM t", "Did you mean 't'?"),
        ("SELECT zzz FROM u", "There are 'id', 't_k', 'v', 'name'."),
        ("SELECT x.k FROM t x JOIN t y ON x.k = y.k WHERE k = 1", "'x.k' or 'y.k'"),
    ],
)
def test_what_may_have_been_meant(sql, hint):
    with pytest.raises(SqlError) as caught:
        plan_example(sql)
    assert hint in caught.value.message


def test_places_are_those_of_the_whole_statement():
    statement = "CREATE MATERIALIZED VIEW v\nAS SELECT a,\n  zz FROM t"
    start = statement.index("SELECT")
    with pytest.raises(SqlError) as caught:
        plan_view(statement[start:], FixedRelations([T, U]), Session(), Place(statement, start))
    assert caught.value.details == {"line": 3, "column": 3, "near": "zz"}


def test_places_of_syntax_errors_are_those_of_the_whole_statement():
    statement = "CREATE MATERIALIZED VIEW v AS\nSELECT a b c FROM t"
    start = statement.index("SELECT")
    with pytest.raises(SqlError) as caught:
        plan_view(statement[start:], FixedRelations([T, U]), Session(), Place(statement, start))
    assert (caught.value.code, caught.value.details["line"], caught.value.details["column"]) == ("SYNTAX_ERROR", 2, 12)


def test_long_chains_of_conditions_are_no_problem():
    chain = " OR ".join(f"a = {i} AND b = {i}" for i in range(300))
    assert plan_example(f"SELECT k FROM t WHERE {chain}").schema.names == ("k",)


def test_nesting_has_a_limit():
    with pytest.raises(SqlError) as caught:
        plan_example(f"SELECT {'-'.join(['a'] * 900)} AS x FROM t")
    assert caught.value.code == "EXPRESSION_TOO_DEEP"


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("SELECT k, (SELECT SUM(v + a) FROM u) AS s FROM t", "SUM(v + a)"),
        ("SELECT k, (SELECT MAX(v) FILTER (WHERE v > a) FROM u) AS s FROM t", "MAX(v) FILTER (WHERE v > a)"),
        ("SELECT k, (SELECT COUNT(t.a) FROM u) AS s FROM t", "COUNT(t.a)"),
        ("SELECT k FROM t WHERE a IN (SELECT MAX(v) + b FROM u)", "b"),
        ("SELECT k FROM t WHERE a IN (SELECT MAX(v) FROM u GROUP BY id + t.a)", "t.a"),
        ("SELECT k FROM t WHERE a IN (SELECT v FROM u GROUP BY v HAVING MIN(id * b) > 1)", "MIN(id * b)"),
        ("SELECT k FROM t GROUP BY k HAVING k IN (SELECT id FROM u WHERE v > SUM(t.a + u.v))", "SUM(t.a + u.v)"),
        ("SELECT k FROM t GROUP BY k HAVING k IN (SELECT SUM(t.a) FROM u)", "SUM(t.a)"),
        ("SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u GROUP BY v HAVING v > SUM(t.a))", "SUM(t.a)"),
        ("SELECT k FROM t, LATERAL (SELECT name, SUM(v + a) AS s FROM u GROUP BY name) q", "SUM(v + a)"),
    ],
)
def test_outer_columns_beside_and_in_aggregates(sql, near):
    with pytest.raises(SqlError) as caught:
        plan_example(sql)
    assert caught.value.code == "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY"
    assert (caught.value.details["column"], caught.value.details["near"]) == (sql.index(near) + 1, near)


def test_outer_columns_that_hold_a_map():
    columns = (Column("k", BIGINT, False), Column("m", map_of(STRING, INT)))
    relations = FixedRelations([U, Relation(3, "w", "table", Schema(columns), (0,))])
    for subquery in ("SELECT w.m['a'] AS x UNION ALL SELECT 1", "SELECT DISTINCT v + w.m['a'] AS x FROM u"):
        with pytest.raises(SqlError, match=r"a MAP has no order .* in a subquery in FROM, outside") as caught:
            plan_view(f"SELECT k, l.x FROM w, LATERAL ({subquery}) l", relations, Session())
        assert caught.value.code == "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY"
        assert caught.value.details["near"] == "w.m"
    plan_view("SELECT k, l.x FROM w, LATERAL (SELECT v + w.m['a'] AS x FROM u) l", relations, Session())


def test_outer_columns_in_a_having_and_windows_over_both_sides():
    plan_example("SELECT k, (SELECT MAX(v) FROM u WHERE v < b HAVING COUNT(*) > t.a) AS s FROM t")
    plan_example("SELECT k, (SELECT SUM(v + t.a) OVER (PARTITION BY t_k) FROM u WHERE id = k) AS s FROM t")
