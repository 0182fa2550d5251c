"""What a killed driver has staged goes with the purges, also where its cadence never runs by Spark again."""

from __future__ import annotations

from pathlib import Path

import viewkeeper as vk
from viewkeeper.coordinator import upkeep
from viewkeeper.pipeline.stage import stage_path


def test_staged_files_go_when_their_epoch_is_published_or_their_cadence_gone(tmp_path: Path) -> None:
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as db:
        db.sql("CREATE TABLE t (k INT, PRIMARY KEY (k)); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
        coordinator = db._engine.coordinator
        record = coordinator.record("continuous")
        assert record is not None
        folder = str(coordinator.staging_path)
        next_ones = [Path(stage_path(folder, "continuous", record.epoch + 1, 1, n, ".payloads")) for n in range(2)]
        others = [Path(stage_path(folder, *of, 1, 0)) for of in (("continuous", record.epoch), ("build-77", 1))]
        for path in (*next_ones, *others):
            path.touch()

        upkeep.purge(coordinator)
        assert sorted(Path(folder).iterdir()) == sorted(next_ones), "that epoch may be running somewhere"
        db.put("t", {"k": 1})
        db.refresh()
        assert list(Path(folder).iterdir()) == []
