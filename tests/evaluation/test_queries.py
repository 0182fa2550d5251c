"""SELECT in process: the grammar, ordering, look-ups by key, views, errors."""

from __future__ import annotations

import pytest

from tests.evaluation.stores import Store
from viewkeeper.errors import EvaluationError, InputError, SqlError, UnsupportedSql
from viewkeeper.evaluation.local import LocalQuery
from viewkeeper.evaluation.moments import open_moment
from viewkeeper.evaluation.pinned import pinned_keys
from viewkeeper.evaluation.queries import run_query
from viewkeeper.plan.build import plan_query
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, STRING

NAN = float("nan")


@pytest.fixture
def store() -> Store:
    made = Store.new()
    made.create(
        "t", {"k": BIGINT, "a": INT, "s": STRING, "x": DOUBLE}, ("k",), [(i, i % 3, f"s{i}", i / 2) for i in range(30)]
    )
    made.create("u", {"a": INT, "b": STRING, "v": INT}, ("a", "b"), [(i % 4, f"b{i}", i) for i in range(12)])
    return made


def test_filters_projections_aggregates_joins(store: Store) -> None:
    assert store.rows("SELECT k + 1, s FROM t WHERE a = 1 AND k < 5") == [(2, "s1"), (5, "s4")]
    assert store.rows("SELECT a, COUNT(*), SUM(x) FROM t GROUP BY a ORDER BY a") == [
        (0, 10, 67.5),
        (1, 10, 72.5),
        (2, 10, 77.5),
    ]
    joined = "SELECT t.k, u.v FROM t JOIN u ON t.a = u.a WHERE t.k < 2 ORDER BY v"
    assert store.rows(joined) == [(0, 0), (1, 1), (0, 4), (1, 5), (0, 8), (1, 9)]
    assert store.rows("SELECT COUNT(*), MAX(k) FROM t WHERE k > 100") == [(0, None)]


def test_duplicates_stay_and_names_may_repeat(store: Store) -> None:
    result = store.query("SELECT a, a FROM t WHERE k < 4 UNION ALL SELECT 0, 0 FROM t WHERE k = 0")
    assert result.columns == ("a", "a")
    assert sorted(result.tuples()) == [(0, 0), (0, 0), (0, 0), (1, 1), (2, 2)]
    assert result.to_arrow().num_rows == len(result) == 5


def test_limit_and_offset(store: Store) -> None:
    assert store.rows("SELECT k FROM t ORDER BY x DESC LIMIT 3 OFFSET 1") == [(28,), (27,), (26,)]
    assert store.rows("SELECT k FROM t LIMIT 2") == [(0,), (1,)]
    assert store.rows("SELECT k FROM t LIMIT :n OFFSET 29", n=5) == [(29,)]
    assert store.rows("SELECT k FROM t LIMIT 0") == []
    assert store.rows("SELECT k FROM t ORDER BY a LIMIT 3") == [(0,), (3,), (6,)]


def test_a_column_that_is_not_selected_orders_but_does_not_show(store: Store) -> None:
    assert store.query("SELECT s FROM t ORDER BY k DESC LIMIT 1").rows() == [{"s": "s29"}]


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT * FROM t WHERE k = 7", {1: 1}),
        ("SELECT * FROM t WHERE 7 = k AND x > 100", {1: 1}),
        ("SELECT a, COUNT(*) FROM t WHERE k = CAST('7' AS BIGINT) GROUP BY a", {1: 1}),
        ("SELECT v FROM u WHERE b = :b AND a = :a", {2: 1}),
        ("SELECT t.k, u.v FROM t JOIN u ON t.a = u.a WHERE t.k = 3 AND u.b = 'b4'", {1: 1}),
        ("SELECT k FROM t WHERE k = 1 UNION ALL SELECT k FROM t WHERE k = 2", {1: 2}),
        ("SELECT k FROM t WHERE k = NULL", {1: 0}),
        ("SELECT v FROM u WHERE a = 3000000000 AND b = 'x'", {2: 0}),
        ("SELECT k FROM t WHERE k = 1 OR k = 2", {}),
        ("SELECT k FROM t WHERE k = 1 UNION ALL SELECT k FROM t WHERE k > 2", {}),
        ("SELECT v FROM u WHERE a = 1", {}),
        ("SELECT k FROM t WHERE k = a", {}),
    ],
)
def test_a_fixed_key_is_looked_up(
    store: Store, monkeypatch: pytest.MonkeyPatch, sql: str, keys: dict[int, int]
) -> None:
    parameters = {"a": 1, "b": "b5"}
    with open_moment(store.context) as moment:
        relations = store.context.planner.relations(moment.catalog)
        query = plan_query(sql, relations, store.context.session, parameters)
        assert {i: len(found) for i, found in pinned_keys(query.view.root).items()} == keys
        if len(keys) == 1 and "JOIN" not in sql:
            assert LocalQuery(store.context, moment, query.view).input_rows() == sum(keys.values())
    found = sorted(store.rows(sql, **parameters))
    monkeypatch.setattr("viewkeeper.evaluation.local.pinned_keys", lambda root: {})
    assert found == sorted(store.rows(sql, **parameters))


def test_look_ups_read_one_row(store: Store) -> None:
    assert store.rows("SELECT s, x FROM t WHERE k = :k", k=4) == [("s4", 2.0)]
    assert store.rows("SELECT v FROM u WHERE b = 'b5' AND a = 1") == [(5,)]
    assert store.rows("SELECT s FROM t WHERE k = 4 AND a = 2") == []


