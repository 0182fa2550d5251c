"""The spaces of the conformance suite: the in-memory one is the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.store.memory import MemorySpace

QUICK = EnvironmentOptions(durability="none")


def new_lmdb(folder: Path) -> LmdbSpace:
    folder.mkdir()
    return LmdbSpace(str(folder), QUICK)


@pytest.fixture(params=["memory", "lmdb"])
def space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made: Any = MemorySpace() if request.param == "memory" else new_lmdb(tmp_path / "space")
    yield made
    made.close()
