"""The transfers in the model of ddl-cluster with contention: positions, who shares what, and what is moved."""

from __future__ import annotations

from schedgap.formulations.common.layout import Terms
from schedgap.formulations.ddl_cluster.models.events_parts import Parts


def add_transfers(parts: Parts) -> None:
    """All rows about all-reduces but their admission."""
    _add_positions(parts)
    for p in parts.positions[1:]:
        _add_sharing(parts, p)
    _add_volumes(parts)


def _add_positions(parts: Parts) -> None:
    """Begins and ends of transfers in positions, and their moments."""
    layout = parts.layout
    for p in parts.positions:
        parts.real("gap", p)
    gaps = layout.variables.get("gap", {})
    at: list[Terms] = [[] for _ in parts.positions]
    for j, i in parts.messages:
        for p in parts.positions:
            rest = 2 * (parts.jobs[j].iterations - i)
            fits = 2 * i <= p <= len(parts.positions) - rest
            parts.begun[j, i, p] = layout.variable("begun", parts.ids[j], i, p, high=int(fits))
            fits = 2 * i < p <= len(parts.positions) - rest + 1
            parts.ended[j, i, p] = layout.variable("ended", parts.ids[j], i, p, high=int(fits))
        for event in (parts.begun, parts.ended):
            layout.numbered("placed", [(event[j, i, p], 1.0) for p in parts.positions], "==", 1)
        begin = [(parts.admit[j, i], -1.0)]
        job = parts.jobs[j]
        early = job.arrival + (i + 1) * (job.forward + job.backward)
        if parts.latency:
            begin.append((layout.variables["spans"][parts.ids[j]], -parts.latency))
        for p in parts.positions:
            layout.numbered("order", [*_active(parts, j, i, p), (parts.ended[j, i, p], -1.0)], ">=", 0)
            if i:
                over = [(parts.ended[j, i - 1, q], 1.0) for q in range(p)]
                layout.numbered("order", [*over, (parts.begun[j, i, p], -1.0)], ">=", 0)
        for name, event, moment in (("begin", parts.begun, begin), ("end", parts.ended, [(parts.end[j, i], -1.0)])):
            times: Terms = []
            for p in parts.positions:
                here = parts.real("moment", parts.ids[j], i, name, p)
                layout.numbered("time", [(here, 1.0), (event[j, i, p], -parts.last)], "<=", 0)
                layout.numbered("time", [(here, 1.0), (event[j, i, p], -early)], ">=", 0)
                times.append((here, 1.0))
                at[p].append((here, 1.0))
            layout.numbered("time", [*times, *moment], "==", 0)
    for p in parts.positions:
        here = [(event[j, i, p], 1.0) for event in (parts.begun, parts.ended) for j, i in parts.messages]
        layout.numbered("placed", here, "==", 1)
        layout.numbered("time", [*at[p], *((gaps[q], -1.0) for q in range(p + 1))], "==", 0)


def _active(parts: Parts, j: int, i: int, p: int) -> Terms:
    """Whether an all-reduce transfers in the gap before position p."""
    return [(parts.begun[j, i, q], 1.0) for q in range(p)] + [(parts.ended[j, i, q], -1.0) for q in range(p)]


def _transferring(parts: Parts, j: int, p: int, factor: float = 1.0) -> Terms:
    return [(v, factor * c) for i in range(parts.jobs[j].iterations) for v, c in _active(parts, j, i, p)]


