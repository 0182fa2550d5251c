"""STAGE: what a task wants written, kept as one file until its epoch is published.

    file   = Arrow IPC file, one row for each piece of the write set; large pieces have a batch for themselves
    name   = cadence "." epoch "." level "." partition "." run attempt ".arrow"

    part   kind       state           keys                      values             weights
    0      puts       its name        keys, ascending           values             -
    1      merges     error bag       texts                     -                  what to add
    2      rows       view's table    -                         -                  how many rows change
    3      deletes    its name        keys, ascending           -                  -

Every attempt of a task writes a file of its own, under another name first, so that a file that is there is whole. A
lost file does no harm, the epoch is run again: nothing is forced to disk. Only the paths that the job has returned are
read; files of abandoned attempts are removed after publishing, those of a failed run at once, those of killed drivers
by ``sweep_stage``. Other files that tasks leave for one another have names of the same form, and go likewise.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from viewkeeper.clock import new_identifier
from viewkeeper.errors import StoreError
from viewkeeper.operators.state import StateWrites, WriteSet
from viewkeeper.store.scans import KeyRange

SUFFIX = ".arrow"
DRAFT_SUFFIX = ".draft"
_TABLE, _MERGES, _ROWS, _DELETES = 0, 1, 2, 3
# From so many keys on a batch costs less than a copy.
_KEYS_OF_A_BATCH = 4_096
# 64-bit offsets: all keys of a task may be more than 2 GB together.
_BYTES = pa.large_binary()
_SCHEMA = pa.schema([
    pa.field("part", pa.int8(), nullable=False),
    pa.field("state", pa.string(), nullable=False),
    pa.field("keys", pa.large_list(_BYTES), nullable=False),
    pa.field("values", pa.large_list(_BYTES), nullable=False),
    pa.field("weights", pa.large_list(pa.int64()), nullable=False),
])  # fmt: skip


def stage_path(
    folder: str, cadence: str, epoch: int, level: int, partition: int, suffix: str = SUFFIX, run: str = ""
) -> str:
    """Return a path that no other attempt has, in any process.

    Args:
        folder: the store's folder of staged files.
        cadence: the cadence's name.
        epoch: the epoch's number.
        level: the task's level of the circuit.
        partition: the task's number within the level.
        suffix: what kind of file it is: a point and a word.
        run: an identifier of the job, so that its files can be told from those of a rival that runs the same epoch.
    """
    return os.path.join(folder, f"{cadence}.{epoch}.{level}.{partition}.{run}{new_identifier()}{suffix}")


@dataclass
class _Piece:
    part: int
    state: str
    keys: Sequence[bytes] = ()
    values: Sequence[bytes] = ()
    weights: Sequence[int] = ()


def write_stage(path: str, writes: WriteSet) -> None:
    """Write ``writes`` to ``path``, whole or not at all.

    Args:
        path: a new path, see ``stage_path``.
        writes: the write set of one task; keys of its tables ascend.

    Raises:
        StoreError: ``STAGING_FAILED`` where the file cannot be written.
    """
    batches = [_to_arrow(pieces) for pieces in _batched(_pieces_of(writes))]
    draft = path + DRAFT_SUFFIX
    try:
        with pa.OSFile(draft, "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            for batch in batches:
                writer.write_batch(batch)
        os.replace(draft, path)
    except OSError as error:
        Path(draft).unlink(missing_ok=True)
        raise staging_failed(path, error) from error


def read_stage(path: str) -> WriteSet:
    """Return what ``write_stage`` wrote; nothing of the file stays in use.

    Args:
        path: the file.

    Raises:
        StoreError: ``STAGED_FILE_LOST`` where it is gone or cannot be read.
    """
    try:
        writes = WriteSet()
        with pa.memory_map(path) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                _add_batch(writes, reader.get_batch(number))
        return writes
    except (OSError, pa.ArrowInvalid) as error:
        raise staged_file_lost(path, error) from error


class StagedParts:
    """A staged file of which any part can be read by itself, while this object is there.

    Args:
        path: the file.

    Raises:
        StoreError: ``STAGED_FILE_LOST`` where it is gone or cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._tables: dict[str, list[tuple[pa.Array, pa.Array | None]]] = {}
        self._merges: dict[str, dict[bytes, int]] = {}
        try:
            reader = pa.ipc.open_file(pa.memory_map(path))
            for number in range(reader.num_record_batches):
                self._add(reader.get_batch(number))
        except (OSError, pa.ArrowInvalid) as error:
            raise staged_file_lost(path, error) from error

    def _add(self, batch: pa.RecordBatch) -> None:
        parts, states = batch.column("part").to_pylist(), batch.column("state").to_pylist()
        for row, (part, state) in enumerate(zip(parts, states, strict=True)):
            if part == _MERGES:
                one = WriteSet()
                _add_batch(one, batch.slice(row, 1))
                self._merges |= one.merges
            elif part in (_TABLE, _DELETES):
                values = batch["values"][row].values if part == _TABLE else None
                self._tables.setdefault(state, []).append((batch["keys"][row].values, values))

    def between(self, state: str, keys: KeyRange) -> Iterator[tuple[list[bytes], list[bytes | None]]]:
        """Yield what was asked for in a part of a state table: keys, ascending, and their values; None where they go.

        Args:
            state: the table's name.
            keys: the part.
        """
        for stored, values in self._tables.get(state, ()):
            start = 0 if keys.start is None else _place(stored, keys.start)
            stop = len(stored) if keys.stop is None else _place(stored, keys.stop)
            some = _to_list(stored[start:stop])
            yield some, [None] * len(some) if values is None else _to_list(values[start:stop])

    def counts(self, bag: str) -> dict[bytes, int]:
        """Return what was to be added to an error bag."""
        return self._merges.get(bag, {})


