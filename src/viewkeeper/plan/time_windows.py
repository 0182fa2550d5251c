"""``window(time, duration, slide, start)``: a column of the windows of time that each row falls into.

As Spark's analyzer has it, all calls of a query block are equal and stand for one column called ``window``, which is
made below the block: of windows that do not overlap by a projection, of those that do by a Generate over the array of
them. Rows whose time is NULL fall into none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.expressions import literals
from viewkeeper.expressions.time_windows import WindowSpec, window_of, window_type, windows_of
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal
from viewkeeper.plan.binding import bind, normalized
from viewkeeper.plan.nodes import Filter, Generate, Node, Project
from viewkeeper.plan.ordering import OrderItem
from viewkeeper.plan.scopes import CALLED, NamedColumn, Scope, Source
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema

OVERLAPPING_MAX = 10_000
"""Into how many windows a row may fall: each is made for every changed row."""

_NAME = "window"
_NAMES = (_NAME, "session_window")
_CLAUSES = ("group", "having", "qualify")
_MOMENTS = (types.TIMESTAMP, types.TIMESTAMP_NTZ)
_CONVERTED = ("STRING", "DATE", "VOID")
_UNIT = r"(year|month|week|day|hour|minute|second|millisecond|microsecond)s?"
_PART = re.compile(rf"([+-]?)\s*(\d+(?:\.\d{{0,9}})?|\.\d{{1,9}})\s+{_UNIT}(?:\s+|\Z)", re.IGNORECASE | re.ASCII)
_PREFIX = re.compile(r"interval\s+", re.IGNORECASE)
_LARGEST = 2**63 - 1


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
        UnsupportedSql: ``TIME_WINDOW_NOT_YET`` for windows of which too many overlap.
    """
    calls = _calls(select, order)
    sessions = [call for call in calls if call.name.lower() != _NAME]
    if sessions:
        raise scope.context.refusal("TIME_WINDOW_NOT_YET", sessions[0], "session_window()")
    if not calls:
        return source, scope
    context = scope.context
    aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    tree, spec = _read(calls[0], aliases, scope)
    for other in calls[1:]:
        time, others = _read(other, aliases, scope)
        if (normalized(time), others) != (normalized(tree), spec):
            message = (
                "A query has one window(): rows in several at once would be pairs of windows. Call it with the same "
                "arguments, or call one of the two in a subquery in FROM."
            )
            raise context.error("UNSUPPORTED_FEATURE", message, other)
    if spec.overlapping > OVERLAPPING_MAX:
        raise context.refusal("TIME_WINDOW_NOT_YET", calls[0], f"a row in more than {OVERLAPPING_MAX:,} windows")
    for call in calls:
        call.meta[CALLED] = True
    node, position = _made(source.node, _moment(tree, calls[0], scope), spec)
    result = Scope(scope.columns, node.schema, context, scope.outer, scope.subqueries, scope.pulling, scope.later)
    result.time_window = NamedColumn(None, _NAME, position)
    return Source(node, source.columns), result


def _calls(select: exp.Select, order: Sequence[OrderItem]) -> list[exp.Anonymous]:
    """Return the calls in what is computed over the rows of FROM and WHERE."""
    trees = [*select.expressions, *(item.tree for item in order)]
    trees += [select.args[clause] for clause in _CLAUSES if select.args.get(clause) is not None]
    used = {window.args["alias"].name.lower() for tree in trees for window in tree.find_all(exp.Window) if window.alias}
    trees += [window for window in select.args.get("windows") or () if window.this.name.lower() in used]
    parts = (part for tree in trees for part in tree.walk(prune=lambda node: isinstance(node, exp.Query)))
    return [part for part in parts if isinstance(part, exp.Anonymous) and part.name.lower() in _NAMES]


