"""How an environment is opened."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.errors import InputError

DURABILITIES = ("commit", "interval", "none")


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """How an environment is opened; the first opener in a process decides for all.

    Args:
        durability: ``commit`` forces each commit to disk; ``interval`` does so every ``sync_interval_seconds``;
            ``none`` leaves it to the operating system. A killed process loses nothing in any of them. A power cut
            loses nothing under ``commit``; under the others what was not yet on disk, and it may damage the store.
        sync_interval_seconds: the pause between two forced writes under ``interval``.
        map_size_bytes: address space kept for the file, its largest size. It costs no memory and no disk.
        databases_max: how many sub-databases can exist at once.
        readers_max: how many read transactions of all processes can be open at once; fixed by the first opener.
        readahead: let the operating system read ahead; off is better when the store is much larger than memory.
    """

    durability: str = "commit"
    sync_interval_seconds: float = 1.0
    map_size_bytes: int = 1 << 40
    databases_max: int = 4096
    readers_max: int = 1024
    readahead: bool = True

    def __post_init__(self) -> None:
        if self.durability not in DURABILITIES:
            raise InputError(
                "DURABILITY_UNKNOWN",
                f"Durability {self.durability!r} is unknown: use one of {', '.join(DURABILITIES)}.",
            )
        if self.sync_interval_seconds <= 0 or self.map_size_bytes < 1 << 20 or self.databases_max < 8:
            raise InputError(
                "SETTING_OUT_OF_RANGE",
                "sync_interval_seconds must be above 0, map_size_bytes 1 MiB or more, databases_max 8 or more.",
            )


DEFAULT_OPTIONS = EnvironmentOptions()
