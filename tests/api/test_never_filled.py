"""A view that FAILED when it was filled says so to whoever reads it: "no row" would be a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from viewkeeper import connect
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError, ViewFailed

READS: dict[str, Callable[[Database], object]] = {
    "get": lambda db: db.get("latest", 1),
    "multi_get": lambda db: db.multi_get("latest", [1, 2]),
    "scan": lambda db: list(db.scan("latest")),
    "table": lambda db: db.table("latest").to_arrow(),
    "sql": lambda db: db.sql("SELECT * FROM latest"),
}


def test_reads_name_what_the_view_waits_for(tmp_path: Path) -> None:
    with connect(tmp_path / "store", executor="local") as db:
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, PRIMARY KEY (id))")
        db.put_batch("orders", [{"id": 1, "customer": 1}, {"id": 2, "customer": 1}])
        with pytest.raises(ViewFailed, match=r"KEY_NOT_UNIQUE at \{'customer': 1\}: declare a PRIMARY KEY"):
            db.sql("CREATE MATERIALIZED VIEW latest (PRIMARY KEY (customer)) AS SELECT customer, id FROM orders")
        for name, read in READS.items():
            with pytest.raises(InputError, match=r"VIEW_NOT_FILLED.*KEY_NOT_UNIQUE at \{'customer': 1\}"):
                print(name, read(db))
        with db.snapshot() as moment, pytest.raises(InputError, match=r"VIEW_NOT_FILLED.*KEY_NOT_UNIQUE"):
            moment.get("latest", 1)
        db.delete("orders", 2)
        db.refresh()
        assert db.get("latest", 1) == {"customer": 1, "id": 1}
        assert db.get("latest", 2) is None
