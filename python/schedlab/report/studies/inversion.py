# SPDX-License-Identifier: MIT
"""Priority inversion over a pipe, which study 3 had no time for: who runs while the reader waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from schedlab.comparison.statistics import Within
from schedlab.metrics import state_intervals
from schedlab.report.charts import drawn, gantt
from schedlab.report.model import Block, Chart, Column, Section, Text
from schedlab.report.studies.texts import how_measured, if_known, measured_table, number, traces
from schedlab.report.study_tables import Measured, Numbers, measure, of_group
from schedlab.runs.collection import Collection, Kept, Repeated
from schedlab.studies.experiments import EXPERIMENTS, OTHERS
from schedlab.trace import Trace

EXPERIMENT = "s3-inversion"
CPUS = 1
IDEAL_TICKS = 4.0
"""What the writer computes for a byte (workloads/study3.c, -y): the wait, were it served at once."""


_PERCENT = (0.0, 100.0)
_HOGS, _HOG_TICKETS, _WRITER_TICKETS = 4, 10, 1
"""As workloads/study3.c sets them."""


@dataclass(frozen=True)
class Wait:
    """The reader's wait for one byte. Times in ticks."""

    begin_ns: int
    end_ns: int
    length: float
    hogs: float
    """Of it, how long hogs had the CPU."""
    longest_turn: float
    """How long one of them had it without a break, at most."""


@dataclass(frozen=True)
class Story:
    """What the traces of a setup tell."""

    setup: Repeated
    runs: tuple[tuple[Kept, Trace, tuple[Wait, ...]], ...]
    """None if one failed or kept no trace."""

    def measure(
        self, value: Callable[[tuple[Wait, ...]], float], within: Within = (0, math.inf)
    ) -> Measured:
        """A number of each run's waits, and what is possible."""
        numbers: Numbers = {run.folder: value(waits) for run, _, waits in self.runs if waits}
        return measure(self.setup, numbers, within)


def story_of(repeated: Repeated) -> Story:
    """Of all runs of a setup."""
    return Story(
        repeated, tuple((run, trace, waits_in(run, trace)) for run, trace in traces(repeated))
    )


def waits_in(run: Kept, trace: Trace) -> tuple[Wait, ...]:
    """From when the reader blocks on the pipe until it runs again."""
    groups = dict(run.metrics().processes.select("pid", "group").iter_rows())
    intervals = state_intervals(trace)
    running = intervals.filter(pl.col("state") == "running").select("pid", "begin_ns", "end_ns")
    readers = [pid for pid, group in groups.items() if group == "reader"]
    hogs = [pid for pid, group in groups.items() if group == "hog"]
    blocked = intervals.filter(pl.col("pid").is_in(readers) & (pl.col("cause") == "blocked: pipe"))[
        "begin_ns"
    ]
    runs_again = running.filter(pl.col("pid").is_in(readers))["begin_ns"].sort()
    of_hogs = running.filter(pl.col("pid").is_in(hogs)).sort("begin_ns")
    found = []
    for begin in blocked.sort():
        later = runs_again.filter(runs_again > begin)
        if len(later):
            found.append(_wait(int(begin), int(later[0]), of_hogs, trace.header.tick_ns))
    return tuple(found)


def _wait(begin: int, end: int, hogs: pl.DataFrame, tick_ns: int) -> Wait:
    meanwhile = hogs.filter((pl.col("begin_ns") < end) & (pl.col("end_ns") > begin)).select(
        "pid",
        pl.max_horizontal("begin_ns", pl.lit(begin)).alias("begin_ns"),
        pl.min_horizontal("end_ns", pl.lit(end)).alias("end_ns"),
    )
    lengths = meanwhile["end_ns"] - meanwhile["begin_ns"]
    longest = number(lengths.max())
    return Wait(
        begin, end, (end - begin) / tick_ns, int(lengths.sum()) / tick_ns, longest / tick_ns
    )


