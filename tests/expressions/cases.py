"""Every portable function over a matrix of argument types, as SQL and as our tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from tests.expressions.edges import EDGES
from tests.expressions.spark_oracle import Case
from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.expressions import literals
from viewkeeper.expressions.registry import NotPortable, cast, resolve
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Session
from viewkeeper.plan.build import plan_expression
from viewkeeper.zset import schema as s

_NUMBERS = "tmilfdeghk"
_CALCULATED = "tilfdegh"
_ALL = "zt" + "ildegh" + "snbyuw"
_CHOSEN = "zidehsnyuw"
_OPERATORS = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq_null_safe": "<=>", "add": "+",
    "subtract": "-", "multiply": "*", "divide": "/", "mod": "%", "integral_divide": "div", "and": "AND", "or": "OR",
    "bitand": "&", "bitor": "|", "bitxor": "^",
}  # fmt: skip
_TEMPLATES = {
    "not": "(NOT {0})", "is_null": "({0} IS NULL)", "is_not_null": "({0} IS NOT NULL)", "is_true": "({0} IS TRUE)",
    "is_false": "({0} IS FALSE)", "negate": "(- {0})", "like": "({0} LIKE {1})", "bitnot": "(~ {0})",
}  # fmt: skip
_COLUMNS = [f"{letter}{index}" for letter in EDGES for index in (1, 2)]


def render(function: str, arguments: list[str]) -> str:
    """Return the SQL of a call."""
    if function in _OPERATORS and len(arguments) == 2:
        return f"({arguments[0]} {_OPERATORS[function]} {arguments[1]})"
    if function in _TEMPLATES:
        return _TEMPLATES[function].format(*arguments)
    if function == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if function == "case":
        pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
        body = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {body} ELSE {arguments[-1]} END"
    return f"{function}({', '.join(arguments)})"


def leaf(text: str, session: Session, nullable: bool) -> Expression:
    """Return the tree of a column name or a literal of the small notation used here."""
    if text in _COLUMNS:
        return ColumnRef(_COLUMNS.index(text), EDGES[text[0]][0], nullable)
    if text == "NULL":
        return Literal(None, s.VOID)
    if text in ("true", "false"):
        return Literal(text == "true", s.BOOLEAN)
    if text.startswith("'"):
        return Literal(text[1:-1].replace("\\\\", "\\"), s.STRING)
    if text.startswith("DATE"):
        return literals.date(text[5:-1])
    if text.startswith("INTERVAL"):
        found = re.fullmatch(r"INTERVAL (-(?='))?'?([^']+?)'? ([A-Z]+(?: TO [A-Z]+)?)", text)
        assert found is not None
        return literals.interval(found[2], found[3], negative=found[1] is not None)
    return literals.number(text)


def build(function: str, arguments: list[str | Tree], session: Session, nullable: bool) -> Expression:
    """Return our tree of a call."""
    parts = [a.build(session, nullable) if isinstance(a, Tree) else leaf(a, session, nullable) for a in arguments]
    return resolve(function, parts, session)


class Tree:
    """A call inside another."""

    def __init__(self, function: str, *arguments: str | Tree) -> None:
        self.function, self.arguments = function, list(arguments)

    def build(self, session: Session, nullable: bool) -> Expression:
        """Return our tree."""
        return build(self.function, self.arguments, session, nullable)

    def sql(self) -> str:
        """Return Spark's SQL."""
        return render(self.function, [a.sql() if isinstance(a, Tree) else a for a in self.arguments])


def attempt(tree: Tree, session: Session, nullable: bool) -> Expression | Exception:
    """Return our tree, or the error that resolving it raises."""
    try:
        return tree.build(session, nullable)
    except (SqlError, NotPortable) as error:
        return error


def call(session: Session, function: str, *arguments: str | Tree) -> Case:
    """Return the case of a call."""
    tree = Tree(function, *arguments)
    return Case(tree.sql(), attempt(tree, session, True), attempt(tree, session, False))


