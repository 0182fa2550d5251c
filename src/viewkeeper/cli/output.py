"""What the commands print: tables for people, JSON for programs, progress bars on terminals."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID

    from viewkeeper.coordinator.core import Outcome
    from viewkeeper.evaluation.result import Result

# Where nobody watches, lines are as long as they are: no cell is cut or wrapped for a screen that is not there.
_WIDTH_UNLIMITED = 1_000_000


def console(stderr: bool = False) -> Console:
    """Return a console for standard output, or standard error, that takes text as it is.

    Args:
        stderr: for standard error.
    """
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = _WIDTH_UNLIMITED
    return made


def say(text: str) -> None:
    """Print a sentence for people on standard error, apart from the results on standard output."""
    print(text, file=sys.stderr)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[bool] = (), title: str | None = None
) -> None:
    """Print rows as a table.

    Args:
        columns: the headers.
        rows: the cells.
        right: per column, whether it is aligned to the right; numbers by default.
        title: a line above.
    """
    out = console()
    if out.is_terminal:
        out.print(table(columns, rows, right, title))
        return
    with out.capture() as drawn:
        out.print(table(columns, rows, right, title))
    # Blanks that fill the last column up are of no use to whoever reads a pipe.
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[bool] = (), title: str | None = None
) -> RenderableType:
    """Return rows as a table to print; see ``print_table``."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    kept = [list(row) for row in rows]
    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, show_edge=False)
    for number, name in enumerate(columns):
        numeric = right[number] if right else any(_is_number(row[number]) for row in kept)
        made.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in kept:
        made.add_row(*(Text(cell(value)) for value in row))
    return made


def cell(value: object) -> str:
    r"""Return a value as a table shows it.

    Example:
        >>> cell(None), cell(True), cell(b"\x00\xff"), cell([1, None])
        ('NULL', 'true', '00ff', '[1, NULL]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return f"[{', '.join(map(cell, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{cell(k)}: {cell(v)}' for k, v in value.items())}}}"
    return str(value)


def print_json(value: object) -> None:
    """Print one value as JSON: a list with one element a line, anything else on one line."""
    if isinstance(value, list):
        lines = ",\n".join(json_text(item) for item in value)
        print(f"[\n{lines}\n]" if lines else "[]")
    else:
        print(json_text(value))


def json_text(value: object) -> str:
    """Return a value as JSON on one line.

    Decimals become texts, so that no digit is lost; NaN and the infinities become texts as in Spark's ``to_json``;
    BINARY is base64.

    Example:
        >>> json_text({"a": float("nan"), "b": [1, None]})
        '{"a":"NaN","b":[1,null]}'
    """
    import msgspec

    return msgspec.json.encode(_plain(value), enc_hook=str).decode()


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key if isinstance(key, str | int) else cell(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _is_number(value: object) -> bool:
    from decimal import Decimal

    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def print_result(result: Result, as_json: bool = False, as_text: bool = False, rows_max: int | None = None) -> None:
    """Print what a statement gave back.

    Args:
        result: the result.
        as_json: as JSON.
        as_text: the rows are lines of a text (a plan, a definition).
        rows_max: print at most so many rows of a table; None: all.
    """
    from itertools import islice

    if as_json:
        print_json(result.rows())
    elif result.rows_affected is not None:
        say(f"{counted(result.rows_affected, 'row')} changed")
    elif as_text:
        print("\n".join(str(row[0]) for row in result.tuples()))
    elif result.columns:
        rows = list(islice(result.tuples(), rows_max))
        print_table(result.columns, rows, [t.is_numeric for t in result.schema.types])
        if len(rows) < len(result):
            say(f"{len(rows):,} of {len(result):,} rows: LIMIT takes fewer, `viewkeeper export` writes all")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    Example:
        >>> counted(1, "row"), counted(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration(seconds: float) -> str:
    """Return a time span in the unit that suits it.

    Example:
        >>> duration(0.0123), duration(4.2), duration(7300)
        ('12 ms', '4.2 s', '2:01:40')
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


class ProgressBar:
    """A progress bar on standard error, if that is a terminal; use as a context manager.

    It appears with the first report, so quick work shows none.

    Args:
        label: what is going on.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._console: Console | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        progress, self._progress, self._task = self._progress, None, None
        if progress is not None:
            progress.stop()

    def report(self, done: float, total: float | None, note: str = "") -> None:
        """Show how far it is.

        Args:
            done: how much is done.
            total: how much there is to do; None where that is not known.
            note: something beside the bar.
        """
        if self._console is None:
            self._console = console(stderr=True)
        if not self._console.is_terminal:
            return
        if self._progress is None:
            self._start(self._console)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total, note=note)

    def epoch(self, done: int, total: int, outcome: Outcome) -> None:
        """Show how far the filling of a view is: what ``Database.sql`` and ``refresh`` take as ``progress``."""
        rate = outcome.log_rows / outcome.seconds if outcome.seconds else 0.0
        self.report(done, total, f"{rate:,.0f} rows/s by {outcome.executor}")

    def of_batches(self, batches: Iterable[RecordBatch], total: int) -> Iterator[RecordBatch]:
        """Yield ``batches``, and show how many of ``total`` rows whoever takes them has done with."""
        rows = 0
        for batch in batches:
            yield batch
            rows += batch.num_rows
            self.report(rows, total)

    def _start(self, target: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(),
            console=target,
            transient=True,
        )
        self._task = self._progress.add_task(self._label, total=None, note="")
        self._progress.start()
