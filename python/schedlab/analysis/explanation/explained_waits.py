# SPDX-License-Identifier: MIT
"""Selects and explains the waits of a run, with kicks and queues under sched_ext."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from schedlab.analysis.explanation.blame import Blame, Blames
from schedlab.analysis.explanation.delays import sum_delays
from schedlab.analysis.explanation.occupancy import IDLE
from schedlab.analysis.explanation.reasons import Choice, PolicyChoices
from schedlab.analysis.explanation.waits import (
    QUEUED_KINDS,
    Wait,
    rows_to_waits,
    select_waits,
    waits_at,
    waits_beyond_percentile,
)
from schedlab.analysis.explanation.words import ProcessNames, WaitShare, sum_equal_parts
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.base.display.numbers import duration
from schedlab.base.toolchain.policies import Policy
from schedlab.metrics.unknown import wakeups_unknown
from schedlab.metrics.window import measured_window
from schedlab.trace import Trace


@dataclass(frozen=True)
class WaitQuery:
    """Which waits to explain: the task, the kinds and the times."""

    task: str | None = None
    """A PID, a name or a group; None: all processes."""
    kinds: Sequence[str] = QUEUED_KINDS
    worst: int = 5
    """Number of longest waits to break down individually."""
    percentile: float | None = None
    """Only waits at or above this percentile of their kind."""
    begin_ns: int | None = None
    """Only waits that begin at or after this time; None: from the begin of the measured window."""
    end_ns: int | None = None
    at_ns: int | None = None
    """Only waits in progress at this time."""
    by: str = "group"
    """What `delays` groups by: group, name or pid."""


@dataclass(frozen=True)
class ExplainedWait:
    """A wait with its parts."""

    wait: Wait
    name: str
    shares: Sequence[WaitShare]
    """The parts of the wait, which add up to it."""
    idle_elsewhere_ns: Mapping[int, int]
    """Other CPUs that idled during the wait, and for how long."""
    choices: Sequence[Choice]
    """The policy's decisions and annotations at the same CPU during the wait."""
    places: Sequence[QueueStay] = ()
    """Under a sched_ext scheduler: the dispatch queues where the process waited."""
    kicks: Sequence[KickCount] = ()
    """Under a sched_ext scheduler: the kicks of all CPUs during the wait."""


@dataclass(frozen=True)
class Explained:
    """The explanation of the selected waits."""

    waits: int
    waited_ns: int
    """Total duration of the selected waits."""
    waited_while_idle_ns: int
    """Part of the waits for a CPU during which another CPU idled. CPU affinity is ignored."""
    delays: pl.DataFrame
    """Delays by cause (schedlab.analysis.explanation.delays), for waits of runnable processes."""
    longest: Sequence[ExplainedWait]
    names: ProcessNames
    wakeups_unknown: bool
    """True if the trace lacks wake-ups: waits after wake-ups are then missing."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation for JSON."""
        return {
            "waits": self.waits,
            "waited_ns": self.waited_ns,
            "beside_idle_ns": self.waited_while_idle_ns,
            "wakeups_untold": self.wakeups_unknown,
            "delays": self.delays.to_dicts(),
            "longest": [
                {
                    "process": explained.name,
                    "pid": self.names.pid(explained.wait.life),
                    **asdict(explained.wait),
                    "duration_ns": explained.wait.duration_ns,
                    "parts": [self._share_dict(share) for share in explained.shares],
                    "idle_elsewhere_ns": {
                        str(cpu): spent for cpu, spent in explained.idle_elsewhere_ns.items()
                    },
                    "choices": [asdict(choice) for choice in explained.choices],
                    "places": [asdict(place) for place in explained.places],
                    "kicks": [asdict(kicks) for kicks in explained.kicks],
                }
                for explained in self.longest
            ],
        }

    def _share_dict(self, share: WaitShare) -> dict[str, Any]:
        """Returns the summed part of a wait for JSON."""
        return {
            **asdict(share),
            "cause": share.cause.value,
            "chain": list(share.chain),
            "pid": None if share.life is None else self.names.pid(share.life),
        }


def explain(
    trace: Trace,
    request: WaitQuery,
    known: Mapping[str, Policy],
    tables: TraceTables | None = None,
) -> Explained:
    """Explains the waits of a trace. `known`: policies, whose annotations are decoded. `tables`:
    existing tables of the trace, to avoid computing them again.

    Raises WrongUsage if `request` names an unknown process.
    """
    tables = tables or TraceTables(trace)
    blames, choices, places = (
        Blames(tables),
        PolicyChoices(tables, known),
        QueueStays(tables),
    )
    window = measured_window(trace)
    begin_ns = window.begin_ns if request.begin_ns is None else request.begin_ns
    end_ns = window.end_ns if request.end_ns is None else request.end_ns
    lives = tables.lives_of(request.task) if request.task else None
    if request.at_ns is not None:
        begin_ns, end_ns = trace.begin_ns, request.at_ns
    waits = select_waits(tables, lives, request.kinds, begin_ns, end_ns)
    if request.at_ns is not None:
        waits = waits_at(waits, request.at_ns)
    if request.percentile is not None:
        waits = waits_beyond_percentile(waits, request.percentile)
    names = ProcessNames(tables)

    def split_wait(wait: Wait) -> ExplainedWait:
        """Breaks down one wait."""
        parts = blames.of(wait.life, wait.begin_ns, wait.end_ns)
        wait_choices = choices.during(wait, parts) if wait.at is not None else []
        idle = _idle_elsewhere(blames, wait, parts) if wait.at is not None else {}
        return ExplainedWait(
            wait,
            names[wait.life],
            sum_equal_parts(parts, names),
            idle,
            wait_choices,
            places.during(wait) if wait.at is not None else (),
            places.kicks_during(wait) if wait.at is not None else (),
        )

    return Explained(
        len(waits),
        int(waits["duration_ns"].sum()),
        _waited_while_idle_ns(blames, waits.filter(pl.col("at").is_not_null())),
        sum_delays(blames, waits["at"].drop_nulls(), request.by),
        [split_wait(wait) for wait in rows_to_waits(waits.head(request.worst))],
        names,
        wakeups_unknown(trace),
    )


