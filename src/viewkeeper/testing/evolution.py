"""Steps that change tables and views between the transactions of a script, as plain data.

``model.py`` says what each does to what the tables hold, and which of them a store refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

# Per type, the wider ones of the same class (``generators.TYPES``), and of another class as the last.
WIDER: Mapping[str, tuple[str, ...]] = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT"),
    "SMALLINT": ("INT", "BIGINT"),
    "INT": ("BIGINT",),
    "DECIMAL(5,2)": ("DECIMAL(38,10)",),
    "DECIMAL(18,0)": ("DECIMAL(38,10)",),
    "FLOAT": ("DOUBLE",),
    "DATE": ("TIMESTAMP_NTZ",),
}
_DAWN = datetime.fromisoformat("0001-01-01")


@dataclass(frozen=True)
class Truncate:
    """All rows of a table go."""

    table: str

    @property
    def statement(self) -> str:
        """What the store is told."""
        return f"TRUNCATE TABLE {self.table}"


@dataclass(frozen=True)
class AddColumn:
    """A table gets a column; rows that are there show its DEFAULT, NULL where there is none.

    Args:
        table: the table.
        name: of the column.
        kind: its SQL type.
        nullable: whether NULL is allowed; where it is not, there is a default.
        default: the value.
    """

    table: str
    name: str
    kind: str
    nullable: bool
    default: Any = None

    @property
    def statement(self) -> str:
        """What the store is told."""
        default = "" if self.default is None else f" DEFAULT {literal(self.default, self.kind)}"
        column = f"{self.name} {self.kind}{'' if self.nullable else ' NOT NULL'}"
        return f"ALTER TABLE {self.table} ADD COLUMN {column}{default}"


@dataclass(frozen=True)
class RenameColumn:
    """A column gets another name; views that are there go on under the old one."""

    table: str
    name: str
    new_name: str

    @property
    def statement(self) -> str:
        """What the store is told."""
        return f"ALTER TABLE {self.table} RENAME COLUMN {self.name} TO {self.new_name}"


@dataclass(frozen=True)
class DropColumn:
    """A column goes; refused while the query of a view names it."""

    table: str
    name: str

    @property
    def statement(self) -> str:
        """What the store is told."""
        return f"ALTER TABLE {self.table} DROP COLUMN {self.name}"


@dataclass(frozen=True)
class WidenColumn:
    """A column gets a type that holds more, and the views that it makes different are filled anew."""

    table: str
    name: str
    kind: str

    @property
    def statement(self) -> str:
        """What the store is told."""
        return f"ALTER TABLE {self.table} ALTER COLUMN {self.name} TYPE {self.kind}"


@dataclass(frozen=True)
class MoveRow:
    """The primary key of a row is updated; refused where a row stands at the new one.

    Args:
        table: the table.
        columns: its key columns.
        key: their values.
        new_key: those that they get.
    """

    table: str
    columns: tuple[str, ...]
    key: tuple[Any, ...]
    new_key: tuple[Any, ...]

    @property
    def statement(self) -> str:
        """What the store is told."""
        changes = ", ".join(f"{name} = :new_{name}" for name in self.columns)
        return f"UPDATE {self.table} SET {changes} WHERE {' AND '.join(f'{name} = :{name}' for name in self.columns)}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the statement's names."""
        new_names = [f"new_{name}" for name in self.columns]
        return dict(zip((*self.columns, *new_names), (*self.key, *self.new_key), strict=True))


TableChange = Truncate | AddColumn | RenameColumn | DropColumn | WidenColumn | MoveRow
TABLE_CHANGES: Mapping[str, type[TableChange]] = {
    "truncate": Truncate,
    "add column": AddColumn,
    "rename column": RenameColumn,
    "drop column": DropColumn,
    "widen column": WidenColumn,
    "move row": MoveRow,
}
_NAMES = {kind: name for name, kind in TABLE_CHANGES.items()}


def as_plain(change: TableChange) -> tuple[str, list[Any]]:
    """Return the name and the arguments of a change; ``change_of`` makes it of them."""
    return _NAMES[type(change)], [getattr(change, field.name) for field in fields(change)]


def change_of(name: str, arguments: list[Any]) -> TableChange:
    """Return the change that ``as_plain`` took apart; lists are tuples again."""
    return TABLE_CHANGES[name](*map(_frozen, arguments))


def prefixed(change: TableChange, prefix: str) -> TableChange:
    """Return the change of the table with ``prefix`` before its name."""
    return replace(change, table=prefix + change.table)


def literal(value: Any, kind: str) -> str:
    """Return ``value`` as a constant that needs no Spark.

    Example:
        >>> literal(float("nan"), "FLOAT"), literal(None, "INT"), literal(b"a", "BINARY"), literal("a", "STRING")
        ("CAST(CAST('nan' AS DOUBLE) AS FLOAT)", 'NULL', "X'61'", "'a'")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind == "FLOAT":
        return f"CAST({literal(value, 'DOUBLE')} AS FLOAT)"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
    return f"'{text}'" if kind == "STRING" else f"CAST('{text}' AS {kind})"


def widened(value: Any, kind: str) -> Any:
    """Return a value of a narrower type as one of ``kind``."""
    if isinstance(value, Decimal):
        return value.quantize(Decimal(1).scaleb(-int(kind.rstrip(")").split(",")[1])))
    if isinstance(value, date) and not isinstance(value, datetime):
        return _DAWN + timedelta(days=value.toordinal() - 1)
    return value


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
