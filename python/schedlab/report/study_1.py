# SPDX-License-Identifier: MIT
"""Study 1: xv6 with priorities and with a lottery; its tables and figures beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from schedlab.report.charts import drawn, gantt
from schedlab.report.model import Block, Chart, Page, Section, Text
from schedlab.report.provenance import provenance
from schedlab.report.studies import improvements, lottery_charts, own_policies, timing_charts
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.lottery_runs import (
    SHIPPED,
    THESIS,
    LotteryRuns,
    competition,
    original,
    share_figure,
)
from schedlab.report.studies.lottery_tables import mean_difference, nearness_table, shares_table
from schedlab.report.studies.lottery_texts import finding
from schedlab.report.studies.missing import failures
from schedlab.report.studies.picks import accounts, picks_table
from schedlab.report.studies.timing_reasons import TimingReasons
from schedlab.report.studies.timing_runs import (
    PRIORITIES,
    ROUND_ROBIN,
    Suite,
    TimingRuns,
    figure,
    study_tick_ms,
    tick_text,
)
from schedlab.report.studies.timing_tables import (
    NEAR,
    in_a_row_table,
    is_off,
    suite_table,
    told_comparison,
)
from schedlab.report.study_tables import Comparison, first_trace, measure
from schedlab.report.wording import cpus, listed
from schedlab.runs.collection import Collection, Repeated
from schedlab.studies.experiments import ALL_CPUS, TIMING_TESTS
from schedlab.studies.ideal import ideal_completion
from schedlab.studies.pack import study_numbered
from schedlab.studies.shares import TESTS

TITLE = "Study 1: priorities and a lottery in xv6"
_SUITES = (ROUND_ROBIN, PRIORITIES)


def page(collection: Collection) -> Page | None:
    """None if there is no run of it."""
    timing, lottery = TimingRuns(collection), LotteryRuns(collection)
    with_timing = any(timing.there(suite) for suite in _SUITES)
    if not with_timing and not lottery.there():
        return None
    doubts = Doubts(study_numbered(1))
    sections = [Section("How to read this page", (Text(_guide(collection)),))]
    if with_timing:
        sections += [*_timing_sections(timing, doubts)]
    if lottery.there():
        sections.append(_lottery_section(lottery, doubts))
    sections += [
        _policies_section(timing, lottery),
        improvements.section(timing, lottery),
        Section("What else does not fit together", doubts.rest()),
    ]
    return Page("study-1", TITLE, _lead(timing, lottery), tuple(each for each in sections if each))


# --- the lead


def _lead(timing: TimingRuns, lottery: LotteryRuns) -> str:
    return " ".join(
        (
            "The study put a scheduler with priorities and one with a lottery into xv6 and held them"
            " against its round-robin, on one to five CPUs: how long seven tests take, how often"
            " CPUs switch, and what part of them each group of processes gets.",
            _came_out_there(),
            _comes_out_here(timing, lottery),
            *failures(timing.collection, "s1-"),
        )
    )


def _came_out_there() -> str:
    ranges = [
        _range([figure(suite, TIMING_TESTS["io-bound"], count) for count in ALL_CPUS])
        for suite in (PRIORITIES, ROUND_ROBIN)
    ]
    off = [max(_off_expected(count)) for count in (ALL_CPUS[0], ALL_CPUS[-1])]
    return (
        f"There, priorities finished the I/O-bound test in {ranges[0]} ticks against {ranges[1]},"
        " and the lottery's shares were off what the tickets say by up to"
        f" {off[0]:.0f} percentage points on one CPU and {off[1]:.0f} on five."
    )


def _range(figures: list) -> str:  # type: ignore[type-arg]
    values = [each.value for each in figures if each]
    return f"{min(values):.0f} to {max(values):.0f}"


def _off_expected(count: int) -> Iterator[float]:
    for test in TESTS:
        for row in test.rows.values():
            got = share_figure(test, row, count)
            should = share_figure(test, row, None, "expectation")
            if got and should:
                yield abs(got.value - should.value)


def _comes_out_here(timing: TimingRuns, lottery: LotteryRuns) -> str:
    parts = []
    compared = [
        told_comparison(timing, suite, test, count)
        for suite in _SUITES
        for test in TIMING_TESTS
        for count in ALL_CPUS
    ]
    known = [each for each in compared if each.here and each.here.mean is not None]
    if known:
        same = sum(not is_off(each) for each in known)
        parts.append(
            f"{same} of {len(known)} times are within {100 * NEAR:.0f} % of theirs, or a tick"
        )
        fork = TimingReasons(timing, ROUND_ROBIN).fork
        forking = sum(is_off(each) for each in known if _does_not_compute(each))
        if fork:
            parts.append(
                f"{forking} of the other {len(known) - same} are of tests that do little but fork,"
                f" which takes {fork.here_us:.0f} µs here and took {fork.there_us / 1000:.1f} ms there"
            )
    off = [mean_difference(lottery, test, 1).mean for test in TESTS]
    if all(each is not None for each in off):
        parts.append(
            "the study's lottery program gives shares that are"
            f" {fmean(each for each in off if each is not None):.1f} points off theirs on one CPU"
        )
    if not parts:
        return "Here, no run of it ended as it should, so that nothing can be compared."
    return f"Here, {'; '.join(parts)}."


def _does_not_compute(comparison: Comparison) -> bool:
    """Is its test one of those that fork, and at most sleep?"""
    theirs = comparison.study
    if theirs is None:
        return False
    rows = [TIMING_TESTS[test] for test in ("switch", "creation", "short")]
    if theirs.place == ROUND_ROBIN.place:
        rows.append(TIMING_TESTS["io-bound"])
    return theirs.row in rows


# --- how it was measured


def _guide(collection: Collection) -> str:
    return "\n".join(
        f"- {line}"
        for line in (
            "**study**: what it printed. **rerun**: what its programs told when they were run again"
            " for schedlab, on an emulator on a host of two CPUs. **here**: ours, the mean over"
            " seeds. **ideal**: what no scheduler can beat, where nothing costs time but the"
            " processes' own work and sleeps. **expected**: what the study holds to be fair.",
            f"**Ticks.** {_scale(collection)} Work, sleeps and turns have the same ratio to a tick as"
            " there, so that ticks can be compared with ticks. What does not keep it is what the"
            " kernel takes: a fork fills ten times as much of a tick of 1 ms as of one of 10 ms.",
            "A sleep of n ticks ends at the n-th tick after its beginning, wherever in a tick that was:"
            " it can be up to a tick shorter, here and there, and a time a little below the ideal.",
            "The unit of work is taken from the study: CPU-heavy on one CPU, under round-robin, is"
            f" {ideal_completion(1, TIMING_TESTS['cpu-heavy'], 1):.0f} ticks of work, because it took"
            " so long there. That cell agrees by definition; all others could differ.",
            "**Colours.** Ours is marked good if it is near the ideal: a time within"
            f" {100 * NEAR:.0f} %, or a tick; a share as near as chance allows (3.5 standard errors,"
            " were each tick of each CPU a draw).",
        )
    )


def _scale(collection: Collection) -> str:
    ticks: dict[int, set[str]] = {}
    for setup in collection.repeated:
        if setup.experiment.startswith("s1-"):
            kind = "the lottery program" if "-original-" in setup.experiment else "all else"
            ticks.setdefault(setup.tick_ns, set()).add(kind)
    lengths = listed([tick_text(length) for length in sorted(ticks)])
    said = f"A tick is {study_tick_ms():.0f} ms there, and {lengths} here"
    if len(ticks) > 1:
        said += " (" + "; ".join(
            f"{tick_text(length)}: {listed(sorted(kinds))}"
            for length, kinds in sorted(ticks.items())
        )
        said += ")"
    return said + "."


def _measured(setups: list[Repeated | None]) -> str:
    there = [each for each in setups if each is not None]
    return provenance(there) if there else "Nothing of this was run."


# --- tables 1 and 2


def _timing_sections(timing: TimingRuns, doubts: Doubts) -> Iterator[Section]:
    for suite, title in (
        (ROUND_ROBIN, "Round-robin: table 1"),
        (PRIORITIES, "Priorities: table 2"),
    ):
        if timing.there(suite):
            yield Section(title, tuple(_suite_blocks(timing, suite, doubts)))
    yield Section("Figures 1 and 2: over the number of CPUs", tuple(_timing_charts(timing)))
    yield Section("Where the context switches come from", tuple(_picks_blocks(timing)))


def _suite_blocks(timing: TimingRuns, suite: Suite, doubts: Doubts) -> Iterator[Block]:
    setups = [timing.setup(suite, test, count) for test in TIMING_TESTS for count in ALL_CPUS]
    reasons = TimingReasons(timing, suite)
    yield Text("\n".join(f"- {line}" for line in _suite_findings(timing, suite, reasons)))
    yield suite_table(
        timing,
        suite,
        reasons,
        f"Under `{suite.policy}`. {_measured(setups)} A context switch is a pick, as the study counts"
        " it, even if who is picked ran before.",
    )
    if suite is PRIORITIES:
        in_a_row = in_a_row_table(timing)
        if in_a_row is not None:
            yield in_a_row
        yield from _priority_pictures(timing)
    yield from doubts.at(suite.place)


def _suite_findings(timing: TimingRuns, suite: Suite, reasons: TimingReasons) -> Iterator[str]:
    if reasons.fork is None:
        creation = timing.measured(timing.completion, suite, "creation", 1)
        yield f"What a fork takes here is not known: Process Creation on one CPU, {creation.missing}."
    elif suite is ROUND_ROBIN:
        yield (
            f"**Three tests measure a fork.** {reasons.fork} Switch Overhead, Process Creation and Low"
            " Process Count do little else, whatever the scheduler is; I/O-bound does nothing but fork"
            " and sleep."
        )
    yield f"**Mixed Load is a constant.** {reasons.constant}"
    if suite is ROUND_ROBIN:
        yield from _same_work(timing)
        if several := _several_cpus(timing):
            yield several
    else:
        if reasons.sleepers_wait:
            yield f"**What the constant hides.** {reasons.sleepers_wait}"
        yield from (
            each for each in (_light(timing), _who_is_first(timing), _in_a_row(timing)) if each
        )
        stays = [(test, reasons.stay(test)) for test in ("cpu-heavy", "starvation")]
        for test, text in stays:
            if text:
                yield f"**{TIMING_TESTS[test]}**: {text[0].lower()}{text[1:]}"


def _same_work(timing: TimingRuns) -> Iterator[str]:
    found = [
        (count, mean, ideal_completion(1, TIMING_TESTS["cpu-heavy"], count))
        for count in ALL_CPUS
        if (mean := timing.measured(timing.completion, ROUND_ROBIN, "cpu-heavy", count).mean)
    ]
    if found:
        worst = max(found, key=lambda each: each[1] / each[2])
        yield (
            f"**Where processes compute, round-robin is ideal** to {100 * (worst[1] / worst[2] - 1):.1f}"
            f" %: CPU-heavy takes {worst[1]:.1f} ticks on {cpus([worst[0]])}, where"
            f" {worst[2]:.1f} are needed."
        )


def _light(timing: TimingRuns) -> str:
    """When the light process of the starvation check was done, which the study did not measure."""
    found = []
    for suite in _SUITES:
        numbers = timing.of_group("light", "turnaround_mean_ns")
        mean = timing.measured(numbers, suite, "starvation", 1).mean
        if mean is not None:
            found.append(f"{mean:.2f} ticks under `{suite.policy}`")
    if not found:
        return ""
    return (
        "**Nobody starves in the Starvation Check.** The study tells when all six have ended. The light"
        f" process, whom it is about, takes {listed(found)} on one CPU, from fork to exit: it is forked"
        " first."
    )


def _in_a_row(timing: TimingRuns) -> str:
    """What becomes of the priorities if all tests are run one after another."""
    told = []
    for test, name, title in (
        ("io-bound", "complete", TIMING_TESTS["io-bound"]),
        ("mixed", "ticks", TIMING_TESTS["mixed"]),
        ("mixed", "complete", f"{TIMING_TESTS['mixed']} until all have ended"),
        ("starvation", "complete", TIMING_TESTS["starvation"]),
    ):
        row = timing.in_a_row(test, 1, name)
        alone = timing.measured(timing.told_of_tests(None, name), PRIORITIES, test, 1)
        if row and row.mean is not None and alone.mean is not None:
            told.append(f"{title} {row.mean:.0f} instead of {alone.mean:.0f}")
    if not told:
        return ""
    return (
        "**Tests in a row.** Here each test is a run of its own, so that the priorities that it sets are"
        " in force. The study ran all seven in a row: after the second, PIDs are above 100, and its"
        f" scheduler takes their priorities away. Run so on one CPU, in ticks: {listed(told)}."
    )


def _who_is_first(timing: TimingRuns) -> str:
    """Of priority 5 and priority 0: under the preset, and under the same policy without quirks."""
    policies = (PRIORITIES.policy, improvements.DEFAULT)
    by_cpus = {
        count: [each for policy in policies if (each := _turnarounds(timing, policy, count))]
        for count in ALL_CPUS
    }
    count = max(by_cpus, key=lambda each: len(by_cpus[each]))
    if not by_cpus[count]:
        return ""
    return (
        "**Priority 0 is not the highest.** Level 5 is served before it. In I/O-bound on"
        f" {cpus([count])}, processes of priority 0 and of priority 5 take {listed(by_cpus[count])},"
        " in mean ticks from fork to exit; those of priority 5 are forked first."
    )


def _turnarounds(timing: TimingRuns, policy: str, count: int) -> str:
    setup = timing.setup(PRIORITIES, "io-bound", count, policy)
    zero, five = (
        measure(setup, timing.of_group(group, "turnaround_mean_ns")).mean
        for group in ("io-0", "io-5")
    )
    return f"{zero:.1f} and {five:.1f} under `{policy}`" if zero and five else ""


def _several_cpus(timing: TimingRuns) -> str:
    """What a test that has one process at a time takes on one CPU and on five, here and there."""
    counts = (ALL_CPUS[0], ALL_CPUS[-1])
    row = TIMING_TESTS["switch"]
    ours = [timing.measured(timing.completion, ROUND_ROBIN, "switch", n).mean for n in counts]
    theirs, again = (
        [figure(ROUND_ROBIN, row, count, source=source) for count in counts]
        for source in ("study", "rerun")
    )
    if None in ours or None in theirs or None in again:
        return ""
    here = " and ".join(f"{each:.1f}" for each in ours if each is not None)
    there, once_more = (
        " and ".join(each.text for each in whose if each) for whose in (theirs, again)
    )
    return (
        f"**Several CPUs of an emulator.** {row} has one process at a time, so that CPUs can hardly help"
        f" it, and should not hurt. On one and on five it takes {here} ticks here. There it took"
        f" {there}; run again on a host of two CPUs, {once_more}. So several CPUs of an emulator can cost"
        " time by themselves. How many CPUs the study's host had, and how much of its times on several"
        " CPUs is due to that, is not known."
    )


def _timing_charts(timing: TimingRuns) -> Iterator[Chart]:
    yield from timing_charts.figure_1(timing)
    chart = timing_charts.figure_2(timing)
    if chart is not None:
        yield chart
    yield from timing_charts.not_in_figure_1(timing)


def _picks_blocks(timing: TimingRuns) -> Iterator[Block]:
    pairs = accounts(timing)
    theirs = [each for each, _ in pairs if each]
    ours = [each for _, each in pairs if each]
    if not theirs or not ours:
        yield Text("The runs that would tell are missing.")
        return
    near = [
        sum(abs(each.foreseen - each.counted) <= NEAR * each.counted for each in whose)
        for whose in (theirs, ours)
    ]
    yield Text(
        "On one CPU, the context switches of tables 1 and 2 follow from two things: what the test does"
        " (each start and each waking is a pick), and how long it takes (each tick is another)."
        f" That sum is within {100 * NEAR:.0f} % of what was counted in {near[0]} of {len(theirs)} cells"
        f" of the study, and in {near[1]} of {len(ours)} of ours. So they tell of forks and of ticks,"
        " and little of schedulers. In I/O-bound of table 1, most are xv6's own: it wakes all sleepers at"
        " each tick, to let them look whether it is time."
    )
    yield picks_table(timing)


# --- pictures of single runs


def _priority_pictures(timing: TimingRuns) -> Iterator[Chart]:
    mixed = first_trace(timing.setup(PRIORITIES, "mixed", 1))
    if mixed is not None:
        yield from drawn(
            gantt,
            "study-1-mixed-sleepers",
            mixed,
            title=f"Mixed Load on one CPU under {PRIORITIES.policy}",
            caption="The processes that are to sleep 50 ticks (mix-io) have set the lowest priority,"
            " and get to their sleep only when those that compute (mix-cpu) have ended. First seed.",
            colour="group",
            unit="ticks",
        )
    most = next(
        (
            count
            for count in reversed(ALL_CPUS)
            if first_trace(timing.setup(PRIORITIES, "starvation", count))
        ),
        None,
    )
    trace = first_trace(timing.setup(PRIORITIES, "starvation", most)) if most else None
    if most and most > 1 and trace is not None:
        yield from drawn(
            gantt,
            "study-1-idle-beside-busy",
            trace,
            title=f"Starvation Check on {cpus([most])} under {PRIORITIES.policy}",
            caption="Nothing moves a process once it has been forked: CPUs are idle while processes"
            " wait for each other on another one. First seed.",
            colour="process",
            unit="ticks",
        )


# --- tables 3 to 8


def _lottery_section(lottery: LotteryRuns, doubts: Doubts) -> Section:
    return Section(
        "The lottery: tables 3 to 8",
        (
            Text(_two_ways(lottery)),
            nearness_table(lottery),
            *lottery_charts.figure_3(lottery),
            *doubts.at("section 4.3"),
        ),
        tuple(_table_section(lottery, doubts, number) for number in range(len(TESTS))),
    )


def _two_ways(lottery: LotteryRuns) -> str:
    programs = sorted(
        {
            str(run.manifest["workload"])
            for test in TESTS
            for run in lottery.collection
            if run.setup.experiment == original(test)
        }
    )
    ran = f" (`{programs[0]}` and the like)" if programs else ""
    return (
        "Each test was run in two ways. As **the study's program** has it"
        f"{ran}: processes compete from their own fork on, yield after each burst, some have little"
        " to do, and what counts is how often each group was picked. And as a competition: all start"
        " together, **all compete** to the end, and what counts is CPU time, which can be held against"
        f" the ideal share. `{THESIS}` is the study's lottery, a queue for each CPU and no process ever"
        f" moved; `{SHIPPED}` is ours."
    )


def _table_section(lottery: LotteryRuns, doubts: Doubts, number: int) -> Section:
    test = TESTS[number]
    setups = [
        lottery.setup(experiment, policy, count)
        for experiment, policy in (
            (original(test), THESIS),
            (competition(test), THESIS),
            (competition(test), SHIPPED),
        )
        for count in ALL_CPUS
    ]
    pictures = {3: lottery_charts.two_share_a_cpu, 6: lottery_charts.work_runs_out}
    wanted = drawn(pictures[test.table], lottery) if test.table in pictures else []
    return Section(
        f"Table {test.table}: {test.title}",
        (
            Text(finding(lottery, test)),
            shares_table(lottery, test, _measured(setups)),
            *wanted,
            *doubts.at(f"table {test.table}"),
        ),
    )


# --- all policies


def _policies_section(timing: TimingRuns, lottery: LotteryRuns) -> Section:
    tables: list[Block] = [
        own_policies.completion_table(timing, suite) for suite in _SUITES if timing.there(suite)
    ]
    if lottery.there():
        tables.append(own_policies.shares_table(lottery))
    return Section(
        "All policies in the same tests",
        (
            Text(
                "The study's own presets first, then every policy as we ship it. Which is best for"
                " what, and whether a difference is more than chance, is for the comparison to say."
            ),
            *tables,
        ),
    )
