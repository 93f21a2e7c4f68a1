# SPDX-License-Identifier: MIT
"""Defines the studies' suites as runs: experiments, policies, CPUs and seeds for each table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from schedlab.studies.experiment import Experiment, Part, Share
from schedlab.studies.linux_experiments import linux_experiments
from schedlab.studies.simulated import simulated

OTHERS = ("rr", "wrr", "lottery", "priority", "mlfq", "stride", "hybrid", "cfs")
"""The built-in policies with default settings, to compare under all studies' suites."""


ALL_CPUS = (1, 2, 3, 4, 5)
TIMING_TESTS = {
    "cpu-heavy": "CPU-heavy",
    "switch": "Switch Overhead",
    "io-bound": "I/O-bound",
    "mixed": "Mixed Load",
    "creation": "Process Creation",
    "short": "Low Process Count",
    "starvation": "Starvation Check",
}
"""Names in study 1's tables 1 and 2, by the program's name."""
PRIORITY_TESTS = ("io-bound", "mixed", "starvation")
"""The tests with priorities in `prioritytest`; its other tests equal those of `timingtests`."""
SLEEPING_TESTS = ("io-bound", "mixed")
"""The tests of `timingtests` whose processes sleep."""
IDLE_TESTS = ("creation", "short")
"""The tests of `timingtests` whose parent forks for most of the time, so that other CPUs are idle."""
LOTTERY_TESTS = {
    "low": 3,
    "basic": 4,
    "switch": 5,
    "starve": 6,
    "grouped": 7,
    "mixed": 8,
}
"""Tables of study 1, by the program's name."""
_LOTTERY_TESTS_OTHERS_QUICK = ("basic", "starve")
_STUDY_TICK_NS = 10_000_000
_BURST = 8300
"""Iterations between two yields that give as much work per tick as the study's single CPU did for
table 6 (bench/measurements.md).
"""
STARVE_BURSTS = {1: _BURST, 2: 10_000, 3: 15_000, 4: 25_000, 5: 25_000}
"""Iterations between two yields by number of CPUs, for the test whose processes end after a fixed number of bursts.

Among the tried lengths, these bring table 6 closest to the study's.
"""
BY_PASSES, BY_TEXT = "priority:passes", "priority:thesis"
"""Study 1's priorities as in its code, which produced its tables, and as in its text."""
BURSTS_DELETED = "s1-priority-io-bound-deleted"
"""The I/O-bound test of `prioritytest` as compiled for the study: the compiler deleted bursts without effect."""
COUNTED = "lottery:thesis placement=0"
"""The study's lottery, if placement counted the running process."""
LINEAR_LOTTERY = "lottery:equal-lfsr"
"""A lottery that searches a list for the winner, as study 5's does. The chances are those of `lottery:linux`."""
MIXED_SIZES = range(2, 41, 2)
"""Numbers of CPU-bound processes in study 4's mixed benchmark."""
_MIXED_SIZES_QUICK = (2, 6, 20, 40)
_MIXED_SIZES_OTHERS = (6, 20, 40)


PHASE_SIZES = (20, 24, 28, 32, 36, 38)
"""Numbers of CPU-bound processes (besides 40) whose rounds begin at several moments between two boosts."""
_PHASE_SIZES_QUICK = (20, 28)


_ON_THEIR_COSTS = (Share(ALL_CPUS, 1), Share(ALL_CPUS, 5))
"""The share of a test of study 1 with its machine's costs, quick and full."""


def _study_1() -> Iterable[Experiment]:
    """Five runs of each test on one to five CPUs."""
    yield from _timing_suite()
    yield from _priority_suite()
    for test in LOTTERY_TESTS:
        yield from _lottery_test(test)


def _timing_suite() -> Iterable[Experiment]:
    policies = ("rr:table-scan",)
    for test, title in TIMING_TESTS.items():
        experiment = Experiment(
            f"s1-timing-{test}",
            1,
            title,
            f"timingtests {test}",
            policies,
            quick=(Part(policies, Share(ALL_CPUS, 3)), Part(OTHERS, Share((2,), 3))),
            full=(Part(policies, Share(ALL_CPUS, 5)), Part(OTHERS, Share((1, 2, 4), 5))),
        )
        yield experiment
        slow = experiment.on_their_costs(*_ON_THEIR_COSTS)
        yield slow
        if test in SLEEPING_TESTS:
            yield slow.lacking("recheck", *_ON_THEIR_COSTS)
        if test in IDLE_TESTS:
            yield slow.lacking("scan", *_ON_THEIR_COSTS)


