"""SQL text → plans: the planner's public functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.binding import bind
from viewkeeper.plan.catalog import Relations, suggestion
from viewkeeper.plan.context import Context, SparkTypes
from viewkeeper.plan.keys import project_with_key
from viewkeeper.plan.limits import check_strict, sort_keys
from viewkeeper.plan.nodes import QueryPlan, Relation, ViewPlan
from viewkeeper.plan.one_row import tables_read
from viewkeeper.plan.ordering import take_ending
from viewkeeper.plan.parse import parse_expression, parse_query
from viewkeeper.plan.place import Place, located
from viewkeeper.plan.queries import plan_tree
from viewkeeper.plan.rules import rewrite
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.plan.translate import Translator
from viewkeeper.zset.schema import INTERVAL_YEAR_MONTH, Schema, SqlType

Functions = Mapping[str, UserFunction]


def plan_view(
    sql: str,
    relations: Relations,
    session: Session,
    place: Place | None = None,
    key: tuple[str, ...] | None = None,
    column_names: tuple[str, ...] | None = None,
    spark_types: SparkTypes | None = None,
    is_strict: bool = False,
) -> ViewPlan:
    """Plan the query of a view.

    Args:
        sql: the query.
        relations: the tables and views that it may read.
        session: time zone and ANSI mode, kept by the view.
        place: where ``sql`` stands in the user's statement.
        key: the columns of a declared PRIMARY KEY.
        column_names: other names for its columns.
        spark_types: types expressions that are not portable; None where there is no Spark.
        is_strict: whether what every change computes anew is refused: REFRESH POLICY INCREMENTAL.

    Raises:
        SqlError: SQL that is wrong, at its place.
        UnsupportedSql: SQL that cannot be maintained yet: see ``refusals.REFUSALS``.
    """
    context = Context(relations, session, place or Place(sql), spark_types, is_strict=is_strict)
    with _bounded_depth(context):
        return _view(sql, context, key, column_names)


def _view(sql: str, context: Context, key: tuple[str, ...] | None, column_names: tuple[str, ...] | None) -> ViewPlan:
    query = parse_query(sql, context.place)
    context = replace(context, tables=tables_read(query))
    source = plan_tree(query, context).source
    if column_names is not None:
        source = _renamed(source, column_names, context, query)
    _check_names(source, context, query)
    plan = _finished(source, context, query)
    if key is None:
        return plan
    return replace(plan, key=_declared_key(plan, key, context, query), declared=True)


def plan_query(
    sql: str,
    relations: Relations,
    session: Session,
    parameters: Mapping[str, object] | None = None,
    spark_types: SparkTypes | None = None,
    place: Place | None = None,
) -> QueryPlan:
    """Plan an ad hoc query: what a view may be, then ORDER BY, LIMIT and OFFSET.

    Args:
        sql: the query.
        relations: the tables and views that it may read.
        session: time zone and ANSI mode.
        parameters: the values of ``:name``.
        spark_types: as for ``plan_view``.
        place: where ``sql`` stands in the user's statement.

    Raises:
        SqlError: SQL that is wrong, at its place.
        UnsupportedSql: what needs Spark as a whole.
    """
    context = Context(relations, session, place or Place(sql), spark_types, dict(parameters or {}), ad_hoc=True)
    with _bounded_depth(context):
        return _query(sql, context)


def _query(sql: str, context: Context) -> QueryPlan:
    query = parse_query(sql, context.place)
    context = replace(context, tables=tables_read(query))
    ending = take_ending(query, context)
    planned = plan_tree(query, context, order=() if ending.all else ending.items)
    order = sort_keys(planned.source, planned.order, ending)
    # Sorted columns that are not selected stand behind the visible ones, and pruning must keep them.
    view = _finished(planned.source, context, query, tuple(sort.column for sort in order))
    return QueryPlan(view, order, ending.limit, ending.offset)


def plan_expression(
    sql: str,
    schema: Schema,
    session: Session,
    qualifier: str | None = None,
    parameters: Mapping[str, object] | None = None,
    place: Place | None = None,
    target: SqlType | None = None,
    spark_types: SparkTypes | None = None,
    functions: Functions | None = None,
) -> Expression:
    """Plan one expression over the columns of a table: WHERE and SET of DML, and DEFAULT (over no columns).

    Args:
        sql: the expression.
        schema: the columns that it may read, by their positions.
        session: time zone and ANSI mode.
        qualifier: the table's name or alias, by which columns may be qualified.
        parameters: the values of ``:name``.
        place: where ``sql`` stands in the user's statement.
        target: the type that the value is cast to, as on storing; None to leave it.
        spark_types: as for ``plan_view``.
        functions: users' functions by their names in lower case.

    Raises:
        SqlError: SQL that is wrong, at its place.
        UnsupportedSql: subqueries, and expressions that need Spark where there is none.
    """
    columns = [NamedColumn(qualifier, column.name, i) for i, column in enumerate(schema.columns)]
    return plan_scoped_expression(sql, columns, schema, session, parameters, place, target, spark_types, functions)


def plan_scoped_expression(
    sql: str,
    columns: Sequence[NamedColumn],
    schema: Schema,
    session: Session,
    parameters: Mapping[str, object] | None = None,
    place: Place | None = None,
    target: SqlType | None = None,
    spark_types: SparkTypes | None = None,
    functions: Functions | None = None,
) -> Expression:
    """Plan one expression over named columns of several relations, side by side in ``schema``, as MERGE has them.

    Raises:
        SqlError: SQL that is wrong, at its place.
        UnsupportedSql: subqueries, and expressions that need Spark where there is none.
    """
    context = Context(
        _OnlyFunctions(functions or {}), session, place or Place(sql), spark_types, dict(parameters or {}), ad_hoc=True
    )
    with _bounded_depth(context):
        tree = parse_expression(sql, context.place)
        translator = Translator(schema, context)
        bound = bind(tree, Scope(columns, schema, context), aggregates="this expression")
        expression = translator.expression(bound)
        return expression if target is None else translator.cast(bound, expression, target)


@contextmanager
def _bounded_depth(context: Context) -> Iterator[None]:
    """Turn the end of Python's stack into an error of the query."""
    try:
        yield
    except RecursionError:
        message = "An expression is nested too deeply: compute parts of it in subqueries in FROM."
        raise SqlError("EXPRESSION_TOO_DEEP", message, context.place.details(0, 0)) from None


