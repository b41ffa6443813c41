"""What paper 003 proves about a pair of jobs; the proof is in docs/gpu-sharing.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.heuristics.common.growth import Steps, growth_exponent
from schedgap.heuristics.common.guarantee import (
    READING,
    Case,
    Evaluation,
    Guarantee,
    Measured,
    at_most,
    not_applicable,
)

PAIRS = 200
"""Pairs in one sample: 100 samples of ``verify`` would look at 20,000."""
POINTS = 400
"""Starts between 0 and the partner's end that each pair is tried with."""


def means(left: Floats, new: Floats, slow_running: Floats, slow_new: Floats, kappa: Floats) -> Floats:
    """Mean completion times of pairs whose new job starts at `kappa`; arrays that broadcast.

    Written from the two cases of the theorem; ``formulations.gpu_sharing.pair`` has the scalar form, and a
    test compares the two.
    """
    both = slow_running * (left - kappa)
    running_first = slow_new * new >= both
    first = 2 * kappa + both * (2 - 1 / slow_new) + new
    second = left + kappa + slow_new * new * (2 - 1 / slow_running)
    return np.asarray(np.where(running_first, first, second) / 2)


def random_pairs(seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """(a, n, xi_O, xi_N) of `PAIRS` pairs: a half drawn freely, a half close to a boundary of the rule."""
    rng = np.random.default_rng(seed)
    remaining = np.exp(rng.uniform(-3, 3, PAIRS))
    new = np.exp(rng.uniform(-3, 3, PAIRS))
    slow_running, slow_new = 1 + rng.exponential(0.6, PAIRS), 1 + rng.exponential(0.6, PAIRS)
    slow_running[: PAIRS // 10] = 1.0
    slow_new[PAIRS // 20 : PAIRS // 8] = 1.0
    off = 1 + rng.choice([-1e-3, -1e-7, 0.0, 1e-7, 1e-3], PAIRS)
    quarter, half = slice(PAIRS // 2, 3 * PAIRS // 4), slice(3 * PAIRS // 4, PAIRS)
    slow_running[quarter] = np.maximum(1.0, 2 / (2 - 1 / slow_new[quarter]) * off[quarter])
    bound = new[half] * (slow_new[half] * (2 - 1 / slow_running[half]) - 1)
    remaining[half] = np.maximum(1e-6, bound * off[half])
    return remaining, new, slow_running, slow_new


def _grid(pairs: tuple[Floats, Floats, Floats, Floats]) -> Floats:
    """The smallest mean over the grid and the point where the cases meet."""
    remaining, new, slow_running, slow_new = (column[:, None] for column in pairs)
    starts = remaining * np.linspace(0, 1, POINTS + 1)[None, :]
    switch = np.maximum(0.0, remaining - slow_new * new / slow_running)
    return np.asarray(
        means(remaining, new, slow_running, slow_new, np.concatenate([starts, switch], axis=1)).min(axis=1)
    )


def end_point(seed: int) -> Evaluation:
    """Theorem 1 on a sample of pairs: the better end point is as good as every start of the grid."""
    pairs = random_pairs(seed)
    remaining = pairs[0]
    ends = np.minimum(means(*pairs, np.zeros_like(remaining)), means(*pairs, remaining))
    ratio = ends / _grid(pairs)
    worst = int(np.argmax(ratio))
    return at_most(float(ratio[worst]), 1.0, _words(pairs, worst))


def exact_rule(seed: int) -> Evaluation:
    """The exact rule on a sample of pairs: what it chooses is as good as every start of the grid."""
    pairs = random_pairs(seed)
    remaining, new, slow_running, slow_new = pairs
    share = (slow_running * (2 - 1 / slow_new) < 2) | (remaining > new * (slow_new * (2 - 1 / slow_running) - 1))
    ratio = means(*pairs, np.where(share, 0.0, remaining)) / _grid(pairs)
    worst = int(np.argmax(ratio))
    return at_most(float(ratio[worst]), 1.0, _words(pairs, worst))


def _words(pairs: tuple[Floats, Floats, Floats, Floats], place: int) -> str:
    a, n, slow_running, slow_new = (float(column[place]) for column in pairs)
    return f"{PAIRS} pairs; worst a = {a:.6g}, n = {n:.6g}, xi_O = {slow_running:.6g}, xi_N = {slow_new:.6g}"


OCCUPIED = (16, 32, 64, 128, 256, 512)
"""GPUs that hold one job."""
BATCHES = (4, 16, 64, 256, 1024, 4096)
"""Batch sizes B of the new job."""


def choose_literally(
    remaining: Floats,  # time left of the job on each GPU that holds one
    slow_running: Floats,
    slow_new: Floats,
    solo: float,  # time of the new job alone with its whole batch
    batch: int,
    steps: Steps,
) -> list[int]:
    """Lines 10 to 14 of Algorithm 1 with Algorithm 2 inside: the GPUs by the mean completion of the pair.

    A sub-batch of b takes B/b steps to accumulate, each with an overhead of a hundredth of the batch's time.
    """
    sizes = [2**k for k in range(batch.bit_length())]
    best = {}
    for gpu in range(len(remaining)):
        pair = remaining[gpu], slow_running[gpu], slow_new[gpu]
        best[gpu] = min(_better_end(solo * (1 + 0.01 * batch / size), *pair) for size in steps.scan(sizes))
    return steps.sort(best, key=best.__getitem__)


def _better_end(new: float, left: float, slow_running: float, slow_new: float) -> float:
    """The smaller mean completion time of Theorem 1's two end points."""
    pair = np.asarray(left), np.asarray(new), np.asarray(slow_running), np.asarray(slow_new)
    return float(means(*pair, np.array([0.0, left])).min())


def sharing_growth(seed: int) -> Measured:
    """Steps of a decision of SJF-BSBF over the GPUs that hold one job, and over the batch size."""

    def counted(occupied: int, batch: int) -> int:
        steps = Steps()
        rng = np.random.default_rng([seed, occupied, batch])
        remaining = np.exp(rng.uniform(-2, 2, occupied))
        slow_running, slow_new = 1 + rng.exponential(0.6, (2, occupied))
        choose_literally(remaining, slow_running, slow_new, 1.0, batch, steps)
        return steps.count

    wide = [counted(n, 64) for n in OCCUPIED]
    fine = [counted(64, batch) for batch in BATCHES]
    values = {
        "exponent_gpus": growth_exponent([n * (6 + math.log2(n)) for n in OCCUPIED], wide),
        "exponent_batch": growth_exponent([math.log2(batch) + 6 for batch in BATCHES], fine),
        "exponent_batch_alone": growth_exponent(BATCHES, fine),
    }
    return Measured(
        values,
        f"steps grow with exponent {values['exponent_gpus']:.2f} in n (log B + log n) over n, "
        f"{values['exponent_batch']:.2f} over B (in B itself {values['exponent_batch_alone']:.2f})",
    )


def _about_pairs(_: Case) -> Evaluation:
    return not_applicable("the claim is about pairs of jobs in continuous time")


_ASSUMPTIONS = "one running and one new job on the same GPUs, xi >= 1, continuous time, the new job starts in [0, a]"
_HINT: dict[str, Any] = {"families": ()}

GUARANTEES: tuple[Guarantee, ...] = (
    Guarantee(
        id="003-theorem-1",
        problem="gpu-sharing",
        source="paper 003, Theorem 1",
        statement="min over kappa in [0, a] of (T_O + T_N)/2 is attained at kappa = 0 or kappa = a",
        assumptions=_ASSUMPTIONS,
        evaluate=_about_pairs,
        per_sample=(PAIRS, "pairs"),
        sample=end_point,
        hint=_HINT,
    ),
    Guarantee(
        id="003-theorem-1-rule",
        problem="gpu-sharing",
        source="ours",
        statement="share iff xi_O (2 - 1/xi_N) < 2 or a > n (xi_N (2 - 1/xi_O) - 1): the choice is optimal",
        assumptions=_ASSUMPTIONS,
        evaluate=_about_pairs,
        kind="repaired",
        per_sample=(PAIRS, "pairs"),
        sample=exact_rule,
        hint=_HINT,
    ),
    Guarantee(
        id="003-sjf-bsbf-time",
        problem="gpu-sharing",
        source="paper 003, section V-B4: time complexity of SJF-BSBF",
        statement="a waiting job is decided about in O(n log B + n log n), n GPUs with one job, B its batch size",
        assumptions="the formulas are missing in the text at hand: the steps are those that its words name",
        evaluate=lambda _: not_applicable("about growth: measured on states of its own"),
        kind=READING,
        measure=sharing_growth,
    ),
)
"""Its rows of the ledger."""
