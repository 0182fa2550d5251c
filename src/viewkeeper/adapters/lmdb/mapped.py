"""Letting go of the pages of a mapped file that this process has read.

They are the system's to take back whenever it needs memory, but until then they count as memory of each process that
has read them: one that reads one part of a store after the other would seem to use all of it.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_DONT_NEED = 4


def mapped_at(path: str) -> range | None:
    """Return the addresses at which this process maps ``path``; None where it does not, or the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="surrogateescape").split("\n")
    except OSError:
        return None
    file = os.path.realpath(path)
    for line in lines:
        if line.endswith(file):
            # Addresses, rights, offset, device, inode, name; "s" ends the rights of what shows the file itself.
            place, rights, *_, name = line.split(maxsplit=5)
            if rights.endswith("s") and name == file:
                return range(*(int(end, 16) for end in place.split("-")))
    return None


def release_pages(addresses: range) -> None:
    """Let go of the pages of a mapped file; where they are read again, they are mapped again.

    Only while nobody can unmap the file: what is mapped in its place would lose its content.

    Args:
        addresses: where it is mapped, see ``mapped_at``.
    """
    ctypes.CDLL(None).madvise(ctypes.c_void_p(addresses.start), ctypes.c_size_t(len(addresses)), _DONT_NEED)
