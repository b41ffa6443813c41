"""Paper 000 (SJF-BCO): the four figures of its section 7."""

from __future__ import annotations

from dataclasses import replace

from schedgap.tools.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Metric, Paper, Series
from schedgap.tools.laboratory.draw import bars, lines
from schedgap.tools.laboratory.rules import LeadGrows, Less, Trend, Turns, Value

# What the four figures of paper 000 share: workload, methods, metrics, second choices.

PRINTED = {"nested": True, "xi_1": 0.0005, "xi_2": 0.0005, "least": 50.0}
"""xi_1 = xi_2, and estimated durations from 50 slots on."""
WORKLOAD = {**PRINTED, "servers": 20, "horizon": 1200}
MAKESPAN = Metric("objective", "makespan", "slots")
JCT = Metric("mean_jct", "average JCT", "slots")

SJF_BCO = Series("SJF-BCO", "sjf-bco")
REPAIRED = Series("SJF-BCO+", "sjf-bco+", ours=True, main_only=True)
"""With the pass of infinite theta compared, too."""
BASELINES = (Series("FF", "ff"), Series("LS", "ls"), Series("RAND", "rand"))

ORDER = Choice("same job order", methods={series.label: {"order": "smallest"} for series in BASELINES})
OPEN = (
    Choice("xi_1 = 0.5", {"xi_1": 0.5}),
    Choice("xi_1 = 1", {"xi_1": 1.0}),
    Choice("rho_hat below 50, too", {"least": 0.0}),
)
"""Second choices: rings that contend, and shorter jobs."""


# Figure 4 of paper 000: SJF-BCO against first fit, list scheduling and random placement.

_T = {"T": 1200}
_ALL = (SJF_BCO, *BASELINES)
_SMALL = {"servers": 10}
_FEW = tuple(replace(one, label=f"{one.label}, 10 servers", workload=_SMALL, settings=_T) for one in _ALL)
_ORDER = Choice(
    ORDER.label, methods={**ORDER.methods, **{f"{k}, 10 servers": dict(v) for k, v in ORDER.methods.items()}}
)


def _leads(metric: str, name: str) -> tuple[LeadGrows, ...]:
    return tuple(
        LeadGrows(
            (Value(metric, "SJF-BCO"), Value(metric, one.label)),
            (Value(metric, "SJF-BCO, 10 servers"), Value(metric, f"{one.label}, 10 servers")),
            what=f"{name}: lead of SJF-BCO over {one.label} larger on 10 servers than on 20",
        )
        for one in BASELINES
    )


FIGURE_4 = Item(
    id="figure-4",
    title="Figure 4: policies",
    plots="Bars of the makespan of FF, LS, RAND and SJF-BCO (section 7). The text reads average completion times "
    "off the same figure, so both are drawn.",
    left_open="Open: one draw or several, and the order in which FF, LS and RAND take jobs. Here they take them in "
    "the input order; as a second choice in that of SJF-BCO, fewest GPUs first. T = 1200. Ten servers are the first "
    "ten of the twenty, with the same jobs.",
    problem="rar-ddls",
    preset="paper",
    workload=WORKLOAD,
    series=(
        *(replace(one, settings=_T) for one in (*_ALL, REPAIRED)),
        Series("LPT-colocate", "lpt-colocate", ours=True, main_only=True),
        *_FEW,
    ),
    metrics=(MAKESPAN, JCT, RATIO),
    choices=(_ORDER, *OPEN),
    claims=(
        Claim(
            "SJF-BCO has a smaller makespan than FF, LS and RAND.",
            "section 7, Figure 4",
            tuple(Less(Value("objective", "SJF-BCO"), Value("objective", one.label)) for one in BASELINES),
        ),
        Claim(
            "SJF-BCO has a smaller average JCT than FF, LS and RAND.",
            "section 7, Figure 4",
            tuple(Less(Value("mean_jct", "SJF-BCO"), Value("mean_jct", one.label)) for one in BASELINES),
        ),
        Claim(
            "SJF-BCO's advantage is larger where GPUs are scarce.",
            "section 7, Figure 4",
            (*_leads("objective", "makespan"), *_leads("mean_jct", "average JCT")),
        ),
    ),
    panels=tuple(
        bars(metric, ("SJF-BCO", "FF", "LS", "RAND", "SJF-BCO+", "LPT-colocate")) for metric in (MAKESPAN, JCT, RATIO)
    ),
    seeds=40,
)


# Figure 5 of paper 000: the makespan over kappa, up to which gangs are placed on the whole cluster.

_KAPPAS = (1, 2, 4, 8, 16, 32)

FIGURE_5 = Item(
    id="figure-5",
    title="Figure 5: kappa",
    plots="The makespan of SJF-BCO for kappa from 1 to 32 (section 7); two turning points are marked.",
    left_open="Only kappa = 1, 2, 4, 8, 16 and 32 can differ, since gangs have these sizes. Where the turning "
    "points lie is not in the text. T = 1200.",
    problem="rar-ddls",
    preset="paper",
    workload=WORKLOAD,
    series=tuple(replace(one, settings={"T": 1200}) for one in (SJF_BCO, REPAIRED)),
    axis=Axis("kappa", "kappa", _KAPPAS, of="method", log=True),
    metrics=(MAKESPAN, RATIO),
    choices=OPEN,
    claims=(
        Claim(
            "With growing kappa the makespan falls, then rises, then falls again.",
            "section 7, Figure 5",
            (Turns(tuple(Value("objective", "SJF-BCO", kappa) for kappa in _KAPPAS)),),
        ),
    ),
    panels=(lines(MAKESPAN), lines(RATIO)),
    seeds=40,
)


