"""The variables and rows of the tightened time-indexed model, and the few ways in which rows are added to it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pulp

from schedgap.formulations.common.layout import IMPOSSIBLE, NEVER, Layout, Role, RowFamily, Terms, VariableFamily

VARIABLES = {
    "local": VariableFamily("job, server, slot", "1 where it starts there and then, alone on the server"),
    "spread": VariableFamily("job, slot", "1 where it starts then on several servers"),
    "run": VariableFamily("job, mode, slot", "1 where it runs so: at most so many servers and rings, at such a rate"),
    "kind": VariableFamily("job, class", "1 for the class of its number of servers"),
    "share": VariableFamily("job, server", "its GPUs on the server, if on several"),
    "held": VariableFamily("job, server, slot", "the same in the slots in which it runs, else 0"),
    "ring": VariableFamily("job, server, slot, level", "1 where it crosses the server and allows so many rings there"),
    "few": VariableFamily("server, slot, level", "1 where no more rings than the level are allowed"),
    "used": VariableFamily("slot", "1 where some job is not complete before the slot"),
    "impossible": IMPOSSIBLE,
}


ROWS = {
    "once": RowFamily("(3)", "every job starts once"),
    "gpus": RowFamily("(1)", "the GPUs of a job on several servers are those it needs"),
    "gang": RowFamily("(1)", "all of them while it runs, else none"),
    "kept": RowFamily("(3)", "held[j,s,t] <= share[j,s]"),
    "capacity": RowFamily("(2)", "GPUs held on a server <= those it has, 0 after the makespan"),
    "contiguous": RowFamily("(3)", "it runs without a break from its start slot"),
    "crossed": RowFamily("(6)", "a ring where GPUs are held, and only there"),
    "level": RowFamily("(6)", "the rings are at the level of the mode"),
    "links": RowFamily("(6)", "no server is crossed by more rings than any ring there allows"),
    "class": RowFamily("(8)", "the modes are those of the class of its number of servers"),
    "progress": RowFamily("(9)", "iterations made >= F_j; also divided by each rate and rounded up"),
    "makespan": RowFamily("objective", "no slot counts as used only after a job is complete"),
    "shortest": RowFamily(
        "",
        "a job on several servers runs for its shortest duration at least",
        Role.VALID,
        "no rate is above that of the job alone on as few servers as hold it",
    ),
    "gangs": RowFamily(
        "",
        "how many gangs of at least some size run at once",
        Role.VALID,
        "those that run together hold no more than all GPUs: a knapsack of whole gangs",
    ),
    "ring_cut": RowFamily(
        "",
        "how many rings a ring with a free link excludes",
        Role.VALID,
        "GPUs of a server that such a ring crosses are closed to all but few others, counted over servers",
    ),
    "order": RowFamily(
        "",
        "an order among identical jobs and among identical servers",
        Role.SYMMETRY,
        "equal jobs change places whole, equal servers with all that is on them",
    ),
    "impossible": NEVER,
}


@dataclass
class Variables:
    """The variables, by job j, server s, slot t, mode m, class c and level l; see ``build_ilp``."""

    local: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    spread: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    run: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    kind: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    share: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    held: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    ring: dict[tuple[int, int, int, int], pulp.LpVariable] = field(default_factory=dict)
    few: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    used: dict[int, pulp.LpVariable] = field(default_factory=dict)


@dataclass
class Frame:
    """The model as it grows."""

    layout: Layout  # the PuLP problem with its parts by name
    variables: Variables
    # jobs, servers: ids
    jobs: list[str]
    servers: list[str]
    sizes: list[int]  # (S,) GPUs of the servers
    slots: int  # H
    # GPUs by server and slot; `active`: 1 while job j is active in slot t
    load: defaultdict[tuple[int, int], Terms] = field(default_factory=lambda: defaultdict(list))
    active: defaultdict[tuple[int, int], Terms] = field(default_factory=lambda: defaultdict(list))

    def variable(self, family: str, *places: int, high: int = 1, integer: bool = True) -> pulp.LpVariable:
        """A new variable from 0 to `high`, named by the ids of the job and the server at these positions."""
        key: list[str | int] = list(places)
        for n, what in enumerate(VARIABLES[family].index.split(", ")):
            if what in ("job", "server"):
                key[n] = (self.jobs if what == "job" else self.servers)[places[n]]
        return self.layout.variable(family, *key, high=high, integer=integer)

    def at_most(self, law: str, terms: Terms, limit: int) -> None:
        """sum of terms <= limit."""
        self.layout.numbered(law, terms, "<=", limit)

    def at_least(self, law: str, terms: Terms, limit: int) -> None:
        """sum of terms >= limit."""
        self.layout.numbered(law, terms, ">=", limit)

    def equal(self, law: str, terms: Terms, value: int) -> None:
        """sum of terms = value."""
        self.layout.numbered(law, terms, "==", value)
