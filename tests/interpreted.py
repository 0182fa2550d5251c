"""Spark for queries over few rows."""

from __future__ import annotations

from pyspark.sql import SparkSession

# Compiling code for a query over few rows takes Spark longer than interpreting it.
INTERPRETED = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def interpreting(session: SparkSession) -> SparkSession:
    """Return a session beside ``session`` that compiles nothing; but for the time zone its settings are its own.

    Args:
        session: stays as it is.
    """
    beside = session.newSession()
    zone = "spark.sql.session.timeZone"
    for name, value in {**INTERPRETED, zone: session.conf.get(zone)}.items():
        beside.conf.set(name, value)
    return beside
