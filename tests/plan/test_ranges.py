"""Which ranges joins seek, and in which order they judge their conditions."""

import pytest

from viewkeeper.expressions.tree import Session
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.examples import FixedRelations, example_tree, plan_example
from viewkeeper.plan.explain import explain_expression
from viewkeeper.plan.nodes import Filter, Join, Relation, walk
from viewkeeper.plan.ranges import ranges_of
from viewkeeper.zset.schema import BIGINT, DATE, TIMESTAMP, Column, Schema


def seeks(sql):
    """Return what EXPLAIN says that the topmost join seeks."""
    title = next(line for line in example_tree(sql).splitlines() if " join " in f" {line.lower()} ")
    return title.partition(", seeks ")[2]


SEEKS = [
    ("t JOIN u ON a = v AND b < id", "b < id on the left, id > b on the right"),
    ("t JOIN u ON a = v WHERE b < id", "b < id on the left, id > b on the right"),
    ("t, u WHERE b BETWEEN v AND id", "b >= v AND b <= id on the left, v <= b on the right"),
    ("t, u WHERE id >= b AND v > a AND v <= b", "b <= id AND b >= v on the left, v > a AND v <= b on the right"),
    (
        "t, u WHERE v > b - 2 AND 3 + b >= v",
        "b < (v + 2) AND b >= (v - 3) on the left, v > (b - 2) AND v <= (3 + b) on the right",
    ),
    ("t, u WHERE b + 1 - 2 < v", "b < ((v + 2) - 1) on the left, v > ((b + 1) - 2) on the right"),
    ("t, u WHERE 5 - b < v", "(5 - b) < v on the left, v > (5 - b) on the right"),
    ("t, u WHERE x + 1 < v", "(x + 1.0) < cast(v as double) on the left, cast(v as double) > (x + 1.0) on the right"),
    ("t, u WHERE c > name", "c > name on the left, name < c on the right"),
    ("t LEFT JOIN u ON k = t_k AND a < v", "v > a on the right"),
    ("t FULL JOIN u ON b = id AND a < v", "a < v on the left"),
    ("t SEMI JOIN u ON a = v AND NOT (b >= id)", "b < id on the left, id > b on the right"),
    ("t JOIN u ON a = v AND b <> id", ""),
    ("t JOIN u ON a = v AND (b < id OR b > id + 3)", ""),
    ("t JOIN u ON a = v AND b + id < 3", ""),
    ("t JOIN u ON c = name AND c < concat(name, 'a')", ""),
    ("(SELECT b AS k, a FROM t GROUP BY a, b) p JOIN u ON a = v AND k < id", "k < id on the left, id > k on the right"),
    ("(SELECT a, MAX(b) AS k FROM t GROUP BY a) p JOIN u ON a = id AND k < v", ""),
]  # fmt: skip


@pytest.mark.parametrize(("source", "wanted"), SEEKS)
def test_what_is_sought(source, wanted):
    column = "k" if "SEMI" in source else "k, id"
    assert seeks(f"SELECT {column} FROM {source}") == wanted


def test_durations_move_to_the_other_side_but_days_only_where_their_length_is_known():
    columns = (Column("id", BIGINT, False), Column("t", TIMESTAMP), Column("d", DATE))
    relations = FixedRelations([Relation(1, "e", "table", Schema(columns), (0,))])

    def ends(condition, zone):
        sql = f"SELECT x.id, y.id AS other FROM e x JOIN e y ON {condition}"
        root = plan_view(sql, relations, Session(zone)).root
        (join,) = [node for node in walk(root) if isinstance(node, Join)]
        found = ranges_of(join)
        return len(found.left.bounds), len(found.right.bounds)

    for zone in ("UTC", "Europe/Oslo"):
        assert ends("x.t BETWEEN y.t - INTERVAL 5 MINUTES AND y.t + INTERVAL 23 HOURS", zone) == (2, 2)
        assert ends("x.d BETWEEN y.d - 7 AND y.d + INTERVAL 7 DAYS", zone) == (2, 2)
        assert ends("x.d BETWEEN y.d AND DATE_ADD(y.d, 30)", zone) == (2, 2)
    days = "x.t BETWEEN y.t - INTERVAL 1 DAY AND y.t"
    assert (ends(days, "UTC"), ends(days, "Europe/Oslo")) == ((2, 2), (2, 1))


def stages(condition):
    """Return the conditions of a join in the order in which they are judged."""
    root = plan_example(f"SELECT k, id FROM t LEFT JOIN u ON {condition}").root
    (join,) = [node for node in walk(root) if isinstance(node, Join)]
    names = (*join.left.schema.names, *join.right.schema.names)
    found = ranges_of(join)
    return None if found is None else [explain_expression(c, names) for c in found.conditions]


def test_conditions_that_can_fail_are_judged_last_and_keep_their_order():
    last = "((4 % (a + v)) > 1)"
    assert stages("a + 1 > v AND 4 % (a + v) > 1 AND b < id") == ["(b < id)", "((a + 1) > v)", last]
    assert stages("4 % (a + v) > 1 AND a + 1 > v AND b < id") == ["(b < id)", f"({last} AND ((a + 1) > v))"]
    assert stages("4 % (a + v) > 1 AND a + 1 > v") is None


def test_a_filter_that_can_fail_is_not_overtaken():
    sql = "SELECT k, id FROM t, u WHERE a + v < 10 % b AND a + 1 < v AND b < id"
    (above,) = [n for n in walk(plan_example(sql).root) if isinstance(n, Filter)]
    assert isinstance(above.input, Join)
    assert seeks(sql) == "b < id on the left, id > b on the right"


def test_texts_that_may_be_too_long_beside_a_key_of_texts_are_not_sought():
    sql = "SELECT x.k, y.k AS other FROM t x JOIN t y ON x.c = y.c AND x.c || 'a' < y.c"
    assert seeks(sql) == ""
