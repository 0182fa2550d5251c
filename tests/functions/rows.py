"""The table that sample calls read: one column a type, each with its edge values."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa

from viewkeeper.zset import schema as s

_NAN, _INF = float("nan"), float("inf")
_PAIR = s.struct(p=s.INT, q=s.STRING)


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


_MOMENTS = [
    None, _moment("1970-01-01T00:00:00"), _moment("1582-10-04T23:59:59.999999"), _moment("0001-01-02T03:04:05"),
    _moment("9999-12-30T11:12:13.000001"), _moment("2021-03-14T07:30:00"), _moment("2021-11-07T05:30:00.5"),
    _moment("2020-02-29T12:00:00"), _moment("1969-12-31T23:59:59.123456"),
]  # fmt: skip
COLUMNS: dict[str, tuple[s.SqlType, list[object]]] = {
    "z": (s.BOOLEAN, [True, False, None]),
    "y": (s.TINYINT, [None, 0, 1, -1, 127, -128, 7]),
    "h": (s.SMALLINT, [None, 0, 1, -1, 32767, -32768, 7]),
    "i": (s.INT, [None, 0, 1, -1, 2**31 - 1, -(2**31), 7, -7, 65]),
    "n": (s.INT, [1, None, 3, 2, 0, 5, 4]),  # small, for counts, positions and distances
    "l": (s.BIGINT, [None, 0, 1, -1, 2**63 - 1, -(2**63), 10**12, -7]),
    "f": (s.FLOAT, [None, 0.0, -0.0, 1.5, -2.5, _NAN, _INF, -_INF, 3.4e38, 0.1]),
    "x": (s.DOUBLE, [None, 0.0, -0.0, 1.5, -2.5, _NAN, _INF, -_INF, 1e308, 5e-324, 0.1, 2.675, 0.5]),
    "e": (s.decimal(12, 2), [Decimal(v) for v in ("0.00", "0.01", "-9999999999.99", "9999999999.99", "2.50")] + [None]),
    "w": (s.decimal(38, 18), [None, *(Decimal(v) for v in ("0", "9" * 20 + "." + "9" * 18, "-1.5", "1E-18"))]),
    "s": (s.STRING, [
        None, "", "a", " Ab c ", "ÀÉß", "😀x𐐀", "e\u0301", "a\tb\n\"q\"'", "ΣΑΣ", "İı", "%_\\x", "aXbXc", "日本語",
    ]),
    "c": (s.STRING, ["Spark SQL", "a,b,,c", "http://h.org:80/p%20q?a=1&b=2#f", None, "", "kitten-1 sitting-22", "12"]),
    "b": (s.BINARY, [None, b"", b"a", b"\x00\xff", b"Spark"]),
    "d": (s.DATE, [None if v is None else v.date() for v in _MOMENTS if isinstance(v, datetime.datetime | None)]),
    "u": (s.TIMESTAMP, list(_MOMENTS)),
    "v": (s.TIMESTAMP_NTZ, list(_MOMENTS)),
    "a": (s.array(s.INT), [None, [], [1], [None], [3, None, 1, 3], [5, 6, 7, 8], [-1, 0]]),
    "t": (s.array(s.STRING), [None, [], ["b", "a"], [None, ""], ["x", "y", "x"], ["😀"]]),
    "q": (s.array(s.array(s.INT)), [None, [], [[1], [], [2, None]], [None], [[3, 3]]]),
    "m": (s.map_of(s.STRING, s.INT), [None, [], [("a", 1)], [("a", None), ("", 2)], [("x", -5), ("y", 5)]]),
    "r": (_PAIR, [None, {"p": 1, "q": None}, {"p": None, "q": "z"}, {"p": 7, "q": "é"}]),
    "o": (s.array(_PAIR), [None, [], [{"p": 1, "q": "z"}], [None, {"p": None, "q": "é"}], [{"p": 2, "q": None}]]),
    "g": (s.STRING, [
        '{"a":1,"b":{"c":[1,2.5,null]},"d":"x\\u00e9"}', None, "[1,2,3]", "{}", "{'a':", '{"a":null,"a b":true}', '"s"',
        "",
    ]),
    "j": (s.STRING, ['{"a":1,"b":[1,{"c":"x"}],"e":null}', None, "[1,2,3]", "{}", '"s"', "1.5"]),  # all of it valid
    "vf": (s.array(s.FLOAT), [None, [1.0, 2.0], [0.0, 0.0], [-0.5, 3.0]]),
}  # fmt: skip
"""Type and values of each column; the key ``k`` comes before them."""

ROWS = 26


def schema() -> s.Schema:
    """Return the columns of the table, its key first."""
    named = [s.Column(name, sql_type) for name, (sql_type, _) in COLUMNS.items()]
    return s.Schema((s.Column("k", s.BIGINT, False), *named))


def rows(start: int = 0, count: int = ROWS) -> pa.Table:
    """Return rows from number ``start``, in which every edge value occurs; ``start`` shifts which ones meet."""
    columns = [pa.array(range(count), pa.int64())]
    for number, (sql_type, values) in enumerate(COLUMNS.values()):
        chosen = [values[(row + start * (number + 1)) % len(values)] for row in range(count)]
        columns.append(pa.array(chosen, s.to_arrow_type(sql_type)))
    return pa.Table.from_arrays(columns, schema=schema().to_arrow())
