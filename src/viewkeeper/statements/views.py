"""Statements on materialised views: CREATE, ALTER, REFRESH, DROP and VERIFY."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from viewkeeper.statements.cursor import QUERY_STARTS, Cursor
from viewkeeper.statements.lexer import Lexeme
from viewkeeper.statements.model import (
    AlterViewAs,
    AlterViewPolicy,
    AlterViewRename,
    AlterViewResume,
    AlterViewSuspend,
    CreateView,
    DropView,
    Refresh,
    RefreshPolicy,
    RefreshView,
    SqlText,
    Statement,
    VerifyView,
)

UNIT_SECONDS = {
    "MILLISECOND": Decimal("0.001"),
    "SECOND": Decimal(1),
    "MINUTE": Decimal(60),
    "HOUR": Decimal(3600),
    "DAY": Decimal(86400),
    "WEEK": Decimal(604800),
}
MAX_INTERVAL_SECONDS = 100 * 365.25 * 86400  # a century: longer ones are mistakes

_VIEW_NAME = "the name of a view"
_CLAUSES = ("COMMENT", "REFRESH", "SCHEDULE", "WITH", "AS")
_REFRESH_KINDS = ("CONTINUOUS", "EVERY", "ON DEMAND", "POLICY")
_UNSUPPORTED_CLAUSES = (
    "USING", "PARTITIONED BY", "CLUSTERED BY", "CLUSTER BY", "TBLPROPERTIES", "OPTIONS", "LOCATION", "ROW FILTER",
    "DEFAULT COLLATION", "TRIGGER",
)  # fmt: skip


@dataclass
class _Clauses:
    """The clauses of CREATE MATERIALIZED VIEW as far as they are read."""

    comment: str | None = None
    refresh: Refresh | None = None
    policy: RefreshPolicy | None = None
    with_no_data: bool = False


def parse_create_view(cursor: Cursor) -> CreateView:
    """Read CREATE MATERIALIZED VIEW.

    Raises:
        SqlError: CLAUSE_GIVEN_TWICE, COLUMN_DECLARED_TWICE, COLUMN_NOT_FOUND (in the key), INVALID_INTERVAL,
            UNKNOWN_OPTION, CONFLICTING_CLAUSES (OR REPLACE with IF NOT EXISTS), SYNTAX_ERROR.
        UnsupportedSql: REFRESH_ON_COMMIT_NOT_YET, MAX_STALENESS_NOT_YET,
            SCHEDULE_CRON_NOT_SUPPORTED, VIEW_CLAUSE_NOT_SUPPORTED.
    """
    cursor.expect("CREATE")
    or_replace = cursor.accept("OR REPLACE")
    cursor.expect("MATERIALIZED VIEW")
    exists_at = cursor.peek()
    if_not_exists = cursor.accept("IF NOT EXISTS")
    if or_replace and if_not_exists:
        raise cursor.error(
            "CONFLICTING_CLAUSES", "OR REPLACE and IF NOT EXISTS exclude each other; keep one.", exists_at
        )
    if cursor.at("AS") and cursor.at_any(QUERY_STARTS, 1):
        raise cursor.unexpected(_VIEW_NAME, hint="Write CREATE MATERIALIZED VIEW v AS SELECT ….")
    name = cursor.name(_VIEW_NAME)
    columns, primary_key = _parse_columns(cursor) if cursor.at("(") else ((), ())
    clauses = _Clauses()
    while not cursor.accept("AS"):
        _parse_clause(cursor, clauses)
    query = _parse_view_query(cursor)
    return CreateView(
        name,
        query,
        or_replace,
        if_not_exists,
        columns,
        primary_key,
        clauses.comment,
        clauses.refresh or Refresh(),
        clauses.policy or "AUTO",
        clauses.with_no_data,
        **cursor.origin,
    )


def parse_alter_view(cursor: Cursor) -> Statement:
    """Read ALTER MATERIALIZED VIEW.

    Raises:
        UnsupportedSql: SET_REFRESH_NOT_YET.
    """
    cursor.expect("ALTER MATERIALIZED VIEW")
    name = cursor.name(_VIEW_NAME)
    if cursor.accept("AS"):
        return AlterViewAs(name, _parse_view_query(cursor), **cursor.origin)
    if cursor.accept("SET REFRESH POLICY"):
        policy = _parse_policy(cursor)
        cursor.expect_end()
        return AlterViewPolicy(name, policy, **cursor.origin)
    if cursor.at_any(("SET REFRESH", "SET SCHEDULE", "ADD SCHEDULE", "ALTER SCHEDULE", "DROP SCHEDULE")):
        message = (
            "when a view refreshes cannot be changed yet, only its POLICY; CREATE OR REPLACE MATERIALIZED VIEW with "
            "the REFRESH that you want, the old version serves meanwhile."
        )
        raise cursor.refusal("SET_REFRESH_NOT_YET", message)
    if cursor.at("RENAME") and not cursor.at("RENAME TO"):
        raise cursor.unexpected("RENAME TO", hint=f"Write ALTER MATERIALIZED VIEW {name} RENAME TO ….")
    action = cursor.expect_any(("AS", "SUSPEND", "RESUME", "RENAME TO", "SET REFRESH POLICY"))
    new_name = cursor.name(_VIEW_NAME) if action == "RENAME TO" else ""
    cursor.expect_end()
    if action == "SUSPEND":
        return AlterViewSuspend(name, **cursor.origin)
    if action == "RESUME":
        return AlterViewResume(name, **cursor.origin)
    return AlterViewRename(name, new_name, **cursor.origin)


def parse_refresh_view(cursor: Cursor) -> RefreshView:
    """Read REFRESH MATERIALIZED VIEW."""
    cursor.expect("REFRESH MATERIALIZED VIEW")
    if cursor.at("CONCURRENTLY") and cursor.peek(1).kind in ("word", "quoted"):
        message = "a refresh never blocks those who read the view: leave CONCURRENTLY out."
        raise cursor.refusal("VIEW_CLAUSE_NOT_SUPPORTED", message)
    name = cursor.name(_VIEW_NAME)
    full = cursor.accept("FULL")
    cursor.expect_end(also=() if full else ("FULL",))
    return RefreshView(name, full, **cursor.origin)


def parse_drop_view(cursor: Cursor) -> DropView:
    """Read DROP MATERIALIZED VIEW."""
    cursor.expect("DROP MATERIALIZED VIEW")
    if_exists = cursor.accept("IF EXISTS")
    name = cursor.name(_VIEW_NAME)
    cursor.expect_end()
    return DropView(name, if_exists, **cursor.origin)


def parse_verify_view(cursor: Cursor) -> VerifyView:
    """Read VERIFY MATERIALIZED VIEW."""
    cursor.expect("VERIFY MATERIALIZED VIEW")
    name = cursor.name(_VIEW_NAME)
    repair = cursor.accept("REPAIR")
    cursor.expect_end(also=() if repair else ("REPAIR",))
    return VerifyView(name, repair, **cursor.origin)


def _parse_columns(cursor: Cursor) -> tuple[tuple[tuple[str, str | None], ...], tuple[str, ...]]:
    cursor.expect("(")
    columns: dict[str, tuple[str, str | None]] = {}
    primary_key: tuple[str, ...] = ()
    while True:
        at = cursor.peek()
        if cursor.accept("PRIMARY KEY"):
            primary_key = _parse_key(cursor, columns)
            break
        name = cursor.name("a column")
        if name.lower() in columns:
            raise cursor.error("COLUMN_DECLARED_TWICE", f"there are two columns named '{name}'; rename one.", at)
        comment = cursor.string("a comment") if cursor.accept("COMMENT") else None
        columns[name.lower()] = (name, comment)
        if not cursor.at_any((",", ")")):
            hint = "The columns of a view have no types; those come from the query."
            raise cursor.unexpected("',' or ')'", ("COMMENT",), hint if cursor.peek().kind == "word" else "")
        if not cursor.accept(","):
            break
    cursor.close_list()
    return tuple(columns.values()), primary_key


def _parse_key(cursor: Cursor, columns: dict[str, tuple[str, str | None]]) -> tuple[str, ...]:
    cursor.expect("(")
    key: list[str] = []
    while True:
        at = cursor.peek()
        name = cursor.name("a column of the key")
        if columns and name.lower() not in columns:
            known = ", ".join(spelled for spelled, _ in columns.values())
            message = f"the key names '{name}', which is not among the view's columns; name some of {known}."
            raise cursor.error("COLUMN_NOT_FOUND", message, at)
        name = columns[name.lower()][0] if columns else name
        if name.lower() in (known.lower() for known in key):
            raise cursor.error("COLUMN_DECLARED_TWICE", f"the key names the column '{name}' twice; name it once.", at)
        key.append(name)
        if not cursor.accept(","):
            break
    cursor.close_list()
    return tuple(key)


def _parse_clause(cursor: Cursor, clauses: _Clauses) -> None:
    at = cursor.peek()
    if cursor.accept("COMMENT"):
        _check_once(cursor, clauses.comment is not None, "COMMENT", at)
        clauses.comment = cursor.string("a comment")
    elif cursor.accept("REFRESH"):
        _parse_refresh_clause(cursor, clauses, at)
    elif cursor.accept("SCHEDULE"):
        if cursor.at("CRON"):
            message = "CRON schedules are not supported; write SCHEDULE EVERY 1 HOUR, or REFRESH ON DEMAND and call "
            message += "REFRESH MATERIALIZED VIEW from your scheduler."
            raise cursor.refusal("SCHEDULE_CRON_NOT_SUPPORTED", message)
        cursor.accept("REFRESH")
        cursor.expect("EVERY")
        _set_refresh(cursor, clauses, Refresh("EVERY", _parse_interval_seconds(cursor)), at)
    elif cursor.accept("WITH NO DATA"):
        _check_once(cursor, clauses.with_no_data, "WITH NO DATA", at)
        clauses.with_no_data = True
    elif cursor.at("WITH DATA"):
        message = "a view is filled when it is created; leave WITH DATA out."
        raise cursor.refusal("VIEW_CLAUSE_NOT_SUPPORTED", message)
    elif cursor.at("WITH ("):
        _refuse_options(cursor)
    elif cursor.at_any(_UNSUPPORTED_CLAUSES):
        message = f"the clause {at.text.upper()} is not supported for materialised views; leave it out."
        raise cursor.refusal("VIEW_CLAUSE_NOT_SUPPORTED", message)
    elif cursor.at_any(QUERY_STARTS):
        raise cursor.unexpected("AS before the query")
    else:
        raise cursor.unexpected("COMMENT, REFRESH, SCHEDULE, WITH NO DATA or AS", _CLAUSES)


def _parse_refresh_clause(cursor: Cursor, clauses: _Clauses, at: Lexeme) -> None:
    if cursor.at("ON COMMIT"):
        message = (
            "REFRESH ON COMMIT is not available yet; use REFRESH CONTINUOUS, and db.wait_for(position) where a "
            "reader must see its own write."
        )
        raise cursor.refusal("REFRESH_ON_COMMIT_NOT_YET", message, at)
    kind = cursor.expect_any(_REFRESH_KINDS)
    if kind == "POLICY":
        _check_once(cursor, clauses.policy is not None, "REFRESH POLICY", at)
        clauses.policy = _parse_policy(cursor)
    elif kind == "EVERY":
        _set_refresh(cursor, clauses, Refresh("EVERY", _parse_interval_seconds(cursor)), at)
    elif kind == "CONTINUOUS":
        _set_refresh(cursor, clauses, Refresh("CONTINUOUS"), at)
    else:
        _set_refresh(cursor, clauses, Refresh("ON_DEMAND"), at)


def _parse_policy(cursor: Cursor) -> RefreshPolicy:
    policy = cursor.expect_any(("AUTO", "INCREMENTAL", "FULL"))
    if policy == "INCREMENTAL":
        cursor.accept("STRICT")
        return "INCREMENTAL"
    return "FULL" if policy == "FULL" else "AUTO"


def _set_refresh(cursor: Cursor, clauses: _Clauses, refresh: Refresh, at: Lexeme) -> None:
    _check_once(cursor, clauses.refresh is not None, "REFRESH or SCHEDULE", at)
    clauses.refresh = refresh


def _check_once(cursor: Cursor, given: bool, clause: str, at: Lexeme) -> None:
    if given:
        raise cursor.error("CLAUSE_GIVEN_TWICE", f"{clause} is given twice; keep one.", at)


def _refuse_options(cursor: Cursor) -> None:
    cursor.expect("WITH (")
    if cursor.at("MAX_STALENESS"):
        message = "max_staleness is not available yet; use REFRESH EVERY, which bounds how old the view may get."
        raise cursor.refusal("MAX_STALENESS_NOT_YET", message)
    at = cursor.peek()
    option = cursor.name("an option")
    raise cursor.error("UNKNOWN_OPTION", f"a view has no option '{option}'; leave WITH (…) out.", at)


def _parse_interval_seconds(cursor: Cursor) -> float:
    """Read ``5 SECONDS``, ``INTERVAL 5 SECONDS``, ``INTERVAL '5' SECONDS`` or ``INTERVAL '5 seconds'``."""
    at = cursor.peek()
    cursor.accept("INTERVAL")
    count_at = cursor.peek()
    if count_at.kind not in ("number", "string"):
        raise cursor.unexpected("a number of seconds, minutes, hours or days")
    count, _, unit = cursor.take().text.strip().partition(" ")
    if not unit:
        if cursor.peek().kind != "word":
            raise cursor.unexpected("a unit of time", _unit_words())
        unit = cursor.peek().text
        if _unit_name(unit) not in UNIT_SECONDS:
            raise cursor.unexpected("a unit of time (SECONDS, MINUTES, HOURS, DAYS …)", _unit_words())
        cursor.take()
    seconds = _seconds(count, _unit_name(unit))
    if seconds is None:
        message = f"'{count} {unit}' is no interval to refresh by; write a number above 0 and a unit, as in 5 SECONDS."
        raise cursor.error("INVALID_INTERVAL", message, at)
    return seconds


def _seconds(count: str, unit: str) -> float | None:
    if unit not in UNIT_SECONDS:
        return None
    try:
        number = Decimal(count)
    except InvalidOperation:
        return None
    seconds = float(number * UNIT_SECONDS[unit]) if number.is_finite() else 0.0
    return seconds if 0 < seconds <= MAX_INTERVAL_SECONDS else None


def _unit_name(unit: str) -> str:
    unit = unit.strip().upper()
    return unit[:-1] if unit.endswith("S") else unit


def _unit_words() -> tuple[str, ...]:
    return tuple(f"{unit}S" for unit in UNIT_SECONDS)


def _parse_view_query(cursor: Cursor) -> SqlText:
    at = cursor.peek(_distance_to_no_data(cursor))
    if at.kind != "end":
        message = "WITH NO DATA belongs to CREATE MATERIALIZED VIEW and stands before AS: … WITH NO DATA AS SELECT …."
        raise cursor.error("SYNTAX_ERROR", message, at)
    return cursor.query()


def _distance_to_no_data(cursor: Cursor) -> int:
    """Return how far ahead a WITH NO DATA ends the statement; the distance to the end where none does."""
    ahead = 0
    while cursor.peek(ahead).kind != "end":
        if cursor.at("WITH NO DATA", ahead) and cursor.peek(ahead + 3).kind == "end":
            return ahead
        ahead += 1
    return ahead
