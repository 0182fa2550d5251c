"""The name that Spark gives to a column without an alias: its expression, written Spark's way."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from viewkeeper.plan.function_names import CAST_FUNCTIONS
from viewkeeper.plan.parse import to_sql

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}

# Spark shows some functions under another name, and some with the defaults of arguments that were left out.
_RENAMED = {
    "ceil": "CEIL", "floor": "FLOOR", "sqrt": "SQRT", "signum": "SIGNUM", "exp": "EXP", "dateadd": "date_add",
    "array_agg": "collect_list",
}  # fmt: skip
_POSTFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_FIRST_ARGUMENT_ONLY = frozenset(("approx_count_distinct", "first", "first_value", "last", "last_value", "any_value"))
_DEFAULTS = {
    "substring": (2, "2147483647"), "substr": (2, "2147483647"), "locate": (2, "1"), "round": (1, "0"),
    "bround": (1, "0"), "replace": (2, ""), "lpad": (2, " "), "rpad": (2, " "),
    "listagg": (1, "NULL"), "string_agg": (1, "NULL"), "percentile": (2, "1"), "percentile_approx": (2, "10000"),
    "approx_percentile": (2, "10000"),
    "unix_timestamp": (1, "yyyy-MM-dd HH:mm:ss"), "to_unix_timestamp": (1, "yyyy-MM-dd HH:mm:ss"),
}  # fmt: skip


def spark_name(tree: exp.Expr) -> str:
    """Return the name of the column that ``tree`` computes.

    Example:
        >>> from viewkeeper.plan.parse import parse_expression
        >>> from viewkeeper.plan.place import Place
        >>> name = lambda sql: spark_name(parse_expression(sql, Place(sql)))
        >>> name("t.a"), name("a+1"), name("COUNT(*)"), name("Upper( c )")
        ('a', '(a + 1)', 'count(1)', 'upper(c)')
    """
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Column):
        return tree.this.name
    if isinstance(tree, exp.Dot) and _is_of_column(tree):
        return str(tree.expression.name)
    return _name(tree)


def _is_of_column(tree: exp.Dot) -> bool:
    """Return whether a field is taken out of a plain column; such columns are called as the field alone."""
    base = tree.this
    while isinstance(base, exp.Paren | exp.Dot):
        base = base.this
    return isinstance(base, exp.Column)


def _name(tree: exp.Expr) -> str:
    for kind, operator in _BINARY.items():
        if type(tree) is kind:
            return f"({_name(tree.this)} {operator} {_name(tree.expression)})"
    writer = _WRITERS.get(type(tree))
    return writer(tree) if writer else to_sql(tree)


def _anonymous(tree: exp.Expr) -> str:
    name = tree.name.lower()
    if name in ("window", "session_window"):
        # Its column stands for it.
        return name
    if name == "count" and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        return "count(1)"
    expressions = tree.expressions
    if len(expressions) == 1 and isinstance(expressions[0], exp.Distinct):
        expressions = expressions[0].expressions
    arguments = [_name(argument) for argument in expressions]
    if len(arguments) == 1 and name in CAST_FUNCTIONS:
        return arguments[0]
    if len(arguments) == 1 and name in _POSTFIX:
        return f"({arguments[0]} {_POSTFIX[name]})"
    if name in _FIRST_ARGUMENT_ONLY:
        arguments = arguments[:1]
    count, default = _DEFAULTS.get(name, (-1, ""))
    if len(arguments) == count:
        arguments.append(default)
    if name == "mode" and isinstance(tree.expressions[-1], exp.Boolean) and tree.expressions[-1].this:
        return _mode(tree.expressions[0], descending=False)
    inner = ", ".join(arguments)
    distinct = len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Distinct)
    if distinct:
        inner = f"DISTINCT {inner}"
    return f"(IF({inner}))" if name == "if" else f"{_RENAMED.get(name, name)}({inner})"


def _within_group(tree: exp.Expr) -> str:
    function, items = tree.this.name.lower(), tree.expression.expressions
    if function == "mode":
        return _mode(items[0].this, descending=bool(items[0].args.get("desc")))
    if function in ("percentile_cont", "percentile_disc"):
        order = [f"{_name(item.this)}{' DESC' if item.args.get('desc') else ''}" for item in items]
    else:
        order = [_ordered(item) for item in items]
    called = _name(tree.this)
    if function == "string_agg":
        called = f"listagg{called.removeprefix(function)}"
    return f"{called} WITHIN GROUP (ORDER BY {', '.join(order)})"


def _mode(value: exp.Expr, descending: bool) -> str:
    """Spark writes the order of a mode the other way round."""
    return f"mode() WITHIN GROUP (ORDER BY {_name(value)}{'' if descending else ' DESC'})"


def _literal(tree: exp.Expr) -> str:
    if tree.args.get("is_string"):
        return tree.name
    text = tree.name.upper()
    if "E" in text:
        return repr(float(text)).upper().replace("E+", "E")
    return str(Decimal(text)) if "." in text else str(int(text))


def _cast(tree: exp.Expr) -> str:
    operand, target = tree.this, tree.args["to"]
    if tree.meta.get("suffix"):
        return f"{float(operand.name)}" if target.sql().upper() in ("DOUBLE", "FLOAT") else operand.name
    type_name = to_sql(target)
    if isinstance(operand, exp.Literal) and operand.is_string and tree.meta.get("typed_literal"):
        return f"{type_name} '{operand.name}'"
    kind = "TRY_CAST" if isinstance(tree, exp.TryCast) else "CAST"
    return f"{kind}({_name(operand)} AS {type_name.replace(', ', ',')})"


def _case(tree: exp.Expr) -> str:
    operand = tree.args.get("this")
    parts = ["CASE"]
    for branch in tree.args["ifs"]:
        condition = _name(branch.this)
        if operand is not None:
            condition = f"({_name(operand)} = {condition})"
        parts.append(f"WHEN {condition} THEN {_name(branch.args['true'])}")
    if tree.args.get("default") is not None:
        parts.append(f"ELSE {_name(tree.args['default'])}")
    return " ".join([*parts, "END"])


def _not(tree: exp.Expr) -> str:
    inner = tree.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({_name(inner.this)} IS NOT NULL)"
    return f"(NOT {_name(inner)})"


def _is(tree: exp.Expr) -> str:
    right = tree.expression
    if isinstance(right, exp.Null):
        return f"({_name(tree.this)} IS NULL)"
    return f"({_name(tree.this)} <=> {_name(right)})"


def _in(tree: exp.Expr) -> str:
    return f"({_name(tree.this)} IN ({', '.join(map(_name, tree.expressions))}))"


def _between(tree: exp.Expr) -> str:
    operand, low, high = (_name(tree.args[part]) for part in ("this", "low", "high"))
    return f"between({operand}, {low}, {high})"


def _function(name: str, *parts: str) -> Callable[[exp.Expr], str]:
    def write(tree: exp.Expr) -> str:
        arguments = [_name(tree.args[part]) for part in parts if tree.args.get(part) is not None]
        return f"{name}({', '.join(arguments)})"

    return write


def _substring(tree: exp.Expr) -> str:
    parts = [_name(tree.args[part]) for part in ("this", "start", "length") if tree.args.get(part) is not None]
    return f"substring({', '.join([*parts, '2147483647'][:3])})"


def _trim(tree: exp.Expr) -> str:
    position = str(tree.args.get("position") or "").upper()
    if isinstance(tree.expression, exp.Expr):
        return f"TRIM({position or 'BOTH'} {_name(tree.expression)} FROM {_name(tree.this)})"
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
    return f"{function}({_name(tree.this)})"


def _window(tree: exp.Expr) -> str:
    """Spark writes out the frame that a function has."""
    call = tree.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
        call = call.this
    function = call.name.lower()
    name = _name(tree.this)
    if function in ("lag", "lead"):
        defaults = ["1", "NULL"][len(call.expressions) - 1 :]
        name = f"{function}({', '.join([*map(_name, call.expressions), *defaults])})"
    if function in ("rank", "dense_rank", "percent_rank"):
        name = f"{function.upper()}()"
    partition = ", ".join(map(_name, tree.args.get("partition_by") or ()))
    order = tree.args.get("order")
    parts = [f"PARTITION BY {partition}"] if partition else []
    if order is not None:
        parts.append(f"ORDER BY {', '.join(map(_ordered, order.expressions))}")
    return f"{name} OVER ({' '.join([*parts, _frame(function, call, tree)])})"


def _ordered(tree: exp.Expr) -> str:
    if not isinstance(tree, exp.Ordered):
        return f"{_name(tree)} ASC NULLS FIRST"
    direction = "DESC" if tree.args.get("desc") else "ASC"
    return f"{_name(tree.this)} {direction} NULLS {'FIRST' if tree.args.get('nulls_first') else 'LAST'}"


def _frame(function: str, call: exp.Expr, tree: exp.Expr) -> str:
    if function in ("lag", "lead"):
        distance = _name(call.expressions[1]) if len(call.expressions) > 1 else "1"
        at = f"-{distance}".removeprefix("--") if function == "lag" else distance
        return f"ROWS BETWEEN {at} FOLLOWING AND {at} FOLLOWING"
    if function in ("row_number", "rank", "dense_rank", "percent_rank", "ntile"):
        return "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    spec = tree.args.get("spec")
    if spec is None:
        if tree.args.get("order") is None:
            return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    unit = str(spec.args.get("kind")).upper()
    start = _frame_bound(unit, spec.args.get("start"), spec.args.get("start_side"))
    end = spec.args.get("end")
    stop = "CURRENT ROW" if end is None else _frame_bound(unit, end, spec.args.get("end_side"))
    return f"{unit} BETWEEN {start} AND {stop}"


def _frame_bound(unit: str, bound: object, side: object) -> str:
    side = str(side or "").upper()
    if not isinstance(bound, exp.Expr):
        return f"{bound} {side}".strip().upper()
    if side == "PRECEDING" and unit == "RANGE" and bound.meta.get("converted", not isinstance(bound, exp.Interval)):
        return f"(- {_name(bound)}) FOLLOWING"
    return f"{_name(bound)} {side}"


def _respect_nulls(tree: exp.Expr) -> str:
    """Spark writes it of lists, and before FILTER."""
    inner = tree.this
    call = inner.this if isinstance(inner, exp.Filter) else inner
    if call.name.lower() not in ("collect_list", "collect_set", "array_agg"):
        return _name(inner)
    chosen = f" FILTER (WHERE {_name(inner.expression.this)})" if inner is not call else ""
    return f"{_name(call)} RESPECT NULLS{chosen}"


def _negative(tree: exp.Expr) -> str:
    operand = _name(tree.this)
    return f"-{operand}" if isinstance(tree.this, exp.Literal) else f"(- {operand})"


_WRITERS: dict[type[exp.Expr], Callable[[exp.Expr], str]] = {
    exp.Column: lambda tree: tree.name,
    exp.Identifier: lambda tree: tree.name,
    exp.Paren: lambda tree: _name(tree.this),
    exp.Alias: lambda tree: tree.alias,
    exp.Star: lambda tree: "1",
    exp.Null: lambda tree: "NULL",
    exp.Boolean: lambda tree: "true" if tree.this else "false",
    exp.Anonymous: _anonymous,
    exp.Literal: _literal,
    exp.HexString: lambda tree: f"X'{tree.name.upper()}'",
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.NEQ: lambda tree: f"(NOT ({_name(tree.this)} = {_name(tree.expression)}))",
    exp.Neg: _negative,
    exp.DPipe: _function("concat", "this", "expression"),
    exp.Like: lambda tree: f"{_name(tree.this)} LIKE {_name(tree.expression)}",
    exp.Escape: lambda tree: f"{_name(tree.this)} ESCAPE '{tree.expression.name}'",
    exp.RegexpLike: lambda tree: f"RLIKE({_name(tree.this)}, {_name(tree.expression)})",
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.StrPosition: lambda tree: f"locate({_name(tree.args['substr'])}, {_name(tree.this)}, 1)",
    exp.BitwiseNot: lambda tree: f"~{_name(tree.this)}",
    exp.Extract: lambda tree: f"extract({tree.this.name} FROM {_name(tree.expression)})",
    exp.WithinGroup: _within_group,
    # Spark has them as FIRST and LAST with a second argument that it does not show.
    exp.IgnoreNulls: lambda tree: (
        _name(tree.this).replace("_value(", "(", 1)
        if tree.this.name.lower() in ("first_value", "last_value")
        else _name(tree.this)
    ),
    exp.RespectNulls: _respect_nulls,
    exp.Window: _window,
    exp.Filter: lambda tree: f"{_name(tree.this)} FILTER (WHERE {_name(tree.expression.this)})",
    exp.Bracket: lambda tree: f"{_name(tree.this)}[{_name(tree.expressions[0])}]",
    exp.Dot: lambda tree: f"{_name(tree.this)}.{tree.expression.name}",
}
