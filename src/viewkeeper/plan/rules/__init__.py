"""Rewrites of plans: one a file, each keeps the rows, and no expression that can raise sees rows it did not see before.

A rule is a function ``(root, needed) -> root``; ``needed`` are the positions of the root's columns that somebody reads.
"""

from __future__ import annotations

from collections.abc import Callable

from viewkeeper.plan.nodes import Node
from viewkeeper.plan.rules.inner_joins import inner_joins
from viewkeeper.plan.rules.merge_projects import merge_projects
from viewkeeper.plan.rules.prune_columns import prune_columns
from viewkeeper.plan.rules.push_down_filters import push_down_filters
from viewkeeper.plan.rules.push_down_semi_joins import push_down_semi_joins
from viewkeeper.plan.rules.restrict_groups import restrict_groups
from viewkeeper.plan.rules.seek_ranges import seek_ranges
from viewkeeper.plan.rules.share_arrangements import share_arrangements
from viewkeeper.plan.rules.simplify import simplify
from viewkeeper.plan.rules.top_k import top_k

Rule = Callable[[Node, frozenset[int]], Node]

RULES: tuple[Rule, ...] = (
    simplify,
    merge_projects,
    inner_joins,
    push_down_filters,
    restrict_groups,
    push_down_semi_joins,
    simplify,
    seek_ranges,
    top_k,
    merge_projects,
    prune_columns,
    share_arrangements,
    merge_projects,
    simplify,
)


def rewrite(root: Node, needed: frozenset[int]) -> Node:
    """Apply all rules in order; the root keeps its columns."""
    for rule in RULES:
        root = rule(root, needed)
    return root
