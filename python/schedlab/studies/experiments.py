# SPDX-License-Identifier: MIT
"""The studies' suites as runs: what is run for which table, under which policies, how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schedlab.plan import Plan, Run
from schedlab.policies import PolicyChoice, parse_choices, parse_setting

Depth = Literal["quick", "full"]

OTHERS = ("rr", "wrr", "lottery", "priority", "mlfq", "stride", "hybrid")
"""As we ship them: what all studies' suites are compared under."""
TICK_NS = 1_000_000
_WORK_NS = 10
"""One iteration of workload_burn() on Spike: ten instructions at 1 GHz."""


@dataclass(frozen=True)
class Share:
    """How much of an experiment is run: on which numbers of CPUs, and with how many seeds."""

    cpus: tuple[int, ...]
    seeds: int


@dataclass(frozen=True)
class Experiment:
    """One test of a study, as one program of the guest."""

    name: str
    """The label of its runs: `s1-timing-cpu-heavy`."""
    study: int
    title: str
    command: str
    own: tuple[str, ...]
    """Policies that are like those that the study ran it under, with their settings."""
    own_share: dict[Depth, Share | None]
    others_share: dict[Depth, Share | None]
    """None: not run."""
    scaled: bool = True
    """Does it take -w, the iterations that fill a tick?"""
    tick_ns: int | None = None
    """A tick of its own, whatever the others have: where what a system call takes beside a tick
    decides what comes out."""

    def policies(self, depth: Depth) -> dict[str, Share]:
        """By policy: how much of it is run. Those of the study come first."""
        shares = dict.fromkeys(OTHERS, self.others_share[depth])
        own = dict.fromkeys(self.own, self.own_share[depth])
        return {name: share for name, share in {**own, **shares, **own}.items() if share}

    def command_at(self, tick_ns: int) -> str:
        """Its command where a tick is this long: the work changes with it."""
        if not self.scaled or tick_ns == TICK_NS:
            return self.command
        return f"{self.command} -w {tick_ns // _WORK_NS}"


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
"""By the program's name: what study 1's tables 1 and 2 call it."""
LOTTERY_TESTS = {
    "low": 3,
    "basic": 4,
    "switch": 5,
    "starve": 6,
    "grouped": 7,
    "mixed": 8,
}
"""By the program's name: its table in study 1."""
MIXED_SIZES = range(2, 41, 2)
"""CPU-bound processes of study 4's mixed benchmark."""
_MIXED_SIZES_QUICK = (2, 10, 20, 40)
_MIXED_SIZES_OTHERS = (4, 10, 20, 40)


_STUDY_TICK_NS = 10_000_000
_AS_LONG_AS_THEIRS = "-t 50 -y 8300"
"""Study 1 counts after 50 ticks of 10 ms. With bursts of 8,300 iterations, our CPU does as much in
a tick as the study's did when it made table 6 (docs/policies.md)."""


def _study_1() -> Iterable[Experiment]:
    own: dict[Depth, Share | None] = {"quick": Share(ALL_CPUS, 2), "full": Share(ALL_CPUS, 5)}
    others: dict[Depth, Share | None] = {"quick": Share((1, 2), 2), "full": Share((1, 2, 4), 5)}
    for suite, program, policies in (
        ("timing", "timingtests", ("rr:table-scan",)),
        ("priority", "prioritytest", ("priority:thesis", "priority:proposed")),
    ):
        for test, title in TIMING_TESTS.items():
            name, command = f"s1-{suite}-{test}", f"{program} {test}"
            yield Experiment(name, 1, title, command, policies, own, others)
    for test in LOTTERY_TESTS:
        yield Experiment(
            f"s1-lottery-{test}",
            1,
            f"lottery, {test}",
            f"lotterytest {test}",
            ("lottery:thesis", "lottery"),
            {"quick": Share((1, 2, 5), 2), "full": Share(ALL_CPUS, 5)},
            {"quick": None, "full": Share((1, 2, 4), 5)},
        )
        yield Experiment(
            f"s1-lottery-original-{test}",
            1,
            f"lottery, {test}, as the study's program has it",
            f"lotterytest {test} -o 1 {_AS_LONG_AS_THEIRS}",
            ("lottery:thesis",),
            {"quick": Share((1, 2, 5), 2), "full": Share(ALL_CPUS, 5)},
            {"quick": None, "full": None},
            scaled=False,
            tick_ns=_STUDY_TICK_NS,
        )


