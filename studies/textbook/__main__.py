"""Textbook bounds and sharpened ones, tried by ``schedgap.claims`` and by hypothesis alone.

``python -m studies.textbook`` prints the table of ``docs/claims.md``: hypothesis gets, for each sharpened bound,
the processor seconds that the claim took, and is told the share as its target.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator

import hypothesis

from studies.textbook.bounds import BOUNDS, Bound
from studies.textbook.machines import Instance


@contextlib.contextmanager
def _processor_seconds(seconds: float) -> Iterator[None]:
    """Interrupt what runs inside after so many processor seconds.

    The optimiser of hypothesis climbs on what it has cached without a call of the test, for set cover without end, so
    a look at the time in the test does not stop it.
    """
    over = False

    def stop(*_: object) -> None:
        nonlocal over
        over = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.05)  # again: an interrupt in a callback of the interpreter is lost
    try:
        yield
    except BaseException:  # its own clean-up may fail on the way out
        if not over:
            raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def by_hypothesis(bound: Bound, seconds: float, seed: int, target: bool) -> tuple[bool, int, float]:
    """Whether hypothesis refutes the sharpened claim within so many processor seconds; instances, seconds.

    Its shrinking is not counted: it ends at the first counterexample.
    """
    exact, heuristic = bound.sharpened
    began, tried, refuted = time.process_time(), 0, False

    def over() -> bool:
        return refuted or time.process_time() - began >= seconds

    while not over():

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=2000,
            database=None,
            deadline=None,
            phases=[hypothesis.Phase.generate, hypothesis.Phase.target],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(bound.strategy)
        def claim(instance: Instance) -> None:
            nonlocal tried, refuted
            if over():
                return
            tried += 1
            value, best = heuristic(instance), exact(instance)
            if best is None:
                return
            left, right = (value, best) if bound.sense == "min" else (best, value)
            limit = bound.sharper * right + bound.plus_sharper
            if target:
                hypothesis.target(float(left) - float(limit))
            refuted = left > limit * (1 + 1e-9)

        with _processor_seconds(max(1e-3, seconds - (time.process_time() - began))):
            claim()
        seed += 1000
    return refuted, tried, time.process_time() - began


def main(seeds: int = 5) -> None:
    """Print the table: how near each theorem comes to failing, and how often each sharpened claim is refuted."""
    print("| theorem | source | nearest to failing | sharpened: refuted, seconds | hypothesis | with target() |")
    print("|---|---|---|---|---|---|")
    sums = [0.0, 0.0]
    for bound in BOUNDS:
        began = time.process_time()
        power = max(bound.holds(seed=seed).power for seed in range(seeds))
        sums[0] += time.process_time() - began
        spent, refuted = [], 0
        for seed in range(seeds):
            began = time.process_time()
            refuted += bound.fails(seed=seed).refuted
            spent.append(time.process_time() - began)
        sums[1] += sum(spent) / seeds
        plain, aimed = (
            sum(by_hypothesis(bound, spent[seed], seed, target)[0] for seed in range(seeds)) for target in (False, True)
        )
        cells = [bound.name, bound.source, f"{power:.3f}", f"{refuted} of {seeds}, {sum(spent) / seeds:.2f}"]
        print("| " + " | ".join([*cells, f"{plain} of {seeds}", f"{aimed} of {seeds}"]) + " |", flush=True)
    print(f"\nAll theorems {sums[0] / seeds:.1f} s a seed, all sharpened claims {sums[1]:.1f} s.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
