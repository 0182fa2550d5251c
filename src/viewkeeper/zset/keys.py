"""Keys as bytes that sort as Spark sorts the values, NULL first; the grammar with examples is in docs/formats.md.

A key is its components one after the other. A component is the byte 00 for NULL, or 01 and a payload; all payloads of a
type have one width or end themselves, so no key with other components is a prefix of it. Two forms keep keys within
LMDB's 511 bytes, equality stays exact in both:

- a STRING, BINARY, ARRAY or STRUCT of more than 128 bytes keeps 128 and a 128-bit hash of itself (*truncated*): such
  components sort among themselves by the hash only, so a reader who wants their order sorts the run by full values;
- a key that is still too long keeps its first components and a 128-bit hash of the others after the byte FF; it sorts
  behind all unhashed keys with the same first components.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import InputError
from viewkeeper.zset.buffers import float_bits, null_mask, one_array, raw_values
from viewkeeper.zset.schema import SqlType
from viewkeeper.zset.values import to_raw, to_raw_list

MAX_KEY_BYTES = 511
MAX_COMPONENT_BYTES = 128
_HASH_BYTES = 16
_NULL = b"\x00"
_VALUE = b"\x01"
_END = b"\x00\x00"
_TRUNCATED = b"\x00\x01"
_HASHED_REST = b"\xff"
_VARIABLE_BYTES_MAX = 2 * MAX_COMPONENT_BYTES + 2 + _HASH_BYTES
_NOTHING = pa.scalar(b"", pa.large_binary())
_SIGN = 1 << 63
_DECIMAL_SIGN = 1 << 127

_WIDTHS = {
    "BOOLEAN": 1,
    "TINYINT": 1,
    "SMALLINT": 2,
    "INT": 4,
    "BIGINT": 8,
    "FLOAT": 4,
    "DOUBLE": 8,
    "DATE": 4,
    "TIMESTAMP": 8,
    "TIMESTAMP_NTZ": 8,
    "INTERVAL_DAY_TIME": 8,
    "INTERVAL_YEAR_MONTH": 4,
    "DECIMAL": 16,
    "VOID": 0,
}

Encode = Callable[[Any], bytes]
_STRAIGHT: dict[str, Encode] = {"STRING": str.encode, "BINARY": bytes}


# The key of the one row of a table whose key has no columns (LMDB keys are never empty).
SINGLE_KEY = b"\x00"


class KeyCodec:
    """Keys of rows with columns of ``types``.

    Args:
        types: the key's columns; no MAP may occur in them.
        reserve: bytes that the caller will put before or behind each key, 0 to 200.

    Raises:
        InputError: MAP_KEY, for a key column that holds a MAP.

    Example:
        >>> KeyCodec((SqlType("BIGINT"),)).encode_values((1,)).hex(" ")
        '01 80 00 00 00 00 00 00 01'
    """

    def __init__(self, types: Sequence[SqlType], reserve: int = 0) -> None:
        self.types = tuple(types)
        for number, sql_type in enumerate(self.types, 1):
            if sql_type.contains_map:
                raise InputError("MAP_KEY", f"Key column {number} is a {sql_type}: a MAP has no order; choose others.")
        if not 0 <= reserve <= 200:
            raise ValueError(f"reserve must be 0 to 200, not {reserve}")
        self.reserve = reserve
        self.max_bytes = MAX_KEY_BYTES - reserve
        self._widths = [_WIDTHS.get(sql_type.name) for sql_type in self.types]
        self._encoders = [value_encoder(sql_type) for sql_type in self.types]
        longest = sum(1 + (_VARIABLE_BYTES_MAX if w is None else w) for w in self._widths)
        self.always_fits = longest <= self.max_bytes
        # Where a longer key begins with these columns, they are among those that it keeps.
        self.always_kept = longest <= self._kept_bytes

    def __reduce__(self) -> tuple[object, ...]:
        # Encoders are closures; tasks rebuild them from the arguments.
        return (KeyCodec, (self.types, self.reserve))

    def encode(self, arrays: Sequence[pa.Array | pa.ChunkedArray]) -> list[bytes]:
        """Return one key a row.

        Args:
            arrays: the key columns, of one length and of this codec's types.
        """
        if len(arrays) != len(self.types):
            raise ValueError(f"the key has {len(self.types)} columns, {len(arrays)} were given")
        keys = _joined([one_array(column) for column in arrays], self.types)
        if self.always_fits:
            return keys
        limit = self.max_bytes
        return [key if len(key) <= limit else self._shorten(key) for key in keys]

    def encode_prefixes(self, arrays: Sequence[pa.Array | pa.ChunkedArray]) -> list[bytes]:
        """Return for each row what ``encode_prefix`` gives for its values.

        Args:
            arrays: the first columns of the key, at least one, of one length and of this codec's types.
        """
        if len(arrays) == len(self.types):
            return self.encode(arrays)
        prefixes = _joined([one_array(column) for column in arrays], self.types[: len(arrays)])
        if self.always_fits:
            return prefixes
        limit = self._kept_bytes
        return [prefix if len(prefix) <= limit else prefix[: self._kept_end(prefix)] for prefix in prefixes]

    def encode_apart(self, arrays: Sequence[pa.Array | pa.ChunkedArray]) -> bytes:
        """Return the first bytes of a row's key that keys of other values have all or none of.

        Where the first columns are too long, ``encode_prefixes`` gives fewer of them, and keys that start with these
        stand on both sides of those with more: some whole, others with a hash. What is returned ends before the first
        component at which that could happen to any values.

        Args:
            arrays: the first columns of the key, at least one, of one row and of this codec's types.

        Example:
            >>> codec = KeyCodec((SqlType("STRING"), SqlType("STRING"), SqlType("STRING")))
            >>> [len(codec.encode_apart([pa.array([v])] * 3)) for v in ("a", "a" * 128)]
            [12, 262]
        """
        prefix = _joined([one_array(column) for column in arrays], self.types[: len(arrays)])[0]
        if self.always_fits:
            return prefix
        end = 0
        for component in range(len(arrays)):
            width = self._widths[component]
            if end + 1 + (_VARIABLE_BYTES_MAX if width is None else width) > self._kept_bytes:
                break
            end = self._skip(prefix, end, component)
        return prefix[:end]

    def encode_values(self, values: Sequence[object]) -> bytes:
        """Return the key of Python values, bit for bit what ``encode`` gives for the same row.

        Args:
            values: one a column, as users pass them; None is NULL.

        Raises:
            InputError: WRONG_TYPE, VALUE_OUT_OF_RANGE or WRONG_KEY_LENGTH.
        """
        if len(values) != len(self._encoders):
            raise InputError(
                "WRONG_KEY_LENGTH",
                f"The key has {len(self._encoders)} columns, {len(values)} values were given: give one for each.",
            )
        key = b"".join([_NULL if v is None else encode(v) for encode, v in zip(self._encoders, values, strict=True)])
        return key if len(key) <= self.max_bytes else self._shorten(key)

    def encode_prefix(self, values: Sequence[object]) -> bytes:
        """Return bytes with which every key starts whose first columns have ``values``.

        Keys with other values may start with them too where the values take more than the room that a shortened key
        keeps (494 bytes less the reserve); whoever scans by a prefix compares the full values, which are stored.

        Args:
            values: at most one a column.

        Raises:
            InputError: WRONG_TYPE, VALUE_OUT_OF_RANGE or WRONG_KEY_LENGTH.
        """
        if len(values) == len(self._encoders):
            return self.encode_values(values)
        if len(values) > len(self._encoders):
            raise InputError(
                "WRONG_KEY_LENGTH",
                f"The key has {len(self._encoders)} columns, {len(values)} values were given: give one for each.",
            )
        prefix = b""
        for encode, value in zip(self._encoders, values, strict=False):
            component = _NULL if value is None else encode(value)
            if not self.always_fits and len(prefix) + len(component) > self._kept_bytes:
                break
            prefix += component
        return prefix

    @property
    def _kept_bytes(self) -> int:
        return self.max_bytes - 1 - _HASH_BYTES

    def _shorten(self, key: bytes) -> bytes:
        kept = self._kept_end(key)
        return key[:kept] + _HASHED_REST + _digest(key[kept:])

    def _kept_end(self, key: bytes) -> int:
        """Return where the first components end that a long key keeps."""
        kept, component = 0, 0
        while kept < len(key):
            end = self._skip(key, kept, component)
            if end > self._kept_bytes:
                break
            kept, component = end, component + 1
        return kept

    def component_end(self, key: bytes, component: int) -> int:
        """Return where the component at position ``component`` ends in ``key``; the key's end if it is hashed away."""
        place = 0
        for number in range(component + 1):
            if key[place : place + 1] == _HASHED_REST:
                return len(key)
            place = self._skip(key, place, number)
        return place

    def is_truncated_at(self, key: bytes, component: int) -> bool:
        """Return whether the order of ``component`` is lost in ``key``: it is truncated or hashed away."""
        return self.truncated_run_prefix(key, component) is not None

    def truncated_run_prefix(self, key: bytes, component: int) -> bytes | None:
        """Return what all keys start with among which ``component`` must be ordered by full values.

        Args:
            key: a key of this codec.
            component: a position in the key.

        Returns:
            The key up to and including the 128 bytes kept of the component; up to the hash where the component is
            hashed away; None where the component's order stands in the key.
        """
        start = self.component_end(key, component - 1) if component else 0
        if start == len(key) or key[start : start + 1] == _HASHED_REST:
            return key[: len(key) - 1 - _HASH_BYTES]
        end = self._skip(key, start, component)
        if self._widths[component] is not None or end - start < MAX_COMPONENT_BYTES:
            return None
        terminator = _terminator(key, start + 1)
        return key[:terminator] if key[terminator + 1] == _TRUNCATED[1] else None

    def _skip(self, key: bytes, start: int, component: int) -> int:
        if key[start : start + 1] == _NULL:
            return start + 1
        width = self._widths[component]
        if width is not None:
            return start + 1 + width
        terminator = _terminator(key, start + 1)
        return terminator + 2 + (_HASH_BYTES if key[terminator + 1] == _TRUNCATED[1] else 0)


