"""The bytes that operators keep, held against the numbers of their forms: one does not change without the other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pytest

from viewkeeper.operators.layouts import ERRORS, FORMATS, layouts_of
from viewkeeper.operators.registry import EXAMPLES, ROWS
from viewkeeper.operators.state import StepContext, WriteSet
from viewkeeper.operators.whole import NoState
from viewkeeper.zset.delta import Delta

GOLDEN = Path(__file__).parents[1] / "golden" / "state_forms.txt"
TABLES = {
    1: [(1, 1, 5), (2, 1, -5), (3, None, 7), (4, 2, None), (5, 2, 1 << 40), (6, 1, 5)],
    2: [(1, 1, 6), (7, 2, 0), (8, None, 3), (9, 3, 4)],
}
NOTICE = """# Bytes of state: example (operators/registry.py), state table, kind and number of its form, digest.
# Where the bytes of a form have changed, count up its number in FORMATS (operators/layouts.py), and write this file by
# VIEWKEEPER_UPDATE_GOLDEN=1 and tests/operators/test_layouts.py.
"""


def forms_of(example: str) -> dict[str, str]:
    """Return for the state tables of an example's operators, error bags included, the kinds with their numbers."""
    circuit = EXAMPLES[example]()
    found: dict[str, str] = {}
    for node in circuit.nodes:
        inputs = [circuit.nodes[i].operator.schema for i in node.inputs]
        found |= {state: text.partition(":")[0] for state, text in layouts_of(node.operator, inputs)}
    return found


def written(example: str) -> Mapping[str, bytes]:
    """Return all that an example keeps of ``TABLES``, by state table."""
    deltas = {
        number: Delta.from_rows(pa.record_batch([list(column) for column in zip(*rows, strict=True)], ROWS.to_arrow()))
        for number, rows in TABLES.items()
    }
    writes = WriteSet()
    EXAMPLES[example]().step(deltas, StepContext(NoState(), writes))
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for state, pieces in writes.tables.items():
        for piece in pieces:
            found.setdefault(state, []).extend((k, v or b"") for k, v in zip(piece.keys, piece.values, strict=True))
    for state, entries in writes.merges.items():
        found.setdefault(state, []).extend((text, str(weight).encode()) for text, weight in entries.items())
    return {state: repr(sorted(pairs)).encode() for state, pairs in found.items()}


def lines() -> dict[str, str]:
    """Return what the golden file holds: a digest by example, state table, kind and number."""
    found = {}
    for example in EXAMPLES:
        forms = forms_of(example)
        for state, pairs in sorted(written(example).items()):
            found[f"{example} | {state} | {forms[state]}"] = blake2b(pairs, digest_size=8).hexdigest()
    return found


def golden() -> dict[str, str]:
    text = GOLDEN.read_text() if GOLDEN.exists() else ""
    pairs = (line.rpartition(" | ") for line in text.splitlines() if not line.startswith("#"))
    return {key: digest for key, _, digest in pairs}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_state_table_has_a_form(example: str) -> None:
    operators = [node.operator for node in EXAMPLES[example]().nodes]
    sites = [getattr(operator, "errors", None) for operator in operators]
    states = {state for operator in operators for state in operator.states}
    assert set(forms_of(example)) == states | {site.state for site in sites if site is not None}


def test_every_form_has_bytes_that_are_held() -> None:
    held = {key.rpartition(" | ")[2].rpartition(" ")[0] for key in golden()}
    assert held == set(FORMATS)
    assert ERRORS in held


def test_bytes_of_a_form_do_not_change() -> None:
    now, before = lines(), golden()
    changed = [key for key, digest in before.items() if now.get(key, digest) != digest]
    assert not changed, "the bytes changed and the number of their form did not: count it up in operators/layouts.py"
    if os.environ.get("VIEWKEEPER_UPDATE_GOLDEN"):
        GOLDEN.write_text(NOTICE + "".join(f"{key} | {digest}\n" for key, digest in now.items()))
    assert now == golden(), "run this test by VIEWKEEPER_UPDATE_GOLDEN=1"
