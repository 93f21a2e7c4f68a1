# SPDX-License-Identifier: MIT
"""Study 5's tables 5 and 6 on Linux: its own benchmark, on the kind of kernel that it changed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import polars as pl

from schedlab.comparison.statistics import Difference
from schedlab.report.model import Block, Cell, Column, Section, Table, Text
from schedlab.report.studies import linux_waits
from schedlab.report.studies.linux_runs import LinuxRuns, apart
from schedlab.report.studies.linux_tables import RUNS, figure_of
from schedlab.report.studies.texts import how_measured, if_known, in_order, measured_table
from schedlab.report.study_tables import Comparison, Line, Measured, compared_table
from schedlab.report.wording import NOTHING, listed
from schedlab.studies.linux_experiments import FAIR, SYSBENCH, SYSBENCH_8, SYSBENCH_FREE

SCHEDULERS = {"CFS": FAIR, "Lottery": "lottery:linux", "WRR": "wrr:linux"}
"""As the study calls them, and what they are here."""
QUANTITIES = {
    "throughput": ("events a second", 2, "events_per_second"),
    "mean latency": ("mean latency, ms", 2, "latency_mean_ms"),
    "maximum latency": ("longest latency, ms", 2, "latency_max_ms"),
}
"""By the published figures' quantity: heading, decimals as sysbench has them, and its figure."""
MODES = {SYSBENCH: "by counted instructions", SYSBENCH_FREE: "by the host's time"}

_SPREAD = (
    (Column("events a second"), "events_per_second", 1),
    (Column("mean", "latency, ms"), "latency_mean_ms", 2),
    (Column("median", "latency, ms"), "latency_p50_ms", 2),
    (Column("95th percentile", "latency, ms"), "latency_p95_ms", 2),
    (Column("99th percentile", "latency, ms"), "latency_p99_ms", 2),
    (Column("longest", "latency, ms"), "latency_max_ms", 2),
)
_TRACED = (
    (Column("switches to another process"), pl.col("context_switches").first()),
    (Column("migrations"), pl.col("migrations").first()),
)


def sections(found: LinuxRuns) -> list[Section]:
    """Those of which anything was run."""
    made = []
    for experiment, mode in MODES.items():
        if found.setups(experiment):
            blocks = [
                *_tables(found, experiment, mode),
                *_chance(found, experiment),
                *linux_waits.blocks(found, experiment, SCHEDULERS),
            ]
            if experiment == SYSBENCH:
                blocks.append(Text(_EMULATION, "note"))
            made.append(Section(f"Tables 5 and 6 on Linux, {mode}", tuple(blocks)))
    if found.setups(SYSBENCH_8):
        made.append(Section("Eight threads on Linux", tuple(_eight(found))))
    return made


_EMULATION = """
**What emulation does to these figures.** No table above tells how fast Linux is on a machine.

- *By counted instructions*: QEMU carries the guest's instructions out one by one, and its clock \
moves by the same few nanoseconds for each. A division takes as long as an addition; there are no \
caches, no branch predictor, no turbo. What a policy costs is the number of its instructions, and \
nothing that it does to the caches. In return, a run is the same each time, to the last event: a \
difference between two policies is theirs, or that of where in a tick a run began, which the seed \
moves.
- *Several CPUs share that clock*: while one carries out an instruction, time goes on for the others. \
So all of this is measured on one CPU.
- *By the host's time*: the clock is real, and so is all else that the host does. What is longest \
there is the host's.
"""


def _named(scheduler: str) -> str:
    policy = SCHEDULERS[scheduler]
    return f"{scheduler} ({'the kernel’s fair class' if policy == FAIR else policy})"


def _tables(found: LinuxRuns, experiment: str, mode: str) -> list[Block]:
    how = how_measured(found.collection, (experiment,))
    names = {SYSBENCH: "study-5-linux", SYSBENCH_FREE: "study-5-linux-free"}
    return [
        compared_table(
            f"{names[experiment]}-table-5",
            f"Each run on Linux, one thread, {mode}: the study's table 5",
            ("scheduler", "run"),
            [
                Line((_named(name), str(run)), _compared(found, experiment, name, run))
                for name in SCHEDULERS
                for run in RUNS
            ],
            f"Ours: the seed of that number. {how}",
        ),
        compared_table(
            f"{names[experiment]}-table-6",
            f"Means of the runs on Linux, one thread, {mode}: the study's table 6",
            ("scheduler",),
            [Line((_named(name),), _compared(found, experiment, name)) for name in SCHEDULERS],
            how,
        ),
    ]


def _compared(
    found: LinuxRuns, experiment: str, scheduler: str, run: int | None = None
) -> dict[str, Comparison]:
    """By quantity, one run of table 5 and ours of that seed; None: the means of table 6."""
    lines = {}
    for quantity, (heading, decimals, figure) in QUANTITIES.items():
        published = (
            figure_of(scheduler, quantity, 6)
            if run is None
            else figure_of(f"{scheduler} {run}", quantity, 5)
        )
        here = found.printed(experiment, SCHEDULERS[scheduler], figure)
        if run is not None and here.mean is not None:
            here = Measured(here.values[run - 1 : run])
        lines[heading] = Comparison(published, here, decimals=decimals)
    return lines


