"""REGISTRY: name → an example circuit that ends in the operator; tests walk it, so none is left out.

Every example reads tables 1 and 2 of columns (k, g, v), keyed by k. The generic tests hold each to its equation

    whole(tables + deltas) = whole(tables) + step(deltas)

in small steps and in one large one, and hold what it reads, as the store counts it, to the bound in ``READS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import ColumnRef, Literal, Session, shift_columns
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.base import ErrorSite
from viewkeeper.operators.circuit import AnyOperator, Circuit, Node, Source
from viewkeeper.operators.exchange import Exchange
from viewkeeper.operators.expand import Expand
from viewkeeper.operators.filter import Filter
from viewkeeper.operators.generate import Generate
from viewkeeper.operators.group_values import GroupValues
from viewkeeper.operators.join import Join
from viewkeeper.operators.matched_rows import MatchedRows
from viewkeeper.operators.ordered.ends import End, Ends
from viewkeeper.operators.ordered.frequencies import Frequencies
from viewkeeper.operators.ordered.lists import Collected
from viewkeeper.operators.ordered.percentiles import Percentile
from viewkeeper.operators.ordered.reader import Ordered
from viewkeeper.operators.ordered.values import OrderedValues
from viewkeeper.operators.partial_aggregate import Call, PartialAggregate
from viewkeeper.operators.project import Project
from viewkeeper.operators.range_order import RangeOrder
from viewkeeper.operators.range_seeks import Bound, Seek
from viewkeeper.operators.recursion import Recursion
from viewkeeper.operators.repeat import Repeat
from viewkeeper.operators.semi_join import SemiJoin
from viewkeeper.operators.top_k import TopK
from viewkeeper.operators.union import UnionAll
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.operators.window import Window
from viewkeeper.operators.windows.call import Call as WindowCall
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, Column, Schema, array
from viewkeeper.zset.sort_keys import OrderItem

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


def _generate() -> Circuit:
    ends = [resolve("mod", [column, Literal(4, BIGINT)], Session()) for column in (_column(1), _column(2))]
    schema = Schema((*ROWS.select((2, 0)).columns, Column("pos", INT, True), Column("col", BIGINT)))
    collection = resolve("sequence", ends, Session())
    site = ErrorSite("errors", ("k",), (0,))
    return _circuit(_source(), (Generate(schema, (2, 0), collection, True, False, Session(), site), (0,)))


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
    join = Join(schema, left, right, (residual,), Session(), None)
    return _circuit(_source(1), _source(2), (left, (0,)), (right, (1,)), (join, (0, 1)))


def _range_join() -> Circuit:
    """Of one group, l.v BETWEEN r.k AND r.v."""
    value, low, high = _column(2), ColumnRef(3, BIGINT, False), ColumnRef(5, BIGINT)
    conditions = tuple(resolve(name, [value, end], Session()) for name, end in (("ge", low), ("le", high)))
    seek_left = Seek((Bound("ge", _column(0)), Bound("le", _column(2))), (), Session())
    seek_right = Seek((Bound("ge", _column(2)),), (), Session())
    left, right = (
        Arrange(ROWS, (1,), (0,), state, True, RangeOrder(_column(2), (), Session())) for state in ("left", "right")
    )
    schema = Schema(ROWS.columns + ROWS.columns)
    join = Join(schema, left, right, conditions, Session(), None, frozenset(), seek_left, seek_right)
    return _circuit(_source(1), _source(2), (left, (0,)), (right, (1,)), (join, (0, 1)))


def _band_join() -> Circuit:
    """l.k BETWEEN r.k - 1 AND r.k + 1, of rows of any groups."""
    ends = [resolve(name, [_column(0), Literal(1, BIGINT)], Session()) for name in ("subtract", "add")]
    shifted = [shift_columns(end, {0: 3}) for end in ends]
    conditions = tuple(
        resolve(name, [_column(0), end], Session()) for name, end in zip(("ge", "le"), shifted, strict=True)
    )
    seek_left = Seek((Bound("ge", ends[0]), Bound("le", ends[1])), tuple(ends), Session())
    seek_right = Seek((Bound("le", ends[1]), Bound("ge", ends[0])), (), Session())
    left = Arrange(ROWS, (), (0,), "left", True, RangeOrder(_column(0), (), Session()))
    right = Arrange(ROWS, (), (0,), "right", True, RangeOrder(_column(0), tuple(ends), Session()))
    schema = Schema(ROWS.columns + ROWS.columns)
    site = ErrorSite("errors", ("k", "k"), (0, 3))
    join = Join(schema, left, right, conditions, Session(), site, frozenset(), seek_left, seek_right)
    return _circuit(_source(1), _source(2), (left, (0,)), (right, (1,)), (join, (0, 1)))


def _recursion() -> Circuit:
    rows = Schema((Column("g", BIGINT),))
    newest = Arrange(rows, (0,), (0,), "newest", skip_null_keys=True)
    steps = Arrange(ROWS, (0,), (0,), "steps", skip_null_keys=True)
    join = Join(Schema(rows.columns + ROWS.columns), newest, steps, (), Session(), None)
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


def _recursion_with_rounds() -> Circuit:
    """UNION ALL, three rounds with the anchor's."""
    rows = Schema((Column("g", BIGINT), Column("round", INT, False), Column("count", BIGINT, False)))
    number, copies = (ColumnRef(i, rows.types[i], False) for i in (1, 2))
    early = Filter(rows, resolve("lt", [number, Literal(2, INT)], Session()), Session(), None)
    newest = Arrange(rows, (0,), (0, 1, 2), "newest", skip_null_keys=True)
    steps = Arrange(ROWS, (0,), (0,), "steps", skip_null_keys=True)
    join = Join(Schema(rows.columns + ROWS.columns), newest, steps, (), Session(), None)
    made = (ColumnRef(4, BIGINT), resolve("add", [number, Literal(1, INT)], Session()), copies)
    inner = _circuit(
        (Source(0, rows), ()),
        (Source(1, ROWS), ()),
        (early, (0,)),
        (newest, (2,)),
        (steps, (1,)),
        (join, (3, 4)),
        (Project(rows, made, Session(), None), (5,)),
    )
    return _circuit(
        _source(1),
        _source(2),
        (Project(rows.select((0,)), (_column(1),), Session(), None), (0,)),
        (Recursion(rows, inner, False, 3, "rounds", ErrorSite("errors", ("g", "round", "count"), (0, 1, 2))), (2, 1)),
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
    join = Join(schema, left, right, (residual,), Session(), None)
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
    outputs = (*ends, Ordered(1, Collected(array(BIGINT))), Ordered(0, Ends(array(BIGINT), True, 2)))
    singles = (Column(name, BIGINT) for name in ("max_by", "first", "mode"))
    lists = (Column("all", array(BIGINT), False), Column("two", array(BIGINT)))
    schema = Schema((*_GROUP, *singles, *lists))
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


def _aggregate_of_weighted() -> Circuit:
    """PERCENTILE(v, 0.5, pmod(k, 2) + 1)."""
    remainder = resolve("pmod", [_column(0), Literal(2, BIGINT)], Session())
    often = Schema((*ROWS.columns, Column("often", BIGINT)))
    expressions = (*map(_column, range(3)), resolve("add", [remainder, Literal(1, BIGINT)], Session()))
    weighted = Schema((*_VALUE.columns, Column("often", BIGINT)))
    values = OrderedValues(weighted, 1, 2, (1, 2), True, "weighted", True)
    middle = Ordered(0, Percentile("continuous", (0.5,), False, DOUBLE, False))
    schema = Schema((*_GROUP, Column("middle", DOUBLE)))
    return _circuit(
        _source(),
        (Project(often, expressions, Session(), None), (0,)),
        (PartialAggregate((1,), _GROUP, ()), (1,)),
        (_values(weighted, (2, 3), 3), (1,)),
        (Aggregate(schema, _GROUP, (), (values,), (middle,), "groups", None), (2, 3)),
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


def _top_k(ranking: str, partition: tuple[int, ...]) -> Circuit:
    schema = Schema((*ROWS.columns, Column("rank", INT, False)))
    order = (OrderItem(2, False, False),)
    return _circuit(_source(), (TopK(schema, partition, order, (0,), 2, 0, ranking, "ordered"), (0,)))


def _window() -> Circuit:
    arrangement = Arrange(ROWS, (1,), (0,), "arranged")
    names = ("before", "total", "least", "last", "most_often")
    lists = (Column(name, array(BIGINT), False) for name in ("all", "different"))
    singles = (Column(name, BIGINT) for name in names)
    schema = Schema((*ROWS.columns, Column("rank", INT, False), *singles, *lists, Column("third", DOUBLE)))
    value = ((2,), (), "rows", 1, 1, False, None, (BIGINT,), BIGINT)
    calls = (
        WindowCall("rank", (), (), "range", None, None, False, None, (), INT),
        WindowCall("lag", (2,), (1,), "range", None, None, False, None, (BIGINT,), BIGINT),
        WindowCall("sum", *value),
        WindowCall("min", *value),
        WindowCall("last_value", (2,), (), "range", 1, 0, True, None, (BIGINT,), BIGINT),
        WindowCall("mode", (2,), (True,), "range", None, None, False, None, (BIGINT,), BIGINT),
        WindowCall("collect_list", (2,), (), "range", None, 0, True, None, (BIGINT,), array(BIGINT)),
        WindowCall("collect_set", *value[:-1], array(BIGINT)),
        WindowCall(
            "percentile", (2,), ("continuous", False, False, 0.3), "range", None, None, False, None, (BIGINT,), DOUBLE
        ),
    )
    site = ErrorSite("errors", ("k",), (0,))
    return _circuit(_source(), (arrangement, (0,)), (Window(schema, arrangement, (OrderItem(2),), calls, site), (0,)))


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
    "generate": _generate,
    "repeat": _repeat,
    "exchange": _exchange,
    "arrange": _arrange,
    "join": _join,
    "range_join": _range_join,
    "band_join": _band_join,
    "recursion": _recursion,
    "recursion_with_rounds": _recursion_with_rounds,
    "semi_join": _semi_join,
    "null_safe_anti_join": _null_safe_anti_join,
    "matched_rows": lambda: _matched_rows(anti=False, theta=False),
    "unmatched_rows": lambda: _matched_rows(anti=True, theta=False),
    "unmatched_rows_of_theta_join": lambda: _matched_rows(anti=True, theta=True),
    "partial_aggregate": _partial_aggregate,
    "group_values": _group_values,
    "aggregate": _aggregate,
    "aggregate_of_rows": _aggregate_of_rows,
    "aggregate_of_weighted": _aggregate_of_weighted,
    "aggregate_of_distinct": _aggregate_of_distinct,
    "top_k": lambda: _top_k("row_number", (1,)),
    "top_k_by_rank": lambda: _top_k("rank", (1,)),
    "top_k_by_dense_rank": lambda: _top_k("dense_rank", (1,)),
    "top_k_of_all": lambda: _top_k("row_number", ()),
    "window": _window,
    "view_rows": _view_rows,
    "view_rows_with_declared_key": _checked_view_rows,
}
"""Per operator (and way of using it) a circuit; Catalyst is not among them, because only Spark can run it."""


@dataclass(frozen=True)
class Reads:
    """How much one step of an example reads at most, in the unit of ``ReadTransaction.reads``.

    Each number is a factor; what an example leaves out is 0.

    Args:
        changed: of each changed row: an old one that goes, a new one that comes.
        touched: of each row, on either side, of the groups in which a row changes.
        side: of each row of one input: exactly so many, whatever changes.
    """

    changed: int = 0
    touched: int = 0
    side: int = 0


_NOTHING = Reads()
READS: Mapping[str, Reads] = {
    "filter": _NOTHING,
    "project": _NOTHING,
    "union": _NOTHING,
    "expand": _NOTHING,
    "generate": _NOTHING,
    "repeat": Reads(changed=1),
    "exchange": _NOTHING,
    "arrange": _NOTHING,
    "join": Reads(changed=1, touched=1),
    "range_join": Reads(changed=1, touched=1),
    # Whatever the group: a seek, and the three rows that can be as near.
    "band_join": Reads(changed=4),
    # By derivation, not by group: each changed row of the example makes or breaks a few.
    "recursion": Reads(changed=3),
    "recursion_with_rounds": Reads(changed=3),
    "semi_join": Reads(changed=2),
    "null_safe_anti_join": Reads(changed=2),
    # The join reads the partners, and each partner's count of pairs is looked up.
    "matched_rows": Reads(changed=2, touched=2),
    "unmatched_rows": Reads(changed=2, touched=2),
    # Without a key, a change of each side reads the other, and then the count of pairs of each row.
    "unmatched_rows_of_theta_join": Reads(side=3),
    "partial_aggregate": _NOTHING,
    "group_values": _NOTHING,
    "aggregate": Reads(changed=4),
    # A list of all values, as of before and of after.
    "aggregate_of_rows": Reads(changed=8, touched=2),
    # A row counts twice at most, so the percentile moves by two rows.
    "aggregate_of_weighted": Reads(changed=4),
    "aggregate_of_distinct": Reads(changed=2),
    # The first two of a partition, and one more for each that goes.
    "top_k": Reads(changed=2),
    # Peers too: at worst all rows of the partition.
    "top_k_by_rank": Reads(changed=2, touched=1),
    "top_k_by_dense_rank": Reads(changed=2, touched=1),
    "top_k_of_all": Reads(changed=1),
    "window": Reads(changed=1, touched=1),
    # A key of its own is written as it is; where rows may share the declared one, those that do are read.
    "view_rows": _NOTHING,
    "view_rows_with_declared_key": Reads(changed=1, touched=1),
}
"""What a step of each example reads; a test holds them to it at one size of the tables and at ten times that."""
