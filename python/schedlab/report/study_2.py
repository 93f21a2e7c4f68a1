# SPDX-License-Identifier: MIT
"""Study 2: the notes on the way to study 1; its two lists beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedlab.report.model import Block, Page, Section, Table, Text
from schedlab.report.provenance import provenance
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.missing import failures
from schedlab.report.studies.timing_runs import (
    BASELINE,
    FIRST_PRIORITIES,
    ROUND_ROBIN,
    Suite,
    TimingRuns,
    figure,
    study_tick_ms,
    tick_text,
)
from schedlab.report.studies.timing_tables import NEAR, is_off, near
from schedlab.report.study_tables import Comparison, Kind, Line, compared_table
from schedlab.report.wording import counted, cpus, listed
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import TIMING_TESTS
from schedlab.studies.ideal import ideal_completion, ideal_told
from schedlab.studies.pack import study_numbered

TITLE = "Study 2: first notes on priorities in xv6"
ROWS = {
    "cpu-heavy": "CPU-heavy",
    "switch": "Switch overhead",
    "io-bound": "I/O-bound",
    "mixed": "Mixed load",
    "creation": "Process creation",
    "short": "Short tasks",
    "starvation": "Starvation check",
}
"""By the program's name: what the study calls its tests."""
CPUS = 2
"""The study does not say; its ticks of CPU-heavy are those of study 1 on two."""
PARTS = {
    BASELINE: "before (section 3), ticks",
    FIRST_PRIORITIES: "after (section 5), ticks",
}
_TESTS_OF = 1
"""Study 2's tests are those of study 1's table 1: under priorities, too."""
_FORKING = ("switch", "creation", "short")
_CREATED = 50
"""Processes of Process creation (section 2)."""


def page(collection: Collection) -> Page | None:
    """None if there is no run of it."""
    runs = TimingRuns(collection)
    if not any(runs.there(suite) for suite in PARTS):
        return None
    doubts = Doubts(study_numbered(2))
    return Page(
        "study-2",
        TITLE,
        _lead(runs),
        (
            Section("Before and after", tuple(_blocks(runs, collection))),
            Section("What does not fit together", doubts.rest()),
        ),
    )


def _lead(runs: TimingRuns) -> str:
    compared = [comparison(runs, suite, test, CPUS) for suite in PARTS for test in TIMING_TESTS]
    known = [each for each in compared if each.here and each.here.mean is not None]
    better = sum(
        _printed(FIRST_PRIORITIES, test) < _printed(BASELINE, test) for test in TIMING_TESTS
    )
    same = sum(not is_off(each) for each in known)
    here = (
        f"Here, {same} of {len(known)} times are within {100 * NEAR:.0f} % of theirs, or a tick;"
        f" {_priorities_here(runs)}"
        if known
        else "Here, no run of it ended as it should, so that nothing can be compared."
    )
    return " ".join((_three_sentences(better, here), *failures(runs.collection, "s2-")))


def _three_sentences(better: int, here: str) -> str:
    return (
        "The notes time seven tests in xv6 under round-robin, and again with a scheduler of strict"
        f" priorities. There, {better} of {len(TIMING_TESTS)} tests took fewer ticks afterwards, but"
        f" {_changed()} had been changed in between. {here}"
    )


def _changed() -> str:
    """Tests that are not the same before and after, by what the study says."""
    return listed([ROWS[test] for test in ("switch", "mixed", "creation")])


def _priorities_here(runs: TimingRuns) -> str:
    """Where the same test is run under both: how much priorities change."""
    found = []
    for test in ("cpu-heavy", "io-bound", "short", "starvation"):
        old, new = (comparison(runs, suite, test, CPUS).here for suite in PARTS)
        if old and new and old.mean and new.mean:
            found.append((round(100 * (new.mean / old.mean - 1)), ROWS[test]))
    if not found:
        return "which of the two is faster, the runs do not tell."
    least, most = min(found), max(found)
    return (
        f"in the {counted(len(found), 'test')} that stayed the same, priorities change the time by"
        f" {_signed(least[0])} % ({least[1]}) to {_signed(most[0])} % ({most[1]})."
    )


def _signed(percent: int) -> str:
    return f"{percent:+d}" if percent else "0"


def _printed(suite: Suite, test: str) -> float:
    found = figure(suite, ROWS[test], None)
    return found.value if found else 0.0


def _blocks(runs: TimingRuns, collection: Collection) -> Iterator[Block]:
    yield _table(runs, collection)
    yield Text("\n".join(f"- {line}" for line in _findings(runs)))


def _table(runs: TimingRuns, collection: Collection) -> Table:
    counts = sorted(
        {
            setup.cpus
            for setup in collection.repeated
            if setup.experiment.startswith("s2-") and setup.machine
        }
        | {CPUS}
    )
    lines = [
        Line(
            (ROWS[test], str(count)),
            {part: comparison(runs, suite, test, count) for suite, part in PARTS.items()},
        )
        for test in TIMING_TESTS
        for count in counts
    ]
    setups = [
        setup
        for suite in PARTS
        for test in TIMING_TESTS
        for count in counts
        if (setup := runs.setup(suite, test, count))
    ]
    ticks = listed([tick_text(each) for each in sorted({s.setup.tick_ns for s in setups})])
    return compared_table(
        "study-2-lists",
        "The two lists",
        ("test", "CPUs"),
        lines,
        f"Before: `{BASELINE.policy}`. After: `{FIRST_PRIORITIES.policy}` with `aging_interval` 0:"
        " strict priorities and nothing else. The study does not say on how many CPUs it ran; its"
        f" figures stand beside ours of {cpus([CPUS])}. A tick is {study_tick_ms():.0f} ms there and"
        f" {ticks} here, with the same ratio of work to tick. "
        + (provenance(setups) if setups else "Nothing of this was run."),
    )


