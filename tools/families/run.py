"""``schedgap hunt --family``: hunts at several sizes, generators through what they found, tried at sizes beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field as Allowed

from schedgap.benchmarks.hunt.fields import patterns_of
from schedgap.benchmarks.hunt.result import Hunted, lost_line
from schedgap.benchmarks.hunt.run import OUT, begin, holds_a_hunt, hunt
from schedgap.benchmarks.hunt.starts import Starts
from schedgap.benchmarks.hunt.target import Target, find_target
from schedgap.benchmarks.sweep.cluster import check_cluster
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.sweep.store import held
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.options import options_of
from schedgap.tools.families.family import Family
from schedgap.tools.families.search import Search

NAME = "FAMILY.json"


def _own(
    *,
    parameter: Annotated[str | None, Allowed(description="what n is: a list (jobs) or a number (horizon)")] = None,
    sizes: Annotated[str, Allowed(description="the values of n that are hunted at")] = "2..4",
    suggested: Annotated[
        int, Allowed(ge=0, le=10**6, description="instances tried that a smaller size suggests")
    ] = 6000,
    beyond: Annotated[int, Allowed(ge=0, le=50, description="sizes after these at which a generator is tried")] = 4,
) -> None:
    """What ``--family`` adds to the limits of a hunt."""


OPTIONS = options_of(_own)
"""The limits that only ``--family`` has."""


@dataclass(frozen=True)
class Lifted:
    """What a search for families comes to."""

    target: Target  # what was hunted
    families: tuple[Family, ...]  # the best first
    hunted: Mapping[int, float]  # the largest ratio found, by size
    folder: Path  # where everything is; the best family is in FAMILY.json
    finished: bool = True  # False after Ctrl-C
    # defects, lost: as of a hunt, of all of this
    defects: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def path(self) -> Path | None:
        """The file of the best family."""
        return self.folder / NAME if self.families else None

    def to_text(self) -> str:
        """A few lines for a person."""
        ratios = ", ".join(f"{value:.6g} at n = {n}" for n, value in self.hunted.items())
        if not self.finished:
            lines = [f"{self.target.id}: interrupted; " + (f"hunts found {ratios}" if ratios else "nothing found yet")]
        elif not self.families:
            found = f"hunts found {ratios}" if ratios else "no instance counted"
            lines = [f"{self.target.id}: no family whose ratio has a closed form; {found}"]
        else:
            lines = [self.families[0].to_text(), f"  written    {self.path}"]
        return "\n".join([*lines, *lost_line(self.lost)])


def hunt_family(
    target: str | Target,
    *,
    problem: str | Problem | None = None,
    limits: Mapping[str, object] | None = None,
    seed: int = 0,
    workers: int = 1,
    resume: bool = False,
    out: str | Path | None = None,
    cluster: str | None = None,
    progress: Sink | None = None,
) -> Lifted:
    """Hunt at several sizes n, and lift what was found to a generator with its ratio as a function of n.

    Parameters
    ----------
    target : ``PROBLEM/HEURISTIC``
    limits : limits of :func:`~schedgap.benchmarks.hunt.run.hunt`, ``parameter`` (what n is: a list or a number of the
        instance), ``sizes`` (``2..4``) and ``beyond`` (sizes after these at which the generator is tried); see
        docs/hunting.md
    problem, seed, workers, resume, cluster, progress : see :func:`~schedgap.benchmarks.hunt.run.hunt`
    out : its folder; ``hunts/family-<target>`` where not given

    Returns
    -------
    Lifted
        ``families``, the best first, which is also in ``path``; a conjecture, no proof.

    Raises
    ------
    InputError
        Bad input.

    Examples
    --------
    >>> hunt_family("rar-ddls/ls", limits={"parameter": "servers.gpus", "servers": 1})  # doctest: +SKIP
    """
    chosen = target if isinstance(target, Target) else find_target(target, problem)
    if chosen.guarantee is not None or chosen.method is None:
        raise InputError(f"hunt: --family lifts the ratio of a heuristic, and {chosen.id} is a claim")
    given = dict(limits or {})
    own = {name: option.parse(given.pop(name)) if name in given else option.default for name, option in OPTIONS.items()}
    parameter, is_list = _parameter(chosen, own["parameter"], given)
    first, last = _sizes(own["sizes"])
    name = f"family-{''.join(c if c.isalnum() or c in '-_.' else '-' for c in chosen.id)}"
    check_cluster(cluster)
    with held(OUT / name if out is None else Path(out), holds_a_hunt, resume) as folder:

        def hunted(n: int, starts: Starts, bounds: Mapping[str, Json]) -> Hunted:
            made = hunt(
                chosen,
                limits=bounds,
                seed=seed,
                workers=workers,
                resume=True,
                out=folder / f"n-{n}",
                progress=progress,
                cluster=cluster,
                around=starts,
            )
            if not made.finished:
                if made.value is not None:
                    search.worst[n] = made.value
                raise KeyboardInterrupt
            return made

        bar = Progress(0, progress, "family")
        search = Search(chosen, parameter, is_list, given, own["suggested"], last, seed, folder, bar, hunted)
        search.limits_at(first)
        bounds = {name: str(value) for name, value in {**given, "suggested": own["suggested"]}.items()}
        begin(folder, {"target": chosen.id, "family": parameter, "limits": bounds, "seed": seed})
        shown = {**given, **{name: value for name, value in own.items() if value != OPTIONS[name].default}}
        settings = " ".join(f"{name}={value}" for name, value in shown.items())
        command = f"schedgap hunt {chosen.id} --family" + (f" --set {settings}" if settings else "") + f" --seed {seed}"
        families: list[Family] = []
        finished = True
        try:
            for n in range(first, last + 1):
                search.at(n)
            if len(search.found) >= 3:
                families = search.families(range(first, last + own["beyond"] + 1), command)
        except KeyboardInterrupt:
            finished = False
        finally:
            bar.finish()
        # Without a closed form the pattern broke at one of the sizes: the lines above tell, and no family is kept.
        families = [family for family in families if family.closed is not None]
        if families:
            families[0].write(folder / NAME)
        best = dict(sorted(search.worst.items()))
        defects, lost = (tuple(dict.fromkeys(lines)) for lines in (search.defects, search.lost))
        return Lifted(chosen, tuple(families), best, folder, finished, defects, lost)


def _parameter(target: Target, name: str | None, given: Mapping[str, Json]) -> tuple[str, bool]:
    """What n is, and whether it is the length of a list."""
    known = patterns_of(target.problem.instance_class.model_json_schema())
    there = [pattern for pattern, kind in known.items() if kind in ("list", "number")]
    chosen = name or next(pattern for pattern in ("jobs", "tasks", *there) if pattern in there)
    if chosen not in there:
        raise InputError(
            f"limit parameter: unknown list or number {chosen!r}, one of: {', '.join(there)}{near(chosen, there)}"
        )
    if chosen in given:
        raise InputError(f"limit {chosen}: is the parameter of the family; sizes=LOW..HIGH says what it is")
    return chosen, known[chosen] == "list"


def _sizes(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    if not dots or not low.isdecimal() or not high.isdecimal() or not 1 <= int(low) <= int(high) - 2 <= 100:
        raise InputError(f"limit sizes: must be LOW..HIGH, three sizes or more from 1, got {text!r}")
    return int(low), int(high)
