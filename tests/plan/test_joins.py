"""The order of joins, their keys and residual conditions, and USING and NATURAL."""

import pytest

from viewkeeper.errors import SqlError
from viewkeeper.plan.examples import example_tree, plan_example
from viewkeeper.plan.explain import explain
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
        ("SELECT * FROM (SELECT a, k FROM t) p LEFT JOIN (SELECT v, t_k AS k FROM u) q USING (k)", ("k", "a", "v")),
        ("SELECT * FROM (SELECT a, k FROM t) p RIGHT JOIN (SELECT v, t_k AS k FROM u) q USING (k)", ("k", "a", "v")),
        ("SELECT * FROM (SELECT a, k FROM t) p FULL JOIN (SELECT v, t_k AS k FROM u) q USING (k)", ("k", "a", "v")),
        ("SELECT * FROM (SELECT a, k FROM t) p LEFT SEMI JOIN (SELECT v, t_k AS k FROM u) q USING (k)", ("k", "a")),
        ("SELECT * FROM (SELECT a, k FROM t) p NATURAL ANTI JOIN (SELECT v, t_k AS k FROM u) q", ("k", "a")),
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


@pytest.mark.parametrize(
    ("kind", "nullable"),
    [("", (False, False)), ("LEFT", (False, True)), ("RIGHT", (True, False)), ("FULL", (True, True))],
)
def test_columns_beside_which_a_partner_can_be_missing_may_be_null(kind, nullable):
    schema = plan_example(f"SELECT t.k, u.id FROM t {kind} JOIN u ON t.k = u.t_k").schema
    assert tuple(column.nullable for column in schema.columns) == nullable


def test_columns_stay_nullable_where_a_left_join_became_an_inner_one():
    sql = "SELECT t.k, u.id FROM t LEFT JOIN u ON t.k = u.t_k WHERE u.v > 2"
    assert [join.kind for join in joins(sql)] == ["inner"]
    assert [column.nullable for column in plan_example(sql).schema.columns] == [False, True]


@pytest.mark.parametrize(
    "where", ["u.v IS NULL", "COALESCE(u.v, 1) = 1", "u.v = 1 OR t.a = 1", "t.a > 1", "1 / u.v > 0"]
)
def test_a_left_join_stays_where_its_rows_without_a_partner_may_be_kept(where):
    assert [join.kind for join in joins(f"SELECT t.k FROM t LEFT JOIN u ON t.k = u.t_k WHERE {where}")] == ["left"]


def test_the_condition_of_a_later_left_join_drops_no_rows():
    sql = "SELECT t.k FROM t LEFT JOIN u ON t.k = u.t_k LEFT JOIN t AS z ON z.a = u.v"
    assert [join.kind for join in joins(sql)] == ["left", "left"]


@pytest.mark.parametrize("kind", ["RIGHT", "FULL"])
def test_where_connects_no_tables_before_a_join_that_does_not_keep_their_rows(kind):
    sql = f"SELECT x.k FROM t AS x, u {kind} JOIN t AS y ON y.k = u.v WHERE x.k = u.t_k"
    first, second = joins(sql)
    assert (first.left_keys, first.kind, second.kind) == ((), "inner", kind.lower())


@pytest.mark.parametrize(
    ("kind", "residual"), [("LEFT", "gt"), ("RIGHT", "lt"), ("FULL", "and"), ("LEFT SEMI", None), ("LEFT ANTI", "gt")]
)
def test_conditions_of_on_move_to_the_side_whose_rows_are_only_partners(kind, residual):
    (join,) = joins(f"SELECT 1 AS one FROM t {kind} JOIN u ON t.k = u.t_k AND t.a > 1 AND u.v < 2")
    assert (join.residual and join.residual.function) == residual


@pytest.mark.parametrize(
    ("sql", "null_safe"),
    [
        ("SELECT t.k FROM t JOIN u ON t.a <=> u.v", frozenset({0})),
        ("SELECT t.k FROM t JOIN u ON t.a <=> u.v AND t.a = u.v", frozenset()),
        ("SELECT t.k FROM t JOIN u ON t.k <=> u.t_k", frozenset()),
        ("SELECT t.k FROM t JOIN u ON t.a = u.id AND t.b <=> u.v", frozenset({1})),
    ],
)
def test_null_safe_equality_is_a_key(sql, null_safe):
    (join,) = joins(sql)
    assert join.residual is None
    assert join.null_safe == null_safe


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT u.id FROM u LEFT JOIN t ON u.t_k = t.k", ("id",)),
        ("SELECT u.id FROM t RIGHT JOIN u ON u.t_k = t.k", ("id",)),
        ("SELECT t.k, u.id FROM t LEFT JOIN u ON u.t_k = t.k", ("k", "id")),
        ("SELECT k FROM t LEFT SEMI JOIN u ON u.t_k = t.k", ("k",)),
        ("SELECT x.c, y.name FROM (SELECT c FROM t GROUP BY c) x FULL JOIN (SELECT name FROM u GROUP BY name) y "
         "ON x.c = y.name", ("__key_0_in_left", "c", "name")),
    ],
)  # fmt: skip
def test_keys_of_outer_joins(sql, key):
    plan = plan_example(sql)
    assert tuple(plan.root.schema.names[i] for i in plan.key) == key


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_right_columns_of_a_semi_join_cannot_be_named(kind):
    with pytest.raises(SqlError) as caught:
        plan_example(f"SELECT u.v FROM t LEFT {kind} JOIN u ON t.k = u.t_k")
    assert caught.value.code == "UNRESOLVED_COLUMN"


