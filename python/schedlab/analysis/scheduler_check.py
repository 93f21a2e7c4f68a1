# SPDX-License-Identifier: MIT
"""Finds mistakes of sched_ext schedulers: runs hostile workloads in the simulator, and judges the runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from schedlab import trace
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.machines import SIMULATOR, machine_named
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import SCHEDULER_FAILED
from schedlab.machines.published import load_run_scheduler
from schedlab.machines.spec import RunSpec
from schedlab.paths import ROOT
from schedlab.runs.plan import Plan, all_combinations
from schedlab.runs.plan_execution import Finished
from schedlab.runs.request import Request

HOSTILE_WORKLOADS = {
    path.stem: path for path in sorted((ROOT / "workloads/files/hostile").glob("*.json"))
}
"""The hostile workload files by name."""
EXPECTED_RATIOS = {"weights": 3.81, "group-weights": 3.0}
"""On one CPU, the CPU time of the group `heavy` divided by that of `light`, by workload."""
QUOTA_LIMITS: Mapping[str, Mapping[str, float]] = {"quotas": {"low": 0.2, "narrow": 0.2}}
"""The number of CPUs that the quotas leave to groups, by workload."""
HOTPLUG = "hotplug"
"""The workload whose CPUs go offline: Linux ends schedulers that have no callback for this."""
_RATIO_FRACTION = 0.25
"""A weight counts as ignored if the ratio is nearer to 1 than this part of the expected difference."""
_LIMIT_FACTOR = 1.5
"""A quota counts as ignored beyond this multiple; schedulers enforce quotas at ticks."""
_KINDS_BY_ANNOTATION = {
    "time slice": "setting",
    "divides by 0": "division",
    "invalid address": "load",
}
"""Kinds of findings by the words of the simulator's annotation."""


@dataclass(frozen=True)
class Finding:
    """A mistake, and the first run that shows it."""

    kind: str
    """stall, error, setting, division, load, weights, group weights or quotas."""
    text: str
    run: RunSpec
    runs: int = 1
    """Number of runs of the same workload that show such a mistake."""

    def to_dict(self) -> dict[str, object]:
        """Returns the finding for JSON."""
        return {
            "kind": self.kind,
            "text": self.text,
            "workload": self.run.label,
            "cpus": self.run.cpus,
            "seed": self.run.seed,
            "runs": self.runs,
        }


def plan_check(
    choice: PolicyChoice,
    settings: Sequence[tuple[str, int]],
    cpus: Sequence[int],
    seeds: int,
    bound_ns: int,
    workloads: Sequence[str],
    folder: Path,
) -> Plan:
    """Returns the runs of a check. A task that waits longer than `bound_ns` ends a run.

    `workloads`: names of hostile workloads; empty: all.

    Raises WrongUsage if a run is impossible.
    """
    tunables = {"ops.timeout_ms": bound_ns // 1_000_000, **dict(settings)}
    runs: list[RunSpec] = []
    for name in workloads or HOSTILE_WORKLOADS:
        request = Request(
            workload=str(HOSTILE_WORKLOADS[name]),
            policies=(choice,),
            cpus=tuple(cpus),
            machine=machine_named(SIMULATOR),
        ).filled()
        base = replace(request.base(), label=name, settings=tuple(tunables.items()))
        counts = (1,) if name in EXPECTED_RATIOS else tuple(n for n in cpus if _has_cpus(base, n))
        if name == HOTPLUG and HOTPLUG not in load_run_scheduler(base).attributes:
            continue
        runs += all_combinations(folder, base, (choice,), counts, seeds).runs
    return Plan(folder, tuple(runs))


def _has_cpus(run: RunSpec, cpus: int) -> bool:
    return not (run.file and run.file.cpus_missing(cpus))


def judge_runs(finished: Sequence[Finished]) -> list[Finding]:
    """Returns the mistakes that runs show, one for each kind and workload."""
    findings: dict[tuple[str, str], Finding] = {}
    for finished_run in finished:
        for finding in _find_run_mistakes(finished_run):
            key = (finding.kind, finding.run.label)
            first = findings.setdefault(key, replace(finding, runs=0))
            findings[key] = replace(first, runs=first.runs + 1)
    return list(findings.values())


def unread_attributes(run: RunSpec) -> list[str]:
    """Returns the attributes that a run's scheduler does not read, so that it must ignore them."""
    read_attributes = load_run_scheduler(run).attributes
    return [name for name in ("weights", "group weights", "quotas") if name not in read_attributes]


def _find_run_mistakes(finished_run: Finished) -> list[Finding]:
    """Returns the mistakes that a run shows: by its end, its annotations and its shares."""
    run = finished_run.run
    findings = []
    if not finished_run.outcome.succeeded:
        text = finished_run.outcome.message.removeprefix(SCHEDULER_FAILED)
        findings.append(Finding("stall" if "watchdog: " in text else "error", text, run))
    file = finished_run.folder / TRACE_FILE
    if not file.is_file():
        return findings
    tables = TraceTables(trace.read(file))
    for text in tables.said["text"]:
        kind = next((kind for words, kind in _KINDS_BY_ANNOTATION.items() if words in text), "")
        if kind:
            findings.append(Finding(kind, text, run))
    return findings + (_find_wrong_shares(run, tables) if finished_run.outcome.succeeded else [])


def _find_wrong_shares(run: RunSpec, tables: TraceTables) -> list[Finding]:
    """Returns the weights and quotas that a scheduler reads and nevertheless ignores."""
    read_attributes = load_run_scheduler(run).attributes
    attribute = run.label.replace("-", " ")
    if attribute not in read_attributes:
        return []
    table = tables.processes.group_by("group").agg(pl.col("running_ns").sum())
    cpu_time_by_group = dict(table.iter_rows())
    if run.label in EXPECTED_RATIOS:
        expected, ratio = (
            EXPECTED_RATIOS[run.label],
            cpu_time_by_group["heavy"] / max(1, cpu_time_by_group["light"]),
        )
        if ratio < 1 + (expected - 1) * _RATIO_FRACTION:
            text = f"tasks with {expected:.3g} times the weight get {ratio:.3g} times the CPU time"
            return [Finding(attribute, text, run)]
    duration = tables.trace.end_ns - tables.trace.begin_ns
    return [
        Finding(
            attribute,
            f"the group {name} uses {cpu_time_by_group[name] / duration:.3g} CPUs; its quotas allow {limit:.3g}",
            run,
        )
        for name, limit in QUOTA_LIMITS.get(run.label, {}).items()
        if cpu_time_by_group[name] > limit * _LIMIT_FACTOR * duration
    ]
