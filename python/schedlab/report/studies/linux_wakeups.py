# SPDX-License-Identifier: MIT
"""What study 5 calls latency-sensitive and did not measure: how long who is woken waits for a CPU."""

from __future__ import annotations

import polars as pl

from schedlab.report.model import Block, Column, Section, Text
from schedlab.report.studies.linux_runs import POLICIES, LinuxRuns
from schedlab.report.studies.texts import how_measured, if_known, measured_table
from schedlab.report.study_tables import Measured
from schedlab.report.wording import listed
from schedlab.studies.linux_experiments import FAIR, WAKEUPS

ON_OUR_KERNEL = "s5-wakeups"
_PLACES = {ON_OUR_KERNEL: "on two CPUs of our kernel", WAKEUPS: "on one CPU of Linux"}
_MS = 1e-6
_COLUMNS = (
    (Column("median", "wake-up latency, ms"), "wakeup_latency_median_ns", 3),
    (Column("99th percentile", "wake-up latency, ms"), "wakeup_latency_p99_ns", 3),
    (Column("longest", "wake-up latency, ms"), "wakeup_latency_max_ns", 3),
)
_WORKER = "worker"


def section(found: LinuxRuns) -> list[Section]:
    """None of it was run: nothing."""
    there = [name for name in _PLACES if found.setups(name)]
    if not there:
        return []
    blocks: list[Block] = [Text(_INTRODUCTION)]
    for name in there:
        blocks += [_table(found, name), Text(_said(found, name))]
    return [Section("Who is woken: what study 5 did not measure", tuple(blocks))]


_INTRODUCTION = """
The study's conclusion is that WRR suits *latency-sensitive scenarios* (section 6.5). Its benchmark \
has none: one thread that never waits. `wakeups` has them: two message processes wake four workers \
each, every worker does a fifth of a tick of work and says so; when the last has, its message process \
sleeps for a tick and wakes them again. Two more processes always compute. The *wake-up latency* is \
the time from when a worker is woken until it runs, by the trace.
"""


def _latencies(found: LinuxRuns, experiment: str, policy: str) -> list[Measured]:
    return [
        found.group(experiment, policy, _WORKER, pl.col(column).first() * _MS)
        for _, column, _ in _COLUMNS
    ]


def _policies(found: LinuxRuns, experiment: str) -> list[str]:
    return [policy for policy in POLICIES if found.setup(experiment, policy)]


def _table(found: LinuxRuns, experiment: str) -> Block:
    rows = {
        policy: (
            *_latencies(found, experiment, policy),
            found.told(experiment, policy, "rounds", pl.col("value").sum()),
            found.group(experiment, policy, "cpu", pl.col("share").first() * 100),
        )
        for policy in _policies(found, experiment)
    }
    return measured_table(
        f"study-5-wakeups-{'linux' if experiment == WAKEUPS else 'kernel'}",
        f"Workers that are woken, beside two processes that compute, {_PLACES[experiment]}",
        "policy",
        (
            *((column, decimals) for column, _, decimals in _COLUMNS),
            (Column("rounds"), 0),
            (Column("CPU time of those that compute, %"), 1),
        ),
        rows,
        how_measured(found.collection, (experiment,)),
    )


def _said(found: LinuxRuns, experiment: str) -> str:
    """From the shortest 99th percentile to the longest; where WRR is."""
    policies = _policies(found, experiment)
    known = {policy: _latencies(found, experiment, policy)[1] for policy in policies}

    def sentence(n: dict[str, float]) -> str:
        ordered = sorted(policies, key=lambda policy: n[policy])
        told = listed([f"{n[policy]:.3g} ms (`{policy}`)" for policy in ordered])
        text = f"99 of 100 workers wait at most {told}."
        if "wrr:linux" not in n or len(ordered) < 2:
            return text
        place = ordered.index("wrr:linux") + 1
        rank = "last" if place == len(ordered) else f"{place} of {len(ordered)}"
        text += f" The study's WRR is {rank}"
        if FAIR in n and n[FAIR] > 0:
            text += f", {n['wrr:linux'] / n[FAIR]:.3g} times the kernel's fair class"
        return (
            text + ": its turns last 50 ms, and who is woken waits for those of all that compute."
            if place == len(ordered)
            else text + "."
        )

    return if_known(known, sentence)
