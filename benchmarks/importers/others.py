"""Logs of other schedulers: PBS, HTCondor, LSF, the Standard Workload Format, and Slurm's own table of jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from schedgap.benchmarks.importers.cells import NOT_ENDED, LeftOut, between, count, duration, host_names, moment, name
from schedgap.benchmarks.importers.rows import Format
from schedgap.formulations.common.instance import Json


def _lasted(start: str, end: str) -> float:
    if start.strip() in ("", "0", "-1"):
        raise LeftOut("never started")
    if end.strip() in ("", "0", "-1"):
        raise LeftOut(NOT_ENDED)
    return between(start, end)


def _split(cell: str) -> tuple[tuple[str, int | None], ...]:
    """Nodes as ``n1:4 n2:2``, or without a number where it is not known."""
    pairs = [part.rpartition(":") for part in cell.split()]
    return tuple((host, int(amount) if amount else None) for host, _, amount in pairs)


_FIELDS = {"id": (name, "id"), "gpus": (count, "gpus"), "arrival": (moment, "submit")}
_LASTS = {"duration": (_lasted, "start", "end")}
_RECORD = {
    "start": (moment, "start"),
    "end": (moment, "end"),
    "eligible": (moment, "eligible"),
    "nodes": (_split, "nodes"),
    "limit": (duration, "limit"),
    "tenant": (name, "queue"),
    "user": (name, "user"),
    "state": (name, "state"),
    "processors": (count, "processors"),
}


def _cells(**given: object) -> Sequence[str]:
    """In the order in which the fields name their columns first."""
    order = (
        "id",
        "gpus",
        "submit",
        "start",
        "end",
        "eligible",
        "nodes",
        "limit",
        "queue",
        "user",
        "state",
        "processors",
    )
    return [str(given.get(cell, "")) for cell in order]


_PBS = re.compile(r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?;([A-Za-z]+);([^;]*);(.*)")
_GPU_WORDS = ("ngpus", "gpus", "naccelerators")


def is_pbs(first: str) -> bool:
    """Whether a line is one of PBS's accounting."""
    return _PBS.match(first) is not None


def _pbs(line: str) -> Sequence[str]:
    """A line of PBS's accounting (PBS Professional, OpenPBS, Torque): E lines have all that is needed."""
    found = _PBS.match(line)
    if found is None:
        raise ValueError("is no line of PBS's accounting")
    kind, identity, rest = found.groups()
    if kind != "E":
        raise LeftOut(f"is a record of another kind than E, the end of a job ({kind})")
    parts = (part.partition("=") for part in re.split(r" (?=[A-Za-z_][A-Za-z0-9_.]*=)", rest.strip()))
    said = {key.strip(): value.strip().strip('"') for key, _, value in parts}
    nodes = _pbs_nodes(said)
    gpus = next((said[key] for word in _GPU_WORDS if (key := f"Resource_List.{word}") in said), "")
    if not gpus:
        gpus = str(sum(amount for _, amount in nodes) or _chunks(said))
    exact = nodes if sum(amount for _, amount in nodes) == int(gpus or 0) else [(node, "") for node, _ in nodes]
    return _cells(
        id=identity,
        gpus=gpus,
        submit=said.get("qtime", said.get("ctime", "")),
        start=said.get("start", ""),
        end=said.get("end", ""),
        eligible=said.get("etime", ""),
        nodes=" ".join(f"{node}:{amount}" for node, amount in exact),
        limit=said.get("Resource_List.walltime", ""),
        queue=said.get("queue", ""),
        user=said.get("user", ""),
        state=said.get("Exit_status", said.get("exit_status", "")),
        processors=said.get("Resource_List.ncpus", ""),
    )


def _pbs_nodes(said: Mapping[str, str]) -> list[tuple[str, int]]:
    """Nodes of ``(n1:ncpus=8:ngpus=2)+(n2:...)``, or of ``n1/0+n1/1+n2/0``, with their GPUs as far as told."""
    if vnodes := said.get("exec_vnode", ""):
        found: dict[str, int] = {}
        for part in re.findall(r"[^+()]+", vnodes):
            host, *amounts = part.split(":")
            host = re.sub(r"\[[0-9]+\]$", "", host)  # a node of several parts
            gpus = sum(int(a.partition("=")[2]) for a in amounts if re.fullmatch(r"n?gpus=[0-9]{1,9}", a))
            found[host] = found.get(host, 0) + gpus
        return list(found.items())
    hosts = [part.partition("/")[0] for part in said.get("exec_host", "").split("+") if part]
    return [(host, 0) for host in dict.fromkeys(hosts)]


