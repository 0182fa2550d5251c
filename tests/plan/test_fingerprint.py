"""Equal subplans have equal fingerprints, whatever their names; others have not."""

import pytest

from viewkeeper.plan.examples import plan_example
from viewkeeper.plan.fingerprint import fingerprint


def of(sql):
    return fingerprint(plan_example(sql).root)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT k, a FROM t WHERE b > 0", "SELECT s.k AS z, s.a AS y FROM t AS s WHERE s.b > 0"),
        ("SELECT c, COUNT(*) AS n FROM t GROUP BY c", "SELECT z, COUNT(1) m FROM (SELECT c AS z FROM t) q GROUP BY 1"),
        ("SELECT k FROM t WHERE a > 1 AND b > 1", "SELECT k FROM (SELECT k, b FROM t WHERE a > 1) q WHERE b > 1"),
    ],
)
def test_equal(one, other):
    assert of(one) == of(other)


def test_different():
    queries = [
        "SELECT k, a FROM t",
        "SELECT k, b FROM t",
        "SELECT k, a FROM t WHERE b > 0",
        "SELECT k, a FROM t WHERE b > 1",
        "SELECT k, a FROM t WHERE b >= 0",
        "SELECT k, a + 1 AS a FROM t",
        "SELECT k, CAST(a AS BIGINT) AS a FROM t",
        "SELECT c, COUNT(*) AS n FROM t GROUP BY c",
        "SELECT c, COUNT(a) AS n FROM t GROUP BY c",
        "SELECT c, COUNT(*) FILTER (WHERE a > 1) AS n FROM t GROUP BY c",
        "SELECT c, SUM(a) AS n FROM t GROUP BY c",
        "SELECT t.k, u.id FROM t JOIN u ON t.k = u.t_k",
        "SELECT t.k, u.id FROM t JOIN u ON t.k = u.t_k AND t.a < u.v",
        "SELECT k FROM t UNION ALL SELECT id FROM u",
        "SELECT k FROM t UNION ALL SELECT v FROM u",
    ]
    assert len(set(map(of, queries))) == len(queries)


def test_stable():
    assert of("SELECT k, a FROM t WHERE b > 0") == of("SELECT k, a FROM t WHERE b > 0")
    assert len(of("SELECT k FROM t")) == 32
