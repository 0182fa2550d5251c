"""Several processes on one environment: writers, readers, forks and kills."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.adapters.lmdb.children import child, run
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.errors import ViewkeeperError

QUICK = EnvironmentOptions(durability="none")


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "space").mkdir()
    return str(tmp_path / "space")


@pytest.fixture
def space(place: str) -> Iterator[LmdbSpace]:
    made = LmdbSpace(place, QUICK)
    yield made
    made.close()


@pytest.mark.slow
def test_several_processes_write_at_once(space: LmdbSpace, place: str) -> None:
    code = """
        space = LmdbSpace(sys.argv[1], QUICK)
        say("ready"); hear()
        for number in range(200):
            with space.write() as transaction:
                total = int(transaction.get("t", b"total") or b"0") + 1
                transaction.put("t", b"total", b"%d" % total)
                transaction.put(f"of {os.getpid()} {number % 20}", b"%d" % number, b"%d" % total)
                if number % 20 == 19:
                    transaction.drop(f"of {os.getpid()} {number % 20}")
            with space.read() as transaction:
                assert int(transaction.get("t", b"total")) >= total
                for name in transaction.databases():
                    assert transaction.count(name) == len(list(transaction.scan(name)))
        say("done")
    """
    with ExitStack() as stack:
        children = [stack.enter_context(child(code, place)) for _ in range(3)]
        assert [each.hear() for each in children] == ["ready"] * 3
        for each in children:
            each.tell()
        for number in range(200):
            with space.write() as transaction:
                total = int(transaction.get("t", b"total") or b"0") + 1
                transaction.put("t", b"total", b"%d" % total)
                transaction.put("parent", b"%03d" % number, b"")
        assert [each.hear() for each in children] == ["done"] * 3
        for each in children:
            each.finish()
        with space.read() as transaction:
            assert transaction.get("t", b"total") == b"800"
            assert transaction.count("parent") == 200
            rows = {name: transaction.count(name) for name in transaction.databases() if name.startswith("of ")}
    assert len(rows) == 3 * 19
    assert set(rows.values()) == {10}


@pytest.mark.slow
def test_what_another_process_makes_is_seen(space: LmdbSpace, place: str) -> None:
    with space.write() as transaction:
        transaction.put("first", b"k", b"v")
    code = """
        space = LmdbSpace(sys.argv[1], QUICK)
        for step in range(3):
            with space.write() as transaction:
                for number in range(40):
                    transaction.put(f"{step} {number}", b"k", b"%d" % number)
                transaction.rename("first" if step == 0 else f"first {step - 1}", f"first {step}")
            say(step); hear()
    """
    with space.read() as old, child(code, place) as other:
        for step in range(3):
            assert other.hear() == str(step)
            with space.read() as transaction:
                assert len(transaction.databases()) == 40 * (step + 1) + 1
                assert transaction.get(f"{step} 39", b"k") == b"39"
                assert transaction.get(f"first {step}", b"k") == b"v"
                assert transaction.get("first", b"k") is None
            assert old.databases() == ["first"]
            assert old.get("first", b"k") == b"v"
            with space.write() as transaction:
                transaction.put(f"{step} 39", b"k", b"mine")
            other.tell()
        other.finish()


@pytest.mark.slow
def test_a_reader_that_needs_new_handles_does_not_fail_under_load(space: LmdbSpace, place: str) -> None:
    code = """
        space = LmdbSpace(sys.argv[1], QUICK)
        for number in range(300):
            with space.write() as transaction:
                transaction.put(f"table {number}", b"k", b"%d" % number)
                transaction.put("t", b"newest", b"%d" % number)
        say("done")
    """
    failures: list[BaseException] = []
    stop = threading.Event()

    def watch() -> None:
        try:
            while not stop.is_set():
                with space.read() as transaction:
                    newest = transaction.get("t", b"newest")
                    assert newest is None or transaction.get(f"table {int(newest)}", b"k") == newest
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=watch) for _ in range(3)]
    with child(code, place) as other:
        for thread in threads:
            thread.start()
        for number in range(300):
            with space.write() as transaction:
                transaction.put(f"mine {number % 100}", b"k", b"v")
                if number % 10 == 9:
                    transaction.drop(f"mine {number % 100}")
        assert other.hear() == "done"
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_closing_under_readers_is_told_and_never_read_as_empty(place: str) -> None:
    answers: set[object] = set()

    def read(space: LmdbSpace) -> None:
        try:
            while True:
                with space.read() as transaction:
                    answers.add(transaction.get("t", b"k"))
        except ViewkeeperError as error:
            answers.add(error.code)

    for _ in range(20):
        space = LmdbSpace(place, QUICK)
        with space.write() as transaction:
            transaction.put("t", b"k", b"v")
        threads = [threading.Thread(target=read, args=(space,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            with space.read() as transaction:
                transaction.get("t", b"k")
        space.close()
        for thread in threads:
            thread.join()
    assert answers <= {b"v", "STORE_CLOSED", "TRANSACTION_CLOSED"}
    assert "STORE_CLOSED" in answers


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["commit", "interval", "none"])
def test_a_killed_process_loses_nothing_that_it_confirmed(place: str, durability: str) -> None:
    code = """
        space = LmdbSpace(sys.argv[1], EnvironmentOptions(durability=sys.argv[2]))
        number = 0
        while True:
            with space.write() as transaction:
                transaction.put("t", b"%06d" % number, b"x" * 1000)
                transaction.put("u", b"%06d" % number, b"")
            say(number)
            number += 1
    """
    with child(code, place, durability) as writer:
        heard = [int(writer.hear()) for _ in range(40)]
        writer.kill()
    space = LmdbSpace(place, EnvironmentOptions(durability=durability))
    with space.read() as transaction:
        keys = list(transaction.scan_keys("t"))
        assert keys == list(transaction.scan_keys("u"))
        assert keys == [b"%06d" % number for number in range(len(keys))]
        assert len(keys) > heard[-1]
    space.close()


@pytest.mark.slow
def test_a_writer_killed_inside_its_transaction_leaves_no_trace(space: LmdbSpace, place: str) -> None:
    code = """
        space = LmdbSpace(sys.argv[1], QUICK)
        with space.write() as transaction:
            transaction.multi_put("t", [(b"%06d" % number, b"x" * 100) for number in range(10000)])
            transaction.put("new", b"k", b"v")
            say("inside"); hear()
    """
    with space.write() as transaction:
        transaction.put("t", b"mine", b"v")
    for _ in range(3):
        with child(code, place) as writer:
            assert writer.hear() == "inside"
            writer.kill()
        with space.write() as transaction:
            assert list(transaction.scan("t")) == [(b"mine", b"v")]
            assert transaction.databases() == ["t"]
    with space.write() as transaction:
        transaction.put("new", b"k", b"w")
    with space.read() as transaction:
        assert transaction.get("new", b"k") == b"w"


@pytest.mark.slow
def test_a_dead_reader_is_cleared(space: LmdbSpace, place: str) -> None:
    with space.write() as transaction:
        transaction.put("t", b"k", b"v")
    code = """
        space = LmdbSpace(sys.argv[1], QUICK)
        with space.read() as transaction:
            say(transaction.get("t", b"k")); hear()
    """
    with child(code, place) as reader:
        assert reader.hear() == "b'v'"
        assert space.readers() == [(reader.pid, -1.0)]
        with space.write() as transaction:
            transaction.put("t", b"k", b"newer")
        with space.read():
            # The oldest first, though how old another process's is cannot be known.
            assert [pid for pid, _ in space.readers()] == [reader.pid, os.getpid()]
        reader.kill()
    assert space.readers() == []


@pytest.mark.slow
def test_a_reader_of_a_killed_process_holds_back_no_space(space: LmdbSpace, place: str) -> None:
    def rewrite() -> int:
        for number in range(60):
            with space.write() as transaction:
                transaction.put("t", b"k", b"%d" % number * 20_000)
        return space.size_bytes()

    rewrite()
    settled = rewrite()
    code = """
        space = LmdbSpace(sys.argv[1], QUICK)
        with space.read() as transaction:
            say("open"); hear()
    """
    with child(code, place) as reader:
        assert reader.hear() == "open"
        grown = rewrite()
        reader.kill()
    assert grown > settled
    space.readers()
    rewrite()
    assert rewrite() <= grown + 100_000


@pytest.mark.slow
def test_a_forked_child_uses_the_store_and_leaves_the_parent_alone(place: str) -> None:
    said = run(
        """
        space = LmdbSpace(sys.argv[1], QUICK)
        with space.write() as transaction:
            transaction.put("t", b"k", b"before")
        with space.read() as old:
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
                say(old.get("t", b"k"), "of child:", old.get("child's", b"k"))
                say("held", [pid == os.getpid() for pid, _ in space.readers()])
                say("slots", len(REGISTRY.acquire(sys.argv[1], QUICK, None).live().readers().splitlines()) - 1)
            else:
                with space.read() as own:
                    assert own.get("t", b"k") == b"before"
                with space.write() as transaction:
                    transaction.put("t", b"k", b"after")
                    transaction.put("child's", b"k", b"v")
        # The child leaves the parent's block, too, and ends as any program does.
        if child:
            with space.read() as new:
                say(new.get("t", b"k"), new.get("child's", b"k"))
            with space.write() as transaction:
                transaction.put("t", b"k", b"parent again")
        space.close()
        """,
        place,
    )
    assert said == ["b'before' of child: None", "held [True]", "slots 1", "b'after' b'v'"]


@pytest.mark.slow
def test_a_fork_inside_a_write_leaves_it_to_the_parent(place: str) -> None:
    said = run(
        """
        space = LmdbSpace(sys.argv[1], QUICK)
        with space.write() as transaction:
            transaction.put("t", b"k", b"v")
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
                transaction.put("t", b"l", b"w")
        if child:
            with space.read() as reader:
                say(list(reader.scan("t")))
        """,
        place,
    )
    assert said == ["[(b'k', b'v'), (b'l', b'w')]"]


@pytest.mark.slow
def test_children_of_multiprocessing(place: str) -> None:
    said = run(
        """
        import multiprocessing, threading
        space = LmdbSpace(sys.argv[1], EnvironmentOptions(durability="interval", sync_interval_seconds=0.01))
        def work(number):
            for step in range(50):
                with space.write() as transaction:
                    transaction.put(f"of {number}", b"%d" % step, b"")
            space.sync()
        work(0)
        context = multiprocessing.get_context("fork")
        workers = [context.Process(target=work, args=(number,)) for number in (1, 2)]
        for worker in workers: worker.start()
        work(3)
        for worker in workers: worker.join()
        with space.read() as reader:
            say([worker.exitcode for worker in workers], [reader.count(name) for name in reader.databases()])
        space.close()
        """,
        place,
    )
    assert said == ["[0, 0] [50, 50, 50, 50]"]
