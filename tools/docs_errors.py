"""The page of error codes, read from the source: every call whose first argument is a code."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from viewkeeper import errors

CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
KINDS = {
    name: (inspect.getdoc(kind) or "").partition("\n")[0]
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, errors.ViewkeeperError)
}
# The planner's method that makes an error which points into the user's SQL.
MAKERS = {"error": "SqlError"}


@dataclass(frozen=True, order=True)
class Entry:
    """One place where an error is made.

    Args:
        code: the stable identifier.
        kind: the class of the error.
        message: the text, with the names of what is filled in between braces; empty where it is put together elsewhere.
        module: the file, relative to the package.
    """

    code: str
    kind: str
    message: str
    module: str


def error_page(package: Path) -> str:
    """Return ``docs/errors.md``.

    Args:
        package: the folder of the package.
    """
    lines = [
        "# Errors",
        "",
        "Written from the source by `make docs`. The code is stable; the wording is not. The kind tells what to do:",
        "",
        *(f"- `{kind}`: {meaning}" for kind, meaning in KINDS.items()),
        "",
        "What a view cannot have is refused with a code of its own: see [limitations.md](limitations.md).",
        "",
        "| code | kind | message | made in |",
        "| --- | --- | --- | --- |",
    ]
    for entry in sorted(entries_in(package)):
        message = " ".join(entry.message.split()).replace("|", "\\|")
        lines.append(f"| `{entry.code}` | `{entry.kind}` | {message} | `{entry.module}` |")
    return "\n".join(lines) + "\n"


@cache
def entries_in(package: Path) -> frozenset[Entry]:
    """Return the errors that a package makes.

    Args:
        package: its folder.
    """
    return frozenset(entry for path in package.rglob("*.py") for entry in entries_of(path, package))


def entries_of(path: Path, package: Path) -> Iterator[Entry]:
    """Yield the errors that a file makes.

    Args:
        path: the file.
        package: the folder of the package.
    """
    module = path.relative_to(package).as_posix()
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in nodes:
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = called(node.func)
        kind = name if name in KINDS else MAKERS.get(name)
        if kind is None or not isinstance(node.args[0], ast.Constant):
            continue
        code = node.args[0].value
        if isinstance(code, str) and CODE.fullmatch(code):
            around = [
                function for function in functions if function.lineno <= node.lineno <= (function.end_lineno or 0)
            ]
            innermost = max(around, key=lambda function: function.lineno, default=None)
            message = text_of(node.args[1], innermost, node.lineno) if len(node.args) > 1 else ""
            yield Entry(code, kind, message, module)


def called(function: ast.expr) -> str:
    """Return the last name of what is called."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def text_of(node: ast.expr, function: ast.AST | None, line: int) -> str:
    """Return a message as a reader sees it, with the names of its variable parts in braces.

    Args:
        node: the expression that makes it.
        function: where a name in it is looked up.
        line: only what is assigned before this line counts.

    Example:
        >>> text_of(ast.parse("f'no table {name!r}' + '.'", mode="eval").body, None, 1)
        'no table {name}.'
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, function, line) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}" if isinstance(node.value, ast.Name | ast.Attribute) else "{…}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left, function, line) + text_of(node.right, function, line)
    if isinstance(node, ast.Name) and function is not None:
        values = [
            statement.value
            for statement in ast.walk(function)
            if isinstance(statement, ast.Assign)
            and statement.lineno < line
            and any(isinstance(target, ast.Name) and target.id == node.id for target in statement.targets)
        ]
        return text_of(values[-1], None, line) if values else f"{{{node.id}}}"
    return f"{{{node.id}}}" if isinstance(node, ast.Name) else "{…}"
