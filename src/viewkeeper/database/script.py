"""Running SQL text: each statement goes to the part of the product that does it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatchmethod
from typing import TYPE_CHECKING

from viewkeeper.database import columns, definitions, described, functions, maintenance, policies
from viewkeeper.database.maintenance import Progress
from viewkeeper.errors import InputError, shown
from viewkeeper.evaluation import dml, merge
from viewkeeper.evaluation.moments import EvaluationContext
from viewkeeper.evaluation.queries import run_query
from viewkeeper.evaluation.result import Result
from viewkeeper.evaluation.verify import VerifyReport, verify_view
from viewkeeper.log.position import Position
from viewkeeper.plan.place import Place
from viewkeeper.statements import model as st
from viewkeeper.statements.excerpt import placed, pointing_into
from viewkeeper.statements.parse import parse_script, parse_statement
from viewkeeper.zset.schema import Schema

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine


def run(engine: Engine, text: str, parameters: Mapping[str, object], progress: Progress | None) -> Result:
    """Run the statements of ``text`` in order and return the last one's result.

    Raises:
        InputError: ``WRONG_TYPE`` for parameters that have no names.
    """
    _check_named(parameters)
    result = _nothing()
    with pointing_into(text):
        for statement in parse_script(text):
            engine.text = text
            result = _run(engine, statement, parameters, progress)
    return result


def _check_named(parameters: object) -> None:
    if not isinstance(parameters, Mapping):
        message = f"Parameters are a dict: write :name in the SQL and pass {{'name': value}}, not {shown(parameters)}."
        raise InputError("WRONG_TYPE", message)


def _run(
    engine: Engine, statement: st.Statement, parameters: Mapping[str, object], progress: Progress | None
) -> Result:
    try:
        return _Runner(engine, parameters, progress).run(statement)
    except InputError as error:
        at = placed(error, statement)
        if at is error:
            raise
        raise at from error


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
    with pointing_into(text):
        return _explain(engine, parse_statement(text), text)


def _explain(engine: Engine, statement: st.Statement, text: str) -> str:
    engine.text = text
    if isinstance(statement, st.ExplainCreate):
        statement = statement.create
    if isinstance(statement, st.ExplainView):
        return _explain_view(engine, statement)
    if isinstance(statement, st.CreateView):
        place = Place(text, statement.query.place.offset)
        return described.explain_query(engine, statement.query.text, place, statement)
    if isinstance(statement, st.Query | st.ExplainQuery):
        return described.explain_query(engine, statement.query.text, Place(text, statement.query.place.offset))
    raise InputError("EXPLAIN_NOT_SUPPORTED", "EXPLAIN takes a query or CREATE MATERIALIZED VIEW: give one.")


def _explain_view(engine: Engine, s: st.ExplainView) -> str:
    if s.analyze:
        return policies.explain_analyzed(engine, s.name)
    return f"{described.explain_view(engine, s.name)}\n{policies.explain_next(engine, s.name)}"


def verify(
    engine: Engine, name: str, state: bool = True, repair: bool = False, progress: Progress | None = None
) -> VerifyReport:
    """Compare a view, and the state behind it, with queries over base rows, by Spark.

    Args:
        engine: the connection.
        name: the view.
        state: whether to compare the state, too.
        repair: fill it anew where it is wrong.
        progress: called while it is filled.

    Returns:
        What was found, before the repair.

    Raises:
        ViewFailed: filled anew, the view cannot show the current answer.
    """
    report = verify_view(context_of(engine), name, with_state=state)
    if repair and report.is_wrong:
        maintenance.rebuild_in_full(engine, engine.coordinator.catalog().view(name), progress)
        maintenance.raise_failed(engine, [engine.coordinator.catalog().view(name)])
    return report


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
        result = self._do(statement)
        # A result without rows is false, and still says what was done.
        return _nothing() if result is None else result

    @singledispatchmethod
    def _do(self, statement: st.Statement) -> Result | None:
        """Do what ``statement`` says; each kind has its method below."""
        raise InputError(
            "STATEMENT_NOT_SUPPORTED", f"{type(statement).__name__} cannot be run here: give a statement of SQL."
        )

    @_do.register
    def _create_table(self, s: st.CreateTable) -> None:
        definitions.create_table(self._engine, s)

    @_do.register
    def _drop_table(self, s: st.DropTable) -> None:
        definitions.drop_table(self._engine, s)

    @_do.register
    def _truncate_table(self, s: st.TruncateTable) -> Result:
        position = Position(definitions.truncate_table(self._engine, s))
        return Result(Schema(()), [], position=position)

    @_do.register
    def _insert(self, s: st.Insert) -> Result:
        return dml.insert(context_of(self._engine), s, self._parameters, self._engine.text)

    @_do.register
    def _update(self, s: st.Update) -> Result:
        return dml.update(context_of(self._engine), s, self._parameters, self._engine.text)

    @_do.register
    def _delete(self, s: st.Delete) -> Result:
        return dml.delete(context_of(self._engine), s, self._parameters, self._engine.text)

    @_do.register
    def _merge(self, s: st.Merge) -> Result:
        return merge.merge(context_of(self._engine), s, self._parameters, self._engine.text)

    @_do.register
    def _alter_table_add_column(self, s: st.AlterTableAddColumn) -> None:
        columns.add_columns(self._engine, s)

    @_do.register
    def _alter_table_rename_column(self, s: st.AlterTableRenameColumn) -> None:
        columns.rename_column(self._engine, s)

    @_do.register
    def _alter_table_drop_columns(self, s: st.AlterTableDropColumns) -> None:
        columns.drop_columns(self._engine, s)

    @_do.register
    def _alter_table_widen_column(self, s: st.AlterTableWidenColumn) -> None:
        self._fill(*columns.widen_column(self._engine, s))

    @_do.register
    def _create_view(self, s: st.CreateView) -> None:
        made = definitions.create_view(self._engine, s)
        if made is not None and not s.with_no_data:
            self._fill(made)

    @_do.register
    def _alter_view_as(self, s: st.AlterViewAs) -> None:
        self._fill(definitions.alter_view_as(self._engine, s))

    @_do.register
    def _alter_view_suspend(self, s: st.AlterViewSuspend) -> None:
        definitions.suspend_view(self._engine, s)

    @_do.register
    def _alter_view_resume(self, s: st.AlterViewResume) -> None:
        made = definitions.resume_view(self._engine, s)
        if made is not None:
            self._fill(made)

    @_do.register
    def _alter_view_rename(self, s: st.AlterViewRename) -> None:
        definitions.rename_view(self._engine, s)

    @_do.register
    def _alter_view_policy(self, s: st.AlterViewPolicy) -> None:
        policies.set_policy(self._engine, s)

    @_do.register
    def _drop_view(self, s: st.DropView) -> None:
        definitions.drop_view(self._engine, s)

    @_do.register
    def _refresh_view(self, s: st.RefreshView) -> Result:
        return described.refreshed(maintenance.refresh(self._engine, (s.name,), s.full, self._progress))

    @_do.register
    def _verify_view(self, s: st.VerifyView) -> Result:
        report = verify(self._engine, s.name, repair=s.repair, progress=self._progress)
        return described.verified(report, s.repair)

    @_do.register
    def _drop_function(self, s: st.DropFunction) -> None:
        functions.drop_function(self._engine, s.name, s.if_exists, s.sql)

    @_do.register
    def _show_functions(self, s: st.ShowFunctions) -> Result:
        return functions.show_functions(self._engine)

    @_do.register
    def _show_tables(self, s: st.ShowTables) -> Result:
        return described.show_tables(self._engine)

    @_do.register
    def _show_views(self, s: st.ShowViews) -> Result:
        return described.show_views(self._engine)

    @_do.register
    def _show_decisions(self, s: st.ShowDecisions) -> Result:
        return policies.show_decisions(self._engine, s.name)

    @_do.register
    def _show_create(self, s: st.ShowCreate) -> Result:
        return described.show_create(self._engine, s.name)

    @_do.register
    def _describe(self, s: st.Describe) -> Result:
        return described.describe(self._engine, s.name, s.extended)

    @_do.register
    def _explain(self, s: st.ExplainCreate | st.ExplainView | st.ExplainQuery) -> Result:
        return described.text_result("plan", _explain(self._engine, s, self._engine.text))

    def _fill(self, *views: int) -> None:
        maintenance.fill_all(self._engine, views, self._progress)
