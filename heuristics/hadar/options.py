"""What ``--set`` accepts for the algorithms of hadar; loads none of them."""

from __future__ import annotations

from schedgap.heuristics.common.run import Option

DELAY = Option(float, 0.0, "time lost when a job's devices change (unit of slot_length)", minimum=0, maximum=1e9)

ONLINE = {
    "eta": Option(
        str, "horizon", "scaling factor of the printed U_min: with T or without", choices=("horizon", "printed")
    ),
    "price": Option(str, "early", "exponent gamma/(c-w+1) or gamma/c", choices=("early", "printed")),
    "umin": Option(str, "direct", "U_min = u/(4 T C), or eq. (7)", choices=("direct", "printed")),
    "restart_delay": DELAY,
    "grid": Option(int, 4096, "most progress states of a job; beyond it is not exact", minimum=16, maximum=100_000),
}
ROUNDS = {
    "payoff": Option(
        str, "density", "utility over the rounds needed, or the whole utility", choices=("density", "literal")
    ),
    "communication": Option(
        float, 0.0, "cost of an allocation on several machines, in units of payoff", minimum=0, maximum=1e12
    ),
    "restart_delay": DELAY,
    "preempt": Option(bool, True, "reconsider all jobs in every round, or only waiting ones when jobs change"),
    "dp_jobs": Option(int, 8, "up to so many jobs by recursion, beyond greedily", minimum=0, maximum=16),
}
HADARE = {
    "copies": Option(int, None, "copies of each job; the number of machines where not given", minimum=1, maximum=10**6),
    "throughput": Option(
        str, "given", "the instance's rates, or eq. (10) refined by observation", choices=("given", "estimated")
    ),
}
GAVEL = {
    "policy": Option(str, "max-min", "what the time fractions optimise", choices=("max-min", "max-sum", "makespan")),
    "restart_delay": DELAY,
}
TIRESIAS = {
    "threshold": Option(
        float, 60.0, "device-rounds of service before a job moves to the second queue", minimum=0, exclusive=True
    ),
    "restart_delay": DELAY,
}
YARN_CS = {
    "backfill": Option(bool, False, "jobs behind one that does not fit may start"),
    "restart_delay": DELAY,
}
