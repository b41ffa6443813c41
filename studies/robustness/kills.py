"""Commands killed at fifty moments: what was finished stays, a repetition ends with the same tables, nothing is left.

``python -m studies.robustness.kills [--kills 50] [--command NAME] [--seed N] [--loaded]
[--group]``. A run that nobody disturbs gives the table; each further run is sent KILL, TERM or INT at a random moment
of the time that took, then goes on (``--resume``, where the command has it) or is repeated. The killed run must end
with the status that its end asks for, without a traceback once the command line is loaded; every table that is there
must be whole, no process of the run may live a minute later, and no temporary file of ours may be there. After the
repetition the tables must be those of the undisturbed run, and what had finished must not have been done again. With
``--loaded`` all is imported once, before, so that every kill meets the command's own work. With ``--group`` every
signal is KILL and reaches all processes of the run at once, that one, too, which else throws away what lies in the
folder for temporary files: it is not looked at. The tests kill at a change of a file instead (:func:`end_at`), which
does not depend on the clock.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from schedgap.benchmarks.hunt import journal as hunt_journal
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.sweep.store import FILE, NO_RUN, Store, StoreError
from schedgap.formulations.common.errors import SchedgapError
from studies.robustness.processes import PATIENCE, READY, Command, Run, begin

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST_RUNS = 3
"""Runs for each kill that is asked for, should many have ended before their moment."""
ORPHANED = 60.0
"""Seconds that processes of a killed run may live, on a machine that may be busy."""
INTERRUPTED = 130
SHOWN = 2000
"""Bytes of what a run said last that a fault is reported with."""
COMMANDS: Mapping[str, Command] = {
    "bench": Command(
        (
            *("bench", "quick", "--problem", "ddljs", "--methods", "fifo,drf,las", "--scale", "0.01", "--workers", "1"),
            *("--out", "FOLDER/run"),
        ),
        (f"run/{FILE}",),
        ("--resume",),
    ),
    "verify": Command(("verify", "002-theorem-2", "--instances", "20", "--out", "FOLDER/run"), ("run/ledger.json",)),
    "hunt": Command(
        (
            "hunt",
            "rar-ddls/ls",
            "--set",
            "evaluations=8",
            "--set",
            "work=0.1",
            "--workers",
            "1",
            "--out",
            "FOLDER/run",
        ),
        ("run/found.json", "run/worst.json"),
        ("--resume",),
    ),
    "evaluate": Command(
        (
            *("evaluate", "FOLDER/mine.py:schedule", "--problem", "rar-ddls", "--instances", "1", "--seed", "7"),
            *("--time-limit", "600", "--workers", "1", "--out", "FOLDER/run"),
        ),
        ("run/card.json",),
    ),
    "reproduce": Command(
        ("reproduce", "000", "--item", "figure-7", "--seeds", "1", "--workers", "1", "--out", "FOLDER/run"),
        ("run/verdicts.json", "run/results-sjf-bco.md", f"run/{FILE}"),
        ("--resume",),
    ),
    "certify": Command(("certify", "FOLDER/x.json", "--out", "FOLDER/proof.json"), ("proof.json",)),
}
MEASURED = frozenset({"worker", "finished", "processor", "memory", "anytime"})
"""Keys of what a run measures of itself, besides those that end in ``seconds``; all else must be the same."""


def plain(value: object) -> object:
    """A table without what is measured of the run itself."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if not _measured(str(key))}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _measured(key: str) -> bool:
    return key in MEASURED or key.endswith("seconds")


def tables_of(command: Command, folder: Path) -> list[object]:
    """What a run left."""
    found: list[object] = []
    for name in command.tables:
        path = folder / name
        if name.endswith(".sqlite"):
            rows = [plain({**row.flat(), "finished": None}) for row in rows_of(path)]
            found.append(sorted(json.dumps(row, sort_keys=True, default=str) for row in rows))
        else:
            content = path.read_bytes()
            content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
            content = content.replace(str(folder).encode(), b"FOLDER")
            found.append(content.decode() if name.endswith(".md") else plain(json.loads(content)))
    return found