def _place(keys: pa.Array, key: bytes) -> int:
    """Return the place of the first of the ascending ``keys`` that is not below ``key``."""
    return bisect_left(range(len(keys)), key, key=lambda place: keys[place].as_py())


def staging_failed(path: str, error: Exception) -> StoreError:
    """Return the error of a file of the staging folder that cannot be written."""
    message = f"The staged changes of an epoch cannot be written to {path}: {error}. Make room, then try again."
    return StoreError("STAGING_FAILED", message, {"path": path})


def staged_file_lost(path: str, error: Exception | str) -> StoreError:
    """Return the error of a file of the staging folder that cannot be read, or not all of it."""
    message = f"The staged file {path} cannot be read: {error}. Refresh again: the epoch is run anew."
    return StoreError("STAGED_FILE_LOST", message, {"path": path})


def clear_stage(folder: str, cadence: str, published: int | None, keep: Iterable[str] = ()) -> int:
    """Remove what attempts have left behind. Files of other cadences and of later epochs may be in use: they stay.

    Args:
        folder: the store's folder of staged files.
        cadence: whose files.
        published: the last published epoch; files of it and of earlier ones go. None removes all of the cadence.
        keep: paths that stay.

    Returns:
        How many files were removed.
    """
    kept = {os.path.basename(path) for path in keep}
    removed = 0
    for name, (owner, epoch) in _staged(folder).items():
        if owner != cadence or name in kept or (published is not None and epoch > published):
            continue
        Path(folder, name).unlink(missing_ok=True)
        removed += 1
    return removed


def clear_run(folder: str, cadence: str, run: str) -> int:
    """Remove what one run of an epoch has left behind: a rival's files of the same epoch stay.

    Args:
        folder: the store's folder of staged files.
        cadence: whose files.
        run: the identifier of the job.

    Returns:
        How many files were removed.
    """
    lost = [n for n, (owner, _) in _staged(folder).items() if owner == cadence and f".{run}" in n[len(cadence) :]]
    for name in lost:
        Path(folder, name).unlink(missing_ok=True)
    return len(lost)


def sweep_stage(folder: str, read_published: Callable[[], Mapping[str, int]]) -> int:
    """Remove what nobody will publish: all but files of the next epoch of a cadence, which may be running somewhere.

    Args:
        folder: the store's folder of staged files.
        read_published: returns the last published epoch of each cadence there is.

    Returns:
        How many files were removed.
    """
    staged = _staged(folder)
    if not staged:
        return 0
    # Read second: whoever has made a file that is listed began behind what was published then.
    published = read_published()
    lost = [name for name, (cadence, epoch) in staged.items() if epoch - 1 != published.get(cadence)]
    for name in lost:
        Path(folder, name).unlink(missing_ok=True)
    return len(lost)


