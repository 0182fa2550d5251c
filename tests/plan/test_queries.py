"""Ad hoc queries: ORDER BY, LIMIT, OFFSET and parameters; and expressions of DML."""

import datetime
from decimal import Decimal

import pytest

from viewkeeper.errors import InputError, SqlError, UnsupportedSql
from viewkeeper.expressions.tree import Call, ColumnRef, Literal, Session, SparkExpression
from viewkeeper.plan.build import plan_expression, plan_query, plan_view
from viewkeeper.plan.examples import FixedRelations, T, U
from viewkeeper.plan.nodes import Filter, SortKey, walk
from viewkeeper.zset.schema import BIGINT, INT, STRING


def query(sql, parameters=None, **options):
    return plan_query(sql, FixedRelations([T, U]), Session(), parameters, **options)


@pytest.mark.parametrize(
    ("sql", "order", "width"),
    [
        ("SELECT k, a FROM t ORDER BY a", (SortKey(1, True, True),), 2),
        ("SELECT k, a FROM t ORDER BY a DESC, 1", (SortKey(1, False, False), SortKey(0, True, True)), 2),
        ("SELECT k, a FROM t ORDER BY a NULLS LAST", (SortKey(1, True, False),), 2),
        ("SELECT k, a FROM t ORDER BY a DESC NULLS FIRST", (SortKey(1, False, True),), 2),
        ("SELECT k, a FROM t ORDER BY b", (SortKey(2, True, True),), 3),
        ("SELECT k, a + 1 AS a FROM t ORDER BY a", (SortKey(1, True, True),), 2),
        ("SELECT k, a AS b, b AS a FROM t ORDER BY a, t.a", (SortKey(2, True, True), SortKey(1, True, True)), 3),
        ("SELECT k, a FROM t ORDER BY ALL DESC", (SortKey(0, False, False), SortKey(1, False, False)), 2),
        ("SELECT c, SUM(a) AS s FROM t GROUP BY c ORDER BY SUM(a) DESC", (SortKey(1, False, False),), 2),
        ("SELECT c, SUM(a) AS s FROM t GROUP BY c ORDER BY MAX(b)", (SortKey(2, True, True),), 3),
        ("SELECT k FROM t UNION ALL SELECT id FROM u ORDER BY k", (SortKey(0, True, True),), 4),
        (
            "SELECT k FROM t UNION ALL SELECT id FROM u ORDER BY k % 2, 1",
            (SortKey(1, True, True), SortKey(0, True, True)),
            5,
        ),
    ],
)
def test_order(sql, order, width):
    plan = query(sql)
    assert plan.order == order
    assert len(plan.view.root.schema) == width


def test_limit_and_offset():
    plan = query("SELECT k FROM t LIMIT 10 OFFSET :skip", {"skip": 5})
    assert (plan.limit, plan.offset) == (10, 5)
    assert query("SELECT k FROM t LIMIT ALL").limit is None
    with pytest.raises(SqlError) as caught:
        query("SELECT k FROM t LIMIT 1.5")
    assert caught.value.code == "INVALID_LIMIT"
    with pytest.raises(SqlError) as caught:
        query("SELECT k FROM t ORDER BY 2")
    assert caught.value.code == "ORDER_BY_POS_OUT_OF_RANGE"


def test_queries_may_repeat_names():
    assert query("SELECT a, b AS a, a FROM t").view.schema.names == ("a", "a", "a")


@pytest.mark.parametrize(
    ("value", "type_name", "constant"),
    [
        (5, "bigint", 5),
        (True, "boolean", True),
        (1.5, "double", 1.5),
        (Decimal("1.50"), "decimal(3,2)", Decimal("1.50")),
        ("x", "string", "x"),
        (b"x", "binary", b"x"),
        (None, "void", None),
        (datetime.date(1970, 1, 3), "date", 2),
        (datetime.datetime(1970, 1, 1, 0, 0, 1), "timestamp", 1_000_000),
        (datetime.datetime(1970, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), "timestamp", 0),
    ],
)
def test_parameters(value, type_name, constant):
    root = query("SELECT :p AS p FROM t", {"p": value}).view.root
    literal = root.expressions[0]
    assert isinstance(literal, Literal)
    assert (str(literal.type), literal.value) == (type_name, constant)


