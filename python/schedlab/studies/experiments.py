# SPDX-License-Identifier: MIT
"""Defines the studies' suites as runs: experiments, policies, CPUs and seeds for each table."""

from collections.abc import Iterable
from dataclasses import replace

from schedlab.studies.experiment import Experiment, PolicyGroup, RunGrid
from schedlab.studies.linux_experiments import linux_experiments
from schedlab.studies.lottery_tests import TESTS_BY_NAME
from schedlab.studies.simulated import simulated_experiments

DEFAULT_POLICIES = ("rr", "wrr", "lottery", "priority", "mlfq", "stride", "hybrid", "cfs")
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
_QUICK_COMPARED_LOTTERY_TESTS = ("basic", "starve")
_STUDY_TICK_NS = 10_000_000
_BURST_ITERATIONS = 8300
"""Iterations between two yields that give as much work per tick as the study's single CPU did for
table 6 (bench/measurements.md).
"""
STARVE_BURSTS = {1: _BURST_ITERATIONS, 2: 10_000, 3: 15_000, 4: 25_000, 5: 25_000}
"""Iterations between two yields by number of CPUs, for the test whose processes end after a fixed number of bursts.

Among the tried lengths, these bring table 6 closest to the study's.
"""
PRIORITY_AS_CODED, PRIORITY_AS_DESCRIBED = "priority:passes", "priority:thesis"
"""Study 1's priorities as in its code, which produced its tables, and as in its text."""
IO_WITHOUT_BURSTS = "s1-priority-io-bound-deleted"
"""The I/O-bound test of `prioritytest` as compiled for the study: the compiler deleted bursts without effect."""
LOTTERY_COUNTING_RUNNING = "lottery:thesis placement=0"
"""The study's lottery, if placement counted the running process."""
MIXED_EQUAL = "s1-priority-mixed-equal"
"""Study 1's Mixed Load, if no process sets a priority."""
STARVE_ENDLESS = "s1-lottery-original-starve-endless"
"""Study 1's program for table 6, if its processes did not end after a fixed number of bursts."""
BALANCED_PRIORITY = f"{PRIORITY_AS_CODED} balancing=1"
"""Study 1's priorities, if processes changed their CPUs."""
BALANCED_TESTS = ("cpu-heavy", "mixed", "starvation")
"""The tests of `prioritytest` that also run with balancing."""
MIXED_SWAPPED = "s2-priority-mixed-swapped"
"""Study 2's Mixed Load, if processes that compute have the lowest priority."""
UNREFRESHED_QUANTA = "mlfq:four-quanta release=0"
"""Study 3's feedback queue, if a process that blocks keeps the rest of its quantum."""
LINEAR_LOTTERY = "lottery:equal-lfsr"
"""A lottery that searches a list for the winner, as study 5's does. The chances are those of `lottery:linux`."""
MIXED_SIZES = range(2, 41, 2)
"""Numbers of CPU-bound processes in study 4's mixed benchmark."""
_QUICK_MIXED_SIZES = (2, 6, 20, 40)
_COMPARED_MIXED_SIZES = (6, 20, 40)


PHASE_SIZES = (20, 24, 28, 32, 36, 38)
"""Numbers of CPU-bound processes (besides 40) whose rounds begin at several moments between two boosts."""
_QUICK_PHASE_SIZES = (20, 28)


_GRIDS_WITH_STUDY_COSTS = (RunGrid(ALL_CPUS, 1), RunGrid(ALL_CPUS, 5))
"""The share of a test of study 1 with its machine's costs, quick and full."""


def _study_1_experiments() -> Iterable[Experiment]:
    """Five runs of each test on one to five CPUs."""
    yield from _timing_experiments()
    yield from _priority_experiments()
    for test in TESTS_BY_NAME:
        yield from _lottery_experiments(test)


def _timing_experiments() -> Iterable[Experiment]:
    """Yields the tests of `timingtests`, and their repetitions with the study costs."""
    policies = ("rr:table-scan",)
    for test, title in TIMING_TESTS.items():
        experiment = Experiment(
            f"s1-timing-{test}",
            1,
            title,
            f"timingtests {test}",
            policies,
            quick=(
                PolicyGroup(policies, RunGrid(ALL_CPUS, 3)),
                PolicyGroup(DEFAULT_POLICIES, RunGrid((2,), 3)),
            ),
            full=(
                PolicyGroup(policies, RunGrid(ALL_CPUS, 5)),
                PolicyGroup(DEFAULT_POLICIES, RunGrid((1, 2, 4), 5)),
            ),
        )
        yield experiment
        with_study_costs = experiment.with_study_costs(*_GRIDS_WITH_STUDY_COSTS)
        yield with_study_costs
        if test in SLEEPING_TESTS:
            yield with_study_costs.without_cost_of("recheck", *_GRIDS_WITH_STUDY_COSTS)
        if test in IDLE_TESTS:
            yield with_study_costs.without_cost_of("scan", *_GRIDS_WITH_STUDY_COSTS)


