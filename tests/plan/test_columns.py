"""Names, types and nullability of what a query shows, as Spark's analyzer has them (recorded from Spark 4.3)."""

import pytest

from viewkeeper.plan.examples import plan_example

COLUMNS = [
    (
        "SELECT k, a + 1, a / b, a % b, a DIV b, -a, -1 FROM t",
        [
            "k bigint!",
            "(a + 1) int",
            "(a / b) double",
            "(a % b) int",
            "(a div b) bigint",
            "(- a) int",
            "-1 int!",
        ],
    ),
    (
        "SELECT 1L, 1.5BD, 2.0D, 1e3, 'abc', NULL, TRUE, 3000000000, .5, X'1F' FROM t",
        [
            "1 bigint!",
            "1.5 decimal(2,1)!",
            "2.0 double!",
            "1000.0 double!",
            "abc string!",
            "NULL void",
            "true boolean!",
            "3000000000 bigint!",
            "0.5 decimal(1,1)!",
            "X'1F' binary!",
        ],
    ),
    (
        "SELECT DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00', 'it''s' FROM t",
        [
            "DATE '2020-01-01' date!",
            "TIMESTAMP '2020-01-01 00:00:00' timestamp!",
            "it's string!",
        ],
    ),
    (
        "SELECT a <> 1, a <=> b, a IS NULL, a IS NOT NULL, a IN (1, 2), a BETWEEN 1 AND 3 FROM t",
        [
            "(NOT (a = 1)) boolean",
            "(a <=> b) boolean!",
            "(a IS NULL) boolean!",
            "(a IS NOT NULL) boolean!",
            "(a IN (1, 2)) boolean",
            "between(a, 1, 3) boolean",
        ],
    ),
    (
        "SELECT CASE WHEN a = 1 THEN 2 ELSE 3 END, IF(a > 1, b, 0), COALESCE(a, 0), try_divide(a, b) FROM t",
        [
            "CASE WHEN (a = 1) THEN 2 ELSE 3 END int!",
            "(IF((a > 1), b, 0)) int",
            "coalesce(a, 0) int!",
            "try_divide(a, b) double",
        ],
    ),
    (
        "SELECT CAST(k AS INT), CAST(b + 1 AS DECIMAL(10, 2)), TRY_CAST(c AS INT), STRING(a) FROM t",
        [
            "k int!",
            "CAST((b + 1) AS DECIMAL(10,2)) decimal(10,2)",
            "c int",
            "a string",
        ],
    ),
    (
        "SELECT COUNT(*), COUNT(a), SUM(a), SUM(x), AVG(a), MIN(c), MAX(x) FROM t",
        [
            "count(1) bigint!",
            "count(a) bigint!",
            "sum(a) bigint",
            "sum(x) double",
            "avg(a) double",
            "min(c) string",
            "max(x) double",
        ],
    ),
    (
        "SELECT SUM(CAST(a AS DECIMAL(10,2))), AVG(CAST(a AS DECIMAL(10,2))), AVG(CAST(a AS DECIMAL(38,36))) FROM t",
        [
            "sum(CAST(a AS DECIMAL(10,2))) decimal(20,2)",
            "avg(CAST(a AS DECIMAL(10,2))) decimal(14,6)",
            "avg(CAST(a AS DECIMAL(38,36))) decimal(38,38)",
        ],
    ),
    (
        "SELECT c, SUM(a) FILTER (WHERE b > 5), mean(a) FROM t GROUP BY c",
        [
            "c string",
            "sum(a) FILTER (WHERE (b > 5)) bigint",
            "mean(a) double",
        ],
    ),
    (
        "SELECT a + b, COUNT(*) FROM t GROUP BY a + b",
        [
            "(a + b) int",
            "count(1) bigint!",
        ],
    ),
    (
        "SELECT SUM(c) FROM t",
        [
            "sum(c) double",
        ],
    ),
    (
        "SELECT T.A, K FROM t",
        [
            "A int",
            "K bigint!",
        ],
    ),
    (
        "SELECT c LIKE 'a%', c || 'x', substring(c, 1) FROM t",
        [
            "c LIKE a% boolean",
            "concat(c, x) string",
            "substring(c, 1, 2147483647) string",
        ],
    ),
    (
        "SELECT (a > 1) IS NOT TRUE, isnull(a), FLOOR(x), sqrt(x) FROM t",
        [
            "(NOT ((a > 1) <=> true)) boolean!",
            "(a IS NULL) boolean!",
            "FLOOR(x) bigint",
            "SQRT(x) double",
        ],
    ),
    (
        "SELECT * EXCEPT (tags, x) FROM t",
        [
            "k bigint!",
            "a int",
            "b int",
            "c string",
        ],
    ),
    (
        "SELECT a AS p FROM t UNION ALL SELECT 1.5 FROM t",
        [
            "p decimal(11,1)",
        ],
    ),
    (
        "SELECT a FROM t UNION ALL SELECT c FROM t",
        [
            "a bigint",
        ],
    ),
    (
        "SELECT k FROM t UNION ALL SELECT id FROM u",
        [
            "k bigint!",
        ],
    ),
    (
        "SELECT w.*, t.a FROM t JOIN (SELECT t_k AS k, v FROM u) AS w USING (k)",
        [
            "k bigint",
            "v int",
            "a int",
        ],
    ),
    (
        "SELECT * FROM (SELECT a, k FROM t) AS p NATURAL JOIN (SELECT t_k AS k, v FROM u) AS w",
        [
            "k bigint!",
            "a int",
            "v int",
        ],
    ),
    (
        "SELECT n FROM (SELECT COUNT(*) FROM t) AS q (n)",
        [
            "n bigint!",
        ],
    ),
    ("SELECT col1, t.k FROM VALUES ('x'), (NULL) LEFT JOIN t ON t.c <=> col1", ["col1 string", "k bigint"]),
    ("SELECT * FROM (VALUES ('x'), ('y')) AS v(c) LEFT SEMI JOIN t USING (c)", ["c string!"]),
    ("SELECT * FROM (SELECT k, a FROM t) RIGHT JOIN range(3) AS r(k) USING (k)", ["k bigint!", "a int"]),
    ("SELECT * FROM (SELECT k, a FROM t) FULL JOIN range(3) AS r(k) USING (k)", ["k bigint", "a int"]),
    (
        "SELECT * FROM (VALUES (1), (2)) v(n) CROSS JOIN range(2) r LEFT JOIN (SELECT k, a FROM t) ON k = n + r.id",
        ["n int!", "id bigint!", "k bigint", "a int"],
    ),
    (
        "SELECT col1, k, id FROM (VALUES (1) v LEFT JOIN t ON t.k = col1) JOIN u ON t_k <=> k",
        ["col1 int!", "k bigint", "id int!"],
    ),
    ("SELECT * FROM (VALUES (1) AS v(n)) AS w(m) LEFT JOIN (SELECT k FROM t) ON k = w.m", ["m int!", "k bigint"]),
    ("SELECT n FROM VALUES (1 + 1), (CAST('4' AS INT)) v(n) LEFT JOIN t ON k = n", ["n int"]),
    ("SELECT k, (VALUES (7)) AS s FROM t WHERE EXISTS (VALUES (1))", ["k bigint!", "s int"]),
    ("SELECT c FROM t UNION ALL VALUES ('x')", ["c string"]),
    ("VALUES (1), (3) AS v(y) INTERSECT SELECT k FROM t", ["y bigint!"]),
    ("SELECT k FROM t UNION ALL VALUES 1.5, NULL", ["k decimal(21,1)"]),
    ("WITH w AS (SELECT k FROM t) VALUES (1, NULL) UNION ALL SELECT k, c FROM t", ["col1 bigint!", "col2 string"]),
    (
        "SELECT * FROM (VALUES (1) UNION ALL VALUES (7)) v(y) LEFT JOIN (SELECT k FROM t) ON k = y",
        ["y int!", "k bigint"],
    ),
    (
        "SELECT * FROM (VALUES (2), (1) ORDER BY col1 LIMIT 1) v FULL JOIN (SELECT k FROM t) ON k = col1",
        ["col1 int", "k bigint"],
    ),
    (
        "SELECT k, p, e.x FROM t LEFT JOIN LATERAL posexplode(tags) AS e(p, x) ON e.x = c",
        ["k bigint!", "p int", "x string"],
    ),
    ("SELECT k, e.* FROM t LEFT JOIN LATERAL (VALUES (1), (2)) AS e(y) ON e.y = a", ["k bigint!", "y int"]),
    ("SELECT k, e.* FROM t LEFT JOIN explode(array(1, 5)) AS e(y) ON e.y = a", ["k bigint!", "y int"]),
    (
        "SELECT e.*, t.k FROM stack(2, 1, 'a', 7, 'b') AS e LEFT JOIN t ON col0 = t.k",
        ["col0 int", "col1 string", "k bigint"],
    ),
    ("SELECT e.*, t.k FROM UNNEST(array(1, NULL)) AS e LEFT JOIN t ON col = t.k", ["col int", "k bigint"]),
    ("SELECT v.* FROM (VALUES (1, NULL), (NULL, NULL)) v LEFT JOIN t ON t.k = col1", ["col1 int", "col2 void"]),
    (
        "SELECT v.*, k FROM VALUES struct(1, 'a'), ((2, NULL)) AS v(n, m) LEFT JOIN t ON k = n",
        ["n int!", "m string", "k bigint"],
    ),
]


@pytest.mark.parametrize(("sql", "expected"), COLUMNS, ids=[sql for sql, _ in COLUMNS])
def test_columns(sql, expected):
    columns = plan_example(sql).schema.columns
    assert [f"{c.name} {c.type}{'' if c.nullable else '!'}" for c in columns] == expected
