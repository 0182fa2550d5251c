"""The order of joins, their keys and residual conditions, and USING and NATURAL."""

import pytest

from viewkeeper.plan.examples import example_tree, plan_example
from viewkeeper.plan.nodes import Filter, Join, Scan, walk


def joins(sql):
    return [node for node in walk(plan_example(sql).root) if isinstance(node, Join)]


def scans(sql):
    return [node.relation.name for node in walk(plan_example(sql).root) if isinstance(node, Scan)]


def test_all_equalities_to_what_is_joined_become_keys():
    sql = "SELECT r1.k FROM t r1 JOIN t r2 ON r1.b = r2.a JOIN t r3 ON r3.b = r1.a AND r2.b = r3.a"
    first, second = joins(sql)
    assert (len(first.left_keys), len(second.left_keys)) == (1, 2)
    assert first.residual is None
    assert second.residual is None


def test_equal_conditions_are_one_key():
    (join,) = joins("SELECT t.k FROM t JOIN u ON t.k = u.t_k AND u.t_k = t.k WHERE t.k = u.t_k")
    assert len(join.left_keys) == 1


def test_a_table_that_nothing_connects_yet_waits():
    sql = "SELECT x.k FROM t AS x, t AS y, u WHERE u.t_k = x.k AND y.a = u.v"
    assert scans(sql) == ["t", "u", "t"]
    assert plan_example(sql).root.schema.names == ("k", "__key_0_k", "__key_1_id")


def test_conditions_of_on_stay_at_their_join():
    (join,) = joins("SELECT t.k FROM t JOIN u ON t.k = u.t_k AND t.a < u.v")
    assert join.residual is not None


def test_a_condition_on_one_side_goes_below_the_join():
    (join,) = joins("SELECT t.k FROM t JOIN u ON t.k = u.t_k AND u.v > 3")
    assert join.residual is None
    assert isinstance(join.right, Filter)


def test_sides_of_different_types_are_cast_below_the_join():
    (join,) = joins("SELECT t.k FROM t JOIN u ON t.k = u.id")
    left = join.left.schema.columns[join.left_keys[0]]
    right = join.right.schema.columns[join.right_keys[0]]
    assert str(left.type) == str(right.type) == "bigint"


def test_what_can_raise_is_a_key_only_where_nothing_else_connects():
    (join,) = joins("SELECT t.k FROM t JOIN u ON t.a / t.b = u.v")
    assert len(join.left_keys) == 1
    (join,) = joins("SELECT t.k FROM t JOIN u ON t.a / t.b = u.v AND t.k = u.t_k")
    assert len(join.left_keys) == 1
    assert join.residual is not None


def test_what_can_raise_in_where_stays_above_the_join():
    plan = plan_example("SELECT t.k, u.id FROM t, u WHERE t.k = u.t_k AND t.a / t.b > 1 AND u.v > 1")
    top = next(node for node in walk(plan.root) if isinstance(node, Filter) and isinstance(node.input, Join))
    assert top.condition.function == "gt"


def test_on_true_is_no_condition():
    assert len(joins("SELECT t.k FROM t JOIN u ON TRUE WHERE t.k = u.t_k")) == 1


def test_parentheses_join_first():
    sql = "SELECT x.k FROM t AS x JOIN (t AS y JOIN u ON y.k = u.t_k) ON x.a = u.v"
    (inner, outer) = joins(sql)
    assert outer.right is inner
    assert plan_example(sql).root.schema.names == ("k", "__key_0_k", "__key_1_id")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM (SELECT a, k FROM t) p JOIN (SELECT t_k AS k, v FROM u) q USING (k)", ("k", "a", "v")),
        ("SELECT * FROM (SELECT a, k FROM t) p NATURAL JOIN (SELECT t_k AS k, v FROM u) q", ("k", "a", "v")),
        ("SELECT q.*, k FROM (SELECT a AS z, k FROM t) p JOIN (SELECT v, v AS z FROM u) q USING (z)", ("z", "v", "k")),
        ("SELECT p.*, v FROM (SELECT a, k FROM t) p NATURAL JOIN (SELECT t_k AS k, v FROM u) q", ("k", "a", "v")),
    ],
)
def test_using_and_natural_show_their_columns_once(sql, names):
    assert plan_example(sql).schema.names == names


def test_on_sees_earlier_tables_of_a_comma():
    assert len(joins("SELECT x.k FROM t AS x, t AS y JOIN u ON x.k = u.t_k AND y.k = u.id")) == 2


def test_each_occurrence_of_a_table_is_scanned_by_itself():
    tree = example_tree("SELECT x.k, y.a FROM t AS x JOIN t AS y ON x.a = y.k")
    assert tree.count("Scan t") == 2
