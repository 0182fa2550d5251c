"""Which key a view derives, and where it stands."""

import pytest

from viewkeeper.errors import SqlError
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.examples import FixedRelations, T, U, plan_example
from viewkeeper.plan.nodes import Relation, Scan, relations_of, walk
from viewkeeper.zset.schema import DOUBLE, INT, Column, Schema


def view(sql, *more, **options):
    return plan_view(sql, FixedRelations([T, U, *more]), Session(), **options)


def key_of(plan):
    return tuple(plan.root.schema.names[i] for i in plan.key)


KEYS = [
    ("SELECT k, a FROM t", ("k",)),
    ("SELECT a FROM t", ("__key_0_k",)),
    ("SELECT k + 1 AS k FROM t", ("__key_0_k",)),
    ("SELECT a, k AS z FROM t", ("z",)),
    ("SELECT c, COUNT(*) AS n FROM t GROUP BY c", ("c",)),
    ("SELECT COUNT(*) AS n FROM t GROUP BY c, a", ("__key_0_c", "__key_1_a")),
    ("SELECT c, 1 AS one FROM t GROUP BY c", ("c",)),
    ("SELECT COUNT(*) AS n FROM t", ()),
    ("SELECT t.k, u.id FROM t JOIN u ON t.k = u.t_k", ("k", "id")),
    ("SELECT u.id, t.k FROM t JOIN u ON t.k = u.t_k", ("k", "id")),
    ("SELECT u.t_k, u.id FROM t JOIN u ON t.k = u.t_k", ("t_k", "id")),
    ("SELECT x.k, x.a, y.b FROM t AS x JOIN t AS y ON x.k = y.k", ("k",)),
    ("SELECT x.a, y.b FROM t AS x JOIN t AS y ON x.k = y.k", ("__key_0_k",)),
    ("SELECT u.id, t.a FROM t JOIN u ON t.k = u.id", ("__key_0_k", "id")),
    ("SELECT a FROM t UNION ALL SELECT v FROM u", ("__branch", "__key_0_k", "__key_1_id")),
    ("SELECT k FROM (SELECT k, a FROM t WHERE a > 1) AS q", ("k",)),
    ("SELECT t.k FROM t JOIN (SELECT COUNT(*) AS n FROM u) AS q ON q.n = t.k", ("k",)),
]


@pytest.mark.parametrize(("sql", "expected"), KEYS, ids=[sql for sql, _ in KEYS])
def test_derived_key(sql, expected):
    plan = view(sql)
    assert key_of(plan) == expected
    hidden = any(name.startswith("__") for name in expected)
    assert plan.visible_key == (None if hidden else plan.key)
    assert plan.root.key == plan.key
    assert not plan.declared


def test_floating_columns_do_not_stand_for_each_other():
    keyed = Relation(3, "f", "table", Schema((Column("x", DOUBLE, False), Column("n", INT))), (0,))
    plan = view("SELECT p.x, p.n, q.n AS m FROM f AS p JOIN f AS q ON p.x = q.x", keyed)
    assert key_of(plan) == ("x", "__key_0_x")


def test_declared_key_leaves_the_derived_one_hidden():
    plan = view("SELECT c AS z, a FROM t", key=("Z",))
    assert (plan.key, plan.declared, plan.visible_key) == ((0,), True, (0,))
    assert plan.root.schema.names == ("z", "a", "__key_0_k")


@pytest.mark.parametrize(
    ("key", "code"),
    [(("nope",), "UNRESOLVED_COLUMN"), (("a", "A"), "COLUMN_ALREADY_EXISTS"), ((), None)],
)
def test_declared_keys_name_columns(key, code):
    if code is None:
        assert view("SELECT a FROM t", key=key).key == ()
        return
    with pytest.raises(SqlError) as caught:
        view("SELECT a FROM t", key=key)
    assert caught.value.code == code


def test_column_names_of_the_view():
    plan = view("SELECT a, b AS a FROM t", column_names=("p", "q"))
    assert plan.schema.names == ("p", "q")
    with pytest.raises(SqlError) as caught:
        view("SELECT a, b FROM t", column_names=("p",))
    assert caught.value.code == "CREATE_VIEW_COLUMN_ARITY_MISMATCH"


def as_relation(number, name, plan):
    hidden = Schema(plan.root.schema.columns[plan.visible :])
    return Relation(number, name, "view", plan.schema, plan.visible_key, hidden, plan.key)


def test_views_on_views_scan_their_hidden_key():
    inner = as_relation(7, "inner_view", view("SELECT a, c FROM t"))
    plan = view("SELECT c FROM inner_view WHERE a > 1", inner)
    scan = next(node for node in walk(plan.root) if isinstance(node, Scan))
    assert scan.schema.names == ("a", "c", "__key_0_k")
    assert key_of(plan) == ("__key_0_k",)
    assert relations_of(plan.root) == (inner,)


def test_hidden_columns_cannot_be_named():
    inner = as_relation(7, "inner_view", view("SELECT a, c FROM t"))
    assert view("SELECT * FROM inner_view", inner).schema.names == ("a", "c")
    with pytest.raises(SqlError) as caught:
        view("SELECT __key_0_k FROM inner_view", inner)
    assert caught.value.code == "UNRESOLVED_COLUMN"


def test_view_over_one_row_has_its_key():
    inner = as_relation(7, "peak", plan_example("SELECT MAX(a) AS m FROM t"))
    plan = view("SELECT p.m AS m1, q.m AS m2 FROM peak AS p JOIN peak AS q ON p.m = q.m", inner)
    assert (plan.key, plan.schema.names) == ((), ("m1", "m2"))
