"""A moment shows each view whole, also where one is replaced between the look at rows and the one at the catalog."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from viewkeeper.database.connection import Database
from viewkeeper.database.script import context_of
from viewkeeper.evaluation.moments import open_moment
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import ReadTransaction, Space


class LooksBack:
    """A space whose first reads see earlier moments."""

    def __init__(self, space: Space, earlier: deque[ReadTransaction]) -> None:
        self._space = space
        self._earlier = earlier

    @contextmanager
    def read(self) -> Iterator[ReadTransaction]:
        if self._earlier:
            yield self._earlier.popleft()
            return
        with self._space.read() as txn:
            yield txn


def test_a_moment_never_shows_a_view_half_built() -> None:
    with Database(memory_store(), Settings(executor="local")) as db, ExitStack() as opened:
        db.sql("CREATE TABLE t (k INT, PRIMARY KEY (k)); INSERT INTO t VALUES (1), (2)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        context = context_of(db._engine)
        looks: list[ReadTransaction] = []

        def look(place: str) -> None:
            if place == "publish:after":
                looks.append(opened.enter_context(context.views.read()))

        with hooked(look):
            db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k + 1 AS k FROM t")
        assert looks, "the build published nothing on its way"
        for earlier in looks:
            disturbed = replace(context, views=LooksBack(context.views, deque([earlier])))  # type: ignore[arg-type]
            with open_moment(disturbed) as moment:
                view = moment.stored_view(disturbed, moment.catalog.view("v"))
                assert view.count(moment.views) == 2
