"""The base is on disk up to where an epoch reads before that epoch is published, but under durability none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.log import reader
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import read_cadences
from viewkeeper.runtime import open_store
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import Space


class SyncedSpace:
    """The base of a store; knows up to which position of the log it was forced to disk.

    Args:
        space: the real one.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self.synced_to = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._space, name)

    def sync(self) -> None:
        # Asked first: what is committed meanwhile need not be on disk.
        with self._space.read() as txn:
            head = reader.head(txn)
        self._space.sync()
        self.synced_to = head


@pytest.mark.parametrize("durability", ["commit", "interval", "none"])
def test_no_view_shows_what_is_not_on_disk(tmp_path: Path, durability: str) -> None:
    settings = Settings(
        executor="local", durability=durability, sync_interval_seconds=3600.0, epoch_rows_max=3, build_rows=4
    )
    store = open_store(tmp_path / "store", settings)
    base = SyncedSpace(store.base)
    published: list[tuple[int, int]] = []

    def note(point: str) -> None:
        if point == "publish:after":
            with store.views.read() as txn:
                published.append((max(record.position for record in read_cadences(txn)), base.synced_to))

    with Database(replace(store, base=base), settings) as db, hooked(note):
        db.sql("CREATE TABLE t (k INT, v INT, PRIMARY KEY (k))")
        db.sql("CREATE MATERIALIZED VIEW mirrored AS SELECT k, v FROM t")
        for number in range(4):
            for key in range(5):
                db.put("t", {"k": key, "v": number})
            db.refresh()
        last = db.put("t", {"k": 1, "v": 9})
        db.sql("CREATE MATERIALIZED VIEW summed REFRESH ON DEMAND AS SELECT SUM(v) AS s FROM t")

    assert len(published) > 9, "several epochs a refresh, and pieces of a fill"
    assert published[-1][0] >= last.sequence_number
    if durability == "none":
        assert base.synced_to == 0, "it leaves that to the system"
    else:
        assert all(position <= synced for position, synced in published), published
