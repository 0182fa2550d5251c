"""Functions as bytes: PySpark's own cloudpickle, which takes along what a script or a notebook has defined.

That it can be read again without a session, and by whom: docs/decisions/0015.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from pyspark import cloudpickle as untyped_cloudpickle

cloudpickle: Any = untyped_cloudpickle


def pickled(function: Callable[..., Any]) -> bytes:
    """Return ``function`` with all of its module that it needs, which then need not be there when it is loaded.

    Args:
        function: a function, or an object that can be called.

    Raises:
        Exception: whatever keeps it from being pickled.
    """
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    is_plain = type(function) is FunctionType
    by_value = is_plain and module is not None and module.__name__ != "__main__" and _is_own(module.__name__)
    if by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        made: bytes = cloudpickle.dumps(_without_places(function))
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)
    return made


def _is_own(module: str) -> bool:
    """Return whether a module may be no module of Python itself, which every process has."""
    return module.partition(".")[0] not in sys.stdlib_module_names


def _without_places(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` without file name and lines, so that it stays the same when a script grows above it."""
    if type(function) is not FunctionType:
        return function
    code = _code_without_places(function.__code__)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    made.__dict__.update({name: value for name, value in function.__dict__.items() if name != "__wrapped__"})
    return made


def _code_without_places(code: CodeType) -> CodeType:
    constants = tuple(_code_without_places(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    places = _no_places(len(code.co_code) // 2)
    return code.replace(co_filename="<function>", co_firstlineno=1, co_linetable=places, co_consts=constants)


def _no_places(instructions: int) -> bytes:
    """Return CPython's table which says of so many instructions that they stand nowhere.

    An empty table says nothing of them, and then ``traceback`` fails on the function's frames. An entry is a byte: its
    highest bit, the kind 15 (none) in four bits, and in three the number of instructions less one.
    """
    whole, rest = divmod(instructions, 8)
    return b"\xff" * whole + (bytes((0xF8 | rest - 1,)) if rest else b"")
