"""A parser that reads no more than Spark's: what sqlglot takes from other dialects, or passes over, is refused here.

Each refusal is a ``ParseError`` whose ``errors[0]["refused"]`` holds the offsets of the words it is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

ORDER_OF_CLAUSES = "SELECT … FROM … JOIN … ON … WHERE … GROUP BY … HAVING … ORDER BY … LIMIT …"
_CLAUSES = {
    TokenType.WHERE: ("WHERE", 1),
    TokenType.GROUP_BY: ("GROUP BY", 2),
    TokenType.HAVING: ("HAVING", 3),
    TokenType.QUALIFY: ("QUALIFY", 4),
    TokenType.WINDOW: ("WINDOW", 4),
    TokenType.ORDER_BY: ("ORDER BY", 5),
    TokenType.CLUSTER_BY: ("CLUSTER BY", 6),
    TokenType.DISTRIBUTE_BY: ("DISTRIBUTE BY", 7),
    TokenType.SORT_BY: ("SORT BY", 8),
    TokenType.LIMIT: ("LIMIT", 9),
    TokenType.OFFSET: ("OFFSET", 10),
}
_FIRST_OF_RESULT = _CLAUSES[TokenType.ORDER_BY][1]
_LAST_BEFORE_LIMIT = _CLAUSES[TokenType.SORT_BY][1]
_ALONE = {"ORDER BY": {"CLUSTER BY", "DISTRIBUTE BY", "SORT BY"}, "CLUSTER BY": {"DISTRIBUTE BY", "SORT BY"}}
_RESULT_ARGUMENTS = ("order", "cluster", "distribute", "sort", "limit", "offset")
_JOINS = (TokenType.JOIN, TokenType.INNER, TokenType.CROSS)
_OPERATORS = (
    TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ,
    TokenType.PLUS, TokenType.DASH, TokenType.SLASH, TokenType.STAR,
)  # fmt: skip
_SET_OPERATORS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_SIZED = frozenset({"DECIMAL", "DEC", "NUMERIC", "VARCHAR", "CHAR", "CHARACTER", "TIME"})
_TYPES = _SIZED | {
    "BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE",
    "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING", "BINARY", "VOID", "INTERVAL", "VARIANT", "ARRAY",
    "MAP", "STRUCT",
}  # fmt: skip
_SEVERAL_WORDS = frozenset({"INTERVAL", "TIMESTAMP", "STRING"})


def _in_order(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def checked(parser: StrictParser) -> Any:
        parser.check_order()
        return parse(parser)

    return checked


class StrictParser(SparkParser):
    """Spark's parser of sqlglot, held to the order and the forms of Spark's grammar."""

    QUERY_MODIFIER_PARSERS: ClassVar = {
        **{
            token: _in_order(parse)
            for token, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
            if token not in (TokenType.FETCH, TokenType.PREWHERE)
        },
        TokenType.LIMIT: _in_order(lambda parser: ("limit", parser.count_after(exp.Limit))),
        TokenType.OFFSET: _in_order(lambda parser: ("offset", parser.count_after(exp.Offset))),
    }
    UNARY_PARSERS: ClassVar = {**SparkParser.UNARY_PARSERS, TokenType.NOT: lambda parser: parser.negation()}

    def refuse(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise the error that ``message`` holds of ``token``, by default the next one."""
        token = token or self._curr or self._prev
        raise ParseError(message, errors=[{"description": message, "refused": (token.start, token.end + 1)}])

    # Clauses

    def _parse_query_modifiers(self, this: Any) -> Any:
        if not isinstance(this, exp.Query):
            return super()._parse_query_modifiers(this)
        # A statement comes here twice, the second time with its clauses.
        blocks: list[tuple[exp.Query, list[str]]] = self.__dict__.setdefault("_blocks", [])
        clauses = this.meta.setdefault("clauses", [])
        blocks.append((this, clauses))
        start, before = self._curr, len(this.args.get("joins") or ()) + len(this.args.get("laterals") or ())
        held = bool(clauses)
        try:
            this = super()._parse_query_modifiers(this)
        finally:
            blocks.pop()
        if held and len(this.args.get("joins") or ()) + len(this.args.get("laterals") or ()) > before:
            self.refuse(f"{start.text.upper()} belongs before {clauses[0]}: {ORDER_OF_CLAUSES}.", start)
        return this

    def check_order(self) -> None:
        """Check that the clause that begins here may follow those before it."""
        found = _CLAUSES.get(self._curr.token_type)
        if found is None or not self.__dict__.get("_blocks"):
            return
        clause, rank = found
        query, clauses = self.__dict__["_blocks"][-1]
        ranks = dict(_CLAUSES.values())
        if clause in clauses:
            self.refuse(f"{clause} stands twice in this query: keep one.")
        if not isinstance(query, exp.Select) and rank < _FIRST_OF_RESULT:
            self.refuse(f"{clause} cannot follow a query that is complete: write SELECT … FROM (…) {clause} ….")
        last_before = _LAST_BEFORE_LIMIT if clause == "WINDOW" else rank
        behind = next((other for other in clauses if ranks[other] > last_before), None)
        if behind is not None:
            self.refuse(f"{clause} belongs before {behind}: {ORDER_OF_CLAUSES}.")
        other = next((other for other in clauses if clause in _ALONE.get(other, ())), None)
        if other is not None:
            self.refuse(f"{clause} and {other} exclude each other: keep one.")
        clauses.append(clause)
        query.meta.setdefault("first_clause", self._curr.start)

    def count_after(self, kind: type[exp.Limit] | type[exp.Offset]) -> exp.Expr:
        """Read LIMIT or OFFSET with its one number; ROWS, PERCENT, BY, TIES and a second number belong to others."""
        self._advance()
        count = self._parse_term()
        if count is None:
            self.refuse(f"A number is missing behind {self._prev.text.upper()}.", self._prev)
        return self.expression(kind(expression=count))

    def _parse_select_query(self, *arguments: Any, **options: Any) -> Any:
        if self._curr.token_type == TokenType.FROM and not options.get("table"):
            self.check_select()
        return super()._parse_select_query(*arguments, **options)

    def check_select(self) -> None:
        """Refuse a query of FROM or VALUES, which begins here, with clauses that only SELECT has."""
        ahead = self._without_select()
        if ahead is not None:
            clause = _CLAUSES[ahead.token_type][0]
            self.refuse(f"This query has no SELECT: write SELECT … FROM … {clause} ….", ahead)

    def _without_select(self) -> Token | None:
        """Return the clause that follows FROM where no SELECT stands between, None where all is well."""
        depth = 0
        for token in self._tokens[self._index :]:
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            if depth < 0 or (depth == 0 and token.token_type in (TokenType.SELECT, TokenType.PIPE_GT)):
                return None
            if depth == 0 and token.token_type in (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING):
                return token
        return None

    def _parse_projections(self) -> Any:
        select = self._prev
        found = super()._parse_projections()
        if not found[0]:
            self.refuse("Nothing is selected: write columns or * behind SELECT.", select)
        return found

    def parse_set_operation(self, this: Any, *arguments: Any, **options: Any) -> Any:
        """Read UNION and the like; the query before it may have no ORDER BY or LIMIT of its own."""
        left = this.expression if isinstance(this, exp.SetOperation) else this
        if self._curr.token_type in _SET_OPERATORS and isinstance(left, exp.Select):
            clause = next((name for name in _RESULT_ARGUMENTS if left.args.get(name)), None)
            if clause is not None and not left.args[clause].meta.get("top"):
                word = "LIMIT" if clause == "limit" else "OFFSET" if clause == "offset" else f"{clause.upper()} BY"
                operator = self._curr.text.upper()
                self.refuse(f"{operator} cannot follow {word}: put the query before it in parentheses.")
        return super().parse_set_operation(this, *arguments, **options)

    def _parse_with(self, *arguments: Any, **options: Any) -> Any:
        found = super()._parse_with(*arguments, **options)
        if found is not None and self._curr.token_type == TokenType.WITH:
            self.refuse("A query has one WITH: separate its tables by commas.")
        return found

    def _parse_from(self, *arguments: Any, **options: Any) -> Any:
        if self._curr.token_type == TokenType.FROM and self._next.token_type == TokenType.SELECT:
            self.refuse("A query in FROM stands in parentheses: FROM (SELECT …).", self._next)
        return super()._parse_from(*arguments, **options)

    def _parse_join(self, *arguments: Any, **options: Any) -> Any:
        if self._curr.token_type == TokenType.COMMA and self._next.token_type in _JOINS:
            self.refuse("A table is missing behind this comma: leave the comma out.")
        found = super()._parse_join(*arguments, **options)
        if found is not None and self._prev.token_type == TokenType.ON:
            self.refuse("A condition is missing behind ON.", self._prev)
        return found

    def _parse_group(self, *arguments: Any, **options: Any) -> Any:
        start = self._curr
        found = super()._parse_group(*arguments, **options)
        if found is not None and not any(value not in (None, [], False) for value in found.args.values()):
            self.refuse("What to group by is missing: write columns or ALL behind GROUP BY.", start)
        return found

    # Names and lists

    def _parse_value(self, values: bool = True) -> Any:
        if not values and self._prev.token_type == TokenType.ON:
            instead = "QUALIFY ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) = 1"
            self.refuse(f"There is no DISTINCT ON: for one row of each group filter by {instead}.", self._prev)
        if self._curr.token_type == TokenType.L_PAREN:
            return super()._parse_value(values)
        row = self._parse_assignment()  # without an alias: VALUES 1, 2 AS v(x) names the table
        return None if row is None else self.expression(exp.Tuple(expressions=[row]))

    def _parse_alias(self, this: Any, explicit: bool = False) -> Any:
        self._check_alias()
        return super()._parse_alias(this, explicit)

    def _parse_table_alias(self, *arguments: Any, **options: Any) -> Any:
        self._check_alias()
        return super()._parse_table_alias(*arguments, **options)

    def _check_alias(self) -> None:
        if self._curr.token_type != TokenType.ALIAS:
            return
        following = self._next
        if following.token_type == TokenType.STRING:
            self.refuse(f"A text is no name: write the alias in backticks or bare: `{following.text}`.", following)
        if following.token_type == TokenType.NUMBER:
            self.refuse(f"A number is no name: write the alias in backticks: `{following.text}`.", following)

    def _parse_table_parts(self, *arguments: Any, **options: Any) -> Any:
        if self._curr.token_type == TokenType.DOT:
            self.refuse("A name is missing before the dot.")
        return super()._parse_table_parts(*arguments, **options)

    def _parse_using_identifiers(self) -> Any:
        if self._curr.token_type != TokenType.L_PAREN:
            self.refuse("The columns of USING stand in parentheses: USING (a, b).")
        if self._next.token_type == TokenType.R_PAREN:
            self.refuse("The columns of USING are missing: USING (a, b).", self._next)
        return self._parse_wrapped_csv(self._parse_id_var)

    def _parse_star_op(self, *keywords: str) -> Any:
        if "EXCEPT" not in keywords:
            return None
        if self._curr.text.upper() == "EXCEPT" and self._next.token_type == TokenType.L_PAREN:
            return super()._parse_star_op("EXCEPT")
        if self._curr.text.upper() == "EXCLUDE":
            self.refuse("Columns are left out of * by EXCEPT: * EXCEPT (a, b).")
        return None

    # Expressions

    def negation(self) -> exp.Not:
        """Read what follows NOT or !, which binds less than comparisons."""
        before = self._tokens[self._index - 2] if self._index > 1 else self._prev
        if before.token_type in _OPERATORS:
            self.refuse(f"NOT cannot follow {before.text}: put it and its condition in parentheses.", self._prev)
        return self.expression(exp.Not(this=self._parse_equality()))

    def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
        start = self._index
        found = super()._parse_range(this, parse_is)
        last = self._index - 1
        # NOT NULL that stands first is a negation of NULL.
        if last > start + (this is None) and self._tokens[last].token_type == TokenType.NULL:
            negation, before = self._tokens[last - 1], self._tokens[last - 2]
            if negation.token_type == TokenType.NOT and before.token_type != TokenType.IS:
                self.refuse("NOT NULL is no condition: write IS NOT NULL.", negation)
        return found

    def _parse_case(self) -> Any:
        if self._match(TokenType.DOT, advance=False):
            self._retreat(self._index - 1)  # a column that is called case
            return None
        case, comments = self._prev, self._prev_comments
        expression = self._parse_disjunction()
        branches = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            if not self._match(TokenType.THEN):
                self.refuse("THEN is missing: CASE WHEN condition THEN value ELSE value END.")
            branches.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        if not self._match(TokenType.END):
            if isinstance(default, exp.Interval) and default.this.sql().upper() == "END":
                default = exp.column("interval")
            else:
                self.raise_error("Expected END after CASE", self._prev)
        if not branches:
            self.refuse("CASE has no branch: write CASE WHEN condition THEN value END.", case)
        return self.expression(exp.Case(this=expression, ifs=branches, default=default), comments=comments)

    def _parse_types(self, *arguments: Any, **options: Any) -> Any:
        # A number with a suffix, 1L, comes as a cast by :: that nobody wrote.
        written = self._prev.token_type == TokenType.ALIAS or self.sql[self._prev.start : self._prev.end + 1] == "::"
        in_cast = written and self._prev.token_type in (TokenType.ALIAS, TokenType.DCOLON)
        start = self._index
        found = super()._parse_types(*arguments, **options)
        if in_cast and isinstance(found, exp.DataType):
            self._check_type(self._tokens[start : self._index])
        return found

    def _check_type(self, tokens: list[Token]) -> None:
        name = tokens[0].text.upper()
        second = tokens[1] if len(tokens) > 1 else None
        if name not in _TYPES:
            hint = (
                "write STRING" if name in ("TEXT", "NVARCHAR", "CLOB", "UUID", "JSON") else "write one of Spark's types"
            )
            self.refuse(f"{tokens[0].text} is no type of Spark SQL: {hint}.", tokens[0])
        if name in ("CHAR", "VARCHAR", "CHARACTER") and second is None:
            self.refuse(f"{name} needs a length: write {name}(10), or STRING.", tokens[0])
        if second is None:
            return
        if second.token_type == TokenType.L_PAREN:
            if name not in _SIZED:
                self.refuse(f"{name} takes no size: leave the parentheses out.", second)
            if tokens[2].token_type != TokenType.NUMBER:
                self.refuse(f"The size of {name} is a number: as in {name}(10).", tokens[2])
        elif second.token_type == TokenType.L_BRACKET:
            self.refuse(f"Arrays are written ARRAY<{name}>.", second)
        elif second.token_type != TokenType.LT and (name not in _SEVERAL_WORDS or _with_time_zone(tokens)):
            self.refuse(f"The type is {name} alone: leave {second.text.upper()} out.", second)

    def _parse_ordered(self, *arguments: Any, **options: Any) -> Any:
        found = super()._parse_ordered(*arguments, **options)
        directions = (TokenType.ASC, TokenType.DESC)
        if found is not None and self._prev.token_type in directions:
            before = self._tokens[self._index - 2]
            if before.token_type in directions:
                self.refuse("ASC and DESC exclude each other: keep one.", self._prev)
        return found

    # Windows

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        if self._curr.token_type == TokenType.FILTER and self._next.token_type == TokenType.L_PAREN:
            inner = self._tokens[self._index + 2]
            if inner.token_type != TokenType.WHERE:
                self.refuse("WHERE is missing: write FILTER (WHERE condition).", inner)
        start = self._index
        window = super()._parse_window(this, alias)
        if self._index > start and isinstance(window, exp.Window):
            self._check_window(window, self._tokens[start])
        return window

    def _check_window(self, window: exp.Window, token: Token) -> None:
        spec = window.args.get("spec")
        if spec is not None and spec.args.get("exclude"):
            self.refuse("Frames leave no rows out: leave EXCLUDE out.", token)
        if isinstance(window.this, exp.Window):
            self.refuse("A function has one window: keep one OVER.", token)
        if window.args.get("alias") and (window.args.get("partition_by") or window.args.get("order") or spec):
            self.refuse("A named window is taken as it is: leave out its name, or the rest.", token)
        if "partition_by" not in window.args and not window.args.get("alias"):
            self.refuse("A window is missing: write OVER (PARTITION BY … ORDER BY …).", token)

    def _parse_paren(self) -> Any:
        start = self._curr
        return _placed(super()._parse_paren(), start)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        start = self._curr
        kind = exp.Cube if self._match(TokenType.CUBE) else exp.Rollup if self._match(TokenType.ROLLUP) else None
        if kind is None:
            return None
        # Groups are any expressions; sqlglot reads no comparisons here.
        groups = [] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction)
        return _placed(self.expression(kind(expressions=groups)), start)

    def _parse_grouping_set(self) -> Any:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_partition_by(self) -> Any:
        start = self._curr
        found = super()._parse_partition_by()
        if start.token_type == TokenType.PARTITION_BY and not found:
            self.refuse("What to partition by is missing.", start)
        return found

    def _parse_named_window(self) -> Any:
        name, definition = self._next, self._tokens[self._index + 2 : self._index + 3]
        if name.token_type != TokenType.ALIAS or not definition:
            self.refuse("A named window is written WINDOW w AS (PARTITION BY … ORDER BY …).")
        return super()._parse_named_window()

    def _parse_window_spec(self) -> Any:
        between = self._curr.token_type == TokenType.BETWEEN or self._prev.token_type == TokenType.BETWEEN
        bound = super()._parse_window_spec()
        if not bound["value"]:
            self.refuse("A bound of the frame is missing: as in ROWS BETWEEN 3 PRECEDING AND CURRENT ROW.")
        if not bound["side"] and bound["value"] != "CURRENT ROW":
            self.refuse("PRECEDING or FOLLOWING is missing behind the bound of the frame.")
        if between and self._curr.token_type != TokenType.AND:
            self.refuse("AND is missing: a frame is BETWEEN one bound AND another.")
        return bound


def _placed(found: exp.Expr | None, start: Token) -> exp.Expr | None:
    """Give a list without anything in it, which could tell its place, that of its beginning."""
    if isinstance(found, exp.Tuple | exp.Cube | exp.Rollup) and not found.expressions:
        found.update_positions(start)
    return found


def _with_time_zone(tokens: list[Token]) -> bool:
    words = [token.text.upper() for token in tokens]
    return words[0] == "TIMESTAMP" and words[1:3] not in (["WITH", "LOCAL"], ["WITHOUT", "TIME"])