def _terminator(key: bytes, start: int) -> int:
    """Return the place of the first 00 that is not an escaped one."""
    place = key.index(0, start)
    while key[place + 1] == 0xFF:
        place = key.index(0, place + 2)
    return place


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_HASH_BYTES).digest()


def _escaped(content: bytes) -> bytes:
    """Return the component of a variable-length ``content``: marker, escaped bytes, terminator."""
    if len(content) > MAX_COMPONENT_BYTES:
        kept = content[:MAX_COMPONENT_BYTES].replace(b"\x00", b"\x00\xff")
        return _VALUE + kept + _TRUNCATED + _digest(content)
    return _VALUE + content.replace(b"\x00", b"\x00\xff") + _END


# ---- one value ----


def value_encoder(sql_type: SqlType) -> Encode:
    """Return the function from a Python value (not None) to its component, which is the whole key of one column.

    The function raises InputError: WRONG_TYPE or VALUE_OUT_OF_RANGE.

    Example:
        >>> value_encoder(SqlType("INT"))(1).hex(" ")
        '01 80 00 00 01'
    """
    if sql_type.name == "BIGINT":
        return _bigint_encoder(sql_type)
    convert, encode = to_raw(sql_type), _raw_encoder(sql_type)
    return lambda value: encode(convert(value))


