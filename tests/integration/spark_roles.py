"""The driver of Spark epochs as a process that can be killed: forked from one that has a session, and using that.

Starting a JVM for each kill would take many times as long. The JVM belongs to the nursery and survives, so what a
killed driver has started may run on and stage files while the next one works: the harder case.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import viewkeeper as vk
from tests.integration.roles import LOCAL, write
from viewkeeper.executors.spark.session import spark_session

__all__ = ["prepare", "refresh", "sql", "verify", "write"]

SESSION: list[Any] = []
SETTINGS = {**LOCAL, "executor": "spark", "epoch_rows_max": 4_000_000}


def prepare() -> None:
    """Start Spark in the nursery."""
    master = os.environ.get("VIEWKEEPER_TEST_MASTER")
    if master:
        small = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
        SESSION.append(spark_session(master, settings=small))
    else:
        SESSION.append(spark_session())


def adopted() -> Any:
    """Return the nursery's session with connections of this process to its JVM."""
    client = SESSION[0].sparkContext._gateway._gateway_client
    # Not closed: they are the parent's as well. Kept from being collected, which would close them.
    SESSION.append((client.deque, client.thread_connection))
    client.deque, client.thread_connection = type(client.deque)(), type(client.thread_connection)()
    return SESSION[0]


def refresh(say: Callable[[object], None], path: str, rounds: int = 1) -> None:
    """Refresh all views by Spark."""
    with vk.connect(path, spark=adopted(), **SETTINGS) as database:
        say("ready")
        for _ in range(rounds):
            say(database.refresh().executor)


def sql(say: Callable[[object], None], path: str, text: str) -> None:
    """Run statements; views are filled by Spark."""
    with vk.connect(path, spark=adopted(), **SETTINGS) as database:
        say("ready")
        database.sql(text)
        say("done")


def verify(say: Callable[[object], None], path: str) -> None:
    """Say for each view whether Spark SQL over the base rows gives the same."""
    with vk.connect(path, spark=adopted(), **SETTINGS) as database:
        for view in database.views():
            say(database.verify(view))
