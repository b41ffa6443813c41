"""Damaged input, tried on every reader and method: refused in one line or worked on, and nothing else.

``python -m studies.robustness.mutations [--cases N] [--first SEED] [--kinds K,K] [--workers N]``.
Each case is one change of one valid file, made of a seed. Wrong are: an exception other than an InputError, a message
of more than one line, a process that dies, more than five processor seconds, and nonsense that is accepted (a wrong
type, a text that is no JSON, numbers that are not finite, a damaged store read as if it were whole).
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.instances import figure_of, make_instance, workload_of
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.sweep.pool import Pool
from schedgap.benchmarks.sweep.store import Store
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem, load_instance, method_settings
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Instance, Json, Solution, read_json
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status
from studies.robustness.damage import NUMBERS, TOKENS, change, damage
from studies.robustness.samples import COLUMNS, FILES

SECONDS = 5.0
"""Processor seconds of a case that count as a hang."""
ALLOWED = 90.0
"""Seconds of the wall clock after which its process is ended."""
SEEDS = 6
"""Instances of a problem's first preset that cases are made of."""
CERTIFIED = ("hadar", "g-vne", "comm-contention")
"""Problems whose certificates are damaged."""
NETWORKS = {
    "gml": "graph [\n node [\n id 0\n label \"a\"\n ]\n node [\n id 1\n label \"b\"\n ]\n node [\n id 2\n ]\n"
    " edge [\n source 0\n target 1\n bandwidth 3\n ]\n edge [\n source 1\n target 2\n bandwidth 2\n ]\n]\n",
    "clos": "ip,DSW,PSW,ASW\nh0,d0,p0,a0\nh1,d0,p0,a0\nh2,d0,p1,a1\n",
}  # fmt: skip


@dataclass(frozen=True)
class CaseOutcome:
    """What became of a case: refused, worked on, or wrong; `detail` is the message."""

    kind: str
    seed: int
    verdict: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether it must not be."""
        return self.verdict not in ("refused", "accepted")


class WrongError(Exception):
    """Nonsense was accepted."""


@functools.cache
def base(problem: str, seed: int) -> Instance:
    """A valid instance."""
    desk = find_problem(problem)
    return make_instance(desk, workload_of(desk).presets[0].id, seed)


@functools.cache
def solved(problem: str, seed: int) -> Solution | None:
    """A valid solution of it."""
    desk = find_problem(problem)
    for method in desk.heuristics():
        if not method.outside_model:
            result = run_method(desk, base(problem, seed), method, SolveOptions(seed=0))
            if result.solution is not None:
                return result.solution
    return None


def _pick(rng: random.Random) -> tuple[Problem, Instance, str, int]:
    name, seed = rng.choice(list(all_problems())), rng.randrange(SEEDS)
    return find_problem(name), base(name, seed), name, seed


def _mutant(rng: random.Random) -> tuple[Problem, Instance]:
    """An instance read from a changed file."""
    _, instance, _, _ = _pick(rng)
    data, retyped = change(instance.to_dict(), rng)
    desk, read = load_instance("file.json", json.dumps(data))
    if retyped and read.content_hash() != instance.content_hash() and read.to_dict() != _without_none(data):
        raise WrongError(f"a value of another type is taken: {json.dumps(data)[:500]}")
    if desk.instance_class.parse(read.to_dict()) != read:
        raise WrongError("what is written is not what was read")
    return desk, read


def _without_none(data: Json) -> Json:
    if isinstance(data, dict):
        return {key: _without_none(value) for key, value in data.items() if value is not None}
    return [_without_none(value) for value in data] if isinstance(data, list) else data


def try_instance(rng: random.Random) -> None:
    """Read a changed instance; bound it where it is taken."""
    desk, read = _mutant(rng)
    desk.model_size(read)
    desk.bound(read)


def try_text(rng: random.Random) -> None:
    """Read a damaged text."""
    _, instance, _, _ = _pick(rng)
    text = damage(instance.to_json(indent=rng.choice((None, 1))), rng)
    read = load_instance("file.json", text)[1]
    json.loads(text, parse_constant=lambda name: _refuse(name))
    read.to_json()


def _refuse(name: str) -> Json:
    raise WrongError(f"{name} is taken")


def try_solution(rng: random.Random) -> None:
    """Check a changed solution."""
    desk, instance, name, seed = _pick(rng)
    solution = solved(name, seed)
    if solution is None:
        return
    data, retyped = change(solution, rng)
    report = desk.check(instance, read_json("solution.json", json.dumps(data)))
    if retyped and report.feasible and data != json.loads(json.dumps(solution)):
        raise WrongError(f"a solution with a value of another type is feasible: {json.dumps(data)[:500]}")


def try_method(rng: random.Random) -> None:
    """Solve a changed instance by one of its problem's methods."""
    desk, read = _mutant(rng)
    method = rng.choice(desk.methods)
    options = SolveOptions(deadline=Deadline.after(1.0), threads=1, work_limit=0.5, memory_limit=2 * 10**9)
    with tempfile.TemporaryDirectory() as folder:
        result = run_method(desk, read, method, options, disagreements=Path(folder))
    if result.status is Status.ERROR:
        raise WrongError(f"{method.id}: {result.info}")


