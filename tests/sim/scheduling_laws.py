# SPDX-License-Identifier: MIT
"""The invariants that docs/policies.md promises for each policy, checked against traces.

An invariant takes a regime (scheduling_history) and returns a line for each violation. The
invariants about time are exact, because only computing takes time on the machines. Some need more
history than a policy's rule (levels, overlong time slices); they restate the rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import log, sqrt
from typing import NamedTuple

from schedlab.metrics.shares import NICE_FIRST, NICE_WEIGHTS
from schedlab.trace import AttributeKind, Kind, Trace
from scheduling_history import INIT, AttributeSet, History, Picked, Queued, Regime, Stopped, Why
from trace_levels import Values, longest_inversion, pieces_of

Law = Callable[[Regime], Iterator[str]]

DRAWN = ("hybrid", "lottery")
"""Policies that draw at each pick: an interrupted process starts no second turn."""

CHANCE = 1e-9
"""The probability that a fair lottery violates its invariant."""


# ---- turns: the events on a CPU between two picks


def ticks_in(regime: Regime, begin: int, end: int) -> range:
    """Returns the times of the ticks after `begin`, including one at `end`."""
    first = begin // regime.tick + 1
    return range(first * regime.tick, end + 1, regime.tick)


# ---- no process is skipped


def first_come_first_served(regime: Regime) -> Iterator[str]:
    """Each pick takes the process queued first, or continues the running process's time slice."""
    for pick in regime.picks():
        if pick.chosen is None or pick.chosen.why in (Why.WANTED, Why.AGAIN):
            continue
        for other in pick.waiting:
            if other.number < pick.chosen.number:
                yield (
                    f"at {ns(pick.time)} CPU {pick.cpu} picks pid {pick.pid}, which came at "
                    f"{ns(pick.chosen.time)}, though pid {other.pid} has waited there since "
                    f"{ns(other.time)}"
                )


def turns_go_round(regime: Regime) -> Iterator[str]:
    """No process has a second turn on a CPU while another waits for it throughout. With the tunable
    `front`, the limit is two turns, because woken processes enter at the front of the list,
    ahead of the current round.
    """
    allowed = 2 if regime.tunables.get("front") else 1
    had: dict[tuple[int, int, int], int] = {}
    for pick in regime.picks():
        if pick.chosen is None or pick.chosen.why in (Why.WANTED, Why.AGAIN):
            continue
        for other in pick.waiting:
            if other.pid == pick.pid or other.why is Why.ADOPTED:
                continue
            turn = (pick.cpu, other.number, pick.pid)
            had[turn] = had.get(turn, 0) + 1
            if had[turn] > allowed:
                yield (
                    f"at {ns(pick.time)} pid {pick.pid} has turn {had[turn]} on CPU {pick.cpu} "
                    f"while pid {other.pid} has waited since {ns(other.time)}"
                )


# ---- slices


def slices_are_exact(regime: Regime) -> Iterator[str]:
    """A time slice ends exactly at its last tick, unless its process leaves voluntarily or is
    preempted.
    """
    slice_ticks = regime.tunables["slice"]
    picked_at = {(pick.cpu, pick.time) for pick in regime.picks()}
    used: dict[int, int] = {}
    for cpu, pid, begin, end, why in sorted(regime.runs(), key=lambda run: (run.begin, run.end)):
        ticks = used.pop(pid, 0)
        for tick in ticks_in(regime, begin, end):
            ticks += 1
            if ticks == slice_ticks and (cpu, tick) not in picked_at and tick < regime.end:
                yield (
                    f"the turn of pid {pid} on CPU {cpu} is over at {ns(tick)}, after "
                    f"{slice_ticks} ticks, and CPU {cpu} does not pick"
                )
        if why is Why.SLICE and ticks != slice_ticks:
            yield (
                f"the turn of pid {pid} on CPU {cpu} ends at {ns(end)}, after {ticks} of "
                f"{slice_ticks} ticks"
            )
        if why in (Why.WANTED, Why.AGAIN) and ticks < slice_ticks and regime.name not in DRAWN:
            used[pid] = ticks


