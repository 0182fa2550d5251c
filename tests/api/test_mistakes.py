"""What users get wrong, and what each is told: what, where (line and column), and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import viewkeeper as vk
from tests.mistakes import assert_told
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError, ViewkeeperError

ORDERS = "CREATE TABLE orders (id BIGINT, customer_id BIGINT NOT NULL, amount DECIMAL(12,2), status STRING, placed "
ORDERS += "TIMESTAMP, PRIMARY KEY (id))"
CUSTOMERS = "CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING, region STRING)"
V = "CREATE MATERIALIZED VIEW w"

# SQL in which ^ stands before the place, the code, and what the message tells to do.
MISTAKES = [
    ("SELECT ^status, COUNT(*) FROM orders", "MISSING_GROUP_BY", "group by it"),
    ("SELECT COUNT(*) FROM orders GROUP BY ^()", "SYNTAX_ERROR", "leave it out, or write GROUPING SETS (())"),
    ("SELECT COUNT(*) FROM orders GROUP BY ^ROLLUP ()", "SYNTAX_ERROR", "name columns"),
    ("SELECT COUNT(*) FROM orders GROUP BY ROLLUP (id, ^())", "SYNTAX_ERROR", "() holds nothing: leave it out"),
    ("SELECT ^id FROM orders UNION SELECT id, status FROM orders", "NUM_COLUMNS_MISMATCH", "query 2 has 2"),
    # names
    ("SELECT ^amuont FROM orders", "UNRESOLVED_COLUMN", "Did you mean 'amount'?"),
    ("SELECT *\nFROM ^ordres", "TABLE_OR_VIEW_NOT_FOUND", "Did you mean 'orders'?"),
    ("SELECT * FROM ^db.orders", "TABLE_OR_VIEW_NOT_FOUND", "Did you mean 'orders'?"),
    ("SELECT ^orders.id FROM orders o", "UNRESOLVED_COLUMN", "Did you mean 'o.id'?"),
    ("SELECT ^x.* FROM orders", "UNRESOLVED_QUALIFIER", "There are 'orders'."),
    ("SELECT id FROM orders WHERE status = ^open", "UNRESOLVED_COLUMN", "in single quotes: 'open'"),
    ("SELECT amount * 2 AS double FROM orders WHERE ^double > 5", "UNRESOLVED_COLUMN", "write the expression here"),
    ("SELECT status, COUNT(*) AS n FROM orders WHERE ^n > 1 GROUP BY 1", "UNRESOLVED_COLUMN", "subquery in FROM"),
    ("SELECT ^id FROM orders JOIN customers c ON customer_id = c.id", "AMBIGUOUS_REFERENCE", "as orders.id"),
    ("DESCRIBE ^ordrs", "TABLE_OR_VIEW_NOT_FOUND", "Did you mean 'orders'?"),
    ("SELECT DISTINCT ^ON (status) * FROM orders", "SYNTAX_ERROR", "QUALIFY ROW_NUMBER()"),
    ("REFRESH MATERIALIZED VIEW ^vv", "VIEW_NOT_FOUND", "Did you mean 'v'?"),
    ("DROP TABLE ^order", "TABLE_NOT_FOUND", "Did you mean 'orders'?"),
    ("INSERT INTO orders (id, ^custmer_id) VALUES (1, 1)", "UNKNOWN_COLUMN", "did you mean 'customer_id'?"),
    ("UPDATE orders SET ^amuont = 5", "UNKNOWN_COLUMN", "did you mean 'amount'?"),
    (f"{V} AS SELECT id FROM ^w", "TABLE_OR_VIEW_NOT_FOUND", "There are 'orders', 'customers', 'v'."),
    # words
    ("^SELCT * FROM orders", "SYNTAX_ERROR", "Did you mean SELECT?"),
    ("SELECT * ^FORM orders", "SYNTAX_ERROR", "did you mean FROM?"),
    ("SELECT id FROM orders ^WHRE id = 1", "SYNTAX_ERROR", "did you mean WHERE?"),
    ("SELECT id FROM orders\n^GRUOP BY id", "SYNTAX_ERROR", "did you mean GROUP?"),
    ("SELECT id FROM orders ^ODER BY id", "SYNTAX_ERROR", "did you mean ORDER?"),
    ("SELECT id FROM orders ^LIMTI 5", "SYNTAX_ERROR", "did you mean LIMIT?"),
    ("SELECT o.id FROM orders o ^JION customers c ON o.id = c.id", "SYNTAX_ERROR", "did you mean JOIN?"),
    ("SELECT o.id FROM orders o LEFT ^JION customers c ON o.id = c.id", "SYNTAX_ERROR", "did you mean JOIN?"),
    ("SELECT id FROM orders WHERE id = 1 ^ADN id = 2", "SYNTAX_ERROR", "did you mean AND?"),
    ("SELECT CASE ^WHN id = 1 THEN 2 END FROM orders", "SYNTAX_ERROR", "did you mean WHEN?"),
    ("SELECT id FROM orders GROUP ^id", "SYNTAX_ERROR", "BY is missing behind GROUP"),
    ("SELECT id FROM orders ORDER ^id", "SYNTAX_ERROR", "BY is missing behind ORDER"),
    ("SELECT id FROM orders GROUP BY id ^WHERE id = 1", "SYNTAX_ERROR", "WHERE belongs before GROUP BY: SELECT"),
    ("SELECT id FROM orders WHERE id = 1 ^WHERE id = 2", "SYNTAX_ERROR", "WHERE stands twice in this query: keep one"),
    ("SELECT id FROM orders LIMIT 5 ^UNION SELECT id FROM orders", "SYNTAX_ERROR", "in parentheses"),
    ("DELETE FROM orders WHERE id = 1 ^LIMIT 5", "SYNTAX_ERROR", "without clauses of a query"),
    ("SELECT id AS ^'key' FROM orders", "SYNTAX_ERROR", "in backticks or bare: `key`"),
    ("SELECT CAST(id AS ^TEXT) FROM orders", "SYNTAX_ERROR", "write STRING"),
    ("CREATE ^MATERIALISED VIEW w AS SELECT 1", "SYNTAX_ERROR", "Did you mean MATERIALIZED?"),
    ("CREATE MATERIALIZED ^VEIW w AS SELECT 1", "SYNTAX_ERROR", "Did you mean VIEW?"),
    ("SHOW ^TABELS", "SYNTAX_ERROR", "Did you mean TABLES?"),
    (f"{V} REFRESH ^CONTINOUS AS SELECT id FROM orders", "SYNTAX_ERROR", "Did you mean CONTINUOUS?"),
    (f"{V} REFRESH EVERY 5 ^SECNDS AS SELECT id FROM orders", "SYNTAX_ERROR", "Did you mean SECONDS?"),
    (f"{V} REFRESH EVERY ^0 SECONDS AS SELECT id FROM orders", "INVALID_INTERVAL", "a number above 0"),
    # commas and brackets
    ("SELECT id amount ^status FROM orders", "SYNTAX_ERROR", "Is a comma missing before 'status'?"),
    ("WITH a AS (SELECT id FROM orders) ^b AS (SELECT 2) SELECT * FROM a", "SYNTAX_ERROR", "Is a comma missing"),
    ("SELECT id, amount^, FROM orders", "SYNTAX_ERROR", "leave the comma out"),
    ("SELECT id^,, amount FROM orders", "SYNTAX_ERROR", "leave the comma out"),
    ("SELECT COALESCE(id^, ) FROM orders", "SYNTAX_ERROR", "leave the comma out"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x STRING^,)", "SYNTAX_ERROR", "leave the comma out"),
    ("CREATE TABLE b (id INT PRIMARY KEY ^x STRING)", "SYNTAX_ERROR", "expected ',' or ')'"),
    ("SELECT id FROM orders WHERE (id = 1^", "SYNTAX_ERROR", "expected ')' for the '(' at line 2, column 30"),
    ("SELECT id FROM orders WHERE id = 1^)", "SYNTAX_ERROR", "expected the end of the statement"),
    ("SELECT id FROM orders ^WHERE", "SYNTAX_ERROR", "An expression is missing at the end"),
    ("SELECT id FROM orders WHERE id ^=", "SYNTAX_ERROR", "An expression is missing at the end"),
    ("SELECT CASE WHEN id = 1 THEN ^2 FROM orders", "SYNTAX_ERROR", "END after CASE is missing"),
    # quotes, comments, templates
    ("SELECT * FROM ^'orders'", "SYNTAX_ERROR", "names go in backticks or bare: `orders`"),
    ('SELECT * FROM orders o JOIN ^"customers" c ON o.id = c.id', "SYNTAX_ERROR", "names go in backticks"),
    ('CREATE TABLE ^"b" (id INT PRIMARY KEY)', "SYNTAX_ERROR", "names go in backticks"),
    ("CREATE TABLE my^-table (id INT PRIMARY KEY)", "SYNTAX_ERROR", "in backticks"),
    ("SELECT ^'open", "SYNTAX_ERROR", "close it with the same quote"),
    ("SELECT ^`open", "SYNTAX_ERROR", "close it with a backtick"),
    ("SELECT 1 ^/* comment", "SYNTAX_ERROR", "close it with */"),
    ("SELECT * FROM orders WHERE status = ^‘open’", "SYNTAX_ERROR", "write ' around texts"),
    ("SELECT ^“status” FROM orders", "SYNTAX_ERROR", "write ' around texts and ` around names"),
    ("SELECT id ^– 1 FROM orders", "SYNTAX_ERROR", "write - for minus"),
    ("SELECT * FROM ^{{ ref('orders') }}", "SYNTAX_ERROR", "dbt compile"),
    ("SELECT id FROM orders ^{% if x %} WHERE id = 1 {% endif %}", "SYNTAX_ERROR", "dbt compile"),
    # parameters
    (f"{V} AS SELECT * FROM orders WHERE amount > ^:p", "UNBOUND_SQL_PARAMETER", ":p is a parameter, and a view takes"),
    (f"{V} AS SELECT * FROM orders WHERE amount > ^?", "UNBOUND_SQL_PARAMETER", "write the value in its place"),
    ("SELECT id FROM orders WHERE id = ^:id", "UNBOUND_SQL_PARAMETER", "pass {'id': value}"),
    ("SELECT id FROM orders WHERE id = ^?", "UNBOUND_SQL_PARAMETER", "write :name"),
    ("SELECT id FROM orders WHERE id = ^%s", "SYNTAX_ERROR", "write :name"),
    # grouping and types
    ("SELECT status, ^amount FROM orders GROUP BY status", "MISSING_AGGREGATION", "group by it, or take MIN(amount)"),
    ("SELECT ^status, SUM(amount) AS s FROM orders", "MISSING_GROUP_BY", "group by it"),
    ("SELECT status FROM orders WHERE ^SUM(amount) > 5 GROUP BY status", "INVALID_WHERE_CONDITION", "use HAVING"),
    ("SELECT id FROM orders WHERE ^amount", "DATATYPE_MISMATCH", "must be BOOLEAN, not DECIMAL(12,2)"),
    ("SELECT id FROM orders WHERE ^placed > 5", "DATATYPE_MISMATCH", "Cast the arguments explicitly"),
    ("SELECT ^upper(status, 1) FROM orders", "DATATYPE_MISMATCH", "it takes 1 argument. Give as many"),
    ("SELECT DATE^'2024-13-01' AS d", "INVALID_LITERAL", "write it as DATE'2024-12-31'"),
    ("SELECT id FROM orders LIMIT ^'a'", "INVALID_LIMIT", "takes a whole number from 0"),
    # Postgres, MySQL and others
    ("CREATE TABLE b (id ^SERIAL PRIMARY KEY)", "UNSUPPORTED_TYPE", "use INT, and give each row its number"),
    ("CREATE TABLE b (id INT ^AUTO_INCREMENT PRIMARY KEY)", "COLUMN_CLAUSE_NOT_SUPPORTED", "give each row its number"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x ^TEXT)", "UNSUPPORTED_TYPE", "use STRING"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x ^VARCHAR)", "UNSUPPORTED_TYPE", "use STRING"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x ^UUID)", "UNSUPPORTED_TYPE", "use STRING"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x ^JSONB)", "UNSUPPORTED_TYPE", "use STRING for JSON text"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x ^BYTEA)", "UNSUPPORTED_TYPE", "use BINARY"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x ^BOOL)", "UNSUPPORTED_TYPE", "use BOOLEAN"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x ^TIMESTAMPTZ)", "UNSUPPORTED_TYPE", "use TIMESTAMP"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x TIMESTAMP ^WITH TIME ZONE)", "UNSUPPORTED_TYPE", "leave WITH TIME ZONE"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x DOUBLE ^PRECISION)", "UNSUPPORTED_TYPE", "leave PRECISION out"),
    ("CREATE TABLE b (id INT PRIMARY KEY, x INT^[])", "UNSUPPORTED_TYPE", "ARRAY<INT>"),
    ("CREATE TABLE ^b (id INT, x STRING)", "PRIMARY_KEY_REQUIRED", "Add PRIMARY KEY (id)"),
    ("CREATE TABLE b (id INT, PRIMARY KEY (^idd))", "COLUMN_NOT_FOUND", "did you mean 'id'?"),
    ("CREATE TABLE b (id^, x)", "SYNTAX_ERROR", "expected a type"),
    ("CREATE TABLE b ^AS SELECT * FROM orders", "CREATE_TABLE_AS_SELECT_NOT_SUPPORTED", "INSERT INTO"),
    ("CREATE TABLE ^IF EXISTS b (id INT PRIMARY KEY)", "SYNTAX_ERROR", "Write CREATE TABLE IF NOT EXISTS"),
    ("CREATE TABLE ^orders (id INT PRIMARY KEY)", "TABLE_EXISTS", "drop it first, or write IF NOT EXISTS"),
    ("INSERT INTO orders (id) VALUES (1) ^ON CONFLICT DO NOTHING", "SYNTAX_ERROR", "use MERGE INTO, or db.put"),
    ("INSERT INTO orders (id) VALUES (1) ^ON DUPLICATE KEY UPDATE id = 1", "SYNTAX_ERROR", "use MERGE INTO, or db.put"),
    ("INSERT INTO orders (id) VALUES (1) ^RETURNING id", "SYNTAX_ERROR", "leave RETURNING out"),
    ("INSERT INTO orders ^VALUES (1, 2)", "INSERT_COLUMN_ARITY_MISMATCH", "name the columns"),
    ("INSERT INTO orders (id, ^customer_id) VALUES (1, TRUE)", "INCOMPATIBLE_DATA_FOR_TABLE", "write CAST"),
    ("INSERT INTO orders (id) ^VALUES (1)", "NULL_IN_NOT_NULL_COLUMN", "give it a value"),
    ("INSERT INTO orders (id, customer_id) ^VALUES (1, 1), (1, 2)", "DUPLICATE_KEY", "put replaces rows"),
    ("DELETE FROM orders ^WHERE amount", "DATATYPE_MISMATCH", "must be BOOLEAN, not DECIMAL(12,2): compare"),
    ("INSERT ^orders VALUES (1)", "SYNTAX_ERROR", "expected INTO"),
    ("INSERT INTO ^v VALUES ('x', 1)", "NOT_A_TABLE", "write to the tables that it reads"),
    ("^UPSERT INTO orders VALUES (1)", "SYNTAX_ERROR", "Write MERGE INTO, or db.put"),
    ("UPDATE orders ^WHERE id = 1 SET amount = 1", "SYNTAX_ERROR", "expected SET"),
    ("UPDATE orders SET amount = 5 ^FROM customers", "UPDATE_FROM_NOT_SUPPORTED", "use MERGE INTO"),
    ("DELETE FROM orders ^USING customers WHERE id = 1", "DELETE_USING_NOT_SUPPORTED", "use MERGE INTO"),
    ("DELETE ^* FROM orders", "SYNTAX_ERROR", "expected FROM"),
    ("SELECT ^TOP 5 id FROM orders", "SYNTAX_ERROR", "write LIMIT"),
    ("SELECT id FROM orders WHERE status ^~ 'op'", "SYNTAX_ERROR", "write RLIKE"),
    # views
    ("^CREATE VIEW w AS SELECT * FROM orders", "PLAIN_VIEW_NOT_SUPPORTED", "write CREATE MATERIALIZED VIEW"),
    ("^DROP VIEW v", "PLAIN_VIEW_NOT_SUPPORTED", "write MATERIALIZED VIEW in place of VIEW"),
    ("^REFRESH VIEW v", "PLAIN_VIEW_NOT_SUPPORTED", "write MATERIALIZED VIEW in place of VIEW"),
    ("REFRESH MATERIALIZED VIEW ^CONCURRENTLY v", "VIEW_CLAUSE_NOT_SUPPORTED", "leave CONCURRENTLY out"),
    ("REFRESH ^v", "SYNTAX_ERROR", "expected MATERIALIZED VIEW"),
    ("DROP TABLE ^v", "NOT_A_TABLE", "use DROP MATERIALIZED VIEW v"),
    ("DROP MATERIALIZED VIEW ^orders", "NOT_A_VIEW", "a base table"),
    ("DROP TABLE ^orders", "TABLE_IN_USE", "Drop them first, or use CASCADE"),
    ("CREATE MATERIALIZED VIEW ^AS SELECT id FROM orders", "SYNTAX_ERROR", "CREATE MATERIALIZED VIEW v AS SELECT"),
    (f"{V} ^SELECT id FROM orders", "SYNTAX_ERROR", "expected AS before the query"),
    ("CREATE MATERIALIZED VIEW ^v AS SELECT id FROM orders", "VIEW_EXISTS", "use CREATE OR REPLACE"),
    (f"{V} ^WITH DATA AS SELECT id FROM orders", "VIEW_CLAUSE_NOT_SUPPORTED", "leave WITH DATA out"),
    (f"{V} AS SELECT id FROM orders ^WITH DATA", "SYNTAX_ERROR", "leave WITH DATA out"),
    (f"{V} AS SELECT id FROM orders ^WITH NO DATA", "SYNTAX_ERROR", "stands before AS"),
    (f"{V} (a, b) AS SELECT ^id FROM orders", "CREATE_VIEW_COLUMN_ARITY_MISMATCH", "names 2 columns, its query has 1"),
    (f"{V} (a, PRIMARY KEY (^b)) AS SELECT id FROM orders", "COLUMN_NOT_FOUND", "name some of a"),
    (f"{V} AS SELECT ^o.id, c.id FROM orders o JOIN customers c ON customer_id = c.id", "COLUMN_ALREADY_EXISTS", "AS"),
    (f"{V} AS SELECT id, ^now() AS t FROM orders", "NONDETERMINISTIC_EXPRESSION", "Store the value in a column"),
    (f"{V} AS SELECT id, TIMESTAMP^'12:30' AS t FROM orders", "INVALID_LITERAL", "write a date before the time"),
    ("ALTER MATERIALIZED VIEW v ^RENAME w", "SYNTAX_ERROR", "RENAME TO"),
    ("ALTER MATERIALIZED VIEW v ^PAUSE", "SYNTAX_ERROR", "SUSPEND or RESUME"),
    ("SHOW ^VIEWS", "SYNTAX_ERROR", "Write SHOW MATERIALIZED VIEWS"),
    ("SHOW TABLES ^LIKE 'o%'", "SYNTAX_ERROR", "SHOW TABLES lists all of this store"),
    ("EXPLAIN ^ANALYZE SELECT * FROM orders", "EXPLAIN_NOT_SUPPORTED", "leave ANALYZE out"),
    ("EXPLAIN ^v", "SYNTAX_ERROR", "expected CREATE MATERIALIZED VIEW, MATERIALIZED VIEW or a query"),
    ("VERIFY ^v", "SYNTAX_ERROR", "expected MATERIALIZED VIEW"),
    ("^VACUUM", "STATEMENT_NOT_SUPPORTED", "the statements are"),
    ("ALTER TABLE orders ADD ^c INT", "SYNTAX_ERROR", "ADD COLUMN name TYPE"),
    ("ALTER TABLE orders ADD COLUMN ^status INT", "COLUMN_EXISTS", "another name"),
    ("ALTER TABLE orders ADD COLUMN ^c INT NOT NULL", "DEFAULT_REQUIRED", "give a DEFAULT"),
    ("MERGE INTO orders t USING customers s ON t.id = ^s.idd WHEN MATCHED THEN DELETE", "UNRESOLVED_COLUMN", "s.id"),
]  # fmt: skip

FINE = [
    "SELECT 1;;",
    ";",
    "-- nothing",
    "SELECT 1 -- behind",
    "/* before */ SELECT /* within */ 1",
    "DESC v",
    "SHOW CREATE VIEW v",
    "SHOW CREATE MATERIALIZED VIEW v",
    'SELECT id FROM orders WHERE status = "open"',
    "SELECT id AS from FROM orders",
    "SELECT '‘quoted’ – {{ text }}' AS t",
    f"SELECT {' + '.join(['1'] * 100)} AS n",
    f"SELECT id FROM orders WHERE id IN ({', '.join(map(str, range(5000)))})",
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A store with two tables and a view, which no mistake changes."""
    place = tmp_path_factory.mktemp("mistakes") / "shop.vk"
    with vk.connect(place, executor="local", durability="none") as db:
        db.sql(f"{ORDERS}; {CUSTOMERS}")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT status, COUNT(*) AS n FROM orders GROUP BY status")
        yield db


