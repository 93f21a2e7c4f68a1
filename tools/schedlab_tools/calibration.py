# SPDX-License-Identifier: MIT
"""Derives the simulator's costs from traces of the kernel.

The programs are study 1's test of process creation, and `calibrate`, which performs one operation
at a time between two yields.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from schedlab.base.toolchain.policies import DEFAULT_POLICY, PolicyChoice
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.trace import Kind, Trace
from schedlab.workload.costs import Cost, Profile
from schedlab_tools.cpu_activity import Observed, Stay, observe

REFERENCE = PolicyChoice(DEFAULT_POLICY)
"""The policy for measuring all costs; other policies have their own costs of OF_POLICY."""
POLICY_COSTS = ("scheduler", "crowd", "tick", "wakeup", "fork")
CALLS_PROGRAM = "calibrate"
CREATION_PROGRAM = "timingtests short -w 100"
_CREATION_TICKS = 10
"""Tick of the creation run, in normal ticks: at most one occurs while the children are forked."""
_CUT_TICK_NS = 100_000
"""Tick of another creation run, in nanoseconds, so that many occur during the forks."""
CROWD_SIZE = 100
"""Processes, as in bench/guest/calibrate.c, which also has the numbers of notes and pages."""
_PAGES = 8
_FORKS_IN_A_ROW = 2
"""Minimum. Under some policies a child soon preempts the forking process."""
_BURN_NS = 3_000_000
_CYCLES_OF_BURN = 3_000_000
YIELD, COMPUTE, FORK, TOUCH, REAP, SLEEP, PIPE, WAKE, CROWD, NEW, USED, END = range(1, 13)


class Unmeasurable(ValueError):
    """The trace lacks the events that a cost is computed from."""


# --- from values to a cost


def _cost_of_values(values: Iterable[float], source: str, add: float = 0) -> Cost:
    """Returns median and interquartile range. `add` is added to all values."""
    array = np.array([*values], dtype=float)
    if not len(array):
        raise Unmeasurable(f"nothing to measure in the trace: {source}; repeat the calibration")
    low, middle, high = np.percentile(array, (25, 50, 75))
    return Cost(max(0, round(middle + add)), round(high - low), len(array), source)


# --- each cost


def call_cost(seen: Observed) -> Cost:
    """Returns the cost of a yield that returns to the same process, from one visit to the next."""
    stays = [stay for stay in seen.quiet(YIELD) if stay.again and stay.cause == Kind.YIELD]
    return _cost_of_values(map(seen.work, stays), "a yield, from SCHEDULER_EXIT to SCHEDULER_ENTER")


def scheduler_cost(seen: Observed) -> Cost:
    """Returns the cost of a visit to the scheduler that picks the same process again."""
    visits = [visit for visit in seen.visits if visit.note == YIELD and visit.before == visit.after]
    return _cost_of_values(
        map(seen.work, visits), "SCHEDULER_ENTER to SCHEDULER_EXIT where the same process goes on"
    )


def crowd_cost(seen: Observed, scheduler: Cost, switch: Cost) -> Cost:
    """Returns the cost per 100 waiting processes."""
    visits = [
        visit
        for visit in seen.visits
        if visit.note == CROWD and visit.cause == Kind.YIELD and visit.before != visit.after
    ]
    works = [(seen.work(visit) - scheduler.ns - switch.ns) * 100 / CROWD_SIZE for visit in visits]
    return _cost_of_values(works, f"the same with {CROWD_SIZE} processes that yield, less `switch`")


def switch_cost(seen: Observed, scheduler: Cost) -> Cost:
    """Returns the additional cost of a switch to another process."""
    visits = [
        visit
        for visit in seen.visits
        if visit.note == FORK and visit.cause == Kind.YIELD and visit.before != visit.after
    ]
    return _cost_of_values(
        map(seen.work, visits), "the same where another process is picked", -scheduler.ns
    )


def tick_cost(seen: Observed, call: Cost) -> Cost:
    """Returns the cost of a tick: the additional time of known work per tick."""
    source = "work of 3 ms between two yields: what it takes longer, less visits, by its ticks"
    if not seen.by_cycles:
        return _late_tick_cost(seen)
    works = []
    for stays in _computing_stays(seen):
        ticks = sum(seen.ticks_in(stay.begin_ns, stay.end_ns) for stay in stays)
        extra = sum(map(seen.work, stays)) - _BURN_NS * 1e9 / seen.cycles_per_second - call.ns
        if ticks:
            works.append(extra / ticks)
    return _cost_of_values(works, source)


def _computing_stays(seen: Observed) -> Iterator[list[Stay]]:
    """Yields the stays of the computing process, from one yield to the next."""
    stays: list[Stay] = []
    for stay in seen.stays:
        if stay.note != COMPUTE or not stay.pid:
            continue
        stays.append(stay)
        if stay.cause == Kind.YIELD:
            if sum(part.cycles for part in stays) >= _CYCLES_OF_BURN or not seen.by_cycles:
                yield stays
            stays = []


def _late_tick_cost(seen: Observed) -> Cost:
    """Returns the cost of a tick by the clock: from its scheduled time to the resulting visit."""
    late = [
        stay.end_ns % seen.tick_ns
        for stay in seen.stays
        if stay.note == COMPUTE and stay.pid and stay.cause is None
    ]
    return _cost_of_values(late, "from the time of a tick to SCHEDULER_ENTER")


def wakeup_cost(seen: Observed) -> Cost:
    """Returns the cost of each additional process woken by the same tick of an idle CPU."""
    source = "an idle CPU's tick that wakes 8 processes, less one that wakes 1, by 7"
    idle = [stay for stay in seen.stays if stay.note == WAKE and not stay.pid]
    many = [stay for stay in idle if stay.count(Kind.WAKEUP) == 8]
    if not seen.by_cycles:
        return _cost_of_values(
            [(stay.events[-1][1] - stay.events[0][1]) / 7 for stay in many], source
        )
    one = _cost_of_values([seen.work(s) for s in idle if s.count(Kind.WAKEUP) == 1], source)
    return _cost_of_values([(seen.work(visit) - one.ns) / 7 for visit in many], source)


def sleep_cost(seen: Observed) -> Cost:
    """Returns the cost of a call that sleeps."""
    stays = [stay for stay in seen.quiet(SLEEP) if stay.again and stay.cause == Kind.BLOCK]
    return _cost_of_values(map(seen.work, stays), "a yield, then sleep(): to SCHEDULER_ENTER")


def pipe_cost(seen: Observed, call: Cost) -> Cost:
    """Returns the cost of a call on a pipe, without the cost of an empty call."""
    stays = [stay for stay in seen.quiet(PIPE) if stay.cause == Kind.YIELD and stay.again]
    return _cost_of_values(
        map(seen.work, stays), "a write to a pipe, or a read, between two yields", -call.ns
    )


def reap_cost(seen: Observed, call: Cost) -> Cost:
    """Returns the cost of a wait for a child that has ended, without the cost of an empty call."""
    stays = [stay for stay in seen.quiet(REAP) if stay.cause == Kind.YIELD and stay.again]
    return _cost_of_values(
        map(seen.work, stays),
        "a wait() for a child that has ended, between two yields",
        -2 * call.ns,
    )


def interrupt_cost(seen: Observed) -> Cost:
    """Returns the cost of an interrupt in cycles: everything that an idle CPU does while nothing else happens."""
    quiet = [
        (woken, stay)
        for woken, stay in seen.called
        if not stay.events and not seen.ticks_in(stay.begin_ns, stay.end_ns)
    ]
    if seen.by_cycles:
        source = "an idle CPU from SCHEDULER_EXIT to SCHEDULER_ENTER, which another CPU called"
        return _cost_of_values([seen.work(stay) for _, stay in quiet], source)
    return _cost_of_values(
        [stay.end_ns - woken for woken, stay in quiet], "WAKEUP to SCHEDULER_ENTER on an idle CPU"
    )


def stagger_cost(several: Trace) -> Cost:
    """Returns the delay between the ticks of CPU 0 and CPU 1, by the first process that each wakes."""
    source = "the first process that an interrupt wakes in a tick: on CPU 1, less on CPU 0"
    rows = several.rows(Kind.WAKEUP)
    rows = rows[several.at("first", rows) == 0]
    cpu, time = several.at("cpu", rows), several.at("time_ns", rows)
    ticks_of_cpu, first = np.unique(np.stack((cpu, time // several.header.tick_ns)), True, axis=1)
    late = time[first] % several.header.tick_ns
    base = late[ticks_of_cpu[0] == 0]
    return _cost_of_values(
        late[ticks_of_cpu[0] == 1] - np.median(base) if len(base) else [], source
    )


def copy_cost(calls: Observed) -> Cost:
    """Returns the cost of the first write to a page that parent and child share."""
    touched = [s for s in calls.quiet(TOUCH) if s.count(Kind.FORK) and s.cause == Kind.YIELD]
    plain = [s for s in calls.quiet(FORK) if s.count(Kind.FORK) and s.cause == Kind.YIELD]
    base = _cost_of_values(map(calls.work, plain), "a fork between two yields")
    works = [(calls.work(visit) - base.ns) / _PAGES for visit in touched]
    return _cost_of_values(
        works, f"a fork and {_PAGES} pages written between two yields, less without"
    )


def fork_costs(creation: Observed, calls: Observed) -> dict[str, Cost]:
    """Returns `fork` and `fork_return`, the copy of the page that the parent writes before the next fork."""
    copy = copy_cost(calls)
    source = f"{CREATION_PROGRAM}: FORK to FORK, less the copy of a page after it"
    return {"fork": _cost_of_values(_gaps(creation), source, -copy.ns), "fork_return": copy}


def _gaps(creation: Observed) -> list[float]:
    """Returns the mean times between consecutive FORK records of a process, without ticks."""
    rows = (
        row
        for stay in creation.stays
        for row in _between_ticks([t for kind, t in stay.events if kind == Kind.FORK], creation)
    )
    return [(row[-1] - row[0]) / (len(row) - 1) for row in rows if len(row) >= _FORKS_IN_A_ROW]


def _between_ticks(times: list[int], seen: Observed) -> list[list[int]]:
    """Splits the sorted times into rows without ticks between them."""
    rows: list[list[int]] = []
    for time in times:
        if rows and not seen.ticks_in(rows[-1][-1], time):
            rows[-1].append(time)
        else:
            rows.append([time])
    return rows


def fork_part_cost(cut: Observed, costs: Mapping[str, Cost]) -> Cost:
    """Returns the part of `fork` before the last moment when interrupts are taken.

    It is `fork` minus the part after that moment. `cut`: consecutive forks with ticks between them.
    """
    source = "`fork`, less what of it comes after a tick that came before the call"
    known_ns = costs["fork_return"].ns + costs["tick"].ns
    rests = [
        stay.time_of(Kind.FORK) - stay.begin_ns
        for before, stay in _cut_forks(cut)
        if before.end_ns - before.events[-1][1] > known_ns
    ]
    if not rests:
        return Cost(0, 0, 0, "no tick came before a call")
    return _cost_of_values([costs["fork"].ns - rest for rest in rests], source)


def _cut_forks(cut: Observed) -> Iterator[tuple[Stay, Stay]]:
    """Yields pairs of consecutive stays of a forking process.

    A tick follows the fork of the first stay; the next fork comes when the process has a CPU again.
    """
    last: dict[int, Stay] = {}
    for stay in cut.stays:
        last_stay = last.get(stay.pid)
        last[stay.pid] = stay
        goes_on = last_stay and last_stay.cause == Kind.FORK and not stay.again
        if last_stay and goes_on and stay.events and stay.events[0][0] == Kind.FORK:
            yield last_stay, stay


def new_cost(calls: Observed) -> Cost:
    """Returns the additional cost of a fork into a process slot that was never used."""
    works = []
    for note in (NEW, USED):
        stays = [stay for stay in calls.quiet(note) if stay.count(Kind.FORK) > 1]
        if not stays:
            raise Unmeasurable("a tick came while 40 children were forked; use a longer tick")
        works.append(calls.work(stays[0]) / stays[0].count(Kind.FORK))
    return _cost_of_values(
        [works[0] - works[1]], "40 forks, the first time, less those of the second, by 40"
    )


def child_costs(creation: Observed, calls: Observed, call: Cost) -> dict[str, Cost]:
    """Returns `first_run` and `exit`, for children that set their group and end."""
    lives = [
        stay
        for stay in creation.stays
        if stay.new
        and stay.count(Kind.EXIT)
        and stay.count(Kind.MARK)
        and not creation.ticks_in(stay.begin_ns, stay.end_ns)
    ]
    first_source = f"{CREATION_PROGRAM}: a child, all but its question for the time and its end"
    last_source = "a process that yields and ends: from its last SCHEDULER_EXIT to SCHEDULER_ENTER"
    end = _cost_of_values(map(calls.work, _ends(calls)), last_source)
    begin = _cost_of_values(map(creation.work, lives), first_source, -call.ns - end.ns)
    return {"first_run": begin, "exit": end}


def _ends(calls: Observed) -> list[Stay]:
    """Returns the last stays of processes that only exit in them."""
    ends = [stay for stay in calls.quiet(CROWD) if stay.count(Kind.EXIT)]
    return [stay for stay in ends if len(stay.events) == 1]


# --- a profile


def policy_costs(calls: Observed, creation: Observed, switch: Cost) -> dict[str, Cost]:
    """Returns the costs of OF_POLICY from two runs under a policy."""
    call = call_cost(calls)
    scheduler = scheduler_cost(calls)
    measure: dict[str, Callable[[], Cost]] = {
        "scheduler": lambda: scheduler,
        "crowd": lambda: crowd_cost(calls, scheduler, switch),
        "tick": lambda: tick_cost(calls, call),
        "wakeup": lambda: wakeup_cost(calls),
        "fork": lambda: fork_costs(creation, calls)["fork"],
    }
    return {name: measure[name]() for name in POLICY_COSTS}


def reference_costs(
    calls: Observed, creation: Observed, cut: Observed, several: Trace
) -> dict[str, Cost]:
    """Returns all costs, from the runs under REFERENCE.

    `cut`: CREATION with ticks between its forks; `several`: `calibrate` on several CPUs.
    """
    call = call_cost(calls)
    switch = switch_cost(calls, scheduler_cost(calls))
    of_policy = policy_costs(calls, creation, switch)
    forks = fork_costs(creation, calls)
    return {
        "stagger": stagger_cost(several),
        "scheduler": of_policy["scheduler"],
        "crowd": of_policy["crowd"],
        "switch": switch,
        "tick": of_policy["tick"],
        "wakeup": of_policy["wakeup"],
        "interrupt": interrupt_cost(observe(several, calls.by_cycles)),
        "migration": Cost(0, 0, 0, "there are no caches"),
        "call": call,
        "sleep": sleep_cost(calls),
        "pipe": pipe_cost(calls, call),
        **forks,
        "fork_look": fork_part_cost(cut, {**of_policy, **forks}),
        "fork_new": new_cost(calls),
        **child_costs(creation, calls, call),
        "reap": reap_cost(calls, call),
    }


def profile_of_runs(runs: Sequence[RunSpec], traces: Sequence[Trace], machine: str) -> Profile:
    """Returns the profile from the runs of plan(). Raises Unmeasurable."""
    by_run = dict(zip(((run.label, run.policy, run.cpus > 1) for run in runs), traces, strict=True))
    header = by_run["calls", REFERENCE, False].header
    by_cycles = machine_named(machine).repeatable

    def seen(label: str, policy: PolicyChoice) -> Observed:
        return observe(by_run[label, policy, False], by_cycles)

    calls, creation, cut = (seen(label, REFERENCE) for label in ("calls", "creation", "cut"))
    costs = reference_costs(calls, creation, cut, by_run["calls", REFERENCE, True])
    for policy in dict.fromkeys(run.policy for run in runs if run.policy != REFERENCE):
        costs_of_policy = policy_costs(
            seen("calls", policy), seen("creation", policy), costs["switch"]
        )
        costs.update({f"{name}.{policy}": cost for name, cost in costs_of_policy.items()})
    return Profile(costs, "none", f"Our kernel on {machine}.", machine, header.tick_ns)


# --- the runs


def plan(
    folder: Path, machine: str, policies: Sequence[PolicyChoice], cpus: int, tick_ns: int
) -> Plan:
    """Plans `calibrate` and process creation on one CPU for each policy; for REFERENCE also on several CPUs."""
    base = RunSpec(
        CALLS_PROGRAM,
        REFERENCE,
        (),
        1,
        machine_named(machine),
        1,
        tick_ns,
        60_000_000_000,
        512,
        "calls",
    )
    creation = replace(
        base, workload=CREATION_PROGRAM, label="creation", tick_ns=_CREATION_TICKS * tick_ns
    )
    cut_run = replace(creation, label="cut", tick_ns=_CUT_TICK_NS)
    several = replace(base, cpus=cpus)
    all_policies = dict.fromkeys((REFERENCE, *policies))
    runs = [replace(run, policy=policy) for policy in all_policies for run in (base, creation)]
    return Plan(folder, (several, cut_run, *runs))


# --- two profiles


@dataclass(frozen=True)
class Drift:
    """A cost that changed."""

    name: str
    before: int
    now: int


_NEARNESS = 0.03
_NEARNESS_NS = 20


def drifts(before: Profile, now: Profile) -> list[Drift]:
    """Returns the costs that differ by more than both spreads, 3 % and 20 ns.

    A policy without a specific cost has the general one.
    """
    drift_rows = []
    for name, cost in now.costs.items():
        general = before.costs.get(name.partition(".")[0], Cost(0))
        old_cost = before.costs.get(name, general)
        bound = max(cost.spread_ns, old_cost.spread_ns, _NEARNESS_NS, _NEARNESS * old_cost.ns)
        if abs(cost.ns - old_cost.ns) > bound:
            drift_rows.append(Drift(name, old_cost.ns, cost.ns))
    return drift_rows
