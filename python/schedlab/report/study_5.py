# SPDX-License-Identifier: MIT
"""Study 5: weighted round-robin and lottery in Linux, and a benchmark that tells little of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median

import polars as pl

from schedlab.collection import Collection
from schedlab.report.charts import boxes
from schedlab.report.model import Block, Cell, Column, Page, Section, Table, Text
from schedlab.report.studies.contradiction_texts import Doubts
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
from schedlab.report.studies.texts import how_measured, if_known, in_order, measured_table, traces
from schedlab.report.study_tables import Comparison, Line, Measured, compared_table
from schedlab.report.wording import listed
from schedlab.studies import published, select
from schedlab.studies.experiments import EXPERIMENTS, OTHERS
from schedlab.studies.figures import Figure

SCHEDULERS = {"CFS": None, "Lottery": "lottery:linux", "WRR": "wrr:linux"}
"""As the study's tables call them, and the presets that are like them. CFS is Linux's own."""
RUNS = (1, 2, 3)
"""Of each scheduler, in the study."""
POLICIES = tuple(dict.fromkeys((*EXPERIMENTS[ONE].own, *OTHERS)))

Measure = Callable[[Benchmark, str, str], Measured]
QUANTITIES: dict[str, tuple[str, int, Measure]] = {
    "throughput": ("events a second", 2, lambda found, *cell: found.throughput(*cell)),
    "mean latency": ("mean latency, ms", 3, lambda found, *cell: found.latency(*cell, MEAN)),
    "maximum latency": (
        "longest latency, ms",
        3,
        lambda found, *cell: found.latency(*cell, LONGEST),
    ),
}
"""By the published figures' quantity: heading, decimals of ours, and how it is measured."""


def page(collection: Collection) -> Page | None:
    """Study 5's page; None if nothing of it was run."""
    if not any(run.setup.experiment.startswith("s5-") for run in collection):
        return None
    found, doubts = Benchmark(collection), Doubts(5)
    return Page(
        "study-5",
        "Study 5: WRR and lottery in Linux",
        _lead(found),
        (
            Section("What was measured", (Text(_SETTING),)),
            Section("Tables 5 and 6", tuple(_tables(found, doubts))),
            Section("What the benchmark cannot see", tuple(_one_thread(found))),
            Section("Eight threads", tuple(_eight_threads(found))),
            Section("Time slices of WRR: section 3.3.3", (Text(_slices(found)),)),
            _claims(found, doubts),
        ),
    )


_SETTING = """
- **Machines.** The study changed Linux 5.15 and measured with sysbench, on a machine that it does \
not describe. Here the same benchmark runs on our own small kernel: one CPU of 1 GHz that takes a \
nanosecond for each instruction. Linux itself is not measured here yet.
- **Benchmark** (`cpubench`). A thread does *events* for a set time; an event finds the primes up to \
10,000. Its *latency* is from its beginning to its end, whoever has the CPU meanwhile.
- **Schedulers.** Weighted round-robin (`wrr:linux`) and lottery (`lottery:linux`) as in the study's \
listings. CFS is Linux's own scheduler, of which we have none: its figures are published ones only.
- **Ideal.** None: one thread that always runs leaves a scheduler nothing to do better.
"""


def _of(row: str, quantity: str, table: int) -> Figure | None:
    column = "row" if table == 5 else "column"
    found = [
        each
        for each in published(5, table)
        if getattr(each, column) == row and each.quantity == quantity
    ]
    return found[0] if found else None


def _lead(found: Benchmark) -> str:
    there = {name: _of(name, "throughput", 6) for name in SCHEDULERS}
    known = {name: figure.value for name, figure in there.items() if figure}
    apart = 100 * (max(known.values()) / min(known.values()) - 1)
    first = (
        "The study put weighted round-robin and a lottery into Linux and compared them with CFS by "
        "a benchmark of one thread that computes. There, the three are "
        f"{apart:.1f} % apart in throughput ("
        + listed([f"{name} {figure.text}" for name, figure in there.items() if figure])
        + " events a second), and from that and the longest latencies it ranks them. "
    )
    one = {f"{name}, one thread": found.throughput(ONE, policy) for name, policy in _ours().items()}
    eight = {
        f"{name}, eight threads": found.latency(EIGHT, policy, LONGEST)
        for name, policy in _ours().items()
    }

    def sentence(n: dict[str, float]) -> str:
        rates = [n[name] for name in one]
        return (
            f"Here the two are {100 * (max(rates) / min(rates) - 1):.1f} % apart, and one thread "
            "tells next to nothing of a scheduler; with eight threads the longest latency of an "
            "event is "
            + listed([f"{n[f'{name}, eight threads']:.0f} ms under {name}" for name in _ours()])
            + "."
        )

    return first + if_known({**one, **eight}, sentence)


def _ours() -> dict[str, str]:
    return {name: policy for name, policy in SCHEDULERS.items() if policy}


