import pytest

from viewkeeper.errors import UnsupportedSql
from viewkeeper.statements import parse_script
from viewkeeper.statements.refusals import REFUSALS

V = "CREATE MATERIALIZED VIEW v"
T = "CREATE TABLE t (k INT PRIMARY KEY"

# SQL, code, the words at the place, and what the message tells to do instead.
CASES = [
    (f"{V} REFRESH ON COMMIT AS SELECT 1", "REFRESH_ON_COMMIT_NOT_YET", "REFRESH ON COMMIT", "CONTINUOUS"),
    (f"{V} WITH (max_staleness = INTERVAL '5' SECONDS) AS SELECT 1", "MAX_STALENESS_NOT_YET", "max_staleness", "EVERY"),
    (f"{V} SCHEDULE CRON '0 * * * *' AS SELECT 1", "SCHEDULE_CRON_NOT_SUPPORTED", "CRON", "EVERY"),
    (f"{V} PARTITIONED BY (a) AS SELECT 1", "VIEW_CLAUSE_NOT_SUPPORTED", "PARTITIONED BY", "leave it out"),
    (f"{V} TBLPROPERTIES ('a' = 'b') AS SELECT 1", "VIEW_CLAUSE_NOT_SUPPORTED", "TBLPROPERTIES", "leave it out"),
    ("ALTER MATERIALIZED VIEW v SET REFRESH ON DEMAND", "SET_REFRESH_NOT_YET", "SET REFRESH", "CREATE OR REPLACE"),
    ("ALTER MATERIALIZED VIEW v DROP SCHEDULE", "SET_REFRESH_NOT_YET", "DROP SCHEDULE", "CREATE OR REPLACE"),
    ("CREATE INDEX i ON v (a)", "CREATE_INDEX_NOT_YET", "CREATE INDEX", "CREATE MATERIALIZED VIEW"),
    ("SUBSCRIBE v FROM 5", "SUBSCRIBE_NOT_YET", "SUBSCRIBE", "wait_for"),
    ("BEGIN", "TRANSACTION_STATEMENT_NOT_SUPPORTED", "BEGIN", "db.transaction()"),
    ("begin transaction", "TRANSACTION_STATEMENT_NOT_SUPPORTED", "begin", "db.transaction()"),
    ("START TRANSACTION", "TRANSACTION_STATEMENT_NOT_SUPPORTED", "START", "db.transaction()"),
    ("COMMIT", "TRANSACTION_STATEMENT_NOT_SUPPORTED", "COMMIT", "db.transaction()"),
    ("ROLLBACK", "TRANSACTION_STATEMENT_NOT_SUPPORTED", "ROLLBACK", "db.transaction()"),
    ("CREATE VIEW v AS SELECT 1", "PLAIN_VIEW_NOT_SUPPORTED", "CREATE VIEW", "MATERIALIZED VIEW"),
    ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", "PLAIN_VIEW_NOT_SUPPORTED", "CREATE OR", "MATERIALIZED VIEW"),
    ("DROP VIEW v", "PLAIN_VIEW_NOT_SUPPORTED", "DROP VIEW", "MATERIALIZED VIEW"),
    ("ALTER VIEW v AS SELECT 1", "PLAIN_VIEW_NOT_SUPPORTED", "ALTER VIEW", "MATERIALIZED VIEW"),
    ("CREATE OR REPLACE TABLE t (k INT)", "REPLACE_TABLE_NOT_SUPPORTED", "CREATE OR", "DROP TABLE"),
    ("CREATE STREAMING TABLE t", "STREAMING_TABLE_NOT_SUPPORTED", "CREATE STREAMING", "CREATE MATERIALIZED VIEW"),
    ("USE db", "NAMESPACE_NOT_SUPPORTED", "USE", "vk.connect"),
    ("CREATE DATABASE d", "NAMESPACE_NOT_SUPPORTED", "CREATE DATABASE", "vk.connect"),
    ("SET x = 1", "STATEMENT_NOT_SUPPORTED", "SET", "queries"),
    ("CACHE TABLE t", "STATEMENT_NOT_SUPPORTED", "CACHE", "queries"),
    ("DESCRIBE FUNCTION f", "STATEMENT_NOT_SUPPORTED", "FUNCTION", "EXPLAIN"),
    ("DESCRIBE SELECT 1", "STATEMENT_NOT_SUPPORTED", "SELECT", "EXPLAIN"),
    ("EXPLAIN FORMATTED SELECT 1", "EXPLAIN_NOT_SUPPORTED", "FORMATTED", "leave it out"),
    ("EXPLAIN DELETE FROM t", "EXPLAIN_NOT_SUPPORTED", "DELETE", "a query"),
    ("CREATE TABLE t AS SELECT 1", "CREATE_TABLE_AS_SELECT_NOT_SUPPORTED", "AS SELECT", "INSERT INTO"),
    (f"{T}) AS SELECT 1", "CREATE_TABLE_AS_SELECT_NOT_SUPPORTED", "AS SELECT", "CREATE MATERIALIZED VIEW"),
    ("CREATE TABLE t LIKE u", "CREATE_TABLE_AS_SELECT_NOT_SUPPORTED", "LIKE", "list the columns"),
    (f"{T}) USING parquet", "TABLE_CLAUSE_NOT_SUPPORTED", "USING", "leave it out"),
    (f"{T}) PARTITIONED BY (k)", "TABLE_CLAUSE_NOT_SUPPORTED", "PARTITIONED", "leave it out"),
    ("TRUNCATE TABLE t PARTITION (k = 1)", "TABLE_CLAUSE_NOT_SUPPORTED", "PARTITION", "DELETE FROM"),
    (f"{T}, UNIQUE (k))", "CONSTRAINT_NOT_SUPPORTED", "UNIQUE", "leave this one out"),
    (f"{T}, a INT UNIQUE)", "CONSTRAINT_NOT_SUPPORTED", "UNIQUE", "leave this one out"),
    (f"{T}, a INT REFERENCES u (a))", "CONSTRAINT_NOT_SUPPORTED", "REFERENCES", "leave this one out"),
    (f"{T}, CONSTRAINT f FOREIGN KEY (k) REFERENCES u (k))", "CONSTRAINT_NOT_SUPPORTED", "FOREIGN", "leave"),
    (f"{T}, a INT GENERATED ALWAYS AS (k + 1))", "COLUMN_CLAUSE_NOT_SUPPORTED", "GENERATED", "in a view"),
    (f"{T}, a VARCHAR(10))", "UNSUPPORTED_TYPE", "VARCHAR", "use STRING"),
    (f"{T}, a CHAR(10))", "UNSUPPORTED_TYPE", "CHAR", "use STRING"),
    (f"{T}, a INTERVAL DAY TO SECOND)", "UNSUPPORTED_TYPE", "INTERVAL", "BIGINT"),
    (f"{T}, a ARRAY<VARIANT>)", "UNSUPPORTED_TYPE", "VARIANT", "use STRING"),
    (f"{T}, a STRING COLLATE UTF8_LCASE)", "UNSUPPORTED_TYPE", "COLLATE", "UTF-8"),
    (f"{T}, a STRUCT<b: INT NOT NULL>)", "UNSUPPORTED_TYPE", "NOT NULL", "on the column"),
    (f"{T}, a BIGNT)", "UNSUPPORTED_TYPE", "BIGNT", "did you mean BIGINT"),
    (f"{T}, a QQQQ)", "UNSUPPORTED_TYPE", "QQQQ", "use one of"),
    ("ALTER TABLE t ALTER COLUMN a SET NOT NULL", "ALTER_TABLE_NOT_SUPPORTED", "SET NOT NULL", "wider type"),
    ("ALTER TABLE t RENAME TO u", "ALTER_TABLE_NOT_SUPPORTED", "RENAME", "create a new table"),
    ("ALTER TABLE t ADD PRIMARY KEY (a)", "ALTER_TABLE_NOT_SUPPORTED", "PRIMARY KEY", "only columns"),
    ("ALTER TABLE t ADD COLUMN a INT PRIMARY KEY", "PRIMARY_KEY_CANNOT_CHANGE", "PRIMARY KEY", "create a new table"),
    ("ALTER TABLE t ADD COLUMN a INT FIRST", "COLUMN_POSITION_NOT_SUPPORTED", "FIRST", "in SELECT"),
    ("ALTER TABLE t ADD COLUMN a INT DEFAULT 1 AFTER b", "COLUMN_POSITION_NOT_SUPPORTED", "AFTER", "in SELECT"),
    ("INSERT OVERWRITE t SELECT 1", "INSERT_OVERWRITE_NOT_SUPPORTED", "OVERWRITE", "TRUNCATE"),
    ("INSERT INTO t BY NAME SELECT 1", "INSERT_CLAUSE_NOT_SUPPORTED", "BY NAME", "in the list"),
    ("INSERT INTO t PARTITION (a = 1) SELECT 1", "INSERT_CLAUSE_NOT_SUPPORTED", "PARTITION", "in the list"),
    ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "WITH_BEFORE_INSERT_NOT_SUPPORTED", "INSERT",
     "INSERT INTO t WITH"),
    ("UPDATE t SET s.f = 1", "NESTED_ASSIGNMENT_NOT_SUPPORTED", "s.f", "whole columns"),
    ("UPDATE t SET a[0] = 1", "NESTED_ASSIGNMENT_NOT_SUPPORTED", "a[0]", "whole columns"),
    ("MERGE WITH SCHEMA EVOLUTION INTO t USING u ON a WHEN MATCHED THEN DELETE", "SCHEMA_EVOLUTION_NOT_SUPPORTED",
     "WITH SCHEMA", "ADD COLUMN"),
    ("SHOW CREATE TABLE db.t", "QUALIFIED_NAME_NOT_SUPPORTED", "db.t", "one namespace"),
    ("DROP TABLE `a`.`b`", "QUALIFIED_NAME_NOT_SUPPORTED", "`a`", "one namespace"),
    ("INSERT INTO db.t VALUES (1)", "QUALIFIED_NAME_NOT_SUPPORTED", "db.t", "one namespace"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "code", "words", "instead"), CASES, ids=[sql for sql, *_ in CASES])
def test_each_refusal_has_its_code_its_place_and_what_works_instead(sql, code, words, instead):
    script = f"SHOW TABLES;\n  {sql};"
    with pytest.raises(UnsupportedSql) as caught:
        parse_script(script)
    error = caught.value
    assert error.code == code
    assert instead in error.message
    assert script[error.details["offset"] :].startswith(words)
    assert error.details["near"].startswith(words)
    assert error.details["line"] == 2
    assert error.details["column"] == error.details["offset"] - len("SHOW TABLES;\n") + 1
    assert f"line 2, column {error.details['column']}" in error.message


@pytest.mark.parametrize("start", [(start, refusal.code) for refusal in REFUSALS for start in refusal.starts])
def test_every_refused_start_is_refused(start):
    words, code = start
    with pytest.raises(UnsupportedSql) as caught:
        parse_script(f"{words.lower()} x")
    assert caught.value.code == code
