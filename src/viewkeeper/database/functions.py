"""Users' functions: registering, replacing under views, dropping, showing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from viewkeeper.database import maintenance
from viewkeeper.database.described import result_of
from viewkeeper.database.maintenance import Progress
from viewkeeper.database.versions import recalled
from viewkeeper.errors import InputError, SqlError, shown
from viewkeeper.evaluation.result import Result
from viewkeeper.expressions.user_functions import Takes, UserFunction, made
from viewkeeper.plan.catalog import suggestion
from viewkeeper.plan.function_catalog import SPARK_FUNCTIONS
from viewkeeper.plan.user_calls import can_be_called
from viewkeeper.runtime import pickled_function
from viewkeeper.statements.functions import parse_type_text
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, ViewDefinition
from viewkeeper.zset.schema import BOOLEAN, STRING, SqlType

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

Function = Callable[..., Any]

CODE_BYTES_MAX = 256 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AT_PLACE = re.compile(r"^At line \d+, column \d+: ")
_TAKES: Mapping[str | None, Takes] = {None: "values", "arrow": "arrow", "pandas": "pandas"}


@dataclass(frozen=True)
class Registration:
    """What ``register_function`` is told of a function; see there."""

    name: str
    return_type: str | SqlType | None
    deterministic: bool
    vectorized: str | None
    by_value: bool | None
    or_replace: bool


def register_function(engine: Engine, wanted: Registration, function: Function, progress: Progress | None) -> Function:
    """Put ``function`` into the catalog, fill the views anew that call another one of its name, and return it."""
    kept = _kept(wanted, function)
    to_fill: list[int] = []

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        to_fill.clear()
        there = before.functions_by_name.get(kept.name.lower())
        if there == kept and there.deterministic == kept.deterministic:
            return None
        if there is None:
            return before.with_function(kept), ()
        if not wanted.or_replace:
            callers = _named(before.callers(kept.name))
            message = (
                f"There is another function {there.name}(){f', which {callers} call' if callers else ''}: use "
                "or_replace=True, which fills the views that call it anew, or drop it."
            )
            raise InputError("FUNCTION_EXISTS", message, {"name": kept.name})
        return _replaced(engine, before, kept, to_fill), ()

    engine.change_catalog(change, f"-- function {kept.name}")
    maintenance.fill_all(engine, to_fill, progress)
    return function


def drop_function(engine: Engine, name: str, if_exists: bool, sql: str) -> None:
    """DROP FUNCTION: refused while views call it."""

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        known = before.functions_by_name
        if name.lower() not in known:
            if if_exists:
                return None
            message = f"There is no function {name!r}. {suggestion(name, [f.name for f in known.values()])}"
            raise InputError("FUNCTION_NOT_FOUND", message, {"name": name})
        callers = before.callers(name)
        if callers:
            message = f"Views call {name}(): {_named(callers)}. Drop them first."
            raise InputError("FUNCTION_IN_USE", message, {"name": name})
        left = {i: f for i, f in before.functions.items() if f.name.lower() != name.lower()}
        return replace(before, functions=left), ()

    engine.change_catalog(change, sql)


def show_functions(engine: Engine) -> Result:
    """SHOW FUNCTIONS."""
    columns = [
        ("name", STRING), ("return_type", STRING), ("deterministic", BOOLEAN), ("takes", STRING), ("kept", STRING),
        ("views", STRING),
    ]  # fmt: skip
    catalog = engine.coordinator.catalog()
    rows = [
        (f.name, str(f.return_type).upper(), f.deterministic, f.takes, where_kept(f), _named(catalog.callers(f.name)))
        for _, f in sorted(catalog.functions_by_name.items())
    ]
    return result_of(columns, rows)


def where_kept(function: UserFunction) -> str:
    """Return where a function's code is, in words."""
    return function.reference or f"code of Python {function.python}"


def _named(views: Sequence[ViewDefinition]) -> str:
    return ", ".join(dict.fromkeys(view.name for view in views))


# ---- what is kept ----


