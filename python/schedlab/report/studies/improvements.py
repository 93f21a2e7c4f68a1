# SPDX-License-Identifier: MIT
"""What study 1 proposes for the future, where it is here, and what it changed as measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from schedlab.report.model import Cell, Column, Row, Section, Table, Text
from schedlab.report.studies.lottery_runs import SHIPPED, THESIS, LotteryRuns
from schedlab.report.studies.texts import cell
from schedlab.report.studies.timing_runs import PRIORITIES, TimingRuns
from schedlab.report.study_tables import NOT_RUN, Measured, measure
from schedlab.report.wording import counted, listed
from schedlab.report.wording import cpus as cpus_text
from schedlab.studies.experiments import ALL_CPUS, TIMING_TESTS
from schedlab.studies.ideal import ideal_completion
from schedlab.studies.shares import TESTS

PROPOSED = "priority:proposed"
DEFAULT = "priority"
POLICIES = (PRIORITIES.policy, DEFAULT, PROPOSED, "hybrid")


@dataclass(frozen=True)
class Proposal:
    """Of section 8, in our words."""

    section: str
    what: str
    here: str
    """Tunable, preset or policy; Markdown."""
    measured: str
    """A sentence: in which runs its effect shows."""


_PRESET = f"Measured with the rest of its preset: `{PROPOSED}` against `{DEFAULT}`."
_DEFAULTS = f"Measured with the rest: `{SHIPPED}` against `{THESIS}`, tables 3 to 8."
_NOT_SET = "No run of this report sets it."
PROPOSALS = (
    Proposal(
        "8.1",
        "age faster while someone waits for over 100 ticks",
        "`priority:proposed`, tunables `stalled_after` and `stalled_interval`",
        _PRESET,
    ),
    Proposal(
        "8.1",
        "give priorities by behaviour: up for who sleeps, down for who computes",
        "`priority:proposed`, tunable `behaviour`",
        _PRESET,
    ),
    Proposal(
        "8.1",
        "place new processes by the sum of 10 − priority",
        "`priority:proposed`, tunable `placement`",
        _PRESET,
    ),
    Proposal(
        "8.1",
        "fewer levels, and a bitmap of those that are not empty",
        "`priority:proposed`, tunable `level_width`; the bitmap is in all of its presets",
        _PRESET,
    ),
    Proposal(
        "8.2",
        "move processes between CPUs, so that the sums of tickets stay even",
        "`lottery:thesis`, tunable `balance`: 1 as proposed, 2 for fair shares, as `lottery` has them",
        _DEFAULTS,
    ),
    Proposal(
        "8.2",
        "let counts of selections decay faster, and let nobody wait beyond a limit",
        "`lottery:thesis`, tunables `decay_interval`, `recent_penalty`, `wait_limit`",
        _NOT_SET,
    ),
    Proposal(
        "8.2",
        "a first turn for each new process within 10 ticks",
        "`lottery:thesis`, tunable `newcomer_limit`",
        _NOT_SET,
    ),
    Proposal(
        "8.2",
        "a better random number generator",
        "`lottery` as shipped: SplitMix64; `lottery:thesis`, tunable `generator`",
        _DEFAULTS,
    ),
    Proposal(
        "8.2",
        "more tickets for who waits for I/O, fewer for who computes",
        "`lottery:thesis`, tunable `adaptation`; `lottery`, tunable `compensation`, for what sleeps",
        f"No run of this report sets the first; of the second: {_DEFAULTS[0].lower()}{_DEFAULTS[1:]}",
    ),
    Proposal(
        "8.3",
        "levels of priority, and a lottery within each",
        "the policy `hybrid`",
        f"Measured: `hybrid` against `{DEFAULT}`.",
    ),
    Proposal(
        "8.3",
        "balance the load of all CPUs again and again",
        "`priority:thesis`, tunable `balancing`; `lottery:thesis`, tunable `balance`",
        f"Measured with the rest: `{DEFAULT}` against `{PRIORITIES.policy}`. {_DEFAULTS}",
    ),
    Proposal(
        "8.3",
        "a system call for figures of processes and CPUs",
        "`getstats`, `getpinfo`, `sched_status`, and the event trace",
        "This report is made of the trace.",
    ),
    Proposal(
        "8.3",
        "finer locks for the queues, or none",
        "a run queue and a lock for each CPU; no queue does without",
        "The study's presets have them, too: nothing to compare.",
    ),
)


def section(timing: TimingRuns, lottery: LotteryRuns) -> Section:
    """Answers section 8."""
    blocks: list[Text | Table] = [
        Text(
            "Section 8 of the study proposes what it had no time to build. All of it is here, as"
            " tunables that can be set while the system runs, but for locks: no queue does without."
        ),
        Text(_proposals()),
    ]
    if timing.there(PRIORITIES):
        blocks += [
            _completion_table(timing),
            Text("\n".join(f"- {line}" for line in _priority_findings(timing))),
        ]
    if lottery.there():
        blocks.append(Text("\n".join(f"- {line}" for line in _lottery_findings(lottery))))
    return Section("What the study proposes (section 8)", tuple(blocks))


def _proposals() -> str:
    lines = []
    for section_number in dict.fromkeys(each.section for each in PROPOSALS):
        lines.append(f"- **Section {section_number}**")
        lines += [
            f"    - {each.what[0].upper()}{each.what[1:]}: {each.here}. {each.measured}"
            for each in PROPOSALS
            if each.section == section_number
        ]
    return "\n".join(lines)


def _completion_table(runs: TimingRuns) -> Table:
    """Of the priority suite, until all have ended."""
    rows: list[Row] = []
    data: list[dict[str, str | int | float | None]] = []
    starts = []
    for test, row in TIMING_TESTS.items():
        lines = list(_completions(runs, test))
        starts.append(len(rows))
        for number, (cpus, found) in enumerate(lines):
            ideal = ideal_completion(2, row, cpus)
            rows.append(
                (
                    Cell("" if number else row),
                    Cell(str(cpus)),
                    *(cell(each, 1) for each in found.values()),
                    Cell(f"{ideal:.1f}", "muted"),
                )
            )
            data += [
                {"test": row, "cpus": cpus, "policy": policy, "ticks": each.mean, "ideal": ideal}
                for policy, each in found.items()
            ]
    return Table(
        "study-1-proposed-completion",
        "The priority tests with what section 8 proposes: ticks until all have ended",
        (
            Column("test", align="left"),
            Column("CPUs", align="left"),
            *(Column(policy) for policy in POLICIES),
            Column("ideal"),
        ),
        tuple(rows),
        pl.DataFrame(
            data,
            schema={
                "test": pl.String,
                "cpus": pl.Int64,
                "policy": pl.String,
                "ticks": pl.Float64,
                "ideal": pl.Float64,
            },
        ),
        f"`{DEFAULT}` is as we ship it, without the study's quirks; `{PROPOSED}` is that, and what"
        f" section 8.1 proposes. Where `{PRIORITIES.policy}` alone was run, there is no row.",
        tuple(dict.fromkeys(start for start in starts if 0 < start < len(rows))),
    )


def _completions(runs: TimingRuns, test: str) -> Iterator[tuple[int, dict[str, Measured]]]:
    """For each number of CPUs on which another policy than the study's was run."""
    for cpus in ALL_CPUS:
        found = {policy: _completion(runs, test, policy, cpus) for policy in POLICIES}
        if any(
            each.missing != NOT_RUN or each.values
            for policy, each in found.items()
            if policy != PRIORITIES.policy
        ):
            yield cpus, found


