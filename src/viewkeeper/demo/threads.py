"""Work beside the screen: threads that keep what ended them, and Spark, started while the first rows are shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from viewkeeper.runtime import session_factory
from viewkeeper.settings import Settings

_START_SECONDS = 30.0


class Worker(threading.Thread):
    """A thread that keeps the error that ended it.

    Args:
        name: its name.
        work: what it does.
        ended: called when it ends, with the error or None.
    """

    def __init__(self, name: str, work: Callable[[], None], ended: Callable[[BaseException | None], None]) -> None:
        super().__init__(name=f"viewkeeper-demo-{name}", daemon=True)
        self._work = work
        self._ended = ended
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work."""
        try:
            self._work()
        except BaseException as error:  # kept for the thread that waits
            self.error = error
        self._ended(self.error)

    def finish(self) -> None:
        """Wait for the end, and raise what ended it."""
        self.join()
        if self.error is not None:
            raise self.error


class SparkStart:
    """A Spark session that starts in the background, workers included; leaving the block stops it if it is ours.

    Args:
        given: the caller's session, which is used as it is and never stopped.
        settings: where ours runs; by default on this machine.
    """

    def __init__(self, given: Any = None, settings: Settings | None = None) -> None:
        self._given = given
        self._settings = settings or Settings()
        self._session: Any = None
        self._when_ready: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._worker = Worker("spark", self._start, self._started)

    def __enter__(self) -> SparkStart:
        self._worker.start()
        return self

    def _start(self) -> None:
        session = session_factory(self._settings, self._given)()
        # Python workers take seconds to start: let them do it now.
        tasks = self._settings.spark_partitions
        session.range(0, tasks, 1, tasks).mapInArrow(_same, "id BIGINT").collect()
        self._session = session

    def _started(self, error: BaseException | None) -> None:
        with self._lock:
            self._when_ready()

    def call_when_ready(self, action: Callable[[], None]) -> None:
        """Have ``action`` called once the start has ended, well or not; at once where it has already."""
        with self._lock:
            self._when_ready = action
            if not self._worker.is_alive():
                action()

    def session_if_ready(self) -> Any:
        """Return the session, None while it starts.

        Raises:
            ViewkeeperError: what kept it from starting, for example ``JAVA_NOT_FOUND``.
        """
        if self._worker.error is not None:
            raise self._worker.error
        return self._session

    def session(self) -> Any:
        """Return the session, waiting for it.

        Raises:
            ViewkeeperError: what kept it from starting.
        """
        self._worker.finish()
        return self._session

    def cancel_jobs(self) -> None:
        """End running jobs: their epochs are not published, and run again at the next start."""
        if self._session is not None:
            self._session.sparkContext.cancelAllJobs()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What Java says while it starts is kept off the screen, and an error of ours would go with it: wait for it.
        # After Ctrl-C nobody wants to wait; the start then dies with the process.
        if kind is not None and issubclass(kind, Exception):
            self._worker.join(_START_SECONDS)
        if self._given is None and self._session is not None:
            self._session.stop()


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    return batches
