"""Calls of users' functions in expressions: checked, and parted from what only Spark computes around them."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.expressions.tree import Expression
from viewkeeper.expressions.user_calls import call_of
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.context import Context
from viewkeeper.plan.parse import parse_expression
from viewkeeper.plan.place import Place
from viewkeeper.zset.schema import Column, Schema

Calls = tuple[tuple[str, Expression], ...]


class Translates(Protocol):
    """What is needed of the translator."""

    context: Context

    def expression(self, tree: exp.Expr) -> Expression:
        """Return the typed expression of a bound tree."""


class UserCalls:
    """Translates calls of users' functions.

    Args:
        translator: translates their arguments.
    """

    def __init__(self, translator: Translates) -> None:
        self._translator = translator
        self._context = translator.context

    def call(self, tree: exp.Expr, function: UserFunction, argument: Callable[[exp.Expr], Expression]) -> Expression:
        """Return the call of ``function`` that ``tree`` is.

        Args:
            tree: the call, bound.
            function: what its name means.
            argument: translates an argument.

        Raises:
            SqlError: ``WRONG_NUM_ARGS``.
            UnsupportedSql: ``NONDETERMINISTIC_EXPRESSION``, in a view.
        """
        if not function.deterministic and not self._context.ad_hoc:
            what = f"{function.name}(), which was registered without deterministic=True,"
            raise self._context.refusal("NONDETERMINISTIC_EXPRESSION", tree, what)
        count, most = len(tree.expressions), function.parameters_max
        if count < max(function.parameters_min, 1) or (most is not None and count > most):
            raise self._wrong_number(tree, function, count)
        return call_of(function, [argument(part) for part in tree.expressions])

    def _wrong_number(self, tree: exp.Expr, function: UserFunction, count: int) -> SqlError:
        least, most = max(function.parameters_min, 1), function.parameters_max
        wanted = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
        message = f"{function.name}() takes {wanted} arguments, not {count}: give as many."
        return self._context.error("WRONG_NUM_ARGS", message, tree)

    def apart(self, tree: exp.Expr) -> tuple[exp.Expr, Calls]:
        """Return a copy of ``tree`` in which calls of users' functions are columns, and the calls by those names."""
        calls: dict[str, Expression] = {}

        def replacement(node: exp.Expr) -> exp.Expr:
            function = self._context.relations.function(node.name) if isinstance(node, exp.Anonymous) else None
            if function is None:
                return node
            call = self.call(node, function, self._translator.expression)
            name = f"_u{blake2b(repr(call).encode(), digest_size=6).hexdigest()}"
            calls[name] = call
            return exp.Column(this=exp.to_identifier(name, quoted=True))

        return tree.transform(replacement), tuple(calls.items())


def can_be_called(name: str) -> bool:
    """Return whether SQL reads ``name(x)`` as a call of a function of that name, and not as a word of its own.

    Example:
        >>> can_be_called("score"), can_be_called("select"), can_be_called("interval")
        (True, False, False)
    """
    text = f"{name}(1)"
    try:
        tree = parse_expression(text, Place(text))
    except SqlError:
        return False
    return isinstance(tree, exp.Anonymous) and tree.name == name


def spark_schema(schema: Schema, calls: Calls = ()) -> Schema:
    """Return the columns as text for Spark names them, with those of ``calls`` behind."""
    columns = [Column(f"_c{i}", c.type, c.nullable) for i, c in enumerate(schema.columns)]
    return Schema((*columns, *(Column(name, call.type, True) for name, call in calls)))
