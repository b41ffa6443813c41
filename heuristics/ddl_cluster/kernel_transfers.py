"""All-reduces in the compiled simulator: admission, transfers, ends."""

from __future__ import annotations

import math

from schedgap.formulations.common.compiled import njit_inline
from schedgap.heuristics.ddl_cluster.state import (
    ASKED,
    BEGINNING,
    CHANGED,
    IN_LATENCY,
    MESSAGES,
    NO_MESSAGE,
    TRANSFERRING,
    WAITING,
    State,
    append,
    comes_before,
    put,
)


@njit_inline
def end_transfer(state: State, job: int, now: int) -> None:
    """The all-reduce of `job` has ended: its servers have room, and others there may move faster."""
    jobs, workers, servers, links = state.jobs, state.workers, state.servers, state.links
    first = jobs[job].first_worker
    for index in range(first, first + jobs[job].spread):
        s = workers[index].server
        for slot in range(servers[s].active):
            if links[s, slot] == job:
                links[s, slot] = links[s, servers[s].active - 1]
                break
        servers[s].active -= 1
        servers[s].transfers -= 1
        slot = servers[s].wait_head
        while slot >= 0:
            other = workers[slot].job
            if jobs[other].asked_at != now:
                jobs[other].asked_at = now
                append(state, ASKED, other)
            slot = workers[slot].wait_after
        if servers[s].changed_on != now:
            servers[s].changed_on = now
            append(state, CHANGED, s)
    jobs[job].service -= jobs[job].width * jobs[job].solo
    jobs[job].message_state = NO_MESSAGE


@njit_inline
def begin_waiting(state: State, job: int, now: int) -> None:
    """The workers of `job` are at the barrier: its all-reduce waits, and is asked at this tick."""
    jobs, workers, servers = state.jobs, state.workers, state.servers
    jobs[job].message_state = WAITING
    jobs[job].asked_at = now
    append(state, ASKED, job)
    for index in range(jobs[job].first_worker, jobs[job].first_worker + jobs[job].spread):
        s = workers[index].server
        workers[index].wait_before = -1
        workers[index].wait_after = servers[s].wait_head
        if servers[s].wait_head >= 0:
            workers[servers[s].wait_head].wait_before = index
        servers[s].wait_head = index


@njit_inline
def _busiest(state: State, job: int, limit: int) -> int:
    """The most all-reduces active on a server of `job`; any number of `limit` or more where it is that many."""
    most = 0
    first = state.jobs[job].first_worker
    for index in range(first, first + state.jobs[job].spread):
        most = max(most, state.servers[state.workers[index].server].active)
        if most >= limit:
            break
    return most


@njit_inline
def admit(state: State, now: int) -> None:
    """Ask, in SRSF order, the waiting all-reduces that are new, and those on a server where one ended."""
    jobs, workers, servers = state.jobs, state.workers, state.servers
    lists, rules = state.lists, state.rules
    kept = 0  # while this admits, what is active only grows: those without room now need no place in the order
    for position in range(1, lists[ASKED, 0] + 1):
        if _busiest(state, lists[ASKED, position], rules.limit) < rules.limit:
            kept += 1
            lists[ASKED, kept] = lists[ASKED, position]
    lists[ASKED, 0] = kept
    while lists[ASKED, 0] > 0:
        best = 1
        for position in range(2, lists[ASKED, 0] + 1):
            if comes_before(state, lists[ASKED, position], lists[ASKED, best]):
                best = position
        job = lists[ASKED, best]
        lists[ASKED, best] = lists[ASKED, lists[ASKED, 0]]
        lists[ASKED, 0] -= 1
        first = jobs[job].first_worker
        most = _busiest(state, job, rules.limit)
        admitted = most < rules.limit
        if rules.adaptive and most == 1:
            smallest = math.inf
            for index in range(first, first + jobs[job].spread):
                s = workers[index].server
                if servers[s].active == 1 and not (rules.first_server and smallest < math.inf):
                    other = state.links[s, 0]
                    remaining = jobs[other].left
                    if jobs[other].message_state == TRANSFERRING:
                        remaining -= (now - jobs[other].since) / rules.slowdown[jobs[other].level]
                    smallest = min(smallest, remaining)
            admitted = rules.pair_factor * jobs[job].transfer < smallest
        if not admitted:
            continue
        for index in range(first, first + jobs[job].spread):
            s = workers[index].server
            state.links[s, servers[s].active] = job
            servers[s].active += 1
            before, after = workers[index].wait_before, workers[index].wait_after
            if before >= 0:
                workers[before].wait_after = after
            else:
                servers[s].wait_head = after
            if after >= 0:
                workers[after].wait_before = before
        jobs[job].message_state = IN_LATENCY
        jobs[job].left = jobs[job].transfer
        jobs[job].admitted = now
        if rules.latency > 0:
            put(state, job, now + rules.latency)
        else:
            append(state, BEGINNING, job)


@njit_inline
def transfer(state: State, now: int) -> None:
    """Begin the transfers of this tick; on servers where their number changed, every k and end anew."""
    jobs, servers, lists = state.jobs, state.servers, state.lists
    for position in range(1, lists[BEGINNING, 0] + 1):
        job = lists[BEGINNING, position]
        jobs[job].message_state = TRANSFERRING
        jobs[job].since = now
        jobs[job].level = 0
        first = jobs[job].first_worker
        for index in range(first, first + jobs[job].spread):
            s = state.workers[index].server
            servers[s].transfers += 1
            if servers[s].changed_on != now:
                servers[s].changed_on = now
                append(state, CHANGED, s)
    for position in range(1, lists[CHANGED, 0] + 1):
        s = lists[CHANGED, position]
        for slot in range(servers[s].active):
            job = state.links[s, slot]
            if jobs[job].message_state != TRANSFERRING or jobs[job].shared_at == now:
                continue  # seen at another of its servers
            jobs[job].shared_at = now
            first = jobs[job].first_worker
            most = 0
            for index in range(first, first + jobs[job].spread):
                most = max(most, servers[state.workers[index].server].transfers)
            level = jobs[job].level
            if most != level:
                if level > 0:
                    jobs[job].left -= (now - jobs[job].since) / state.rules.slowdown[level]
                jobs[job].since = now
                jobs[job].level = most
                ticks = max(1, math.ceil(jobs[job].left * state.rules.slowdown[most] - 0.001))
                put(state, job, now + ticks)


@njit_inline
def log_message(state: State, job: int, now: int) -> None:
    """Record the all-reduce of `job` that ends now."""
    row = state.counts[MESSAGES]
    state.counts[MESSAGES] += 1
    state.messages[row, 0], state.messages[row, 1], state.messages[row, 2] = job, state.jobs[job].admitted, now
