"""The form of a view's stored rows, kept with them: rows that another version wrote are read as it wrote them.

The columns that users see are those of the view's query, whoever plans it. The key, and the hidden columns that it may
need, are the planner's choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.plan.compile import Compilation, CompiledView
from viewkeeper.plan.nodes import ViewPlan
from viewkeeper.zset.schema import SqlType


@dataclass(frozen=True)
class RowForm:
    """How rows are stored.

    Args:
        types: of all columns, the visible ones first.
        key: positions of the columns under which they stand.
    """

    types: tuple[SqlType, ...]
    key: tuple[int, ...]

    @staticmethod
    def of(plan: ViewPlan) -> RowForm:
        """Return the form in which rows of ``plan`` are stored."""
        return RowForm(plan.root.schema.types, plan.key)

    @staticmethod
    def decode(written: bytes) -> RowForm:
        """Return the form that ``encode`` has written."""
        return msgspec.msgpack.decode(written, type=RowForm)

    def encode(self) -> bytes:
        """Return it as bytes."""
        return msgspec.msgpack.encode(self)


def form_of(compilation: Compilation, view: CompiledView) -> bytes:
    """Return the form of the rows that a circuit keeps for ``view``."""
    operator = compilation.circuit.nodes[view.rows].operator
    assert isinstance(operator, ViewRows)
    return RowForm(operator.schema.types, operator.key).encode()
