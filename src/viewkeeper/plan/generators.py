"""EXPLODE, POSEXPLODE, INLINE, STACK, JSON_TUPLE, UNNEST, VALUES and range(): what makes rows of one.

A collection becomes a Generate node. Rows of expressions (``STACK``, ``VALUES``, ``UNPIVOT``) become an Expand: each
row of the input once per row of expressions, told apart by a number behind the key. So constant rows that are joined
with a table need no source of their own: they are made for each changed row. Where that is not the same (outer, semi
and anti joins, USING) or too much, they are a relation of their own, made of one row. JSON_TUPLE makes one row: a
projection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.expressions import coercion
from viewkeeper.expressions.collections import holds_null
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Scalar, SparkExpression
from viewkeeper.plan.binding import bind
from viewkeeper.plan.catalog import suggestion
from viewkeeper.plan.constants import constant
from viewkeeper.plan.context import Context
from viewkeeper.plan.folding import constant_of, integer_of
from viewkeeper.plan.function_names import GENERATORS, TABLE_FUNCTIONS
from viewkeeper.plan.keys import all_of
from viewkeeper.plan.nodes import Expand, Filter, Generate, Node, Project
from viewkeeper.plan.one_row import one_row
from viewkeeper.plan.scopes import NamedColumn, OuterNames, Scope, Source
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.user_calls import spark_schema
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema, SqlType

ROWS_BESIDE_MAX = 1000
"""How many rows of VALUES are made, and then filtered, for every changed row beside them; more are kept instead."""


@dataclass(frozen=True)
class Call:
    """A call that makes several rows of one.

    Args:
        function: ``explode``, ``inline``, ``stack``, ``json_tuple``, ``range`` or ``values``.
        arguments: as parsed; of ``values`` its rows.
        with_position: whether the position of the element is a column too.
        outer: whether a row without elements stays.
        origin: the place in the SQL.
    """

    function: str
    arguments: tuple[exp.Expr, ...]
    with_position: bool
    outer: bool
    origin: exp.Expr


def call_of(tree: exp.Expr, outer: bool = False) -> Call | None:
    """Return the call that ``tree`` is, None where it is none.

    Args:
        tree: a function call, UNNEST or VALUES.
        outer: LATERAL VIEW OUTER, LEFT JOIN LATERAL.
    """
    if isinstance(tree, exp.Values):
        return Call("values", tuple(tree.expressions), False, outer, tree)
    if isinstance(tree, exp.Unnest):
        return Call("explode", tuple(tree.expressions), False, outer, tree)
    if not isinstance(tree, exp.Anonymous):
        return None
    name = tree.name.lower()
    if name in ("range", "unnest"):
        return Call("range" if name == "range" else "explode", tuple(tree.expressions), False, outer, tree)
    if name not in GENERATORS:
        return None
    function = name.removesuffix("_outer").removeprefix("pos")
    positioned = name.startswith("pos")
    return Call(function, tuple(tree.expressions), positioned, outer or name.endswith("_outer"), tree)


def call_in(item: exp.Expr) -> Call | None:
    """Return the call that an item of FROM is without LATERAL and parentheses, None where it is none."""
    if isinstance(item, exp.Table):
        return call_of(item.this) if isinstance(item.this, exp.Func | exp.Values) else None
    return call_of(item) if isinstance(item, exp.Values | exp.Unnest) else None


def refused_generator(tree: exp.Expr, code: str, context: Context) -> Exception:
    """Return the error for what stands in LATERAL or FROM as a function that makes rows and is none of a view.

    Args:
        tree: the item of FROM.
        code: the refusal, where Spark has the function.
        context: the statement.
    """
    call = tree.this if isinstance(tree, exp.Lateral | exp.Table) else tree
    if isinstance(call, exp.Anonymous) and call.name.lower() == "identifier":
        return context.refusal("CLAUSE_NOT_YET", tree, "IDENTIFIER(), in place of the name itself,")
    known = GENERATORS | TABLE_FUNCTIONS
    if not isinstance(call, exp.Anonymous) or call.name.lower() in known:
        return context.refusal(code, tree)
    message = f"There is no function {call.name}() that makes rows. {suggestion(call.name, sorted(known))}"
    return context.error("UNRESOLVED_ROUTINE", message, call)


def generated(
    source: Source, call: Call, context: Context, outer: OuterNames | None = None
) -> tuple[Source, tuple[NamedColumn, ...]]:
    """Return ``source`` with each row once per row of ``call``, and the columns that this adds; names are Spark's.

    Args:
        source: the rows.
        call: the call.
        context: the statement.
        outer: in a subquery, the names of the query around it.

    Raises:
        SqlError: arguments of a wrong number or type.
        UnsupportedSql: ``LATERAL_VIEW_NOT_YET`` for other functions.
    """
    if call.origin.args.get("offset"):
        raise context.refusal("CLAUSE_NOT_YET", call.origin, "UNNEST WITH ORDINALITY")
    scope = Scope(source.columns, source.node.schema, context, outer)
    if call.function in ("values", "range"):
        make = {"values": _values, "range": _range}[call.function]
        node, columns = make(source, call, context)
    elif call.function in ("stack", "json_tuple"):
        node, columns = (_stack if call.function == "stack" else _json_tuple)(source.node, call, scope)
    elif call.function in ("explode", "inline"):
        node, columns = _elements(source.node, call, scope)
    else:
        raise context.refusal("LATERAL_VIEW_NOT_YET", call.origin, f"{call.function}()")
    return Source(node, source.columns), columns


def rows_apart(call: Call, context: Context, outer: OuterNames | None = None) -> Source:
    """Return the rows of a call that reads no columns beside it as a relation of its own.

    Args:
        call: the call.
        context: the statement.
        outer: as of ``generated``.

    Raises:
        UnsupportedSql: ``QUERY_WITHOUT_TABLE`` where the whole statement reads no table.
    """
    source, columns = generated(one_row(call.origin, context, "a query of constants"), call, context, outer)
    return Source(source.node, columns)


def stacked(
    node: Node, rows: Sequence[Sequence[Expression]], names: Sequence[str], nullable: Sequence[bool]
) -> tuple[Expand, tuple[NamedColumn, ...]]:
    """Return each row of ``node`` once per row of expressions, whose types agree, and the columns that this adds."""
    computed: list[Expression] = []
    width = len(node.schema)

    def output(expression: Expression) -> ColumnRef | Literal:
        if isinstance(expression, (ColumnRef, Literal)):
            return expression
        if expression not in computed:
            computed.append(expression)
        return ColumnRef(width + computed.index(expression), expression.type, expression.nullable)

    own = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(node.schema.columns))
    projections = tuple(
        (*own, Literal(number, types.INT), *map(output, expressions)) for number, expressions in enumerate(rows)
    )
    if computed:
        added = tuple(Column(f"__row_{i}", e.type, e.nullable) for i, e in enumerate(computed))
        node = Project(node, (*own, *computed), Schema(node.schema.columns[:width] + added), node.key)
    kinds = [expression.type for expression in rows[0]]
    made = tuple(Column(*column) for column in zip(names, kinds, nullable, strict=True))
    schema = Schema((*node.schema.columns[:width], Column("pos", types.INT, False), *made))
    key = None if node.key is None else (*node.key, width)
    columns = tuple(NamedColumn(None, name, width + 1 + i) for i, name in enumerate(names))
    return Expand(node, projections, schema, key), columns


def _elements(node: Node, call: Call, scope: Scope) -> tuple[Node, tuple[NamedColumn, ...]]:
    context = scope.context
    translator = Translator(node.schema, context)
    if len(call.arguments) != 1:
        message = f"{call.function}() takes one argument, not {len(call.arguments)}."
        raise context.error("WRONG_NUM_ARGS", message, call.origin)
    tree = bind(call.arguments[0], scope, aggregates=f"{call.function}()")
    collection = translator.expression(tree)
    found = collection.type
    inline = call.function == "inline"
    fits = found.name == "ARRAY" and found.children[0].name == "STRUCT" if inline else found.name in ("ARRAY", "MAP")
    if not fits:
        wanted = "an ARRAY of STRUCTs" if inline else "an ARRAY or a MAP"
        message = f"{call.function}() takes {wanted}, not {str(found).upper()}."
        raise context.error("DATATYPE_MISMATCH", message, call.origin)
    made = _element_columns(collection, inline, call.outer, node.schema, context)
    width = len(node.schema)
    schema = Schema((*node.schema.columns, Column("pos", types.INT, call.outer), *made))
    key = None if node.key is None else (*node.key, width)
    kept = tuple(range(width))
    first = width if call.with_position else width + 1
    columns = tuple(NamedColumn(None, schema.names[i], i) for i in range(first, len(schema)))
    return Generate(node, kept, collection, call.outer, inline, schema, key), columns


def _element_columns(
    collection: Expression, inline: bool, outer: bool, schema: Schema, context: Context
) -> tuple[Column, ...]:
    children = collection.type.children
    if collection.type.name == "MAP":
        value = outer or _holds_null(collection, "map_values({})", schema, context)
        return Column("key", children[0], outer), Column("value", children[1], value)
    if not inline:
        return (Column("col", children[0], outer or _holds_null(collection, "{}", schema, context)),)
    element = children[0]
    fields = []
    for name, sql_type in zip(element.field_names, element.children, strict=True):
        text = f"transform({{}}, e -> e.`{name.replace('`', '``')}`)"
        fields.append(Column(name, sql_type, outer or _holds_null(collection, text, schema, context)))
    return tuple(fields)


def _holds_null(collection: Expression, elements: str, schema: Schema, context: Context) -> bool:
    """Return whether Spark calls the elements nullable; types here do not say, so its analyzer is asked."""
    if not isinstance(collection, SparkExpression):
        return holds_null(collection)
    assert context.spark_types is not None
    columns = spark_schema(schema, collection.calls)
    return context.spark_types(f"explode({elements.format(collection.sql)})", columns)[1]


def _stack(node: Node, call: Call, scope: Scope) -> tuple[Node, tuple[NamedColumn, ...]]:
    context = scope.context
    translator = Translator(node.schema, context)
    values = [translator.expression(bind(tree, scope, aggregates="stack()")) for tree in call.arguments]
    count = integer_of(values[0], context.session) if values else None
    if count is None or count < 1 or len(values) < 2:
        message = "stack() takes a constant number of rows, at least 1, and then the values of the rows."
        raise context.error("DATATYPE_MISMATCH", message, call.origin)
    width = -(-(len(values) - 1) // count)
    padded = [*values[1:], *[Literal(None, types.VOID)] * (width * count - len(values) + 1)]
    rows = [padded[start : start + width] for start in range(0, len(padded), width)]
    kinds = [_one_type([row[i] for row in rows], i, call.origin, context) for i in range(width)]
    cast = [[translator.cast(call.origin, v, kind) for v, kind in zip(row, kinds, strict=True)] for row in rows]
    return stacked(node, cast, [f"col{i}" for i in range(width)], [True] * width)


def _json_tuple(node: Node, call: Call, scope: Scope) -> tuple[Node, tuple[NamedColumn, ...]]:
    context = scope.context
    translator = Translator(node.schema, context)
    if len(call.arguments) < 2:
        message = "json_tuple() takes a JSON text, and then the names of fields."
        raise context.error("WRONG_NUM_ARGS", message, call.origin)
    trees = [bind(tree, scope, aggregates="json_tuple()") for tree in call.arguments]
    if any(translator.expression(tree).type != types.STRING for tree in trees):
        message = "The arguments of json_tuple() are STRINGs: cast the others."
        raise context.error("DATATYPE_MISMATCH", message, call.origin)
    fields = [_json_field(trees[0], tree, translator) for tree in trees[1:]]
    own = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(node.schema.columns))
    names = [f"c{i}" for i in range(len(fields))]
    made = tuple(Column(name, types.STRING, True) for name in names)
    project = Project(node, (*own, *fields), Schema((*node.schema.columns, *made)), node.key)
    return project, tuple(NamedColumn(None, name, len(own) + i) for i, name in enumerate(names))


def _json_field(text: exp.Expr, name: exp.Expr, translator: Translator) -> Expression:
    """Return a field of a JSON text: JSON_TUPLE is no expression of Spark's, but a path says the same."""
    context = translator.context
    found, field = constant(translator.expression(name), context.session)
    if not found:
        raise context.refusal("LATERAL_VIEW_NOT_YET", name, "json_tuple() of a field whose name is computed")
    if field is None:
        return Literal(None, types.STRING)
    assert isinstance(field, str)
    if not field or "'" in field or field == "*" or field[0].isspace():
        raise context.refusal("LATERAL_VIEW_NOT_YET", name, f"json_tuple() of a field called '{field}'")
    path = exp.Literal.string(f"$['{field}']")
    call = exp.Anonymous(this="get_json_object", expressions=[text.copy(), path])
    call.parent = name.parent
    return translator.expression(call)


