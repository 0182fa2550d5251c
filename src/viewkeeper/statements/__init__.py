"""Our statements: text → frozen dataclasses, by a small parser on sqlglot's tokenizer, and back."""

from viewkeeper.statements.parse import parse_script, parse_statement

__all__ = ["parse_script", "parse_statement"]