def _bigint_encoder(sql_type: SqlType) -> Encode:
    pack = struct.Struct(">BQ").pack
    convert = to_raw(sql_type)

    def encode(value: Any) -> bytes:
        if type(value) is int and -_SIGN <= value < _SIGN:
            return pack(1, value + _SIGN)
        return pack(1, convert(value) + _SIGN)

    return encode


def _raw_encoder(sql_type: SqlType) -> Encode:
    """Return the function from a raw value (not None) to its component."""
    name = sql_type.name
    if name == "STRING":
        return lambda value: _escaped(value.encode())
    if name == "BINARY":
        return _escaped
    if name in ("ARRAY", "STRUCT"):
        content = _content_encoder(sql_type)
        return lambda value: _escaped(content(value))
    if name == "VOID":
        return lambda value: _NULL
    if name == "BOOLEAN":
        return lambda value: b"\x01\x01" if value else b"\x01\x00"
    if name == "DECIMAL":
        return lambda value: _VALUE + (value + _DECIMAL_SIGN).to_bytes(16, "big")
    if sql_type.is_floating:
        return _float_encoder(name)
    width = _WIDTHS[name]
    offset = 1 << (8 * width - 1)
    return lambda value: _VALUE + (value + offset).to_bytes(width, "big")


def _float_encoder(name: str) -> Encode:
    pack_float, pack_bits, unpack = (
        (struct.Struct(">d").pack, struct.Struct(">BQ").pack, struct.Struct(">Q").unpack)
        if name == "DOUBLE"
        else (struct.Struct(">f").pack, struct.Struct(">BI").pack, struct.Struct(">I").unpack)
    )
    sign = 1 << (63 if name == "DOUBLE" else 31)
    mask = 2 * sign - 1

    def encode(value: float) -> bytes:
        (bits,) = unpack(pack_float(value + 0.0))
        return pack_bits(1, bits ^ (mask if bits & sign else sign))

    return encode


