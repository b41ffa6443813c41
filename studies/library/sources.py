"""Which instances the library holds, and how each is made: presets, tables and graphs, hunts, cases."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.worst import worst_instances
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json, read_json
from schedgap.tools.library.collection import Kind

CHECKOUT = Path(__file__).parents[3]
GENERATED: Mapping[str, Sequence[tuple[str, str, int, Mapping[str, Json]]]] = {
    "rar-ddls": (
        ("tiny", "tiny", 4, {}),
        ("contended", "contended", 4, {}),
        ("small", "small", 4, {}),
        ("small-14", "small", 4, {"jobs": 14, "servers": 5}),
        ("small-24", "small", 3, {"jobs": 24, "servers": 6}),
        ("crossing-20", "contended", 3, {"jobs": 14, "singles": 6, "servers": 6}),
        ("paper-40", "paper", 3, {"jobs": 40, "servers": 6}),
        ("paper-80", "paper", 2, {"jobs": 80, "servers": 10}),
        ("paper", "paper", 2, {}),
    ),
    "hadar": (
        ("tiny", "tiny", 4, {}),
        ("contended", "contended", 4, {}),
        ("lowhigh", "lowhigh", 2, {}),
        ("small", "small", 5, {}),
        ("small-12", "small", 4, {"jobs": 12, "horizon": 16}),
        ("small-16", "small", 4, {"jobs": 16, "horizon": 20}),
        ("trace-30", "trace", 3, {"jobs": 30, "nodes": 3, "horizon": 60}),
        ("trace-60", "trace", 2, {"jobs": 60, "nodes": 4, "horizon": 100}),
        ("trace", "trace", 1, {}),
    ),
    "gpu-sharing": (
        ("tiny", "tiny", 6, {}),
        ("contended", "contended", 6, {}),
        ("small-8", "small", 5, {"jobs": 8, "gpus": 4, "horizon": 32, "arrivals": 8}),
        ("small", "small", 5, {}),
        ("hard", "small", 4, {"slots": 8, "arrivals": 12, "horizon": 64}),
        ("table-ii", "table-ii", 3, {}),
        ("table-iii-40", "table-iii", 2, {"jobs": 40, "servers": 4, "hours": 2.0}),
    ),
    "comm-contention": (
        ("tiny", "tiny", 6, {}),
        ("small", "small", 7, {}),
        ("small-10", "small", 4, {"tasks": 10}),
        ("small-12", "small", 4, {"tasks": 12}),
        ("newcomer", "newcomer", 3, {}),
        ("adadual-trap", "adadual-trap", 1, {}),
        ("bursts-30", "bursts", 3, {"tasks": 30, "bursts": 3}),
        ("bursts", "bursts", 3, {}),
    ),
    "ddl-cluster": (
        ("tiny", "tiny", 7, {}),
        ("tiny-4", "tiny", 5, {"jobs": 4, "servers": 2}),
        ("small-4", "small", 4, {"jobs": 4, "servers": 2, "iterations": 3}),
        ("small-6", "small", 4, {"jobs": 6, "servers": 3, "iterations": 10}),
        ("small", "small", 4, {}),
        ("paper-40", "paper", 3, {"jobs": 40, "servers": 4, "fewest": 100, "most": 600, "seconds": 60.0}),
        ("paper-160", "paper", 1, {"fewest": 20, "most": 120, "seconds": 60.0}),
    ),
    "gang-placement": (
        ("tiny", "tiny", 7, {}),
        ("halves", "halves", 5, {}),
        ("halves-4-8", "halves", 6, {"nodes": 4, "gangs": 8}),
        ("small-first", "small-first", 1, {}),
        ("cluster", "cluster", 5, {}),
        ("parts", "parts", 3, {}),
        ("large", "large", 2, {}),
    ),
    "g-vne": (
        ("tiny", "tiny", 7, {}),
        ("small", "small", 7, {}),
        ("small-10", "small", 4, {"servers": 10, "jobs": 10}),
        ("fat-tree", "fat-tree", 3, {}),
        ("random-20", "random", 3, {"servers": 20, "jobs": 12}),
        ("random", "random", 2, {}),
        ("racks", "racks", 3, {}),
        ("large-tree", "large-tree", 1, {}),
    ),
    "ddljs": (
        ("tiny", "tiny", 9, {}),
        ("small", "small", 7, {}),
        ("small-8", "small", 4, {"servers": 6, "jobs": 8, "horizon": 8}),
        ("figure-7-small", "figure-7", 3, {"servers": 6, "jobs": 15, "horizon": 20}),
        ("figure-7", "figure-7", 3, {}),
        ("paper", "paper", 1, {}),
        ("figure-5-60", "figure-5", 2, {"jobs": 60, "horizon": 60}),
    ),
}
"""Problem: name, preset, how many (seeds from 0), settings."""

TABLES: Mapping[str, Sequence[tuple[int, int, Mapping[str, Json]]]] = {
    "rar-ddls": (
        (12, 2, {"servers": 3, "slack": 1.25}),
        (30, 2, {"servers": 5, "slack": 1.25}),
        (80, 1, {"servers": 10, "slack": 1.25}),
    ),
    "hadar": ((10, 2, {"servers": 3, "horizon": 60}), (30, 2, {"servers": 3, "horizon": 120})),
    "gpu-sharing": ((8, 2, {"servers": 2}), (16, 2, {"servers": 3})),
    "ddl-cluster": ((6, 2, {"servers": 2, "steps_scale": 0.001}), (24, 2, {"servers": 4, "steps_scale": 0.01})),
}
"""Problem: jobs, how many, options of the importer."""

GRAPHS: Mapping[str, Sequence[tuple[int, int, Mapping[str, Json]]]] = {
    "g-vne": ((10, 2, {"jobs": 6}), (25, 2, {"jobs": 12})),
    "ddljs": ((6, 2, {"jobs": 5}), (12, 2, {"jobs": 10})),
}
"""Problem: nodes, how many, options of the importer."""

PHILLY = (
    "CC-BY-4.0",
    "M. Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019 "
    "(msr-fiddle/philly-traces)",
)
GAVEL = (
    "MIT",
    "D. Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads, OSDI 2020 "
    "(stanford-futuredata/gavel)",
)
CHRONUS = (
    "MIT",
    "W. Gao et al., Chronus: A Novel Deadline-aware Scheduler for Deep Learning Training Jobs, SoCC 2021 "
    "(S-Lab-System-Group/ChronusArtifact); its jobs are of the Philly trace, CC-BY-4.0",
)
SHOCKWAVE = (
    "MIT",
    "P. Zheng et al., Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in Machine Learning, "
    "NSDI 2023 (uw-mad-dash/shockwave)",
)
MURI = (
    "Apache-2.0",
    "Y. Zhao et al., Multi-Resource Interleaving for Deep Learning Training, SIGCOMM 2022 (Rivendile/Muri)",
)
_MURI = {"gpus": "num_gpu", "duration": "duration", "arrival": "submit_time", "id": "job_id", "unit": "ms"}
_PHILLY, _GAVEL = "philly/philly.csv", "gavel/small_test.trace"
_CHRONUS, _SHOCKWAVE = "chronus/trace_job_Philly_MIX1.csv", "shockwave/220_dynamic.trace"
LOGS: Mapping[str, Sequence[tuple[str, str, str, tuple[str, str], Mapping[str, Json]]]] = {
    "rar-ddls": (
        ("philly-60", "philly", _PHILLY, PHILLY, {"jobs": 60}),
        ("gavel-50", "gavel", "gavel/minimize_makespan.trace", GAVEL, {"jobs": 50}),
        ("shockwave-40", "gavel", _SHOCKWAVE, SHOCKWAVE, {"jobs": 40}),
    ),
    "hadar": (
        ("gavel-20", "gavel", _GAVEL, GAVEL, {"slot_length": 60.0}),
        ("shockwave-20", "gavel", _SHOCKWAVE, SHOCKWAVE, {"jobs": 20, "servers": 3}),
    ),
    "gpu-sharing": (
        ("philly-60", "philly", _PHILLY, PHILLY, {"jobs": 60, "servers": 8, "slot_length": 60.0}),
        ("gavel-20", "gavel", _GAVEL, GAVEL, {"servers": 2}),
        ("chronus-40", "chronus", _CHRONUS, CHRONUS, {"jobs": 40, "slot_length": 60.0}),
        ("muri-50", "csv", "muri/trace2.csv", MURI, {**_MURI, "jobs": 50, "slot_length": 60.0}),
    ),
    "ddl-cluster": (
        ("chronus-16", "chronus", _CHRONUS, CHRONUS, {"jobs": 16, "time_scale": 0.001}),
        ("muri-12", "csv", "muri/trace2.csv", MURI, {**_MURI, "jobs": 12, "time_scale": 0.0001}),
    ),
    "ddljs": (("philly-24", "philly", _PHILLY, PHILLY, {"jobs": 24}),),
}
"""Problem: name, format, file of a public log, its license and citation, options of the importer."""

PACKINGS = (("triplets", 30, 2), ("triplets", 60, 2), ("uniform", 60, 1), ("uniform", 120, 1))
"""Items, of which kind, and how many instances: bin packing as jobs of one slot on one server, for rar-ddls."""

GANGS, WEIGHTS = (1, 2, 4, 8), (50, 20, 20, 10)
SHORTEST, SPREAD = 600.0, 1.2
"""Durations are log-normal about this many seconds, with this standard deviation of their logarithm."""


@dataclass(frozen=True)
class Source:
    """An instance of the library before anything is known of it.

    Attributes
    ----------
    id : ``<problem>/<name>``
    kind, made : see :class:`~schedgap.tools.library.collection.BestKnown`
    instance : itself
    terms : license and citation of the log that it was imported from
    """

    id: str
    kind: Kind
    made: Mapping[str, Json]
    instance: Instance
    terms: tuple[str, str] | None = None


def sources(problem: str, logs: Path | None = None) -> Iterator[Source]:
    """Every instance of a problem, in the order of the declarations; hunts and cases need a source checkout.

    Those of public logs need the folder `logs`, with each repository's files in a folder of its name.
    """
    row = find_problem(problem)
    for name, preset, count, settings in GENERATED.get(problem, ()):
        for seed in range(count):
            made = {"preset": preset, "seed": seed, "settings": dict(settings)}
            yield Source(f"{problem}/{name}-{seed}", "generated", made, make_instance(row, preset, seed, settings))
    for shape, items, count in PACKINGS if problem == "rar-ddls" else ():
        for seed in range(count):
            made = {"drawn": f'packing("{shape}", {items}, seed={seed})'}
            instance = row.instance_class.parse(packing(shape, items, seed))
            yield Source(f"{problem}/{shape}-{items}-{seed}", "generated", made, instance)
    for jobs, count, options in TABLES.get(problem, ()):
        for seed in range(count):
            columns = {"gpus": "gpus", "duration": "duration", "arrival": "arrival", "id": "id", **options}
            made = {"format": "csv", "drawn": f"table_of_jobs({jobs}, seed={seed})", "settings": columns}
            instance = _imported(problem, "csv", table_of_jobs(jobs, seed), columns)
            yield Source(f"{problem}/table-{jobs}-{seed}", "imported-like", made, instance)
    for nodes, count, options in GRAPHS.get(problem, ()):
        for seed in range(count):
            made = {"format": "gml", "drawn": f"graph({nodes}, seed={seed})", "settings": {"seed": seed, **options}}
            instance = _imported(problem, "gml", graph(nodes, seed), {"seed": seed, **options})
            yield Source(f"{problem}/graph-{nodes}-{seed}", "imported-like", made, instance)
    for name, form, file, terms, options in LOGS.get(problem, ()) if logs is not None else ():
        assert logs is not None
        made = {"format": form, "file": Path(file).name, "settings": dict(options)}
        instance = import_instance(row, form, [logs / file], None, options)[0]
        yield Source(f"{problem}/{name}", "imported", made, instance, terms)
    for (owner, method), worst in worst_instances().items():
        if owner == problem:
            made = {"hunt": f"{owner}/{method}", "ratio": plain_ratio(worst.ratio), "options": dict(worst.options)}
            name = Path(worst.file).stem
            yield Source(f"{problem}/{name}", "hunted", made, row.instance_class.parse(worst.data))
    for folder, kind, word in (("docs/counterexamples", "hunted", "refutes"), ("tests/data", "reference", "case")):
        for path in sorted((CHECKOUT / folder).glob("*.json")):
            data = read_json(path)
            if isinstance(data, Mapping) and data.get("problem") == problem:
                stem = path.stem.replace("_", "-")
                name = stem if kind == "hunted" else f"case-{stem.removeprefix(f'{problem}-')}"
                made = {word: path.stem}
                yield Source(f"{problem}/{name}", kind, made, row.instance_class.parse(data))  # type: ignore[arg-type]


def plain_ratio(ratio: float) -> float | str:
    """A ratio as JSON holds it."""
    return "inf" if ratio == float("inf") else ratio


def packing(shape: str, items: int, seed: int) -> Mapping[str, Json]:
    """Bin packing as jobs of one slot on one server, whose GPUs are the bin: the makespan is the number of bins.

    Parameters
    ----------
    shape : ``triplets``, three items of 250 to 500 that fill a bin of 1,000; or ``uniform``, 20 to 100 into 150
        (both after E. Falkenauer, A hybrid grouping genetic algorithm for bin packing, 1996)
    items : how many
    seed : seed of all that is drawn
    """
    drawn = random.Random(seed)
    if shape == "triplets":
        capacity, sizes = 1000, []
        for _ in range(items // 3):
            first = drawn.randint(380, 490)
            second = drawn.randint(250, (1000 - first) // 2)
            sizes += [first, second, 1000 - first - second]
        drawn.shuffle(sizes)
    else:
        capacity, sizes = 150, [drawn.randint(20, 100) for _ in range(items)]
    return one_server(f"{shape}-{items}-{seed}", capacity, [(size, 1) for size in sizes])


def one_server(name: str, gpus: int, jobs: Sequence[tuple[int, int]]) -> dict[str, Json]:
    """An instance of rar-ddls with jobs of so many GPUs and slots on one server; nothing is sent."""
    work = {"gradient_size": 0, "batch_size": 1, "forward_time": 0, "backward_time": 1}
    return {
        "problem": "rar-ddls",
        "name": name,
        "horizon": sum(slots for _, slots in jobs),
        "network": {
            **{"inter_bandwidth": 1, "intra_bandwidth": 1},
            **{"contention_scale": 1, "contention_penalty": 0, "server_overhead": 0},
        },
        "reduce_speed": 1,
        "servers": [{"id": "s0", "gpus": gpus}],
        "jobs": [{"id": f"j{k}", "gpus": need, "iterations": slots, **work} for k, (need, slots) in enumerate(jobs)],
    }


def table_of_jobs(jobs: int, seed: int) -> str:
    """A table in the form of a cluster's log: gangs of 1 to 8 GPUs, log-normal durations, arrivals one after another.

    Parameters
    ----------
    jobs : rows
    seed : seed of all that is drawn
    """
    drawn = random.Random(seed)
    rows, clock = ["id,arrival,gpus,duration"], 0.0
    for number in range(jobs):
        gang = drawn.choices(GANGS, WEIGHTS)[0]
        length = SHORTEST * drawn.lognormvariate(0.0, SPREAD)
        rows.append(f"job{number},{round(clock)},{gang},{max(60, round(length))}")
        clock += drawn.expovariate(1 / 120)
    return "\n".join(rows) + "\n"


def graph(nodes: int, seed: int) -> str:
    """A connected geometric graph in GML with capacities of links in Gbit/s, as backbones in the Topology Zoo are.

    Parameters
    ----------
    nodes : how many, joined by a tree of nearest neighbours and nodes / 3 further links
    seed : seed of all that is drawn
    """
    drawn = random.Random(seed)
    at = [(drawn.random(), drawn.random()) for _ in range(nodes)]

    def apart(a: int, b: int) -> float:
        return (at[a][0] - at[b][0]) ** 2 + (at[a][1] - at[b][1]) ** 2

    edges = {(min(range(n), key=lambda m, n=n: apart(m, n)), n) for n in range(1, nodes)}  # type: ignore[misc]
    others = sorted((apart(a, b), a, b) for b in range(nodes) for a in range(b) if (a, b) not in edges)
    edges |= {(a, b) for _, a, b in others[: nodes // 3]}
    lines = [f'  node [ id {n} label "n{n}" ]' for n in range(nodes)]
    lines += [f"  edge [ source {a} target {b} capacity {drawn.choice((1, 2.5, 10))} ]" for a, b in sorted(edges)]
    return "\n".join(["graph [", *lines, "]", ""])


def _imported(problem: str, form: str, text: str, settings: Mapping[str, Json]) -> Instance:
    with tempfile.TemporaryDirectory() as scratch:
        path = write_text(Path(scratch) / f"drawn.{form}", text)
        return import_instance(find_problem(problem), form, [path], None, settings)[0]
