"""``connect`` and ``Database``: what an application holds while it uses a store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.database import functions, maintenance, policies, reading, script, status
from viewkeeper.database.background import BackgroundMaintainer
from viewkeeper.database.engine import Engine
from viewkeeper.database.maintenance import Progress, Refreshed
from viewkeeper.database.quick_get import QuickGet, quick_get
from viewkeeper.database.reading import Reader, Snapshot, TableHandle
from viewkeeper.database.writing import Writing
from viewkeeper.evaluation.result import Result
from viewkeeper.log.position import Position
from viewkeeper.runtime import OpenStore, open_store
from viewkeeper.settings import Settings
from viewkeeper.store.values import zone
from viewkeeper.zset.schema import SqlType

if TYPE_CHECKING:
    from viewkeeper.errors import StoreError
    from viewkeeper.evaluation.verify import VerifyReport


def connect(store: str | os.PathLike[str], *, spark: Any = None, create: bool = True, **settings: Any) -> Database:
    """Open a store, made where there is none.

    Args:
        store: the path of a folder.
        spark: a SparkSession to use; without it one is started when it is first needed.
        create: False refuses a missing store instead of making it.
        settings: see ``viewkeeper.settings.SETTINGS``.

    Raises:
        StoreError: the folder is missing, foreign, newer or not writable.
        InputError: ``WRONG_TYPE``, ``UNKNOWN_SETTING``, ``INVALID_SETTING``, ``INVALID_TIME_ZONE``.

    Example:
        >>> import tempfile, viewkeeper as vk
        >>> with tempfile.TemporaryDirectory() as folder, vk.connect(folder + "/shop.vk") as db:
        ...     _ = db.sql("CREATE TABLE t (k BIGINT, a STRING, PRIMARY KEY (k))")
        ...     _ = db.put("t", {"k": 1, "a": "x"})
        ...     db.get("t", 1)
        {'k': 1, 'a': 'x'}
    """
    chosen = Settings.of(settings)
    zone(chosen.time_zone)  # refuse an unknown one now, not at the first value that needs it
    return Database(open_store(store, chosen, create), chosen, spark)


class Database(Writing):
    """An open store; made by ``connect``, closed by ``close`` or by leaving its ``with`` block.

    Args:
        store: the open store.
        settings: of this connection.
        spark: the caller's SparkSession, or None.
        clock: where time comes from.
    """

    def __init__(self, store: OpenStore, settings: Settings, spark: Any = None, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(Engine(store, settings, spark, clock))
        self._background: BackgroundMaintainer | None = None
        self._quick: dict[str, QuickGet] = {}

    def refusal(self) -> StoreError | None:
        """Return the error of a closed connection, None while it is open.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.refusal() is None
            True
        """
        return self._engine.refusal()

    def close(self) -> None:
        """Close the store; a running ``maintain`` ends. Closing twice is fine.

        What other threads do with this connection at that moment ends with StoreError ``STORE_CLOSED``, open snapshots
        and scans too: a transaction is then committed or has left nothing, and an epoch is published or run again.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> db = shop()
            >>> db.close()
            >>> db.refusal().code
            'STORE_CLOSED'
        """
        if self._background is not None:
            self._background.stop()
        self._engine.close()

    # ---- SQL ----

    def sql(
        self, text: str, parameters: Mapping[str, object] | None = None, *, progress: Progress | None = None
    ) -> Result:
        """Run one or more statements and return the last one's result.

        Args:
            text: statements, separated by semicolons.
            parameters: values of ``:name`` in queries.
            progress: called while a view is filled, with base rows done, base rows in all, and the epoch.

        Raises:
            SqlError: SQL that is wrong; ``details`` has line, column and the piece of text.
            UnsupportedSql: what cannot be maintained, with the reason's code.

        Example:
            >>> import tempfile, viewkeeper as vk
            >>> with tempfile.TemporaryDirectory() as folder, vk.connect(folder + "/shop.vk") as db:
            ...     _ = db.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 5), (2, 6)")
            ...     db.sql("SELECT v FROM t WHERE k = :k", {"k": 2}).rows()
            [{'v': 6}]
        """
        self._engine.check_open()
        return script.run(self._engine, text, parameters or {}, progress)

    def explain(self, text: str) -> str:
        """Return how a query would be maintained: its plan, its state, its executor.

        Args:
            text: a query, or a CREATE MATERIALIZED VIEW statement.

        Raises:
            SqlError, UnsupportedSql: as creating the view would.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     print(db.explain("SELECT product, price FROM orders WHERE price > 4"))
            columns: product STRING, price INT
            hidden: __key_0_id BIGINT NOT NULL
            key: __key_0_id
            Project product := product, price := price, __key_0_id := id
              Filter (price > 4)
                Scan orders (id, product, price)
            ...
        """
        self._engine.check_open()
        return script.explain_text(self._engine, text)

    # ---- reading ----

    def _reader(self) -> Reader:
        self._engine.check_open()
        return reading.reader(self._engine)

    def get(self, name: str, key: object) -> dict[str, Any] | None:
        """Return the row of a table or view at ``key``, None where there is none.

        Args:
            name: a base table or a view.
            key: one value, a tuple in key order, or a dict.

        Raises:
            InputError: ``VIEW_HAS_NO_KEY`` for a view whose key is not among its columns.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.get("orders", 1)
            {'id': 1, 'product': 'tea', 'price': 5}
        """
        quick = self._quick.get(name)
        if quick is not None:
            row = quick(key)
            if row is not None:
                return row
        with self._reader() as reader:
            row = reader.get(name, key)
        self._remember(name)
        return row

    def _remember(self, name: str) -> None:
        store = self._engine.store
        made = quick_get(store.base, store.views, lambda: self._engine.names.find_with_version(name))
        if made is not None:
            self._quick[name] = made

    def multi_get(self, name: str, keys: Sequence[object]) -> list[dict[str, Any] | None]:
        """Return the rows at ``keys``, in order, None where there is none.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.multi_get("sales", ["jam", "tea", "rum"])
            [{'product': 'jam', 'total': 7}, {'product': 'tea', 'total': 9}, None]
        """
        with self._reader() as reader:
            return reader.multi_get(name, keys)

    def scan(
        self,
        name: str,
        prefix: object = None,
        start: object = None,
        stop: object = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield rows of a table or view in key order, at one moment.

        Args:
            name: a base table or a view.
            prefix: values of the first key columns.
            start: the first key, inclusive.
            stop: the last key, exclusive.
            reverse: from the last to the first.
            limit: at most so many rows.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     [row["price"] for row in db.scan("orders", start=2, reverse=True)]
            [4, 7]
        """
        with self._reader() as reader:
            yield from reader.scan(name, prefix, start, stop, reverse, limit)

    def table(self, name: str) -> TableHandle:
        """Return a table or view as a whole: ``.to_arrow()``, ``.to_pandas()``.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.table("sales").to_arrow().num_rows
            2
        """
        self._engine.check_open()
        return TableHandle(self._engine, name)

    def snapshot(self) -> Snapshot:
        """Return one moment of the store: ``get`` and ``scan`` of several tables and views at one publishing.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     with db.snapshot() as moment:
            ...         _ = db.delete("orders", 1)
            ...         moment.get("orders", 1), db.get("orders", 1)
            ({'id': 1, 'product': 'tea', 'price': 5}, None)
        """
        self._engine.check_open()
        return Snapshot(self._engine)

    # ---- views ----

    def refresh(self, *views: str, full: bool = False, progress: Progress | None = None) -> Refreshed:
        """Bring views up to the log's end.

        Args:
            views: their names; none: all.
            full: fill them anew from the base tables.
            progress: called while views are filled.

        Raises:
            ViewFailed: at the end, naming views that cannot show the current answer.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     _ = db.put("orders", {"id": 4, "product": "jam", "price": 3})
            ...     db.refresh("sales").epochs, db.get("sales", "jam")
            (1, {'product': 'jam', 'total': 10})
        """
        self._engine.check_open()
        return maintenance.refresh(self._engine, views, full, progress)

    def wait_for(self, position: Position, *views: str, timeout_seconds: float = 30.0) -> None:
        """Return when views show ``position``: read your own writes.

        Args:
            position: what a write returned.
            views: their names; none: all.
            timeout_seconds: how long to wait.

        Raises:
            WaitTimeout: ``WAIT_TIMEOUT``.
            ViewFailed, InputError, ConflictError: at once, for a view that will not get there by itself.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     position = db.delete("orders", 3)
            ...     db.wait_for(position, "sales")
            ...     db.get("sales", "tea")
            {'product': 'tea', 'total': 5}
        """
        self._engine.check_open()
        maintenance.wait_for(self._engine, position, views, timeout_seconds)

    def maintain(self) -> BackgroundMaintainer:
        """Maintain all views continuously in a child process, until the ``with`` block or the connection ends.

        Raises:
            ConflictError: ``MAINTAINER_RUNNING`` with the process that maintains already.
        """
        self._engine.check_open()
        background = BackgroundMaintainer(self._engine)
        background.start()
        self._background = background
        return background

    def verify(self, view: str, state: bool = True, repair: bool = False) -> VerifyReport:
        """Compare a view with its query over the base rows at the view's own position, computed by Spark.

        Args:
            view: its name.
            state: whether to check the state behind it too: arrangements, groups, values of MIN and MAX.
            repair: fill it anew if it is found wrong; the report is of what was found.
        """
        self._engine.check_open()
        return script.verify(self._engine, view, state, repair)

    # ---- functions ----

    def register_function(
        self,
        name: str,
        function: functions.Function | None = None,
        return_type: str | SqlType | None = None,
        *,
        deterministic: bool = False,
        vectorized: str | None = None,
        by_value: bool | None = None,
        or_replace: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """Let queries, DML and views call a Python function; without ``function``, return a decorator that does so.

        Args:
            name: what SQL calls it, in any case.
            function: takes the arguments' values as ``get`` returns them, None for NULL, and returns such a value.
            return_type: the type of its results, as ``"INT"`` or ``"ARRAY<STRING>"``.
            deterministic: equal arguments always give equal results; views call only such functions.
            vectorized: ``"arrow"``: called with an Arrow array a argument, for many rows at once; ``"pandas"``: with
                pandas Series. Each result must follow from the values of its own row.
            by_value: True keeps the function's code in the store, False the name of its module; by default code for
                what a script or a notebook defines, and the name for what is imported.
            or_replace: replaces the function of that name, and fills the views that call it anew.
            progress: called while views are filled.

        Returns:
            ``function``.

        Raises:
            InputError: ``WRONG_TYPE``, ``INVALID_FUNCTION_NAME``, ``FUNCTION_NAME_TAKEN``, ``FUNCTION_EXISTS``,
                ``FUNCTION_NOT_PICKLABLE``, ``VIEW_BUILDING``.
            SqlError: a return type that is none.

        Example:
            >>> import tempfile, viewkeeper as vk
            >>> with tempfile.TemporaryDirectory() as folder, vk.connect(folder + "/shop.vk") as db:
            ...     _ = db.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 5)")
            ...     _ = db.register_function("twice", lambda v: None if v is None else 2 * v, "INT", deterministic=True)
            ...     db.sql("SELECT twice(v) AS w FROM t").rows()
            [{'w': 10}]
        """
        self._engine.check_open()
        kept = functions.Registration(name, return_type, deterministic, vectorized, by_value, or_replace)
        if function is None:
            return lambda decorated: functions.register_function(self._engine, kept, decorated, progress)
        return functions.register_function(self._engine, kept, function, progress)

    def functions(self) -> list[str]:
        """Return the names of the users' functions.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     _ = db.register_function("twice", lambda v: 2 * v, "INT", deterministic=True)
            ...     db.functions()
            ['twice']
        """
        return sorted(f.name for f in self._engine.coordinator.catalog().functions_by_name.values())

    def drop_function(self, name: str) -> None:
        """Drop a user's function.

        Raises:
            InputError: ``FUNCTION_NOT_FOUND``, or ``FUNCTION_IN_USE`` naming the views that call it.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     _ = db.register_function("twice", lambda v: 2 * v, "INT", deterministic=True)
            ...     db.drop_function("TWICE")
            ...     db.functions()
            []
        """
        self._engine.check_open()
        functions.drop_function(self._engine, name, False, f"DROP FUNCTION {name}")

    # ---- about ----

    def tables(self) -> list[str]:
        """Return the names of the base tables.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.tables()
            ['orders']
        """
        return sorted(t.name for t in self._engine.coordinator.catalog().tables.values())

    def views(self) -> list[str]:
        """Return the names of the views.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.views()
            ['sales']
        """
        return sorted(v.name for v in self._engine.coordinator.catalog().views.values() if v.replaces is None)

    def decisions(self, *views: str) -> list[dict[str, Any]]:
        """Return how views were refreshed and why: by their changes or in full, predicted and measured; newest first.

        Kept are the last hundred of each view; epochs that took less than 20 ms are not among them.

        Args:
            views: their names; none: all.

        Raises:
            InputError: ``VIEW_NOT_FOUND``.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     [decision["reason"] for decision in db.decisions("sales") if decision["seconds"] > 60]
            []
        """
        self._engine.check_open()
        return policies.decisions(self._engine, views)

    def status(self) -> dict[str, Any]:
        """Return what there is and how fresh: views, cadences, log, maintainer, readers.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.status()["views"][0]["rows_behind"]
            0
        """
        self._engine.check_open()
        return status.status(self._engine)
