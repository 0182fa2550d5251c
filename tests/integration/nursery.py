"""Processes for the kill tests: forked from a warm one, so that none has to import everything first.

The nursery imports, opens no store and starts no thread, and forks a child for each order. A child opens the store
itself, as LMDB demands, says lines through a pipe, and ends by a role's end or by SIGKILL.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_MESSAGE_BYTES = 1 << 16


class Child:
    """A forked process: says lines, is killed or ends."""

    def __init__(self, nursery: Nursery, process_id: int, pipe: int) -> None:
        self._nursery = nursery
        self.process_id = process_id
        self._pipe = pipe
        self._buffer = b""

    def hear(self, timeout_seconds: float | None = None) -> str | None:
        """Return its next line; None at its end, or when the time is up."""
        while b"\n" not in self._buffer:
            if timeout_seconds is not None and not select.select([self._pipe], [], [], timeout_seconds)[0]:
                return None
            more = os.read(self._pipe, 1 << 16)
            if not more:
                return None
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    def is_over(self, timeout_seconds: float) -> bool:
        """Return whether it has ended, after waiting so long at most; what it says meanwhile can be heard later."""
        if select.select([self._pipe], [], [], timeout_seconds)[0]:
            more = os.read(self._pipe, 1 << 16)
            self._buffer += more
            return not more
        return False

    def rest(self) -> list[str]:
        """Return all lines up to its end."""
        return list(iter(self.hear, None))

    def kill(self) -> None:
        """End it by SIGKILL, if it is still there."""
        os.kill(self.process_id, signal.SIGKILL)

    def wait(self) -> int:
        """Return how it ended: 0, or minus the signal. What it still said can be heard afterwards."""
        return self._nursery.wait(self.process_id)

    def close(self) -> None:
        os.close(self._pipe)


class Nursery:
    """The warm process; get one by ``nursery``."""

    def __init__(self, channel: socket.socket, process_id: int) -> None:
        self._channel = channel
        self.process_id = process_id

    def start(self, role: str, failpoint: str = "", **arguments: Any) -> Child:
        """Fork a process that plays ``role`` (of the nursery's module) with a failpoint armed."""
        mine, its = os.pipe()
        order = json.dumps({"role": role, "failpoint": failpoint, "arguments": arguments}).encode()
        socket.send_fds(self._channel, [order], [its])
        os.close(its)
        return Child(self, int(self._channel.recv(_MESSAGE_BYTES)), mine)

    def wait(self, process_id: int) -> int:
        self._channel.send(json.dumps({"wait": process_id}).encode())
        return int(self._channel.recv(_MESSAGE_BYTES))


@contextmanager
def nursery(module: str = "tests.integration.roles", **environment: str) -> Iterator[Nursery]:
    """Start a nursery whose children play the functions of ``module``."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **environment}
    command = [sys.executable, "-W", "ignore", "-m", "tests.integration.nursery", module, str(its.fileno())]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, pass_fds=[its.fileno()])
    its.close()
    try:
        assert mine.recv(_MESSAGE_BYTES) == b"ready"
        yield Nursery(mine, process.pid)
    finally:
        mine.close()
        process.wait()


def serve(roles: Any, channel: socket.socket) -> None:
    """Fork a child for each order until the other side closes."""
    prepare: Callable[[], None] = getattr(roles, "prepare", lambda: None)
    prepare()
    channel.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 1)
        if not message:
            return
        order = json.loads(message)
        if "wait" in order:
            status = os.waitpid(order["wait"], 0)[1]
            channel.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        process_id = os.fork()
        if not process_id:
            channel.close()
            _play(roles, order, descriptors[0])
        os.close(descriptors[0])
        channel.send(str(process_id).encode())


def _play(roles: Any, order: dict[str, Any], pipe: int) -> None:
    from viewkeeper.pipeline.failpoints import arm

    def say(line: object) -> None:
        os.write(pipe, f"{line}\n".encode())

    status = 1
    try:
        arm(order["failpoint"])
        getattr(roles, order["role"])(say, **order["arguments"])
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    import importlib

    serve(importlib.import_module(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
