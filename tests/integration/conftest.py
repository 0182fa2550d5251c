"""What the kill tests share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.killing import Report


@pytest.fixture
def kills(record_property: Callable[[str, object], None]) -> Report:
    """Report kills; the terminal summary adds them up."""
    return lambda name, count: record_property("kills", (name, count))
