"""The demo's proof: every view against its query over base rows, and what keeping views fresh costs beside recomputing.

Both are computed by Spark SQL from base rows, never by our operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.database import Database
from viewkeeper.demo.store import LastDay
from viewkeeper.demo.views import VIEWS, DemoView


@dataclass(frozen=True)
class Checked:
    """A view, compared and recomputed.

    Args:
        view: which.
        rows: rows that it holds.
        flights: flights that it counts.
        difference: how it differs from its query; empty where it does not.
        verify_seconds: how long comparing took, recomputing included.
        recompute_seconds: how long Spark SQL took to compute its rows anew.
        executor: what recomputed.
    """

    view: DemoView
    rows: int
    flights: int
    difference: str
    verify_seconds: float
    recompute_seconds: float
    executor: str


def check(db: Database, view: DemoView, clock: Clock = SYSTEM_CLOCK) -> Checked:
    """Verify ``view``, and compute it anew by Spark SQL.

    Args:
        db: a connection whose queries go to Spark.
        view: which.
        clock: measures.
    """
    started = clock.monotonic_seconds()
    report = db.verify(view.name, state=False)
    verified = clock.monotonic_seconds()
    answer = db.sql(view.recomputation)
    recomputed = clock.monotonic_seconds()
    rows = list(db.scan(view.name))
    return Checked(
        view=view,
        rows=len(rows),
        flights=sum(int(row["flights"]) for row in rows),
        difference="" if report.ok else _difference(report),
        verify_seconds=verified - started,
        recompute_seconds=recomputed - verified,
        executor=answer.executor,
    )


def _difference(report: Any) -> str:
    counts = {name: _count(getattr(report, name)) for name in ("missing", "unexpected", "different")}
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "differs"


def _count(found: Any) -> int:
    return found if isinstance(found, int) else len(found)


def proof_table(checked: list[Checked]) -> Table:
    """Return the result of all checks as a table."""
    table = Table(title="Every view against its query over the base rows, by Spark SQL", title_justify="left")
    table.add_column("view", no_wrap=True)
    for name in ("rows", "flights", "equal", "verified in", "recomputed in"):
        table.add_column(name, justify="right")
    for c in checked:
        equal = "[green]yes[/green]" if not c.difference else f"[red]NO: {c.difference}[/red]"
        table.add_row(
            c.view.name, f"{c.rows:,}", f"{c.flights:,}", equal,
            f"{c.verify_seconds:.2f} s", f"{c.recompute_seconds:.2f} s",
        )  # fmt: skip
    return table


def lost_lines(checked: list[Checked], flights: int) -> list[str]:
    """Return a line for each view that counts fewer flights than there are, and why that is right."""
    return [
        f"{c.view.name} counts {c.flights:,} of {flights:,} flights: its inner join has no partner for the other "
        f"{flights - c.flights:,} ({c.view.lost or 'no row to join with'})."
        for c in checked
        if c.flights != flights
    ]


def cost_lines(checked: list[Checked], last_day: LastDay | None) -> list[str]:
    """Return the last day's refresh beside one recomputation of the same views."""
    seconds = sum(c.recompute_seconds for c in checked)
    by = " and ".join(dict.fromkeys(c.executor for c in checked))
    recomputation = f"one recomputation of the same {len(checked)} views from their base rows ({by}): {seconds:.2f} s"
    if last_day is None:
        return [recomputation[0].upper() + recomputation[1:] + "."]
    ratio = seconds / max(last_day.seconds, 1e-6)
    refresh = f"{last_day.rows:,} changes into all views in {last_day.seconds:.2f} s, epoch {last_day.executor}"
    return [
        f"The last day's refresh: {refresh}.",
        f"Beside it {recomputation}, {ratio:,.0f} times as long.",
    ]


def check_all(db: Database) -> list[Checked]:
    """Check all views, one after the other."""
    return [check(db, view) for view in VIEWS]
