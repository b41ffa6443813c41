"""Does another checkout give the same answers? Recorded through the command line, which is the same in both.

``python -m studies.same_behaviour record PYTHON --out DIR [--part generate solve bench verify]
[--seed 0 1] [--cases FOLDER ...] [--scale F] [--instances N]`` runs the schedgap that the interpreter PYTHON imports:
every preset of every problem, every method on every file of the folders, ``bench quick`` and ``verify``. Each answer is
one entry of ``DIR/<part>.json``, without times. ``... compare DIR DIR`` prints every answer that differs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Answers = dict[str, object]
PATIENCE = 7200.0
"""Seconds that one process may take."""
COMMANDS = """
import contextlib, io, json, sys
from schedgap.cli.main import main
for line in sys.stdin:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        status = main(json.loads(line))
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(json.dumps([status, text.getvalue()]) + "\\n")
"""
"""Runs a command a line and notes the exit status and what was printed, so that a crash loses only its own."""


@dataclass(frozen=True)
class Wanted:
    """What is recorded: seeds, files to solve, the scale of ``bench`` and the instances of ``verify``."""

    seeds: Sequence[int]
    cases: Sequence[Path]
    scale: float
    instances: int


class Checkout:
    """One schedgap, by the interpreter that imports it."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python = python
        self.folder = folder

    def run(self, *commands: Sequence[str]) -> list[tuple[int, str]]:
        """Commands one after the other in one process: exit status and what was printed; -1 where it crashed."""
        answers = self.folder / "answers.jsonl"
        found: list[tuple[int, str]] = []
        while len(found) < len(commands):
            answers.write_text("", encoding="utf-8")
            lines = "".join(json.dumps(list(command)) + "\n" for command in commands[len(found) :])
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [self.python, "-c", COMMANDS, str(answers)],
                    input=lines, text=True, check=False, cwd=self.folder, timeout=PATIENCE, stderr=subprocess.DEVNULL,
                )  # fmt: skip
            found += [tuple(json.loads(line)) for line in answers.read_text(encoding="utf-8").splitlines()]
            if len(found) < len(commands):
                found.append((-1, ""))
        return found

    def listed(self, heading: str) -> Iterator[tuple[str, str]]:
        """Problems and the ids that ``schedgap list`` has for them under a heading."""
        problems = re.findall(r"^([a-z][\w-]*)(?::| +)", self.run(["list"])[0][1], flags=re.MULTILINE)
        for problem, (_, text) in zip(problems, self.run(*(["list", one] for one in problems)), strict=True):
            part = ""
            for line in text.splitlines():
                if found := re.match(r"  ([a-z]+) ?\(|  ([a-z]+)$", line):
                    part = found[1] or found[2]
                elif part == heading and (found := re.match(r"  [ *] ([a-z][\w+-]*)(  |$)", line)):
                    yield problem, found[1]


def generated(checkout: Checkout, wanted: Wanted) -> Answers:
    """The hash of every preset's instance; the files stay in the folder."""
    folder = checkout.folder / "generated"
    folder.mkdir(exist_ok=True)
    files = {
        (problem, preset, seed): folder / f"{problem}-{preset}-{seed}.json"
        for problem, preset in checkout.listed("presets")
        for seed in wanted.seeds
    }
    checkout.run(*(
        ["generate", problem, "--preset", preset, "--seed", str(seed), "--out", str(file)]
        for (problem, preset, seed), file in files.items()
    ))  # fmt: skip
    return {" ".join(map(str, name)): _hash(file) if file.exists() else None for name, file in files.items()}