def try_settings(rng: random.Random) -> None:
    """Values of options, as text."""
    desk, _, _, _ = _pick(rng)
    method = rng.choice(desk.methods)
    preset = rng.choice(workload_of(desk).presets)
    text = str(rng.choice((*NUMBERS, *TOKENS, "", "yes", "-", "\n")))
    if rng.random() < 0.5 and method.kind is not Kind.ENGINE:
        method_settings(method, {rng.choice([*method.options, "none"]): text})
    else:
        name = rng.choice([*preset.options, "none"])
        if text not in map(str, (10**9, 10**9 + 1, 1e9)):  # what may be that large makes an instance that large
            make_instance(desk, preset.id, 0, {name: text})


def try_trace(rng: random.Random) -> None:
    """Import a damaged trace."""
    kind = rng.choice(sorted(FILES))
    problem = rng.choice(("rar-ddls", "hadar", "gpu-sharing", "ddl-cluster"))
    settings = COLUMNS if kind == "csv" else {}
    _import(problem, kind.removesuffix("-log"), damage(FILES[kind], rng), settings)


def try_network(rng: random.Random) -> None:
    """Import a damaged network."""
    kind = rng.choice(sorted(NETWORKS))
    _import(rng.choice(("g-vne", "ddljs")), kind, damage(NETWORKS[kind], rng), {"jobs": 2})


