"""SHOW CREATE gives one text that makes the same table or view again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.database.connection import Database
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.statements.render import quote_name, quote_string

NAMES = st.one_of(
    st.sampled_from(
        ["a", "Key", "order", "select", "from", "a b", "a`b", "a.b", "é", "1a", "x'y", "--", "primary", "_c0"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6),
)
COMMENTS = st.none() | st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
KEY_TYPES = ["BIGINT", "INT", "STRING", "DATE", "DECIMAL(10,2)", "BOOLEAN", "BINARY", "TIMESTAMP_NTZ"]
# A type, and defaults of it as users write them.
DEFAULTS = {
    "BIGINT": ["5", "-5", "2 + 3", "CAST('7' AS BIGINT)"],
    "TINYINT": ["1Y", "0"],
    "DOUBLE": ["1.5e3D", "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)"],
    "DECIMAL(12,2)": ["0.00", "12.5BD"],
    "STRING": ["'it''s'", "'\\\\'", '"double"', "concat('a', 'b')", "''"],
    "BOOLEAN": ["true", "NOT true", "NULL IS NOT NULL"],
    "BINARY": ["X'00FF'"],
    "DATE": ["DATE'2024-02-29'"],
    "TIMESTAMP": ["TIMESTAMP'2024-02-29 12:30:00.123456Z'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'2024-02-29 12:30:00'"],
    "ARRAY<INT>": [],
    "MAP<STRING, ARRAY<INT>>": [],
    "STRUCT<`a b`: INT, c: DECIMAL(5,1)>": [],
}
REFRESHES = [
    "",
    "REFRESH CONTINUOUS",
    "REFRESH EVERY 90 SECONDS",
    "REFRESH EVERY 500 MILLISECONDS",
    "REFRESH ON DEMAND",
]


@st.composite
def columns(draw: st.DrawFn) -> list[str]:
    """Return column definitions as SQL, and PRIMARY KEY last."""
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique_by=str.lower))
    count = draw(st.integers(1, min(2, len(names) - 1)))
    definitions = []
    for i, name in enumerate(names):
        sql_type = draw(st.sampled_from(KEY_TYPES if i < count else list(DEFAULTS)))
        clauses = []
        if draw(st.booleans()):
            clauses.append("NOT NULL")
        written = DEFAULTS.get(sql_type, [])
        if written and i >= count and draw(st.booleans()):
            clauses.append(f"DEFAULT {draw(st.sampled_from(written))}")
        comment = draw(COMMENTS)
        if comment is not None:
            clauses.append(f"COMMENT {quote_string(comment)}")
        definitions.append(" ".join([quote_name(name), sql_type, *draw(st.permutations(clauses))]))
    key = draw(st.permutations(names[:count]))
    return [*definitions, f"PRIMARY KEY ({', '.join(map(quote_name, key))})"]


@settings(max_examples=40, deadline=None)
@given(name=NAMES, definitions=columns())
def test_a_table_is_made_again(name: str, definitions: list[str]) -> None:
    with opened() as database:
        table = quote_name(name)
        database.sql(f"CREATE TABLE {table} ({', '.join(definitions)})")
        again(database, "TABLE", table)


@settings(max_examples=40, deadline=None)
@given(
    name=NAMES.filter(lambda name: name.lower() != "t"),
    names=st.lists(NAMES, min_size=3, max_size=3, unique_by=str.lower),
    comments=st.lists(COMMENTS, min_size=3, max_size=3),
    comment=COMMENTS,
    refresh=st.sampled_from(REFRESHES),
    policy=st.sampled_from(["", "REFRESH POLICY AUTO", "REFRESH POLICY INCREMENTAL"]),
    keyed=st.booleans(),
)
def test_a_view_is_made_again(
    name: str, names: list[str], comments: list[str | None], comment: str | None, refresh: str, policy: str, keyed: bool
) -> None:
    listed = [
        quote_name(column) + (f" COMMENT {quote_string(text)}" if text is not None else "")
        for column, text in zip(names, comments, strict=True)
    ]
    if keyed:
        listed.append(f"PRIMARY KEY ({quote_name(names[0])})")
    clauses = [refresh, policy, f"COMMENT {quote_string(comment)}" if comment is not None else ""]
    with opened() as database:
        database.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a STRING, b INT)")
        view = quote_name(name)
        query = "SELECT k, upper(a) AS x, -- not b\n  b + 1 FROM t WHERE a <> 'it''s;'"
        database.sql(f"CREATE MATERIALIZED VIEW {view} ({', '.join(listed)}) {' '.join(clauses)} AS {query}")
        again(database, "MATERIALIZED VIEW", view)


def test_a_default_stands_as_it_was_written_also_of_an_added_column() -> None:
    with opened() as database:
        database.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, n INT DEFAULT 2 + 3 COMMENT 'five')")
        database.sql("ALTER TABLE t ADD COLUMN s STRING NOT NULL DEFAULT concat('a', 'b')")
        assert shown(database, "TABLE", "t") == (
            "CREATE TABLE t (\n"
            "  k BIGINT NOT NULL,\n"
            "  n INT DEFAULT 2 + 3 COMMENT 'five',\n"
            "  s STRING NOT NULL DEFAULT concat('a', 'b'),\n"
            "  PRIMARY KEY (k)\n"
            ")"
        )
        again(database, "TABLE", "t")


def opened() -> Database:
    return Database(memory_store(), Settings(executor="local"))


def again(database: Database, kind: str, name: str) -> None:
    """Drop what is called ``name``, make it by its text, and compare."""
    text, described = shown(database, kind, name), database.sql(f"DESCRIBE {name}").rows()
    database.sql(f"DROP {kind} {name}")
    database.sql(text)
    assert shown(database, kind, name) == text
    assert database.sql(f"DESCRIBE {name}").rows() == described


def shown(database: Database, kind: str, name: str) -> str:
    return "\n".join(row["statement"] for row in database.sql(f"SHOW CREATE {kind} {name}").rows())
