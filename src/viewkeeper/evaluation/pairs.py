"""Which rows of two batches belong together: the pairs that MERGE works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from viewkeeper.evaluation.pinned import conjuncts
from viewkeeper.expressions.tree import Call, Expression, columns_of, shift_columns
from viewkeeper.statements.lexer import tokenize
from viewkeeper.zset.buffers import Int64Array, one_array
from viewkeeper.zset.delta import group_rows

PAIRS_MAX = 1_000_000


def equalities(condition: Expression, left_width: int) -> list[tuple[Expression, Expression]]:
    """Return the equalities that ``condition`` demands between the sides of a pair.

    Args:
        condition: over the columns of the left side, then those of the right one.
        left_width: how many columns the left side has.

    Returns:
        Expressions over the left side and over the right one (its columns counted from 0).
    """
    found = []
    for part in conjuncts(condition):
        if not isinstance(part, Call) or part.function != "eq":
            continue
        for one, other in (part.arguments, part.arguments[::-1]):
            left, right = columns_of(one), columns_of(other)
            if left and right and max(left) < left_width <= min(right):
                found.append((one, shift_columns(other, {i: i - left_width for i in right})))
    return found


def conjunct_texts(sql: str) -> list[str]:
    """Return the parts that AND joins at the top of a condition's text; nothing where that cannot be told by words.

    Example:
        >>> conjunct_texts("a.k = b.k AND (x OR y)")
        ['a.k = b.k', '(x OR y)']
        >>> conjunct_texts("a BETWEEN 1 AND 2")
        []
    """
    depth, start = 0, 0
    parts: list[str] = []
    for lexeme in tokenize(sql):
        if lexeme.kind == "symbol":
            depth += (lexeme.text in "([{") - (lexeme.text in ")]}")
        elif depth == 0 and any(map(lexeme.is_word, ("OR", "CASE", "BETWEEN"))):
            return []
        elif depth == 0 and lexeme.is_word("AND"):
            parts.append(sql[start : lexeme.start].strip())
            start = lexeme.stop
    return [*parts, sql[start:].strip()]


def equal_pairs(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[Int64Array, Int64Array]:
    """Return the positions (left, right) of all pairs whose keys are equal; NULL equals nothing.

    Args:
        left: the key columns of one side.
        right: those of the other, of the same types.

    Example:
        >>> equal_pairs([pa.array([1, None, 2])], [pa.array([2, 2, None])])[1].tolist()
        [0, 1]
    """
    left_rows, right_rows = len(left[0]), len(right[0])
    joined = [pa.concat_arrays([one_array(a), one_array(b)]) for a, b in zip(left, right, strict=True)]
    groups, _ = group_rows(joined, left_rows + right_rows)
    usable = np.ones(left_rows + right_rows, dtype=bool)
    for column in joined:
        if column.null_count:
            usable &= column.is_valid().to_numpy(zero_copy_only=False)
    here, there = groups[:left_rows], groups[left_rows:]
    candidates = np.flatnonzero(usable[left_rows:])
    order = candidates[np.argsort(there[candidates], kind="stable")]
    ordered = there[order]
    low = np.searchsorted(ordered, here, "left")
    counts = np.where(usable[:left_rows], np.searchsorted(ordered, here, "right") - low, 0)
    lefts = np.repeat(np.arange(left_rows), counts)
    within = np.arange(len(lefts)) - np.repeat(np.cumsum(counts) - counts, counts)
    return lefts, order[np.repeat(low, counts) + within]


def all_pairs(left_rows: int, right_rows: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield all pairs of positions, about a million at a time, each left row's together."""
    step = max(PAIRS_MAX // max(right_rows, 1), 1)
    for start in range(0, left_rows, step):
        lefts = np.arange(start, min(start + step, left_rows))
        yield np.repeat(lefts, right_rows), np.tile(np.arange(right_rows), len(lefts))