def _import(problem: str, form: str, text: str, settings: Mapping[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        desk = find_problem(problem)
        instance, messages = import_instance(desk, form, [path], settings=settings)
    if any(len(message.splitlines()) > 1 for message in messages):
        raise WrongError(f"a message of more than one line: {messages}")
    if desk.instance_class.parse(instance.to_dict()) != instance:
        raise WrongError("what is written is not what was imported")


@functools.cache
def _store() -> tuple[bytes, list[str]]:
    """The bytes of a store, and its rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        with Store(path) as store:
            for number in range(20):
                result = Result(Status.FEASIBLE, 1.0 + number, 1.0, {"start": {"j0": number}}, info={"nodes": number})
                store.put(Record("rar-ddls", "cp", {}, number, f"i{number}", key=f"key{number}", result=result))
            rows = [repr(row) for row in store.rows()]
        return path.read_bytes(), rows


def try_store(rng: random.Random) -> None:
    """Read a store with a flipped byte, or a part of it."""
    whole, rows = _store()
    broken = bytearray(whole)
    if rng.random() < 0.9:
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    else:
        del broken[rng.randrange(len(broken)) :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        path.write_bytes(broken)
        with Store(path, read_only=True) as store:
            read = [repr(row) for row in store.rows()]
    if read != rows:
        raise WrongError("a damaged store is read as if it were whole")


@functools.cache
def _certificate(problem: str) -> Json:
    from schedgap.solvers.certificates.make import prove

    desk, instance = find_problem(problem), base(problem, 0)
    result = run_method(desk, instance, desk.default_method(instance), SolveOptions(threads=1, work_limit=5.0))
    assert result.status is Status.OPTIMAL and result.solution is not None
    value = desk.check(instance, result.solution).objective
    assert value is not None
    return prove(instance, Fraction(value), result.solution)


def try_certificate(rng: random.Random) -> None:
    """Check a changed certificate."""
    from schedgap.solvers.certificates.linear import Rejected
    from schedgap.solvers.certificates.make import check

    problem = rng.choice(CERTIFIED)
    certificate = _certificate(problem)
    try:
        check(base(problem, 0), change(certificate, rng)[0])
    except Rejected as error:
        raise InputError(str(error)) from error


def try_figure(rng: random.Random) -> None:
    """Draw a changed solution that the checker can read."""
    desk, instance, name, seed = _pick(rng)
    solution = solved(name, seed)
    if solution is None:
        return
    data = change(solution, rng)[0]
    desk.check(instance, data)
    figure_of(desk)(instance, data)


KINDS: Mapping[str, tuple[int, Callable[[random.Random], None]]] = {
    "instance": (40, try_instance),
    "text": (20, try_text),
    "solution": (20, try_solution),
    "trace": (10, try_trace),
    "network": (3, try_network),
    "settings": (4, try_settings),
    "store": (3, try_store),
    "certificate": (3, try_certificate),
    "method": (2, try_method),
    "figure": (1, try_figure),
}
"""Kinds of input, with how many of a hundred or so cases are of each."""


@functools.cache
def warm() -> None:
    """Compile and make what cases are made of."""
    for name, desk in all_problems().items():
        for method in desk.methods:
            warm_once(desk, method, {})
        for seed in range(SEEDS):
            solved(name, seed)
    for name in CERTIFIED:
        _certificate(name)


def try_case(case: tuple[str, int], timed: bool = True) -> CaseOutcome:
    """One case: its kind and its seed; where its time is of interest, nothing is compiled in it."""
    if timed:
        warm()
    kind, seed = case
    rng = random.Random(zlib.crc32(f"{kind} {seed}".encode()))
    began = time.process_time()
    try:
        KINDS[kind][1](rng)
        verdict, detail = "accepted", ""
    except InputError as error:
        detail = str(error)
        verdict = "refused" if len(detail.splitlines()) == 1 else "a message of more than one line"
    except (WrongError, Disagreement) as error:
        verdict, detail = "nonsense", f"{type(error).__name__}: {error}"
    except Exception:
        verdict, detail = "traceback", traceback.format_exc()
    took = time.process_time() - began
    if took > SECONDS and verdict in ("refused", "accepted"):
        verdict, detail = "hang", f"{took:.1f} processor seconds"
    return CaseOutcome(kind, seed, verdict, detail, took)


def cases(number: int, first: int = 0, kinds: tuple[str, ...] = tuple(KINDS)) -> Iterator[tuple[str, int]]:
    """So many cases, of the kinds in their shares."""
    total = sum(KINDS[kind][0] for kind in kinds)
    for kind in kinds:
        for seed in range(first, first + max(1, number * KINDS[kind][0] // total)):
            yield kind, seed


def main() -> None:
    """Try cases in worker processes; print every wrong one, and counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    longest: dict[str, float] = {}

    def done(case: tuple[str, int], outcome: CaseOutcome) -> None:
        counts[outcome.kind, outcome.verdict] += 1
        longest[outcome.kind] = max(longest.get(outcome.kind, 0.0), outcome.seconds)
        if outcome.wrong:
            print(f"{outcome.kind} {outcome.seed}: {outcome.verdict}\n{outcome.detail}", flush=True)

    def died(case: tuple[str, int], why: str, seconds: float) -> None:
        done(case, CaseOutcome(*case, "abort or hang", why, seconds))

    from studies.robustness.mutations import try_case as tried  # as its processes import it

    with Pool(tried, chosen.workers, lambda _: ALLOWED) as pool:
        pool.run(cases(chosen.cases, chosen.first, tuple(chosen.kinds.split(","))), done, died)
    for (kind, verdict), number in sorted(counts.items()):
        print(f"{kind:<12} {verdict:<10} {number:>7}   (longest {longest[kind]:.2f} s)")


if __name__ == "__main__":
    main()
