"""The gate at the shell: ``PYTHONPATH=tests python -m gate``; exit 1 where any answer is wrong, with the instances."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from gate.answers import GATES
from gate.sweep import GENERATORS, run, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gate", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeats a run; a fresh one where not given")
    parser.add_argument("--problem", choices=GATES, action="append", help="only this one; may be repeated")
    parser.add_argument("--share", type=float, default=1.0, help="of the instances of a whole run")
    parser.add_argument("--generator", choices=GENERATORS, default="tiny")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a folder for what is found; a temporary one where not given")
    parser.add_argument("--first", action="store_true", help="stop at the first fault")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    scratch = asked.out or Path(tempfile.mkdtemp(prefix="gate-"))
    scratch.mkdir(parents=True, exist_ok=True)
    families = GENERATORS[asked.generator]
    counts = {p: max(1, round(asked.share * GATES[p].count)) for p in asked.problem or GATES if p in families}
    print(f"gate: seed {seed}, generator {asked.generator}, instances of faults go to {scratch}", flush=True)
    totals = run(seed, counts, asked.generator, asked.workers, scratch, first=asked.first)
    print(table(totals))
    faults = sum(len(record.faults) for record in totals.values())
    print(f"gate: {sum(r.instances for r in totals.values())} instances, {faults} faults; repeat with --seed {seed}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
