"""The hunt on a toy problem: the search, its limits, shrinking, workers, resuming; and mutations on every problem."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.toy import toy, users, users_raising
from support.work import PATIENCE, wait_until

from schedgap import generate
from schedgap.benchmarks.hunt import run, stretch, work
from schedgap.benchmarks.hunt.edits import duplicated, fitted, removed, with_number
from schedgap.benchmarks.hunt.fields import fields_of, groups_of, patterns_of, value_at
from schedgap.benchmarks.hunt.journal import FILE, Journal
from schedgap.benchmarks.hunt.limits import Space, parse_limits
from schedgap.benchmarks.hunt.mutate import mutated
from schedgap.benchmarks.hunt.result import FOUND, WORST, Hunted, command
from schedgap.benchmarks.hunt.run import hunt
from schedgap.benchmarks.hunt.shrink import roughness, shrunk, size
from schedgap.benchmarks.hunt.starts import starts_of
from schedgap.benchmarks.hunt.target import Judge, Probe, find_target
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import all_problems, load_instance
from schedgap.formulations.common.errors import Disagreement, InputError

TESTS = Path(__file__).parents[1]
SMALL = {"jobs": 5, "machines": 3, "limit": "1000..1000", "evaluations": 400}
"""A toy whose limit is never in the way: its heuristics do not know it."""
SCRIPT = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from support.toy import toy, users
from schedgap.benchmarks.hunt.run import hunt
def slowed(instance, *, seed):
    time.sleep(0.01)
    return users(instance, seed=seed)
if __name__ == "__main__":
    limits = {{"jobs": 4, "machines": 2, "limit": "1000..1000", "evaluations": 200}}
    found = hunt(slowed, problem=toy(), limits=limits, out=Path(sys.argv[1]), resume=True)
    print(found.to_text())
    sys.exit(0 if found.finished else 130)
"""


def _toy(target: str, out: Path, limits: dict[str, Any] | None = None, **more: Any) -> Hunted:
    return hunt(target, problem=toy(), limits=SMALL if limits is None else limits, out=out, **more)


def test_list_scheduling_comes_near_grahams_bound_and_is_shrunk(tmp_path: Path) -> None:
    found = _toy("toy/list", tmp_path)
    assert found.value is not None and found.worst is not None
    # Graham: at most 2 - 1/3 on three machines, reached by 7 jobs; with 5 jobs on 2 machines 3/2 is.
    assert 1.5 - 1e-9 <= found.value <= 5 / 3 + 1e-9
    assert found.worst.value >= 0.99 * found.value
    assert len(found.worst.data["jobs"]) <= len(found.found.data["jobs"])  # type: ignore[union-attr]
    written = json.loads((tmp_path / WORST).read_text())
    assert written["reference_hunt"]["ratio"] == found.worst.value
    assert written["reference_hunt"]["objective"] / written["reference"]["optimum"] == found.worst.value


def test_a_claim_is_refuted_by_a_smallest_instance(tmp_path: Path) -> None:
    found = _toy("toy-false", tmp_path)
    assert found.worst is not None and found.worst.refuted
    # No fewer than three jobs on two machines show that list scheduling is not optimal: 1, 1, 2.
    assert sorted(found.worst.data["jobs"]) == [1, 1, 2] and found.worst.data["machines"] == 2


def test_a_claim_that_holds_is_made_tight(tmp_path: Path) -> None:
    found = _toy("toy-graham", tmp_path, {**SMALL, "machines": 2})
    assert found.worst is not None and not found.worst.refuted
    assert found.value == pytest.approx(1.0)  # 3/2 is reached on two machines


def test_the_search_stops_at_its_goal_and_shrinks_down_to_it(tmp_path: Path) -> None:
    found = _toy("toy/list", tmp_path, {**SMALL, "at_least": 1.2, "evaluations": 10_000})
    assert found.worst is not None and found.worst.value >= 1.2
    assert found.evaluations < 1000


