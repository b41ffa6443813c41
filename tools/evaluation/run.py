"""A foreign scheduler on the instances of a problem: run, checked, compared, hunted."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from schedgap.benchmarks.hunt.result import Hunted
from schedgap.benchmarks.hunt.run import hunt
from schedgap.benchmarks.hunt.target import Target
from schedgap.benchmarks.judging.judge import evaluate as judge_claim
from schedgap.benchmarks.judging.judge import guarantees_of
from schedgap.benchmarks.judging.users_claims import claims_from
from schedgap.benchmarks.report.page import picture, render
from schedgap.benchmarks.sweep.cluster import check_cluster
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.sweep.store import held, locked
from schedgap.benchmarks.sweep.sweep import sweep
from schedgap.catalogue.agreement import Answer, agree, kept, write_disagreement
from schedgap.catalogue.method import SHAPE, one_line
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import InstanceLike, find_problem, read_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import Disagreement, InputError, SchedgapError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json
from schedgap.heuristics.common.guarantee import Case, Guarantee, Verdict
from schedgap.solvers.result import SolveOptions, Status
from schedgap.tools.evaluation.card import Card, Trial
from schedgap.tools.evaluation.contained import GIVE_UP, Bounds, Contained, Judged
from schedgap.tools.evaluation.drawn import (
    as_options,
    drawn_instances,
    given_instances,
    held_out_families,
    parsed_settings,
    secret_seed,
    set_families,
)
from schedgap.tools.evaluation.named import users_name
from schedgap.tools.evaluation.online import adversary, scheduled, watch
from schedgap.tools.evaluation.own_length import ratio_at_own_length
from schedgap.tools.evaluation.places import files_among
from schedgap.tools.online.replay import Estimates, estimates_of, loop_of

EACH = 5
"""Instances of each family."""
WORK_LIMIT = 20.0
"""Repeatable limit of each exact solve."""
EVALUATIONS = 200
"""Instances that its hunt tries where no budget is given."""
LARGEST_KEPT = 1 << 20
"""Bytes of a solution that is kept: there may be many, each with millions of them."""


def _given(instance: InstanceLike, problem: Problem) -> Instance:
    """An instance of the problem; InputError names the file that has another one's."""
    found, read = read_instance(instance)
    if found.id != problem.id:
        where = "instance" if isinstance(instance, Instance) else instance
        raise InputError(f"{where}: is of {found.id}, not of {problem.id}")
    return read


