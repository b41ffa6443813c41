"""The online loop as an environment for reinforcement learning: instances are drawn, a policy decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.instances import make
from schedgap.tools.online.replay import Estimates, world_of

if TYPE_CHECKING:
    from schedgap.tools.online.environment import SchedulingEnv


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
    preset, settings : see :func:`generate`; instances are drawn by the environment's seed
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
    try:
        from schedgap.tools.online.environment import SchedulingEnv
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
