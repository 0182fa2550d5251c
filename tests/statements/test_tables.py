import pytest

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.statements import parse_statement
from viewkeeper.statements.model import AlterTableAddColumn, ColumnDefinition, CreateTable, DropTable, TruncateTable
from viewkeeper.zset import schema
from viewkeeper.zset.schema import SqlType, array, decimal, map_of, struct


def column(sql_type: str):
    return parse_statement(f"CREATE TABLE t (k INT, c {sql_type}, PRIMARY KEY (k))").columns[1]


def test_create_table():
    statement = parse_statement(
        "create table if not exists `my ``t` "
        "(k BIGINT, a STRING NOT NULL, d DECIMAL(12,2) COMMENT 'it''s', Primary Key (K))"
    )
    assert isinstance(statement, CreateTable)
    assert statement.name == "my `t"
    assert statement.if_not_exists
    assert statement.columns == (
        ColumnDefinition("k", schema.BIGINT, nullable=False),
        ColumnDefinition("a", schema.STRING, nullable=False),
        ColumnDefinition("d", decimal(12, 2), comment="it's"),
    )
    assert statement.primary_key == ("k",)


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("k INT PRIMARY KEY, a INT", ("k",)),
        ("k INT NOT NULL PRIMARY KEY COMMENT 'x'", ("k",)),
        ("a INT, b DOUBLE, PRIMARY KEY (b, a)", ("b", "a")),
        ("PRIMARY KEY (a), a INT", ("a",)),
        ("a INT, CONSTRAINT pk PRIMARY KEY (a)", ("a",)),
        ("primary INT, key INT, constraint INT, PRIMARY KEY (primary, key)", ("primary", "key")),
        ("a FLOAT, PRIMARY /* odd */ KEY (A)", ("a",)),
    ],
)
def test_primary_keys(body, key):
    statement = parse_statement(f"CREATE TABLE t ({body})")
    assert statement.primary_key == key
    assert {c.name for c in statement.columns if not c.nullable} == set(key)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BOOLEAN", schema.BOOLEAN),
        ("TINYINT", schema.TINYINT),
        ("byte", schema.TINYINT),
        ("SMALLINT", schema.SMALLINT),
        ("SHORT", schema.SMALLINT),
        ("INT", schema.INT),
        ("Integer", schema.INT),
        ("BIGINT", schema.BIGINT),
        ("LONG", schema.BIGINT),
        ("FLOAT", schema.FLOAT),
        ("REAL", schema.FLOAT),
        ("DOUBLE", schema.DOUBLE),
        ("STRING", schema.STRING),
        ("BINARY", schema.BINARY),
        ("DATE", schema.DATE),
        ("TIMESTAMP", schema.TIMESTAMP),
        ("TIMESTAMP_LTZ", schema.TIMESTAMP),
        ("TIMESTAMP WITH LOCAL TIME ZONE", schema.TIMESTAMP),
        ("TIMESTAMP_NTZ", schema.TIMESTAMP_NTZ),
        ("TIMESTAMP WITHOUT TIME ZONE", schema.TIMESTAMP_NTZ),
        ("DECIMAL", decimal(10, 0)),
        ("DEC(5)", decimal(5, 0)),
        ("NUMERIC(38, 38)", decimal(38, 38)),
        ("ARRAY<INT>", array(schema.INT)),
        ("ARRAY<ARRAY<DECIMAL(3,1)>>", array(array(decimal(3, 1)))),
        ("MAP<STRING,ARRAY<INT>>", map_of(schema.STRING, array(schema.INT))),
        ("STRUCT<a: INT, b STRING>", struct(a=schema.INT, b=schema.STRING)),
        ("struct<`x y`:map<int,struct<z:date>>>",
         SqlType("STRUCT", children=(map_of(schema.INT, struct(z=schema.DATE)),), field_names=("x y",))),
    ],
)  # fmt: skip
def test_types(text, expected):
    assert column(text).type == expected
    assert column(f"{text} NOT NULL").nullable is False


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("INT DEFAULT 5", "5"),
        ("INT DEFAULT -1 NOT NULL", "-1"),
        ("STRING DEFAULT concat('a,)', upper('b')) COMMENT 'c'", "concat('a,)', upper('b'))"),
        ("BOOLEAN DEFAULT x IS NOT NULL NOT NULL", "x IS NOT NULL"),
        ("INT NOT NULL DEFAULT /* why */ (1 + 2) * 3", "(1 + 2) * 3"),
        ("ARRAY<INT> DEFAULT array(1, 2)", "array(1, 2)"),
    ],
)
def test_defaults_stay_text(text, default):
    assert column(text).default_sql.text == default


