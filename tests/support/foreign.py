"""Schedulers of other people for rar-ddls: good ones, broken ones and hostile ones."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import time
from pathlib import Path
from typing import Any


def good(instance: Any, *, seed: int) -> dict[str, Any]:
    """All jobs one after another, each on the servers in their order."""
    from schedgap.formulations.rar_ddls.dynamics import simulate

    start, placement, now = {}, {}, 1
    for job in instance.jobs:
        left, placed = job.gpus, {}
        for server in sorted(instance.servers, key=lambda server: -server.gpus):
            taken = min(left, server.gpus)
            if taken:
                placed[server.id] = taken
                left -= taken
        start[job.id], placement[job.id] = now, placed
        now = simulate(instance, {job.id: now}, {job.id: placed}).completion[job.id] + 1
    print("noise on standard output")
    return {"start": start, "placement": placement}


def shipped(instance: Any, *, seed: int) -> Any:
    """What a shipped heuristic says."""
    import schedgap

    return schedgap.solve(instance, "ls", seed=seed).solution


def nothing(instance: Any, *, seed: int) -> None:
    """Finds nothing."""


def infeasible(instance: Any, *, seed: int) -> dict[str, Any]:
    """Everything at once on one server."""
    server = instance.servers[0].id
    jobs = instance.jobs
    return {"start": {job.id: 1 for job in jobs}, "placement": {job.id: {server: job.gpus} for job in jobs}}


def whispers(instance: Any, *, seed: int) -> dict[str, Any]:
    """Fails with half of a surrogate pair and a terminal's escape in its message."""
    raise ValueError("half \ud800 and \x1b[31mred\x1b]0;title\x07")


def patches(instance: Any, *, seed: int) -> dict[str, Any]:
    """Makes every checker of its process say yes."""
    from schedgap.catalogue import rar_ddls
    from schedgap.formulations.common.check import CheckReport
    from schedgap.formulations.rar_ddls import check

    check.check = lambda *_: CheckReport((), 1)  # type: ignore[assignment,arg-type]
    rar_ddls.PROBLEM.check = lambda *_: CheckReport((), 1)  # type: ignore[method-assign,assignment,arg-type]
    return infeasible(instance, seed=seed)


def prints(instance: Any, *, seed: int) -> None:
    """Prints an answer on every descriptor that it has."""
    text = b'{"score": 1.0, "feasible": true, "solution": {}}\n'
    for descriptor in range(1, 20):
        try:
            os.write(descriptor, text)
        except OSError:
            continue
    time.sleep(0.05)
    raise ValueError("no solution")


def forges(instance: Any, *, seed: int) -> None:
    """Writes an answer of its own into the pipe, before it is asked for."""
    import json
    import struct

    frame = sys._getframe()
    while frame is not None and "outgoing" not in frame.f_locals:
        frame = frame.f_back  # type: ignore[assignment]
    for token in ("", "guessed"):
        data = json.dumps({"token": token, "solution": {}, "objective": 1}).encode()
        frame.f_locals["outgoing"].write(struct.pack(">Q", len(data)) + data)
    frame.f_locals["outgoing"].flush()


def forks(instance: Any, *, seed: int) -> None:
    """Starts processes that outlive it, as Python does it and as C does it."""
    try:
        os.fork()
    except PermissionError:
        ctypes.CDLL(None).fork()
    time.sleep(600)


def eats(instance: Any, *, seed: int) -> int:
    """Takes all the memory there is."""
    return len([bytearray(1 << 28) for _ in range(1000)])


def endless(instance: Any, *, seed: int) -> None:
    """Never ends, and does not let itself be interrupted."""
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            continue


def stops_the_clock(instance: Any, *, seed: int) -> dict[str, Any] | None:
    """Works for 0.3 s while every clock of its process stands; for ever where the seed is odd."""
    time.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0  # type: ignore[assignment]
    time.sleep(0.3)
    while seed % 2:
        pass
    return good(instance, seed=seed)


def raises_at_its_end(instance: Any, *, seed: int) -> dict[str, Any]:
    """An exception at exit, after one that has no end and one that answers."""

    def boom() -> None:
        raise RuntimeError("at exit")

    atexit.register(boom)
    atexit.register(time.sleep, 10_000)
    atexit.register(forges, instance, seed=seed)
    return good(instance, seed=seed)


def hoards(instance: Any, *, seed: int) -> None:
    """Fills its own folder with files."""
    for number in range(20_000):
        Path(os.environ["HOME"], str(number)).touch()


def nests(instance: Any, *, seed: int) -> None:
    """Makes folders in each other, deeper than Python calls and longer than a path may be."""
    os.chdir(os.environ["HOME"])
    for _ in range(3000):
        Path("deeper").mkdir()
        os.chdir("deeper")


def hides(instance: Any, *, seed: int) -> None:
    """Has large files open whose names are gone."""
    for number in range(30):
        path = Path(os.environ["HOME"], str(number))
        os.posix_fallocate(os.open(path, os.O_WRONLY | os.O_CREAT), 0, 60 << 20)
        path.unlink()
    time.sleep(600)


def writes(instance: Any, *, seed: int) -> None:
    """Overwrites a file of the user's, by every way there is."""
    victim = Path(os.environ.get("VICTIM", "victim.txt"))
    for harm in (
        lambda: victim.write_text("harmed"),
        lambda: os.truncate(victim, 0),
        victim.unlink,
        lambda: victim.rename("elsewhere"),
        lambda: os.system(f"echo harmed > {victim}"),
        lambda: Path("left-behind").mkdir(),
    ):
        try:
            harm()
        except OSError:
            continue
    raise OSError("could not write")


