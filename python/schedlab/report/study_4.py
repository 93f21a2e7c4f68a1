# SPDX-License-Identifier: MIT
"""Study 4: from round-robin to a feedback queue."""

from __future__ import annotations

import polars as pl

from schedlab.collection import Collection
from schedlab.report.charts import levels
from schedlab.report.model import Block, Cell, Column, Page, Section, Table, Text
from schedlab.report.studies import mixed_benchmark
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.mixed_benchmark import SCHEDULERS, Benchmark
from schedlab.report.studies.texts import (
    cell,
    how_measured,
    if_known,
    measured_table,
    of_rows,
    traces,
)
from schedlab.report.studies.ticks import at_ticks, begin_tick, boosts, turns, usual
from schedlab.report.study_tables import Comparison, Line, Measured, compared_table, measure
from schedlab.report.wording import listed
from schedlab.studies import select
from schedlab.studies.experiments import MIXED_SIZES, OTHERS
from schedlab.studies.figures import Figure
from schedlab.studies.ideal import INTERACTIVE_TICKS, SLEEPER_TICKS, STUDY_4_WORK
from schedlab.trace import Trace

CPUS = 1
TRACE = "s4-trace"
SLEEPERS = {
    "s4-sleeper": "right after the others",
    "s4-sleeper-late": "200 ticks after the others",
}
"""When the sleeper starts."""


def page(collection: Collection) -> Page | None:
    """Study 4's page; None if nothing of it was run."""
    if not any(run.setup.experiment.startswith("s4-") for run in collection):
        return None
    doubts = Doubts(4)
    return Page(
        "study-4",
        "Study 4: from round-robin to a feedback queue",
        _lead(collection),
        (
            Section("What was measured", (Text(_introduction()),)),
            _correctness(collection, doubts),
            mixed_benchmark.section(collection, doubts),
            _sleeper(collection, doubts),
            _claims(collection, doubts),
        ),
    )


def _introduction() -> str:
    few, many = 2, 20
    ends = [mixed_benchmark.published(size, "RR", "CPU-bound", "authors") for size in (few, many)]
    told = "The study's CPU-bound process counts to 200 million. "
    if ends[0] and ends[1]:
        told += (
            f"In its authors' output {few} of them take {ends[0].text} ticks under round-robin and "
            f"{many} take {ends[1].text}: ({ends[1].text} − {ends[0].text}) ÷ {many - few} = "
            f"{(ends[1].value - ends[0].value) / (many - few):.1f} for each. "
        )
    told += f"So ours compute {STUDY_4_WORK:.0f} ticks; for the trace, which shows two boosts, 350."
    return f"{_SETTING}- **Work.** {told}\n"


_SETTING = """
- **Schedulers.** Round-robin over the process table (`rr:table-scan`), and the study's feedback \
queue (`mlfq:allotment-boost`): four levels with slices of 2, 4, 8 and 32 ticks and allotments of \
8, 16 and 32; every 480 ticks all rise to the top. One CPU.
- **Experiments.** Three CPU-bound processes, traced tick by tick; two interactive processes beside \
2 to 40 CPU-bound ones; a process that sleeps 5 ticks beside 20 CPU-bound ones.
"""


def _lead(collection: Collection) -> str:
    found = Benchmark(collection)
    size = max(MIXED_SIZES)
    there = {
        name: mixed_benchmark.published(size, name, "interactive", "authors") for name in SCHEDULERS
    }
    told = (
        "The study gave xv6 a feedback queue (MLFQ) with four levels and a boost, and asked how "
        "interactive processes fare beside many that compute. "
    )
    rr, mlfq = there["RR"], there["MLFQ"]
    if rr and mlfq:
        told += (
            f"There, beside {size} of them, they end after {rr.text} ticks under round-robin and "
            f"after {mlfq.text} under MLFQ. "
        )
    needed = {name: found.mean(size, policy, "interactive") for name, policy in SCHEDULERS.items()}
    return told + if_known(
        needed,
        lambda n: (
            f"Here they end after {n['RR']:,.0f} and {n['MLFQ']:,.0f} ticks, of which "
            f"{INTERACTIVE_TICKS:.0f} are their own sleeps: the feedback queue "
            "serves them first, but only once the others have sunk below them."
        ),
    )


