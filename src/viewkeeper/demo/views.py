"""The demo's live views, as anybody would write them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoView:
    """One of the demo's views.

    Args:
        name: its name in the store.
        title: what it shows, for people.
        query: its SELECT.
        recomputation: the same answer from base tables alone: differs from ``query`` where that reads a view.
        lost: why the view counts fewer flights than there are; empty where it counts them all.
    """

    name: str
    title: str
    query: str
    recomputation: str
    lost: str = ""

    @property
    def create_statement(self) -> str:
        """The statement that makes the view where it is not there."""
        return f"CREATE MATERIALIZED VIEW IF NOT EXISTS {self.name} REFRESH CONTINUOUS AS\n{self.query}"


_BY_CARRIER = """SELECT f.carrier, a.name AS airline,
  COUNT(*) AS flights,
  COUNT(*) FILTER (WHERE f.status = 'arrived') AS arrived,
  COUNT(*) FILTER (WHERE f.status = 'cancelled') AS cancelled,
  AVG(f.dep_delay) AS departure_delay,
  AVG(f.arr_delay) AS arrival_delay
FROM flights f JOIN airlines a ON f.carrier = a.carrier
GROUP BY f.carrier, a.name"""

_BY_ROUTE = """SELECT origin, dest,
  COUNT(*) AS flights,
  COUNT(arr_delay) AS arrived,
  COUNT(*) FILTER (WHERE arr_delay > 15) AS late,
  SUM(arr_delay) AS arrival_delay_sum,
  AVG(arr_delay) AS arrival_delay,
  AVG(air_time) AS air_time
FROM flights
GROUP BY origin, dest"""

_BY_HOUR_AND_WEATHER = """SELECT f.sched_hour,
  CASE WHEN w.precip > 0 THEN 'wet' WHEN w.visib < 5 THEN 'misty' WHEN w.wind_speed > 20 THEN 'windy' ELSE 'fair' END
    AS weather,
  COUNT(*) AS flights,
  COUNT(*) FILTER (WHERE f.status = 'cancelled') AS cancelled,
  AVG(f.dep_delay) AS departure_delay
FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
GROUP BY f.sched_hour,
  CASE WHEN w.precip > 0 THEN 'wet' WHEN w.visib < 5 THEN 'misty' WHEN w.wind_speed > 20 THEN 'windy' ELSE 'fair' END"""

_BY_PLANE = """SELECT p.manufacturer, p.model, YEAR(f.flight_date) - p.year_built AS age,
  COUNT(*) AS flights,
  AVG(f.dep_delay) AS departure_delay,
  AVG(f.arr_delay) AS arrival_delay
FROM flights f JOIN planes p ON f.tailnum = p.tailnum
GROUP BY p.manufacturer, p.model, YEAR(f.flight_date) - p.year_built"""

_WORST_BY_DAY = """SELECT flight_date,
  COUNT(*) AS flights,
  MAX(dep_delay) AS departure_delay_worst,
  MAX(arr_delay) AS arrival_delay_worst,
  MIN(arr_delay) AS arrival_delay_best
FROM flights
GROUP BY flight_date"""

_BY_AIRPORT = """SELECT r.origin, a.name AS airport,
  COUNT(*) AS routes,
  SUM(r.flights) AS flights,
  SUM(r.late) AS late,
  SUM(r.arrival_delay_sum) / SUM(r.arrived) AS arrival_delay
FROM {routes} r JOIN airports a ON r.origin = a.faa
GROUP BY r.origin, a.name"""

VIEWS = (
    DemoView("delay_by_carrier", "delay by carrier, with its name", _BY_CARRIER, _BY_CARRIER),
    DemoView("delay_by_route", "delay by route", _BY_ROUTE, _BY_ROUTE),
    DemoView(
        "delay_by_hour_and_weather",
        "delay by hour and weather",
        _BY_HOUR_AND_WEATHER,
        _BY_HOUR_AND_WEATHER,
        "table weather has no row for their airport and hour",
    ),
    DemoView(
        "delay_by_plane",
        "delay by plane model and age",
        _BY_PLANE,
        _BY_PLANE,
        "table planes does not know their tail number",
    ),
    DemoView("worst_delay_by_day", "worst delay by day", _WORST_BY_DAY, _WORST_BY_DAY),
    DemoView(
        "delay_by_airport",
        "delay by airport, a view on delay_by_route",
        _BY_AIRPORT.format(routes="delay_by_route"),
        _BY_AIRPORT.format(routes=f"({_BY_ROUTE})"),
    ),
)
"""All views; one that reads another comes after it."""
