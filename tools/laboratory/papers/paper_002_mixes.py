"""Paper 002 (HadarE): the mixes of jobs of its section VI, and what all its experiments share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from schedgap.benchmarks.figures.palette import GRID
from schedgap.benchmarks.instances.hadar.mixes import MIXES
from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import Axis, Choice, Claim, Item, Metric, Series, simulated_beside
from schedgap.tools.laboratory.draw import colours, lines
from schedgap.tools.laboratory.rules import Agrees, All, Fact, LeadGrows, Less, MeanRatio, More, Some, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# What the figures of paper 002 share: schedulers, metrics, the two workloads.

_DELAY = {"restart_delay": 10.0}
HADAR = Series("Hadar", "hadar-rounds", {**_DELAY, "payoff": "literal"})
GAVEL = Series("Gavel", "gavel", _DELAY)
BESIDE = (
    Series("Hadar, payoff as density", "hadar-rounds", {**_DELAY, "payoff": "density"}, main_only=True),
    Series("Gavel, max-sum", "gavel", {**_DELAY, "policy": "max-sum"}, main_only=True),
    Series("Gavel, makespan", "gavel", {**_DELAY, "policy": "makespan"}, main_only=True),
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


# Figures 6 and 8 to 12 of paper 002: mixes of jobs on five machines of one device, simulated.

_NAMES = tuple(MIXES)
_HADARE = "HadarE"
_GREEDY = "HadarE, copies in turn"
_ESTIMATED = {"scheduler": "hadar", "throughput": "estimated"}
_SERIES = (
    GAVEL,
    HADAR,
    Series(_HADARE, "hadare", {**_DELAY, "scheduler": "hadar"}),
    *BESIDE,
    Series("HadarE, rates estimated", "hadare", {**_DELAY, **_ESTIMATED}, main_only=True),
    Series(_GREEDY, "hadare", {**_DELAY, "scheduler": "greedy"}, ours=True, main_only=True),
)
_HADAR = HADAR.label
_MACHINES = "Measured on those machines, which a simulation stands in for. The simulation is judged beside it, as ours."
_CHOICES = (
    PAYOFF,
    *POLICIES,
    Choice("rates estimated", methods={_HADARE: _ESTIMATED}),
    Choice("no delay", methods={series.label: {"restart_delay": 0.0} for series in _SERIES}),
    Choice("rounds of 90 s", {"slot": 90.0}),
    Choice("rates by teraflops", {"rates": "teraflops"}),
)
_INSTEAD = """The machines (AWS; a laboratory) are not here. Simulated instead: five machines of one device (preset
`mixes`), measured rates on V100 and K80, others by eq. (10)."""
_LEFT_OPEN = """The paper prints no rates, epochs, overheads or slot time. Chosen: 1,000 to 3,000 s of work on a V100;
rounds of 360 s; 10 s lost when a node's job changes. Second choices: no delay, rounds of 90 s, rates by teraflops.
Hadar's payoff is the whole utility, as printed; second choice: density. Gavel's policy is max-min; second choices:
max-sum and makespan. HadarE knows the rates; second choice, as in
section V-A: it starts from eq. (10) and learns a node's rate when the node has run the job (the job's own factors of
(10), of which no value is printed, are 1, so that before a job has run anywhere its payoffs are all 0 and its copies
take what is free). HadarE places copies by Algorithm 2's payoff; *copies in turn* is our simpler rule. A job ends
inside its last round. HadarE's copies are outside the model: no ratio to the bound."""
_TTD = Metric("ttd", "TTD", "s", digits=0)
_JCT = Metric("mean", "average JCT", "s", digits=0)
_RANGE = Metric("range", "largest minus least JCT", "s", digits=0)


def _pairs(metric: str, a: str, b: str, mixes: tuple[str, ...] = _NAMES, larger: bool = False) -> tuple[Less, ...]:
    """One question a mix."""
    make = More if larger else Less
    return tuple(make(Value(metric, a, mix), Value(metric, b, mix)) for mix in mixes)


_SIZES: Mapping[str, tuple[tuple[str, str, str, float, float | None], ...]] = {
    "aws": (
        ("cru", _HADAR, "Gavel", 1.20, None),
        ("cru", _HADARE, "Gavel", 1.56, None),
        ("ttd", "Gavel", _HADAR, 1.17, 1.18),
        ("ttd", "Gavel", _HADARE, 1.79, None),
        ("mean", "Gavel", _HADAR, 1.17, 1.23),
        ("mean", "Gavel", _HADARE, 2.23, None),
    ),
    "testbed": (
        ("cru", _HADAR, "Gavel", 1.21, None),
        ("cru", _HADARE, "Gavel", 1.62, None),
        ("ttd", "Gavel", _HADAR, 1.16, 1.15),
        ("ttd", "Gavel", _HADARE, 2.12, None),
        ("mean", "Gavel", _HADAR, 1.23, 1.43),
        ("mean", "Gavel", _HADARE, 2.76, None),
    ),
}
"""Metric, two schedulers, and the printed ratio between them: mean over the mixes, and on M-5."""
_CALLED = {"cru": "CRU", "ttd": "TTD", "mean": "average JCT"}


