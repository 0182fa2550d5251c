"""Nexmark's queries that stream time does not bind, as views of one store, equal to Spark's answers as events come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import viewkeeper as vk
from bench.nexmark.events import generate, rounds
from bench.nexmark.queries import NUMBERS, query
from bench.nexmark.tables import NAMES, create_table
from tests.integration.answers import check_views, session_of_tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EVENTS = 4_000
QUERIES = {f"q{number:02d}": query(number) for number in NUMBERS}
# By which executor each span of events is taken in.
EXECUTORS = ("local", "spark", "local")


def written(db: vk.Database, rows: dict[str, pa.Table], random: np.random.Generator) -> None:
    """Write a span of events in one transaction, and take some bids back or change their price."""
    earlier = db.table("bid").to_arrow()
    with db.transaction() as tx:
        for name, events in rows.items():
            tx.put_batch(name, events)
        if len(earlier):
            touched = earlier.take(random.choice(len(earlier), len(earlier) // 20, replace=False))
            gone, changed = touched.slice(0, len(touched) // 2), touched.slice(len(touched) // 2)
            for key in gone["id"].to_pylist():
                tx.delete("bid", key)
            place = changed.schema.get_field_index("price")
            tx.put_batch("bid", changed.set_column(place, changed.schema.field(place), pc.add(changed["price"], 1_000)))


def test_queries_are_maintained_as_events_come(tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    settings: dict[str, Any] = {"durability": "none"}
    with vk.connect(tmp_path / "nexmark.vk", executor="local", **settings) as db:
        for name in NAMES:
            db.sql(create_table(name))
        for name, text in QUERIES.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {text}")
    spans = rounds(generate(EVENTS, seed=3), len(EXECUTORS))
    with session_of_tables(NAMES) as session:
        for executor, rows in zip(EXECUTORS, spans, strict=True):
            with vk.connect(tmp_path / "nexmark.vk", executor=executor, **settings) as db:
                written(db, rows, random)
                done = db.refresh()
                assert (done.epochs, done.executors) == (1, (executor,))
                assert check_views(session, db, NAMES, QUERIES) >= len(QUERIES) - 1
