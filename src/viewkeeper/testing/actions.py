"""What happens in a simulation: the actions of two processes on one store, as plain data drawn from a seed."""

from __future__ import annotations

from typing import Any

from viewkeeper.clock import Chance, seeded
from viewkeeper.pipeline.failpoints import NAMES

Action = dict[str, Any]

TABLES = (
    "CREATE TABLE orders (id BIGINT, customer INT, amount BIGINT, x INT, PRIMARY KEY (id))",
    "CREATE TABLE customers (id INT, region STRING, PRIMARY KEY (id))",
)

_COUNTED = "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer"
_MOST = "SELECT customer, COUNT(x) AS n, MAX(amount) AS most FROM orders GROUP BY customer"
_RANKED = "SELECT id, customer, amount, RANK() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders"
_FIRST = (
    "SELECT id, customer, amount FROM orders"
    " QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC, id) < 3"
)
# Versions of a view of one name show the same columns, so views that read it fit all of them.
QUERIES: dict[str, tuple[str, ...]] = {
    "grouped": (
        "SELECT customer AS g, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer",
        "SELECT customer AS g, COUNT(x) AS n, MAX(amount) AS total FROM orders WHERE x > 0 GROUP BY customer",
        "SELECT o.customer AS g, COUNT(*) AS n, MIN(o.amount) AS total FROM orders o JOIN customers c"
        " ON o.customer = c.id GROUP BY o.customer HAVING COUNT(*) > 1",
    ),
    "joined": (
        "SELECT o.id, c.region, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
        "SELECT a.id, c.region, b.amount FROM orders a JOIN orders b ON a.customer = b.x"
        " JOIN customers c ON b.customer = c.id",
    ),
    "share": (
        "SELECT id, 10 / x AS share FROM orders",
        "SELECT customer AS id, AVG(10 / x) AS share FROM orders GROUP BY customer",
    ),
    "stacked": (
        "SELECT COUNT(*) AS groups, SUM(n) AS orders, MAX(total) AS largest FROM grouped",
        "SELECT region, COUNT(*) AS n, SUM(amount) AS total FROM joined GROUP BY region",
        "SELECT g.g, g.n, j.amount FROM grouped g JOIN joined j ON g.g = j.id",
        "SELECT MIN(share) AS least FROM share",
    ),
    "united": (
        "SELECT id, x AS v FROM orders UNION ALL SELECT id, CAST(id AS INT) AS v FROM customers",
        "SELECT * FROM orders",
        "SELECT region, MIN(id) AS first, COUNT(*) AS n FROM customers GROUP BY region",
    ),
    # What these join is arranged alike, or they rest on equal groups, ranks or first rows: so the later one borrows
    # what the earlier one keeps.
    "lends": (
        f"SELECT c.id, c.region, g.n FROM customers c JOIN ({_COUNTED}) g ON c.id = g.customer",
        "SELECT o.id, c.region, o.amount AS n FROM orders o JOIN customers c ON o.customer = c.id",
        f"SELECT customer AS id, CAST(most AS STRING) AS region, n FROM ({_MOST})",
        f"SELECT id, CAST(r AS STRING) AS region, amount AS n FROM ({_RANKED})",
        f"SELECT id, CAST(customer AS STRING) AS region, amount AS n FROM ({_FIRST})",
    ),
    "borrows": (
        f"SELECT c.region, COUNT(*) AS n, SUM(g.n) AS total FROM customers c JOIN ({_COUNTED}) g ON c.id = g.customer"
        " GROUP BY c.region",
        "SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total FROM orders o JOIN customers c ON o.customer = c.id"
        " GROUP BY c.region",
        "SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total FROM orders o LEFT JOIN customers c"
        " ON o.customer = c.id GROUP BY c.region",
        f"SELECT c.region, SUM(g.n) AS n, MAX(g.most) AS total FROM customers c LEFT JOIN ({_MOST}) g"
        " ON c.id = g.customer GROUP BY c.region",
        f"SELECT CAST(most AS STRING) AS region, COUNT(*) AS n, SUM(n) AS total FROM ({_MOST}) GROUP BY most",
        f"SELECT CAST(r AS STRING) AS region, COUNT(*) AS n, MAX(amount) AS total FROM ({_RANKED}) GROUP BY r",
        f"SELECT CAST(customer AS STRING) AS region, COUNT(*) AS n, MAX(amount) AS total FROM ({_FIRST})"
        " GROUP BY customer",
    ),
    "keyed": ("SELECT customer, amount FROM orders WHERE x = 1",),
}
DECLARED = {"keyed": "(customer, amount, PRIMARY KEY (customer))"}
REFRESHES = ("REFRESH CONTINUOUS", "REFRESH CONTINUOUS", "REFRESH EVERY 5 SECONDS", "REFRESH ON DEMAND")
POLICIES = ("", "", "REFRESH POLICY FULL", "REFRESH POLICY INCREMENTAL")
REGIONS = ("north", "south", None)
LARGE = 6_000_000_000_000_000_000  # two of them overflow a BIGINT
# What a process may do that has not got the maintainer's lock.
WITHOUT_LOCK = (
    "write", "write", "write", "epoch", "epoch", "advance", "advance", "advance", "drop", "drop", "suspend", "unfilled",
    "rename", "widen", "snapshot",
)  # fmt: skip
# The failpoints that an action may come by, by their first word.
REACHED = {
    "write": ("commit",), "truncate": ("commit",), "epoch": ("publish",), "advance": ("commit", "publish"),
    "purge": ("purge",), "refresh": ("publish", "purge", "build", "remove"),
    "maintain": ("publish", "purge", "build", "remove"), "sql": ("catalog", "publish", "build", "remove"),
}  # fmt: skip
# Where a lender may go on or go while the borrower is filled.
LENDING = ("publish:before", "publish:after", "build:held", "build:begun", "build:before-swap", "build:before-swap")
# And what while another process has the write lock of the views, or of the base.
UNDER_LOCK = {"publish:before-commit": ("write",), "catalog:before-commit": ("epoch", "epoch", "snapshot")}
WEIGHTS = {
    "write": 14, "refresh": 5, "maintain": 4, "epoch": 5, "create": 6, "replace": 3, "alter": 1, "drop": 1,
    "suspend": 1, "resume": 2, "rename": 1, "full": 1, "unfilled": 1, "widen": 1, "truncate": 1, "purge": 2, "wait": 2,
    "snapshot": 2, "policy": 1,
}  # fmt: skip


