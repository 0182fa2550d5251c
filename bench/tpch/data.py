"""TPC-H's data at any scale factor, made by tpchgen-cli."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.tpch.tables import NAMES, SCHEMAS


def generate(folder: Path, scale_factor: float) -> Path:
    """Return a folder with one Parquet file a table, made where it is not there yet.

    Args:
        folder: where the data of all scale factors lie.
        scale_factor: 1 is 1.5 million orders; 0.01 takes a tenth of a second.

    Raises:
        FileNotFoundError: if tpchgen-cli is not installed.
        subprocess.CalledProcessError: if it fails.
    """
    path = folder / f"sf{scale_factor:g}"
    if not path.exists():
        making = folder / f"sf{scale_factor:g}.making"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        command = [_program(), "parquet", "--scale-factor", f"{scale_factor:g}", "--output-dir", str(making), "--quiet"]
        subprocess.run(command, check=True)
        making.rename(path)
    return path


def _program() -> str:
    """Return tpchgen-cli, that of this environment first."""
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise FileNotFoundError("tpchgen-cli is not installed: pip install tpchgen-cli, or the extra dev or bench")
    return found


def load(path: Path) -> dict[str, pa.Table]:
    """Return the tables of a generated folder, in the types of their CREATE TABLE statements."""
    return {name: pq.read_table(path / f"{name}.parquet").cast(SCHEMAS[name]).combine_chunks() for name in NAMES}
