"""Schedulers of other people for rar-ddls: good ones, broken ones and hostile ones."""

from __future__ import annotations

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


def nothing(instance: Any, *, seed: int) -> None:
    """Finds nothing."""


def infeasible(instance: Any, *, seed: int) -> dict[str, Any]:
    """Everything at once on one server."""
    server = instance.servers[0].id
    jobs = instance.jobs
    return {"start": {job.id: 1 for job in jobs}, "placement": {job.id: {server: job.gpus} for job in jobs}}


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


SURVIVED = ("writes", "writes_in_c", "reads", "nan", "text", "patches_the_fence")
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
