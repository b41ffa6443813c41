"""The workload mixes of section VI of paper 002 on five machines of one device each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.heuristics.hadar.throughput_estimate import DEVICES

CLUSTERS: Mapping[str, tuple[str, ...]] = {
    "aws": ("V100", "K80", "K80", "T4", "T4"),
    "testbed": ("TitanRTX", "T4", "T400", "RTX3090", "A2000"),
}


MIXES: Mapping[str, Mapping[str, int]] = {
    "M-1": {"MM": 1},
    "M-3": {"LT": 1, "MM": 2},
    "M-4": {"IC": 1, "LM": 1, "LT": 1, "MM": 1},
    "M-5": {"IC": 1, "LM": 1, "LT": 1, "RS": 1, "MM": 1},
    "M-8": {"IC": 1, "LM": 1, "LT": 1, "RS": 1, "MM": 4},
    "M-10": {"IC": 1, "LM": 1, "LT": 1, "RS": 1, "MM": 6},
    "M-12": {"IC": 1, "LM": 1, "LT": 1, "RS": 1, "MM": 8},
}
"""Jobs by model, as printed: ResNet-18, LSTM, Transformer, Recorder, and an encoder-decoder transformer."""


_MEASURED = {
    "IC": "ResNet-18 (batch size 64)",
    "LM": "LM (batch size 20)",
    "LT": "Transformer (batch size 64)",
    "RS": "Recommendation (batch size 512)",
    "MM": "Transformer (batch size 64)",
}
"""The measured job type that stands for a model; MM was not measured and takes LT's rates."""


_SECONDS = (1000.0, 3000.0)
"""Work in seconds on a V100: with these Gavel's total duration on M-5 is near the printed one."""


def mixes(
    seed: int,
    *,
    mix: Annotated[Literal["M-1", "M-3", "M-4", "M-5", "M-8", "M-10", "M-12"], Field(description="the mix")] = "M-5",
    cluster: Annotated[Literal["aws", "testbed"], Field(description="which five machines")] = "aws",
    slot: Annotated[float, Field(gt=0, le=10**6, description="seconds of a round")] = 360.0,
    rates: Annotated[
        Literal["eq-10", "teraflops"], Field(description="unmeasured devices: by eq. (10), or by teraflops")
    ] = "eq-10",
    horizon: Annotated[int, Field(ge=1, le=100000, description="rounds")] = 4000,
) -> HadarInstance:
    """Jobs of one worker, all there at the start, on five machines of one device.

    Rates on V100 and K80 are measured (``throughputs.py``); on other devices they are the V100's times the ratio of
    eq. (10), or of the peak teraflops. The paper prints neither rates nor epochs: work is uniform from 1,000 to 3,000
    seconds on a V100, one draw per model, so equal jobs are equal.
    """
    rng = np.random.default_rng(seed)
    work = {model: float(rng.uniform(*_SECONDS)) for model in _MEASURED}
    kinds = CLUSTERS[cluster]
    made: list[dict[str, Any]] = []
    for model, count in MIXES[mix].items():
        speeds = {kind: _rate(model, kind, rates) for kind in dict.fromkeys(kinds)}
        iterations = max(1, round(work[model] * _rate(model, "V100", rates)))
        made += [
            {
                "id": f"{model}-{k}",
                "arrival": 1,
                "workers": 1,
                "epochs": iterations,
                "iterations_per_epoch": 1,
                "throughput": speeds,
                "utility": {"kind": "effective-throughput", "weight": 1.0},
            }
            for k in range(count)
        ]
    machines = [{"id": f"n{h}", "gpus": {kind: 1}} for h, kind in enumerate(kinds)]
    data = {"problem": "hadar", "name": f"{mix}-{cluster}-{seed}", "horizon": horizon, "slot_length": slot}
    return HadarInstance.parse({**data, "machines": machines, "jobs": made}, mix)


def _rate(model: str, kind: str, rates: str) -> float:
    """Iterations per second."""
    measured = BUILT_IN.rate(kind.lower(), _MEASURED[model], 1).consolidated
    if measured is not None:
        return measured
    reference = BUILT_IN.rate("v100", _MEASURED[model], 1).consolidated or 0.0
    device, known = DEVICES[kind], DEVICES["V100"]
    ratio = device.index * device.pcie / (known.index * known.pcie)
    return round(reference * (device.teraflops / known.teraflops if rates == "teraflops" else ratio), 6)