def _correctness(collection: Collection, doubts: Doubts) -> Section:
    blocks: list[Block] = [Text(_TRACED)]
    for number, scheduler in ((8, "RR"), (7, "MLFQ")):
        kept = traces(collection.one(TRACE, SCHEDULERS[scheduler], CPUS), most=1)
        if not kept:
            blocks.append(Text(f"Figure {number}: {_why_not(collection, scheduler)}.", "note"))
            continue
        run, trace = kept[0]
        pids = [int(p) for p in run.metrics().processes.filter(pl.col("group") == "cpu")["pid"]]
        ticks = at_ticks(trace, pids)
        blocks.append(
            levels(
                f"study-4-figure-{number}",
                trace,
                title=f"Three CPU-bound processes under {scheduler}: the study's figure {number}",
                caption=f"Seed {run.seed}, tick {trace.header.tick_ns / 1e6:g} ms.",
                end_ns=_first_ticks(trace) if scheduler == "RR" else None,
            )
        )
        if scheduler == "RR":
            blocks.append(Text(_about_turns(ticks)))
        else:
            blocks += [_rules(ticks), Text(_about_boosts(ticks, begin_tick(trace)))]
    return Section(
        "Correctness: figures 7 and 8",
        (*blocks, *doubts.named("rising-by-waking", "slice-is-allotment")),
    )


_SHOWN_TICKS = 60
"""Under round-robin all is said in these."""


def _first_ticks(trace: Trace) -> int:
    return (begin_tick(trace) + _SHOWN_TICKS) * trace.header.tick_ns


_TRACED = """
The study's kernel printed at each tick which process ran and on what level. Here that is read from \
the trace: who has the CPU in the middle of each tick, and what the policy remarked when it picked \
it.
"""


def _why_not(collection: Collection, scheduler: str) -> str:
    setup = collection.one(TRACE, SCHEDULERS[scheduler], CPUS)
    measured = measure(setup, {})
    if measured.failed:
        return f"{measured.missing}: {measured.why}"
    return "the trace is not there" if setup else "not run"


def _about_turns(ticks: pl.DataFrame) -> str:
    (figure,) = select(study=4, place="section 4.1", quantity="turn")
    length, part = usual(turns(ticks)["length"])
    return (
        f"In the study each of the three runs for {figure.text} tick at a time. Here "
        f"{100 * part:.0f} % of the turns last {length}."
    )


def _rules(ticks: pl.DataFrame) -> Table:
    """What the study set for each level, and what the trace shows."""
    raised = boosts(ticks)
    first = ticks.filter(pl.col("machine_tick") < raised[0]) if raised else ticks
    all_turns = turns(ticks)
    rows, behind = [], []
    for level in range(3, -1, -1):
        length, part = usual(all_turns.filter(pl.col("level") == level)["length"])
        stay, of_all = usual(first.filter(pl.col("level") == level).group_by("pid").len()["len"])
        slice_set, allotment_set = (_setting(level, name) for name in ("slice", "allotment"))
        rows.append(
            (
                Cell(str(level)),
                Cell(slice_set),
                Cell(f"{length} ({100 * part:.0f} %)"),
                Cell(allotment_set),
                Cell(f"{stay} ({100 * of_all:.0f} %)" if level else "–", "plain"),
            )
        )
        behind.append(
            {
                "level": level,
                "slice": slice_set,
                "usual turn": length,
                "part of turns": part,
                "allotment": allotment_set,
                "stay": stay if level else None,
            }
        )
    return Table(
        "study-4-levels",
        "The levels, as set and as seen",
        (
            Column("level", align="left"),
            Column("set", "turn, ticks"),
            Column("commonest in the trace", "turn, ticks"),
            Column("set", "allotment, ticks"),
            Column("used before the first boost", "allotment, ticks"),
        ),
        tuple(rows),
        pl.DataFrame(behind),
        "In brackets: the part of all turns on the level that last so long, and of the processes "
        "that stay so long. Two turns of one process on end count as one.",
    )