def rows_of(path: Path) -> list[Record]:
    """The rows of a store; none where it was killed before its first transaction: nothing had finished."""
    try:
        with Store(path, read_only=True) as store:
            return list(store.rows())
    except StoreError as error:
        if str(error) == f"{path}: {NO_RUN}":
            return []
        raise


def difference(one: object, other: object, place: str = "") -> str:
    """The first place at which two tables differ, with both values; empty where they do not."""
    pairs: list[tuple[object, object, object]] = []
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(key, one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(k, *both) for k, both in enumerate(zip(one, other, strict=True))]
    elif one != other:
        return f"{place or 'tables'}: {str(one)[:200]!r} and {str(other)[:200]!r}"
    return next(filter(None, (difference(a, b, f"{place}/{key}") for key, a, b in pairs)), "")


def living(folder: Path) -> list[int]:
    """Processes of runs in this folder: by what they were given, or where they work."""
    mark = f"SCHEDGAP_KILLS={folder}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (
                mark in (process / "environ").read_bytes().split(b"\0") or (process / "cwd").samefile(folder)
            ):
                found.append(int(process.name))
        except OSError:  # gone meanwhile, or not ours
            continue
    return found


def left(folder: Path) -> list[str]:
    """Temporary files of ours in its scratch folder and half-written ones beside its tables; locks are none."""
    scratch = folder / "scratch"
    files = [path for path in folder.rglob(".*") if path.is_file() and path.suffix != ".lock"]
    half = [path for path in files if scratch not in path.parents]
    return sorted(
        str(path.relative_to(folder)) for path in [*half, *scratch.rglob("*")] if "__pycache__" not in path.parts
    )


def finished_of(folder: Path) -> list[object]:
    """What a run has written down as finished: rows of its store with the moment, lines of its journal."""
    found: list[object] = []
    if (folder / "run" / FILE).is_file():
        rows = rows_of(folder / "run" / FILE)
        found += [(row.key, row.finished) for row in rows if row.result.status != "error"]
    return [
        *found,
        *(line for path in folder.rglob(hunt_journal.FILE) for line in map(str, hunt_journal.Journal(path).lines())),
    ]


def halves(command: Command, folder: Path) -> list[str]:
    """What is there after a kill and cannot be read."""
    wrong = []
    for name in command.tables:
        try:
            if (folder / name).exists():
                tables_of(Command(command.arguments, (name,)), folder)
        except (OSError, ValueError, SchedgapError) as fault:
            wrong.append(f"{name} is half there: {fault}")
    return wrong


def kill_once(
    command: Command,
    folder: Path,
    moment: float,
    number: signal.Signals,
    undisturbed: int = 0,
    loaded: bool = False,
    group: bool = False,
) -> tuple[list[str], bool]:
    """Run, kill, and see :func:`ending` and :func:`aftermath`; whether it was still at work."""
    process = begin(command, folder, loaded=loaded)
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    at_work = process.returncode is None
    if group and at_work:
        os.killpg(process.pid, number)
    process.send_signal(number)
    process.wait(PATIENCE)
    wrong = ending(process.returncode, (folder / "said").read_bytes(), number if at_work else None, undisturbed)
    return wrong + aftermath(command, folder, process, loaded, swept=not group), at_work


def ending(returncode: int | None, said: bytes, number: signal.Signals | None, undisturbed: int) -> list[str]:
    """What is wrong with how a run ended that was sent this signal, or none."""
    right: set[int | None] = {undisturbed}  # also where the signal came when all was done
    if number is signal.SIGKILL:
        right.add(-number)
    elif number is not None:
        right.add(INTERRUPTED)
        if READY not in said:  # Python itself, or an import, tells of it before any line of ours
            right.add(-number)
    wrong = [] if returncode in right else [f"the killed run ends with {returncode}"]
    wrong += ["a traceback"] if b"Traceback" in said and (READY in said or number is None) else []
    return [f"{one}: {said[-SHOWN:].decode(errors='replace')}" for one in wrong]


