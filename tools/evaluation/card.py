"""The report card of a foreign scheduler: feasible or not, how far from the optimum, against the shipped methods."""

from __future__ import annotations

import html
import math
import operator
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from schedgap.benchmarks.figures.palette import INK, PALETTE
from schedgap.benchmarks.figures.style import hover, new_figure, plain_axes
from schedgap.benchmarks.hunt.result import Hunted
from schedgap.benchmarks.hunt.target import finite_value
from schedgap.benchmarks.intervals import Interval, interval, plus_minus
from schedgap.benchmarks.report.sheet import Column, Marked, Sheet
from schedgap.benchmarks.text import fixed
from schedgap.benchmarks.text import seconds as in_seconds
from schedgap.catalogue.agreement import Agreement
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import printable
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.numbers import agrees, share_of_best
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.tools.evaluation.drawn import as_options
from schedgap.tools.evaluation.online import Online

SCHEMA = 1
"""Version of the JSON form; keys are only ever added to it."""
NOT_ISOLATED = (
    "not isolated on this system: machine code of the scheduler, and Python code that works against it, could"
)
NOT_ISOLATED += " read and change what you may, so trust this card as far as you trust the scheduler"
HALF = "after ± half of its 95% interval, by instance (Student's t)"
MOST_FAILURES = 20
"""Failures that are listed for a person; the JSON has all."""


