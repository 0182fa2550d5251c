"""The public API: connect to a store, write, read, define and refresh views."""

from viewkeeper.database.connection import Database, connect

__all__ = ["Database", "connect"]
