# SPDX-License-Identifier: MIT
"""Study 5's benchmark under all of our policies: one thread, eight, and how long turns are."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import polars as pl

from schedlab.report.charts import boxes, drawn
from schedlab.report.model import Block, Column, Section, Text
from schedlab.report.studies.events import (
    EIGHT,
    LONGEST,
    MEAN,
    ONE,
    PERCENTILE,
    Benchmark,
    lost_steps,
    turns,
)
from schedlab.report.studies.linux_tables import figure_of
from schedlab.report.studies.texts import how_measured, if_known, measured_table, traces
from schedlab.report.study_tables import Measured
from schedlab.studies import select
from schedlab.studies.experiments import EXPERIMENTS, OTHERS

POLICIES = tuple(dict.fromkeys((*EXPERIMENTS[ONE].own, *OTHERS)))

_COUNTED = (
    (Column("events a second"), 1),
    (Column("mean", "latency, ms"), 3),
    (Column("longest", "latency, ms"), 3),
    (Column("of the CPU's time, %", "the threads run"), 2),
    (Column("decisions", "scheduler"), 0),
    (Column("switches to another process", "scheduler"), 0),
    (Column("of the CPU's time, %", "scheduler"), 3),
)


def one_thread(found: Benchmark) -> Section:
    """What differs between policies where there is nobody to choose from."""
    return Section("What the benchmark cannot see", tuple(_one_thread(found)))


def eight_threads(found: Benchmark) -> Section:
    """What a policy does to the benchmark where it has a choice."""
    return Section("Eight threads", tuple(_eight_threads(found)))


def slices(found: Benchmark) -> Section:
    """How long turns should be, and are."""
    return Section("Time slices of WRR: section 3.3.3", (Text(_slices(found)),))


def _shown(found: Benchmark, experiment: str) -> list[str]:
    """The study's policies, and those of the others that were run."""
    own = EXPERIMENTS[experiment].own
    return [p for p in POLICIES if p in own or found.setup(experiment, p) is not None]


def _row(found: Benchmark, experiment: str, policy: str) -> Sequence[Measured]:
    first = {name: pl.col(name).first() for name in ("selections", "context_switches")}
    running = pl.col("running_ns").first() * 100 / pl.col("elapsed_ns").first()
    return (
        found.throughput(experiment, policy),
        found.latency(experiment, policy, MEAN),
        found.latency(experiment, policy, LONGEST),
        found.summary(experiment, policy, running),
        *(found.summary(experiment, policy, each) for each in first.values()),
        found.summary(experiment, policy, pl.col("overhead_share").first() * 100),
    )


def _one_thread(found: Benchmark) -> list[Block]:
    first = figure_of("CFS 1", "throughput", 5)
    latency = figure_of("CFS 1", "mean latency", 5)
    told = ""
    if first and latency:
        told = (
            f"{first.text} events a second of {latency.text} ms each make "
            f"{first.value * latency.value / 1000:.2f} s of work in a second: the study's thread "
            "always runs, and a scheduler has nobody to choose from but it."
        )
    rows = {policy: _row(found, ONE, policy) for policy in _shown(found, ONE)}
    return [
        Text(told),
        measured_table(
            "study-5-one-thread",
            "One thread under our policies",
            "policy",
            _COUNTED,
            rows,
            how_measured(found.collection, (ONE,)),
        ),
        Text(f"{_why_apart(found)}\n\n{_what_telling_costs(found)} {_what_seeds_change(found)}"),
    ]


def _why_apart(found: Benchmark) -> str:
    """How much of the differences in throughput the scheduler's own work explains."""
    policies = _shown(found, ONE)
    rates = {policy: found.throughput(ONE, policy) for policy in policies}
    shares = {
        f"share {policy}": found.summary(ONE, policy, pl.col("overhead_share").first() * 100)
        for policy in policies
    }
    step = found.summary(ONE, "rr", pl.col("clock_step_ns").first() / 1000)
    of_tick = found.summary(
        ONE, "rr", 100 * pl.col("clock_step_ns").first() / pl.col("tick_ns").first()
    )

    def sentence(n: dict[str, float]) -> str:
        fast = max(policies, key=lambda policy: n[policy])
        slow = min(policies, key=lambda policy: n[policy])
        apart = 100 * (n[fast] / n[slow] - 1)
        work = n[f"share {slow}"] - n[f"share {fast}"]
        told = f"From the slowest (`{slow}`) to the fastest (`{fast}`) it is {apart:.2f} %"
        if work < apart / 2:
            return (
                f"{told}, of which what the schedulers themselves take explains {work:.3f} "
                f"percentage points. The machine's clock moves in steps of {n['step']:.0f} µs, "
                f"{n['of tick']:.1f} % of a tick, and an interrupt ends a step early. "
                f"{_steps(found, slow, fast)}"
            )
        return told + f"; the schedulers themselves take {work:.3f} percentage points of it."

    return if_known({**rates, **shares, "step": step, "of tick": of_tick}, sentence)


