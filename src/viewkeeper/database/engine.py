"""What the parts of the public API share: the open store, its coordinator, the session."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, RLock, local
from typing import Any

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.coordinator import upkeep
from viewkeeper.coordinator.swaps import finish_swaps
from viewkeeper.database import definitions
from viewkeeper.database.reading import Names
from viewkeeper.database.writes import Writer
from viewkeeper.errors import StoreError, UnsupportedSql
from viewkeeper.expressions.tree import Session
from viewkeeper.runtime import OpenStore, make_coordinator, make_spark_queries, session_factory
from viewkeeper.settings import Settings
from viewkeeper.zset.schema import Schema, SqlType


class Engine:
    """One connection's parts.

    Args:
        store: the open store.
        settings: of this connection.
        spark: the caller's SparkSession, or None.
        clock: where time comes from.
    """

    def __init__(self, store: OpenStore, settings: Settings, spark: Any = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.session = Session(time_zone=settings.time_zone)
        self.coordinator = make_coordinator(store, settings, spark, clock)
        self.writer = Writer(self.coordinator, settings.time_zone)
        self.spark_session: Callable[[], Any] = session_factory(settings, spark)
        self.names = Names(self)
        # Threads of this connection take turns at the work of the maintainer's lock, which they hold together.
        self.turn = RLock()
        self._closing = Lock()
        self._running = local()
        self._spark_queries: Any = None
        self._is_open = True
        upkeep.find_lost_positions(self.coordinator)

    @property
    def can_use_spark(self) -> bool:
        """Whether Spark can read this store: it lies in a folder."""
        return self.store.location is not None

    @property
    def spark_queries(self) -> Any:
        """Spark SQL over this store's tables and views, where it ``can_use_spark``; starts Spark at its first use."""
        assert self.can_use_spark, "Spark cannot read a store in memory"
        if self._spark_queries is None:
            self._spark_queries = make_spark_queries(self.store, self.settings, self.spark_session)
        return self._spark_queries

    def spark_types(self, sql: str, schema: Schema) -> tuple[SqlType, bool, bool]:
        """Return type, nullability and determinism of an expression outside the portable set, by Spark's analyzer.

        Raises:
            UnsupportedSql: ``EXPRESSION_NEEDS_SPARK`` for a store in memory.
        """
        if not self.can_use_spark:
            message = f"The expression {sql} is not portable: it needs Spark, which cannot read a store in memory."
            raise UnsupportedSql("EXPRESSION_NEEDS_SPARK", message)
        answer: tuple[SqlType, bool, bool] = self.spark_queries.analyze(sql, schema, self.session)
        return answer

    def change_catalog(
        self, change: definitions.ChangeCatalog, sql: str, also: definitions.AlsoChange | None = None
    ) -> None:
        """Apply ``change`` to the catalog, all swaps finished first; see ``definitions.change_catalog``."""
        finish_swaps(self.coordinator)
        definitions.change_catalog(self, change, sql, also)

    @property
    def text(self) -> str:
        """The SQL text that this thread runs, for the places in its errors."""
        return getattr(self._running, "text", "")

    @text.setter
    def text(self, text: str) -> None:
        self._running.text = text

    def check_open(self) -> None:
        """Raise StoreError ``STORE_CLOSED`` after ``close``."""
        refusal = self.refusal()
        if refusal is not None:
            raise refusal

    def refusal(self) -> StoreError | None:
        """Return the error of a closed connection, None while it is open."""
        if self._is_open:
            return None
        return StoreError("STORE_CLOSED", "This connection is closed: open another with viewkeeper.connect().")

    def close(self) -> None:
        """Close the store; closing twice is fine, also from two threads."""
        with self._closing:
            if self._is_open:
                self._is_open = False
                self.store.close()
