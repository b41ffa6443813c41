"""SJF-BSBF as printed, slot by slot, with every sub-batch tried: what the compiled policy is compared with."""

from __future__ import annotations

import itertools

from oracles.gpu_sharing import divisors, fits, iteration_time, load, progress

from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance


def pair_mean(a: float, n: float, xi_o: float, xi_n: float, share: bool) -> float:
    """Mean completion of both jobs by stepping from one completion to the next."""
    if not share:
        return (a + a + n) / 2
    first = min(xi_o * a, xi_n * n)
    left_o, left_n = a - first / xi_o, n - first / xi_n
    return (first + left_o + first + left_n) / 2


def plain_sjf_bsbf(instance: GpuSharingInstance, ties: list[str] | None = None) -> dict[str, tuple[int, int]]:
    """Start slot and accumulation steps of each job; `ties` receives jobs whose choices are equal but for rounding."""
    jobs = {job.id: job for job in instance.jobs}
    gpus: list[list[str]] = [[] for _ in range(instance.total_gpus)]
    done: dict[str, float] = {}
    steps: dict[str, int] = {}
    start: dict[str, tuple[int, int]] = {}
    finished: set[str] = set()

    def work(name: str, s: int) -> float:
        job = jobs[name]
        return job.iterations * (1 - 1e-9) * iteration_time(job, s) / instance.slot_length

    def smallest(name: str) -> int:
        return next(s for s in divisors(jobs[name].batch_size) if fits(instance, [load(jobs[name], s)]))

    def partners(name: str) -> list[str]:
        return sorted({other for here in gpus if name in here for other in here} - {name})

    def pace(name: str, extra: str | None = None) -> float:
        others = partners(name) + ([extra] if extra else [])
        return max([1.0] + [instance.slowdown(name, other) for other in others])

    slot, event = 1, True
    while len(finished) < len(jobs):
        event = event or any(job.arrival == slot for job in instance.jobs)
        if event:
            waiting = [n for n, job in jobs.items() if n not in start and job.arrival <= slot]
            order = {n: i for i, n in enumerate(jobs)}
            for name in sorted(waiting, key=lambda n: (work(n, smallest(n)), order[n])):
                need = jobs[name].gpus
                free = [g for g, here in enumerate(gpus) if not here]
                chosen, used = free[:need], smallest(name)
                if len(free) < need:
                    chosen, used = [], 1
                    single = [g for g, here in enumerate(gpus) if len(here) == 1]
                    if instance.max_jobs_per_gpu == 1 or len(free) + len(single) < need:
                        continue
                    candidates = []
                    for other in sorted({gpus[g][0] for g in single}):
                        best = None
                        for s in divisors(jobs[name].batch_size):
                            if not fits(instance, [load(jobs[name], s), load(jobs[other], steps[other])]):
                                continue
                            a = (work(other, steps[other]) - done[other]) * pace(other)
                            xi_o = pace(other, name) / pace(other)
                            n, xi_n = work(name, s), instance.slowdown(name, other)
                            both, apart = (pair_mean(a, n, xi_o, xi_n, share) for share in (True, False))
                            if abs(both - apart) < 1e-9 * apart and ties is not None:
                                ties.append(name)
                            for share in (True, False):
                                mean = pair_mean(a, n, xi_o, xi_n, share)
                                if best is None or mean < best[0] - 1e-12 * mean:
                                    best = (mean, share, s)
                        if best is not None and best[1]:
                            first = min(g for g in single if gpus[g][0] == other)
                            candidates.append((best[0], first, other, best[2]))
                    means = sorted(mean for mean, *_ in candidates)
                    close = any(0 < b - a < 1e-9 * b for a, b in itertools.pairwise(means))
                    if close and ties is not None:
                        ties.append(name)
                    for _, _, other, s in sorted(candidates):
                        if len(chosen) < need:
                            mine = [g for g in single if gpus[g][0] == other]
                            chosen += mine[: need - len(chosen)]
                            used = max(used, s)
                    chosen += free[: need - len(chosen)]
                    if len(chosen) < need:
                        continue
                for g in chosen:
                    gpus[g].append(name)
                start[name], steps[name], done[name] = (slot, used), used, 0.0
        event = False
        running = [n for n in start if n not in finished]
        ended = []
        for name in running:
            rate = progress(instance, jobs[name], steps[name], [jobs[k] for k in partners(name)])
            done[name] += rate / jobs[name].iterations * work(name, steps[name]) / (1 - 1e-9)
            if done[name] >= work(name, steps[name]) * (1 - 1e-13):
                ended.append(name)
        for name in ended:
            finished.add(name)
            event = True
            for here in gpus:
                if name in here:
                    here.remove(name)
        slot += 1
    return start
