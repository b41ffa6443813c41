"""The online loop as a Gymnasium environment."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import schedgap
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.tools.online.policies import Fifo
from schedgap.tools.online.replay import replay_here, world_of

SMALL: dict[str, Any] = {"jobs": 9, "gpus": 4, "slots": 12, "arrivals": 9, "cap": 1, "ample": True}


@pytest.mark.parametrize("estimates", ["exact", "user", "none"])
def test_gymnasium_finds_no_fault(estimates: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(infinity|-inf|spec|render).*")
        check_env(
            schedgap.make_env("gpu-sharing", "tiny", estimates=estimates, queue=4, **SMALL), skip_render_check=True
        )


def episode(env: gymnasium.Env[Any, Any], choose: Callable[[Any], int], seed: int) -> tuple[float, dict[str, Any]]:
    seen, info = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        assert (info["action_mask"] == seen["action_mask"]).all() and info["action_mask"].any()
        seen, reward, over, _, info = env.step(np.int64(choose(seen)))
        assert env.observation_space.contains(seen)
        total += float(reward)
    return total, info


@pytest.mark.parametrize("seed", range(5))
def test_rewards_sum_to_the_checkers_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    env = schedgap.make_env("gpu-sharing", "tiny", queue=5, **SMALL)
    total, info = episode(env, lambda seen: int(rng.choice(np.flatnonzero(seen["action_mask"]))), seed)
    assert info["feasible"] and -total == pytest.approx(info["objective"])
    first, again = (episode(env, lambda seen: int(np.argmax(seen["action_mask"])), seed)[0] for _ in range(2))
    assert first == again  # the seed alone says which instance it is


def test_an_agent_that_takes_the_first_is_fifo() -> None:
    """Only the first waiting job is seen, and starts as soon as it fits: first in, first out."""
    for seed in range(4):
        instance = schedgap.generate("gpu-sharing", "tiny", seed=seed, **SMALL)
        env = schedgap.make_env("gpu-sharing", queue=1, instances=[instance])
        _, info = episode(env, lambda seen: int(np.argmax(seen["action_mask"])), seed)
        world = world_of(find_problem("gpu-sharing"), instance)
        assert world is not None
        assert info["objective"] == replay_here(world, Fifo()).report.value


def test_what_the_mask_forbids_is_the_last_that_it_allows() -> None:
    env = schedgap.make_env("gpu-sharing", "tiny", queue=3, **SMALL)
    total, info = episode(env, lambda seen: int(np.argmin(seen["action_mask"])), 1)
    assert info["feasible"] and -total == pytest.approx(info["objective"])


@pytest.mark.parametrize(
    ("problem", "given", "line"),
    [
        ("hadar", {}, "there is no environment for hadar"),
        ("rar-ddls", {}, "no online loop for rar-ddls"),
        ("gpu-sharing", {"queue": 0}, "queue: must be from 1 to 10000, got 0"),
    ],
)
def test_bad_use_is_one_line(problem: str, given: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=line):
        schedgap.make_env(problem, **given)


@pytest.mark.parametrize("action", [-1, 9, math.nan, 0.0, None])
def test_what_is_no_action_is_refused(action: Any) -> None:
    """-1 was the last waiting job, whether it fits or not."""
    env = schedgap.make_env("gpu-sharing", queue=8)
    env.reset(seed=0)
    with pytest.raises(InputError, match=f"action: must be a whole number from 0 to 8, got {action}"):
        env.step(action)
