"""Paper 004 (GADGET): Figures 4 to 7 of its section VI."""

from __future__ import annotations

import numpy as np

from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Metric, Paper, Series
from schedgap.tools.laboratory.draw import bars, lines
from schedgap.tools.laboratory.rules import Agrees, Fact, LeadGrows, Less, More, Trend, Value, Within

# What the figures of paper 004 share: Algorithm 1 with Algorithm 2 inside, the baselines, the metrics.

GADGET = Series("GADGET", "gadget", {"inner": "printed", "fill": False})
KEPT = Choice("capacities kept", methods={"GADGET": {"inner": "lp-rs-mde-printed"}})
REPAIRED = (
    Series("GADGET, repaired", "gadget", {"inner": "lp-rs-mde", "fill": False}, ours=True, main_only=True),
    Series("GADGET, repaired and filled", "gadget", {"inner": "lp-rs-mde"}, ours=True, main_only=True),
)
FILLED = REPAIRED[1].label
BASELINES = (Series("FIFO", "fifo"), Series("DRF", "drf"), Series("LAS", "las"))

SHORT = {"jobs": 100, "horizon": 20}
"""The printed servers with 2 jobs a server, and a tenth of the printed slots: a draw takes minutes, not hours."""

UTILITY = Metric("objective", "total utility")
EMBEDDED = Metric("embedded", "embedded ratio", digits=3)
LOAD = Metric("load", "largest load over capacity", digits=2)

ALGORITHM = """GADGET is Algorithm 1 with Algorithm 2 inside, as published (`gadget-printed`): a slot's rings may
overload servers and links, so that it has no ratio to the bound. Second choice: a ring that does not fit what is left
is refused. Beside it, in no count, *repaired*: rings that are embeddable alone, capacities kept; and *filled*: servers
that it leaves idle, since no job gains there, go to jobs that gain nothing yet."""


def embedded_ratio(
    figure: str,
    of: str,
    plots: str,
    left_open: str,
    axis: Axis,
    claims: tuple[Claim, ...],
    choices: tuple[Choice, ...] = (),
) -> Item:
    """Figures 5 and 6: the embedded ratio, a mean over slots, over a capacity."""
    return Item(
        id=figure.lower().replace(" ", "-"),
        title=f"{figure}: embedded ratio over {of} capacity",
        plots=plots,
        left_open=f"{left_open} {' '.join(ALGORITHM.split())}",
        problem="ddljs",
        preset=figure.lower().replace(" ", "-"),
        workload=SHORT,
        series=(GADGET, *REPAIRED, *BASELINES),
        axis=axis,
        metrics=(EMBEDDED, UTILITY, LOAD, RATIO),
        choices=(KEPT, Choice("lambda_2 up to 1", {"steepness": 1.0}), *choices),
        claims=claims,
        panels=(lines(EMBEDDED), lines(UTILITY), lines(RATIO)),
        max_seeds=10,
    )


# Figure 4 of paper 004: total utility over the number of jobs.

_JOBS = (100, 200)
_OTHERS = ("FIFO", "DRF", "LAS")


def _utility(series: str, jobs: int) -> Value:
    return Value("objective", series, jobs)


def _above(series: str) -> tuple[Less, ...]:
    return tuple(
        More(
            _utility(series, n),
            _utility(other, n),
            ratios=tuple(Value("ratio", one, n) for one in (series, *_OTHERS)),
        )
        for other in _OTHERS
        for n in _JOBS
    )


def _grows(series: str) -> tuple[LeadGrows, ...]:
    return tuple(
        LeadGrows(
            (_utility(series, _JOBS[0]), _utility(other, _JOBS[0])),
            (_utility(series, _JOBS[-1]), _utility(other, _JOBS[-1])),
            gain=True,
        )
        for other in _OTHERS
    )


