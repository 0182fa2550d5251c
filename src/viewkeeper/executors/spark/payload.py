"""PAYLOAD: rows of one delta as bytes between stages, whole numbers no wider than their values need.

    header   one byte a column, the weight's last: 0 as it is, 1, 2 or 4: so many bytes a value; padded to 64 bytes
    body     one Arrow IPC record batch message without schema

Counts, weights and the limbs of sums are 64-bit numbers and mostly small. Each byte travels through Python, a socket,
Java, a file and back, so a look at their smallest and largest pays: partial sums shrink to a third.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.zset.delta import Delta

# Arrow reads values where they lie in a payload: the header keeps them aligned.
ALIGNMENT = 64
_NARROW = ((1, pa.int8()), (2, pa.int16()), (4, pa.int32()))
_TYPES = dict(_NARROW)
_ROWS_WORTH_NARROWING = 256


def to_payload(delta: Delta) -> bytes:
    """Return ``delta`` as ``from_payload`` reads it."""
    batch = delta.to_arrow()
    widths = [_width(c) if batch.num_rows >= _ROWS_WORTH_NARROWING else 0 for c in batch.columns]
    columns = [c.cast(_TYPES[w], safe=False) if w else c for c, w in zip(batch.columns, widths, strict=True)]
    body = pa.RecordBatch.from_arrays(columns, names=[""] * len(columns)).serialize()
    return b"".join((bytes(widths).ljust(_header_bytes(len(widths)), b"\0"), memoryview(body)))


def from_payload(payload: bytes | pa.Buffer, schema: pa.Schema) -> Delta:
    """Return the delta; columns that were not narrowed point into ``payload``.

    Args:
        payload: what ``to_payload`` has made.
        schema: the schema of the rows, without the weight.

    Example:
        >>> delta = Delta.from_rows(pa.record_batch({"a": [1, 2]}))
        >>> from_payload(to_payload(delta), delta.schema).rows.to_pydict()
        {'a': [1, 2]}
    """
    source = payload if isinstance(payload, pa.Buffer) else pa.py_buffer(payload)
    count = len(schema) + 1
    widths = bytes(source.slice(0, count))
    types = [_TYPES.get(w, t) for w, t in zip(widths, [*schema.types, pa.int64()], strict=True)]
    fields = pa.schema([pa.field("", t) for t in types])
    batch = pa.ipc.read_record_batch(source.slice(_header_bytes(count)), fields)
    columns = [c.cast(pa.int64()) if w else c for c, w in zip(batch.columns, widths, strict=True)]
    return Delta(pa.RecordBatch.from_arrays(columns[:-1], schema=schema), columns[-1].to_numpy())


def _header_bytes(columns: int) -> int:
    return -(-columns // ALIGNMENT) * ALIGNMENT


def _width(column: pa.Array) -> int:
    """Return in how many bytes each value of a column of 64-bit numbers fits; 0 for 8 and for other columns."""
    if not pa.types.is_int64(column.type):
        return 0
    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is None:
        return 1
    for width, _ in _NARROW:
        bound = 1 << (8 * width - 1)
        if -bound <= low and high < bound:
            return width
    return 0