def section(collection: Collection) -> Section:
    """How long the reader waits under each policy, and who had the CPU meanwhile."""
    stories = {
        policy: story_of(repeated)
        for policy in (*EXPERIMENTS[EXPERIMENT].own, *OTHERS)
        if (repeated := collection.one(EXPERIMENT, policy, CPUS))
    }
    if not stories:
        return Section("Priority inversion", (Text("Not run."),))
    blocks: list[Block] = [Text(_INTRODUCTION), _table(collection, stories)]
    blocks += [Text(_explanation(collection, stories)), *_pictures(stories)]
    return Section("Priority inversion, which the study had no time for", tuple(blocks))


_INTRODUCTION = f"""
The study names the problem and could not test it (section 4.3.3). Here one process of the highest \
rank, the **reader**, sleeps a tick, asks for a byte over a pipe and waits for it, five times. The \
**writer**, of the lowest rank, computes {IDEAL_TICKS:.0f} ticks and writes the byte. Four **hogs** \
between the two compute 50 ticks each and need neither. Rank is priority, tickets and weight, so \
that each policy has its own. One CPU. Were the writer served as if it had the reader's rank, each \
wait would be its {IDEAL_TICKS:.0f} ticks.
"""

_COLUMNS = (
    (Column("mean", "a wait, ticks"), 1),
    (Column("first", "a wait, ticks"), 1),
    (Column("longest", "a wait, ticks"), 1),
    (Column("ideal", "a wait, ticks"), 0),
    (Column("of the time, %", "hogs while it waits"), 1),
    (Column("longest turn, ticks", "hogs while it waits"), 1),
    (Column("reader's response, ticks"), 1),
)


def _table(collection: Collection, stories: Mapping[str, Story]) -> Block:
    response = of_group(collection, "reader", "response_mean_ns")
    rows = {}
    for policy, story in stories.items():
        tick_ns = story.setup.setup.tick_ns
        first_run = {folder: time / tick_ns for folder, time in response.items()}
        rows[policy] = (
            story.measure(mean_wait),
            story.measure(lambda waits: waits[0].length),
            story.measure(longest_wait),
            Measured((IDEAL_TICKS,)),
            story.measure(hogs_part, _PERCENT),
            story.measure(longest_turn),
            measure(story.setup, first_run),
        )
    return measured_table(
        "study-3-inversion",
        "How long the reader waits for a byte",
        "policy",
        _COLUMNS,
        rows,
        "From the traces: a wait is from when the reader blocks on the pipe until it runs again. "
        "*Response*: from its fork until it first runs; what comes before its first wait. "
        + how_measured(collection, (EXPERIMENT,)),
    )


def mean_wait(waits: tuple[Wait, ...]) -> float:
    """In ticks."""
    return fmean(wait.length for wait in waits)


def longest_wait(waits: tuple[Wait, ...]) -> float:
    """In ticks."""
    return max(wait.length for wait in waits)


def longest_turn(waits: tuple[Wait, ...]) -> float:
    """Of a hog while the reader waits, in ticks."""
    return max(wait.longest_turn for wait in waits)


def hogs_part(waits: tuple[Wait, ...]) -> float:
    """Of the reader's waits together, in how much of the time hogs ran, in percent."""
    return 100 * sum(wait.hogs for wait in waits) / sum(wait.length for wait in waits)


def _explanation(collection: Collection, stories: Mapping[str, Story]) -> str:
    told = [
        _if_run(stories, "priority", _of_priority),
        _if_run(stories, "rr:table-scan", _of_round_robin),
        _if_run(stories, "mlfq:four-quanta", _of_quanta),
        *(_if_run(stories, policy, _of_tickets) for policy in ("lottery", "stride")),
        _of_wrr(collection, stories),
    ]
    return "\n".join(f"- {each}" for each in told if each)


def _if_run(stories: Mapping[str, Story], policy: str, tell: Callable[[Story], str]) -> str:
    return tell(stories[policy]) if policy in stories else ""


def _of_priority(story: Story) -> str:
    needed = {
        "the first wait": story.measure(lambda waits: waits[0].length),
        "the hogs in it": story.measure(lambda waits: waits[0].hogs),
        "the last wait": story.measure(lambda waits: waits[-1].length),
    }
    return "**Strict priorities** (`priority`): " + if_known(
        needed,
        lambda n: (
            f"of the first wait of {n['the first wait']:.1f} ticks, hogs have the CPU for "
            f"{n['the hogs in it']:.1f}: all that is left of their work, although nobody of a "
            "higher rank waits for it. The policy is not told that the reader waits for the "
            f"writer. The last wait, without hogs, is {n['the last wait']:.1f} ticks."
        ),
    )


