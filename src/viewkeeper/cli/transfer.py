"""``viewkeeper load`` and ``export``: files in, files out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from viewkeeper.cli.options import JsonOption, SettingsOption, StoreArgument, UsageError, open_database, take_store

if TYPE_CHECKING:
    import pyarrow as pa

    from viewkeeper.database import Database
    from viewkeeper.errors import InputError
    from viewkeeper.log.position import Position

_BATCH_HELP = "Rows of each transaction."


def _delimiter(given: str) -> str:
    """Return the character that separates values; shells pass a tab most easily as its two signs."""
    delimiter = "\t" if given == "\\t" else given
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise UsageError(f"--delimiter takes one ASCII character that is no quote and no line break, not {given!r}.")
    return delimiter


def load(
    store: StoreArgument = None,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="The base table; it must be there.", show_default=False)
    ] = None,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A file that ends in .parquet or .csv.", show_default=False)
    ] = None,
    batch_rows: Annotated[int, typer.Option(min=1, help=_BATCH_HELP)] = 50_000,
    delimiter: Annotated[
        str, typer.Option(help="What separates the values of a CSV file; \\t is a tab.", callback=_delimiter)
    ] = ",",
    as_json: JsonOption = False,
    settings: SettingsOption = None,
) -> None:
    """Put the rows of a file into a base table, batch by batch.

    Columns are matched by name; a row whose key is there replaces it, so a load that was cut short is simply run again.
    In CSV files, of UTF-8 text or UTF-16 with its mark, the first line names the columns, and an empty value without
    quotes is NULL. A wrong row ends the load: the error names its place, and how many rows, in whole batches, are in
    the table already. Of rows with one key the last one stays, so the rows that the table has then are told as well.
    """
    from viewkeeper.cli.files import open_rows
    from viewkeeper.cli.output import ProgressBar, counted, duration, print_json
    from viewkeeper.cli.relations import rows_in, schema_of
    from viewkeeper.clock import SYSTEM_CLOCK
    from viewkeeper.errors import InputError

    place, (name, path) = take_store([store, table, file], least=2, most=2)
    started = SYSTEM_CLOCK.monotonic_seconds()
    rows, position = 0, None
    with open_database(place, settings) as db:
        schema = schema_of(db, name, base_only=True)
        try:
            with open_rows(path, schema, batch_rows, delimiter) as source, ProgressBar(f"Loading {name}") as bar:
                for batch in source.batches:
                    position = _put(db, name, batch, rows, source.refused)
                    rows += batch.num_rows
                    bar.report(rows, source.rows)
        except InputError as error:
            if not rows:
                raise
            message = f"{error.message} Its first {counted(rows, 'row')} are in {name} already."
            raise InputError(error.code, message, error.details) from error
        seconds = SYSTEM_CLOCK.monotonic_seconds() - started
        there = rows_in(db, name)
    if as_json:
        at = None if position is None else str(position)
        print_json({"table": name, "rows": rows, "seconds": round(seconds, 3), "position": at, "rows_in_table": there})
        return
    print(f"{counted(rows, 'row')} into {name} in {duration(seconds)}; it has {counted(there, 'row')} now.")


def _put(
    db: Database, name: str, batch: pa.RecordBatch, rows_before: int, refused: Callable[[InputError, int], InputError]
) -> Position:
    from viewkeeper.errors import InputError

    try:
        return db.put_batch(name, batch)
    except InputError as error:
        if "row" not in error.details:
            raise
        raise refused(error, rows_before) from error


def export(
    store: StoreArgument = None,
    view: Annotated[str | None, typer.Argument(metavar="VIEW", help="A view or a table.", show_default=False)] = None,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A file that ends in .parquet, .csv or .json; if left out, CSV goes to standard output.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Without FILE: JSON instead of CSV.")] = False,
    settings: SettingsOption = None,
) -> None:
    """Write all rows of a view or a table to a file.

    They are as of one moment. The file is replaced when all rows are written, so nobody meets half of it.
    """
    from viewkeeper.cli.files import print_rows, write_file
    from viewkeeper.cli.output import ProgressBar, counted, say
    from viewkeeper.cli.relations import batches_of, rows_in, schema_of

    place, names = take_store([store, view, file], least=1, most=2)
    with open_database(place, settings) as db:
        schema = schema_of(db, names[0])
        if len(names) == 2:
            total = rows_in(db, names[0])
            with ProgressBar(f"Exporting {names[0]}") as bar:
                rows = write_file(names[1], schema, bar.of_batches(batches_of(db, names[0]), total))
            say(f"{counted(rows, 'row')} in {names[1]}")
        else:
            print_rows(schema, batches_of(db, names[0]), as_json)
