"""Each operator has its page, and the page's example is what the operator does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.architecture.project import ROOT, SOURCE
from tests.docs.markdown import Block, blocks_of
from tests.docs.worked_example import Example, Outcome
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.base import Operator
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.exchange import Exchange
from viewkeeper.operators.expand import Expand
from viewkeeper.operators.filter import Filter
from viewkeeper.operators.generate import Generate
from viewkeeper.operators.join import Join
from viewkeeper.operators.matched_rows import MatchedRows
from viewkeeper.operators.partial_aggregate import PartialAggregate
from viewkeeper.operators.project import Project
from viewkeeper.operators.recursion import Recursion
from viewkeeper.operators.repeat import Repeat
from viewkeeper.operators.semi_join import SemiJoin
from viewkeeper.operators.top_k import TopK
from viewkeeper.operators.union import UnionAll
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.operators.window import Window

FOLDER = ROOT / "docs" / "operators"
PAGES: dict[str, type[Operator]] = {
    "aggregate": Aggregate,
    "arrange": Arrange,
    "catalyst": Catalyst,
    "exchange": Exchange,
    "expand": Expand,
    "filter": Filter,
    "generate": Generate,
    "join": Join,
    "matched_rows": MatchedRows,
    "ordered": Aggregate,
    "project": Project,
    "recursion": Recursion,
    "repeat": Repeat,
    "semi_join": SemiJoin,
    "top_k": TopK,
    "union": UnionAll,
    "view_rows": ViewRows,
    "window": Window,
}
# What operators are made of, and those that are told on another's page.
NO_OPERATORS = {
    "__init__", "base", "circuit", "contents", "layouts", "functions", "group_query", "kept_rows", "matching",
    "overlay", "probe", "range_order", "range_seeks", "registry", "state", "whole", "windows",
}  # fmt: skip
TOLD_ELSEWHERE = {"group_values": "aggregate", "partial_aggregate": "aggregate"}
PARTS = ("Class: ", "Code: ", "## Rule", "## State and work", "## NULL and errors", "## Example")
RESULTS = ("output", "partial", "state", "errors")


def outputs(name: str, blocks: Sequence[Block]) -> dict[str, Callable[[], str]]:
    """Return for each kind of result how it is made from the page's example."""
    example = Example.of(blocks)

    def run(kind: type[Operator] = PAGES[name]) -> Outcome:
        # A scan chooses its columns by a projection of its own, below that of the select list.
        return example.run(kind, last=kind is Project)

    return {
        "output": lambda: run().output,
        "partial": lambda: run(PartialAggregate).output,
        "state": lambda: run().state,
        "errors": lambda: run().errors,
    }


@pytest.mark.parametrize("name", PAGES)
def test_the_example_is_what_the_operator_does(name: str) -> None:
    blocks = list(blocks_of(FOLDER / f"{name}.md"))
    results = [b for b in blocks if b.language == "text" and b.words[0] in RESULTS]
    assert "output" in [b.words[0] for b in results]
    made = outputs(name, blocks)
    for block in results:
        assert block.text.strip() == made[block.words[0]](), str(block)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_tells_class_rule_state_errors_and_example(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text()
    assert [part for part in PARTS if part not in text] == []
    assert any(f"**{word}**" in text for word in ("linear", "bilinear", "non-linear"))


def test_each_operator_has_its_page() -> None:
    files = [*(SOURCE / "operators").glob("*.py"), *(p.parent for p in (SOURCE / "operators").glob("*/__init__.py"))]
    modules = {path.stem for path in files} - NO_OPERATORS - set(TOLD_ELSEWHERE)
    assert modules == set(PAGES) == {path.stem for path in FOLDER.glob("*.md")}
    assert all(f"operators/{name}.py" in (FOLDER / f"{page}.md").read_text() for name, page in TOLD_ELSEWHERE.items())
