"""What the registry knows of a function: its type rule, its portable form, and when it can fail on a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.expressions.tree import Call, Expression, Scalar, Session
from viewkeeper.expressions.vectors import Evaluated, Operand
from viewkeeper.zset.schema import SqlType

Rule = Callable[[str, tuple[Expression, ...], Session, Mapping[str, Scalar]], Expression]
Kernel = Callable[[Call, Sequence[Operand], int], Evaluated]
LazyKernel = Callable[[Call, Sequence[Evaluated], int], Evaluated]
Raises = Callable[[Call], bool]


@dataclass(frozen=True)
class Function:
    """A portable form.

    Args:
        name: the name in ``Call.function``.
        kernel: computes the column from the argument columns; constants come as scalars, at least one is a column.
        lazy: instead of ``kernel``: computes from arguments with their errors, for functions that skip arguments.
        raises: whether a given call can fail on a row by itself.
        strict: "left": NULL in, NULL out, and an argument after a NULL is not computed, as in Spark's binary
            expressions; "right": the same from the right, as in its divisions; "all": every argument is computed.
    """

    name: str
    kernel: Kernel | None = None
    lazy: LazyKernel | None = None
    raises: Raises = lambda call: False
    strict: str = "left"


RULES: dict[str, Rule] = {}
FUNCTIONS: dict[str, Function] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated type rule under ``names``."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def kernel(*names: str, raises: Raises = lambda call: False, strict: str = "left") -> Callable[[Kernel], Kernel]:
    """Register the decorated kernel as the portable form of ``names``."""

    def register(function: Kernel) -> Kernel:
        for name in names:
            FUNCTIONS[name] = Function(name, kernel=function, raises=raises, strict=strict)
        return function

    return register


def lazy(*names: str, raises: Raises = lambda call: False) -> Callable[[LazyKernel], LazyKernel]:
    """Register the decorated kernel, which sees the errors of its arguments, as the portable form of ``names``."""

    def register(function: LazyKernel) -> LazyKernel:
        for name in names:
            FUNCTIONS[name] = Function(name, lazy=function, raises=raises)
        return function

    return register


def always(call: Call) -> bool:
    """Say that each call can fail."""
    return True


def under_ansi(call: Call) -> bool:
    """Say that a call can fail where it was resolved in ANSI mode."""
    return bool(call.option("ansi"))


def make(
    function: str,
    arguments: Sequence[Expression],
    result: SqlType,
    nullable: bool | None = None,
    **options: Scalar,
) -> Call:
    """Return a call of ``function``; nullable, unless said, where an argument is."""
    if nullable is None:
        nullable = any(argument.nullable for argument in arguments)
    return Call(function, tuple(arguments), result, nullable, tuple(sorted(options.items())))
