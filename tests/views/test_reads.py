"""Reading a view's rows by key, in key order and whole."""

from __future__ import annotations

import pytest

from tests.evaluation.stores import Store
from viewkeeper.errors import InputError
from viewkeeper.evaluation.moments import open_moment
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.schema import BIGINT, INT, STRING


@pytest.fixture
def store() -> Store:
    made = Store.new()
    made.create("t", {"k": BIGINT, "a": STRING, "b": INT}, ("k",), [(i, "xyz"[i % 3], i % 4) for i in range(24)])
    made.create_view("v", "SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b")
    made.create_view("one", "SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    made.create_view("total", "SELECT COUNT(*) AS n FROM t")
    made.create_view("hidden", "SELECT a FROM t WHERE k < 3")
    return made


class Views:
    """Reads one view in a transaction."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        with open_moment(store.context) as moment:
            self.view: StoredView = moment.stored_view(store.context, moment.catalog.view(name))

    def get(self, key: object) -> object:
        with self.store.context.views.read() as txn:
            return self.view.get(txn, key)

    def scan(self, **how: object) -> list[object]:
        with self.store.context.views.read() as txn:
            return list(self.view.scan(txn, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [("x", 2), ["x", 2], {"a": "x", "b": 2}, {"B": 2, "A": "x"}])
def test_get_takes_every_form_of_a_key(store: Store, key: object) -> None:
    assert Views(store, "v").get(key) == {"a": "x", "b": 2, "n": 2}


def test_get_of_one_column_and_of_none(store: Store) -> None:
    assert Views(store, "one").get("y") == Views(store, "one").get(("y",)) == {"a": "y", "n": 8}
    assert Views(store, "one").get("nowhere") is None
    assert Views(store, "total").get(()) == {"n": 24}


def test_wrong_keys(store: Store) -> None:
    for key, code in (
        (("x",), r"WRONG_KEY_LENGTH.*given: 1; the key has 2 \(a, b\).*prefix="),
        ({"a": "x"}, "MISSING_KEY_COLUMN"),
        ({"q": 1, "a": "x"}, "UNKNOWN_COLUMN"),
    ):
        with pytest.raises(InputError, match=code):
            Views(store, "v").get(key)


def test_multi_get_keeps_the_order_of_the_keys(store: Store) -> None:
    one = Views(store, "one")
    with store.context.views.read() as txn:
        found = one.view.multi_get(txn, ["z", "nowhere", "x", "z"])
    assert [row and row["a"] for row in found] == ["z", None, "x", "z"]


def test_scan(store: Store) -> None:
    v = Views(store, "v")
    everything = v.scan()
    assert [(r["a"], r["b"]) for r in everything] == [(a, b) for a in "xyz" for b in range(4)]  # type: ignore[index]
    assert v.scan(prefix="y") == v.scan(prefix=("y",)) == v.scan(prefix={"a": "y"}) == everything[4:8]
    assert v.scan(start=("x", 3), stop=("y", 1)) == everything[3:5]
    assert v.scan(reverse=True, limit=2) == everything[:-3:-1]
    assert v.scan(limit=0) == []


def test_a_view_without_visible_key_can_be_scanned_but_not_got(store: Store) -> None:
    hidden = Views(store, "hidden")
    assert sorted(r["a"] for r in hidden.scan()) == ["x", "y", "z"]  # type: ignore[index]
    for attempt in (lambda: hidden.get("x"), lambda: hidden.scan(prefix="x")):
        with pytest.raises(InputError, match=r"VIEW_HAS_NO_KEY.*add k to its SELECT list"):
            attempt()


def test_whole_batches_show_the_visible_columns(store: Store) -> None:
    hidden = Views(store, "hidden").view
    with store.context.views.read() as txn:
        (shown,) = hidden.batches(txn)
        (full,) = hidden.batches(txn, hidden=True)
        assert [b.num_rows for b in hidden.batches(txn, rows=2)] == [2, 1]
        assert hidden.count(txn) == 3
    assert (shown.schema.names, full.num_columns) == (["a"], 2)