def _setting(level: int, column: str) -> str:
    found = [
        each.text
        for each in select(study=4, place="section 3.2.1", kind="setting")
        if each.row == f"priority {level}" and each.column == column
    ]
    return found[0] if found else "none"


def _about_boosts(ticks: pl.DataFrame, begin: int) -> str:
    bounds = {
        each.column.split(",")[0]: each.text
        for each in select(study=4, place="section 4.1", quantity="time of a boost, bound")
    }
    (period,) = select(study=4, place="section 3.2.1", quantity="boost period")
    raised = boosts(ticks)
    told = (
        f"In the study all rise before tick {bounds['first']} and again after tick "
        f"{bounds['second']}. "
    )
    if not raised:
        return told + "In this trace nobody rises."
    seen = listed([str(tick) for tick in raised])
    return (
        f"{told}Here they rise at the machine's ticks {seen}, multiples of {period.text}; the run "
        f"begins at tick {begin}, so these are its ticks "
        f"{listed([str(tick - begin) for tick in raised])}. A boost counts from the start of the "
        "machine. If the figure counts from the start of the run, the study's was started at least "
        f"{int(period.text) - int(bounds['first'])} ticks after its machine, as when a "
        "command is typed at a shell."
    )


def _sleeper(collection: Collection, doubts: Doubts) -> Section:
    lines = []
    for name, when in SLEEPERS.items():
        for scheduler, policy in SCHEDULERS.items():
            first = name == "s4-sleeper"
            lines.append(
                Line(
                    (when, scheduler),
                    {
                        "slept, ticks": Comparison(
                            _published_sleep(scheduler, "study") if first else None,
                            _slept(collection, name, policy),
                            SLEEPER_TICKS,
                            decimals=0,
                        ),
                        "fork to end, ticks": Comparison(
                            rerun=_published_sleep(scheduler, "rerun") if first else None,
                            here=_turnaround(collection, name, policy),
                        ),
                    },
                )
            )
    table = compared_table(
        "study-4-sleeper",
        "A process that sleeps 5 ticks beside 20 that compute",
        ("the sleeper starts", "scheduler"),
        lines,
        how_measured(collection, SLEEPERS),
    )
    return Section(
        "The sleeper: section 4.3",
        (
            table,
            Text(_about_sleeper(collection)),
            *doubts.at("section 4.3"),
            *_own_sleepers(collection),
        ),
    )


def _published_sleep(scheduler: str, source: str) -> Figure | None:
    quantity = "sleep" if source == "study" else "turnaround"
    found = [
        each
        for each in select(study=4, place="section 4.3", kind="measurement", quantity=quantity)
        if each.column == scheduler and each.source == source
    ]
    return found[0] if found else None


def _of_sleeper(collection: Collection, name: str, policy: str, value: pl.Expr) -> Measured:
    rows = collection.processes
    if len(rows):
        rows = rows.filter(pl.col("group") == "sleeper")
    ticks = (value / pl.col("tick_ns")).first()
    return measure(collection.one(name, policy, CPUS), of_rows(collection, rows, ticks))


def _slept(collection: Collection, name: str, policy: str) -> Measured:
    """From the call of sleep() until it runs again: all that it does after it first ran."""
    return _of_sleeper(collection, name, policy, pl.col("turnaround_ns") - pl.col("response_ns"))


def _turnaround(collection: Collection, name: str, policy: str) -> Measured:
    return _of_sleeper(collection, name, policy, pl.col("turnaround_ns"))


