"""Dates and moments: arithmetic, parts, what falls into a month or an hour, zones, casts of one to another."""

from __future__ import annotations

from viewkeeper.testing.grammar.family import Family, Template
from viewkeeper.testing.grammar.parts import MOVED

_DATE, _MOMENT, _LOCAL = (MOVED[kind] for kind in ("date", "timestamp", "timestamp_ntz"))

FAMILY = Family(
    safe={
        "integer": (
            Template("DATEDIFF({}, {})", ("date", "date")),
            Template("(DAYOFYEAR({0}) * 100 + WEEKOFYEAR({0}))", ("date",)),
            Template("DAYOFWEEK({})", ("timestamp",)),
            Template("(HOUR({0}) * 60 + MINUTE({0}))", ("timestamp",)),
            Template("HOUR({})", ("timestamp_ntz",)),
            Template("UNIX_MICROS({})", ("timestamp",)),
            Template("TIMESTAMPDIFF(HOUR, {}, {})", ("timestamp", "timestamp")),
        ),
        "floating": (
            Template("MONTHS_BETWEEN({}, {})", ("date", "date")),
            Template("MONTHS_BETWEEN({}, {})", ("timestamp", "timestamp")),
        ),
        "string": (
            Template("CAST({} AS STRING)", ("date",)),
            Template("CAST({} AS STRING)", ("timestamp",)),
            Template("CAST({} AS STRING)", ("timestamp_ntz",)),
            Template("DATE_FORMAT({}, 'yyyy-MM-dd HH:mm')", ("timestamp",)),
        ),
        "date": (
            Template("LAST_DAY({})", ("date",)),
            Template("TRUNC({}, 'QUARTER')", ("date",)),
            Template(f"DATE_ADD({_DATE}, CAST({{1}} % 100 AS INT))", ("date", "integer")),
            Template(f"ADD_MONTHS({_DATE}, {{1}} % 30)", ("date", "integer")),
            Template("MAKE_DATE(2024, 2, 15 + {} % 15)", ("integer",)),
            Template("CAST({} AS DATE)", ("timestamp_ntz",)),
        ),
        "timestamp": (
            Template("CAST({} AS TIMESTAMP)", ("date",)),
            Template("DATE_TRUNC('HOUR', {})", ("timestamp",)),
            Template("DATE_TRUNC('MONTH', {})", ("timestamp",)),
            Template(f"FROM_UTC_TIMESTAMP({_MOMENT}, 'America/New_York')", ("timestamp",)),
            Template(f"TO_UTC_TIMESTAMP({_MOMENT}, 'Europe/Berlin')", ("timestamp",)),
            Template(f"({_MOMENT} + INTERVAL 1 DAY)", ("timestamp",)),
            Template(f"({_MOMENT} - INTERVAL 5 HOURS)", ("timestamp",)),
            Template("TIMESTAMP_SECONDS({} % 100000000)", ("integer",)),
        ),
        "timestamp_ntz": (
            Template("CAST({} AS TIMESTAMP_NTZ)", ("date",)),
            Template("DATE_TRUNC('DAY', {})", ("timestamp_ntz",)),
            Template(f"({_LOCAL} + INTERVAL 1 MONTH)", ("timestamp_ntz",)),
        ),
    },
    risky={
        "date": (Template("MAKE_DATE(2024, {}, 29)", ("integer",)),),
        "timestamp": (Template("CAST({} AS TIMESTAMP)", ("string",)),),
        "timestamp_ntz": (Template("CAST({} AS TIMESTAMP_NTZ)", ("string",)),),
    },
)