def _one_type(values: Sequence[Expression], number: int, origin: exp.Expr, context: Context) -> SqlType:
    found = dict.fromkeys(value.type for value in values if value.type != types.VOID)
    if len(found) != 1:
        listed = " and ".join(str(kind).upper() for kind in found) or "NULL"
        message = f"The values of column {number} of stack() must have one type, not {listed}: cast them."
        raise context.error("DATATYPE_MISMATCH", message, origin)
    return next(iter(found))


def _values(source: Source, call: Call, context: Context) -> tuple[Node, tuple[NamedColumn, ...]]:
    rows = [[_constant(tree, context) for tree in _row(row)] for row in call.arguments]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        message = f"The rows of VALUES have different numbers of values: the first has {width}."
        raise context.error("INVALID_INLINE_TABLE", message, call.origin)
    kinds = [_common_type([row[i] for row in rows], call.origin, context) for i in range(width)]
    translator = Translator(Schema(()), context)
    cast = [[translator.cast(call.origin, v, k) for v, k in zip(row, kinds, strict=True)] for row in rows]
    # As in Spark, of the expressions as they are written.
    nullable = [any(row[i].nullable for row in cast) for i in range(width)]
    values = [[constant_of(value, context.session) for value in row] for row in cast]
    return stacked(source.node, values, [f"col{i + 1}" for i in range(width)], nullable)