def _hash(file: Path) -> str:
    text = json.dumps(json.loads(file.read_text(encoding="utf-8")), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def solved(checkout: Checkout, wanted: Wanted) -> Answers:
    """Status and objective of the default method and of every method on every file."""
    methods = list(checkout.listed("methods"))
    names, commands = [], []
    for file in wanted.cases:
        data = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or "problem" not in data:
            continue
        for method in ("default", *(name for problem, name in methods if problem == data["problem"])):
            chosen = [] if method == "default" else ["--method", method]
            names.append(f"{file.name} {method}")
            commands.append(["solve", str(file), "--json", "--time-limit", "60", *chosen])
    found: Answers = {}
    for name, (status, text) in zip(names, checkout.run(*commands), strict=True):
        answer = json.loads(text) if text.strip().startswith("{") else {}
        found[name] = [status, answer.get("status"), answer.get("objective")]
    return found


def benched(checkout: Checkout, wanted: Wanted) -> Answers:
    """Status and objective of every run of ``bench quick``, and the processor time of each seed's."""
    found: Answers = {}
    for seed in wanted.seeds:
        folder = checkout.folder / f"bench-{seed}"
        before = _processor()
        size = ["--scale", str(wanted.scale), "--workers", "1"]
        checkout.run(["bench", "quick", "--seed", str(seed), *size, "--out", str(folder)])
        print(f"bench quick, seed {seed}: {_processor() - before:.1f} s of processor", flush=True)
        checkout.run(["report", str(folder), "--csv", str(folder / "rows.csv")])
        with (folder / "rows.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                name = " ".join(row[part] for part in ("problem", "batch", "instance", "method", "settings"))
                found[f"seed {seed}: {name}"] = [row["status"], row["objective"]]
    return found


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verified(checkout: Checkout, wanted: Wanted) -> Answers:
    """Verdict, counts and worst ratio of every row of the ledger."""
    found: Answers = {}
    for seed in wanted.seeds:
        folder = checkout.folder / f"verify-{seed}"
        size = ["--instances", str(wanted.instances), "--seed", str(seed)]
        command = ["verify", *size, "--json", "--out", str(folder)]
        for row in json.loads(checkout.run(command)[0][1])["guarantees"]:
            kept = ("verdict", "held", "refuted", "not_applicable", "tightness", "worst_ratio")
            found[f"seed {seed}: {row['id']}"] = [row[part] for part in kept]
    return found


PARTS: Mapping[str, Callable[[Checkout, Wanted], Answers]] = {
    "generate": generated,
    "solve": solved,
    "bench": benched,
    "verify": verified,
}


def compare(old: Path, new: Path) -> Iterator[str]:
    """What the records of two checkouts differ in."""
    for part in PARTS:
        files = [folder / f"{part}.json" for folder in (old, new)]
        if not all(file.exists() for file in files):
            continue
        before, after = (json.loads(file.read_text(encoding="utf-8")) for file in files)
        both = sorted(before.keys() & after.keys())
        differ = [name for name in both if before[name] != after[name]]
        yield (
            f"{part}: {len(both)} in both, {len(differ)} differ, "
            f"only old {len(before.keys() - after.keys())}, only new {len(after.keys() - before.keys())}"
        )
        yield from (f"  {name}: {before[name]} -> {after[name]}" for name in differ)
        yield from (f"  only old: {name}" for name in sorted(before.keys() - after.keys()))


def _cases(folders: Iterable[str]) -> list[Path]:
    named = {file.name: file.resolve() for folder in folders for file in Path(folder).glob("*.json")}
    return [named[name] for name in sorted(named)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("python")
    record.add_argument("--out", required=True)
    record.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    record.add_argument("--seed", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    record.add_argument("--cases", nargs="+", default=[])
    record.add_argument("--scale", type=float, default=1.0)
    record.add_argument("--instances", type=int, default=50)
    two = commands.add_parser("compare")
    two.add_argument("old")
    two.add_argument("new")
    chosen = parser.parse_args()
    if chosen.command == "compare":
        sys.stdout.writelines(f"{line}\n" for line in compare(Path(chosen.old), Path(chosen.new)))
        return
    folder = Path(chosen.out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for part in chosen.part:
        wanted = Wanted(chosen.seed, _cases(chosen.cases), chosen.scale, chosen.instances)
        answers = PARTS[part](Checkout(chosen.python, folder), wanted)
        (folder / f"{part}.json").write_text(json.dumps(answers, indent=0), encoding="utf-8")
        print(f"{part}: {len(answers)} answers", flush=True)


if __name__ == "__main__":
    main()
