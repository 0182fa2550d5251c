"""Columns, types and views → canonical SQL, for SHOW CREATE; it reads back as the same statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from sqlglot.dialects.spark import Spark

from viewkeeper.statements.model import ColumnDefinition, Refresh, RefreshPolicy, SqlText
from viewkeeper.statements.views import UNIT_SECONDS
from viewkeeper.zset.schema import SqlType

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset(word for text in Spark.Tokenizer.KEYWORDS for word in text.split()) | {
    "CONSTRAINT",
    "CHECK",
    "IF",
}
CONTINUOUS = Refresh("CONTINUOUS")


def create_table_sql(
    name: str, columns: Sequence[ColumnDefinition], primary_key: Sequence[str], *, if_not_exists: bool = False
) -> str:
    """Return the CREATE TABLE statement of a table.

    Example:
        >>> from viewkeeper.zset.schema import BIGINT, STRING
        >>> columns = [ColumnDefinition("k", BIGINT, nullable=False), ColumnDefinition("order", STRING)]
        >>> print(create_table_sql("t", columns, ["k"]))
        CREATE TABLE t (
          k BIGINT NOT NULL,
          `order` STRING,
          PRIMARY KEY (k)
        )
    """
    lines = [column_sql(column) for column in columns]
    lines.append(f"PRIMARY KEY ({', '.join(map(quote_name, primary_key))})")
    exists = "IF NOT EXISTS " if if_not_exists else ""
    return f"CREATE TABLE {exists}{quote_name(name)} (\n  " + ",\n  ".join(lines) + "\n)"


def create_view_sql(
    name: str,
    query: SqlText | str,
    *,
    columns: Sequence[tuple[str, str | None]] = (),
    primary_key: Sequence[str] = (),
    comment: str | None = None,
    refresh: Refresh = CONTINUOUS,
    policy: RefreshPolicy = "AUTO",
    with_no_data: bool = False,
    or_replace: bool = False,
    if_not_exists: bool = False,
) -> str:
    """Return the CREATE MATERIALIZED VIEW statement of a view; the query stands in it as the user wrote it.

    Example:
        >>> print(create_view_sql("v", "SELECT a FROM t", refresh=Refresh("EVERY", 300.0)))
        CREATE MATERIALIZED VIEW v
        REFRESH EVERY 5 MINUTES
        AS SELECT a FROM t
    """
    head = f"CREATE {'OR REPLACE ' if or_replace else ''}MATERIALIZED VIEW "
    head += f"{'IF NOT EXISTS ' if if_not_exists else ''}{quote_name(name)}"
    items = [quote_name(column) + _comment_sql(text) for column, text in columns]
    if primary_key:
        items.append(f"PRIMARY KEY ({', '.join(map(quote_name, primary_key))})")
    if items:
        head += f" ({', '.join(items)})"
    lines = [head]
    if comment is not None:
        lines.append(f"COMMENT {quote_string(comment)}")
    lines.append(f"REFRESH {refresh_sql(refresh)}")
    if policy != "AUTO":
        lines.append(f"REFRESH POLICY {policy}")
    if with_no_data:
        lines.append("WITH NO DATA")
    lines.append(f"AS {query}")
    return "\n".join(lines)


def column_sql(column: ColumnDefinition) -> str:
    """Return the definition of a column as CREATE TABLE and ADD COLUMN take it."""
    text = f"{quote_name(column.name)} {type_sql(column.type)}"
    if not column.nullable:
        text += " NOT NULL"
    if column.default_sql is not None:
        text += f" DEFAULT {column.default_sql}"
    return text + _comment_sql(column.comment)


def type_sql(sql_type: SqlType) -> str:
    """Return the type in SQL.

    Example:
        >>> from viewkeeper.zset.schema import INT, array, decimal, struct
        >>> type_sql(array(struct(a=INT, b=decimal(5, 2))))
        'ARRAY<STRUCT<a: INT, b: DECIMAL(5, 2)>>'
    """
    if sql_type.name == "DECIMAL":
        return f"DECIMAL({sql_type.precision}, {sql_type.scale})"
    children = [type_sql(child) for child in sql_type.children]
    if sql_type.name == "STRUCT":
        names = map(quote_name, sql_type.field_names)
        children = [f"{name}: {child}" for name, child in zip(names, children, strict=True)]
    return f"{sql_type.name}<{', '.join(children)}>" if children else sql_type.name


def refresh_sql(refresh: Refresh) -> str:
    """Return when a view is refreshed, as it stands behind REFRESH.

    Example:
        >>> refresh_sql(Refresh("EVERY", 0.5)), refresh_sql(Refresh("ON_DEMAND"))
        ('EVERY 0.5 SECONDS', 'ON DEMAND')
    """
    if refresh.every_seconds is None:
        return refresh.kind.replace("_", " ")
    seconds = Decimal(repr(refresh.every_seconds))
    unit = next((unit for unit in ("DAY", "HOUR", "MINUTE") if seconds % UNIT_SECONDS[unit] == 0), "SECOND")
    count = seconds / UNIT_SECONDS[unit]
    return f"EVERY {count.normalize():f} {unit}{'' if count == 1 else 'S'}"


def quote_name(name: str) -> str:
    """Return the name, in backticks where it is a keyword or holds other characters than letters, digits and _."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in _KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def quote_string(text: str) -> str:
    """Return the text as a string of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _comment_sql(comment: str | None) -> str:
    return "" if comment is None else f" COMMENT {quote_string(comment)}"
