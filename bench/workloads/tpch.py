"""TPC-H: each query's view brought through rounds of refreshes, beside full recomputation by Spark and by DuckDB.

One round warms; each other is one transaction that the view takes in one epoch. ``tpch-prepare`` makes the store,
``tpch-q01`` to ``tpch-q22`` measure, ``tpch-summary`` compares: any of them can be a slice of its own, with --kept.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import duckdb

import viewkeeper as vk
from bench.answers import differences
from bench.feeding import LOG_ROWS_AN_EPOCH
from bench.harness import Bench, Row
from bench.recomputation import by_duckdb, by_spark
from bench.tpch.comparison import MEASURE, compared, geometric_mean
from bench.tpch.prepared import Prepared, Waiting, prepare, view_name
from bench.tpch.queries import NUMBERS, query
from viewkeeper.store.tables import format_of

PARTS = (0.0001, 0.001, 0.01, 0.1)
JUDGED = 0.001
# Smaller rounds are repeated: their epochs take milliseconds.
REPEATED_MAX = 0.001


def measurements() -> dict[str, Callable[[Bench], None]]:
    """Return one measurement a query, one before them and one behind."""
    queries = {f"{MEASURE}{view_name(number)}": _measurement(number) for number in NUMBERS}
    return {f"{MEASURE}prepare": prepared, **queries, f"{MEASURE}summary": summary}


def prepared(bench: Bench) -> Prepared:
    """Fill the store, its 22 views, and its log."""
    # The first epoch of a process meets cold caches, ours and the machine's.
    rounds = [(PARTS[0], "local")]
    for part in PARTS:
        rounds += [(part, "local")] * (bench.scale.repeats if part <= REPEATED_MAX else 1)
    if "spark" in bench.scale.executors:
        rounds += [(part, "spark") for part in PARTS if part > REPEATED_MAX]
    return prepare(bench.kept, bench.scale.scale_factor, rounds, bench.note)


def _measurement(number: int) -> Callable[[Bench], None]:
    def measure(bench: Bench) -> None:
        _run(bench, number)

    measure.__doc__ = f"TPC-H's query {number}: epochs of its view beside recomputations, and its state."
    return measure


def _run(bench: Bench, number: int) -> None:
    store = prepared(bench)
    text = query(number, bench.scale.scale_factor)
    measure = f"{MEASURE}{view_name(number)}"
    with bench.temporary("recomputed") as folder:
        # Spark first: the session is warm when it takes our larger epochs.
        repeats = bench.scale.repeats
        if "spark" in bench.scale.executors:
            spark = by_spark(store.parquet, text, folder, repeats)
            bench.add(Row(measure, "spark recomputes", spark * 1e3, "ms"))
        with duckdb.connect(str(store.duckdb)) as connection:
            bench.add(Row(measure, "duckdb recomputes", by_duckdb(connection, text, repeats) * 1e3, "ms"))
            answer = connection.sql("FROM recomputed").to_arrow_table()
    for executor, rounds in groupby(store.rounds(), lambda waiting: waiting.executor):
        with _opened(store, executor) as db:
            for waiting in rounds:
                row = _epoch(db, waiting, number)
                if waiting != store.rounds()[0]:
                    bench.add(row)
    with _opened(store, "local") as db:
        if found := differences(db.table(view_name(number)).to_arrow(), answer):
            raise AssertionError(f"the view of query {number} is not DuckDB's answer: {found}")
        _state(bench, db, number)


def _opened(store: Prepared, executor: str) -> vk.Database:
    return vk.connect(store.store, durability="none", executor=executor, epoch_rows_max=LOG_ROWS_AN_EPOCH)


def _epoch(db: vk.Database, waiting: Waiting, number: int) -> Row:
    """Bring a query's view through one round."""
    coordinator = db._engine.coordinator
    cadence = coordinator.catalog().view(view_name(number)).cadence
    outcomes = coordinator.catch_up(cadence, waiting.position)
    if not outcomes:
        raise RuntimeError(f"the view of query {number} has been through its rounds: prepare the store anew")
    details = {
        "part": waiting.part,
        "changes": waiting.changes,
        "log_rows": sum(outcome.log_rows for outcome in outcomes),
        "view_rows": sum(outcome.view_rows for outcome in outcomes),
        "epochs": len(outcomes),
    }
    what = f"epoch, {waiting.part:.2%} of the orders changed"
    milliseconds = sum(outcome.seconds for outcome in outcomes) * 1e3
    return Row(f"{MEASURE}{view_name(number)}", what, milliseconds, "ms", waiting.executor, "none", "", details)


def _state(bench: Bench, db: vk.Database, number: int) -> None:
    """Weigh what is kept for the view, its rows included, against the base tables that it reads."""
    coordinator = db._engine.coordinator
    catalog = coordinator.catalog()
    view = catalog.view(view_name(number))
    members = coordinator.members(catalog, view.cadence)
    assert members is not None
    with coordinator.views.read() as txn:
        kept = sum(map(txn.size_bytes, members.compilation.states_of(view.id)))
    with coordinator.base.read() as txn:
        base = {table.id: txn.size_bytes(format_of(table).database) for table in catalog.tables.values()}
    details = {"base_bytes": sum(base[id_] for id_ in members.tables), "all_base_bytes": sum(base.values())}
    bench.add(Row(f"{MEASURE}{view_name(number)}", "state", kept / 2**20, "MiB", "", "", "", details))


def summary(bench: Bench) -> None:
    """Compare all queries that are measured: geometric means, the slowest against Spark, crossovers."""
    for part in PARTS:
        for system in ("spark", "duckdb"):
            ratios = {query.measure: query.ratio(system, part) for query in compared(bench.rows)}
            ratios = {name: ratio for name, ratio in ratios.items() if ratio is not None}
            if not ratios:
                continue
            judged = part == JUDGED
            least = min(ratios, key=lambda name: ratios[name])
            what = f"{system}'s recomputation ÷ our epoch, {part:.2%} of the orders changed"
            details = {"queries": len(ratios), "won": sum(ratio > 1 for ratio in ratios.values())}
            mean = Row("tpch-summary", f"{what}: geometric mean", geometric_mean(ratios.values()), "×")
            mean.target, mean.details = f"tpch_{system}" if judged else "", details
            bench.add(mean)
            worst = Row("tpch-summary", f"{what}: least, {least.removeprefix(MEASURE)}", ratios[least], "×")
            worst.target = "tpch_each" if judged and system == "spark" else ""
            bench.add(worst)