def _sizes(cluster: str) -> tuple[Agrees, ...]:
    found = []
    for metric, a, b, mean, m5 in _SIZES[cluster]:
        name = f"{_CALLED[metric]}, {a} over {b}"
        found.append(Agrees(MeanRatio(metric, a, b, _NAMES), None, mean, f"{name}: {mean} (mean of the mixes)"))
        if m5 is not None:
            found.append(Agrees(Value(metric, a, "M-5"), Value(metric, b, "M-5"), m5, f"{name}: {m5} on M-5"))
    return tuple(found)


def _figure(cluster: str, name: str) -> Item:
    where = f"section VI, Figures 8 to 10 ({name})"
    small = tuple(mix for mix in _NAMES if mix != "M-1")
    return Item(
        id=f"figures-8-to-10-{cluster}",
        title=f"Figures 8 to 10: mixes on {name}",
        plots="Cluster resource utilisation (CRU), total time duration and average JCT with its range of Gavel, "
        "Hadar and HadarE for seven mixes (section VI).",
        instead=_INSTEAD,
        left_open=_LEFT_OPEN,
        problem="hadar",
        preset="mixes",
        workload={"cluster": cluster},
        series=_SERIES,
        axis=Axis("mix", "mix", _NAMES),
        metrics=(CRU, _TTD, _JCT, _RANGE),
        choices=_CHOICES,
        claims=simulated_beside(
            (
                Claim(
                    "HadarE has a larger CRU than Gavel and Hadar in every mix.",
                    where,
                    (*_pairs("cru", _HADARE, "Gavel", larger=True), *_pairs("cru", _HADARE, _HADAR, larger=True)),
                    printed="CRU of HadarE over Gavel 1.56 (AWS), 1.62 (testbed)",
                ),
                Claim(
                    "HadarE has a smaller TTD than Gavel and Hadar in every mix.",
                    where,
                    (*_pairs("ttd", _HADARE, "Gavel"), *_pairs("ttd", _HADARE, _HADAR)),
                    printed="1.79x, 2.12x",
                ),
                Claim(
                    "HadarE has a smaller average JCT than Gavel and Hadar in every mix.",
                    where,
                    (*_pairs("mean", _HADARE, "Gavel"), *_pairs("mean", _HADARE, _HADAR)),
                    printed="2.23x (AWS), 2.76x (testbed) over Gavel",
                ),
                Claim(
                    "Hadar has a smaller TTD than Gavel in every mix.",
                    where,
                    _pairs("ttd", _HADAR, "Gavel"),
                    printed="1.17x (AWS), 1.16x (testbed)",
                ),
                Claim(
                    "HadarE's range of JCT is narrower than Hadar's in every mix but M-1.",
                    where,
                    _pairs("range", _HADARE, _HADAR, small),
                ),
                Claim(
                    "HadarE gains more over Hadar than Hadar over Gavel (average JCT).",
                    where,
                    tuple(
                        LeadGrows(
                            (Value("mean", _HADAR, mix), Value("mean", "Gavel", mix)),
                            (Value("mean", _HADARE, mix), Value("mean", _HADAR, mix)),
                            what=f"{mix}: lead of HadarE over Hadar larger than Hadar's over Gavel",
                        )
                        for mix in _NAMES
                    ),
                ),
                Claim(
                    "The printed sizes of the gains.",
                    where,
                    _sizes(cluster),
                    printed="TTD of HadarE 1.79x and 2.12x, read as AWS and testbed against Gavel; of Hadar 1.17x, "
                    "1.16x",
                ),
            ),
            _MACHINES,
        ),
        panels=(lines(CRU), lines(_TTD), lines(_JCT)),
    )


AWS, TESTBED = _figure("aws", "AWS"), _figure("testbed", "the testbed")

_SLOTS = (90.0, 180.0, 360.0, 720.0)
_COSTS = (0, 2, 5, 10, 20)
_HORIZON = 1000


def _label(mix: str, cost: int) -> str:
    return f"{mix}, {cost} s"


def _peaks(mix: str, cost: int, larger: bool) -> Less:
    """Is CRU larger (or smaller) at 360 s than at 90 s?"""
    long, short = (Value("cru", _label(mix, cost), slot) for slot in (360.0, 90.0))
    return More(long, short) if larger else Less(long, short)