def _staged(folder: str) -> dict[str, tuple[str, int]]:
    """Return cadence and epoch of each staged file, drafts among them, by name; other files are not ours."""
    found: dict[str, tuple[str, int]] = {}
    for name in os.listdir(folder):
        parts = name.removesuffix(DRAFT_SUFFIX).rsplit(".", 5)
        if len(parts) == 6 and parts[1].isdecimal():
            found[name] = (parts[0], int(parts[1]))
    return found


def _pieces_of(writes: WriteSet) -> list[_Piece]:
    pieces = [_table_piece(state, one) for state, several in writes.tables.items() for one in several]
    pieces += [_Piece(_MERGES, s, list(m), weights=list(m.values())) for s, m in writes.merges.items()]
    return pieces + [_Piece(_ROWS, state, weights=[count]) for state, count in writes.rows.items()]


def _table_piece(state: str, writes: StateWrites) -> _Piece:
    if writes.new_values is None:
        return _Piece(_DELETES, state, writes.keys)
    return _Piece(_TABLE, state, writes.keys, writes.new_values)


def _batched(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Return the pieces as batches, in order: to join the columns of large ones would copy them once more."""
    batches: list[list[_Piece]] = [[]]
    for piece in pieces:
        if len(piece.keys) >= _KEYS_OF_A_BATCH and batches[-1]:
            batches.append([])
        batches[-1].append(piece)
        if len(piece.keys) >= _KEYS_OF_A_BATCH:
            batches.append([])
    return [batch for batch in batches if batch]


def _to_arrow(pieces: Sequence[_Piece]) -> pa.RecordBatch:
    columns = [
        pa.array([p.part for p in pieces], pa.int8()),
        pa.array([p.state for p in pieces], pa.string()),
        _lists([p.keys for p in pieces], _bytes_array),
        _lists([p.values for p in pieces], _bytes_array),
        _lists([p.weights for p in pieces], lambda flat: pa.array(flat, pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _lists(lists: Sequence[Sequence[Any]], build: Any) -> pa.LargeListArray:
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(one) for one in lists], out=offsets[1:])
    # Arrow joins arrays faster than Python lists, and a table without NULLs keeps its quick way beside one with them.
    arrays = [build(one) for one in lists if one] or [build([])]
    flat = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    return pa.LargeListArray.from_arrays(pa.array(offsets), flat)


def _bytes_array(items: Sequence[bytes]) -> pa.Array:
    """Build the array from its buffers: several times faster than Arrow's conversion of Python objects."""
    content = b"".join(items)
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, items), np.int64, len(items)), out=offsets[1:])
    return pa.Array.from_buffers(_BYTES, len(items), [None, pa.py_buffer(offsets), pa.py_buffer(content)], 0)


def _add_batch(writes: WriteSet, batch: pa.RecordBatch) -> None:
    keys, values, weights = (batch.column(name) for name in ("keys", "values", "weights"))
    all_keys, all_values = keys.values, values.values
    all_weights = weights.values.to_pylist()
    # One of these arrays holds nothing for most kinds, so each has offsets of its own.
    key_cuts, value_cuts, weight_cuts = (column.offsets.to_pylist() for column in (keys, values, weights))
    kinds, states = batch.column("part").to_pylist(), batch.column("state").to_pylist()
    for row, (part, state) in enumerate(zip(kinds, states, strict=True)):
        some_keys = _to_list(all_keys[key_cuts[row] : key_cuts[row + 1]])
        some_weights = all_weights[weight_cuts[row] : weight_cuts[row + 1]]
        if part == _TABLE:
            some_values = _to_list(all_values[value_cuts[row] : value_cuts[row + 1]])
            writes.tables.setdefault(state, []).append(StateWrites(some_keys, some_values))
        elif part == _DELETES:
            writes.tables.setdefault(state, []).append(StateWrites(some_keys, None))
        elif part == _MERGES:
            writes.merges[state] = dict(zip(some_keys, some_weights, strict=True))
        else:
            writes.rows[state] = some_weights[0]


def _to_list(array: pa.Array) -> list[Any]:
    """Return the bytes. Values of one width are cut by numpy, three times faster than Arrow makes them."""
    if not len(array):
        return []
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset)
    lengths = np.diff(offsets)
    width = int(lengths[0])
    if not width or (lengths != width).any():
        items: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return items
    cut: list[Any] = np.frombuffer(array.buffers()[2], f"V{width}", len(array), int(offsets[0])).tolist()
    return cut
