"""What every part of the planner needs to know about the statement at hand, and how it reports what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.catalog import Relations
from viewkeeper.plan.place import Place, located
from viewkeeper.plan.refusals import refuse
from viewkeeper.zset.schema import Schema, SqlType

SparkTypes = Callable[[str, Schema], tuple[SqlType, bool, bool]]


@dataclass(frozen=True)
class Context:
    """One statement being planned.

    Args:
        relations: the tables and views that it may read.
        session: time zone and ANSI mode.
        place: where its SQL stands in the user's text.
        spark_types: types an expression by Spark's analyzer, over columns `` `_c0` ``, `` `_c1` ``, ...; returns type,
            nullability and whether the expression is deterministic. None where there is no Spark.
        parameters: values of ``:name``.
        ad_hoc: whether it is a query that runs once, and so may be ordered and limited at its end.
        is_strict: whether what every change computes anew is refused: REFRESH POLICY INCREMENTAL.
        tables: names of what the whole statement reads.
    """

    relations: Relations
    session: Session
    place: Place
    spark_types: SparkTypes | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    ad_hoc: bool = False
    is_strict: bool = False
    tables: tuple[str, ...] = ()

    def error(self, code: str, message: str, node: exp.Expr) -> SqlError:
        """Return an error that points at ``node``."""
        details = self.place.of(node)
        return SqlError(code, located(message, details), details)

    def refusal(self, code: str, node: exp.Expr, what: str = "") -> UnsupportedSql:
        """Return the refusal ``code``, pointing at ``node``."""
        return refuse(code, self.place.of(node), what)
