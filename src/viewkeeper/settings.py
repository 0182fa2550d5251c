"""The table of settings: name, default, unit, help. ``vk.connect`` takes them by name; the docs are made from it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from viewkeeper.errors import InputError


@dataclass(frozen=True)
class Setting:
    """One setting: its name, default, unit ("" for none) and one sentence of help."""

    name: str
    default: object
    unit: str
    help: str


@dataclass(frozen=True)
class Settings:
    """The settings of one connection; see ``SETTINGS`` for what each means."""

    durability: str = "commit"
    sync_interval_seconds: float = 1.0
    map_size_bytes: int = 1 << 40
    time_zone: str = "UTC"
    executor: str = "auto"
    local_rows_max: int = 50_000
    epoch_rows_max: int = 4_000_000
    memory_bytes: int = 2 << 30
    publish_seconds_max: float = 0.5
    build_rows: int = 200_000
    query_rows_local: int = 200_000
    spark_master: str = "local[2]"
    spark_partitions: int = 2
    poll_interval_seconds: float = 0.002
    log_held_bytes_max: int = 64 << 30
    snapshot_timeout_seconds: float = 60.0
    scrub_interval_seconds: float = 3600.0
    scrub_rows: int = 10_000

    @staticmethod
    def of(values: Mapping[str, object]) -> Settings:
        """Return settings with ``values`` in place of defaults.

        Raises:
            InputError: ``UNKNOWN_SETTING`` or ``INVALID_SETTING``.
        """
        for name, value in values.items():
            if name not in SETTINGS:
                near = difflib.get_close_matches(name, SETTINGS, 1)
                hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(SETTINGS)}."
                raise InputError("UNKNOWN_SETTING", f"There is no setting {name!r}.{hint}")
            wanted = type(SETTINGS[name].default)
            valid = isinstance(value, int | float) if wanted is float else isinstance(value, wanted)
            is_off = name in _MAY_BE_OFF and value == 0
            if not valid or isinstance(value, bool) or (isinstance(value, int | float) and value <= 0 and not is_off):
                or_off = ", or 0 for never" if name in _MAY_BE_OFF else ""
                message = f"Setting {name!r} is {value!r}: it takes a positive {wanted.__name__}{or_off}."
                raise InputError("INVALID_SETTING", message if wanted is not str else f"Setting {name!r} takes a text.")
        for name, allowed in _CHOICES.items():
            if name in values and values[name] not in allowed:
                raise InputError("INVALID_SETTING", f"Setting {name!r} is one of {', '.join(allowed)}.")
        return Settings(**values)  # type: ignore[arg-type]  # checked above, one by one


_MAY_BE_OFF = ("scrub_interval_seconds",)
_CHOICES = {"durability": ("commit", "interval", "none"), "executor": ("auto", "local", "spark")}

_HELP = {
    "durability": ("", ("commit: every commit reaches the disk; interval: every sync_interval_seconds; none: when the "
                   "system likes. After a power cut, interval and none may leave the store itself damaged.")),
    "sync_interval_seconds": ("seconds", "How often durability 'interval' forces commits to disk."),
    "map_size_bytes": ("bytes", "Address space of each LMDB environment: the most that it can ever hold."),
    "time_zone": ("", "IANA name of the session's time zone; a view keeps that of its creation."),
    "executor": ("", ("auto: small epochs in process, large ones by Spark; local or spark: always that one, but views "
                 "with expressions that only Spark evaluates (EXPLAIN names them) go to Spark in any case.")),
    "local_rows_max": ("rows", "Up to how many waiting log rows an epoch runs in process under executor 'auto'."),
    "epoch_rows_max": ("rows", ("The most log rows that one epoch takes; memory_bytes and publish_seconds_max may "
                       "lower it.")),
    "memory_bytes": ("bytes", "What driver and workers together may use for an epoch; its size adapts to it."),
    "publish_seconds_max": ("seconds", ("How long one epoch may keep others from publishing; its size adapts to it, by "
                            "what those before it took.")),
    "build_rows": ("rows", "Base rows per step while a new view is filled."),
    "query_rows_local": ("rows", "Up to how many input rows a SELECT runs in process."),
    "spark_master": ("", "Master URL of the Spark session that we start where none is given."),
    "spark_partitions": ("tasks", "Tasks of each stage of a fused epoch."),
    "poll_interval_seconds": ("seconds", "How often the maintainer looks for new transactions when idle."),
    "log_held_bytes_max": ("bytes", "A consumer that holds back more of the log than this is marked NEEDS_REBUILD."),
    "snapshot_timeout_seconds": ("seconds", "How long a user's snapshot may stay open."),
    "scrub_interval_seconds": ("seconds", ("How often the maintainer, when idle, compares a range of one view's keys "
                               "with its query; 0: never.")),
    "scrub_rows": ("rows", "Rows of a view that one such check compares; it keeps ten times as many base rows."),
}  # fmt: skip

SETTINGS: dict[str, Setting] = {
    field.name: Setting(field.name, field.default, *_HELP[field.name]) for field in fields(Settings)
}