def evaluate(
    scheduler: str | Callable[..., object],
    problem: str,
    *,
    on: Sequence[InstanceLike] = (),
    claims: str | Path | None = None,
    budget: float | None = None,
    seed: int | None = None,
    out: str | Path = "evaluation",
    instances: int | None = None,
    time_limit: float = 10.0,
    memory_limit: float = 4.0,
    workers: int | None = None,
    cluster: str | None = None,
    container: bool = False,
    online: bool = False,
    estimates: Estimates | None = None,
    held_out: bool = False,
    settings: Mapping[str, object] = MappingProxyType({}),
    progress: Sink | None = None,
) -> Card:
    """A report card: is it feasible everywhere, how far from the optimum, better or worse than the shipped methods?

    The scheduler runs in a process of its own with limits on time, memory and files. It is handed instances as data
    and hands back solutions as data; it never sees an optimum, the checker or what else goes on here, and nothing
    that it prints or patches reaches them. That keeps a scheduler from cheating and accidents from doing harm; it is
    no prison for hostile machine code. It runs on all instances before any optimum is looked for, so there is none that
    it could find, and no other work slows it down.

    Parameters
    ----------
    scheduler : ``file.py:function``, ``package.module:function`` or such a function itself, called as
        ``function(instance, seed=seed)``
    problem : whose instances it takes
    on : instances, or their files, that it is judged on instead of those of families; it is hunted with a budget only
    claims : a Python file with ``CLAIMS``, guarantees of your own; those about this scheduler are judged
    budget : seconds for the hunt for its worst instance; by counts where not given
    seed : seed of all instances; drawn anew where not given, and told by the card
    out : folder for ``card.json``, ``card.html`` and the hunt; a new one beside it where there is one
    instances : number of instances of each family; 5 where not given
    time_limit : seconds of a processor for an instance; three times that for one that sleeps
    memory_limit : GB of its process
    workers : processes that find out what is known of the instances, after the scheduler has run on all of them; all
        cores where not given. The scheduler itself, and its hunt, are one process of this machine
    cluster : address of a Dask scheduler, whose workers are taken for that instead
    container : run the scheduler in bubblewrap, too
    online : the scheduler is a policy, a class with ``decide(state) -> actions``
        that is told of a job when it arrives
    estimates : what it is told of lengths then: ``"exact"``,
        ``"user"`` (1 to 5 times the length) or ``"none"``, the default
    held_out : on families that are drawn now, too; exact methods of schedgap are not for it
    settings : settings of generators, such as ``{"ample": True}``: the families are the presets that have all of them
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Card
        ``score`` is the mean of 1/ratio over all instances, 0 for a failure; ``to_dict()`` is a stable JSON form.
        Where Ctrl-C ended its hunt the card says so and is not written.

    Raises
    ------
    InputError
        The scheduler cannot be imported (a lambda, or what a notebook defines,
        has no file), a number is out of range, no preset has a setting, or there is no bubblewrap,
        or no online loop.
    Disagreement
        Its solution is better than a proven optimum: a defect of ours.
    """
    named = users_name(scheduler)
    if ":" not in named:
        raise InputError(f"scheduler {named}: must look like {SHAPE}")
    each = EACH if instances is None else instances
    if not 0 < each <= 10_000:
        raise InputError(f"instances: must be more than 0 and at most 10000, got {each:g}")
    if held_out and on:
        raise InputError("--held-out: not with --on, whose instances are given")
    if settings and on:
        raise InputError("--set: not with --on, whose instances are given")
    bounds = Bounds.of(time_limit, memory_limit, container)
    chosen = find_problem(problem, "--problem")
    families = parsed_settings(chosen, settings) if settings else {}
    with held(Path(out), lambda one: (one / "card.json").exists()) as folder, claims_from(claims):
        bounds = replace(bounds, closed=(*files_among(on), folder), heuristics_only=held_out)
        given, told = [_given(one, chosen) for one in on], estimates_of(online, estimates)
        card = _card(
            named, chosen, given, families, told, each, bounds, seed, budget, folder, workers, cluster, progress
        )
        if card.folder is not None:
            write_text(folder / "card.json", json.dumps(card.to_dict(), indent=1, allow_nan=False) + "\n")
            card.write_worst()
            drawn = picture(card.figure(), "Every instance with a finite ratio; what failed has no dot.")
            parts = {"headline": card.headline(), "sheets": card.sheets(), "seed": card.seed, "drawn": drawn}
            write_text(folder / "card.html", render("card.html", f"{named} on {problem}", problem=chosen, **parts))
    return card


