"""Viewkeeper: SQL materialised views over a key-value store, kept up to date incrementally and exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewkeeper.database import Database as Database
    from viewkeeper.database import connect as connect
    from viewkeeper.errors import ViewkeeperError as ViewkeeperError
    from viewkeeper.log.position import Position as Position

__all__ = ["Database", "Position", "ViewkeeperError", "connect", "register"]
__version__ = "0.1.0"

_HOMES = {
    "Database": "viewkeeper.database",
    "connect": "viewkeeper.database",
    "ViewkeeperError": "viewkeeper.errors",
    "Position": "viewkeeper.log.position",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that the command and Spark workers load only what they need."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'viewkeeper' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def register(spark: Any) -> None:
    """Let ``spark`` read stores: ``spark.read.format("viewkeeper").option("store", path).load(name)``.

    Args:
        spark: a SparkSession.
    """
    from viewkeeper.runtime import register_source

    register_source(spark)