FIGURE_4 = Item(
    id="figure-4",
    title="Figure 4: total utility",
    plots="Total utility of GADGET, FIFO, DRF and LAS over the number of jobs (section VI).",
    left_open="The printed 50 servers and 200 slots. Open: the numbers of jobs, here 100 and 200; second choice: "
    "2.5 times as many jobs a server (20 servers). lambda_2 is uniform on the printed (0, 1), where a sigmoid is "
    "nearly a step; second choice: on (0, 0.01), with 20 servers. F as a limit on worker-slots never binds; second "
    "choice: it counts iterations. A comparison in which every method reaches the bound in every draw is left out. "
    + " ".join(ALGORITHM.split()),
    problem="ddljs",
    preset="paper",
    series=(
        GADGET,
        *REPAIRED,
        Series("exact slots, filled", "gadget", {"inner": "colgen"}, ours=True, main_only=True),
        *BASELINES,
    ),
    axis=Axis("jobs", "jobs", _JOBS),
    metrics=(UTILITY, EMBEDDED, LOAD, RATIO),
    choices=(
        KEPT,
        Choice("20 servers", {"servers": 20}),
        Choice("20 servers, lambda_2 up to 0.01", {"servers": 20, "steepness": 0.01}),
        Choice("F counts iterations", {"budget": "iterations"}),
    ),
    claims=(
        Claim(
            "GADGET has a larger utility than FIFO, DRF and LAS.",
            "section VI, Figure 4",
            _above("GADGET"),
        ),
        Claim(
            "GADGET's lead grows with the number of jobs.",
            "section VI, Figure 4",
            _grows("GADGET"),
        ),
        Claim(
            "Repaired and filled, it has a larger utility than FIFO, DRF and LAS.",
            "beside Figure 4",
            _above(FILLED),
            choices=(),
            ours=True,
        ),
        Claim(
            "Repaired and filled, its lead grows with the number of jobs.",
            "beside Figure 4",
            _grows(FILLED),
            choices=(),
            ours=True,
        ),
    ),
    panels=(lines(UTILITY), lines(EMBEDDED), lines(RATIO)),
    max_seeds=10,
)


# Figure 5 of paper 004: embedded ratio over the capacity of the servers.

_GPU_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def _embedded(series: str, factor: float) -> Value:
    return Value("embedded", series, factor)


def _rises(series: str, factors: tuple[float, ...]) -> Trend:
    return Trend(tuple(_embedded(series, factor) for factor in factors), falling=False, end=1.0)


FIGURE_5 = embedded_ratio(
    "Figure 5",
    "node",
    plots="Embedded ratio, the embedded over the active jobs of a slot averaged over three trials, by node "
    "resources in units of 100 GPUs (section VI).",
    left_open="Open: what else varies and whether slots are shown; here the mean over slots, by a factor on the "
    "GPUs of every server (0.25 to 4, about 0.5 to 7.5 units). The printed 50 servers; 100 jobs over 20 slots, since "
    "with 200 jobs over the printed 200 slots the runs of a draw take more than an hour of a processor. lambda_2 is "
    "uniform on (0, 0.01), where a job gains before it is nearly done; second choice: on the whole of the printed "
    "(0, 1). A step where every job is embedded in every slot already cannot rise further and is left out.",
    axis=Axis("factor on GPUs", "gpu_factor", _GPU_FACTORS, log=True),
    claims=(
        Claim(
            "Larger node capacity embeds more jobs in each slot.",
            "section VI, Figure 5",
            (
                More(_embedded("GADGET", _GPU_FACTORS[-1]), _embedded("GADGET", _GPU_FACTORS[0])),
                _rises("GADGET", _GPU_FACTORS),
            ),
        ),
        Claim(
            "So it does for GADGET, repaired and filled.",
            "beside Figure 5",
            (_rises(FILLED, _GPU_FACTORS),),
            choices=(),
            ours=True,
        ),
        Claim(
            "Repaired and filled, its embedded ratio is above the baselines'.",
            "beside Figure 5",
            tuple(
                More(_embedded(FILLED, factor), _embedded(other, factor))
                for other in ("FIFO", "DRF", "LAS")
                for factor in _GPU_FACTORS[:3]
            ),
            choices=(),
            ours=True,
        ),
    ),
)


# Figure 6 of paper 004: embedded ratio over the capacity of the links, with elastic rings and with fixed gangs.

_LINK_FACTORS = (0.005, 0.02, 0.1, 1.0)
_NARROW = (100.0, 50.0, 20.0, 1.0)
_REPAIRED = "Algorithm 2, repaired"
_BIND = Metric("links bind", "slots with a full link", "%", 100.0)


