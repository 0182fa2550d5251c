import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.statements import parse_statement
from viewkeeper.statements.lexer import tokenize
from viewkeeper.statements.model import ColumnDefinition, CreateTable, CreateView, Place, Refresh, SqlText
from viewkeeper.statements.render import create_table_sql, create_view_sql, quote_name, quote_string, type_sql
from viewkeeper.zset import schema
from viewkeeper.zset.schema import SqlType, array, decimal, map_of

CHARACTERS = st.characters(exclude_categories=["Cs"])
NAMES = st.text(CHARACTERS, min_size=1, max_size=8) | st.sampled_from(
    ["order", "PRIMARY", "primary key", "if", "a`b", "1a", "12", "é", "check", "constraint", "date", "a.b", "select"]
)
TEXTS = st.text(CHARACTERS, max_size=12) | st.sampled_from(
    ["'", "\\", "\\'", "a\nb", "\\n", "%", "\\%", '"', "--", "\0"]
)
COMMENTS = st.none() | TEXTS
SIMPLE = st.sampled_from(
    [schema.BOOLEAN, schema.TINYINT, schema.SMALLINT, schema.INT, schema.BIGINT, schema.FLOAT, schema.DOUBLE,
     schema.STRING, schema.BINARY, schema.DATE, schema.TIMESTAMP, schema.TIMESTAMP_NTZ, decimal(12, 2), decimal(38, 38)]
)  # fmt: skip
DEFAULTS = st.none() | st.sampled_from(
    ["1", "'a, b'", "concat('x', `y z`)", "a IS NOT NULL", "(1 + 2) * 3", "array(1, 2)"]
)
QUERIES = st.sampled_from(
    ["SELECT 1", "SELECT ';' -- x\n FROM t", "WITH a AS (SELECT 1) SELECT * FROM a", "FROM t", "(SELECT :k)"]
)


def unique_names(**sizes: int) -> st.SearchStrategy[list[str]]:
    return st.lists(NAMES, unique_by=str.lower, **sizes)


def structs(children: st.SearchStrategy[SqlType]) -> st.SearchStrategy[SqlType]:
    def build(names: list[str]) -> st.SearchStrategy[SqlType]:
        types = st.tuples(*(children for _ in names))
        return types.map(lambda found: SqlType("STRUCT", children=found, field_names=tuple(names)))

    return unique_names(min_size=1, max_size=3).flatmap(build)


TYPES = st.recursive(
    SIMPLE,
    lambda children: (
        children.map(array)
        | st.builds(map_of, children.filter(lambda key: not key.contains_map), children)
        | structs(children)
    ),
    max_leaves=5,
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[ColumnDefinition], list[str]]:
    names = draw(unique_names(min_size=1, max_size=5))
    columns = []
    for name in names:
        default = draw(DEFAULTS)
        text = None if default is None else SqlText(default, Place(1, 1, 0))
        columns.append(ColumnDefinition(name, draw(TYPES), draw(st.booleans()), text, draw(COMMENTS)))
    key_size = draw(st.integers(1, len(names)))
    for i in range(key_size):
        columns[i] = ColumnDefinition(names[i], draw(SIMPLE), False, columns[i].default_sql, columns[i].comment)
    return draw(NAMES), columns, draw(st.permutations(names[:key_size]))


@given(tables(), st.booleans())
def test_tables_read_back_as_they_are(table, if_not_exists):
    name, columns, key = table
    sql = create_table_sql(name, columns, key, if_not_exists=if_not_exists)
    statement = parse_statement(sql)
    assert statement == CreateTable(name, if_not_exists, tuple(columns), tuple(key), sql=sql, place=Place(1, 1, 0))
    assert statement.sql == sql
    assert (
        create_table_sql(statement.name, statement.columns, statement.primary_key, if_not_exists=if_not_exists) == sql
    )


