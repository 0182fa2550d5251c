"""The shell on a real terminal, and its parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory

from tests.cli.command import Terminal
from viewkeeper.cli.commands import DOT_COMMANDS
from viewkeeper.cli.completion import Completions
from viewkeeper.cli.scripts import is_complete
from viewkeeper.cli.shell import PROMPT, Shell, history
from viewkeeper.database import connect


@pytest.mark.slow
def test_a_session_on_a_terminal(store: Path, tmp_path: Path) -> None:
    with Terminal("sql", store, home=tmp_path) as terminal:
        terminal.expect(PROMPT.strip())
        terminal.type("SELECT a, v\rFROM t WHERE k = 2;\r")
        terminal.expect("y   4")
        terminal.expect(PROMPT.strip())
        terminal.type("SELECT nothing FROM t;\r")
        terminal.expect("[UNRESOLVED_COLUMN]")
        terminal.expect(PROMPT.strip())
        terminal.type("SELECT a\x03")
        terminal.expect(PROMPT.strip())
        terminal.type(".quit\r")
        assert terminal.status() == 0
    remembered = list(FileHistory(str(tmp_path / "viewkeeper" / "history")).load_history_strings())
    assert remembered == [".quit", "SELECT nothing FROM t;", "SELECT a, v\nFROM t WHERE k = 2;"]


@pytest.mark.slow
def test_the_end_of_input_leaves_the_shell(store: Path, tmp_path: Path) -> None:
    with Terminal("sql", store, home=tmp_path) as terminal:
        terminal.expect(PROMPT.strip())
        terminal.type("\x04")
        assert terminal.status() == 0


@pytest.mark.slow
def test_filling_a_view_shows_its_progress(store: Path, tmp_path: Path) -> None:
    create = "CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t"
    with Terminal("sql", store, "--set", "build_rows=1", "-e", create, home=tmp_path) as terminal:
        terminal.expect("Filling the view")
        assert terminal.status() == 0


def talk(store: Path, *inputs: str, as_json: bool = False) -> None:
    """Give ``inputs`` to a shell and end it."""
    waiting = iter(inputs)

    def read() -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    with connect(store) as db:
        Shell(db, as_json, read).run()


def test_commands(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(store, ".help", ".tables", ".views", ".schema s", ".schema", ".status", ".nothing", ".quit", "SELECT 1;")
    out, err = capsys.readouterr()
    assert all(command in out for command, _, _ in DOT_COMMANDS)
    assert re.search(r"^t +3$", out, re.M)
    assert out.count("CREATE MATERIALIZED VIEW s") == 2
    assert out.count("CREATE TABLE t (") == 1
    assert "viewkeeper maintain" in err
    assert "There is no command .nothing: .help lists them." in err
    assert "one" not in out


def test_errors_do_not_end_it(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(
        store,
        "SELECT 1 +;",
        ".schema nothing",
        "SELECT k FROM t WHERE k = 3; SELECT v FROM t WHERE k = 3;",
        as_json=True,
    )
    out, err = capsys.readouterr()
    assert out == '[\n{"k":3}\n]\n[\n{"v":5}\n]\n'
    assert "[SYNTAX_ERROR]" in err
    assert "[VIEW_NOT_FOUND]" in err


def test_what_begins_a_new_line_and_what_runs() -> None:
    assert [is_complete(text) for text in ("", "  ", ".help", "SELECT 1;", "SELECT 1; -- all", "SELECT $$;")] == [
        True
    ] * 6
    assert [is_complete(text) for text in ("SELECT", "SELECT 1; SELECT", "SELECT ';", "SELECT `;", "/* ;")] == [
        False
    ] * 5


def test_history_is_kept_where_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert isinstance(history(), FileHistory)
    assert (tmp_path / "viewkeeper" / "history").stat().st_mode & 0o077 == 0
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert isinstance(history(), InMemoryHistory)


def test_completion(store: Path) -> None:
    with connect(store) as db:
        db.sql("CREATE TABLE `odd name` (`a b` INT, PRIMARY KEY (`a b`))")
        completions = Completions(db, [name for name, _, _ in DOT_COMMANDS])

        def offered(text: str) -> list[str]:
            return [c.text for c in completions.get_completions(Document(text), CompleteEvent())]

        assert offered(".s") == [".schema", ".status"]
        assert offered("SELECT * FROM od") == ["`odd name`"]
        assert offered("SELECT * FROM `od") == ["`odd name`"]
        assert offered("SELECT s.") == ["a", "n", "total"]
        assert offered("SELECT `odd name`.") == ["`a b`"]
        assert offered("selec") == ["select"]
        assert offered("SELECT to") == ["total", "to"]
        assert offered("SELECT ") == []
        assert offered("SELECT unk.") == []
        db.sql("CREATE TABLE totals (k INT, PRIMARY KEY (k))")
        assert "totals" not in offered("SELECT tot")
        completions.forget()
        assert offered("SELECT tot") == ["totals", "total"]