def written(session: Session, sql: str) -> Case:
    """Return the case of an expression as the planner reads it."""
    found: list[Expression | Exception] = []
    for nullable in (True, False):
        columns = tuple(s.Column(name, EDGES[name[0]][0], nullable) for name in _COLUMNS)
        try:
            found.append(plan_expression(sql, s.Schema(columns), session))
        except UnsupportedSql:
            found.append(NotPortable(sql, "left to Spark"))
        except SqlError as error:
            found.append(error)
    return Case(sql, found[0], found[1])


def planned(sql: str, columns: Iterable[s.Column], session: Session) -> Case:
    """Return the case of an expression over ``columns``, which may and may not be NULL."""
    results: list[Expression | Exception] = []
    for nullable in (True, False):
        schema = s.Schema(tuple(s.Column(column.name, column.type, nullable) for column in columns))
        try:
            results.append(plan_expression(sql, schema, session))
        except (SqlError, NotPortable) as error:
            results.append(error)
    return Case(sql, results[0], results[1])


def casts(session: Session) -> Iterator[Case]:
    """Every cast among the types of the matrix, plain and safe."""
    targets = [
        s.BOOLEAN, s.TINYINT, s.SMALLINT, s.INT, s.BIGINT, s.FLOAT, s.DOUBLE, s.decimal(12, 2), s.decimal(38, 18),
        s.decimal(3, 0), s.decimal(22, 4), s.STRING, s.BINARY, s.DATE, s.TIMESTAMP, s.TIMESTAMP_NTZ,
    ]  # fmt: skip
    for letter, target, safe in product(EDGES, targets, (False, True)):
        results: list[Expression | Exception] = []
        for nullable in (True, False):
            try:
                results.append(cast(leaf(f"{letter}1", session, nullable), target, session, safe))
            except (SqlError, NotPortable) as error:
                results.append(error)
        yield Case(f"{'TRY_' if safe else ''}CAST({letter}1 AS {str(target).upper()})", results[0], results[1])


def comparisons(session: Session) -> Iterator[Case]:
    """All pairs of types by two operators, and all operators on pairs of one type and beside constants."""
    for (a, b), function in product(product(_ALL, _ALL), ("eq", "lt")):
        yield call(session, function, f"{a}1", f"{b}2")
    for letter, function in product(EDGES, ("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe")):
        yield call(session, function, f"{letter}1", f"{letter}2")
    constants = ["7", "1.5", "-1.5", "3000000000", "1e3", "'12'", "'a'", "NULL", "DATE'2020-02-29'"]
    for letter, constant, function in product("ilegdsny", constants, ("eq", "gt", "le")):
        yield call(session, function, f"{letter}1", constant)
        yield call(session, function, constant, f"{letter}1")


