"""Facts that the models of rar-ddls rest on: rates never rise when a job is added, and the left shift."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import assume, given, settings
from support.checks import rar_ddls as check

from schedgap.formulations.rar_ddls.dynamics import Schedule, simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table

NEVER = 10**9
Drawn = tuple[RarDdlsInstance, dict[str, int], dict[str, dict[str, int]]]


@st.composite
def schedules(draw: st.DrawFn) -> Drawn:
    """An instance with 2 to 6 jobs on 2 to 4 servers, start slots and placements (which may overfill servers)."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    jobs: list[dict[str, Any]] = []
    start: dict[str, int] = {}
    placement: dict[str, dict[str, int]] = {}
    for j in range(draw(st.integers(2, 6))):
        shares = draw(st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)).filter(any))
        jobs.append(
            {
                "id": f"j{j}",
                "gpus": sum(shares),
                "iterations": draw(st.integers(1, 30)),
                "gradient_size": draw(st.sampled_from([0.0, 0.03, 0.1, 0.1125, 0.3])),
                "batch_size": 10,
                "forward_time": draw(st.sampled_from([0.0, 0.001, 0.002])),
                "backward_time": draw(st.sampled_from([0.05, 0.1, 0.125, 0.25, 0.333])),
            }
        )
        start[f"j{j}"] = draw(st.integers(1, 6))
        placement[f"j{j}"] = {f"s{s}": share for s, share in enumerate(shares) if share}
    instance = RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "horizon": 1000,
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": 50.0,
                "contention_scale": draw(st.sampled_from([0.3, 0.5, 1.0])),
                "contention_penalty": draw(st.sampled_from([0.0, 0.2, 1.0])),
                "server_overhead": draw(st.sampled_from([0.0, 0.02])),
            },
            "reduce_speed": 100.0,
            "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
            "jobs": jobs,
        }
    )
    return instance, start, placement


def rates(schedule: Schedule, name: str, until: int) -> list[int]:
    """Iterations per slot of a job, slot by slot."""
    found = []
    for segment in schedule.segments[name]:
        last = until if segment.last is None else min(segment.last, until)
        found += [segment.rate] * (last - segment.first + 1)
    return found


@given(schedules(), st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_adding_a_job_never_raises_a_rate(drawn: Drawn, position: int) -> None:
    instance, start, placement = drawn
    added = instance.jobs[position % len(instance.jobs)].id
    others = {name: slot for name, slot in start.items() if name != added}
    without, whole = simulate(instance, others, placement), simulate(instance, start, placement)
    assert (without.completion.keys() | {added}) == whole.completion.keys()
    for name in others:
        first, second = without.completion[name], whole.completion[name]
        assert (first or NEVER) <= (second or NEVER)
    # While the same jobs are active, slot by slot: until the first completion in either run.
    until = min([slot for slot in (*without.completion.values(), *whole.completion.values()) if slot] + [20])
    for name in others:
        pairs = zip(rates(without, name, until), rates(whole, name, until), strict=False)
        assert all(alone >= together for alone, together in pairs)


@given(schedules(), st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_left_shift_where_nobody_is_slowed_delays_nobody(drawn: Drawn, position: int) -> None:
    instance, start, placement = drawn
    moved = instance.jobs[position % len(instance.jobs)].id
    assume(start[moved] > 1)
    before = simulate(instance, start, placement)
    earlier = start | {moved: start[moved] - 1}
    after = simulate(instance, earlier, placement)
    slot = start[moved] - 1
    table = rate_table(instance)
    active = [n for n, end in before.completion.items() if n != moved and start[n] <= slot <= (end or NEVER)]
    sizes = {job.id: job.gpus for job in instance.jobs}

    def rate(name: str, company: list[str]) -> int:
        mine = [server for server, share in placement[name].items() if share < sizes[name]]
        met = [sum(0 < placement[n].get(server, 0) < sizes[n] for n in company) for server in mine]
        return int(table.rates(instance.job_index[name], len(placement[name]), max(met, default=0)))

    assume(all(rate(name, [*active, moved]) == rate(name, active) for name in active))
    for name in start:
        assert (after.completion[name] or NEVER) <= (before.completion[name] or NEVER)


@given(schedules())
@settings(max_examples=100, deadline=None)
def test_a_ring_inside_one_server_has_a_fixed_duration(drawn: Drawn) -> None:
    instance, start, placement = drawn
    completion = simulate(instance, start, placement).completion
    table = rate_table(instance)
    for j, job in enumerate(instance.jobs):
        if len(placement[job.id]) == 1:
            slots = -(-job.iterations // int(table.rates(j, 1, 1)))
            assert completion[job.id] == start[job.id] + slots - 1


@given(schedules())
@settings(max_examples=100, deadline=None)
def test_checker_and_simulation_agree(drawn: Drawn) -> None:
    instance, start, placement = drawn
    report = check(instance, {"start": start, "placement": placement})
    schedule = simulate(instance, start, placement)
    assert report.details["completion"] == schedule.completion
    assert report.objective == schedule.makespan
