"""Common table expressions that no one reads: Spark analyses them too, so their mistakes are mistakes of the query."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from viewkeeper.errors import UnsupportedSql
from viewkeeper.plan.correlated_tables import names_between


def check_unread(query: exp.Expr, plan: Callable[[exp.CTE], object]) -> None:
    """Plan the common table expressions of ``query`` that neither it nor another of them reads.

    What cannot be maintained yet is not refused, as it need not be computed.

    Args:
        query: a query with a WITH clause.
        plan: plans one of them, and what it reads.

    Raises:
        SqlError: SQL that is wrong, at its place.
    """
    for table in query.args["with_"].expressions:
        if not _is_read(table, query):
            try:
                plan(table)
            except UnsupportedSql:
                continue


def _is_read(table: exp.CTE, query: exp.Expr) -> bool:
    name = table.alias.lower()
    own = {id(reference) for reference in table.find_all(exp.Table)}
    return any(
        reference.name.lower() == name
        and not reference.db
        and id(reference) not in own
        and name not in names_between(reference, query)
        for reference in query.find_all(exp.Table)
    )
