"""Stage `contents`: which gangs share a domain of the widest level, so that they use few domains of all levels.

Idea: a content of a domain is a set of gangs, each with some or all of its pods. Its cost, the domains that it uses, is
counted exactly (`domain_tables.py`). A linear program chooses a content for every domain; its duals bound what all
domains cost. Contents of up to four gangs are written down. Larger ones are searched for at the duals: what they cost
is at least the sum over two parts of them. Source: ours, after Dantzig and Wolfe (1960). Guarantee: the bound is
counted in whole numbers, and no content whose reduced cost lets a better decision use it is left out.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import sparse

from schedgap.formulations.common.arrays import Bools, Ints
from schedgap.formulations.common.instance import Solution, once_per_instance
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance, Shape
from schedgap.formulations.gang_placement.models.merged import Classes
from schedgap.formulations.gang_placement.scale import components
from schedgap.solvers.exact.gang_placement.bins import steps_of, whole_devices
from schedgap.solvers.exact.gang_placement.domain_tables import NEVER, Gang, Inside, Table, TooLarge, Tree
from schedgap.solvers.integer_program import IntegerProgram, SearchLimits
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import NO_DEADLINE, Deadline, SolveOptions

WRITTEN = 4
"""Gangs of the contents that are written down."""
MOST_CONTENTS, MOST_SPLITS, MOST_LOOKS = 300_000, 3_000, 3_000_000
"""Contents that are known, ways to split a gang, and larger contents that are looked at, beyond which it gives up."""
SCALE = 2**24
"""Duals are whole numbers of these parts."""
SLIGHT = SCALE // 10**5
"""Reduced cost, in these parts, above which a content that is not known does not matter to the linear program."""
ENOUGH = 100
"""Larger contents of a domain that one round adds."""
DEAR = 1e4
"""Domains that a step of a goal counts as, where contents that are known do not reach it."""
MOST_STEPS = 2**40
"""Steps of a component that is held, beyond which the program's floats are not believed."""
MOST_NODES = 20_000
"""Nodes of the integer program's search."""
Content = tuple[int, ...]
"""Positions of its gangs among all :class:`Gang`."""


class Way(NamedTuple):
    """How gangs of a class may lie.

    Attributes
    ----------
    cls : class of gangs
    lies : with all pods in one domain of the widest level; None where they lie in several
    split : whether it counts as split
    """

    cls: int
    lies: Gang | None
    split: bool


class Part(NamedTuple):
    """No decision uses fewer domains than `least`; one that uses so many, where it was found."""

    least: int
    decision: Solution | None


class Offer(NamedTuple):
    """Gangs that domains of the widest level may hold.

    Attributes
    ----------
    gangs : gangs with all pods, or with those that one domain holds of a gang in several
    most : gangs that may lie so, of each
    splits : whether it is so only for gangs that lie in several domains
    pieces : gangs of each size that may lie in several domains
    """

    gangs: list[Gang]
    most: Ints
    splits: Bools
    pieces: Mapping[int, int]


