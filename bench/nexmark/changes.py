"""Rounds of changes: the events that come next, and bids that change their price or are taken back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.nexmark.events import between, generate, prices
from bench.suites.suite import Round

# More than the rounds of a run take.
_COMING_PART = 0.1


class Happenings:
    """A seeded stream of rounds over tables that change with it.

    Args:
        events: how many have happened before the first round.
        seed: of the draws.
    """

    def __init__(self, events: int, seed: int) -> None:
        self._all = generate(round(events * (1 + _COMING_PART)), seed)
        self._random = np.random.default_rng(seed)
        self._events = self._next = events
        self.tables = {**between(self._all, 0, events), "side_input": self._all["side_input"]}

    def take(self, part: float) -> Round:
        """Return the next round.

        Args:
            part: of the events before the first round, how many rows change; at least four.

        Raises:
            ValueError: if no more so many events come.
        """
        quarter = max(1, round(part * self._events / 4))
        stop = self._next + 2 * quarter
        if stop > round(self._events * (1 + _COMING_PART)):
            raise ValueError("the rounds have used up the events that were generated")
        puts = between(self._all, self._next, stop)
        self._next = stop
        bids = self.tables["bid"]
        touched = bids.take(pa.array(self._random.choice(len(bids), 2 * quarter, replace=False)))
        gone, changed = touched.slice(0, quarter), touched.slice(quarter)
        place = changed.schema.get_field_index("price")
        changed = changed.set_column(place, changed.schema.field(place), pa.array(prices(self._random, quarter)))
        kept = bids.filter(pc.invert(pc.is_in(bids["id"], touched["id"])))
        puts["bid"] = pa.concat_tables([puts["bid"], changed])
        self.tables = {**self.tables, "bid": pa.concat_tables([kept, puts["bid"]]).combine_chunks()}
        for name in ("person", "auction"):
            self.tables[name] = pa.concat_tables([self.tables[name], puts[name]]).combine_chunks()
        return Round({name: rows for name, rows in puts.items() if len(rows)}, {"bid": gone.select(["id"])})