def _card(
    scheduler: str,
    problem: Problem,
    on: Sequence[Instance],
    settings: Mapping[str, Json],
    online: Estimates | None,
    each: int,
    bounds: Bounds,
    seed: int | None,
    budget: float | None,
    out: Path,
    workers: int | None,
    cluster: str | None,
    progress: Sink | None,
) -> Card:
    """The card, and the hunt in `out`; on instances that are given it is hunted only where there is a budget."""
    check_cluster(cluster)
    say = Progress(0, progress, "").say
    if online is not None:
        loop_of(problem)
    is_seed_chosen = seed is not None
    if seed is None:
        seed = 0 if on else secret_seed()
    if on:
        chosen, fixed = given_instances(problem, on)
    else:
        secret = bounds.heuristics_only
        families = held_out_families(problem, seed, say, settings) if secret else None
        if settings and not secret:
            families = set_families(problem, settings, say)
        chosen, fixed = drawn_instances(problem, seed, each, families, secret=secret)
    bar = Progress(2 * len(chosen) + 1, progress, "evaluate")
    if fixed:
        bar.say(f"evaluate: not judged, since their instances are known to everybody: {', '.join(fixed)}")
    with scheduled(scheduler, problem, bounds, online) as contained:
        try:
            answers = list(_answers(contained, chosen, bar, out / "rejected"))
            if not (is_seed_chosen or on):  # told only now: lines may go to a file that the scheduler can read
                again = ["--held-out"] if bounds.heuristics_only else []
                again += [f"--instances {each}"] if each != EACH else []
                again += [f"--set {as_options(settings)}"] if settings else []
                told = " ".join([*again, f"--seed {seed}"])
                bar.say(f"evaluate: seed {seed}, drawn anew; {told} repeats these instances")
            outside = contained.outside_model
            watched = None if online is None else watch(contained, [one[2] for one in chosen], bar.say)
            questions = [_Question(problem, *one, solve=not outside) for one in chosen]
            references = _references(questions, workers or os.cpu_count() or 1, cluster, bar)
            trials = [
                _judged(question, reference, contained, answer)
                for question, reference, answer in zip(questions, references, answers, strict=True)
            ]
            hunted = None
            hunts = any(trial.objective is not None for trial in trials) and (budget is not None or not on)
            if watched is not None and hunts:
                bar.say("evaluate: an adversary watches its decisions")
                watched = replace(watched, adversary=adversary(contained, seed, out))
            if hunts and not outside:
                bar.say("evaluate: hunts for its worst instance")
                limits = {} if budget is not None else {"evaluations": EVALUATIONS}
                target = Target(problem, contained.method(), goes_on="")
                _set_aside(out / "hunt")
                try:
                    hunted = hunt(target, budget=budget, limits=limits, seed=seed, out=out / "hunt", progress=bar.say)
                except InputError as error:
                    bar.say(f"evaluate: no hunt: {error}")
            claims = _claims(problem, scheduler, trials, hunted)
            whole = hunted is None or hunted.finished
            folder = out if whole else None
            seen = (contained.peak, folder, contained.isolated, watched)
            return Card(scheduler, problem, seed, trials, claims, hunted, *seen, is_seed_chosen, settings)
        finally:
            bar.finish()


def _set_aside(folder: Path) -> None:
    """Rename the hunt of an evaluation that was killed, and no other: the scheduler may have changed since."""
    if folder.exists():
        numbers = itertools.count(1)
        with locked(folder):
            folder.rename(next(to for k in numbers if not (to := folder.with_name(f"hunt-unfinished-{k}")).exists()))


def _answers(
    contained: Contained, chosen: Iterable[tuple[str, int, Instance]], bar: Progress, rejected: Path
) -> Iterable[Judged]:
    """What it answers, no more than one large answer held at a time; what the checker rejects is kept there.

    Its own randomness gets the instance's place in the list, which tells no seed of an instance.
    """
    ended = 0
    for place, (family, _, instance) in enumerate(chosen):
        bar.step(f"{family}, instance {place + 1}")
        if ended >= GIVE_UP:
            message = f"not tried: it gave no answer {GIVE_UP} times one after another"
            yield Judged(failure="untried", message=message)
            continue
        with bar.at_work(f"{family}, instance {place + 1}"):
            found = contained.judged(instance, place)
        ended = ended + 1 if found.ended else 0
        if found.solution is not None and len(json.dumps(found.solution)) > LARGEST_KEPT:
            note = "; too large to be kept" if found.failure else ""
            found = replace(found, message=found.message + note, solution=None)
        elif found.solution is not None and found.failure:
            file = kept(found.solution, instance, contained.name, rejected)
            found = replace(found, message=f"{found.message}; see: {file}", solution=None)
        yield found


@dataclass(frozen=True)
class _Question:
    """An instance of which a worker finds out what is known."""

    problem: Problem
    family: str
    seed: int
    instance: Instance
    solve: bool = True
    """Whether an optimum says anything of the schedules that are judged."""

    @property
    def label(self) -> str:
        return f"{self.family} {self.seed}"


@dataclass(frozen=True)
class _Reference:
    """What the exact method and the shipped heuristics say of an instance; the heuristics' objectives by id."""

    answers: tuple[Answer, ...] = ()
    others: Mapping[str, float | None] = field(default_factory=dict)
    disagreement: str = ""
    """Or a fault of a method, which ends the evaluation."""
    cut: tuple[str, ...] = ()
    """Shipped heuristics that a limit ended."""


