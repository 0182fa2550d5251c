"""Runs scripts by seed; a failing one is shrunk, so that the message holds all that is needed to keep it."""

import pytest

from viewkeeper.testing.duck import DuckDb
from viewkeeper.testing.oracle import OracleFailure, run_oracle, smallest


def run(first, count):
    duckdb = DuckDb()
    try:
        compared = run_oracle(first, count, duckdb)
    except OracleFailure as failure:
        script = smallest(failure, duckdb)
        pytest.fail(f"{failure}\nThe smallest script that fails so, for tests/oracle/regressions:\n{script.to_json()}")
    assert compared > count
