"""PAYLOAD FILE: the large payloads that leave one task, side by side in one file of the staging folder.

    file        payloads as they are, each padded to 64 bytes
    reference   0xFF, then msgpack [path, first byte, bytes]: what travels in place of a payload

A payload that travels goes through a socket, Java, a file, Java and a socket; by reference it is written once and
mapped where it is wanted. Tasks and driver share the staging folder anyway, by which write sets go. Every attempt
writes a file of its own, and Spark delivers the references of the attempts that count; after publishing, the files go
with the staged ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from viewkeeper.executors.spark.payload import ALIGNMENT
from viewkeeper.pipeline.stage import staged_file_lost, staging_failed

PAYLOAD_SUFFIX = ".payloads"

LARGE_BYTES = 64 << 10
"""From here on a payload goes by file: for less, making and mapping a file costs as much."""

# The first byte of a payload of rows is the width of a column.
_MARK = b"\xff"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, int, int]).decode


def by_file(payloads: Sequence[bytes], path: str) -> list[bytes]:
    """Return ``payloads`` with references in place of the large ones, which are written to ``path``.

    Args:
        payloads: what leaves a task.
        path: a new path; where no payload is large, no file is made.

    Raises:
        StoreError: ``STAGING_FAILED`` where the file cannot be written.
    """
    if max(map(len, payloads), default=0) < LARGE_BYTES:
        return list(payloads)
    try:
        with pa.OSFile(path, "wb") as file:
            return [_put(file, payload, path) if len(payload) >= LARGE_BYTES else payload for payload in payloads]
    except OSError as error:
        Path(path).unlink(missing_ok=True)
        raise staging_failed(path, error) from error


def _put(file: pa.NativeFile, payload: bytes, path: str) -> bytes:
    reference = _encode((path, file.tell(), len(payload)))
    file.write(payload)
    file.write(b"\0" * (-len(payload) % ALIGNMENT))
    return _MARK + reference


def fetched(payload: pa.Buffer) -> pa.Buffer:
    """Return what ``payload`` refers to, mapped from its file, or itself where it is no reference.

    Args:
        payload: what has arrived.

    Raises:
        StoreError: ``STAGED_FILE_LOST`` where the file is gone or shorter than it was.
    """
    content = memoryview(payload)
    if bytes(content[:1]) != _MARK:
        return payload
    path, start, size = _decode(content[1:])
    try:
        with pa.memory_map(path) as file:
            file.seek(start)
            found = file.read_buffer(size)
    except (OSError, pa.ArrowInvalid) as error:
        raise staged_file_lost(path, error) from error
    if found.size != size:
        raise staged_file_lost(path, f"it has {found.size:,} bytes where {size:,} were written")
    return found
