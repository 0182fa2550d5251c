"""What a name means after RENAME, OR REPLACE, ADD COLUMN and DROP, for gets and scans that knew it before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError


def test_get_of_a_renamed_view_finds_it_under_its_new_name_only(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
    assert db.get("v", 1) == {"k": 1, "v": 10}
    db.sql("ALTER MATERIALIZED VIEW v RENAME TO w")
    assert db.get("w", 1) == {"k": 1, "v": 10}
    with pytest.raises(InputError, match="TABLE_OR_VIEW_NOT_FOUND"):
        db.get("v", 1)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v + 1 AS z FROM t")
    assert db.get("v", 1) == {"k": 1, "z": 11}


def test_a_view_that_calls_columns_by_the_old_name_of_a_renamed_one_goes_on(db: Database) -> None:
    """Also where it is planned anew, as by whoever opens the store."""
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
    db.sql("CREATE MATERIALIZED VIEW pairs AS SELECT COUNT(*) AS n FROM v JOIN t ON V.k = t.k")
    before = list(db.scan("pairs"))
    db.sql("ALTER MATERIALIZED VIEW v RENAME TO w")
    other = Database(db._engine.store, db._engine.settings)
    db.put("t", {"k": 77, "v": 1})
    other.refresh()
    assert list(other.scan("pairs")) == [{"n": before[0]["n"] + 1}]


def test_get_after_another_connection_has_renamed_the_view(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
    assert db.get("v", 1) == {"k": 1, "v": 10}
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as other:
        other.sql("ALTER MATERIALIZED VIEW v RENAME TO w")
    with pytest.raises(InputError, match="TABLE_OR_VIEW_NOT_FOUND"):
        db.get("v", 1)


def test_get_after_add_column_shows_it_of_old_and_new_rows(db: Database) -> None:
    assert db.get("t", 1) == {"k": 1, "v": 10}
    db.sql("ALTER TABLE t ADD COLUMN e INT DEFAULT 7")
    assert db.get("t", 1) == {"k": 1, "v": 10, "e": 7}
    db.put("t", {"k": 1, "v": 11, "e": 8})
    assert db.get("t", 1) == {"k": 1, "v": 11, "e": 8}


def test_get_after_a_table_is_dropped_and_made_anew(db: Database) -> None:
    assert db.get("t", 1) is not None
    db.sql("DROP TABLE t; CREATE TABLE t (k STRING, PRIMARY KEY (k)); INSERT INTO t VALUES ('a')")
    assert db.get("t", "a") == {"k": "a"}


def test_readers_never_find_a_view_empty_while_it_is_replaced(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
    seen: set[tuple[int, bool, object]] = set()
    started, over = threading.Event(), threading.Event()

    def read() -> None:
        while not over.is_set():
            counted = db.sql("SELECT COUNT(*) AS n FROM v").rows()[0]["n"]
            seen.add((len(list(db.scan("v"))), db.get("v", 1) is None, counted))
            started.set()

    reader = threading.Thread(target=read)
    reader.start()
    started.wait()
    for i in range(5):
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, v + {i} AS v FROM t")
    over.set()
    reader.join()
    assert seen == {(2, False, 2)}


def test_show_create_says_that_a_view_it_reads_was_renamed(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW a AS SELECT k FROM t; CREATE MATERIALIZED VIEW b AS SELECT k FROM a")
    assert db.sql("SHOW CREATE MATERIALIZED VIEW b").rows()[-1] == {"statement": "AS SELECT k FROM a"}
    db.sql("ALTER MATERIALIZED VIEW a RENAME TO c")
    assert db.sql("SHOW CREATE MATERIALIZED VIEW b").rows()[-1] == {"statement": "-- a is called c by now"}
    db.put("t", {"k": 3, "v": 30})
    db.refresh()
    assert db.get("b", 3) == {"k": 3}


def test_a_key_of_another_shape_is_refused_also_by_gets_that_know_the_table(db: Database) -> None:
    db.sql("CREATE TABLE pairs (a STRING, b STRING, PRIMARY KEY (a, b)); INSERT INTO pairs VALUES ('x', 'y')")
    for _ in range(3):
        assert db.get("pairs", ("x", "y")) == db.get("pairs", ["x", "y"]) == {"a": "x", "b": "y"}
        with pytest.raises(InputError, match="WRONG_KEY_LENGTH"):
            db.get("pairs", "xy")


@pytest.mark.slow
def test_get_shows_what_another_process_writes_drops_and_makes_anew(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
    assert db.get("v", 1) == {"k": 1, "v": 10}
    assert db.get("t", 1) == {"k": 1, "v": 10}
    environment = os.environ | {"PYTHONPATH": str(Path(vk.__file__).parents[1])}
    code = "import sys, viewkeeper as vk\nwith vk.connect(sys.argv[1], executor='local', durability='none') as db:\n"
    elsewhere = {
        "db.put('t', {'k': 1, 'v': 11}); db.refresh('v')": ({"k": 1, "v": 11}, {"k": 1, "v": 11}),
        "db.sql('ALTER TABLE t ADD COLUMN e INT DEFAULT 7')": ({"k": 1, "v": 11, "e": 7}, {"k": 1, "v": 11}),
        "db.sql('CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, e FROM t')": (
            {"k": 1, "v": 11, "e": 7},
            {"k": 1, "e": 7},
        ),
        "db.delete('t', 1); db.refresh('v')": (None, None),
    }
    for statement, (of_table, of_view) in elsewhere.items():
        subprocess.run(
            [sys.executable, "-c", f"{code}    {statement}", str(tmp_path / "shop.vk")], check=True, env=environment
        )
        assert db.get("t", 1) == db.get("t", 1) == of_table
        assert db.get("v", 1) == db.get("v", 1) == of_view