def turns_last_a_granularity(regime: Regime) -> Iterator[str]:
    """No tick ends a turn before its minimum granularity."""
    times = (
        1 + sum(regime.cpus >= threshold for threshold in (2, 4, 8))
        if regime.tunables["scaling"]
        else 1
    )
    least = regime.tunables["min_granularity_us"] * 1000 * times
    for cpu, pid, begin, end, why in regime.runs():
        if why is Why.SLICE and end - begin < least:
            yield f"the turn of pid {pid} on CPU {cpu} ends at {ns(end)}, after {ns(end - begin)}"


@dataclass
class Account:
    """A process under weighted round-robin: the nanoseconds left of its time slice."""

    left: int = 0
    in_turn: bool = False


def weighted_slices_are_exact(regime: Regime) -> Iterator[str]:
    """A time slice is as long as its weight demands, to half a tick; the next slice makes up the
    difference.
    """
    quantum = max(regime.tunables["quantum_us"] * 1000, regime.tick)
    accounts: dict[int, Account] = {}
    current: dict[int, tuple[int, int]] = {}
    over: dict[int, int | None] = {}
    for event in regime.events:
        if isinstance(event, Picked) and event.chosen:
            account = accounts.setdefault(event.pid, Account())
            if not account.in_turn:
                account.left += quantum * event.chosen.attributes.weight
                account.in_turn = True
            current[event.cpu] = (event.pid, event.time)
        elif isinstance(event, Stopped) and event.cpu in current:
            pid, begin = current.pop(event.cpu)
            account = accounts[pid]
            due = turn_end(regime, begin, account.left)
            account.left -= event.time - begin
            over[pid] = due
            if due < event.time:
                yield (
                    f"the turn of pid {pid} on CPU {event.cpu} is over at {ns(due)}, and it runs "
                    f"until {ns(event.time)}"
                )
            if event.why is Why.SLICE and due != event.time:
                yield (
                    f"the turn of pid {pid} on CPU {event.cpu} ends at {ns(event.time)}, and "
                    f"{account.left} ns are left of it"
                )
        elif isinstance(event, Queued) and event.pid in accounts:
            close_turn(accounts[event.pid], event, over.get(event.pid))


