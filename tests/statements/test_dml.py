import pytest

from viewkeeper.errors import SqlError
from viewkeeper.statements import parse_statement
from viewkeeper.statements.model import Delete, Insert, Merge, Update


def texts(pairs):
    return [(name, text.text) for name, text in pairs]


@pytest.mark.parametrize(
    ("sql", "table", "columns", "query"),
    [
        ("INSERT INTO t VALUES (1, 'a;b'), (2, NULL)", "t", None, "VALUES (1, 'a;b'), (2, NULL)"),
        ("insert into table t (a, `b c`) SELECT 1, :k", "t", ("a", "b c"), "SELECT 1, :k"),
        ("INSERT INTO t (SELECT 1)", "t", None, "(SELECT 1)"),
        ("INSERT INTO t (a) (SELECT 1)", "t", ("a",), "(SELECT 1)"),
        ("INSERT INTO t ((SELECT 1) UNION ALL (SELECT 2))", "t", None, "((SELECT 1) UNION ALL (SELECT 2))"),
        ("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", "t", None, "WITH x AS (SELECT 1) SELECT * FROM x"),
        ("INSERT INTO t FROM u SELECT a", "t", None, "FROM u SELECT a"),
        ("INSERT INTO t TABLE u", "t", None, "TABLE u"),
        ("INSERT INTO t (values, from) VALUES (1, 2)", "t", ("values", "from"), "VALUES (1, 2)"),
    ],
)
def test_insert(sql, table, columns, query):
    statement = parse_statement(sql)
    assert isinstance(statement, Insert)
    assert (statement.table, statement.columns, statement.query.text) == (table, columns, query)
    assert sql[statement.query.place.offset :] == query


@pytest.mark.parametrize(
    ("sql", "alias", "assignments", "where"),
    [
        ("UPDATE t SET a = 1", None, [("a", "1")], None),
        (
            "UPDATE t AS x SET x.a = f(1, 2), `b c` = CASE WHEN a = 1 THEN 2 ELSE 3 END WHERE k IN (1, 2) AND b = :p",
            "x",
            [("a", "f(1, 2)"), ("b c", "CASE WHEN a = 1 THEN 2 ELSE 3 END")],
            "k IN (1, 2) AND b = :p",
        ),
        ("update t x set A = (SELECT max(a) FROM u WHERE 1 = 1)", "x",
         [("A", "(SELECT max(a) FROM u WHERE 1 = 1)")], None),
        ("UPDATE t SET t.a = a[1] + m['x, y'], b = DEFAULT", None, [("a", "a[1] + m['x, y']"), ("b", "DEFAULT")], None),
        ("UPDATE t SET a = b == c", None, [("a", "b == c")], None),
    ],
)  # fmt: skip
def test_update(sql, alias, assignments, where):
    statement = parse_statement(sql)
    assert isinstance(statement, Update)
    assert (statement.table, statement.alias) == ("t", alias)
    assert texts(statement.assignments) == assignments
    assert (statement.where.text if statement.where else None) == where


@pytest.mark.parametrize(
    ("sql", "alias", "where"),
    [
        ("DELETE FROM t", None, None),
        ("DELETE FROM t x WHERE x.a = 'WHERE'", "x", "x.a = 'WHERE'"),
        ("DELETE FROM t AS `y` WHERE EXISTS (SELECT 1 FROM u WHERE u.a = y.a)", "y",
         "EXISTS (SELECT 1 FROM u WHERE u.a = y.a)"),
    ],
)  # fmt: skip
def test_delete(sql, alias, where):
    statement = parse_statement(sql)
    assert isinstance(statement, Delete)
    assert (statement.table, statement.alias) == ("t", alias)
    assert (statement.where.text if statement.where else None) == where


