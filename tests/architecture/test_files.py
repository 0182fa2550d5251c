"""Files stay short, and say nothing of the machine they were written on."""

from __future__ import annotations

import re

from tests.architecture.project import name_of, python_files, text_files

LINES_MAX = 500

# Split, so that this file does not find itself.
MACHINE_PATHS = ["/wo" + "rk/", "/ro" + "ot/", "/opt/wh" + "eels", "/us" + "r/lib/jvm"]
REGISTRY_HOSTS = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "crates" + ".io",
    "repo.maven" + ".apache.org",
    "repo1.maven" + ".org",
    "proxy.golang" + ".org",
    "deb.debian" + ".org",
]


def test_no_file_is_longer_than_a_sitting() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in python_files("src", "tests", "bench")}
    assert len(lengths) > 3
    assert {name: length for name, length in lengths.items() if length > LINES_MAX} == {}


def test_no_file_names_this_machine_or_a_registry() -> None:
    banned = re.compile("|".join(map(re.escape, MACHINE_PATHS + REGISTRY_HOSTS)))
    found = [
        f"{name_of(path)}:{number}: {hit.group()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if (hit := banned.search(line))
    ]
    assert found == []
