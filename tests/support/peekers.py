"""Online policies that look for what they may not know: the lengths of jobs, the jobs to come, the file, the past.

The first job of the instance takes as many slots as `secret` says, and no policy here is told so.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PEEKS: dict[str, Callable[[Any], object]] = {}
_TURN = itertools.count()


def secret() -> str:
    """Not written here as it is, so that who looks for it does not find this file."""
    return "43" + "21"


def peek(function: Callable[[Any], object]) -> Callable[[Any], object]:
    PEEKS[function.__name__] = function
    return function


@peek
def the_file_of_the_instance(_: Any) -> object:
    return secret() in (Path(__file__).parent / "secret.json").read_text()


@peek
def the_file_by_a_link(_: Any) -> object:
    return secret() in (Path(__file__).parent / "link.json").read_text()


@peek
def the_file_by_another_name_of_its_folder(_: Any) -> object:
    return secret() in Path(f"/proc/self/root{Path(__file__).parent}/secret.json").read_text()


@peek
def all_files_of_its_folder(_: Any) -> object:
    """Each that can be read."""
    found = []
    for path in Path(__file__).parent.iterdir():
        try:
            found.append(secret() in path.read_text())
        except (PermissionError, UnicodeDecodeError, IsADirectoryError):
            continue
    return any(found)


@peek
def the_memory_of_the_judge(_: Any) -> object:
    with Path(f"/proc/{os.getppid()}/mem").open("rb") as memory:
        memory.seek(1 << 20)
        return memory.read(1)


@peek
def the_environment_of_the_judge(_: Any) -> object:
    return Path(f"/proc/{os.getppid()}/environ").read_bytes()


@peek
def hidden_parts_of_the_state(state: Any) -> object:
    text = repr([vars(state), *(vars(job) for job in state.jobs.values()), dir(state)])
    return secret() in text or len(state.jobs) != 1


@peek
def frames_of_its_callers(_: Any) -> object:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if secret() in repr(frame.f_locals):
            return frame.f_code.co_name
        frame = frame.f_back
    return False


@peek
def objects_in_memory(_: Any) -> object:
    """Whatever the collector knows of."""
    value = int(secret())
    for thing in gc.get_objects():
        row = thing.values() if type(thing) is dict else thing if type(thing) in (list, tuple) else ()
        if any(type(one) is int and one == value for one in list(row)):
            return repr(thing)[:80]
    return False


@peek
def the_pipe_before_it_is_asked(_: Any) -> object:
    """The next event, read off the descriptor."""
    found = []
    for number in _pipes():
        os.set_blocking(number, False)
        try:
            found.append(os.read(number, 1 << 16))
        except OSError:
            continue
        finally:
            os.set_blocking(number, True)
    assert _pipes()
    return any(found)


def _pipes() -> list[int]:
    return [number for number in range(256) if os.path.lexists(f"/proc/self/fd/{number}") and _is_pipe(number)]


def _is_pipe(number: int) -> bool:
    return stat.S_ISFIFO(os.fstat(number).st_mode)


@peek
def the_library_of_records(_: Any) -> object:
    return importlib.import_module("schedgap.tools.library.collection")


@peek
def the_loop_with_a_world_of_its_own(_: Any) -> object:
    """The code of the loop is no secret; the instance is, and it has to be made of something."""
    import schedgap

    for seed in range(3):
        instance = schedgap.generate("gpu-sharing", "tiny", seed=seed)
        if secret() in instance.to_json(None):
            return True
    return False


class Peeker:
    """Each run tries the next of `PEEKS`, and raises what it got."""

    def __init__(self) -> None:
        self.name = list(PEEKS)[next(_TURN)]

    def decide(self, state: Any) -> Iterator[Any]:
        try:
            found = PEEKS[self.name](state)
        except (OSError, ImportError) as error:
            raise RuntimeError(f"{self.name}: refused, {type(error).__name__}") from None
        raise RuntimeError(f"{self.name}: {'got ' + str(found) if found else 'nothing'}")


class Early:
    """Starts the job that is still to come."""

    def decide(self, state: Any) -> Any:
        return [("start", 0), ("start", 1)]


class Shrinks:
    """Tells its state that the job needs one GPU and the cluster has many."""

    def decide(self, state: Any) -> Any:
        for job in state.jobs.values():
            job.gpus = 1
        state.free = 10**6
        return [("start", job.id, [0]) for job in state.waiting.values()]


class Preempts:
    """Without a word that it does."""

    def decide(self, state: Any) -> Any:
        return [("start", 0), ("preempt", 0), ("start", 0)]


class Forges:
    """Answers before it is asked, on every pipe."""

    def decide(self, state: Any) -> Any:
        data = json.dumps({"token": "0", "actions": []}).encode()
        for number in _pipes():
            with contextlib.suppress(OSError):
                os.write(number, len(data).to_bytes(8, "big") + data)
        return [("start", 0)]


class Idle:
    """Never starts anything."""

    def decide(self, state: Any) -> Any:
        return []


class Wakes:
    """Asks to be woken in every slot, for ever."""

    def decide(self, state: Any) -> Any:
        return [("wake", state.slot + 1)]


class Endless:
    def decide(self, state: Any) -> Any:
        while True:
            time.sleep(0.01)


class Forever:
    """Its answer has no end."""

    def decide(self, state: Any) -> Any:
        while True:
            yield "wake", state.slot + 1


class Far:
    """Asks for a slot that no machine number holds: compiled code in the judge must not get it."""

    def decide(self, state: Any) -> Any:
        return [("wake", 10**30)]


class Deep:
    def decide(self, state: Any) -> Any:
        place: Any = []
        for _ in range(10**5):
            place = [place]
        return [("start", 0, place)]


class NoNumber:
    def decide(self, state: Any) -> Any:
        return [("start", 0, float("nan"))]


class Twice:
    """Sends each answer twice, by a changed function of its process: the second would be that to the next event."""

    def decide(self, state: Any) -> Any:
        guest: Any = sys.modules["__main__"]
        send = guest.send
        guest.send = lambda *given: (send(*given), send(*given))
        return [("start", 0)]


class StopsTheClock:
    """Every clock of its process stands while it thinks."""

    def decide(self, state: Any) -> Any:
        time.time = time.monotonic = time.perf_counter = lambda: 0.0  # type: ignore[assignment]
        time.sleep(0.05)
        return [("start", job.id) for job in state.waiting.values() if job.gpus <= state.free]


class NoList:
    """Answers with what is no list, by a changed function of its process."""

    answer: Any = 5

    def decide(self, state: Any) -> Any:
        guest: Any = sys.modules["__main__"]
        send = guest.send
        guest.send = lambda stream, message: send(stream, {**message, "actions": self.answer})
        return []


class NoAnswer(NoList):
    answer = None


class Stops:
    """The judge, while it thinks, so that the clock stands."""

    def decide(self, state: Any) -> Any:
        os.kill(os.getppid(), signal.SIGSTOP)


class Flips:
    """May preempt by an attribute that its class has not."""

    def __init__(self) -> None:
        self.preempts = True

    def decide(self, state: Any) -> Any:
        return [("start", 0), ("preempt", 0)]


class Exits:
    def decide(self, state: Any) -> Any:
        os._exit(3)


class Remembers:
    """Writes down what it is told when lengths are known, and looks for it where they are not."""

    notes: dict[int, float] = {}  # noqa: RUF012

    def decide(self, state: Any) -> Iterator[Any]:
        file = Path(os.environ["HOME"]) / "notes.json"
        for number in state.arrived:
            length = state.jobs[number].slots
            if length is not None:
                self.notes[number] = length
                file.write_text(json.dumps(self.notes))
            elif self.notes or file.exists():
                raise RuntimeError("remembered")
        free = state.free
        for job in state.waiting.values():
            if job.gpus <= free:
                free -= job.gpus
                yield "start", job.id
