"""Words of the grammar as names, TABLE as a query, and other forms that Spark 4.3 takes: asked of its parser, each."""

from __future__ import annotations

from pathlib import Path

import pytest

import viewkeeper as vk
from viewkeeper.errors import SqlError
from viewkeeper.plan.parse import parse_query, to_sql
from viewkeeper.plan.place import Place

READ = [
    ("SELECT from, to FROM mails", "SELECT `from`, to FROM mails"),
    ("SELECT to, from FROM mails", "SELECT to, `from` FROM mails"),
    ("SELECT m.from, m.not FROM mails m", "SELECT m.`from`, m.`not` FROM mails AS m"),
    ("SELECT case FROM t WHERE case = 1", "SELECT `case` FROM t WHERE `case` = 1"),
    ("SELECT a FROM t ORDER BY when DESC", "SELECT a FROM t ORDER BY `when` DESC"),
    ("SELECT from + 1, f(like) FROM t GROUP BY and", "SELECT `from` + 1, F(`like`) FROM t GROUP BY `and`"),
    ("SELECT 1 FROM values WHERE on > 1", "SELECT 1 FROM `values` WHERE `on` > 1"),
    ("WITH with AS (SELECT 1) SELECT with.a FROM with", "WITH `with` AS (SELECT 1) SELECT `with`.a FROM `with`"),
    ("SELECT and.a AS not, a FROM t AS and", "SELECT `and`.a AS `not`, a FROM t AS `and`"),
    ("SELECT drop, a create FROM t insert", "SELECT drop, a AS create FROM t AS insert"),
    ("SELECT substr(from FROM 2 FOR 3) FROM t", "SELECT SUBSTRING(`from`, 2, 3) FROM t"),
    ("SELECT substring(c FROM 2) FROM t", "SELECT SUBSTRING(c, 2) FROM t"),
    ("SELECT X 'ff', x \n'0A', X \"f\" FROM t", "SELECT X'ff', X'0A', X'f' FROM t"),
    ("SELECT from, r'a', R\"b\", X'ab', X 'ff' FROM t", "SELECT `from`, 'a', 'b', X'ab', X'ff' FROM t"),
    ("SELECT CAST(NULL AS VOID), NULL::void", "SELECT CAST(NULL AS VOID), CAST(NULL AS VOID)"),
    ("TABLE a.t", "SELECT * FROM a.t"),
    ("TABLE `from` ORDER BY a LIMIT 1", "SELECT * FROM `from` ORDER BY a LIMIT 1"),
    ("TABLE t UNION ALL TABLE u", "SELECT * FROM t UNION ALL SELECT * FROM u"),
    ("WITH c AS (TABLE t) TABLE c", "WITH c AS (SELECT * FROM t) SELECT * FROM c"),
    ("SELECT a FROM t WHERE a IN (TABLE u)", "SELECT a FROM t WHERE a IN (SELECT * FROM u)"),
    ("SELECT t.not + 1, t.select - 1, t.case * 2 FROM t", "SELECT t.`not` + 1, t.`select` - 1, t.`case` * 2 FROM t"),
    ("SELECT all, a FROM t", "SELECT `all`, a FROM t"),
    ("SELECT distinct, COUNT(all, a) FROM t", "SELECT `distinct`, COUNT(`all`, a) FROM t"),
    ("SELECT select + 1, 1 + all + 1 FROM t", "SELECT `select` + 1, 1 + `all` + 1 FROM t"),
    (
        "SELECT CASE WHEN a = 1 THEN from ELSE 0 END FROM t",
        "SELECT CASE WHEN a = 1 THEN `from` ELSE 0 END FROM t",
    ),
    (
        "SELECT case when from = 1 then case else when end FROM t",
        "SELECT CASE WHEN `from` = 1 THEN `case` ELSE `when` END FROM t",
    ),
    ("SELECT table, table.a FROM t AS table", "SELECT table, table.a FROM t AS table"),
]  # fmt: skip
# What Spark refuses as well, or reads as a query of a column that nobody has: the message that stays.
REFUSED = [
    ("TABLE t WHERE a = 1", "Nothing can follow TABLE t here: write SELECT … FROM t …."),
    ("TABLE t AS x", "Nothing can follow TABLE t here"),
    ("TABLE only t", "Nothing can follow TABLE only here"),
    ("SELECT substring(FOR 3)", "The text is missing: SUBSTRING(text FROM 1 FOR 2)."),
    ("SELECT x 'zz'", "Is a comma missing before 'zz'?"),
    ("SELECT FROM t", "Nothing is selected"),
    ("SELECT DISTINCT FROM t", "Nothing is selected"),
    ("SELECT a, FROM t", "Nothing stands behind this comma"),
    ("SELECT a FROM t WHERE AND a = 1", "An expression is missing"),
]


@pytest.mark.parametrize(("sql", "expected"), READ)
def test_what_spark_takes_is_read(sql: str, expected: str) -> None:
    assert to_sql(parse_query(sql, Place(sql))) == expected


@pytest.mark.parametrize(("sql", "told"), REFUSED)
def test_what_is_a_slip_is_told_as_before(sql: str, told: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_query(sql, Place(sql))
    assert told in caught.value.message


def test_they_give_what_they_say(tmp_path: Path) -> None:
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as db:
        db.sql("CREATE TABLE mails (id INT PRIMARY KEY, from STRING, when INT)")
        db.sql("INSERT INTO mails (id, from, when) VALUES (1, 'ann', 3), (2, 'bob', 4), (3, 'ann', 5)")
        columns = "from COMMENT 'who', when COMMENT 'last'"
        query = "SELECT from, MAX(when) AS when FROM mails WHERE when > 3 GROUP BY from"
        db.sql(f"CREATE MATERIALIZED VIEW v ({columns}) AS {query}")
        assert sorted(row["from"] for row in db.sql("TABLE v").rows()) == ["ann", "bob"]
        assert db.sql("TABLE mails ORDER BY id DESC LIMIT 1").rows() == [{"id": 3, "from": "ann", "when": 5}]
        found = db.sql("SELECT id, from FROM mails WHERE id = 2")
        assert (found.rows(), found.executor) == ([{"id": 2, "from": "bob"}], "local")
        db.sql("UPDATE mails SET when = when + 1 WHERE from = 'bob'")
        db.sql("CREATE TABLE odd (select INT PRIMARY KEY, all INT); INSERT INTO odd VALUES (1, 2)")
        db.sql("UPDATE odd SET all = all + select + 1")
        assert db.sql("SELECT all, select - 1 AS less FROM odd").rows() == [{"all": 4, "less": 0}]
        db.refresh()
        assert db.sql("SELECT when FROM v WHERE from = 'bob'").rows() == [{"when": 5}]
        found = db.sql("SELECT substr(from FROM 2) AS s, X 'fff' AS b, CAST(NULL AS VOID) AS n FROM mails WHERE id = 1")
        assert found.rows() == [{"s": "nn", "b": b"\x0f\xff", "n": None}]