def test_an_equality_in_every_branch_of_an_or_is_a_key():
    sql = "SELECT t.k FROM t, u WHERE (u.t_k = t.k AND t.a = 1 AND u.v > 1) OR (t.a = 2 AND (u.t_k = t.k) AND u.v < 9)"
    assert joins(sql)[0].left_keys
    # Each side is restricted by what the branches ask of it.
    text = example_tree(sql)
    assert "Filter ((a = 1) OR (a = 2))" in text
    assert "Filter ((v > 1) OR (v < 9))" in text
    (join,) = joins("SELECT t.k FROM t JOIN u ON (u.t_k = t.k AND t.a = 1) OR t.k = u.t_k")
    assert (len(join.left_keys), join.residual) == (1, None)


def test_what_an_or_implies_restricts_only_partners_of_outer_joins():
    sql = "SELECT t.k FROM t LEFT JOIN u ON u.t_k = t.k AND ((t.a = 1 AND u.v > 1) OR (t.a = 2 AND u.v < 9))"
    (join,) = joins(sql)
    assert join.residual is not None
    assert isinstance(join.left, Scan)
    assert "Filter ((v > 1) OR (v < 9))" in example_tree(sql)


def test_parts_of_an_or_that_can_raise_stay_with_what_guards_them():
    sql = "SELECT t.k FROM t JOIN u ON u.t_k = t.k WHERE (t.b <> 0 AND 1 / t.b = u.v) OR (t.b > 0 AND 1 / t.b = u.v)"
    assert len(joins(sql)[0].left_keys) == 1
    assert "Filter ((b <> 0) OR (b > 0))" in example_tree(sql)


STAR = (
    "SELECT f.k FROM u AS dim, t AS f, u AS other, u AS outer_dim"
    " WHERE dim.id = f.a AND other.id = f.b AND dim.v = outer_dim.id"
)


def test_arms_are_joined_to_what_they_hang_on_and_the_restricted_first():
    assert example_tree(STAR + " AND other.v > 3").splitlines()[1:] == [
        "  Join on id = a",
        "    Join on v = id",
        "      Scan u (id, v)",
        "      Scan u (id)",
        "    Join on b = id",
        "      Scan t (k, a, b)",
        "      Filter (v > 3)",
        "        Scan u (id, v)",
    ]


def test_the_key_of_arms_is_that_of_the_inputs_in_from_order():
    assert plan_example(STAR).root.schema.names == ("k", "__key_0_id", "__key_1_id", "__key_2_id")


def test_a_further_condition_between_arms_is_judged_above_both():
    assert example_tree(STAR + " AND outer_dim.v < other.v").splitlines()[1] == (
        "  Join on b = id where (v < v), seeks v < v on the left"
    )
    sql = "SELECT f.k FROM t f JOIN u a ON f.a = a.id JOIN u b ON f.b = b.id AND 10 / b.v > a.v JOIN u c ON c.id = f.k"
    assert [join.residual is None for join in joins(sql)] == [True, True, False]


def test_what_hangs_on_two_inputs_or_on_no_key_is_no_arm():
    assert scans("SELECT f.k FROM t f, u a, t g WHERE f.a = a.id AND g.b = a.id AND g.k = f.k") == ["t", "u", "t"]
    assert scans("SELECT f.k FROM t f, u a, t g WHERE f.a = a.v AND g.b = a.v") == ["t", "u", "t"]


def test_an_empty_binary_stands_in_any_branch():
    sql = "SELECT t.k FROM t JOIN u ON (t.k = u.t_k AND X'' = CAST(t.c AS BINARY)) OR (u.t_k = t.k AND t.a = 1)"
    (join,) = joins(sql)
    assert len(join.left_keys) == 1


@pytest.mark.parametrize("item", ["VALUES {} v(n)", "LATERAL (VALUES {}) v(n)"])
def test_many_constant_rows_are_kept_and_not_made_for_each_row(item):
    few, many = (", ".join(f"({n})" for n in range(count)) for count in (1000, 1001))
    beside, kept = (explain(plan_example(f"SELECT k FROM t JOIN {item.format(rows)} ON n = a")) for rows in (few, many))
    assert "Expand into 1000 rows: k, a, pos, col1" in beside
    assert "Join on a = col1" in kept
    assert "Expand into 1001 rows: pos, col1" in kept
