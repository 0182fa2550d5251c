"""Expression trees whose columns are positions: checked for what is refused, and independent of names.

A bound tree is a sqlglot tree in which each column is called `` `_c<position>` `` and carries its ``ColumnRef`` in
``meta``; so it can be compared, taken apart, translated (``translate.py``), and written as SQL for Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.expressions.registry import is_deterministic
from viewkeeper.expressions.tree import ColumnRef
from viewkeeper.plan.aggregate_syntax import called_aggregate
from viewkeeper.plan.arguments import with_arguments_named, with_fields
from viewkeeper.plan.context import Context
from viewkeeper.plan.function_names import (
    AGGREGATES,
    GENERATORS,
    IN_PLACE_OF_AGGREGATES,
    OTHER_AGGREGATES,
    TIME_WINDOWS,
    WINDOW_ONLY,
    WITHOUT_PARENTHESES,
)
from viewkeeper.plan.place import located
from viewkeeper.plan.scopes import CALLED, NamedColumn, OuterNames, Scope
from viewkeeper.zset.schema import Schema

_NONDETERMINISTIC = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentUser, exp.SessionUser)


def bind(
    tree: exp.Expr,
    scope: Scope,
    aliases: Mapping[str, exp.Expr] | None = None,
    aggregates: str = "",
    windows: bool = False,
) -> exp.Expr:
    """Return a copy of ``tree`` with each column bound to its position in ``scope``.

    Args:
        tree: an expression as parsed.
        scope: what its names mean.
        aliases: bound expressions of earlier SELECT items, for names that ``scope`` does not have.
        aggregates: where the expression stands, if no aggregate may occur there (for the message), else "".
        windows: whether window functions may occur.

    Raises:
        SqlError: unknown or ambiguous columns, misplaced aggregates and window functions.
        UnsupportedSql: subqueries, other aggregates, nondeterministic functions.
    """
    tree = _with_time_windows(with_arguments_named(tree, scope, bound_column), scope)
    if aggregates in ("WHERE", "ON") and scope.outer is not None:
        tree = _with_outer_aggregates(tree, scope, scope.outer)
    for window in _windows(tree):
        if not windows:
            message = "A window function can stand only in SELECT, QUALIFY and ORDER BY: use QUALIFY, or a subquery."
            raise scope.context.error("WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE", message, window)
        windowed_call(window).meta["windowed"] = True
    _check(tree, scope.context, aggregates, scope.subqueries is not None)

    def replacement(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Placeholder):
            return _parameter(node, scope.context)
        if scope.subqueries is not None:
            subquery = scope.subqueries.bound(node, scope, lambda part: bind(part, scope, aliases, aggregates))
            if subquery is not None:
                return subquery
        return _column(node, scope, aliases or {}) if isinstance(node, exp.Column) else node

    return tree.transform(replacement)


def bound_column(reference: ColumnRef, origin: exp.Expr | None = None) -> exp.Column:
    """Return the bound tree of one column, keeping the place of ``origin``."""
    identifier = exp.to_identifier(f"_c{reference.index}", quoted=True)
    column = exp.Column(this=identifier)
    column.meta["reference"] = reference
    if origin is not None:
        words = [n for n in origin.walk() if "start" in n.meta]
        if words:
            identifier.meta["start"] = min(n.meta["start"] for n in words)
            identifier.meta["end"] = max(n.meta["end"] for n in words)
        column.meta["name"] = origin.name if isinstance(origin, exp.Column) else ""
    return column


def rebound(tree: exp.Expr, schema: Schema, moved: Mapping[int, int]) -> exp.Expr:
    """Return a bound tree over other rows, with the columns of ``schema``; ``moved`` says where its columns stand."""

    def replacement(part: exp.Expr) -> exp.Expr:
        reference = part.meta.get("reference")
        if not isinstance(reference, ColumnRef):
            return part
        column = schema.columns[moved[reference.index]]
        return bound_column(ColumnRef(moved[reference.index], column.type, column.nullable), part)

    return tree.transform(replacement)


def reference_of(tree: exp.Expr) -> ColumnRef | None:
    """Return the reference of a bound column, None for any other tree."""
    found = unwrapped(tree).meta.get("reference")
    return found if isinstance(found, ColumnRef) else None


def references_of(tree: exp.Expr) -> list[ColumnRef]:
    """Return the references of all bound columns in ``tree``."""
    return [node.meta["reference"] for node in tree.walk() if "reference" in node.meta]


def unwrapped(tree: exp.Expr) -> exp.Expr:
    """Return ``tree`` without parentheses and alias around it."""
    while isinstance(tree, (exp.Paren, exp.Alias)):
        tree = tree.this
    return tree


def normalized(tree: exp.Expr) -> exp.Expr:
    """Return a copy in which spelling does not count (parentheses, case of functions and fields), for comparisons."""
    around = exp.Paren(this=tree.copy())
    for node in list(around.walk()):
        if isinstance(node, exp.Paren) and node is not around:
            node.replace(node.this)
        elif isinstance(node, exp.Anonymous):
            node.set("this", node.name.lower())
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            node.set("expression", exp.to_identifier(node.expression.name.lower(), quoted=True))
    plain: exp.Expr = around.this
    return plain.pop()


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND connects in ``tree``, in order."""
    inner = unwrapped(tree)
    return [unwrapped(part) for part in flattened(inner)] if isinstance(inner, exp.And) else [inner]


