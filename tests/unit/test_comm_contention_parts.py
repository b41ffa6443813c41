"""Instance, checker, dynamics, policies, figures, generators and the fit of comm-contention."""

import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.checks import comm_contention as check

from schedgap.benchmarks.figures.comm_contention import rates
from schedgap.benchmarks.instances.comm_contention import random
from schedgap.benchmarks.instances.comm_contention import workload as generators
from schedgap.cli.main import main
from schedgap.formulations.comm_contention.bounds import lower_bound
from schedgap.formulations.comm_contention.dynamics import simulate
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.errors import InputError
from schedgap.heuristics.comm_contention import policies
from schedgap.heuristics.comm_contention.guarantees import trap_ratio
from schedgap.tools.laboratory.papers.contention import Measurement, fit, read_measurements, report
from studies.speed.charts import trap_figure
from studies.speed.comm_contention import trap_ratios

MEASURED = Path(__file__).parents[2] / "tools" / "laboratory" / "measured" / "comm-contention.csv"
"""Mean times of concurrent all-reduces as measured by the authors of paper 001 (github.com/HKBU-HPML/dl-scheduling)."""


def instance(*tasks: tuple[float, float], a: float = 0.0, b: float = 1.0, eta: float = 0.3) -> CommContentionInstance:
    return CommContentionInstance.parse(
        {
            "problem": "comm-contention",
            "link": {"latency": a, "seconds_per_unit": b, "contention_penalty": eta},
            "tasks": [{"id": f"c{j}", "release": r, "size": m} for j, (r, m) in enumerate(tasks)],
        }
    )


def starts(*times: float) -> dict[str, dict[str, float]]:
    return {"start": {f"c{j}": t for j, t in enumerate(times)}}


def test_comm_contention_check_by_hand() -> None:
    # c1 joins at 4; both move at 1/2.3 until c1 is done at 4 + 6.9; then 13 units of c0 are left
    report = check(instance((0, 20), (4, 3)), starts(0, 4))
    assert report.feasible and report.objective == Fraction(154, 10)
    assert report.details["completion"] == {"c0": 23.9, "c1": 10.9}
    assert report.details["shared_volume"] == 3.0 and report.details["most_active"] == 2


def test_comm_contention_latency_does_not_load_the_link() -> None:
    report = check(instance((0, 2), (0, 2), a=2.0), starts(0, 2))
    assert report.details["completion"] == {"c0": 4.0, "c1": 6.0}


def test_comm_contention_an_end_at_a_start_is_exact() -> None:
    sizes = [(0.0, 0.1)] * 10
    report = check(instance(*sizes, b=0.1), starts(*[round(0.01 * k, 2) for k in range(10)]))
    assert report.details["most_active"] == 1
    assert report.objective == Fraction(55, 1000)


def test_comm_contention_early_admission_is_a_violation() -> None:
    report = check(instance((5, 1), (0, 1)), starts(4.5, 0))
    assert [v.constraint for v in report.violations] == ["release"]
    assert report.violations[0].amount == 0.5
    assert check(instance((5, 1), (0, 1)), starts(5 - 1e-10, 0)).feasible


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        ([], "must be a JSON object"),
        ({"start": {"c0": 0}}, 'task "c1" is missing'),
        ({"start": {"c0": 0, "c1": 0, "c2": 1}}, 'the instance has no task "c2"'),
        ({"start": {"c0": 0, "c1": "1"}}, "c1: must be a number"),
        ({"start": {"c0": 0, "c1": True}}, "c1: must be a number"),
        ({"start": {"c0": 0, "c1": float("nan")}}, "start.c1: must be a finite number"),
        ({"start": {"c0": 0, "c1": float("inf")}}, "start.c1: must be a finite number"),
        ({"start": {"c0": 0, "c1": 1}, "stop": {}}, "solution: stop: unknown key"),
        ({}, "solution: start: is missing"),
    ],
)
def test_comm_contention_malformed_solutions(solution: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        check(instance((0, 1), (0, 1)), solution)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("tasks", 0, "size"), 0, "tasks\\[0\\].size"),
        (("tasks", 0, "size"), -1.0, "tasks\\[0\\].size"),
        (("tasks", 1, "release"), -0.5, "tasks\\[1\\].release"),
        (("tasks", 1, "id"), "c0", "already the id"),
        (("tasks", 1, "id"), "", "tasks\\[1\\].id"),
        (("tasks", 0, "weight"), 1, "unknown key"),
        (("tasks",), [], "tasks"),
        (("link", "seconds_per_unit"), 0, "link.seconds_per_unit"),
        (("link", "contention_penalty"), -0.1, "link.contention_penalty"),
        (("link", "latency"), float("inf"), "link.latency"),
    ],
)
def test_comm_contention_bad_instances(path: tuple[object, ...], value: object, words: str) -> None:
    data = instance((0, 1), (0, 1)).to_dict()
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=words) as raised:
        CommContentionInstance.parse(data, "file.json")
    assert "\n" not in str(raised.value)


