"""What the figures of paper 002 share: schedulers, metrics, the two workloads."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Choice, Metric, Series

_DELAY = {"restart_delay": 10.0}
HADAR = Series("Hadar", "hadar-rounds", {**_DELAY, "payoff": "literal"})
GAVEL = Series("Gavel", "gavel", _DELAY)
BESIDE = (
    Series("Hadar, payoff as density", "hadar-rounds", {**_DELAY, "payoff": "density"}, beside=True),
    Series("Gavel, max-sum", "gavel", {**_DELAY, "policy": "max-sum"}, beside=True),
    Series("Gavel, makespan", "gavel", {**_DELAY, "policy": "makespan"}, beside=True),
)
"""The second readings, drawn beside the first."""
PAYOFF = Choice("payoff as density", methods={"Hadar": {"payoff": "density"}})
POLICIES = tuple(Choice(f"Gavel {name}", methods={"Gavel": {"policy": name}}) for name in ("max-sum", "makespan"))
TIRESIAS = Series("Tiresias", "tiresias", _DELAY)
YARN = Series("YARN-CS", "yarn-cs", _DELAY)

TTD = Metric("ttd", "TTD", "h", 1 / 3600)
MEDIAN = Metric("median", "median JCT", "h", 1 / 3600)
GRU = Metric("gru", "mean GRU", "%", 100.0)
CRU = Metric("cru", "CRU", "%", 100.0)
HELD = Metric("held", "devices held", "%", 100.0)
CHANGES = Metric("changes", "rounds with a change", "%", 100.0)
CURVE = Metric("jct", "time", "h", 1 / 3600)

TRACE = {"horizon": 1500, "hours_scale": 0.1}
SECONDS = (
    PAYOFF,
    *POLICIES,
    Choice(
        "Tiresias 600, YARN-CS backfills",
        methods={
            "Tiresias": {"threshold": 600.0},
            "YARN-CS": {"backfill": True},
        },
    ),
    Choice("hours x 0.05", {"hours_scale": 0.05}),
    Choice("hours x 0.17", {"hours_scale": 0.17, "horizon": 3000}),
)
LEFT_OPEN = """Open: Gavel's policy (max-min; second choices max-sum and makespan), Tiresias' threshold (60
device-rounds; second choice 600), backfilling of YARN-CS (none; second choice with). Algorithm 2's payoff is the whole
utility, as printed; second choice: the utility over the rounds needed (density). As printed the workload cannot end in
40 hours on 60 devices: its GPU-hours are scaled by 0.1, over 1,500 rounds of 6 minutes (second choices: 0.05; 0.17 over
3,000). Ten seconds are lost whenever devices change. At most 20 draws: they take 20 minutes of a processor."""
