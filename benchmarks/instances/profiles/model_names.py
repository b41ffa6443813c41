"""Named model profiles: which measured one stands for what a trace says a job trains."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from schedgap.benchmarks.instances.profiles.throughputs import batch_size
from schedgap.formulations.common.errors import InputError

_SAME = {"cifar10": "resnet18", "imagenet": "resnet50"}
"""Applications of Pollux that are called by their data set, with the network they train on it."""


_USUAL_BATCH = 64


def family(model: str) -> str:
    """``resnet50`` of ``ResNet-50 (batch size 64)`` and of ``imagenet``."""
    bare = re.sub(r"[^a-z0-9]", "", model.split(" (")[0].lower())
    return _SAME.get(bare, bare)


def match_profile(model: str | None, batch: int | None, known: Sequence[str], default: str) -> tuple[str, str | None]:
    """The measured profile that a job gets, and what is assumed by it (None where the file names the profile).

    A profile of the same family is taken, of several the one whose batch is nearest (by ratio); where there is none,
    `default`. Raises InputError: `default` names no profile; the line lists those that there are.

    Parameters
    ----------
    model, batch : what the trace says, samples of one worker
    known : names of the measured profiles
    default : one of them, or the name of a family
    """
    if model in known:
        return str(model), None
    for wanted, said in ((model, True), (default, False)):
        if wanted is None:
            continue
        if not said and wanted in known:
            found = [wanted]
        else:
            found = [name for name in known if family(name) == family(wanted)]
        if found:
            size = (batch if said else None) or batch_size(wanted) or _USUAL_BATCH
            chosen = min(found, key=lambda name: abs(math.log((batch_size(name) or size) / size)))
            if said:
                return chosen, f"{wanted}: profile {chosen} taken"
            lacking = model.split(" (")[0] + " is not measured" if model else "the file names no model"
            return chosen, f"{lacking}: profile {chosen}"
    raise InputError(f"option profile: no profile {default!r} (profiles: {', '.join(known)})")