def _constant(tree: exp.Expr, context: Context) -> Expression:
    """Return a value of VALUES, which names no column of anything beside it."""
    try:
        return Translator(Schema(()), context).expression(
            bind(tree, Scope((), Schema(()), context), aggregates="VALUES")
        )
    except SqlError as error:
        if error.code != "UNRESOLVED_COLUMN":
            raise
        message = (
            f"VALUES holds constants, and '{tree.sql(dialect='spark')}' names a column: make rows of the row beside "
            "them by LATERAL explode(array(…)) or LATERAL stack(…)."
        )
        raise context.error("INVALID_INLINE_TABLE", message, tree) from error


def _row(tree: exp.Expr) -> list[exp.Expr]:
    """Return the values of a row; as in Spark a struct() alone is a row, too."""
    values = list(tree.expressions) if isinstance(tree, exp.Tuple) else [tree]
    while len(values) == 1 and isinstance(values[0], exp.Paren):
        values = [values[0].this]
    first = values[0]
    if len(values) == 1 and (isinstance(first, exp.Tuple) or _is_struct(first)):
        values = list(first.expressions)
    return [value.this if isinstance(value, exp.Alias) else value for value in values]


def _is_struct(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() == "struct" and bool(tree.expressions)


def _common_type(values: Sequence[Expression], origin: exp.Expr, context: Context) -> SqlType:
    found = coercion.common_type([value.type for value in values], context.session)
    if found is None:
        message = "The values of a column of VALUES have no common type: cast them."
        raise context.error("INVALID_INLINE_TABLE", message, origin)
    return found


def _range(source: Source, call: Call, context: Context) -> tuple[Node, tuple[NamedColumn, ...]]:
    translator, scope = Translator(Schema(()), context), Scope((), Schema(()), context)
    bound = [translator.expression(bind(tree, scope, aggregates="range()")) for tree in call.arguments]
    numbers = [integer_of(value, context.session) for value in bound]
    if not 1 <= len(numbers) <= 3 or None in numbers or (len(numbers) == 3 and numbers[2] == 0):
        message = "range() takes a constant end, or start, end and a step other than 0."
        raise context.error("UNEXPECTED_INPUT_TYPE", message, call.origin)
    start, stop, step = {1: (0, *numbers, 1), 2: (*numbers, 1), 3: tuple(numbers)}[len(numbers)]
    node = source.node
    steps = range(int(start or 0), int(stop or 0), int(step or 1))
    if not steps:
        # Spark's sequences are never empty; a range can be.
        node = Filter(node, Literal(False, types.BOOLEAN), node.schema, node.key)
    ends: list[Scalar] = [steps[0], steps[-1], steps.step] if steps else [0, 0, 1]
    arguments = [Literal(value, types.BIGINT) for value in ends]
    collection = Translator(node.schema, context).resolve(call.origin, "sequence", arguments)
    width = len(node.schema)
    made = Column("pos", types.INT, False), Column("id", types.BIGINT, False)
    key = None if node.key is None else (*node.key, width)
    schema = Schema((*node.schema.columns, *made))
    generate = Generate(node, tuple(range(width)), collection, False, False, schema, key)
    return generate, (NamedColumn(None, "id", width + 1),)


def aliased(
    columns: tuple[NamedColumn, ...], alias: exp.Expr | None, context: Context, origin: exp.Expr
) -> tuple[NamedColumn, ...]:
    """Return generated columns under a table alias, with its column names where it has some.

    Raises:
        SqlError: ``ASSIGNMENT_ARITY_MISMATCH``.
    """
    if alias is None:
        return columns
    names = [identifier.name for identifier in alias.args.get("columns") or ()]
    if names and len(names) != len(columns):
        message = f"There are {len(names)} column aliases for {len(columns)} columns: name each, or none."
        raise context.error("ASSIGNMENT_ARITY_MISMATCH", message, origin)
    renamed = [replace(c, name=n) for c, n in zip(columns, names, strict=True)] if names else columns
    return tuple(replace(column, qualifier=alias.name or None) for column in renamed)


def filtered(
    source: Source, conditions: Sequence[exp.Expr], where: str, context: Context, outer: OuterNames | None = None
) -> Source:
    """Return the rows of ``source`` for which all conditions, as parsed, are true; ``outer`` as of ``generated``."""
    if not conditions:
        return source
    node = source.node
    scope, translator = Scope(source.columns, node.schema, context, outer), Translator(node.schema, context)
    parts = [translator.condition(bind(tree, scope, aggregates=where), where) for tree in conditions]
    if len(parts) > 1 and any(isinstance(part, SparkExpression) for part in parts):
        # What Spark computes stands alone: one filter each.
        for part in parts:
            node = Filter(node, part, node.schema, node.key)
        return Source(node, source.columns)
    condition = all_of(parts)
    assert condition is not None
    return Source(Filter(node, condition, node.schema, node.key), source.columns)