def writes_in_c(instance: Any, *, seed: int) -> None:
    """The same with the system's own functions, which no hook of Python sees, and starts a program."""
    system = ctypes.CDLL(None)
    victim = os.fsencode(Path("victim.txt").resolve())
    for harm in (
        lambda: system.close(system.open(victim, os.O_WRONLY | os.O_TRUNC)),
        lambda: system.truncate(victim, ctypes.c_long(0)),
        lambda: system.unlink(victim),
        lambda: system.rename(victim, victim + b".moved"),
        lambda: system.mkdir(victim + b".left", 0o700),
        lambda: system.system(b"echo harmed > " + victim),
    ):
        harm()
    raise OSError("could not write")


def reaches_out(instance: Any, *, seed: int) -> None:
    """Slows, limits and signals the process `seed`, forks, and changes what a file has beside its content."""
    import resource
    import socket
    from collections.abc import Callable

    system = ctypes.CDLL(None, use_errno=True)
    victim = os.fsencode(Path("victim.txt").resolve())
    limit, parameter = (ctypes.c_ulong * 2)(0, 0), (ctypes.c_int * 1)(0)
    mask = (ctypes.c_ulong * 16)(1)

    def in_c(function: Any, *arguments: Any) -> None:
        if function(*arguments) == -1:
            raise OSError(ctypes.get_errno(), "refused")

    harms: dict[str, Callable[[], object]] = {
        "prlimit": lambda: resource.prlimit(seed, resource.RLIMIT_CORE, (0, 0)),
        "affinity": lambda: os.sched_setaffinity(seed, {0}),
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, seed, 19),
        "scheduler": lambda: os.sched_setscheduler(seed, os.SCHED_BATCH, os.sched_param(0)),
        "more memory": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
        "datagrams": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "prlimit in C": lambda: in_c(system.prlimit, seed, resource.RLIMIT_CORE, limit, None),
        "affinity in C": lambda: in_c(system.sched_setaffinity, seed, ctypes.c_size_t(128), mask),
        "priority in C": lambda: in_c(system.setpriority, os.PRIO_PROCESS, seed, 19),
        "scheduler in C": lambda: in_c(system.sched_setscheduler, seed, os.SCHED_BATCH, parameter),
        "stop": lambda: in_c(system.kill, seed, 0),
        "chmod": lambda: in_c(system.chmod, victim, 0o777),
        "chown": lambda: in_c(system.chown, victim, os.getuid(), os.getgid()),
        "utime": lambda: in_c(system.utimes, victim, None),
        "orphan": lambda: in_c(system.prctl, 1, 0, 0, 0, 0),
        "fork": lambda: in_c(system.fork) or system.getppid() != seed,
        "namespace": lambda: in_c(system.unshare, 0x200),
    }
    worked = []
    for name, harm in harms.items():
        try:
            harm()
        except (OSError, ValueError):
            continue
        worked.append(name)
    raise OSError("could: " + ", ".join(worked))


def patches_the_watch(instance: Any, *, seed: int) -> None:
    """Writes in the thread that looks after the parent, which was there before."""
    tried = []

    def instead(seconds: float) -> None:
        if not tried:
            tried.append(ctypes.CDLL(None).truncate(os.fsencode(Path("victim.txt").resolve()), ctypes.c_long(0)))

    before, time.sleep = time.sleep, instead  # type: ignore[assignment]
    while not tried:
        before(0.05)
    time.sleep = before
    raise OSError("could not write")


def threads(instance: Any, *, seed: int) -> dict[str, Any]:
    """Works on several threads, its own and those of a solver, and in a temporary folder."""
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    numbers = [model.new_int_var(0, 9, "") for _ in range(4)]
    model.add_all_different(numbers)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise ValueError("no solution")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "notes").write_text("of its own")
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda _: good(instance, seed=seed), range(2)))[1]


def patches_the_fence(instance: Any, *, seed: int) -> None:
    """Makes every path look like one of its own folder, then writes."""
    own = os.environ["HOME"]
    os.path.realpath = lambda *_, **__: own  # type: ignore[assignment]
    return writes(instance, seed=seed)


def reads(instance: Any, *, seed: int) -> Any:
    """Looks for the optimum in the folder of the card, and in what earlier runs have left."""
    found = []
    for path in Path().rglob("*"):
        try:
            found += [path.read_bytes()] if path.is_file() and path.name != "victim.txt" else []
        except PermissionError:
            continue
    if found:
        return infeasible(instance, seed=seed)
    raise OSError("may not read")


SURVIVED = ("writes", "writes_in_c", "patches_the_watch", "reads", "nan", "text", "patches_the_fence")
"""What its process survives, in an order in which none disturbs the next."""


def in_turn(instance: Any, *, seed: int) -> Any:
    """All of those, one after another in one process."""
    return globals()[SURVIVED[seed]](instance, seed=seed)


def exits(instance: Any, *, seed: int) -> None:
    """Ends its process."""
    os._exit(0)


def huge(instance: Any, *, seed: int) -> dict[str, Any]:
    """An answer larger than anybody takes."""
    return {"start": "x" * (65 << 20)}


def nan(instance: Any, *, seed: int) -> dict[str, Any]:
    """Numbers that are none."""
    return {"start": {job.id: float("nan") for job in instance.jobs}, "placement": {}}


def text(instance: Any, *, seed: int) -> Any:
    """No solution object."""
    return "optimal"


def exits_not(instance: Any, *, seed: int) -> Any:
    """Raises."""
    raise KeyError("gpus")


_CALLS = iter(range(10**9))


def random(instance: Any, *, seed: int) -> dict[str, Any]:
    """Another answer every time."""
    return {"start": {job.id: next(_CALLS) for job in instance.jobs}, "placement": {}}
