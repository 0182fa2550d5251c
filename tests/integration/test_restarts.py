"""Readers and snapshots that live on while the maintainer is killed and restarted again and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import viewkeeper as vk
from tests.integration.killing import Report
from tests.integration.nursery import Nursery, nursery
from tests.integration.proof import settle
from tests.integration.roles import LOCAL, MODULUS
from tests.integration.test_concurrency import SUMS, end
from viewkeeper.database.reading import Snapshot
from viewkeeper.runtime import open_store
from viewkeeper.settings import Settings

pytestmark = pytest.mark.slow

RESTARTS = 12
# What a maintainer may have done when it dies: so many epochs heard of, then at a failpoint, or just so.
FAILPOINTS = ("", "publish:before-commit#3", "publish:after#2", "purge:between#2", "commit:before#4")


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


def total_of(snapshot: Snapshot) -> tuple[object, ...]:
    """Return what a snapshot shows of both views, which must be one whole epoch."""
    (total,) = snapshot.scan("total")
    groups = list(snapshot.scan("by_group"))
    positions = {snapshot.position_of("total"), snapshot.position_of("by_group")}
    assert len(positions) == 1
    # Every transaction keeps each pair's sum divisible: half of one, or of an epoch, would show.
    assert (total["v"] or 0) % MODULUS == 0, total
    assert sum(group["v"] for group in groups) == (total["v"] or 0)
    assert sum(group["n"] for group in groups) == total["n"]
    return (positions.pop(), total["v"], total["n"], tuple(sorted((g["g"], g["v"], g["n"]) for g in groups)))


def test_snapshots_and_readers_outlive_maintainers(children: Nursery, tmp_path: Path, kills: Report) -> None:
    path = str(tmp_path / "store")
    chance = Random(10)
    with vk.connect(path, **LOCAL) as database:
        database.sql(SUMS)
        writer = children.start("generate", path=path, seed=1)
        assert writer.hear() == "ready"
        # As many epochs as the test needs: a reader in a process of its own sees that many states, each whole.
        reader = children.start("read_sums", path=path, states=3 * RESTARTS)
        assert reader.hear() == "ready"
        database.refresh()
        shown = []
        killed = 0
        while killed < RESTARTS or not reader.is_over(0.0):
            maintainer = children.start("maintain", chance.choice(FAILPOINTS), path=path, seconds=600)
            assert maintainer.hear() == "ready"
            with database.snapshot() as snapshot:
                before = total_of(snapshot)
                # It works, or dies by itself at its failpoint.
                for _ in range(chance.randint(1, 3)):
                    maintainer.hear()
                end(maintainer)
                # The snapshot stays what it was, whatever came and went since.
                assert total_of(snapshot) == before
            shown.append(before)
            killed += 1
        assert reader.rest() == [str(3 * RESTARTS)]
        assert reader.wait() == 0
        reader.close()
        end(writer)
        store = open_store(path, Settings.of(LOCAL), create=False)
        settle(store.base)
        settle(store.views)
        store.close()
        with database.snapshot() as snapshot:
            shown.append(total_of(snapshot))
        # Positions only grow, and move on in spite of all the deaths.
        positions = [state[0] for state in shown]
        assert positions == sorted(positions)
        assert len(set(positions)) > RESTARTS // 2
        database.refresh()
        (total,) = database.scan("total")
        query = "SELECT SUM(l.v + r.v) AS v, COUNT(*) AS n FROM lefts l JOIN rights r ON l.id = r.id"
        assert database.sql(query).rows() == [total]
    kills("maintainer under living readers", killed)