def generate(seed: int, actions: int = 30) -> list[Action]:
    """Return the actions of ``seed``: first rows and two views, then anything.

    Args:
        seed: any number.
        actions: how many there are.
    """
    drawing = _Drawing(seeded(seed))
    drawn = [drawing.write(), drawing.create(), drawing.create()]
    while len(drawn) < actions:
        drawn.append(drawing.action())
    return drawn


def generate_sharing(seed: int, actions: int = 30) -> list[Action]:
    """Return actions of ``seed`` that fill one view again and again while it borrows what another keeps.

    Meanwhile tables are written, the lender goes on, stands still, goes or is filled anew, and processes die.

    Args:
        seed: any number.
        actions: how many there are.
    """
    drawing = _Drawing(seeded(seed))
    drawn = [drawing.write(), drawing.write(), drawing.share("CREATE", "lends")]
    while len(drawn) < actions:
        drawn += drawing.sharing()
    return drawn[:actions]


class _Drawing:
    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._widened = 0

    def action(self) -> Action:
        """Draw an action, perhaps with something that happens at a failpoint."""
        kinds = list(WEIGHTS)
        kind = self._chance.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        action = {**getattr(self, kind)(), "who": self._chance.randrange(2)}
        points = [name for name in NAMES if name.startswith(REACHED.get(action["do"], ()))]
        if points and self._chance.random() < 0.45:
            action["at"] = self._point(self._chance.choice(points), int(action["who"]))
        return action

    def _point(self, name: str, who: int) -> Action:
        arrival = self._chance.choice((1, 1, 1, 2, 3))
        if self._chance.random() < 0.5:
            return {"name": name, "arrival": arrival, "then": "crash"}
        kind = self._chance.choice(UNDER_LOCK.get(name, WITHOUT_LOCK))
        times = self._chance.choice((1, 1, 1, 4))
        return {"name": name, "arrival": arrival, "times": times, "then": {**getattr(self, kind)(), "who": 1 - who}}

    # ---- sharing ----

    def share(self, how: str, name: str) -> Action:
        """A view of ``name`` that refreshes with the other one."""
        query = self._chance.choice(QUERIES[name])
        policy = self._chance.choice(POLICIES)
        return _sql(f"{how} MATERIALIZED VIEW {name} REFRESH CONTINUOUS {policy} AS {query}")

    def sharing(self) -> list[Action]:
        """One view is filled, with something happening at a failpoint; then it goes, or follows for a while."""
        chance = self._chance
        drawn = [{**self.share("CREATE OR REPLACE", "lends")}] if chance.random() < 0.2 else []
        how = "CREATE" if chance.random() < 0.8 else "CREATE OR REPLACE"
        drawn.append({**self.share(how, "borrows"), "at": self._disturbance(), "who": chance.randrange(2)})
        if chance.random() < 0.3:
            drawn.append({"do": "sql", "text": "DROP MATERIALIZED VIEW IF EXISTS lends"})
            drawn.append({**self.write(), "do": "advance"})
            drawn.append(self.share("CREATE", "lends"))
        drawn.append({"do": "refresh", "views": []})
        drawn.append(getattr(self, chance.choice(("write", "advance", "truncate", "purge", "widen")))())
        if chance.random() < 0.8:
            drawn.append({"do": "sql", "text": "DROP MATERIALIZED VIEW IF EXISTS borrows"})
        return drawn

    def _disturbance(self) -> Action:
        """The lender goes on, stands still, goes or is filled anew while the other view is filled, or that dies."""
        chance = self._chance
        point = {
            "name": chance.choice(LENDING),
            "arrival": chance.choice((1, 1, 2, 3, 4, 5)),
            "times": chance.choice((1, 2, 3, 6)),
        }
        lends = "MATERIALIZED VIEW lends"
        then: Any = chance.choices(
            (
                {**self.write(), "do": "advance"},
                "crash",
                _sql(f"DROP {lends}"),
                _sql(f"ALTER {lends} SUSPEND"),
                _sql(f"ALTER {lends} RESUME"),
                _sql(f"REFRESH {lends} FULL"),
                self.share("CREATE OR REPLACE", "lends"),
                self.widen(),
            ),
            (12, 3, 1, 1, 1, 1, 1, 1),
        )[0]
        return {**point, "then": then if then == "crash" else {**then, "who": 1}}

    # ---- data ----

    def write(self) -> Action:
        """A transaction on orders and customers."""
        return {"do": "write", "operations": [self._operation() for _ in range(self._chance.randint(1, 5))]}

    def _operation(self) -> list[Any]:
        chance = self._chance
        if chance.random() < 0.25:
            key = chance.randrange(4)
            if chance.random() < 0.3:
                return ["delete", "customers", key]
            return ["put", "customers", {"id": key, "region": chance.choice(REGIONS)}]
        key = chance.randrange(8)
        if chance.random() < 0.25:
            return ["delete", "orders", key]
        row = {
            "id": key,
            "customer": chance.choice((0, 1, 2, 3, None)),
            "amount": LARGE if chance.random() < 0.04 else chance.choice((-1, 0, 5, 7, None)),
            "x": chance.choices((0, 1, 2, None), (1, 6, 5, 2))[0],
        }
        return ["put", "orders", row]

    def truncate(self) -> Action:
        """All rows of a table go."""
        return {"do": "truncate", "table": self._chance.choice(("orders", "customers"))}

    # ---- maintenance ----

    def refresh(self) -> Action:
        """Some views, or all."""
        views = [] if self._chance.random() < 0.6 else [self._chance.choice(list(QUERIES))]
        return {"do": "refresh", "views": views}

    def maintain(self) -> Action:
        """Some rounds of a maintainer."""
        return {"do": "maintain", "rounds": self._chance.randint(1, 4)}

    def epoch(self) -> Action:
        """One epoch of a cadence."""
        return {"do": "epoch", "cadence": self._chance.randrange(6)}

    def advance(self) -> Action:
        """A transaction, and one epoch of each cadence, as by a maintainer that does not know of the other."""
        return {**self.write(), "do": "advance"}

    def purge(self) -> Action:
        """Purge the log."""
        return {"do": "purge"}

    def wait(self) -> Action:
        """Time passes."""
        return {"do": "wait", "seconds": self._chance.choice((0.5, 2.0, 6.0))}

    def snapshot(self) -> Action:
        """Read all views at one moment."""
        return {"do": "snapshot"}

    # ---- definitions ----

    def create(self, head: str = "CREATE MATERIALIZED VIEW", tail: str = "") -> Action:
        """A view of any name, with any of its queries."""
        name = self._chance.choice(list(QUERIES))
        query = self._chance.choice(QUERIES[name])
        refresh = f"{self._chance.choice(REFRESHES)} {self._chance.choice(POLICIES)}"
        return _sql(f"{head} {name} {DECLARED.get(name, '')} {refresh} {tail} AS {query}")

    def replace(self) -> Action:
        """The same, in place of what there is."""
        return self.create("CREATE OR REPLACE MATERIALIZED VIEW")

    def unfilled(self) -> Action:
        """The same, left to the maintainer to fill."""
        return self.create(self._chance.choice(("CREATE OR REPLACE", "CREATE")) + " MATERIALIZED VIEW", "WITH NO DATA")

    def alter(self) -> Action:
        """Another query under the old clauses."""
        name = self._chance.choice(list(QUERIES))
        return _sql(f"ALTER MATERIALIZED VIEW {name} AS {self._chance.choice(QUERIES[name])}")

    def drop(self) -> Action:
        """A view goes."""
        return _sql(f"DROP MATERIALIZED VIEW IF EXISTS {self._chance.choice(list(QUERIES))}")

    def suspend(self) -> Action:
        """A view stands still."""
        return _sql(f"ALTER MATERIALIZED VIEW {self._chance.choice(list(QUERIES))} SUSPEND")

    def resume(self) -> Action:
        """A view that stood still goes on."""
        return _sql(f"ALTER MATERIALIZED VIEW {self._chance.choice(list(QUERIES))} RESUME")

    def full(self) -> Action:
        """A view is filled anew."""
        return _sql(f"REFRESH MATERIALIZED VIEW {self._chance.choice(list(QUERIES))} FULL")

    def policy(self) -> Action:
        """A view gets another policy."""
        policy = self._chance.choice(("AUTO", "FULL", "INCREMENTAL"))
        return _sql(f"ALTER MATERIALIZED VIEW {self._chance.choice(list(QUERIES))} SET REFRESH POLICY {policy}")

    def rename(self) -> Action:
        """A view changes its name, or gets its old one back."""
        name = self._chance.choice(list(QUERIES))
        names = [name, f"{name}_2"]
        self._chance.shuffle(names)
        return _sql(f"ALTER MATERIALIZED VIEW {names[0]} RENAME TO {names[1]}")

    def widen(self) -> Action:
        """A table gets another column."""
        self._widened += 1
        return _sql(f"ALTER TABLE orders ADD COLUMN extra_{self._widened} INT DEFAULT {self._widened}")


def _sql(text: str) -> Action:
    return {"do": "sql", "text": " ".join(text.split())}
