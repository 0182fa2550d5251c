"""What a worker says of a store that it cannot open, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from viewkeeper.errors import StoreError
from viewkeeper.executors.spark.cargo import opened
from viewkeeper.executors.spark.types import translated
from viewkeeper.runtime import SpaceOpener, options_of
from viewkeeper.settings import Settings


def refusal(place: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        opened(SpaceOpener(str(place), options_of(Settings())))
    return caught.value


@pytest.mark.parametrize("there", ["no folder above", "nothing", "an empty folder", "another folder", "a file"])
def test_a_worker_that_does_not_see_the_drivers_store_says_so(tmp_path: Path, there: str) -> None:
    place = tmp_path / "shop.vk"
    if there == "no folder above":
        place = tmp_path / "mounted" / "shop.vk"
    elif there in ("an empty folder", "another folder"):
        place.mkdir()
        if there == "another folder":
            (place / "notes.txt").write_text("of somebody else")
    elif there == "a file":
        place.write_text("of somebody else")
    error = pickle.loads(pickle.dumps(refusal(place)))
    assert error.code == "STORE_NOT_SHARED"
    assert f"does not see the store {place}, which the driver has open: keep the store on a path" in error.message
    assert "connect" not in error.message
    assert error.details["path"] == str(place)
    of_spark = translated(PySparkException(f"  File task.py\nviewkeeper.errors.StoreError: {error}\n"))
    assert (type(of_spark), str(of_spark)) == (StoreError, str(error))


def test_another_failure_of_opening_stays_what_it_is(tmp_path: Path) -> None:
    place = tmp_path / "shop.vk"
    opened_elsewhere = SpaceOpener(str(place), options_of(Settings()))
    place.mkdir()
    (place / "viewkeeper.json").write_text("no JSON")
    with pytest.raises(StoreError, match="STORE_CORRUPT"):
        opened(opened_elsewhere)
