"""What a judged scheduler can reach, tried by `support.probes`: all of one system in one process."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import probes
from support.kernel import kernel_helps

from schedgap.benchmarks.hunt import target
from schedgap.benchmarks.hunt.target import Judge, Target
from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.catalogue.rar_ddls import PROBLEM
from schedgap.catalogue.registry import all_problems, find_method
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.solvers.result import Deadline
from schedgap.tools.evaluation import contained as judge
from schedgap.tools.evaluation import run
from schedgap.tools.evaluation.card import Card
from schedgap.tools.evaluation.contained import Bounds, Contained, Failed
from schedgap.tools.evaluation.drawn import drawn_instances
from schedgap.tools.evaluation.places import readable
from schedgap.tools.library.collection import entries

INSTANCE = make_instance(PROBLEM, "tiny", 0, {"ample": True})
TESTS = Path(probes.__file__).parents[1]


def needed(helps: bool, reason: str) -> None:
    """Skips where the kernel lacks the means, but where the environment says that it has them."""
    if not helps:
        assert not os.environ.get("SCHEDGAP_PROBES_REQUIRED"), reason
        pytest.skip(reason)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The judge's folder, with what a scheduler would like to reach; its own file lies in a folder of it."""
    folder = tmp_path_factory.mktemp("judge")
    probes.lay_out(folder)
    (folder / "code" / "results").mkdir()
    (folder / "code" / "results" / "card.json").write_text('{"optimum": 7}')
    lines = f"from pathlib import Path\nfrom support import probes\nprobes.PROBED = Path({str(folder)!r})\n"
    (folder / "code" / "probing.py").write_text(lines + "scheduler = probes.scheduler\n")
    return folder


def answers(
    place: Path, number: int, guest: str = judge.GUEST, container: str = ""
) -> tuple[dict[str, Any], Contained]:
    """What all probes of a table came to, in a process of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
        patched.setenv("SECRET_TOKEN", "planted")
        patched.setenv("TMPDIR", str(place.parent))
        patched.setattr(judge, "GUEST", guest)
        # Probes that race two threads wait for their turn 20,000 times: minutes on a machine that has much to do.
        bounds = Bounds(seconds=3000.0, warm=False, container=container)
        with Contained(f"{place / 'code' / 'probing.py'}:scheduler", PROBLEM, bounds) as contained:
            found = contained(INSTANCE, seed=number)
    assert found is not None
    assert (place / "victim.txt").read_text() == "as it was" and (place / "code" / "beside.txt").read_text() == ""
    assert {path.name for path in place.iterdir()} == {"victim.txt", "results", "package.zip", "code"}
    return found, contained


@pytest.fixture(scope="module")
def outcomes(place: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """By system: with the kernel's help, and with Python's hook alone."""
    kernel, contained = answers(place, 0)
    machine, _ = answers(place, 1) if contained.isolated else ({"outcomes": {}}, None)
    hook, alone = answers(place, 0, "support.fence_only")
    assert alone.isolated is False
    yield {"kernel": kernel, "machine": machine, "hook": hook}


@pytest.mark.parametrize("name", sorted(probes.PYTHON))
@pytest.mark.parametrize("system", ["kernel", "hook"])
def test_python_code_reaches_nothing(outcomes: dict[str, dict[str, Any]], system: str, name: str) -> None:
    """On every system."""
    assert outcomes[system]["outcomes"][name].startswith("refused")


@pytest.mark.parametrize("name", sorted(probes.KERNEL))
def test_machine_code_reaches_nothing(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    """Where Linux has Landlock and seccomp."""
    needed(bool(outcomes["machine"]["outcomes"]), "the kernel has no Landlock or no seccomp")
    needed(platform.machine() == "x86_64", "numbers of calls are those of x86_64")
    assert outcomes["machine"]["outcomes"][name].startswith("refused")


@pytest.fixture(scope="module")
def blinded(place: Path) -> dict[str, str]:
    """What the probes against the hook come to where there is nothing else."""
    found, _ = answers(place, 2, "support.fence_only")
    told: dict[str, str] = found["outcomes"]
    return told


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the probes come to without a sandbox, below a process of their own, which they may slow or signal."""
    home = tmp_path_factory.mktemp("home")
    line = [sys.executable, "-m", "support.probes", str(tmp_path_factory.mktemp("uncontained"))]
    started = subprocess.run(
        [sys.executable, "-c", f"import subprocess, sys; sys.exit(subprocess.run({line!r}).returncode)"],
        env={**os.environ, "HOME": str(home / "own"), "PYTHONPATH": str(TESTS)},
        capture_output=True,
        check=True,
    )
    found: dict[str, str] = json.loads(started.stdout)
    return found


@pytest.mark.parametrize("name", sorted({*probes.PYTHON, *probes.KERNEL} - probes.BLINDING))
def test_each_probe_works_where_nothing_refuses_it(control: dict[str, str], name: str) -> None:
    """A refusal shows something only then."""
    needed(sys.platform == "linux" and platform.machine() == "x86_64", "calls and files of Linux on x86_64")
    if name in probes.OF_ROOT and os.geteuid() != 0:
        pytest.skip("nobody but root may do it")
    needed(not control[name].startswith("untried"), "this machine has no such thing")
    assert control[name].startswith("worked")