def comparison(runs: TimingRuns, suite: Suite, test: str, count: int) -> Comparison:
    """A cell of a list: the study's, beside ours on two CPUs, ours, and the ideal."""
    tells_sleepers = suite == FIRST_PRIORITIES and test == "mixed"
    row = TIMING_TESTS[test]
    ideal = (ideal_told if tells_sleepers else ideal_completion)(_TESTS_OF, row, count)
    numbers = runs.told if tells_sleepers else runs.completion
    found = Comparison(
        study=figure(suite, ROWS[test], None) if count == CPUS else None,
        here=runs.measured(numbers, suite, test, count),
        ideal=ideal,
        near=near(ideal),
        differs="percent",
    )
    notes: dict[Kind, str] = {}
    if tells_sleepers:
        notes["here"] = (
            "A constant: the least time of those that sleep, whatever the scheduler does."
        )
    elif is_off(found):
        notes["here"] = _reason(runs, suite, test, count) or "Not known."
    return replace(found, notes=notes)


def _reason(runs: TimingRuns, suite: Suite, test: str, count: int) -> str:
    """Of a time that is not near theirs."""
    ticks = runs.measured(runs.completion, suite, test, count).mean
    processes = runs.measured(runs.processes, suite, test, count).mean
    setup = runs.setup(suite, test, count)
    theirs = figure(suite, ROWS[test], None)
    if not ticks or not processes or setup is None or theirs is None:
        return ""
    here_us = setup.setup.tick_ns / 1000
    there_ms = study_tick_ms()
    if test in _FORKING:
        does = "start a program each" if _starts_programs(suite, test) else "do next to nothing"
        return (
            f"{processes:.0f} processes that {does}: {theirs.value / processes * there_ms:.1f} ms"
            f" each there, {ticks / processes * here_us:.0f} µs here."
        )
    if test == "io-bound":
        slept = ideal_completion(_TESTS_OF, TIMING_TESTS[test], count)
        return (
            f"The sleeps take {slept:.0f} ticks. The rest is"
            f" {(theirs.value - slept) / processes * there_ms:.1f} ms there, and"
            f" {(ticks - slept) / processes * here_us:.0f} µs here, for each of {processes:.0f}"
            " processes: about a fork."
        )
    fork_there = _printed(FIRST_PRIORITIES, "creation") / _CREATED
    return (
        f"Not known, but for {processes:.0f} forks, which take {processes * fork_there:.1f} ticks there"
        " (Process creation, after)."
    )


def _starts_programs(suite: Suite, test: str) -> bool:
    return suite == BASELINE and test == "creation"


def _findings(runs: TimingRuns) -> Iterator[str]:
    yield from _each(runs, "switch", "Fewer processes, not faster switches")
    yield from _each(runs, "creation", "No program to start")
    whole = runs.measured(runs.completion, FIRST_PRIORITIES, "mixed", CPUS).mean
    before = runs.measured(runs.completion, BASELINE, "mixed", CPUS).mean
    if whole and before:
        yield (
            "**Mixed load tells two different times.** Before, it is the time until all have ended;"
            f" here {before:.1f} ticks. After, it is the least time of those that sleep. Measured as"
            f" before, it is {whole:.1f} ticks under priorities here{_why_so_long(runs)}."
        )
    if runs.there(ROUND_ROBIN):
        yield (
            "Study 1 is the same work finished, with seven tests under both schedulers on one to five"
            " CPUs: [its table 1](#study-1-table-1)."
        )


def _why_so_long(runs: TimingRuns) -> str:
    numbers = runs.of_group("mix-io", "waiting_max_ns")
    wait = runs.measured(numbers, FIRST_PRIORITIES, "mixed", CPUS).mean
    if not wait:
        return ""
    return (
        ": those that are to sleep set the lowest priority first, and wait up to"
        f" {wait:.0f} ticks for the others before they begin to sleep"
    )


def _each(runs: TimingRuns, test: str, title: str) -> Iterator[str]:
    """What one process of a test takes, before and after."""
    told = []
    for suite, when in ((BASELINE, "before"), (FIRST_PRIORITIES, "after")):
        ticks = runs.measured(runs.completion, suite, test, CPUS).mean
        processes = runs.measured(runs.processes, suite, test, CPUS).mean
        if not ticks or not processes:
            return
        told.append(
            f"{when} {processes:.0f} in {_printed(suite, test):.0f} ticks,"
            f" {_printed(suite, test) / processes:.2f} each (here {ticks:.1f}, {ticks / processes:.3f})"
        )
    yield f"**{title}.** {ROWS[test]}, processes: {'; '.join(told)}."