ELASTIC = embedded_ratio(
    "Figure 6",
    "edge",
    plots="Embedded ratio by edge resources in units of 200 Gbit/s (section VI).",
    left_open="As in Figure 5, with the printed GPUs. The model's rings are elastic: a ring of one worker needs no "
    "link, so a job can always shrink, and rings of at most five workers mostly fit one server. Second choice: GPUs "
    "cut to a quarter, so that rings span servers. Factors on the bandwidth of every link from 0.005 to 1.",
    axis=Axis("factor on bandwidths", "bandwidth_factor", _LINK_FACTORS, log=True),
    choices=(Choice("a quarter of the GPUs", {"gpu_factor": 0.25}),),
    claims=(
        Claim(
            "Wider links embed more jobs in each slot.",
            "section VI, Figure 6",
            (
                More(_embedded("GADGET", _LINK_FACTORS[-1]), _embedded("GADGET", _LINK_FACTORS[0])),
                _rises("GADGET", _LINK_FACTORS),
            ),
        ),
        Claim(
            "So they do for GADGET, repaired and filled.",
            "beside Figure 6",
            (_rises(FILLED, _LINK_FACTORS),),
            choices=(),
            ours=True,
        ),
    ),
)
FIXED = Item(
    id="figure-6-fixed",
    title="Figure 6: with fixed gangs and links that bind",
    plots="Not in the paper: the same question where links can matter, since a job has its N_i workers or none.",
    left_open="One slot (g-vne, preset `racks`): 50 servers of at most 2 GPUs, 35 jobs of N_i workers or none, few "
    "enough for the GPUs not to run out first; links 100, 50, 20 times narrower than printed, and as printed. A draw "
    "stands for a slot. A link counts as full when more than 90% of it is used (the limit is ours).",
    problem="g-vne",
    preset="racks",
    workload={"jobs": 35, "gangs": "fixed", "gpus": 2},
    series=(
        Series(_REPAIRED, "lp-rs-mde", ours=True),
        Series("Algorithm 2, printed program, capacities kept", "lp-rs-mde", {"lp": "augmented"}, ours=True),
        Series("greedy", "greedy", ours=True),
    ),
    axis=Axis("links narrower by", "tightness", _NARROW, log=True),
    metrics=(EMBEDDED, _BIND, RATIO),
    claims=(
        Claim(
            "With fixed gangs and links that bind, wider links embed more jobs.",
            "beside Figure 6",
            tuple(
                Trend(tuple(Value("embedded", series, width) for width in _NARROW), falling=False)
                for series in (_REPAIRED, "greedy")
            ),
            ours=True,
        ),
        Claim(
            "Links bind: at the narrowest a link is full in at least half of the slots (a check of the setting).",
            "beside Figure 6",
            tuple(
                Within(Value("links bind", one, _NARROW[0]), low=0.5, what=f"{one}: a full link in half of the slots")
                for one in (_REPAIRED, "greedy")
            ),
            ours=True,
        ),
    ),
    panels=(lines(EMBEDDED), lines(_BIND), lines(RATIO)),
)


# Figure 7 of paper 004: what Algorithm 2 reaches of a slot's optimum.

_SLOT_JOBS = (25, 50, 100)
_EXACT, _PRINTED, _KEPT = "column generation", "Algorithm 2", "Algorithm 2, capacities kept"
_SHARE = Metric("slot share", "gain of a slot over its bound", digits=3)


def _part(jobs: int) -> Agrees:
    what = f"share of the optimum at {jobs} jobs from 0.6 to 0.8"
    return Agrees(Value("objective", _PRINTED, jobs), Value("bound", _EXACT, jobs), 0.6, what, to=0.8)


def _third(series: str) -> Fact:
    def test(data: Data) -> tuple[bool | None, str]:
        shares = np.concatenate(
            [data.values("objective", series, n) / data.values("bound", _EXACT, n) for n in _SLOT_JOBS]
        )
        known = shares[np.isfinite(shares)]
        if not len(known):
            return None, "-"
        return bool(known.min() > 1 / 3), f"smallest share {known.min():.3f} over {len(known)} slots"

    return Fact(f"{series}: every share of the optimum above a third", test)


def _third_of_slots(series: str) -> Fact:
    def test(data: Data) -> tuple[bool | None, str]:
        least = data.values("least slot share", series)
        known = least[np.isfinite(least)]
        if not len(known):
            return None, "-"
        return bool(known.min() > 1 / 3), f"smallest share {known.min():.3f} over the slots of {len(known)} runs"

    return Fact(f"{series}: every slot's share of its bound above a third", test)


