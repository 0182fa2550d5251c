"""Evaluation without Spark: errors per row, branches not taken, speed, and what the planner asks."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pyarrow as pa
import pytest

from viewkeeper.errors import SqlError
from viewkeeper.expressions import literals
from viewkeeper.expressions.coercion import common_type, decimal_result
from viewkeeper.expressions.evaluate import can_raise, evaluate
from viewkeeper.expressions.registry import (
    NONDETERMINISTIC,
    NotPortable,
    cast,
    is_deterministic,
    kernel_names,
    portable_functions,
    resolve,
)
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Session, SparkExpression
from viewkeeper.zset import schema as s

_SESSION = Session()
_A, _B, _S = ColumnRef(0, s.INT), ColumnRef(1, s.INT), ColumnRef(2, s.STRING)
_BATCH = pa.record_batch(
    [
        pa.array([1, 0, None, 4, 2**31 - 1], pa.int32()),
        pa.array([0, 0, 0, 2, 1], pa.int32()),
        pa.array(["1", "x", None, "", "é"]),
    ],
    names=["a", "b", "s"],
)


def _call(function: str, *arguments: Expression) -> Expression:
    return resolve(function, arguments, _SESSION)


def _run(expression: Expression) -> tuple[list[object], list[object]]:
    outcome = evaluate(expression, _BATCH, _SESSION)
    reasons: list[object] = [None] * 5 if outcome.errors is None else outcome.errors.reasons.tolist()
    return outcome.values.to_pylist(), reasons


def test_column_is_returned_as_it_is() -> None:
    """A bare column costs nothing."""
    assert evaluate(_A, _BATCH, _SESSION).values.buffers()[1].address == _BATCH.column(0).buffers()[1].address


def test_division_by_zero_is_an_error_of_its_row() -> None:
    """Other rows go on; a NULL dividend makes no error."""
    values, reasons = _run(_call("divide", _A, _B))
    assert values == [None, None, None, 2.0, 2147483647.0]
    assert reasons == ["DIVIDE_BY_ZERO", "DIVIDE_BY_ZERO", None, None, None]


def test_overflow_is_an_error_of_its_row() -> None:
    """INT has 32 bits."""
    values, reasons = _run(_call("add", _A, literals.number("1")))
    assert values == [2, 1, None, 5, None]
    assert reasons == [None, None, None, None, "ARITHMETIC_OVERFLOW"]


def test_branch_not_taken_does_not_fail() -> None:
    """CASE looks at its conditions in order."""
    guarded = _call("case", _call("eq", _B, literals.number("0")), literals.number("0"), _call("div", _A, _B))
    values, reasons = _run(guarded)
    assert values == [0, 0, 0, 2, 2147483647]
    assert reasons == [None] * 5


def test_and_goes_from_left_to_right() -> None:
    """``false AND error`` is false, ``error AND false`` an error."""
    zero = _call("eq", _B, literals.number("0"))
    quotient = _call("gt", _call("divide", _A, _B), literals.number("0"))
    assert _run(_call("and", _call("not", zero), quotient)) == ([False, False, False, True, True], [None] * 5)
    assert _run(_call("and", quotient, _call("not", zero)))[1][:2] == ["DIVIDE_BY_ZERO"] * 2
    assert _run(_call("or", zero, quotient)) == ([True] * 5, [None] * 5)


def test_right_side_behind_null_does_not_fail() -> None:
    """Spark leaves out the right side where the left is NULL."""
    reasons = _run(_call("add", _A, _call("div", literals.number("1"), _B)))[1]
    assert reasons == ["DIVIDE_BY_ZERO", "DIVIDE_BY_ZERO", None, None, None]


def test_cast_names_its_error() -> None:
    """Texts that are no number."""
    values, reasons = _run(cast(_S, s.INT, _SESSION))
    assert values == [1, None, None, None, None]
    assert reasons == [None, "CAST_INVALID_INPUT", None, "CAST_INVALID_INPUT", "CAST_INVALID_INPUT"]
    assert _run(cast(_S, s.INT, _SESSION, safe=True)) == ([1, None, None, None, None], [None] * 5)


def test_constants_fold_and_fail_everywhere() -> None:
    """A constant that cannot be computed fails each row."""
    values, reasons = _run(_call("divide", literals.number("1"), literals.number("0")))
    assert values == [None] * 5
    assert reasons == ["DIVIDE_BY_ZERO"] * 5


def test_empty_batch() -> None:
    """No rows, no errors."""
    outcome = evaluate(_call("divide", _A, _B), _BATCH.slice(0, 0), _SESSION)
    assert len(outcome.values) == 0
    assert outcome.errors is None


def test_slices_are_read_at_their_offset() -> None:
    """Arrow slices share buffers with their parent."""
    outcome = evaluate(_call("add", _A, _B), _BATCH.slice(3, 1), _SESSION)
    assert outcome.values.to_pylist() == [6]


def test_can_raise() -> None:
    """Comparisons never fail, their arguments may."""
    assert not can_raise(_call("lt", _A, _B))
    assert can_raise(_call("lt", _call("add", _A, _B), _B))
    assert can_raise(cast(_S, s.INT, _SESSION))
    assert not can_raise(cast(_A, s.BIGINT, _SESSION))
    assert can_raise(SparkExpression("f(`_c0`)", (0,), s.INT))


def test_spark_expression_is_refused() -> None:
    """Only Spark evaluates it."""
    with pytest.raises(NotPortable):
        evaluate(SparkExpression("f(`_c0`)", (0,), s.INT), _BATCH, _SESSION)


def test_wrong_types_are_named() -> None:
    """The message shows function and types."""
    with pytest.raises(SqlError, match=r"add\(BOOLEAN, INT\)") as caught:
        _call("add", Literal(True, s.BOOLEAN), _A)
    assert caught.value.code == "DATATYPE_MISMATCH"


@pytest.mark.parametrize("function", ["hash", "initcap", "exp", "date_format", "nosuchfunction", "add_temporal"])
def test_not_portable(function: str) -> None:
    """What is not proven goes to Spark; the signal survives pickling."""
    with pytest.raises(NotPortable) as caught:
        resolve(function, [_S, _S], _SESSION)
    assert pickle.loads(pickle.dumps(caught.value)).function == function


def test_nondeterministic_functions_have_a_remedy() -> None:
    """None of them is portable, each names what to use instead."""
    assert all(NONDETERMINISTIC.values())
    assert not set(NONDETERMINISTIC) & set(portable_functions())
    assert not is_deterministic("UUID", 0)
    assert not is_deterministic("unix_timestamp", 0)
    assert is_deterministic("unix_timestamp", 1)
    assert "cast" in kernel_names()


def test_types() -> None:
    """Common types and decimal results."""
    assert common_type([s.INT, s.STRING], _SESSION) == s.BIGINT
    assert common_type([s.INT, s.STRING], Session(ansi=False)) is None
    assert common_type([s.FLOAT, s.BIGINT], _SESSION) == s.DOUBLE
    assert common_type([s.FLOAT, s.BIGINT], Session(ansi=False)) == s.FLOAT
    assert common_type([s.array(s.INT), s.array(s.DOUBLE)], _SESSION) == s.array(s.DOUBLE)
    assert common_type([s.DATE, s.BOOLEAN], _SESSION) is None
    assert decimal_result("divide", s.decimal(12, 2), s.decimal(10, 0)) == s.decimal(23, 13)


@pytest.mark.parametrize(
    ("text", "sql_type", "value"),
    [
        ("2147483648", s.BIGINT, 2147483648), ("7Y", s.TINYINT, 7), ("1.50", s.decimal(3, 2), None),
        ("9223372036854775808", s.decimal(19, 0), None), ("1e2", s.DOUBLE, 100.0), ("1.5F", s.FLOAT, 1.5),
        ("0.001", s.decimal(3, 3), None), ("1BD", s.decimal(1, 0), None), ("12e2BD", s.decimal(4, 0), None),
    ],
)  # fmt: skip
def test_number_literals(text: str, sql_type: s.SqlType, value: object) -> None:
    """Types follow the text."""
    literal = literals.number(text)
    assert literal.type == sql_type
    assert value is None or literal.value == value


def test_temporal_literals() -> None:
    """Zones, intervals, bytes."""
    assert literals.date("1970-01-02").value == 1
    assert literals.timestamp("1970-01-01 00:00:00", Session("America/New_York")).value == 5 * 3600 * 10**6
    assert literals.timestamp("1970-01-01 00:00:00+01:00", _SESSION).value == -3600 * 10**6
    assert literals.timestamp_ntz("1970-01-01 00:00:01").value == 10**6
    assert literals.interval("1-2", "YEAR TO MONTH").value == 14
    assert literals.interval("1 02:03:04.5", "DAY TO SECOND", negative=True).value == -93784500000
    assert literals.interval("1 2", "DAY TO HOUR").value == 26 * 3600 * 10**6
    assert literals.interval("-100:59", "HOUR TO MINUTE").value == -(100 * 60 + 59) * 60 * 10**6
    assert literals.interval("+90:00.5", "MINUTE TO SECOND").value == 5400500000
    for text, unit in (
        ("1 24", "DAY TO HOUR"), ("1 2:60", "DAY TO MINUTE"), ("1:2", "DAY TO HOUR"), ("1 2:3", "DAY TO HOUR"),
        ("1:60", "MINUTE TO SECOND"), ("1:2:3.0", "HOUR TO MINUTE"), ("1 2", "HOUR TO DAY"), ("1 2", "DAY TO DAY"),
        ("1 002", "DAY TO HOUR"), ("1-12", "YEAR TO MONTH"),
    ):  # fmt: skip
        with pytest.raises(SqlError, match="INVALID_LITERAL"):
            literals.interval(text, unit)
    assert literals.binary("0aFF").value == b"\x0a\xff"
    for wrong in (lambda: literals.date("x"), lambda: literals.number("1x"), lambda: literals.interval("1", "EON")):
        with pytest.raises(SqlError, match="INVALID_LITERAL"):
            wrong()


def test_a_million_rows_take_milliseconds() -> None:
    """Sums and filters are vectorised: generous bounds, ten times what they take."""
    numbers = np.arange(1_000_000)
    batch = pa.record_batch([numbers, numbers, pa.array(np.array(["x", "yy"])[numbers % 2])], names=["a", "b", "s"])
    a, b, text = ColumnRef(0, s.BIGINT), ColumnRef(1, s.BIGINT), ColumnRef(2, s.STRING)
    total = _call("add", a, b)
    chosen = _call("and", _call("gt", a, literals.number("3")), _call("eq", text, Literal("x", s.STRING)))
    for expression in (total, chosen):
        times = []
        for _ in range(5):
            started = time.process_time()
            outcome = evaluate(expression, batch, _SESSION)
            times.append(time.process_time() - started)
        assert min(times) < 0.1
        assert outcome.errors is None