def _priority_experiments() -> Iterable[Experiment]:
    """Yields each test on its own, with the PIDs of a machine after boot; then all in a row five
    times, as in the study.

    In the latter, the preset removes the priorities of PIDs above 100.
    """
    policies, described_policies = (PRIORITY_AS_CODED,), (PRIORITY_AS_DESCRIBED,)
    for test, title in TIMING_TESTS.items():
        compared_policies = (
            ("priority:proposed", *DEFAULT_POLICIES) if test in PRIORITY_TESTS else ()
        )
        balanced_policies = (BALANCED_PRIORITY,) if test in BALANCED_TESTS else ()
        experiment = Experiment(
            f"s1-priority-{test}",
            1,
            title,
            f"prioritytest {test}",
            policies,
            quick=(
                PolicyGroup(policies, RunGrid(ALL_CPUS, 3)),
                PolicyGroup(balanced_policies, RunGrid(ALL_CPUS[1:], 1)),
                PolicyGroup(compared_policies, RunGrid((2,), 3)),
            ),
            full=(
                PolicyGroup((*policies, *described_policies), RunGrid(ALL_CPUS, 5)),
                PolicyGroup(balanced_policies, RunGrid(ALL_CPUS[1:], 5)),
                PolicyGroup(compared_policies, RunGrid((1, 2, 4), 5)),
            ),
        )
        yield experiment
        yield experiment.with_study_costs(
            RunGrid((), 0), RunGrid(ALL_CPUS, 5), *policies, *described_policies
        )
    yield Experiment(
        MIXED_EQUAL,
        1,
        "Mixed Load, all of one priority",
        "timingtests mixed",
        policies,
        quick=(PolicyGroup(policies, RunGrid((1,), 1)),),
        full=(PolicyGroup(policies, RunGrid((1,), 5)),),
    )
    without_bursts = Experiment(
        IO_WITHOUT_BURSTS,
        1,
        "I/O-bound, its bursts deleted",
        "prioritytest io-bound -b 0",
        policies,
        quick=(PolicyGroup(policies, RunGrid(ALL_CPUS, 1)),),
        full=(PolicyGroup(policies, RunGrid(ALL_CPUS, 5)),),
    )
    in_a_row = Experiment(
        "s1-priority-suite",
        1,
        "all seven tests in a row, five times each",
        "prioritytest -r 5 -b 0",
        policies,
        quick=(PolicyGroup(policies, RunGrid(ALL_CPUS, 1)),),
        full=(PolicyGroup((*policies, *described_policies), RunGrid(ALL_CPUS, 5)),),
    )
    yield without_bursts
    yield without_bursts.with_study_costs(*_GRIDS_WITH_STUDY_COSTS)
    yield in_a_row
    with_study_costs = in_a_row.with_study_costs(
        *_GRIDS_WITH_STUDY_COSTS, *policies, *described_policies
    )
    yield with_study_costs
    for omitted_habit in ("recheck", "changes-wait"):
        yield replace(with_study_costs, study_policies=policies).without_cost_of(
            omitted_habit, *_GRIDS_WITH_STUDY_COSTS
        )


_SLOW_ORIGINAL_TESTS = ("switch",)
"""The study's lottery programs that take a minute on three to five CPUs."""


