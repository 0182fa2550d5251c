"""Arguments of the wrong kind: each an error of ours with a code, and the store unchanged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError

CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a name that is no text": (lambda db: db.get(5, 1), "WRONG_TYPE"),
    "a row that is a list": (lambda db: db.put("t", [1, 2]), "WRONG_TYPE"),
    "a row that is None": (lambda db: db.put("t", None), "WRONG_TYPE"),
    "changes that are a list": (lambda db: db.update("t", 1, [2]), "WRONG_TYPE"),
    "an expectation that is a list": (lambda db: db.check_and_put("t", {"k": 1}, [2]), "WRONG_TYPE"),
    "a limit below 0": (lambda db: list(db.scan("t", limit=-1)), "INVALID_LIMIT"),
    "a limit of a view that is a text": (lambda db: list(db.scan("v", limit="x")), "INVALID_LIMIT"),
    "a position that is a number": (lambda db: db.wait_for(5), "INVALID_POSITION"),
    "a position as text": (lambda db: db.wait_for("5"), "INVALID_POSITION"),
    "DROP TABLE of a view": (lambda db: db.sql("DROP TABLE v"), "NOT_A_TABLE.*DROP MATERIALIZED VIEW v"),
}


@pytest.mark.parametrize("case", CALLS)
def test_refused_with_a_code(db: Database, case: str) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
    call, code = CALLS[case]
    with pytest.raises(InputError, match=code):
        call(db)
    assert list(db.scan("t")) == list(db.scan("v")) == [{"k": 1, "v": 10}, {"k": 2, "v": 20}]


def test_timestamp_before_the_year_1_in_utc(db: Database) -> None:
    db.sql("CREATE TABLE e (k INT, ts TIMESTAMP, PRIMARY KEY (k))")
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    with pytest.raises(InputError, match="VALUE_OUT_OF_RANGE"):
        db.put("e", {"k": 1, "ts": early})


def test_unknown_time_zone_is_refused_when_the_store_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="INVALID_TIME_ZONE"):
        vk.connect(tmp_path / "zone.vk", time_zone="Mars/Olympus")
    assert not (tmp_path / "zone.vk").exists()


@pytest.mark.parametrize("store", [None, 7, b"shop.vk", ["shop.vk"]])
def test_a_store_that_is_no_path(store: Any) -> None:
    with pytest.raises(InputError, match=r"WRONG_TYPE\] A store is the path of a folder"):
        vk.connect(store)


def test_a_value_of_the_wrong_type_is_told_what_to_pass_and_long_ones_are_cut(db: Database) -> None:
    with pytest.raises(InputError, match=r"Column 'v' of table 't': .* does not fit INT: pass an int\.$"):
        db.put("t", {"k": 1, "v": "ten"})
    for wrong in ("x" * 1_000_000, ["x" * 1000] * 1000, 10**4000, 10**9000):
        with pytest.raises(InputError, match=r"WRONG_TYPE|VALUE_OUT_OF_RANGE") as caught:
            db.put("t", {"k": 1, "v": wrong})
        assert len(str(caught.value)) < 900
        assert len(str(caught.value.details["value"])) < 800
    with pytest.raises(InputError, match="WRONG_TYPE") as caught:
        db.put_batch("t", [["x" * 1_000_000]])
    assert len(str(caught.value)) < 900
