"""The one place that names concrete adapters and executors: a store's parts, put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewkeeper.adapters.lmdb.folder import StoreFolder, open_folder
from viewkeeper.adapters.lmdb.locks import HolderInfo, ProcessLock
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.coordinator.core import Coordinator, Executor
from viewkeeper.coordinator.requests import Lock
from viewkeeper.coordinator.retries import Trouble
from viewkeeper.errors import InputError, shown
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import Space
from viewkeeper.store.memory import MemorySpace


class MaintainerLock(Lock, Protocol):
    """The right to maintain a store: one process at a time."""

    def holder(self) -> HolderInfo | None:
        """Return who has it."""

    def note(self, troubles: Sequence[Trouble]) -> None:
        """Let others see what keeps the holder from its work."""


@dataclass
class OpenStore:
    """An open store.

    Args:
        location: what the user passed to connect, for other processes and messages; None for memory.
        base: tables, log, catalog.
        views: everything that is published.
        lock: the maintainer's lock; None for a store that only this process has.
        staging_path: folder for staged write sets; None where nothing is staged.
        close: closes both spaces.
        executors: executors by name in place of the usual ones, for simulations.
    """

    location: str | None
    base: Space
    views: Space
    lock: MaintainerLock | None
    staging_path: str | None
    close: Callable[[], None]
    executors: Mapping[str, Callable[[], Executor]] = field(default_factory=dict)


@dataclass(frozen=True)
class SpaceOpener:
    """Opens a store's spaces in another process (a Spark worker); picklable."""

    path: str
    options: EnvironmentOptions

    def __call__(self) -> tuple[Space, Space]:
        """Return the base and the views space."""
        folder = open_folder(self.path, create=False, options=self.options)
        return folder.base, folder.views


def options_of(settings: Settings) -> EnvironmentOptions:
    """Return how LMDB environments are opened under ``settings``."""
    return EnvironmentOptions(
        durability=settings.durability,
        sync_interval_seconds=settings.sync_interval_seconds,
        map_size_bytes=settings.map_size_bytes,
    )


def open_store(location: str | os.PathLike[str], settings: Settings, create: bool = True) -> OpenStore:
    """Open the store at ``location``.

    Raises:
        InputError: ``WRONG_TYPE`` for what is no path, ``STORE_KIND_UNKNOWN`` for an address that is no folder.
        StoreError: see ``adapters.lmdb.folder.open_folder``.
    """
    given: object = location
    if not isinstance(given, (str, os.PathLike)):
        message = f"A store is the path of a folder, as a str or a Path, not {shown(given)}."
        raise InputError("WRONG_TYPE", message)
    text = os.fspath(location)
    if "://" in text:
        kind = text.split("://", 1)[0]
        raise InputError("STORE_KIND_UNKNOWN", f"There is no store of kind {kind!r} yet: pass the path of a folder.")
    folder = open_folder(text, create=create, options=options_of(settings))
    lock = ProcessLock(folder.lock_path)
    return OpenStore(folder.path, folder.base, folder.views, lock, folder.staging_path, _closer(folder))


def _closer(folder: StoreFolder) -> Callable[[], None]:
    return folder.close


def memory_store() -> OpenStore:
    """Return a new, empty store in memory: for tests, the oracle and the simulation."""
    return OpenStore(None, MemorySpace(), MemorySpace(), None, None, lambda: None)


def make_coordinator(
    store: OpenStore, settings: Settings, spark: Any = None, clock: Clock = SYSTEM_CLOCK
) -> Coordinator:
    """Return the coordinator of ``store``.

    Args:
        store: the store.
        settings: which executor when.
        spark: the caller's SparkSession; None lets one be started when it is first needed.
        clock: where time comes from.
    """
    executors: dict[str, Callable[[], Executor]] = {"local": lambda: LocalExecutor(store.base, store.views, clock)}
    if store.location is not None:
        executors["spark"] = lambda: _spark_executor(store, settings, spark)
    executors.update(store.executors)
    return Coordinator(store.base, store.views, executors, settings, clock, store.staging_path)


def session_factory(settings: Settings, spark: Any = None) -> Callable[[], Any]:
    """Return what gives the SparkSession: the caller's, or ours, started at its first use."""
    if spark is not None:
        return lambda: spark

    def start() -> Any:
        # pyspark is slow to import and not everybody needs it.
        from viewkeeper.executors.spark.session import spark_session

        return spark_session(master=settings.spark_master)

    return start


def _spark_executor(store: OpenStore, settings: Settings, spark: Any) -> Executor:
    from viewkeeper.executors.spark.job import SparkExecutor

    opener = SpaceOpener(str(store.location), options_of(settings))
    return SparkExecutor(session_factory(settings, spark), opener, str(store.staging_path), settings.spark_partitions)


def make_spark_queries(store: OpenStore, settings: Settings, session: Callable[[], Any]) -> Any:
    """Return Spark SQL over the tables and views of ``store``."""
    from viewkeeper.executors.spark.queries import SparkQueryRunner

    return SparkQueryRunner(session, SpaceOpener(str(store.location), options_of(settings)))


def pickled_function(function: Callable[..., Any]) -> bytes:
    """Return the code of a function that is not imported, for another process; see ``executors.spark.closures``."""
    from viewkeeper.executors.spark.closures import pickled

    return pickled(function)


@dataclass(frozen=True)
class StoreOpener:
    """Opens the spaces of any store by its path, with default settings; picklable."""

    def __call__(self, path: str) -> tuple[Space, Space]:
        """Return the base and the views space of the store at ``path``."""
        return SpaceOpener(path, options_of(Settings()))()


def register_source(spark: Any) -> None:
    """Let ``spark`` read stores by the format ``viewkeeper``."""
    from viewkeeper.executors.spark.source import register

    register(spark, StoreOpener())