def _of_round_robin(story: Story) -> str:
    needed = {
        "the mean wait": story.measure(mean_wait),
        "the longest turn of a hog": story.measure(longest_turn),
    }
    return "**Round-robin** (`rr:table-scan`) knows no rank, and so no inversion: " + if_known(
        needed,
        lambda n: (
            f"the writer has its turn among the hogs' (of at most "
            f"{n['the longest turn of a hog']:.1f} ticks each), and a wait is "
            f"{n['the mean wait']:.1f} ticks."
        ),
    )


def _of_quanta(story: Story) -> str:
    needed = {
        "the longest wait": story.measure(longest_wait),
        "the longest turn of a hog": story.measure(longest_turn),
    }
    return "**The study's feedback queue** (`mlfq:four-quanta`): " + if_known(
        needed,
        lambda n: (
            f"a wait of up to {n['the longest wait']:.1f} ticks. Writer and hogs all sink to the "
            "lowest level, whose quantum is without end: there a hog has the CPU for up to "
            f"{n['the longest turn of a hog']:.1f} ticks without a break."
        ),
    )


def _of_tickets(story: Story) -> str:
    needed = {
        "the first wait": story.measure(lambda waits: waits[0].length),
        "hogs in it": story.measure(lambda waits: hogs_part(waits[:1])),
    }
    tickets = 100 * _WRITER_TICKETS / (_WRITER_TICKETS + _HOGS * _HOG_TICKETS)
    return f"**By tickets** (`{story.setup.setup.policy}`): " + if_known(
        needed,
        lambda n: (
            f"while the reader is blocked, its tickets do not count, and the writer has "
            f"{_WRITER_TICKETS} of {_WRITER_TICKETS + _HOGS * _HOG_TICKETS}, or {tickets:.1f} %. "
            f"In the first wait of {n['the first wait']:.1f} ticks the hogs have "
            f"{n['hogs in it']:.1f} % of the time."
        ),
    )


def _of_wrr(collection: Collection, stories: Mapping[str, Story]) -> str:
    """Its short waits are no merit: the trace says when the reader first ran."""
    story = stories.get("wrr")
    if story is None:
        return ""
    response = of_group(collection, "reader", "response_mean_ns", 1 / story.setup.setup.tick_ns)
    needed = {
        "the mean wait": story.measure(mean_wait),
        "the response": measure(story.setup, response),
        "the part of hogs": story.measure(hogs_part, _PERCENT),
    }

    def sentence(known: dict[str, float]) -> str:
        told = (
            f"waits of {known['the mean wait']:.1f} ticks, but before the first of them the reader "
            f"waits {known['the response']:.1f} ticks for its first turn"
        )
        if known["the part of hogs"] < 1:
            return (
                told + ", and by then the hogs have ended. What the waits show is an idle machine."
            )
        return told + "."

    return "**Weighted round-robin** (`wrr`): " + if_known(needed, sentence)


def _pictures(stories: Mapping[str, Story]) -> list[Block]:
    return [
        picture
        for policy in ("priority", "rr:table-scan")
        if policy in stories and any(waits for _, _, waits in stories[policy].runs)
        for picture in drawn(_picture, policy, stories[policy])
    ]


def _picture(policy: str, story: Story) -> Chart:
    """The first run's first wait, and a little around it."""
    run, trace, first = next((run, trace, waits[0]) for run, trace, waits in story.runs if waits)
    around = story.setup.setup.tick_ns * 3
    return gantt(
        f"study-3-inversion-{policy.replace(':', '-')}",
        trace,
        title=f"The reader's first wait under {policy}",
        caption=f"Seed {run.seed}. The reader blocks at {first.begin_ns / 1e6:.1f} ms and runs "
        f"again at {first.end_ns / 1e6:.1f} ms; hogs run for {first.hogs:.1f} of the "
        f"{first.length:.1f} ticks between.",
        begin_ns=max(0, first.begin_ns - around),
        end_ns=first.end_ns + around,
    )