def _read(call: exp.Anonymous, aliases: Mapping[str, exp.Expr], scope: Scope) -> tuple[exp.Expr, WindowSpec]:
    """Return the bound time of a call, and its windows; its time may be an alias of the SELECT list."""
    context = scope.context
    if not 2 <= len(call.expressions) <= 4:
        message = (
            f"window() takes a time, a duration, and, if wanted, a slide and a start: not {len(call.expressions)}."
        )
        raise context.error("WRONG_NUM_ARGS", message, call)
    time, *durations = call.expressions
    size, slide, offset = (*(_duration(tree, call, scope) for tree in durations), None, None)[:3]
    spec = WindowSpec(size or 0, size or 0 if slide is None else slide, offset or 0)
    _check(spec, call, scope)

    def replacement(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or len(node.parts) > 1 or scope.find(node) is not None:
            return node
        alias = aliases.get(node.name.lower())
        return node if alias is None else exp.Paren(this=alias.copy())

    return bind(time.transform(replacement), scope, aggregates="window()"), spec


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


def _duration(tree: exp.Expr, call: exp.Anonymous, scope: Scope) -> int:
    """Return a duration in microseconds: a text, or a number of them."""
    context = scope.context
    found = Translator(scope.schema, context).expression(bind(tree, scope, aggregates="window()"))
    if isinstance(found, Literal) and isinstance(found.value, int) and found.type.name in ("INT", "BIGINT"):
        return found.value
    if not isinstance(found, Literal) or not isinstance(found.value, str):
        message = "The durations of window() are constants: a text such as '1 hour 30 minutes', or microseconds."
        raise context.error("DATATYPE_MISMATCH", message, tree if not isinstance(tree, exp.Literal) else call)
    duration = _parsed(found.value)
    if duration is None:
        message = (
            f"'{found.value}' is no duration: write numbers and units from weeks to microseconds, as in "
            "'1 hour 30 minutes'."
        )
        raise context.error("CANNOT_PARSE_INTERVAL", message, call)
    months, microseconds = duration
    if months:
        message = f"'{found.value}' is counted in months, which are not equally long: windows take weeks and less."
        raise context.error("DATATYPE_MISMATCH", message, call)
    return microseconds


def _parsed(text: str) -> tuple[int, int] | None:
    """Return the months and the microseconds of a duration, None where it is none.

    Example:
        >>> _parsed("interval 1 hour -30.5 seconds"), _parsed("5 min")
        ((0, 3569500000), None)
    """
    rest = text.strip()
    rest = _PREFIX.sub("", rest, count=1) if _PREFIX.match(rest) else rest
    months = microseconds = 0
    if not rest:
        return None
    while rest:
        match = _PART.match(rest)
        if match is None:
            return None
        sign, number, unit = match.groups()
        try:
            part = literals.interval(f"0{number}", unit, negative=sign == "-")
        except SqlError:
            return None
        assert isinstance(part.value, int)
        if part.type == types.INTERVAL_YEAR_MONTH:
            months += part.value
        else:
            microseconds += part.value
        rest = rest[match.end() :]
    return (months, microseconds) if abs(microseconds) <= _LARGEST else None


def _moment(tree: exp.Expr, call: exp.Anonymous, scope: Scope) -> Expression:
    """Return the time of a call, as a TIMESTAMP or a TIMESTAMP_NTZ."""
    translator = Translator(scope.schema, scope.context)
    moment = translator.expression(tree)
    if moment.type in [window_type(kind) for kind in _MOMENTS]:
        of_window = exp.Anonymous(this="window_time", expressions=[tree])
        moment = translator.expression(bind(of_window, scope))
    if moment.type.name in _CONVERTED:
        return translator.cast(call, moment, types.TIMESTAMP)
    if moment.type not in _MOMENTS:
        message = f"The time of window() is a TIMESTAMP or a window, not {str(moment.type).upper()}: cast it."
        raise scope.context.error("DATATYPE_MISMATCH", message, call)
    return moment


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