class _OnlyFunctions:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def relation(self, name: str) -> Relation | None:
        return None

    def function(self, name: str) -> UserFunction | None:
        return self._functions.get(name.lower())

    def names(self) -> list[str]:
        return []

    def apart(self) -> Relations:
        return self


def _finished(source: Source, context: Context, query: exp.Expr, kept: tuple[int, ...] = ()) -> ViewPlan:
    """Put the visible columns first, rewrite, and return the plan."""
    shown = [column for column in source.columns if not column.merged]
    positions = [column.position for column in shown]
    node = source.node
    for column in shown:
        # Constants: of what is computed Spark's analyzer is asked, which knows.
        if _holds_months(node.schema.columns[column.position].type):
            message = "There are no columns of type INTERVAL YEAR TO MONTH: cast to STRING or another type."
            details = context.place.of(query)
            raise UnsupportedSql("TYPE_NOT_SUPPORTED", located(message, details), details)
    if node.key is None:
        message = "The query reads a view whose key is not known: create that view again."
        raise context.error("RELATION_HAS_NO_KEY", message, query)
    if positions != list(range(len(positions))):
        references = [Scope(shown, node.schema, context).reference(position) for position in positions]
        node = project_with_key(node, references, [column.name for column in shown])
    else:
        names = tuple(column.name for column in shown)
        node = replace(node, schema=node.schema.renamed(names + node.schema.names[len(names) :]))
    root = rewrite(node, frozenset(range(len(shown))) | set(node.key or ()) | set(kept))
    check_strict(root, query, context)
    return ViewPlan(root, len(shown), root.key or (), False, context.session)


def _holds_months(sql_type: SqlType) -> bool:
    return sql_type == INTERVAL_YEAR_MONTH or any(map(_holds_months, sql_type.children))


def _renamed(source: Source, names: tuple[str, ...], context: Context, query: exp.Expr) -> Source:
    shown = [column for column in source.columns if not column.merged]
    if len(shown) != len(names):
        message = f"The view names {len(names)} columns, its query has {len(shown)}: name each, or none."
        raise context.error("CREATE_VIEW_COLUMN_ARITY_MISMATCH", message, query)
    return replace(source, columns=tuple(replace(c, name=n) for c, n in zip(shown, names, strict=True)))


def _check_names(source: Source, context: Context, query: exp.Expr) -> None:
    seen: set[str] = set()
    for column in source.columns:
        if column.merged:
            continue
        if column.name.lower() in seen:
            message = (
                f"The view has two columns named '{column.name}': give one of them another name with AS, "
                "and write columns in place of *."
            )
            raise context.error("COLUMN_ALREADY_EXISTS", message, query)
        seen.add(column.name.lower())


def _declared_key(plan: ViewPlan, key: tuple[str, ...], context: Context, query: exp.Expr) -> tuple[int, ...]:
    positions = []
    for name in key:
        position = plan.schema.index(name)
        if position < 0:
            message = f"The PRIMARY KEY names '{name}', which is no column. {suggestion(name, plan.schema.names)}"
            raise SqlError("UNRESOLVED_COLUMN", message, context.place.of(query))
        if plan.schema.columns[position].type.contains_map:
            message = f"'{name}' holds a MAP, which cannot be a key: name other columns, or map_entries of it."
            raise SqlError("INVALID_KEY_TYPE", message, context.place.of(query))
        if position in positions:
            message = f"The PRIMARY KEY names '{name}' twice: name it once."
            raise SqlError("COLUMN_ALREADY_EXISTS", message, context.place.of(query))
        positions.append(position)
    return tuple(positions)