def critical_path(trace: Trace, task: str) -> tuple[list[WaitShare], ProcessNames, int]:
    """Returns what a process did and waited for during its lifetime: shares, names and the lifetime in nanoseconds.

    If several processes have the name, it is the first. Raises WrongUsage if there is none.
    """
    tables = TraceTables(trace)
    life = tables.lives_of(task)[0]
    states = tables.states.filter(pl.col("life") == life)
    begin_ns, end_ns = int(states["begin_ns"][0]), int(states["end_ns"][-1])
    names = ProcessNames(tables)
    return (
        sum_equal_parts(Blames(tables).of(life, begin_ns, end_ns), names),
        names,
        end_ns - begin_ns,
    )


def _waited_while_idle_ns(blames: Blames, waits: pl.DataFrame) -> int:
    """Returns the total time of these waits during which any CPU was idle."""
    begin, end = (waits[name].to_numpy() for name in ("begin_ns", "end_ns"))
    idle_before = blames.occupancy.some_idle_before
    return int((idle_before(end) - idle_before(begin)).sum())


def _idle_elsewhere(blames: Blames, wait: Wait, parts: Sequence[Blame]) -> dict[int, int]:
    """Returns for how long other CPUs idled during a wait, in ns by CPU."""
    waited_cpus = {part.cpu for part in parts}
    others = [cpu for cpu in range(blames.tables.trace.header.cpus) if cpu not in waited_cpus]
    begin, end = (np.full(len(others), time) for time in (wait.begin_ns, wait.end_ns))
    cpus = np.array(others, np.int64)
    which, begins, ends, occupant = blames.occupancy.overlapping(cpus, begin, end)
    idle_ns = np.zeros(len(others), np.int64)
    np.add.at(idle_ns, which, np.where(occupant == IDLE, ends - begins, 0))
    return {cpu: length for cpu, length in zip(others, idle_ns.tolist(), strict=True) if length}


@dataclass(frozen=True)
class KickCount:
    """Equal kicks during a wait."""

    cpu: int
    """The kicked CPU."""
    callback: str
    """The callback that kicked."""
    flags: str
    count: int
    first_ns: int
    """Time from the begin of the wait to the first of these kicks."""

    def describe(self) -> str:
        """Returns the kicks as a sentence: "after 1.2 ms, enqueue() kicked CPU 3 (idle), twice"."""
        caller = _caller(self.callback)
        flags = f" ({self.flags.replace(',', ', ')})" if self.flags else ""
        times = f", {self.count:,} times" if self.count > 1 else ""
        return f"after {duration(self.first_ns)}, {caller} kicked CPU {self.cpu}{flags}{times}"


@dataclass(frozen=True)
class QueueStay:
    """A part of a wait, in one dispatch queue."""

    begin_ns: int
    duration_ns: int
    queue: str
    """The queue; "" if the scheduler kept the process outside of all queues."""
    callback: str
    """The callback that put the process there, or `kernel`."""

    def describe(self) -> str:
        """Returns the place as a clause: "12 ms in DSQ 0x8, where enqueue() put it"."""
        caller = _caller(self.callback)
        if not self.queue:
            return f"{duration(self.duration_ns)} in no DSQ: {caller} took it"
        return f"{duration(self.duration_ns)} in {self.queue}, where {caller} put it"


def _caller(callback: str) -> str:
    return {"kernel": "the kernel", "other": "another callback"}.get(callback, f"{callback}()")


class QueueStays:
    """The dispatches and kicks in a trace."""

    def __init__(self, tables: TraceTables) -> None:
        self._dispatches = tables.dispatches
        self._tables = tables

    def kicks_during(self, wait: Wait) -> list[KickCount]:
        """Returns the kicks of all CPUs during a wait, in the order of the first of equal kicks."""
        kicks = self._tables.kicks
        rows = (
            kicks.filter(pl.col("time_ns").is_between(wait.begin_ns, wait.end_ns))
            .group_by("kicked_cpu", "callback", "flags", maintain_order=True)
            .agg(pl.len(), pl.col("time_ns").first() - wait.begin_ns)
        )
        return [KickCount(*row) for row in rows.iter_rows()]

    def during(self, wait: Wait) -> list[QueueStay]:
        """Returns the parts of a wait, in order. Empty under other policies."""
        if not len(self._dispatches):
            return []
        # A preempted process is dispatched before the switch that ends its run.
        last_run_begin_ns = self._tables.stays.filter(
            (pl.col("life") == wait.life) & (pl.col("end_ns") <= wait.begin_ns)
        )["begin_ns"].max()
        rows = self._dispatches.filter(
            (pl.col("life") == wait.life)
            & (pl.col("time_ns") > (-1 if last_run_begin_ns is None else last_run_begin_ns))
            & (pl.col("time_ns") <= wait.end_ns)
        )
        is_same = (pl.col(name) == pl.col(name).shift(1) for name in ("queue", "callback"))
        rows = rows.filter(~pl.all_horizontal(*is_same).fill_null(False))
        times = [max(wait.begin_ns, time) for time in rows["time_ns"]]
        stays = zip(pairwise([*times, wait.end_ns]), rows["queue"], rows["callback"], strict=True)
        return [
            QueueStay(begin, end - begin, queue, callback)
            for (begin, end), queue, callback in stays
            if end > begin
        ]
