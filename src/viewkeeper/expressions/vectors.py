"""Arrow arrays as numpy vectors, and back, without copies where the layout allows it; errors per row.

Kernels compute on whole columns: garbage under a NULL is computed along and masked at the end, which is far cheaper
than to leave it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from viewkeeper.zset.schema import SqlType, to_arrow_type

Operand: TypeAlias = Any
"""A column (``pa.Array``) or a constant (``pa.Scalar``); pyarrow has no types for mypy."""
Vector = NDArray[Any]
Mask = NDArray[np.bool_]

_NUMPY: dict[str, str] = {
    "TINYINT": "i1", "SMALLINT": "i2", "INT": "i4", "BIGINT": "i8", "FLOAT": "f4", "DOUBLE": "f8",
    "DATE": "i4", "TIMESTAMP": "i8", "TIMESTAMP_NTZ": "i8", "INTERVAL_DAY_TIME": "i8", "INTERVAL_YEAR_MONTH": "i4",
}  # fmt: skip
_LOW_64 = (1 << 64) - 1


@dataclass(frozen=True)
class Errors:
    """Which rows cannot be computed, and why.

    Args:
        rows: a mask over the batch.
        reasons: Spark's condition for each row of the batch, None where the row is fine.
    """

    rows: Mask
    reasons: NDArray[np.object_]

    def only(self, mask: Mask) -> Errors | None:
        """Return the errors of the rows in ``mask``."""
        return failing(self.rows & mask, self.reasons)


@dataclass(frozen=True)
class Evaluated:
    """A computed column: a failing row holds NULL and has its entry in ``errors``."""

    values: pa.Array
    errors: Errors | None = None


def failing(mask: Mask, reason: str | NDArray[np.object_]) -> Errors | None:
    """Return the errors of the rows in ``mask``, None where there are none."""
    if not mask.any():
        return None
    reasons = np.full(len(mask), None, dtype=object)
    reasons[mask] = reason if isinstance(reason, str) else reason[mask]
    return Errors(mask, reasons)


def merge(*several: Errors | None) -> Errors | None:
    """Return all errors; where a row fails twice the first counts."""
    present = [errors for errors in several if errors is not None]
    if len(present) < 2:
        return present[0] if present else None
    rows, reasons = present[0].rows.copy(), present[0].reasons.copy()
    for errors in present[1:]:
        new = errors.rows & ~rows
        reasons[new] = errors.reasons[new]
        rows |= new
    return Errors(rows, reasons)


def blank(values: pa.Array, mask: Mask) -> pa.Array:
    """Return ``values`` with NULL in the rows of ``mask``."""
    if values.type == pa.null() or not mask.any():
        return values
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values)


def validity(operand: Operand) -> Mask | np.bool_:
    """Return where ``operand`` is not NULL: a mask, or one truth value for all rows."""
    if isinstance(operand, pa.Scalar):
        return np.bool_(operand.is_valid)
    if operand.null_count == 0:
        return np.bool_(True)
    if operand.null_count == len(operand):
        return np.bool_(False)
    valid: Mask = operand.is_valid().to_numpy(zero_copy_only=False)
    return valid


def all_valid(*operands: Operand) -> Mask | np.bool_:
    """Return where no operand is NULL."""
    result: Mask | np.bool_ = np.bool_(True)
    for operand in operands:
        result = result & validity(operand)
    return result


def as_array(operand: Operand, length: int) -> pa.Array:
    """Return ``operand`` as a column of ``length`` rows."""
    if not isinstance(operand, pa.Scalar):
        return operand
    if not operand.is_valid:
        return pa.nulls(length, operand.type)
    return pa.repeat(operand, length)


def numbers(operand: Operand, sql_type: SqlType) -> Vector:
    """Return the numbers of a fixed-width operand; what stands under NULL is arbitrary.

    Args:
        operand: a column or a constant (then the result has no dimension and broadcasts).
        sql_type: its type; BOOLEAN gives bools, DATE days, timestamps microseconds.
    """
    if isinstance(operand, pa.Scalar):
        if sql_type.name == "BOOLEAN":
            return np.asarray(bool(operand.as_py()))
        if not operand.is_valid:
            return np.zeros((), dtype=_NUMPY[sql_type.name])
        return numbers(pa.array([operand], type=operand.type), sql_type)[0, ...]
    if sql_type.name == "BOOLEAN":
        return pc.fill_null(operand, False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    dtype = np.dtype(_NUMPY[sql_type.name])
    buffer = operand.buffers()[1]
    if buffer is None or len(operand) == 0:
        return np.zeros(len(operand), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=len(operand), offset=operand.offset * dtype.itemsize)


def column(values: Vector, sql_type: SqlType, valid: Mask | np.bool_, length: int) -> pa.Array:
    """Return numpy ``values`` as an Arrow column of a fixed-width type, NULL where not ``valid``."""
    if values.ndim == 0:
        values = np.broadcast_to(values, (length,))
    arrow_type = to_arrow_type(sql_type)
    if valid.ndim == 0:
        if not valid:
            return pa.nulls(length, arrow_type)
        bitmap = None
    else:
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    if sql_type.name == "BOOLEAN":
        data = pa.py_buffer(np.packbits(values, bitorder="little"))
    else:
        data = pa.py_buffer(np.ascontiguousarray(values, dtype=_NUMPY[sql_type.name]))
    return pa.Array.from_buffers(arrow_type, length, [bitmap, data])


def unscaled(operand: Operand) -> Vector:
    """Return the unscaled integers of a DECIMAL operand: int64 where all fit, Python integers otherwise."""
    if isinstance(operand, pa.Scalar):
        return unscaled(pa.array([operand], type=operand.type))[0, ...] if operand.is_valid else np.zeros((), np.int64)
    buffer = operand.buffers()[1]
    if buffer is None or len(operand) == 0:
        return np.zeros(len(operand), np.int64)
    halves = np.frombuffer(buffer, dtype="<i8", count=2 * len(operand), offset=operand.offset * 16).reshape(-1, 2)
    low, high = halves[:, 0], halves[:, 1]
    narrow = high == (low >> 63)
    if narrow.all():
        return low
    if operand.null_count:
        wide = ~narrow & operand.is_valid().to_numpy(zero_copy_only=False)
        if not wide.any():
            return np.where(narrow, low, 0)
    return (high.astype(object) << 64) + (low.view("<u8").astype(object))  # type: ignore[no-any-return]


def bound(vector: Vector) -> int:
    """Return the largest magnitude in ``vector`` as a Python integer."""
    if vector.size == 0:
        return 0
    return max(abs(int(vector.min())), abs(int(vector.max())))


def widen(vector: Vector) -> Vector:
    """Return ``vector`` as Python integers, which have no limit."""
    return vector if vector.dtype == object else vector.astype(object)


def decimal_column(values: Vector, sql_type: SqlType, valid: Mask | np.bool_, length: int) -> tuple[pa.Array, Mask]:
    """Return unscaled integers as a DECIMAL column, and the mask of valid rows whose value has too many digits."""
    if values.ndim == 0:
        values = np.broadcast_to(values, (length,))
    present = np.broadcast_to(valid, (length,))
    limit = 10**sql_type.precision
    if bound(values) < limit:
        too_large = np.zeros(length, dtype=bool)
    else:
        too_large = ((values >= limit) | (values <= -limit)).astype(bool) & present
    keep = present & ~too_large
    halves = np.empty((length, 2), dtype="<i8")
    if values.dtype == object:
        values = np.where(keep, values, 0)
        halves[:, 0] = (values & _LOW_64).astype("<u8").view("<i8")
        halves[:, 1] = (values >> 64).astype("<i8")
    else:
        halves[:, 0] = values
        halves[:, 1] = halves[:, 0] >> 63
    bitmap = None if keep.all() else pa.py_buffer(np.packbits(keep, bitorder="little"))
    array = pa.Array.from_buffers(to_arrow_type(sql_type), length, [bitmap, pa.py_buffer(halves)])
    return array, too_large


def divide_half_up(values: Vector, divisor: Any) -> Vector:
    """Return ``values / divisor`` rounded half away from zero, as ``BigDecimal.HALF_UP`` does; ``divisor`` > 0."""
    magnitude = abs(values)
    quotient = magnitude // divisor
    quotient = quotient + ((magnitude - quotient * divisor) * 2 >= divisor)
    return np.asarray(np.where(values < 0, -quotient, quotient))


def rescale(values: Vector, scale: int, target: int) -> Vector:
    """Return unscaled integers of ``scale`` at scale ``target``, rounded half up."""
    if target == scale:
        return values
    if target > scale:
        factor = 10 ** (target - scale)
        if values.dtype != object and bound(values) * factor < 1 << 63:
            return np.asarray(values * factor)
        return np.asarray(widen(values) * factor)
    divisor = 10 ** (scale - target)
    if values.dtype != object and divisor < 1 << 62 and bound(values) < 1 << 62:
        return divide_half_up(values, divisor)
    return divide_half_up(widen(values), divisor)