def turn_end(regime: Regime, begin: int, left: int) -> int:
    """Returns the first tick after `begin` with at most half a tick remaining."""
    needed = max(left - regime.tick // 2, 0)
    ticks = -(-(begin + needed) // regime.tick)
    return max(ticks, begin // regime.tick + 1) * regime.tick


def close_turn(account: Account, queued: Queued, due: int | None) -> None:
    """Closes the slice of a process that gives up its CPU: unused time is lost, debt stays."""
    ended = queued.why is Why.SLICE or (queued.why is Why.AGAIN and due == queued.time)
    if queued.why in (Why.WANTED, Why.AGAIN) and not ended:
        return
    if account.in_turn and account.left > 0 and not ended:
        account.left = 0
    account.in_turn = False


# ---- levels


def level_of(regime: Regime, waiter: Queued) -> int:
    """Returns a process's level; level 0 is served first."""
    width = regime.tunables.get("level_width", 1)
    return waiter.attributes.priority // width


def highest_first(regime: Regime) -> Iterator[str]:
    """No CPU picks a process while its queue holds one of a higher level."""
    for pick in regime.picks():
        for other in pick.waiting if pick.chosen else ():
            assert pick.chosen
            if level_of(regime, other) < level_of(regime, pick.chosen):
                yield (
                    f"at {ns(pick.time)} CPU {pick.cpu} picks pid {pick.pid} of level "
                    f"{level_of(regime, pick.chosen)}, though pid {other.pid} of level "
                    f"{level_of(regime, other)} waits there"
                )


def waits_are_bounded(regime: Regime, bound: int, but: int = 0) -> Iterator[str]:
    """No process waits in one queue for longer than the bound; PIDs up to `but` are exempt."""
    queued_by_pid: dict[int, Queued] = {}
    for event in regime.events:
        if isinstance(event, Queued):
            queued_by_pid[event.pid] = event
        elif isinstance(event, Picked) and event.pid in queued_by_pid:
            yield from waited(queued_by_pid.pop(event.pid), event.time, bound, but)
    for waiter in queued_by_pid.values():
        yield from waited(waiter, regime.end, bound, but)


def waited(waiter: Queued, until: int, bound: int, but: int) -> Iterator[str]:
    if until - waiter.time > bound and waiter.pid > but:
        yield (
            f"pid {waiter.pid} waits from {ns(waiter.time)} to {ns(until)}: at most {ns(bound)} "
            "are promised"
        )


def aging_bounds_waits(regime: Regime) -> Iterator[str]:
    """A waiting process rises one level per interval, so it reaches the top after all intervals.
    There, each other process has at most one turn before it.
    """
    raises = -(-10 // regime.tunables["aging_step"]) + 1
    ticks = raises * regime.tunables["aging_interval"] + regime.most * regime.tunables["slice"]
    yield from waits_are_bounded(regime, (ticks + 1) * regime.tick, regime.tunables["exempt_pids"])


def boosts_bound_waits(regime: Regime) -> Iterator[str]:
    """After a boost all processes are at the top, and each one ahead of a process has one turn.
    Processes on credit may take half of the time between two boosts.
    """
    top = regime.tunables[f"slice_{regime.tunables['levels'] - 1}"]
    ticks = 2 * regime.tunables["boost"] + 2 * regime.most * top
    yield from waits_are_bounded(regime, (ticks + 1) * regime.tick)


# ---- multi-level feedback


@dataclass
class Level:
    """A process's level, and how much of its allotment there it has used (ns)."""

    level: int
    epoch: int
    used: int = 0
    charged_at: int = 0


@dataclass
class Levels:
    """The rules of the multi-level feedback queue without credit, as in docs/policies.md."""

    regime: Regime
    of: dict[int, Level] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tunables = self.regime.tunables
        self.top = tunables["levels"] - 1
        self.boost = tunables["boost"] * self.regime.tick
        self.by_ticks = bool(tunables.get("charge_ticks") or tunables.get("table_scan"))
        self.inherit = bool(tunables.get("inherit", not tunables.get("table_scan")))

    def epoch(self, time: int) -> int:
        return time // self.boost if self.boost else 0

    def lift(self, level: Level, time: int) -> bool:
        """Applies a boost. Returns False if there was none since the level was set."""
        if level.epoch == self.epoch(time):
            return False
        level.level, level.epoch, level.used = self.top, self.epoch(time), 0
        return True

    def pay(self, level: Level, used: int) -> None:
        """Charges the allotment, which is exhausted when less than half a tick remains."""
        level.used += used
        limit = self.regime.tunables[f"allotment_{level.level}"] * self.regime.tick
        if limit and level.level and level.used + self.regime.tick // 2 >= limit:
            level.level -= 1
            level.used = 0

    def charge(self, pid: int, until: int, stops: bool) -> None:
        """Accounts for a run: charges at each tick, and the remainder when it stops."""
        level = self.of[pid]
        for tick in ticks_in(self.regime, level.charged_at, until):
            self.pay(level, self.regime.tick if self.by_ticks else tick - level.charged_at)
            self.lift(level, tick)
            level.charged_at = tick
        if stops:
            self.pay(level, 0 if self.by_ticks else until - level.charged_at)
            self.lift(level, until)
            level.charged_at = until

    def queue(self, event: Queued) -> None:
        if event.why is Why.NEW and event.parent and self.inherit:
            parent = self.of[event.parent]
            level = Level(parent.level, parent.epoch, parent.used, parent.charged_at)
            self.of[event.pid] = level
            if not self.lift(level, event.time) and not self.by_ticks:
                self.pay(level, event.time - level.charged_at)
            return
        if event.why in (Why.NEW, Why.ADOPTED):
            self.of[event.pid] = Level(self.top, self.epoch(event.time))
        level = self.of[event.pid]
        self.lift(level, event.time)
        release = self.regime.tunables.get("release")
        if event.why in (Why.WOKEN, Why.YIELDED) and release:
            level.used = 0
            if release == 2 and event.why is Why.WOKEN and level.level < self.top:
                level.level += 1

    def pick(self, pick: Picked) -> None:
        for waiter in pick.waiting:
            if waiter.pid in self.of:
                self.lift(self.of[waiter.pid], pick.time)
        if pick.pid:
            self.of[pick.pid].charged_at = pick.time


def levels_follow_use(regime: Regime) -> Iterator[str]:
    """A process is demoted when its allotment is exhausted, a boost raises every process, and
    no other event changes a level. The highest level is served first.
    """
    levels = Levels(regime)
    running: set[int] = set()
    for event in regime.events:
        if isinstance(event, Stopped) and event.pid in running:
            running.remove(event.pid)
            levels.charge(event.pid, event.time, stops=True)
        elif isinstance(event, Queued):
            if event.parent in running:
                levels.charge(event.parent, event.time, stops=False)
            levels.queue(event)
        elif isinstance(event, Picked) and event.pid:
            levels.pick(event)
            yield from level_breaches(levels, event)
            running.add(event.pid)


def level_breaches(levels: Levels, pick: Picked) -> Iterator[str]:
    if pick.chosen is None or pick.pid == INIT:
        return
    level = levels.of[pick.pid].level
    if pick.remark != level:
        yield (
            f"at {ns(pick.time)} CPU {pick.cpu} picks pid {pick.pid} from level {pick.remark}, "
            f"though it is at level {level}"
        )
    for other in pick.waiting:
        if levels.of[other.pid].level > level:
            yield (
                f"at {ns(pick.time)} CPU {pick.cpu} picks pid {pick.pid} of level {level}, though "
                f"pid {other.pid} of level {levels.of[other.pid].level} waits there"
            )


# ---- shares


@dataclass
class Stint:
    """A period during which a process competed in one queue with unchanged attributes."""

    cpu: int
    ran: int = 0


def shares_are_exact(regime: Regime) -> Iterator[str]:
    """Of two competing processes on a CPU, the one with less CPU time per ticket runs first."""
    yield from less_goes_first(regime, Meetings(lambda waiter: waiter.attributes.tickets, 0.5))


def least_virtual_time_goes_first(regime: Regime) -> Iterator[str]:
    """Of two competing processes on a CPU, the one with less CPU time per weight runs first. Only a
    process that yields may let the other run first.
    """
    ticks = (regime.end - regime.begin) / regime.tick
    yield from less_goes_first(regime, Meetings(lambda waiter: waiter.attributes.weight, ticks))


@dataclass
class Meetings:
    """Bounds on the lead of one competing process over the other, from their picks."""

    shares_of: Callable[[Queued], int]
    rounding_ns: float
    """Rounding error of each share. A pass is a whole number of 2**-20 ns, and rounded down
    at each tick; a virtual time is a whole number of ns.
    """
    known: dict[tuple[int, int], tuple[Stint, Stint, float, float]] = field(default_factory=dict)

    def meet(self, stints: Mapping[int, Stint], pick: Picked, other: Queued) -> Iterator[str]:
        """Records that the chosen process runs first, and its lead."""
        assert pick.chosen
        chosen = pick.chosen
        one, two = sorted((chosen, other), key=lambda waiter: waiter.pid)
        mine = stints[one.pid], stints[two.pid]
        ahead = mine[0].ran / self.shares_of(one) - mine[1].ran / self.shares_of(two)
        known = self.known.get((one.pid, two.pid))
        most, least = float("-inf"), float("inf")
        if known and known[0] is mine[0] and known[1] is mine[1]:
            most, least = known[2:]
        if chosen is one:
            most = max(most, ahead)
        else:
            least = min(least, ahead)
        self.known[one.pid, two.pid] = (*mine, most, least)
        if most > least + self.rounding_ns:
            yield (
                f"at {ns(pick.time)} CPU {pick.cpu} picks pid {chosen.pid} before pid {other.pid}: "
                f"of the two, {one.pid} was picked when it was {most:.0f} ns for each share further "
                f"than {two.pid}, which was picked when that was {least:.0f}"
            )


def less_goes_first(regime: Regime, meetings: Meetings) -> Iterator[str]:
    """The service of each process before they met is unknown, but constant over that period. So no
    pick of the one may show a larger lead over the other than any pick of the other.
    """
    stints: dict[int, Stint] = {}
    running: dict[int, int] = {}
    for event in regime.events:
        if isinstance(event, Stopped) and event.pid in running:
            begin = running.pop(event.pid)
            stints[event.pid].ran += event.time - begin
            if event.why in (Why.BLOCKED, Why.ENDED):
                stints.pop(event.pid)
        elif isinstance(event, Queued):
            joins = event.why in (Why.NEW, Why.WOKEN, Why.MOVED, Why.ADOPTED)
            if joins or event.pid not in stints:
                stints[event.pid] = Stint(event.cpu if event.cpu is not None else -1)
        elif isinstance(event, AttributeSet):
            stints[event.pid] = Stint(stints[event.pid].cpu if event.pid in stints else -1)
        elif isinstance(event, Picked) and event.chosen:
            running[event.pid] = event.time
            for other in event.waiting:
                lets_go = regime.name == "cfs" and other.why is Why.YIELDED
                if other.pid != event.pid and not lets_go:
                    yield from meetings.meet(stints, event, other)


def base_slice(regime: Regime) -> int:
    """Returns the nanoseconds of an `eevdf` request, or of an `hsfq` time slice, for a process
    without a slice attribute.
    """
    if regime.name == "hsfq":
        return regime.tunables["slice_us"] * 1000
    times = (
        1 + sum(regime.cpus >= threshold for threshold in (2, 4, 8))
        if regime.tunables["scaling"]
        else 1
    )
    return regime.tunables["base_slice_us"] * 1000 * times


def slice_asked_for(regime: Regime, requested_ns: int) -> int:
    return min(max(requested_ns, 100_000), 100_000_000) if requested_ns else base_slice(regime)


def requests_end_in_time(regime: Regime) -> Iterator[str]:
    """If another process waited when a turn began, the turn lasts no longer than the longest slice
    that its process has requested, on one CPU.
    """
    if regime.cpus > 1:
        return
    longest: dict[int, int] = {}
    crowded: dict[int, bool] = {}
    for event in regime.events:
        if isinstance(event, Queued):
            requested_ns = slice_asked_for(regime, event.attributes.slice)
            longest[event.pid] = max(longest.get(event.pid, 0), requested_ns)
        elif isinstance(event, AttributeSet):
            # it may have made a request with this slice in between
            longest[event.pid] = 100_000_000
        elif isinstance(event, Picked) and event.pid:
            crowded[event.time] = any(other.pid != event.pid for other in event.waiting)
    for cpu, pid, begin, end, _ in regime.runs():
        if crowded.get(begin) and end - begin > longest.get(pid, 100_000_000) + 1:
            yield f"the turn of pid {pid} on CPU {cpu} from {ns(begin)} lasts {ns(end - begin)}"


@dataclass
class NearMeetings(Meetings):
    """The same for two processes if neither gets far ahead."""

    bound_ns: int = 0
    """For a weight of 1."""

    def meet(self, stints: Mapping[int, Stint], pick: Picked, other: Queued) -> Iterator[str]:
        assert pick.chosen
        one, two = sorted((pick.chosen, other), key=lambda waiter: waiter.pid)
        mine = stints[one.pid], stints[two.pid]
        weights = self.shares_of(one), self.shares_of(two)
        ahead = mine[0].ran / weights[0] - mine[1].ran / weights[1]
        known = self.known.get((one.pid, two.pid))
        least, most = ahead, ahead
        if known and known[0] is mine[0] and known[1] is mine[1]:
            least, most = min(least, known[2]), max(most, known[3])
        self.known[one.pid, two.pid] = (*mine, least, most)
        if most - least > self.bound_ns * (1 / weights[0] + 1 / weights[1]):
            yield (
                f"at {ns(pick.time)} on CPU {pick.cpu} pid {one.pid} is {ahead:.0f} ns for each unit "
                f"of weight ahead of pid {two.pid}; it has been from {least:.0f} to {most:.0f}"
            )


def nobody_gets_far_ahead(regime: Regime) -> Iterator[str]:
    """Of two competing processes, each receives its share to within some slices: lags are
    bounded.
    """
    wishes = [event.attributes.slice for event in regime.events if isinstance(event, Queued)]
    longest = max(map(partial(slice_asked_for, regime), {0, *wishes}))
    bound = 4 * (longest + regime.tick)

    def weight(waiter: Queued) -> int:
        return int(NICE_WEIGHTS[waiter.attributes.nice - NICE_FIRST])

    yield from less_goes_first(regime, NearMeetings(weight, 0, bound_ns=bound))


def draws_are_fair(regime: Regime) -> Iterator[str]:
    """Each draw is won in proportion to tickets.

    Wins minus win probabilities, summed over draws, are a martingale. Freedman's inequality (1975)
    bounds its distance from 0, whichever processes competed, except with probability CHANCE.
    """
    excess: dict[int, float] = {}
    variance: dict[int, float] = {}
    most = MOST_TICKETS[regime.tunables.get("generator", 0)]
    for pick in regime.picks():
        if pick.chosen is None or not pick.certain:
            continue
        rivals = rivals_of(regime, pick)
        total = sum(tickets_of(regime, waiter) for waiter in rivals)
        if total > most:
            continue
        for waiter in rivals:
            chance = tickets_of(regime, waiter) / total
            won = waiter.pid == pick.pid
            excess[waiter.pid] = excess.get(waiter.pid, 0) + won - chance
            variance[waiter.pid] = variance.get(waiter.pid, 0) + chance * (1 - chance)
    for pid, value in excess.items():
        bound = freedman(variance[pid])
        if abs(value) > bound:
            yield (
                f"pid {pid} wins {value:+.1f} draws more than its tickets say; chance alone makes "
                f"that less than {bound:.1f}"
            )


MOST_TICKETS = (2**62, 2**24, 0, 0, 2**62)
"""The largest number of tickets in a draw that each generator handles. The generators are
splitmix64, a 31-bit xorshift, a shift register, a linear congruential one, and a Mersenne Twister.
In the shift register and in the low bits of the congruential one, one draw determines the next.
"""


def freedman(variance: float) -> float:
    """Returns the sum d whose probability is CHANCE: 2 exp(-d² / (2 (variance + d / 3))) = CHANCE.

    The bound is Freedman's inequality (1975).
    """
    doubt = log(2 / CHANCE)
    return doubt / 3 + sqrt(doubt * doubt / 9 + 2 * doubt * variance)


def rivals_of(regime: Regime, pick: Picked) -> list[Queued]:
    """Returns the processes in the draw: under `hybrid`, those on one level."""
    assert pick.chosen
    if regime.name != "hybrid":
        return list(pick.waiting)
    level = level_of(regime, pick.chosen)
    return [waiter for waiter in pick.waiting if level_of(regime, waiter) == level]


def tickets_of(regime: Regime, waiter: Queued) -> int:
    if regime.tunables.get("fixed_tickets"):
        return regime.tunables["fixed_tickets"]
    by_weight = regime.tunables.get("weight_tickets")
    return waiter.attributes.weight if by_weight else waiter.attributes.tickets


# ---- the invariants of each policy


def of_rr(tunables: Mapping[str, int]) -> Iterator[Law]:
    yield from (turns_go_round, slices_are_exact)
    if not tunables["table_scan"]:
        yield first_come_first_served


def of_wrr(tunables: Mapping[str, int]) -> Iterator[Law]:
    if "carry" not in tunables:
        return  # two arrays: a woken task continues its time slice before others
    yield turns_go_round
    if tunables["carry"] and not tunables["front"]:
        yield weighted_slices_are_exact


def of_priority(tunables: Mapping[str, int]) -> Iterator[Law]:
    if any(tunables.get(name) for name in ("fast_lane", "behaviour", "pid_limit")):
        return
    yield aging_bounds_waits if tunables["aging_interval"] else highest_first


def of_hybrid(_: Mapping[str, int]) -> Iterator[Law]:
    yield from (highest_first, slices_are_exact, draws_are_fair)


def of_mlfq(tunables: Mapping[str, int]) -> Iterator[Law]:
    if not tunables.get("sleep_per_credit"):
        yield levels_follow_use
    if tunables["boost"] and tunables[f"slice_{tunables['levels'] - 1}"]:
        yield boosts_bound_waits


def of_stride(_: Mapping[str, int]) -> Iterator[Law]:
    yield from (slices_are_exact, shares_are_exact)


def of_cfs(tunables: Mapping[str, int]) -> Iterator[Law]:
    yield turns_last_a_granularity
    if not tunables["nice"]:
        yield least_virtual_time_goes_first


def of_eevdf(tunables: Mapping[str, int]) -> Iterator[Law]:
    yield nobody_gets_far_ahead
    if tunables["exact"]:
        yield requests_end_in_time


def of_hsfq(_: Mapping[str, int]) -> Iterator[Law]:
    yield nobody_gets_far_ahead


def looks_find_idle_cores(regime: Regime) -> Iterator[str]:
    """No CPU idles alongside a waiting process for longer than the looks that give a core to each
    waiting process. The first such look is the second one after the wait begins.
    """
    idle, waiting = idle_and_waiting(regime)
    look = regime.tunables["look_us"] * 1000
    for cpu, begin, end in idle:
        overlapping_waits = [span for span in waiting if span.begin < end and span.end > begin]
        for pid, since, until in overlapping_waits:
            both = min(end, until) - max(begin, since)
            if both > (len(overlapping_waits) + 1) * look:
                yield f"CPU {cpu} idles from {ns(begin)} for {ns(both)} beside pid {pid}, which waits since {ns(since)}"


def of_caladan(tunables: Mapping[str, int]) -> Iterator[Law]:
    if not tunables["static_percent"]:
        yield looks_find_idle_cores


def of_lottery(tunables: Mapping[str, int]) -> Iterator[Law]:
    yield slices_are_exact
    others = ("adaptation", "recent_penalty", "wait_limit", "newcomer_limit", "currencies")
    if tunables["compensation"] == 1 and not any(tunables.get(name) for name in others):
        yield draws_are_fair


LAWS: dict[str, Callable[[Mapping[str, int]], Iterator[Law]]] = {
    "rr": of_rr,
    "wrr": of_wrr,
    "priority": of_priority,
    "hybrid": of_hybrid,
    "mlfq": of_mlfq,
    "stride": of_stride,
    "cfs": of_cfs,
    "eevdf": of_eevdf,
    "hsfq": of_hsfq,
    "caladan": of_caladan,
    "lottery": of_lottery,
}
"""The invariants that each policy promises under its current tunables. Other policies promise
only the common ones.
"""


STAY = {"priority:thesis", "priority:passes", "lottery:thesis"}
"""Presets that never migrate processes, so that a CPU may idle while others wait."""
HOLDS = {"edf", "caladan"}
"""Policies that may let a process wait for its next period, or for a look, while its CPU is
idle.
"""


def laws_of(regime: Regime) -> list[Law]:
    """Returns the invariants that the policy promises."""
    promised = LAWS.get(regime.name)
    return list(promised(regime.tunables)) if promised else []


def breaches(history: History, trace: Trace) -> Iterator[str]:
    """Returns the violations in all regimes; only computing may take time on the machine."""
    for regime in history.regimes:
        for law in laws_of(regime):
            for breach in law(regime):
                yield f"{regime.policy}: {law.__name__}: {breach}"
        may_idle = regime.policy in STAY or regime.name in HOLDS
        if not may_idle and regime.tunables.get("balancing", 1) == 1:
            for breach in idle_in_vain(regime):
                yield f"{regime.policy}: idle_in_vain: {breach}"
    yield from work_is_done(history)
    if [regime.policy for regime in history.regimes] == ["hybrid"]:
        yield from levels_are_strict(trace)


class Span(NamedTuple):
    """A CPU idles, or a process waits; `who`: CPU or PID."""

    who: int
    begin: int
    end: int


def idle_in_vain(regime: Regime) -> Iterator[str]:
    """No CPU stays idle across its tick if more processes wait than the other idle CPUs take
    at that tick. Nor does it if a process waits across the tick.
    """
    idle, waiting = idle_and_waiting(regime)
    wait_before: Counter[int] = Counter()
    wait_on: dict[int, int] = {}
    for pid, begin, end in waiting:
        for tick in ticks_in(regime, begin, end):
            wait_before[tick] += 1
            if tick < end:
                wait_on[tick] = pid
    ends = Counter(span.end for span in idle if span.end < regime.end)
    for cpu, begin, end in idle:
        for tick in range((begin // regime.tick + 1) * regime.tick, end, regime.tick):
            if wait_before[tick] > ends[tick] or tick in wait_on:
                yield (
                    f"CPU {cpu} idles from {ns(begin)} to {ns(end)}, and at its tick at {ns(tick)} "
                    f"{wait_before[tick]} processes wait, of which other CPUs take {ends[tick]}"
                )
                break


def idle_and_waiting(regime: Regime) -> tuple[list[Span], list[Span]]:
    """Returns the spans of idle CPUs and the spans of waiting processes."""
    spans: tuple[list[Span], list[Span]] = ([], [])
    since: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for event in regime.events:
        if isinstance(event, Queued):
            since[1].setdefault(event.pid, event.time)
        elif isinstance(event, Picked):
            if event.chosen is None:
                since[0].setdefault(event.cpu, event.time)
                continue
            if event.cpu in since[0]:
                spans[0].append(Span(event.cpu, since[0].pop(event.cpu), event.time))
            if event.pid in since[1]:
                spans[1].append(Span(event.pid, since[1].pop(event.pid), event.time))
    for span_list, start_times in zip(spans, since, strict=True):
        span_list += [Span(who, begin, regime.end) for who, begin in start_times.items()]
    return spans


def work_is_done(history: History) -> Iterator[str]:
    """No process is forked twice or ends twice; a running process is alive and has one CPU."""
    alive: set[int] = set()
    ended: set[int] = set()
    on: dict[int, int] = {}
    for record in history.records:
        at = ns(record.time_ns)
        if record.kind == Kind.FORK:
            if record.first in alive | ended:
                yield f"at {at} pid {record.first} is forked a second time"
            alive.add(record.first)
        elif record.kind == Kind.EXIT:
            if record.process not in alive:
                yield f"at {at} pid {record.process} ends, which does not live"
            alive.discard(record.process)
            ended.add(record.process)
        elif record.kind == Kind.SWITCH:
            on = {cpu: pid for cpu, pid in on.items() if cpu != record.cpu}
            if record.process and record.process in on.values():
                yield f"at {at} pid {record.process} runs on two CPUs"
            if record.process and record.process not in alive:
                yield f"at {at} pid {record.process} runs, which does not live"
            on[record.cpu] = record.process


def levels_are_strict(trace: Trace) -> Iterator[str]:
    """On no CPU does a lower level run for more than a tick while a higher one waits."""
    values = Values(trace, AttributeKind.PRIORITY)
    worst = longest_inversion(
        pieces_of(trace, values, "runnable"), pieces_of(trace, values, "running")
    )
    if worst.length_ns > trace.header.tick_ns:
        yield (
            f"from {ns(worst.begin_ns)} pid {worst.pid} waits for {ns(worst.length_ns)} beside a "
            "CPU that runs lower levels"
        )


def ns(time: int) -> str:
    """Formats nanoseconds for people: 2.5 ms."""
    return f"{time / 1e6:.6f}".rstrip("0").rstrip(".") + " ms"