def _slot_time(number: int, method: str, cluster: str, large: tuple[str, ...], drawn: tuple[str, ...]) -> Item:
    """CRU over the slot time, by mix and overhead; `large` mixes are printed to peak at 360 s."""
    name = {"aws": "AWS", "testbed": "the testbed"}[cluster]
    who = "HadarE" if method == "hadare" else "Hadar"
    settings = {"scheduler": "hadar"} if method == "hadare" else {"payoff": "literal"}
    where = f"section VI-D, Figure {number} ({name})"
    small = tuple(mix for mix in _NAMES if mix not in large)
    short = "90 or 180" if large == ("M-3",) else "90"
    printed = tuple(
        All(
            (*(_peaks(mix, cost, True) for mix in large), *(_peaks(mix, cost, False) for mix in small)),
            f"{cost} s lost in a round",
        )
        for cost in _COSTS
    )
    shortest = tuple(
        Less(Value("cru", _label(mix, 0), slot), Value("cru", _label(mix, 0), 90.0), f"{mix}: smaller at {slot:g} s")
        for mix in _NAMES
        for slot in _SLOTS[1:]
    )
    return Item(
        id=f"figure-{number}-{cluster}",
        title=f"Figure {number}: slot time, {who} on {name}",
        plots=f"CRU of {who} over the mixes for several slot times (section VI-D).",
        instead="Not reproducible: the overheads of a round (messages, aggregation, transfers) are measurements of "
        "those machines and carry the result. What stands in: rounds of 90, 180, 360 and 720 s, in which every node "
        f"that runs loses 0, 2, 5, 10 or 20 s first; the time lost is not busy. {_HORIZON:,} rounds.",
        problem="hadar",
        preset="mixes",
        workload={"cluster": cluster, "horizon": _HORIZON},
        series=tuple(
            Series(_label(mix, cost), method, {**settings, "overhead": float(cost)}, {"mix": mix})
            for mix in _NAMES
            for cost in _COSTS
        ),
        axis=Axis("slot time (s)", "slot", _SLOTS, log=True),
        metrics=(CRU,),
        claims=(
            Claim(
                f"Some overhead makes CRU larger at 360 s than at 90 s for {', '.join(large)}, smaller for the others.",
                where,
                (Some(printed, "some overhead gives all of this"),),
                ours=True,
            ),
            Claim(
                "Without any overhead rounds of 90 s are best for every mix: short rounds only cost overhead.",
                where,
                shortest,
                ours=True,
            ),
            Claim(
                f"CRU peaks at 360 s for {', '.join(large)} and at {short} s for the others.",
                where,
                cannot="The overheads of the machines carry it and are not printed; the claims of ours say whether one "
                "of those tried would do.",
            ),
        ),
        panels=tuple(
            lines(CRU, tuple(names), names=names, title=f"{cost} s lost in a round")
            for cost in (0, 5, 20)
            for names in ({_label(mix, cost): mix for mix in drawn},)
        ),
        max_seeds=10,
    )


_FEW = ("M-1", "M-4", "M-5", "M-8", "M-12")
_LARGE = ("M-8", "M-10", "M-12")
_FROM_5 = ("M-5", *_LARGE)
SLOT_TIMES = (
    _slot_time(11, "hadare", "aws", _LARGE, _FEW),
    _slot_time(11, "hadare", "testbed", _FROM_5, _FEW),
    _slot_time(12, "hadar-rounds", "aws", ("M-3",), ("M-1", "M-3", "M-4", "M-8", "M-12")),
    _slot_time(12, "hadar-rounds", "testbed", _FROM_5, _FEW),
)


def _no_idle(data: Data) -> tuple[bool, str]:
    held = data.draws(_HADARE)[0]["held"]
    full = next((k for k, share in enumerate(held) if share < 1), len(held))
    return full >= len(held) - 1, f"{full} of {len(held)} rounds with every node busy"


def _shorter(data: Data) -> tuple[bool, str]:
    ours, theirs = data.draws(_HADARE)[0]["ttd"], data.draws(_HADAR)[0]["ttd"]
    return ours < theirs, f"{ours:.0f} s against {theirs:.0f} s"


def _busy(axes: Axes, data: Data, item: Item) -> None:
    """Nodes that run a job, by round: one bar a scheduler."""
    colour, width = colours(item), 0.8 / len(item.series)
    for k, series in enumerate(item.series):
        held = data.draws(series.label)[0].get("held") or []
        places = [slot + 1 + (k + 0.5) * width - 0.4 for slot in range(len(held))]
        axes.bar(places, [5 * share for share in held], width, color=colour[series.label], label=series.label)
    axes.set_xlabel("round")
    axes.set_ylabel("nodes in use (of 5)")
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)


FIGURE_6 = Item(
    id="figure-6",
    title="Figure 6: rounds under Hadar and HadarE",
    plots="Three jobs round by round on the testbed: Hadar leaves nodes idle, HadarE none in the first rounds "
    "(section V).",
    instead=_INSTEAD,
    left_open="Open: jobs, epochs and speeds; here one draw of M-3 on the testbed. " + _LEFT_OPEN,
    problem="hadar",
    preset="mixes",
    workload={"cluster": "testbed", "mix": "M-3"},
    series=tuple(series for series in _SERIES if series.label in (_HADAR, _HADARE)),
    metrics=(CRU, _TTD, _JCT),
    seeds=1,
    max_seeds=1,
    claims=simulated_beside(
        (
            Claim(
                "Under HadarE every node is busy until the last round.",
                "section V, Figure 6",
                (Fact("HadarE: every node busy in all rounds but the last", _no_idle),),
            ),
            Claim("HadarE's TTD is shorter than Hadar's.", "section V, Figure 6", (Fact("HadarE shorter", _shorter),)),
        ),
        _MACHINES,
    ),
    panels=(_busy,),
)
