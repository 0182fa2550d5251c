"""The state behind views, recomputed by Spark: of each example operator, and of a real store that is damaged."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.evaluation import corrupted
from tests.executors.spark.test_queries import OpenAt
from tests.operators.test_equation import Tables
from viewkeeper.database import Database, connect
from viewkeeper.errors import ViewFailed
from viewkeeper.evaluation.comparison import compare
from viewkeeper.evaluation.recomputation import Recomputation
from viewkeeper.evaluation.spool import SpooledFiles
from viewkeeper.executors.spark.queries import SparkQueryRunner
from viewkeeper.operators.circuit import Node, Source
from viewkeeper.operators.contents import Contents, distinct_names
from viewkeeper.operators.recursion import Recursion
from viewkeeper.operators.registry import EXAMPLES, ROWS
from viewkeeper.pipeline.records import read_view
from viewkeeper.views.inputs import FilesInput
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema

pytestmark = pytest.mark.spark

BY_SPARK = [d for d in corrupted.DAMAGES if d.how in (corrupted.other_row, corrupted.other_sum, corrupted.other_count)]

EPOCHS: list[list[tuple[int, int, tuple[int | None, int | None] | None]]] = [
    [(table, key, (key % 3, key * 7 % 5 - 2)) for table in (1, 2) for key in range(12)],
    [(1, 0, None), (1, 1, (None, 4)), (2, 2, (1, None)), (1, 20, (2, 2)), (2, 21, (5, 1))],
    [(1, 3, None), (1, 6, None), (2, 21, None), (1, 20, (1, -2)), (1, 9, (0, None))],
]


def kept_by(node: Node) -> tuple[Contents, ...]:
    return () if isinstance(node.operator, Source) else node.operator.contents()


def same(expected: Sequence[pa.RecordBatch], found: pa.RecordBatch, schema: Schema) -> bool:
    differences = compare(expected, [found], distinct_names(schema), None, found.num_rows, 5)
    return not (differences.missing or differences.unexpected)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_what_operators_say_is_what_they_do(spark: SparkSession, name: str) -> None:
    """After some epochs rows and state are those of the queries, which Spark computes over the tables."""
    tables = Tables(EXAMPLES[name]())
    for epoch in EPOCHS:
        tables.step(epoch)
    circuit, state = tables.running.circuit, tables.running.state()
    with SpooledFiles() as files:
        rows = {
            table: pa.RecordBatch.from_pylist([{"k": k, "g": g, "v": v} for k, (g, v) in rows.items()], ROWS.to_arrow())
            for table, rows in tables.rows.items()
        }
        inputs = {table: FilesInput(ROWS, files.write([batch], ROWS)) for table, batch in rows.items()}
        computed = Recomputation(circuit, inputs, SparkQueryRunner(lambda: spark, OpenAt("")), files)
        for node in circuit.nodes:
            for contents in kept_by(node):
                pairs = sorted(state[contents.state].items())
                columns = contents.decode([key for key, _ in pairs], [value for _, value in pairs])
                assert list(contents.keys_of(columns)) == [key for key, _ in pairs]
                schema = contents.query.schema
                stored = pa.RecordBatch.from_arrays(list(columns), schema=schema.to_arrow())
                assert same(list(computed.contents(node, contents)), stored, schema)
        # A recursion's own state has no query of its own: its rows are checked below, round by round.
        own = {kept for n in circuit.nodes if isinstance(n.operator, Recursion) for kept in n.operator.states}
        assert state.keys() - own == {contents.state for node in circuit.nodes for contents in kept_by(node)}
        last = circuit.nodes[-1]
        if name != "partial_aggregate":  # its rows to Spark are what is summed
            whole = circuit.whole({t: Delta.from_rows(b) for t, b in rows.items()})[last.id].consolidate()
            repeated = whole.rows.take(pa.array([i for i, w in enumerate(whole.weights) for _ in range(w)], pa.int64()))
            assert same(list(computed.rows(last)), repeated, last.operator.schema)


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path: Path = tmp_path_factory.mktemp("states") / "store"
    with connect(path, executor="local", durability="none", spark=spark) as opened:
        corrupted.make(opened)
        yield opened


def test_right_state_is_right(db: Database) -> None:
    for view in corrupted.VIEWS:
        report = db.verify(view)
        assert report.ok, str(report)
        assert len(report.states) > 2
        assert all(check.unchecked is None for check in report.checks)
        assert db.verify(view, state=False).states == ()


@pytest.mark.parametrize("damage", BY_SPARK, ids=str)
def test_damage_is_named_and_healed(db: Database, damage: corrupted.Damage) -> None:
    state = damage.do(db)
    rows = db.sql(f"VERIFY MATERIALIZED VIEW {damage.view} REPAIR").rows()
    assert rows[0]["checked"] == "view"
    (wrong,) = (row for row in rows if not row["ok"] and row["checked"] != "view")
    assert wrong["checked"] == f"{damage.kind} {state}"
    assert (wrong["missing"], wrong["unexpected"], wrong["different"]) == damage.counts
    assert wrong["repaired"]
    report = db.verify(damage.view)
    assert report.ok, str(report)


def test_stray_entries_of_error_bags_and_rows_that_wait(db: Database) -> None:
    corrupted.fill_bag(db)
    corrupted.leave_waiting(db)
    wrong = {state.kind: state.unexpected_count for state in db.verify("by_shop").wrong_states}
    assert wrong == {"errors": 1, "pending": 1}
    db.sql("VERIFY MATERIALIZED VIEW by_shop REPAIR")
    assert db.verify("by_shop").ok


def test_rows_that_spark_cannot_compute_either_belong_into_the_bag(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW shares AS SELECT 10 / cents AS share, COUNT(*) AS n FROM sales GROUP BY ALL")
    db.sql("UPDATE sales SET cents = 0 WHERE id = 1")
    with pytest.raises(ViewFailed):
        db.refresh()
    report = db.verify("shares")
    assert report.ok, str(report)
    assert {check.kind for check in report.checks if check.unchecked is not None} == {"view", "groups", "rows"}
    db.sql("UPDATE sales SET cents = 5 WHERE id = 1")
    db.refresh()
    assert all(check.unchecked is None for check in db.verify("shares").checks)


def test_one_answer_of_the_many_that_spark_may_give_is_right_and_no_other(db: Database) -> None:
    db.sql("CREATE TABLE ties (k INT PRIMARY KEY, g INT, v INT)")
    db.put_batch("ties", [{"k": k * 37 % 101, "g": k % 2, "v": k % 7} for k in range(100)])
    db.sql("CREATE MATERIALIZED VIEW sets AS SELECT g, COLLECT_SET(v) AS s, MIN_BY(k, v) AS m FROM ties GROUP BY g")
    db.sql("CREATE MATERIALIZED VIEW least AS SELECT k, v FROM ties ORDER BY v LIMIT 5")
    for view in ("sets", "least"):
        report = db.verify(view)
        assert report.ok, str(report)
        assert db.verify(view, state=False).ok
        with db._engine.store.views.write() as txn:
            record = read_view(txn, db._engine.coordinator.catalog().view(view).id)
            assert record is not None
            (first, _), *_, (_, last) = txn.scan(record.state)
            txn.put(record.state, first, last)
        assert db.verify(view, state=False).differs
        assert not db.verify(view).ok


def test_no_false_alarm_while_a_writer_and_a_maintainer_go_on(db: Database) -> None:
    done = threading.Event()
    written = []

    def write() -> None:
        while not done.is_set():
            key = len(written) % 40
            db.put("sales", {"id": key, "shop": "abcd"[key % 4], "cents": len(written) % 90, "weight": key / 7})
            if key % 5 == 0:
                db.delete("sales", key)
            written.append(key)

    with db.maintain():
        writer = threading.Thread(target=write)
        writer.start()
        try:
            reports = [db.verify(view) for view in ("by_shop", "placed", "by_shop")]
        finally:
            done.set()
            writer.join()
    assert [str(report) for report in reports if not report.ok] == []
    assert len({report.position for report in reports}) > 1, "nothing was published meanwhile"


def test_totals_that_overflow_on_the_way(db: Database) -> None:
    db.sql("CREATE TABLE totals (k INT PRIMARY KEY, g INT, a BIGINT, d DECIMAL(20,2), s TIMESTAMP)")
    largest = (1 << 63) - 1
    cells = [
        (largest, "1.5", 0),
        (largest, "-2.2", 7),
        (-largest, None, -3),
        (-5, "0.01", 1 << 50),
        (None, "0.02", None),
    ]
    for k, (a, d, s) in enumerate(cells):
        moment = None if s is None else datetime(2024, 3, 31) + timedelta(microseconds=s)
        db.put("totals", {"k": k, "g": k % 2, "a": a, "d": None if d is None else Decimal(d), "s": moment})
    calls = ("TRY_SUM(a)", "TRY_AVG(d)", "TRY_SUM(DISTINCT a)", *(
        f"{function}(s - TIMESTAMP '2024-03-30 12:00:00')" for function in ("SUM", "AVG", "TRY_SUM", "TRY_AVG", "MIN")
    ))  # fmt: skip
    grouped = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
    db.sql(f"CREATE MATERIALIZED VIEW grouped AS SELECT g, {grouped} FROM totals GROUP BY ROLLUP(g)")
    over = "OVER (PARTITION BY k % 2 ORDER BY k ROWS 2 PRECEDING)"
    windowed = ", ".join(f"{call} {over} AS c{i}" for i, call in enumerate(calls) if "DISTINCT" not in call)
    db.sql(f"CREATE MATERIALIZED VIEW windowed AS SELECT k, {windowed} FROM totals")
    assert db.sql("SELECT c0 FROM grouped WHERE g IS NULL").rows()[0]["c0"] == largest - 5
    for view in ("grouped", "windowed"):
        report = db.verify(view)
        assert report.ok, str(report)
        assert all(check.unchecked is None for check in report.checks)
