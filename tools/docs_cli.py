"""The reference of the command, from its own declarations."""

from __future__ import annotations

import inspect
from typing import Any


def command_page() -> str:
    """Return ``docs/cli.md``."""
    import typer.main

    from viewkeeper.cli.main import app

    return page_of(typer.main.get_command(app), "viewkeeper")


def page_of(group: Any, program: str) -> str:
    """Return the page of a group of commands.

    Args:
        group: the commands, as click knows them.
        program: what is typed to run them.
    """
    lines = ["# The command", "", "Written from the command's own declarations by `make docs`."]
    summary = paragraphs(group.help)
    if summary:
        lines += ["", summary]
    lines += parameters(group)
    for name in sorted(group.commands):
        command = group.commands[name]
        if command.hidden:
            continue
        arguments = " ".join(
            metavar(parameter) if parameter.required else f"[{metavar(parameter)}]"
            for parameter in command.params
            if parameter.param_type_name == "argument"
        )
        usage = " ".join(part for part in (program, name, "[OPTIONS]", arguments) if part)
        lines += ["", f"## {program} {name}", "", f"    {usage}", "", paragraphs(command.help), *parameters(command)]
    return "\n".join(lines).rstrip() + "\n"


def parameters(command: Any) -> list[str]:
    """Return the table of a command's arguments and options, or nothing where it has none."""
    rows = []
    for parameter in command.params:
        meaning = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
        if parameter.param_type_name == "argument":
            names = f"`{metavar(parameter)}`"
        else:
            names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        rows.append(f"| {names} | {default_of(parameter)} | {meaning} |")
    return ["", "| option | default | meaning |", "| --- | --- | --- |", *rows] if rows else []


def default_of(parameter: Any) -> str:
    """Return a parameter's default as it would be typed; empty where there is none to type."""
    default = parameter.default
    if default is None or default in ((), "", False) or callable(default) or "Sentinel" in type(default).__name__:
        return ""
    return f"`{default}`"


def metavar(parameter: Any) -> str:
    """Return how an argument is called in a usage line."""
    name = str(parameter.metavar or parameter.name).upper()
    return f"{name}…" if parameter.nargs == -1 else name


def paragraphs(text: str | None) -> str:
    """Return a help text as Markdown; the part after a form feed is not for users."""
    return inspect.cleandoc((text or "").partition("\f")[0])
