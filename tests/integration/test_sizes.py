"""Memory by size, with a tenth of the rows of `make sim`."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.testing.sizes import follow_large_transaction, growth_of_statements


@pytest.mark.spark
@pytest.mark.slow
def test_a_transaction_of_a_million_rows_is_followed_within_the_bound(tmp_path: Path) -> None:
    # Java, its heap of half a gigabyte at least, and two workers are there whatever is done.
    follow_large_transaction(tmp_path, 1_000_000, memory_bytes=1 << 30).check()


@pytest.mark.slow
def test_statements_over_a_whole_table_hold_no_rows(tmp_path: Path) -> None:
    assert growth_of_statements(tmp_path, 150_000, 400_000) > 0