def _priority_suite() -> Iterable[Experiment]:
    """Yields each test on its own, with the PIDs of a machine after boot; then all in a row five
    times, as in the study.

    In the latter, the preset removes the priorities of PIDs above 100.
    """
    policies, by_text = (BY_PASSES,), (BY_TEXT,)
    for test, title in TIMING_TESTS.items():
        compared = ("priority:proposed", *OTHERS) if test in PRIORITY_TESTS else ()
        experiment = Experiment(
            f"s1-priority-{test}",
            1,
            title,
            f"prioritytest {test}",
            policies,
            quick=(Part(policies, Share(ALL_CPUS, 3)), Part(compared, Share((2,), 3))),
            full=(
                Part((*policies, *by_text), Share(ALL_CPUS, 5)),
                Part(compared, Share((1, 2, 4), 5)),
            ),
        )
        yield experiment
        yield experiment.on_their_costs(Share((), 0), Share(ALL_CPUS, 5), *policies, *by_text)
    deleted = Experiment(
        BURSTS_DELETED,
        1,
        "I/O-bound, its bursts deleted",
        "prioritytest io-bound -b 0",
        policies,
        quick=(Part(policies, Share(ALL_CPUS, 1)),),
        full=(Part(policies, Share(ALL_CPUS, 5)),),
    )
    in_a_row = Experiment(
        "s1-priority-suite",
        1,
        "all seven tests in a row, five times each",
        "prioritytest -r 5 -b 0",
        policies,
        quick=(Part(policies, Share(ALL_CPUS, 1)),),
        full=(Part((*policies, *by_text), Share(ALL_CPUS, 5)),),
    )
    yield deleted
    yield deleted.on_their_costs(*_ON_THEIR_COSTS)
    yield in_a_row
    slow = in_a_row.on_their_costs(*_ON_THEIR_COSTS, *policies, *by_text)
    yield slow
    for habit in ("recheck", "changes-wait"):
        yield replace(slow, study_policies=policies).lacking(habit, *_ON_THEIR_COSTS)


_SLOW_ORIGINALS = ("switch",)
"""The study's lottery programs that take a minute on three to five CPUs."""


def _lottery_test(test: str) -> Iterable[Experiment]:
    """Yields the test in two forms.

    The first is a competition, whose shares are comparable with the ideal. The second is the
    study's program: measured after 50 ticks of 10 ms, with processes that yield and end.
    """
    policies = ("lottery:thesis", "lottery")
    thesis = policies[:1]
    counted = (COUNTED,) if test == "low" else ()
    bursts = STARVE_BURSTS if test == "starve" else dict.fromkeys(ALL_CPUS, _BURST)
    compared = OTHERS if test in _LOTTERY_TESTS_OTHERS_QUICK else ()
    yield Experiment(
        f"s1-lottery-{test}",
        1,
        f"lottery, {test}",
        f"lotterytest {test}",
        policies,
        quick=(Part(policies, Share((1, 2, 5), 3)), Part(compared, Share((2,), 3))),
        full=(Part(policies, Share(ALL_CPUS, 5)), Part(OTHERS, Share((1, 2, 4), 5))),
        quick_options=" -t 50 -u 20",
    )
    original = Experiment(
        f"s1-lottery-original-{test}",
        1,
        f"lottery, {test}, as the study's program has it",
        f"lotterytest {test} -o 1 -t 50",
        thesis,
        quick=(
            Part(thesis, Share((1, 2) if test in _SLOW_ORIGINALS else ALL_CPUS, 1)),
            Part(counted, Share(ALL_CPUS[1:], 1)),
        ),
        full=(Part(thesis, Share(ALL_CPUS, 5)), Part(counted, Share(ALL_CPUS[1:], 5))),
        scaled=False,
        tick_ns=_STUDY_TICK_NS,
        options_on=tuple((count, f" -y {burst}") for count, burst in bursts.items()),
    )
    yield original
    yield original.on_their_costs(Share((1, 2, 5), 1), Share(ALL_CPUS, 5))


def _study_2() -> Iterable[Experiment]:
    """Five runs. The study does not state the number of CPUs; its figures correspond to two."""
    for suite, program, policies in (
        ("timing", "timingtests", ("rr:table-scan",)),
        ("priority", "prioritytest", ("priority aging_interval=0",)),
    ):
        for test, title in TIMING_TESTS.items():
            experiment = Experiment(
                f"s2-{suite}-{test}",
                2,
                title,
                f"{program} {test} -v 2",
                policies,
                quick=(Part(policies, Share((2,), 3)),),
                full=(Part(policies, Share((1, 2), 5)),),
            )
            yield experiment
            slow = experiment.on_their_costs(Share((2,), 1), Share((1, 2), 5))
            yield slow
            if (suite, test) == ("timing", "creation"):
                yield slow.lacking("exec", Share((2,), 1), Share((1, 2), 5))


def _study_3() -> Iterable[Experiment]:
    """Ten runs on three CPUs, the default of its kernel. The feedback queue's time slices have two interpretations."""
    policies = ("rr:table-scan", "lottery:equal-lfsr", "mlfq:four-quanta")
    readings = (*policies, "mlfq:whole-quanta")
    for test, title in (("cpu", "CPU-bound"), ("io", "IO-bound"), ("mixed", "Mixed")):
        few, many = Share((3,), 3), Share((3,), 10)
        experiment = Experiment(
            f"s3-{test}",
            3,
            title,
            f"study3 {test}",
            policies,
            quick=(Part(readings, many), Part(OTHERS, few)),
            full=(Part((*readings, *OTHERS), many),),
        )
        yield experiment
        yield experiment.on_their_costs(few, many)
    yield Experiment(
        "s3-inversion",
        3,
        "priority inversion",
        "study3 inversion",
        policies,
        quick=(Part((*readings, *OTHERS), Share((1,), 3)),),
        full=(Part((*readings, *OTHERS), Share((1,), 10)),),
    )


