"""What Spark's parser refuses is refused here, at a place; Spark's verdicts are recorded in malformed.txt."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from tests.plan.malformed import malformed
from viewkeeper.errors import SqlError
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.build import plan_query
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation
from viewkeeper.plan.parse import parse_expression
from viewkeeper.plan.place import Place
from viewkeeper.statements.cursor import QUERY_STARTS
from viewkeeper.statements.lexer import tokenize
from viewkeeper.statements.model import Query, SqlText, Statement
from viewkeeper.statements.parse import parse_script
from viewkeeper.zset.schema import DATE, INT, STRING, Column, Schema, array

COLUMNS = Schema((
    Column("a", INT, False),
    Column("b", INT),
    Column("c", STRING),
    Column("d", DATE),
    Column("tags", array(INT)),
    Column("x", INT),
))  # fmt: skip
RELATIONS = FixedRelations(
    [Relation(1, "t", "table", COLUMNS, (0,)), Relation(2, "u", "table", Schema(COLUMNS.columns[:2]), (0,))]
)
# What is ours and not Spark's: documented, and tested elsewhere.
OURS = [
    "SELECT a FROM t WHERE a = ANY (SELECT a FROM u)",
    "SELECT a FROM t WHERE a > ALL (SELECT a FROM u)",
    "SHOW CREATE t",
]
FINE = [
    "SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS (())",
    "SELECT COUNT(*) AS n FROM t GROUP BY a, b GROUPING SETS ((a), ())",
    "SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS (GROUPING SETS (()), ROLLUP (a))",
    "SELECT COUNT(*) AS n FROM t GROUP BY a WITH ROLLUP",
    "SELECT a, upper(c) AS u, ROW_NUMBER() OVER (PARTITION BY b ORDER BY a) AS r FROM t QUALIFY r = 1",
    "SELECT a FROM t WHERE a > 1 GROUP BY a HAVING COUNT(*) > 1 ORDER BY a LIMIT 5 OFFSET 2",
    "(SELECT a FROM t ORDER BY a LIMIT 5) UNION ALL (SELECT a FROM u LIMIT 5) ORDER BY a LIMIT 3",
    "SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY a LIMIT 3",
    "SELECT SUM(a) OVER w AS s FROM t WINDOW w AS (PARTITION BY b ORDER BY a) ORDER BY s LIMIT 5",
    "SELECT SUM(a) OVER w AS s FROM t ORDER BY s WINDOW w AS (PARTITION BY b ORDER BY a)",
    "SELECT a FROM t QUALIFY RANK() OVER (PARTITION BY b ORDER BY a) = 1 ORDER BY a",
    "SELECT a FROM (SELECT a FROM t WHERE a > 1) WHERE a IN (SELECT a FROM u WHERE b > 1)",
    "SELECT a FROM (SELECT a FROM t) GROUP BY a",
    "SELECT t.a FROM t JOIN VALUES (1), (2) AS v(n) ON t.a = v.n WHERE n > 1",
    "FROM t SELECT a WHERE a > 1",
    "SELECT a, tag FROM t LATERAL VIEW explode(tags) e AS tag WHERE a > 1",
    "SELECT t.a FROM t JOIN u USING (a) WHERE NOT t.b IS NULL AND NOT t.c IS NOT NULL",
    "SELECT CAST(c AS TIMESTAMP_NTZ) AS s, a::bigint AS n, 1L AS one, CAST(a AS DECIMAL(10, 2)) AS m FROM t",
    "SELECT CASE a WHEN 1 THEN 2 ELSE 3 END AS n, isnull(b) AS e, isnotnull(b) AS f FROM t",
    "SELECT a AS y, * EXCEPT (a) FROM t",
    "SELECT SUM(a) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t",
    "SELECT SUM(a) FILTER (WHERE a > 1) AS s FROM t GROUP BY ALL",
    "SELECT FIRST(a IGNORE NULLS) AS f, ANY_VALUE(b) FILTER (WHERE a > 1) IGNORE NULLS AS v FROM t",
    "SELECT t.a FROM t JOIN VALUES 1, 2 AS v(n) ON t.a = v.n",
    "SELECT t.a FROM t, VALUES 1 v(n)",
    "SELECT a FROM t WHERE NOT NULL OR a > 1 AND NOT NULL",
]


@pytest.mark.parametrize("sql", [case.sql for case in malformed()])
def test_what_spark_refuses_is_refused_at_a_place(sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        read(sql)
    error = caught.value
    assert isinstance(error.details["line"], int)
    assert isinstance(error.details["column"], int)
    assert f"line {error.details['line']}, column {error.details['column']}" in error.message


@pytest.mark.parametrize("sql", [*OURS, *FINE])
def test_what_is_right_is_read(sql: str) -> None:
    read(sql)


def test_clauses_out_of_order_are_told_with_their_order() -> None:
    with pytest.raises(SqlError) as caught:
        read("SELECT a FROM t LIMIT 5 WHERE a > 1")
    assert caught.value.message == (
        "line 1, column 25, near 'WHERE': WHERE belongs before LIMIT: SELECT … FROM … JOIN … ON … WHERE … "
        "GROUP BY … HAVING … ORDER BY … LIMIT …."
    )


def read(sql: str) -> None:
    """Read a script as the database does: its statements, then the queries and the expressions in them."""
    for statement in parse_script(sql):
        for text in texts(statement):
            place = Place(sql, text.place.offset)
            if isinstance(statement, Query) or any(map(tokenize(text.text)[0].is_word, QUERY_STARTS[:-1])):
                plan_query(text.text, RELATIONS, Session(), place=place)
            else:
                parse_expression(text.text, place)


def texts(part: object) -> Iterator[SqlText]:
    """Yield the pieces of SQL that a statement holds."""
    if isinstance(part, SqlText):
        yield part
    elif isinstance(part, (Statement, tuple)) or dataclasses.is_dataclass(part):
        inner = part if isinstance(part, tuple) else [getattr(part, field.name) for field in dataclasses.fields(part)]
        for one in inner:
            yield from texts(one)