def _about_sleeper(collection: Collection) -> str:
    waited = pl.col("wakeup_latency_max_ns")
    told = []
    for name, when in SLEEPERS.items():
        needed = {
            f"{when}, {scheduler}": _of_sleeper(collection, name, policy, waited)
            for scheduler, policy in SCHEDULERS.items()
        }
        told.append(
            if_known(
                needed,
                lambda n, when=when: (  # type: ignore[misc]
                    f"Started {when}, it waits after its wake-up for "
                    f"{n[f'{when}, RR']:.1f} ticks under round-robin and "
                    f"{n[f'{when}, MLFQ']:.1f} under MLFQ."
                ),
            )
        )
    return (
        " ".join(told)
        + " What it waits for is a turn of everybody who goes before it. Round-robin lets all go "
        "before it, whenever it comes. Under MLFQ it is those on the highest level, with turns of "
        "2 ticks; each CPU-bound process is there for its first 8 ticks, 160 ticks for all 20. "
        + _about_five(collection)
    )


def _about_five(collection: Collection) -> str:
    """Do the study's 5 ticks come out, and when?"""
    policy = SCHEDULERS["MLFQ"]
    needed = {when: _slept(collection, name, policy) for name, when in SLEEPERS.items()}
    figure = _published_sleep("MLFQ", "study")
    asked = figure.text if figure else ""

    def sentence(n: dict[str, float]) -> str:
        met = [when for when in n if f"{n[when]:.0f}" == asked]
        told = listed([f"{n[when]:.0f} if it starts {when}" for when in n])
        if not met:
            return f"The study's {asked} ticks do not come out: it sleeps {told}."
        return (
            f"So the study's {asked} ticks come out if it starts {listed(met)}: it sleeps {told}."
        )

    return if_known(needed, sentence) + _about_rerun(collection)


def _about_rerun(collection: Collection) -> str:
    there = {name: _published_sleep(name, "rerun") for name in SCHEDULERS}
    needed = {
        name: _turnaround(collection, "s4-sleeper", policy) for name, policy in SCHEDULERS.items()
    }
    return "\n\n" + if_known(
        needed,
        lambda n: (
            "The rerun's times from fork to end are "
            + listed(
                [
                    f"{figure.value / n[name]:.1f} times ours ({name})"
                    for name, figure in there.items()
                    if figure
                ]
            )
            + ": another machine's ticks; why so many more is not known."
        ),
    )


def _own_sleepers(collection: Collection) -> list[Block]:
    policies = [
        policy for policy in OTHERS if any(collection.one(name, policy, CPUS) for name in SLEEPERS)
    ]
    if not policies:
        return []
    return [
        measured_table(
            "study-4-sleeper-policies",
            "How long the sleeper sleeps under the policies as shipped, ticks",
            "policy",
            [(Column(when, "started"), 0) for when in SLEEPERS.values()],
            {
                policy: [_slept(collection, name, policy) for name in SLEEPERS]
                for policy in policies
            },
        )
    ]


def _claims(collection: Collection, doubts: Doubts) -> Section:
    found = Benchmark(collection)
    claims = mixed_benchmark.claims(found)
    for scheduler, policy in SCHEDULERS.items():
        figure = _published_sleep(scheduler, "study")
        claims.append(
            (
                "4.3",
                f"under {scheduler} a sleep of 5 ticks beside 20 others lasts so many",
                figure.text if figure else "–",
                _slept(collection, "s4-sleeper", policy),
            )
        )
    columns = ("section", "the study says", "its figures", "here")
    table = Table(
        "study-4-claims",
        "Statements of section 4",
        tuple(
            Column(name, align="right" if number > 1 else "left")
            for number, name in enumerate(columns)
        ),
        tuple(
            (Cell(place), Cell(says), Cell(there), cell(here, 2 if "ratio" in says else 1))
            for place, says, there, here in claims
        ),
        pl.DataFrame(
            [
                dict(zip(columns, (place, says, there, here.mean), strict=True))
                for place, says, there, here in claims
            ]
        ),
    )
    return Section("What the study claims", (table, *doubts.rest()))