def test_naive_datetimes_are_in_the_zone_of_the_session():
    plan = plan_query(
        "SELECT :p AS p FROM t",
        FixedRelations([T]),
        Session(time_zone="America/New_York"),
        {"p": datetime.datetime(2024, 1, 1)},
    )
    expected = datetime.datetime(2024, 1, 1, 5, tzinfo=datetime.UTC).timestamp() * 1_000_000
    assert plan.view.root.expressions[0].value == expected


@pytest.mark.parametrize("value", [object(), 2**63, Decimal("NaN"), Decimal(10) ** 40])
def test_parameters_that_cannot_be(value):
    with pytest.raises(InputError) as caught:
        query("SELECT k FROM t WHERE a = :p", {"p": value})
    assert caught.value.code == "INVALID_PARAMETER"
    assert caught.value.details["parameter"] == "p"


def test_parameters_filter():
    plan = query("SELECT k FROM t WHERE k = :k", {"k": 7})
    condition = next(node for node in walk(plan.view.root) if isinstance(node, Filter)).condition
    assert condition == Call("eq", (ColumnRef(0, BIGINT, False), Literal(7, BIGINT)), condition.type, False)


def test_expressions_of_dml():
    schema = T.schema
    expression = plan_expression("a + :n", schema, Session(), "t", {"n": 1}, target=INT)
    assert expression.type == INT
    assert plan_expression("t.c", schema, Session(), "t") == ColumnRef(3, STRING)
    assert plan_expression("1", schema.select(()), Session(), target=BIGINT).type == BIGINT
    with pytest.raises(SqlError) as caught:
        plan_expression("a + zz", schema, Session(), "t")
    assert (caught.value.code, caught.value.details["column"]) == ("UNRESOLVED_COLUMN", 5)
    with pytest.raises(SqlError) as caught:
        plan_expression("SUM(a)", schema, Session(), "t")
    assert caught.value.code == "MISPLACED_AGGREGATE"
    with pytest.raises(UnsupportedSql):
        plan_expression("(SELECT MAX(v) FROM u)", schema, Session(), "t")
    with pytest.raises(SqlError) as caught:
        plan_expression("a, b", schema, Session(), "t")
    assert caught.value.code == "SYNTAX_ERROR"


class Analyzer:
    """Stands where Spark's analyzer does: records what it is asked, and gives a fixed answer."""

    def __init__(self, *answer):
        self.answer = answer
        self.asked = []

    def __call__(self, sql, schema):
        self.asked.append((sql, schema.names))
        return self.answer


def test_what_is_not_portable_goes_to_spark_whole():
    analyzer = Analyzer(STRING, True, True)
    plan = plan_view(
        "SELECT k, CASE WHEN a > 0 THEN soundex(c) END AS s FROM t WHERE b = 1",
        FixedRelations([T]),
        Session(),
        spark_types=analyzer,
    )
    expression = plan.root.expressions[1]
    assert isinstance(expression, SparkExpression)
    assert expression.sql == "CASE WHEN `_c1` > 0 THEN SOUNDEX(`_c3`) END"
    assert expression.inputs == (1, 3)
    assert analyzer.asked[0][1] == ("_c0", "_c1", "_c2", "_c3", "_c4", "_c5")
    assert plan.root.input.schema.names == ("k", "a", "b", "c")


def test_nondeterminism_that_only_spark_knows_is_refused():
    with pytest.raises(UnsupportedSql) as caught:
        plan_view(
            "SELECT k, soundex(c) AS s FROM t",
            FixedRelations([T]),
            Session(),
            spark_types=Analyzer(STRING, True, False),
        )
    assert caught.value.code == "NONDETERMINISTIC_EXPRESSION"


def test_groups_and_arguments_may_need_spark():
    analyzer = Analyzer(STRING, True, True)
    plan = plan_view(
        "SELECT soundex(c) AS s, SUM(soundex(c)) AS n FROM t GROUP BY soundex(c) HAVING soundex(c) <> 'x'",
        FixedRelations([T]),
        Session(),
        spark_types=analyzer,
    )
    inputs = next(node for node in walk(plan.root) if type(node).__name__ == "Project").expressions
    assert [e.sql for e in inputs] == ["SOUNDEX(`_c0`)", "CAST(SOUNDEX(`_c0`) AS DOUBLE)"]
    assert plan.schema.names == ("s", "n")
