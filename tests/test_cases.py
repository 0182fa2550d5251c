"""Every case of tests/cases in the ways of its README."""

import re
from pathlib import Path

import pytest
from sqlglot import exp, parse_one

from viewkeeper.database.connection import Database, connect
from viewkeeper.errors import ConflictError
from viewkeeper.executors.spark.session import spark_session
from viewkeeper.pipeline.publish import publish
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.testing.cases import Case as CaseFile
from viewkeeper.testing.cases import apply_step, check_step, create_tables, create_view, load_case

FOLDER = Path(__file__).parent / "cases"
ORIGINAL = Path(__file__).parents[2] / "shared" / "cases"
CASES = {path.stem: load_case(path) for path in sorted(FOLDER.glob("*.json"))}
TIMINGS = ("REFRESH CONTINUOUS", "REFRESH ON DEMAND", "REFRESH EVERY 1 SECONDS")
everywhere = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def in_memory():
    return Database(memory_store(), Settings(executor="local"))


def names(case):
    """Return the names of the views of ``case``."""
    return [name for name, _, _ in case.views]


def create_views(database, case, timing=lambda number: TIMINGS[0]):
    for number, (name, sql, _) in enumerate(case.views):
        create_view(database, name, sql, timing(number))


def run(database, case, first=0, **how):
    """Do the steps from ``first`` on, one an epoch, and check each."""
    for number in range(first, len(case.steps)):
        apply_step(database, case, number, **how)
        database.refresh()
        check_step(database, case, number, names(case))


@everywhere
def test_step_by_step(case):
    with in_memory() as database:
        create_tables(database, case)
        create_views(database, case)
        run(database, case)


@pytest.mark.slow
@everywhere
def test_view_created_after_any_step(case):
    for done in range(1, len(case.steps) + 1):
        with in_memory() as database:
            create_tables(database, case)
            for number in range(done):
                apply_step(database, case, number)
            create_views(database, case)
            check_step(database, case, done - 1, names(case))
            run(database, case, done)


@pytest.mark.slow
@everywhere
def test_several_steps_in_an_epoch(case):
    for together in range(2, len(case.steps) + 1):
        with in_memory() as database:
            create_tables(database, case)
            create_views(database, case)
            for number in range(len(case.steps)):
                apply_step(database, case, number)
                if (number + 1) % together == 0 or number + 1 == len(case.steps):
                    database.refresh()
                    check_step(database, case, number, names(case))


class Twice:
    """Runs each epoch twice, compares what the two want written, and keeps it for a late publisher.

    Args:
        executor: what runs them.
    """

    name = "local"

    def __init__(self, executor):
        self.executor = executor
        self.last = None

    def run(self, plan):
        first, second = self.executor.run(plan), self.executor.run(plan)
        assert first.writes == second.writes
        self.last = (plan, first)
        return second

    def clear(self, plan):
        self.executor.clear(plan)


@pytest.mark.slow
@everywhere
def test_every_epoch_replayed(case):
    with in_memory() as database:
        coordinator = database._engine.coordinator
        twice = coordinator._executors["local"] = Twice(coordinator.executor("local"))
        create_tables(database, case)
        create_views(database, case)
        for number in range(len(case.steps)):
            twice.last = None
            apply_step(database, case, number)
            database.refresh()
            if twice.last is not None:
                plan, result = twice.last
                with pytest.raises(ConflictError) as caught:
                    publish(coordinator.views, plan, result.writes, "local", coordinator.clock)
                assert caught.value.code == "EPOCH_SUPERSEDED"
            check_step(database, case, number, names(case))


@pytest.mark.slow
@everywhere
def test_reopened_between_steps(case, tmp_path):
    def reopened():
        return connect(tmp_path / "case.vk", executor="local", durability="none")

    with reopened() as database:
        create_tables(database, case)
        create_views(database, case)
    for number in range(len(case.steps)):
        with reopened() as database:
            apply_step(database, case, number)
        with reopened() as database:
            database.refresh()
        with reopened() as database:
            check_step(database, case, number, names(case))


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize("seed", range(3))
def test_independent_operations_in_another_order(case, seed):
    with in_memory() as database:
        create_tables(database, case)
        create_views(database, case)
        run(database, case, shuffle_seed=seed)


@pytest.mark.slow
@everywhere
def test_steps_repeated(case):
    with in_memory() as database:
        create_tables(database, case)
        create_views(database, case)
        for number in range(len(case.steps)):
            apply_step(database, case, number, repeat=True)
            database.refresh()
            apply_step(database, case, number)
            database.refresh()
            check_step(database, case, number, names(case))


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize("shift", range(3))
def test_each_refresh_timing(case, shift):
    """Views of one case refresh in three ways, also where one reads another; each way comes to each view."""
    with in_memory() as database:
        create_tables(database, case)
        create_views(database, case, lambda number: TIMINGS[(number + shift) % 3])
        run(database, case)


def prefixed(case):
    """Return ``case`` under names that no other case has."""
    prefix = re.sub(r"\W", "_", case.id)
    names = {name: f"{prefix}__{name}" for name in [t[0] for t in case.tables] + [v[0] for v in case.views]}
    return CaseFile(
        case.id,
        tuple((names[name], columns, key) for name, columns, key in case.tables),
        tuple((names[name], renamed(sql, names), columns) for name, sql, columns in case.views),
        tuple(
            (
                tuple((kind, names[table], values) for kind, table, values in operations),
                {names[view]: rows for view, rows in expected.items()},
            )
            for operations, expected in case.steps
        ),
    )


def renamed(sql, names):
    """Return ``sql`` with other tables under the same aliases, the rest of the text untouched."""
    tree = parse_one(sql, read="spark")
    folded = {name.lower(): new for name, new in names.items()}
    common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in sorted(tree.find_all(exp.Table), key=lambda t: -t.this.meta["start"]):
        name = table.name.lower()
        if name in folded and name not in common:
            alias = "" if table.alias else f" AS `{table.name}`"
            sql = sql[: table.this.meta["start"]] + f"`{folded[name]}`{alias}" + sql[table.this.meta["end"] + 1 :]
    return sql


@pytest.mark.spark
@pytest.mark.slow
def test_all_together_through_spark(tmp_path):
    views = {case.id: names(case) for case in CASES.values()}
    chosen = []
    for case in CASES.values():
        kept = tuple(v for v in case.views if v[0] in views[case.id])
        if kept:
            chosen.append(prefixed(CaseFile(case.id, case.tables, kept, tuple(
                (operations, {v: rows for v, rows in expected.items() if v in views[case.id]})
                for operations, expected in case.steps
            ))))  # fmt: skip
    store = tmp_path / "cases.vk"
    with connect(store, executor="local", durability="none") as database:
        for case in chosen:
            create_tables(database, case)
            for name, sql, _ in case.views:
                create_view(database, name, sql)
    spark = spark_session()
    try:
        with connect(store, executor="spark", durability="none", spark=spark) as database:
            for number in range(max(len(case.steps) for case in chosen)):
                running = [case for case in chosen if number < len(case.steps)]
                for case in running:
                    apply_step(database, case, number)
                assert database.refresh().executor == "spark"
                for case in running:
                    check_step(database, case, number)
    finally:
        spark.stop()


@pytest.mark.skipif(
    not ORIGINAL.is_dir(), reason="the cases' source lies beside the project only where it is developed"
)
def test_copies_are_the_originals():
    names = [path.name for path in ORIGINAL.iterdir()]
    assert sorted(names) == sorted(path.name for path in FOLDER.iterdir())
    assert all((ORIGINAL / name).read_bytes() == (FOLDER / name).read_bytes() for name in names)
