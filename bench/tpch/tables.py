"""The eight tables as CREATE TABLE statements, and the Arrow schemas of their rows."""

from __future__ import annotations

import pyarrow as pa

_MONEY = "DECIMAL(15, 2)"
# Name, columns with their types, primary key.
_TABLES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "region": ({"r_regionkey": "BIGINT", "r_name": "STRING", "r_comment": "STRING"}, ("r_regionkey",)),
    "nation": (
        {"n_nationkey": "BIGINT", "n_name": "STRING", "n_regionkey": "BIGINT", "n_comment": "STRING"},
        ("n_nationkey",),
    ),
    "supplier": (
        {
            "s_suppkey": "BIGINT",
            "s_name": "STRING",
            "s_address": "STRING",
            "s_nationkey": "BIGINT",
            "s_phone": "STRING",
            "s_acctbal": _MONEY,
            "s_comment": "STRING",
        },
        ("s_suppkey",),
    ),
    "customer": (
        {
            "c_custkey": "BIGINT",
            "c_name": "STRING",
            "c_address": "STRING",
            "c_nationkey": "BIGINT",
            "c_phone": "STRING",
            "c_acctbal": _MONEY,
            "c_mktsegment": "STRING",
            "c_comment": "STRING",
        },
        ("c_custkey",),
    ),
    "part": (
        {
            "p_partkey": "BIGINT",
            "p_name": "STRING",
            "p_mfgr": "STRING",
            "p_brand": "STRING",
            "p_type": "STRING",
            "p_size": "INT",
            "p_container": "STRING",
            "p_retailprice": _MONEY,
            "p_comment": "STRING",
        },
        ("p_partkey",),
    ),
    "partsupp": (
        {
            "ps_partkey": "BIGINT",
            "ps_suppkey": "BIGINT",
            "ps_availqty": "INT",
            "ps_supplycost": _MONEY,
            "ps_comment": "STRING",
        },
        ("ps_partkey", "ps_suppkey"),
    ),
    "orders": (
        {
            "o_orderkey": "BIGINT",
            "o_custkey": "BIGINT",
            "o_orderstatus": "STRING",
            "o_totalprice": _MONEY,
            "o_orderdate": "DATE",
            "o_orderpriority": "STRING",
            "o_clerk": "STRING",
            "o_shippriority": "INT",
            "o_comment": "STRING",
        },
        ("o_orderkey",),
    ),
    "lineitem": (
        {
            "l_orderkey": "BIGINT",
            "l_partkey": "BIGINT",
            "l_suppkey": "BIGINT",
            "l_linenumber": "INT",
            "l_quantity": _MONEY,
            "l_extendedprice": _MONEY,
            "l_discount": _MONEY,
            "l_tax": _MONEY,
            "l_returnflag": "STRING",
            "l_linestatus": "STRING",
            "l_shipdate": "DATE",
            "l_commitdate": "DATE",
            "l_receiptdate": "DATE",
            "l_shipinstruct": "STRING",
            "l_shipmode": "STRING",
            "l_comment": "STRING",
        },
        ("l_orderkey", "l_linenumber"),
    ),
}
_ARROW = {
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    _MONEY: pa.decimal128(15, 2),
}

NAMES = tuple(_TABLES)
PRIMARY_KEYS = {name: key for name, (_, key) in _TABLES.items()}
SCHEMAS = {
    name: pa.schema([(c, _ARROW[kind]) for c, kind in columns.items()]) for name, (columns, _) in _TABLES.items()
}


def create_table(name: str) -> str:
    """Return a table's CREATE TABLE statement; no column of TPC-H may be NULL."""
    columns, key = _TABLES[name]
    lines = [f"{column} {kind} NOT NULL" for column, kind in columns.items()]
    return f"CREATE TABLE {name} ({', '.join(lines)}, PRIMARY KEY ({', '.join(key)}))"