def _content_encoder(sql_type: SqlType) -> Encode:
    """Return the function from a raw ARRAY or STRUCT to bytes in its order: elements, then the end."""
    encoders = [_inner_encoder(child) for child in sql_type.children]
    if sql_type.name == "ARRAY":
        inner = encoders[0]
        return lambda items: b"".join([_VALUE + inner(item) for item in items]) + _NULL
    return lambda items: b"".join([encode(item) for encode, item in zip(encoders, items, strict=True)])


def full_order(types: Sequence[SqlType]) -> Callable[[Sequence[Any]], bytes]:
    """Return the function from Python values of ``types`` to bytes that order as the values do, never truncated.

    Example:
        >>> order = full_order((SqlType("STRING"), SqlType("INT")))
        >>> order((None, 1)) < order(("a" * 1000 + "b", 2)) < order(("a" * 1000 + "c", 1))
        True
    """
    pairs = [(to_raw(sql_type), _inner_encoder(sql_type)) for sql_type in types]
    return lambda values: b"".join(
        [encode(None if v is None else convert(v)) for (convert, encode), v in zip(pairs, values, strict=True)]
    )


def _inner_encoder(sql_type: SqlType) -> Encode:
    """Return the function from a raw value or None inside an ARRAY or STRUCT to its component, never truncated."""
    if sql_type.name in ("STRING", "BINARY", "ARRAY", "STRUCT"):
        content = _STRAIGHT.get(sql_type.name) or _content_encoder(sql_type)
        return lambda v: _NULL if v is None else _VALUE + content(v).replace(b"\x00", b"\x00\xff") + _END
    encode = _raw_encoder(sql_type)
    return lambda value: _NULL if value is None else encode(value)


# ---- whole columns ----


def _joined(columns: Sequence[pa.Array], types: Sequence[SqlType]) -> list[bytes]:
    """Return the components of each row one after the other, however long that gets."""
    if not columns:
        raise ValueError("a key without columns has no arrays to count its rows by; use encode_values(())")
    pairs = list(zip(columns, types, strict=True))
    if all(sql_type.name in _WIDTHS and column.null_count == 0 for column, sql_type in pairs):
        return _rows_of(np.concatenate([_fixed(column, sql_type) for column, sql_type in pairs], axis=1))
    parts = [_binary_column(column, sql_type) for column, sql_type in pairs]
    joined = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _NOTHING)
    keys: list[bytes] = joined.to_numpy(zero_copy_only=False).tolist()
    return keys


def _rows_of(matrix: npt.NDArray[np.uint8]) -> list[bytes]:
    rows: list[bytes] = np.ascontiguousarray(matrix).view(f"V{matrix.shape[1]}").ravel().tolist()
    return rows


