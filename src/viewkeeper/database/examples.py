"""A small shop in memory, for the examples of the public API."""

from __future__ import annotations

from viewkeeper.database.connection import Database
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

_SHOP = """
    CREATE TABLE orders (id BIGINT, product STRING, price INT, PRIMARY KEY (id));
    INSERT INTO orders VALUES (1, 'tea', 5), (2, 'jam', 7), (3, 'tea', 4);
    CREATE MATERIALIZED VIEW sales AS SELECT product, SUM(price) AS total FROM orders GROUP BY product
"""


def shop() -> Database:
    """Return a store in memory with a table ``orders`` of three rows and a view ``sales`` over it.

    Example:
        >>> with shop() as db:
        ...     db.get("orders", 1), db.get("sales", "tea")
        ({'id': 1, 'product': 'tea', 'price': 5}, {'product': 'tea', 'total': 9})
    """
    db = Database(memory_store(), Settings())
    db.sql(_SHOP)
    return db