def _lottery_experiments(test: str) -> Iterable[Experiment]:
    """Yields the test in two forms.

    The first is a competition, whose shares are comparable with the ideal. The second is the
    study's program: measured after 50 ticks of 10 ms, with processes that yield and end.
    """
    policies = ("lottery:thesis", "lottery")
    thesis_policy = policies[:1]
    counting_policies = (LOTTERY_COUNTING_RUNNING,) if test == "low" else ()
    bursts = STARVE_BURSTS if test == "starve" else dict.fromkeys(ALL_CPUS, _BURST_ITERATIONS)
    compared_policies = DEFAULT_POLICIES if test in _QUICK_COMPARED_LOTTERY_TESTS else ()
    yield Experiment(
        f"s1-lottery-{test}",
        1,
        f"lottery, {test}",
        f"lotterytest {test}",
        policies,
        quick=(
            PolicyGroup(policies, RunGrid((1, 2, 5), 3)),
            PolicyGroup(compared_policies, RunGrid((2,), 3)),
        ),
        full=(
            PolicyGroup(policies, RunGrid(ALL_CPUS, 5)),
            PolicyGroup(DEFAULT_POLICIES, RunGrid((1, 2, 4), 5)),
        ),
        quick_options=" -t 50 -u 20",
    )
    original = Experiment(
        f"s1-lottery-original-{test}",
        1,
        f"lottery, {test}, as the study's program has it",
        f"lotterytest {test} -o 1 -t 50",
        thesis_policy,
        quick=(
            PolicyGroup(
                thesis_policy, RunGrid((1, 2) if test in _SLOW_ORIGINAL_TESTS else ALL_CPUS, 1)
            ),
            PolicyGroup(counting_policies, RunGrid(ALL_CPUS[1:], 1)),
        ),
        full=(
            PolicyGroup(thesis_policy, RunGrid(ALL_CPUS, 5)),
            PolicyGroup(counting_policies, RunGrid(ALL_CPUS[1:], 5)),
        ),
        scales_with_tick=False,
        tick_ns=_STUDY_TICK_NS,
        options_on=tuple((count, f" -y {burst}") for count, burst in bursts.items()),
    )
    yield original
    yield original.with_study_costs(RunGrid((1, 2, 5), 1), RunGrid(ALL_CPUS, 5))
    if test == "starve":
        yield replace(
            original,
            name=STARVE_ENDLESS,
            title=f"{original.title}, but none ends",
            command=f"{original.command} -n 1000000000",
        )


def _study_2_experiments() -> Iterable[Experiment]:
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
                quick=(PolicyGroup(policies, RunGrid((2,), 3)),),
                full=(PolicyGroup(policies, RunGrid((1, 2), 5)),),
            )
            yield experiment
            with_study_costs = experiment.with_study_costs(RunGrid((2,), 1), RunGrid((1, 2), 5))
            yield with_study_costs
            if (suite, test) == ("timing", "creation"):
                yield with_study_costs.without_cost_of("exec", RunGrid((2,), 1), RunGrid((1, 2), 5))
            if (suite, test) == ("priority", "mixed"):
                yield replace(
                    experiment,
                    name=MIXED_SWAPPED,
                    title=f"{title}, the priorities exchanged",
                    command=f"{experiment.command} -x 1",
                )


def _study_3_experiments() -> Iterable[Experiment]:
    """Ten runs on three CPUs, the default of its kernel. The feedback queue has three interpretations."""
    policies = ("rr:table-scan", "lottery:equal-lfsr", "mlfq:four-quanta")
    interpretations = (*policies, "mlfq:whole-quanta")
    for test, title in (("cpu", "CPU-bound"), ("io", "IO-bound"), ("mixed", "Mixed")):
        few_seeds, many_seeds = RunGrid((3,), 3), RunGrid((3,), 10)
        experiment = Experiment(
            f"s3-{test}",
            3,
            title,
            f"study3 {test}",
            policies,
            quick=(
                PolicyGroup((*interpretations, UNREFRESHED_QUANTA), many_seeds),
                PolicyGroup(DEFAULT_POLICIES, few_seeds),
            ),
            full=(
                PolicyGroup((*interpretations, UNREFRESHED_QUANTA, *DEFAULT_POLICIES), many_seeds),
            ),
        )
        yield experiment
        yield experiment.with_study_costs(few_seeds, many_seeds)
    yield Experiment(
        "s3-inversion",
        3,
        "priority inversion",
        "study3 inversion",
        policies,
        quick=(PolicyGroup((*interpretations, *DEFAULT_POLICIES), RunGrid((1,), 3)),),
        full=(PolicyGroup((*interpretations, *DEFAULT_POLICIES), RunGrid((1,), 10)),),
    )


def _study_4_experiments() -> Iterable[Experiment]:
    """Study 4 on one CPU, where 20 other processes make the sleeper wait for 20 ticks. It ran once;
    only the trace needs a single run.
    """
    policies = ("rr:table-scan", "mlfq:allotment-boost")
    single_run = (PolicyGroup(policies, RunGrid((1,), 1)),)
    yield Experiment(
        "s4-trace",
        4,
        "three CPU-bound processes",
        "study4 trace -d 145 -i 344",
        policies,
        quick=single_run,
        full=single_run,
    )
    for size in MIXED_SIZES:
        yield _mixed_benchmark(size, policies)
    yield from _mixed_benchmark_in_one_boot(policies)
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
            quick=(PolicyGroup(policies, RunGrid((1,), 3)),),
            full=(PolicyGroup((*policies, *DEFAULT_POLICIES), RunGrid((1,), 5)),),
            quick_options=" -i 20",
        )
        yield experiment
        with_study_costs = experiment.with_study_costs(RunGrid((1,), 3), RunGrid((1,), 5))
        yield with_study_costs
        if not options:
            yield with_study_costs.without_cost_of("recheck", RunGrid((1,), 3), RunGrid((1,), 5))


