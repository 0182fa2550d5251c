"""What the demo says of rows that its inner joins leave out."""

from __future__ import annotations

import pytest

from viewkeeper.demo.proof import Checked, lost_lines
from viewkeeper.demo.views import VIEWS


def checked(**flights: int) -> list[Checked]:
    """Return the checks of views that count so many flights."""
    views = {view.name: view for view in VIEWS}
    return [Checked(views[name], 3, count, "", 0.1, 0.2, "spark") for name, count in flights.items()]


def test_each_view_that_counts_fewer_flights_says_how_many_and_why() -> None:
    found = checked(delay_by_route=12_345, delay_by_hour_and_weather=12_000, delay_by_plane=11_111)
    assert lost_lines(found, 12_345) == [
        "delay_by_hour_and_weather counts 12,000 of 12,345 flights: its inner join has no partner for the other 345 "
        "(table weather has no row for their airport and hour).",
        "delay_by_plane counts 11,111 of 12,345 flights: its inner join has no partner for the other 1,234 "
        "(table planes does not know their tail number).",
    ]


@pytest.mark.parametrize("view", [view.name for view in VIEWS])
def test_nothing_is_said_where_nothing_is_lost_and_a_loss_is_never_silent(view: str) -> None:
    assert lost_lines(checked(**{view: 7}), 7) == []
    (line,) = lost_lines(checked(**{view: 6}), 7)
    assert line.startswith(f"{view} counts 6 of 7 flights: its inner join has no partner for the other 1 (")
