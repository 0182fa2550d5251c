"""Statements that we know and do not take: code, reason, and what works instead."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.errors import UnsupportedSql
from viewkeeper.statements.cursor import Cursor


@dataclass(frozen=True)
class Refusal:
    """A refused statement.

    Args:
        starts: the words that it begins with.
        code: the reason code.
        message: why, and what works instead.
    """

    starts: tuple[str, ...]
    code: str
    message: str


REFUSALS = (
    Refusal(
        ("SUBSCRIBE",),
        "SUBSCRIBE_NOT_YET",
        "SUBSCRIBE is not available yet; read the view after REFRESH MATERIALIZED VIEW, or wait with db.wait_for.",
    ),
    Refusal(
        ("CREATE INDEX", "CREATE UNIQUE INDEX", "DROP INDEX", "SHOW INDEXES"),
        "CREATE_INDEX_NOT_YET",
        "indexes are not available yet; create a materialised view whose key is what you look up by: CREATE "
        "MATERIALIZED VIEW i (…, PRIMARY KEY (…)) AS SELECT ….",
    ),
    Refusal(
        ("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT", "END"),
        "TRANSACTION_STATEMENT_NOT_SUPPORTED",
        "each SQL statement is a transaction of its own; for several writes in one use Python: "
        "with db.transaction() as tx: tx.put(…).",
    ),
    Refusal(
        (
            "CREATE VIEW",
            "CREATE TEMPORARY",
            "CREATE TEMP",
            "CREATE GLOBAL",
            "CREATE OR REPLACE VIEW",
            "CREATE OR REPLACE TEMPORARY",
            "CREATE OR REPLACE TEMP",
            "CREATE OR REPLACE GLOBAL",
        ),
        "PLAIN_VIEW_NOT_SUPPORTED",
        "views that are not materialised do not exist here; write CREATE MATERIALIZED VIEW, or use WITH in the query.",
    ),
    Refusal(
        ("ALTER VIEW", "DROP VIEW", "REFRESH VIEW", "VERIFY VIEW"),
        "PLAIN_VIEW_NOT_SUPPORTED",
        "views that are not materialised do not exist here; write MATERIALIZED VIEW in place of VIEW.",
    ),
    Refusal(
        ("REFRESH TABLE",),
        "STATEMENT_NOT_SUPPORTED",
        "a table shows each write at once; it is a view that is refreshed: REFRESH MATERIALIZED VIEW.",
    ),
    Refusal(
        ("CREATE OR REPLACE TABLE", "REPLACE TABLE"),
        "REPLACE_TABLE_NOT_SUPPORTED",
        "a table is not replaced in one step; use DROP TABLE IF EXISTS and CREATE TABLE, or TRUNCATE TABLE.",
    ),
    Refusal(
        ("CREATE STREAMING", "CREATE OR REFRESH"),
        "STREAMING_TABLE_NOT_SUPPORTED",
        "streaming tables do not exist here; CREATE MATERIALIZED VIEW follows the changes of its tables.",
    ),
    Refusal(
        ("CREATE EXTERNAL", "CREATE DATABASE", "CREATE SCHEMA", "CREATE NAMESPACE", "CREATE CATALOG", "USE",
         "DROP DATABASE", "DROP SCHEMA", "SHOW DATABASES", "SHOW SCHEMAS", "SHOW CATALOGS", "SHOW NAMESPACES"),
        "NAMESPACE_NOT_SUPPORTED",
        "a store is one namespace of its own tables; connect to another store with vk.connect.",
    ),
    Refusal(
        ("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
        "CREATE_FUNCTION_NOT_SUPPORTED",
        "a function is Python code: register it with db.register_function(name, function, return_type, "
        "deterministic=True).",
    ),
    Refusal(
        ("DECLARE", "SET", "RESET", "CACHE", "UNCACHE", "CLEAR CACHE", "ANALYZE", "GRANT", "REVOKE", "MSCK", "REPAIR",
         "LOAD", "ADD", "LIST", "CALL", "EXECUTE", "PREPARE", "OPTIMIZE", "VACUUM", "COPY", "SHOW COLUMNS",
         "SHOW PARTITIONS", "SHOW TBLPROPERTIES", "COMMENT ON", "PIVOT", "MAP", "REDUCE"),
        "STATEMENT_NOT_SUPPORTED",
        "this statement has no meaning here; the statements are CREATE, ALTER, DROP, INSERT, UPDATE, DELETE, MERGE, "
        "TRUNCATE, REFRESH, VERIFY, SHOW, DESCRIBE, EXPLAIN and queries.",
    ),
)  # fmt: skip


def find_refusal(cursor: Cursor) -> UnsupportedSql | None:
    """Return the refusal of the statement that begins here, None where it is none of those in ``REFUSALS``."""
    for refusal in REFUSALS:
        if cursor.at_any(refusal.starts):
            return cursor.refusal(refusal.code, refusal.message)
    return None
