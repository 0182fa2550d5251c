"""``load`` and ``export``: what goes out comes in again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import done, json_of, run
from viewkeeper.cli import csv_faults
from viewkeeper.database import connect

TYPES = """
CREATE TABLE all_types (
  k BIGINT, b BOOLEAN, i INT, f DOUBLE, d DECIMAL(20,3), s STRING, y BINARY, at DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ,
  PRIMARY KEY (k))
"""
ROWS = """
INSERT INTO all_types VALUES
  (1, true, -5, 1.5, 12345678901234567.125, 'a "b", c', X'00', DATE '2013-01-01',
   TIMESTAMP '2013-07-01 05:00:00.123456Z', TIMESTAMP_NTZ '2013-07-01 05:00:00'),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, false, 0, -0.0, 0.000, '', X'41', DATE '1969-12-31',
   TIMESTAMP '1900-01-01 00:00:00Z', TIMESTAMP_NTZ '1900-01-01 00:00:00')
"""


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_what_is_exported_can_be_loaded(store: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"rows.{ending}"
    with connect(store) as db:
        db.sql(TYPES + ";" + ROWS)
        before = db.table("all_types").to_arrow()
    assert run("export", store, "all_types", file).stderr == f"3 rows in {file}\n"
    done("sql", store, "-e", "TRUNCATE TABLE all_types")
    assert json_of("load", store, "all_types", file)["rows"] == 3
    with connect(store) as db:
        assert db.table("all_types").to_arrow().equals(before)
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, "shop.vk"]


def test_batches_are_transactions(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("k,v\n" + "".join(f"{k},{k}\n" for k in range(10, 20)))
    with connect(store) as db:
        before = db.status()["position"]
    loaded = json_of("load", store, "t", file, "--batch-rows", 4)
    assert loaded["rows"] == 10
    assert int(loaded["position"]) == before + 3
    told = done("load", store, "t", file)
    assert told.startswith("10 rows into t in ")
    assert told.endswith("; it has 13 rows now.\n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_rows_longer_than_a_block_are_read_in_larger_ones(store: Path, tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "rows.csv"
    long = ["é" * 3_000_000, 'two\nlines, "quoted"']
    quoted = [text.replace('"', '""') for text in long]
    rows = "".join(f"{k},x,{k}\n" for k in range(10, 20))
    file.write_text(f'k,a,v\n{rows}7,{quoted[0]},7\n8,"{quoted[1]}",8\n{rows}', encoding=encoding)
    assert json_of("load", store, "t", file)["rows"] == 22
    with connect(store) as db:
        assert [row["a"] for row in db.multi_get("t", [7, 8]) if row] == long
        assert db.sql("SELECT COUNT(*) AS n FROM t").rows() == [{"n": 15}]


@pytest.mark.parametrize("text", ["k,{}\n1,2\n", 'k,a,"{}\n1,x,2\n'], ids=["long", "open quote"])
def test_names_longer_than_a_block_are_read(store: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.csv").write_text(text.format("x" * (3 << 20)))
    told = run("load", store, "t", tmp_path / "rows.csv").stderr
    assert told.startswith("[UNKNOWN_COLUMN] There is no column 'xxxx")
    assert "it has 'k', 'a', 'v'" in told
    assert len(told) < 300


def test_many_columns_are_read(store: Path, tmp_path: Path) -> None:
    count = 20_000
    (tmp_path / "rows.csv").write_text(f"k,{','.join(f'column_{i}' for i in range(count))}\n1{',' * count}\n")
    told = run("load", store, "t", tmp_path / "rows.csv").stderr
    assert told == "[UNKNOWN_COLUMN] There is no column 'column_0' in table 't': it has 'k', 'a', 'v'.\n"


def test_the_beginning_of_a_file_is_read_once_to_know_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.csv").write_text("k,a,v\n7,x,8\n")
    opened: list[str] = []
    records, reader = csv_faults.CsvFile._records, pa.csv.open_csv
    monkeypatch.setattr(csv_faults.CsvFile, "_records", lambda file: (opened.append("names"), records(file))[1])
    monkeypatch.setattr(pa.csv, "open_csv", lambda *a, **o: (opened.append("rows"), reader(*a, **o))[1])
    assert json_of("load", store, "t", tmp_path / "rows.csv")["rows"] == 1
    assert opened == ["names", "rows"]


def test_a_file_of_names_only_has_no_rows(store: Path, tmp_path: Path) -> None:
    for text in ("k,v", "k,v\n", "k,v\r\n\n"):
        (tmp_path / "rows.csv").write_bytes(text.encode())
        assert json_of("load", store, "t", tmp_path / "rows.csv")["rows"] == 0


def test_a_delimiter_is_one_character(store: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("k\tv\n7\t8\n")
    assert json_of("load", store, "t", tmp_path / "rows.csv", "--delimiter", r"\t")["rows"] == 1
    for wrong in ("", ";;", '"', "§"):
        assert run("load", store, "t", tmp_path / "rows.csv", "--delimiter", wrong).exit_code == 2


@pytest.mark.parametrize(("name", "rows"), [("t", 3), ("S", 2)])
def test_an_export_shows_its_progress_on_a_terminal(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, rows: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    told = run("export", store, name, tmp_path / "rows.csv").stderr
    assert f"Exporting {name}" in told
    assert f"{rows}/{rows}" in told
    assert told.endswith(f"{rows} rows in {tmp_path / 'rows.csv'}\n")


def test_a_view_is_printed_as_csv_or_json(store: Path) -> None:
    assert done("export", store, "s") == '"a","n","total"\n"x",2,8\n"y",1,4\n'
    assert done("export", "s", store=store) == '"a","n","total"\n"x",2,8\n"y",1,4\n'
    assert json_of("export", store, "s") == [{"a": "x", "n": 2, "total": 8}, {"a": "y", "n": 1, "total": 4}]


def test_nested_values_are_json_in_csv(store: Path, tmp_path: Path) -> None:
    with connect(store) as db:
        db.sql("CREATE TABLE n (k INT, xs ARRAY<INT>, m STRUCT<a: STRING>, PRIMARY KEY (k))")
        db.put("n", {"k": 1, "xs": [1, None], "m": {"a": "b"}})
        db.put("n", {"k": 2})
    assert done("export", store, "n") == '"k","xs","m"\n1,"[1,null]","{""a"":""b""}"\n2,,\n'
    done("export", store, "n", tmp_path / "n.json")
    assert json.loads((tmp_path / "n.json").read_text())[0] == {"k": 1, "xs": [1, None], "m": {"a": "b"}}
    done("export", store, "n", tmp_path / "n.parquet")
    assert pq.read_table(tmp_path / "n.parquet").num_rows == 2
    (tmp_path / "n.csv").write_text("k,xs\n3,x\n")
    assert "load" in run("load", store, "n", tmp_path / "n.csv").stderr


def test_an_empty_table_is_exported(store: Path, tmp_path: Path) -> None:
    done("sql", store, "-e", "TRUNCATE TABLE t")
    assert done("export", store, "t") == '"k","a","v"\n'
    assert done("export", store, "t", "--json") == "[]\n"
    done("export", store, "t", tmp_path / "t.parquet")
    assert json_of("load", store, "t", tmp_path / "t.parquet") | {"seconds": 0} == {
        "table": "t",
        "rows": 0,
        "seconds": 0,
        "position": None,
        "rows_in_table": 0,
    }


def test_times_without_a_zone_are_read_in_the_sessions(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("k;ts\n1;2013-07-01 02:00:00\n")
    done("sql", store, "-e", TYPES)
    done("load", store, "all_types", file, "--delimiter", ";", "--set", "time_zone=Europe/Berlin")
    [row] = json_of("export", store, "all_types")
    assert row["ts"] == "2013-07-01T00:00:00Z"


def write_parquet(path: Path, **columns: list[object]) -> Path:
    """Write a Parquet file."""
    pq.write_table(pa.table(columns), path)
    return path


def test_errors_leave_the_table_as_it_was(store: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("k,v\n7,seven\n")
    (tmp_path / "bad.parquet").write_text("no such thing")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "semicolons.csv").write_text("k;v\n7;8\n")
    os.mkfifo(tmp_path / "pipe.csv")
    unknown = write_parquet(tmp_path / "unknown.parquet", k=[7], other=[1])
    wrong = [
        ("t", tmp_path / "none.csv", "FILE_NOT_FOUND"),
        ("t", tmp_path / "none.parquet", "FILE_NOT_FOUND"),
        ("t", tmp_path / "rows.txt", "FILE_FORMAT_UNKNOWN"),
        ("t", tmp_path / "bad.csv", "FILE_INVALID"),
        ("t", tmp_path / "bad.parquet", "FILE_INVALID"),
        ("t", tmp_path / "semicolons.csv", "FILE_INVALID"),
        ("t", tmp_path / "empty.csv", "FILE_INVALID"),
        ("t", tmp_path / "pipe.csv", "FILE_INVALID"),
        ("t", tmp_path, "FILE_FORMAT_UNKNOWN"),
        ("t", unknown, "UNKNOWN_COLUMN"),
        ("s", unknown, "NOT_A_TABLE"),
        ("nothing", unknown, "TABLE_NOT_FOUND"),
    ]
    for table, file, code in wrong:
        result = run("load", store, table, file)
        assert (result.exit_code, result.stderr.partition("] ")[0]) == (1, f"[{code}"), (file, result.output)
        assert result.stderr.count("\n") == 1, result.stderr
    with connect(store) as db:
        assert [row["k"] for row in db.scan("t")] == [1, 2, 3]


def test_a_file_that_cannot_be_written(store: Path, tmp_path: Path) -> None:
    assert run("export", store, "s", tmp_path / "rows.txt").stderr.startswith("[FILE_FORMAT_UNKNOWN] ")
    result = run("export", store, "s", tmp_path / "none" / "rows.csv")
    assert (result.exit_code, result.stderr.partition("] ")[0]) == (1, "[FILE_NOT_WRITTEN")
    assert run("export", store, "nothing").stderr.startswith("[TABLE_OR_VIEW_NOT_FOUND] ")


FAULTS = [
    ("k,v\n7,seven\n", "FILE_INVALID", "line 2, column 'v': 'seven' cannot be read as INT. Correct it"),
    ("k,v\n7,1\n\n8,\n9,99999999999\n", "FILE_INVALID", "line 5, column 'v': '99999999999' cannot be read as INT"),
    ('k,a,v\n7,"x\ny",1\n8,z,1.5\n', "FILE_INVALID", "line 4, column 'v': '1.5' cannot be read as INT"),
    ("k,v\n7,1\n8\n", "FILE_INVALID", "line 3 has 1 of 2 values: '8'. Correct it and load the file again; a"),
    ("k,v\n7,1\n,2\n", "NULL_IN_NOT_NULL_COLUMN", "line 3: Column 'k' of table 't' is NOT NULL or part of the key"),
]  # fmt: skip
NAMES = [
    (b"", "FILE_INVALID", "The first line of FILE is missing: let it name the columns."),
    (b"\n\n", "FILE_INVALID", "The first line of FILE is missing: let it name the columns."),
    (b"k,a,v,A\n1,2,3,4\n", "DUPLICATE_COLUMN", "The first line of FILE names 'A' twice, as columns 2 and 4: rename"),
    (b"k,,v\n1,2,3\n", "FILE_INVALID", "The first line of FILE has no name for column 2: give it one"),
    ("k,é\n".encode("utf-16-le"), "FILE_INVALID", "The first line of FILE has zero bytes, as UTF-16 has: save"),
    ("k,é\n1,2\n".encode("latin-1"), "FILE_INVALID", "FILE is no UTF-8 text (unexpected end of data): save it as"),
    ("k,a\n1,x\n".encode("utf-16")[:-1], "FILE_INVALID", "FILE is no UTF-16-LE text (truncated data): save it as"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "place"), FAULTS)
def test_a_wrong_row_of_a_csv_file_is_named(store: Path, tmp_path: Path, text: str, code: str, place: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text)
    result = run("load", store, "t", file)
    assert (result.exit_code, result.stderr.startswith(f"[{code}] {file}, {place}")) == (1, True), result.stderr
    with connect(store) as db:
        assert [row["k"] for row in db.scan("t")] == [1, 2, 3]


def test_a_row_longer_than_a_block_is_counted_as_its_lines(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(f'k,a,v\n7,"{"x" * 2_200_000}\n",1\n8,y,z\n')
    assert f"{file}, line 4, column 'v': 'z' cannot be read as INT" in run("load", store, "t", file).stderr


def test_a_quote_that_stays_open_is_placed(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_faults, "_BLOCK_BYTES_MAX", 1 << 20)
    file = tmp_path / "rows.csv"
    file.write_text('k,a,v\n7,x,7\n\n8,"x,8\n' + "9,x,9\n" * 400_000)
    told = f"{file}, line 4: no row ends within 1 MiB. Close the quotes of its values, and load the file again."
    assert run("load", store, "t", file).stderr == f"[FILE_INVALID] {told}\n"


@pytest.mark.parametrize(("content", "code", "told"), NAMES)
def test_a_first_line_that_names_no_columns(store: Path, tmp_path: Path, content: bytes, code: str, told: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(content)
    result = run("load", store, "t", file)
    assert (result.exit_code, result.stderr.startswith(f"[{code}] {told.replace('FILE', str(file))}")) == (1, True), (
        result.stderr
    )


@pytest.mark.parametrize("bad", ["19,y,x", ",y,19"])
def test_whole_batches_before_a_wrong_row_stay_and_are_counted(store: Path, tmp_path: Path, bad: str) -> None:
    file = tmp_path / "rows.csv"
    # More than Arrow reads in one block, so that rows come before it meets what is wrong.
    file.write_text("k,a,v\n" + "".join(f"{k},{'x' * 1_000},{k}\n" for k in range(10, 3_010)) + bad + "\n")
    result = run("load", store, "t", file, "--batch-rows", 100)
    assert f"{file}, line 3002" in result.stderr
    with connect(store) as db:
        kept = db.sql("SELECT COUNT(*) AS n FROM t WHERE k >= 10").rows()[0]["n"]
    assert kept > 0
    assert kept % 100 == 0
    assert result.stderr.endswith(f" Its first {kept:,} rows are in t already.\n")


def test_a_wrong_row_of_a_parquet_file_is_named(store: Path, tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "rows.parquet", k=[7, 8, None], v=[1, 2, 3])
    assert run("load", store, "t", file).stderr.startswith(f"[NULL_IN_NOT_NULL_COLUMN] {file}, row 3: Column 'k'")
