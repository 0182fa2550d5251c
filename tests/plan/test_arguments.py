"""What Spark is asked: names of fields, stars written out, units as words; and what is refused by its bare name."""

import pytest

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.expressions.tree import Session, SparkExpression
from viewkeeper.plan.build import plan_expression, plan_view
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation
from viewkeeper.zset import schema as s
from viewkeeper.zset.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("a", s.INT), Column("c", s.STRING), Column("r", s.struct(p=s.INT, q=s.STRING)),
        Column("o", s.array(s.struct(p=s.INT))), Column("m", s.map_of(s.STRING, s.INT)), Column("u", s.TIMESTAMP),
    )
)  # fmt: skip


def asked(sql):
    def types(sql, schema):
        return s.STRING, True, True

    planned = plan_expression(sql, SCHEMA, Session(), spark_types=types)
    assert isinstance(planned, SparkExpression)
    return planned.sql


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("struct(a, r.p, upper(c), c AS z)", "STRUCT(`_c0` AS `a`, `_c2`.`p` AS `p`, UPPER(`_c1`), `_c1` AS z)"),
        ("struct(r.*, a)", "STRUCT(`_c2`.`p`, `_c2`.`q`, `_c0` AS `a`)"),
        ("(a, c)", "(`_c0` AS `a`, `_c1` AS `c`)"),
        ("(a, c) IN ((1, 'x'))", "(`_c0`, `_c1`) IN ((1, 'x'))"),
        ("hash(r.*)", "HASH(`_c2`.`p`, `_c2`.`q`)"),
        ("transform(o, x -> struct(x.p, a))", "TRANSFORM(`_c3`, x -> STRUCT(x.p, `_c0` AS `a`))"),
        (
            "arrays_zip(o, array(1))",
            "TRANSFORM(ARRAYS_ZIP(COALESCE(`_c3`), ARRAY(1)), "
            "zipped -> NAMED_STRUCT('o', zipped.`0`, '1', zipped.`1`))",
        ),
        ("o.p", "`_c3`.`p`"),
        ("m.k", "`_c4`.`k`"),
        ("datediff(DAYOFYEAR, u, u)", "DATEDIFF(DAYOFYEAR, `_c5`, `_c5`)"),
        ("hour(TIME'10:00:00')", "HOUR(TIME '10:00:00')"),
        ("CAST(a AS INTERVAL DAY)", "CAST(`_c0` AS INTERVAL DAY)"),
        ("INTERVAL '1' DAY * a", "INTERVAL '1' DAY * `_c0`"),
    ],
)
def test_what_spark_is_asked(written, expected):
    assert asked(written) == expected


@pytest.mark.parametrize(
    ("listed", "shown"),
    [
        ("r.*", "p int, q string"),
        ("t.r.*, a", "p int, q string, a int"),
        ("r.* EXCEPT (P)", "q string"),
        ("w.r.*", "z int"),
        ("z.*", "a int, z struct<b:int>"),
        ("first.*", "p int"),
    ],
)
def test_a_star_behind_a_structure_stands_for_its_fields(listed, shown):
    """A table of the name comes first."""
    t = Relation(1, "t", "table", SCHEMA, (0,))
    nested = Relation(2, "n", "table", Schema((Column("w", s.struct(r=s.struct(z=s.INT))),)), (0,))
    named = Relation(3, "z", "table", Schema((Column("a", s.INT), Column("z", s.struct(b=s.INT)))), (0,))
    tables = {"w": "n", "z": "z", "f": "(SELECT get(o, 0) AS first FROM t) q"}
    planned = plan_view(
        f"SELECT {listed} FROM {tables.get(listed[0], 't')}", FixedRelations([t, nested, named]), Session()
    )
    assert ", ".join(f"{column.name} {column.type}" for column in planned.schema.columns) == shown


def test_only_a_field_that_is_there_is_left_out():
    t = Relation(1, "t", "table", SCHEMA, (0,))
    with pytest.raises(SqlError, match="no field 'x' to leave out") as caught:
        plan_view("SELECT r.* EXCEPT (x) FROM t", FixedRelations([t]), Session())
    assert caught.value.code == "UNRESOLVED_COLUMN"


@pytest.mark.parametrize("name", ["user", "localtimestamp", "current_time", "session_user", "current_date"])
def test_functions_without_parentheses_are_refused_by_name(name):
    with pytest.raises(UnsupportedSql) as caught:
        asked(name)
    assert caught.value.code == "NONDETERMINISTIC_EXPRESSION"
    assert name in str(caught.value)


def test_a_star_stands_in_functions_of_any_number_of_arguments_only():
    with pytest.raises(SqlError) as caught:
        asked("upper(*)")
    assert caught.value.code == "INVALID_USAGE_OF_STAR"
