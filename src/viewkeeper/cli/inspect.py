"""``viewkeeper status``, ``verify`` and ``explain``: what there is, whether it is right, how it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.cli.options import JsonOption, SettingsOption, StoreArgument, open_database, take_store

if TYPE_CHECKING:
    from viewkeeper.evaluation.states import StateReport
    from viewkeeper.evaluation.verify import VerifyReport

_STATUS_COLUMNS = (
    "view",
    "state",
    "refresh",
    "rows",
    "position",
    "behind",
    "rows behind",
    "freshness",
    "executor",
    "way",
)
_VERIFY_COLUMNS = ("view", "checked", "result", "rows", "missing", "unexpected", "different", "time", "note")

# Reasons that say no more than the column with the way.
_PLAIN_REASONS = ("POLICY", "FEW_CHANGES", "NO_CHANGES")


def status(store: StoreArgument = None, as_json: JsonOption = False, settings: SettingsOption = None) -> None:
    """Show what there is, how fresh, and who maintains it.

    For each view: state, position, lag, freshness, executor of the last epoch, failures; whether that epoch followed
    the changes or recomputed the view, and where costs decided, by which figures.
    """
    from viewkeeper.cli.output import print_json

    place, _ = take_store([store])
    with open_database(place, settings) as db:
        found = db.status()
    if as_json:
        print_json(found)
    else:
        print_status(found)


def _notes(view: Mapping[str, Any]) -> Iterator[str]:
    """Yield what there is to say of a view below the table."""
    from viewkeeper.cli.output import counted
    from viewkeeper.plan.refusals import anew

    if view["failure_count"]:
        first = view["failures"][0] if view["failures"] else {"reason": "", "key": ""}
        count = counted(view["failure_count"], "row")
        yield f"{count} cannot be computed, first {first['reason']} at {first['key']}"
    if view["way"] is not None and view["why"] not in _PLAIN_REASONS:
        yield view["decision"]
    if view["recomputed"] is not None and view["why"] != view["recomputed"]:
        yield anew(view["recomputed"])
    if view["reason"]:
        yield view["reason"]
    if view["scrubbed"] is not None and view["scrubbed"]["result"] == "skipped":
        yield f"not checked in the background: {view['scrubbed']['note']}"


def print_status(found: Mapping[str, Any]) -> None:
    """Print what ``Database.status`` returns, for people."""
    from viewkeeper.cli.output import console, counted, duration, print_table, say

    out = console()
    held = sum(consumer["held_bytes"] for consumer in found["log"])
    size = sum(found["bytes"].values())
    out.print(f"{found['store']}: position {found['position']}, {_bytes(size)}, log held {_bytes(held)}")
    tables = [(t["name"], t["rows"], t["columns"]) for t in found["tables"]]
    if tables:
        print_table(("table", "rows", "columns"), tables)
    views = found["views"]
    if views:
        print_table(_STATUS_COLUMNS, [_status_row(view) for view in views], [3 <= i <= 6 for i in range(10)])
    for view in views:
        for note in _notes(view):
            out.print(f"{view['name']}: {note}")
    for consumer in found["log"]:
        if consumer["needs_rebuild"]:
            out.print(f"{consumer['consumer']}: the log that it needs is gone; its views must be filled anew")
    maintainer = found["maintainer"]
    if maintainer is not None:
        out.print(f"Maintained by process {maintainer['process_id']} on {maintainer['host']}.")
    if found["oldest_reader"] is not None:
        out.print(f"Oldest reader: {_reader(found['oldest_reader'])}.")
    for trouble in found["troubles"]:
        tried = f"tried {counted(trouble['attempts'], 'time')}, again within {duration(trouble['pause_seconds'])}"
        out.print(f"{trouble['task']}: [{trouble['code']}] {trouble['message']} ({tried})", markup=False)
    if found["hint"]:
        say(found["hint"])


def _reader(reader: Mapping[str, Any]) -> str:
    from viewkeeper.cli.output import duration

    seconds = reader["age_seconds"]
    # LMDB does not tell since when another process reads, only by which state.
    age = f" for {duration(seconds)}" if seconds >= 0 else ", for how long is not known"
    return f"process {reader['process_id']} reads{age}"


def _status_row(view: Mapping[str, Any]) -> tuple[object, ...]:
    names = ("name", "state", "refresh", "rows", "position", "behind", "rows_behind")
    shown = [view[name] if view[name] is not None else "" for name in names]
    return (*shown, _freshness(view), view["executor"] or "", view["way"] or "")


def _freshness(view: Mapping[str, Any]) -> str:
    from viewkeeper.cli.output import duration
    from viewkeeper.clock import utc_now

    if view["filled"] is not None:
        return f"{view['filled']:.0%} filled"
    published: datetime | None = view["published"]
    if published is None:
        return "never filled"
    if view["state"] == "FAILED":
        return "last good epoch" if view["position"] >= 0 else "never filled"
    if not view["rows_behind"]:
        return "up to date"
    return f"{duration(max((utc_now() - published).total_seconds(), 0.0))} ago"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def verify(
    store: StoreArgument = None,
    views: Annotated[
        list[str] | None, typer.Argument(metavar="VIEW", help="Views to check; all if left out.", show_default=False)
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Put right what is found wrong.")] = False,
    rows_only: Annotated[
        bool, typer.Option("--rows-only", help="Compare the views' rows, not the state behind them.")
    ] = False,
    as_json: JsonOption = False,
    settings: SettingsOption = None,
) -> None:
    """Compare views and their state with full recomputation by Spark.

    Base rows are taken at each view's own position, so writers may go on. Each view has a row for its own rows and one
    for each state table: arrangements, groups, values of MIN and MAX. A suspended view whose log is purged cannot be
    compared; its note says what to do. The exit status is 1 if a view is wrong and was not repaired.
    """
    from viewkeeper.cli.output import ProgressBar, print_json, print_table
    from viewkeeper.clock import SYSTEM_CLOCK
    from viewkeeper.errors import ViewFailed

    place, names = take_store([store, *(views or ())], most=None)
    rows: list[dict[str, Any]] = []
    with open_database(place, settings) as db, ProgressBar("Verifying") as bar:
        names = names or db.views()
        for done, name in enumerate(names):
            # How far it is with one view nobody knows: the bar moves, and that of several tells which view it is at.
            bar.report(done, len(names) if len(names) > 1 else None, name)
            started = SYSTEM_CLOCK.monotonic_seconds()
            report = db.verify(name, state=not rows_only, repair=repair)
            result = "not checked" if not report.is_compared else "right" if report.ok else "wrong"
            rows.append(_verified(name, report, "repaired" if repair and report.is_wrong else result, started))
    if as_json:
        print_json(rows)
    else:
        table = [line for row in rows for line in _verify_lines(row)]
        print_table(_VERIFY_COLUMNS, table, [3 <= i <= 7 for i in range(len(_VERIFY_COLUMNS))])
    wrong = [row["view"] for row in rows if row["result"] == "wrong"]
    if wrong:
        remedy = "`viewkeeper verify --repair` puts them right."
        raise ViewFailed("VIEW_WRONG", f"Not what their queries give: {', '.join(wrong)}. {remedy}")


def _verified(name: str, report: VerifyReport, result: str, started: float) -> dict[str, Any]:
    from viewkeeper.clock import SYSTEM_CLOCK

    return {
        "view": name,
        "result": result,
        "missing": report.missing_count,
        "unexpected": report.unexpected_count,
        "different": report.different_count,
        "seconds": round(SYSTEM_CLOCK.monotonic_seconds() - started, 3),
        "checks": [_checked(check) for check in report.checks],
    }


def _checked(check: StateReport) -> dict[str, Any]:
    judged = "right" if check.ok else "wrong"
    return {
        "checked": check.name,
        "result": judged if check.unchecked is None else "not checked",
        "rows": check.rows,
        "missing": check.missing_count,
        "unexpected": check.unexpected_count,
        "different": check.different_count,
        "note": check.note,
    }


def _verify_lines(row: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """Yield a line for each thing that was checked; how long it took stands on the first."""
    from viewkeeper.cli.output import duration

    for number, check in enumerate(row["checks"]):
        result = row["result"] if row["result"] == "repaired" and check["result"] == "wrong" else check["result"]
        counts = (check[name] for name in ("rows", "missing", "unexpected", "different"))
        took = duration(row["seconds"]) if number == 0 else ""
        yield (row["view"], check["checked"], result, *counts, took, check["note"])


def quoted(name: str) -> str:
    """Return a name as SQL takes it whatever it holds.

    Example:
        >>> quoted("a`b")
        '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def explain(
    store: StoreArgument = None,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="A query, or a CREATE MATERIALIZED VIEW statement, in one argument.", show_default=False
        ),
    ] = None,
    settings: SettingsOption = None,
) -> None:
    """Show how a query would be maintained.

    Its plan, the state that is kept for it, and the executors that can run it.
    """
    place, (text,) = take_store([store, query], least=1, most=1)
    with open_database(place, settings) as db:
        print(db.explain(text).rstrip())
