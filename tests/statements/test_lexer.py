import itertools

import pytest

from viewkeeper.errors import SqlError
from viewkeeper.statements.lexer import split, tokenize
from viewkeeper.statements.model import Place, Places, SqlText
from viewkeeper.statements.parse import find_name, parse_script, parse_statement, split_script

AWKWARD = """SHOW TABLES; /* a /* nested; */ ; */ EXPLAIN SELECT 'a;b', "c;d", `e;f`, r'\\', x'ab' -- g;h
 , 1L, 5BD, .5, :k /*+ HINT */ ; 'é😀' 'two' z"""


def test_lexemes_stand_where_they_say():
    for lexeme in tokenize(AWKWARD):
        written = AWKWARD[lexeme.start : lexeme.stop]
        if lexeme.kind in ("word", "number", "symbol"):
            assert written == lexeme.text
        elif lexeme.kind != "end":
            assert written[-1] in "'\"`"


def test_nothing_but_comments_and_space_lies_between_lexemes():
    lexemes = tokenize(AWKWARD)
    gaps = [AWKWARD[a.stop : b.start].strip() for a, b in itertools.pairwise(lexemes)]
    assert [gap for gap in gaps if gap] == ["/* a /* nested; */ ; */", "-- g;h", "/*+ HINT */"]


def test_commands_of_sqlglot_are_words_here():
    texts = [x.text for x in tokenize("SHOW CREATE TABLE t; EXPLAIN PRIMARY   KEY a; CALL b; RENAME c")]
    assert " ".join(texts) == "SHOW CREATE TABLE t ; EXPLAIN PRIMARY KEY a ; CALL b ; RENAME c"


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'a''b'", "a'b"),
        ("'a' 'b'", "ab"),
        ("'a'\"b\"", "ab"),
        ('"a""b"', 'a"b'),
        ("r'a''b'", "ab"),
        (r"'a\'b'", "a'b"),
        (r"'a\\b\nc'", "a\\b\nc"),
        (r"r'a\n'", r"a\n"),
        (r"'\%'", r"\%"),
        ("''", ""),
    ],
)
def test_strings_have_the_value_that_spark_gives_them(sql, value):
    (lexeme,) = tokenize(sql)
    assert (lexeme.kind, lexeme.text, lexeme.start, lexeme.stop) == ("string", value, 0, len(sql))


def test_backticks_double_inside():
    (lexeme,) = tokenize("`a``b; c`")
    assert (lexeme.kind, lexeme.text) == ("quoted", "a`b; c")


@pytest.mark.parametrize(
    ("sql", "what", "place"),
    [
        ("SELECT 'abc", "string", (1, 8)),
        ('SELECT 1;\n SELECT "abc', "string", (2, 9)),
        (r"SELECT 'a\'", "string", (1, 8)),
        ("SELECT 'a', `abc", "quoted name", (1, 13)),
        ("SELECT '-- /*', 1 /* a /* b */ c", "comment", (1, 19)),
        ("SELECT 1 -- don't\n, 'x", "string", (2, 3)),
        ("SELECT 'a', r'\\', r'b", "string", (1, 19)),
    ],
)
def test_what_does_not_end_is_told_with_its_place(sql, what, place):
    with pytest.raises(SqlError) as caught:
        parse_script(sql)
    error = caught.value
    assert error.code == "SYNTAX_ERROR"
    assert error.details["unclosed"] == what
    assert (error.details["line"], error.details["column"]) == place
    assert f"The {what} that begins at line {place[0]}, column {place[1]} does not end: close it with " in str(error)


@pytest.mark.parametrize(
    ("sql", "pieces"),
    [
        ("", []),
        (" ; ;; -- nothing\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("-- head\nSELECT 1 /* in */ + 2 -- tail\n;SELECT ';' ", ["SELECT 1 /* in */ + 2", "SELECT ';'"]),
        ("SELECT `a;b`;;SHOW TABLES;", ["SELECT `a;b`", "SHOW TABLES"]),
    ],
)
def test_scripts_split_at_semicolons(sql, pieces):
    assert [piece.text for piece in split_script(sql)] == pieces
    assert [sql[piece.place.offset :].startswith(piece.text) for piece in split_script(sql)] == [True] * len(pieces)
    assert len(split(sql)) == len(pieces)


def test_places_in_a_script_are_those_of_the_script():
    script = "-- é😀\nSHOW TABLES;\r\n  DELETE FROM t\r\n\tWHERE a\n = 1"
    show, delete = parse_script(script)
    assert show.place == Place(2, 1, script.index("SHOW"))
    assert delete.place == Place(3, 3, script.index("DELETE"))
    assert delete.sql == script[script.index("DELETE") :]
    assert delete.where.text == "a\n = 1"
    assert delete.where.place == Place(4, 8, script.index("a\n"))
    assert delete.where.place_at(3) == Place(5, 2, script.index("= 1"))


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\r"])
def test_line_breaks_of_all_editors_count_once(break_):
    assert Places(f"a{break_}b").at(1 + len(break_)) == Place(2, 1, 1 + len(break_))


def test_place_of_a_name_is_its_first_mention():
    statement = parse_statement("UPDATE t SET\n `a b` = 'Missing', Missing = 2")
    whole = SqlText(statement.sql, statement.place)
    assert find_name(whole, "missing") == Place(2, 21, 33)
    assert find_name(whole, "A B") == Place(2, 2, 14)
    assert find_name(whole, "absent") is None
