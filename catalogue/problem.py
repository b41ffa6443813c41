"""A problem: what the front desk knows of it. A subclass per problem; parts are imported when they are first used."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.workload import Workload
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import LARGEST_COUNT, Instance, Solution
from schedgap.formulations.common.numbers import ratio
from schedgap.formulations.common.options import parse_settings
from schedgap.formulations.common.solution import TypedSolution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.improving import SHARE_OF_PROOF, Improve, from_best
from schedgap.solvers.result import Result, SolveOptions

I_co = TypeVar("I_co", bound=Instance, covariant=True)
I = TypeVar("I", bound=Instance)  # noqa: E741
S = TypeVar("S", bound=TypedSolution)


class ProblemOf(ABC, Generic[I_co]):
    """One problem. A subclass fills in what it has; what it lacks stays None or empty.

    Attributes
    ----------
    id, title, source : names
    sense : +1 minimise, -1 maximise
    objective_name, unit : what the objective is, for tables and figures
    rational : objectives are exact; False where times or utilities are not rational, so that proofs end within 1e-9
    instance_class : the class of its instances
    solution_class : the class its checker judges; None where the problem is installed from elsewhere and has none
    forms : its declarative models; the first with a tightened variant is the one that engines solve
    methods : in the order of ``schedgap list``; the first exact one or engine is the default
    metrics : what runs report beside the objective: key of ``info`` to the title of its column
    metrics_note : their units, what they are and why one may be unknown, for under the table
    assumed : what an instance built in Python has where nobody says it: for each list or part its fields, for "" the
        instance's own
    share_of_heuristics : part of a limit that heuristics have before a proof begins, but for the quick ones
    horizon_is_size : whether the horizon, a field of its instances, is only a model's size: a schedule beyond it is as
        good as its objective says
    """

    id: str
    title: str
    source: str
    sense: int
    objective_name: str
    unit: str
    rational: bool = True
    instance_class: type[I_co]
    solution_class: type[TypedSolution] | None = None
    forms: tuple[Form, ...] = ()
    methods: tuple[Method, ...] = ()
    metrics: ClassVar[Mapping[str, str]] = MappingProxyType({})
    assumed: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    share_of_heuristics: ClassVar[float] = SHARE_OF_PROOF
    horizon_is_size: ClassVar[bool] = False
    metrics_note: str = ""

    @abstractmethod
    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        """The independent checker's report on `solution`."""

    def model(
        self,
        instance: Instance,
        form: str | None = None,
        tighten: bool = True,
        settings: Mapping[str, object] = MappingProxyType({}),
    ) -> DeclarativeModel | None:
        """A declarative (PuLP) model; None where the problem has none.

        Parameters
        ----------
        form : one of `forms`; where not given, the first that has the wanted variant
        tighten : with what keeps an optimum and speeds up the solution; otherwise the paper's own constraints
        settings : options of the form

        Raises
        ------
        InputError
            There is no such form, it has no such variant, or no such option.
        """
        if not self.forms and form is None:
            return None
        chosen = next((known for known in self.forms if form == known.id), self.default_form(tighten))
        if chosen is None or form not in (None, chosen.id):
            names = ", ".join(known.id for known in self.forms) or "it has none"
            raise InputError(
                f"form: unknown form {form!r} for {self.id}, one of: {names}" + near(form, (f.id for f in self.forms))
            )
        if tighten and not chosen.tightens:
            raise InputError(f"form: {chosen.id} of {self.id} has no tightened variant")
        if not tighten and not chosen.opens:
            raise InputError(f"form: {chosen.id} of {self.id} is a tightened model only; use tighten=True (--tighten)")
        options = parse_settings(chosen.options, settings, f"form {chosen.id}")
        return chosen.model(self.cast_instance(instance), tighten, **options)

    def default_form(self, tighten: bool) -> Form | None:
        """The first form that has the variant; None where there is none."""
        return next((form for form in self.forms if (form.tightens if tighten else form.opens)), None)

    def model_size(self, instance: Instance) -> int | None:
        """Nonzeros of the model, before anything is built; None where unknown."""
        return None

    def bound(self, instance: Instance) -> float | None:
        """A certified bound on the optimum at any size (an upper one when maximising); None where there is none."""
        return None

    def certified_bound(self, instance: Instance) -> float | None:
        """The certified bound as a finite number, or None."""
        value = self.bound(instance)
        return None if value is None or not math.isfinite(value) else value

    def lengthened(self, instance: Instance) -> Instance | None:
        """The instance with the longest horizon that one can have; None where the horizon is part of the problem."""
        return instance.model_copy(update={"horizon": LARGEST_COUNT}) if self.horizon_is_size else None

    def bound_of_any_length(self, instance: Instance, proven: float | None) -> float | None:
        """A bound on the objective of every schedule, also of one that ends after the horizon; None where unknown.

        An optimum within the horizon is none: without it there are more schedules, and a better one may be among them.
        The certified bound of the lengthened instance is one, since every schedule ends within that horizon.

        Parameters
        ----------
        proven : a bound on the schedules within the horizon, which some problems can use
        """
        del proven
        longer = self.lengthened(instance)
        return None if longer is None else self.certified_bound(longer)

    def ratio(self, instance: Instance, value: float | None, reference: float | None) -> float | None:
        """How many times worse an objective is than a better one or a bound; None where that is not known."""
        del instance
        return ratio(value, reference, self.sense)

    def quick(self, instance: Instance) -> Solution | None:
        """A quick solution for where the model is too large to build; None where there is none."""
        return None

    def first_seconds(self, instance: Instance) -> float:
        """Seconds, at least, of a first schedule and its check; 0 where every size has one at once."""
        return 0.0

    def warm_up(self, instance: Instance) -> None:
        """Run the compiled code that only large instances need."""

    def import_parts(self) -> None:
        """Import its checker, bound and model, before a clock starts."""

    def guarantees(self) -> tuple[Guarantee, ...]:
        """Its rows of the ledger."""
        return ()

    def workload(self) -> Workload | None:
        """Presets, families, suites, importers and figure of a problem that is installed from elsewhere.

        None for the problems here: theirs stand in ``benchmarks/instances/<problem>``.
        """
        return None

    def cast_instance(self, instance: Instance) -> I_co:
        """`instance` as one of this problem.

        Raises
        ------
        InputError
            It is of another problem.
        """
        if not isinstance(instance, self.instance_class):
            raise InputError(f"instance: is of {instance.problem_id}, not of {self.id}")
        return instance

    def default_method(self, instance: Instance | None = None) -> Method:
        """The strongest exact method, of an instance where one is given: the first that is exact or an engine.

        Raises
        ------
        InputError
            There is none.
        """
        for method in self.methods:
            if method.proves:
                return method
        raise InputError(f"{self.id} has no exact method")

    def best_start(self, improve: Improve, stated: Callable[[Solution], float] | None = None) -> Function:
        """The function of a search: `improve` is called with the best schedule of the heuristics as the start.

        `stated` orders their schedules by what they say, where a check takes long. Within a limit of time the end of
        the list, baselines that take little time, comes first.
        """
        return from_best(self._inside, self.check, self.sense, improve, stated, bound=self.bound, always=True,
            quick_first=True)  # fmt: skip

    def started(self, exact: Improve) -> Function:
        """The function of an exact method that starts from the best schedule of the heuristics.

        So it is never worse than they are, and where a schedule of theirs meets the certified bound nothing is left to
        do. Those of the end of the list come first: baselines, which take little time, the last one least.
        """
        return self._started(exact)

    def _started(self, exact: Improve, always: bool = False) -> Improve:
        return from_best(
            lambda: self._inside()[::-1],
            self.check, self.sense, exact, share=self.share_of_heuristics, first_ends=True, bound=self.bound,
            always=always, surely=self.quick_heuristics,
        )  # fmt: skip

    def quick_heuristics(self, instance: Instance) -> Sequence[Function]:
        """Heuristics that take milliseconds for an instance: a method that starts runs them whatever its limit is."""
        del instance
        return ()

    def started_within_limits(self, exact: Improve) -> Improve:
        """The function of an engine or a model that a limit may end: it starts as those of :meth:`started` do.

        It runs in any case, and alone where it has all the time: what it proves then owes nothing to a heuristic.
        """

        @wraps(exact)
        def method(instance: Instance, options: SolveOptions, **settings: Any) -> Result:
            if options.deadline.moment is None and options.work_limit is None:
                return exact(instance, options, **settings)
            return self._started(exact, always=True)(instance, options, **settings)

        return method

    def _inside(self) -> list[Function]:
        """The heuristics whose schedules are the problem's own."""
        return [method.call for method in self.heuristics() if not (method.outside_model or method.is_user_defined)]

    def heuristics(self) -> tuple[Method, ...]:
        """Its heuristics, in order."""
        return tuple(method for method in self.methods if method.kind is Kind.HEURISTIC)