def _kept(wanted: Registration, function: Function) -> UserFunction:
    given: object = wanted.name
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        message = f"A function's name is made of letters, digits and '_': {shown(wanted.name)} is none; choose another."
        raise InputError("INVALID_FUNCTION_NAME", message)
    if not can_be_called(wanted.name):
        message = f"{wanted.name!r} is a word of SQL and cannot name a function: choose another."
        raise InputError("INVALID_FUNCTION_NAME", message)
    if wanted.name.lower() in SPARK_FUNCTIONS:
        message = f"{wanted.name}() is a function of Spark SQL, which queries would no longer reach: choose another."
        raise InputError("FUNCTION_NAME_TAKEN", message, {"name": wanted.name})
    if not callable(function):
        raise InputError("WRONG_TYPE", f"A function is something that can be called, not {shown(function)}: pass it.")
    if wanted.vectorized not in _TAKES:
        message = f"vectorized is None, 'arrow' or 'pandas', not {shown(wanted.vectorized)}."
        raise InputError("WRONG_TYPE", message)
    sql_type = _type_of(wanted)
    reference = None if wanted.by_value else _reference_of(function)
    if reference is None and wanted.by_value is False:
        message = f"{shown(function)} is not found in a module by its name: define it at a module's top level, or "
        raise InputError("FUNCTION_NOT_IMPORTABLE", message + "leave by_value out.", {"name": wanted.name})
    code = None if reference is not None else _code_of(wanted.name, function)
    takes = _TAKES[wanted.vectorized]
    return made(wanted.name, function, sql_type, takes, wanted.deterministic, reference, code)


def _type_of(wanted: Registration) -> SqlType:
    if isinstance(wanted.return_type, SqlType):
        return wanted.return_type
    if isinstance(wanted.return_type, str):
        try:
            return parse_type_text(wanted.return_type)
        except SqlError as error:
            # Its place is one in this argument, which is no statement with lines.
            told = _AT_PLACE.sub("", error.message)
            told = f"The argument return_type of {wanted.name}(), {shown(wanted.return_type)}: {told}"
            raise type(error)(error.code, told, {"name": wanted.name, "argument": "return_type"}) from error
    message = f"The return type of {wanted.name}() is a text as 'INT', not {shown(wanted.return_type)}: pass one."
    raise InputError("WRONG_TYPE", message, {"name": wanted.name})


def _reference_of(function: Function) -> str | None:
    """Return ``module:name`` by which any process that has the module finds ``function``; None where there is none."""
    if not isinstance(function, FunctionType | BuiltinFunctionType):
        return None
    module, name = function.__module__, function.__qualname__
    found: Any = sys.modules.get(str(module))
    if module == "__main__" or getattr(found, "__spec__", None) is None:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is function else None


def _code_of(name: str, function: Function) -> bytes:
    try:
        code = pickled_function(function)
    except Exception as error:
        message = (
            f"The code of {name}() cannot be kept ({type(error).__name__}: {error}). Let it make what cannot be "
            "pickled (connections, locks, open files) itself, or import it from a module."
        )
        raise InputError("FUNCTION_NOT_PICKLABLE", message, {"name": name}) from error
    if len(code) > CODE_BYTES_MAX:
        message = (
            f"The code of {name}() with all that it refers to has {len(code):,} bytes, more than {CODE_BYTES_MAX:,}: "
            "let it load its data itself, or import it from a module."
        )
        raise InputError("FUNCTION_TOO_LARGE", message, {"name": name})
    return code


# ---- replacing under views ----


def _replaced(engine: Engine, before: Catalog, kept: UserFunction, to_fill: list[int]) -> Catalog:
    """Return the catalog in which ``kept`` stands for its name, with new versions of the views that need it.

    A view that reads such a view needs it as well. The versions that serve until then keep the old function, and so do
    views that stand still: what they show is of that, and RESUME fills them by the new one.
    """
    old = before.function_ids[kept.name.lower()]
    after = before.with_function(kept)
    needing = [v for v in before.views.values() if old in engine.coordinator.planner.functions(before, v)]
    known = {view.id for view in needing}
    filling = [v for v in before.views.values() if v.state == BUILDING and known & {v.id, v.replaces}]
    if filling:
        message = f"Views that call {kept.name}() are being filled: {_named(filling)}. Wait for them, or drop them."
        raise InputError("VIEW_BUILDING", message, {"views": [v.name for v in filling]})
    for view in needing:
        if view.state != ACTIVE and not any(name == kept.name.lower() for name, _ in view.functions):
            # What it reads will be of the new one: its own rows are told by this to be of the old one.
            after = after.with_view(replace(view, functions=(*view.functions, (kept.name.lower(), old))))
    after, new_ids = recalled(engine, after, [view for view in needing if view.state == ACTIVE])
    to_fill[:] = new_ids.values()
    return after.with_functions_in_use()