ORDERED = [NAN, 1.5, None, float("inf"), -0.0, float("-inf"), 0.0, -2.0]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("x", [2, 5, 7, 4, 6, 1, 3, 0]),
        ("x DESC", [0, 3, 1, 4, 6, 7, 5, 2]),
        ("x NULLS LAST", [5, 7, 4, 6, 1, 3, 0, 2]),
        ("x DESC NULLS FIRST", [2, 0, 3, 1, 4, 6, 7, 5]),
    ],
)
def test_floats_sort_as_in_spark(order: str, expected: list[int]) -> None:
    for kind in (DOUBLE, types.FLOAT):
        store = Store.new()
        store.create("f", {"k": INT, "x": kind}, ("k",), list(enumerate(ORDERED)))
        assert [row[0] for row in store.rows(f"SELECT k FROM f ORDER BY {order}, k")] == expected


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        (STRING, ["", "Z", "a", "aa", "é", "\uffff", "😀"]),
        (types.BINARY, [b"", b"\0", b"a", b"\xff"]),
        (types.BOOLEAN, [False, True]),
        (types.TINYINT, [-128, -1, 0, 127]),
        (types.array(INT), [[], [None], [1], [1, 2], [2]]),
    ],
)
def test_other_types_sort_as_in_spark(kind: types.SqlType, ascending: list[object]) -> None:
    store = Store.new()
    store.create("f", {"k": INT, "x": kind}, ("k",), [(i, x) for i, x in enumerate([*reversed(ascending), None])])
    assert [row[0] for row in store.rows("SELECT x FROM f ORDER BY x")] == [None, *ascending]
    assert [row[0] for row in store.rows("SELECT x FROM f ORDER BY x DESC")] == [*reversed(ascending), None]


def test_decimals_sort_over_all_their_digits() -> None:
    from decimal import Decimal

    store = Store.new()
    values = [
        Decimal(text) for text in ("-99999999999999999999.9", "-1.5", "0.0", "0.5", "1.5", "99999999999999999999.9")
    ]
    store.create("f", {"k": INT, "x": types.decimal(30, 1)}, ("k",), list(enumerate(reversed(values))))
    assert [row[0] for row in store.rows("SELECT x FROM f ORDER BY x")] == values


def test_views_show_their_stored_rows(store: Store) -> None:
    store.create_view("v", "SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    store.create_view("hidden", "SELECT s FROM t WHERE k < 2")
    store.put("t", [(100, 0, "new", 0.0)])
    assert store.rows("SELECT * FROM v ORDER BY a") == [(0, 10), (1, 10), (2, 10)]
    assert store.rows("SELECT n FROM v WHERE a = 1") == [(10,)]
    assert store.rows("SELECT * FROM hidden ORDER BY s") == [("s0",), ("s1",)]
    assert store.rows("SELECT COUNT(*) FROM hidden JOIN t ON hidden.s = t.s") == [(2,)]


def test_rows_that_cannot_be_computed_raise_as_in_spark(store: Store) -> None:
    with pytest.raises(EvaluationError) as raised:
        store.query("SELECT 1 / a FROM t")
    assert raised.value.code == "DIVIDE_BY_ZERO"
    assert len(store.rows("SELECT 1 / a FROM t WHERE a > 0")) == 20


def test_errors_point_into_the_users_text(store: Store) -> None:
    with pytest.raises(SqlError, match="line 1, column 8"):
        store.query("SELECT nope FROM t")
    with pytest.raises(UnsupportedSql, match="TABLESAMPLE_NOT_YET"):
        store.query("SELECT a FROM t TABLESAMPLE (10 PERCENT)")
    with pytest.raises(SqlError, match="TABLE_OR_VIEW_NOT_FOUND"):
        store.query("SELECT 1 FROM nowhere")


def test_constants_need_no_table(store: Store) -> None:
    assert store.query("SELECT 1 + 1 AS two, upper('x') AS x -- so").rows() == [{"two": 2, "x": "X"}]
    assert store.rows("SELECT :a", a="it") == [("it",)]
    assert store.code("SELECT nope") == "UNRESOLVED_COLUMN"
    assert store.code("SELECT *") == "QUERY_WITHOUT_TABLE"
    assert store.code("SELECT 1 / 0") == "DIVIDE_BY_ZERO"
    assert store.run("INSERT INTO t SELECT 100, 1, 'x', 0.5D").rows_affected == 1


def test_a_moment_stays_as_it_was(store: Store) -> None:
    with open_moment(store.context) as moment:
        store.run("DELETE FROM t WHERE k >= 0")
        assert len(run_query(store.context, "SELECT k FROM t", moment=moment)) == 30
    assert store.rows("SELECT COUNT(*) FROM t") == [(0,)]


def test_a_view_without_rows_says_so(store: Store) -> None:
    store.create_view("v", "SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    with store.context.views.write() as txn:
        txn.drop("published")
    with pytest.raises(InputError, match="VIEW_NOT_FILLED"):
        store.query("SELECT * FROM v")


def test_result_forms(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    result = store.query("SELECT k, s FROM t ORDER BY k LIMIT 3")
    assert list(result) == result.rows()
    assert result.rows()[0] == {"k": 0, "s": "s0"}
    assert result.to_arrow().column("k").to_pylist() == [0, 1, 2]
    assert list(result.to_pandas()["s"]) == ["s0", "s1", "s2"]
    result.show(limit=2)
    assert "2 of 3 rows" in capsys.readouterr().out
    assert repr(result) == "<3 rows of (k, s)>"
