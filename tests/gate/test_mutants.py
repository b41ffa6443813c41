"""Faults that were there once are put back, one at a time: the gate's questions find each of them, and nothing without.

``python -m gate.mutants`` does the same with the gate's own draws in place of one instance each.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest
from gate.answers import Examination
from gate.gates import modest
from gate.mutants import MUTANTS, Mutant

from schedgap.reading import as_instance

KILLED_BY = Path(__file__).parents[1] / "data" / "mutants"
"""An instance on which the mutant of the name is found, which the gate drew."""
QUESTIONS = 12
"""Turns of an instance that are asked at most; every stage has had its own by then."""


def changed(text: str, module: ModuleType) -> ModuleType:
    """The module with another text, beside the one that is there."""
    other = ModuleType(module.__name__)
    other.__file__ = module.__file__
    other.__dict__["__package__"] = module.__package__
    before = sys.modules[module.__name__]
    try:
        sys.modules[module.__name__] = other  # dataclasses look their module up
        exec(compile(text, str(module.__file__), "exec"), other.__dict__)
    finally:
        sys.modules[module.__name__] = before
    return other


def put_back(mutant: Mutant, patch: pytest.MonkeyPatch) -> int:
    """Give functions the code, and constants the value, that they have in the changed text; how many changed."""
    count = 0
    for name, text in mutant.texts().items():
        module = importlib.import_module("schedgap." + name.removesuffix(".py").replace("/", "."))
        other = changed(text, module)
        owners = [(module, other)]
        owners += [
            (part, getattr(other, key))
            for key, part in vars(module).items()
            if isinstance(part, type) and part.__module__ == module.__name__
        ]
        for here, there in owners:
            for key, part in list(vars(here).items()):
                twin = vars(there).get(key)
                if isinstance(part, int) and part != twin:
                    patch.setattr(here, key, twin)
                    count += 1
                part, twin = getattr(part, "__wrapped__", part), getattr(twin, "__wrapped__", twin)
                functions = isinstance(part, FunctionType) and isinstance(twin, FunctionType)
                own = functions and part.__module__ == module.__name__
                if own and not same(part.__code__, twin.__code__):
                    patch.setattr(part, "__code__", twin.__code__)
                    count += 1
    return count


def same(one: CodeType, other: CodeType) -> bool:
    """Whether two functions do the same, wherever they stand."""
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (one, other)]
    outer = [[c for c in code.co_consts if not isinstance(c, CodeType)] for code in (one, other)]
    names = [(code.co_code, code.co_names, code.co_varnames) for code in (one, other)]
    return names[0] == names[1] and outer[0] == outer[1] and len(inner[0]) == len(inner[1]) and all(map(same, *inner))


def first_fault(name: str, scratch: Path, suffix: str) -> str:
    """What the gate finds on the mutant's instance; "" where nothing. Tables of an instance are kept by its name."""
    instance = as_instance(KILLED_BY / f"{name.replace(' ', '-')}.json")
    instance = instance.model_copy(update={"name": f"{instance.name}-{suffix}"})
    for number in range(QUESTIONS):
        faults = Examination(instance, [number], scratch).run().faults
        if faults:
            return faults[0][1]
    return ""


@pytest.mark.parametrize("name", MUTANTS)
def test_the_gate_finds_a_fault_that_is_put_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modest(monkeypatch.setattr)
    with monkeypatch.context() as patch:
        assert put_back(MUTANTS[name], patch) > 0
        assert first_fault(name, tmp_path, "changed")
    assert first_fault(name, tmp_path, "as it is") == ""