def _chunks(said: Mapping[str, str]) -> int:
    """GPUs of ``2:ncpus=8:ngpus=4+1:ngpus=1`` (select), or of ``nodes=2:ppn=8:gpus=4`` (Torque)."""
    total = 0
    for chunk in (said.get("Resource_List.select") or said.get("Resource_List.nodes") or "").split("+"):
        gpus = re.search(r":(?:ngpus|gpus)=([0-9]{1,9})(?=:|$)", chunk)
        if gpus:
            times = re.match(r"[0-9]{1,9}(?=:)", chunk)
            total += (int(times[0]) if times else 1) * int(gpus[1])
    return total


PBS = Format(
    "pbs",
    "PBS's accounting (server_priv/accounting of PBS Professional, OpenPBS or Torque): its E records",
    {**_FIELDS, **_LASTS},
    _RECORD,
    objects=_pbs,
    lines=True,
    attempts=True,
)


def _condor(ad: Json) -> Sequence[str]:
    """An ad of ``condor_history -json``: the run that ended, and when the job was queued."""
    if not isinstance(ad, Mapping):
        raise ValueError("is not an object")
    start = ad.get("JobCurrentStartDate", ad.get("JobStartDate", 0))
    host = str(ad.get("LastRemoteHost") or "").rpartition("@")[2]
    status = ad.get("JobStatus")
    end = ad.get("CompletionDate") or (ad.get("EnteredCurrentStatus", 0) if status in (3, 4) else 0)
    gpus = ad.get("GpusProvisioned", ad.get("RequestGPUs", ad.get("RequestGpus", 0)))
    if isinstance(gpus, str) and not gpus.isdecimal():
        raise LeftOut("asks for GPUs by an expression")
    return _cells(
        id=f"{ad.get('ClusterId')}.{ad.get('ProcId')}",
        gpus=gpus,
        submit=ad.get("QDate", ""),
        start=start,
        end=end,
        nodes=f"{host}:" if host else "",
        queue=ad.get("AccountingGroup") or "",
        user=ad.get("Owner") or "",
        state=status,
        processors=ad.get("RequestCpus") if isinstance(ad.get("RequestCpus"), int) else "",
    )


CONDOR = Format(
    "condor",
    "HTCondor's history: condor_history -json",
    {**_FIELDS, **_LASTS},
    _RECORD,
    objects=_condor,
    notes=("of a job that HTCondor started several times the last run counts, from when it was queued",),
)