def test_merge_with_everything():
    sql = """MERGE INTO t AS a USING (SELECT k, CASE WHEN matched THEN 1 END v FROM u) b
      ON a.k = b.k AND CASE WHEN a.x THEN b.x ELSE true END
      WHEN MATCHED AND b.op = CASE WHEN a.x THEN 'd' ELSE 'e' END THEN DELETE
      WHEN MATCHED AND b.v > 0 THEN UPDATE SET v = CASE WHEN MATCHED THEN 1 ELSE b.v END, a.w = b.w
      WHEN MATCHED THEN UPDATE SET *
      WHEN NOT MATCHED BY TARGET AND b.v > 1 THEN INSERT (k, v) VALUES (b.k, f(b.v, 1))
      WHEN NOT MATCHED THEN INSERT *
      WHEN NOT MATCHED BY SOURCE AND a.old THEN DELETE
      WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"""
    merge = parse_statement(sql)
    assert isinstance(merge, Merge)
    assert (merge.target, merge.target_alias, merge.source_alias) == ("t", "a", "b")
    assert merge.source.text == "(SELECT k, CASE WHEN matched THEN 1 END v FROM u)"
    assert merge.on.text == "a.k = b.k AND CASE WHEN a.x THEN b.x ELSE true END"
    shape = [(c.kind, c.condition.text if c.condition else None, c.action, c.star) for c in merge.clauses]
    assert shape == [
        ("MATCHED", "b.op = CASE WHEN a.x THEN 'd' ELSE 'e' END", "DELETE", False),
        ("MATCHED", "b.v > 0", "UPDATE", False),
        ("MATCHED", None, "UPDATE", True),
        ("NOT_MATCHED", "b.v > 1", "INSERT", False),
        ("NOT_MATCHED", None, "INSERT", True),
        ("NOT_MATCHED_BY_SOURCE", "a.old", "DELETE", False),
        ("NOT_MATCHED_BY_SOURCE", None, "UPDATE", False),
    ]
    assert texts(merge.clauses[1].assignments) == [("v", "CASE WHEN MATCHED THEN 1 ELSE b.v END"), ("w", "b.w")]
    assert merge.clauses[3].columns == ("k", "v")
    assert [value.text for value in merge.clauses[3].values] == ["b.k", "f(b.v, 1)"]
    assert texts(merge.clauses[6].assignments) == [("v", "0")]
    for piece in (merge.source, merge.on, merge.clauses[3].values[1]):
        assert sql[piece.place.offset :].startswith(piece.text)


def test_merge_from_a_table_without_aliases():
    merge = parse_statement("MERGE INTO t USING `u v` ON t.k = `u v`.k WHEN MATCHED THEN UPDATE SET t.a = `u v`.a")
    assert (merge.target_alias, merge.source.text, merge.source_alias) == (None, "`u v`", None)
    assert texts(merge.clauses[0].assignments) == [("a", "`u v`.a")]


@pytest.mark.parametrize(
    ("sql", "code", "near"),
    [
        ("INSERT t VALUES (1)", "SYNTAX_ERROR", "t VALUES"),
        ("INSERT INTO t", "SYNTAX_ERROR", ""),
        ("INSERT INTO t (a, A) VALUES (1, 2)", "COLUMN_DECLARED_TWICE", "A)"),
        ("INSERT INTO t (a) 5", "SYNTAX_ERROR", "5"),
        ("UPDATE t SET", "SYNTAX_ERROR", ""),
        ("UPDATE t SET a = WHERE b", "SYNTAX_ERROR", "WHERE"),
        ("UPDATE t SET a = 1, a = 2", "COLUMN_DECLARED_TWICE", "a = 2"),
        ("UPDATE t SET a + 1", "SYNTAX_ERROR", "+ 1"),
        ("UPDATE t SET a = 1 WHERE", "SYNTAX_ERROR", ""),
        ("DELETE t", "SYNTAX_ERROR", "t"),
        ("DELETE FROM t x y", "SYNTAX_ERROR", "y"),
        ("DELETE FROM t WHERE (a = 1", "SYNTAX_ERROR", ""),
        ("MERGE INTO t USING u ON a = b", "SYNTAX_ERROR", ""),
        ("MERGE INTO t USING (u) ON a = b WHEN MATCHED THEN DELETE", "SYNTAX_ERROR", "u)"),
        ("MERGE INTO t USING u ON a = b WHEN MATCHED THEN INSERT *", "SYNTAX_ERROR", "INSERT"),
        ("MERGE INTO t USING u ON a = b WHEN NOT MATCHED THEN DELETE", "SYNTAX_ERROR", "DELETE"),
        ("MERGE INTO t USING u ON a = b WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", "SYNTAX_ERROR", "*"),
        ("MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *",
         "MERGE_CLAUSE_UNREACHABLE", "WHEN MATCHED THEN UPDATE"),
        ("MERGE INTO t USING u ON a = b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", "INSERT_COUNT_MISMATCH",
         "(1)"),
        ("MERGE INTO t USING u ON a = b WHEN NOT MATCHED THEN INSERT (a, A) VALUES (1, 2)", "COLUMN_DECLARED_TWICE",
         "A)"),
    ],
)  # fmt: skip
def test_errors(sql, code, near):
    with pytest.raises(SqlError) as caught:
        parse_statement(sql)
    error = caught.value
    assert error.code == code
    assert error.details["near"].startswith(near)
    assert sql[error.details["offset"] :].startswith(near)
