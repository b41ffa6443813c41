"""The checker's replay against the plain form on random instances: `python -m oracles.ddl_cluster_replay 0 1000`."""

from __future__ import annotations

import random
import sys
from typing import Any

from support.ddl_cluster_random import placed_instance

from oracles.ddl_cluster_events import plain_run
from schedgap.formulations.ddl_cluster.audit import audit
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, Log, simulate_plain


def longer(seed: int) -> DdlClusterInstance:
    """2 to 9 jobs of up to 80 iterations; every second time there is not memory for all of them."""
    rng = random.Random(seed)
    jobs, servers, iterations = rng.randint(2, 9), rng.randint(2, 4), rng.choice([2, 10, 30, 80])
    return placed_instance(seed, jobs=jobs, servers=servers, iterations=iterations, tight=seed % 2 == 0)


def compare_runs(first: int, last: int, *, interpreted: bool = True) -> tuple[list[tuple[int, str]], int]:
    """Seeds and policies whose run is not the plain one, and how many cycles were passed over."""
    wrong, skipped = [], 0
    for seed in range(first, last):
        instance = longer(seed)
        given: Any = instance.given
        rng = random.Random(seed)
        release = {job.id: rng.uniform(0.0, 9.0) for job in instance.jobs if rng.random() < 0.2}
        for policy in POLICIES:
            run = simulate_plain(instance, given, policy, release=release, interpreted=interpreted)
            plain = plain_run(instance, given, policy, release)
            if [list(run.finish_ticks), list(run.placed_ticks)] != [plain["finish"], plain["placed"]]:
                wrong.append((seed, policy))
            skipped += run.skipped
    return wrong, skipped


def all_tasks(instance: DdlClusterInstance, log: Log) -> list[list[tuple[int, int]]]:
    """By job and worker, and of its all-reduces, begin and end, those that are passed over too, in order."""
    result = []
    for j, job in enumerate(instance.jobs):
        columns = 2 * job.gpus
        tasks = slice(log.task_base[j], log.task_base[j + 1])
        times = [part[tasks].reshape(-1, columns).T.tolist() for part in (log.start, log.end)]
        messages = slice(log.message_base[j], log.message_base[j + 1])
        links = [part[messages][log.done[messages] >= 0].tolist() for part in (log.admitted, log.done)]
        for begin, end in [*zip(*times, strict=True), links]:
            for _, tick, period, ticks, _ in (row for row in log.jumps.tolist() if row[0] == j):
                expanded = []
                for moments in (begin, end):
                    again = [t for t in moments if tick - period < t <= tick]
                    # what belongs to an iteration that went on then is there as it was in the last repetition
                    again += [t - ticks for t in moments if tick < t <= tick + ticks]
                    expanded.append(sorted({*moments, *(t + n for t in again for n in range(0, ticks + 1, period))}))
                begin, end = expanded
            result.append(list(zip(begin, end, strict=True)))
    return result


def compare_audits(first: int, last: int, *, interpreted: bool = True) -> tuple[list[tuple[int, str]], int]:
    """Seeds and policies where the log by cycles is not the whole one or does not pass, and the cycles left out."""
    wrong, passed_over = [], 0
    for seed in range(first, last):
        instance = longer(seed)
        given: Any = instance.given
        for policy in POLICIES:
            whole = simulate_plain(instance, given, policy, record=True, interpreted=interpreted)
            run = simulate_plain(instance, given, policy, interpreted=interpreted)
            by_cycles = simulate_plain(instance, given, policy, record=True, logged=run, interpreted=interpreted)
            assert whole.log is not None and by_cycles.log is not None and by_cycles.skipped is not None
            same = all_tasks(instance, whole.log) == all_tasks(instance, by_cycles.log)
            if not same or audit(instance, given, policy, by_cycles.log, clock_of(instance).digits):
                wrong.append((seed, policy))
            passed_over += by_cycles.skipped
    return wrong, passed_over


if __name__ == "__main__":
    differing, passed_over = compare_runs(int(sys.argv[1]), int(sys.argv[2]), interpreted="--compiled" not in sys.argv)
    print(f"{passed_over} cycles passed over; runs that differ: {differing or 'none'}")
    faults, left_out = compare_audits(int(sys.argv[1]), int(sys.argv[2]), interpreted="--compiled" not in sys.argv)
    print(f"{left_out} cycles that one audited stands for; logs that differ or do not pass: {faults or 'none'}")
    sys.exit(bool(differing or faults))
