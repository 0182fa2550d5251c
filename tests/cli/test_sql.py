"""``sql``: where the statements come from, what is printed, and what ends a script."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import done, json_of, run
from viewkeeper.cli.commands import DOT_COMMANDS
from viewkeeper.database import connect

TABLE = """k   a   v
─────────
1   x   3
2   y   4
3   x   5
"""


def test_several_texts_are_run_in_order(store: Path) -> None:
    assert done(
        "sql", store, "-e", "DELETE FROM t WHERE k = 1; DELETE FROM t WHERE k = 2", "-e", "SELECT k FROM t"
    ) == ("k\n─\n3\n")


def test_a_table_is_printed_as_it_is(store: Path) -> None:
    result = run("sql", store, "-e", "SELECT * FROM t ORDER BY k")
    assert (result.exit_code, result.stdout, result.stderr) == (0, TABLE, "")


def test_changes_are_counted_apart_from_results(store: Path) -> None:
    result = run("sql", store, "-e", "UPDATE t SET v = v + 1 WHERE a = 'x'")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "2 rows changed\n")


def test_a_pipe_is_read(store: Path) -> None:
    assert done("sql", store, given="SELECT * FROM t ORDER BY k;\n") == TABLE


def test_commands_in_a_pipe_do_what_they_do_in_the_shell(store: Path) -> None:
    for given in (".help", ".help;\n", "  .help\n\n"):
        out = done("sql", store, given=given)
        assert all(command in out for command, _, _ in DOT_COMMANDS)
    out = done(
        "sql", store, given=".tables\nSELECT k\nFROM t WHERE v >\n.5 + 4;\n.schema s\n-- the end\n.quit\nSELECT no"
    )
    assert re.fullmatch(r"name .*\n─+\n.*t +3\nk\n─\n3\nCREATE MATERIALIZED VIEW s.*;\n", out, re.DOTALL), out
    assert "\ns " in done("sql", store, "-e", ".views", "-e", ".quit", "-e", "SELECT no")


def test_a_wrong_command_in_a_pipe_ends_it_at_its_place(store: Path) -> None:
    result = run("sql", store, given="SELECT 1 AS n;\n.tabels\nSELECT 2 AS n;")
    assert (result.exit_code, result.stdout) == (1, "n\n─\n1\n")
    told = "There is no command .tabels: .help lists them. (In the command at line 2, column 1 of standard input.)"
    assert result.stderr == f"[COMMAND_NOT_FOUND] {told}\n"


def test_a_script_is_read_and_may_stand_alone(store: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("-- all of it\nSELECT * FROM t ORDER BY k;")
    assert done("sql", store, script) == TABLE
    assert done("sql", script, store=store) == TABLE
    result = run("sql", script)
    assert result.exit_code == 2
    assert "name the store before it" in result.stderr
    assert run("sql", store, script, "-e", "SELECT 1").exit_code == 2


def test_the_store_is_made(tmp_path: Path) -> None:
    result = run("sql", tmp_path / "new.vk", "-e", "-- the first\ncreate table t (k INT, PRIMARY KEY (k)); SHOW TABLES")
    assert result.exit_code == 0
    assert result.stderr == f"There was no store at {tmp_path / 'new.vk'}: made a new one.\n"
    with connect(tmp_path / "new.vk", create=False) as db:
        assert db.tables() == ["t"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("sql", "{}", "-e", "SELECT 1; CREATE TABLE t (k INT, PRIMARY KEY (k))"),
        ("sql", "{}", "-e", ""),
        ("status", "{}"),
        ("verify", "{}"),
        ("refresh", "{}"),
        ("maintain", "{}"),
        ("explain", "{}", "SELECT 1"),
        ("export", "{}", "v"),
        ("load", "{}", "t", __file__),
        ("doctor", "{}"),
    ],
    ids=lambda arguments: " ".join(arguments[:1]),
)
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = run(*[part.format(tmp_path / "nosuch.vk") for part in arguments])
    assert "nosuch.vk" in result.output
    assert "STORE_NOT_FOUND" in result.output
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_json_keeps_every_value(store: Path) -> None:
    query = (
        "SELECT k, CAST(v AS DECIMAL(5,2)) AS d, CAST('NaN' AS DOUBLE) AS n, NULL AS z FROM t WHERE k < 3 ORDER BY k"
    )
    assert json_of("sql", store, "-e", query) == [
        {"k": 1, "d": "3.00", "n": "NaN", "z": None},
        {"k": 2, "d": "4.00", "n": "NaN", "z": None},
    ]


def test_each_statement_is_one_json_value(store: Path) -> None:
    printed = done("sql", store, "--json", "-e", "SELECT k FROM t WHERE k = 1; SELECT k FROM t WHERE k > 9")
    first, _, rest = printed.partition("]\n")
    assert json.loads(first + "]") == [{"k": 1}]
    assert rest == "[]\n"


def test_plans_and_definitions_are_texts(store: Path) -> None:
    printed = done("sql", store, "-e", "SHOW CREATE TABLE t; EXPLAIN MATERIALIZED VIEW s")
    assert printed.startswith("CREATE TABLE t (\n  k BIGINT NOT NULL,\n")
    assert "Aggregate by a" in printed
    assert "─" not in printed


def test_the_first_error_ends_the_script_and_is_placed(store: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("DELETE FROM t WHERE k = 1;\nSELECT nothing FROM t;\nDELETE FROM t WHERE k = 2;\n")
    result = run("sql", store, script)
    assert result.exit_code == 1
    sentence, *excerpt = result.stderr.splitlines()[-3:]
    assert sentence.startswith("[UNRESOLVED_COLUMN] ")
    assert sentence.endswith(f"(In the statement at line 2, column 1 of {script}.)")
    assert excerpt == ["  SELECT nothing FROM t", "         ^"]
    with connect(store) as db:
        assert [row["k"] for row in db.scan("t")] == [2, 3]


def test_a_script_that_cannot_be_split_runs_nothing(store: Path) -> None:
    result = run("sql", store, "-e", "DELETE FROM t WHERE k = 1; SELECT 'open")
    sentence, *excerpt = result.stderr.splitlines()
    assert result.exit_code == 1
    assert sentence.startswith("[SYNTAX_ERROR] The string that begins at line 1, column 35 does not end: close it with")
    assert excerpt == ["  DELETE FROM t WHERE k = 1; SELECT 'open", " " * 36 + "^"]
    assert done("sql", store, "-e", "SELECT * FROM t ORDER BY k") == TABLE


@pytest.mark.parametrize(
    ("content", "code"), [(None, "FILE_NOT_FOUND"), (b"SELECT '\xff'", "FILE_INVALID")], ids=["missing", "not text"]
)
def test_a_script_that_cannot_be_read(store: Path, tmp_path: Path, content: bytes | None, code: str) -> None:
    script = tmp_path / "script.sql"
    if content is not None:
        script.write_bytes(content)
    result = run("sql", store, script)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"[{code}] ")
