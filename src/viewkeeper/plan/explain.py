"""Plans → text trees, for EXPLAIN and for golden files."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.expressions.time_windows import WINDOW, WINDOWS, spec_of
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, SparkExpression
from viewkeeper.expressions.user_calls import CALL, function_of
from viewkeeper.plan.join_branches import Branch, branches_of, joined
from viewkeeper.plan.keys import all_of
from viewkeeper.plan.nodes import (
    Aggregate,
    AggregateCall,
    Expand,
    Filter,
    Generate,
    Join,
    Node,
    Project,
    Scan,
    TopK,
    ViewPlan,
    Window,
    inputs_of,
)
from viewkeeper.plan.ranges import in_dates, ranges_of
from viewkeeper.plan.window_text import window_title
from viewkeeper.zset.schema import Schema

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "mod": "%", "integral_divide": "div", "eq": "=",
    "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq_null_safe": "<=>", "and": "AND", "or": "OR",
}  # fmt: skip


def explain(plan: ViewPlan) -> str:
    """Return ``plan`` as a tree of text, its columns and key above it.

    Example:
        >>> from viewkeeper.plan.examples import plan_example
        >>> print(explain(plan_example("SELECT k, a + 1 AS next FROM t WHERE b > 0")))
        columns: k BIGINT NOT NULL, next INT
        key: k
        Project k := k, next := (a + 1)
          Filter (b > 0)
            Scan t (k, a, b)
    """
    key = ", ".join(plan.root.schema.names[i] for i in plan.key) or "none: one row"
    declared = " (declared)" if plan.declared else ""
    hidden = plan.root.schema.select(tuple(range(plan.visible, len(plan.root.schema))))
    lines = [f"columns: {_columns(plan.schema)}"]
    if len(hidden):
        lines.append(f"hidden: {_columns(hidden)}")
    return "\n".join([*lines, f"key: {key}{declared}", explain_node(plan.root)])


def explain_node(node: Node, depth: int = 0) -> str:
    """Return ``node`` and what it reads as a tree of text."""
    lines = ["  " * depth + _title(node)]
    lines += [explain_node(child, depth + 1) for child in inputs_of(node)]
    return "\n".join(lines)


def explain_expression(expression: Expression, names: Sequence[str]) -> str:
    """Return ``expression`` with columns by ``names``.

    Example:
        >>> from viewkeeper.expressions.tree import Call, ColumnRef, Literal
        >>> from viewkeeper.zset.schema import INT
        >>> explain_expression(Call("add", (ColumnRef(0, INT), Literal(1, INT)), INT), ["a"])
        '(a + 1)'
    """
    if isinstance(expression, ColumnRef):
        return names[expression.index]
    if isinstance(expression, Literal):
        if expression.value is None:
            return "NULL"
        return repr(expression.value) if isinstance(expression.value, (str, bytes)) else str(expression.value)
    if isinstance(expression, SparkExpression):
        sql = expression.sql
        for i in sorted(expression.inputs, reverse=True):
            sql = sql.replace(f"`_c{i}`", names[i])
        for name, call in expression.calls:
            sql = sql.replace(f"`{name}`", explain_expression(call, names))
        return f"spark[{sql}]"
    parts = [explain_expression(argument, names) for argument in expression.arguments]
    if expression.function == CALL:
        return f"{function_of(expression).name}({', '.join(parts)})"
    if expression.function in _INFIX and len(parts) == 2:
        return f"({parts[0]} {_INFIX[expression.function]} {parts[1]})"
    if expression.function == "cast":
        return f"cast({parts[0]} as {expression.type})"
    if expression.function in (WINDOW, WINDOWS):
        spec = spec_of(expression)
        return f"{expression.function}({parts[0]}, {spec.size} every {spec.slide} from {spec.offset} µs)"
    if expression.function == "plus_duration":
        return f"({parts[0]} {'-' if expression.option('minus') else '+'} {parts[1]} µs)"
    return f"{expression.function}({', '.join(parts)})"


def _title(node: Node) -> str:
    names = node.schema.names
    if isinstance(node, Scan):
        return f"Scan {node.relation.name} ({', '.join(names)})"
    if isinstance(node, Filter):
        return f"Filter {explain_expression(node.condition, names)}"
    if isinstance(node, Project):
        below = node.input.schema.names
        outputs = (f"{n} := {explain_expression(e, below)}" for n, e in zip(names, node.expressions, strict=True))
        return f"Project {', '.join(outputs)}"
    if isinstance(node, Join):
        left, right = node.left.schema.names, node.right.schema.names
        title = "Join" if node.kind == "inner" else f"{node.kind.capitalize()} join"
        branches = branches_of(node)
        if branches is not None:
            return f"{title} {', or else '.join(_branch(node, branch) for branch in branches)}"
        pairs = enumerate(zip(node.left_keys, node.right_keys, strict=True))
        keys = " AND ".join(f"{left[i]} {'<=>' if n in node.null_safe else '='} {right[j]}" for n, (i, j) in pairs)
        residual = "" if node.residual is None else f" where {explain_expression(node.residual, (*left, *right))}"
        title = f"{title} on {keys}" if keys else f"{title} of all pairs"
        return f"{title}{residual}{_seeks(node)}"
    if isinstance(node, Aggregate):
        below = node.input.schema.names
        by = f" by {', '.join(below[i] for i in node.group)}" if node.group else ""
        calls = zip(names[len(node.group) :], node.calls, strict=True)
        outputs = (f"{name} := {_call(call, below)}" for name, call in calls)
        return f"Aggregate{by}: {', '.join(outputs)}".removesuffix(": ")
    if isinstance(node, TopK | Window):
        return window_title(node)
    if isinstance(node, Generate):
        words = ["Generate", *(["outer"] if node.outer else []), *(["inline"] if node.inline else [])]
        made = ", ".join(names[len(node.kept) :])
        return f"{' '.join(words)} {made} := {explain_expression(node.collection, node.input.schema.names)}"
    if isinstance(node, Expand):
        return f"Expand into {len(node.projections)} rows: {', '.join(names)}"
    return type(node).__name__


def _branch(node: Join, branch: Branch) -> str:
    """Return how a join finds the pairs of one branch of its OR."""
    names = (*node.left.schema.names, *node.right.schema.names)
    keys = " AND ".join(
        f"{explain_expression(left, names)} {'<=>' if safe else '='} {explain_expression(right, names)}"
        for left, right, safe in branch.keys
    )
    others = all_of(branch.others)
    where = "" if others is None else f" where {explain_expression(others, names)}"
    return f"{f'on {keys}' if keys else 'of all pairs'}{where}{_seeks(joined(node, node.left, branch, 'inner'))}"


def _seeks(node: Join) -> str:
    """Return which ranges the changed rows of each side look at on the other."""
    ranges = ranges_of(node)
    if ranges is None:
        return ""
    names = {"left": node.left.schema.names, "right": node.right.schema.names}
    sides = (("left", ranges.left, names["right"]), ("right", ranges.right, names["left"]))
    found = []
    for side, range_, others in sides:
        if range_ is not None:
            value = explain_expression(in_dates(range_.value), names[side])
            ends = (
                f"{value} {_INFIX[b.function]} {explain_expression(in_dates(b.value), others)}" for b in range_.bounds
            )
            found.append(f"{' AND '.join(ends)} on the {side}")
    return f", seeks {', '.join(found)}"


def _call(call: AggregateCall, names: Sequence[str]) -> str:
    argument = "" if call.argument is None else ", ".join(names[i] for i in (call.argument, *call.more))
    if call.distinct:
        argument = f"distinct {argument}"
    condition = "" if call.filter is None else f" filter {names[call.filter]}"
    return f"{call.function}({argument}){condition}"


def _columns(schema: Schema) -> str:
    return ", ".join(f"{c.name} {str(c.type).upper()}{'' if c.nullable else ' NOT NULL'}" for c in schema.columns)
