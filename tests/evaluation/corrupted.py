"""A store with every kind of state, and hands that break one piece of it at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewkeeper.database import Database
from viewkeeper.database.script import context_of
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.circuit import Source
from viewkeeper.operators.contents import Contents
from viewkeeper.operators.ordered.values import OrderedValues
from viewkeeper.pipeline.bags import add_to_bag
from viewkeeper.pipeline.records import ViewRecord, read_view
from viewkeeper.store.key_value import WriteTransaction

SCRIPT = """
CREATE TABLE sales (id BIGINT, shop STRING, cents INT, weight DOUBLE, PRIMARY KEY (id));
CREATE TABLE shops (shop STRING, town STRING, PRIMARY KEY (shop));
INSERT INTO shops VALUES ('a', 'Bonn'), ('b', 'Köln'), ('c', NULL);
INSERT INTO sales VALUES
  (1, 'a', 5, 1e300), (2, 'a', 7, 1), (3, 'b', 7, -0.0), (4, 'b', 1, 2.5), (5, NULL, 9, 0.1), (6, 'c', 3, NULL),
  (7, 'd', 4, 5e-324), (8, 'a', 2, -1e300), (9, 'b', 7, CAST('NaN' AS DOUBLE));
CREATE MATERIALIZED VIEW by_shop AS
  SELECT shop, COUNT(*) AS n, SUM(cents) AS cents, SUM(weight) AS weight, MIN(cents) AS least FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW placed AS
  SELECT s.id, t.town, s.cents * 2 AS twice FROM sales s JOIN shops t ON s.shop = t.shop;
CREATE MATERIALIZED VIEW towns AS
  SELECT t.town, COUNT(*) AS n, MAX(s.weight) AS heaviest FROM sales s JOIN shops t ON s.shop = t.shop GROUP BY t.town;
CREATE MATERIALIZED VIEW declared (id, town, PRIMARY KEY (id)) AS
  SELECT s.id, t.town FROM sales s JOIN shops t ON s.shop = t.shop;
UPDATE sales SET cents = cents + 1 WHERE shop = 'b';
DELETE FROM sales WHERE id IN (4, 6);
INSERT INTO sales VALUES (10, 'c', 8, 4.0), (11, 'a', 2, 0.5)
"""
VIEWS = ("by_shop", "placed", "towns", "declared")


def make(db: Database) -> None:
    """Fill ``db``: three epochs at least have made its state."""
    for statement in SCRIPT.split(";"):
        db.sql(statement)
        db.refresh()


def contents_of(db: Database, view: str, kind: str) -> tuple[object, Contents]:
    """Return the operator that keeps the view's first state of ``kind``, and what that must hold."""
    context = context_of(db._engine)
    catalog = db._engine.coordinator.catalog()
    definition = catalog.view(view)
    compiled = context.planner.compile(catalog, (definition,), definition.cadence)
    for node in compiled.circuit.nodes:
        if not isinstance(node.operator, Source):
            for contents in node.operator.contents():
                if contents.kind == kind:
                    return node.operator, contents
    raise AssertionError(f"{view} keeps no {kind}")


def record_of(db: Database, view: str) -> ViewRecord:
    """Return what is published of ``view``."""
    with db._engine.store.views.read() as txn:
        record = read_view(txn, db._engine.coordinator.catalog().view(view).id)
    assert record is not None
    return record


Break = Callable[[WriteTransaction, object, str], None]


def lose_a_key(txn: WriteTransaction, operator: object, state: str) -> None:
    """Delete the first row."""
    txn.delete(state, next(iter(txn.scan(state)))[0])


def stray_row(txn: WriteTransaction, operator: object, state: str) -> None:
    """Write the first row once more, under a key that is not its own."""
    key, value = next(iter(txn.scan(state)))
    txn.put(state, key + b"\x07", value)


def unreadable(txn: WriteTransaction, operator: object, state: str) -> None:
    """Cut the last row short."""
    key, value = list(txn.scan(state))[-1]
    txn.put(state, key, value[: len(value) // 3])


def other_row(txn: WriteTransaction, operator: object, state: str) -> None:
    """Write the first row's value under the last key."""
    pairs = list(txn.scan(state))
    txn.put(state, pairs[-1][0], pairs[0][1])


def other_sum(txn: WriteTransaction, operator: object, state: str) -> None:
    """Add one to the count of the arguments of SUM(cents), the group's second call."""
    assert isinstance(operator, Aggregate)
    key, value = list(txn.scan(state))[-1]
    row = list(operator.row_codec.decode_values(value))
    at = len(operator.group_columns) + 2
    row[at] = int(str(row[at])) + 1
    txn.put(state, key, operator.row_codec.encode_values(row))


def other_count(txn: WriteTransaction, operator: object, state: str) -> None:
    """Let a value of MIN or MAX be there once more than it is."""
    assert isinstance(operator, Aggregate)
    (values,) = operator.values
    assert isinstance(values, OrderedValues)
    key, value = next(iter(txn.scan(state)))
    least, count = values.row_codec.decode_values(value)
    txn.put(state, key, values.row_codec.encode_values((least, int(str(count)) + 1)))


@dataclass(frozen=True)
class Damage:
    """What is broken: a view's state of a kind, and how; with how many rows missing, unexpected, different."""

    view: str
    kind: str
    how: Break
    counts: tuple[int, int, int]

    def do(self, db: Database) -> str:
        """Break it and return the state table's name."""
        operator, contents = contents_of(db, self.view, self.kind)
        with db._engine.store.views.write() as txn:
            self.how(txn, operator, contents.state)
        return contents.state

    def __str__(self) -> str:
        """Return the test's name."""
        return f"{self.kind}-{self.how.__name__}"


DAMAGES = (
    Damage("placed", "arrangement", lose_a_key, (1, 0, 0)),
    Damage("placed", "arrangement", stray_row, (0, 1, 0)),
    Damage("placed", "arrangement", other_row, (1, 1, 0)),
    Damage("placed", "arrangement", unreadable, (1, 1, 0)),
    Damage("by_shop", "groups", lose_a_key, (1, 0, 0)),
    Damage("by_shop", "groups", other_sum, (0, 0, 1)),
    Damage("by_shop", "groups", stray_row, (0, 1, 0)),
    Damage("by_shop", "values", lose_a_key, (1, 0, 0)),
    Damage("by_shop", "values", other_count, (0, 0, 1)),
    Damage("towns", "values", other_row, (0, 0, 1)),
    Damage("towns", "rows", lose_a_key, (1, 0, 0)),
    Damage("towns", "rows", unreadable, (1, 1, 0)),
    Damage("declared", "candidates", lose_a_key, (1, 0, 0)),
    Damage("declared", "candidates", stray_row, (0, 1, 0)),
)


def fill_bag(db: Database) -> str:
    """Put an entry into the empty error bag of ``by_shop`` and return the bag's name."""
    context, catalog = context_of(db._engine), db._engine.coordinator.catalog()
    definition = catalog.view("by_shop")
    compiled = context.planner.compile(catalog, (definition,), definition.cadence)
    (bag,) = compiled.views[definition.id].error_states
    with db._engine.store.views.write() as txn:
        add_to_bag(txn, bag, {b'["ARITHMETIC_OVERFLOW",{"shop":"z"}]': 1})
    return bag


def leave_waiting(db: Database) -> str:
    """Put a row of ``by_shop`` among those that wait, and return the name of that table."""
    record = record_of(db, "by_shop")
    with db._engine.store.views.write() as txn:
        key, value = next(iter(txn.scan(record.state)))
        txn.put(record.pending, key, b"\x01" + value)
    return record.pending
