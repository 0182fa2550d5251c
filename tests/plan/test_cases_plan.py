"""Every view of tests/cases plans with exactly the stated columns, or is refused with exactly the code listed here."""

import json
from pathlib import Path

import pytest

from viewkeeper.expressions.tree import Session
from viewkeeper.plan.build import plan_expression, plan_view
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation
from viewkeeper.zset.schema import Column, Schema

FOLDER = Path(__file__).parent.parent / "cases"


def relations_of_case(case):
    relations = FixedRelations([])
    for number, table in enumerate(case["tables"], 1):
        names = [name for name, _ in table["columns"]]
        columns = tuple(Column(name, type_of(text), name not in table["key"]) for name, text in table["columns"])
        key = tuple(names.index(name) for name in table["key"])
        relations.add(Relation(number, table["name"], "table", Schema(columns), key))
    return relations


def type_of(text):
    return plan_expression(f"CAST(NULL AS {text})", Schema(()), Session()).type


def views():
    for path in sorted(FOLDER.glob("*.json")):
        case = json.loads(path.read_text())
        for view in case["views"]:
            yield pytest.param(case, view, id=f"{case['id']}/{view['name']}")


@pytest.mark.parametrize(("case", "view"), list(views()))
def test_view(case, view):
    relations = relations_of_case(case)
    for number, earlier in enumerate(case["views"], 100):
        plan = plan_view(earlier["sql"], relations, Session())
        if earlier is view:
            assert [[c.name, str(c.type)] for c in plan.schema.columns] == view["columns"]
            return
        hidden = Schema(plan.root.schema.columns[plan.visible :])
        relations.add(Relation(number, earlier["name"], "view", plan.schema, plan.visible_key, hidden, plan.key))
