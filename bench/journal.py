"""results.jsonl: a line a figure, appended as it is measured, so that one run can be made in several slices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# What may differ between two slices of one run.
MAY_DIFFER = {"date", "load_at_start", "peer_repeats"}


class OtherRunError(Exception):
    """The results that are there belong to another run."""


class Journal:
    """The lines of one run.

    Args:
        path: the file.
        about: the machine, the versions and the moment.
        scale: the sizes of the run.
        resumes: whether the file is gone on with where it exists; else it is begun anew.

    Raises:
        OtherRunError: if it is of another machine, version or scale.
    """

    def __init__(self, path: Path, about: dict[str, Any], scale: dict[str, Any], resumes: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self.peers: list[dict[str, Any]] = []
        self.slices: list[dict[str, Any]] = []
        self.seconds: dict[str, float] = {}
        self._path = path
        if resumes and path.exists():
            for line in path.read_text().splitlines():
                self._take(json.loads(line))
            self._compare(about, scale)
        else:
            path.write_text("")
        self._write({"run": about, "scale": scale})

    def _compare(self, about: dict[str, Any], scale: dict[str, Any]) -> None:
        for earlier in self.slices:
            there, here = {**earlier["run"], **earlier["scale"]}, {**about, **scale}
            # A slice of peers alone has measured no code of ours: any may join it.
            if not (there.get("source") and here.get("source")):
                there, here = ({**each, "source": ""} for each in (there, here))
            keys = [key for key in here if key not in MAY_DIFFER and there.get(key) != here[key]]
            differ = [f"{key} was {there.get(key)}, is {here[key]}" for key in keys]
            if differ:
                told = "; ".join(differ)
                raise OtherRunError(f"{self._path} is of another run ({told}): measure anew, without --resume")

    def begin(self, name: str) -> None:
        """Forget a measurement."""
        self._write({"begin": name})

    def done(self, name: str, seconds: float) -> None:
        """Keep that a measurement is complete."""
        self._write({"done": name, "seconds": round(seconds, 1)})

    def add_row(self, row: dict[str, Any]) -> None:
        """Keep a figure of ours."""
        self._write({"row": row})

    def add_peer(self, result: dict[str, Any]) -> None:
        """Keep a peer's result."""
        self._write({"peer_result": result})

    def _write(self, line: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        if "run" in line:
            self.slices.append(line)
        elif "begin" in line:
            name = line["begin"]
            self.rows = [row for row in self.rows if row["measure"] != name]
            self.peers = [result for result in self.peers if f"peers-{result['workload']}" != name]
            self.seconds.pop(name, None)
        elif "done" in line:
            self.seconds[line["done"]] = line["seconds"]
        elif "row" in line:
            self.rows.append(line["row"])
        else:
            self.peers.append(line["peer_result"])