def test_comm_contention_dynamics_and_checker_agree() -> None:
    rng = np.random.default_rng(7)
    for seed in range(40):
        case = random.small(seed, tasks=int(rng.integers(1, 12)))
        begun = {t.id: t.release + float(rng.choice([0.0, rng.exponential(20)])) for t in case.tasks}
        schedule = simulate(case, begun)
        told = check(case, {"start": begun}).details["completion"]
        for task in case.tasks:
            assert schedule.completion[task.id] == pytest.approx(told[task.id], rel=1e-12)
            moved = sum((g.end - g.begin) * g.rate for g in schedule.gaps if task.id in g.active)
            assert moved == pytest.approx(task.size, rel=1e-9)


def test_comm_contention_optimal_schedules_are_no_better_than_the_bound() -> None:
    calm = instance((0, 4), (1, 5), (2, 6))
    served = check(calm, starts(0, 4, 9))
    assert lower_bound(calm) == pytest.approx(float(served.objective), rel=1e-9)  # nobody smaller arrives
    rng = np.random.default_rng(3)
    for seed in range(30):
        case = random.small(seed, tasks=6)
        begun = {t.id: t.release + float(rng.exponential(10)) for t in case.tasks}
        assert lower_bound(case) <= float(check(case, {"start": begun}).objective)


def test_comm_contention_policies_by_hand() -> None:
    case = instance((0, 20), (4, 3), (4, 2))
    assert policies.srsf_1(case).solution == starts(0, 22, 20)
    # the smaller newcomer is asked first and starts beside c0; c1 when it ends, at 4 + 2 * 2.3
    assert policies.srsf_2(case).solution["start"] == pytest.approx({"c0": 0.0, "c1": 8.6, "c2": 4.0})
    assert policies.srsf_3(case).solution == starts(0, 4, 4)
    assert policies.adadual(case).solution["start"] == pytest.approx({"c0": 0.0, "c1": 8.6, "c2": 4.0})


def test_comm_contention_latency_counts_for_admission() -> None:
    case = instance((0, 1), (0, 1), a=1.0)
    assert policies.srsf_1(case).solution == starts(0, 2)
    assert check(case, policies.srsf_1(case).solution).objective == 3
    assert policies.adadual(instance((0, 10), (0.5, 1), a=1.0)).solution == starts(0, 0.5)


def test_comm_contention_the_queue_stops_at_the_first_refusal() -> None:
    # c1 (size 3) is refused beside c0 (4 left), so c2, which is larger, is not asked either
    case = instance((0, 4), (0.5, 3), (0.5, 3.5))
    assert policies.adadual(case).solution == starts(0, 4, 7)
    equal = instance((0, 2), (0, 2), (0, 2))
    assert policies.srsf_1(equal).solution == starts(0, 2, 4)


