"""What a circuit's operators took, node by node: the ground on which the cost model stands.

The probe is handed to a step from outside, clock and all: a step itself knows no time, and its result does not depend
on being measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Probe:
    """Counts seconds and rows of each node.

    Args:
        now: gives seconds that only grow.

    Example:
        >>> times = iter([0.0, 1.0, 3.0])
        >>> probe = Probe(lambda: next(times))
        >>> probe.begin()
        >>> probe.passed(0, 5)
        >>> probe.passed(1, 2)
        >>> probe.seconds, probe.rows
        ({0: 1.0, 1: 2.0}, {0: 5, 1: 2})
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since = 0.0
        self.seconds: dict[int, float] = {}
        self.rows: dict[int, int] = {}

    def begin(self) -> None:
        """Count from now on."""
        self._since = self._now()

    def passed(self, node: int, rows: int) -> None:
        """Note that ``node`` has done its work: what has passed since the node before it, or since ``begin``, is its.

        Args:
            node: the node's id.
            rows: how many rows came out of it.
        """
        now = self._now()
        self.seconds[node] = self.seconds.get(node, 0.0) + now - self._since
        self.rows[node] = self.rows.get(node, 0) + rows
        self._since = now

    def divided(self, rows: Mapping[int, int]) -> None:
        """Divide what has passed among nodes by their rows, which are counted when the nodes themselves pass.

        Args:
            rows: by node.
        """
        now = self._now()
        total = sum(rows.values())
        for node, count in rows.items():
            part = count / total if total else 1 / len(rows)
            self.seconds[node] = self.seconds.get(node, 0.0) + (now - self._since) * part
        self._since = now