@pytest.mark.parametrize("name", sorted(probes.BLINDING))
def test_what_blinds_the_hook_works_where_nothing_else_refuses_it(blinded: dict[str, str], name: str) -> None:
    """So the kernel's refusal is a refusal, and the hook alone is no more than the docs say."""
    assert blinded[name].startswith("worked")


def test_the_list_has_those_that_nobody_had_tried() -> None:
    """At least twenty, each of which works without a sandbox."""
    page = (TESTS / "support" / "probes.md").read_text(encoding="utf-8")
    table = page[page.index("| probe |") :].partition("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    tried = {*probes.PYTHON, *probes.KERNEL}
    older = set() if "shadow_passwords" in tried else {"shadow_passwords"}
    assert set(listed) - older == probes.NEW <= tried and len(listed) == len(set(listed))
    assert len(listed) >= 20 and f"tries {len(tried | older)} ways out" in page


@pytest.mark.parametrize("system", ["kernel", "hook"])
def test_what_lies_about_tells_no_answer(outcomes: dict[str, dict[str, Any]], system: str) -> None:
    found = outcomes[system]
    assert set(found["seen"]["files"]) <= {"/dev/null", "pipe"}
    assert "SECRET_TOKEN" not in found["seen"]["variables"] and found["seen"]["stdin"] == ""
    assert found["seen"]["modules"] == [] and found["seen"]["open"] == [256, 256]
    told = {key for key in found["instance"] if key in ("name", "note") or key.startswith("reference")}
    assert not any(found["instance"][key] for key in told) and "tiny" not in json.dumps(found["instance"])


def test_the_kernel_helps_where_it_must() -> None:
    needed(kernel_helps("restrict('/tmp', ())", "refuse_calls()"), "the kernel has no Landlock or no seccomp")


@pytest.fixture(scope="module")
def bwrap() -> str:
    program = shutil.which("bwrap") or ""
    runs = program and not subprocess.run([program, "--ro-bind", "/", "/", "--unshare-all", "true"]).returncode
    needed(bool(runs), "bubblewrap is not installed, or may not run here")
    return program


@pytest.mark.parametrize("table", [0, 1])
def test_in_a_container(place: Path, bwrap: str, table: int) -> None:
    """Beside the kernel's help and the hook."""
    found, contained = answers(place, table, container=bwrap)
    assert contained.peak is not None and contained.peak > 20 << 20
    assert {name: said for name, said in found["outcomes"].items() if said.startswith("worked")} == {}


def test_the_container_alone(place: Path, bwrap: str) -> None:
    """It reaches no file, process or network outside; what it does to itself is for the kernel's help and the hook."""
    found, contained = answers(place, 3, "support.container_only", bwrap)
    assert contained.isolated is False and len(found["outcomes"]) == len({*probes.PYTHON, *probes.KERNEL})
    assert {name for name, said in found["outcomes"].items() if said.startswith("worked")} <= probes.OF_ITS_OWN


def test_a_container_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from schedgap.tools.evaluation.places import bubblewrap, contained_by

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        InputError, match=r"^--container: needs bubblewrap \(the program bwrap\), which is not installed"
    ):
        bubblewrap()
    line = contained_by("bwrap", "/own", ("/usr", "/proc/cpuinfo"))
    assert line[0] == "bwrap" and line[-1] == "--" and "--unshare-all" in line and "--die-with-parent" in line
    assert line[line.index("--ro-bind-try") :][:3] == ["--ro-bind-try", "/usr", "/usr"] and "/proc/cpuinfo" not in line
    assert line[line.index("--bind") :][:3] == ["--bind", "/own", "/own"]