@pytest.mark.parametrize(("marked", "code", "remedy"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_told_with_its_place_and_what_to_do(shop: Database, marked: str, code: str, remedy: str) -> None:
    assert_told(shop, marked, code, remedy)
    assert (shop.tables(), shop.views()) == (["customers", "orders"], ["v"])


@pytest.mark.parametrize("sql", FINE, ids=[sql[:40] for sql in FINE])
def test_what_looks_odd_and_is_fine(shop: Database, sql: str) -> None:
    shop.sql(sql)


def test_long_lines_are_cut_around_the_place(shop: Database) -> None:
    with pytest.raises(ViewkeeperError) as caught:
        shop.sql(f"SELECT {', '.join(f'id + {i}' for i in range(40))}, amuont FROM orders")
    line, mark = caught.value.__notes__[0].split("\n")
    assert line[2] == "…"
    assert len(line) <= 104
    assert line[mark.index("^") :].startswith("amuont FROM orders")


@pytest.mark.parametrize(
    ("sql", "code", "needles"),
    [
        ("SELECT 1 / 0 AS x", "DIVIDE_BY_ZERO", ("The query cannot", "NULLIF(…, 0)")),
        ("SELECT id / 0 AS x FROM orders", "DIVIDE_BY_ZERO", ("{'id': 1}", "NULLIF(…, 0)")),
        ("SELECT CAST(status AS INT) AS x FROM orders", "CAST_INVALID_INPUT", ("{'id': 1}", "TRY_CAST")),
        ("SELECT id * 9223372036854775807 * 2 AS x FROM orders", "ARITHMETIC_OVERFLOW", ("{'id': 1}", "wider type")),
        ("UPDATE orders SET amount = amount / 0", "DIVIDE_BY_ZERO", ("id = 1", "NULLIF(…, 0)", "Nothing was changed")),
        (
            f"{V} AS SELECT id, CAST('12:30' AS TIMESTAMP) AS t FROM orders",
            "VIEW_FAILED",
            ("TIME_WITHOUT_DATE",),
        ),
        (f"{V} AS SELECT id, CAST(status AS INT) AS n FROM orders", "VIEW_FAILED", ("{'id': 1}", "TRY_CAST")),
    ],
)
def test_rows_that_cannot_be_computed_tell_the_row_and_the_remedy(
    db: Database, sql: str, code: str, needles: tuple[str, ...]
) -> None:
    db.sql(f"{ORDERS}; INSERT INTO orders VALUES (1, 1, 2.00, 'open', NULL)")
    with pytest.raises(ViewkeeperError) as caught:
        db.sql(sql)
    assert caught.value.code == code
    assert [needle for needle in needles if needle not in caught.value.message] == []


def test_parameters_without_names_are_told_how_they_are_passed(shop: Database) -> None:
    wrong: Any = (1,)
    with pytest.raises(InputError, match=r"WRONG_TYPE.*write :name in the SQL and pass \{'name': value\}, not \(1,\)"):
        shop.sql("SELECT * FROM orders WHERE id = ?", wrong)
