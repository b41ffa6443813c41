"""A foreign scheduler in a process of its own, with limits on time, memory and files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from joblib.externals.loky.backend import resource_tracker

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.method import Given, Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError, SchedgapError, brief, printable
from schedgap.formulations.common.instance import Instance, Json, Solution
from schedgap.solvers.result import NO_DEADLINE, Deadline, clock
from schedgap.tools.evaluation.nursery import START, Forked, Nursery, start
from schedgap.tools.evaluation.places import bubblewrap, contained_by, readable

LARGEST_ANSWER = 16 << 20
"""Bytes of a solution; it has at most :data:`MOST_VALUES` values, :data:`DEEPEST` in each other."""
MOST_VALUES = 1_000_000
DEEPEST = 32
GUEST = "schedgap.tools.evaluation.guest"
"""The module that its process runs."""
GIVE_UP = 3
"""Instances on which it runs out of time or ends, one after another, before the rest is not tried any more."""
SLEEPING = 3.0
"""Seconds are those of a processor, so that a busy machine changes no result. By the clock it may take so many times as
long, what it waited for a processor left out: that is for those who sleep."""
EXCUSED = 0.9
"""Share of the clock's seconds, at most, that are left out."""
MOST_FILES, LARGEST_FOLDER, LONGEST_PATH = 10_000, 1 << 30, 1000
"""What it may write into its own folder: entries, bytes, letters of a path."""
_SHOWN = 300


