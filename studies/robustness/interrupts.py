"""Ctrl-C at random moments of ``solve`` and ``certify`` as a terminal sends it, the first moments among them.

``python -m studies.robustness.interrupts [--times 60] [--seed N]``. A third of the moments lie in
the first 0.3 s, while Python starts and the command line is imported, the others anywhere in the time that an
undisturbed run takes. Right is: status 130 without a traceback, a file whole if it is there, or the
status of the undisturbed run where all was done; no file else in the folder; no process of the group.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from studies.robustness.kills import left, living
from studies.robustness.processes import PATIENCE, variables

PROGRAM = Path(sys.executable).with_name("schedgap")
COMMANDS = {
    "solve": ("solve", "FOLDER/x.json", "--method", "colgen", "--out", "FOLDER/out.json"),
    "certify": ("certify", "FOLDER/x.json", "--out", "FOLDER/out.json"),
}
FIRST = 0.3
LINE = "schedgap: interrupted\n"


def interrupted(name: str, folder: Path, moment: float | None) -> tuple[int, str, float]:
    """Status, what was said, and seconds of a run that is sent SIGINT at this moment, with all of its group."""
    (folder / "scratch").mkdir()
    began = time.monotonic()
    process = subprocess.Popen(
        [PROGRAM, *(part.replace("FOLDER", str(folder)) for part in COMMANDS[name])],
        env={**os.environ, **variables(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    if moment is not None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, said, time.monotonic() - began


def faults(folder: Path, status: int, said: str) -> list[str]:
    """What is wrong after an interrupted run."""
    there = (folder / "out.json").exists()
    wrong = [f"status {status}"] if (status, there) not in ((0, True), (130, False), (130, True)) else []
    if "Traceback" in said or said.count(LINE) > 1:
        wrong.append("says more than a line")
    content = (folder / "out.json").read_bytes() if there else b"{}"
    try:
        json.loads(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    except (ValueError, EOFError):
        wrong.append("half a file")
    end = time.monotonic() + 5.0
    while living(folder) and time.monotonic() < end:
        time.sleep(0.05)
    return wrong + [f"process {one} lives" for one in living(folder)] + [f"{one} is left" for one in left(folder)]


def main() -> None:
    """Interrupt, and print what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--preset", default="tiny")
    chosen = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else a shell's background has it ignored
    for name in COMMANDS:
        rng, ends, wrong = random.Random(chosen.seed), Counter[str](), list[str]()
        took = FIRST
        for run in range(-1, chosen.times):
            with tempfile.TemporaryDirectory() as home:
                folder = Path(home)
                make = [PROGRAM, "generate", "hadar", "--preset", chosen.preset, "--out", str(folder / "x.json")]
                subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
                moment = None if run < 0 else rng.uniform(0, FIRST if run % 3 == 0 else took)
                status, said, seconds = interrupted(name, folder, moment)
                took = seconds if run < 0 else took
                ends[f"{status}{' in the first moments' if moment is not None and moment < FIRST else ''}"] += run >= 0
                told = f"{name}, Ctrl-C after {moment or 0:.2f} of {took:.2f} s: "
                ours = not said or "interface/" in said or "/schedgap/" in said or LINE in said
                told += "" if ours or "Traceback" not in said else "while Python starts: "
                wrong += [told + fault + " " + said[-300:] for fault in faults(folder, status, said)]
        print(name, dict(ends), f"{len(wrong)} faults", *wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
