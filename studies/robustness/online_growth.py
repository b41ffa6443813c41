"""How far an adversary drives a policy that may not preempt, by the number of jobs on one GPU.

``python -m studies.robustness.online_growth FOLDER [--tried N] [--seed N] [--jobs N ...]`` writes
the worst instance of each number of jobs, all lengths told, and prints its ratio to a certified bound.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from schedgap.catalogue.registry import find_problem
from schedgap.tools.evaluation.contained import Bounds
from schedgap.tools.evaluation.online import ContainedPolicy, adversary

POLICY = "schedgap.tools.online.policies:Sjf"


def limits(jobs: int) -> dict[str, str]:
    """One GPU, lengths that change up to the square of the number of jobs; a watched job comes after a decision."""
    one = dict.fromkeys(("servers.gpus", "jobs.gpus", "max_jobs_per_gpu"), "1..1")
    most, horizon = jobs * jobs, 3 * jobs * jobs + 2
    numbers = {"jobs.iterations": f"1..{most}", "jobs.arrival": "1..2", "horizon": f"{horizon}..{horizon}"}
    return {"jobs": str(jobs), "servers": "1", **one, **numbers}


def main() -> None:
    """Print a line for each number of jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tried", type=int, default=800)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--jobs", type=int, nargs="+", default=[2, 3, 4, 6, 8, 16])
    given = parser.parse_args()
    for jobs in given.jobs:
        bounds = Bounds(2.0, 2 << 30, warm=False)
        with ContainedPolicy(POLICY, find_problem("gpu-sharing"), bounds, estimates="exact") as policy:
            print(jobs, adversary(policy, given.seed, given.folder / str(jobs), given.tried, limits(jobs)), flush=True)


if __name__ == "__main__":
    main()
