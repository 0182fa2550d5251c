"""Running SQL text: each statement goes to the part of the product that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from viewkeeper.database import definitions, described, maintenance
from viewkeeper.database.maintenance import Progress
from viewkeeper.errors import InputError
from viewkeeper.evaluation import dml, merge
from viewkeeper.evaluation.moments import EvaluationContext
from viewkeeper.evaluation.queries import run_query
from viewkeeper.evaluation.result import Result
from viewkeeper.evaluation.verify import VerifyReport, verify_view
from viewkeeper.log.position import Position
from viewkeeper.plan.place import Place
from viewkeeper.statements import model as st
from viewkeeper.statements.parse import parse_script, parse_statement
from viewkeeper.zset.schema import Schema

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine


def run(engine: Engine, text: str, parameters: Mapping[str, object], progress: Progress | None) -> Result:
    """Run the statements of ``text`` in order and return the last one's result."""
    result = _nothing()
    for statement in parse_script(text):
        engine.text = text
        result = _Runner(engine, parameters, progress).run(statement)
    return result


def context_of(engine: Engine) -> EvaluationContext:
    """Return what evaluation needs of a connection."""
    spark = (lambda: engine.spark_queries) if engine.can_use_spark else None
    return EvaluationContext(
        engine.store.base,
        engine.store.views,
        engine.coordinator.planner,
        engine.session,
        spark,
        engine.settings.query_rows_local,
    )


def explain_text(engine: Engine, text: str) -> str:
    """Return how a query, or the query of a CREATE MATERIALIZED VIEW, would be maintained."""
    statement = parse_statement(text)
    engine.text = text
    if isinstance(statement, st.ExplainCreate):
        statement = statement.create
    if isinstance(statement, st.ExplainView):
        return described.explain_view(engine, statement.name)
    if isinstance(statement, st.CreateView):
        return described.explain_query(engine, statement.query.text, Place(text, statement.query.place.offset))
    if isinstance(statement, st.Query | st.ExplainQuery):
        return described.explain_query(engine, statement.query.text, Place(text, statement.query.place.offset))
    raise InputError("EXPLAIN_NOT_SUPPORTED", "EXPLAIN takes a query or a CREATE MATERIALIZED VIEW statement.")


def verify(engine: Engine, name: str) -> VerifyReport:
    """Compare a view with its query over base rows, by Spark."""
    return verify_view(context_of(engine), name)


def _nothing() -> Result:
    return Result(Schema(()), [])


class _Runner:
    """Runs single statements.

    Args:
        engine: the connection.
        parameters: values of ``:name``.
        progress: called while a view is filled.
    """

    def __init__(self, engine: Engine, parameters: Mapping[str, object], progress: Progress | None) -> None:
        self._engine = engine
        self._parameters = parameters
        self._progress = progress

    def run(self, statement: st.Statement) -> Result:
        """Run ``statement``."""
        if isinstance(statement, st.Query):
            return run_query(context_of(self._engine), statement.query, self._parameters, statement=self._engine.text)
        done: Callable[[Any], Result | None] = getattr(self, f"_{type(statement).__name__}")
        result = done(statement)
        # A result without rows is false, and still says what was done.
        return _nothing() if result is None else result

    def _CreateTable(self, s: st.CreateTable) -> None:  # noqa: N802 - named as the statement, found by that name
        definitions.create_table(self._engine, s)

    def _DropTable(self, s: st.DropTable) -> None:  # noqa: N802
        definitions.drop_table(self._engine, s)

    def _TruncateTable(self, s: st.TruncateTable) -> Result:  # noqa: N802
        position = Position(definitions.truncate_table(self._engine, s))
        return Result(Schema(()), [], position=position)

    def _Insert(self, s: st.Insert) -> Result:  # noqa: N802
        return dml.insert(context_of(self._engine), s, self._parameters, self._engine.text)

    def _Update(self, s: st.Update) -> Result:  # noqa: N802
        return dml.update(context_of(self._engine), s, self._parameters, self._engine.text)

    def _Delete(self, s: st.Delete) -> Result:  # noqa: N802
        return dml.delete(context_of(self._engine), s, self._parameters, self._engine.text)

    def _Merge(self, s: st.Merge) -> Result:  # noqa: N802
        return merge.merge(context_of(self._engine), s, self._parameters, self._engine.text)

    def _AlterTableAddColumn(self, s: st.AlterTableAddColumn) -> None:  # noqa: N802
        definitions.add_columns(self._engine, s)

    def _CreateView(self, s: st.CreateView) -> None:  # noqa: N802
        made = definitions.create_view(self._engine, s)
        if made is not None and not s.with_no_data:
            maintenance.fill(self._engine, made, self._progress)
            self._warn_failed(s.name)

    def _AlterViewAs(self, s: st.AlterViewAs) -> None:  # noqa: N802
        maintenance.fill(self._engine, definitions.alter_view_as(self._engine, s), self._progress)
        self._warn_failed(s.name)

    def _AlterViewSuspend(self, s: st.AlterViewSuspend) -> None:  # noqa: N802
        definitions.suspend_view(self._engine, s)

    def _AlterViewResume(self, s: st.AlterViewResume) -> None:  # noqa: N802
        made = definitions.resume_view(self._engine, s)
        if made is not None:
            maintenance.fill(self._engine, made, self._progress)

    def _AlterViewRename(self, s: st.AlterViewRename) -> None:  # noqa: N802
        definitions.rename_view(self._engine, s)

    def _DropView(self, s: st.DropView) -> None:  # noqa: N802
        definitions.drop_view(self._engine, s)

    def _RefreshView(self, s: st.RefreshView) -> Result:  # noqa: N802
        return described.refreshed(maintenance.refresh(self._engine, (s.name,), s.full, self._progress))

    def _VerifyView(self, s: st.VerifyView) -> Result:  # noqa: N802
        report = verify(self._engine, s.name)
        if s.repair and not report.ok:
            view = self._engine.coordinator.catalog().view(s.name)
            maintenance.rebuild_in_full(self._engine, view, self._progress)
        return described.verified(report, s.repair)

    def _ShowTables(self, s: st.ShowTables) -> Result:  # noqa: N802
        return described.show_tables(self._engine)

    def _ShowViews(self, s: st.ShowViews) -> Result:  # noqa: N802
        return described.show_views(self._engine)

    def _ShowCreate(self, s: st.ShowCreate) -> Result:  # noqa: N802
        return described.show_create(self._engine, s.name)

    def _Describe(self, s: st.Describe) -> Result:  # noqa: N802
        return described.describe(self._engine, s.name, s.extended)

    def _ExplainCreate(self, s: st.ExplainCreate) -> Result:  # noqa: N802
        query = s.create.query
        place = Place(self._engine.text, query.place.offset)
        return described.text_result("plan", described.explain_query(self._engine, query.text, place))

    def _ExplainView(self, s: st.ExplainView) -> Result:  # noqa: N802
        return described.text_result("plan", described.explain_view(self._engine, s.name))

    def _ExplainQuery(self, s: st.ExplainQuery) -> Result:  # noqa: N802
        place = Place(self._engine.text, s.query.place.offset)
        return described.text_result("plan", described.explain_query(self._engine, s.query.text, place))

    def _warn_failed(self, name: str) -> None:
        """CREATE of a view that cannot be computed now succeeds as a FAILED view, and says so."""
        maintenance.raise_failed(self._engine, maintenance.wanted_views(self._engine.coordinator.catalog(), (name,)))