def _study_2() -> Iterable[Experiment]:
    share: dict[Depth, Share | None] = {"quick": Share((2,), 2), "full": Share((1, 2), 5)}
    none: dict[Depth, Share | None] = {"quick": None, "full": None}
    for suite, program, policy in (
        ("timing", "timingtests", "rr:table-scan"),
        ("priority", "prioritytest", "priority aging_interval=0"),
    ):
        for test, title in TIMING_TESTS.items():
            name, command = f"s2-{suite}-{test}", f"{program} {test} -v 2"
            yield Experiment(name, 2, title, command, (policy,), share, none)


def _study_3() -> Iterable[Experiment]:
    share: dict[Depth, Share | None] = {"quick": Share((3,), 3), "full": Share((3,), 10)}
    own = ("rr:table-scan", "lottery:equal-lfsr", "mlfq:four-quanta")
    for test, title in (("cpu", "CPU-bound"), ("io", "IO-bound"), ("mixed", "Mixed")):
        yield Experiment(f"s3-{test}", 3, title, f"study3 {test}", own, share, share)
    alone: dict[Depth, Share | None] = {"quick": Share((1,), 2), "full": Share((1,), 10)}
    yield Experiment("s3-inversion", 3, "priority inversion", "study3 inversion", own, alone, alone)


def _study_4() -> Iterable[Experiment]:
    own = ("rr:table-scan", "mlfq:allotment-boost")
    once: dict[Depth, Share | None] = {"quick": Share((1,), 1), "full": Share((1,), 1)}
    none: dict[Depth, Share | None] = {"quick": None, "full": None}
    yield Experiment("s4-trace", 4, "three CPU-bound processes", "study4 trace", own, once, none)
    for size in MIXED_SIZES:
        yield Experiment(
            f"s4-mixed-{size}",
            4,
            f"mixed benchmark, {size} CPU-bound",
            f"study4 mixed -c {size}",
            own,
            {
                "quick": Share((1,), 2) if size in _MIXED_SIZES_QUICK else None,
                "full": Share((1,), 5),
            },
            {"quick": None, "full": Share((1,), 5) if size in _MIXED_SIZES_OTHERS else None},
        )
    for name, title, options in (
        ("s4-sleeper", "the sleeper, right after the others", ""),
        ("s4-sleeper-late", "the sleeper, 200 ticks later", " -d 200"),
    ):
        some: dict[Depth, Share | None] = {"quick": Share((1,), 2), "full": Share((1,), 5)}
        quick_none: dict[Depth, Share | None] = {"quick": None, "full": Share((1,), 5)}
        yield Experiment(name, 4, title, f"study4 sleeper{options}", own, some, quick_none)


def _study_5() -> Iterable[Experiment]:
    own = ("rr", "wrr:linux", "lottery:linux")
    one: dict[Depth, Share | None] = {"quick": Share((1,), 3), "full": Share((1,), 5)}
    yield Experiment("s5-cpubench", 5, "one thread", "cpubench", own, one, one, scaled=False)
    yield Experiment(
        "s5-cpubench-8", 5, "eight threads", "cpubench -n 8", own, one, one, scaled=False
    )


EXPERIMENTS = {
    each.name: each
    for of_study in (_study_1, _study_2, _study_3, _study_4, _study_5)
    for each in of_study()
}
"""By name, in the order in which they are run and told."""


def plan(
    folder: Path, depth: Depth, studies: Iterable[int], seed: int = 1, tick_ns: int = TICK_NS
) -> Plan:
    """All runs of these studies. Setups that several experiments share are run once for each."""
    wanted = set(studies)
    runs = tuple(
        Run(
            workload=each.command_at(tick_ns),
            policy=_policy(policy)[0],
            settings=_policy(policy)[1],
            cpus=cpus,
            machine="spike",
            seed=seed + repeat,
            tick_ns=each.tick_ns or tick_ns,
            limit_ns=60_000 * (each.tick_ns or tick_ns),
            memory_mib=512,
            label=each.name,
        )
        for each in EXPERIMENTS.values()
        if each.study in wanted
        for policy, share in each.policies(depth).items()
        for cpus in share.cpus
        for repeat in range(share.seeds)
    )
    return Plan(folder, runs)


def _policy(text: str) -> tuple[PolicyChoice, tuple[tuple[str, int], ...]]:
    """Of "priority:thesis slice=2"."""
    name, *settings = text.split()
    return parse_choices(name)[0], tuple(parse_setting(each) for each in settings)
