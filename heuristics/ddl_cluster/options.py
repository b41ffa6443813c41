"""The options of the policies of ddl-cluster, as ``--set`` and the functions themselves take them."""

from __future__ import annotations

from collections.abc import Mapping

from schedgap.formulations.ddl_cluster.instance import MOST_GPUS
from schedgap.heuristics.common.run import Option

POLICY: Mapping[str, Option] = {
    "placement": Option(str, "lwf", "which GPUs a job gets", choices=("lwf", "ls", "ff", "rand")),
    "kappa": Option(
        int, 1, "lwf: jobs of up to so many GPUs get the least loaded ones anywhere", minimum=0, maximum=MOST_GPUS
    ),
}