def _mixed_benchmark_in_one_boot(policies: tuple[str, ...]) -> Iterable[Experiment]:
    """Yields all sizes in one boot, as the study ran them, so that the phase between boosts depends
    on earlier rounds.

    Also yields the largest size with all phases.
    """
    one_seed, five_seeds, eight_seeds = (RunGrid((1,), seeds) for seeds in (1, 5, 8))
    rounds = Experiment(
        "s4-rounds",
        4,
        "mixed benchmark, all rounds in one boot",
        "study4 rounds",
        policies,
        quick=(PolicyGroup(policies, one_seed),),
        full=(PolicyGroup(policies, five_seeds),),
    )
    feedback_policies = policies[1:]
    phases = Experiment(
        "s4-phases",
        4,
        "mixed benchmark, 40 CPU-bound, begun at eight moments",
        "study4 mixed -c 40 -b 480",
        feedback_policies,
        quick=(PolicyGroup(feedback_policies, eight_seeds),),
        full=(PolicyGroup(feedback_policies, eight_seeds),),
    )
    for size in PHASE_SIZES:
        yield replace(
            phases,
            name=f"s4-phases-{size}",
            title=f"mixed benchmark, {size} CPU-bound, begun at eight moments",
            command=f"study4 mixed -c {size} -b 480",
            quick=phases.quick if size in _QUICK_PHASE_SIZES else (),
        )
    yield rounds
    yield rounds.with_study_costs(one_seed, five_seeds)
    yield phases
    yield phases.with_study_costs(eight_seeds, eight_seeds)


def _mixed_benchmark(size: int, policies: tuple[str, ...]) -> Experiment:
    """Returns the mixed benchmark with this number of CPU-bound processes."""
    compared_policies = DEFAULT_POLICIES if size in _COMPARED_MIXED_SIZES else ()
    quick: tuple[PolicyGroup, ...] = ()
    if size == _COMPARED_MIXED_SIZES[0]:
        quick = (PolicyGroup((*policies, *DEFAULT_POLICIES), RunGrid((1,), 3)),)
    elif size in _QUICK_MIXED_SIZES:
        quick = (PolicyGroup(policies, RunGrid((1,), 1)),)
    return Experiment(
        f"s4-mixed-{size}",
        4,
        f"mixed benchmark, {size} CPU-bound",
        f"study4 mixed -c {size}",
        policies,
        quick=quick,
        full=(
            PolicyGroup(policies, RunGrid((1,), 5)),
            PolicyGroup(compared_policies, RunGrid((1,), 5)),
        ),
    )


def _study_5_experiments() -> Iterable[Experiment]:
    """Three runs of one thread, where a scheduler has nothing to decide; and of eight threads."""
    policies = ("rr", "cfs", "wrr:linux", "lottery:linux")
    policies_and_linear = (*policies, LINEAR_LOTTERY)
    few_seeds, many_seeds = RunGrid((1,), 3), RunGrid((1,), 5)
    yield Experiment(
        "s5-cpubench",
        5,
        "one thread",
        "cpubench",
        policies,
        quick=(PolicyGroup(policies_and_linear, few_seeds),),
        full=(PolicyGroup((*policies_and_linear, *DEFAULT_POLICIES), many_seeds),),
        scales_with_tick=False,
        quick_options=" -t 250",
    )
    yield Experiment(
        "s5-cpubench-8",
        5,
        "eight threads",
        "cpubench -n 8",
        policies,
        quick=(PolicyGroup((*policies_and_linear, *DEFAULT_POLICIES), few_seeds),),
        full=(PolicyGroup((*policies_and_linear, *DEFAULT_POLICIES), many_seeds),),
        scales_with_tick=False,
    )
    two_cpus = RunGrid((2,), 3)
    yield Experiment(
        "s5-wakeups",
        5,
        "message processes wake workers, beside two that compute",
        "wakeups -c 2",
        policies,
        quick=(PolicyGroup((*policies, "mlfq"), two_cpus),),
        full=(PolicyGroup((*policies, *DEFAULT_POLICIES), RunGrid((2,), 5)),),
        scales_with_tick=False,
        quick_options=" -t 250",
    )
    yield from linux_experiments(DEFAULT_POLICIES)


EXPERIMENTS = {
    experiment.name: experiment
    for of_study in (
        _study_1_experiments,
        _study_2_experiments,
        _study_3_experiments,
        _study_4_experiments,
        _study_5_experiments,
    )
    for experiment in of_study()
} | {entry.experiment.name: entry.experiment for entry in simulated_experiments()}
"""All experiments by name, in the order of runs and reports."""
