"""The search of ``schedgap hunt --family``: one size after the other, each begun from what those before suggest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from schedgap.benchmarks.hunt.edits import fitted as fitted_to
from schedgap.benchmarks.hunt.journal import FILE, Journal
from schedgap.benchmarks.hunt.limits import Limits, Space, parse_limits
from schedgap.benchmarks.hunt.result import Hunted, amount
from schedgap.benchmarks.hunt.run import MOST_DEFECTS
from schedgap.benchmarks.hunt.starts import Starts, starts_of
from schedgap.benchmarks.hunt.target import Judge, Probe, Target
from schedgap.benchmarks.hunt.work import DISAGREEMENTS
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.tools.families.family import Family
from schedgap.tools.families.forms import (
    forms_of,
    instance_of,
)
from schedgap.tools.families.generator import Generator, continued, fitted, lengthened
from schedgap.tools.families.points import point
from schedgap.tools.families.regularity import irregular, made_regular, plateau
from schedgap.tools.families.stretch import stretched
from schedgap.tools.families.variants import variants

EVALUATIONS = 1500
"""Instances tried at each size unless the limits say otherwise."""


KEPT = 6
"""Instances of each size that are made regular and looked for patterns in."""


SEEDS = 8
"""Instances, built by the generators found so far, that a hunt at the next size begins from."""


GUESSED = 2
"""Instances of one size that are continued to the next."""


PAIRS = 300
"""Lines through pairs of instances that are tried at a size."""


TRIED = 12
"""Generators that are tried at other sizes, the simplest ones."""


SAME = 1e-9


BEYOND = 20.0
"""Times the work of the hunt that an exact solve beyond the hunted sizes may take."""


@dataclass
class Search:
    """A search for a family under way."""

    target: Target
    parameter: str
    is_list: bool
    given: Mapping[str, Json]
    suggested: int
    last: int
    seed: int
    folder: Path
    bar: Progress
    hunted: Callable[[int, Starts, Mapping[str, Json]], Hunted]
    found: dict[int, list[Probe]] = field(default_factory=dict)
    worst: dict[int, float] = field(default_factory=dict)
    others: list[Probe] = field(default_factory=list)
    parents: dict[tuple[Json, ...], Probe] = field(default_factory=dict)
    spaces: dict[int, Space] = field(default_factory=dict)
    alike: dict[int, list[Probe]] = field(default_factory=dict)
    paired: list[Generator] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def judge(self, work: float) -> Judge:
        """Evaluates instances; what faults is told in the end."""
        return Judge(self.target, work, self.folder / DISAGREEMENTS, self.defects, self.lost)

    def tried(self, judge: Judge, data: Mapping[str, Json], options: Mapping[str, Json], least: float) -> Probe | None:
        """An instance evaluated; after many defects no more are."""
        return None if len(self.defects) >= MOST_DEFECTS else judge(data, options, least)

    def limits_at(self, n: int) -> Limits:
        """The limits of a hunt at size n."""
        own = {self.parameter: n if self.is_list else f"{n}..{n}"}
        preset = workload_of(self.target.problem).presets[0].id
        defaults: dict[str, Json] = {"evaluations": EVALUATIONS, "start": preset, "keep": 1.0}
        return parse_limits(self.target.problem, self.target.method, {**defaults, **self.given, **own})

    def at(self, n: int) -> None:
        """Hunt at size n, from random instances and from what the smaller sizes suggest."""
        limits = self.limits_at(n)
        plain = starts_of(self.target, limits)
        lengths = {key: n * n + 1 for key in plain.space.lengths if key not in limits.lengths}
        space = replace(plain.space, digits=1, regular=True, lengths={**plain.space.lengths, **lengths})
        ranges = replace(space, numbers=limits.numbers)
        self.spaces[n] = space
        judge = self.judge(limits.search["work"])
        options = {**plain.options[0], **plain.fixed}
        built = [data for one in self.generators(n)[:SEEDS] if (data := _built(one, n)) is not None]
        before = [found.data for m in sorted(self.found)[-1:] for found in self.found[m][:KEPT]]
        fixed = {self.parameter, *(key for key, most in space.lengths.items() if most == 1)}
        with self.bar.at_work(f"n = {n}: trying what n = {n - 1} suggests"):
            tries: list[tuple[Mapping[str, Json], Probe | None]] = [(data, None) for data in built]
            tries += [
                (data, one) for one in self.found.get(n - 1, [])[:GUESSED] for data in continued(one.data, n - 1, fixed)
            ]
            tries += [
                (data, one) for one in self.others for data in continued(one.data, n - 1, fixed, counts_only=True)
            ]
            extra = self._good(judge, options, [(fitted_to(data, space), one) for data, one in tries[: self.suggested]])
        with self.bar.at_work(f"n = {n}: lines through pairs of instances at n = {n - 2} and {n - 1}"):
            pairs = self._pairs(n, judge, options)
        extra = sorted({one.key: one for one in (*extra, *(found for _, found in pairs))}.values(), key=lambda x: x.key)
        seeds = [dict(data) for data in (*(found.data for found in extra[:SEEDS]), *before)]
        made = self.hunted(n, replace(plain, space=space, seeds=tuple(seeds)), dict(limits.given))
        self.defects += made.defects
        self.lost += made.lost
        journal = Journal(made.folder / FILE).lines()
        lines = [Probe.from_dict(line["found"]) for line in journal if line.get("kind") == "found"]
        every = sorted({one.key: one for one in (*extra, *lines)}.values(), key=lambda one: one.key)
        if not every:
            self.bar.say(f"family: n = {n}: no instance counts")
            return
        self.worst[n] = every[0].value
        least = every[0].value * limits.search["keep"] * (1 - SAME)
        self.paired = [one for one, found in pairs if found.value >= least]
        best = list({_plain(one.data) or one.key: one for one in every if one.value >= least}.values())
        best.sort(key=lambda one: irregular(one.data, space))
        kept = {one.key: one for one in extra if one.value >= least}
        with self.bar.at_work(f"n = {n}: making {len(best[:KEPT])} instances regular"):
            for k, one in enumerate(best[:KEPT]):
                rng = np.random.default_rng([self.seed, n, k])
                small = made_regular(one, ranges, lambda data: self.tried(judge, data, options, least), rng)
                kept[small.key] = small
        distinct = {_plain(one.data) or one.key: one for one in kept.values()}
        self.found[n] = sorted(distinct.values(), key=lambda one: irregular(one.data, space))
        # What the best of these were made of is worth as much as what the hunt at the size before kept.
        made_of = [self.parents[one.key] for one in kept.values() if one.key in self.parents]
        self.found.get(n - 1, []).extend(one for one in made_of if one not in self.found[n - 1])
        first = self.found[n][0]
        if n < self.last:
            with self.bar.at_work(f"n = {n}: other instances of this ratio"):
                rng = np.random.default_rng([self.seed, n, KEPT])
                self.others = plateau(first, space, lambda data: self.tried(judge, data, options, least), rng)
        runs = ", ".join(f"{len(value)} {key}" for key, value in first.data.items() if isinstance(value, list))
        self.bar.say(
            f"family: n = {n}: ratio {first.value:.9g}, {runs}; {len(extra)} suggested by smaller sizes, "
            f"the worst of them {amount(extra[0].value if extra else None)}"
        )

    def _pairs(self, n: int, judge: Judge, options: Mapping[str, Json]) -> list[tuple[Generator, Probe]]:
        """Generators that are lines through two regular instances of the two sizes before, and are worst at n."""
        sizes = [m for m in (n - 2, n - 1) if m in self.found]
        if len(sizes) < 2:
            return []
        for m in sizes:
            if m not in self.alike:
                self.alike[m] = self._alike(m, judge, options)
        best: list[tuple[Generator, Probe]] = []
        least = 1.0
        for one in fitted({m: [found.data for found in self.alike[m]] for m in sizes}, 1)[:PAIRS]:
            data = _built(one, n)
            if data is None or not _within(data, self.spaces[n]):
                continue
            found = self.tried(judge, data, options, least * (1 - SAME))
            if found is not None:
                best.append((one, found))
                least = max(least, found.value)
        return [(one, found) for one, found in best if found.value >= least * (1 - SAME)]

    def _alike(self, m: int, judge: Judge, options: Mapping[str, Json]) -> list[Probe]:
        """Regular instances of size m and its ratio: around the most regular ones, and what n = m + 1 is made of."""
        every, space = self.found[m], self.spaces[m]
        least = every[0].value * (1 - SAME)

        def tried(data: Mapping[str, Json]) -> Probe | None:
            return self.tried(judge, data, options, least) if _within(data, space) else None

        chosen = list({one.key: one for one in (*every[:GUESSED], *every[-GUESSED:])}.values())
        around = [other for one in chosen for other in variants(one, tried)]
        return sorted({one.key: one for one in (*chosen, *around)}.values(), key=lambda x: irregular(x.data, space))

    def families(self, sizes: Sequence[int], command: str) -> list[Family]:
        """The families found, the best first: closed forms that hold, high ratios, simple generators."""
        method = self.target.method
        assert method is not None
        sense, found = self.target.problem.sense, []
        for one in self.generators()[:TRIED]:
            options = dict(self.found[min(self.found)][0].options)
            points = []
            for n in sizes:
                data = _built(one, n)
                limit = self.limits_at(n).search["work"] * (1 if n in self.found else BEYOND)
                with self.bar.at_work(f"a generator at n = {n}"):
                    made = None if data is None else point(self.judge(limit), n, data, options)
                if made is not None:
                    points.append(made)
                elif n > max(self.found):
                    break
            fitted_on = tuple(n for n in sorted(self.found) if self._reaches(one, n))
            if len([p for p in points if p.n in self.found]) < 3:
                continue
            hunted = {n: self.worst[n] for n in sorted(self.found)}
            family = Family(
                self.target.problem,
                method.id,
                options,
                self.parameter,
                one,
                tuple(points),
                fitted_on,
                hunted,
                command,
            )
            found.append(family)
            self.bar.say(f"family: {family.to_text().splitlines()[0]}")
        largest = {n: max((p.ratio(sense) for f in found for p in f.points if p.n == n), default=None) for n in sizes}

        def order(family: Family) -> tuple[float, ...]:
            reached = sum(p.ratio(sense) == largest[p.n] for p in family.points)
            return (family.closed is None, -reached, family.generator.complexity)

        found.sort(key=order)
        if found and found[0].closed is not None:
            first = found[0]
            done = tuple(p.n for p in first.points)
            with self.bar.at_work("a second parameter"):
                work = self.limits_at(sizes[0]).search["work"] * BEYOND
                more = stretched(self.judge(work), first.generator, done, first.options)
            found[0] = replace(first, stretch=more)
        return found

    def _reaches(self, one: Generator, n: int) -> bool:
        """Whether an instance found at n is one of this generator."""
        data = _built(one, n)
        every = (*self.found[n], *self.alike.get(n, ()))
        return data is not None and any(_plain(found.data) == _plain(data) for found in every)

    def _good(
        self, judge: Judge, options: Mapping[str, Json], tries: Sequence[tuple[Mapping[str, Json], Probe | None]]
    ) -> list[Probe]:
        """The best of some instances, the worst for the heuristic first; `parents` learns what they were made of."""
        best: dict[str, Probe] = {}
        seen: set[str] = set()
        least = 1.0
        for data, parent in tries:
            found = None if str(data) in seen else self.tried(judge, data, options, least * (1 - SAME))
            seen.add(str(data))
            if found is not None:
                best[str(data)] = found
                if parent is not None:
                    self.parents[found.key] = parent
                if len(best) >= SEEDS:
                    least = sorted(found.value for found in best.values())[-SEEDS]
        return sorted(best.values(), key=lambda found: found.key)

    def generators(self, n: int | None = None) -> list[Generator]:
        """Through what was found so far: for a seed (two sizes are enough), or to stay (three)."""
        sizes = sorted(self.found)
        windows = [sizes[-3:], sizes[-2:]] if n is not None else _windows(sizes)
        found: dict[str, Generator] = {}
        for window in windows:
            if len(window) >= (2 if n is not None else 3):
                instances = {m: [one.data for one in self.found[m]] for m in window}
                for one in fitted(instances, min(2, len(window) - 1))[:TRIED]:
                    found.setdefault(json.dumps(one.to_dict(), sort_keys=True), one)
        if self.is_list:
            for m in sizes:
                for data in self.found[m][:GUESSED]:
                    for one in lengthened(data.data, m, self.parameter):
                        found.setdefault(json.dumps(one.to_dict(), sort_keys=True), one)
        made = sorted(found.values(), key=lambda one: one.complexity)
        # A line through two sizes that is worst at a third one has passed a test that a curve through three has not.
        return made if n is not None else [*self.paired[: TRIED // 2], *made]


def _windows(sizes: Sequence[int]) -> list[list[int]]:
    """All sizes, then fewer and fewer that follow each other, at least three."""
    every = [list(sizes[a:b]) for a in range(len(sizes)) for b in range(a + 3, len(sizes) + 1)]
    return sorted(every, key=lambda window: -len(window))


def _built(one: Generator, n: int) -> dict[str, Json] | None:
    try:
        return one(n)
    except InputError:
        return None


def _within(data: Mapping[str, Json], space: Space) -> bool:
    return dict(fitted_to(data, space)) == dict(data)


def _plain(data: Mapping[str, Json]) -> str:
    forms = forms_of(data)
    return json.dumps(instance_of(forms[0]), sort_keys=True) if forms else ""
