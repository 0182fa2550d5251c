"""Each public method shows an example that runs: in its docstring, as a doctest, or in the README."""

from __future__ import annotations

import doctest
from collections.abc import Iterator

import pytest

import viewkeeper as vk
from tests.architecture.project import ROOT
from tests.docs.markdown import blocks_of
from viewkeeper.database.reading import Snapshot, TableHandle
from viewkeeper.database.writes import Transaction
from viewkeeper.evaluation.result import Result

CLASSES = (vk.Database, Transaction, Snapshot, TableHandle, Result, vk.Position)

# They start processes, which no doctest does.
IN_THE_README = {"Database.maintain", "Database.verify"}


def public_methods() -> Iterator[tuple[str, object]]:
    """Yield the methods and properties that users meet, those of bases of ours included."""
    for of in CLASSES:
        for name in dir(of):
            member = getattr(of, name)
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                yield f"{of.__name__}.{name}", member


METHODS: dict[str, object] = dict(public_methods())


@pytest.mark.parametrize("name", sorted(METHODS.keys() - IN_THE_README))
def test_a_public_method_has_an_example_that_runs(name: str) -> None:
    text = METHODS[name].__doc__ or ""
    assert doctest.DocTestParser().get_examples(text), f"{name} shows no example in its docstring"


@pytest.mark.parametrize("name", sorted(IN_THE_README))
def test_the_readme_shows_what_starts_processes(name: str) -> None:
    assert name in METHODS
    call = f"db.{name.rpartition('.')[2]}("
    assert any(call in block.text for block in blocks_of(ROOT / "README.md") if block.language == "python")
