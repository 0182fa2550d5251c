"""Text → sqlglot tree, and back, in Spark's dialect as ``dialect.py`` reads it."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token

from viewkeeper.errors import SqlError
from viewkeeper.plan.diagnosis import diagnose
from viewkeeper.plan.dialect import VerbatimSpark
from viewkeeper.plan.function_names import UNITS, WITH_UNIT
from viewkeeper.plan.place import Place, located
from viewkeeper.plan.reserved import as_names, sure_names
from viewkeeper.plan.strict_trees import fault


def parse_query(sql: str, place: Place) -> exp.Query:
    """Return the tree of one query.

    Args:
        sql: the query.
        place: where it stands in the user's text.

    Raises:
        SqlError: ``SYNTAX_ERROR``, at its place.

    Example:
        >>> parse_query("SELECT year(d) FROM t", Place("SELECT year(d) FROM t")).expressions[0].name
        'year'
    """
    tree = _parse(sql, place)
    if not isinstance(tree, exp.Query):
        raise _syntax_error("A query (SELECT …) is expected here.", place, 0, len(sql))
    return tree


def parse_expression(sql: str, place: Place) -> exp.Expr:
    """Return the tree of one expression, as it stands in a WHERE clause or a SET list.

    Raises:
        SqlError: ``SYNTAX_ERROR``, at its place.
    """
    # Behind another column, since behind SELECT itself ``all + 1`` is the quantifier and a sign.
    prefix = "SELECT 0, "
    tree = _parse(prefix + sql, Place(place.text, place.offset - len(prefix)))
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 2 or tree.args.get("from_"):
        raise _syntax_error("One expression is expected here.", place, 0, len(sql))
    if "first_clause" in tree.meta or isinstance(tree.expressions[1], exp.Alias):
        start = tree.meta.get("first_clause", len(prefix)) - len(prefix)
        message = "One expression is expected here, without clauses of a query and without an alias."
        raise _syntax_error(message, place, start, len(sql))
    expression: exp.Expr = tree.expressions[1]
    for node in expression.walk():
        if "start" in node.meta:
            node.meta["start"] -= len(prefix)
            node.meta["end"] -= len(prefix)
    expression.pop()
    return expression


def to_sql(tree: exp.Expr) -> str:
    """Return ``tree`` as SQL text for Spark."""
    return tree.sql(dialect=VerbatimSpark)


def _parse(sql: str, place: Place) -> exp.Expr | None:
    dialect = VerbatimSpark()
    try:
        tokens = sure_names(dialect.tokenize(sql))
        trees = dialect.parser().parse(tokens, sql)
    except ParseError as error:
        read = _with_names(dialect, tokens, sql)
        if read is None:
            raise _from_parse_error(error, sql, place) from error
        trees = read
    except TokenError as error:
        raise _syntax_error("A quote or a comment is not closed.", place, 0, len(sql)) from error
    kept = [tree for tree in trees if tree is not None]
    if len(kept) > 1:
        raise _syntax_error("One query is expected here, not several.", place, 0, len(sql))
    if kept:
        wrong = fault(kept[0])
        if wrong is not None:
            details = place.of(wrong[1]) or place.details(0, len(sql))
            raise SqlError("SYNTAX_ERROR", located(wrong[0], details), details)
        _mark_literals(kept[0], sql)
        _negate_outside(kept[0])
        _name_units(kept[0])
    return kept[0] if kept else None


def _with_names(dialect: VerbatimSpark, tokens: list[Token], sql: str) -> list[exp.Expr | None] | None:
    """Return the trees of a text in which words of the grammar are names; None where that does not help."""
    named = as_names(tokens)
    if named is None:
        return None
    try:
        return dialect.parser().parse(named, sql)
    except ParseError:
        return None


def _negate_outside(tree: exp.Expr) -> None:
    # NOT LIKE comes as a flag of LIKE, below ESCAPE too; every other negation is a NOT around. With ALL and ANY the
    # flag stays: NOT LIKE ALL is that no pattern matches, and not that some does not.
    for node in list(tree.find_all(exp.Like, exp.ILike)):
        if not node.args.get("negate") or isinstance(node.expression, exp.All | exp.Any):
            continue
        node.set("negate", None)
        whole = node.parent if isinstance(node.parent, exp.Escape) else node
        negation = exp.Not()
        whole.replace(negation)
        negation.set("this", whole)


def _name_units(tree: exp.Expr) -> None:
    # date_add(MONTH, 1, t): the unit is a word of the grammar, and no column.
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() not in WITH_UNIT or len(node.expressions) != 3:
            continue
        unit = node.expressions[0]
        if isinstance(unit, exp.Column) and len(unit.parts) == 1 and unit.name.upper() in UNITS:
            unit.replace(exp.var(unit.name.upper()))


def _mark_literals(tree: exp.Expr, sql: str) -> None:
    # sqlglot turns 1L and DATE '...' into casts; Spark has them as literals, which shows in names and in types.
    for node in tree.find_all(exp.Cast):
        operand = node.this
        if not isinstance(operand, exp.Literal):
            continue
        if "start" not in operand.meta:
            node.meta["suffix"] = operand.is_string and node.args["to"].this == exp.DType.DECIMAL
            continue
        start, end = operand.meta["start"], operand.meta["end"] + 1
        if sql[start] not in "'\"rR" and sql[end - 1].isalpha():
            node.meta["suffix"] = True
        elif operand.is_string and sql[:start].rstrip()[-1:].isalpha():
            node.meta["typed_literal"] = True


def _from_parse_error(error: ParseError, sql: str, place: Place) -> SqlError:
    refused = _refused(error)
    if refused is not None:
        return _syntax_error(str(error.errors[0]["description"]), place, *refused)
    at, description = _stop(error, sql), _missing(error)
    found = diagnose(sql, at, _stop_of, description)
    return _syntax_error(found.message, place, found.start, found.stop)


def _stop_of(sql: str) -> int | None:
    try:
        VerbatimSpark().parse(sql)
    except ParseError as error:
        return _stop(error, sql)
    except TokenError:
        return 0
    return None


def _stop(error: ParseError, sql: str) -> int:
    """Return the offset of the word at which sqlglot stopped."""
    refused = _refused(error)
    if refused is not None:
        return refused[0]
    first: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
    if first.get("line") is None:
        return 0
    line_start = 0
    for _ in range(int(first["line"]) - 1):
        line_start = sql.index("\n", line_start) + 1
    # sqlglot counts columns to the end of the token.
    return max(line_start + int(first["col"]) - len(str(first.get("highlight") or "")), 0)


def _refused(error: ParseError) -> tuple[int, int] | None:
    """Return the offsets of what ``StrictParser`` refuses, None where sqlglot itself cannot go on."""
    return error.errors[0].get("refused") if error.errors else None


def _missing(error: ParseError) -> str:
    """Return what sqlglot says is missing, in our words; "" where it only says that it cannot go on."""
    description = str(error.errors[0].get("description") or "").rstrip(".") if error.errors else ""
    if description.startswith("Required keyword") or description == "Expected expression":
        return "An expression is missing"
    if description.startswith("Expected table name"):
        return "The name of a table is missing"
    if description.startswith("Expected CTE to have alias"):
        return "The name of a table of WITH is missing"
    if description.startswith(("Expected", "Expecting")):
        word = description.removeprefix("Expected ").removeprefix("Expecting ")
        return f"{word} is missing"
    return ""


def _syntax_error(message: str, place: Place, start: int, end: int) -> SqlError:
    details = place.details(start, end)
    return SqlError("SYNTAX_ERROR", located(message, details), details)
