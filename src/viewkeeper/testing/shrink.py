"""Shrinking: the smallest script that still fails, found by leaving things out.

Views, steps, operations, columns' values in the order in which most goes first; each attempt runs the script anew. The
result fails in the same way (the same kind of error), so that one fault is not shrunk into another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from viewkeeper.testing.scripts import Commit, Create, Refresh, Script, Step

Fails = Callable[[Script], bool]


def shrink(script: Script, fails: Fails, attempts: int = 2000) -> Script:
    """Return a smaller script for which ``fails`` is still true.

    Args:
        script: one that fails.
        fails: runs a script and tells whether it fails as this one does.
        attempts: how many runs at most.
    """
    left = attempts
    is_smaller = True
    while is_smaller and left > 0:
        is_smaller = False
        for candidate in _smaller(script):
            left -= 1
            if left <= 0:
                break
            if fails(candidate):
                script, is_smaller = candidate, True
                break
    return script


def _smaller(script: Script) -> Iterator[Script]:
    """Yield scripts with less in them, those with much less first."""
    yield from _without_views(script)
    for size in (8, 4, 2, 1):
        for start in range(len(script.steps) - size + 1):
            steps = script.steps[:start] + script.steps[start + size :]
            if _creates(steps) == _creates(script.steps):
                yield replace(script, steps=steps)
    yield from _without_operations(script)
    yield from _without_tables(script)
    for number, view in enumerate(script.views):
        for simpler in (replace(view, refresh="REFRESH CONTINUOUS"), replace(view, key=())):
            if simpler != view:
                yield replace(script, views=(*script.views[:number], simpler, *script.views[number + 1 :]))
    for number, step in enumerate(script.steps):
        if isinstance(step, Refresh) and step.views:
            yield replace(script, steps=(*script.steps[:number], Refresh(), *script.steps[number + 1 :]))


def _without_views(script: Script) -> Iterator[Script]:
    for view in script.views:
        if any(view.name in other.sql for other in script.views if other is not view):
            continue
        steps: list[Step] = []
        for step in script.steps:
            if isinstance(step, Create) and step.view == view.name:
                continue
            if isinstance(step, Refresh) and view.name in step.views:
                step = Refresh(tuple(n for n in step.views if n != view.name))
            steps.append(step)
        yield replace(script, views=tuple(v for v in script.views if v is not view), steps=tuple(steps))


def _without_operations(script: Script) -> Iterator[Script]:
    for number, step in enumerate(script.steps):
        if not isinstance(step, Commit):
            continue
        for at in range(len(step.operations)):
            fewer = Commit(step.operations[:at] + step.operations[at + 1 :])
            if fewer.operations:
                yield replace(script, steps=(*script.steps[:number], fewer, *script.steps[number + 1 :]))


def _without_tables(script: Script) -> Iterator[Script]:
    used = {o.table for step in script.steps if isinstance(step, Commit) for o in step.operations}
    for table in script.tables:
        if table.name not in used and not any(f"{table.name} " in view.sql for view in script.views):
            yield replace(script, tables=tuple(t for t in script.tables if t is not table))


def _creates(steps: tuple[Step, ...]) -> list[str]:
    return [step.view for step in steps if isinstance(step, Create)]
