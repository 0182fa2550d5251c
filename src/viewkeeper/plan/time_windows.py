"""``window(time, duration, slide, start)``: a column of the windows of time that each row falls into.

As Spark's analyzer has it, all calls of a query block are equal and stand for one column called ``window``, which is
made below the block: of windows that do not overlap by a projection, of those that do by a Generate over the array of
them. Rows whose time is NULL fall into none. Of ``session_window()`` the same holds; how sessions are told apart is in
``session_windows.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.expressions.time_windows import WindowSpec, window_of, window_type, windows_of
from viewkeeper.expressions.tree import Call, ColumnRef, Expression
from viewkeeper.plan.binding import bind, normalized
from viewkeeper.plan.nodes import Filter, Generate, Node, Project
from viewkeeper.plan.ordering import OrderItem
from viewkeeper.plan.scopes import CALLED, NamedColumn, Scope, Source
from viewkeeper.plan.session_windows import NAME, partition_of, with_sessions
from viewkeeper.plan.window_arguments import gap_of, microseconds_of, moment_of, with_aliases
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema

OVERLAPPING_MAX = 10_000
"""Into how many windows a row may fall: each is made for every changed row."""

_NAME = "window"
_NAMES = (_NAME, NAME)
_CLAUSES = ("group", "having", "qualify")


def with_time_window(
    select: exp.Select, order: Sequence[OrderItem], source: Source, scope: Scope
) -> tuple[Source, Scope]:
    """Return the rows of a block, once per window of time, and what its names mean; as they are without ``window()``.

    Args:
        select: the block; the calls whose column is made are marked in it.
        order: its ORDER BY items.
        source: its joined and filtered FROM clause.
        scope: what names mean over that.

    Raises:
        SqlError: wrong arguments; two calls that differ.
        UnsupportedSql: ``TIME_WINDOW_NOT_YET`` for windows of which too many overlap, and sessions of other rows than
            those of groups.
    """
    calls = _calls(select, order)
    if not calls:
        return source, scope
    context = scope.context
    aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    tree, spec = _read(calls[0], aliases, scope)
    for other in calls[1:]:
        time, others = _read(other, aliases, scope)
        if (normalized(time), others) != (normalized(tree), spec):
            message = (
                "A query has one window of time: rows in several at once would be pairs of windows. Call it with the "
                "same arguments, or call one of the two in a subquery in FROM."
            )
            raise context.error("UNSUPPORTED_FEATURE", message, other)
    for call in calls:
        call.meta[CALLED] = True
    moment = moment_of(tree, calls[0], scope)
    if isinstance(spec, WindowSpec):
        node, position = _made(source.node, moment, spec)
    else:
        partition = partition_of(select, calls[0], aliases, scope)
        node, position = with_sessions(source.node, moment, spec, partition, context)
    result = Scope(scope.columns, node.schema, context, scope.outer, scope.subqueries, scope.pulling, scope.later)
    result.time_window = NamedColumn(None, calls[0].name.lower(), position)
    return Source(node, source.columns), result


def _calls(select: exp.Select, order: Sequence[OrderItem]) -> list[exp.Anonymous]:
    """Return the calls in what is computed over the rows of FROM and WHERE."""
    trees = [*select.expressions, *(item.tree for item in order)]
    trees += [select.args[clause] for clause in _CLAUSES if select.args.get(clause) is not None]
    used = {window.args["alias"].name.lower() for tree in trees for window in tree.find_all(exp.Window) if window.alias}
    trees += [window for window in select.args.get("windows") or () if window.this.name.lower() in used]
    parts = (part for tree in trees for part in tree.walk(prune=lambda node: isinstance(node, exp.Query)))
    return [part for part in parts if isinstance(part, exp.Anonymous) and part.name.lower() in _NAMES]


def _read(call: exp.Anonymous, aliases: Mapping[str, exp.Expr], scope: Scope) -> tuple[exp.Expr, WindowSpec | int]:
    """Return the bound time of a call, and its windows, or its gap; its time may be an alias of the SELECT list."""
    context = scope.context
    if call.name.lower() == NAME:
        return _session(call, aliases, scope)
    if not 2 <= len(call.expressions) <= 4:
        message = (
            f"window() takes a time, a duration, and, if wanted, a slide and a start: not {len(call.expressions)}."
        )
        raise context.error("WRONG_NUM_ARGS", message, call)
    time, *durations = call.expressions
    size, slide, offset = (*(microseconds_of(tree, call, scope) for tree in durations), None, None)[:3]
    spec = WindowSpec(size or 0, size or 0 if slide is None else slide, offset or 0)
    _check(spec, call, scope)
    if spec.overlapping > OVERLAPPING_MAX:
        raise context.refusal("TIME_WINDOW_NOT_YET", call, f"a row in more than {OVERLAPPING_MAX:,} windows")
    return bind(with_aliases(time, aliases, scope), scope, aggregates="window()"), spec


def _session(call: exp.Anonymous, aliases: Mapping[str, exp.Expr], scope: Scope) -> tuple[exp.Expr, int]:
    if len(call.expressions) != 2:
        message = f"session_window() takes a time and a gap: not {len(call.expressions)} arguments."
        raise scope.context.error("WRONG_NUM_ARGS", message, call)
    gap = gap_of(call.expressions[1], call, scope)
    if gap is None:
        what = "session_window() of a gap that is computed, or of a day and more,"
        raise scope.context.refusal("TIME_WINDOW_NOT_YET", call, what)
    return bind(with_aliases(call.expressions[0], aliases, scope), scope, aggregates="session_window()"), gap


def _check(spec: WindowSpec, call: exp.Anonymous, scope: Scope) -> None:
    wrong = ""
    if spec.size <= 0 or spec.slide <= 0:
        wrong = "its duration and its slide are longer than nothing"
    elif spec.slide > spec.size:
        wrong = "its slide is at most its duration"
    elif abs(spec.offset) >= spec.slide:
        wrong = "its start is less than its slide from 1970 on"
    if wrong:
        message = f"window() cannot be computed: {wrong}. Write other durations."
        raise scope.context.error("DATATYPE_MISMATCH", message, call)


def _made(node: Node, moment: Expression, spec: WindowSpec) -> tuple[Node, int]:
    """Return the rows with the windows of each, and the position of the column that holds them."""
    width = len(node.schema)
    own = tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(node.schema.columns))
    if not isinstance(moment, ColumnRef):
        column = Column("__time", moment.type, moment.nullable)
        node = Project(node, (*own, moment), Schema((*node.schema.columns, column)), node.key)
        moment = ColumnRef(width, moment.type, moment.nullable)
    columns = node.schema.columns[:width]
    kind = window_type(moment.type)
    if spec.slide < spec.size:
        position = Column("pos", types.INT, False)
        schema = Schema((*columns, position, Column(_NAME, kind, True)))
        key = None if node.key is None else (*node.key, width)
        collection = windows_of(moment, spec)
        return Generate(node, tuple(range(width)), collection, False, False, schema, key), width + 1
    if moment.nullable:
        node = Filter(node, Call("is_not_null", (moment,), types.BOOLEAN, False), node.schema, node.key)
    made = replace(window_of(moment, spec), nullable=False)
    return Project(node, (*own, made), Schema((*columns, Column(_NAME, kind, False))), node.key), width
