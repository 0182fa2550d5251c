from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.cli.options import UsageError, parse_settings, take_store

# values, least, most -> store, rest; "here" is a folder, "preset" what the variable names, if it is set.
WITHOUT_VARIABLE = [
    (["here"], 0, 0, ("here", [])),
    (["here", "v"], 0, None, ("here", ["v"])),
    (["new", "t", "f"], 2, 2, ("new", ["t", "f"])),
    (["here", "v", None], 1, 2, ("here", ["v"])),
]
WITH_VARIABLE = [
    ([None], 0, 0, ("preset", [])),
    (["new"], 0, 0, ("new", [])),
    (["here"], 0, 0, ("here", [])),
    (["v", "w"], 0, None, ("preset", ["v", "w"])),
    (["here", "v"], 0, None, ("here", ["v"])),
    (["t", "f", None], 2, 2, ("preset", ["t", "f"])),
    (["here", "t", "f"], 2, 2, ("here", ["t", "f"])),
    (["here", "f", None], 2, 2, ("preset", ["here", "f"])),
    (["v", "f", None], 1, 2, ("preset", ["v", "f"])),
    (["here", "v", None], 1, 2, ("here", ["v"])),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIEWKEEPER_STORE", raising=False)


@pytest.mark.parametrize(("values", "least", "most", "expected"), WITHOUT_VARIABLE)
def test_the_store_comes_first(
    values: list[str | None], least: int, most: int | None, expected: tuple[str, list[str]]
) -> None:
    assert take_store(values, least, most) == expected


@pytest.mark.parametrize(("values", "least", "most", "expected"), WITH_VARIABLE)
def test_it_may_be_left_out_where_the_variable_names_it(
    values: list[str | None],
    least: int,
    most: int | None,
    expected: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VIEWKEEPER_STORE", "preset")
    assert take_store(values, least, most) == expected


@pytest.mark.parametrize(("values", "least"), [([], 0), ([None], 0), (["here"], 1), (["t", "f"], 2)])
def test_what_is_missing_is_told(values: list[str | None], least: int) -> None:
    with pytest.raises(UsageError):
        take_store(values, least, least)


def test_settings_have_their_types() -> None:
    assert parse_settings(["durability=none", "local_rows_max=5", "sync_interval_seconds=0.5"]) == {
        "durability": "none",
        "local_rows_max": 5,
        "sync_interval_seconds": 0.5,
    }
    assert parse_settings(None) == {}
