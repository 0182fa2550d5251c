"""Each rewrite keeps the rows; the order is RULES; each has a doctest."""

import doctest
import importlib

import pytest

from tests.plan.interpreter import comparable, execute
from tests.plan.test_golden import PAIRS, ROWS_T, ROWS_U
from viewkeeper.expressions.tree import Session
from viewkeeper.plan import queries
from viewkeeper.plan.context import Context
from viewkeeper.plan.examples import FixedRelations, T, U, example_tree, plan_example
from viewkeeper.plan.nodes import walk
from viewkeeper.plan.one_row import tables_read
from viewkeeper.plan.parse import parse_query
from viewkeeper.plan.place import Place
from viewkeeper.plan.rules import RULES

TABLES = {T.id: ROWS_T, U.id: ROWS_U}


def unwritten(sql):
    place = Place(sql)
    query = parse_query(sql, place)
    context = Context(FixedRelations([T, U]), Session(), place, tables=tables_read(query))
    return queries.plan_tree(query, context).source.node


@pytest.mark.parametrize("rule", dict.fromkeys(RULES), ids=lambda rule: rule.__name__)
def test_rule_has_a_doctest(rule):
    module = importlib.import_module(rule.__module__)
    found = doctest.DocTestFinder(recurse=False).find(rule, module=module)
    assert any(test.examples for test in found)


@pytest.mark.parametrize("rule", dict.fromkeys(RULES), ids=lambda rule: rule.__name__)
@pytest.mark.parametrize(("sql", "text"), PAIRS)
def test_rule_keeps_rows_and_columns(rule, sql, text):
    before = unwritten(sql)
    after = rule(before, frozenset(range(len(before.schema))))
    assert after.schema == before.schema
    assert after.key == before.key
    assert comparable(execute(after, TABLES)) == comparable(execute(before, TABLES))


@pytest.mark.parametrize(
    ("sql", "tree"),
    [
        (
            "SELECT k, r FROM (SELECT k, a, 1 / b AS r FROM t) q WHERE a > 1",
            "Project k := k, r := (1.0 / cast(b as double))\n  Filter (a > 1)\n    Scan t (k, a, b)",
        ),
        (
            "SELECT k FROM (SELECT k, a FROM t WHERE CAST(c AS INT) > 0) q WHERE a > 1",
            "Project k := k\n  Filter ((cast(c as int) > 0) AND (a > 1))\n    Scan t (k, a, c)",
        ),
        (
            "SELECT n FROM (SELECT COUNT(*) AS n FROM t) q WHERE n > 1",
            "Filter (n > 1)\n  Aggregate: n := count_star()\n    Scan t (k)",
        ),
        (
            "SELECT x, n FROM (SELECT x, COUNT(*) AS n FROM t GROUP BY x) q WHERE x > 1D",
            "Filter (x > 1.0)\n  Aggregate by x: n := count_star()\n    Scan t (x)",
        ),
        (
            "SELECT z + z AS s FROM (SELECT a * b AS z, k FROM t) q",
            "Project s := (z + z), __key_0_k := k\n  Project z := (a * b), k := k\n    Scan t (k, a, b)",
        ),
    ],
)
def test_where_rules_stop(sql, tree):
    assert example_tree(sql) == tree


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t",
        "SELECT COUNT(*) AS n FROM t JOIN u ON t.k = u.t_k",
        "SELECT COUNT(*) AS n FROM (SELECT a FROM t UNION ALL SELECT v FROM u) q",
        "SELECT COUNT(*) AS n FROM (SELECT COUNT(*) AS m FROM t) q",
        "SELECT COUNT(*) AS n FROM (SELECT COUNT(*) AS m FROM t GROUP BY c) q",
        "SELECT COUNT(*) AS n FROM (SELECT a + 1 AS z FROM t WHERE b > 1) q",
    ],
)
def test_every_node_keeps_a_column(sql):
    assert all(len(node.schema) for node in walk(plan_example(sql).root))
    assert execute(plan_example(sql).root, TABLES) == execute(unwritten(sql), TABLES)


def test_names_stay_where_a_limit_takes_the_place_of_a_filter() -> None:
    columns = "k AS c0, a AS c1, b AS c2, c AS c3, x AS c4, tags AS c5"
    plan = plan_example(f"SELECT {columns}, ROW_NUMBER() OVER (ORDER BY k) AS rank FROM t QUALIFY rank <= 2")
    assert plan.schema.names == ("c0", "c1", "c2", "c3", "c4", "c5", "rank")
