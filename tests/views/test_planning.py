"""Plans are kept while their views are there, whatever other threads of a connection plan meanwhile."""

from viewkeeper.database import connect
from viewkeeper.views.planning import Planner


class WhileAnotherPlans:
    """Ids of views to keep; while one is asked for, somebody plans another view."""

    def __init__(self, planner, catalog, kept, other):
        self.planner, self.catalog, self.kept, self.other = planner, catalog, kept, other

    def __contains__(self, view):
        self.planner.plan(self.catalog, self.other)
        return view == self.kept


def test_what_is_planned_while_others_are_forgotten(tmp_path):
    with connect(tmp_path / "store", executor="local", durability="none") as db:
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        for name in "abc":
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT k FROM t")
        catalog = db._engine.coordinator.catalog()
        planner = Planner()
        a, b, c = (catalog.view(name) for name in "abc")
        kept = planner.plan(catalog, a)
        gone = planner.plan(catalog, b)
        planner.keep(WhileAnotherPlans(planner, catalog, a.id, c))
        assert planner.plan(catalog, a) is kept
        assert planner.plan(catalog, b) is not gone
