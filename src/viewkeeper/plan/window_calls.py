"""One window function: which it is, its arguments, types by Spark's rules, and its frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewkeeper.expressions.tree import Expression, Literal, Scalar
from viewkeeper.operators.functions.registry import ADDITIVE
from viewkeeper.plan.aggregate_calls import RESPECT_NULLS, Calls, TypedCall, guarded
from viewkeeper.plan.aggregate_syntax import taken_apart
from viewkeeper.plan.binding import windowed_call
from viewkeeper.plan.context import Context
from viewkeeper.plan.function_names import AGGREGATES
from viewkeeper.plan.nodes import Node
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.window_frames import WHOLE, Frame, constant_of, frame_of
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import SqlType

_RANKINGS = {
    "row_number": types.INT, "rank": types.INT, "dense_rank": types.INT, "ntile": types.INT,
    "percent_rank": types.DOUBLE, "cume_dist": types.DOUBLE,
}  # fmt: skip
_VALUES = {
    "first_value": "first_value", "first": "first_value", "any_value": "first_value",
    "last_value": "last_value", "last": "last_value", "nth_value": "nth_value",
}  # fmt: skip
_ADDITIVE = ADDITIVE | {"min", "max"}
_WHOLE_INSTEAD = (
    "Leave ORDER BY and the frame out of its window, or join each row with the rows of its frame and aggregate those."
)
_NEED_ORDER = frozenset((*_RANKINGS, "lag", "lead", "nth_value"))


@dataclass(frozen=True)
class TypedWindow:
    """A window function: ``WindowCall`` over expressions instead of positions."""

    function: str
    arguments: tuple[Expression, ...]
    constants: tuple[Scalar, ...]
    frame: Frame
    type: SqlType
    nullable: bool
    ignore_nulls: bool = False
    filter: Expression | None = None
    name: str = field(default="", compare=False)


def typed_window(window: exp.Window, node: Node, order: Sequence[SqlType], context: Context) -> TypedWindow:
    """Return the function that ``window`` calls over the rows of ``node``.

    Args:
        window: the call, bound to ``node``.
        node: the rows.
        order: the types of the window's ORDER BY items.
        context: the statement.

    Raises:
        SqlError: wrong arguments, types or frames, at their place.
        UnsupportedSql: ``WINDOW_FUNCTION_NOT_YET``.
    """
    return _Typing(window, node, order, context).call()


class _Typing:
    def __init__(self, window: exp.Window, node: Node, order: Sequence[SqlType], context: Context) -> None:
        self.window = window
        self.node = node
        self.order = order
        self.context = context
        self.translator = Translator(node.schema, context)
        self.function = windowed_call(window)
        self.name = self.function.name.lower()
        around = list(window.this.walk())
        self.ignore_nulls = any(isinstance(n, exp.IgnoreNulls) for n in around)
        self.says_nulls = self.ignore_nulls or any(isinstance(n, exp.RespectNulls) for n in around)
        self.condition = next((n.expression.this for n in around if isinstance(n, exp.Filter)), None)
        self.within = next((tuple(n.expression.expressions) for n in around if isinstance(n, exp.WithinGroup)), ())

    def call(self) -> TypedWindow:
        if not isinstance(self.function, exp.Anonymous):
            raise self.context.refusal("WINDOW_FUNCTION_NOT_YET", self.window)
        if self.name in _NEED_ORDER and not self.order:
            message = f"{self.name}() needs an order: add ORDER BY to its window."
            raise self.context.error("WINDOW_FUNCTION_FRAME_NOT_ORDERED", message, self.window)
        if self.name in _RANKINGS:
            return self._ranking()
        if self.name in ("lag", "lead"):
            return self._offset()
        if self.name in _VALUES:
            return self._value()
        if self.name in AGGREGATES:
            return self._aggregate()
        raise self.context.refusal("WINDOW_FUNCTION_NOT_YET", self.window, f"{self.name}() as a window function")

    def _ranking(self) -> TypedWindow:
        self._without_frame()
        self._plain()
        constants: tuple[Scalar, ...] = ()
        if self.name == "ntile":
            self._expect(0, 1)
            buckets = self._number(0, types.INT) if self.function.expressions else 1
            constants = (self._positive(buckets),)
        elif self.name not in ("rank", "dense_rank", "percent_rank"):
            self._expect(0, 0)
        return TypedWindow(self.name, (), constants, WHOLE, _RANKINGS[self.name], False, name=self.name)

    def _offset(self) -> TypedWindow:
        self._without_frame()
        self._expect(1, 3)
        self._unfiltered()
        trees = self.function.expressions
        value = self.translator.expression(trees[0])
        distance = self._number(1, types.INT) if len(trees) > 1 else 1
        arguments: tuple[Expression, ...] = (value,)
        nullable = True
        if len(trees) > 2:
            default = self.translator.expression(trees[2])
            if not isinstance(default, Literal) or default.value is not None:
                default = self.translator.cast(trees[2], default, value.type)
                arguments, nullable = (value, default), value.nullable or default.nullable
        return TypedWindow(
            self.name, arguments, (distance,), WHOLE, value.type, nullable, self.ignore_nulls, name=self.name
        )

    def _value(self) -> TypedWindow:
        nth = self.name == "nth_value"
        self._expect(2 if nth else 1, 2)
        trees = self.function.expressions
        constants: tuple[Scalar, ...] = ()
        ignore_nulls = self.ignore_nulls
        if nth:
            constants = (self._positive(self._number(1, types.BIGINT)),)
        elif len(trees) == 2:
            flag = self.translator.expression(trees[1])
            if not isinstance(flag, Literal) or flag.type != types.BOOLEAN:
                message = f"The second argument of {self.name}() says whether NULLs are passed over: TRUE or FALSE."
                raise self.context.error("DATATYPE_MISMATCH", message, trees[1])
            ignore_nulls = ignore_nulls or bool(flag.value)
        value = self.translator.expression(trees[0])
        return TypedWindow(
            _VALUES[self.name], (value,), constants, self._frame(), value.type, True, ignore_nulls, self._filter(),
            self.name,
        )  # fmt: skip

    def _aggregate(self) -> TypedWindow:
        # The same call as an aggregate: types and coercions are those of GROUP BY.
        plain = exp.Anonymous(this=self.name, expressions=[tree.copy() for tree in self.function.expressions])
        plain.parent = self.window
        syntax = taken_apart(plain)
        assert syntax is not None
        given = self.ignore_nulls if self.says_nulls else None
        call = Calls(self.translator, self.context).typed(replace(syntax, ignore_nulls=given, order=self.within))
        whole = self._is_whole()
        if (self.name == "median" or (self.within and call.function != "mode")) and (self.order or not whole):
            message = f"{self.name}() is that of the whole partition: leave ORDER BY and the frame out of its window."
            raise self.context.error("INVALID_WINDOW_SPEC_FOR_AGGREGATION_FUNC", message, self.window)
        if call.function in ("collect_list", "listagg"):
            return self._list(call)
        if call.function in ("percentile", "mode"):
            if not whole:
                what = f"{self.name}() over a running or sliding frame"
                raise self.context.refusal("WINDOW_FUNCTION_NOT_YET", self.window, what, _WHOLE_INSTEAD)
            return self._whole(call, call.arguments, call.constants)
        if call.function not in _ADDITIVE or len(call.arguments) > 1:
            raise self.context.refusal("WINDOW_FUNCTION_NOT_YET", self.window, f"{self.name}() as a window function")
        return TypedWindow(
            call.function, call.arguments, (), self._frame(), call.type, call.nullable, filter=self._filter(),
            name=self.name,
        )  # fmt: skip

    def _list(self, call: TypedCall) -> TypedWindow:
        if call.order:
            # The order stands behind the text: its values as arguments, how they are sorted as constants.
            by = tuple(item.expression for item in call.order)
            directions = (flag for item in call.order for flag in (item.ascending, item.nulls_first))
            return self._whole(call, (*call.arguments, *by), (*call.constants, *directions))
        function = "collect_set" if call.distinct else call.function
        respect = RESPECT_NULLS in call.constants and call.function == "collect_list"
        constants = call.constants if call.function == "listagg" else ()
        return TypedWindow(
            function, call.arguments, constants, self._frame(), call.type, call.nullable, not respect, self._filter(),
            self.name,
        )  # fmt: skip

    def _whole(self, call: TypedCall, arguments: tuple[Expression, ...], constants: tuple[Scalar, ...]) -> TypedWindow:
        """Return a function of whole partitions, whose values stand in an order of their own."""
        condition = self._filter()
        if condition is not None:
            arguments = guarded(replace(call, arguments=arguments), condition).arguments
        return TypedWindow(
            call.function, arguments, constants, WHOLE, call.type, call.nullable, call.function == "listagg", condition,
            self.name,
        )  # fmt: skip

    # ---- parts ----

    def _frame(self) -> Frame:
        return frame_of(self.window, self.order, self.translator, self.context)

    def _is_whole(self) -> bool:
        frame = self._frame()
        return frame.start is None and frame.stop is None

    def _filter(self) -> Expression | None:
        return None if self.condition is None else self.translator.condition(self.condition, "FILTER")

    def _without_frame(self) -> None:
        if self.window.args.get("spec") is not None:
            message = f"{self.name}() takes no frame: leave ROWS or RANGE out of its window."
            raise self.context.error("INVALID_WINDOW_FRAME", message, self.window)

    def _unfiltered(self) -> None:
        if self.condition is not None:
            message = f"FILTER (WHERE …) goes with aggregates, not with {self.name}()."
            raise self.context.error("INVALID_SQL_SYNTAX", message, self.window)

    def _plain(self) -> None:
        self._unfiltered()
        if self.ignore_nulls:
            message = f"{self.name}() does not take IGNORE NULLS: leave it out."
            raise self.context.error("INVALID_SQL_SYNTAX", message, self.window)

    def _expect(self, least: int, most: int) -> None:
        count = len(self.function.expressions)
        if not least <= count <= most or any(isinstance(tree, exp.Star) for tree in self.function.expressions):
            wanted = str(least) if least == most else f"{least} to {most}"
            message = f"{self.name}() takes {wanted} arguments, not {count}."
            raise self.context.error("WRONG_NUM_ARGS", message, self.window)

    def _number(self, number: int, widest: SqlType) -> int:
        """Return a constant whole number."""
        tree = self.function.expressions[number]
        expression = self.translator.expression(tree)
        value = constant_of(expression, self.context)
        fits = expression.type.is_integer and not (expression.type == types.BIGINT and widest == types.INT)
        if not fits or not isinstance(value, int):
            message = f"Argument {number + 1} of {self.name}() must be a constant {widest.name}."
            raise self.context.error("DATATYPE_MISMATCH", message, tree)
        return value

    def _positive(self, value: int) -> int:
        if value < 1:
            message = f"{self.name}() takes a number from 1, not {value}."
            raise self.context.error("DATATYPE_MISMATCH", message, self.window)
        return value
