"""Names of sub-databases: a table from logical names to numbered physical sub-databases.

LMDB cannot rename a sub-database, and a handle that is deleted breaks the readers that still use it. So the physical
ones are called ``0``, ``1``, … and never deleted: a drop empties one and puts its number on the free list, a rename
moves a number to another name, both within the transaction. Layout of the sub-database ``__names``:

    h           ->  version (8 bytes), physical sub-databases ever made (4), free numbers (4 each), little endian
    n + name    ->  number (4 bytes)

The header changes with every change of the table, so whoever knows a header knows the table that belongs to it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Self

NAMES = b"__names"
HEADER = b"h"
NAME_BYTES_MAX = 500


def key_of(name: str) -> bytes:
    """Return the key of a logical name."""
    return b"n" + name.encode()


def physical(number: int) -> bytes:
    """Return the name of a physical sub-database."""
    return b"%d" % number


@dataclass(slots=True)
class Header:
    """The state of the table of names.

    Args:
        version: counts the changes.
        made: how many physical sub-databases exist.
        free: numbers of those that nobody uses.
    """

    version: int = 0
    made: int = 0
    free: list[int] = field(default_factory=list)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the header written as ``data``; an empty one where nothing was written yet."""
        if not data:
            return cls()
        version, made, *free = struct.unpack(f"<QI{(len(data) - 12) // 4}I", data)
        return cls(version, made, free)

    def encode(self) -> bytes:
        """Return the header as bytes."""
        return struct.pack(f"<QI{len(self.free)}I", self.version, self.made, *self.free)