def is_swf(first: str) -> bool:
    """Whether a line is a comment or a row of the Standard Workload Format."""
    cells = first.split()
    return first.lstrip().startswith(";") or (
        len(cells) == 18 and all(re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", cell) for cell in cells)
    )


def _swf(line: str) -> Sequence[str]:
    """A job of the Standard Workload Format: 18 numbers, -1 where nothing is known."""
    cells = line.split()
    if len(cells) != 18:
        raise ValueError(f"must be 18 numbers, got {len(cells)}")
    submit, wait, ran = (float(cell) for cell in cells[1:4])
    if wait < 0 or ran < 0:
        raise LeftOut("never started" if wait < 0 else NOT_ENDED)
    wide = cells[4] if cells[4] != "-1" else cells[7]
    known = {"limit": cells[8], "queue": cells[14], "user": cells[11], "state": cells[10]}
    return _cells(
        id=cells[0],
        gpus=wide if wide != "-1" else "",
        submit=repr(submit),
        start=repr(submit + wait),
        end=repr(submit + wait + ran),
        **{key: value for key, value in known.items() if value != "-1"},
    )


SWF = Format(
    "swf",
    "the Standard Workload Format of the Parallel Workloads Archive",
    {**_FIELDS, "duration": (between, "start", "end")},
    _RECORD,
    objects=_swf,
    lines=True,
    notes=("the format counts processors: each is taken for a GPU",),
)


def is_lsf(first: str) -> bool:
    """Whether a line is a record of LSF."""
    return re.match(r'"[A-Z_]+" "[0-9.]+" [0-9]+ ', first) is not None


def _lsf(line: str) -> Sequence[str]:
    """A JOB_FINISH record of LSF's lsb.acct: its fields by place, as IBM's reference of lsb.acct orders them."""
    cells = [quoted or plain for quoted, plain in re.findall(r'"((?:[^"]|"")*)"|(\S+)', line)]
    if not cells or cells[0] != "JOB_FINISH":
        raise LeftOut("is a record of another kind than JOB_FINISH")
    if len(cells) < 30:
        raise ValueError("is cut")
    asked = int(cells[22])
    at = 23 + asked
    runs = int(cells[at])
    hosts: dict[str, int] = {}
    for host in cells[at + 1 : at + 1 + runs]:
        times, _, single = host.rpartition("*")
        hosts[single] = hosts.get(single, 0) + (int(times) if times else 1)
    if cells[10] == "0" or not hosts:
        raise LeftOut("never started")
    each = re.findall(r"rusage\[[^\]]{0,500}\bngpus(?:_physical)?=([0-9.]+)", line)
    gpus = round(float(each[-1])) if each else 0
    return _cells(
        id=cells[3],
        gpus=gpus * len(hosts),
        submit=cells[7],
        start=cells[10],
        end=cells[2],
        nodes=" ".join(f"{host}:{gpus}" for host in hosts),
        queue=cells[12],
        user=cells[11],
        state=cells[at + 1 + runs] if len(cells) > at + 1 + runs else "",
        processors=cells[6],
    )


LSF = Format(
    "lsf",
    "LSF's lsb.acct: its JOB_FINISH records",
    {**_FIELDS, **_LASTS},
    _RECORD,
    objects=_lsf,
    lines=True,
    attempts=True,
    notes=("GPUs are those of rusage[ngpus_physical=...], on each host of the job",),
)

_STATES = {"0": "PENDING", "1": "RUNNING", "2": "SUSPENDED", "3": "COMPLETED", "4": "CANCELLED", "5": "FAILED"}
_FIRST_GRES = 1001
"""TRES ids from here on are generic resources."""


def _tres_gpus(cell: str, start: str) -> int:
    """GPUs of ``1=8,2=4096,4=1,1001=2``: all ids from 1001 on are taken for GPUs, in all and by type."""
    if start.strip() in ("", "0"):
        raise LeftOut("never started")
    amounts = [int(n) for key, n in re.findall(r"([0-9]{4,9})=([0-9]{1,10})", cell) if int(key) >= _FIRST_GRES]
    if not amounts:
        return 0
    largest, rest = max(amounts), sum(amounts) - max(amounts)
    if rest not in (0, largest) and set(amounts) != {largest}:
        raise LeftOut("has several TRES ids from 1001 on, none the sum of the others (sacctmgr show tres names them)")
    return largest


def _tres_processors(cell: str) -> int:
    found = re.search(r"(?:^|,)1=([0-9]{1,9})(?=,|$)", cell)
    if found is None:
        raise LeftOut("does not say")
    return int(found[1])


def _hosts(cell: str) -> tuple[tuple[str, None], ...]:
    return tuple((host, None) for host in host_names(cell))


SLURM_TABLE = Format(
    "slurm-table",
    "Slurm's table of jobs as CSV (id_job, time_submit, ..., tres_alloc with TRES ids)",
    {
        "id": (name, "id_job"),
        "gpus": (_tres_gpus, "tres_alloc", "time_start"),
        "arrival": (moment, "time_submit"),
        "duration": (_lasted, "time_start", "time_end"),
    },
    {
        "eligible": (moment, "time_eligible"),
        "start": (moment, "time_start"),
        "end": (moment, "time_end"),
        "state": (lambda cell: _STATES.get(cell.strip(), cell), "state"),
        "nodes": (_hosts, "nodelist"),
        "tenant": (name, "partition"),
        "user": (name, "id_user"),
        "processors": (_tres_processors, "tres_alloc"),
    },
    separator=None,
    attempts=True,
    notes=("TRES ids from 1001 on are taken for GPUs (sacctmgr show tres says what they are)",),
)
OTHERS = (PBS, CONDOR, LSF, SWF, SLURM_TABLE)
