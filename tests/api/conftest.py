"""Stores for the tests of the public API: one folder each, epochs in process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """An open store with a table ``t`` of two rows."""
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as database:
        database.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 10), (2, 20)")
        yield database
