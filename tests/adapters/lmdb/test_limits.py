"""What the disk, the address space and the map refuse: clear errors, and a store that is unchanged and goes on."""

from __future__ import annotations

import errno
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import lmdb
import pytest

from tests.adapters.lmdb.children import child, run
from viewkeeper.adapters.lmdb.environment import SharedEnvironment
from viewkeeper.adapters.lmdb.failures import from_errno, translated
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.errors import InputError, StoreError

QUICK = EnvironmentOptions(durability="none")


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "space").mkdir()
    return str(tmp_path / "space")


FULL_DISK = """
    space = LmdbSpace(sys.argv[1], EnvironmentOptions(durability=sys.argv[2]))
    with space.write() as transaction:
        transaction.multi_put("t", [(b"%05d" % number, b"x" * 1000) for number in range(100)])
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = os.stat(sys.argv[1] + "/data.mdb").st_size + int(sys.argv[4])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
    def attempt(rows):
        try:
            with space.write() as transaction:
                transaction.put("t", b"00000", b"changed")
                transaction.drop("gone")
                transaction.multi_put("new", [(b"%07d" % number, b"y" * 1000) for number in range(rows)])
            return "written"
        except ViewkeeperError as error:
            assert sys.argv[1] in error.message and str(limit) in error.message, error
            return error.code
    for _ in range(3):
        say(attempt(int(sys.argv[3])))
        with space.read() as transaction:
            rows = list(transaction.scan("t"))
            say(len(rows), rows[0][1] == b"x" * 1000, transaction.databases())
    with space.write() as transaction:
        transaction.put("t", b"00001", b"small")
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    say(attempt(int(sys.argv[3])))
    with space.read() as transaction:
        say(transaction.count("new"), transaction.get("t", b"00000"), transaction.get("t", b"00001"))
    space.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["commit", "none"])
@pytest.mark.parametrize(
    ("rows", "room"),
    [
        (3000, 300_000),  # fails when it is committed
        (3000, 65_003),  # not at the border of a page
        (20_000, 1_000_000),  # many writes before the one that fails
    ],
)
def test_a_full_disk(place: str, durability: str, rows: int, room: int) -> None:
    said = run(FULL_DISK, place, durability, str(rows), str(room))
    assert said == ["DISK_FULL", "100 True ['t']"] * 3 + ["written", f"{rows} b'changed' b'small'"]


def test_a_failure_that_the_caller_swallows_ends_the_transaction(place: str) -> None:
    space = LmdbSpace(place, EnvironmentOptions(durability="none", map_size_bytes=1 << 20))

    def insist() -> None:
        with space.write() as transaction:
            for number in range(2000):
                with suppress(StoreError):
                    transaction.put("t", b"%07d" % number, b"y" * 1000)

    with pytest.raises(StoreError) as caught:
        insist()
    assert caught.value.code == "MAP_FULL"
    with space.read() as transaction:
        assert transaction.databases() == []
    space.close()


@pytest.mark.slow
def test_the_signal_of_a_file_that_is_too_large_does_not_kill(place: str) -> None:
    said = run(
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # as in a program that embeds Python
        space = LmdbSpace(sys.argv[1], QUICK)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        try:
            with space.write() as transaction:
                transaction.put("t", b"k", b"y" * 1_000_000)
        except ViewkeeperError as error:
            say(error.code)
        """,
        place,
    )
    assert said == ["DISK_FULL"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "DISK_FULL"),
        (errno.EDQUOT, "DISK_FULL"),
        (errno.EFBIG, "DISK_FULL"),
        (errno.EIO, "STORE_WRITE_FAILED"),
        (errno.EACCES, "STORE_NOT_WRITABLE"),
        (errno.EROFS, "STORE_NOT_WRITABLE"),
        (errno.ENOENT, "STORE_NOT_FOUND"),
        (0, "STORE_WRITE_FAILED"),
    ],
)
def test_errors_of_the_operating_system(tmp_path: Path, number: int, code: str) -> None:
    error = from_errno(number, "cause", str(tmp_path))
    assert error.code == code
    assert str(tmp_path) in error.message


def test_errors_of_lmdb(tmp_path: Path) -> None:
    assert translated(lmdb.MapFullError("x"), str(tmp_path)).code == "MAP_FULL"
    assert translated(lmdb.CorruptedError("x"), str(tmp_path)).code == "STORE_CORRUPT"
    assert isinstance(translated(lmdb.BadValsizeError("x"), str(tmp_path)), InputError)
    assert translated(lmdb.Error("x"), str(tmp_path)).code == "STORE_WRITE_FAILED"


