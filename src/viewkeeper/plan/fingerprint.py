"""A hash of what a subplan computes, so that equal subplans share their arrangements."""

from __future__ import annotations

import hashlib
from dataclasses import fields

from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal
from viewkeeper.plan.nodes import Aggregate, Filter, Join, Node, Project, Scan, inputs_of


def fingerprint(node: Node) -> str:
    """Return 32 hexadecimal digits that are equal for equal subplans, in every process and version of Python.

    Relation ids, columns, types and expressions count; names do not.

    Example:
        >>> from viewkeeper.plan.examples import plan_example
        >>> one = plan_example("SELECT k, a FROM t WHERE b > 0").root
        >>> other = plan_example("SELECT s.k AS kk, s.a AS aa FROM t AS s WHERE s.b > 0").root
        >>> fingerprint(one) == fingerprint(other)
        True
    """
    return hashlib.blake2b(_text(node).encode(), digest_size=16).hexdigest()


def _text(node: Node) -> str:
    key = "-" if node.key is None else ",".join(map(str, node.key))
    types = ",".join(f"{column.type}{'?' if column.nullable else ''}" for column in node.schema.columns)
    inputs = "".join(_text(child) for child in inputs_of(node))
    return f"{type(node).__name__}({_own(node)};{types};{key};{inputs})"


def _own(node: Node) -> str:
    if isinstance(node, Scan):
        return f"{node.relation.id}:{','.join(map(str, node.numbers))}"
    if isinstance(node, Filter):
        return _expression(node.condition)
    if isinstance(node, Project):
        return ",".join(map(_expression, node.expressions))
    if isinstance(node, Join):
        keys = ",".join(f"{i}={j}" for i, j in zip(node.left_keys, node.right_keys, strict=True))
        residual = "" if node.residual is None else f":{_expression(node.residual)}"
        return f"{node.kind}:{sorted(node.null_safe)}:{keys}{residual}"
    if isinstance(node, Aggregate):
        return f"{','.join(map(str, node.group))}:{','.join(map(repr, node.calls))}"
    inputs = inputs_of(node)
    skipped = {f.name for f in fields(node) if getattr(node, f.name) is inputs or getattr(node, f.name) in inputs}
    return ",".join(repr(getattr(node, f.name)) for f in fields(node) if f.name not in {*skipped, "schema", "key"})


def _expression(expression: Expression) -> str:
    if isinstance(expression, ColumnRef):
        return f"#{expression.index}"
    if isinstance(expression, Literal):
        return f"{expression.value!r}:{expression.type}"
    if isinstance(expression, Call):
        arguments = ",".join(map(_expression, expression.arguments))
        return f"{expression.function}[{expression.options!r}]({arguments}):{expression.type}"
    calls = "".join(f"{name}={_expression(call)};" for name, call in expression.calls)
    return f"spark{expression.inputs!r}{expression.sql!r}{calls}:{expression.type}"
