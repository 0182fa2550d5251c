"""Spark's dialect for sqlglot, with functions left as they were written and operators bound as Spark binds them.

sqlglot rewrites many functions while it parses (``year(d)`` becomes a year of a cast, ``a::int`` a TRY_CAST) and has
its own order of operators. Types and values here follow Spark exactly, so the dialect below keeps every function call
under its own name, and builds the same tree as Spark's grammar (``SqlBaseParser.g4``: ``booleanExpression``,
``valueExpression``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from viewkeeper.plan.strict import StrictParser

_KEPT_PARSERS = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM", "POSITION", "OVERLAY")
_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
}
_NO_KEYWORDS = frozenset((
    "ISNULL", "NOTNULL", "ALTER", "CREATE", "DROP", "GRANT", "INSERT", "REVOKE", "ROLLBACK", "SERDEPROPERTIES",
    "UNCACHE",
))  # fmt: skip
_BITS: tuple[tuple[TokenType, type[exp.Binary]], ...] = (
    (TokenType.PIPE, exp.BitwiseOr),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.AMP, exp.BitwiseAnd),
)
"""From the loosest to the tightest; shifts bind tighter than all of them, sums tighter than shifts."""
_BEHIND_TABLE = (
    TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ORDER_BY,
    TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.SORT_BY, TokenType.LIMIT, TokenType.OFFSET,
)  # fmt: skip


class VerbatimSpark(Spark):
    """Spark's dialect without rewriting of functions, with strict CAST and Spark's precedence of operators."""

    class Tokenizer(Spark.Tokenizer):
        """Tokenizer for which a doubled quote stands for itself, as since Spark 4."""

        STRING_ESCAPES: ClassVar = ["\\", "'", '"']
        # Spark has functions called ISNULL and NOTNULL, and no such predicates; the others begin no part of a query.
        KEYWORDS: ClassVar = {
            **{word: token for word, token in Spark.Tokenizer.KEYWORDS.items() if word not in _NO_KEYWORDS},
            "VOID": TokenType.VOID,
            "!<": TokenType.GTE,
            "!>": TokenType.LTE,
        }

    class Generator(SparkGenerator):
        """Generator that knows TIME and VOID, and writes literals as literals: casts of them may be NULL for Spark."""

        TYPE_MAPPING: ClassVar = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME", exp.DType.NULL: "VOID"}

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """Write a cast, or the literal that was parsed into it."""
            if expression.meta.get("typed_literal"):
                return f"{self.sql(expression, 'to')} {self.sql(expression, 'this')}"
            return super().cast_sql(expression, safe_prefix)

    class Parser(StrictParser):
        """Parser that knows no function, only syntax."""

        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {name: SparkParser.FUNCTION_PARSERS[name] for name in _KEPT_PARSERS}
        FUNC_TOKENS: ClassVar = {*SparkParser.FUNC_TOKENS, TokenType.BETWEEN}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {
            name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "TRANSFORM")
        }
        # Else array(1, 2)[0] is read as ARRAY[0].
        ARRAY_CONSTRUCTORS: ClassVar = {}
        SUBQUERY_TOKENS: ClassVar = {*SparkParser.SUBQUERY_TOKENS, TokenType.VALUES}
        STRICT_CAST = True
        SUPPORTS_TABLE_QUERY = True

        def _parse_select_query(self, *arguments: Any, **options: Any) -> Any:
            # Spark: TABLE name, then nothing but the clauses that order and cut a result.
            if self._is_table_query():
                name = self._tokens[self._index + 1]
                self._advance()
                relation = self._parse_table_parts()
                if self._curr and self._curr.token_type not in _BEHIND_TABLE:
                    self.refuse(f"Nothing can follow TABLE {name.text} here: write SELECT … FROM {name.text} ….")
                query = self._parse_query_modifiers(self._all_of(relation))
                return self._parse_set_operations(query) if options.get("parse_set_operation", True) else query
            if self._curr.token_type == TokenType.VALUES and not options.get("table"):
                query = self._parse_values_query()
                return self._parse_set_operations(query) if options.get("parse_set_operation", True) else query
            return super()._parse_select_query(*arguments, **options)

        def _all_of(self, relation: exp.Expr) -> Any:
            return self.expression(exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation)))

        def _parse_values_query(self) -> Any:
            # VALUES as a query: of its own columns all, then nothing but the clauses that order and cut a result.
            self.check_select()
            query = self._all_of(self._parse_derived_table_values())
            query.meta["values"] = True
            if self._curr and self._curr.token_type not in _BEHIND_TABLE:
                self.refuse("Nothing can follow VALUES here: write SELECT … FROM VALUES ….")
            return self._parse_query_modifiers(query)

        def _parse_derived_table_values(self, *arguments: Any, **options: Any) -> Any:
            if self._curr.token_type != TokenType.L_PAREN or self._next.token_type != TokenType.VALUES:
                return super()._parse_derived_table_values(*arguments, **options)
            # (VALUES …) in FROM: sqlglot reads rows alone; here may stand any query, and joins.
            start = self._index
            self._advance()
            values: Any = super()._parse_derived_table_values()
            is_query = bool(self._curr) and self._curr.token_type in _BEHIND_TABLE
            if self._match(TokenType.R_PAREN):
                alias = self._parse_table_alias()
                if alias is None or values.args.get("alias") is None:
                    values.set("alias", alias or values.args.get("alias"))
                    return values
            self._retreat(start)
            if not is_query:
                return None
            self._advance()
            query = self._parse_select_query()
            self._match_r_paren()
            return self._parse_subquery(query)

        def _is_table_query(self) -> bool:
            named = self._next.token_type == TokenType.IDENTIFIER or self._next.token_type in self.ID_VAR_TOKENS
            return bool(self._curr) and self._curr.token_type == TokenType.TABLE and named

        def _parse_projections(self) -> Any:
            # sqlglot passes over a comma behind the last column, also where a column called from follows.
            found = super()._parse_projections()
            if self._prev.token_type == TokenType.COMMA:
                self.refuse("Nothing stands behind this comma: leave it out, or write what is missing.", self._prev)
            return found

        def _parse_substring(self) -> Any:
            # sqlglot passes over the missing text, and cuts the number.
            if self._curr.token_type in (TokenType.FROM, TokenType.FOR):
                self.refuse("The text is missing: SUBSTRING(text FROM 1 FOR 2).")
            return super()._parse_substring()

        def _parse_cte(self) -> exp.CTE | exp.FunctionSpecification | None:
            # Spark: WITH RECURSIVE name [(columns)] [MAX RECURSION LEVEL number] AS (...)
            self._limits: list[int] = []
            table = super()._parse_cte()
            if table is not None and self._limits:
                table.meta["recursion_limit"] = self._limits[0]
            return table

        def _parse_table_alias(self, *arguments: Any, **options: Any) -> exp.TableAlias | None:
            alias: exp.TableAlias | None = super()._parse_table_alias(*arguments, **options)
            if alias is not None and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
                number = self._parse_number()
                if number is None or not number.name.isdigit():
                    self.raise_error("MAX RECURSION LEVEL takes a whole number")
                else:
                    self._limits.append(int(number.name))
            return alias

        def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
            # Spark: valueExpression, compared from left to right, then at most one predicate (IS, LIKE, IN, BETWEEN).
            this = self._parse_bitwise()
            while self._match_set(_COMPARISONS):
                kind = _COMPARISONS[self._prev.token_type]
                this = self.expression(kind(this=this, expression=self._parse_bitwise()))
            condition: exp.Expr | None = self._parse_range(this, parse_is=True)
            return condition

        def _parse_bitwise(self) -> exp.Expr | None:
            return self._parse_bits(0)

        def _parse_bits(self, level: int) -> exp.Expr | None:
            if level == len(_BITS):
                return self._parse_shift()
            token, kind = _BITS[level]
            this = self._parse_bits(level + 1)
            while self._match(token):
                this = self.expression(kind(this=this, expression=self._parse_bits(level + 1)))
            return this

        def _parse_shift(self) -> exp.Expr | None:
            this = self._parse_term()
            while True:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    this = self.expression(exp.BitwiseLeftShift(this=this, expression=self._parse_term()))
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    unsigned = self._match(TokenType.GT)
                    right = self._parse_term()
                    if unsigned:
                        this = self.expression(exp.Anonymous(this="shiftrightunsigned", expressions=[this, right]))
                    else:
                        this = self.expression(exp.BitwiseRightShift(this=this, expression=right))
                else:
                    return this

        def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
            # || stands beside + and -.
            this = super()._parse_term(parse_mod)
            while self._match(TokenType.DPIPE):
                right = self._parse_factor(parse_mod)
                this = self.expression(exp.DPipe(this=this, expression=right, safe=True))
                this = self._continued(this, parse_mod)
            return this

        def _continued(self, this: exp.Expr, parse_mod: bool) -> exp.Expr:
            while self._match_set(self.TERM):
                kind = self.TERM[self._prev.token_type]
                this = self.expression(kind(this=this, expression=self._parse_factor(parse_mod)))
            return this

        def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
            # INTERVAL 1 DAY 2 HOURS is one operand, in parentheses here lest it fall apart behind a minus. sqlglot also
            # takes what follows a plus for a part of it.
            start = self._index
            if not self._match(TokenType.INTERVAL):
                return None
            is_text = self._match(TokenType.STRING, advance=False)
            value = self._parse_primary() if is_text else self._parse_term()
            if value is None or (isinstance(value, exp.Column) and not self._is_unit_next()):
                self._retreat(start)
                return None
            interval: exp.Expr = self._parse_interval_span(value, parse_function_unit)
            if not self._match_set((TokenType.STRING, TokenType.NUMBER), advance=False):
                return interval
            while self._match_set((TokenType.STRING, TokenType.NUMBER), advance=False):
                part = self._parse_primary()
                assert part is not None
                following = self._parse_interval_span(part, parse_function_unit)
                interval = self.expression(exp.Add(this=interval, expression=following))
            return exp.Paren(this=interval)

        def _is_unit_next(self) -> bool:
            return bool(self._curr) and self._curr.text.upper() in self.dialect.VALID_INTERVAL_UNITS
