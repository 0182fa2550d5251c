"""Three-valued logic and the functions that choose among arguments: a choice not taken is not computed.

All arguments arrive computed for the whole batch, with their errors; what Spark would not have computed for a row has
its error dropped there. AND and OR go from left to right: ``false AND error`` is false, ``error AND false`` an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.comparison import comparable, compared
from viewkeeper.expressions.errors import NotPortable, mismatch
from viewkeeper.expressions.function import kernel, lazy, make, rule
from viewkeeper.expressions.implicit import accept, as_condition, check_count, types_of, unify
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import (
    Errors,
    Evaluated,
    Mask,
    Operand,
    as_array,
    blank,
    column,
    merge,
    numbers,
    validity,
)
from viewkeeper.zset.schema import BOOLEAN, DOUBLE, FLOAT, INT, STRING, VOID, to_arrow_type

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_TRUE, _FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)


@rule("and", "or")
def _and_or(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    if all(a.type == STRING for a in arguments):
        raise mismatch(function, types_of(arguments), "it takes BOOLEAN")
    return make(function, [accept(function, a, session, BOOLEAN) for a in arguments], BOOLEAN)


@rule("not")
def _not_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    return make(function, [accept(function, arguments[0], session, BOOLEAN)], BOOLEAN)


@rule("is_null", "is_not_null")
def _is_null_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    return make(function, arguments, BOOLEAN, False)


@rule("is_true", "is_false")
def _is_true(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    pair = comparable(function, arguments[0], _TRUE if function == "is_true" else _FALSE, session)
    return make("eq_null_safe", pair, BOOLEAN, False)


@rule("in")
def _in_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2)
    unified = unify(function, arguments, session)
    if unified[0].type.is_nested or unified[0].type == VOID:
        raise NotPortable(function, "comparison of nested types")
    return make(function, unified, BOOLEAN)


@rule("case", "if")
def _case_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2 if function == "case" else 3, None if function == "case" else 3)
    arguments = arguments if len(arguments) % 2 else (*arguments, Literal(None, VOID))
    conditions = [as_condition(function, a) for a in arguments[:-1:2]]
    values = unify(function, [*arguments[1::2], arguments[-1]], session)
    always_taken = conditions.index(_TRUE) + 1 if _TRUE in conditions and function == "case" else len(values)
    nullable = any(value.nullable for value in values[:always_taken])
    pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return make("case", [*pairs, values[-1]], values[0].type, nullable)


@rule("coalesce", "nvl", "ifnull")
def _coalesce_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, *((1,) if function == "coalesce" else (2, 2)))
    unified = unify(function, arguments, session)
    if len(unified) == 1:
        return unified[0]
    return make("coalesce", unified, unified[0].type, all(a.nullable for a in unified))


@rule("nullif")
def _nullif(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    equal = make("eq", comparable(function, arguments[0], arguments[1], session), BOOLEAN)
    return make("case", [equal, Literal(None, arguments[0].type), arguments[0]], arguments[0].type, True)


@rule("nullifzero", "zeroifnull")
def _zero(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if not arguments[0].type.is_numeric:
        raise NotPortable(function, f"{arguments[0].type} argument")
    form = _nullif if function == "nullifzero" else _coalesce_rule
    return form(function, (*arguments, Literal(0, INT)), session, options)


@rule("nvl2")
def _nvl2(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 3, 3)
    present = make("is_not_null", arguments[:1], BOOLEAN, False)
    return _case_rule("if", (present, *arguments[1:]), session, options)


@rule("greatest", "least")
def _greatest_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2)
    unified = unify(function, arguments, session, strings=False)
    if unified[0].type.is_nested or unified[0].type.name in ("VOID", "BINARY"):
        raise NotPortable(function, f"order of {unified[0].type}")
    return make(function, unified, unified[0].type, all(a.nullable for a in unified))


@rule("isnan")
def _isnan_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    return make(function, [accept(function, arguments[0], session, DOUBLE, FLOAT)], BOOLEAN, False)


@rule("nanvl")
def _nanvl_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    both = [accept(function, a, session, DOUBLE, FLOAT) for a in arguments]
    target = FLOAT if all(a.type == FLOAT for a in both) else DOUBLE
    return make(function, [cast(a, target, session) for a in both], target)


def _truth(values: pa.Array) -> tuple[Mask, Mask]:
    """Return where ``values`` are true and where they are false."""
    true = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return true, ~true & np.broadcast_to(validity(values), true.shape)


@lazy("and", "or")
def _connect(call: Call, results: Sequence[Evaluated], length: int) -> Evaluated:
    kleene = pc.and_kleene if call.function == "and" else pc.or_kleene
    left, right = results
    values = kleene(left.values, right.values)
    if left.errors is None and right.errors is None:
        return Evaluated(values)
    errors = left.errors
    if right.errors is not None:
        true, false = _truth(left.values)
        errors = merge(errors, right.errors.only(~(false if call.function == "and" else true)))
    return Evaluated(values if errors is None else blank(values, errors.rows), errors)


@kernel("not")
def _not(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(as_array(pc.invert(operands[0]), length))


@kernel("is_null", "is_not_null", strict="all")
def _is_null(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    operand = as_array(operands[0], length)
    return Evaluated(pc.is_null(operand) if call.function == "is_null" else pc.is_valid(operand))


@lazy("in")
def _in(call: Call, results: Sequence[Evaluated], length: int) -> Evaluated:
    value, candidates = results[0], results[1:]
    if call.arguments[0].type.name in ("STRING", "BIGINT", "INT", "DATE") and all(
        isinstance(a, Literal) for a in call.arguments[1:]
    ):
        return _in_constants(call, value)
    true = np.zeros(length, dtype=bool)
    unknown = np.zeros(length, dtype=bool)
    present = np.broadcast_to(validity(value.values), (length,))
    errors = value.errors
    for candidate in candidates:
        if candidate.errors is not None:
            errors = merge(errors, candidate.errors.only(present & ~true))
        equal, different = _truth(compared("eq", call, [value.values, candidate.values], length))
        unknown |= ~equal & ~different
        failed = np.zeros(length, dtype=bool) if errors is None else errors.rows
        true |= equal & ~failed
    values = column(true, BOOLEAN, true | ~unknown & present, length)
    return Evaluated(values if errors is None else blank(values, errors.rows), errors)


def _in_constants(call: Call, value: Evaluated) -> Evaluated:
    constants = [a.value for a in call.arguments[1:] if isinstance(a, Literal)]
    wanted = pa.array([c for c in constants if c is not None], to_arrow_type(call.arguments[0].type))
    found = pc.is_in(value.values, value_set=wanted)
    keep = value.values.is_valid()
    if None in constants:
        keep = pc.and_(keep, found)
    return Evaluated(pc.if_else(keep, found, pa.scalar(None, pa.bool_())), value.errors)


@lazy("case")
def _case(call: Call, results: Sequence[Evaluated], length: int) -> Evaluated:
    open_rows = np.ones(length, dtype=bool)
    errors: Errors | None = None
    taken: list[pa.Array] = []
    for condition, value in zip(results[:-1:2], results[1::2], strict=True):
        if condition.errors is not None:
            errors = merge(errors, condition.errors.only(open_rows))
            open_rows &= ~condition.errors.rows
        true, _ = _truth(condition.values)
        mask = true & open_rows
        if value.errors is not None:
            errors = merge(errors, value.errors.only(mask))
        taken.append(pa.array(mask))
        open_rows &= ~mask
    if results[-1].errors is not None:
        errors = merge(errors, results[-1].errors.only(open_rows))
    values = results[-1].values
    for mask_array, value in zip(reversed(taken), reversed(results[1::2]), strict=True):
        values = pc.if_else(mask_array, value.values, values)
    return Evaluated(values if errors is None else blank(values, errors.rows), errors)


@lazy("coalesce")
def _coalesce(call: Call, results: Sequence[Evaluated], length: int) -> Evaluated:
    values = results[0].values
    errors = results[0].errors
    for result in results[1:]:
        if result.errors is not None:
            decided = np.broadcast_to(validity(values), (length,)).copy()
            if errors is not None:
                decided |= errors.rows
            errors = merge(errors, result.errors.only(~decided))
        if values.null_count:
            values = pc.if_else(values.is_valid(), values, result.values)
    return Evaluated(values if errors is None else blank(values, errors.rows), errors)


@lazy("nanvl")
def _nanvl(call: Call, results: Sequence[Evaluated], length: int) -> Evaluated:
    left, right = results
    nan = np.isnan(numbers(left.values, call.type)) & validity(left.values)
    errors = merge(left.errors, None if right.errors is None else right.errors.only(nan))
    values = pc.if_else(pa.array(nan), right.values, left.values)
    return Evaluated(values if errors is None else blank(values, errors.rows), errors)


@kernel("isnan", strict="all")
def _isnan(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    nan = np.isnan(numbers(operands[0], call.arguments[0].type)) & validity(operands[0])
    return Evaluated(column(nan, BOOLEAN, np.bool_(True), length))


@kernel("greatest", "least", strict="all")
def _extreme(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    better = "gt" if call.function == "greatest" else "lt"
    result = as_array(operands[0], length)
    for operand in operands[1:]:
        candidate = as_array(operand, length)
        wins = pc.fill_null(compared(better, call, [candidate, result], length), False)
        wins = pc.or_(wins, pc.and_(pc.is_null(result), pc.is_valid(candidate)))
        result = pc.if_else(wins, candidate, result)
    return Evaluated(result)
