"""From evaluated rows to one transaction: evaluated outside the write lock, checked inside it.

A statement is evaluated at one moment of the store and what it changes is put aside; then, in the write transaction,
it is checked that nothing it read has changed since. If something has, it is evaluated anew; the third time under the
write lock, so that it ends whatever others do. Statements that read the store by Spark never run under the lock, since
its workers could not open the store meanwhile: they are tried more often, then given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from viewkeeper.closing import Closing
from viewkeeper.errors import ConflictError
from viewkeeper.evaluation.moments import LOCAL, SPARK, EvaluationContext, Moment, open_moment
from viewkeeper.evaluation.result import Result
from viewkeeper.evaluation.spool import Spool
from viewkeeper.log.reader import head
from viewkeeper.store.changes import tables_changed_since
from viewkeeper.store.key_value import WriteTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.transactions import DeleteBatch, InsertBatch, Operation, PutBatch, TableStore, apply
from viewkeeper.views.catalog import catalog_version, read_catalog
from viewkeeper.zset.schema import Schema

OPTIMISTIC_ATTEMPTS = 2
SPARK_ATTEMPTS = 6
_CHANGED = "READ_ROWS_CHANGED"


class Changes(Closing):
    """What a statement does to one table: rows to delete, to put, to insert, in that order. Close it when it is done.

    Args:
        table: the table.
        executor: who evaluated the statement.
    """

    def __init__(self, table: Table, executor: str = "local") -> None:
        self.table = table
        self.executor = executor
        self.deleted = Spool(Schema(table.key_columns))
        self.put = Spool(table.schema)
        self.inserted = Spool(table.schema)
        self.rows_affected = 0
        self.read_ids: tuple[int, ...] = ()

    def close(self) -> None:
        """Remove the files of the rows."""
        for spool in (self.deleted, self.put, self.inserted):
            spool.close()

    def operations(self) -> Iterator[Operation]:
        """Yield the operations; their rows come batch by batch."""
        if self.deleted.rows:
            yield DeleteBatch(self.table, iter(self.deleted))
        if self.put.rows:
            yield PutBatch(self.table, iter(self.put))
        if self.inserted.rows:
            yield InsertBatch(self.table, iter(self.inserted))


Evaluate = Callable[[Moment], Changes]


def commit(context: EvaluationContext, evaluate: Evaluate) -> Result:
    """Evaluate a statement and commit what it changes.

    Args:
        context: the store.
        evaluate: evaluates the statement at a moment; it may be called several times.

    Returns:
        How many rows it affected, and its place in the log.

    Raises:
        InputError: ``DUPLICATE_KEY`` and what ``evaluate`` raises; nothing is changed then.
        ConflictError: ``READ_ROWS_CHANGED`` where Spark is needed and others keep changing what it reads.
    """
    executor = LOCAL
    for attempt in range(SPARK_ATTEMPTS):
        if attempt == OPTIMISTIC_ATTEMPTS and executor != SPARK:
            break
        with open_moment(context) as moment:
            changes = evaluate(moment)
        executor = changes.executor
        with changes:
            try:
                committed = TableStore(context.base).commit(changes.operations(), _guard(moment, changes))
            except ConflictError as conflict:
                if conflict.code != _CHANGED or attempt == SPARK_ATTEMPTS - 1:
                    raise
                continue
            return Result.of_change(changes.rows_affected, committed.sequence_number, changes.executor)
    with context.views.read() as views, context.base.write() as base:
        moment = Moment(base, views, read_catalog(base), head(base), locked=True)
        with evaluate(moment) as changes:
            committed = apply(base, changes.operations())
    return Result.of_change(changes.rows_affected, committed.sequence_number, changes.executor)


def _guard(moment: Moment, changes: Changes) -> Callable[[WriteTransaction], None]:
    def check(txn: WriteTransaction) -> None:
        changed = tables_changed_since(txn, changes.read_ids, moment.position)
        if changed or catalog_version(txn) != moment.catalog.version:
            message = "Others kept changing what the statement reads: run it again, or when there are fewer writes."
            raise ConflictError(_CHANGED, message)

    return check