def _add_sharing(parts: Parts, p: int) -> None:
    """Who transfers through which server in the gap before position p, and with how many."""
    layout = parts.layout
    gap = layout.variables["gap"][p]
    on: dict[int, Terms] = {}
    for j in parts.spanning:
        for s in sorted({s for s, _ in parts.open[j]}):
            z = parts.crosses[j, s, p] = layout.variable("crosses", parts.ids[j], parts.servers[s], p)
            on.setdefault(s, []).append((z, 1.0))
            layout.numbered("crosses", [(z, 1.0), *_transferring(parts, j, p, -1.0)], "<=", 0)
            layout.numbered("crosses", [(z, 1.0), (parts.uses[j, s], -1.0)], "<=", 0)
            both = [*_transferring(parts, j, p, -1.0), (parts.uses[j, s], -1.0)]
            layout.numbered("crosses", [(z, 1.0), *both], ">=", -1)
    most = min(len(parts.spanning), p, len(parts.positions) - p)
    for j in parts.spanning:
        number: Terms = []
        lengths: Terms = []
        levels: Terms = []
        for k in range(1, most + 1):
            level = layout.variable("level", parts.ids[j], p, k)
            longest = parts.pace(k) * parts.alone[j]
            length = parts.real("sharing", parts.ids[j], p, k, high=longest)
            layout.numbered("sharing", [(length, 1.0), (level, -longest)], "<=", 0)
            levels.append((level, 1.0))
            number.append((level, float(k)))
            lengths.append((length, 1.0))
        layout.numbered("level", [*levels, *_transferring(parts, j, p, -1.0)], "==", 0)
        layout.numbered("sharing", [*lengths, (gap, -1.0)], "<=", 0)
        layout.numbered("sharing", [*lengths, (gap, -1.0), *_transferring(parts, j, p, -parts.last)], ">=", -parts.last)
        reached: Terms = []
        for s in sorted({s for s, _ in parts.open[j]}):
            busiest = layout.variable("busiest", parts.ids[j], parts.servers[s], p)
            reached.append((busiest, 1.0))
            z, count, others = parts.crosses[j, s, p], [(v, -c) for v, c in on[s]], len(parts.spanning)
            layout.numbered("level", [*number, *count, (z, -float(others))], ">=", -others)
            layout.numbered("level", [*number, *count, (busiest, float(others))], "<=", others)
            layout.numbered("level", [(busiest, 1.0), (z, -1.0)], "<=", 0)
        layout.numbered("level", [*reached, *_transferring(parts, j, p, -1.0)], "==", 0)


def _add_volumes(parts: Parts) -> None:
    """What is moved in the gaps is the message."""
    layout = parts.layout
    moved: dict[tuple[int, int], Terms] = {}
    for j, i in parts.messages:
        whole: Terms = []
        for p in parts.positions[1:]:
            y = parts.real("moved", parts.ids[j], i, p, high=parts.alone[j])
            whole.append((y, 1.0))
            moved.setdefault((j, p), []).append((y, 1.0))
            active = [(v, -parts.alone[j] * c) for v, c in _active(parts, j, i, p)]
            layout.numbered("whole", [(y, 1.0), *active], "<=", 0)
        spans = layout.variables["spans"][parts.ids[j]]
        layout.numbered("whole", [*whole, (spans, -parts.alone[j])], "==", 0)
    sharing = layout.variables.get("sharing", {})
    for j in parts.spanning:
        lengths = [(v, 1.0) for key, v in sharing.items() if isinstance(key, tuple) and key[0] == parts.ids[j]]
        spans, count = layout.variables["spans"][parts.ids[j]], parts.jobs[j].iterations
        waits = [(spans, count * parts.latency)] if parts.latency else []
        for i in range(count):
            waits += [(parts.end[j, i], -1.0), (parts.admit[j, i], 1.0)]
        layout.row("length", (parts.ids[j],), [*lengths, *waits], "==", 0)
    for p in parts.positions[1:]:
        here = [term for j in parts.spanning for term in moved[j, p]]
        layout.row("link", (p,), [*here, (layout.variables["gap"][p], -len(parts.servers) / 2)], "<=", 0)
    for (j, p), here in moved.items():
        most = min(len(parts.spanning), p, len(parts.positions) - p)
        each = [(sharing[parts.ids[j], p, k], -1 / parts.pace(k)) for k in range(1, most + 1)]
        layout.numbered("moved", [*here, *each], "==", 0)
