"""Opening a folder: what is made, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.adapters.lmdb.children import child, run
from viewkeeper.adapters.lmdb.folder import FORMAT, open_folder
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.registry import REGISTRY
from viewkeeper.errors import ConflictError, InputError, StoreError

QUICK = EnvironmentOptions(durability="none")


def picture(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return all that is in a folder, with the times of the last change."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def refusal(folder: Path, create: bool = True) -> StoreError:
    """Return the error of opening, having checked that it changed nothing."""
    root = folder.parent if folder.parent.exists() else folder.parent.parent
    before = picture(root)
    with pytest.raises(StoreError) as caught:
        open_folder(folder, create, QUICK)
    assert picture(root) == before
    assert caught.value.message.count("\n") == 0
    return caught.value


def store_at(folder: Path) -> Path:
    """Make a store with something in it."""
    with open_folder(folder, options=QUICK) as store, store.base.write() as transaction:
        transaction.put("t", b"k", b"v")
    return folder


def test_a_new_store(tmp_path: Path) -> None:
    with open_folder(tmp_path / "shop.vk", options=QUICK) as store:
        assert store.path == str(tmp_path / "shop.vk")
        assert sorted(os.listdir(store.path)) == ["base", "staging", "viewkeeper.json", "views"]
        assert os.path.isdir(store.staging_path)
        with store.base.write() as transaction:
            transaction.put("t", b"k", b"v")
        with store.views.read() as transaction:
            assert transaction.databases() == []
        first = store.store_id
    marker = json.loads((tmp_path / "shop.vk" / "viewkeeper.json").read_text())
    assert marker == {"format": FORMAT, "store_id": first}
    with open_folder(str(tmp_path / "shop.vk"), create=False, options=QUICK) as store:
        assert store.store_id == first
        with store.base.read() as transaction:
            assert transaction.get("t", b"k") == b"v"
    store.close()


def test_an_empty_folder_and_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    with open_folder(tmp_path / "link", options=QUICK) as one, open_folder(tmp_path / "empty", options=QUICK) as two:
        assert one.store_id == two.store_id
        with one.base.write() as transaction:
            transaction.put("t", b"k", b"v")
        with two.base.read() as transaction:
            assert transaction.get("t", b"k") == b"v"


def test_a_draft_of_a_crashed_creation_means_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / ".viewkeeper.json.0123").write_text('{"form')
    store_at(tmp_path / "s")


def test_a_creation_that_crashed_after_the_marker_is_finished(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "viewkeeper.json").write_text('{"format": 1, "store_id": "x"}')
    with open_folder(tmp_path / "s", create=False, options=QUICK) as store:
        assert store.store_id == "x"


def test_no_store(tmp_path: Path) -> None:
    assert refusal(tmp_path / "s", create=False).code == "STORE_NOT_FOUND"
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty", create=False).code == "STORE_NOT_FOUND"


def test_no_parent(tmp_path: Path) -> None:
    error = refusal(tmp_path / "missing" / "s")
    assert error.code == "STORE_NOT_FOUND"
    assert str(tmp_path / "missing") in error.message


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("hello")
    assert refusal(tmp_path / "s").code == "NOT_A_STORE"
    assert refusal(tmp_path / "s" / "below").code == "STORE_NOT_FOUND"


@pytest.mark.parametrize("create", [True, False])
def test_a_foreign_folder(tmp_path: Path, create: bool) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "letters.txt").write_text("dear")
    assert refusal(tmp_path / "s", create).code == "NOT_A_STORE"


def test_a_newer_format(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s")
    (folder / "viewkeeper.json").write_text(json.dumps({"format": FORMAT + 1, "store_id": "x", "more": []}))
    error = refusal(folder)
    assert error.code == "STORE_FORMAT_NEWER"
    assert str(FORMAT + 1) in error.message


@pytest.mark.parametrize(
    "marker",
    [b"", b"{", b"[]", b"null", b"{}", b'{"format": 1}', b'{"format": "1", "store_id": "x"}', b"\xff\xfe\x00", b"1"],
)
def test_a_damaged_marker(tmp_path: Path, marker: bytes) -> None:
    folder = store_at(tmp_path / "s")
    (folder / "viewkeeper.json").write_bytes(marker)
    assert refusal(folder).code == "STORE_CORRUPT"


def test_a_lost_part(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s")
    shutil.rmtree(folder / "base")
    assert refusal(folder).code == "STORE_CORRUPT"


def test_a_file_in_the_place_of_a_part(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s")
    shutil.rmtree(folder / "staging")
    (folder / "staging").write_text("")
    assert refusal(folder).code == "STORE_CORRUPT"


@pytest.mark.parametrize("part", ["base", "views"])
def test_a_damaged_environment(tmp_path: Path, part: str) -> None:
    folder = store_at(tmp_path / "s")
    (folder / part / "data.mdb").write_bytes(b"This is a letter. " * 5000)
    with pytest.raises(StoreError) as caught:
        open_folder(folder, options=QUICK)
    assert caught.value.code == "STORE_CORRUPT"
    # What was opened before the damage was met is closed again.
    shutil.rmtree(folder)
    store_at(folder)


@pytest.mark.slow
def test_a_folder_that_may_not_be_written() -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = store_at(Path(parent) / "s")
        empty = Path(parent) / "empty"
        empty.mkdir()
        for path in (Path(parent), empty, *folder.rglob("*"), folder):
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = picture(Path(parent))
        said = run(
            """
            if os.geteuid() == 0:  # nothing is read-only to root
                os.setgid(65534); os.setuid(65534)
            for place in sys.argv[1:]:
                try: open_folder(place, options=QUICK); say("opened")
                except ViewkeeperError as error: say(error.code)
            """,
            str(folder),
            str(empty),
            str(Path(parent) / "new"),
        )
        assert picture(Path(parent)) == before
        for path in (Path(parent), empty, folder, *folder.rglob("*")):
            path.chmod(0o755)
    assert said == ["STORE_NOT_WRITABLE"] * 3


def test_one_environment_serves_all_openers_of_a_process(tmp_path: Path) -> None:
    one = open_folder(tmp_path / "s", options=QUICK)
    two = open_folder(tmp_path / "s", options=QUICK)
    one.close()
    with two.base.write() as transaction:
        transaction.put("t", b"k", b"v")
    with pytest.raises(StoreError) as caught, one.base.read():
        pass
    assert caught.value.code == "STORE_CLOSED"
    with pytest.raises(ConflictError) as other:
        open_folder(tmp_path / "s", options=EnvironmentOptions(durability="commit"))
    assert other.value.code == "DURABILITY_DIFFERS"
    two.close()
    options = EnvironmentOptions(durability="commit")
    with open_folder(tmp_path / "s", options=options) as three, three.base.read() as transaction:
        assert transaction.get("t", b"k") == b"v"


def test_a_store_that_was_replaced_while_open_is_another_one(tmp_path: Path) -> None:
    old = open_folder(tmp_path / "s", options=QUICK)
    with old.base.write() as transaction:
        transaction.put("t", b"k", b"old")
    shutil.move(tmp_path / "s", tmp_path / "moved")
    with open_folder(tmp_path / "s", options=QUICK) as new:
        assert new.store_id != old.store_id
        with new.base.read() as transaction:
            assert transaction.get("t", b"k") is None
    with old.base.read() as transaction:
        assert transaction.get("t", b"k") == b"old"
    old.close()


@pytest.mark.parametrize(
    "wrong", [{"durability": "never"}, {"sync_interval_seconds": 0.0}, {"map_size_bytes": 1000}, {"databases_max": 1}]
)
def test_options_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        EnvironmentOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_several_processes_make_the_same_store_at_once(tmp_path: Path) -> None:
    code = """
        say("ready")
        while place := hear():
            with open_folder(place, options=QUICK) as store:
                with store.base.write() as transaction:
                    transaction.put(f"table of {os.getpid()}", b"k", b"v")
                say(store.store_id)
    """
    with ExitStack() as stack:
        children = [stack.enter_context(child(code)) for _ in range(3)]
        assert [each.hear() for each in children] == ["ready"] * 3
        for number in range(10):
            place = tmp_path / f"s{number}"
            for each in children:
                each.tell(str(place))
            assert len({each.hear() for each in children}) == 1
            with open_folder(place, create=False, options=QUICK) as store, store.base.read() as transaction:
                assert transaction.databases() == sorted(f"table of {each.pid}" for each in children)
        for each in children:
            each.tell()
            each.finish()
    assert REGISTRY.open_count() == 0
