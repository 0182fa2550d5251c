import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zset.strategies import any_types, batch, rows
from viewkeeper.errors import InputError
from viewkeeper.zset import notation
from viewkeeper.zset import schema as t
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Column, Schema

names = st.sampled_from(["a", "B_1", "with space", "a|b", 'a"b', "a:b", "__weight", "", "é", "#x", "\n"])


@given(st.data())
def test_a_table_reads_back_as_it_was_written(data):
    types = data.draw(st.lists(any_types, max_size=4))
    schema = Schema(tuple(Column(data.draw(names), x, data.draw(st.booleans())) for x in types))
    python_rows = data.draw(rows(types)) if types else []
    weights = data.draw(st.lists(st.integers(-3, 3), min_size=len(python_rows), max_size=len(python_rows)))
    delta = Delta(batch(types, python_rows, list(schema.names)), np.array(weights, np.int64))
    text = notation.format(delta, schema)
    read_schema, read = notation.parse(text)
    assert read_schema == schema
    assert read.weights.tolist() == weights
    if types:
        assert RowCodec(types).encode(read.rows) == RowCodec(types).encode(delta.rows)
    assert notation.format(notation.parse(text, schema)[1], schema) == text


def test_the_written_form():
    text = """\
k:bigint not null | name:string | at:timestamp         | price:decimal(5,2) | raw:binary | tags:array<string> | __weight
1                 | EWR         | 2013-01-01 05:15:00Z | 1.50               | X'00ff'    | ["a", null]        | +1
2                 | "a | b"     | NULL                 | NULL               | X''        | NULL               | -1"""
    schema, delta = notation.parse(text)
    assert delta.rows.column(1).to_pylist() == ["EWR", "a | b"]
    assert schema.columns[0] == Column("k", t.BIGINT, nullable=False)
    assert notation.format(delta, schema) == text


def test_weights_first_or_absent_and_untyped_headers():
    schema = Schema((Column("k", t.INT), Column("s", t.STRING)))
    _, delta = notation.parse("# a comment\n\n __weight | k | s \n -1 | 7 | x y \n", schema)
    assert (delta.weights.tolist(), delta.rows.to_pylist()) == ([-1], [{"k": 7, "s": "x y"}])
    _, delta = notation.parse("k | s\n1 | a\n2 | b", schema)
    assert delta.weights.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a", "the column 'a' has no type"),
        ("a:nothing", "'nothing' is not a type"),
        ("a:int int", "goes on behind a type"),
        ("a:array<int", "is not complete"),
        ("a:decimal(x,1)", "Line 1"),
        ("a:int\n1 | 2", "Line 2 of the text table: 2 cells stand under 1 columns"),
        ("a:int\n\nx", "Line 3"),
        ('a:string\n"x', "a quote is not closed"),
        ("a:tinyint\n300", "out of range"),
        ("a:boolean\nyes", "true or false"),
        ("a:binary\nff", "X'"),
        ("a:array<int>\n3", "Line 2"),
        ("a:decimal(3,1)\nx", "Line 2"),
    ],
)
def test_mistakes_are_named_with_their_line(text, message):
    with pytest.raises(InputError, match="NOTATION_INVALID") as caught:
        notation.parse(text)
    assert message in str(caught.value)


def test_a_header_that_differs_from_the_schema_is_refused():
    with pytest.raises(InputError, match="2 columns are named, the schema has 1"):
        notation.parse("a | b", Schema((Column("a", t.INT),)))