def test_limits_hold_for_everything_that_is_found(tmp_path: Path) -> None:
    limits = {"jobs": 4, "jobs ": 9}
    with pytest.raises(InputError, match=r"unknown limit 'jobs '.*evaluations.*jobs"):
        _toy("toy/list", tmp_path / "a", limits)
    found = _toy("toy/list", tmp_path / "b", {"jobs": 4, "machines": "3..3", "limit": "1000..1000", "evaluations": 200})
    data = found.found.data  # type: ignore[union-attr]
    assert len(data["jobs"]) <= 4 and data["machines"] == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"jobs": 0}, "option jobs: must be at least 1"),
        ({"machines": "x"}, "limit machines: must be a number or low..high, got 'x'"),
        ({"machines": "5..2"}, "must be a number or low..high"),
        ({"machines": "nan"}, "must be a number or low..high"),
        ({"keep": 2}, "option keep: must be at most 1"),
        ({"evaluations": "many"}, "option evaluations: must be int"),
    ],
)
def test_bad_limits_are_one_line(given: dict[str, Any], message: str) -> None:
    target = find_target("toy/list", toy())
    with pytest.raises(InputError, match=message):
        parse_limits(target.problem, target.method, given)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "unknown guarantee 'nothing'"),
        ("rar-ddls/none", "unknown method 'none' for rar-ddls"),
        ("none/ff", "unknown problem 'none'"),
        ("rar-ddls/cp", "is an exact method"),
        ("hadar/hadare", "outside the model"),
        ("000-theorem-1", "not about instances"),
        ("000-theorem-6", "growth"),
    ],
)
def test_what_cannot_be_hunted_is_told(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_target(name)


def test_two_workers_find_what_one_finds(tmp_path: Path) -> None:
    limits = {**SMALL, "machines": 2}
    one = _toy("toy/list", tmp_path / "1", limits)
    two = _toy("toy/list", tmp_path / "2", limits, workers=2)
    assert one.evaluations == two.evaluations
    for name in (FOUND, WORST):
        assert (tmp_path / "1" / name).read_text() == (tmp_path / "2" / name).read_text()
    again = _toy("toy/list", tmp_path / "3", limits)
    other = _toy("toy/list", tmp_path / "4", limits, seed=1)
    assert again.found != other.found


def test_a_new_hunt_goes_beside_one_that_is_there_and_resume_wants_the_same(tmp_path: Path) -> None:
    limits = {**SMALL, "evaluations": 100}
    first = _toy("toy/list", tmp_path / "h", limits)
    second = _toy("toy/list", tmp_path / "h", limits)
    assert (first.folder, second.folder) == (tmp_path / "h", tmp_path / "h-2")
    with pytest.raises(InputError, match="has seed 0, not 1"):
        _toy("toy/list", tmp_path / "h", limits, seed=1, resume=True)
    with pytest.raises(InputError, match="has target 'toy/list', not 'toy/shuffled'"):
        _toy("toy/shuffled", tmp_path / "h", limits, resume=True)
    resumed = _toy("toy/list", tmp_path / "h", limits, resume=True)
    assert (resumed.found, resumed.evaluations) == (first.found, first.evaluations)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_fills_up_is_told_with_the_file(tmp_path: Path) -> None:
    """It was told as JSON that could not be decoded."""
    (tmp_path / "trying-0.json").symlink_to("/dev/full")
    with pytest.raises(InputError) as refused:
        _toy("toy/list", tmp_path)
    assert str(refused.value) == f"{tmp_path / 'trying-0.json'}: cannot be written: No space left on device"


def test_a_torn_line_loses_only_itself(tmp_path: Path) -> None:
    journal = Journal(tmp_path / FILE)
    journal.add({"k": 1})
    with journal.path.open("a") as file:
        file.write('{"k": 2, "half')
    journal.add({"k": 3})
    assert [line["k"] for line in journal.lines()] == [1, 3]


def _start(out: Path) -> subprocess.Popen[str]:
    script = out.parent / "script.py"
    script.write_text(SCRIPT.format(tests=str(TESTS)))
    return subprocess.Popen(
        [sys.executable, str(script), str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _wait_for(journal: Path, kind: str, process: subprocess.Popen[str]) -> None:
    """Until the process has written a line of this kind."""
    word = f'"kind":"{kind}"'
    before = journal.read_text().count(word) if journal.exists() else 0
    wait_until(lambda: journal.exists() and journal.read_text().count(word) > before, lambda: process.poll() is None)


def test_killed_at_any_moment_and_resumed_it_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "h"
    for kind in ("found", "walked"):
        process = _start(out)
        _wait_for(out / FILE, kind, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
        before = [line["found"]["value"] for line in Journal(out / FILE).lines() if line["kind"] == "found"]
        assert before
    process = _start(out)
    _wait_for(out / FILE, "walked", process)
    os.kill(process.pid, signal.SIGINT)
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "ratio" in told and "interrupted" in told
    ratio = json.loads((out / FOUND).read_text())["reference_hunt"]["ratio"]
    assert ratio >= max(before)
    process = _start(out)
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "shrunk to" in told
    assert json.loads((out / FOUND).read_text())["reference_hunt"]["ratio"] >= ratio
    limits = {"jobs": 4, "machines": 2, "limit": "1000..1000", "evaluations": 200}
    whole = hunt(users, problem=toy(), limits=limits, out=tmp_path / "w")
    assert whole.worst is not None
    assert json.loads((out / WORST).read_text())["jobs"] == whole.worst.data["jobs"]
    assert json.loads((out / WORST).read_text())["reference_hunt"]["ratio"] == whole.worst.value


def test_shrinking_goes_on_where_it_was_left_and_loses_nothing(tmp_path: Path) -> None:
    limits = {"jobs": 6, "machines": 2, "limit": "1000..1000", "evaluations": 200}
    whole = hunt(users, problem=toy(), limits=limits, out=tmp_path / "h")
    assert whole.worst is not None and whole.found is not None and whole.largest is not None
    assert whole.value == max(whole.worst.value, whole.found.value)
    journal = Journal(tmp_path / "h" / FILE)
    assert any(line["kind"] == "shrunk" for line in journal.lines())
    (tmp_path / "h" / WORST).unlink()  # as if it had been killed just before the file was written
    again = hunt(users, problem=toy(), limits=limits, budget=0.2, resume=True, out=tmp_path / "h")
    assert again.worst is not None
    assert len(json.dumps(again.worst.data)) <= len(json.dumps(whole.worst.data))
    assert json.loads((tmp_path / "h" / WORST).read_text())["reference_hunt"]["ratio"] == again.worst.value


def test_shrinking_that_was_killed_after_any_step_ends_as_if_undisturbed(tmp_path: Path) -> None:
    """Where it went on from the smallest one with the first stage, it ended at another smallest one now and then."""
    ends = set()
    for seed in (1, 4):
        limits = {"jobs": 6, "machines": 2, "limit": "1000..1000", "evaluations": 60}
        whole = hunt(users, problem=toy(), limits=limits, seed=seed, out=tmp_path / f"h{seed}")
        assert whole.worst is not None
        lines = (tmp_path / f"h{seed}" / FILE).read_text().splitlines(keepends=True)
        steps = [number for number, line in enumerate(lines, 1) if '"kind":"shrunk"' in line]
        assert len(steps) > 2
        for number in steps:
            (tmp_path / f"h{seed}" / FILE).write_text("".join(lines[:number]))
            again = hunt(users, problem=toy(), limits=limits, seed=seed, resume=True, out=tmp_path / f"h{seed}")
            assert again.worst is not None
            ends.add(again.worst.data == whole.worst.data)
    assert ends == {True}


@pytest.mark.parametrize("limit", [{"jobs.size": "-5..0"}, {"machines": "0"}])
def test_limits_that_no_instance_meets_are_refused(tmp_path: Path, limit: dict[str, str]) -> None:
    with pytest.raises(InputError, match="limit"):
        hunt("toy/list", problem=toy(), limits=limit, out=tmp_path)


def test_a_callable_of_ones_own(tmp_path: Path) -> None:
    limits = {**SMALL, "evaluations": 200}
    found = hunt(users, problem=toy(), limits=limits, out=tmp_path / "a")
    assert found.value is not None and found.value > 1.2
    with pytest.raises(InputError, match="a callable needs the problem"):
        hunt(users, out=tmp_path / "b")
    with pytest.raises(InputError, match=r"raised KeyError: 'gpus'.*; the instance is in"):
        hunt(users_raising, problem=toy(), limits=limits, out=tmp_path / "c")
    file = next((tmp_path / "c" / "disagreements").glob("*.json"))
    assert "raised" in json.loads(file.read_text())["reference_disagreement"]["message"]


def test_instances_that_show_a_defect_are_kept_and_do_not_count(tmp_path: Path) -> None:
    for name, message in (("broken", "rejected by the checker"), ("raising", "ZeroDivisionError: on purpose")):
        found = hunt(f"toy/{name}", problem=toy(name), limits=SMALL, out=tmp_path / name)
        assert found.found is None and found.defects
        assert all(message in line and "; the instance is in " in line for line in found.defects)
        assert Path(found.defects[0].split("; the instance is in ")[1]).is_file()


def test_a_fault_of_ours_in_a_worker_is_told_with_the_instance(tmp_path: Path, monkeypatch: Any) -> None:
    def faulty(*_: Any) -> None:
        raise TypeError("on purpose")

    monkeypatch.setattr("schedgap.benchmarks.hunt.stretch.mutated", faulty)
    with pytest.raises(Disagreement, match=r"island 0: TypeError: on purpose; the instance is in (.*)$") as raised:
        _toy("toy/list", tmp_path)
    data = json.loads(Path(str(raised.value).rpartition(" ")[2]).read_text())
    assert data["jobs"] and "TypeError: on purpose" in data["reference_disagreement"]["message"]
    assert not list(tmp_path.glob("trying-*"))


def test_what_a_budget_cuts_off_counts(tmp_path: Path, monkeypatch: Any) -> None:
    looks = itertools.count()
    monkeypatch.setattr(stretch, "_late", lambda _: next(looks) >= 2)
    found = hunt("toy/raising", problem=toy("raising"), limits=SMALL, out=tmp_path)
    assert found.evaluations == 2 and found.defects


def test_a_budget_begins_when_everything_is_compiled(tmp_path: Path, monkeypatch: Any) -> None:
    done: list[str] = []
    pool_of = run.pool_of

    def pool_with_a_clock(*arguments: Any, **more: Any) -> Any:
        pool = pool_of(*arguments, **more)
        pool.clock = lambda: done.append("clock") or 0.0
        return pool

    monkeypatch.setattr(work, "warm_once", lambda problem, method, *_: done.append(method.id))
    monkeypatch.setattr(run, "pool_of", pool_with_a_clock)
    _toy("toy/list", tmp_path, {**SMALL, "evaluations": 8}, budget=1.0)
    assert done[:3] == ["list", "brute", "clock"] and set(done[3:]) == {"clock"}


def test_a_budget_leaves_time_to_judge(tmp_path: Path) -> None:
    """Deadlines of instances are on the clock that the budget is on: with another one nothing counted any more."""
    found = _toy("toy/list", tmp_path, {**SMALL, "evaluations": 8}, budget=600.0)
    assert found.value is not None and found.value >= 1


def test_a_clock_that_is_set_back_does_not_prolong_a_hunt(tmp_path: Path, monkeypatch: Any) -> None:
    """A budget of seconds lasted until the clock of the wall had come as far again."""
    looks = itertools.count()

    def an_hour_back_at_each_look() -> float:
        look = next(looks)
        assert look < 3000, "the hunt goes on after its budget"
        return 1.7e9 - 3600 * look

    monkeypatch.setattr(time, "time", an_hour_back_at_each_look)
    assert _toy("toy/list", tmp_path, {"jobs": 5, "machines": 3, "limit": "1000..1000"}, budget=0.1).finished


def test_a_process_that_leaves_does_so_with_its_workers_locks() -> None:
    script = "\n".join(
        [
            "from schedgap.benchmarks.sweep.pool import Pool",
            "from schedgap.interrupt import leave",
            "with Pool(abs, 1) as pool:",
            "    pool.run([1], lambda *_: None, lambda *_: None)",
            "    leave(0)",
        ]
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert "leaked" not in ran.stderr, ran.stderr


def test_the_instance_that_a_worker_died_of_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        Disagreement, match=r"island \d: its worker process died 2 times .*the instance is in "
    ) as raised:
        hunt("toy/deadly", problem=toy("deadly"), limits=SMALL, out=tmp_path, workers=2)
    file = str(raised.value).partition("the instance is in ")[2].partition(";")[0]
    assert json.loads(Path(file).read_text())["jobs"]


def test_nothing_that_counts_is_said(tmp_path: Path) -> None:
    found = hunt("toy/nothing", problem=toy("nothing"), limits={**SMALL, "evaluations": 100}, out=tmp_path)
    assert found.found is None and "nothing found that counts" in found.to_text()
    walks = [line["walked"] for line in Journal(tmp_path / FILE).lines() if line["kind"] == "walked"]
    assert found.evaluations == sum(walk["evaluations"] for walk in walks) >= 200, "presets and families"


@pytest.mark.parametrize("kept", [1.0, 0.7, 0.4])
def test_a_hunt_that_left_the_presets_goes_on_where_it_was(tmp_path: Path, kept: float) -> None:
    """Rounds of the families have the same numbers as those of the presets."""
    limits = {**SMALL, "evaluations": 100}
    whole = hunt("toy/nothing", problem=toy("nothing"), limits=limits, out=tmp_path)
    lines = (tmp_path / FILE).read_text().splitlines(keepends=True)
    (tmp_path / FILE).write_text("".join(lines[: round(kept * len(lines))]))
    again = hunt("toy/nothing", problem=toy("nothing"), limits=limits, out=tmp_path, resume=True)
    assert again.evaluations == whole.evaluations
    assert sorted((tmp_path / FILE).read_text().splitlines(keepends=True)) == sorted(lines)


@pytest.mark.parametrize("problem", all_problems().values(), ids=lambda p: p.id)
def test_mutations_stay_in_the_space_and_are_mostly_valid(problem: Any) -> None:
    heuristic = next(m for m in problem.methods if m.kind == "heuristic" and not m.outside_model)
    target = find_target(f"{problem.id}/{heuristic.id}", problem)
    entries = {"comm-contention": "tasks", "gang-placement": "nodes"}.get(problem.id, "jobs")
    starts = starts_of(target, parse_limits(problem, None, {entries: 4}))
    rng = np.random.default_rng(1)
    data, _ = starts.draw(rng)
    other, _ = starts.draw(rng)
    tried = valid = 0
    for _ in range(300):
        changed = mutated(data, starts.space, rng, other)
        if changed is None:
            continue
        tried += 1
        assert len(changed[entries]) <= 4
        for spot in fields_of(starts.space.schema, changed):
            value = value_at(changed, spot.path)
            if spot.kind is float and value:
                low, high = starts.space.range_of(spot)
                assert low <= value <= high or value == value_at(data, spot.path)
        try:
            problem.instance_class.parse(changed)
        except InputError:
            continue
        valid += 1
        data = changed
    assert tried > 200 and valid > 0.5 * tried


@pytest.mark.parametrize("problem", all_problems().values(), ids=lambda p: p.id)
def test_every_number_of_an_instance_is_known_to_its_schema(problem: Any) -> None:
    schema = problem.instance_class.model_json_schema()
    data = next(iter(workload_of(problem).trials().values()))(0)[0].to_dict()
    seen = {spot.path for spot in fields_of(schema, data)}

    def numbers(node: Any, path: tuple[Any, ...]) -> set[tuple[Any, ...]]:
        if isinstance(node, dict):
            return {p for key, below in node.items() for p in numbers(below, (*path, key))}
        if isinstance(node, list):
            return {p for k, below in enumerate(node) for p in numbers(below, (*path, k))}
        return {path} if isinstance(node, int | float) else set()

    assert numbers(data, ()) <= seen
    assert {spot.pattern for spot in fields_of(schema, data)} <= set(patterns_of(schema))


def test_what_names_an_entry_goes_and_comes_with_it() -> None:
    _, instance = load_instance(TESTS / "data" / "gpu-sharing-share_00.json")
    data = instance.to_dict()
    schema = type(instance).model_json_schema()
    jobs = next(g for g in groups_of(schema, data) if g.pattern == "jobs")
    first = data["jobs"][0]["id"]
    less = removed(data, jobs, 0)
    assert first not in less["interference"] and all(first not in row for row in less["interference"].values())
    type(instance).parse(less)
    more = duplicated(data, jobs, data["jobs"][0], first)
    new = more["jobs"][-1]["id"]
    assert new != first and more["interference"].get(new) is not None
    type(instance).parse(more)
    assert len(data["jobs"]) == len(less["jobs"]) + 1 == len(more["jobs"]) - 1


def test_a_link_goes_with_its_server_and_lists_follow_the_horizon() -> None:
    schema = {
        "properties": {
            "servers": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}},
            "horizon": {"type": "integer"},
        },
        "type": "object",
    }
    data = {
        "servers": [{"id": "a"}, {"id": "b"}],
        "links": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
        "horizon": 3,
        "open": [1, 2, 3],
        "jobs": [{"id": "j", "arrival": 3}],
    }
    servers = next(g for g in groups_of(schema, data) if g.pattern == "servers")
    assert removed(data, servers, 0)["links"] == [{"from": "b", "to": "c"}]
    assert {"from": "a2", "to": "b"} not in data["links"]
    twin = duplicated(data, servers, data["servers"][0], "a")
    assert {"from": twin["servers"][-1]["id"], "to": "b"} in twin["links"]
    spot = next(f for f in fields_of(schema, data) if f.pattern == "horizon")
    shorter = with_number(data, spot, 2)
    assert shorter["open"] == [1, 2] and shorter["jobs"][0]["arrival"] == 2
    assert with_number(data, spot, 5)["open"] == [1, 2, 3, 3, 3]


def test_shrinking_keeps_what_it_is_told_to_keep() -> None:
    schema = toy().instance_class.model_json_schema()
    space = Space(schema, {}, {})
    start = {"problem": "toy", "machines": 7, "jobs": [13, 8, 9, 27, 41], "limit": 1000}

    def tried(data: Any) -> Probe | None:
        return Probe(data, {}, 1.0) if max(data["jobs"]) >= 9 and data["machines"] >= 2 else None

    steps: list[Probe] = []
    small = shrunk(Probe(start, {}, 1.0), space, tried, steps.append)
    assert small.data["jobs"] == [9] and small.data["machines"] == 2
    sizes = [size(step.data, space) for step in steps]
    assert all(a > b for a, b in itertools.pairwise(sizes))
    assert roughness(0) < roughness(1) < roughness(10) < roughness(40) and roughness(0.1) < roughness(0.137)
    assert fitted({**start, "name": "x"}, Space(schema, {}, {"jobs": 2}))["jobs"] == [13, 8]


def test_the_exact_method_is_that_of_the_instance(tmp_path: Path) -> None:
    """Of ddl-cluster another method finds the optimum where placements are not given."""
    target = find_target("ddl-cluster/srsf-1")
    data = generate(target.problem.id, "small", seed=0, jobs=1, iterations=1).to_dict()
    found = Judge(target, 1.0, tmp_path)(data, {})
    assert found is not None and found.value == pytest.approx(1)
    assert command(target, found, Path("found.json")).startswith("schedgap compare found.json --methods placement,")