def _tables(found: Benchmark, doubts: Doubts) -> list[Block]:
    experiments = (ONE,)
    return [
        compared_table(
            "study-5-table-5",
            "Each run, one thread: the study's table 5",
            ("scheduler", "run"),
            [
                Line(
                    (f"{name} ({policy or 'no policy of ours'})", str(run)),
                    {
                        heading: Comparison(
                            _of(f"{name} {run}", quantity, 5),
                            _of_run(of(found, ONE, policy), run) if policy else None,
                            decimals=decimals,
                        )
                        for quantity, (heading, decimals, of) in QUANTITIES.items()
                    },
                )
                for name, policy in SCHEDULERS.items()
                for run in RUNS
            ],
            "Ours: the seed of that number. " + how_measured(found.collection, experiments),
        ),
        compared_table(
            "study-5-table-6",
            "Means of the runs, one thread: the study's table 6",
            ("scheduler",),
            [
                Line(
                    (f"{name} ({policy or 'no policy of ours'})",),
                    {
                        heading: Comparison(
                            _of(name, quantity, 6),
                            of(found, ONE, policy) if policy else None,
                            decimals=decimals,
                        )
                        for quantity, (heading, decimals, of) in QUANTITIES.items()
                    },
                )
                for name, policy in SCHEDULERS.items()
            ],
            how_measured(found.collection, experiments),
        ),
        Text(_why_other(found)),
        *doubts.at("table 5", "table 6"),
    ]


def _of_run(measured: Measured, run: int) -> Measured:
    """The value of one seed."""
    if measured.mean is None:
        return measured
    return Measured(measured.values[run - 1 : run])


def _why_other(found: Benchmark) -> str:
    there = {
        name: [
            figure.value for run in RUNS if (figure := _of(f"{name} {run}", "maximum latency", 5))
        ]
        for name in SCHEDULERS
    }
    latency = _of("WRR", "mean latency", 6)
    told = if_known(
        {"mean latency": found.latency(ONE, "wrr:linux", MEAN)},
        lambda n: (
            f"An event takes {n['mean latency']:.3f} ms here and {latency.text if latency else '–'} "
            "ms there: another CPU, not another scheduler."
        ),
    )
    worst = max(there, key=lambda name: max(there[name]))
    return (
        f"{told}\n\n**The longest latency** of table 6 is a mean of three maxima, and a single run "
        f"can make it: {worst}'s {max(there[worst]):.2f} ms in one of three. The medians of the "
        "three are "
        + listed([f"{median(values):.2f} ms ({name})" for name, values in there.items()])
        + f". {_longest_here(found)} What else ran on the study's machine in that moment is not known."
    )


def _longest_here(found: Benchmark) -> str:
    needed = {
        f"{name}: {what}": found.latency(ONE, policy, value)
        for name, policy in _ours().items()
        for what, value in (("longest", LONGEST), ("mean", MEAN))
    }
    return if_known(
        needed,
        lambda n: (
            "Here, where nothing else runs, the longest is hardly above the mean: "
            + listed(
                [
                    f"{n[f'{name}: longest']:.3f} against {n[f'{name}: mean']:.3f} ms ({name})"
                    for name in _ours()
                ]
            )
            + "."
        ),
    )


_COUNTED = (
    (Column("events a second"), 1),
    (Column("mean", "latency, ms"), 3),
    (Column("longest", "latency, ms"), 3),
    (Column("of the CPU's time, %", "the threads run"), 2),
    (Column("decisions", "scheduler"), 0),
    (Column("switches to another process", "scheduler"), 0),
    (Column("of the CPU's time, %", "scheduler"), 3),
)


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
    first = _of("CFS 1", "throughput", 5)
    latency = _of("CFS 1", "mean latency", 5)
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
        blocks.append(
            boxes(
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


def _claims(found: Benchmark, doubts: Doubts) -> Section:
    rows = [
        (
            "6.2",
            "WRR has the highest throughput, the lottery the lowest",
            _order({name: _of(name, "throughput", 6) for name in SCHEDULERS}, falling=True),
            _order_here(found, "throughput", falling=True),
        ),
        (
            "5.3",
            "mean latencies are nearly the same",
            _order({name: _of(name, "mean latency", 6) for name in SCHEDULERS}, falling=False),
            _order_here(found, "mean latency", falling=False),
        ),
        (
            "6.4",
            "longest latencies follow complexity: WRR, lottery, CFS",
            _order({name: _of(name, "maximum latency", 6) for name in SCHEDULERS}, falling=False),
            _order_here(found, "maximum latency", falling=False),
        ),
    ]
    columns = ("section", "the study says", "its figures", "here, without CFS")
    table = Table(
        "study-5-claims",
        "What the study concludes",
        tuple(Column(name, align="left") for name in columns),
        tuple(tuple(Cell(text) for text in row) for row in rows),
        pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows]),
    )
    return Section("What the study claims", (table, Text(_WITHOUT_CFS), *doubts.rest()))


_WITHOUT_CFS = """
*≈*: the difference may be chance (95 %, seed by seed). The figures are those of table 6; how \
much of ours is the schedulers' own work is told with the table of one thread.
"""


def _order(figures: Mapping[str, Figure | None], falling: bool) -> str:
    """As printed: `CFS = WRR < Lottery`."""
    known = {name: figure.value for name, figure in figures.items() if figure}
    names = sorted(known, key=lambda name: known[name], reverse=falling)
    told = names[0]
    for one, other in pairwise(names):
        sign = "=" if known[one] == known[other] else ">" if falling else "<"
        told += f" {sign} {other}"
    return told


def _order_here(found: Benchmark, quantity: str, falling: bool) -> str:
    _, decimals, of = QUANTITIES[quantity]
    values = {name: of(found, ONE, policy) for name, policy in _ours().items()}
    if any(each.mean is None for each in values.values()):
        return "; ".join(f"{name}: {each.text(decimals)}" for name, each in values.items())
    return in_order(values, falling)
