import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import SqlError
from viewkeeper.statements import parse_script, parse_statement
from viewkeeper.statements.model import Statement


@pytest.mark.parametrize(
    ("sql", "message", "suggestion"),
    [
        ("SELEC 1", "expected a statement, found 'SELEC'", "SELECT"),
        ("CRATE TABLE t (a INT)", "expected a statement, found 'CRATE'", "CREATE"),
        ("CREATE MATERIALISED VIEW v AS SELECT 1", "expected TABLE or MATERIALIZED VIEW, found 'MATERIALISED'",
         "MATERIALIZED"),
        ("CREATE TABEL t (a INT)", "expected TABLE or MATERIALIZED VIEW, found 'TABEL'", "TABLE"),
        ("CREATE MATERIALIZED VEIW v AS SELECT 1", "expected VIEW, found 'VEIW'", "VIEW"),
        ("CREATE MATERIALIZED VIEW v REFRSH ON DEMAND AS SELECT 1", "found 'REFRSH'", "REFRESH"),
        ("CREATE MATERIALIZED VIEW v REFRESH CONTINOUS AS SELECT 1", "found 'CONTINOUS'", "CONTINUOUS"),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTEL AS SELECT 1", "found 'INCREMENTEL'", "INCREMENTAL"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY 5 SECNDS AS SELECT 1", "found 'SECNDS'", "SECONDS"),
        ("CREATE MATERIALIZED VIEW v AS SELCT 1", "expected a query, found 'SELCT'", "SELECT"),
        ("CREATE TABLE t (a INT PRIMRY KEY)", "expected ',' or ')', found 'PRIMRY'", "PRIMARY"),
        ("CREATE TABLE t (a INT", "expected ',' or ')', found the end of the statement", None),
        ("CREATE TABLE (a INT)", "expected the name of a table, found '('", None),
        ("REFRESH TABLES v", "expected MATERIALIZED VIEW, found 'TABLES'", None),
        ("VERIFY MATERIALIZED VIEW v REPIAR", "expected REPAIR or the end of the statement, found 'REPIAR'", "REPAIR"),
        ("REFRESH MATERIALIZED VIEW v FUL", "expected FULL or the end of the statement, found 'FUL'", "FULL"),
        ("DROP TABLE t CASCAD", "expected CASCADE or the end of the statement, found 'CASCAD'", "CASCADE"),
        ("ALTER MATERIALIZED VIEW v SUSPND", "found 'SUSPND'", "SUSPEND"),
        ("DELETE FORM t", "expected FROM, found 'FORM'", "FROM"),
        ("DELETE FROM t x WHER a = 1", "expected WHERE or the end of the statement, found 'WHER'", "WHERE"),
        ("INSERT INTO t VALUE (1)", "expected a query, found 'VALUE'", "VALUES"),
        ("DROP TABLE 't'", "expected the name of a table, found 't'", None),
        ('DROP TABLE "t"', "Double quotes make a string; names go in backticks.", None),
        ("DROP TABLE a-b", "Put such names in backticks.", None),
        ("DROP TABLE é", "go in backticks: `é`", None),
        ("DROP TABLE 12", "expected the name of a table, found '12'", None),
        ("DROP TABLE ``", "expected the name of a table", None),
        ("5", "expected a statement, found '5'", None),
        ("CREATE", "expected TABLE or MATERIALIZED VIEW, found the end of the statement", None),
    ],
)  # fmt: skip
def test_syntax_errors_tell_place_expectation_and_suggestion(sql, message, suggestion):
    with pytest.raises(SqlError) as caught:
        parse_script(f"-- first\n{sql}")
    error = caught.value
    assert error.code == "SYNTAX_ERROR"
    assert message in error.message
    assert error.details.get("suggestion") == suggestion
    assert error.details["line"] == 2
    assert f"\n{sql}"[error.details["column"] :].startswith(error.details["near"])
    assert (f"Did you mean {suggestion}?" in error.message) == (suggestion is not None)


@pytest.mark.parametrize("sql", ["", " \n", "-- nothing", ";;"])
def test_no_statement(sql):
    assert parse_script(sql) == []
    with pytest.raises(SqlError) as caught:
        parse_statement(sql)
    assert caught.value.code == "SYNTAX_ERROR"


def test_several_statements_where_one_is_expected():
    with pytest.raises(SqlError) as caught:
        parse_statement("SHOW TABLES;\nSHOW TABLES;")
    assert caught.value.code == "MULTIPLE_STATEMENTS"
    assert (caught.value.details["line"], caught.value.details["column"]) == (2, 1)


def test_errors_and_statements_travel_between_processes():
    statement = parse_statement("DELETE FROM t WHERE a = 1")
    copy = pickle.loads(pickle.dumps(statement))
    assert (copy, copy.sql, copy.place, copy.where.place) == (
        statement, statement.sql, statement.place, statement.where.place,
    )  # fmt: skip
    with pytest.raises(SqlError) as caught:
        parse_statement("DELETE FORM t")
    assert pickle.loads(pickle.dumps(caught.value)).details == caught.value.details


def test_comments_may_stand_between_all_words():
    sql = "CREATE/**/OR -- x\nREPLACE/* a */MATERIALIZED /*;*/ VIEW v/**/REFRESH--\nON/**/DEMAND AS/**/SELECT 1"
    assert parse_statement(sql).query.text == "SELECT 1"


VOCABULARY = (
    "CREATE TABLE MATERIALIZED VIEW t `v w` ( ) , ; SELECT 1 'x' INT PRIMARY KEY AS REFRESH EVERY ON DEMAND INSERT "
    "INTO VALUES UPDATE SET = WHERE DELETE FROM MERGE USING WHEN MATCHED THEN NOT NULL DEFAULT COMMENT ALTER ADD "
    "COLUMN < > ARRAY STRUCT MAP . - : [ ] CASE END DROP SHOW DESCRIBE EXPLAIN VERIFY WITH NO DATA * ' ` /* */ -- \\ é"
)
WORDS = st.sampled_from([*VOCABULARY.split(), "\n", "x y"])


@given(st.lists(WORDS, max_size=25).map(" ".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_gives_statements_or_an_error_with_a_place(sql):
    error, statements = parse_or_error(sql)
    if error is not None:
        assert 0 <= error.details["offset"] <= len(sql)
        assert error.details["line"] >= 1
        assert error.details["column"] >= 1
        assert sql[error.details["offset"] :].startswith(error.details["near"])
    for statement in statements:
        assert isinstance(statement, Statement)
        assert sql[statement.place.offset :].startswith(statement.sql)


def parse_or_error(sql):
    try:
        return None, parse_script(sql)
    except SqlError as error:
        return error, []
