"""A warm process that forks those of candidates, each in milliseconds."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence

from schedgap.benchmarks.evaluation.places import environment

START = 900.0
"""Seconds for a process to start, and to import and compile what is ours: ddl-cluster's takes 36 s of a processor."""
NUMBER = struct.Struct("q")


def start(command: Sequence[str], *descriptors: int) -> subprocess.Popen[bytes]:
    """A process with a session of its own, that hears and says nothing but by these descriptors."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
        env={**environment(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )


class Nursery:
    """It has imported what is ours and no candidate's code; one process at a time is forked from it."""

    def __init__(self, module: str, warm: Sequence[str]) -> None:
        """Start `module` as ``python -m module PARENT nursery SOCKET [PROBLEM]``, the problem of `warm` if any."""
        self._module, self._warm = module, warm
        self._start()

    def _start(self) -> None:
        self._control, other = socket.socketpair()
        self._control.settimeout(START)
        arguments = [str(os.getpid()), "nursery", str(other.fileno()), *self._warm]
        started = threading.Event()

        def keep() -> None:
            """The system ends it with the thread that started it, so that is one that stays."""
            self._process = start([sys.executable, "-P", "-m", self._module, *arguments], other.fileno())
            started.set()
            self._process.wait()

        threading.Thread(target=keep, daemon=True).start()
        started.wait()
        other.close()

    def fork(self, *pipes: int) -> Forked:
        """A process that serves these two pipes; the one before has ended.

        A nursery that was killed starts again.
        """
        if self._process.poll() is not None:
            self.close()
            self._start()
        socket.send_fds(self._control, [b"+"], list(pipes))
        return Forked(self._control)

    def close(self) -> None:
        """End it."""
        self._control.close()
        self._process.kill()


class Forked:
    """What is used of :class:`subprocess.Popen`, for a process whose parent is the nursery."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self.pid = self._number()
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has."""
        if self.returncode is None:
            self._control.settimeout(timeout)
            try:
                self.returncode = self._number()
            except TimeoutError:
                raise subprocess.TimeoutExpired("", timeout or 0.0) from None
            finally:
                self._control.settimeout(START)
        return self.returncode

    def _number(self) -> int:
        data = self._control.recv(NUMBER.size)
        if len(data) < NUMBER.size:
            raise ConnectionError("the process that starts candidates has ended")
        return int(NUMBER.unpack(data)[0])


def serve(control: socket.socket) -> list[int]:
    """Fork for each pair of pipes, and tell who it is and how it ended.

    Returns in the forked process only, which leads a group before anybody is told of it: all of that can be ended.
    """
    while True:
        message, pipes, _, _ = socket.recv_fds(control, 1, 2)
        if not message:
            sys.exit()
        child = os.fork()
        if not child:
            control.close()  # through it unfenced processes can be had
            return pipes
        os.setpgid(child, child)
        for pipe in pipes:
            os.close(pipe)
        control.send(NUMBER.pack(child))
        control.send(NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
