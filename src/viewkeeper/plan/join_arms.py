"""Arms of a star or a snowflake: inputs that give each row of one other input at most one partner.

    supplier -- lineitem -- orders -- customer -- nation -- region (ASIA)

An arm is joined to the input that it hangs on, outermost first: region to nation, both to customer. Such a
join never multiplies rows, and where the arm is restricted it leaves fewer: the large input in the middle is joined
last, with what is small already. Joined in FROM order instead, each arrangement of the chain would hold a row for every
row in the middle, and each of its changes would walk the whole chain (docs/decisions/0013).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.plan.nodes import Filter, Join, Node, RecursiveScan, walk
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Part:
    """An input, with the arms that are joined to it already.

    Args:
        node: the rows.
        position: of the columns, global position -> position in ``node``.
        keys: the key of each input in it, as global positions; None where it has none.
        is_filtered: whether some condition restricts it.
    """

    node: Node
    position: Mapping[int, int]
    keys: Mapping[int, tuple[int, ...] | None]
    is_filtered: bool


Links = Sequence[tuple[int, int]]  # equalities of columns, by their global positions


def with_arms(parts: Mapping[int, Part], links: Links, together: Iterable[frozenset[int]]) -> dict[int, Part]:
    """Return the inputs that are left when arms are joined, at least two of them.

    Outer arms go first, then restricted ones, then those that stand first.

    Args:
        parts: the inputs by number, all to be joined by inner joins.
        links: the equalities between columns of two inputs that are join keys.
        together: the inputs that each equality connects, by number.
    """
    left = dict(parts)
    if any(isinstance(node, RecursiveScan) for part in parts.values() for node in walk(part.node)):
        return left  # a recursion follows its rows from where they stand
    groups = [set(group) for group in together]
    while len(left) > 2:
        partners = {n: set().union(*(group for group in groups if n in group)) - {n} for n in left}
        hosts = {n: host for n in left if (host := _host(n, partners[n], left, links)) is not None}
        arms = [n for n in hosts if len(partners[n]) == 1]
        if not arms:
            return left
        _, _, arm = min((hosts[n] not in hosts, not left[n].is_filtered, n) for n in arms)
        host = hosts[arm]
        left[host] = _joined(left[host], left.pop(arm), links)
        groups = [{host if number == arm else number for number in group} for group in groups]
    return left


def _host(number: int, partners: Iterable[int], parts: Mapping[int, Part], links: Links) -> int | None:
    """Return the input that ``number`` can be an arm of: its key decides the partner."""
    key = parts[number].keys[number]
    for partner in sorted(partners):
        compared = {column for _, column in _between(parts[partner], parts[number], links)}
        if key is not None and set(key) <= compared:
            return partner
    return None


def _between(host: Part, arm: Part, links: Links) -> list[tuple[int, int]]:
    both = [*links, *((right, left) for left, right in links)]
    return list(dict.fromkeys((x, y) for x, y in both if x in host.position and y in arm.position))


def _joined(host: Part, arm: Part, links: Links) -> Part:
    width = len(host.node.schema)
    pairs = _between(host, arm, links)
    position = {**host.position, **{column: width + place for column, place in arm.position.items()}}
    keys = {**host.keys, **arm.keys}
    schema = Schema(host.node.schema.columns + arm.node.schema.columns)
    node = Join(
        host.node,
        arm.node,
        tuple(host.position[x] for x, _ in pairs),
        tuple(arm.position[y] for _, y in pairs),
        None,
        schema,
        key_of(keys, position),
    )
    return Part(node, position, keys, host.is_filtered or arm.is_filtered)


def key_of(keys: Mapping[int, tuple[int, ...] | None], position: Mapping[int, int]) -> tuple[int, ...] | None:
    """Return the keys of some inputs together, as positions in their join; None where one has none."""
    found: list[int] = []
    for number in sorted(keys):
        own = keys[number]
        if own is None:
            return None
        found += [position[column] for column in own]
    return tuple(found)


def is_filtered(node: Node) -> bool:
    """Return whether some condition restricts the rows of ``node``."""
    return any(isinstance(below, Filter) for below in walk(node))