def _completion(runs: TimingRuns, test: str, policy: str, cpus: int) -> Measured:
    return runs.measured(runs.completion, PRIORITIES, test, cpus, policy)


def _priority_findings(runs: TimingRuns) -> Iterator[str]:
    yield from _slower_and_faster(runs, PRIORITIES.policy, PROPOSED)
    yield from _slower_and_faster(runs, DEFAULT, PROPOSED)
    yield from _slower_and_faster(runs, DEFAULT, "hybrid")
    yield from _high_priority(runs)


def _slower_and_faster(runs: TimingRuns, before: str, after: str) -> Iterator[str]:
    """In how many setups the one takes longer than the other, and where it matters most."""
    found = []
    for test, row in TIMING_TESTS.items():
        for cpus in ALL_CPUS:
            old, new = (_completion(runs, test, each, cpus).mean for each in (before, after))
            if old and new:
                found.append(
                    (new / old - 1, f"{row} on {cpus_text([cpus])}, {old:.1f} → {new:.1f}")
                )
    if not found:
        yield f"`{after}` and `{before}` were not both run: nothing can be said of the two."
        return
    by_change = sorted(found)
    less = [each for each in found if each[0] < -_NOTABLE]
    more = [each for each in found if each[0] > _NOTABLE]
    title = f"`{after}` against `{before}`, in ticks until all have ended:"
    percent = f"{100 * _NOTABLE:.0f} %"
    if not less and not more:
        yield f"{title} none of {counted(len(found), 'setup')} changes by over {percent}."
        return
    text = (
        f"{title} in {len(less)} of {counted(len(found), 'setup')} shorter by over {percent}, in"
        f" {len(more)} longer."
    )
    if less:
        text += f" Shortened most: {by_change[0][1]}."
    if more:
        text += f" Lengthened most: {by_change[-1][1]}."
    yield text


_NOTABLE = 0.05


def _high_priority(runs: TimingRuns) -> Iterator[str]:
    """What the priorities are for: how soon those of the highest are done."""
    by_cpus = {count: _turnarounds(runs, count) for count in ALL_CPUS}
    count = max(by_cpus, key=lambda each: len(by_cpus[each]))
    if by_cpus[count]:
        yield (
            f"What priorities are for: in I/O-bound on {cpus_text([count])}, processes of priority 0 and"
            f" of priority 5 take, in mean ticks from fork to exit, {listed(by_cpus[count])}."
        )


def _turnarounds(runs: TimingRuns, count: int) -> list[str]:
    found = []
    for policy in POLICIES:
        setup = runs.setup(PRIORITIES, "io-bound", count, policy)
        high, low = (
            measure(setup, runs.of_group(group, "turnaround_mean_ns")).mean
            for group in ("io-0", "io-5")
        )
        if high and low:
            found.append(f"{high:.1f} and {low:.1f} under `{policy}`")
    return found


def _lottery_findings(runs: LotteryRuns) -> Iterator[str]:
    for cpus in ALL_CPUS:
        pairs = [
            tuple(runs.off_ideal(test, policy, cpus).mean for policy in (THESIS, SHIPPED))
            for test in TESTS
        ]
        known = [(old, new) for old, new in pairs if old is not None and new is not None]
        if known:
            old, new = (fmean(column) for column in zip(*known, strict=True))
            yield (
                f"`{SHIPPED}` against `{THESIS}` on {cpus_text([cpus])}: shares are {new:.1f} points off"
                f" the ideal, instead of {old:.1f} (mean over {len(known)} of {len(TESTS)} tables)."
            )
