"""``python -m bench.peers_setup DIR``: install the systems of bench/peers into DIR; what is there is left as it is."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.systems import DEFAULT_FOLDER, PG_IVM, SCRIPTS, distribution, has_pg_ivm, postgres_folder, python_in
from viewkeeper.clock import SYSTEM_CLOCK

PATHWAY = "pathway==0.33.0"
FLINK = "apache-flink==2.3.0"
# What every script needs beside its system: the check against DuckDB's full query.
SHARED = ("pyarrow", "duckdb")
DEBIAN = ("postgresql-15", "libpq-dev")


class MissingError(Exception):
    """Something that this machine must have first."""


def pathway(folder: Path, jobs: int) -> str:
    """Pathway, into an environment of its own."""
    if not distribution(folder / "pathway", "pathway"):
        _environment(folder / "pathway", [PATHWAY, *SHARED])
    return distribution(folder / "pathway", "pathway")


def flink(folder: Path, jobs: int) -> str:
    """Flink's jars, from its PyPI package; a JDK 17 compiles and runs the peer."""
    if shutil.which("javac") is None:
        raise MissingError("a JDK 17 (javac) on the PATH: apt-get install openjdk-17-jdk-headless")
    if not distribution(folder / "flink", "apache-flink"):
        # Its jars are all that is used: of what the package depends on, much has no wheel for newer Pythons.
        _environment(folder / "flink", ["--no-deps", FLINK, "apache-flink-libraries" + FLINK[len("apache-flink") :]])
    return distribution(folder / "flink", "apache-flink")


def postgres(folder: Path, jobs: int) -> str:
    """PostgreSQL from the system's packages, and its client."""
    if postgres_folder() is None:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise MissingError(f"PostgreSQL 15 with pg_config: as root, apt-get install {' '.join(DEBIAN)}")
        _run(["apt-get", "update"])
        _run(["apt-get", "install", "--yes", *DEBIAN])
    if not distribution(folder / "postgres", "psycopg"):
        _environment(folder / "postgres", ["psycopg[binary]", *SHARED])
    if not has_pg_ivm():
        print(f"  without pg_ivm: {PG_IVM}", flush=True)
    return distribution(folder / "postgres", "psycopg")


def dbsp(folder: Path, jobs: int) -> str:
    """The bare circuit in Rust; the compiler takes about ten minutes of two cores."""
    if shutil.which("cargo") is None:
        raise MissingError("a Rust toolchain (cargo) on the PATH")
    target = (folder / "dbsp").absolute()
    # Beside the sources cargo would leave a lock file, which names a registry. It knows itself what is up to date.
    source = shutil.copytree(SCRIPTS / "dbsp", folder / "dbsp-source", dirs_exist_ok=True)
    command = ["cargo", "build", "--release", "--jobs", str(jobs)]
    _run(command, source, {"CARGO_TARGET_DIR": str(target)})
    return str(target / "release" / "peer-dbsp")


STEPS: dict[str, Callable[[Path, int], str]] = {"pathway": pathway, "flink": flink, "postgres": postgres, "dbsp": dbsp}


def _environment(path: Path, packages: Sequence[str]) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(path)])
    _run([str(python_in(path)), "-m", "pip", "install", "--disable-pip-version-check", *packages])


def _run(command: Sequence[str], where: Path | None = None, variables: dict[str, str] | None = None) -> None:
    print(f"  $ {' '.join(command)}", flush=True)
    done = subprocess.run(command, cwd=where, env={**os.environ, **(variables or {})})
    if done.returncode:
        raise MissingError(f"`{' '.join(command)}` failed with exit status {done.returncode}, see above")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers_setup", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=DEFAULT_FOLDER, metavar="DIR")
    parser.add_argument("--only", default=",".join(STEPS), metavar="NAME,...", help=f"of {', '.join(STEPS)}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many compilers run at once")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    if unknown := [name for name in chosen if name not in STEPS]:
        parser.error(f"there is no system {', '.join(unknown)}; there are {', '.join(STEPS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for number, name in enumerate(chosen, start=1):
        began = SYSTEM_CLOCK.monotonic_seconds()
        print(f"[{number}/{len(chosen)}] {name}: {STEPS[name].__doc__}", flush=True)
        try:
            made = STEPS[name](options.folder, options.jobs)
        except MissingError as error:  # the others are still worth having
            failed.append(name)
            print(f"  {name} is not installed, it needs: {error}", flush=True)
        else:
            print(f"  ready: {made} ({SYSTEM_CLOCK.monotonic_seconds() - began:.0f} s)", flush=True)
    print(f"{len(chosen) - len(failed)} of {len(chosen)} systems are ready in {options.folder}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
