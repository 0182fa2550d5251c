"""The tables as CREATE TABLE statements, and the Arrow schemas of their rows.

Beside Nexmark's own columns a bid has an ``id``, since a table has a primary key. ``side_input`` is query 13's.
"""

from __future__ import annotations

import pyarrow as pa

_TABLES: dict[str, tuple[dict[str, str], str]] = {
    "person": (
        {
            "id": "BIGINT",
            "name": "STRING",
            "email_address": "STRING",
            "credit_card": "STRING",
            "city": "STRING",
            "state": "STRING",
            "date_time": "TIMESTAMP_NTZ",
            "extra": "STRING",
        },
        "id",
    ),
    "auction": (
        {
            "id": "BIGINT",
            "item_name": "STRING",
            "description": "STRING",
            "initial_bid": "BIGINT",
            "reserve": "BIGINT",
            "date_time": "TIMESTAMP_NTZ",
            "expires": "TIMESTAMP_NTZ",
            "seller": "BIGINT",
            "category": "BIGINT",
            "extra": "STRING",
        },
        "id",
    ),
    "bid": (
        {
            "id": "BIGINT",
            "auction": "BIGINT",
            "bidder": "BIGINT",
            "price": "BIGINT",
            "channel": "STRING",
            "url": "STRING",
            "date_time": "TIMESTAMP_NTZ",
            "extra": "STRING",
        },
        "id",
    ),
    "side_input": ({"key": "BIGINT", "value": "STRING"}, "key"),
}
_ARROW = {"BIGINT": pa.int64(), "STRING": pa.string(), "TIMESTAMP_NTZ": pa.timestamp("us")}

NAMES = tuple(_TABLES)
PRIMARY_KEYS = {name: (key,) for name, (_, key) in _TABLES.items()}
SCHEMAS = {
    name: pa.schema([(c, _ARROW[kind]) for c, kind in columns.items()]) for name, (columns, _) in _TABLES.items()
}


def create_table(name: str) -> str:
    """Return a table's CREATE TABLE statement."""
    columns, key = _TABLES[name]
    lines = [f"{column} {kind} NOT NULL" for column, kind in columns.items()]
    return f"CREATE TABLE {name} ({', '.join(lines)}, PRIMARY KEY ({key}))"
