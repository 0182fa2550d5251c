"""Functions that users have written in Python: what is kept of one, and how it becomes code again.

A function of an importable module is kept as ``module:name`` with a digest of its source, so that a view never goes on
with another code than its rows were made by; any other as a pickle of its code (docs/decisions/0015). Which it is has
been decided when it was registered: here it is only loaded and called.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from viewkeeper.errors import FunctionUnavailable
from viewkeeper.zset.schema import SqlType

Takes = Literal["values", "arrow", "pandas"]

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True)
class UserFunction:
    """A registered function; two are equal that compute the same.

    Args:
        name: as its user wrote it; calls may write it in any case.
        digest: tells what it computes: its code, its types and how it is called.
        return_type: the type of its results.
        takes: ``values``: called row by row with Python values; ``arrow`` and ``pandas``: with columns of many rows.
        deterministic: whether its author has said that equal arguments give equal results.
        parameters_min: how many arguments a call has at least.
        parameters_max: how many it has at most; None for any number.
        reference: ``module:name`` of a function that is imported, else None.
        source_digest: of the source that ``reference`` had; "" where Python has none.
        code: a function that is not imported, pickled; else None.
        python: the version of Python that can read ``code``.
    """

    name: str
    digest: str
    return_type: SqlType
    takes: Takes = field(compare=False, repr=False)
    deterministic: bool = field(compare=False, repr=False)
    parameters_min: int = field(compare=False, repr=False)
    parameters_max: int | None = field(compare=False, repr=False)
    reference: str | None = field(compare=False, repr=False)
    source_digest: str = field(compare=False, repr=False)
    code: bytes | None = field(compare=False, repr=False)
    python: str = field(compare=False, repr=False)

    @property
    def spark_name(self) -> str:
        """The name under which Spark knows just this version of it."""
        return f"{self.name.lower()}_{self.digest[:12]}"


@lru_cache(maxsize=256)
def loaded(function: UserFunction) -> Callable[..., Any]:
    """Return the code of ``function``, loaded once a process.

    Raises:
        FunctionUnavailable: ``FUNCTION_NOT_LOADABLE``, ``FUNCTION_CHANGED``.
    """
    if function.code is not None:
        return _unpickled(function, function.code)
    assert function.reference is not None
    found = _imported(function, function.reference)
    if source_digest(found) != function.source_digest:
        message = (
            f"The source of {function.reference}, which the function {function.name}() is, has changed since it was "
            f"registered. Register it again with or_replace=True, which fills its views anew, or put it back."
        )
        raise FunctionUnavailable("FUNCTION_CHANGED", message, {"function": function.name})
    return found


def _unpickled(function: UserFunction, code: bytes) -> Callable[..., Any]:
    if function.python != PYTHON:
        why = f"its code was kept by Python {function.python}, and this process runs {PYTHON}"
        remedy = f"Run Python {function.python}, or register it again with or_replace=True."
        raise not_loadable(function, why, remedy)
    try:
        made: Callable[..., Any] = pickle.loads(code)
    except Exception as error:
        raise not_loadable(function, f"{type(error).__name__}: {error}", "Install what it needs here.") from error
    return made


def _imported(function: UserFunction, reference: str) -> Callable[..., Any]:
    module, _, name = reference.partition(":")
    # The module may have come after this process had looked for it.
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        remedy = f"Put the module {module} on PYTHONPATH here, or register it again with by_value=True."
        raise not_loadable(function, f"{reference}: {type(error).__name__}: {error}", remedy) from error
    result: Callable[..., Any] = found
    return result


def not_loadable(function: UserFunction, why: str, remedy: str) -> FunctionUnavailable:
    """Return the error of a function that cannot run in this process, for a reason that lies in the process."""
    message = f"The function {function.name}() cannot be run here ({why}). {remedy} Its views wait where they are."
    return FunctionUnavailable("FUNCTION_NOT_LOADABLE", message, {"function": function.name})


def source_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's source, in which comments, docstrings and layout do not count; "" without source.

    Example:
        >>> source_digest(len), source_digest(loaded) == source_digest(source_digest)
        ('', False)
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return blake2b(ast.unparse(tree).encode(), digest_size=16).hexdigest()


def made(
    name: str, function: Callable[..., Any], return_type: SqlType, takes: Takes, deterministic: bool,
    reference: str | None, code: bytes | None,
) -> UserFunction:  # fmt: skip
    """Return what is kept of ``function``.

    Args:
        name: what SQL calls it.
        function: the function.
        return_type: the type of its results.
        takes: how it is called.
        deterministic: what its author says of it.
        reference: ``module:name`` where it is imported.
        code: its pickle where it is not.
    """
    least, most = _parameters(function)
    source = "" if reference is None else source_digest(function)
    told = (name.lower(), str(return_type), takes, deterministic, reference, source, code)
    digest = blake2b(repr(told).encode(), digest_size=12).hexdigest()
    return UserFunction(
        name, digest, return_type, takes, deterministic, least, most, reference, source, code, PYTHON
    )  # fmt: skip


def _parameters(function: Callable[..., Any]) -> tuple[int, int | None]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some of those that are written in C do not say
        return 1, None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    return least, None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