def arithmetic(session: Session) -> Iterator[Case]:
    """All operators on all pairs of numeric types, on strings and constants; the TRY forms; unary ones."""
    binary = ("add", "subtract", "multiply", "divide", "mod", "pmod", "integral_divide")
    for (a, b), function in product(product(_CALCULATED, _CALCULATED), binary):
        yield call(session, function, f"{a}1", f"{b}2")
    for letter, function in product("tildegk", binary):
        for constant in ("7", "2.5", "1e3", "NULL", "0", "'3'"):
            yield call(session, function, f"{letter}1", constant)
            yield call(session, function, constant, f"{letter}1")
    for letter, function in product("tildegh", ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod")):
        yield call(session, function, f"{letter}1", f"{letter}2")
    for letter, function in product(EDGES, ("negate", "abs", "floor", "ceil", "sqrt", "sign", "round", "bround")):
        yield call(session, function, f"{letter}1")
    for letter, function, scale in product(_NUMBERS, ("round", "bround"), ("1", "2", "-1", "-2", "10", "-10")):
        yield call(session, function, f"{letter}1", scale)
    for a, b, function in product("tmil", "tmil", ("bitand", "bitor", "bitxor")):
        yield call(session, function, f"{a}1", f"{b}2")
    for letter in "tmil":
        yield call(session, "bitnot", f"{letter}1")
    for a, b, function in product("tmil", "tmi", ("shiftleft", "shiftright", "shiftrightunsigned")):
        yield call(session, function, f"{a}1", f"{b}2")
    for letter, function in product(_NUMBERS, ("bit_count", "rint", "nullifzero", "zeroifnull", "hex", "bin", "char")):
        yield call(session, function, f"{letter}1")


def logic(session: Session) -> Iterator[Case]:
    """Three-valued logic and choices, with branches that fail."""
    fails = Tree("gt", Tree("divide", "1", "i1"), "0")
    for function in ("and", "or"):
        yield call(session, function, "z1", "z2")
        yield call(session, function, "z1", "NULL")
        yield call(session, function, "z1", "'true'")
        yield call(session, function, "z1", "1")
        yield call(session, function, "'a'", "'b'")
        yield call(session, function, "z1", fails)
        yield call(session, function, fails, "z1")
        yield call(session, function, Tree("is_null", "i1"), fails)
    for letter, function in product(EDGES, ("not", "is_null", "is_not_null", "is_true", "is_false", "isnan")):
        yield call(session, function, f"{letter}1")
    for a, b in product(_CHOSEN, _CHOSEN):
        yield call(session, "case", "z1", f"{a}1", f"{b}2")
        yield call(session, "if", "z1", f"{a}1", f"{b}2")
        yield call(session, "coalesce", f"{a}1", f"{b}2")
        yield call(session, "nullif", f"{a}1", f"{b}2")
        yield call(session, "greatest", f"{a}1", f"{b}2")
        yield call(session, "in", f"{a}1", f"{b}2", f"{a}2")
        yield call(session, "nvl2", f"{a}1", f"{b}2", f"{a}2")
    for letter in _ALL:
        yield call(session, "least", f"{letter}1", f"{letter}2", "NULL")
        yield call(session, "in", f"{letter}1", f"{letter}2", "NULL")
        yield call(session, "ifnull", f"{letter}1", "NULL")
        yield call(session, "nvl", "NULL", f"{letter}1")
    for a, b in product("fdil", "fde"):
        yield call(session, "nanvl", f"{a}1", f"{b}2")
    quotient = Tree("divide", "1", "i2")
    yield call(session, "coalesce", "i1", quotient)
    yield call(session, "coalesce", quotient, "i1")
    yield call(session, "case", Tree("eq", "i2", "0"), "0", quotient)
    yield call(session, "case", Tree("gt", "i1", "0"), quotient, Tree("eq", "i2", "0"), "1", Tree("mod", "7", "i1"))
    yield call(session, "if", Tree("is_null", "i1"), quotient, "1")
    yield call(session, "nvl2", "i1", quotient, "0")
    yield call(session, "add", "i1", Tree("integral_divide", "1", "i2"))
    yield call(session, "divide", Tree("divide", "1", "i1"), "i2")
    yield call(session, "in", "i1", "1", "7", "NULL")
    yield call(session, "in", "i1", "i2", Tree("integral_divide", "1", "i2"))
    yield call(session, "in", "s1", "'a'", "'Ab'")
    yield call(session, "in", "s1", "'a'", "NULL")
    yield call(session, "in", "l1", "1", "2.5")
    yield call(session, "case", "true", "1", "'2'")
    yield call(session, "case", "z1", "NULL", "NULL")


def strings(session: Session) -> Iterator[Case]:
    """Functions of strings, over each type and over constants."""
    one = ("upper", "lower", "reverse", "ascii", "length", "octet_length", "bit_length", "char_length", "trim", "ltrim",
           "rtrim", "btrim", "concat", "concat_ws")  # fmt: skip
    for letter, function in product(EDGES, one):
        yield call(session, function, f"{letter}1")
    two = ("concat", "concat_ws", "instr", "contains", "startswith", "endswith", "trim", "ltrim", "rtrim", "btrim",
           "replace", "locate", "position")  # fmt: skip
    for function in two:
        yield call(session, function, "s1", "s2")
        for constant in ("'a'", "''", "'b'", "' '", "'ß'", "NULL"):
            yield call(session, function, "s1", constant)
            yield call(session, function, constant, "s1")
        for letter in "ieyub":
            yield call(session, function, "s1", f"{letter}1")
            yield call(session, function, f"{letter}1", "s1")
    for function, constant in product(
        ("left", "right", "repeat", "lpad", "rpad", "substring"), ("2", "0", "-1", "5", "NULL")
    ):
        yield call(session, function, "s1", constant)
    for letter in "sbi":
        yield call(session, "substring", f"{letter}1", "2")
        yield call(session, "substr", f"{letter}1", "-2", "1")
        yield call(session, "left", f"{letter}1", "1")
    for start, count in product(("0", "1", "2", "-2", "-9", "t1", "i1"), ("0", "1", "3", "-1", "2147483647", "i2")):
        yield call(session, "substring", "s1", start, count)
    for function, pad in product(("lpad", "rpad"), ("'xy'", "''", "'😀'", "s2")):
        yield call(session, function, "s1", "6", pad)
    yield call(session, "repeat", "s1", "t1")
    yield call(session, "left", "s1", "t1")
    yield call(session, "right", "s1", "t1")
    yield call(session, "replace", "s1", "'a'", "'ZZ'")
    yield call(session, "replace", "s1", "''", "'ZZ'")
    yield call(session, "replace", "s1", "s2", "'-'")
    yield call(session, "translate", "s1", "'abß'", "'xy'")
    yield call(session, "locate", "'b'", "s1", "3")
    yield call(session, "locate", "''", "s1", "3")
    yield call(session, "locate", "'b'", "s1", "0")
    yield call(session, "concat_ws", "s1", "s2", "n1", "i1")
    yield call(session, "concat", "s1", "i1", "y1", "u1", "e1", "z1")
    yield call(session, "concat", "b1", "b2")
    yield call(session, "concat", "b1", "s1")
    for part, delimiter in product(("1", "2", "-1", "9"), ("'b'", "''", "'.'", "'bc'")):
        yield call(session, "split_part", "s1", delimiter, part)
    for pattern in (
        "'a'",
        "'a%'",
        "'%b'",
        "'%b%'",
        "'_'",
        "'%'",
        "''",
        "'a_c%'",
        "'%\\\\_%'",
        "'a.b'",
        "'%😀_'",
        "NULL",
    ):
        yield call(session, "like", "s1", pattern)
    yield call(session, "like", "i1", "'1%'")
    digests = ("hex", "unhex", "md5", "sha", "sha1", "crc32", "base64", "typeof")
    for letter, function in product(EDGES, digests):
        yield call(session, function, f"{letter}1")
    for letter, bits in product("sbi", ("0", "224", "256", "384", "512", "1", "NULL", "t1")):
        yield call(session, "sha2", f"{letter}1", bits)
    for times in ("1", "2", "-1", "-2", "0", "t1", "i1", "NULL"):
        for delimiter in ("'b'", "'bc'", "''", "'😀'", "s2"):
            yield call(session, "substring_index", "s1", delimiter, times)
    for words in ("'a,Ab,,12'", "s2", "''", "','"):
        yield call(session, "find_in_set", "s1", words)
    yield call(session, "space", "t1")


def dates(session: Session) -> Iterator[Case]:
    """Functions of dates and times, over each type that they take."""
    fields = (
        "year", "month", "day", "dayofmonth", "quarter", "dayofweek",
        "weekday", "dayofyear", "weekofyear", "hour", "minute", "second",
        "last_day", "to_date", "to_timestamp", "unix_date", "unix_timestamp", "unix_seconds",
        "unix_millis", "unix_micros", "timestamp_seconds", "timestamp_millis",
        "timestamp_micros", "date_from_unix_date",
    )  # fmt: skip
    for letter, function in product("yuwnil", fields):
        yield call(session, function, f"{letter}1")
    for letter, function in product("yuwn", ("date_add", "date_sub", "add_months")):
        for change in ("1", "-45", "t1", "m1", "'3'", "NULL"):
            yield call(session, function, f"{letter}1", change)
    for a, b in product("yuwn", "yuwn"):
        yield call(session, "datediff", f"{a}1", f"{b}2")
        yield call(session, "subtract", f"{a}1", f"{b}2")
    for letter, unit in product(
        "yuwn", ("YEAR", "quarter", "mon", "week", "day", "hour", "minute", "second", "millisecond")
    ):
        yield call(session, "trunc", f"{letter}1", f"'{unit}'")
        yield call(session, "date_trunc", f"'{unit}'", f"{letter}1")
    spans = ("INTERVAL 1 DAY", "INTERVAL 25 HOUR", "INTERVAL -90 MINUTE", "INTERVAL 1 MONTH", "INTERVAL -13 MONTH",
             "INTERVAL 2 YEAR", "INTERVAL 2 WEEK", "INTERVAL '1.5' SECOND", "INTERVAL '1 2' DAY TO HOUR",
             "INTERVAL '-1 2:3' DAY TO MINUTE", "INTERVAL '100:11' HOUR TO MINUTE", "INTERVAL '1:2:3' HOUR TO SECOND",
             "INTERVAL -'99:9.25' MINUTE TO SECOND")  # fmt: skip
    for letter, span in product("yuwni", spans):
        yield call(session, "add", f"{letter}1", span)
        yield call(session, "subtract", f"{letter}1", span)
        yield call(session, "add", span, f"{letter}1")
    for letter in "yuw":
        for change in ("1", "t1", "i1", "l1", "e1", "z1"):
            yield call(session, "add", f"{letter}1", change)
            yield call(session, "subtract", f"{letter}1", change)
        yield call(session, "multiply", f"{letter}1", "2")
    for letter, function in product("yuwni", ("dayname", "monthname")):
        yield call(session, function, f"{letter}1")
    for letter, day in product("yuw", ("'MON'", "'tu'", "'Wednesday'", "'SU'", "NULL")):
        yield call(session, "next_day", f"{letter}1", day)
    patterns = ("yyyy-MM-dd", "yyyy/MM/dd HH:mm:ss.SSSSSS", "HH:mm", "yyyyMMdd", "S", "ss.SSS", "dd. MM. yyyy")
    for letter, pattern in product("yuw", patterns):
        yield call(session, "date_format", f"{letter}1", f"'{pattern}'")
    for a, b in product("yuw", "yuw"):
        yield call(session, "months_between", f"{a}1", f"{b}2")
        yield call(session, "months_between", f"{a}1", f"{b}2", "false")
    units = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    for unit, letter in product(units, "yuw"):
        for count in ("t1", "m2", "1", "-14"):
            yield written(session, f"timestampadd({unit}, {count}, {letter}1)")
        yield written(session, f"datediff({unit}, {letter}1, {letter}2)")
    yield written(session, "datediff(MONTH, y1, u2)")
    yield written(session, "datediff(HOUR, w1, u2)")
    for part, letter in product(("SECOND", "DOW", "DOY", "WEEK", "QUARTER"), "uwy"):
        yield written(session, f"extract({part} FROM {letter}1)")
        yield written(session, f"date_part('{part}', {letter}1)")
    yield call(session, "make_date", "2020", "t1", "t2")
    yield call(session, "make_date", "m1", "2", "29")
    for function, zone in product(
        ("from_utc_timestamp", "to_utc_timestamp"), ("America/New_York", "+05:30", "Asia/Tokyo")
    ):
        for letter in "uwy":
            yield call(session, function, f"{letter}1", f"'{zone}'")


FAMILIES = {
    "casts": casts, "comparisons": comparisons, "arithmetic": arithmetic, "logic": logic, "strings": strings,
    "dates": dates,
}  # fmt: skip
