"""A circuit over a store in memory: epochs are stepped, and written; the store's port counts what they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viewkeeper.operators.circuit import Circuit
from viewkeeper.operators.state import StepContext, WriteSet
from viewkeeper.store.memory import MemorySpace
from viewkeeper.views.lookups import SpaceLookups
from viewkeeper.zset.delta import Delta


class AscendingLookups(SpaceLookups):
    """Holds whoever looks up to what ``Lookups`` asks for: ascending keys."""

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        assert list(keys) == sorted(keys)
        return super().multi_get(state, keys)

    def _multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None
    ) -> tuple[list[int], list[bytes]]:
        assert list(prefixes) == sorted(prefixes)
        return super()._multi_scan(state, prefixes, limits)


class Running:
    """A circuit, its state, and of the last epoch what was read and written."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.space = MemorySpace()
        self.reads = 0
        self.writes = WriteSet()

    def step(self, deltas: Mapping[int, Delta]) -> Delta:
        """Publish an epoch; return what changes in the output of the last node."""
        self.writes = WriteSet()
        with AscendingLookups(self.space) as lookups:
            out = self.circuit.step(deltas, StepContext(lookups, self.writes))[self.circuit.nodes[-1].id]
            self.reads = lookups.reads
        with self.space.write() as txn:
            for state, pieces in self.writes.tables.items():
                for piece in pieces:
                    if piece.new_values is None:
                        txn.multi_delete(state, piece.keys)
                    else:
                        txn.multi_put(state, zip(piece.keys, piece.new_values, strict=True))
        return out

    def state(self) -> dict[str, dict[bytes, bytes]]:
        """Return the state tables that hold anything."""
        with self.space.read() as txn:
            return {name: dict(txn.scan(name)) for name in txn.databases() if txn.count(name)}
