# SPDX-License-Identifier: MIT
"""The metrics over the window, by the definitions of docs/metrics.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.metrics import ideal_shares, jain_index
from schedlab.monitor.frames import Metrics
from schedlab.monitor.model.processes import NEVER, RUNNING, Process, Slots
from schedlab.monitor.model.sliding import Recent
from schedlab.monitor.model.spells import Sums
from schedlab.trace.model import Integers

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Shares:
    """Shares of the processes that lived in the window; arrays with an element for each slot."""

    workload: npt.NDArray[np.bool_]
    """The processes that metrics are about: not the monitor's own, nor those outside the workload."""
    share: npt.NDArray[np.float64]
    """Parts of the workload's running time; processes outside the workload have one, too, though
    they are no part of it."""
    ideal: npt.NDArray[np.float64]
    """-1: not defined."""
    waiting_mean_ns: float | None


def add_what_goes_on(
    sums: Sums, living: list[Process], now: int, begin: int, ends: list[int]
) -> None:
    """Adds runs and waits that are not over. `ends`: when CPUs ended; runs go no further."""
    if not living:
        return
    slot = np.array([process.slot for process in living])
    state = np.array([process.state for process in living])
    since = np.array([process.since for process in living])
    cpu = np.array([process.cpu for process in living])
    runs, waits = state == RUNNING, state == 0
    until = np.minimum(np.array(ends)[cpu[runs]], now)
    ran = np.maximum(until - np.maximum(since[runs], begin), 0)
    sums.run[slot[runs]] += ran
    np.add.at(sums.busy, cpu[runs], ran)
    sums.unseen[slot[runs]] = now - until
    sums.wait[slot[waits]] += np.maximum(now - np.maximum(since[waits], begin), 0)


def shares_of(
    sums: Sums,
    slots: Slots,
    weights: Integers | None,
    own: set[int],
    cpus: int,
    begin: int,
    now: int,
) -> Shares:
    """What each got of the CPUs, and what it should get. `weights`: of each slot; None: all alike."""
    lived = slots.used & (slots.exit_at >= begin)
    workload = lived & ~slots.outside
    if own:
        workload &= ~np.isin(slots.pid, list(own))
    who = np.flatnonzero(workload)
    share, ideal = np.zeros(slots.capacity), np.full(slots.capacity, -1.0)
    total = int(sums.run[who].sum())
    if total:
        share = sums.run / total
    elapsed = max(now - begin, 1)
    if len(who):
        weight = np.ones(len(who)) if weights is None else np.maximum(weights[who], 1)
        allocation = ideal_shares(weight, _demands(sums, slots, who, begin, now) / elapsed, cpus)
        if allocation.sum() > 0:
            ideal[who] = allocation / allocation.sum()
    waiting = float(sums.wait[who].mean()) if len(who) else None
    return Shares(workload, share, ideal, waiting)


def _demands(
    sums: Sums, slots: Slots, who: Integers, begin: int, now: int
) -> npt.NDArray[np.float64]:
    """What each process asked for, in nanoseconds (docs/metrics.md: Demand)."""
    run, wait = sums.run[who], sums.wait[who]
    lived = np.minimum(slots.gone_at[who], now) - np.maximum(slots.born_at[who], begin)
    ran_or_blocked = lived - sums.unseen[who] - wait
    known = np.maximum(ran_or_blocked, run).astype(np.float64)
    part = np.divide(run, known, out=np.ones_like(known), where=run > 0)
    demand: npt.NDArray[np.float64] = run + np.where(slots.exit_at[who] == NEVER, wait, 0) * part
    return demand


@dataclass
class Happened:
    """What happened in the window, with the time and the slot of each."""

    turnarounds: Recent
    responses: Recent
    latencies: Recent
    wakeups: Recent
    migrations: Recent
    switches: Recent
    visits: Recent
    idle_while_queued: Recent

    def expire(self, begin: int) -> None:
        """The window begins here."""
        for recent in vars(self).values():
            recent.expire(begin)


def metrics_of(
    happened: Happened,
    shares: Shares,
    sums: Sums,
    cpus: int,
    cycles_per_second: int,
    tells_visits: bool,
    begin: int,
    now: int,
) -> Metrics:
    """All of them."""
    elapsed = now - begin
    seconds = elapsed / _SECOND_NS
    workload = shares.workload
    turnarounds = _of_workload(happened.turnarounds, workload)
    known = turnarounds[turnarounds >= 0]
    latencies = _of_workload(happened.latencies, workload)
    median, p99 = np.quantile(latencies, (0.5, 0.99)) if len(latencies) else (None, None)
    relative = workload & (shares.ideal > 0)
    wakeups, migrations = (
        int(workload[recent.rows()[:, 1]].sum())
        for recent in (happened.wakeups, happened.migrations)
    )
    overhead = None
    if elapsed and tells_visits:
        cycles = int(happened.visits.rows()[:, 1].sum())
        overhead = cycles / (cpus * elapsed * cycles_per_second / _SECOND_NS)
    idle = happened.idle_while_queued.rows()
    return {
        "window_ns": elapsed,
        "turnaround_ns": _mean(known),
        "response_ns": _mean(_of_workload(happened.responses, workload)),
        "waiting_ns": shares.waiting_mean_ns,
        "wakeup_median_ns": _number(median),
        "wakeup_p99_ns": _number(p99),
        "wakeup_maximum_ns": _number(latencies.max() if len(latencies) else None),
        "wakeups": wakeups,
        "finished": len(turnarounds),
        "throughput_per_s": len(turnarounds) / seconds if elapsed else 0.0,
        "fairness": jain_index(shares.share[relative] / shares.ideal[relative]),
        "fairness_turnaround": jain_index(known),
        "overhead": overhead,
        "utilisation": float(sums.busy.sum() / (cpus * elapsed)) if elapsed else 0.0,
        "switches_per_s": happened.switches.count / seconds if elapsed else 0.0,
        "migrations_per_s": migrations / seconds if elapsed else 0.0,
        "idle_while_queued_ns": int((idle[:, 0] - np.maximum(idle[:, 1], begin)).sum()),
    }


def _of_workload(recent: Recent, workload: npt.NDArray[np.bool_]) -> Integers:
    """The values (second column) of rows whose slot (third) is of the workload."""
    rows = recent.rows()
    values: Integers = rows[workload[rows[:, 2]], 1]
    return values


def _mean(values: Integers) -> float | None:
    return float(values.mean()) if len(values) else None


def _number(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]
