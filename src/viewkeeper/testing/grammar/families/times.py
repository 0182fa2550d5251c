"""Dates and moments: arithmetic, parts, what falls into a month or an hour, zones, casts of one to another.

What is moved lies within two centuries, so that it stays within the years that Python has.
"""

from __future__ import annotations

from viewkeeper.testing.grammar.family import Family, Template

_DATE = "CASE WHEN {0} BETWEEN DATE '1900-01-01' AND DATE '2100-01-01' THEN {0} END"
MOMENT = "CASE WHEN {0} BETWEEN TIMESTAMP '1900-01-01 00:00:00' AND TIMESTAMP '2100-01-01 00:00:00' THEN {0} END"
LOCAL = MOMENT.replace("TIMESTAMP", "TIMESTAMP_NTZ")
"""A moment that lies within those centuries, else NULL; the same without a time zone."""

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
            Template(f"DATE_ADD({_DATE}, {{1}} % 100)", ("date", "integer")),
            Template(f"ADD_MONTHS({_DATE}, {{1}} % 30)", ("date", "integer")),
            Template("MAKE_DATE(2024, 2, 15 + {} % 15)", ("integer",)),
            Template("CAST({} AS DATE)", ("timestamp_ntz",)),
        ),
        "timestamp": (
            Template("CAST({} AS TIMESTAMP)", ("date",)),
            Template("DATE_TRUNC('HOUR', {})", ("timestamp",)),
            Template("DATE_TRUNC('MONTH', {})", ("timestamp",)),
            Template(f"FROM_UTC_TIMESTAMP({MOMENT}, 'America/New_York')", ("timestamp",)),
            Template(f"TO_UTC_TIMESTAMP({MOMENT}, 'Europe/Berlin')", ("timestamp",)),
            Template(f"({MOMENT} + INTERVAL 1 DAY)", ("timestamp",)),
            Template(f"({MOMENT} - INTERVAL 5 HOURS)", ("timestamp",)),
            Template("TIMESTAMP_SECONDS({} % 100000000)", ("integer",)),
        ),
        "timestamp_ntz": (
            Template("CAST({} AS TIMESTAMP_NTZ)", ("date",)),
            Template("DATE_TRUNC('DAY', {})", ("timestamp_ntz",)),
            Template(f"({LOCAL} + INTERVAL 1 MONTH)", ("timestamp_ntz",)),
        ),
    },
    risky={
        "date": (Template("MAKE_DATE(2024, {}, 29)", ("integer",)),),
        "timestamp": (Template("CAST({} AS TIMESTAMP)", ("string",)),),
        "timestamp_ntz": (Template("CAST({} AS TIMESTAMP_NTZ)", ("string",)),),
    },
)