@dataclass(frozen=True)
class Trial:
    """The scheduler on one instance."""

    # family, seed: which instance
    family: str
    seed: int
    instance: Instance  # itself
    objective: float | None  # the checker's; None where there is no feasible solution
    # failure, message: as of Judged; empty where feasible
    failure: str
    message: str
    seconds: float | None  # measured outside; None where nothing came
    known: Agreement  # what is proven of the instance
    others: Mapping[str, float | None]  # objectives of the shipped heuristics by id; None where one found nothing
    cut: Sequence[str] = ()  # ids of runs that a limit ended, which are compared with nothing
    # own_length, own_ratio: where it breaks nothing but the horizon, its objective and that to a bound on any length
    own_length: float | None = None
    own_ratio: float | None = None

    def ratio(self, sense: int) -> tuple[float | None, str]:
        """Its ratio, and to what: optimum or bound."""
        return self.known.ratio(self.objective, sense)

    def to_dict(self, sense: int) -> dict[str, Json]:
        """JSON-compatible form."""
        value, to = self.ratio(sense)
        return {
            "family": self.family,
            "seed": self.seed,
            "instance": self.instance.content_hash(),
            "feasible": self.objective is not None,
            "failure": self.failure or None,
            "message": self.message or None,
            "objective": self.objective,
            "optimum": self.known.optimum,
            "bound": self.known.bound,
            "ratio": finite_value(value),
            "ratio_to": to or None,
            "too_long": None
            if self.own_length is None
            else {"objective": self.own_length, "ratio": finite_value(self.own_ratio)},
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Card:
    """What came out; see :meth:`to_dict` for the stable JSON form.

    Attributes
    ----------
    scheduler, problem, seed : what was judged
    trials : every instance
    claims : (claim, held, refuted, not applicable, left/right where it is nearest to failing)
    hunted : its worst instance; None where no hunt was made
    peak : bytes of resident memory, None where unknown
    folder : where card.html and card.json are; None where they are not written, since Ctrl-C ended the hunt
    isolated : the kernel, too, kept the scheduler from files and processes
    online : what only an online policy has; None for others
    is_seed_chosen : whether the caller chose the seed, so that a scheduler can be made for these instances
    settings : settings of generators that the caller gave
    """

    scheduler: str
    problem: Problem
    seed: int
    trials: Sequence[Trial]
    claims: Sequence[tuple[Guarantee, int, int, int, float | None]] = ()
    hunted: Hunted | None = None
    peak: int | None = None
    folder: Path | None = None
    isolated: bool | None = None
    online: Online | None = None
    is_seed_chosen: bool = False
    settings: Mapping[str, Json] = field(default_factory=dict)

    @property
    def feasible(self) -> int:
        """Instances with a feasible solution."""
        return sum(trial.objective is not None for trial in self.trials)

    @property
    def score(self) -> float:
        """The mean of 1/ratio over all instances, 0 for a failure: 1 is optimal everywhere.

        A schedule that is only too long counts by its ratio to a bound on schedules of any length. For others the
        ratio is to the proven optimum, or to a proven bound, and then the score is at most too low.
        """
        return _mean(self._parts()) or 0.0

    def _parts(self) -> list[float]:
        """What each instance adds to the score; a schedule that is only too long counts by its own length."""
        sense = self.problem.sense
        return [share_of_best(t.own_ratio if t.objective is None else t.ratio(sense)[0]) for t in self.trials]

    def _own_ratios(self) -> list[float]:
        return [trial.own_ratio for trial in self.trials if trial.own_ratio is not None]

    @property
    def too_long(self) -> int:
        """Instances on which its schedule breaks nothing but a horizon that is only a model's size."""
        return sum(trial.own_length is not None for trial in self.trials)

    def _told_score(self) -> str:
        """The score with half of its 95% interval, by instance."""
        half = _half(self._parts())
        return f"{self.score:.4f}" if half is None else f"{self.score:.4f} ± {half:.4f}"

    def ratios(self, to: str, family: str | None = None) -> list[float]:
        """Its ratios to optima, or to bounds where no optimum is proven."""
        pairs = [t.ratio(self.problem.sense) for t in self.trials if family in (None, t.family)]
        return [value for value, kind in pairs if value is not None and kind == to]

    @property
    def families(self) -> list[str]:
        """In their order."""
        return list(dict.fromkeys(trial.family for trial in self.trials))

    def against(self) -> list[dict[str, Json]]:
        """Paired with each shipped heuristic on every instance: better, equal, worse; what fails loses."""
        rows = []
        for name in dict.fromkeys(name for trial in self.trials for name in trial.others):
            count = {"better": 0, "equal": 0, "worse": 0}
            sense, trials = self.problem.sense, [trial for trial in self.trials if name in trial.others]
            for trial in trials:
                count[_compared(trial.objective, trial.others[name], sense)] += 1
            pairs = [(t.known.ratio(t.objective, sense)[0], t.known.ratio(t.others[name], sense)[0]) for t in trials]
            both = [
                (mine, its) for mine, its in pairs if mine is not None and its is not None and mine + its < math.inf
            ]
            own, theirs = ([pair[k] for pair in both] for k in (0, 1))
            apart = _half(list(map(operator.sub, own, theirs)))
            means = {"own_mean_ratio": own, "mean_ratio": theirs}
            means_by_name = {key: _mean(values) for key, values in means.items()}
            rows.append({"method": name, **count, "both": len(both), **means_by_name, "difference_half": apart})
        return rows

    def __repr__(self) -> str:
        """One line; :meth:`to_text` has the tables."""
        told = f"score {self.score:.4f}, feasible on {self.feasible} of {len(self.trials)} instances"
        return f"<card of {self.scheduler} on {self.problem.id}: {told}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<pre>{html.escape(self.to_text())}</pre>"

    def to_dict(self) -> dict[str, Json]:
        """The stable form: keys are only added. See docs/evaluating.md."""
        times = [trial.seconds for trial in self.trials if trial.seconds is not None]
        failures = dict(Counter(trial.failure for trial in self.trials if trial.failure))
        worst = self.hunted.largest if self.hunted is not None else None
        return {
            "schema": SCHEMA,
            "scheduler": self.scheduler,
            "problem": self.problem.id,
            "seed": self.seed,
            "seed_chosen": self.is_seed_chosen,
            "settings": dict(self.settings),
            "isolated": self.isolated,
            "score": self.score,
            "score_half": _half(self._parts()),
            "instances": len(self.trials),
            "feasible": self.feasible,
            "failures": failures,
            "too_long": {"instances": self.too_long, **_summary(self._own_ratios())},
            "ratio": {to: _summary(self.ratios(to)) for to in ("optimum", "bound")},
            "families": {
                family: {
                    "instances": sum(trial.family == family for trial in self.trials),
                    "feasible": sum(t.family == family and t.objective is not None for t in self.trials),
                    **{to: _summary(self.ratios(to, family)) for to in ("optimum", "bound")},
                }
                for family in self.families
            },
            "against": self.against(),
            "claims": [
                {
                    "id": claim.id,
                    "statement": claim.statement,
                    "verdict": _verdict(held, refuted),
                    "held": held,
                    "refuted": refuted,
                    "not_applicable": other,
                    "tightness": finite_value(tight),
                }
                for claim, held, refuted, other, tight in self.claims
            ],
            "worst": None
            if worst is None or self.hunted is None
            else {
                "ratio": finite_value(worst.value),
                "objective": worst.objective,
                "optimum": worst.optimum,
                "file": str(self.hunted.path),
                "tried": self.hunted.evaluations,
                "lost": len(self.hunted.lost),
            },
            "seconds": {"mean": statistics.fmean(times) if times else None, "most": max(times, default=None)},
            "memory": self.peak,
            "online": self._online(),
            "trials": [trial.to_dict(self.problem.sense) for trial in self.trials],
        }

    def _online(self) -> Json:
        if self.online is None:
            return None
        ratios = [trial.ratio(self.problem.sense) for trial in self.trials]
        return self.online.to_dict([trial.objective for trial in self.trials], ratios, self.problem.sense)

    def sheets(self) -> list[Sheet]:
        """Every table, for text and page."""
        data = self.to_dict()
        names = (Column("family", right=False), Column("feasible"))
        optima = (Column("optima"), Column("mean", HALF), Column("median"), Column("worst"))
        bounds = (Column("bounds", count=True), *(Column(f"{name} to bound") for name in ("mean", "median", "worst")))
        rows: list[list[str]] = []
        for family, part in [*data["families"].items(), ("all", data)]:
            cells = [family, f"{part['feasible']} of {part['instances']}"]
            for to in ("optimum", "bound"):
                ratios = self.ratios(to, None if part is data else family)
                known = _figures(ratios)
                cells += [str(len(ratios)), _with_half(ratios), fixed(known["median"]), fixed(known["worst"])]
            rows.append(cells)
        infinite = ("inf: it has value 0 where more is possible.",) if any("inf" in row for row in rows) else ()
        title = "Ratio to proven optima, and to certified bounds where no optimum is proven"
        found = [Sheet(title, (*names, *optima, *bounds), rows, infinite)]
        columns = (
            Column("method", right=False),
            *(Column("it is better", "on how many instances the scheduler is; what finds nothing is worse"),),
            *(Column(name) for name in ("equal", "worse")),
            *(Column("over", "instances on which both have a finite ratio"), Column("its mean", "ratio, over these")),
            *(Column("their mean"), Column("difference", f"its ratio less theirs on the same instance, mean; {HALF}")),
        )
        counts = ("better", "equal", "worse", "both")
        rows = [[row["method"], *(str(row[key]) for key in counts), *_paired(row)] for row in data["against"]]
        found.append(Sheet("Against the shipped methods, instance by instance", columns, rows))
        columns = tuple(Column(name, right=False) for name in ("claim", "statement", "verdict"))
        rows = [
            [
                c["id"],
                c["statement"],
                Marked(c["verdict"], "refuted" if c["refuted"] else ""),
                f"{c['held']}",
                f"{c['refuted']}",
            ]
            for c in data["claims"]
        ]
        found.append(Sheet("Claims", (*columns, Column("held"), Column("refuted")), rows))
        columns = (Column("family", right=False), Column("seed"), Column("what", right=False))
        failed = [[t.family, str(t.seed), t.failure, t.message] for t in self.trials if t.failure]
        more = (f"{len(failed) - MOST_FAILURES} more.",) if len(failed) > MOST_FAILURES else ()
        why = Column("why", right=False, width=72)
        found.append(Sheet("Failures", (*columns, why), failed[:MOST_FAILURES], more))
        if self.online is not None:
            found[:0] = self.online.sheets(data["online"])
        return [sheet for sheet in found if sheet.rows]

    def _ratio(self, trial: Trial) -> float:
        return trial.ratio(self.problem.sense)[0] or 0.0

    def worst(self) -> dict[str, Trial]:
        """For each family the drawn instance on which its ratio is largest; none of a family without ratios."""
        told = [trial for trial in self.trials if self._ratio(trial)]
        return {trial.family: trial for trial in sorted(told, key=self._ratio)}

    def _kept(self, trial: Trial) -> Path | None:
        """The file of the worst instance of its family."""
        name = "".join(c if c.isalnum() or c in "-_." else "-" for c in trial.family)
        return None if self.folder is None else self.folder / "worst" / f"{name}.json"

    def write_worst(self) -> None:
        """Write the instances of :meth:`worst` into the card's folder."""
        for trial in self.worst().values():
            path = self._kept(trial)
            assert path is not None
            path.parent.mkdir(exist_ok=True)
            write_text(path, trial.instance.to_json() + "\n")

    def figure(self) -> Figure:
        """Every ratio, a dot an instance and a row a family: filled to the optimum, hollow to a bound."""
        height = 0.4 * len(self.families) + 1.2
        figure = new_figure(5.0, height)
        axes = figure.add_axes((0.3, 0.75 / height, 0.65, (height - 0.9) / height))
        largest = max(filter(math.isfinite, map(self._ratio, self.trials)), default=1.0)
        for trial in self.trials:
            value, to = trial.ratio(self.problem.sense)
            if value is not None and math.isfinite(value):
                face = PALETTE[0] if to == "optimum" else "white"
                row = self.families.index(trial.family)
                (dot,) = axes.plot([value], [row], "o", markersize=5, markerfacecolor=face, markeredgecolor=INK)
                hover(dot, [f"{trial.family}, seed {trial.seed}: ratio {fixed(value)} to the {to}"])
        axes.set_yticks(range(len(self.families)), self.families)
        axes.set_ylim(len(self.families) - 0.5, -0.5)
        axes.set_xlim(1 - 0.03 * max(0.1, largest - 1), 1 + 1.05 * max(0.1, largest - 1))
        axes.set_xlabel("ratio, one dot an instance; hollow: to a bound", color=INK)
        plain_axes(axes)
        return figure

    def headline(self) -> list[str]:
        """What matters, a line each."""
        data = self.to_dict()
        lines = [] if self.isolated else [NOT_ISOLATED]
        lines += ["the seed was given, so the instances could be known in advance"] if self.is_seed_chosen else []
        lines += [f"families are drawn with {as_options(self.settings)}"] if self.settings else []
        lines += [f"score {self._told_score()} (1 is optimal on all {len(self.trials)} instances, a failure counts 0)"]
        lines.append(f"feasible on {self.feasible} of {len(self.trials)} instances")
        if self.too_long:
            ratios = self._own_ratios()
            instances = f"{self.too_long} instance{'' if self.too_long == 1 else 's'}"
            sentence = f"only too long: {instances}, where nothing but the horizon is broken; ratio there "
            sentence += f"{_with_half(ratios)} to a bound on schedules of any length" if ratios else "unknown"
            unknown = f", unknown on {self.too_long - len(ratios)}" if 0 < len(ratios) < self.too_long else ""
            lines.append(f"{sentence}{unknown}; in the score they count 1/ratio")
        drawn = max(self.worst().values(), key=self._ratio, default=None)
        worst = []
        if drawn is not None:
            value, to = drawn.ratio(self.problem.sense)
            file = "" if self.folder is None else f": {self._kept(drawn)}"
            place = f"family {drawn.family}, seed {drawn.seed}{file}"
            worst.append((value or 0.0, f"worst drawn: ratio {fixed(value)} to the {to}, {place}"))
        if data["worst"] is not None:
            value = float(data["worst"]["ratio"])
            file = data["worst"]["file"]
            worst.append((value, f"worst of a search for bad instances: ratio {fixed(value)} to the optimum: {file}"))
        lines += [line for _, line in sorted(worst, key=lambda one: -one[0])]
        if self.hunted is not None and self.hunted.lost:
            count, first = len(self.hunted.lost), self.hunted.lost[0].split("; the instance is in ")[0]
            lines.append(f"no feasible solution on {count} of the instances that the hunt tried, the first: {first}")
        cut = Counter(name for trial in self.trials for name in trial.cut)
        lines += [f"cut by a limit on {count} instances, left out there: {name}" for name, count in cut.items()]
        used = f"{in_seconds(data['seconds']['mean'])} s on average, {in_seconds(data['seconds']['most'])} s at most"
        memory = "" if self.peak is None else f"; {self.peak / 2**20:.0f} MB at most"
        lines.append(used + memory)
        return lines + ([] if self.online is None else self.online.headline(data["online"]))

    def to_text(self) -> str:
        """For a terminal."""
        parts = [f"{self.scheduler} on {self.problem.id}, seed {self.seed}", *self.headline()]
        for sheet in self.sheets():
            parts += ["", sheet.text()]
        if self.hunted is not None and not self.hunted.finished:
            parts += ["", "interrupted: its hunt was not finished, so no card is written"]
        if self.folder is not None:
            parts += ["", f"page: {self.folder / 'card.html'}"]
        return printable("\n".join(parts), "\n")


def _verdict(held: int, refuted: int) -> str:
    return "refuted" if refuted else "held" if held else "not applicable"


def _compared(one: float | None, other: float | None, sense: int) -> str:
    if one is None or other is None:
        return "equal" if one == other else "worse" if one is None else "better"
    if agrees(one, other):
        return "equal"
    return "better" if sense * (other - one) > 0 else "worse"


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _interval(values: Sequence[float]) -> Interval | None:
    """The mean with its 95% interval by instance; None where there is no finite one."""
    return interval(np.array(values)) if values and all(map(math.isfinite, values)) else None


def _half(values: Sequence[float]) -> float | None:
    """Half the width of that interval; None where there is none, as for a single instance."""
    found = _interval(values)
    return None if found is None else found.half


def _with_half(values: Sequence[float]) -> str:
    """The mean of ratios, ``1.25 ± 0.11``; a mean that is not finite has no interval."""
    found = _interval(values)
    return fixed(_mean(values)) if found is None or found.half is None else plus_minus(found)


def _paired(row: Mapping[str, Json]) -> list[str]:
    """Both means of a row of :meth:`Card.against`, and their difference by instance."""
    mean, theirs, half = row["own_mean_ratio"], row["mean_ratio"], row["difference_half"]
    apart = "-" if mean is None else plus_minus(Interval(mean - theirs, half, row["both"]))
    return [fixed(mean), fixed(theirs), apart]


def _figures(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, median, 90th percentile and worst; None where there are none, infinite where it earned nothing."""
    if not values:
        return dict.fromkeys(("mean", "median", "p90", "worst"))
    ordered = sorted(values)
    return {
        "mean": statistics.fmean(ordered),
        "median": statistics.median(ordered),
        "p90": ordered[math.ceil(0.9 * len(ordered)) - 1],
        "worst": ordered[-1],
    }


def _summary(values: Sequence[float]) -> dict[str, Json]:
    figures = {name: finite_value(value) for name, value in _figures(values).items()}
    return {"count": len(values), **figures, "half": _half(values)}