def aftermath(command: Command, folder: Path, process: Run, loaded: bool = False, swept: bool = True) -> list[str]:
    """What is wrong after the end of a killed run and of all that belonged to it, and after its repetition.

    Parameters
    ----------
    swept : one of its processes lived on to throw temporary files away
    """
    process.wait(PATIENCE)
    end = time.monotonic() + ORPHANED
    while (alive := living(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    wrong = [f"process {one} lives" for one in alive]
    stays = [name for name in left(folder) if swept or not name.startswith("scratch/")]
    wrong += [f"{name} is left" for name in stays] + halves(command, folder)
    kept = finished_of(folder) if command.again else []
    before = (folder / "said").stat().st_size
    again = begin(command, folder, *(command.again if (folder / "run").exists() else ()), loaded=loaded)
    if again.wait(PATIENCE) not in (0, 1, 4):
        wrong.append(f"the repetition ends with {again.returncode}")
    elif command.again:
        now = finished_of(folder)
        wrong += [f"was done again: {str(one)[:100]}" for one in kept if one not in now]
    said = (folder / "said").read_text(encoding="utf-8")
    wrong += ["a traceback of the repetition"] if "Traceback" in said[before:] else []
    return [f"{one}: {said[-SHOWN:]}" for one in wrong]


def try_command(
    name: str, kills: int, seed: int = 0, loaded: bool = False, group: bool = False
) -> tuple[int, list[str]]:
    """Kill one command so many times while it is at work; how often it was, and every fault in a line.

    A run that has ended before the moment that was drawn is repeated as the others are, but does not count.
    """
    command, rng, faults, hit = COMMANDS[name], random.Random(seed), [], 0
    # A shell starts what is in the background with SIGINT ignored, which a command would inherit: no kill at all.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    home = tempfile.mkdtemp()  # no TemporaryDirectory, which the end of a copy of this process would remove
    try:
        whole = Path(home) / "whole"
        if loaded:
            _load_what_is_imported_by(command, Path(home) / "first")
        began = time.monotonic()
        undisturbed = begin(command, whole, loaded=loaded).wait(PATIENCE)
        took = time.monotonic() - began
        if undisturbed not in (0, 1, 4):
            return 0, [f"{name}: fails undisturbed: {(whole / 'said').read_text(encoding='utf-8')[-300:]}"]
        wanted = tables_of(command, whole)
        for run in range(MOST_RUNS * kills):
            if hit == kills:
                break
            folder = Path(home) / f"killed-{run}"
            number, moment = signal.SIGKILL if group else SIGNALS[hit % len(SIGNALS)], rng.uniform(0, took)
            wrong, at_work = kill_once(command, folder, moment, number, undisturbed, loaded, group)
            hit += at_work
            if not wrong and (other := difference(wanted, tables_of(command, folder))):
                wrong = [f"other tables: {other}"]
            faults += [f"{name}, {number.name} after {moment:.2f} of {took:.2f} s: {one}" for one in wrong]
            told = f"{name}: {run + 1} runs, {hit} killed while at work, {len(faults)} faults"
            print(told, *wrong, sep="\n  ", file=sys.stderr, flush=True)
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(home)
    return hit, faults


def _load_what_is_imported_by(command: Command, folder: Path) -> None:
    os.environ["PYTHONPROFILEIMPORTTIME"] = "1"
    begin(command, folder).wait(PATIENCE)
    del os.environ["PYTHONPROFILEIMPORTTIME"]
    for module in re.findall(r"^import time:.*\| +(\S+)$", (folder / "said").read_text(encoding="utf-8"), re.MULTILINE):
        with suppress(ImportError):
            importlib.import_module(module)


def main() -> None:
    """Kill, and print what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--command", choices=COMMANDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loaded", action="store_true")
    parser.add_argument("--group", action="store_true")
    chosen = parser.parse_args()
    for name in COMMANDS if chosen.command is None else (chosen.command,):
        hit, faults = try_command(name, chosen.kills, chosen.seed, chosen.loaded, chosen.group)
        told = f"{name}: {hit} killed while at work, {len(faults)} faults"
        print(told, *faults, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
