"""The LMDB environments of a process: one per folder, shared by all spaces that use it, and alive again after a fork.

LMDB allows one open environment per process and file, and none of it may be used by a forked child. So environments
stand in a registry under the identity of their folder, are counted, and a child forgets (without touching them: closing
would free the parent's reader slots) those of its parent and opens its own at first use.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Any

from lmdb import _envid

from viewkeeper.adapters.lmdb.environment import SharedEnvironment
from viewkeeper.adapters.lmdb.failures import from_errno
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.clock import Clock
from viewkeeper.errors import ConflictError


class Registry:
    """The environments that this process has open, by the identity of their folders."""

    def __init__(self) -> None:
        self._shared: dict[tuple[int, int], SharedEnvironment] = {}
        self._lock = threading.Lock()
        # What a forked child has inherited: kept, so that nothing of it is ever closed.
        self._inherited: list[object] = []
        self.generation = 0

    def acquire(self, path: str, options: EnvironmentOptions, clock: Clock) -> SharedEnvironment:
        """Return the environment of a folder, open, counting its user.

        Args:
            path: the environment's folder, which exists.
            options: how to open it; where it is open already its durability must be the same.
            clock: where ages come from.

        Raises:
            ConflictError: DURABILITY_DIFFERS.
            StoreError: for what opening meets.
        """
        with self._lock:
            identity = identity_of(path)
            shared = self._shared.get(identity)
            if shared is None:
                shared = SharedEnvironment(path, options, clock)
            elif shared.options.durability != options.durability:
                raise ConflictError(
                    "DURABILITY_DIFFERS",
                    f"The store {path} is open in this process with durability {shared.options.durability!r}: open it "
                    f"with the same one, or close it first; {options.durability!r} was asked for.",
                )
            shared.users += 1
            try:
                shared.live()
            except BaseException:
                shared.users -= 1
                raise
            self._shared[identity] = shared
            return shared

    def release(self, shared: SharedEnvironment) -> None:
        """Count a user less; the last one closes the environment."""
        with self._lock:
            shared.users -= 1
            if shared.users == 0:
                self._shared = {key: value for key, value in self._shared.items() if value is not shared}
                shared.close()

    def open_count(self) -> int:
        """Return how many environments this process has open."""
        return len(self._shared)

    def before_fork(self) -> None:
        """Hold the registry still while the process forks."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let the registry go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget, without touching it, all that belongs to the parent."""
        self.generation += 1
        self._lock = threading.Lock()
        for shared in self._shared.values():
            self.inherit((shared.environment, shared.names, shared.handles, shared.tables))
            shared.reset()

    def inherit(self, what: object) -> None:
        """Keep something of the parent's alive for as long as the child runs."""
        self._inherited.append(what)


def identity_of(path: str) -> tuple[int, int]:
    """Return what tells one folder from all others, however it is named."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise from_errno(error.errno or errno.ENOENT, str(error), path) from error
    return found.st_dev, found.st_ino


def let_children_open() -> None:
    """Make py-lmdb's guard against opening a file twice in a process tell a forked child from its parent.

    The guard compares keys that `lmdb._envid.env_keys` makes of a file, and a child inherits its parent's. LMDB itself
    allows the child its own environment; with the process id in each key, so does the guard.
    """
    keys_of_file: Callable[[Any, bool], tuple[Any, ...]] = _envid.env_keys

    def keys_of_file_in_process(path: Any, subdir: bool) -> tuple[Any, ...]:
        return tuple((*key, os.getpid()) for key in keys_of_file(path, subdir))

    _envid.env_keys = keys_of_file_in_process


let_children_open()
REGISTRY = Registry()
os.register_at_fork(
    before=REGISTRY.before_fork,
    after_in_parent=REGISTRY.after_fork_in_parent,
    after_in_child=REGISTRY.after_fork_in_child,
)
