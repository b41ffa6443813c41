"""What is said of one gang that the scheduler did not place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from schedgap.benchmarks.text import number
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.tools.judge.cures import NOTHING_RUNS, Cure, told_moves

FITS, COULD, MAY, BARRED, ASIDE, UNDECIDED = "fits", "could", "may", "barred", "not judged", "undecided"
"""What became of a gang: the best decision places it; it could be placed alone; it could but for what is not read;
nobody can place it; it is in no instance; the time was over."""


@dataclass(frozen=True)
class Lost:
    """A gang that the scheduler did not place.

    Attributes
    ----------
    fate : one of the words above
    reasons : what keeps it out, or what the best decision does for it
    rests : what the answer rests on
    """

    gang: str
    pods: int
    gpus: Fraction | None  # None where the listing does not tell
    fate: str
    fewest: int = 1
    reasons: tuple[str, ...] = ()
    rests: tuple[str, ...] = ()
    cure: Cure | None = None  # cure of a gang that does not fit, alone
    beside: Cure | None = None  # beside what the best decision places
    fixed: str = ""  # why nothing that runs may leave
    unended: str = ""  # why nothing that runs is ended for it
    # proof that nothing admits it: the gang alone, and a certificate that the best decision about it places nothing
    proof: tuple[GangPlacementInstance, Mapping[str, Json]] | None = None
    file: str = ""  # file of it in the folder, if any; the instance beside it ends in ``.json``

    @property
    def fits(self) -> bool:
        """The best decision places it."""
        return self.fate == FITS

    @property
    def alone(self) -> bool | None:
        """Whether it could be placed if nothing else waited; None where that is not known."""
        return {FITS: True, COULD: True, BARRED: False}.get(self.fate)

    @property
    def moves(self) -> Json:
        """The cheapest moves and preemptions that admit it; None where none is known."""
        cure = self._cure
        return None if cure is None else cure.moves

    @property
    def may_be_ended(self) -> bool:
        """Whether its scheduler may end pods for it by rules that are not read."""
        return self.fate == BARRED and self.unended.endswith("is not read")

    @property
    def waits(self) -> bool:
        """Whether it is admitted without moves once pods that are being deleted have gone."""
        cure = self._cure
        return cure is not None and bool(cure.leaving) and not any(cure.moves.values())

    @property
    def price(self) -> Fraction | None:
        """The price of these."""
        return None if self._cure is None else self._cure.price

    @property
    def moves_proven(self) -> bool:
        """Whether nothing cheaper admits it, or nothing at all."""
        return self._cure is not None and self._cure.least

    @property
    def _cure(self) -> Cure | None:
        return self.beside if self.fate == COULD else self.cure

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible."""
        return {
            "gang": self.gang,
            "pods": self.pods,
            "fewest_pods": self.fewest,
            "gpus": None if self.gpus is None else float(self.gpus),
            "fate": self.fate,
            "placed_in_best": self.fits,
            "placeable_alone": self.alone,
            "reasons": list(self.reasons),
            "rests_on": list(self.rests),
            "moves": self.moves,
            "being_deleted_first": [] if self._cure is None else list(self._cure.leaving),
            "price": None if self.price is None else float(self.price),
            "least_price_proven": self.moves_proven,
            "what_runs_is_fixed": self.fixed or None,
            "certified": self.proof is not None,
            "certificate": self.file or None,
        }

    def line(self) -> str:
        """What a person reads."""
        rests = f"; {'; '.join(self.rests)}" if self.rests else ""
        return f"{self._head()}: {self._told()}{rests}{self._admission()}"

    def _head(self) -> str:
        if not self.pods:
            return self.gang
        gpus = "GPUs unknown" if self.gpus is None else many(float(self.gpus), "GPU")
        fewest = f", {self.fewest} are enough" if 0 < self.fewest < self.pods else ""
        return f"{self.gang} ({many(self.pods, 'pod')}{fewest}, {gpus})"

    def _told(self) -> str:
        text = "; ".join(self.reasons)
        if self.fate == FITS:
            return f"fits, the best decision places it{text}"
        if self.fate == ASIDE:
            return f"not judged: {text}"
        if self.fate == MAY:
            return text
        return text or "undecided in the time"

    def _admission(self) -> str:
        """What would admit it, as far as that is known."""
        if self.fate == COULD:
            return self._beside()
        if self.fate != BARRED or self.cure is None:
            return ""
        certified = f"certified by {self.file}" if self.file else "certified"
        shown = "as one engine proves" if self.proof is None else certified
        if self.fixed:
            return ("" if self.fixed == NOTHING_RUNS else f"; {self.fixed}") + f"; nobody can place it, {shown}"
        so = "" if self.may_be_ended else ", so nothing may be ended"
        unended = f"; {self.unended}{so}" if self.unended else ""
        if self.cure.moves is not None:
            return f"; admitted {told_moves(self.cure)}{unended}{self._also_beside()}"
        if not self.cure.least:
            return unended
        what = "no moves admit it" if self.unended else "no moves and preemptions admit it"
        return f"{unended}; {what}, {shown}"

    def _beside(self) -> str:
        """What would admit a gang that could be placed alone beside the best decision."""
        cure = self.beside
        if cure is None or self.fixed:
            return ""
        where = " beside what the best decision places"
        if cure.moves is None:
            return f"; no moves and preemptions admit it{where}, as one engine proves" if cure.least else ""
        if not cure.leaving and not cure.moves["moved"] and not cure.moves["preempted"]:
            return f"; it fits{where} without moves"
        return f"; admitted{where} {told_moves(cure)}"

    def _also_beside(self) -> str:
        """Whether what admits it alone does so beside the best decision."""
        cure = self.beside
        if cure is None:
            return ""
        if cure.moves is None:
            return "; beside what the best decision places nothing admits it" if cure.least else ""
        if self.cure is not None and (cure.price, cure.leaving) == (self.cure.price, self.cure.leaving):
            return ", also beside what the best decision places"
        return f"; beside what the best decision places {told_moves(cure)}"


def many(count: float, what: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number(count)} {what}{'' if count == 1 else 's'}"
