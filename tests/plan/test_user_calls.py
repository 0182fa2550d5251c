"""Calls of users' functions beside what only Spark computes: parted, computed first, captured where they may fail."""

from __future__ import annotations

import pytest

from viewkeeper.expressions.tree import Call, Session, SparkExpression, columns_of
from viewkeeper.expressions.user_calls import CALL, CAPTURE
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.project import Project
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.compile import Compilation, compile_views
from viewkeeper.plan.examples import FixedRelations, T
from viewkeeper.plan.explain import explain_node
from viewkeeper.plan.fingerprint import fingerprint
from viewkeeper.plan.nodes import ViewPlan
from viewkeeper.zset.schema import INT, STRING, Schema, SqlType


def function(name: str, digest: str = "0123456789abcdef") -> UserFunction:
    return UserFunction(name, digest, INT, "values", True, 1, None, "rules:score", "", None, "3.11")


def planned(sql: str, digest: str = "0123456789abcdef") -> tuple[ViewPlan, list[tuple[str, tuple[str, ...]]]]:
    """Return the plan, and what Spark was asked: the text and the columns that are calls."""
    asked: list[tuple[str, tuple[str, ...]]] = []

    def types(text: str, schema: Schema) -> tuple[SqlType, bool, bool]:
        asked.append((text, tuple(name for name in schema.names if name.startswith("_u"))))
        return STRING, True, True

    return plan_view(sql, FixedRelations([T], [function("Score", digest)]), Session(), spark_types=types), asked


def compiled(plan: ViewPlan) -> Compilation:
    return compile_views({1: plan}, (1,), {1: T.schema}, "n")


def test_a_call_alone_needs_no_spark() -> None:
    plan, asked = planned("SELECT k, SCORE(a + 1, c) AS s FROM t WHERE score(b) > 1")
    assert asked == []
    assert explain_node(plan.root).splitlines()[:2] == [
        "Project k := k, s := Score((a + 1), c)",
        "  Filter (Score(b) > 1)",
    ]


def test_calls_are_parted_from_what_spark_computes() -> None:
    plan, ((text, (name,)),) = planned("SELECT k, CASE WHEN b > 0 THEN soundex(score(a)) END AS s FROM t")
    assert text == f"CASE WHEN `_c2` > 0 THEN SOUNDEX(`{name}`) END"
    assert "spark[CASE WHEN b > 0 THEN SOUNDEX(Score(a)) END]" in explain_node(plan.root)
    circuit = compiled(plan).circuit
    calls = next(n for n in circuit.nodes if isinstance(n.operator, Project) and _captures(n.operator))
    catalyst = next(n for n in circuit.nodes if isinstance(n.operator, Catalyst))
    assert calls.id in catalyst.inputs
    (expression,) = catalyst.operator.expressions  # type: ignore[union-attr]
    assert expression.calls == ()
    assert "raise_error('EXPRESSION_FAILED')" in expression.sql
    assert name not in expression.sql


def test_arguments_that_only_spark_computes_are_captured_before() -> None:
    plan, asked = planned("SELECT k, upper(score(soundex(c))) AS s, soundex(score(bit_get(a, 0))) AS u FROM t")
    assert [text for text, _ in asked if "`_u" not in text] == ["SOUNDEX(`_c3`)", "BIT_GET(`_c1`, 0)"]
    operators = [node.operator for node in compiled(plan).circuit.nodes]
    assert [operator.captures for operator in operators if isinstance(operator, Catalyst)] == [True, False]


def test_what_captures_is_computed_by_us_where_spark_recomputes() -> None:
    plan, _ = planned("SELECT k, soundex(score(a)) AS s FROM t")
    project = next(
        n.operator for n in compiled(plan).circuit.nodes if isinstance(n.operator, Project) and _captures(n.operator)
    )
    query = project.query()
    assert query.sql == "SELECT * FROM i0"
    assert query.finish is not None


def test_another_function_is_another_plan() -> None:
    one, _ = planned("SELECT k, score(a) AS s FROM t")
    other, _ = planned("SELECT k, score(a) AS s FROM t", "another")
    assert fingerprint(one.root) != fingerprint(other.root)


@pytest.mark.parametrize("text", ["score(a)", "soundex(score(a))"])
def test_columns_of_calls_are_read(text: str) -> None:
    plan, _ = planned(f"SELECT k, s FROM (SELECT k, {text} AS s, b FROM t) q")
    found = [e for e in plan.root.expressions if isinstance(e, Call | SparkExpression)]  # type: ignore[attr-defined]
    assert [columns_of(e) for e in found] == [{1}]


def _captures(operator: Project) -> bool:
    return any(isinstance(e, Call) and e.function == CAPTURE for e in operator.expressions) and CALL in repr(operator)
