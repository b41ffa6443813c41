"""What contention costs, without a time index: overlaps of rings that share servers slow both down.

Idea: the slots in which a ring shares a server with q others follow from overlaps of intervals, pair by pair. Source:
paper 000's (6) to (8) without a time index; ours. Guarantee: a relaxation; `refine` adds what a found solution
violates until both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from schedgap.solvers.exact.rar_ddls.job_needs import Need
from schedgap.solvers.exact.rar_ddls.slot_packing import SlotCut

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
from schedgap.solvers.exact.rar_ddls.intervals import IntervalModel, Linear

_CUT_SCALE = 10**5


class Overlaps:
    """Adds contention to an :class:`IntervalModel`; still a relaxation, made exact by :meth:`refine`.

    For ring j and a threshold q, slots[j, q] stands for the number of slots in which some server that j crosses
    is crossed by at least q active rings. Together with its rates this gives j's progress, which must reach F_j:
    v_1 * duration - sum_q (v_before - v_from_q) slots[j, q] >= F_j. From below the slots are bounded by pairs:

    - slots[j, 2] >= overlap of j and k, when they share a server;
    - on every server s that j crosses, sum_k overlap(j, k) over rings k that cross s
      <= (q_1 - 2) duration + sum_i (q_(i+1) - q_i) slots[j, q_i].

    Both hold in every schedule. What they leave open, :meth:`refine` adds for a given solution.
    """

    def __init__(self, intervals: IntervalModel, grades: Sequence[int]) -> None:
        self._in = intervals
        self._model = intervals.model
        self.slots: dict[tuple[int, int], cp_model.IntVar] = {}
        self._thresholds: dict[int, list[int]] = {}
        self._rings_on = [
            [j for j in intervals.rings if (j, s) in intervals.crosses] for s in range(len(intervals.instance.servers))
        ]
        self._most_on = [
            min(len(rings), server.gpus)
            for rings, server in zip(self._rings_on, intervals.instance.servers, strict=True)
        ]
        self._shared: dict[tuple[int, ...], cp_model.IntVar] = {}
        self._pairs: dict[tuple[int, int], cp_model.IntVar] = {}
        self._cuts: set[tuple[object, ...]] = set()
        for j in intervals.rings:
            drops = {level + 1 for level in intervals.options[j].levels[:-1]}
            highest = max(self._most_on[s] for s in range(len(self._most_on)) if (j, s) in intervals.crosses)
            self._thresholds[j] = sorted(q for q in drops.union(grades[1:]) if q <= highest)
        self._add_pairs()
        for j in intervals.rings:
            self._add_slots(j)
            self._add_progress(j)

    def _add_pairs(self) -> None:
        rings = self._in.rings
        for at, j in enumerate(rings):
            for k in rings[at + 1 :]:
                common = [s for s, on in enumerate(self._rings_on) if j in on and k in on and self._most_on[s] >= 2]
                if common and (self._thresholds[j] or self._thresholds[k]):
                    self._pairs[j, k] = self._pair(j, k, common)

    def _pair(self, j: int, k: int, common: Iterable[int]) -> cp_model.IntVar:
        """Slots in which both run, where they share a server; at least 0 where they do not."""
        model, crosses = self._model, self._in.crosses
        start, end = self._in.start, self._in.end
        share = model.new_bool_var("")
        for s in common:
            model.add_bool_or(crosses[j, s].Not(), crosses[k, s].Not(), share)
        overlap = model.new_int_var(0, self._in.high, "")
        first, second, both = (model.new_bool_var("") for _ in range(3))  # j before k, k before j, together
        model.add(end[j] <= start[k]).only_enforce_if(first)
        model.add(end[k] <= start[j]).only_enforce_if(second)
        model.add_bool_or(first, second, share.Not(), both)
        model.add(overlap == 0).only_enforce_if(both.Not())
        starts, ends = model.new_bool_var(""), model.new_bool_var("")  # j starts (ends) no later than k
        model.add(start[j] <= start[k]).only_enforce_if(starts)
        model.add(start[j] > start[k]).only_enforce_if(starts.Not())
        model.add(end[j] <= end[k]).only_enforce_if(ends)
        model.add(end[j] > end[k]).only_enforce_if(ends.Not())
        for last, ends_so in ((j, ends), (k, ends.Not())):
            for begin, starts_so in ((k, starts), (j, starts.Not())):
                model.add(overlap >= end[last] - start[begin]).only_enforce_if(both, ends_so, starts_so)
        return overlap

    def pair(self, j: int, k: int) -> cp_model.IntVar | None:
        """The overlap of two rings that share a server, or None where it never matters."""
        return self._pairs.get((min(j, k), max(j, k)))

    def crossing_slots(self, j: int) -> Linear:
        """Slots that job j runs across servers."""
        return self._in.duration[j] - self._in.options[j].local_duration * self._in.local[j]

    def _add_slots(self, j: int) -> None:
        model, crosses = self._model, self._in.crosses
        above: Linear = self.crossing_slots(j)
        thresholds = self._thresholds[j]
        for q in thresholds:
            slots = model.new_int_var(0, self._in.high, f"slots{j}_{q}")
            model.add(slots <= above)
            self.slots[j, q] = above = slots
        if not thresholds:
            return
        others = [k for k in self._in.rings if k != j and self.pair(j, k) is not None]
        if thresholds[0] == 2:
            for k in others:
                model.add(self.slots[j, 2] >= self.pair(j, k))
        for s, on in enumerate(self._rings_on):
            if (j, s) not in crosses:
                continue
            terms = []
            for k in others:
                if k in on:
                    part = model.new_int_var(0, self._in.high, "")
                    model.add(part >= self.pair(j, k)).only_enforce_if(crosses[j, s], crosses[k, s])
                    terms.append(part)
            if terms:
                steps = zip(thresholds, [*thresholds[1:], self._most_on[s] + 1], strict=True)
                room = sum((after - q) * self.slots[j, q] for q, after in steps if after > q)
                model.add(sum(terms) <= (thresholds[0] - 2) * self.crossing_slots(j) + room)

    def _add_progress(self, j: int) -> None:
        option = self._in.options[j]
        for position, (_, literal) in enumerate(self._in.wide[j]):
            rates = self._rates(j, position)
            loss = sum(
                (before - after) * self.slots[j, q]
                for q, before, after in zip(self._thresholds[j], rates, rates[1:], strict=False)
                if before > after
            )
            self._model.add(rates[0] * self._in.duration[j] - loss >= option.iterations).only_enforce_if(literal)

    def _rates(self, j: int, position: int) -> list[int]:
        """Rates of a class of placements at p = 1 and at each threshold of the job."""
        modes = [mode for mode in self._in.options[j].modes if mode.spread_class == position]
        return [
            max((mode.rate for mode in modes if mode.level >= p), default=min(mode.rate for mode in modes))
            for p in (1, *self._thresholds[j])
        ]

    def by_label(self, j: int, grades: Sequence[int]) -> list[Linear]:
        """Slots of a ring across servers in each grade of contention."""
        known: list[Linear] = [self.crossing_slots(j)]
        known += [self.slots.get((j, q), 0) for q in grades[1:]]
        return [here - above for here, above in zip(known, [*known[1:], 0], strict=True)]

    def add_needs(self, needs: Iterable[Need], grades: Sequence[int]) -> None:
        """Inequalities that every schedule satisfies, so that linear relaxations know them."""
        for need in needs:
            if self._in.options[need.job].modes:
                values = zip(need.values[1:], self.by_label(need.job, grades), strict=True)
                slots = sum(value * count for value, count in values if value)
                on_one = need.values[0] * self._in.options[need.job].local_duration
                self._model.add(on_one * self._in.local[need.job] + slots >= need.amount)

    def add_cut(self, cut: SlotCut, grades: Sequence[int]) -> None:
        """What all slots together hold; weights are rounded down to keep numbers small."""
        terms = []
        counts = {j: self.by_label(j, grades) for j in self._in.rings}
        for (j, way), weight in cut.weights.items():
            scaled = weight * _CUT_SCALE // cut.capacity
            if scaled:
                option = self._in.options[j]
                terms.append(scaled * (option.local_duration * self._in.local[j] if way == 0 else counts[j][way - 1]))
        self._model.add(sum(terms) <= _CUT_SCALE * self._in.makespan)

    def refine(self, value: Callable[[object], int]) -> int:
        """Constraints that a solution violates whose jobs would not complete as it claims.

        For ring j and threshold q, sets A_i of slots in which j and q - 1 given rings run that cross one server
        with it: slots[j, q] >= sum_i |A_i| - sum_(i<k) |A_i and A_k|. The sets are chosen so that they cover all
        such slots of this solution and only neighbours meet, which makes the inequality tight there. Returns how many
        were added; 0 means that every job completes as claimed.
        """
        added = 0
        crossing = {
            j: [s for s in range(len(self._rings_on)) if (j, s) in self._in.crosses and value(self._in.crosses[j, s])]
            for j in self._in.rings
        }
        span = {j: (value(self._in.start[j]), value(self._in.end[j])) for j in self._in.rings if crossing[j]}
        for j in span:
            for q in self._thresholds[j]:
                cover = _cover(j, q, span, crossing)
                true_slots = _measure([low_high for _, _, low_high in cover])
                if true_slots > value(self.slots[j, q]):
                    added += self._add_cover(j, q, [(s, group) for s, group, _ in cover])
        return added

    def _add_cover(self, j: int, q: int, sets: Sequence[tuple[int, frozenset[int]]]) -> int:
        key = (j, q, *sets)
        if key in self._cuts:
            return 0
        self._cuts.add(key)
        crosses = self._in.crosses
        literals = {crosses[k, s].index: crosses[k, s] for s, group in sets for k in group}
        total: Linear = sum(self._together(group) for _, group in sets)
        for at, (_, group) in enumerate(sets):
            for _, other in sets[at + 1 :]:
                total = total - self._together(group | other)
        self._model.add(self.slots[j, q] >= total).only_enforce_if(*literals.values())
        return 1

    def _together(self, group: frozenset[int]) -> cp_model.IntVar:
        """Slots in which all of a group run, exactly."""
        key = tuple(sorted(group))
        if key not in self._shared:
            model, high = self._model, self._in.high
            last, first = model.new_int_var(0, high, ""), model.new_int_var(0, high, "")
            model.add_min_equality(last, [self._in.end[k] for k in key])
            model.add_max_equality(first, [self._in.start[k] for k in key])
            count = model.new_int_var(0, high, "")
            model.add_max_equality(count, [last - first, 0])
            self._shared[key] = count
        return self._shared[key]


Span = tuple[int, int]


def _cover(
    j: int, q: int, span: dict[int, Span], crossing: dict[int, list[int]]
) -> list[tuple[int, frozenset[int], Span]]:
    """Sets (server, rings with j among them, slots) that cover the slots in which j meets at least q rings."""
    low, high = span[j]
    near = [k for k in span if k != j and span[k][0] < high and span[k][1] > low]
    moments = sorted({low, *(max(low, span[k][0]) for k in near), *(min(high, span[k][1]) for k in near)})
    found: list[tuple[int, frozenset[int], Span]] = []
    covered = low
    for moment in moments:
        if moment < covered or moment >= high:
            continue
        best: tuple[int, int, frozenset[int]] | None = None
        for s in crossing[j]:
            crossers = [k for k in near if s in crossing[k] and span[k][0] <= moment < span[k][1]]
            if len(crossers) >= q - 1:
                crossers.sort(key=lambda k: (-span[k][1], k))
                group = crossers[: q - 1]
                last = min([high, *(span[k][1] for k in group)])
                if best is None or last > best[0]:
                    best = (last, s, frozenset((j, *group)))
        if best is not None:
            last, s, group_of = best
            first = max(span[k][0] for k in group_of)
            found.append((s, group_of, (first, last)))
            covered = last
    return found


def _measure(spans: Sequence[Span]) -> int:
    """Slots in the union of spans."""
    total, reached = 0, 0
    for low, high in sorted(spans):
        total += max(0, high - max(low, reached))
        reached = max(reached, high)
    return total
