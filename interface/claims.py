"""What papers prove, tried; the worst instances of heuristics and claims; a scheduler of one's own judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from schedgap.catalogue.problem import Problem
from schedgap.interrupt import at_work
from schedgap.reading import InstanceLike, read_instance

if TYPE_CHECKING:
    import pytest

    from schedgap.benchmarks.evaluation.card import Card
    from schedgap.benchmarks.evaluation.contained import Bounds
    from schedgap.benchmarks.evaluation.frozen import Development
    from schedgap.benchmarks.hunt.family.run import Lifted
    from schedgap.benchmarks.hunt.result import Hunted
    from schedgap.benchmarks.ledger.rows import Ledger
    from schedgap.benchmarks.online.environment import SchedulingEnv
    from schedgap.benchmarks.online.replay import Estimates
    from schedgap.benchmarks.sweep.progress import Sink
    from schedgap.formulations.common.instance import Instance


@at_work()
def verify(
    guarantees: Sequence[str] | None = None,
    *,
    claims: str | Path | None = None,
    instances: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Sink | None = None,
    workers: int | None = None,
    certify: bool = False,
    cluster: str | None = None,
) -> Ledger:
    """Try guarantees on many instances; every verdict is computed.

    Parameters
    ----------
    guarantees : ids; all where not given, those of `claims` where that is
    claims : a Python file with ``CLAIMS``, guarantees of your own
    instances : how many for each
    seed : of all instances
    out : the directory for counterexample files and the ledger as ``ledger.json`` and ``ledger.html``;
        ``counterexamples`` where not given
    progress : a stream, or a function that is told whole lines
    workers : processes; all cores where not given
    certify : count how many of the optima are certified; slow
    cluster : address of a Dask scheduler, whose workers are taken instead of processes of this machine

    Returns
    -------
    Ledger
        One row per guarantee.

    Raises
    ------
    InputError
        An unknown guarantee.
    Disagreement
        A heuristic beat a proven optimum, or the checker rejected a solution.
    """
    from schedgap.benchmarks.judging.judge import claims_from
    from schedgap.benchmarks.ledger.page import write_ledger
    from schedgap.benchmarks.ledger.verify import OUT
    from schedgap.benchmarks.ledger.verify import verify as run
    from schedgap.benchmarks.sweep.progress import Progress
    from schedgap.benchmarks.sweep.store import locked

    folder = OUT if out is None else Path(out)
    with locked(folder), claims_from(claims) as own:
        ids = guarantees or [claim.id for claim in own]
        ledger = run(
            ids,
            instances=instances,
            seed=seed,
            out=folder,
            progress=progress,
            workers=workers,
            certify=certify,
            cluster=cluster,
        )
        bar = Progress(0, progress, "verify")
        with bar.at_work("the ledger's page"):
            write_ledger(ledger, folder)
        bar.finish()
    return ledger


@at_work()
def hunt(
    target: str | Callable[..., object],
    *,
    problem: str | None = None,
    claims: str | Path | None = None,
    limits: Mapping[str, object] | None = None,
    budget: float | None = None,
    seed: int = 0,
    workers: int = 1,
    resume: bool = False,
    out: str | Path | None = None,
    cluster: str | None = None,
    around: InstanceLike | None = None,
    progress: Sink | None = None,
) -> Hunted:
    """Search for the instance on which a heuristic is furthest from the optimum, or a claim nearest to failing.

    Parameters
    ----------
    target : a guarantee's id, ``PROBLEM/HEURISTIC``, ``PROBLEM/package.module:function``, or a heuristic of
        your own: a callable ``(instance, *, seed) -> solution``
    problem : of a callable
    claims : a Python file with ``CLAIMS``, guarantees of your own
    limits : ``{"jobs": 4, "jobs.gpus": 2, "evaluations": 500}``, see docs/hunting.md
    budget : seconds; by counts where not given, and then the result depends on the seed alone
    seed, workers : of all randomness; processes (1 works in this one)
    resume : go on with the hunt in `out`
    cluster : address of a Dask scheduler, whose workers are taken instead of processes of this machine
    out : its folder; ``hunts/<target>`` where not given
    around : an instance, or its file, that it begins from instead of random ones
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Hunted
        ``value`` the ratio (or left/right), ``worst.data`` the shrunk instance, ``path`` its file, for ``compare``;
        ``defects`` a line for each instance on which parts of schedgap disagreed.

    Raises
    ------
    InputError
        Bad input, or a heuristic of your own that raised on every instance; the line names the first.

    Examples
    --------
    >>> hunt("rar-ddls/ff", limits={"jobs": 3, "evaluations": 100}).value  # doctest: +SKIP
    """
    from schedgap.benchmarks.hunt.run import hunt as run
    from schedgap.benchmarks.judging.judge import claims_from

    with claims_from(claims):
        return run(
            target,
            problem=problem,
            limits=limits,
            budget=budget,
            seed=seed,
            workers=workers,
            resume=resume,
            cluster=cluster,
            out=None if out is None else Path(out),
            progress=progress,
            around=None if around is None else read_instance(around)[1],
        )


@at_work()
def hunt_family(
    target: str,
    *,
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
    limits : those of :func:`hunt`, ``parameter`` (what n is: a list or a number of the instance), ``sizes`` (``2..4``)
        and ``beyond`` (sizes after these at which the generator is tried); see docs/families.md
    seed, workers, resume, cluster, progress : as of :func:`hunt`
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
    from schedgap.benchmarks.hunt.family.run import hunt_family as run

    folder = None if out is None else Path(out)
    return run(
        target, limits=limits, seed=seed, workers=workers, resume=resume, out=folder, cluster=cluster, progress=progress
    )


@at_work()
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
    progress: Sink | None = None,
) -> Card:
    """A report card: is it feasible everywhere, how far from the optimum, better or worse than the shipped methods?

    The scheduler runs in a process of its own with limits on time, memory and files. It is handed instances as data
    and hands back solutions as data; it never sees an optimum, the checker or what else goes on here, and nothing
    that it prints or patches reaches them. That keeps a scheduler from cheating and accidents from doing harm; it is
    no prison for hostile machine code.

    Parameters
    ----------
    scheduler : ``file.py:function``, ``package.module:function`` or such a function itself, called as
        ``function(instance, seed=seed)``
    problem : whose instances it takes
    on : instances, or their files, that it is judged on instead of those of families; it is hunted with a budget only
    claims : a Python file with ``CLAIMS``, guarantees of your own; those about this scheduler are judged
    budget : seconds for the hunt for its worst instance; by counts where not given
    seed : of all instances; drawn anew where not given, and told by the card
    out : folder for ``card.json``, ``card.html`` and the hunt; a new one beside it where there is one
    instances : of each family; 5 where not given
    time_limit : seconds for an instance
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
        has no file), a number is out of range, or there is no bubblewrap,
        or no online loop.
    Disagreement
        Its solution is better than a proven optimum: a defect of ours.
    """
    from schedgap.benchmarks.evaluation.places import files_among
    from schedgap.benchmarks.evaluation.run import EACH
    from schedgap.benchmarks.evaluation.run import evaluate as run
    from schedgap.benchmarks.judging.judge import claims_from
    from schedgap.benchmarks.online.replay import estimates_of
    from schedgap.benchmarks.report.page import picture, render
    from schedgap.benchmarks.sweep.store import held
    from schedgap.catalogue.method import users_name
    from schedgap.catalogue.registry import find_problem
    from schedgap.formulations.common.errors import InputError
    from schedgap.formulations.common.files import write_text

    named = users_name(scheduler)
    each = EACH if instances is None else instances
    if not 0 < each <= 10_000:
        raise InputError(f"instances: must be more than 0 and at most 10000, got {each:g}")
    bounds = replace(_bounds(time_limit, memory_limit, container), closed=files_among(on))
    chosen = find_problem(problem, "--problem")
    with held(Path(out), lambda one: (one / "card.json").exists()) as folder, claims_from(claims):
        card = run(
            named,
            chosen,
            budget=budget,
            seed=seed,
            out=folder,
            each=each,
            bounds=bounds,
            workers=workers,
            cluster=cluster,
            progress=progress,
            on=[read_instance(one)[1] for one in on],
            online=estimates_of(online, estimates),
            held_out=held_out,
        )
        if card.folder is not None:
            write_text(folder / "card.json", json.dumps(card.to_dict(), indent=1, allow_nan=False) + "\n")
            title = f"{named} on {problem}"
            card.write_worst()
            drawn = picture(card.figure(), "Every instance with a finite ratio; what failed has no dot.")
            told = {"headline": card.headline(), "sheets": card.sheets(), "seed": card.seed, "drawn": drawn}
            write_text(folder / "card.html", render("card.html", title, problem=chosen, **told))
    return card


def evaluate_frozen(
    scheduler: str | Callable[..., object],
    problem: str,
    *,
    online: bool = False,
    estimates: Estimates | None = None,
    time_limit: float = 2.0,
    memory_limit: float = 4.0,
    container: bool = False,
) -> Development:
    """A quick score on the library's small instances, whose optima or bounds are stored: nothing is solved.

    It is for programs that try many schedulers, and no card: the instances are always the same.
    :class:`schedgap.benchmarks.evaluation.frozen.FrozenJudge` judges many, each in a fork of one warm process.

    Parameters
    ----------
    scheduler, online, estimates, container : as for :func:`evaluate`
    problem : whose instances it takes
    time_limit : seconds for an instance
    memory_limit : GB of its process

    Returns
    -------
    Development
        ``score`` is the mean of 1/ratio, 0 for a failure; ``artifacts()`` says what went wrong, and where.

    Raises
    ------
    InputError
        The scheduler cannot be imported, or a number is out of range.
    Disagreement
        Its solution is better than a stored bound: a defect of ours.
    """
    from schedgap.benchmarks.evaluation.frozen import FrozenJudge
    from schedgap.benchmarks.online.replay import estimates_of
    from schedgap.catalogue.method import users_name
    from schedgap.catalogue.registry import find_problem

    bounds, told = _bounds(time_limit, memory_limit, container), estimates_of(online, estimates)
    chosen = find_problem(problem, "--problem")
    with FrozenJudge(chosen, bounds=bounds, estimates=told, warm=False) as judge:
        return judge.judge(users_name(scheduler))


def _bounds(time_limit: float, memory_limit: float, container: bool) -> Bounds:
    """What a judged scheduler may take on an instance."""
    from schedgap.benchmarks.evaluation import contained
    from schedgap.benchmarks.evaluation.places import bubblewrap
    from schedgap.formulations.common.errors import InputError

    for name, value, most in (("time_limit", time_limit, 1e6), ("memory_limit", memory_limit, 1e4)):
        if not 0 < value <= most:
            raise InputError(f"{name}: must be more than 0 and at most {most:g}, got {value:g}")
    return contained.Bounds(time_limit, int(memory_limit * 2**30), container=bubblewrap() if container else "")


def check_scheduler(function: Callable[..., object], problem: str | Problem) -> None:
    """Try a scheduler of one's own on two instances of each family of a problem, in this process.

    It must be callable as ``function(instance, seed=0)``, return a feasible solution or None, do the same for the
    same seed, and leave the instance as it is.

    Raises
    ------
    InputError
        One line that says what is wrong, and on which instance.
    """
    from schedgap.benchmarks.evaluation.checks import checks_of

    for check in checks_of([function], problem):
        check()


def parametrize_with_checks(functions: Sequence[Callable[..., object]], problem: str | Problem) -> pytest.MarkDecorator:
    """A decorator for a pytest test with the argument ``check``: one test for each check of each scheduler.

    Examples
    --------
    >>> @parametrize_with_checks([my_scheduler], "rar-ddls")  # doctest: +SKIP
    ... def test_my_scheduler(check):
    ...     check()
    """
    import pytest

    from schedgap.benchmarks.evaluation.checks import checks_of

    return pytest.mark.parametrize("check", [pytest.param(one, id=one.name) for one in checks_of(functions, problem)])


def new_package(
    kind: Literal["heuristic", "problem", "evaluator"],
    name: str,
    folder: str | Path | None = None,
    *,
    problem: str | None = None,
) -> list[Path]:
    """Write a package with a heuristic or a problem of one's own that passes its own tests; its files.

    An evaluator is for a program that writes schedulers of `problem`: ``name`` is its form, openevolve or plain, and
    ``folder`` the new folder itself.

    Raises
    ------
    InputError
        Not a name, or a folder that is there already.
    """
    from schedgap.benchmarks.evaluation.package import new_package as write

    return write(kind, name, None if folder is None else Path(folder), problem)


def make_env(
    problem: str,
    preset: str | None = None,
    *,
    estimates: Estimates = "exact",
    queue: int = 16,
    instances: Sequence[Instance] = (),
    **settings: object,
) -> SchedulingEnv:
    """The online loop as a Gymnasium environment (extra ``schedgap[rl]``).

    Parameters
    ----------
    problem : one whose jobs start wherever enough GPUs are free: gpu-sharing
    preset, settings : as for :func:`generate`; instances are drawn by the environment's seed
    estimates : what is told of lengths: ``exact``, ``user`` or ``none``
    queue : waiting jobs that are seen, in order of arrival
    instances : drawn from these instead, where there are any

    Returns
    -------
    An environment. Its actions are ``0 .. queue - 1``, to start the k-th waiting job, and ``queue``, to go on to the
    next event; ``action_masks()`` and ``info["action_mask"]`` say which are possible, and one that is not is taken for
    the last that is. Observations: ``jobs`` (queue, 3), by waiting job its share of the GPUs, its estimated slots and
    the slots it has waited, -1 where unknown; ``cluster`` (3,), the share of free GPUs and how many jobs wait and run;
    ``action_mask``. The rewards of an episode sum to minus the mean completion time in slots; the last ``info`` has
    ``objective`` and ``feasible``, of the checker.

    Raises
    ------
    InputError
        Gymnasium is not installed, the problem has no such loop, or an option is out of range.
    """
    from schedgap.benchmarks.online.replay import world_of
    from schedgap.catalogue.registry import find_problem
    from schedgap.formulations.common.errors import InputError
    from schedgap.instances import make

    try:
        from schedgap.benchmarks.online.environment import SchedulingEnv
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        raise InputError('make_env needs gymnasium: pip install "schedgap[rl]"') from None
    if not 1 <= queue <= 10_000:
        raise InputError(f"queue: must be from 1 to 10000, got {queue}")
    row = find_problem(problem)

    def draw(seed: int) -> Instance:
        return instances[seed % len(instances)] if instances else make(problem, preset, seed, settings)

    example = world_of(row, draw(0))
    if example is not None and not example.by_number:
        raise InputError(f"make_env: there is no environment for {problem}, whose jobs do not start on any free GPUs")
    return SchedulingEnv(row, draw, estimates, queue)
