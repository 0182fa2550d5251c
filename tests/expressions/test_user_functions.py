"""Calls of users' functions on columns: values both ways, failing rows, results that do not fit, purity."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from viewkeeper.errors import FunctionUnavailable
from viewkeeper.expressions.evaluate import can_raise, evaluate
from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, Session
from viewkeeper.expressions.user_calls import call_of, capture, captured, is_foldable
from viewkeeper.expressions.user_functions import Takes, UserFunction, loaded, made, source_digest
from viewkeeper.runtime import pickled_function
from viewkeeper.statements.functions import parse_type_text
from viewkeeper.zset.schema import to_arrow_type


def function(code: Callable[..., Any], return_type: str, takes: Takes = "values") -> UserFunction:
    return made("f", code, parse_type_text(return_type), takes, True, None, pickled_function(code))


def column(values: list[Any], sql_type: str) -> pa.RecordBatch:
    arrow = to_arrow_type(parse_type_text(sql_type))
    return pa.RecordBatch.from_arrays([pa.array(values, arrow)], names=["a"])


def called(
    code: Callable[..., Any], sql_type: str, return_type: str, values: list[Any], takes: Takes = "values"
) -> Any:
    """Return the results over one column, and the reasons of failing rows by their positions."""
    call = call_of(function(code, return_type, takes), [ColumnRef(0, parse_type_text(sql_type))])
    found = evaluate(call, column(values, sql_type), Session())
    failed = {} if found.errors is None else {i: r for i, r in enumerate(found.errors.reasons) if r is not None}
    assert found.values.type == to_arrow_type(parse_type_text(return_type))
    return found.values.to_pylist(), failed


VALUES = {
    "BOOLEAN": True, "TINYINT": -128, "BIGINT": 1 << 62, "FLOAT": 0.5, "DOUBLE": -0.0, "DECIMAL(38,2)": Decimal("9.99"),
    "STRING": "é", "BINARY": b"\0x", "DATE": datetime.date(1, 1, 1), "TIMESTAMP_NTZ": datetime.datetime(2024, 3, 1),
    "TIMESTAMP": datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC), "ARRAY<INT>": [1, None],
    "MAP<STRING,INT>": {"a": 1, "b": None}, "STRUCT<a: INT, b: ARRAY<STRING>>": {"a": 1, "b": ["x", None]},
}  # fmt: skip


@pytest.mark.parametrize("sql_type", VALUES)
def test_values_are_those_that_get_returns_and_come_back(sql_type: str) -> None:
    given = VALUES[sql_type]

    def same(value: Any) -> Any:
        assert value is None or (type(value), value) == (type(given), given), repr(value)
        return value

    arrow_value = list(given.items()) if sql_type.startswith("MAP") else given
    results, failed = called(same, sql_type, sql_type, [arrow_value, None])
    assert failed == {}
    assert results == [arrow_value, None]


def test_a_row_for_which_it_raises_fails_alone() -> None:
    results, failed = called(lambda v: 10 // v, "INT", "INT", [1, 0, 5])
    assert results == [10, None, 2]
    assert failed == {1: "FUNCTION_RAISED: f() raised ZeroDivisionError"}


@pytest.mark.parametrize(
    ("return_type", "result", "code"),
    [
        ("INT", "1", "str (WRONG_TYPE)"),
        ("INT", True, "bool (WRONG_TYPE)"),
        ("INT", 1.0, "float (WRONG_TYPE)"),
        ("TINYINT", 128, "int (VALUE_OUT_OF_RANGE)"),
        ("STRING", 1, "int (WRONG_TYPE)"),
        ("STRING", "\ud800", "str (WRONG_TYPE)"),
        ("DECIMAL(4,2)", Decimal("100"), "Decimal (VALUE_OUT_OF_RANGE)"),
        ("DECIMAL(4,2)", Decimal("NaN"), "Decimal (WRONG_TYPE)"),
        ("DATE", datetime.datetime(2024, 1, 1), "datetime (WRONG_TYPE)"),
        ("ARRAY<INT>", [1, "x"], "list (WRONG_TYPE)"),
    ],
)
def test_a_result_that_does_not_fit_fails_the_row(return_type: str, result: Any, code: str) -> None:
    results, failed = called(lambda v: result if v else None, "INT", return_type, [0, 1])
    assert results == [None, None]
    assert list(failed) == [1]
    assert failed[1].startswith(f"FUNCTION_RESULT_UNFIT: f() returned {code}, which does not fit ")


def test_decimals_are_rounded_half_up() -> None:
    results, failed = called(lambda v: v / 8, "DECIMAL(10,2)", "DECIMAL(10,2)", [Decimal("0.04"), Decimal("-0.04")])
    assert (results, failed) == ([Decimal("0.01"), Decimal("-0.01")], {})


@pytest.mark.parametrize(("takes", "module"), [("arrow", pa), ("pandas", None)])
def test_columns_at_once(takes: Takes, module: Any) -> None:
    code = (lambda v: pc.multiply(v, 2)) if takes == "arrow" else (lambda v: v * 2)
    assert called(code, "INT", "INT", [1, None, 3], takes) == ([2, None, 6], {})


@pytest.mark.parametrize("takes", ["arrow", "pandas"])
def test_failing_rows_of_columns_are_found_by_halving(takes: Takes) -> None:
    def strict(values: Any) -> Any:
        if 7 in values.to_pylist() if takes == "arrow" else (values == 7).any():
            raise KeyError("seven")
        return values

    results, failed = called(strict, "INT", "INT", [*range(12), None, 7], takes)
    assert results == [None if v == 7 else v for v in [*range(12), None, 7]]
    assert failed == dict.fromkeys((7, 13), "FUNCTION_RAISED: f() raised KeyError")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v: v.slice(1),
        lambda v: 1,
        lambda v: pc.cast(v, pa.string()),
        lambda v: None,
        lambda v: pc.multiply(v, 99),
    ],
)
def test_columns_that_do_not_fit_fail_their_rows(wrong: Callable[..., Any]) -> None:
    results, failed = called(wrong, "INT", "TINYINT", [2, 3], "arrow")
    assert results == [None, None]
    assert [reason.partition(":")[0] for reason in failed.values()] == ["FUNCTION_RESULT_UNFIT"] * 2


@pytest.mark.parametrize("others", [[], [None], [7, None, 8], [7]])
def test_what_pandas_gives_for_a_row_does_not_depend_on_the_rows_beside_it(others: list[Any]) -> None:
    results, failed = called(lambda v: v.astype(str), "INT", "STRING", [5, *others], "pandas")
    assert (results[0], failed) == ("5", {})


def test_arguments_that_fail_are_not_passed() -> None:
    seen: list[Any] = []
    kept = made("f", seen.append, parse_type_text("INT"), "values", True, None, b"")
    a = ColumnRef(0, parse_type_text("INT"))
    call = call_of(kept, [resolve("integral_divide", [Literal(6, a.type), a], Session())])
    with pytest.raises(FunctionUnavailable) as caught:
        evaluate(call, column([1, 0], "INT"), Session())
    assert caught.value.code == "FUNCTION_NOT_LOADABLE"

    def is_known(v: Any) -> int:
        if v is None:
            raise AssertionError("a failing argument was passed")
        return int(v)

    call = Call(call.function, call.arguments, call.type, True, (("calls", (function(is_known, "INT"),)),))
    found = evaluate(call, column([1, 0, 3], "INT"), Session())
    assert found.values.to_pylist() == [6, None, 2]
    assert found.errors is not None
    assert found.errors.reasons.tolist() == [None, "DIVIDE_BY_ZERO", None]


def test_a_branch_that_is_not_taken_does_not_fail() -> None:
    v = ColumnRef(0, parse_type_text("INT"))
    call: Expression = call_of(function(lambda x: 10 // x, "INT"), [v])
    found = evaluate(resolve("case", [resolve("ne", [v, Literal(0, v.type)], Session()), call], Session()),
                     column([0, 5], "INT"), Session())  # fmt: skip
    assert (found.values.to_pylist(), found.errors) == ([None, 2], None)


def test_captured_failures_travel_through_a_column() -> None:
    v = ColumnRef(0, parse_type_text("INT"))
    kept = evaluate(capture(call_of(function(lambda x: 10 // x, "INT"), [v])), column([0, 5, None], "INT"), Session())
    assert kept.errors is not None or kept.values.null_count
    batch = pa.RecordBatch.from_arrays([kept.values], names=["c"])
    again = evaluate(captured(ColumnRef(0, capture(v).type)), batch, Session())
    assert again.values.to_pylist() == [None, 2, None]
    assert again.errors is not None
    assert again.errors.rows.tolist() == [True, False, True]


def test_calls_can_fail_and_are_not_computed_while_planning() -> None:
    call = call_of(function(lambda: 1, "INT"), [])
    assert can_raise(call)
    assert not is_foldable(call)


def test_what_is_missing_here_is_no_fault_of_the_row() -> None:
    def needs(v: Any) -> int:
        import a_module_that_is_not_there

        return int(a_module_that_is_not_there.f(v))

    for takes in ("values", "arrow", "pandas"):
        with pytest.raises(FunctionUnavailable, match="a_module_that_is_not_there") as caught:
            called(needs, "INT", "INT", [1], takes)  # type: ignore[arg-type]
        assert caught.value.code == "FUNCTION_NOT_LOADABLE"


def test_code_of_another_python_is_refused() -> None:
    from dataclasses import replace

    with pytest.raises(FunctionUnavailable, match=r"kept by Python 2\.7") as caught:
        loaded(replace(function(lambda v: v, "INT"), python="2.7", digest="other"))
    assert caught.value.code == "FUNCTION_NOT_LOADABLE"


def test_a_function_may_look_at_what_it_has_caught() -> None:
    def caught(v: int) -> str:
        import traceback

        try:
            return str(10 // v)
        except ZeroDivisionError:
            return traceback.format_exc()

    (right, told), failed = called(caught, "INT", "STRING", [5, 0])
    assert not failed
    assert right == "2"
    assert told.startswith("Traceback")
    assert "ZeroDivisionError" in told.splitlines()[-1]


class Panic(BaseException):
    """What functions in Rust raise, which is no Exception."""


@pytest.mark.parametrize("takes", ["values", "arrow"])
def test_a_panic_is_the_fault_of_its_row_and_an_end_that_is_asked_for_is_not(takes: Takes) -> None:
    def raising(error: type[BaseException]) -> Callable[..., Any]:
        def code(_: Any) -> Any:
            raise error

        return code

    assert called(raising(Panic), "INT", "INT", [1], takes) == ([None], {0: "FUNCTION_RAISED: f() raised Panic"})
    for asked in (KeyboardInterrupt, SystemExit):
        with pytest.raises(asked):
            called(raising(asked), "INT", "INT", [1], takes)


def test_equal_code_is_one_function_wherever_it_stands() -> None:
    one, other = function(lambda v: v + 1, "INT"), function(lambda v: v + 1, "INT")
    assert one == other
    assert one != function(lambda v: v + 2, "INT")
    assert one != function(lambda v: v + 1, "BIGINT")
    assert hash(one) == hash(other)


def test_comments_and_layout_do_not_change_a_source() -> None:
    def score(v: int) -> int:
        """Say something."""
        return v + 1  # said

    plain = source_digest(score)

    def score(v: int) -> int:  # type: ignore[no-redef]
        return (v
            + 1)  # fmt: skip

    assert source_digest(score) == plain
