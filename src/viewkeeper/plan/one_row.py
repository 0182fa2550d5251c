"""What a query without FROM reads: one row, whatever the tables hold.

A count of no rows is one row from the first epoch on, and no change of the counted table ever reaches it. So constants
need no operator of their own; the table is one that the statement reads anyway.
"""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.expressions.tree import Literal
from viewkeeper.plan.context import Context
from viewkeeper.plan.nodes import Aggregate, AggregateCall, Filter, Relation, Scan
from viewkeeper.plan.scopes import Source
from viewkeeper.zset.schema import BIGINT, BOOLEAN, Column, Schema


def tables_read(query: exp.Expr) -> tuple[str, ...]:
    """Return the names in FROM of a statement that are no common table expressions.

    Args:
        query: the whole statement.
    """
    common = {table.alias.lower() for table in query.find_all(exp.CTE)}
    named = (table for table in query.find_all(exp.Table) if isinstance(table.this, exp.Identifier) and not table.db)
    return tuple(dict.fromkeys(table.name for table in named if table.name.lower() not in common))


def one_row(tree: exp.Expr, context: Context, what: str = "") -> Source:
    """Return the source of one row without columns, for what ``tree`` computes of constants.

    Args:
        tree: a query, or what makes rows in it.
        context: the statement.
        what: a name of the construct, for the refusal.

    Raises:
        UnsupportedSql: ``QUERY_WITHOUT_TABLE`` where the whole statement reads no table.
    """
    relation = _first_relation(context)
    if relation is None:
        raise context.refusal("QUERY_WITHOUT_TABLE", tree, what)
    schema, key = relation.schema, relation.key
    # Of its columns one is kept: that of the key, which nobody drops.
    every = Scan(relation, tuple(range(len(schema))), schema, key)
    rows = Filter(every, Literal(False, BOOLEAN), schema, key)
    count = AggregateCall("count_star", None, None, BIGINT, False)
    return Source(Aggregate(rows, (), (count,), Schema((Column("__none", BIGINT, False),)), ()), ())


def _first_relation(context: Context) -> Relation | None:
    found = (context.relations.relation(name) for name in context.tables)
    return next((relation for relation in found if relation is not None), None)
