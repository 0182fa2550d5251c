"""REGISTRY: name → an example circuit that ends in the operator; tests walk it, so none is left out.

Every example reads tables 1 and 2 of columns (k, g, v), keyed by k. The generic tests hold each to its equation

    whole(tables + deltas) = whole(tables) + step(deltas)

in small steps and in one large one, and count what it looks up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import ColumnRef, Literal, Session
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.base import ErrorSite
from viewkeeper.operators.circuit import AnyOperator, Circuit, Node, Source
from viewkeeper.operators.exchange import Exchange
from viewkeeper.operators.expand import Expand
from viewkeeper.operators.filter import Filter
from viewkeeper.operators.group_values import GroupValues
from viewkeeper.operators.join import Join
from viewkeeper.operators.matched_rows import MatchedRows
from viewkeeper.operators.ordered.ends import End
from viewkeeper.operators.ordered.frequencies import Frequencies
from viewkeeper.operators.ordered.lists import Collected
from viewkeeper.operators.ordered.percentiles import Percentile
from viewkeeper.operators.ordered.reader import Ordered
from viewkeeper.operators.ordered.values import OrderedValues
from viewkeeper.operators.partial_aggregate import Call, PartialAggregate
from viewkeeper.operators.project import Project
from viewkeeper.operators.recursion import Recursion
from viewkeeper.operators.repeat import Repeat
from viewkeeper.operators.semi_join import SemiJoin
from viewkeeper.operators.union import UnionAll
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.zset.schema import BIGINT, DOUBLE, Column, Schema, array

ROWS = Schema((Column("k", BIGINT, False), Column("g", BIGINT), Column("v", BIGINT)))
_GROUP = (Column("g", BIGINT),)
_VALUE = Schema((*_GROUP, Column("value", BIGINT)))
_SUMS = (Call("count_star", None, None, None, BIGINT), Call("sum", 2, None, BIGINT, BIGINT))


def _circuit(*parts: tuple[AnyOperator, tuple[int, ...]]) -> Circuit:
    return Circuit(tuple(Node(i, operator, inputs, 0, str(i)) for i, (operator, inputs) in enumerate(parts)))


def _source(table: int = 1) -> tuple[AnyOperator, tuple[int, ...]]:
    return Source(table, ROWS), ()


def _column(index: int) -> ColumnRef:
    return ColumnRef(index, BIGINT, ROWS.columns[index].nullable)


def _filter() -> Circuit:
    condition = resolve("gt", [_column(2), Literal(0, BIGINT)], Session())
    return _circuit(_source(), (Filter(ROWS, condition, Session(), None), (0,)))


def _project() -> Circuit:
    remainder = resolve("mod", [_column(2), Literal(3, BIGINT)], Session())
    schema = Schema((Column("r", BIGINT), Column("k", BIGINT, False)))
    site = ErrorSite("errors", ("k",), (0,))
    return _circuit(_source(), (Project(schema, (remainder, _column(0)), Session(), site), (0,)))


def _union() -> Circuit:
    return _circuit(_source(1), _source(2), (UnionAll(ROWS, 2), (0, 1)))


def _expand() -> Circuit:
    schema = Schema((Column("g", BIGINT), Column("set", BIGINT, False), Column("v", BIGINT)))
    projections = (
        (_column(1), Literal(0, BIGINT), _column(2)),
        (Literal(None, BIGINT), Literal(1, BIGINT), _column(2)),
    )
    return _circuit(_source(), (Expand(schema, projections), (0,)))


def _repeat() -> Circuit:
    counts = PartialAggregate((1,), _GROUP, _SUMS[:1])
    groups = Schema((*_GROUP, Column("n", BIGINT)))
    aggregate = Aggregate(groups, _GROUP, _SUMS[:1], (), (0,), "groups", None)
    return _circuit(
        _source(), (counts, (0,)), (aggregate, (1,)), (Exchange(groups, (0,), True, 0), (2,)), (Repeat(groups), (3,))
    )


def _exchange() -> Circuit:
    return _circuit(_source(), (Exchange(ROWS, (1,), True, 0), (0,)))


def _arrange() -> Circuit:
    return _circuit(_source(), (Arrange(ROWS, (1,), (0,), "arranged"), (0,)))


def _join() -> Circuit:
    left = Arrange(ROWS, (1,), (0,), "left", skip_null_keys=True)
    right = Arrange(ROWS, (1,), (0,), "right", skip_null_keys=True)
    schema = Schema(ROWS.columns + ROWS.columns)
    residual = resolve("le", [_column(2), ColumnRef(5, BIGINT, True)], Session())
    join = Join(schema, left, right, residual, Session(), None)
    return _circuit(_source(1), _source(2), (left, (0,)), (right, (1,)), (join, (0, 1)))


def _recursion() -> Circuit:
    rows = Schema((Column("g", BIGINT),))
    newest = Arrange(rows, (0,), (0,), "newest", skip_null_keys=True)
    steps = Arrange(ROWS, (0,), (0,), "steps", skip_null_keys=True)
    join = Join(Schema(rows.columns + ROWS.columns), newest, steps, None, Session(), None)
    inner = _circuit(
        (Source(0, rows), ()),
        (Source(1, ROWS), ()),
        (newest, (0,)),
        (steps, (1,)),
        (join, (0, 1)),
        (Project(rows, (ColumnRef(2, BIGINT),), Session(), None), (4,)),
    )
    return _circuit(
        _source(1),
        _source(2),
        (Project(rows, (_column(1),), Session(), None), (0,)),
        (Recursion(rows, inner, True, 100, "reached", ErrorSite("errors", ("g",), (0,))), (2, 1)),
    )


def _semi_join() -> Circuit:
    left, right = (Arrange(ROWS, (1,), (0,), state, skip_null_keys=True) for state in ("left", "right"))
    return _circuit(_source(1), _source(2), (left, (0,)), (right, (1,)), (SemiJoin(left, right, False), (0, 1)))


def _null_safe_anti_join() -> Circuit:
    left, right = (Arrange(ROWS, (1, 2), (0,), state) for state in ("left", "right"))
    anti = SemiJoin(left, right, True, frozenset((0,)))
    return _circuit(_source(1), _source(2), (left, (0,)), (right, (1,)), (anti, (0, 1)))


def _matched_rows(anti: bool, theta: bool) -> Circuit:
    columns = () if theta else (1,)
    left, right = (Arrange(ROWS, columns, (0,), state, skip_null_keys=True) for state in ("left", "right"))
    schema = Schema(ROWS.columns + ROWS.columns)
    residual = resolve("le", [_column(2), ColumnRef(5, BIGINT, True)], Session())
    join = Join(schema, left, right, residual, Session(), None)
    # Of the right side's rows, which stand behind the left one's in a pair, those without a partner.
    offset, identity = (3, right.identity) if anti else (0, left.identity)
    matched = MatchedRows(ROWS, identity, offset, anti, "pairs")
    return _circuit(
        _source(1),
        _source(2),
        (left, (0,)),
        (right, (1,)),
        (join, (0, 1)),
        (matched, (1 if anti else 0, 4)),
    )


def _partial_aggregate() -> Circuit:
    return _circuit(_source(), (PartialAggregate((1,), _GROUP, _SUMS), (0,)))


def _group_values() -> Circuit:
    return _circuit(_source(), (_values(_VALUE, (2,)), (0,)))


def _aggregate() -> Circuit:
    partial = PartialAggregate((1,), _GROUP, _SUMS)
    values = OrderedValues(_VALUE, 1, 1, (1,), True, "values")
    names = ("n", "total", "lowest", "highest", "middle")
    schema = Schema((*_GROUP, *(Column(name, BIGINT) for name in names[:4]), Column(names[4], DOUBLE)))
    ends = (Ordered(0, End(BIGINT, False)), Ordered(0, End(BIGINT, True)))
    middle = Ordered(0, Percentile("continuous", (0.5,), False, DOUBLE, False))
    outputs = (0, 1, *ends, middle)
    aggregate = Aggregate(schema, _GROUP, _SUMS, (values,), outputs, "groups", ErrorSite("errors", ("g",), (0,)))
    return _circuit(
        _source(),
        (partial, (0,)),
        (_values(_VALUE, (2,)), (0,)),
        (Exchange(_VALUE, (0,), True, 0), (2,)),
        (aggregate, (1, 3)),
    )


def _aggregate_of_rows() -> Circuit:
    """Aggregates that read the rows of a group in the order of v, then k, and in that of k."""
    by_value = Schema((*_GROUP, Column("v", BIGINT), Column("k", BIGINT, False), Column("kept", BIGINT)))
    by_key = Schema((*_GROUP, Column("k", BIGINT, False), Column("kept", BIGINT)))
    values = (
        OrderedValues(by_value, 1, 2, (3,), False, "by_value"),
        OrderedValues(by_key, 1, 1, (2,), False, "by_key"),
    )
    frequencies = Frequencies(OrderedValues(_VALUE, 1, 1, (1,), True, "values"), "frequencies")
    ends = (Ordered(0, End(BIGINT, True)), Ordered(1, End(BIGINT, False)), Ordered(2, End(BIGINT, True, True)))
    outputs = (*ends, Ordered(1, Collected(array(BIGINT))))
    singles = (Column(name, BIGINT) for name in ("max_by", "first", "mode"))
    schema = Schema((*_GROUP, *singles, Column("all", array(BIGINT), False)))
    partial = PartialAggregate((1,), _GROUP, ())
    aggregate = Aggregate(schema, _GROUP, (), (*values, frequencies), outputs, "groups", None)
    return _circuit(
        _source(),
        (partial, (0,)),
        (_values(by_value, (2, 0, 2), 3, (2,)), (0,)),
        (_values(by_key, (0, 2), 2, ()), (0,)),
        (_values(_VALUE, (2,)), (0,)),
        (aggregate, (1, 2, 3, 4)),
    )


def _aggregate_of_distinct() -> Circuit:
    """COUNT(*), CORR(v, k), BIT_XOR(v), COUNT(DISTINCT v) and VAR_POP(DISTINCT v)."""
    calls = (
        Call("count_star", None, None, None, BIGINT),
        Call("corr", 2, None, BIGINT, DOUBLE, (0,), (BIGINT,)),
        Call("bit_xor", 2, None, BIGINT, BIGINT),
        Call("count", 2, None, BIGINT, BIGINT, distinct=True),
        Call("var_pop", 2, None, BIGINT, DOUBLE, distinct=True),
    )
    over_distinct = (*calls[:3], *(replace(call, argument=1) for call in calls[3:]))
    types = (BIGINT, DOUBLE, BIGINT, BIGINT, DOUBLE)
    schema = Schema((*_GROUP, *(Column(f"a{i}", t) for i, t in enumerate(types))))
    plain = PartialAggregate((1,), _GROUP, calls)
    return _circuit(
        _source(),
        (plain, (0,)),
        (_values(_VALUE, (2,)), (0,)),
        (PartialAggregate((0, 1), _VALUE.columns, ()), (2,)),
        (Aggregate(_VALUE, _VALUE.columns, (), (), (), "distinct", None), (3,)),
        (PartialAggregate((0,), _GROUP, over_distinct, frozenset((3, 4))), (4,)),
        (UnionAll(plain.schema, 2), (1, 5)),
        (Aggregate(schema, _GROUP, calls, (), tuple(range(5)), "groups", None), (6,)),
    )


def _values(schema: Schema, columns: tuple[int, ...], keys: int = 2, required: tuple[int, ...] = (2,)) -> GroupValues:
    return GroupValues((1, *columns), keys, required, None, schema)


def _view_rows() -> Circuit:
    return _circuit(_source(), (ViewRows(ROWS, (0,), (0,), "view", None, None), (0,)))


def _checked_view_rows() -> Circuit:
    site = ErrorSite("errors", ("g",), (1,))
    return _circuit(_source(), (ViewRows(ROWS, (1,), (0,), "view", "candidates", site), (0,)))


EXAMPLES: Mapping[str, Callable[[], Circuit]] = {
    "filter": _filter,
    "project": _project,
    "union": _union,
    "expand": _expand,
    "repeat": _repeat,
    "exchange": _exchange,
    "arrange": _arrange,
    "join": _join,
    "recursion": _recursion,
    "semi_join": _semi_join,
    "null_safe_anti_join": _null_safe_anti_join,
    "matched_rows": lambda: _matched_rows(anti=False, theta=False),
    "unmatched_rows": lambda: _matched_rows(anti=True, theta=False),
    "unmatched_rows_of_theta_join": lambda: _matched_rows(anti=True, theta=True),
    "partial_aggregate": _partial_aggregate,
    "group_values": _group_values,
    "aggregate": _aggregate,
    "aggregate_of_rows": _aggregate_of_rows,
    "aggregate_of_distinct": _aggregate_of_distinct,
    "view_rows": _view_rows,
    "view_rows_with_declared_key": _checked_view_rows,
}
"""Per operator (and way of using it) a circuit; Catalyst is not among them, because only Spark can run it."""
