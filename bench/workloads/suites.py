"""A suite: each query's view brought through rounds of changes, beside full recomputation by Spark and by DuckDB.

One round of each executor warms; each other is one transaction that the view takes in one epoch. ``tpch-prepare`` makes
the store, ``tpch-q01`` to ``tpch-q22`` measure, ``tpch-summary`` compares, and so for the other suites: any of them can
be a slice of its own, with --kept.
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
from bench.suites.comparison import compared, geometric_mean
from bench.suites.prepared import Prepared, Waiting, prepare
from bench.suites.suite import Suite, view_name
from viewkeeper.store.tables import format_of

# Smaller rounds are not worth its start.
_BY_SPARK_FROM = 0.01
# The default is too little to keep the pages of such a state mapped, and to map them anew takes a third of an epoch.
# DuckDB may use 80 % of the machine's memory unless it is told otherwise.
_MEMORY_BYTES = 8 << 30


def measurements(suite: Suite) -> dict[str, Callable[[Bench], None]]:
    """Return one measurement a query, one before them and one behind."""

    def prepare_all(bench: Bench) -> None:
        prepared(bench, suite)

    def summarise(bench: Bench) -> None:
        summary(bench, suite)

    prepare_all.__doc__ = f"{suite.title}: fills the store, its {len(suite.numbers)} views, and its log."
    summarise.__doc__ = f"{suite.title}: compares all queries that are measured: geometric means, and the slowest."
    queries = {suite.measure(number): _measurement(suite, number) for number in suite.numbers}
    return {f"{suite.name}-prepare": prepare_all, **queries, suite.summary: summarise}


def prepared(bench: Bench, suite: Suite) -> Prepared:
    """Fill the store, its views, and its log."""
    # Each executor's first epoch of a process meets cold caches, ours and the machine's, and cold workers: it warms. In
    # process these are the store's pages: a round of the size that is judged meets as many as the ones behind it.
    rounds = [(suite.judged or suite.parts[0], "local")]
    for part in suite.parts:
        rounds += [(part, "local")] * (bench.scale.repeats if part <= suite.repeated_max else 1)
    if "spark" in bench.scale.executors:
        rounds += [(suite.parts[0], "spark"), *((part, "spark") for part in suite.parts if part >= _BY_SPARK_FROM)]
    return prepare(suite, bench.kept, bench.scale, rounds, bench.note)


def _measurement(suite: Suite, number: int) -> Callable[[Bench], None]:
    def measure(bench: Bench) -> None:
        _run(bench, suite, number)

    measure.__doc__ = f"{suite.title}'s query {number}: epochs of its view beside recomputations, and its state."
    return measure


def _run(bench: Bench, suite: Suite, number: int) -> None:
    store = prepared(bench, suite)
    text = suite.query(number, bench.scale)
    measure = suite.measure(number)
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
            warming, *others = rounds
            _epoch(db, suite, warming, number)
            for waiting in others:
                bench.add(_epoch(db, suite, waiting, number))
    with _opened(store, "local") as db:
        if found := differences(db.table(view_name(number)).to_arrow(), answer):
            raise AssertionError(f"the view of query {number} is not DuckDB's answer: {found}")
        _state(bench, db, suite, number)


def _opened(store: Prepared, executor: str) -> vk.Database:
    limits = {"epoch_rows_max": LOG_ROWS_AN_EPOCH, "memory_bytes": _MEMORY_BYTES}
    return vk.connect(store.store, durability="none", executor=executor, **limits)


def _epoch(db: vk.Database, suite: Suite, waiting: Waiting, number: int) -> Row:
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
    milliseconds = sum(outcome.seconds for outcome in outcomes) * 1e3
    # What only Spark can compute runs there whatever was wanted.
    executor = outcomes[-1].executor
    what = f"epoch, {suite.changed(waiting.part)}"
    return Row(suite.measure(number), what, milliseconds, "ms", executor, "none", "", details)


def _state(bench: Bench, db: vk.Database, suite: Suite, number: int) -> None:
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
    bench.add(Row(suite.measure(number), "state", kept / 2**20, "MiB", "", "", "", details))


def summary(bench: Bench, suite: Suite) -> None:
    """Compare all queries that are measured: geometric means, the slowest."""
    for part in suite.parts:
        for system in ("spark", "duckdb"):
            ratios = {query.name: query.ratio(system, part) for query in compared(bench.rows, suite)}
            ratios = {name: ratio for name, ratio in ratios.items() if ratio is not None}
            if not ratios:
                continue
            judged = part == suite.judged
            least = min(ratios, key=lambda name: ratios[name])
            what = f"{system}'s recomputation ÷ our epoch, {suite.changed(part)}"
            details = {"queries": len(ratios), "won": sum(ratio > 1 for ratio in ratios.values())}
            mean = Row(suite.summary, f"{what}: geometric mean", geometric_mean(ratios.values()), "×")
            mean.target, mean.details = f"{suite.name}_{system}" if judged else "", details
            bench.add(mean)
            worst = Row(suite.summary, f"{what}: least, {least}", ratios[least], "×")
            worst.target = f"{suite.name}_each" if judged and system == "spark" else ""
            bench.add(worst)
