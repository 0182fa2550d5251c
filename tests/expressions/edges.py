"""Edge values of each type, as columns whose pairs meet in all combinations."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa

from viewkeeper.zset import schema as s

ROWS = 200
_EXACT = Context(prec=80)
_NAN, _INF = float("nan"), float("inf")
_DAYS = [None, 0, -1, -141_428, -141_427, -719_162, 2_932_896, 18_321, 18_659, 18_700, -719_528, 3_700_000, -800_000]
_MICROSECONDS = [
    None, 0, -1, 1_615_705_199_999_999, 1_615_705_200_000_000, 1_636_263_000_000_000, 1_636_266_600_000_000,
    -12_219_292_800_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999, -2_208_988_800_000_000,
    1_582_934_400_123_456, 95_617_584_000_000_000, -5_000_000_000_000_000,
]  # fmt: skip

EDGES: dict[str, tuple[s.SqlType, list[object]]] = {
    "z": (s.BOOLEAN, [True, False, None]),
    "t": (s.TINYINT, [None, 0, 1, -1, 127, -128, 7, -13]),
    "m": (s.SMALLINT, [None, 0, 1, -1, 32767, -32768, 7, -300]),
    "i": (s.INT, [None, 0, 1, -1, 2**31 - 1, -(2**31), 7, -7, 12345]),
    "l": (s.BIGINT, [None, 0, 1, -1, 2**63 - 1, -(2**63), 7, -7, 10**12, -4_000_000_000]),
    "f": (s.FLOAT, [None, 0.0, -0.0, 1.5, -2.5, _NAN, _INF, -_INF, 3.4e38, 1e-40, 16777216.0, 0.1]),
    "d": (s.DOUBLE, [None, 0.0, -0.0, 1.5, -2.5, _NAN, _INF, -_INF, 1e308, 5e-324, 0.1, 2.675, 9.3e18, -1e19]),
    "e": (s.decimal(12, 2), [None, "0", "0.01", "-0.01", "9999999999.99", "-9999999999.99", "2.50", "-2.50", "77.77"]),
    "g": (s.decimal(38, 0), [None, "0", "1", "9" * 38, "-" + "9" * 38, "12345678901234567890", "-7", "3"]),
    "h": (s.decimal(38, 18), [None, "0", "0.000000000000000001", "1.5", "-2.5", "9" * 20 + "." + "9" * 18, "-3.25"]),
    "k": (s.decimal(5, 5), [None, "0", "0.99999", "-0.5", "0.00001"]),
    "s": (s.STRING, [
        None, "", "a", "Ab", " abc ", "ÀÉß", "😀x", "e\u0301", "a\x00b", "ΣΑΣ", "İı", "abcabc", "%_\\x", "12",
    ]),
    "n": (s.STRING, [
        None, "", " 12 ", "1.5", "-9223372036854775808", "9223372036854775808", "1e3", "NaN", "+7", "true",
        "2020-02-29", "2021-3-14T2:30:00.1234567", " -inf ", "x",
    ]),
    "b": (s.BINARY, [None, b"", b"a", b"\x00\xff", b"ab"]),
    "y": (s.DATE, _DAYS),
    "u": (s.TIMESTAMP, _MICROSECONDS),
    "w": (s.TIMESTAMP_NTZ, _MICROSECONDS),
}  # fmt: skip


def _column(values: list[object], sql_type: s.SqlType) -> pa.Array:
    arrow = s.to_arrow_type(sql_type)
    if sql_type.name == "DECIMAL":
        return pa.array([None if v is None else Decimal(str(v)) for v in values], arrow)
    return pa.array(values, arrow)


def edge_batch() -> tuple[pa.RecordBatch, list[s.Column]]:
    """Return the batch and its columns: ``x1`` and ``x2`` for each letter, together all pairs of its edges."""
    arrays, columns = [], []
    for letter, (sql_type, edges) in EDGES.items():
        first = [edges[row % len(edges)] for row in range(ROWS)]
        second = [edges[row // len(edges) % len(edges)] for row in range(ROWS)]
        for name, values in ((f"{letter}1", first), (f"{letter}2", second)):
            arrays.append(_column(values, sql_type))
            columns.append(s.Column(name, sql_type))
    return pa.record_batch(arrays, names=[c.name for c in columns]), columns


_SAMPLES = (
    "12", "-9223372036854775807", "+0.5", "1.5e-3", ".5", "7.", "0x1.8p3", "1e400", "NaN", "Infinity", "true", "no",
    "99999999999999999999.999999999999999999", "2021-03-14", "2021-3-1", "-0044-03-15", "+12021-01-01", "1582-10-10",
    "2021-03-14 02:30:00", "2021-11-07T01:30:00.123456789", "2021-06-01 1:2:3", "2021-06-01 10:11", "2021-06-01 10",
    "2021-06-01T10:11:12Z", "2021-06-01 10:11:12+02:00", "2021-06-01 10:11:12.5 -0730", "2021-06-01 10:11:12 UTC+1",
    "2021-06-01 10:11:12 Europe/Paris", "2021", "2021-06",
)  # fmt: skip
_TEXT_ALPHABET = "0123456789+-.:eETZ dx/\x00\x7f\t"
_WORD_ALPHABET = "aAbB zZ%_\\ßÀéΣσςİıǅﬁ😀𐐀Ж\u0301\u00ad'.,"


def _number_text(generator: np.random.Generator) -> str:
    text = list(_SAMPLES[generator.integers(len(_SAMPLES))])
    for _ in range(generator.integers(0, 3)):
        place, letter = generator.integers(0, len(text) + 1), _TEXT_ALPHABET[generator.integers(len(_TEXT_ALPHABET))]
        text[place : place + generator.integers(0, 2)] = letter
    return "".join(text)


def _random(sql_type: s.SqlType, letter: str, generator: np.random.Generator) -> object:
    name = sql_type.name
    if name == "BOOLEAN":
        return bool(generator.integers(2))
    if sql_type.is_integer:
        bits = int(generator.integers(2, s.INTEGER_BITS[name] + 1))
        return int(generator.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, endpoint=True))
    if sql_type.is_floating:
        kind = generator.integers(4)
        if kind == 0:
            return float(np.frombuffer(generator.bytes(8), "f8" if name == "DOUBLE" else "f4")[0])
        scale = 10.0 ** generator.integers(0, 6)
        half = 0.5 if kind == 1 else 0.0
        return float((int(generator.integers(-(10**9), 10**9)) + half) / scale)
    if name == "DECIMAL":
        digits = int(generator.integers(1, sql_type.precision + 1))
        unscaled = int("".join(map(str, generator.integers(0, 10, digits))))
        return str(Decimal(unscaled if generator.integers(2) else -unscaled).scaleb(-sql_type.scale, _EXACT))
    if name == "STRING":
        if letter == "n":
            return _number_text(generator)
        return "".join(_WORD_ALPHABET[i] for i in generator.integers(0, len(_WORD_ALPHABET), generator.integers(0, 9)))
    if name == "BINARY":
        return generator.bytes(int(generator.integers(0, 5)))
    if name == "DATE":
        return int(generator.integers(-719_528, 2_932_896))
    near_change = int(generator.integers(1_615_680_000, 1_615_730_000)) + int(generator.integers(2)) * 20_558_000
    second = near_change if generator.integers(3) == 0 else int(generator.integers(-62_000_000_000, 253_000_000_000))
    return second * 1_000_000 + int(generator.integers(0, 2) * generator.integers(0, 1_000_000))


def random_batch(seed: int, rows: int = ROWS) -> tuple[pa.RecordBatch, list[s.Column]]:
    """Return a batch of the same columns with values drawn from ``seed``, one in ten NULL."""
    generator = np.random.default_rng(seed)
    arrays, columns = [], []
    for letter, (sql_type, _) in EDGES.items():
        for name in (f"{letter}1", f"{letter}2"):
            values = [
                None if generator.integers(10) == 0 else _random(sql_type, letter, generator) for _ in range(rows)
            ]
            arrays.append(_column(values, sql_type))
            columns.append(s.Column(name, sql_type))
    return pa.record_batch(arrays, names=[column.name for column in columns]), columns