# Figure 6 of paper 000: the makespan over the number of servers.

_SERVERS = (10, 12, 14, 16, 18, 20)


def _at(series: str, servers: int) -> Value:
    return Value("objective", series, servers)


def _falls_more(other: str) -> LeadGrows:
    """FF's fall is the larger one exactly where the other's lead over FF is larger on few servers than on many."""
    return LeadGrows(
        (_at(other, 20), _at("FF", 20)),
        (_at(other, 10), _at("FF", 10)),
        what=f"FF falls by more from 10 to 20 servers than {other}",
    )


FIGURE_6 = Item(
    id="figure-6",
    title="Figure 6: number of servers",
    plots="The makespan of FF, LS and SJF-BCO over 10 to 20 servers (section 7).",
    left_open="Open: the steps of x (2 here), and whether RAND is drawn (it is here, and not judged for its fall). "
    "T = 1500. The clusters of one draw are nested and their jobs the same.",
    problem="rar-ddls",
    preset="paper",
    workload={**PRINTED, "horizon": 1500},
    series=tuple(replace(one, settings={"T": 1500}) for one in (SJF_BCO, *BASELINES)),
    axis=Axis("servers", "servers", _SERVERS),
    metrics=(MAKESPAN, JCT, RATIO),
    choices=(ORDER, *OPEN),
    claims=(
        Claim(
            "The makespans of SJF-BCO, FF and LS fall with the number of servers.",
            "section 7, Figure 6",
            tuple(Trend(tuple(_at(one, n) for n in _SERVERS)) for one in ("SJF-BCO", "FF", "LS")),
        ),
        Claim(
            "FF's makespan falls the most.",
            "section 7, Figure 6",
            tuple(_falls_more(other) for other in ("SJF-BCO", "LS")),
        ),
    ),
    panels=(lines(MAKESPAN), lines(JCT), lines(RATIO)),
)


# Figure 7 of paper 000: the makespan over lambda, with kappa = 1 as printed.

_LAMBDAS = (1.0, 2.0, 4.0, 8.0)

FIGURE_7 = Item(
    id="figure-7",
    title="Figure 7: lambda",
    plots="The makespan of SJF-BCO for lambda = 1, 2, 4, 8 with kappa = 1 (section 7): how many times the GPUs that "
    "it needs a gang may choose from.",
    left_open="Open: T (1200 here). With kappa free, which the paper does not draw, the effect nearly vanishes; "
    "that curve stands beside and is not judged.",
    problem="rar-ddls",
    preset="paper",
    workload=WORKLOAD,
    series=(
        Series("kappa = 1", "sjf-bco", {"T": 1200, "kappa": 1}),
        Series("kappa free", "sjf-bco", {"T": 1200}, ours=True, main_only=True),
    ),
    axis=Axis("lambda", "lambda", _LAMBDAS, of="method", log=True),
    metrics=(MAKESPAN, JCT, RATIO),
    choices=OPEN,
    claims=(
        Claim(
            "With kappa = 1 the makespan falls with every step of lambda.",
            "section 7, Figure 7",
            (Trend(tuple(Value("objective", "kappa = 1", value) for value in _LAMBDAS)),),
        ),
    ),
    panels=(lines(MAKESPAN), lines(JCT), lines(RATIO)),
)


_DRAWING = "a drawing, or notation: nothing is measured"

PAPER = Paper(
    "000",
    "sjf-bco",
    "SJF-BCO: the figures of paper 000, measured again",
    """Printed: 160 jobs (80 of 1 GPU, 14 of 2, 26 of 4, 30 of 8, 8 of 16, 2 of 32), 1,000 to 6,000 iterations,
    0.01 to 0.05 slots
    per iteration, durations from 50 to 300 slots, contention and overhead within 15% of the execution time, xi_1 =
    xi_2, 20
    servers with 4, 8, 16 or 32 GPUs.

    Left open and chosen (preset `paper` of rar-ddls): iterations and times uniform; gradients such that with four
    rings on a
    server the exchange takes 5 to 15% of an iteration; linear contention with alpha = 0.2; u = l = 1; the estimated
    duration is the contention-free one. xi_1 = xi_2 = 0.0005: a larger xi_2 would make the overhead more than the
    printed 15%. With an xi_1 of that size no ring slows another one (k = 1 in (7)): what is printed contradicts itself
    there. Second choices, under which every verdict is given too: xi_1 = 0.5 and 1, with which rings do contend;
    durations below the printed 50 slots, too (a fifth of the jobs).""",
    (FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7),
    {"Figures 1 to 3": _DRAWING, "Table 1": _DRAWING},
)
