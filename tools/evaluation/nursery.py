"""A warm process that forks those of candidates, each in milliseconds."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from schedgap.formulations.common.errors import SchedgapError
from schedgap.tools.evaluation.places import environment

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
        arguments = [str(os.getpid()), "nursery", str(other.fileno()), *self._warm]
        started: Future[subprocess.Popen[bytes]] = Future()

        def keep() -> None:
            """The system ends it with the thread that started it, so that is one that stays."""
            try:
                process = start([sys.executable, "-P", "-m", self._module, *arguments], other.fileno())
            except OSError as error:
                started.set_exception(error)
                return
            started.set_result(process)
            process.wait()

        threading.Thread(target=keep, daemon=True).start()
        with other, _told():
            self._process = started.result()

    def fork(self, *pipes: int) -> Forked:
        """A process that serves these two pipes; the one before has ended.

        A nursery that was killed starts again, as does one that failed here when it is next asked.
        Raises SchedgapError: it ended twice, or was not ready in time.
        """
        with _told():
            with contextlib.suppress(ConnectionError):
                if self._process.poll() is None:
                    return self._fork(pipes)
            self.close()
            self._start()
            return self._fork(pipes)

    def _fork(self, pipes: Sequence[int]) -> Forked:
        """What is told of each goes through a socket of its own: no answer that comes late is another's."""
        answers, other = socket.socketpair()
        try:
            with other:
                socket.send_fds(self._control, [b"+"], [*pipes, other.fileno()])
            return Forked(answers)
        except BaseException:
            answers.close()
            self.close()
            raise

    def close(self) -> None:
        """End it."""
        self._control.close()
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """No fault of a candidate."""
    try:
        yield
    except OSError as error:
        late = isinstance(error, TimeoutError)
        what = f"is not ready within {START:g} s" if late else error.strerror or error
        raise SchedgapError(f"the process that starts candidates: {what}") from None


class Forked:
    """What is used of :class:`subprocess.Popen`, for a process whose parent is the nursery."""

    def __init__(self, answers: socket.socket) -> None:
        """A handle of a process of which `answers` tells."""
        self._answers = answers
        self.lost = False  # the nursery has ended, and with it this one, by no fault of its own
        self.returncode: int | None = None
        answers.settimeout(START)
        self.pid = self._number()

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has."""
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                self.returncode = self._number()
            except TimeoutError:
                raise subprocess.TimeoutExpired("", timeout or 0.0) from None
            except ConnectionError:
                self.lost, self.returncode = True, -signal.SIGKILL
            self._answers.close()
        return self.returncode

    def _number(self) -> int:
        data = self._answers.recv(NUMBER.size)
        if len(data) < NUMBER.size:
            raise ConnectionError("has ended")
        return int(NUMBER.unpack(data)[0])


def serve(control: socket.socket) -> list[int]:
    """Fork for each pair of pipes, and tell who it is and how it ended.

    Returns in the forked process only, which leads a group before anybody is told of it: all of that can be ended.
    """
    while True:
        message, pipes, _, _ = socket.recv_fds(control, 1, 3)
        if not message:
            sys.exit()
        answers = pipes.pop()
        child = os.fork()
        if not child:
            control.close()  # through it unfenced processes can be had
            os.close(answers)
            return pipes
        os.setpgid(child, child)
        for pipe in pipes:
            os.close(pipe)
        with socket.socket(fileno=answers) as told:
            _tell(told, child)
            _tell(told, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _tell(told: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # who asked waits no more; what was forked finds its pipes closed, and ends
        told.send(NUMBER.pack(number))
