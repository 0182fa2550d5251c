"""Functions of regular expressions against Spark: type, nullability and value of each row, also of drawn patterns."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.expressions.cases import planned
from tests.expressions.spark_oracle import Case, Oracle
from viewkeeper.errors import SqlError
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.patterns import translate
from viewkeeper.expressions.tree import Session
from viewkeeper.zset import schema as s
from viewkeeper.zset.schema import Column

_TEXTS = [
    None, "", "a", "A", "b", "ab", "aab", "abab", "ba-12", "x ab-12 cd-345", "é", "É1", "日本a", "😀a😀", "\n", "a\n",
    "a\r\n", "a\r", "a\nb", "\r\n", "a\u0085", "a\u2028", "a\x0bb", " a b ", "a.b.c", "$1", "\\", "a\\b", "[x]", "{1}",
    "(a)", "^a$", "_a1", "a,b,,c", ",", "&channel_id=17&x=2", "channel_id=", "2024-01-31", "2024-1-3", "K", "\u212a",
    "ſs", "ß", "aaaa", "1234567", "a|b", "a-b", "٣", "\u00a0", "user@example.com", "\x00", "b\na\n",
]  # fmt: skip
_COLUMNS = [Column("t", s.STRING), Column("i", s.INT)]
_PATTERNS = (
    "a", "", "^", "$", "^$", "^a", "a$", "a.b", ".", ".*", ".+$", "^.*$", "[ab]+", "[^ab]+", "[a-c]{2}", "[^&]*",
    "a{2,}", "a{0,1}b", "a*?b", "a+?", "(a|b)-", "(?:a|b)+", "(a)(b)?", "([a-z]+)-([0-9]+)", r"(\w+)-(\d+)", r"\d+",
    r"\D+", r"\s", r"\S+", r"\W", r"[\w.]+@[\w.]+", r"\.", r"\\", r"\$", r"\[x\]", r"[\]]", "[a-]", "[-a]", "[a^]",
    r"[\d-]", "(&|^)channel_id=([^&]*)", r"^(\d{4})-(\d{2})-(\d{2})$", "(?i)AB", "(?i)k", "(?i)ß", "(?i)[a-c]+",
    "(?i)[^a]", "é", "日", "😀", "[😀é]", "a|ab", "(a|ab)(b|)", "a||b", r"\n", r"\r", r"a$\n", r"\Aa", r"a\z", r"a\t",
    "[,]", ",+", "}", "]", r"\-", "a&b", "[a&]", "#", " ", "a b", "x*", "(a?)b", "(?:)a", "()",
)  # fmt: skip
_REPLACEMENTS = ("", "-", "<$0>", r"\$", "$0$0", "é", r"\a", "$01")
_WITH_GROUPS = (
    "regexp_replace(t, '(a)(b)?', '[$2|$1]')", "regexp_replace(t, '([a-z]+)-([0-9]+)', '$2:$1')",
    "regexp_replace(t, '(a)(b)', '$12')", "regexp_extract(t, '([a-z]+)-([0-9]+)', 2)",
    "regexp_extract(t, '(a)(b)?', 2)", "regexp_extract(t, '(&|^)channel_id=([^&]*)', 2)",
    "regexp_extract_all(t, '([a-z]+)-([0-9]+)', 2)", "regexp_extract(t, '([a-z])')",
    "regexp_extract_all(t, '(a)(b)?')", "regexp_extract(t, '(a(b)?)?-', 2)", "regexp_extract(t, 'a', 0)",
    "regexp_extract(i, '([0-9])')", "i RLIKE '^-?1'", "t NOT RLIKE 'a'", "t REGEXP 'b'", "regexp_like(t, 'b')",
    "regexp(t, 'b')", "t ILIKE 'A%'", "ilike(t, '%B')", "t ILIKE 'k'", "t ILIKE '%!_A%' ESCAPE '!'", "ilike(t, 'É_')",
    "t NOT ILIKE 'ſs'", "ilike(t, NULL)", "split(t, '[.,]')", "split(t, ',+')", "split(t, ',')", "split(t, 'a|b')",
    "split(t, '(a)')", "split(t, '[.,]')[0]", "size(split(t, ', *'))", "split(i, '0')",
)  # fmt: skip
_NOT_PORTABLE = (
    r"t RLIKE r'\bfoo\b'", r"t RLIKE r'\p{L}'", r"t RLIKE r'(a)\1'", "t RLIKE '(?=a)'", "t RLIKE '(?<!a)b'",
    "t RLIKE 'a++'", "t RLIKE '(a*)*'", "t RLIKE '(?s)a.'", "t RLIKE '[a[b]]'", "t RLIKE '[a&&b]'", "t RLIKE t",
    "t RLIKE NULL", "t RLIKE '(?<n>a)'", r"t RLIKE r'\Qa\E'", r"t RLIKE r'\x41'", "t RLIKE 'a{2}{3}'",
    "t RLIKE '(a|)+'", "t RLIKE '^*'", "regexp_extract(t, '(a)+', 1)", "regexp_replace(t, '(a|b)+', '$1')",
    "regexp_replace(t, 'a', i)", "regexp_replace(t, '[aX]', '', 2)", "split(t, '')", "split(t, 'a*')",
    "split(t, ',', 2)", "split(t, t)", "regexp_extract(t, '(a)', i)", "t ILIKE t", "regexp_count(t, 'a*')",
    "regexp_replace(t, 'b?', '-')", "regexp_extract_all(t, '^', 0)", "t RLIKE '[]a]'", "t RLIKE 'a{1001}'",
)  # fmt: skip
# What Spark raises for each row is left to it.
_MALFORMED = (
    "(",
    ")",
    "[",
    "[]",
    "a**",
    "*",
    "+a",
    "a{",
    "a{2,1}",
    "{1}",
    "[b-a]",
    r"[\d-z]",
    "\\",
    r"\y",
    "(?",
    "a{,2}",
)
_DRAWN = 400


def _case(sql: str) -> Case:
    return planned(sql, _COLUMNS, Session())


def _calls(pattern: str) -> list[str]:
    text = f"r'{pattern}'"
    calls = [
        f"t RLIKE {text}",
        f"regexp_instr(t, {text})",
        f"regexp_substr(t, {text})",
        f"regexp_extract(t, {text}, 0)",
    ]
    if translate(pattern, "").may_be_empty:
        return calls
    calls += [f"regexp_count(t, {text})", f"regexp_extract_all(t, {text}, 0)"]
    return calls + [f"regexp_replace(t, {text}, r'{replacement}')" for replacement in _REPLACEMENTS]


@pytest.fixture(scope="module")
def texts(spark: SparkSession) -> Oracle:
    """Texts with every line end, letters beyond ASCII and signs that patterns use."""
    numbers = [index % 23 - 11 for index in range(len(_TEXTS))]
    batch = pa.record_batch([pa.array(_TEXTS, pa.string()), pa.array(numbers, pa.int32())], names=["t", "i"])
    return Oracle(spark, batch, _COLUMNS, Session())


@pytest.mark.spark
@pytest.mark.slow
def test_against_spark(texts: Oracle) -> None:
    """Every pattern in every function."""
    cases = [_case(sql) for pattern in _PATTERNS for sql in _calls(pattern)] + [_case(sql) for sql in _WITH_GROUPS]
    assert [(case.sql, case.expression) for case in cases if isinstance(case.expression, Exception)] == []
    assert "\n".join(texts.problems(cases)) == ""


@pytest.mark.spark
@pytest.mark.slow
def test_drawn_patterns(texts: Oracle) -> None:
    """Patterns drawn by seed, each with its last group extracted and written."""
    draw = random.Random(41)
    cases: list[Case] = []
    while len(cases) < _DRAWN:
        pattern = _drawn(draw, 3)
        group = pattern.count("(") - pattern.count("(?:")
        text = f"r'{pattern}'"
        some = [
            _case(f"regexp_extract(t, {text}, {group})"),
            _case(f"regexp_replace(t, {text}, r'[${group}]')"),
            _case(f"regexp_extract_all(t, {text}, 0)"),
        ]
        cases += [case for case in some if not isinstance(case.expression, Exception)]
    assert "\n".join(texts.problems(cases)) == ""


def _drawn(draw: random.Random, depth: int) -> str:
    parts = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.random()
        if depth and kind < 0.35:
            opening = draw.choice(["(", "(?:"])
            atom = f"{opening}{'|'.join(_drawn(draw, depth - 1) for _ in range(draw.randint(1, 2)))})"
        else:
            atom = draw.choice(
                ["a", "b", "[ab]", "[^a]", ".", r"\d", r"\w", r"\s", "1", "-", "^", "$", "é", r"[\w-]", ",", r"\n"]
            )
        quantified = atom not in ("^", "$") and draw.random() < 0.45
        parts.append(atom + (draw.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}"]) if quantified else ""))
    return "".join(parts)


@pytest.mark.parametrize("sql", _NOT_PORTABLE)
def test_left_to_spark(sql: str) -> None:
    """What Python may read differently is not portable."""
    found = _case(sql).expression
    assert isinstance(found, SqlError)
    assert found.code == "EXPRESSION_NEEDS_SPARK"


@pytest.mark.parametrize("pattern", _MALFORMED)
def test_malformed_patterns_are_left_to_spark(pattern: str) -> None:
    """Java says what is wrong with them."""
    with pytest.raises(NotPortable):
        translate(pattern, "rlike")
