"""What was recomputed less what is stored: in whatever pieces it was made and into whatever ranges it is cut."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from viewkeeper.errors import StoreError
from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.differences import Made, MadeHere, Part, difference, key_ranges
from viewkeeper.pipeline.stage import StagedParts, write_stage
from viewkeeper.store.key_value import Space
from viewkeeper.store.memory import MemorySpace

STATE, BAG = "continuous/v100", "continuous/e100"


def random_pairs(random: Random, count: int) -> dict[bytes, bytes]:
    keys = (random.randbytes(random.randrange(1, 5)) for _ in range(count))
    return {key: random.choice((b"a", b"bb", b"")) for key in keys}


def space_with(pairs: dict[bytes, bytes]) -> MemorySpace:
    space = MemorySpace()
    with space.write() as txn:
        txn.multi_put(STATE, sorted(pairs.items()))
    return space


def pieces_of(pairs: dict[bytes, bytes], random: Random, count: int) -> list[WriteSet]:
    dealt: list[dict[bytes, bytes]] = [{} for _ in range(count)]
    for key, value in pairs.items():
        random.choice(dealt)[key] = value
    found = []
    for some in dealt:
        writes = WriteSet()
        writes.put(f"whole:{STATE}", sorted(some), [some[key] for key in sorted(some)])
        found.append(writes)
    return found


def ranges(space: Space, parts: int) -> list[Part]:
    with space.read() as txn:
        return [Part(f"whole:{STATE}", STATE, None, keys) for keys in key_ranges(txn, STATE, parts)]


@pytest.mark.parametrize("seed", range(20))
def test_stored_pairs_become_what_was_made(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.pipeline.differences._PAIRS_PER_READ", 7)
    random = Random(seed)
    stored, wanted = (random_pairs(random, random.choice((0, 3, 60))) for _ in range(2))
    wanted |= dict(list(stored.items())[: len(stored) // 2])
    space = space_with(stored)
    writes = pieces_of(wanted, random, 3)
    made: list[Made] = [*map(MadeHere, writes)]
    for number, one in enumerate(writes[1:]):
        path = str(tmp_path / f"{number}.arrow")
        write_stage(path, one)
        made[number + 1] = StagedParts(path)
    found = [difference(space, lambda txn: None, [part], made) for part in ranges(space, 4)]
    with space.write() as txn:
        for one in found:
            for piece in one.tables.get(STATE, ()):
                assert piece.keys == sorted(piece.keys)
                assert all(stored.get(k) != v for k, v in zip(piece.keys, piece.values, strict=True))
                for key, value in zip(piece.keys, piece.values, strict=True):
                    if value is None:
                        txn.delete(STATE, key)
                    else:
                        txn.put(STATE, key, value)
    with space.read() as txn:
        assert dict(txn.scan(STATE)) == wanted


def test_ranges_are_the_whole_table_in_about_equal_parts() -> None:
    space = space_with({number.to_bytes(4, "big"): b"" for number in range(1_000_000, 1_004_000)})
    cuts = ranges(space, 4)
    sizes = []
    with space.read() as txn:
        for part in cuts:
            assert part.keys is not None
            sizes.append(len(list(txn.scan(STATE, part.keys.start, part.keys.stop))))
    assert (len(sizes), sum(sizes)) == (4, 4_000)
    assert min(sizes) > 900
    assert [len(ranges(space_with(pairs), 3)) for pairs in ({}, {b"a": b""}, {b"a": b"", b"b": b""})] == [1, 1, 1]


def test_what_is_deleted_behind_a_row_of_nothing_is_not_made(tmp_path: Path) -> None:
    nothing, task = WriteSet(), WriteSet()
    nothing.put("whole:t", [b"k"], [b"of nothing"])
    task.delete("whole:t", [b"k"])
    task.put("whole:t", [b"l"], [b"of rows"])
    write_stage(str(tmp_path / "task.arrow"), task)
    space = MemorySpace()
    for one in (MadeHere(task), StagedParts(str(tmp_path / "task.arrow"))):
        (piece,) = difference(space, lambda txn: None, [Part("whole:t", "t")], [MadeHere(nothing), one]).tables["t"]
        assert (piece.keys, list(piece.values)) == ([b"l"], [b"of rows"])


def test_counts_of_error_bags_are_subtracted(tmp_path: Path) -> None:
    from viewkeeper.pipeline.bags import add_to_bag

    space = MemorySpace()
    with space.write() as txn:
        add_to_bag(txn, BAG, {b"old": 2, b"same": 1})
    one, other = WriteSet(), WriteSet()
    one.merge(f"whole:{BAG}", b"same", 1)
    other.merge(f"whole:{BAG}", b"new", 3)
    write_stage(str(tmp_path / "other.arrow"), other)
    made = [MadeHere(one), StagedParts(str(tmp_path / "other.arrow"))]
    found = difference(space, lambda txn: None, [Part(f"whole:{BAG}", BAG, keys=None)], made)
    assert found.merges == {BAG: {b"new": 3, b"old": -2}}


def test_a_lost_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="STAGED_FILE_LOST"):
        StagedParts(str(tmp_path / "gone.arrow"))
