"""How the state of operators lies in the store: what a program must agree on with the one that wrote it.

A state table is found by its name, a hash of all that is computed below it. Names, and the form of what stands under
them, are one version's: the next may plan a view otherwise, or keep a group in other bytes. So each view's record has
the layout of the state that was filled, and nobody goes on from state of another layout (``pipeline/layouts.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from viewkeeper.operators.circuit import AnyOperator, Circuit, Source
from viewkeeper.operators.recursion import Recursion
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.zset.schema import Schema

ERRORS, RECURSION, ROWS = "errors", "recursion", "rows"

FORMATS = {
    "arrangement": 1,
    "candidates": 1,
    ERRORS: 1,
    "groups": 1,
    "pairs": 1,
    RECURSION: 1,
    ROWS: 1,
    "rows in order": 1,
    "values": 1,
}
"""By kind of state the number of its form. Whoever changes the keys or values that an operator keeps, or what they
mean, counts up here; ``tests/operators/test_layouts.py`` holds bytes of each kind against it."""


def layout_of(circuit: Circuit, nodes: Iterable[int], rows: int, namespace: str) -> str:
    """Return 24 hexadecimal digits that are equal where a view's state tables have equal names and forms.

    Which cadence keeps the state, and which other views it keeps there, plays no part.

    Args:
        circuit: the view's, or one in which other views stand, too.
        nodes: ids of the nodes that the view needs.
        rows: id of the node that keeps its rows.
        namespace: what the names of the state tables begin with.
    """
    found: set[str] = set()
    for id_ in nodes:
        node = circuit.nodes[id_]
        above = [circuit.nodes[i].operator for i in node.inputs]
        if any(isinstance(operator, Source) for operator in above):
            # Columns of a table, as the view knows them: where one has become wider since, rows with values that are
            # too large go to a bag that was not needed before, and is empty.
            continue
        for state, layout in layouts_of(node.operator, [operator.schema for operator in above]):
            # The rows of a view below are kept where that view is kept.
            is_of_others = isinstance(node.operator, ViewRows) and state == node.operator.state and id_ != rows
            if not is_of_others:
                found.add(f"{state.removeprefix(namespace)} {layout}")
    return blake2b("\n".join(sorted(found)).encode(), digest_size=12).hexdigest()


def layouts_of(operator: AnyOperator, inputs: Iterable[Schema]) -> Iterator[tuple[str, str]]:
    """Yield each state table of an operator, its error bag included, with a text that tells its form.

    Args:
        operator: the operator.
        inputs: the columns of its inputs.
    """
    if isinstance(operator, Source):
        return
    below = "; ".join(map(_types, inputs))
    for contents in operator.contents():
        form = f"{_types(contents.query.schema)} by {contents.key} over {below}"
        yield contents.state, f"{_kind(contents.kind)}: {form}"
    if isinstance(operator, Recursion):
        yield operator.state, f"{_kind(RECURSION)}: {_types(operator.schema)}"
        for node in operator.inner.nodes:
            yield from layouts_of(node.operator, [operator.inner.nodes[i].operator.schema for i in node.inputs])
    site = getattr(operator, "errors", None)
    if site is not None:
        yield site.state, _kind(ERRORS)


def _kind(kind: str) -> str:
    return f"{kind} {FORMATS[kind]}"


def _types(schema: Schema) -> str:
    return ", ".join(map(str, schema.types))
