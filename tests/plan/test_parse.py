"""What sqlglot would rewrite stays as it was written, and goes to Spark as it was meant."""

import pytest

from viewkeeper.errors import SqlError
from viewkeeper.plan.binding import normalized
from viewkeeper.plan.parse import parse_expression, parse_query, to_sql
from viewkeeper.plan.place import Place, span

TEXTS = [
    ("year(d)", "YEAR(d)"),
    ("from_utc_timestamp(a, 'UTC')", "FROM_UTC_TIMESTAMP(a, 'UTC')"),
    ("date_trunc('MONTH', ts)", "DATE_TRUNC('MONTH', ts)"),
    ("a::int", "CAST(a AS INT)"),
    ("try_cast(a AS int)", "TRY_CAST(a AS INT)"),
    ("CAST(a AS timestamp)", "CAST(a AS TIMESTAMP)"),
    ("CAST(a AS timestamp_ntz)", "CAST(a AS TIMESTAMP_NTZ)"),
    ("nvl(a, b)", "NVL(a, b)"),
    ("array(1, 2)[0]", "ARRAY(1, 2)[0]"),
    ("exists(tags, x -> x > 1)", "EXISTS(tags, x -> x > 1)"),
    ("transform(tags, y -> upper(y))", "TRANSFORM(tags, y -> UPPER(y))"),
    ("r'\\d'", "'\\\\d'"),
    ("'it''s'", "'it\\'s'"),
    ('"double"', "'double'"),
    ("(a + b) * 2", "(a + b) * 2"),
    ("c LIKE 'x!%' ESCAPE '!'", "c LIKE 'x!%' ESCAPE '!'"),
    ("extract(year FROM d)", "EXTRACT(YEAR FROM d)"),
    ("c NOT LIKE 'x'", "NOT c LIKE 'x'"),
    ("c NOT LIKE 'x!%' ESCAPE '!'", "NOT c LIKE 'x!%' ESCAPE '!'"),
    ("c NOT LIKE ALL ('x', 'y')", "c NOT LIKE ALL ('x', 'y')"),
    ("c NOT ILIKE ANY ('x', 'y')", "c NOT ILIKE ANY ('x', 'y')"),
    ("a - INTERVAL 1 DAY 2 HOURS", "a - (INTERVAL '1' DAY + INTERVAL '2' HOURS)"),
    ("a >>> 1", "SHIFTRIGHTUNSIGNED(a, 1)"),
    ("a !< 1", "a >= 1"),
    ("dateadd(day, 1, a)", "DATEADD(DAY, 1, a)"),
    ("substr(c FROM 2 FOR 1)", "SUBSTRING(c, 2, 1)"),
    ("DATE'2020-01-01'", "DATE '2020-01-01'"),
    ("TIME '10:00:00'", "TIME '10:00:00'"),
]
PARENTHESISED = [
    ("a & 6 << 1", "(a & (6 << 1))"),
    ("a | b & 3 ^ 5", "(a | ((b & 3) ^ 5))"),
    ("a << 1 + 2", "(a << (1 + 2))"),
    ("'x' || a - 1", "(('x' || a) - 1)"),
    ("1 + 2 || 'x' || 3 - 1", "((((1 + 2) || 'x') || 3) - 1)"),
    ("a = b < c", "((a = b) < c)"),
    ("a = b IS NULL", "((a = b) IS NULL)"),
    ("a + INTERVAL 1 DAY + 5", "((a + INTERVAL '1' DAY) + 5)"),
    ("a % 2 * 3", "((a % 2) * 3)"),
]


@pytest.mark.parametrize(("written", "expected"), TEXTS)
def test_expressions_keep_their_functions(written, expected):
    assert to_sql(parse_expression(written, Place(written))) == expected


@pytest.mark.parametrize(("written", "expected"), PARENTHESISED)
def test_operators_bind_as_in_spark(written, expected):
    """The tree of the text is the tree of the text with every pair of parentheses."""
    tree, other = (normalized(parse_expression(text, Place(text))) for text in (written, expected))
    assert tree == other


def test_between_is_never_symmetric():
    """Spark has no such word; read as plain BETWEEN it would mean something else."""
    with pytest.raises(SqlError, match="SYNTAX_ERROR"):
        parse_expression("a BETWEEN SYMMETRIC 2 AND 1", Place("a BETWEEN SYMMETRIC 2 AND 1"))


def test_a_semicolon_may_end_a_query():
    sql = "SELECT a FROM t;"
    assert to_sql(parse_query(sql, Place(sql))) == "SELECT a FROM t"


def test_spans_are_offsets_of_the_expression():
    sql = "a + other_name"
    tree = parse_expression(sql, Place(sql))
    assert span(tree) == (0, len(sql))
    assert Place(sql).of(tree.expression) == {"line": 1, "column": 5, "near": "other_name"}


def test_long_pieces_are_cut():
    sql = f"SELECT {'x' * 200} FROM t"
    near = Place(sql).of(parse_query(sql, Place(sql)).expressions[0])["near"]
    assert len(near) == 60
    assert near.endswith("…")