def test_comm_contention_adadual_k_is_adadual_beside_one() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        b, eta = float(rng.uniform(0.1, 3)), float(rng.uniform(0, 2))
        left, size = float(rng.uniform(0.1, 10)), float(rng.uniform(0.1, 10))
        assert policies.starts_now(size, [left], b, eta) == (size / left < b / (2 * (b + eta)))
    assert policies.starts_now(1.0, [], 1.0, 0.3)


def test_comm_contention_trap_grows() -> None:
    ratios = {n: trap_ratio(n) for n in (5, 20, 100)}
    assert ratios[20] >= 7.6 and ratios[100] >= 34.7
    assert list(ratios.values()) == sorted(ratios.values())
    rows = trap_ratios(sizes=(5, 20))
    assert rows == [{"tasks": n, "ratio": ratios[n]} for n in (5, 20)]
    line = trap_figure(rows).axes[0].lines[0]
    assert list(line.get_xdata()) == [5, 20] and list(line.get_ydata()) == [ratios[5], ratios[20]]


@pytest.mark.parametrize("name", ["tiny", "small", "bursts", "adadual_trap", "newcomer"])
def test_comm_contention_generators_are_deterministic(name: str) -> None:
    make = getattr(generators, name)
    assert make(4) == make(4)
    assert len({t.id for t in make(4).tasks}) == len(make(4).tasks)
    if name != "adadual_trap":
        assert make(4) != make(5)


def test_comm_contention_figure_draws_every_gap() -> None:
    case = random.small(1, tasks=5)
    solution = policies.srsf_3(case).solution
    figure = rates(case, solution)
    schedule = simulate(case, solution["start"])
    bars = sum(len(gap.active) for gap in schedule.gaps)
    assert len(figure.axes[1].patches) == bars
    shared = sum(len(gap.active) > 1 for gap in schedule.gaps)
    assert len(figure.axes[0].patches) == bars + shared


def test_comm_contention_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, solved, drawn = (str(tmp_path / name) for name in ("i.json", "s.json", "p.svg"))
    assert main(["generate", "comm-contention", "--preset", "tiny", "--seed", "2", "--out", made]) == 0
    assert main(["solve", made, "--out", solved]) == 0
    assert main(["check", made, solved]) == 0
    assert main(["plot", made, solved, "--out", drawn]) == 0
    capsys.readouterr()
    assert main(["solve", made, "--method", "adadual-k", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problem"] == "comm-contention"
    assert main(["solve", made, "--method", "cpsat"]) == 2
    assert "continuous" in capsys.readouterr().err


def test_comm_contention_fit_recovers_a_known_link() -> None:
    rows = [
        Measurement(k, m, 0.01 + k * 0.009 * m + (k - 1) * 0.003 * m)
        for k, m in itertools.product(range(1, 9), (1.0, 10.0, 40.0))
    ]
    found = fit(rows)
    assert (found.latency, found.seconds_per_unit, found.contention_penalty) == pytest.approx((0.01, 0.009, 0.003))
    assert found.spread < 1e-9
    with pytest.raises(InputError, match="at least 3"):
        fit(rows[:2])


def test_comm_contention_fit_of_the_measurements() -> None:
    rows = read_measurements(MEASURED)
    assert len(rows) == 48
    few = fit([row for row in rows if row.active <= 8])
    assert few.seconds_per_unit == pytest.approx(0.009664, rel=1e-3)
    assert few.contention_penalty == pytest.approx(0.003693, rel=1e-3)
    assert few.spread < 0.12 < fit(rows).spread < 0.18
    assert "at most 8" in report(rows)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "must have rows with the columns"),
        ("job_num,msg_size,avg_latency\n1,x,3\n", "line 2: msg_size: must be a number"),
        ("job_num,msg_size,avg_latency\n1,5,0\n", "line 2: avg_latency: must be positive"),
        ("job_num,msg_size,avg_latency\n1.5,5,1\n", "line 2: job_num: must be a whole number"),
    ],
)
def test_comm_contention_bad_measurements(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_measurements(path)
