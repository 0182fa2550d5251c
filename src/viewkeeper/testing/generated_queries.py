"""Queries of the view grammar, drawn: what they read is given, what they return is known by class of type.

Expressions are drawn by class (all integers are one class, all decimals one), so that Spark's coercions are met on the
way: a join or a UNION ALL of INT and BIGINT, a CASE over DECIMALs of two scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from viewkeeper.testing.choices import Choices

CLASSES = ("integer", "decimal", "floating", "string", "binary", "boolean", "date", "timestamp", "timestamp_ntz")
_DUCKDB = frozenset(("integer", "string", "date", "boolean"))
_LITERALS = {
    "integer": ("0", "1", "2", "-3", "7"),
    "decimal": ("0.5", "1.25", "-2.00", "10.0"),
    "floating": ("CAST(0.5 AS DOUBLE)", "CAST(-1 AS DOUBLE)", "CAST(2 AS FLOAT)"),
    "string": ("''", "'a'", "'b'", "'é'", "'12'"),
    "binary": ("X''", "X'00'", "X'61'"),
    "boolean": ("TRUE", "FALSE"),
    "date": ("DATE '2024-02-29'", "DATE '1970-01-01'"),
    "timestamp": ("TIMESTAMP '2024-02-29 12:00:00'",),
    "timestamp_ntz": ("TIMESTAMP_NTZ '2024-02-29 12:00:00'",),
}
_NULLS = {
    "integer": "CAST(NULL AS INT)",
    "decimal": "CAST(NULL AS DECIMAL(10,2))",
    "floating": "CAST(NULL AS DOUBLE)",
    "string": "CAST(NULL AS STRING)",
    "binary": "CAST(NULL AS BINARY)",
    "boolean": "CAST(NULL AS BOOLEAN)",
    "date": "CAST(NULL AS DATE)",
    "timestamp": "CAST(NULL AS TIMESTAMP)",
    "timestamp_ntz": "CAST(NULL AS TIMESTAMP_NTZ)",
}


@dataclass(frozen=True)
class Field:
    """A column that a query can read or returns.

    Args:
        name: how it is written.
        kind: its class of type.
        exact: False for sums of floating values: Spark's answer depends on row order, so nothing is computed from it.
    """

    name: str
    kind: str
    exact: bool = True


@dataclass(frozen=True)
class Relation:
    """A table or a view that queries can read."""

    name: str
    fields: tuple[Field, ...]
    in_duckdb: bool


@dataclass(frozen=True)
class Query:
    """A drawn query: its text, its columns, and how far inexact ones may be off (``ScriptView.scaled_sql``)."""

    sql: str
    fields: tuple[Field, ...]
    in_duckdb: bool
    scaled_sql: str = ""
    scaled: tuple[str, ...] = ()


@dataclass
class _Scope:
    """What expressions may read, and what drawing them has found out."""

    fields: list[Field]
    risky: bool
    in_duckdb: bool = True

    def of(self, kind: str) -> list[str]:
        return [f.name for f in self.fields if f.kind == kind and f.exact]

    def kinds(self) -> list[str]:
        """Return the classes of the columns, each as often as it occurs."""
        return [f.kind for f in self.fields if f.exact] or ["integer"]


@dataclass
class QueryBuilder:
    """Draws queries.

    Args:
        choices: makes the choices.
        relations: the tables and views to read.
    """

    choices: Choices
    relations: Sequence[Relation]
    _names: int = field(default=0)

    def query(self, depth: int = 1) -> Query:
        """Return a query; ``depth`` bounds how deep subqueries nest."""
        forms = ["rows", "rows", "join", "join", "group", "group", "group"]
        if depth:
            forms += ["union", "wrapped", "wrapped"]
        form = self.choices.pick(forms)
        if form == "union":
            return self._union(depth - 1)
        if form == "wrapped":
            return self._wrapped(depth - 1)
        if form == "group":
            return self._group()
        return self._rows(join=form == "join")

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    # ---- FROM ----

    def _source(self, join: bool) -> tuple[str, _Scope]:
        relation = self.choices.pick(self.relations)
        alias = self._name("s")
        scope = _Scope(_qualified(relation, alias), self.choices.chance(30), relation.in_duckdb)
        text = f"{relation.name} {alias}"
        for _ in range(self.choices.pick((1, 1, 2)) if join else 0):
            text += self._joined(scope)
        return text, scope

    def _joined(self, scope: _Scope) -> str:
        """Add one more relation to ``scope`` where an equality can join it; nothing where none can."""
        relation = self.choices.pick(self.relations)
        alias = self._name("s")
        theirs = _qualified(relation, alias)
        pairs = [(a, b) for a in scope.fields for b in theirs if a.kind == b.kind and a.exact and b.exact]
        if not pairs:
            return ""
        left, right = self.choices.pick(pairs)
        conditions = [f"{left.name} = {right.name}"]
        if self.choices.chance(25):
            left, right = self.choices.pick(pairs)
            conditions.append(f"{right.name} = {left.name}")
        scope.fields += theirs
        scope.in_duckdb = scope.in_duckdb and relation.in_duckdb and left.kind in _DUCKDB
        if self.choices.chance(30):
            conditions.append(self._condition(scope))
        return f" JOIN {relation.name} {alias} ON {' AND '.join(conditions)}"

    # ---- whole queries ----

    def _rows(self, join: bool, kinds: Sequence[str] | None = None, names: Sequence[str] = ()) -> Query:
        """Return SELECT … FROM … [WHERE …]; with columns of ``kinds`` where a UNION ALL wants them."""
        source, scope = self._source(join)
        items: list[tuple[str, Field]] = []
        if kinds is None:
            items += [self._item(scope, f"c{number}") for number in range(self.choices.pick((1, 2, 3, 4)))]
        else:
            items = [(self._expression(scope, k, 1), Field(n, k)) for k, n in zip(kinds, names, strict=True)]
        where = f" WHERE {self._condition(scope)}" if self.choices.chance(50) else ""
        listed = ", ".join(f"{text} AS {column.name}" for text, column in items)
        return Query(f"SELECT {listed} FROM {source}{where}", tuple(f for _, f in items), scope.in_duckdb)

    def _item(self, scope: _Scope, name: str) -> tuple[str, Field]:
        """Return a column as it is (mostly) or an expression."""
        if self.choices.chance(60):
            chosen = self.choices.pick(scope.fields)
            scope.in_duckdb = scope.in_duckdb and chosen.kind in _DUCKDB
            return chosen.name, Field(name, chosen.kind, chosen.exact)
        kind = self.choices.pick(scope.kinds() if self.choices.chance(70) else CLASSES)
        return self._expression(scope, kind, 2), Field(name, kind)

    def _group(self) -> Query:
        source, scope = self._source(join=self.choices.chance(40))
        groups = []
        for number in range(self.choices.pick((0, 1, 1, 1, 2))):
            kind = self.choices.pick(scope.kinds())
            text = self._expression(scope, kind, int(self.choices.chance(25)))
            # GROUP BY reads a bare number as a position.
            groups.append((f"COALESCE({text})" if text in _LITERALS["integer"] else text, Field(f"g{number}", kind)))
        where = f" WHERE {self._condition(scope)}" if self.choices.chance(30) else ""
        calls = [self._call(scope, f"a{number}") for number in range(self.choices.pick((1, 2, 3)))]
        listed = ", ".join(f"{text} AS {column.name}" for text, column, _ in [*((*g, "") for g in groups), *calls])
        by = f" GROUP BY {', '.join(text for text, _ in groups)}" if groups else ""
        having = self._having(scope, calls) if self.choices.chance(25) else ""
        fields = (*(f for _, f in groups), *(f for _, f, _ in calls))
        rest = f" FROM {source}{where}{by}{having}"
        scales = [(f.name, scale) for _, f, scale in calls if scale]
        scaled = f"SELECT {listed}{''.join(f', {scale} AS scale_{name}' for name, scale in scales)}{rest}"
        names = tuple(name for name, _ in scales)
        return Query(f"SELECT {listed}{rest}", fields, scope.in_duckdb, scaled if scales else "", names)

    def _call(self, scope: _Scope, name: str) -> tuple[str, Field, str]:
        """Return an aggregate, its column, and the scale of what Spark may answer differently."""
        function = self.choices.pick(("COUNT(*)", "COUNT", "SUM", "SUM", "AVG", "MIN", "MAX", "MIN", "MAX"))
        scale = ""
        if function == "COUNT(*)":
            text, kind = function, "integer"
        else:
            numeric = function in ("SUM", "AVG")
            usable = [k for k in scope.kinds() if not numeric or k in CLASSES[:3]]
            kind = self.choices.pick(usable or ["integer"])
            argument = self._expression(scope, kind, int(self.choices.chance(25)))
            text = f"{function}({argument})"
            if numeric and kind == "floating":
                scale = f"SUM(ABS(CAST({argument} AS DOUBLE)))"
            if function == "AVG":
                scope.in_duckdb = False
                kind = "decimal" if kind == "decimal" else "floating"
                scale = scale or ("" if kind == "decimal" else f"SUM(ABS(CAST({argument} AS DOUBLE)))")
            kind = "integer" if function == "COUNT" else kind
        if self.choices.chance(20):
            clause = f" FILTER (WHERE {self._condition(scope)})"
            text, scale = text + clause, scale + clause if scale else ""
        return text, Field(name, kind, exact=not scale), scale

    def _having(self, scope: _Scope, calls: Sequence[tuple[str, Field, str]]) -> str:
        usable = [(text, f.kind) for text, f, _ in calls if f.exact and f.kind in ("integer", "decimal", "string")]
        text, kind = self.choices.pick(usable) if usable else ("COUNT(*)", "integer")
        sign = self.choices.pick((">", "<=", "<>", "IS NOT NULL"))
        return f" HAVING {text} {sign}" + ("" if sign == "IS NOT NULL" else f" {self.choices.pick(_LITERALS[kind])}")

    def _union(self, depth: int) -> Query:
        first = self._rows(join=False)
        kinds = [f.kind for f in first.fields]
        second = self._rows(join=False, kinds=kinds, names=[f.name for f in first.fields])
        fields = tuple(Field(f.name, f.kind, f.exact) for f in first.fields)
        return Query(f"{first.sql} UNION ALL {second.sql}", fields, first.in_duckdb and second.in_duckdb)

    def _wrapped(self, depth: int) -> Query:
        """Return a query over a query: a CTE or a subquery in FROM."""
        inner = self.query(depth)
        name = self._name("q")
        outer = QueryBuilder(self.choices, [Relation(name, inner.fields, inner.in_duckdb)], self._names + 100)
        over = outer._group() if self.choices.chance(40) else outer._rows(join=self.choices.chance(30))
        self._names = outer._names
        with_ = self.choices.chance(50) or over.sql.count(f" {name} ") > 1

        def around(outside: str) -> str:
            if with_:
                return f"WITH {name} AS ({inner.sql}) {outside}"
            return outside.replace(f" {name} ", f" ({inner.sql}) ", 1)

        scaled = around(over.scaled_sql) if over.scaled_sql else ""
        return Query(around(over.sql), over.fields, over.in_duckdb, scaled, over.scaled)

    # ---- expressions ----

    def _condition(self, scope: _Scope, depth: int = 1) -> str:
        form = self.choices.pick(("compare", "compare", "compare", "null", "in", "and", "or", "not", "between"))
        if form in ("and", "or"):
            return f"({self._comparison(scope, depth)} {form.upper()} {self._comparison(scope, depth)})"
        if form == "not":
            return f"NOT ({self._comparison(scope, depth)})"
        kind = self.choices.pick(scope.kinds())
        value = self._expression(scope, kind, 0)
        if form == "null":
            return f"{value} IS {self.choices.pick(('', 'NOT '))}NULL"
        if form == "in":
            return f"{value} IN ({self.choices.pick(_LITERALS[kind])}, {self.choices.pick(_LITERALS[kind])})"
        if form == "between":
            return f"{value} BETWEEN {self.choices.pick(_LITERALS[kind])} AND {self._expression(scope, kind, 0)}"
        return self._comparison(scope, depth)

    def _comparison(self, scope: _Scope, depth: int = 1) -> str:
        kind = self.choices.pick(scope.kinds())
        sign = self.choices.pick(("=", "<>", "<", "<=", ">", ">=", "<=>"))
        scope.in_duckdb = scope.in_duckdb and sign != "<=>"
        return f"{self._expression(scope, kind, depth)} {sign} {self._expression(scope, kind, 0)}"

    def _expression(self, scope: _Scope, kind: str, depth: int) -> str:
        """Return an expression of class ``kind``."""
        scope.in_duckdb = scope.in_duckdb and kind in _DUCKDB
        columns = scope.of(kind)
        if not depth or self.choices.chance(40):
            if columns and self.choices.chance(85):
                return self.choices.pick(columns)
            return self.choices.pick(_LITERALS[kind]) if self.choices.chance(85) else _NULLS[kind]
        form = self.choices.pick(("case", "coalesce", "nullif", "own", "own", "own"))
        if form == "case":
            then, other = self._expression(scope, kind, depth - 1), self._expression(scope, kind, depth - 1)
            return f"CASE WHEN {self._comparison(scope, 0)} THEN {then} ELSE {other} END"
        if form == "coalesce":
            return f"COALESCE({self._expression(scope, kind, depth - 1)}, {self._expression(scope, kind, 0)})"
        if form == "nullif":
            return f"NULLIF({self._expression(scope, kind, 0)}, {self.choices.pick(_LITERALS[kind])})"
        return self._own(scope, kind, depth - 1)

    def _own(self, scope: _Scope, kind: str, depth: int) -> str:
        """Return an expression that only this class has; where it may fail, only in a risky scope."""
        if kind == "boolean":
            return f"({self._condition(scope, 0)})"
        forms = _RISKY[kind] if scope.risky else _SAFE[kind]
        form, arguments = self.choices.pick(forms)
        if kind != "integer" or form not in _IN_DUCKDB:
            scope.in_duckdb = False
        return form.format(*(self._expression(scope, argument, depth) for argument in arguments))


def _qualified(relation: Relation, alias: str) -> list[Field]:
    return [Field(f"{alias}.{f.name}", f.kind, f.exact) for f in relation.fields]


_Forms = tuple[tuple[str, tuple[str, ...]], ...]
_SAFE: dict[str, _Forms] = {
    "integer": (("({} % 7)", ("integer",)), ("LENGTH({})", ("string",)), ("YEAR({})", ("date",))),
    "decimal": (("CAST({} AS DECIMAL(38,2))", ("integer",)),),
    "floating": (("({} + CAST({} AS DOUBLE))", ("floating", "integer")), ("CAST({} AS DOUBLE)", ("decimal",))),
    "string": (
        ("CONCAT({}, {})", ("string", "string")),
        ("UPPER({})", ("string",)),
        ("CAST({} AS STRING)", ("integer",)),
        ("SUBSTRING({}, 2, 3)", ("string",)),
        ("TRIM({})", ("string",)),
    ),
    "binary": (("CAST({} AS BINARY)", ("string",)),),
    "date": (("CAST({} AS DATE)", ("timestamp",)),),
    "timestamp": (("CAST({} AS TIMESTAMP)", ("timestamp_ntz",)),),
    "timestamp_ntz": (("CAST({} AS TIMESTAMP_NTZ)", ("timestamp",)),),
}
_RISKY: dict[str, _Forms] = {
    **_SAFE,
    "integer": (
        ("({} + {})", ("integer", "integer")),
        ("({} - {})", ("integer", "integer")),
        ("({} * {})", ("integer", "integer")),
        ("({} % {})", ("integer", "integer")),
        ("({} DIV {})", ("integer", "integer")),
        ("CAST({} AS TINYINT)", ("integer",)),
        ("CAST({} AS INT)", ("string",)),
        ("ABS({})", ("integer",)),
    ),
    "decimal": (
        ("({} + {})", ("decimal", "decimal")),
        ("({} * {})", ("decimal", "integer")),
        ("CAST({} AS DECIMAL(5,2))", ("decimal",)),
    ),
    "floating": (("({} / {})", ("floating", "integer")), ("({} * {})", ("floating", "floating"))),
    "date": (("CAST({} AS DATE)", ("string",)), ("CAST({} AS DATE)", ("timestamp",))),
}
_IN_DUCKDB = frozenset(("({} + {})", "({} - {})", "({} * {})", "ABS({})", "({} % 7)"))
