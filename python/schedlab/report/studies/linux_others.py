# SPDX-License-Identifier: MIT
"""Beyond study 5's benchmark on Linux: hackbench, stress-ng, and the other studies' suites."""

from __future__ import annotations

import polars as pl

from schedlab.report.model import Block, Column, Section, Text
from schedlab.report.studies.linux_runs import LinuxRuns, apart
from schedlab.report.studies.texts import how_measured, measured_table
from schedlab.report.study_tables import Measured
from schedlab.report.wording import listed
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.linux_experiments import FAIR, HACKBENCH, STRESSORS, SUITES

_MS = 1e-6
_STRESS = {f"s5-linux-stress-{name}": name for name in STRESSORS}
_SUITES = {f"s5-linux-{name}": name for name in SUITES}


def sections(found: LinuxRuns) -> list[Section]:
    """Those of which anything was run."""
    made = []
    if any(found.setups(name) for name in (HACKBENCH, *_STRESS)):
        made.append(Section("Messages, switches and pipes on Linux", tuple(_benchmarks(found))))
    if any(found.setups(name) for name in _SUITES):
        made.append(Section("The other studies' suites on Linux", tuple(_suites(found))))
    return made


def _benchmarks(found: LinuxRuns) -> list[Block]:
    experiments = [name for name in (HACKBENCH, *_STRESS) if found.setups(name)]
    rows = {
        policy: [_result(found, name, policy) for name in experiments]
        for policy in found.policies(experiments)
    }
    columns = [
        (Column("seconds", "hackbench"), 3)
        if name == HACKBENCH
        else (Column(f"{_STRESS[name]}, operations a second", "stress-ng"), 0)
        for name in experiments
    ]
    table = measured_table(
        "study-5-linux-benchmarks",
        "hackbench and stress-ng on Linux",
        "policy",
        columns,
        rows,
        f"{how_measured(found.collection, experiments)} hackbench: less is better; the others: more.",
    )
    return [
        Text(_BENCHMARKS),
        table,
        *(Text(text) for name in experiments if (text := _against_fair(found, name))),
    ]


_BENCHMARKS = """
Here a scheduler is asked all the time: processes wait for each other's messages, and each message \
wakes somebody. What our policies pay beside the fair class is the way through sched_ext: a BPF \
program for each decision, and a policy's own lists under a lock. *hackbench* is the time until 80 \
processes have passed their messages; *stress-ng* counts what four processes get done: computing \
(`cpu`), switching by a pipe (`switch`), filling a pipe (`pipe`).
"""


def _result(found: LinuxRuns, experiment: str, policy: str) -> Measured:
    figure = "elapsed_s" if experiment == HACKBENCH else "bogo_ops_per_second"
    return found.printed(experiment, policy, figure)


def _against_fair(found: LinuxRuns, experiment: str) -> str:
    """What each policy has more or less than the fair class, where that is more than chance."""
    fair = _result(found, experiment, FAIR)
    if not fair.mean:
        return ""
    told = []
    for policy in found.policies((experiment,)):
        change = apart(fair, _result(found, experiment, policy))
        if policy != FAIR and change and change.chance is not None and change.chance < 0.05:
            told.append(f"{100 * change.change / fair.mean:+.1f} % (`{policy}`)")
    name = "hackbench" if experiment == HACKBENCH else f"stress-ng, {_STRESS[experiment]}"
    if not told:
        return f"**{name}**: no policy differs from the fair class by more than chance."
    return f"**{name}**, beside the fair class, where it is more than chance: {listed(told)}."


def _suites(found: LinuxRuns) -> list[Block]:
    experiments = [name for name in _SUITES if found.setups(name)]
    rows = {
        policy: [
            *(
                found.summary(name, policy, pl.col("turnaround_mean_ns").first() * _MS)
                for name in experiments
            ),
        ]
        for policy in found.policies(experiments)
    }
    table = measured_table(
        "study-5-linux-suites",
        "The other studies' suites on Linux: mean turnaround, ms",
        "policy",
        [(Column(_SUITES[name]), 1) for name in experiments],
        rows,
        how_measured(found.collection, experiments),
    )
    what = "\n".join(f"- `{_SUITES[name]}`: {EXPERIMENTS[name].title}." for name in experiments)
    return [Text(f"{_SUITES_TEXT}\n\n{what}"), table]


_SUITES_TEXT = """
The programs of studies 1, 3 and 4, compiled for Linux from the same source. A tick of Linux is 4 ms, \
and the programs fill it with as much work as a tick of 1 ms of our kernel: so times are about four \
times those on the other studies' pages. Fork, exit and wake-up cost what they cost Linux."""
