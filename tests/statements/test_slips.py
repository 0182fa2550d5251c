"""In lists of columns words of the grammar are names, as in Spark; commas that separate nothing are told."""

from __future__ import annotations

from typing import Any

import pytest

from viewkeeper.errors import SqlError
from viewkeeper.statements import model as st
from viewkeeper.statements.cursor import Cursor
from viewkeeper.statements.lexer import Lexeme, tokenize
from viewkeeper.statements.model import Places
from viewkeeper.statements.parse import parse_statement
from viewkeeper.statements.slips import find_slip

WORDS = (
    "from",
    "select",
    "all",
    "distinct",
    "where",
    "values",
    "as",
    "by",
    "union",
    "case",
    "null",
    "primary",
    "table",
)


@pytest.mark.parametrize("word", WORDS)
def test_words_of_the_grammar_are_names_in_lists_of_columns(word: str) -> None:
    table = parse_statement(f"CREATE TABLE t (id INT, {word} STRING NOT NULL, x INT, PRIMARY KEY ({word}, id))")
    assert isinstance(table, st.CreateTable)
    assert ([column.name for column in table.columns], table.primary_key) == (["id", word, "x"], (word, "id"))
    insert = parse_statement(f"INSERT INTO t ({word}, id, x) VALUES (1, 2, 3)")
    assert isinstance(insert, st.Insert)
    assert insert.columns == (word, "id", "x")
    view = parse_statement(f"CREATE MATERIALIZED VIEW v ({word}, id COMMENT 'k', {word}_2) AS SELECT a, b, c FROM t")
    assert isinstance(view, st.CreateView)
    assert [name for name, _ in view.columns] == [word, "id", f"{word}_2"]
    added = parse_statement(f"ALTER TABLE t ADD COLUMNS a INT, {word} STRING")
    assert isinstance(added, st.AlterTableAddColumn)
    assert [column.name for column in added.columns] == ["a", word]


@pytest.mark.parametrize(
    "behind",
    [
        *(
            "BETWEEN 1 AND 2",
            "NOT IN (1)",
            "OR a",
            "AND a",
            "DIV 2",
            "RLIKE 'x'",
            "NULLS LAST",
            "ROWS UNBOUNDED PRECEDING",
        ),
        *(
            "UNION ALL SELECT 1",
            "EXCEPT SELECT 1",
            "INTERSECT SELECT 1",
            "WITH ROLLUP",
            "QUALIFY n > 0",
            "WINDOW w AS ()",
        ),
    ],
)
def test_from_behind_a_comma_is_a_name_where_no_table_can_follow(behind: str) -> None:
    sql = f"SELECT a, from {behind} FROM t"
    lexemes = tokenize(sql)
    assert find_slip(Cursor(sql, lexemes, Places(sql)), sql, lexemes) is None


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (id INT^, , x INT, PRIMARY KEY (id))",
        "CREATE TABLE t (^, id INT, PRIMARY KEY (id))",
        "CREATE TABLE t (id INT, from INT, PRIMARY KEY (id)^, )",
        "INSERT INTO t (a^, ) VALUES (1)",
        "INSERT INTO t (SELECT ^, a FROM u)",
        "INSERT INTO t (SELECT a^, FROM u)",
        "INSERT INTO t (id, from) SELECT a^, FROM u",
        "CREATE MATERIALIZED VIEW v (a, from) AS SELECT a^, FROM t",
        "CREATE MATERIALIZED VIEW v AS SELECT upper(a)^, FROM t",
        "CREATE MATERIALIZED VIEW v AS (SELECT ^, a FROM t)",
    ],
)
def test_commas_that_separate_nothing_are_told(sql: str) -> None:
    with pytest.raises(SqlError, match="this comma") as caught:
        parse_statement(sql.replace("^", ""))
    assert caught.value.details["offset"] == sql.index("^")


def test_the_work_follows_the_length_of_a_statement() -> None:
    """Looking for slips once copied all that stood before each comma."""

    class Counted(list[Lexeme]):
        copied = 0

        def __getitem__(self, at: Any) -> Any:
            found = super().__getitem__(at)
            Counted.copied += len(found) if isinstance(at, slice) else 0
            return found

    sql = "INSERT INTO t VALUES " + ", ".join(f"({n}, 'a', {n})" for n in range(300))
    lexemes = Counted(tokenize(sql))
    assert find_slip(Cursor(sql, lexemes, Places(sql)), sql, lexemes) is None
    assert Counted.copied < 5 * len(lexemes)
