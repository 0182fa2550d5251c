"""Viewkeeper on the peers' work. Variants name executor and durability:

    local           a maintainer in a child process (W1-W3), wait_for in process (W4, W6); durability none
    local-commit    the same, every commit forced to disk
    spark           a warm session; one refresh by Spark behind all batches (W1-W3), wait_for (W4, W6); durability none
    spark-commit    the same, every commit forced to disk

A batch is one transaction: what its changes come to per key is put or deleted.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import common as c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import viewkeeper as vk

COLUMNS = {"events": ["id", "g", "v"], "orders": ["id", "cust", "amount"], "customers": ["id", "region", "name"]}
TEXTS = {"region", "name"}
ROWS_A_LOAD = 500_000


def net(changes: pa.Table, columns: list[str]) -> tuple[pa.Table, list[int]]:
    """Return the rows that a batch leaves and the ids that it removes: the last change of a key counts."""
    ids, op = changes["id"].to_numpy(), changes["op"].to_numpy()
    last = len(ids) - 1 - np.unique(ids[::-1], return_index=True)[1]
    stays = op[last] >= 0
    return changes.select(columns).take(pa.array(last[stays])), ids[last[~stays]].tolist()


def apply(db: vk.Database, table: str, changes: pa.Table) -> vk.Position:
    rows, gone = net(changes, COLUMNS[table])
    with db.transaction() as tx:
        tx.put_batch(table, rows)
        for key in gone:
            tx.delete(table, key)
    return tx.position


def create(db: vk.Database, wl: str) -> None:
    for table in ("orders", "customers") if wl == "W3" else ("events",):
        columns = ", ".join(f"{n} {'STRING' if n in TEXTS else 'BIGINT'}" for n in COLUMNS[table])
        db.sql(f"CREATE TABLE {table} ({columns}, PRIMARY KEY (id))")


def create_views(db: vk.Database, wl: str) -> None:
    views = {"joined": c.JOIN_VIEW, "agg": c.REGION_VIEW} if wl == "W3" else {"agg": c.EVENTS_VIEW}
    for name, query in views.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query.replace('::BIGINT', '')}")


@contextmanager
def opened(wl: str, variant: str) -> Iterator[vk.Database]:
    folder = tempfile.mkdtemp()
    executor, _, durability = variant.partition("-")
    try:
        with vk.connect(f"{folder}/peer.vk", executor=executor, durability=durability or "none") as db:
            create(db, wl)
            yield db
    finally:
        shutil.rmtree(folder)


def warm(wl: str, variant: str) -> None:
    """Start Spark and its workers on a store of its own, as the Spark peer starts its session."""
    if executor_of(variant) == "spark":
        with opened(wl, variant) as db:
            create_views(db, wl)
            for table in ("orders", "customers") if wl == "W3" else ("events",):
                one = {n: "x" if n in TEXTS else 1 for n in COLUMNS[table]}
                for _ in range(3):
                    db.put(table, one)
                    db.delete(table, 1)
                    db.refresh()


def throughput(a: object, wl: str, variant: str) -> None:
    warm(wl, variant)
    batches = c.files(a.data, wl)
    memory = c.Memory()
    with opened(wl, variant) as db:
        create_views(db, wl)
        maintainer = db.maintain() if executor_of(variant) == "local" else None
        started = time.perf_counter()
        for table, path in batches:
            position = apply(db, table, pq.read_table(path))
        if maintainer is None:
            db.refresh()
        else:
            db.wait_for(position, timeout_seconds=600.0)
        seconds = time.perf_counter() - started
        peak = memory.stop()
        got = {name: db.table(name).to_arrow() for name in db.views()}
    kind = {"executor": executor_of(variant), "durability": durability_of(variant)}
    right = c.check(a.data, wl, **got)
    c.emit(a, "viewkeeper", variant, changes=c.count(batches), seconds=seconds, rss_mb=peak, ok=right, **kind)


def executor_of(variant: str) -> str:
    return variant.partition("-")[0]


def durability_of(variant: str) -> str:
    return variant.partition("-")[2] or "none"


def load_events(a: object, db: vk.Database) -> None:
    create_views(db, "W1")
    for table, path in c.files(a.data, "W1"):
        apply(db, table, pq.read_table(path))
    db.refresh()


def one_change(db: vk.Database, change: dict[str, int]) -> vk.Position:
    if change["op"] < 0:
        return db.delete("events", change["id"])
    return db.put("events", {n: change[n] for n in COLUMNS["events"]})


def freshness(a: object, variant: str) -> None:
    rows = pq.read_table(f"{a.data}/W4/changes.parquet").to_pylist()
    memory, seconds, right = c.Memory(), [], True
    with opened("W1", variant) as db:
        load_events(a, db)
        for change in rows[: a.n or (20 if executor_of(variant) == "spark" else len(rows))]:
            started = time.perf_counter()
            db.wait_for(one_change(db, change), "agg")
            got = db.get("agg", change["xg"])
            seconds.append(time.perf_counter() - started)
            shown = (0, 0) if got is None else (got["s"], got["n"])  # an empty group has no row
            right &= shown == (change["xs"], change["xn"])
    c.emit(a, "viewkeeper", variant, **c.ms(seconds), rss_mb=memory.stop(), ok=right)


def reads(a: object, variant: str) -> None:
    want = {g: (s, n) for g, s, n in c.oracle(a.data, "W1").execute(c.EVENTS_VIEW).fetchall()}
    memory, seconds, right = c.Memory(), [], True
    with opened("W1", variant) as db:
        load_events(a, db)
        for g in pq.read_table(f"{a.data}/W5/keys.parquet")["g"].to_pylist():
            started = time.perf_counter()
            got = db.get("agg", g)
            seconds.append(time.perf_counter() - started)
            right &= (got["s"], got["n"]) == want[g]
    c.emit(a, "viewkeeper", variant, **c.ms(seconds), rss_mb=memory.stop(), ok=right)


def base_sizes(a: object, variant: str) -> None:
    memory, milliseconds, right = c.Memory(), {}, True
    for size in c.sizes(a.data, a):
        with opened("W6", variant) as db:
            base = pq.read_table(f"{a.data}/W6/{size}/base.parquet")
            for start in range(0, len(base), ROWS_A_LOAD):
                db.put_batch("events", base.slice(start, ROWS_A_LOAD))
            create_views(db, "W6")
            taken = []
            for number in range(5):
                path = f"{a.data}/W6/{size}/batch_{number}.parquet"
                started = time.perf_counter()
                db.wait_for(apply(db, "events", pq.read_table(path)))
                taken.append(time.perf_counter() - started)
            milliseconds[size] = round(c.pct(taken, 0.5) * 1e3, 2)
            right &= c.check(a.data, "W6", size, agg=db.table("agg").to_arrow())
    c.emit(a, "viewkeeper", variant, batch_ms=milliseconds, rss_mb=memory.stop(), ok=right)


def main() -> None:
    a = c.args(("local", "local-commit", "spark", "spark-commit"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if a.workload in ("W1", "W2", "W3"):
        throughput(a, a.workload, a.variant)
    else:
        {"W4": freshness, "W5": reads, "W6": base_sizes}[a.workload](a, a.variant)


if __name__ == "__main__":
    main()
