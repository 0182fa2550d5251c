"""What Spark's parser would not read, where only the tree tells it: the node, whether it is wrong, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from viewkeeper.plan.aggregate_syntax import AROUND_CALLS


def _group(node: exp.Group) -> str:
    if node.args.get("all") is not None and node.expressions:
        return "GROUP BY takes ALL alone, or a list without ALL and DISTINCT."
    return ""


def _sets(node: exp.Cube | exp.Rollup) -> str:
    is_behind = node.arg_key in ("cube", "rollup")  # WITH CUBE, WITH ROLLUP
    return "" if node.expressions or is_behind else f"{node.key.upper()} () holds nothing: name columns."


def _tuple(node: exp.Tuple) -> str:
    if node.expressions or isinstance(node.parent, exp.GroupingSets):
        return ""
    if isinstance(node.parent, exp.Group):
        return "GROUP BY () is not known: for one group of all rows leave it out, or write GROUPING SETS (())."
    return "() holds nothing: leave it out."


def _escape(node: exp.Escape) -> str:
    character = node.expression
    if isinstance(character, exp.Literal) and len(character.name) != 1:
        return "The character of ESCAPE is one character: as in ESCAPE '!'."
    return ""


def _alias(node: exp.Alias) -> str:
    if isinstance(node.parent, exp.Anonymous) and node.parent.name.upper() not in ("STRUCT", "NAMED_STRUCT"):
        return "An argument has no alias: leave AS out."
    return ""


def _join(node: exp.Join) -> str:
    words = [word.upper() for word in (node.method, node.side, node.kind) if word]
    if words in (["NATURAL", "CROSS"], *([side, "INNER"] for side in ("LEFT", "RIGHT", "FULL"))):
        return f"{words[0]} and {words[1]} exclude each other: keep one."
    return ""


def _lateral(node: exp.Lateral) -> str:
    alias = node.args.get("alias")
    if node.args.get("view") and not (node.alias or (alias is not None and alias.columns)):
        return "LATERAL VIEW needs a name: LATERAL VIEW explode(…) name AS column."
    if not node.args.get("view") and isinstance(node.parent, exp.Select) and node.arg_key == "laterals":
        return "A comma or JOIN is missing before LATERAL."
    if isinstance(node.this, exp.Values):
        return "VALUES behind LATERAL stand in parentheses: LATERAL (VALUES …)."
    return ""


def _substring(node: exp.Substring) -> str:
    start = node.args.get("start")
    if isinstance(start, exp.Literal) and "start" not in start.meta and node.args.get("length") is not None:
        return "FROM is missing: SUBSTRING(text FROM 1 FOR 2)."
    return ""


def _in(node: exp.In) -> str:
    if node.args.get("field") is not None:
        return "The list of IN stands in parentheses: IN (1, 2)."
    query = node.args.get("query")
    if query is not None and query.this.meta.get("values"):
        return "IN takes no VALUES: list the values alone, IN (1, 2), or write IN (SELECT * FROM VALUES …)."
    return "" if any(node.args.get(name) for name in ("expressions", "query", "unnest")) else "IN () holds nothing."


def _argument(node: exp.Expr) -> str:
    if isinstance(node.parent, exp.Anonymous):
        return "A subquery stands in parentheses of its own, and arguments have no ORDER BY and no LIMIT."
    return ""


def _select(node: exp.Select) -> str:
    return "SELECT AS is not known: write struct(…) for one value." if node.args.get("kind") else _argument(node)


def _values(node: exp.Values) -> str:
    if any(isinstance(row, exp.Tuple) and not row.expressions for row in node.expressions):
        return "A row of VALUES holds nothing."
    alias = node.args.get("alias")
    if alias is not None and not alias.this and alias.columns:
        return "A comma is missing between the rows of VALUES."
    return ""


def _interval(node: exp.Interval) -> str:
    value = node.this
    if node.args.get("unit") is None and isinstance(value, exp.Literal) and not any(map(str.isalpha, value.name)):
        return "The unit of INTERVAL is missing: as in INTERVAL 1 DAY."
    return ""


def _any(node: exp.Any) -> str:
    of = node.this
    return "The list of patterns holds nothing." if isinstance(of, exp.Tuple) and not of.expressions else ""


_NULLS_INSIDE = ("first", "last", "any_value")


def _nulls(node: exp.IgnoreNulls | exp.RespectNulls) -> str:
    words = "IGNORE NULLS" if isinstance(node, exp.IgnoreNulls) else "RESPECT NULLS"
    call = node.parent
    if isinstance(call, exp.Distinct):
        call = call.parent
    if not isinstance(call, exp.Anonymous):
        return ""
    alone = isinstance(node.parent, exp.Anonymous) and len(call.expressions) == 1
    takes = call.name.lower() in _NULLS_INSIDE and isinstance(node, exp.IgnoreNulls)
    if alone and takes and not isinstance(call.parent, (*AROUND_CALLS, exp.Window)):
        return ""
    return f"{words} stands behind the parentheses: {call.name}(…) {words}."


def _no_operator(operator: str, instead: str) -> Callable[[Any], str]:
    return lambda node: f"There is no {operator}: {instead}."


_CHECKS: dict[type[exp.Expr], Callable[[Any], str]] = {
    exp.Alias: _alias,
    exp.All: _any,
    exp.Any: _any,
    exp.AtTimeZone: _no_operator("AT TIME ZONE", "write from_utc_timestamp(time, zone)"),
    exp.Between: lambda n: "SYMMETRIC is not known: order the bounds." if n.args.get("symmetric") is not None else "",
    exp.Cube: _sets,
    exp.Escape: _escape,
    exp.Glob: _no_operator("GLOB", "write LIKE or RLIKE"),
    exp.Group: _group,
    exp.IgnoreNulls: _nulls,
    exp.In: _in,
    exp.Interval: _interval,
    exp.Join: _join,
    exp.Lateral: _lateral,
    exp.Limit: _argument,
    exp.National: lambda n: f"N'…' is not known: write '{n.name}'.",
    exp.Order: _argument,
    exp.Overlaps: _no_operator("OVERLAPS", "compare the bounds"),
    exp.PropertyEQ: _no_operator(":=", "write = to compare, => to name an argument"),
    exp.RespectNulls: _nulls,
    exp.Rollup: _sets,
    exp.Select: _select,
    exp.SessionParameter: _no_operator("variable @@…", "write the value, or :name"),
    exp.SimilarTo: _no_operator("SIMILAR TO", "write RLIKE"),
    exp.Slice: _no_operator("part of an array by [1:2]", "write slice(array, start, length)"),
    exp.Substring: _substring,
    exp.Table: lambda n: "Tables take no hints: leave WITH (…) out." if n.args.get("hints") else "",
    exp.Tuple: _tuple,
    exp.Values: _values,
}


def fault(tree: exp.Expr) -> tuple[str, exp.Expr] | None:
    """Return what Spark would not read in ``tree`` and where, None where all is well."""
    for node in tree.walk():
        check = _CHECKS.get(type(node))
        message = check(node) if check is not None else ""
        if message:
            return message, node
    return None