@pytest.mark.slow
def test_too_little_address_space(place: str) -> None:
    said = run(
        """
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
        try: LmdbSpace(sys.argv[1], QUICK)
        except ViewkeeperError as error:
            say(error.code, "map_size_bytes" in error.message, "RLIMIT_AS" in error.message)
        space = LmdbSpace(sys.argv[1], EnvironmentOptions(durability="none", map_size_bytes=1 << 28))
        with space.write() as transaction: transaction.put("t", b"k", b"v")
        with space.read() as transaction: say(transaction.get("t", b"k"))
        """,
        place,
    )
    assert said == ["MAP_TOO_LARGE True True", "b'v'"]


def test_a_full_map_grows_for_the_next_attempt(place: str) -> None:
    space = LmdbSpace(place, EnvironmentOptions(durability="none", map_size_bytes=1 << 20))
    with space.write() as transaction:
        transaction.put("t", b"k", b"v")
    failures = []
    while True:
        try:
            with space.write() as transaction:
                transaction.multi_put("t", [(b"%05d" % number, b"x" * 1000) for number in range(5000)])
            break
        except StoreError as error:
            failures.append(error.code)
            with space.read() as transaction:
                assert transaction.count("t") == 1
    assert failures == ["MAP_FULL"] * 3
    with space.read() as transaction:
        assert transaction.count("t") == 5001
    space.close()


@pytest.mark.slow
def test_a_map_that_another_process_has_grown_is_adopted(place: str) -> None:
    space = LmdbSpace(place, EnvironmentOptions(durability="none", map_size_bytes=1 << 20))
    with space.write() as transaction:
        transaction.put("t", b"k", b"v")
    code = """
        space = LmdbSpace(sys.argv[1], QUICK)
        with space.write() as transaction:
            transaction.multi_put("t", [(b"%05d" % number, b"x" * 1000) for number in range(5000)])
        say("written"); hear()
    """
    with child(code, place) as other:
        assert other.hear() == "written"
        with space.read() as transaction:
            assert transaction.count("t") == 5001
        with space.write() as transaction:
            transaction.put("t", b"l", b"w")
    space.close()


def test_too_many_databases(place: str) -> None:
    space = LmdbSpace(place, EnvironmentOptions(durability="none", databases_max=40))
    with space.write() as transaction:
        for number in range(40):
            transaction.put(f"t{number}", b"k", b"v")
    with pytest.raises(StoreError) as caught, space.write() as transaction:
        transaction.put("one more", b"k", b"v")
    assert caught.value.code == "TOO_MANY_DATABASES"
    with space.write() as transaction:
        transaction.drop("t7")
        transaction.put("one more", b"k", b"v")
    with space.read() as transaction:
        assert len(transaction.databases()) == 40
    space.close()


def test_too_many_readers(place: str) -> None:
    space = LmdbSpace(place, EnvironmentOptions(durability="none", readers_max=4))
    with ExitStack() as readers:

        def open_many() -> None:
            for _ in range(200):
                readers.enter_context(space.read())

        with pytest.raises(StoreError) as caught:
            open_many()
        assert caught.value.code == "TOO_MANY_READERS"
    with space.read() as transaction:
        assert transaction.databases() == []
    space.close()


def test_a_name_that_is_too_long(place: str) -> None:
    space = LmdbSpace(place, QUICK)
    with pytest.raises(InputError) as caught, space.write() as transaction:
        transaction.put("n" * 600, b"k", b"v")
    assert caught.value.code == "NAME_TOO_LONG"
    space.close()


def test_interval_durability_forces_to_disk_by_itself(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    really_sync = SharedEnvironment.sync

    def sync(shared: SharedEnvironment) -> None:
        really_sync(shared)
        synced.set()

    monkeypatch.setattr(SharedEnvironment, "sync", sync)
    space = LmdbSpace(place, EnvironmentOptions(durability="interval", sync_interval_seconds=0.01))
    assert not synced.is_set()
    for number in range(3):
        with space.write() as transaction:
            transaction.put("t", b"%d" % number, b"v")
        assert synced.wait(20)
        synced.clear()
    space.close()
    assert not any(thread.name == "viewkeeper-sync" for thread in threading.enumerate())