class Failed(Exception):
    """The scheduler gave no solution: `kind` is error, time, memory, files, answer, action or died."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(printable(message))
        self.kind = kind


@dataclass(frozen=True)
class Judged:
    """What came of an instance."""

    objective: float | None = None  # the checker's; None where there is no feasible solution
    # infeasible, none, error, time, memory, files, answer, died or untried, and a line; empty where feasible
    failure: str = ""
    message: str = ""
    seconds: float | None = None  # measured outside; None where nothing came
    solution: Solution | None = None  # what it answered, where the checker can read that
    looks: float | None = None  # what the objective would be if no constraint were broken
    own_length: float | None = None  # the objective where it breaks nothing but a horizon that is only a model's size

    @property
    def ended(self) -> bool:
        """Its process is no more, by itself or by the limit."""
        return self.failure in ("time", "died", "files")


@dataclass(frozen=True)
class Bounds:
    """What a scheduler may use."""

    seconds: float = 10.0  # for one instance
    memory: int = 4 << 30  # bytes of address space
    file: int = 64 << 20  # bytes of a file that it writes, in a folder that is thrown away
    # folders that it may not read, beside those that :mod:`~schedgap.tools.evaluation.places` leaves out
    closed: Sequence[Path] = ()
    warm: bool = True  # load the compiled code of the shipped heuristics first, so that a scheduler can call it
    container: str = ""  # a program that starts its process in a container, ``bwrap``; none where empty
    first: float = 30.0  # seconds, at least, for a small instance that does not count: code is compiled there
    # our exact methods and bounds are not for it; our heuristics, and solvers of others, are
    heuristics_only: bool = False

    @classmethod
    def of(cls, time_limit: float, memory_limit: float, container: bool) -> Bounds:
        """Limits of so many seconds and GB, in bubblewrap or not.

        Raises InputError: a number is out of range, or bubblewrap is not installed.
        """
        for name, value, most in (("time_limit", time_limit, 1e6), ("memory_limit", memory_limit, 1e4)):
            if not 0 < value <= most:
                raise InputError(f"{name}: must be more than 0 and at most {most:g}, got {value:g}")
        return cls(time_limit, int(memory_limit * 2**30), container=bubblewrap() if container else "")

    def warmed(self, problem: Problem) -> Sequence[str]:
        """Whose compiled code is loaded."""
        return [problem.id] if self.warm else []


class Patience:
    """Seconds that a process may take for one answer or many."""

    def __init__(self, seconds: float, used: Callable[[], tuple[float, float] | None] = lambda: None) -> None:
        """`used` tells how long the process had a processor and waited for one; where that is None the clock counts."""
        self.seconds, self._used = seconds, used
        self.spent, self._since = 0.0, clock()  # by the clock, while it was waited for
        self._before = used()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """While it is waited for."""
        self._since = clock() - self.spent
        try:
            yield
        finally:
            self.spent = clock() - self._since

    @property
    def excess(self) -> str:
        """What it has taken too much of; empty where nothing. No processor gives more seconds than the clock has."""
        spent = clock() - self._since
        if spent < self.seconds:
            return ""
        before, used = self._before, self._used()
        worked, waited = (used[0] - before[0], used[1] - before[1]) if used and before else (spent, 0.0)
        if worked >= self.seconds:
            return f"{self.seconds:g} s"
        # threads that have ended have taken with them what they waited
        asleep = spent - min(max(0.0, waited), EXCUSED * spent) >= SLEEPING * self.seconds
        return f"{SLEEPING * self.seconds:g} s, of which it worked less than {self.seconds:g} s" if asleep else ""


@dataclass(eq=False)
class Contained(contextlib.AbstractContextManager["Contained"]):
    """The scheduler, callable as a heuristic; its process starts when it is first needed and anew after a failure.

    It is handed the instance and a seed and hands back a solution, as data through pipes; a token that every request
    brings must come back, so that nothing can be answered before it is asked. What it prints goes nowhere. When an
    answer takes too long the process and all of its group are killed.
    """

    is_policy: ClassVar[bool] = False
    name: str  # ``file.py:function`` or ``package.module:function``
    problem: Problem  # whose instances it takes
    bounds: Bounds = field(default_factory=Bounds)
    seconds: float | None = None  # the last answer took so long, measured here
    peak: int | None = None  # the largest resident memory that was seen, bytes; None where the system does not tell
    isolated: bool | None = None  # the kernel keeps machine code from files and processes, too; None before it started
    nursery: Nursery | None = None  # what forks its process; where there is none it starts from nothing
    _deadline: Deadline = NO_DEADLINE
    _process: subprocess.Popen[bytes] | Forked | None = None
    _out: int = -1
    _in: int = -1
    _folder: str = ""
    _source: str = ""  # the folder of the copy of the scheduler's file; empty before it was made
    is_warm: bool = False
    stuck: Instance | None = None  # instance of its first run, which does not count, where it took too long
    _entered: bool = False

    def method(self) -> Method:
        """The candidate as a method of the problem, for claims and hunts."""
        return Method(
            self.name,
            "a scheduler in a process of its own",
            Kind.HEURISTIC,
            Given(self.name, self),
            is_user_defined=True,
        )

    def __call__(self, instance: Instance, *, seed: int, deadline: Deadline = NO_DEADLINE) -> Solution | None:
        """Its solution of an instance, unchecked; after the deadline it is waited for no longer.

        Raises Failed: it raised, took too long or too much, ended, or sent what is no JSON object.
        """
        self._ready(deadline)
        patience = self.patience(self.bounds.seconds)
        answer = self._ask({"instance": _bare(instance), "seed": seed}, patience)
        self.seconds = patience.spent
        self._look()
        solution = answer.get("solution")
        if solution is not None and not isinstance(solution, dict):
            raise Failed("answer", f"must return a solution object or None, got {type(solution).__name__}")
        return solution

    def judged(self, instance: Instance, seed: int) -> Judged:
        """What it answers, checked at once."""
        try:
            solution = self(instance, seed=seed)
        except Failed as error:
            return Judged(failure=error.kind, message=str(error))
        if solution is None:
            return Judged(failure="none", message="found nothing", seconds=self.seconds)
        try:
            report = self.check(instance, solution)
        except InputError as error:
            message = f"no solution of {self.problem.id}: {error}"
            return Judged(failure="infeasible", message=message, seconds=self.seconds)
        value = None if report.objective is None else report.value
        if report.feasible and value is not None:
            return Judged(value, seconds=self.seconds, solution=solution)
        message = "has no objective" if report.feasible else brief(report.violations[0].message)
        return Judged(
            None, "infeasible", message, self.seconds, solution, value, self._at_own_length(instance, solution, report)
        )

    def _at_own_length(self, instance: Instance, solution: Solution, report: CheckReport) -> float | None:
        """The checker's objective with a horizon that is long enough; None where anything else is broken."""
        is_long = {violation.constraint for violation in report.violations} == {"horizon"}
        longer = self.problem.lengthened(instance) if is_long else None
        if longer is None:
            return None
        again = self.check(longer, solution)
        return again.value if again.feasible and again.objective is not None else None

    @property
    def outside_model(self) -> bool:
        """Its schedules are no solutions of the problem, whose optima say nothing of them."""
        return False

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        """The checker's judgement of what it answered to an instance."""
        return self.problem.check(instance, solution)

    def certified_bound(self, instance: Instance) -> float | None:
        """A bound on the objective of whatever it may answer."""
        return self.problem.certified_bound(instance)

    def _ready(self, deadline: Deadline) -> None:
        """Its process runs, and is waited for until the deadline."""
        self._deadline = deadline
        if not self._entered:
            self._start()
        if not self._entered:  # the first instance ended it
            self._start()

    def _start(self) -> None:
        """Import the scheduler in a new process.

        Raises InputError: it cannot be imported.
        """
        scheduler = self._alone()
        places = readable(scheduler, self.bounds.closed)
        self._spawn(places)
        setup = {
            "scheduler": scheduler,
            "problem": self.problem.id,
            "policy": self.is_policy,
            "heuristics_only": self.bounds.heuristics_only,
            "memory": self.bounds.memory,
            "file": self.bounds.file,
            "folder": self._folder,
            "readable": places,
        }
        self._entered = True
        try:
            self.isolated = bool(self._ask(setup, Patience(START)).get("isolated"))
            self._before_import()
            self._imported(self._ask({}, self.patience(4 * self.bounds.first)))
        except Failed as error:
            self.close()
            told = f"is not imported: {error}" if error.kind == "time" else str(error)
            told = told.replace(scheduler.rpartition(":")[0], self.name.rpartition(":")[0])
            raise InputError(f"scheduler {self.name}: {told}") from None
        self._warm_up()

    def _alone(self) -> str:
        """The scheduler's name where its process finds it: a file is copied, so that nothing lies beside it.

        An operator keeps scheduler, instances, logs and solutions together. A module stays where it is.
        """
        place, _, function = self.name.rpartition(":")
        if not place.endswith(".py") or not Path(place).is_file():
            return self.name
        if not self._source:
            self._source = tempfile.mkdtemp(prefix="schedgap-scheduler-")
            resource_tracker.register(self._source, "folder")
            shutil.copy(place, self._source)
        return f"{Path(self._source, Path(place).name)}:{function}"

    def _left_behind(self, told: str) -> str:
        """The way out where a file imports what lies beside it; "" elsewhere."""
        missing, place = re.search(r"No module named '(\w+)", told), Path(self.name.rpartition(":")[0])
        if missing is None or not any(place.with_name(missing[1] + end).exists() for end in ("", ".py")):
            return ""
        return "; a file is judged alone: name a package (package.module:function), which is read as a whole"

    def _spawn(self, places: Sequence[str]) -> None:
        """Start its process, which has what is ours and waits, open still, for the name of the scheduler."""
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix="schedgap-evaluate-")
            resource_tracker.register(self._folder, "folder")  # its process throws it away should this one be killed
        request_read, self._out = os.pipe()
        self._in, answer_write = os.pipe()
        pipes = request_read, answer_write
        try:
            if self.nursery is not None:
                self._process = self.nursery.fork(*pipes)
                return
            # In a container with processes of its own the first of them is its parent.
            inside = contained_by(self.bounds.container, self._folder, places) if self.bounds.container else []
            parent = "1" if inside else str(os.getpid())
            warm = self.bounds.warmed(self.problem)
            guest = [sys.executable, "-P", "-m", GUEST, parent, *map(str, pipes), *warm]
            self._process = start([*inside, *guest], *pipes)
        finally:
            own = () if self._process else (self._in, self._out)
            for descriptor in (*pipes, *own):
                os.close(descriptor)

    def _before_import(self) -> None:
        """Look at its process while it has no code of the scheduler yet."""

    def _imported(self, told: dict[str, Any]) -> None:
        """Take note of what its process tells of the scheduler that it has imported."""

    def _warm_up(self) -> None:
        """One small instance without a clock's limit of its own, so that no time holds imports and compiling."""
        presets = workload_of(self.problem).presets
        if self.is_warm or not presets or not self.bounds.warm:
            return
        self.is_warm = True
        instance = presets[0].generator(0, **presets[0].settings)
        try:
            self._try(instance, self.patience(max(self.bounds.first, self.bounds.seconds)))
        except Failed as error:  # what it does wrong here it does again where it counts
            self.stuck = instance if error.kind == "time" else None
            if self.stuck and self.bounds.heuristics_only:
                raise Failed("time", str(error).replace("answer", "answer to a small instance", 1)) from None

    def _try(self, instance: Instance, patience: Patience) -> None:
        """Run it on an instance that does not count."""
        self._ask({"instance": _bare(instance), "seed": 0}, patience)

    def patience(self, seconds: float) -> Patience:
        """So many seconds of its process from now on."""
        return Patience(seconds, self._used)

    def _ask(self, message: dict[str, Any], patience: Patience) -> dict[str, Any]:
        token = secrets.token_hex(8)
        try:
            with patience.running():
                self._write(json.dumps({**message, "token": token}).encode(), patience)
                answer = self._answer(patience)
        except Failed:
            self._kill()
            raise
        if answer.get("token") != token:
            self._kill()
            raise Failed("answer", "sent an answer that was not asked for")
        if "error" in answer:
            text = " ".join(str(answer["error"])[: 10 * _SHOWN].split())[:_SHOWN]
            raise Failed("memory" if text.startswith("MemoryError") else "error", text + self._left_behind(text))
        return answer

    def _write(self, data: bytes, patience: Patience) -> None:
        rest = memoryview(struct.pack(">Q", len(data)) + data)
        os.set_blocking(self._out, False)
        while rest:
            self._wait([], [self._out], patience)
            try:
                rest = rest[os.write(self._out, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._ended() from None

    def _answer(self, patience: Patience) -> dict[str, Any]:
        size = struct.unpack(">Q", self._read(8, patience))[0]
        if size > LARGEST_ANSWER:
            raise Failed("answer", f"sent {size} bytes, at most {LARGEST_ANSWER} are taken")
        data = self._read(size, patience)
        if fault := _unbounded(data):
            raise Failed("answer", f"sent {fault} are taken")
        try:
            answer = json.loads(data.decode(), parse_constant=_refuse)  # UTF-8, in which letters hide no quotation mark
        except (ValueError, RecursionError) as error:
            raise Failed("answer", f"sent what is no JSON: {error}") from None
        if not isinstance(answer, dict):
            raise Failed("answer", "sent no JSON object")
        return answer

    def _read(self, size: int, patience: Patience) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait([self._in], [], patience)
            piece = os.read(self._in, min(1 << 20, size - len(data)))
            if not piece:
                raise self._ended()
            data += piece
        return bytes(data)

    def _wait(self, readable: list[int], writable: list[int], patience: Patience) -> None:
        # What is there counts, also where this process itself was late to look.
        while not any(select.select(readable, writable, [], 0)):
            excess = patience.excess
            rest = self._deadline.remaining()
            if excess or rest == 0:
                raise Failed("time", f"no answer within {excess or 'the time of its hunt'}")
            longest = min(0.5, max(0.02, patience.seconds / 4))
            select.select(readable, writable, [], longest if rest is None else min(rest, longest))
            self._look()

    def _ended(self) -> Failed:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        if isinstance(self._process, Forked) and self._process.lost:
            raise SchedgapError("the process that starts candidates: has ended, so one was not judged")
        code = self._process.returncode
        if code is None:
            return Failed("died", "its process answers no more")
        return Failed(
            "died", f"its process ended by signal {-code}" if code < 0 else f"its process ended with status {code}"
        )

    def _pid(self) -> str:
        """In a container it is below those that make that."""
        pid = str(self._process.pid) if self._process else ""
        while self.bounds.container and (below := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            pid = below[0]
        return pid

    def _used(self) -> tuple[float, float] | None:
        """Seconds that its threads had a processor, and waited for one; None where the system does not tell."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            home, waited = Path("/proc", self._pid()), 0
            fields = (home / "stat").read_text().rpartition(")")[2].split()
            for thread in (home / "task").iterdir():
                with contextlib.suppress(OSError):  # it has ended, or the kernel does not count
                    waited += int((thread / "schedstat").read_text().split()[1])
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), waited / 1e9
        return None

    def _look(self) -> None:
        """Its peak memory, as the system tells it, and what it has written.

        Raises Failed: that is too much.
        """
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{self._pid()}/status").read_text()
            # its name, which it chooses, stands above
            told = re.search(r"^VmHWM:\s*([0-9]+)", text, re.MULTILINE)
            if told:
                self.peak = max(int(told[1]) * 1024, self.peak or 0)
        if self._writes_too_much():
            self.close()  # what it has written, too
            entries, size = f"{MOST_FILES} entries", f"{LARGEST_FOLDER >> 20} MB"
            most = f"{entries}, {size} or paths of {LONGEST_PATH} letters"
            raise Failed("files", f"its folder has more than {most}, or is closed to the judge")

    def _writes_too_much(self) -> bool:
        """Files that it has open still count when their names are gone."""
        entries = size = 0
        places = [self._folder]
        with contextlib.suppress(OSError):
            for opened in Path(f"/proc/{self._pid()}/fd").iterdir():
                with contextlib.suppress(OSError):
                    file = opened.stat()
                    size += 0 if file.st_nlink else 512 * file.st_blocks
        try:
            while places:
                with contextlib.suppress(FileNotFoundError), os.scandir(places.pop()) as here:
                    for entry in here:
                        entries += 1
                        size += 512 * entry.stat(follow_symlinks=False).st_blocks
                        if entries > MOST_FILES or len(entry.path) > LONGEST_PATH:
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            places.append(entry.path)
        except PermissionError:
            return True
        except OSError:  # it changes while it is counted
            pass
        return size > LARGEST_FOLDER

    def close(self) -> None:
        """End the process and all of its group, and throw its folder away."""
        self._kill()
        if self._folder:
            with contextlib.suppress(RecursionError):
                shutil.rmtree(self._folder, ignore_errors=True)
            if os.path.lexists(self._folder):  # closed, or deeper than Python may go
                subprocess.run(["chmod", "-R", "u+rwx", "--", self._folder], check=False, capture_output=True)
                subprocess.run(["rm", "-rf", "--", self._folder], check=False, capture_output=True)
            resource_tracker.unregister(self._folder, "folder")
        if self._source:
            shutil.rmtree(self._source, ignore_errors=True)
            resource_tracker.unregister(self._source, "folder")
        self._folder = self._source = ""

    def _kill(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # it may have left its group
            if self._process.returncode is None:
                os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for descriptor in (self._out, self._in):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._process, self._entered = None, False

    def __exit__(self, *_: object) -> None:
        self.close()


def _bare(instance: Instance) -> dict[str, Json]:
    """The instance as data, without its name and what else tells where it comes from or what is known of it."""
    data = instance.to_dict()
    return {
        key: value for key, value in data.items() if key not in ("name", "note") and not key.startswith("reference")
    }


def _unbounded(data: bytes) -> str:
    """What is too much in a JSON text, told before it is parsed; empty where nothing is."""
    bare = _TEXT.sub(b"", data)
    values = bare.count(b",") + bare.count(b"[") + bare.count(b"{")
    if values > MOST_VALUES:
        return f"{values} values, at most {MOST_VALUES}"
    nested = bare.translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(DEEPEST + 1):
        nested = nested.replace(b"[]", b"")
    return f"lists and objects deeper than {DEEPEST}, at most {DEEPEST}" if nested else ""


_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A text, or what begins as one and never ends: each byte is looked at once, whatever a guest sends."""
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(letter for letter in range(256) if letter not in b"[]{}")


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number")
