"""What paper 001 proves about clusters: nothing. Its theorems are about a pair of transfers (comm-contention).

The one row here is ours and about the simulation: the invariant that the published simulator breaks under AdaDUAL.
"""

from __future__ import annotations

from schedgap.heuristics.common.guarantee import Case, Evaluation, Guarantee, at_most, not_applicable


def message_speed(case: Case) -> Evaluation:
    """No all-reduce is faster than latency + size b, whatever meets it."""
    if not case.info.get("all-reduces"):
        return not_applicable("no job spans servers, so there is no all-reduce")
    speed = case.info["message speed"]
    return at_most(
        speed, 1.0, f"{case.info['all-reduces']} all-reduces, {case.info['contended']:.1%} of them contended"
    )


def _row(method: str) -> Guarantee:
    return Guarantee(
        id=f"001-message-time-{method}",
        problem="ddl-cluster",
        source="ours",
        statement="(a + b M) / (end - admission) <= 1 for every all-reduce",
        assumptions="none",
        evaluate=message_speed,
        method=method,
        kind="repaired",
        hint={"families": ("tiny",)},  # placed, as the exact reference needs
    )


GUARANTEES: tuple[Guarantee, ...] = tuple(_row(method) for method in ("srsf-1", "srsf-2", "srsf-3", "ada-srsf"))
"""Its rows of the ledger; no ratio is claimed for LWF-kappa, SRSF(n) or Ada-SRSF."""