def methods_of(
    kind: Kind, load: Callable[[], Mapping[str, Function]], started: Callable[..., Function] | None = None
) -> Callable[..., Method]:
    """How a problem's table writes the methods that one function imports: ``(id, title, source, **more)``."""

    def method(id: str, title: str, source: str = "ours", **more: Any) -> Method:
        return Method(id, title, kind, load, **{"started": started, "source": source, **more})

    return method


@dataclass(frozen=True)
class Parts(Generic[I, S]):
    """What a problem of the family is made of: functions of an instance, each as the method that calls it says.

    ``check`` takes a parsed solution, too. All but that may be missing.
    """

    check: Callable[[I, S], CheckReport]
    model_size: Callable[[I], int] | None = None
    bound: Callable[[I], float | None] | None = None
    quick: Callable[[I], Solution | None] | None = None
    first_seconds: Callable[[I], float] | None = None
    warm_up: Callable[[I], object] | None = None


class FamilyProblem(ProblemOf[I_co]):
    """A problem of the family: :meth:`parts` imports what it is made of."""

    @abstractmethod
    def parts(self) -> Parts[Any, Any]:
        """What it is made of, imported now."""

    def import_parts(self) -> None:
        self.parts()

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        assert self.solution_class is not None
        return self.parts().check(self.cast_instance(instance), self.solution_class.parse(solution))

    def model_size(self, instance: Instance) -> int | None:
        size = self.parts().model_size
        return None if size is None else size(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        bound = self.parts().bound
        return None if bound is None else bound(self.cast_instance(instance))

    def first_seconds(self, instance: Instance) -> float:
        seconds = self.parts().first_seconds
        return 0.0 if seconds is None else seconds(self.cast_instance(instance))

    def quick(self, instance: Instance) -> Solution | None:
        quick = self.parts().quick
        return None if quick is None else quick(self.cast_instance(instance))

    def warm_up(self, instance: Instance) -> None:
        run = self.parts().warm_up
        if run is not None:
            run(self.cast_instance(instance))


Problem: TypeAlias = ProblemOf[Instance]
"""Any problem."""
