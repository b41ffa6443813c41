"""What ran where: package versions, the machine, and a digest of the code that results depend on."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

import schedgap.formulations
import schedgap.heuristics
import schedgap.solvers
from schedgap.formulations.common.instance import Json
from schedgap.solvers.result import package_version

PACKAGES = ("schedgap", "pulp", "highspy", "ortools", "numpy", "numba", "pydantic", "networkx", "joblib", "matplotlib")
"""Packages named in a report; the first six can change a result."""
RELEVANT = PACKAGES[:6]


@cache
def code_digest() -> str:
    """SHA-256 over the sources of formulations, solvers and heuristics: what a result depends on."""
    digest = hashlib.sha256()
    for package in (schedgap.formulations, schedgap.solvers, schedgap.heuristics):
        for folder in package.__path__:
            root = Path(folder)
            for path in sorted(root.rglob("*.py")):
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def relevant_versions() -> dict[str, Json]:
    """What, besides the work itself, its result depends on; part of a row's key."""
    versions: dict[str, Any] = {name: package_version(name) for name in RELEVANT}
    versions["python"] = ".".join(map(str, sys.version_info[:2]))
    versions["code"] = code_digest()[:16]
    return versions


def environment() -> dict[str, Json]:
    """Machine and versions for the report."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": cores,
        "packages": {name: package_version(name) for name in PACKAGES},
        "code": code_digest()[:16],
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.processor() or "unknown"
    return platform.processor() or "unknown"