def test_what_a_script_imports_from_is_not_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python ~/judge.py` has its folder, a home say, on the path of modules; the scheduler has not."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "code").mkdir()
    scheduler = f"{tmp_path / 'code' / 'mine.py'}:scheduler"
    below = [place for place in readable(scheduler, ()) if Path(place).is_relative_to(tmp_path)]
    assert below == [str(tmp_path / "code")]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert str(tmp_path) in readable(scheduler, ())


def test_no_other_installation_tells_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's Python, whose libraries may be read, may have another schedgap."""
    library = tmp_path / "lib" / "python3.11" / "site-packages" / "schedgap" / "tools" / "library"
    library.mkdir(parents=True)
    (library.parent / "other.py").write_text("")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    places = [place for place in map(Path, readable("mine.py:scheduler", ())) if place.is_relative_to(tmp_path)]
    assert places == [library.parent / "other.py"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"a": [' + b"[]," * 600_000 + b"[]]}", "values, at most 1000000"),
        (b'{"a": ' + b"[" * 33 + b"]" * 33 + b"}", "deeper than 32"),
        (b'{"a": ' + b'{"":' * 100_000 + b"0" + b"}" * 100_000 + b"}", "deeper than 32"),
        (b'{"a": "' + b"[,{" * 400_000 + b'"}', ""),
        (b'{"a\\"[": ' + b"[" * 31 + b"]" * 31 + b"}", ""),
    ],
)
def test_answers_are_bounded_before_they_are_parsed(data: bytes, said: str) -> None:
    assert (said in judge._unbounded(data)) if said else judge._unbounded(data) == ""
    assert bool(json.loads(data) if not said else judge._unbounded(data))


@pytest.mark.parametrize("part", [b'\\"', b'"\\\n', b'"'])
@pytest.mark.parametrize("end", [b"", b"\\"])
def test_a_text_that_never_ends_is_looked_at_once(part: bytes, end: bytes) -> None:
    """Looked at again from each of its quotation marks, 4 MB would take a day."""
    assert judge._unbounded(b'{"a": "' + part * 2_000_000 + end)  # its brace is never closed


def test_a_text_of_a_stranger_is_one_line_that_steers_nothing() -> None:
    assert str(Failed("error", "ValueError: \ud800\x1b]0;x\x07\n")) == "ValueError: \\ud800\\u001b]0;x\\u0007\\n"


def test_what_a_stranger_sends_makes_no_long_message() -> None:
    """A name of 14 MB was one of 84 MB on the card, escaped, for each instance."""
    said = str(InputError("begun " + "\x1b" * 10_000_000 + " ended"))
    assert said.startswith("begun \\u001b") and said.endswith("\\u001b ended") and len(said) < 100_000
    assert str(InputError("a" * 10_000)) == "a" * 10_000


def test_large_answers_are_neither_held_nor_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them were in memory at once: 16 MB of text each, and many times that as values."""
    ids, gpus = [job.id for job in INSTANCE.jobs], sum(server.gpus for server in INSTANCE.servers)
    wrong = {"start": dict.fromkeys(ids, 1), "placement": {name: {INSTANCE.servers[0].id: gpus + 1} for name in ids}}
    monkeypatch.setattr(Contained, "__call__", lambda *_, **__: wrong)
    chosen = [("tiny", 0, INSTANCE)]
    told = []
    with Contained("mine.py:f", PROBLEM) as contained:
        for most in (run.LARGEST_KEPT, 20):
            monkeypatch.setattr(run, "LARGEST_KEPT", most)
            told += run._answers(contained, chosen, Progress(1, None, ""), tmp_path / "rejected")
    assert [(answer.failure, answer.solution) for answer in told] == [("infeasible", None)] * 2
    assert "; see: schedgap check" in told[0].message and told[1].message.endswith("; too large to be kept")
    assert len(list((tmp_path / "rejected").iterdir())) == 2  # of one instance, and the instance


def test_the_card_says_at_its_top_where_the_kernel_does_not_help() -> None:
    card = Card("mine.py:f", PROBLEM, 7, [], isolated=False)
    assert card.headline()[0].startswith("not isolated on this system") and card.to_dict()["isolated"] is False
    assert card.to_text().splitlines()[1] == card.headline()[0]
    assert not any("isolated" in line for line in replace(card, isolated=True).headline())


def test_a_deadline_is_kept_though_a_limit_would_be_later(tmp_path: Path) -> None:
    """As in a hunt whose budget ends while the scheduler works: that instance does not count."""
    bounds = Bounds(seconds=600.0, warm=False)
    with Contained(f"{TESTS / 'support' / 'foreign.py'}:endless", PROBLEM, bounds) as contained:
        with pytest.raises(Failed, match="no answer within"):
            contained(INSTANCE, seed=0, deadline=Deadline.after(3.0))
        judge = Judge(Target(PROBLEM, contained.method()), 0.5, tmp_path, deadline=time.monotonic() + 3.0)
        assert judge(INSTANCE.to_dict(), {}) is None
    assert (judge.lost, judge.defects, list(tmp_path.iterdir())) == ([], [], [])


def test_a_deadline_reaches_the_exact_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []

    def spy(*arguments: Any, **named: Any) -> Any:
        given.append(arguments[3].deadline.remaining())
        return run_method(*arguments, **named)

    monkeypatch.setattr(target, "run_method", spy)
    heuristic = Target(PROBLEM, find_method(PROBLEM, "lpt-colocate"))
    for deadline in (None, time.monotonic() + 1e6):
        assert Judge(heuristic, 0.5, tmp_path, deadline=deadline)._optimum(INSTANCE, None) is not None
    assert given[0] is None and given[1] is not None and 0 < given[1] <= 1e6


@pytest.mark.parametrize("problem", all_problems().values(), ids=lambda problem: problem.id)
def test_no_judged_instance_lies_in_the_library_or_is_made_by_everybody(problem: Any) -> None:
    """The old seeds, which the library was filled from, among them."""
    shipped = {entry.known.hash for entry in entries(problem.id)}
    for seed in (0, 7_777_777_777):
        chosen, fixed = drawn_instances(problem, seed, 1)
        assert {family for family, _, _ in chosen} | set(fixed) == set(workload_of(problem).trials())
        hashes = {instance.content_hash() for _, _, instance in chosen}
        assert not hashes & shipped
    if problem is PROBLEM:
        again, _ = drawn_instances(problem, seed, 1)
        assert {instance.content_hash() for _, _, instance in again} == hashes
