"""Kernels give the same as Python and in machine code, bit by bit: results, types, and what they leave in arrays."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from support.both_ways import bits, call_both_ways

import schedgap
from schedgap.catalogue.registry import all_problems
from schedgap.formulations.common.compiled import Kernel, njit_cached, njit_part
from schedgap.formulations.common.machine.ordering import rising_order

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("problem_id", all_problems())
def test_every_call_of_every_method_on_tiny_instances(problem_id: str) -> None:
    """In a process of its own: beside other tests fewer stages of gpu-sharing's `cp` were reached, once."""
    script = f"from support.both_ways import kernels_compared; print(*kernels_compared({problem_id!r}))"
    variables = {**os.environ, "PYTHONPATH": str(TESTS), "SCHEDGAP_COMPILE": "always"}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=variables)
    assert ran.returncode == 0, ran.stderr
    kernels = ran.stdout.splitlines()[-1].split() if ran.stdout.strip() else []
    assert len(kernels) >= COMPARED[problem_id], kernels


COMPARED = {
    **{"comm-contention": 3, "ddl-cluster": 4, "ddljs": 0, "g-vne": 5, "gang-placement": 0},
    **{"gpu-sharing": 10, "hadar": 16, "rar-ddls": 2},
}
"""Kernels that the methods of a problem call."""


@njit_part
def halves(value: float) -> float:
    return value / 2


@njit_cached
def whole_numbers(a: np.ndarray, b: np.ndarray, result: np.ndarray) -> int:  # type: ignore[type-arg]
    """What numba and numpy compute by the same rules, and Python's own numbers do not, or do by rules of their own."""
    total = 0
    for k in range(len(a)):
        result[k, 0], result[k, 1], result[k, 2] = a[k] + b[k], a[k] - b[k], a[k] * b[k]
        result[k, 3], result[k, 4] = divmod(a[k], b[k])
        result[k, 5], result[k, 6] = -a[k], a[k] >> 3
        result[k, 7] = min(a[k], b[k]) ^ max(a[k], b[k])
        total += a[k] < b[k]
    return total


@njit_cached
def fractions(a: np.ndarray, b: np.ndarray, result: np.ndarray) -> float:  # type: ignore[type-arg]
    total = 0.0
    for k in range(len(a)):
        result[k, 0], result[k, 1] = a[k] // b[k], a[k] % b[k]
        result[k, 2], result[k, 3] = int(a[k]), a[k] ** b[k]
        result[k, 4] = halves(a[k]) + 0.1 + b[k] + 0.2
        result[k, 5], result[k, 6] = min(a[k], b[k]), max(a[k], b[k])
        total += a[k] * b[k]
    return total


@njit_cached
def order_of(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return rising_order(values)


def test_equals_are_ordered_as_by_numba() -> None:
    """Which of equally dear devices `hadar-rounds` takes hangs on it, and so do its published figures."""
    compiled = numba.njit(lambda values: np.argsort(values))
    for seed in range(300):
        rng = np.random.default_rng(seed)
        length = int(rng.integers(0, 20 if seed % 2 else 400))
        values = rng.integers(0, rng.integers(1, 40), length) / (1.0 if seed % 3 else 7.0)
        ways = call_both_ways(order_of, (values,))
        assert ways is not None and ways[0] == ways[1]
        assert ways[0][0] == bits(compiled(values)), seed


def test_numbers_that_overflow_and_negative_divisors() -> None:
    edges = [-(2**63), -(2**63) + 1, -(2**62), -7, -2, -1, 1, 2, 7, 2**62, 2**63 - 1]
    pairs = np.array([(x, y) for x in edges for y in edges if (x, y) != (edges[0], -1)], dtype=np.int64)
    ways = call_both_ways(whole_numbers, (pairs[:, 0].copy(), pairs[:, 1].copy(), np.zeros((len(pairs), 8), np.int64)))
    assert ways is not None and ways[0] == ways[1]


def test_fractions_with_negative_divisors_and_zeros() -> None:
    edges = [-1e300, -7.5, -3.0, -0.1, 0.1, 1 / 3, 2.0, 7.5, 1e15]
    pairs = np.array([(abs(x) if y != int(y) else x, y) for x in edges for y in edges if abs(y) < 10])
    ways = call_both_ways(fractions, (pairs[:, 0].copy(), pairs[:, 1].copy(), np.zeros((len(pairs), 7))))
    assert ways is not None and ways[0] == ways[1]


@njit_cached
def narrow_numbers(a: np.ndarray, flags: np.ndarray, result: np.ndarray) -> int:  # type: ignore[type-arg]
    total = 0
    for k in range(len(a)):
        result[k, 0], result[k, 1], result[k, 2] = a[k] + 1, a[k] * a[k], a[k] + 1000
        result[k, 3], result[k, 4], result[k, 5] = flags[k] + flags[k], -flags[k], flags[k] - flags[k - 1]
        total += a[k] - flags[k]
    for value in a[1:]:
        total += value * 300
    return total


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
def test_numbers_of_few_bits_are_computed_with_in_64(kind: type[np.signedinteger[Any]]) -> None:
    """numpy stays in the type of the array, numba does not; truth values are numbers, as in Python."""
    edges = np.iinfo(kind)
    numbers = np.array([edges.min, -1, 0, 1, edges.max], dtype=kind)
    flags = np.array([True, False, True, True, False])
    ways = call_both_ways(narrow_numbers, (numbers, flags, np.zeros((5, 6), np.int64)))
    assert ways is not None and ways[0] == ways[1]
    assert ways[0][0] == bits(sum(int(x) for x in numbers) - 3 + 300 * sum(int(x) for x in numbers[1:]))


TABLE = np.dtype([("size", np.int64), ("base", np.float64), ("next", np.int64)])


@njit_cached
def walk(table: np.ndarray, kept: np.ndarray) -> float:  # type: ignore[type-arg]
    total = 0.0
    for k in range(len(table)):
        table[k].size += table[k].next
        total += table[k].base * table[k].size
    kept[:] = table
    table[0].next = -1
    return total


def test_fields_that_have_the_names_of_numpys_attributes() -> None:
    """`size` of a record of `np.recarray` is 1, whatever the field says."""
    table = np.zeros(3, TABLE)
    table["size"], table["base"], table["next"] = [5, 6, 7], [0.5, 0.25, 0.125], [1, 2, 3]
    ways = call_both_ways(walk, (table, np.zeros(3, TABLE)))
    assert ways is not None and ways[0] == ways[1]
    assert ways[0][0] == bits(0.5 * 6 + 0.25 * 8 + 0.125 * 10)


def test_every_kernel_can_be_interpreted() -> None:
    root = Path(schedgap.__file__).parents[1]
    files = [
        path.relative_to(root)
        for layer in ("formulations", "solvers", "heuristics", "tools")
        for path in (root / layer).rglob("*.py")
        if "compiled import njit" in path.read_text(encoding="utf-8")
    ]
    assert len(files) > 25
    for file in files:
        module = importlib.import_module("schedgap." + ".".join(file.with_suffix("").parts))
        for value in vars(module).values():
            if isinstance(value, Kernel):
                assert value.twin is not None, value.name
                assert str(os.getpid()) not in value.name
