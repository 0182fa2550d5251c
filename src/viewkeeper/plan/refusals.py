"""Valid SQL that views cannot have (yet): one table of reason codes, what is meant, and what works instead.

``docs/limitations.md`` is written from this table, and a test plans every example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.errors import UnsupportedSql
from viewkeeper.plan.place import located


@dataclass(frozen=True)
class Refusal:
    """One reason for which a query is refused.

    Args:
        what: the construct, as the subject of "... cannot be maintained".
        instead: the nearest thing that works, as a sentence.
        example: a query over the tables of ``EXAMPLE_TABLES`` that is refused with this code.
        part: where only REFRESH POLICY INCREMENTAL refuses it: what the other policies compute anew.
    """

    what: str
    instead: str
    example: str
    part: str = ""


EXAMPLE_TABLES: Mapping[str, str] = {
    "t": "k BIGINT, a INT, b INT, c STRING, x DOUBLE, tags ARRAY<STRING>, PRIMARY KEY (k)",
    "u": "id INT, t_k BIGINT, v INT, name STRING, PRIMARY KEY (id)",
}

REFUSALS: Mapping[str, Refusal] = {
    "CORRELATION_NOT_YET": Refusal(
        "a column of the outer query inside this subquery",
        "Compare it in the WHERE of the subquery, not beside GROUPING SETS, RIGHT or FULL JOIN, or LIMIT of a UNION.",
        "SELECT k, (SELECT SUM(v) FROM u WHERE v = b GROUP BY ROLLUP(id)) AS s FROM t",
    ),
    "SUBQUERY_NOT_YET": Refusal(
        "a subquery here",
        "Use subqueries in WHERE, HAVING and the SELECT list of a query, compare single values, or join it in FROM.",
        "SELECT k FROM t WHERE (a, b) < ANY (SELECT v, id FROM u)",
    ),
    "WINDOW_FUNCTION_NOT_YET": Refusal(
        "this window function or frame",
        "Aggregate by the window's partition in a subquery and join it back on the partition columns.",
        "SELECT k, MAX_BY(a, b) OVER (PARTITION BY c) AS s FROM t",
    ),
    "WINDOW_WITHOUT_PARTITION": Refusal(
        "a window over all rows, which every change would compute anew,",
        "Add PARTITION BY; or keep only the first rows: filter by the rank, or ORDER BY … LIMIT; or let REFRESH POLICY"
        " AUTO compute it anew.",
        "SELECT k, SUM(a) OVER (ORDER BY k) AS s FROM t",
        "windows over all rows",
    ),
    "AGGREGATE_NOT_YET": Refusal(
        "an aggregate function whose result is a sketch or a histogram, and some rare forms of others,",
        "Use an exact aggregate: COUNT(DISTINCT …), PERCENTILE, or COUNT(*) by group.",
        "SELECT c, histogram_numeric(x, 5) AS h FROM t GROUP BY c",
    ),
    "ORDER_BY_IN_VIEW": Refusal(
        "ORDER BY without LIMIT (SORT BY, DISTRIBUTE BY, CLUSTER BY) in a view",
        "A view has no order: leave it out and order the query that reads the view.",
        "SELECT k, a FROM t ORDER BY a",
    ),
    "OFFSET_WITHOUT_LIMIT": Refusal(
        "OFFSET without LIMIT in a view",
        "Add a LIMIT; or keep all rows in the view and leave the first ones out of the query that reads it; or let"
        " REFRESH POLICY AUTO compute it anew.",
        "SELECT k, a FROM t ORDER BY a OFFSET 3",
        "rows behind OFFSET",
    ),
    "LATERAL_VIEW_NOT_YET": Refusal(
        "a function that makes rows, other than explode(), posexplode(), inline(), stack() and json_tuple(),",
        "Make an array of the rows and explode() it, or store them in a table.",
        "SELECT t.k, v.value FROM t, LATERAL variant_explode(parse_json(c)) v",
    ),
    "PIVOT_NOT_YET": Refusal(
        "PIVOT over values that are not written out",
        "List the values: PIVOT (SUM(b) FOR c IN ('x', 'y')).",
        "SELECT * FROM (SELECT a, b, c FROM t) PIVOT (SUM(b) FOR c IN (SELECT name FROM u))",
    ),
    "TABLESAMPLE_NOT_YET": Refusal(
        "TABLESAMPLE",
        "Filter by a hash of the key: WHERE pmod(hash(k), 100) < 10.",
        "SELECT k FROM t TABLESAMPLE (10 PERCENT)",
    ),
    "NONDETERMINISTIC_EXPRESSION": Refusal(
        "an expression whose value does not follow from the row alone",
        "Store the value in a column of the base table when the row is written, or compare with the present time in the"
        " query that reads the view.",
        "SELECT k, rand() AS r FROM t",
    ),
    "EXPRESSION_NEEDS_SPARK": Refusal(
        "an expression that only Spark can type and evaluate, where no Spark is at hand,",
        "Use a portable expression, or connect with Spark available.",
        "SELECT k, soundex(c) AS s FROM t",
    ),
    "TIME_WINDOW_NOT_YET": Refusal(
        "window() in WHERE, ON and LATERAL without FROM, or with more than 10,000 overlapping, and session_window() in"
        " these, in GROUPING SETS, or of a gap that is computed or a day long,",
        "Call window() in the SELECT list of a subquery in FROM; group by session_window() there.",
        "SELECT c, COUNT(*) AS n FROM t GROUP BY c, session_window(timestamp_seconds(k), '1 day')",
    ),
    "TABLE_FUNCTION_NOT_YET": Refusal(
        "a table function other than range(), explode(), inline() and stack()", "Store its rows in a table.",
        "SELECT t.k FROM t, sql_keywords() w",
    ),
    "QUERY_WITHOUT_TABLE": Refusal(
        "a query that reads no table at all", "Read from a table: a constant never needs to be maintained.",
        "SELECT 1 AS one",
    ),
    "TIME_TRAVEL_NOT_YET": Refusal(
        "a table AS OF a version or a time",
        "Read the table as it is: the view follows it.",
        "SELECT k FROM t VERSION AS OF 3",
    ),
    "CLAUSE_NOT_YET": Refusal(
        "this clause", "Leave it out.", "SELECT TRANSFORM(a) USING 'cat' FROM t"
    ),
}  # fmt: skip

# What no later version will have.
_NEVER = frozenset(("ORDER_BY_IN_VIEW", "NONDETERMINISTIC_EXPRESSION", "QUERY_WITHOUT_TABLE"))

RECOMPUTED: Mapping[str, str] = {code: refusal.part for code, refusal in REFUSALS.items() if refusal.part}
"""What policies other than INCREMENTAL compute anew, by its code."""


def anew(code: str) -> str:
    """Return what is computed anew of a view, by a code of ``RECOMPUTED``, for people.

    Example:
        >>> anew("WINDOW_WITHOUT_PARTITION")
        'windows over all rows are computed anew by every change of them (WINDOW_WITHOUT_PARTITION)'
    """
    return f"{RECOMPUTED[code]} are computed anew by every change of them ({code})"


def refuse(code: str, details: Mapping[str, object], what: str = "", instead: str = "") -> UnsupportedSql:
    """Return the error for ``code``.

    Args:
        code: a key of ``REFUSALS``.
        details: line, column and near, where known.
        what: a more exact name of the construct than the table has.
        instead: what works in place of that, as a sentence, where it is not what the table says.
    """
    refusal = REFUSALS[code]
    how = " by its changes alone" if refusal.part else "" if code in _NEVER else " yet"
    message = f"{what or refusal.what} cannot be maintained{how}. "
    return UnsupportedSql(code, located(message + (instead or refusal.instead), dict(details)), details)


def limitations_page() -> str:
    """Return ``docs/limitations.md``."""
    lines = [
        "# What a view cannot have (yet)",
        "",
        "Written from `src/viewkeeper/plan/refusals.py`; a test plans each example and holds this page to the table.",
        "A query that meets one of these is refused with the code, its place in the SQL, and the way round it.",
        "",
        "The examples read these tables:",
        "",
        "```sql",
        *(f"CREATE TABLE {name} ({columns});" for name, columns in EXAMPLE_TABLES.items()),
        "```",
    ]
    for code, refusal in sorted(REFUSALS.items()):
        what = refusal.what[0].upper() + refusal.what[1:].rstrip(",")
        lines += ["", f"## {code}", "", f"{what}. {refusal.instead}"]
        if refusal.part:
            lines += ["", f"Refused by REFRESH POLICY INCREMENTAL alone: AUTO and FULL compute {refusal.part} anew."]
        lines += ["", "```sql", refusal.example, "```"]
    return "\n".join(lines) + "\n"