REFRESHES = st.sampled_from([Refresh("CONTINUOUS"), Refresh("ON_DEMAND")]) | st.builds(
    Refresh,
    st.just("EVERY"),
    st.floats(0.001, 3e9) | st.integers(1, 10**6).map(float) | st.sampled_from([60.0, 3600.0, 7200.0, 86400.0]),
)


@given(st.data())
def test_views_read_back_as_they_are(data):
    draw = data.draw
    columns = draw(unique_names(max_size=4))
    keys = st.permutations(columns).flatmap(lambda names: st.integers(0, len(names)).map(lambda n: tuple(names[:n])))
    or_replace = draw(st.booleans())
    view = CreateView(
        draw(NAMES),
        SqlText(draw(QUERIES), Place(1, 1, 0)),
        or_replace,
        not or_replace and draw(st.booleans()),
        tuple((name, draw(COMMENTS)) for name in columns),
        draw(keys) if columns else tuple(draw(unique_names(max_size=2))),
        draw(COMMENTS),
        draw(REFRESHES),
        draw(st.sampled_from(["AUTO", "INCREMENTAL"])),
        draw(st.booleans()),
        sql="",
        place=Place(1, 1, 0),
    )
    sql = render(view)
    statement = parse_statement(sql)
    assert statement == view
    assert render(statement) == sql


def render(view: CreateView) -> str:
    return create_view_sql(
        view.name,
        view.query,
        columns=view.columns,
        primary_key=view.primary_key,
        comment=view.comment,
        refresh=view.refresh,
        policy=view.policy,
        with_no_data=view.with_no_data,
        or_replace=view.or_replace,
        if_not_exists=view.if_not_exists,
    )


@given(NAMES, TEXTS)
def test_names_and_strings_read_back(name, text):
    assert [(x.kind, x.text) for x in tokenize(quote_string(text))] == [("string", text)]
    (lexeme,) = tokenize(quote_name(name))
    assert lexeme.kind in ("word", "quoted")
    assert lexeme.text == name


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("a", "a"), ("_a1", "_a1"), ("order", "`order`"), ("Key", "`Key`"), ("a b", "`a b`"), ("a`b", "`a``b`"),
     ("1a", "`1a`"), ("é", "`é`")],
)  # fmt: skip
def test_only_names_that_need_it_are_quoted(name, quoted):
    assert quote_name(name) == quoted


def test_a_whole_table():
    columns = [
        ColumnDefinition("k", schema.BIGINT, nullable=False),
        ColumnDefinition("tags", map_of(schema.STRING, array(schema.INT)), comment="it's"),
        ColumnDefinition("price", decimal(12, 2), False, SqlText("0.00", Place(1, 1, 0))),
    ]
    assert create_table_sql("t", columns, ["k"]) == (
        "CREATE TABLE t (\n"
        "  k BIGINT NOT NULL,\n"
        "  tags MAP<STRING, ARRAY<INT>> COMMENT 'it\\'s',\n"
        "  price DECIMAL(12, 2) NOT NULL DEFAULT 0.00,\n"
        "  PRIMARY KEY (k)\n"
        ")"
    )


def test_a_whole_view():
    sql = create_view_sql(
        "v",
        "SELECT a, b FROM t",
        columns=[("a", None), ("b", "second")],
        primary_key=["a"],
        comment="all",
        refresh=Refresh("EVERY", 90.0),
        policy="INCREMENTAL",
        with_no_data=True,
        or_replace=True,
    )
    assert sql == (
        "CREATE OR REPLACE MATERIALIZED VIEW v (a, b COMMENT 'second', PRIMARY KEY (a))\n"
        "COMMENT 'all'\n"
        "REFRESH EVERY 90 SECONDS\n"
        "REFRESH POLICY INCREMENTAL\n"
        "WITH NO DATA\n"
        "AS SELECT a, b FROM t"
    )


def test_types_of_simple_name():
    assert type_sql(schema.TIMESTAMP_NTZ) == "TIMESTAMP_NTZ"