def flattened(tree: exp.Expr) -> list[exp.Expr]:
    """Return the operands of a chain of the connector that ``tree`` is (AND or OR), in order."""
    kind = type(tree)
    operands: list[exp.Expr] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        inner = unwrapped(node)
        if type(inner) is kind:
            pending += [inner.expression, inner.this]
        else:
            operands.append(node)
    return operands


def windowed_call(window: exp.Window) -> exp.Expr:
    """Return the function that is called over ``window``."""
    called: exp.Expr = window.this
    while isinstance(called, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
        called = called.this
    return called


def has_query(tree: exp.Expr) -> bool:
    """Return whether an expression as parsed holds a subquery."""
    return any(isinstance(node, exp.Query) for node in tree.walk())


def aggregate_name(node: exp.Expr) -> str | None:
    """Return the lower-case name where ``node`` calls an aggregate function of the view grammar, not over a window."""
    call = called_aggregate(node)
    return None if call is None else call.name.lower()


def has_aggregate(tree: exp.Expr) -> bool:
    """Return whether an aggregate of the view grammar is called anywhere in ``tree``."""
    return any(aggregate_name(node) for node in tree.walk())


def _with_time_windows(tree: exp.Expr, scope: Scope) -> exp.Expr:
    """Return ``tree`` with the column of ``window()`` for its calls, and with what ``window_time()`` computes."""

    def replacement(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous):
            return node
        if node.meta.get(CALLED) and scope.time_window is not None:
            return _called(node, scope.time_window)
        return _last_moment(node, scope) if node.name.lower() == "window_time" else node

    named = {name.name.lower() for name in tree.find_all(exp.Anonymous)}
    return tree.transform(replacement) if named & TIME_WINDOWS else tree


def _last_moment(call: exp.Anonymous, scope: Scope) -> exp.Expr:
    """Return what ``window_time(w)`` computes: ``w.end`` less a microsecond."""
    if len(call.expressions) != 1:
        message = f"window_time() takes one argument, a window, not {len(call.expressions)}."
        raise scope.context.error("WRONG_NUM_ARGS", message, call)
    window = _with_time_windows(call.expressions[0], scope)
    found = scope.find(window) if isinstance(window, exp.Column) else None
    if found is not None and not found[1] and scope.schema.types[found[0].position].name != "STRUCT":
        message = "window_time() takes what window() or session_window() has made, in a subquery, say."
        raise scope.context.error("DATATYPE_MISMATCH", message, call)
    end = exp.Dot(this=exp.Paren(this=window), expression=exp.to_identifier("end"))
    moment = exp.Interval(this=exp.Literal.string("0.000001"), unit=exp.var("SECOND"))
    return exp.Paren(this=exp.Sub(this=end, expression=moment))


def _called(call: exp.Anonymous, column: NamedColumn) -> exp.Column:
    words = [word for word in call.walk() if "start" in word.meta]
    identifier = exp.to_identifier(column.name)
    if words:
        identifier.meta["start"] = min(word.meta["start"] for word in words)
        identifier.meta["end"] = max(word.meta["end"] for word in words)
    found = exp.Column(this=identifier)
    found.meta[CALLED] = True
    return found


def _with_outer_aggregates(tree: exp.Expr, scope: Scope, outer: OuterNames) -> exp.Expr:
    """Return ``tree`` with the aggregates of the query around, in whose HAVING it stands, as bound columns."""

    def replacement(node: exp.Expr) -> exp.Expr:
        if aggregate_name(node) is None or node.find_ancestor(exp.Query) is not None:
            return node
        return outer.aggregate(node, scope, scope.pulling) or node

    return tree.transform(replacement)


def _column(node: exp.Column, scope: Scope, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
    if "reference" in node.meta:
        return node
    if isinstance(node.this, exp.Star):
        raise scope.context.error("INVALID_USAGE_OF_STAR", "'*' can stand only in a SELECT list or in COUNT(*).", node)
    found = scope.find(node)
    if found is None:
        alias = aliases.get(node.name.lower()) if len(node.parts) == 1 else None
        outer = scope.outer.bound(node, scope, scope.pulling) if alias is None and scope.outer is not None else None
        if outer is not None:
            return outer
        if alias is None and len(node.parts) == 1 and node.name.lower() in WITHOUT_PARENTHESES:
            raise _nondeterministic(scope.context, node)
        if alias is None:
            raise scope.unresolved(node, list(aliases))
        if node.find_ancestor(exp.Window) is not None:
            message = (
                f"'{node.name}' is an alias of the SELECT list, which a window in that list cannot read: write what it "
                "stands for, or compute it in a subquery in FROM."
            )
            raise scope.context.error("UNSUPPORTED_FEATURE", message, node)
        return exp.Paren(this=alias.copy())
    column, fields = found
    return with_fields(bound_column(scope.reference(column.position), node), fields)


def _parameter(node: exp.Placeholder, context: Context) -> exp.Expr:
    name = node.this if isinstance(node.this, str) else ""
    if name not in context.parameters:
        raise _unbound(name, context)
    bound = exp.Null()
    bound.meta["parameter"] = name
    return bound


def _unbound(name: str, context: Context) -> SqlError:
    """Return the error of a parameter without value, at its place, of which sqlglot keeps nothing."""
    details = context.place.of_parameter(name)
    shown = f":{name}" if name else "?"
    if not context.ad_hoc:
        message = f"{shown} is a parameter, and a view takes literals: write the value in its place."
    elif not name:
        message = 'Parameters have names: write :name in place of ?, and pass {"name": value}.'
    else:
        known = ", ".join(f":{parameter}" for parameter in context.parameters) or "none"
        message = f"The parameter :{name} has no value (given: {known}): pass {{'{name}': value}} beside the SQL."
    return SqlError("UNBOUND_SQL_PARAMETER", located(message, details), details)


def _windows(tree: exp.Expr) -> list[exp.Window]:
    """Return the window functions of ``tree`` itself, not those of subqueries in it."""
    found = tree.walk(prune=lambda node: isinstance(node, exp.Query))
    return [node for node in found if isinstance(node, exp.Window)]


def _check(tree: exp.Expr, context: Context, aggregates: str, subqueries: bool) -> None:
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(node, exp.Query) and not subqueries:
            raise context.refusal("SUBQUERY_NOT_YET", node)
        if isinstance(node, _NONDETERMINISTIC):
            raise _nondeterministic(context, node)
        if isinstance(node, exp.QueryTransform):
            raise context.refusal("CLAUSE_NOT_YET", node, "TRANSFORM … USING")
        if isinstance(node, exp.Distinct) and node.parent is not None and node.parent.meta.get("windowed"):
            message = "DISTINCT cannot stand in a window function: aggregate in a subquery in FROM and join it."
            raise context.error("DISTINCT_WINDOW_FUNCTION_UNSUPPORTED", message, node)
        if isinstance(node, exp.Distinct) and (node.parent is None or called_aggregate(node.parent) is None):
            message = "DISTINCT can stand only before the arguments of an aggregate."
            raise context.error("DISTINCT_WITHOUT_AGGREGATE", message, node)
        if isinstance(node, exp.Anonymous):
            _check_call(node, context, aggregates)


def _check_call(node: exp.Anonymous, context: Context, aggregates: str) -> None:
    name = node.name.lower()
    if not is_deterministic(name, len(node.expressions)):
        raise _nondeterministic(context, node)
    if node.meta.get("windowed"):
        return
    if name in OTHER_AGGREGATES:
        what, instead = f"the aggregate function {name}()", IN_PLACE_OF_AGGREGATES.get(name, "")
        raise context.refusal("AGGREGATE_NOT_YET", node, what, instead)
    if name in TIME_WINDOWS:
        raise context.refusal("TIME_WINDOW_NOT_YET", node, f"{name}()")
    if name in GENERATORS:
        message = f"{name}() makes rows: it stands alone in a SELECT list, or in LATERAL VIEW, not in an expression."
        raise context.error("UNSUPPORTED_GENERATOR", message, node)
    if name in WINDOW_ONLY:
        message = f"{name}() is a window function: write {name}(…) OVER (PARTITION BY … ORDER BY …)."
        raise context.error("WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE", message, node)
    if name != "count" and any(isinstance(argument, exp.Star) for argument in node.expressions):
        raise context.error("INVALID_USAGE_OF_STAR", f"{name}() takes expressions, not '*'.", node)
    if aggregates and name in AGGREGATES:
        message = f"The aggregate {name}() cannot stand in {aggregates}: use HAVING, or a subquery in FROM."
        code = "INVALID_WHERE_CONDITION" if aggregates == "WHERE" else "MISPLACED_AGGREGATE"
        raise context.error(code, message, node)


def _nondeterministic(context: Context, node: exp.Expr) -> Exception:
    name = node.name.lower() if isinstance(node, exp.Anonymous | exp.Column) else node.sql(dialect="spark").lower()
    return context.refusal(
        "NONDETERMINISTIC_EXPRESSION", node, f"{name.rstrip('()')}(), whose value does not follow from the row,"
    )
