"""A small catalog for doctests, the examples of the refusals, and tests."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.expressions.tree import Session
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.explain import explain_node
from viewkeeper.plan.nodes import Relation, ViewPlan
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, STRING, Column, Schema, array


class FixedRelations:
    """Relations given once.

    Args:
        relations: the tables and views.
        functions: users' functions.
    """

    def __init__(self, relations: Sequence[Relation], functions: Sequence[UserFunction] = ()) -> None:
        self._functions = {function.name.lower(): function for function in functions}
        self._relations = {relation.name.lower(): relation for relation in relations}

    def relation(self, name: str) -> Relation | None:
        """Return the relation called ``name``, in any case; None where there is none."""
        return self._relations.get(name.lower())

    def function(self, name: str) -> UserFunction | None:
        """Return the function called ``name``, in any case; None where there is none."""
        return self._functions.get(name.lower())

    def names(self) -> list[str]:
        """Return all names."""
        return [relation.name for relation in self._relations.values()]

    def apart(self) -> FixedRelations:
        """Return the same."""
        return self

    def add(self, relation: Relation) -> None:
        """Add a table or view."""
        self._relations[relation.name.lower()] = relation


T = Relation(
    1,
    "t",
    "table",
    Schema((
        Column("k", BIGINT, False),
        Column("a", INT),
        Column("b", INT),
        Column("c", STRING),
        Column("x", DOUBLE),
        Column("tags", array(STRING)),
    )),
    (0,),
)  # fmt: skip
U = Relation(
    2,
    "u",
    "table",
    Schema((Column("id", INT, False), Column("t_k", BIGINT), Column("v", INT), Column("name", STRING))),
    (0,),
)


def plan_example(sql: str, is_strict: bool = False) -> ViewPlan:
    """Return the plan of a view over the tables of ``refusals.EXAMPLE_TABLES``."""
    return plan_view(sql, FixedRelations([T, U]), Session(), is_strict=is_strict)


def example_tree(sql: str) -> str:
    """Return the text tree of ``plan_example(sql)``."""
    return explain_node(plan_example(sql).root)