def _steps(found: Benchmark, slow: str, fast: str) -> str:
    """How many steps of the clock the thread loses in a tick, by the cycle counter."""
    kept = [traces(found.setup(ONE, policy), most=1) for policy in (slow, fast)]
    if not all(kept):
        return ""
    lost = [lost_steps(*runs[0]) for runs in kept]
    return (
        f"By the cycle counter the CPU stands still for {lost[0]:.1f} steps of each tick under "
        f"`{slow}` and for {lost[1]:.1f} under `{fast}`: the difference is the machine's, not that "
        "of picking a thread. What interrupts it more often is not known."
    )


def _what_telling_costs(found: Benchmark) -> str:
    needed = {
        "rate": found.throughput(ONE, "rr"),
        "latency": found.latency(ONE, "rr", MEAN),
    }
    return if_known(
        needed,
        lambda n: (
            "Between two events a thread writes the latency of the last one to the trace: it does "
            f"{n['rate']:,.0f} events a second of {n['latency']:.3f} ms under `rr`, which fill "
            f"{100 * n['rate'] * n['latency'] / 1000:.1f} % of its time."
        ),
    )


def _what_seeds_change(found: Benchmark) -> str:
    """With one thread there is nothing for a seed to change."""
    values = [found.throughput(ONE, policy).values for policy in _shown(found, ONE)]
    if any(len(each) < 2 for each in values):
        return ""
    same = sum(len(set(each)) == 1 for each in values)
    return (
        f"All seeds give the same throughput under {same} of the {len(values)} policies: the "
        "machine repeats a run exactly, and one thread leaves nothing to draw."
    )


def _eight_threads(found: Benchmark) -> list[Block]:
    rows = {policy: _row(found, EIGHT, policy) for policy in _shown(found, EIGHT)}
    blocks: list[Block] = [Text(_INTRODUCTION)]
    latencies = found.latencies(EIGHT, list(POLICIES))
    if len(latencies):
        blocks.extend(
            drawn(
                boxes,
                "study-5-latencies",
                latencies,
                title="Latency of an event, eight threads",
                caption="All events of all runs.",
                category="policy",
                value="ms",
                x_title="latency of an event, ms",
                log=True,
            )
        )
    table = measured_table(
        "study-5-eight-threads",
        "Eight threads under our policies",
        "policy",
        _COUNTED,
        rows,
        how_measured(found.collection, (EIGHT,)),
    )
    return [*blocks, table, Text(_why_eight(found))]


_INTRODUCTION = """
The same benchmark with eight threads on the one CPU. Now a policy decides who goes on, and the \
policies differ: not in how many events are done, but in how long one of them can take.
"""


def _why_eight(found: Benchmark) -> str:
    told = []
    for policy in ("rr", "wrr:linux"):
        needed = {
            "own": found.latency(ONE, policy, MEAN),
            "95th": found.latency(EIGHT, policy, PERCENTILE),
            "longest": found.latency(EIGHT, policy, LONGEST),
        }
        turn = _usual_turn(found, policy)
        told.append(
            f"- `{policy}`: "
            + if_known(
                needed,
                lambda n, turn=turn: (  # type: ignore[misc]
                    f"turns of {turn:.2f} ms. An event computes {n['own']:.2f} ms; one that the "
                    "end of a turn cuts waits for a turn of each of the other seven, "
                    f"{7 * turn:.0f} ms. 95 of 100 events take at most {n['95th']:.2f} ms, and the "
                    f"longest takes {n['longest']:.1f}."
                ),
            )
        )
    return (
        "A short turn cuts most events, each of them for a short time; a long turn cuts few, and "
        "those for long:\n\n" + "\n".join(told)
    )


def _usual_turn(found: Benchmark, policy: str) -> float:
    """The median turn that a slice ended, in ms; 0 if there is no trace."""
    kept = traces(found.setup(EIGHT, policy))
    lengths = [length for run, trace in kept for length in turns(run, trace)["ms"]]
    return median(lengths) if lengths else 0.0


def _slices(found: Benchmark) -> str:
    settings = {each.row: each for each in select(study=5, place="section 3.3.3", kind="setting")}
    factor, priority = settings["slice"], settings["priority"]
    wanted = factor.value * priority.value
    told = (
        f"A turn lasts {factor.text} ms × the process's priority, which is {priority.text} unless "
        f"it is set: {wanted:.0f} ms. "
    )
    kept = traces(found.setup(EIGHT, "wrr:linux"))
    lengths = [length for run, trace in kept for length in turns(run, trace)["ms"]]
    if not lengths:
        return told + "*There is no trace of eight threads under `wrr:linux`.*"
    return told + (
        f"Of the {len(lengths)} turns that a slice ended in the traces of the eight threads, the "
        f"shortest lasts {min(lengths):.3f} ms, the longest {max(lengths):.3f} and the median "
        f"{median(lengths):.3f}. (The study's listing computes the slice at each pick; it does not "
        "show what ends a turn when it is over. Here the tick does.)"
    )