ONE_SLOT = Item(
    id="figure-7",
    title="Figure 7: share of a slot's optimum, over jobs",
    plots="Utility of the embedding technique over the optimum of problem (12) (section VI). What x is remains "
    "open: here jobs, and slots in the next item.",
    left_open="One slot on the 50 servers that are printed, sigmoid utilities (preset `racks` of g-vne). Open: the "
    "numbers of jobs, here 25, 50 and 100. Algorithm 2 as published may overload (outside the model); second choice: a "
    "ring that does not fit what is left is refused. *Repaired*, in no count: rings that are embeddable alone. The "
    "optimum is by column generation. Links as printed hardly bind; second choices: links 20 times narrower; gangs of "
    "fixed size on servers of at most 2 GPUs with links 50 times narrower. Its search ends after 20 nodes: shares are "
    "of its certified bound, which is at most about 1% above its best embedding.",
    problem="g-vne",
    preset="racks",
    series=(
        Series(_PRINTED, "lp-rs-mde", {"lp": "augmented", "variant": "vanilla"}),
        Series(_KEPT, "lp-rs-mde", {"lp": "augmented"}, main_only=True),
        Series("Algorithm 2, repaired", "lp-rs-mde", ours=True, main_only=True),
        Series("greedy", "greedy", ours=True, main_only=True),
        Series(_EXACT, "colgen", ours=True),
    ),
    axis=Axis("jobs", "jobs", _SLOT_JOBS),
    metrics=(UTILITY, RATIO),
    choices=(
        Choice("capacities kept", methods={_PRINTED: {"variant": "no-violation"}}),
        Choice("links 20 times narrower", {"tightness": 20.0}),
        Choice("fixed gangs, binding links", {"tightness": 50.0, "gangs": "fixed", "gpus": 2}),
    ),
    claims=(
        Claim(
            "Algorithm 2 reaches 60 to 80% of the optimum.",
            "section VI, Figure 7",
            tuple(_part(jobs) for jobs in _SLOT_JOBS),
            printed="60% to 80%",
        ),
        Claim(
            "It always stays above the third that Theorem 8 names.",
            "section VI, Figure 7",
            (_third(_PRINTED),),
        ),
    ),
    panels=(lines(UTILITY), lines(RATIO)),
    max_seeds=10,
)
OVER_SLOTS = Item(
    id="figure-7-slots",
    title="Figure 7: share of a slot's bound, over slots",
    plots="Not as judged above: the same ratio in every slot of a run of Algorithm 1, as x may be slots, too.",
    left_open="The printed 50 servers, 200 slots and sigmoids, 100 jobs. What a slot can gain at most is known where "
    "capacities are kept, so that Algorithm 2 refuses rings that do not fit what is left. The gain of every slot over "
    "its proven bound, averaged over the slots of a run: at least as far from the optimum as Figure 7 is. Second "
    "choice, smaller, with concave utilities, under which every slot gains: 10 servers in 2 racks, 50 slots, 40 jobs, "
    "links a tenth as wide (preset `figure-7` of ddljs).",
    problem="ddljs",
    preset="paper",
    workload={"jobs": 100},
    series=(
        Series(_KEPT, "gadget", {"inner": "lp-rs-mde-printed", "fill": False}),
        Series("Algorithm 2, repaired", "gadget", {"inner": "lp-rs-mde", "fill": False}, ours=True),
    ),
    choices=(Choice("10 servers, concave utilities", {"jobs": 40}, preset="figure-7"),),
    metrics=(_SHARE, Metric("least slot share", "smallest of a run", digits=3), RATIO),
    claims=(
        Claim(
            "Over slots Algorithm 2, capacities kept, reaches 60 to 80% of a slot's bound.",
            "beside Figure 7",
            (Agrees(Value("slot share", _KEPT), None, 0.6, "share of a slot's bound from 0.6 to 0.8", to=0.8),),
            ours=True,
        ),
        Claim(
            "Over slots it stays above a third.",
            "beside Figure 7",
            (_third_of_slots(_KEPT),),
            ours=True,
        ),
    ),
    panels=(bars(_SHARE), bars(RATIO)),
    max_seeds=10,
)


PAPER = Paper(
    "004",
    "gadget",
    "GADGET: the figures of paper 004, measured again",
    """Printed: 200 slots, 50 servers in 2 to 5 racks with 1, 2, 4 or 8 GPUs, rings of at most 1 to 5 workers, F
    from 1,000 to
    6,000, zeta from 50 to 500, bandwidths from 0.1 to 5 Gbit/s, links of 10 to 100 (servers) and 200 to 3,200
    Gbit/s (racks), sigmoid
    utilities, arrivals after a trace.

    Left open and chosen (preset `paper` of ddljs): one GPU per worker; rack trees below one core; diurnal arrivals;
    F as a limit on
    worker-slots, which never binds; workers of the baselines drawn from 1 to 10 and at most N_i.""",
    (FIGURE_4, FIGURE_5, ELASTIC, FIXED, ONE_SLOT, OVER_SLOTS),
    {"Figures 1 to 3": "drawings of rings and of the network", "Theorems": "see [the ledger](guarantees.md)"},
)
