"""kill -9 within statements that define views and tables, while others write: each is done as a whole, or not at all.

A statement takes several transactions: the catalog first, then the fill and the swap of new versions, the end of what
old ones kept. Killed before the first one it has not happened; killed later, whoever comes next does the rest of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.killing import WRITER, Report, beside_a_writer, hits, killed_at
from tests.integration.nursery import Nursery, nursery
from tests.integration.proof import QUICK, VIEWS, Proof

pytestmark = pytest.mark.slow

NOT_DONE = "catalog:before-commit"
CATALOG = (NOT_DONE, "catalog:after")
REMOVED = ("remove:before", "remove:after")
# The last view of a cadence takes along the hold on the log, behind its state.
LAST_REMOVED = (*REMOVED, "remove:between")
BUILT = ("build:held", "build:begun")
# Cut in test_kills, too.
SWAPPED = ("build:before-swap", "build:after-swap")

EXTRAS = "CREATE TABLE extras (id BIGINT, v INT, PRIMARY KEY (id))"
EXTRA_SUMS = (
    "CREATE MATERIALIZED VIEW extra_sums REFRESH EVERY 3 HOURS AS SELECT SUM(v) AS s, COUNT(*) AS n FROM extras"
)
GROUPED, JOINED, MIRRORED, REGIONS = VIEWS[:4]
SMALLER = "SELECT customer, COUNT(*) AS n, MAX(amount) AS total FROM orders WHERE x = 1 GROUP BY customer"
FEWER = "SELECT o.id, c.region, o.amount FROM orders o JOIN customers c ON o.customer = c.id WHERE o.x = 1"


@dataclass(frozen=True)
class Statement:
    """What is cut off.

    Args:
        text: the statement.
        back: what makes it undone.
        points: where it is cut off, and how often.
        first: what must be done before it can be done at all.
    """

    text: str
    back: str
    points: dict[str, int]
    first: str = ""


def hit(points: tuple[str, ...], count: int) -> dict[str, int]:
    """Return that each of ``points`` is hit so often."""
    return dict.fromkeys(points, count)


STATEMENTS = {
    "CREATE VIEW": Statement(
        "CREATE MATERIALIZED VIEW made REFRESH EVERY 2 HOURS AS"
        " SELECT region, SUM(amount) AS s FROM joined GROUP BY region",
        "DROP MATERIALIZED VIEW made",
        hit(CATALOG, 2) | hit(BUILT, 6) | hit(SWAPPED, 1),
    ),
    "OR REPLACE": Statement(
        f"CREATE OR REPLACE MATERIALIZED VIEW grouped AS {SMALLER}",
        GROUPED.replace("CREATE", "CREATE OR REPLACE"),
        hit((*CATALOG, *BUILT, *REMOVED), 2) | hit(SWAPPED, 1),
    ),
    "ALTER … AS": Statement(
        f"ALTER MATERIALIZED VIEW joined AS {FEWER}",
        f"ALTER MATERIALIZED VIEW joined AS {JOINED.split(' AS ', 1)[1]}",
        hit((*CATALOG, *BUILT), 2) | hit((*SWAPPED, *REMOVED), 1),
    ),
    "DROP VIEW": Statement("DROP MATERIALIZED VIEW mirrored", MIRRORED, hit(CATALOG, 2) | hit(LAST_REMOVED, 7)),
    "SUSPEND": Statement(
        "ALTER MATERIALIZED VIEW mirrored SUSPEND",
        "ALTER MATERIALIZED VIEW mirrored RESUME",
        hit(CATALOG, 2) | hit(LAST_REMOVED, 7),
    ),
    "RESUME": Statement(
        "ALTER MATERIALIZED VIEW mirrored RESUME",
        "ALTER MATERIALIZED VIEW mirrored SUSPEND",
        hit(CATALOG, 2) | hit(BUILT, 6) | hit((*SWAPPED, *REMOVED), 1),
        first="ALTER MATERIALIZED VIEW mirrored SUSPEND",
    ),
    "REFRESH … FULL": Statement(
        "REFRESH MATERIALIZED VIEW grouped FULL",
        "",
        hit((*CATALOG, *REMOVED), 2) | hit(BUILT, 4) | hit(SWAPPED, 1),
    ),
    "RENAME": Statement(
        "ALTER MATERIALIZED VIEW grouped RENAME TO renamed",
        "ALTER MATERIALIZED VIEW renamed RENAME TO grouped",
        hit(CATALOG, 2),
    ),
    "SET POLICY": Statement(
        "ALTER MATERIALIZED VIEW grouped SET REFRESH POLICY FULL",
        "ALTER MATERIALIZED VIEW grouped SET REFRESH POLICY AUTO",
        hit(CATALOG, 2),
    ),
    "CREATE TABLE": Statement("CREATE TABLE more (id INT, PRIMARY KEY (id))", "DROP TABLE more", hit(CATALOG, 2)),
    "ADD COLUMN": Statement(
        "ALTER TABLE extras ADD COLUMN w INT DEFAULT 5", "ALTER TABLE extras DROP COLUMN w", hit(CATALOG, 2)
    ),
    "DROP TABLE": Statement(
        "DROP TABLE extras CASCADE",
        f"{EXTRAS}; INSERT INTO extras VALUES (1, 7); {EXTRA_SUMS}",
        hit(CATALOG, 2) | hit(LAST_REMOVED, 7),
    ),
}


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_that_is_killed_is_done_as_a_whole_or_not_at_all(
    children: Nursery, tmp_path: Path, kills: Report, name: str
) -> None:
    statement = STATEMENTS[name]
    with Proof(tmp_path / "store", (GROUPED, JOINED, MIRRORED, REGIONS), **QUICK) as proof:
        _add_extras(proof)
        proof.write(30)
        _settled(proof)
        proof.db.sql(statement.first)
        undone = _settled(proof)
        proof.db.sql(statement.text)
        done = _settled(proof)
        proof.db.sql(statement.back)
        assert _settled(proof) == undone
        for point, count in statement.points.items():
            times = max(count * hits(20) // 20, 1)
            for _ in range(times):
                proof.write(2)
                with beside_a_writer(children, proof):
                    said = killed_at(children, point, "sql", path=proof.path, text=statement.text, durability="none")
                assert said == ["ready"]
                proof.restart()
                proof.find_unconfirmed(WRITER)
                left = _settled(proof)
                assert left == (undone if point == NOT_DONE else done), (name, point)
                if left != undone:
                    proof.db.sql(statement.back)
            kills(f"DDL at {point}, beside a writer", times)
    assert proof.numbers[WRITER] > len(statement.points)


def test_each_place_within_statements_is_hit_20_times() -> None:
    for point in (*CATALOG, *LAST_REMOVED, *BUILT):
        assert sum(statement.points.get(point, 0) for statement in STATEMENTS.values()) >= 20, point


def _add_extras(proof: Proof) -> None:
    """Make the table that comes and goes; its one row is always the same, so the auditor is told of it once."""
    proof.db.sql(EXTRAS)
    row = {"id": 1, "v": 7}
    position = proof.db.put("extras", row)
    proof.auditor.committed(position.sequence_number, lambda tables: tables.update(extras={1: row}))
    proof.db.sql(EXTRA_SUMS)


def _settled(proof: Proof) -> tuple[list[str], list[str]]:
    """Return what is defined and what is kept behind it, when all that was cut off is done and all views are fresh."""
    proof.check()
    proof.db.refresh()
    proof.check()
    for view in proof.db.status()["views"]:
        assert view["state"] == "SUSPENDED" or (view["state"], view["behind"]) == ("ACTIVE", 0), view
    return proof.definitions(), proof.kept()