# --- more than chance?


def _chance(found: LinuxRuns, experiment: str) -> list[Block]:
    """What each pair of schedulers differs by; and what becomes of the study's conclusions."""
    rows = []
    for quantity, (heading, decimals, figure) in QUANTITIES.items():
        here = {
            name: found.printed(experiment, policy, figure) for name, policy in SCHEDULERS.items()
        }
        for one, other in combinations(SCHEDULERS, 2):
            rows.append((heading, f"{other} − {one}", _there(one, other, quantity, decimals),
                         *_apart(here, one, other, decimals)))  # fmt: skip
    columns = ("quantity", "difference", "study, table 6", "here", "may it be chance?")
    free = "-free" if experiment == SYSBENCH_FREE else ""
    table = Table(
        f"study-5-linux{free}-differences",
        "Between the schedulers: what is more than chance",
        tuple(Column(name, align="left") for name in columns),
        tuple(tuple(Cell(text) for text in row) for row in rows),
        pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows]),
        "In brackets: the 95 % interval of the difference, by Welch's t, runs being independent of "
        "each other. Below 0.05, it would be rare if there were none; of nine such tests, one in "
        "twenty is below by chance.",
    )
    return [table, Text(_conclusions(found, experiment))]


def _there(one: str, other: str, quantity: str, decimals: int) -> str:
    first, second = figure_of(one, quantity, 6), figure_of(other, quantity, 6)
    if first is None or second is None:
        return NOTHING
    return _signed(second.value - first.value, decimals)


def _apart(here: Mapping[str, Measured], one: str, other: str, decimals: int) -> tuple[str, str]:
    """The difference, and how probable one as large is by chance."""
    found = apart(here[one], here[other])
    if found is None:
        return NOTHING, NOTHING
    if found.chance is None:
        return _signed(found.change, decimals), "one run cannot tell"
    low, high = (_rounded(each, decimals) for each in (found.low, found.high))
    return f"{_signed(found.change, decimals)} [{low}, {high}]", _verdict(found)


def _rounded(number: float, decimals: int) -> str:
    return f"{round(number, decimals) + 0.0:.{decimals}f}"  # no -0


def _signed(number: float, decimals: int) -> str:
    return f"{round(number, decimals) + 0.0:+.{decimals}f}"


def _verdict(found: Difference) -> str:
    if found.chance is None:
        return "one run cannot tell"
    told = f"p = {found.chance:.2g}" if found.chance >= 0.001 else "p < 0.001"
    return f"hardly ({told})" if found.chance < 0.05 else f"yes ({told})"


def _conclusions(found: LinuxRuns, experiment: str) -> str:
    """The study ranks by throughput and by the longest latency."""

    def ordered(figure: str, falling: bool) -> str:
        values = {
            name: found.printed(experiment, policy, figure) for name, policy in SCHEDULERS.items()
        }
        return if_known(values, lambda _: in_order(values, falling, paired=False))

    return (
        "**The study's conclusions.** *WRR has the highest throughput, the lottery the lowest* "
        f"(sections 6.2, 6.3): here {ordered('events_per_second', True)}. *WRR has the lowest "
        f"maximum latency, CFS the highest* (6.4): here {ordered('latency_max_ms', False)}. "
        "(≈: may be chance.)"
    )


# --- eight threads


def _eight(found: LinuxRuns) -> list[Block]:
    policies = found.policies((SYSBENCH_8,))
    rows = {
        policy: (
            *(found.printed(SYSBENCH_8, policy, figure) for _, figure, _ in _SPREAD),
            *(found.summary(SYSBENCH_8, policy, value) for _, value in _TRACED),
        )
        for policy in policies
    }
    return [
        Text(_INTRODUCTION),
        measured_table(
            "study-5-linux-eight-threads",
            "Eight threads of sysbench on Linux",
            "policy",
            (
                *((column, decimals) for column, _, decimals in _SPREAD),
                *((column, 0) for column, _ in _TRACED),
            ),
            rows,
            f"{how_measured(found.collection, (SYSBENCH_8,))} Percentiles: of sysbench's histogram, "
            "whose classes are 1.8 % wide. Switches and migrations: of the trace.",
        ),
        Text(_spread(found, policies)),
    ]


_INTRODUCTION = """
Eight threads, where a policy has a choice. The work is the same under all of them; how it is cut \
into turns is not. Long turns leave most events alone and let a few wait for a turn of everybody else.
"""


def _spread(found: LinuxRuns, policies: list[str]) -> str:
    longest = {policy: found.printed(SYSBENCH_8, policy, "latency_max_ms") for policy in policies}
    rates = {
        f"rate of {policy}": found.printed(SYSBENCH_8, policy, "events_per_second")
        for policy in policies
    }

    def sentence(n: dict[str, float]) -> str:
        by_rate = [n[name] for name in rates]
        ordered = sorted(policies, key=lambda policy: n[policy])
        return (
            f"From the slowest to the fastest policy it is "
            f"{100 * (max(by_rate) / min(by_rate) - 1):.1f} % in throughput; the longest latencies "
            f"are {listed([f'{n[policy]:.0f} ms (`{policy}`)' for policy in ordered])}."
        )

    return if_known({**longest, **rates}, sentence)
