"""Queries without FROM: constants, computed over one row of a relation that no user can name."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa

from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.catalog import Relations
from viewkeeper.plan.nodes import Relation
from viewkeeper.statements.lexer import tokenize
from viewkeeper.zset.schema import INT, Column, Schema

ONE_ID = -1
ONE_SCHEMA = Schema((Column("__one", INT, False),))
ONE_BATCH = pa.record_batch([pa.array([0], pa.int32())], names=["__one"])

_ONE = Relation(ONE_ID, "__one", "table", ONE_SCHEMA, (0,))
_OTHER_CLAUSES = frozenset(
    ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "MINUS", "INTERSECT", "LATERAL",
     "WINDOW", "QUALIFY", "CLUSTER", "DISTRIBUTE", "SORT")
)  # fmt: skip


def with_one_row(sql: str) -> str | None:
    """Return ``SELECT constants`` with a FROM clause behind it; None where ``sql`` has any clause already.

    Example:
        >>> with_one_row("SELECT 1 + 1 -- two").split()
        ['SELECT', '1', '+', '1', '--', 'two', 'FROM', '`__one`']
        >>> with_one_row("SELECT k FROM t")
    """
    lexemes = tokenize(sql)
    words = {lexeme.text.upper() for lexeme in lexemes if lexeme.kind == "word"}
    is_plain = bool(lexemes) and lexemes[0].is_word("SELECT") and not words & _OTHER_CLAUSES
    # A star would show the relation.
    stars = any(a.text in ("SELECT", ",", ".") and b.text == "*" for a, b in pairwise(lexemes))
    return f"{sql}\nFROM `__one`" if is_plain and not stars else None


class WithOneRow:
    """Relations and the one of one row.

    Args:
        relations: the others.
    """

    def __init__(self, relations: Relations) -> None:
        self._relations = relations

    def relation(self, name: str) -> Relation | None:
        """Return the table or view called ``name``."""
        return _ONE if name == _ONE.name else self._relations.relation(name)

    def function(self, name: str) -> UserFunction | None:
        """Return the user's function called ``name``."""
        return self._relations.function(name)

    def names(self) -> list[str]:
        """Return the names that users know."""
        return self._relations.names()

    def apart(self) -> WithOneRow | None:
        """Return the same for parts of a query that nobody reads."""
        relations = self._relations.apart()
        return None if relations is None else WithOneRow(relations)
