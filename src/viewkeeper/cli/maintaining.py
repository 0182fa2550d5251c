"""A maintainer in a thread of its own, for the command and for the child process of ``db.maintain()``.

The main thread stays free for signals: Spark, started outside it, leaves their handlers alone, and no epoch is cut
short by an exception out of a signal; it is published, or would be run again by the next maintainer.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Self

from viewkeeper.coordinator.core import Coordinator, Outcome
from viewkeeper.coordinator.lanes import SideBySide
from viewkeeper.coordinator.maintainer import Maintainer, Scrubbing
from viewkeeper.coordinator.retries import Trouble
from viewkeeper.errors import ViewkeeperError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class MaintainingThread:
    """Runs a maintainer until it is stopped; use as a context manager, which starts it and waits for its end.

    The caller holds the maintainer's lock, and closes the store only after the block: nothing may be closed under a
    running epoch.

    Args:
        coordinator: runs the epochs.
        report: called with each epoch, of one at a time, in a thread of its work.
        complain: called with each error that is not the maintainer's end, likewise.
        note: called with all work that has failed and waits, whenever that changes, likewise.
        scrub: checks views in quiet moments.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        report: Callable[[Outcome], None] = lambda outcome: None,
        complain: Callable[[ViewkeeperError], None] = lambda error: None,
        note: Callable[[Sequence[Trouble]], None] = lambda troubles: None,
        scrub: Scrubbing | None = None,
    ) -> None:
        self._maintainer = Maintainer(coordinator, report, complain, note, scrub, SideBySide(coordinator))
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="viewkeeper-maintainer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Ask for the end, after the running epoch; from any thread."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether the end was asked for."""
        return self._stopping.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most ``seconds``; return whether it came.

        Raises:
            BaseException: what ended it, if that was an error.
        """
        if not self._ended.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def stop_on_signals(self) -> None:
        """Let the first SIGINT or SIGTERM ask for the end, and a second one have its ordinary effect."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop_on_signal)

    def _stop_on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _run(self) -> None:
        try:
            self._maintainer.run(self._stopping.is_set)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()
