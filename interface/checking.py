"""Solutions checked, with what is claimed of them; a cluster's log audited, whose schedule is a solution too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.benchmarks.proving import CertificateLike, with_certificate, with_vipr
from schedgap.benchmarks.records import plain_number
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.numbers import agrees
from schedgap.interrupt import at_work
from schedgap.reading import (
    InstanceLike,
    SolutionLike,
    checked,
    name_of,
    outside_method,
    read_instance,
    read_result,
)
from schedgap.solvers.incumbent import contradicts, optimal

if TYPE_CHECKING:
    from schedgap.benchmarks.audit.result import Audit
    from schedgap.benchmarks.snapshots.judge import Judgement
    from schedgap.benchmarks.sweep.progress import Sink


def check(instance: InstanceLike, solution: SolutionLike, certificate: CertificateLike | None = None) -> CheckReport:
    """Check a solution by exact rational arithmetic, independently of every model and heuristic.

    Parameters
    ----------
    instance, solution : objects, JSON objects, or paths of files
    certificate : what is said to bound the optimum; one that is rejected is a violation, and
        ``details["certificate"]`` tells what one that is accepted proves of the solution

    Returns
    -------
    CheckReport
        Every violated constraint with its numbers, and the recomputed objective. A schedule outside the model is
        judged by the checker of its method. Where the whole object of ``solve --json`` is given, also what it claims
        and cannot be true: its objective, its bound, its being optimal.

    Raises
    ------
    InputError
        The solution is malformed: an id the instance does not have, a wrong type, a missing part.
    """
    return checked_solution(instance, solution, certificate).report


@dataclass(frozen=True)
class Checked:
    """A solution that was checked.

    Attributes
    ----------
    problem, instance : whose solution it is
    report : the checker's report, with what was claimed of the solution and cannot be true
    outside : the method outside the model that made it, or None
    """

    problem: Problem
    instance: Instance
    report: CheckReport
    outside: Method | None

    @property
    def objective(self) -> float | int | None:
        """The recomputed objective."""
        return None if self.report.objective is None else plain_number(self.report.value)

    def to_dict(self) -> dict[str, Json]:
        """The object that ``check --json`` prints."""
        return {
            "problem": self.problem.id,
            "instance": self.instance.name,
            "feasible": self.report.feasible,
            "outside_model": self.outside is not None,
            "objective": self.objective,
            "violations": [asdict(violation) for violation in self.report.violations],
            "details": dict(self.report.details),
        }

    def to_text(self) -> str:
        """Every violation on its line, then the verdict and the objective."""
        found = self.report.violations
        verdict = "feasible" if not found else f"{len(found)} violated"
        if self.outside is not None:
            verdict += ", outside the model (judged by the checker of such schedules)"
        shown = "not defined" if self.objective is None else f"{self.objective} {self.problem.unit}".rstrip()
        lines = [f"{violation.constraint}: {violation.message}" for violation in found]
        lines.append(f"{verdict}; {self.problem.objective_name}: {shown}")
        proven = self.report.details.get("certificate")
        if proven is not None and "optimal" in proven:
            how = "exactly" if proven["exact"] else "to 1e-9"
            told = f"optimal, {how}" if proven["optimal"] else f"a gap of {proven['gap']:.9g} is left"
            lines.append(f"certificate: accepted, bound {proven['bound']}, {proven['leaves']} leaves; {told}")
        stated = self.report.details.get("vipr")
        if stated is not None:
            aim = "there is no schedule" if stated["claim"] is None else f"no schedule is better than {stated['claim']}"
            lines.append(f"vipr: its rows are those of the instance; it claims: {aim}; a checker of VIPR judges")
        return "\n".join(lines)


def checked_solution(
    instance: InstanceLike,
    solution: SolutionLike,
    certificate: CertificateLike | None = None,
    vipr: str | Path | None = None,
) -> Checked:
    """As :func:`check`, with what identifies the solution; `vipr` is a file whose rows should be the instance's."""
    problem, given = read_instance(instance)
    bare, whole = read_result(solution, problem)
    outside = outside_method(problem, bare, whole)
    report = checked(problem, given, bare, name_of(solution, "solution"), outside)
    claims = _claims(report, whole, problem.objective_name, problem.sense)
    report = replace(report, violations=(*report.violations, *claims))
    if certificate is not None:
        report, _ = with_certificate(problem, given, bare, report, certificate)
    if vipr is not None:
        report = with_vipr(problem, given, report, vipr)
    return Checked(problem, given, report, outside)


