"""docs/formats.md is true: each example on the page gives the bytes that stand there."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def test_every_example_holds():
    results = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert results.failed == 0
    assert results.attempted > 50


def test_every_part_of_a_grammar_is_explained():
    text = PAGE.read_text()
    defined = set(re.findall(r"^    ([a-z][a-z ]*?) +=", text, re.MULTILINE))
    assert {"key", "component", "payload", "fixed", "variable", "escaped", "nested", "content", "inner"} <= defined
    assert {"digest", "long key", "row", "fields", "log key", "piece", "header", "body"} <= defined
