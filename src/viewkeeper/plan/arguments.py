"""Arguments of calls before they are bound: ``*`` written out, and names that a call makes field names of.

A bound tree calls columns by position, but ``struct(a, b)`` has fields named ``a`` and ``b``: so such arguments get
their names as aliases, which Spark takes there as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef
from viewkeeper.plan.scopes import NamedColumn, Scope

Bound = Callable[[ColumnRef, exp.Expr | None], exp.Column]

_ZIP = "arrays_zip"
_NAMING = frozenset(("struct", _ZIP))
_OF_ALL_COLUMNS = frozenset((
    "array", "arrays_zip", "coalesce", "concat", "concat_ws", "elt", "format_string", "greatest", "hash", "least",
    "printf", "struct", "xxhash64",
))  # fmt: skip
"""Functions of any number of arguments, for which ``*`` means all columns."""


def with_arguments_named(tree: exp.Expr, scope: Scope, bound: Bound) -> exp.Expr:
    """Return ``tree``, or a copy, with stars in calls written out and the arguments of ``struct`` named.

    Args:
        tree: an expression as parsed.
        scope: what ``*`` stands for.
        bound: makes the bound tree of a column.

    Raises:
        SqlError: ``UNRESOLVED_QUALIFIER`` for ``t.*`` where there is no table ``t``.
    """
    found = [node for node in tree.walk(prune=lambda n: isinstance(n, exp.Query)) if _changes(node)]
    if not found:
        return tree
    copy: exp.Expr = tree.copy()
    for node in reversed(list(copy.walk(prune=lambda n: isinstance(n, exp.Query)))):
        if not _changes(node):
            continue
        arguments = [part for argument in node.expressions for part in _written_out(argument, scope, bound)]
        if node.name.lower() == _ZIP:
            zipped = _zipped(arguments)
            copy = zipped if node is copy else copy
            node.replace(zipped)
            continue
        if isinstance(node, exp.Tuple) or node.name.lower() in _NAMING:
            arguments = [_named(argument) for argument in arguments]
        node.set("expressions", arguments)
    return copy


def _changes(node: exp.Expr) -> bool:
    if isinstance(node, exp.Tuple):
        # A tuple that is compared has no names that anybody sees.
        return not isinstance(node.parent, exp.Predicate | exp.Binary | exp.Tuple)
    if not isinstance(node, exp.Anonymous):
        return False
    name = node.name.lower()
    return name in _NAMING or (name in _OF_ALL_COLUMNS and any(_is_star(part) for part in node.expressions))


def _is_star(argument: exp.Expr) -> bool:
    return isinstance(argument, exp.Star) or (isinstance(argument, exp.Column) and isinstance(argument.this, exp.Star))


def _written_out(argument: exp.Expr, scope: Scope, bound: Bound) -> list[exp.Expr]:
    if not _is_star(argument):
        return [argument]

    def one(column: NamedColumn) -> exp.Column:
        made = bound(scope.reference(column.position), argument)
        made.meta["name"] = column.name
        return made

    if not isinstance(argument, exp.Column):
        return [one(column) for column in scope.expand_star(argument, None)]
    fields = fields_of_star(argument, scope, bound)
    if fields is not None:
        return [tree for _, tree in fields]
    return [one(column) for column in scope.expand_star(argument, argument.table)]


def fields_of_star(star: exp.Column, scope: Scope, bound: Bound) -> list[tuple[str, exp.Expr]] | None:
    """Return the names and bound trees of the fields that ``s.*`` stands for; None where ``s`` is no STRUCT.

    A table of the name comes first, as in Spark.

    Args:
        star: ``s.*``, ``t.s.*`` or ``s.inner.*``.
        scope: the columns.
        bound: makes the bound tree of a column.
    """
    parts = star.parts[:-1]
    if len(parts) == 1 and scope.has_table(parts[0].name):
        return None
    names = zip(("this", "table", "db"), reversed(parts), strict=False)
    found = scope.find(exp.Column(**{argument: part.copy() for argument, part in names}))
    if found is None:
        return None
    column, path = found
    reference = scope.reference(column.position)
    kind = reference.type
    for step in path:
        fields = dict(zip(map(str.lower, kind.field_names), kind.children, strict=False))
        if step.lower() not in fields:
            return None
        kind = fields[step.lower()]
    if kind.name != "STRUCT":
        return None
    return [(name, with_fields(bound(reference, star), (*path, name))) for name in kind.field_names]


def with_fields(tree: exp.Expr, names: Iterable[str]) -> exp.Expr:
    """Return the field to which ``names`` lead from a bound STRUCT; the tree itself where there are none."""
    for name in names:
        tree = exp.Dot(this=tree, expression=_quoted(name))
    return tree


def _zipped(arguments: list[exp.Expr]) -> exp.Expr:
    """Return ``arrays_zip``, which takes no aliases, with the names of its columns given to what it makes."""
    names = [_name(part) if isinstance(part, exp.Column) else str(i) for i, part in enumerate(arguments)]
    hidden = [_call("coalesce", part.copy()) if isinstance(part, exp.Column) else part.copy() for part in arguments]
    element = exp.to_identifier("zipped")
    fields: list[exp.Expr] = []
    for number, name in enumerate(names):
        field = exp.Dot(this=element.copy(), expression=_quoted(str(number)))
        fields += [exp.Literal.string(name), field]
    renamed = exp.Lambda(this=_call("named_struct", *fields), expressions=[element])
    return _call("transform", _call(_ZIP, *hidden), renamed)


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _name(column: exp.Expr) -> str:
    found: str = column.meta["name"] if "reference" in column.meta else column.name
    return found


def _named(argument: exp.Expr) -> exp.Expr:
    if not isinstance(argument, exp.Column):
        return argument
    return exp.Alias(this=argument.copy(), alias=_quoted(_name(argument)))


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
