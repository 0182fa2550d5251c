"""What all measurements share: sizes, the work folder, rows of results as they are made."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import xxhash

import viewkeeper
from bench.journal import Journal
from bench.systems import DEFAULT_FOLDER
from bench.targets import TARGETS
from viewkeeper.cli.machine import cpu_name
from viewkeeper.clock import new_identifier, utc_now
from viewkeeper.java import find_java


@dataclass(frozen=True)
class Scale:
    """How large a run is.

    Args:
        changes: changes of W1 to W3; the base tables of the same delta shrink alike.
        view_rows: rows of the view that is read by key.
        repeats: how often an epoch is measured; the median counts.
        writes_a_phase_seconds: how long the flat-out writer runs.
        fresh_writes: single writes whose freshness is measured, by each executor.
        fed: transaction sizes of the log, beside 1,000.
        executors: which are measured.
        peer_repeats: how often each peer runs a workload; the median counts.
        left_out: measurements that are made only if asked for by name.
        scale_factor: of TPC-H's data.
    """

    changes: int = 1_000_000
    view_rows: int = 1_000_000
    repeats: int = 3
    writes_a_phase_seconds: float = 60.0
    fresh_writes: int = 300
    fed: tuple[int, ...] = (1, 100_000)
    executors: tuple[str, ...] = ("spark", "local")
    peer_repeats: int = 3
    left_out: frozenset[str] = frozenset()
    scale_factor: float = 1.0

    @property
    def factor(self) -> float:
        """What the peers' generator multiplies its sizes by."""
        return self.changes / 1_000_000


FULL = Scale()
_NOT_QUICK = frozenset({"peers-W2", "peers-W4", "peers-W5", "peers-W6"})
QUICK = Scale(50_000, 100_000, 1, 2.0, 15, (100_000,), peer_repeats=1, left_out=_NOT_QUICK, scale_factor=0.1)
SMOKE = Scale(4_000, 5_000, 1, 0.5, 3, (), peer_repeats=1, left_out=_NOT_QUICK | {"peers-W3"}, scale_factor=0.01)


@dataclass
class Row:
    """One line of the results.

    Args:
        measure: which measurement it belongs to.
        what: what was measured, in words.
        value: the figure.
        unit: its unit.
        executor: local or spark; empty where neither takes part.
        durability: of the store; empty where none takes part.
        target: the key of its target; empty for none.
        details: what else is worth keeping.
    """

    measure: str
    what: str
    value: float
    unit: str
    executor: str = ""
    durability: str = ""
    target: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """``met`` or ``missed`` with how far, empty without target."""
        if not self.target:
            return ""
        target = TARGETS[self.target]
        return "met" if target.met(self.value) else f"missed ({self.value / target.bound:.2f} × the bound)"


@dataclass(frozen=True)
class Options:
    """What the command line says beside the scale.

    Args:
        environments: the folder in which the peers are installed.
        systems: which of them run; all where empty.
        is_quiet: whether rows are not printed as they come.
        kept: a folder for data that later slices go on with; empty for the run's own.
        measures_ours: whether code of ours is measured, which then must be the same in all slices of a run.
    """

    environments: Path = DEFAULT_FOLDER
    systems: frozenset[str] = frozenset()
    is_quiet: bool = False
    kept: Path | None = None
    measures_ours: bool = True


class Bench:
    """A run, which may be made in several slices.

    Args:
        scale: its sizes.
        folder: where stores and data may lie; used by this slice only.
        results: where results are written.
        options: what else the command line says.
        resumes: whether the results that are there are gone on with.

    Raises:
        OtherRunError: if they are another machine's, another version's or another scale's.
    """

    def __init__(
        self, scale: Scale, folder: Path, results: Path, options: Options = Options(), resumes: bool = False
    ) -> None:
        self.scale = scale
        self.folder = folder
        self.results = results
        self.environments = options.environments
        self.kept = options.kept or folder / "kept"
        self.systems = options.systems
        self._is_quiet = options.is_quiet
        results.mkdir(parents=True, exist_ok=True)
        self.about = machine() | ({} if options.measures_ours else {"source": ""})
        self.journal = Journal(results / "results.jsonl", self.about, plain(asdict(scale)), resumes)

    @property
    def rows(self) -> list[Row]:
        """Our figures, of all slices."""
        return [Row(**{key: value for key, value in row.items() if key != "verdict"}) for row in self.journal.rows]

    @property
    def peers(self) -> list[dict[str, Any]]:
        """The peers' results, of all slices."""
        return self.journal.peers

    def add(self, row: Row) -> None:
        """Keep a result, and show it."""
        self.journal.add_row({**asdict(row), "verdict": row.verdict})
        if not self._is_quiet:
            by = f" [{row.executor or '-'}, {row.durability or '-'}]"
            print(f"  {row.measure}: {row.what}{by}: {shown(row.value)} {row.unit} {row.verdict}", flush=True)

    def add_peer(self, result: dict[str, Any]) -> None:
        """Keep what one run of a peer has said."""
        self.journal.add_peer(result)

    def note(self, text: str) -> None:
        """Say what is being done."""
        if not self._is_quiet:
            print(text, flush=True)

    @contextmanager
    def temporary(self, name: str) -> Iterator[Path]:
        """Return a folder that is removed afterwards."""
        path = self.folder / f"{name}-{new_identifier()[:8]}"
        path.mkdir(parents=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def shown(value: float) -> str:
    """Return a figure with three or four digits that count."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def median(values: Sequence[float]) -> float:
    """Return the middle value."""
    return statistics.median(values)


def plain(value: Any) -> Any:
    """Return a value as JSON gives it back."""
    return json.loads(json.dumps(value, default=sorted))


def machine() -> dict[str, Any]:
    """Return the machine, the versions and the moment of a run."""
    packages = ("pyspark", "pyarrow", "numpy", "lmdb", "duckdb")
    return {
        "date": utc_now().isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "cpu": cpu_name(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_at_start": [round(x, 2) for x in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": _java(),
        **{name: version(name) for name in packages},
        "viewkeeper": viewkeeper.__version__,
        "source": _source(),
    }


def _source() -> str:
    """Return a digest of our own code: slices of one run measure the same."""
    digest = xxhash.xxh64()
    folder = Path(viewkeeper.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _java() -> str:
    found = find_java()
    return str(getattr(found, "version", found))
