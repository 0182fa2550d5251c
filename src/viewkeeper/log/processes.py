"""What belongs to a process goes with it: telling a dead process from one that lives, and from a later one."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class ProcessMark:
    """A process among those of all machines, and of all times.

    Args:
        process_id: its number; 0 for none: what belongs to it outlives processes.
        start: tells it from a later one of the same number; empty where the system does not say.
        host: its machine.
    """

    process_id: int = 0
    start: str = ""
    host: str = ""

    @classmethod
    def own(cls) -> Self:
        """Return the mark of this process."""
        return cls(os.getpid(), start_of(os.getpid()), socket.gethostname())

    @property
    def is_dead(self) -> bool:
        """Whether it was a process of this machine and is no more."""
        if self.process_id == 0 or self.host != socket.gethostname():
            return False
        try:
            os.kill(self.process_id, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return start_of(self.process_id) != self.start


def start_of(process_id: int) -> str:
    """Return what tells a process from a later one of the same number: its start, where the system says it."""
    try:
        # The command may hold spaces and parentheses; the start time is the 20th field behind the last one.
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