def _reference(question: _Question) -> _Reference:
    problem, instance, seed = question.problem, question.instance, question.seed
    options = SolveOptions(threads=1, work_limit=WORK_LIMIT, seed=seed)
    try:
        found: list[Answer] = []
        if question.solve:
            exact = run_method(problem, instance, problem.default_method(instance), options)
            found.append(Answer("the exact method", exact.status, exact.objective, exact.bound, exact=True))
        others: dict[str, float | None] = {}
        cut: list[str] = []
        for method in problem.heuristics():
            if method.outside_model or method.is_user_defined:
                continue
            run = run_method(problem, instance, method, SolveOptions(seed=seed))
            if run.info.get("outside_model"):
                continue
            if run.info.get("stopped"):
                cut.append(method.id)
            else:
                others[method.id] = run.objective
            found.append(Answer(method.id, run.status, run.objective, run.bound))
    except Exception as error:  # also a fault of ours is told where the card is made
        said = str(error) if isinstance(error, SchedgapError) else one_line(error)
        return _Reference(disagreement=f"{question.family} {seed}: {said}")
    return _Reference(tuple(found), others, cut=tuple(cut))


def _references(questions: Sequence[_Question], workers: int, cluster: str | None, bar: Progress) -> list[_Reference]:
    """The references of each instance; of one whose worker died twice nothing is known, which is said."""
    found: dict[int, _Reference] = {}

    def done(question: _Question, reference: _Reference) -> None:
        found[id(question)] = reference
        bar.step(question.label)
        if reference.disagreement:
            raise Disagreement(reference.disagreement)

    def died(question: _Question, reason: str, _seconds: float) -> None:
        bar.say(f"evaluate: {question.label}: no optimum is known: {reason}")
        done(question, _Reference())

    sweep(
        questions,
        _reference,
        done,
        died,
        label=lambda question: question.label,
        bar=bar,
        workers=workers,
        inside=True,
        cluster=cluster,
        kept="nothing is kept, evaluate begins anew",
    )
    return [found[id(question)] for question in questions]


def _judged(question: _Question, reference: _Reference, contained: Contained, answer: Judged) -> Trial:
    """Compare the answer with what is known of the instance."""
    problem, instance = question.problem, question.instance
    found = [] if contained.outside_model else list(reference.answers)
    if answer.objective is not None:
        found.append(Answer(contained.name, Status.FEASIBLE, answer.objective, None))
    agreement = agree(found, problem.sense, contained.certified_bound(instance))
    if agreement.contradictions:
        path = write_disagreement(instance, message="; ".join(agreement.contradictions), solution=answer.solution)
        raise Disagreement(f"{'; '.join(agreement.contradictions)}; the instance is in {path}")
    told = (answer.objective, answer.failure, answer.message, answer.seconds)
    own = (
        answer.own_length,
        ratio_at_own_length(problem, instance, contained.name, answer.own_length, agreement.bound),
    )
    return Trial(question.family, question.seed, instance, *told, agreement, reference.others, reference.cut, *own)


def _claims(
    problem: Problem, scheduler: str, trials: Sequence[Trial], hunted: Hunted | None
) -> list[tuple[Guarantee, int, int, int, float | None]]:
    """The user's claims about this scheduler on every instance and on the worst of its hunt.

    An instance without a feasible solution counts as not applicable.
    """
    cases = [Case(one.instance, one.objective, {}, one.known.optimum, one.known.bound) for one in trials]
    worst = None if hunted is None else hunted.largest
    if worst is not None:
        instance = problem.instance_class.parse(dict(worst.data))
        cases.append(Case(instance, worst.objective, {}, worst.optimum, worst.optimum))
    rows = []
    for claim in guarantees_of(problem, scheduler):
        judged = [judge_claim(claim, case).evaluation for case in cases if case.objective is not None]
        held, refuted = (sum(one.verdict is verdict for one in judged) for verdict in (Verdict.HELD, Verdict.REFUTED))
        tightest = max((one.tightness for one in judged if one.tightness is not None), default=None)
        rows.append((claim, held, refuted, len(cases) - held - refuted, tightest))
    return rows