def _fixed(column: pa.Array, sql_type: SqlType) -> npt.NDArray[np.uint8]:
    """Return the components of a fixed-width column as a matrix of bytes; rows with NULL hold anything."""
    width = _WIDTHS[sql_type.name]
    matrix = np.empty((len(column), 1 + width), np.uint8)
    matrix[:, 0] = 1
    if width == 0:
        matrix[:, 0] = 0
        return matrix
    values = raw_values(column)
    if sql_type.name == "BOOLEAN":
        matrix[:, 1] = values
        return matrix
    if sql_type.name == "DECIMAL":
        halves = np.empty((len(values), 2), ">u8")
        halves[:, 0] = values[:, 1].view(np.uint64) ^ np.uint64(_SIGN)
        halves[:, 1] = values[:, 0].view(np.uint64)
        matrix[:, 1:] = halves.view(np.uint8).reshape(len(values), 16)
        return matrix
    unsigned = np.dtype(f"u{width}")
    sign = unsigned.type(1 << (8 * width - 1))
    if sql_type.is_floating:
        bits = float_bits(values, equal_zeros=True).view(unsigned)
        ordered = np.where(bits & sign != 0, ~bits, bits ^ sign)
    else:
        ordered = values.view(unsigned) ^ sign
    matrix[:, 1:] = ordered.astype(unsigned.newbyteorder(">")).view(np.uint8).reshape(len(values), width)
    return matrix


def _binary_column(column: pa.Array, sql_type: SqlType) -> pa.Array:
    """Return the components of any column as an Arrow binary array without nulls."""
    width = _WIDTHS.get(sql_type.name)
    if width is None:
        return _variable(column, sql_type)
    matrix = _fixed(column, sql_type)
    length = len(column)
    offsets = np.arange(0, (length + 1) * matrix.shape[1], matrix.shape[1], dtype=np.int64)
    components = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), length, [None, pa.py_buffer(offsets), pa.py_buffer(matrix)]
    )
    mask = null_mask(column)
    return components if mask is None else pc.if_else(pa.array(mask), pa.scalar(_NULL, pa.large_binary()), components)


def sortable(column: pa.Array, sql_type: SqlType) -> pa.Array:
    """Return for each value its component, never truncated: binaries that sort as the values do, NULL first.

    Args:
        column: the values.
        sql_type: their type; it contains no MAP.

    Example:
        >>> sortable(pa.array(["b", None]), SqlType("STRING")).to_pylist() == [bytes((1, 98, 0, 0)), bytes(1)]
        True
    """
    if sql_type.name in _WIDTHS:
        return _binary_column(column, sql_type)
    if sql_type.name in ("STRING", "BINARY"):
        return _variable(column, sql_type, truncates=False)
    encode = _inner_encoder(sql_type)
    return pa.array([encode(value) for value in to_raw_list(column)], pa.large_binary())


def _variable(column: pa.Array, sql_type: SqlType, truncates: bool = True) -> pa.Array:
    if sql_type.name in ("STRING", "BINARY"):
        content = column.cast(pa.large_binary())
        longest = pc.max(pc.binary_length(content)).as_py() or 0
        if longest <= MAX_COMPONENT_BYTES or not truncates:
            if _has_zero_byte(content):
                content = pc.replace_substring(content, pattern=b"\x00", replacement=b"\x00\xff")
            value, end = pa.scalar(_VALUE, pa.large_binary()), pa.scalar(_END, pa.large_binary())
            return pc.binary_join_element_wise(value, content, end, _NOTHING).fill_null(_NULL)
        values: list[Any] = content.to_pylist()
        return pa.array([_NULL if v is None else _escaped(v) for v in values], pa.large_binary())
    encode = _raw_encoder(sql_type)
    return pa.array([_NULL if v is None else encode(v) for v in to_raw_list(column)], pa.large_binary())


def _has_zero_byte(content: pa.Array) -> bool:
    if len(content) == 0 or content.buffers()[2] is None:
        return False
    offsets = np.frombuffer(content.buffers()[1], np.int64, len(content) + 1, 8 * content.offset)
    data = np.frombuffer(content.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    return bool(len(data)) and not data.all()


def after(prefix: bytes) -> bytes | None:
    """Return the smallest key behind all keys that start with ``prefix``; None where there is none.

    Example:
        >>> after(b"ab"), after(b"a" + bytes([255]))
        (b'ac', b'b')
    """
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
