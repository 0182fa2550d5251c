"""The systems that run the peers' workloads: their variants, where each is installed, its version, what it lacks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import viewkeeper

SCRIPTS = Path(__file__).parent / "peers"
DEFAULT_FOLDER = Path(".peers")
ALL = ("W1", "W2", "W3", "W4", "W5", "W6")
_RATES = ("W1", "W2", "W3")
PG_IVM = "pg_ivm is in no package registry: build it from its source into this PostgreSQL (make, make install)"


@dataclass(frozen=True)
class System:
    """A system and the ways in which it runs.

    Args:
        name: that of its script, ``peer_NAME.py``.
        variants: the workloads of each of its variants.
        lacks: given the folder of environments and a variant, what is missing; empty where it can run.
        version: given that folder, its version.
        environment: the folder whose Python runs the script; empty for the Python that runs the bench.
    """

    name: str
    variants: dict[str, tuple[str, ...]]
    lacks: Callable[[Path, str], str]
    version: Callable[[Path], str]
    environment: str = ""

    def command(self, folder: Path) -> list[str]:
        """Return what starts the script."""
        python = str(python_in(folder / self.environment)) if self.environment else sys.executable
        return [python, str(SCRIPTS / f"peer_{self.name}.py")]


def python_in(environment: Path) -> Path:
    """Return the Python of a virtual environment."""
    return environment.absolute() / "bin" / "python"


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables that the scripts find their systems by."""
    return {"FLINK_PYTHON": str(python_in(folder / "flink")), "CARGO_TARGET_DIR": str(folder.absolute() / "dbsp")}


def distribution(environment: Path, name: str) -> str:
    """Return the version of a package in a virtual environment, empty where it is not there."""
    found = [path.name for path in environment.glob(f"lib/python*/site-packages/{name.replace('-', '_')}-*.dist-info")]
    return found[0].removesuffix(".dist-info").rsplit("-", 1)[1] if found else ""


def postgres_folder() -> Path | None:
    """Return the folder of PostgreSQL's server programs, None where there is none."""
    if shutil.which("pg_config") is None:
        return None
    said = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True).stdout.strip()
    return Path(said) if (Path(said) / "initdb").exists() else None


def has_pg_ivm() -> bool:
    """Return whether this PostgreSQL has the extension."""
    if shutil.which("pg_config") is None:
        return False
    said = subprocess.run(["pg_config", "--sharedir"], capture_output=True, text=True).stdout.strip()
    return (Path(said) / "extension" / "pg_ivm.control").exists()


def _to_install(folder: Path, name: str) -> str:
    return f"python -m bench.peers_setup {folder} --only {name}"


def _pathway(folder: Path, _: str) -> str:
    return "" if distribution(folder / "pathway", "pathway") else _to_install(folder, "pathway")


def _flink(folder: Path, _: str) -> str:
    there = distribution(folder / "flink", "apache-flink")
    if there and shutil.which("javac") is None:
        return "a JDK 17 (javac) on the PATH: apt-get install openjdk-17-jdk-headless"
    return "" if there else _to_install(folder, "flink")


def _dbsp(folder: Path, _: str) -> str:
    return "" if (folder / "dbsp" / "release" / "peer-dbsp").exists() else _to_install(folder, "dbsp")


def _postgres(folder: Path, variant: str) -> str:
    if postgres_folder() is None or not distribution(folder / "postgres", "psycopg"):
        return _to_install(folder, "postgres")
    return PG_IVM if variant == "pg_ivm" and not has_pg_ivm() else ""


def _nothing(folder: Path, variant: str) -> str:
    return ""


def _dbsp_version(_: Path) -> str:
    found = re.search(r'^dbsp = "=?([\d.]+)"', (SCRIPTS / "dbsp" / "Cargo.toml").read_text(), re.MULTILINE)
    return found[1] if found else ""


def _postgres_version(_: Path) -> str:
    said = subprocess.run(["pg_config", "--version"], capture_output=True, text=True).stdout.split()
    return said[1] if len(said) > 1 else ""


SYSTEMS = (
    System(
        "viewkeeper",
        {
            "spark": (*_RATES, "W4", "W6"),
            "spark-commit": (*_RATES, "W4"),
            "local": ALL,
            "local-commit": ALL,
        },
        _nothing,
        lambda _: viewkeeper.__version__,
    ),
    System("duckdb_full", {"each": ALL, "end": _RATES}, _nothing, lambda _: version("duckdb")),
    System("spark_full", {"each": ALL}, _nothing, lambda _: version("pyspark")),
    System("dbsp", {"zset": ALL}, _dbsp, _dbsp_version),
    System(
        "flink",
        {"hashmap": (*_RATES, "W4", "W6"), "rocksdb": (*_RATES, "W4")},
        _flink,
        lambda folder: distribution(folder / "flink", "apache-flink"),
    ),
    System(
        "pathway",
        {"upsert": ALL, "signed": ("W1", "W2")},
        _pathway,
        lambda folder: distribution(folder / "pathway", "pathway"),
        "pathway",
    ),
    System("postgres", {"triggers": ALL, "pg_ivm": ALL}, _postgres, _postgres_version, "postgres"),
)