def _study_4() -> Iterable[Experiment]:
    """Study 4 on one CPU, where 20 other processes make the sleeper wait for 20 ticks. It ran once;
    only the trace needs a single run.
    """
    policies = ("rr:table-scan", "mlfq:allotment-boost")
    once = (Part(policies, Share((1,), 1)),)
    yield Experiment(
        "s4-trace",
        4,
        "three CPU-bound processes",
        "study4 trace -d 145 -i 344",
        policies,
        quick=once,
        full=once,
    )
    for size in MIXED_SIZES:
        yield _mixed_benchmark(size, policies)
    yield from _mixed_benchmark_as_theirs(policies)
    for name, title, options in (
        ("s4-sleeper", "the sleeper, right after the others", ""),
        ("s4-sleeper-late", "the sleeper, 200 ticks later", " -d 200"),
    ):
        experiment = Experiment(
            name,
            4,
            title,
            f"study4 sleeper{options}",
            policies,
            quick=(Part(policies, Share((1,), 3)),),
            full=(Part((*policies, *OTHERS), Share((1,), 5)),),
            quick_options=" -i 20",
        )
        yield experiment
        yield experiment.on_their_costs(Share((1,), 3), Share((1,), 5))


def _mixed_benchmark_as_theirs(policies: tuple[str, ...]) -> Iterable[Experiment]:
    """Yields all sizes in one boot, as the study ran them, so that the phase between boosts depends
    on earlier rounds.

    Also yields the largest size with all phases.
    """
    one, five, eight = (Share((1,), seeds) for seeds in (1, 5, 8))
    rounds = Experiment(
        "s4-rounds",
        4,
        "mixed benchmark, all rounds in one boot",
        "study4 rounds",
        policies,
        quick=(Part(policies, one),),
        full=(Part(policies, five),),
    )
    feedback = policies[1:]
    phases = Experiment(
        "s4-phases",
        4,
        "mixed benchmark, 40 CPU-bound, begun at eight moments",
        "study4 mixed -c 40 -b 480",
        feedback,
        quick=(Part(feedback, eight),),
        full=(Part(feedback, eight),),
    )
    for size in PHASE_SIZES:
        yield replace(
            phases,
            name=f"s4-phases-{size}",
            title=f"mixed benchmark, {size} CPU-bound, begun at eight moments",
            command=f"study4 mixed -c {size} -b 480",
            quick=phases.quick if size in _PHASE_SIZES_QUICK else (),
        )
    yield rounds
    yield rounds.on_their_costs(one, five)
    yield phases
    yield phases.on_their_costs(eight, eight)


def _mixed_benchmark(size: int, policies: tuple[str, ...]) -> Experiment:
    compared = OTHERS if size in _MIXED_SIZES_OTHERS else ()
    quick: tuple[Part, ...] = ()
    if size == _MIXED_SIZES_OTHERS[0]:
        quick = (Part((*policies, *OTHERS), Share((1,), 3)),)
    elif size in _MIXED_SIZES_QUICK:
        quick = (Part(policies, Share((1,), 1)),)
    return Experiment(
        f"s4-mixed-{size}",
        4,
        f"mixed benchmark, {size} CPU-bound",
        f"study4 mixed -c {size}",
        policies,
        quick=quick,
        full=(Part(policies, Share((1,), 5)), Part(compared, Share((1,), 5))),
    )


def _study_5() -> Iterable[Experiment]:
    """Three runs of one thread, where a scheduler has nothing to decide; and of eight threads."""
    policies = ("rr", "cfs", "wrr:linux", "lottery:linux")
    searched = (*policies, LINEAR_LOTTERY)
    few, many = Share((1,), 3), Share((1,), 5)
    yield Experiment(
        "s5-cpubench",
        5,
        "one thread",
        "cpubench",
        policies,
        quick=(Part(searched, few),),
        full=(Part((*searched, *OTHERS), many),),
        scaled=False,
        quick_options=" -t 250",
    )
    yield Experiment(
        "s5-cpubench-8",
        5,
        "eight threads",
        "cpubench -n 8",
        policies,
        quick=(Part((*searched, *OTHERS), few),),
        full=(Part((*searched, *OTHERS), many),),
        scaled=False,
    )
    two = Share((2,), 3)
    yield Experiment(
        "s5-wakeups",
        5,
        "message processes wake workers, beside two that compute",
        "wakeups -c 2",
        policies,
        quick=(Part((*policies, "mlfq"), two),),
        full=(Part((*policies, *OTHERS), Share((2,), 5)),),
        scaled=False,
    )
    yield from linux_experiments(OTHERS)


EXPERIMENTS = {
    experiment.name: experiment
    for of_study in (_study_1, _study_2, _study_3, _study_4, _study_5)
    for experiment in of_study()
} | {entry.experiment.name: entry.experiment for entry in simulated()}
"""All experiments by name, in the order of runs and reports."""
