"""``status``, SHOW and DESCRIBE say when nobody maintains the store, and what to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from viewkeeper.adapters.lmdb.locks import ProcessLock
from viewkeeper.database import described
from viewkeeper.database.connection import Database
from viewkeeper.database.status import HINT


def hints_of(sql: str) -> Callable[[Database], list[object]]:
    return lambda db: [row["hint"] for row in db.sql(sql)]


def hint_of_extended(db: Database) -> list[object]:
    return [row["data_type"] for row in db.sql("DESCRIBE EXTENDED w") if row["col_name"] == "# hint"]


PLACES: dict[str, Callable[[Database], list[object]]] = {
    "status": lambda db: [db.status()["hint"]],
    "SHOW": hints_of("SHOW MATERIALIZED VIEWS"),
    "DESCRIBE": hints_of("DESCRIBE w"),
    "DESCRIBE EXTENDED": hint_of_extended,
}


@pytest.mark.parametrize("hints", PLACES.values(), ids=PLACES)
def test_the_hint_is_there_while_nobody_maintains(
    db: Database, tmp_path: Path, hints: Callable[[Database], list[object]]
) -> None:
    db.sql("CREATE MATERIALIZED VIEW w REFRESH ON DEMAND AS SELECT k FROM t")
    assert hints(db) == [None]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT k FROM t")
    assert hints(db) == [HINT]
    with ProcessLock(tmp_path / "shop.vk" / "maintainer.lock"):
        assert hints(db) == [None]
    assert hints(db) == [HINT]


def test_describe_shows_a_row_for_each_column_and_nothing_else(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t")
    columns = ("col_name", "data_type", "nullable", "key", "comment")
    assert db.sql("DESCRIBE t").columns == db.sql("DESCRIBE EXTENDED w").columns == columns
    described = db.sql("DESCRIBE w")
    assert described.columns == (*columns, "hint")
    assert [row["col_name"] for row in described] == ["k", "v"]


def test_a_plain_describe_and_show_tables_look_at_no_view(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t")
    monkeypatch.setattr(described, "status", None)
    assert {row["hint"] for row in db.sql("DESCRIBE w")} == {HINT}
    assert [row["name"] for row in db.sql("SHOW TABLES")] == ["t"]
