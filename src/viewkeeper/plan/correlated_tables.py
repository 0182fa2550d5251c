"""Common table expressions of a subquery that name columns of the query around it: written where they are read.

A WITH inside a LATERAL or correlated subquery sees the rows around as the subquery itself does. Its expressions are
planned once for all who read them, which those that name outer columns cannot be: each reference to one becomes a
subquery in FROM, for which correlation knows what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.plan.context import Context
from viewkeeper.plan.correlation import Outer
from viewkeeper.plan.recursion import reads_itself

_CARRIED = ("joins", "laterals", "pivots", "sample")
_MISSING = frozenset(("UNRESOLVED_COLUMN", "QUERY_WITHOUT_TABLE"))


def without_correlated_tables(
    query: exp.Expr, outer: Outer, context: Context, plan: Callable[[exp.Expr, exp.Expr], object]
) -> exp.Expr:
    """Return ``query`` with the expressions of its WITH that name outer columns written where they are read.

    Args:
        query: a subquery, or a part of one.
        outer: the query around it.
        context: the statement.
        plan: plans the query of a common table, given also a query whose WITH has those before it.

    Raises:
        UnsupportedSql: ``CORRELATION_NOT_YET`` where another subquery reads one, or it reads itself.
    """
    with_ = query.args.get("with_")
    if with_ is None or not any(_may_name(table.this, outer) for table in with_.expressions):
        return query
    result = query.copy()
    result.parent = query.parent
    result.set("with_", None)
    before: list[exp.Expr] = []
    tables = [table.copy() for table in with_.expressions]
    while tables:
        table = tables.pop(0)
        if not _is_correlated(table, before, with_, outer, plan):
            before.append(table)
            continue
        if with_.args.get("recursive") and reads_itself(table):
            raise context.refusal("CORRELATION_NOT_YET", table, "a column of the outer query in a recursive CTE")
        for other in tables:
            other.set("this", _written_out(other.this, table, context))
        result = _written_out(result, table, context)
    if before:
        result.set("with_", exp.With(expressions=before, recursive=with_.args.get("recursive")))
    return result


def _may_name(query: exp.Expr, outer: Outer) -> bool:
    return any(outer.located(column) is not None for column in query.find_all(exp.Column) if not column.is_star)


def _is_correlated(
    table: exp.Expr,
    before: list[exp.Expr],
    with_: exp.Expr,
    outer: Outer,
    plan: Callable[[exp.Expr, exp.Expr], object],
) -> bool:
    """Return whether a query can only be planned with the columns around: own columns hide outer ones of their name."""
    if not _may_name(table.this, outer):
        return False
    around = exp.Select()
    if before:
        tables = [other.copy() for other in before]
        around.set("with_", exp.With(expressions=tables, recursive=with_.args.get("recursive")))
    try:
        plan(table.this, around)
    except SqlError as error:
        return error.code in _MISSING
    return False


def _written_out(query: exp.Expr, table: exp.Expr, context: Context) -> exp.Expr:
    """Return ``query`` with a subquery in FROM in place of each reference to ``table``."""
    reads = {part.name.lower() for part in table.this.find_all(exp.Table)}
    # A root of its own, as the query itself may be a set operation that is replaced in part.
    around = exp.Paren(this=query.copy())
    for reference in list(around.find_all(exp.Table)):
        if reference.db or reference.name.lower() != table.alias.lower():
            continue
        defined = set(names_between(reference, around))
        if reference.name.lower() in defined:
            continue
        if defined & reads or _is_nested(reference, around):
            what = f"'{table.alias}', which names a column of the outer query, inside another subquery"
            raise context.refusal("CORRELATION_NOT_YET", reference, what)
        reference.replace(_subquery(reference, table))
    result: exp.Expr = around.this
    result.pop()
    result.parent = query.parent
    return result


def _subquery(reference: exp.Table, table: exp.Expr) -> exp.Subquery:
    own = reference.args.get("alias")
    columns = (own.args.get("columns") if own is not None else None) or table.args["alias"].args.get("columns") or ()
    name = own.this if own is not None and own.this is not None else reference.this
    alias = exp.TableAlias(this=name.copy(), columns=[column.copy() for column in columns])
    carried = {part: reference.args.get(part) for part in _CARRIED}
    return exp.Subquery(this=table.this.copy(), alias=alias, **carried)


def names_between(reference: exp.Expr, around: exp.Expr) -> Iterator[str]:
    """Yield the names, in lower case, of the WITH clauses between a reference and a query around it."""
    node = reference.parent
    while node is not None and node is not around:
        with_ = node.args.get("with_")
        yield from (table.alias.lower() for table in (with_.expressions if with_ is not None else ()))
        node = node.parent


def _is_nested(reference: exp.Expr, around: exp.Expr) -> bool:
    """Return whether a reference stands in a subquery that is no part of FROM: it has other columns around it."""
    node: exp.Expr = reference
    while node.parent is not None and node.parent is not around:
        parent = node.parent
        if isinstance(parent, exp.Lateral):
            return True
        if isinstance(node, exp.Query) and not isinstance(node, exp.Table):
            plain = isinstance(parent, exp.From | exp.Join | exp.SetOperation | exp.Subquery | exp.CTE | exp.Table)
            if not plain:
                return True
        node = parent
    return False
