"""``spark.read.format("viewkeeper")``: tables and views of a store as a DataFrame of the user's own session.

A table is read in parts, all as of the log's head when the query is planned; a view by one task, in one transaction.
Inside the pipeline nothing is read this way: a read through Spark's Python data sources costs 0.2 s of planning.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from viewkeeper.errors import InputError
from viewkeeper.executors.spark.cargo import borrowed
from viewkeeper.executors.spark.types import other_python, to_spark_schema
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.reader import head
from viewkeeper.pipeline.records import read_view
from viewkeeper.store.key_value import Space
from viewkeeper.store.model import Table
from viewkeeper.store.scans import KeyRange, split_table
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import read_catalog
from viewkeeper.views.planning import Planner
from viewkeeper.views.reads import StoredView

OpenStoreAt = Callable[[str], tuple[Space, Space]]

FORMAT = "viewkeeper"
PARTS_MAX = 64
_START_SECONDS_MAX = 30
_ROWS_PER_PART = 200_000


@dataclass(frozen=True)
class Part(InputPartition):
    """What one task reads: a range of a table as of a position, or, without a range, a whole view."""

    key_range: KeyRange | None
    position: int


@dataclass(frozen=True)
class Found:
    """The table or view that a user named."""

    table: Table | None
    view: StoredView | None

    def schema(self) -> StructType:
        """Return its columns, as Spark has them."""
        if self.table is not None:
            return to_spark_schema(self.table.schema)
        assert self.view is not None
        return to_spark_schema(self.view.visible_schema)


def find(spaces: tuple[Space, Space], name: str) -> Found:
    """Return the table or view called ``name``.

    Raises:
        InputError: ``TABLE_NOT_FOUND``, or ``VIEW_NOT_FILLED``.
    """
    base, views = spaces
    with views.read() as published, base.read() as txn:
        catalog = read_catalog(txn)
        found = catalog.find(name)
        if found is None:
            names = [t.name for t in catalog.tables.values()] + [v.name for v in catalog.views.values()]
            known = ", ".join(sorted(names)) or "none"
            raise InputError("TABLE_NOT_FOUND", f"The store has no table or view {name!r}. There are: {known}.")
        if isinstance(found, Table):
            return Found(found, None)
        record = read_view(published, found.id)
        if record is None or record.position < 0:
            raise InputError("VIEW_NOT_FILLED", f"View {name!r} holds no rows yet: refresh it first.")
        return Found(None, StoredView.of(found, Planner().plan(catalog, found), record.state, record.rows))


class Reader(DataSourceReader):
    """Reads a table or view.

    Args:
        path: the store.
        name: the table or view.
        open_store: opens the store at a path.
    """

    def __init__(self, path: str, name: str, open_store: OpenStoreAt) -> None:
        self._path = path
        self._name = name
        self._open_store = open_store

    def _open(self) -> tuple[Space, Space]:
        return self._open_store(self._path)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts."""
        with borrowed(self._open) as spaces:
            found = find(spaces, self._name)
            if found.table is None:
                return [Part(None, 0)]
            with spaces[0].read() as txn:
                rows = txn.count(format_of(found.table).database)
                parts = split_table(txn, found.table, min(rows // _ROWS_PER_PART + 1, PARTS_MAX))
                return [Part(part, head(txn)) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part."""
        assert isinstance(partition, Part)
        with borrowed(self._open) as spaces:
            found = find(spaces, self._name)
            if found.table is not None:
                rows = scan_as_of(spaces[0], found.table, partition.position, partition.key_range)
                yield from _as_spark_wants(rows, found.schema())
            elif found.view is not None:
                with spaces[1].read() as txn:
                    yield from _as_spark_wants(found.view.batches(txn), found.schema())


def _as_spark_wants(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the batches under the very Arrow schema that Spark makes of ``schema``, nullability included."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, wanted, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def check_python(spark: SparkSession) -> None:
    """Raise StoreError ``PYTHON_VERSION_MISMATCH`` where the session's workers run another Python than this process.

    What cannot be started here (a path of other machines) is left to Spark.
    """
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        command = [spark.sparkContext.pythonExec, "-c", program]
        run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_START_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired):
        return
    workers = run.stdout.strip()
    if run.returncode == 0 and workers and workers != "{}.{}".format(*sys.version_info[:2]):
        raise other_python(workers)


def register(spark: SparkSession, open_store: OpenStoreAt) -> None:
    """Let ``spark`` read stores: ``spark.read.format("viewkeeper").option("store", "shop.vk").load("v")``.

    Args:
        spark: the session.
        open_store: opens the base and the views space of the store at a path; picklable.

    Raises:
        StoreError: ``PYTHON_VERSION_MISMATCH`` where the session's workers run another Python than this process.
    """
    check_python(spark)

    # Spark makes the source from its class alone, in processes of its own: what it needs must be in the class.
    class ViewkeeperSource(DataSource):
        """The data source."""

        @classmethod
        def name(cls) -> str:
            """Return what stands in ``format``."""
            return FORMAT

        def _named(self) -> tuple[str, str]:
            store, name = self.options.get("store"), self.options.get("path")
            if not store or not name:
                message = 'Name the store and the table or view: .option("store", "shop.vk").load("v").'
                raise InputError("MISSING_OPTION", message)
            return store, name

        def schema(self) -> StructType:
            """Return the columns."""
            store, name = self._named()
            with borrowed(lambda: open_store(store)) as spaces:
                return find(spaces, name).schema()

        def reader(self, schema: StructType) -> DataSourceReader:
            """Return the reader."""
            return Reader(*self._named(), open_store)

    spark.dataSource.register(ViewkeeperSource)
