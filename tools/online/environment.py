"""The online loop as a Gymnasium environment: which waiting job starts next, or on to the next event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, Json
from schedgap.tools.online.replay import Estimates, World, world_of
from schedgap.tools.online.state import State

Observation: TypeAlias = dict[str, Json]
"""Arrays by name."""


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """Jobs are started one at a time on free GPUs that the cluster chooses; see :func:`schedgap.make_env`."""

    def __init__(self, problem: Problem, draw: Callable[[int], Instance], estimates: Estimates, queue: int) -> None:
        self.problem, self.draw, self.estimates, self.queue = problem, draw, estimates, queue
        self.action_space = spaces.Discrete(queue + 1)
        self.observation_space = spaces.Dict(
            {
                "jobs": spaces.Box(-1.0, np.inf, (queue, 3), np.float32),
                "cluster": spaces.Box(0.0, np.inf, (3,), np.float32),
                "action_mask": spaces.MultiBinary(queue + 1),
            }
        )
        self.world: World | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Json] | None = None
    ) -> tuple[Observation, dict[str, Json]]:
        """A new instance, at its first arrival; ``options={"instance": ...}`` names it."""
        super().reset(seed=seed)
        while True:
            drawn = int(self.np_random.integers(2**31))
            instance = (options or {}).get("instance") or self.draw(drawn)
            self.world = world_of(self.problem, instance, estimates=self.estimates, seed=drawn)
            if self.world is not None:
                break
        self.state = State(**self.world.opening())
        self.jobs = self.world.unfinished()
        self._advance(self.world)
        return self._seen(), {"action_mask": self.action_masks()}

    def action_masks(self) -> NDArray[np.int8]:
        """For each action 1 where it is possible: to start the k-th waiting job, and last, to go on."""
        mask = np.zeros(self.queue + 1, dtype=np.int8)
        for place, job in zip(range(self.queue), self.state.waiting.values(), strict=False):
            mask[place] = job.gpus <= self.state.free
        mask[-1] = self.world is not None and self.world.next_slot() is not None
        return mask

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Json]]:
        """Do it; what the mask forbids is the first that it allows, counted from the end.

        The reward of going on is minus the slots that pass times the jobs that are here, over all jobs: the sum is
        minus the mean completion time in slots. ``info`` has the mask, and at the end ``objective`` and ``feasible``
        of the checker.
        """
        world, mask = self.world, self.action_masks()
        assert world is not None, "reset() comes first"
        if not self.action_space.contains(action):
            raise InputError(f"action: must be a whole number from 0 to {self.queue}, got {action}")
        chosen = int(action) if mask[action] else int(np.flatnonzero(mask)[-1])
        reward = 0.0
        if chosen < self.queue:
            job = list(self.state.waiting)[chosen]
            world.act("start", job, None)
            self.state.apply([("start", job)])
        else:
            here, before = len(self.state.jobs), self.state.slot
            self._advance(world)
            reward = -float(here * (self.state.slot - before)) / self.jobs
        over = not world.unfinished()
        info: dict[str, Json] = {"action_mask": self.action_masks()}
        if over:
            report = world.judged()[1]
            info |= {"objective": report.value, "feasible": report.feasible}
        return self._seen(), reward, over, False, info

    def _advance(self, world: World) -> None:
        slot = world.next_slot()
        assert slot is not None
        self.state.reveal(world.advance(slot))

    def _seen(self) -> Observation:
        """Share of GPUs, estimated slots (-1 where hidden) and slots waited of each waiting job; -1 for no job."""
        state, total = self.state, sum(self.state.servers)
        jobs = np.full((self.queue, 3), -1.0, dtype=np.float32)
        for place, job in zip(range(self.queue), state.waiting.values(), strict=False):
            length = -1.0 if job.estimate is None else job.estimate
            jobs[place] = job.gpus / total, length, state.slot - job.arrival
        cluster = np.array([state.free / total, len(state.waiting), len(state.running)], dtype=np.float32)
        return {"jobs": jobs, "cluster": cluster, "action_mask": self.action_masks()}