def _claims(report: CheckReport, claimed: Mapping[str, Any] | None, name: str, sense: int) -> list[Violation]:
    """What came with the solution and cannot be true: its objective, its bound, its being optimal."""
    if claimed is None or report.objective is None or report.violations:
        return []
    computed = report.value
    value, bound = (_number(claimed.get(key)) for key in ("objective", "bound"))
    found = []
    if value is not None and not agrees(value, computed):
        message = f"{name} {value:.12g} reported, {computed:.12g} recomputed"
        found.append(Violation("objective", message, abs(value - computed)))
    if bound is not None and contradicts(computed, bound, sense):
        message = f"bound {bound:.12g} reported, but {name} {computed:.12g} is better"
        found.append(Violation("bound", message, abs(bound - computed)))
    elif bound is not None and claimed.get("status") == "optimal" and not optimal(computed, bound, sense):
        message = f"reported optimal with bound {bound:.12g}, but {name} is {computed:.12g}"
        found.append(Violation("optimal", message, abs(bound - computed)))
    return found


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@at_work()
def audit(
    log: str | Path,
    servers: str | Path | None = None,
    *,
    form: str | None = None,
    columns: Mapping[str, object] | None = None,
    problem: str | None = None,
    scheduler: str | None = None,
    methods: Sequence[str] | None = None,
    window: str | None = None,
    time_scale: float = 1.0,
    cluster: Sequence[str] = (),
    tenant: str | None = None,
    time_limit: float = 20.0,
    memory_limit: float = 4.0,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Sink | None = None,
) -> Audit:
    """How far is the schedule that a cluster really ran from the best, and what would schedulers have made of it?

    Parameters
    ----------
    log : a log of any format that ``schedgap import`` reads
    servers : a table or listing of its servers; where not given, as many GPUs as were busy at once
    form : the format; told by how the log begins where not given
    columns : of a table without a format: ``{"gpus": "num_gpu", "start": ..., "end": ...}``
    problem : whose schedules are made; where not given, that of the record: jobs with GPUs of their own
    scheduler : one of your own, ``file.py:function``; it runs in a process of its own, as in :func:`evaluate`
    methods : only these schedulers; all of the problem where not given
    window : ``500``, the first 500 jobs; ``busiest``, the 500 that waited most; ``busiest:N``
    time_scale : factor on all times
    cluster : ``+8`` or ``-8``: so many GPUs more or fewer; ``observed``: as many as were busy at once
    tenant : only jobs of this queue, partition or virtual cluster
    time_limit : seconds for each scheduler; one that is cut has no figure
    memory_limit : GB for each
    seed : of all randomness
    out : folder for ``audit.json`` and ``audit.html``
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Audit
        ``verdict`` is one line, ``to_text()`` all tables, ``to_dict()`` a JSON form.

    Raises
    ------
    InputError
        A log that cannot be read, an unknown option, a scheduler that cannot be imported.

    Examples
    --------
    >>> print(audit("sacct.txt", "nodes.txt").verdict)  # doctest: +SKIP
    """
    from schedgap.benchmarks.audit.run import audit as run
    from schedgap.formulations.common.files import check_folder, write_text

    folder = None if out is None else Path(out)
    if folder is not None:
        check_folder(folder)
    found = run(
        log,
        servers,
        form=form,
        columns=columns,
        problem=problem,
        scheduler=scheduler,
        methods=methods,
        window=window,
        time_scale=time_scale,
        cluster=cluster,
        tenant=tenant,
        time_limit=time_limit,
        memory_limit=memory_limit,
        seed=seed,
        progress=progress,
    )
    if folder is not None:
        from schedgap.benchmarks.audit.page import audit_page

        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "audit.json", json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n")
        write_text(folder / "audit.html", audit_page(found))
    return found


@at_work()
def judge(
    snapshot: str | Path,
    nodes: str | Path | None = None,
    *,
    form: str | None = None,
    objectives: Sequence[str] | None = None,
    gang_label: str | None = None,
    names: bool = False,
    time_limit: float = 20.0,
    seed: int = 0,
    out: str | Path | None = None,
) -> Judgement:
    """How far was one decision of a live cluster from the best, which gangs did it lose, and why?

    Parameters
    ----------
    snapshot : ``kubectl get nodes,pods -A -o json``, an instance of gang-placement with ``reference_decision``, or what
        Slurm (``squeue --json``), Ray (``ray list placement-groups --format json --detail``) or openb list
    nodes : the listing of nodes, where that is a file of its own: always of slurm, ray and openb
    form : own, kubernetes, slurm, ray or openb; told by the file where not given
    objectives : weight, topology, fragmentation, moves, in lexicographic order; the instance's own where not given
    gang_label : a label or annotation of pods that names their gang, beside those that are known
    names : keep the names of nodes, pods and gangs; otherwise they are numbers, so that the result can be shared
    time_limit : seconds for the best decision, and again for why gangs are lost
    seed : of all randomness
    out : folder for ``judge.html``, ``judge.json``, ``instance.json``, ``decision.json`` and ``best.json``

    Returns
    -------
    Judgement
        ``verdict`` is one line, ``to_text()`` the whole, ``to_dict()`` a JSON form. What it says can be checked again:
        ``schedgap check instance.json decision.json`` and ``best.json``.

    Raises
    ------
    InputError
        A snapshot that cannot be read, a decision that names what it does not have.
    """
    from schedgap.benchmarks.snapshots.judge import judge as run
    from schedgap.benchmarks.snapshots.reading import read_snapshot
    from schedgap.formulations.common.files import check_folder, write_text

    folder = None if out is None else Path(out)
    if folder is not None:
        check_folder(folder)
    read = read_snapshot(snapshot, form, nodes=nodes, gang_label=gang_label, names=names)
    found = run(read, objectives=objectives, time_limit=time_limit, seed=seed)
    if folder is not None:
        from schedgap.benchmarks.snapshots.page import judgement_page

        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "judge.html", judgement_page(found))
        texts = {"judge": found.to_dict(), "instance": found.instance.to_dict(), "decision": found.decision}
        for name, data in {**texts, "best": found.best.solution}.items():
            write_text(folder / f"{name}.json", json.dumps(data, indent=1, allow_nan=False) + "\n")
    return found
