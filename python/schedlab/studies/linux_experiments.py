# SPDX-License-Identifier: MIT
"""Defines study 5's benchmark on Linux, and further experiments that show more of a scheduler."""

from collections.abc import Iterable, Sequence

from schedlab.machines import LINUX_MACHINES
from schedlab.studies.experiment import Experiment, PolicyGroup, RunGrid

FAIR_CLASS = "fair"
"""The kernel's own scheduling class: CFS in the study, EEVDF since Linux 6.6."""
LINUX_MACHINE, FREE_RUNNING_MACHINE = LINUX_MACHINES
"""The same kernel, driven by counted instructions or by the host's time."""

STUDY_SCHEDULERS = (FAIR_CLASS, "wrr:linux", "lottery:linux")
"""The study's three schedulers."""
SYSBENCH = "s5-linux-sysbench"
SYSBENCH_8 = "s5-linux-sysbench-8"
SYSBENCH_FREE = "s5-linux-sysbench-free"
WAKEUPS = "s5-linux-wakeups"
HACKBENCH = "s5-linux-hackbench"
STRESSORS = {"cpu": "computes", "switch": "switches by pipe", "pipe": "fills a pipe"}
"""Stressors of stress-ng, and what each one does."""
OTHER_STUDY_SUITES = {
    "timing-cpu-heavy": ("timingtests cpu-heavy", "study 1: ten that compute"),
    "timing-mixed": ("timingtests mixed", "study 1: mixed load"),
    "timing-starvation": ("timingtests starvation", "study 1: starvation check"),
    "priority-starvation": ("prioritytest starvation", "study 1: the same, with priorities"),
    "study3-mixed": ("study3 mixed", "study 3: mixed workload"),
    "study3-inversion": ("study3 inversion", "study 3: priority inversion"),
    "study4-mixed-6": ("study4 mixed -c 6", "study 4: interactive beside six that compute"),
    "study4-sleeper": ("study4 sleeper -d 200", "study 4: the sleeper, 200 ticks later"),
}
"""The other studies' suites: by name, program and title."""

_CPUS = 1
"""CPUs of all experiments.

With counted instructions, CPUs share one clock. QEMU before 8.1 may suspend one of several CPUs
with its task for hundreds of milliseconds.
"""
_PRIMES_OPTION = "--cpu-max-prime=10000"
"""Sysbench's default. The study states no option; its 0.52 ms per event have the same order as this
limit takes on a CPU of its time.
"""
_TIME_OPTION = "--time=10"
"""Sysbench's default, in seconds."""


def linux_experiments(compared_policies: Sequence[str]) -> Iterable[Experiment]:
    """Yields the experiments. `compared_policies`: policies to compare with the study's own."""
    full_policies = tuple(dict.fromkeys((*STUDY_SCHEDULERS, *compared_policies)))
    quick_policies = (*STUDY_SCHEDULERS, "rr", "mlfq")
    yield from _sysbench_experiments(full_policies, quick_policies)
    yield _linux_experiment(
        WAKEUPS,
        "message processes wake workers, beside two that compute",
        "wakeups -c 2 -t 4000",
        quick=PolicyGroup(quick_policies, RunGrid((_CPUS,), 3)),
        full=PolicyGroup(full_policies, RunGrid((_CPUS,), 5)),
        quick_options=" -t 2000",
    )
    yield _linux_experiment(
        HACKBENCH,
        "hackbench: 80 processes pass messages through pipes",
        "hackbench --pipe --groups 2 --loops 200",
        quick=PolicyGroup(STUDY_SCHEDULERS, RunGrid((_CPUS,), 3)),
        full=PolicyGroup(full_policies, RunGrid((_CPUS,), 5)),
    )
    for name, activity in STRESSORS.items():
        yield _linux_experiment(
            f"s5-linux-stress-{name}",
            f"stress-ng: four processes, each of which {activity}",
            f"stress-ng --{name} 4 --timeout 3 --metrics-brief",
            quick=None,
            full=PolicyGroup(full_policies, RunGrid((_CPUS,), 3)),
        )
    for name, (command, title) in OTHER_STUDY_SUITES.items():
        yield _linux_experiment(
            f"s5-linux-{name}",
            title,
            command,
            quick=None,
            full=PolicyGroup(full_policies, RunGrid((_CPUS,), 3)),
        )


def _sysbench_experiments(
    full_policies: tuple[str, ...], quick_policies: tuple[str, ...]
) -> Iterable[Experiment]:
    """Yields the experiments with sysbench.

    `full_policies`: the policies of a full run. `quick_policies`: those of a quick run.
    """

    def command(threads: int) -> str:
        return f"sysbench cpu --threads={threads} {_TIME_OPTION} {_PRIMES_OPTION} --percentile=99 --histogram=on run"

    yield _linux_experiment(
        SYSBENCH,
        "sysbench cpu, one thread",
        command(1),
        quick=PolicyGroup(STUDY_SCHEDULERS, RunGrid((_CPUS,), 3)),
        full=PolicyGroup(full_policies, RunGrid((_CPUS,), 3)),
        quick_options=" --time=2",
    )
    yield _linux_experiment(
        SYSBENCH_8,
        "sysbench cpu, eight threads",
        command(8),
        quick=PolicyGroup(quick_policies, RunGrid((_CPUS,), 3)),
        full=PolicyGroup(full_policies, RunGrid((_CPUS,), 3)),
        quick_options=" --time=2",
    )
    yield _linux_experiment(
        SYSBENCH_FREE,
        "sysbench cpu, one thread, by this host's time",
        command(1),
        quick=PolicyGroup(STUDY_SCHEDULERS, RunGrid((_CPUS,), 3)),
        full=PolicyGroup(STUDY_SCHEDULERS, RunGrid((_CPUS,), 5)),
        quick_options=" --time=2",
        machine=FREE_RUNNING_MACHINE,
    )


def _linux_experiment(
    name: str,
    title: str,
    command: str,
    quick: PolicyGroup | None,
    full: PolicyGroup,
    quick_options: str = "",
    machine: str = LINUX_MACHINE,
) -> Experiment:
    """Returns an experiment on Linux. `quick` None: only full runs include it."""
    return Experiment(
        name,
        5,
        title,
        command,
        STUDY_SCHEDULERS,
        quick=(quick,) if quick else (),
        full=(full,),
        scales_with_tick=False,
        quick_options=quick_options,
        machine=machine,
    )