class Domain:
    """A domain of the widest level with the contents that are known.

    Attributes
    ----------
    fits : positions of the gangs that fit there alone
    cost : domains that each known content uses, `NEVER` where it does not fit
    """

    def __init__(self, tree: Tree, offer: Offer, deadline: Deadline) -> None:
        self.tree, self.offer, self.deadline = tree, offer, deadline
        gangs = offer.gangs
        self.devices_free = sum(tree.devices)
        self.fits = [i for i, gang in enumerate(gangs) if tree.holds(gang)]
        self.cost: dict[Content, int] = {}
        self.bounds: dict[Content, int] = {}
        like = [gang if gang.depth else gang._replace(pods=0) for gang in gangs]
        self.kinds = sorted(set(like))
        self.kind = np.array([self.kinds.index(one) for one in like], dtype=np.int64)
        self.pods = np.array([gang.pods for gang in gangs], dtype=np.int64)
        self.devices = np.array([gang.size for gang in gangs], dtype=np.int64) * self.pods
        self.sizes = sorted({gangs[i].size for i in self.fits})
        slots = Table([Gang(size, 0, sum(free // size for free in tree.devices)) for size in self.sizes])
        self.slots, self.steps = slots.most.tolist(), slots.steps
        parts = tree.parts
        self.merged = slots.sums(parts, 1)
        self.others = [slots.sums(parts[:k] + parts[k + 1 :], 1) for k in range(len(parts))]
        self.after = [slots.sums(parts[k + 1 :], 1) for k in range(len(parts))]
        self.order = np.array(sorted(self.fits, key=lambda i: (self.kind[i], -gangs[i].pods)), dtype=np.int64)
        self.written = self._written()

    def _written(self) -> Ints:
        """Write contents of few gangs down; those of the largest number are returned."""
        offer, order = self.offer, self.order
        sizes = np.array([gang.size for gang in offer.gangs], dtype=np.int64)
        alike = np.where(offer.splits, sizes, -1 - np.arange(len(sizes)))  # of gangs in several domains the size counts
        pieces = np.array([offer.pieces.get(size, 0) for size in sizes.tolist()])
        limit = np.where(offer.splits, pieces, offer.most)
        rows = np.zeros((1, 0), dtype=np.int64)  # places in `order`
        for number in range(1, WRITTEN + 1):
            last = rows[:, -1] if number > 1 else np.zeros(1, dtype=np.int64)
            counts = len(order) - last
            if counts.sum() > 10 * MOST_CONTENTS:
                raise TooLarge
            new = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - last, counts)
            rows = np.column_stack([np.repeat(rows, counts, axis=0), new])
            rows = rows[self.devices[order[rows]].sum(axis=1) <= self.devices_free]
            added = order[rows[:, -1]]
            equal = (alike[order[rows]] == alike[added][:, None]).sum(axis=1)
            same = (rows == rows[:, -1:]).sum(axis=1)
            rows = rows[(equal <= limit[added]) & (same <= offer.most[added])]
            used = self._fewest(order[rows])
            rows, used = rows[used < NEVER], used[used < NEVER]
            if len(rows) + len(self.cost) > MOST_CONTENTS:
                raise TooLarge
            self.cost |= zip(map(tuple, np.sort(order[rows], axis=1).tolist()), used.tolist(), strict=True)
        return np.sort(order[rows], axis=1)

    def _fewest(self, rows: Ints) -> Ints:
        """Domains of contents, whose gangs are in the order of `order`."""
        used = np.full(len(rows), NEVER)
        kinds, which = np.unique(self.kind[rows], axis=0, return_inverse=True)
        for k, of in enumerate(kinds.tolist()):
            if self.deadline.passed:
                raise TooLarge
            same = np.flatnonzero(which.ravel() == k)
            pods = self.pods[rows[same]]
            table = Table([self.kinds[j]._replace(pods=int(pods[:, at].max())) for at, j in enumerate(of)])
            used[same] = table.fewest(self.tree, pods)
        return used

    def ask(self, contents: Sequence[Content], price: Sequence[int], limit: int) -> None:
        """Count what larger contents cost where that is worth it: their reduced cost is at most `limit`."""
        groups: dict[Content, list[Content]] = defaultdict(list)
        for content in contents:
            ordered = sorted(content, key=lambda i: (self.kind[i], -self.pods[i]))
            groups[tuple(self.kind[ordered].tolist())].append(tuple(ordered))
        for kinds, same in groups.items():
            pods = self.pods[np.array(same)]
            gangs = [self.kinds[j]._replace(pods=int(pods[:, at].max())) for at, j in enumerate(kinds)]
            inside = [Table([_within(gang, part) for gang in gangs]).held(part, 1) for part in self.tree.parts]
            by_size = np.array([[int(gang.size == size) for size in self.sizes] for gang in gangs]) @ self.steps
            for content, wanted in zip(same, pods, strict=True):
                if self.deadline.passed:
                    raise TooLarge
                enough = min(NEVER - 1, (limit + sum(price[i] for i in content)) // SCALE)
                table = Table([gang._replace(pods=number) for gang, number in zip(gangs, wanted.tolist(), strict=True)])
                used = self._limited(table, inside, by_size, enough)
                name = tuple(sorted(content))
                if used > enough:
                    self.bounds[name] = enough + 1
                else:
                    self.cost[name] = used

    def _limited(self, table: Table, inside: Sequence[Inside], by_size: Ints, enough: int) -> int:
        """Domains of a content; `NEVER` where it uses more than is `enough`.

        Part after part; what the others use is at least what they do where gangs of equal pods are one.
        """
        enough -= len(table.most)  # domains of the widest level

        def possible(some: Inside, others: Ints) -> Inside:
            fits = np.flatnonzero((some.pods <= table.most).all(axis=1))
            kept = fits[some.used[fits] + others[(table.most - some.pods[fits]) @ by_size] <= enough]
            return Inside(some.pods[kept], some.used[kept])

        together = table.together((), 1)
        for some, others, after in zip(inside, self.others, self.after, strict=True):
            together = possible(table.joined(together, possible(some, others)), after)
        return int(together.used.min(initial=NEVER)) + len(table.most)

    def least(self, content: Content) -> int:
        """Domains that a content uses at least: what it costs, where that is known, else what two parts of it do."""
        if content in self.cost:
            return self.cost[content]
        if len(content) <= WRITTEN:
            return NEVER
        if content not in self.bounds:
            best = self._merged(content)
            places = range(len(content))
            for number in range(1, len(content) // 2 + 1):
                for part in itertools.combinations(places, number):
                    rest = tuple(content[k] for k in places if k not in part)
                    best = max(best, self.least(tuple(content[k] for k in part)) + self.least(rest))
            self.bounds[content] = best
        return self.bounds[content]

    def _merged(self, content: Content) -> int:
        """Domains used at least: as if gangs of equal pods were one, in all domains below the widest."""
        pods = [0] * len(self.sizes)
        for i in content:
            pods[self.sizes.index(self.offer.gangs[i].size)] += self.offer.gangs[i].pods
        if any(number > most for number, most in zip(pods, self.slots, strict=True)):
            return NEVER
        cell = sum(number * step for number, step in zip(pods, self.steps.tolist(), strict=True))
        return min(NEVER, int(self.merged[cell]) + len(content))

    def kept(self, price: Sequence[int], limit: int) -> list[Content]:
        """Known contents that fit and whose reduced cost is at most `limit`."""
        return [
            content
            for content, used in self.cost.items()
            if used < NEVER and SCALE * used - sum(price[i] for i in content) <= limit
        ]

    def cheapest(self, price: Sequence[int]) -> int:
        """The least reduced cost of a content that is known, or of none."""
        return min(0, *(SCALE * used - sum(price[i] for i in content) for content, used in self.cost.items()), 0)

    def unknown(self, price: Sequence[int], limit: int, looks: Iterator[int], enough: int) -> list[Content]:
        """Contents that are not known and whose reduced cost may be at most `limit`, as many as are enough.

        Each is reached from its first gangs: whole ones first, then those that are cheapest alone.
        """
        offer, splits, devices = self.offer, self.offer.splits.astype(int).tolist(), self.devices.tolist()
        alone = {i: SCALE * self.cost[i,] - price[i] for i in self.fits if (i,) in self.cost}
        order = sorted(alone, key=lambda i: (splits[i], alone[i], i))
        place = {i: k for k, i in enumerate(order)}
        pieces = sum(offer.pieces.values())
        # The least of gangs from a place on, by how many of them may be split and the devices that they may take.
        further = [[[0] * (self.devices_free + 1) for _ in range(pieces + 1)]]
        for i in reversed(order):
            table = [list(row) for row in further[-1]]
            for p in range(splits[i], pieces + 1):
                row, before = table[p], table[p - splits[i]]
                for free in range(devices[i], self.devices_free + 1):
                    row[free] = min(row[free], alone[i] + before[free - devices[i]])
            further.append(table)
        further.reverse()
        fresh: list[Content] = []
        stack = [
            (tuple(row), SCALE * self.cost[tuple(row)] - sum(price[i] for i in row)) for row in self.written.tolist()
        ]
        while stack and len(fresh) < enough:
            content, reduced = stack.pop()
            first = max(place[i] for i in content)
            free = self.devices_free - sum(devices[i] for i in content)
            whole = pieces - sum(splits[i] for i in content)
            if reduced + further[first][whole][free] > limit:
                continue
            for k in range(first, len(order)):
                i = order[k]
                room, rest = free - devices[i], whole - splits[i]
                if room < 0 or rest < 0 or reduced + alone[i] + further[k][rest][room] > limit:
                    continue
                more = tuple(sorted((*content, i)))
                if more.count(i) > offer.most[i] or self._split_too_often(more, i):
                    continue
                if next(looks) > MOST_LOOKS or self.deadline.passed:
                    raise TooLarge
                used = self.least(more)
                cost = SCALE * used - sum(price[j] for j in more)
                if used >= NEVER or cost + further[k][rest][room] > limit:
                    continue
                if cost <= limit and more not in self.cost:
                    fresh.append(more)
                stack.append((more, cost))
        return fresh

    def _split_too_often(self, content: Content, i: int) -> bool:
        gangs, splits = self.offer.gangs, self.offer.splits
        alike = sum(bool(splits[j]) and gangs[j].size == gangs[i].size for j in content)
        return bool(splits[i]) and alike > self.offer.pieces[gangs[i].size]


class Contents:
    """Programs over contents of all domains of the widest level."""

    def __init__(self, instance: GangPlacementInstance, held: Sequence[int], deadline: Deadline = NO_DEADLINE) -> None:
        self.instance, self.held = instance, held
        self.levels = len(instance.levels) + 1
        entries = components(instance)[: len(held)]
        self.classes = Classes(instance).gangs
        self.numbers = [len(members) for members in self.classes]
        places = [(entry, digit) for entry, digit in zip(entries, held, strict=True) if entry.kind == "split"]
        self.most_split = sum(entry.most - digit for entry, digit in places)
        weights = [(entry, digit) for entry, digit in zip(entries, held, strict=True) if entry.kind == "weight"]
        self.goals = [digit for _, digit in weights]
        of = [instance.gangs[members[0]] for members in self.classes]
        self.worth = [
            [steps_of(gang.weight, entry) * (entry.priority in (None, gang.priority)) for gang in of]
            for entry, _ in weights
        ]
        self.trees = trees(instance)
        self.ways = [way for c in range(len(of)) for way in self._ways(c)]
        self.splits = [
            (c, parts)
            for c in dict.fromkeys(way.cls for way in self.ways if way.lies is None)
            for parts in self._parts(c)
        ]
        self.deadline = deadline
        offer = self._offer()
        self.known = offer.gangs
        self.position = {gang: i for i, gang in enumerate(self.known)}
        self.domains = [Domain(tree, offer, deadline) for tree in self.trees]

    def _offer(self) -> Offer:
        number_of: Counter[Gang] = Counter()
        for way in self.ways:
            if way.lies is not None:
                number_of[way.lies] += self.numbers[way.cls]
        entire = set(number_of)
        pieces, asked = Counter[int](), Counter[int]()
        for way in self.ways:
            if way.lies is None:
                size = self.instance.gangs[self.classes[way.cls][0]].pods[0].devices
                (asked if way.split else pieces)[size] += self.numbers[way.cls]
        for size, number in asked.items():  # gangs that count as split are few
            pieces[size] += min(number, self.most_split)
        for c, part in {(c, part) for c, parts in self.splits for part in parts}:
            number_of[part] += self.numbers[c]
        gangs = sorted(number_of)
        splits = np.array([gang not in entire for gang in gangs], dtype=bool)
        return Offer(gangs, np.array([number_of[gang] for gang in gangs], dtype=np.int64), splits, pieces)

    def _ways(self, c: int) -> Iterator[Way]:
        gang = self.instance.gangs[self.classes[c][0]]
        size, pods = gang.pods[0].devices, gang.pods[0].count
        required, preferred = self.instance.depth(gang.required), self.instance.depth(gang.preferred)
        depths = [(max(required, preferred, 1), False)]
        if preferred > max(required, 1):
            depths.append((max(required, 1), True))
        for depth, split in depths:
            lies = Gang(size, depth - 1, pods)
            if any(tree.holds(lies) for tree in self.trees) and (self.most_split or not split):
                yield Way(c, lies, split)
        if not required and (self.most_split or not preferred):
            yield Way(c, None, preferred > 0)

    def _parts(self, c: int) -> Iterator[tuple[Gang, ...]]:
        """Pods of a gang of a class in several domains."""
        group = self.instance.gangs[self.classes[c][0]].pods[0]
        largest = max(sum(free // group.devices for free in tree.devices) for tree in self.trees)
        ways = _partitions(group.count, len(self.trees), 1, largest)
        for number, pods in enumerate(ways):
            if number > MOST_SPLITS:
                raise TooLarge
            if len(pods) > 1:
                yield tuple(Gang(group.devices, 0, count) for count in pods)

    def program(self, program: LinearProgram, contents: Sequence[Sequence[Content]], target: int | None) -> None:
        """Columns: ways, splits, what is missing of each goal, then contents of each domain."""
        rows: dict[object, int] = {}
        low: list[float] = []
        high: list[float] = []
        cost: list[float] = []
        entries: list[tuple[int, int, float]] = []

        def row(name: object, least: float = 0.0, highest: float = 0.0) -> int:
            if name not in rows:
                rows[name] = len(low)
                low.append(least)
                high.append(highest)
            return rows[name]

        def column(price: float, values: Sequence[tuple[int, float]]) -> None:
            entries.extend((at, len(cost), value) for at, value in values)
            cost.append(price)

        for i in range(len(self.known)):
            row(i)
        for h, goal in enumerate(self.goals):
            row(("goal", h), float(goal), INFINITY)
        row("split", -INFINITY, float(self.most_split))
        for way in self.ways:
            at = row(("splits", way.cls)) if way.lies is None else self.position[way.lies]
            values = [(at, -1.0), (row(("class", way.cls), -INFINITY, float(self.numbers[way.cls])), 1.0)]
            values += [(row(("goal", h)), float(worth[way.cls])) for h, worth in enumerate(self.worth)]
            column(-float(self.levels), [*values, (row("split"), float(way.split))])
        for c, parts in self.splits:
            column(0.0, [(row(("splits", c)), 1.0), *((self.position[part], -1.0) for part in parts)])
        for h in range(len(self.goals)):
            column(DEAR, [(row(("goal", h)), float(target is None))])
        for b, own_contents in enumerate(contents):
            at = row(("domain", b), -INFINITY, 1.0)
            for content in own_contents:
                column(float(self.domains[b].cost[content]), [(at, 1.0), *((i, 1.0) for i in content)])
        if target is not None:
            at = row("target", -INFINITY, float(target))
            entries += [(at, j, value) for j, value in enumerate(cost) if value]
        where, columns, values_of = zip(*entries, strict=True)
        matrix = sparse.csc_matrix((values_of, (where, columns)), shape=(len(low), len(cost)))
        upper = np.full(len(cost), INFINITY)
        program.set_matrix(matrix, np.array(cost), upper, np.array(low), np.array(high))

    def bound(self, duals: Sequence[int]) -> tuple[int, list[int], list[int]]:
        """(bound in parts of `SCALE`, prices of gangs, the least reduced cost of each domain's known contents).

        It is one for all contents where no unknown one has less.
        """
        many, goals = len(self.known), len(self.goals)
        price = list(duals[:many])
        factor = [max(0, one) for one in duals[many : many + goals]]
        split = max(0, -duals[many + goals])
        cheapest: dict[int, int] = {}
        for c, parts in self.splits:
            together = sum(price[self.position[part]] for part in parts)
            cheapest[c] = min(cheapest.get(c, together), together)
        best = [0] * len(self.numbers)
        for way in self.ways:
            if way.lies is not None or way.cls in cheapest:
                cost = price[self.position[way.lies]] if way.lies is not None else cheapest[way.cls]
                cost += split * way.split - self.levels * SCALE
                cost -= sum(m * worth[way.cls] for m, worth in zip(factor, self.worth, strict=True))
                best[way.cls] = min(best[way.cls], cost)
        total = sum(m * goal for m, goal in zip(factor, self.goals, strict=True)) - split * self.most_split
        total += sum(number * cost for number, cost in zip(self.numbers, best, strict=True))
        least = [domain.cheapest(price) for domain in self.domains]
        return total + sum(least), price, least

    def proven(self, than: int, options: SolveOptions) -> Part | None:
        """The bound, and a decision that has fewer domains than `than`, where one was found."""
        looks = itertools.count()
        program = LinearProgram()
        while True:
            self.program(program, [domain.kept((0,) * len(self.known), SCALE * NEVER) for domain in self.domains], None)
            solved = program.solve(self.deadline)
            if solved is None:
                return None
            bound, price, least = self.bound([round(dual * SCALE) for dual in solved.duals.tolist()])
            if not self._asked(price, [cost - SLIGHT for cost in least], looks, ENOUGH):
                break
        bound -= SLIGHT * len(least)
        target = max(0, -(-bound // SCALE))
        with suppress(TooLarge):
            while target < than:
                limits = [cost - SLIGHT + target * SCALE - bound for cost in least]
                self._asked(price, limits, looks, MOST_LOOKS)
                kept = [domain.kept(price, limit) for domain, limit in zip(self.domains, limits, strict=True)]
                search = IntegerProgram()
                self.program(search, kept, target)
                answer = search.search(SearchLimits(MOST_NODES, options.deadline.part(0.5), seed=options.seed))
                if answer.x is not None:
                    return Part(target, self.decision(np.round(answer.x).astype(np.int64), kept))
                if not answer.complete:
                    break
                target += 1
        return Part(target, None)

    def _asked(self, price: Sequence[int], limits: Sequence[int], looks: Iterator[int], enough: int) -> bool:
        """Count contents that are not known and may have reduced costs within limits; whether there were some."""
        some = False
        for domain, limit in zip(self.domains, limits, strict=True):
            unknown = domain.unknown(price, limit, looks, enough)
            domain.ask(unknown, price, limit)
            some = some or bool(unknown)
        return some

    def decision(self, x: Ints, kept: Sequence[Sequence[Content]]) -> Solution:
        """Nodes of every gang."""
        free = whole_devices(self.instance)
        lying: dict[Gang, list[Counter[int]]] = defaultdict(list)
        columns = iter(x[len(self.ways) + len(self.splits) + len(self.goals) :].tolist())
        for domain, contents in zip(self.domains, kept, strict=True):
            for content in contents:
                if next(columns):
                    gangs = [self.known[i] for i in content]
                    nodes = Table(gangs).layout(domain.tree, 0, np.array([gang.pods for gang in gangs]))
                    for k, gang in enumerate(gangs):
                        lying[gang].append(Counter({n: int(pods[k]) for n, pods in nodes.items()}))
        split: dict[int, list[tuple[Gang, ...]]] = defaultdict(list)
        for (c, parts), times in zip(self.splits, x[len(self.ways) :].tolist(), strict=False):
            split[c] += [parts] * times
        members = [iter(alike) for alike in self.classes]
        placement = {}
        for way, times in zip(self.ways, x.tolist(), strict=False):
            for _ in range(times):
                waiting = self.instance.gangs[next(members[way.cls])]
                parts = split[way.cls].pop() if way.lies is None else (way.lies,)
                pods_on = sum((lying[part].pop() for part in parts), Counter[int]())
                placement[waiting.id] = [
                    {"group": 0, "node": self.instance.nodes[n].id, "devices": [free[n].pop() for _ in range(size)]}
                    for size in [waiting.pods[0].devices]
                    for n in pods_on.elements()
                ]
        return {"placement": placement}


def _within(gang: Gang, tree: Tree) -> Gang:
    """The gang with at most as many pods as a domain holds; with all or none where they lie in one domain."""
    slots = sum(free // gang.size for free in tree.devices)
    return gang._replace(pods=min(gang.pods, slots) if not gang.depth or slots >= gang.pods else 0)


def _partitions(pods: int, parts: int, least: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Ways to write a number as a sum of at largest so many numbers in order."""
    if least <= pods <= largest:
        yield (pods,)
    for first in range(least, min(largest, pods // 2) + 1) if parts > 1 else ():
        for rest in _partitions(pods - first, parts - 1, first, largest):
            yield (first, *rest)


def trees(instance: GangPlacementInstance) -> list[Tree]:
    """Domains of the widest level."""

    def tree(depth: int, nodes: Sequence[int]) -> Tree:
        if depth > len(instance.levels):
            free = sum(part == WHOLE for part in instance.nodes[nodes[0]].gpus)
            return Tree(free=free, node=nodes[0])
        return Tree(tuple(tree(depth + 1, inside) for inside in instance.by_domain(depth + 1, nodes).values()))

    return [tree(1, inside) for inside in instance.by_domain(1, range(len(instance.nodes))).values()]


@once_per_instance
def known_to_contents(instance: GangPlacementInstance) -> bool:
    """Whether gangs are of one group of pods that take whole devices, and nothing else decides where these lie."""
    gangs = instance.gangs
    if not instance.levels or instance.with_moves or not gangs:
        return False
    if any(len(gang.pods) > 1 or gang.fewest < gang.size or gang.per_node or gang.queue for gang in gangs):
        return False
    shapes = {gang.pods[0].shape for gang in gangs}
    if any(gang.subgroups for gang in gangs) or not all(shape.gpu and shape.gpu % WHOLE == 0 for shape in shapes):
        return False
    takes = all(shape.selector.takes(node) for shape in shapes for node in instance.nodes)
    return takes and all(_enough(instance, shape) for shape in shapes)


def _enough(instance: GangPlacementInstance, shape: Shape) -> bool:
    """Whether other resources last for pods of the shape on all free devices of every node, so for any mix, too."""
    return all(
        Fraction(amount, shape.devices) * sum(part == WHOLE for part in node.gpus) <= node.free.get(name, 0)
        for node in instance.nodes
        for name, amount in shape.request.items()
    )


def solve_contents(
    instance: GangPlacementInstance, held: Sequence[int], than: int, options: SolveOptions
) -> Part | None:
    """The component `domains` after those held: a bound, and a decision with fewer than `than` where one was found.

    None where the stage does not know the instance, or contents are too many.
    """
    entries = components(instance)
    kinds = {entry.kind for entry in entries[: len(held)]}
    if len(held) >= len(entries) or entries[len(held)].kind != "domains" or not kinds <= {"weight", "split"}:
        return None
    if not known_to_contents(instance) or max(held, default=0) > MOST_STEPS:
        return None
    try:
        return Contents(instance, held, options.deadline).proven(than, options)
    except TooLarge:
        return None