def test_default_knows_its_place():
    sql = "CREATE TABLE t (\n  k INT PRIMARY KEY,\n  c INT DEFAULT 1 + 1)"
    default = parse_statement(sql).columns[1].default_sql
    assert (default.place.line, default.place.column, default.place.offset) == (3, 17, sql.index("1 + 1"))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DROP TABLE t", ("t", False, False)),
        ("drop table if exists `a b` cascade", ("a b", True, True)),
        ("DROP TABLE if", ("if", False, False)),
    ],
)
def test_drop_table(sql, expected):
    statement = parse_statement(sql)
    assert isinstance(statement, DropTable)
    assert (statement.name, statement.if_exists, statement.cascade) == expected


def test_truncate_table():
    statement = parse_statement("TRUNCATE TABLE T ;")
    assert isinstance(statement, TruncateTable)
    assert (statement.name, statement.sql) == ("T", "TRUNCATE TABLE T")


@pytest.mark.parametrize(
    "tail",
    [
        "ADD COLUMN a INT, b STRING NOT NULL DEFAULT 'x' COMMENT 'y'",
        "ADD COLUMNS (a INT, b STRING NOT NULL DEFAULT 'x' COMMENT 'y')",
        "ADD COLUMNS a INT, b STRING COMMENT 'y' DEFAULT 'x' NOT NULL",
        "ADD COLUMN (a INT, b STRING DEFAULT 'x' NOT NULL COMMENT 'y')",
    ],
)
def test_add_columns(tail):
    statement = parse_statement(f"ALTER TABLE t {tail}")
    assert isinstance(statement, AlterTableAddColumn)
    first, second = statement.columns
    assert statement.table == "t"
    assert first == ColumnDefinition("a", schema.INT)
    assert (second.name, second.type, second.nullable, second.comment) == ("b", schema.STRING, False, "y")
    assert second.default_sql.text == "'x'"


@pytest.mark.parametrize(
    ("sql", "code", "near"),
    [
        ("CREATE TABLE t (a INT)", "PRIMARY_KEY_REQUIRED", "t (a INT)"),
        ("CREATE TABLE t (PRIMARY KEY (a))", "SYNTAX_ERROR", "t (PRIMARY"),
        ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", "PRIMARY_KEY_DECLARED_TWICE", "PRIMARY KEY (a))"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "PRIMARY_KEY_DECLARED_TWICE", "PRIMARY KEY)"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "COLUMN_NOT_FOUND", "b))"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a, A))", "COLUMN_DECLARED_TWICE", "A))"),
        ("CREATE TABLE t (a INT, A INT, PRIMARY KEY (a))", "COLUMN_DECLARED_TWICE", "A INT"),
        ("CREATE TABLE t (a INT, c ARRAY<INT>, PRIMARY KEY (c))", "KEY_TYPE_NOT_SUPPORTED", "c))"),
        ("CREATE TABLE t (c MAP<INT, INT> PRIMARY KEY)", "KEY_TYPE_NOT_SUPPORTED", "c MAP"),
        ("CREATE TABLE t (c STRUCT<a: INT>, PRIMARY KEY (c))", "KEY_TYPE_NOT_SUPPORTED", "c))"),
        ("CREATE TABLE t (a DECIMAL(39) PRIMARY KEY)", "INVALID_TYPE", "DECIMAL(39)"),
        ("CREATE TABLE t (a DECIMAL(0) PRIMARY KEY)", "INVALID_TYPE", "DECIMAL(0)"),
        ("CREATE TABLE t (a DECIMAL(3, 4) PRIMARY KEY)", "INVALID_TYPE", "DECIMAL(3, 4)"),
        ("CREATE TABLE t (a MAP<MAP<INT, INT>, INT>)", "INVALID_TYPE", "MAP<INT, INT>,"),
        ("CREATE TABLE t (a STRUCT<b: INT, B: INT>)", "INVALID_TYPE", "B: INT>"),
        ("CREATE TABLE t (a ARRAY)", "INVALID_TYPE", "ARRAY)"),
        ("CREATE TABLE t (a INT NOT NULL NOT NULL)", "SYNTAX_ERROR", "NOT NULL)"),
        ("ALTER TABLE t ADD COLUMN a INT, a INT", "COLUMN_DECLARED_TWICE", "a INT"),
    ],
)
def test_errors(sql, code, near):
    with pytest.raises(SqlError) as caught:
        parse_statement(sql)
    error = caught.value
    assert error.code == code
    assert not isinstance(error, UnsupportedSql)
    assert error.details["near"].startswith(near)
    assert sql[error.details["offset"] :].startswith(near)


def test_missing_key_says_what_to_add():
    with pytest.raises(SqlError, match=r"Add PRIMARY KEY \(a\)"):
        parse_statement("CREATE TABLE t (a INT)")


def test_misspelled_key_column_is_suggested():
    with pytest.raises(SqlError, match="did you mean 'customer'"):
        parse_statement("CREATE TABLE t (customer INT, PRIMARY KEY (custmer))")
