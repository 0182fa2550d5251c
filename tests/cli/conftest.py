from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.database import connect

SETUP = """
CREATE TABLE t (k BIGINT, a STRING, v INT, PRIMARY KEY (k));
INSERT INTO t VALUES (1, 'x', 3), (2, 'y', 4), (3, 'x', 5);
CREATE MATERIALIZED VIEW s AS SELECT a, COUNT(*) AS n, SUM(v) AS total FROM t GROUP BY a
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a table of three rows and a view of two."""
    place = tmp_path / "shop.vk"
    with connect(place) as db:
        db.sql(SETUP)
    return place
