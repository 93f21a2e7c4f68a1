# SPDX-License-Identifier: MIT
"""Random programs and external acts for a scheduler, drawn by Hypothesis.

The draws are simple, so that a shrunk failing case contains only what the failure needs: few
processes that only compute, on one CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from golden_stories import policies_and_presets
from schedlab_simulator import Attribute, Place
from scheduling_case import Case

US = 1_000
MS = 1_000_000
PROGRAMS = ("a", "b", "c")
CHANNELS = ("door", "gate")


class Choice(NamedTuple):
    """A policy and its drawn tunables: the first value is the simplest."""

    policy: str
    tunables: Mapping[str, tuple[int, ...]]


NO_CREDIT = {"sleep_per_credit": (0,)}
SMALL_LEVELS = {
    "levels": (3, 1, 2, 4),
    "slice_0": (3, 0, 1),
    "slice_1": (2, 1),
    "slice_2": (1, 2),
    "slice_3": (1, 3),
    "allotment_1": (4, 0, 3),
    "allotment_2": (2, 3, 5),
    "allotment_3": (2, 4),
}

CHOICES: dict[str, tuple[Choice, ...]] = {
    "rr": (Choice("rr", {"slice": (1, 2, 3)}),),
    "rr:table-scan": (Choice("rr:table-scan", {}),),
    "wrr": (Choice("wrr", {"quantum_us": (1000, 300, 2500, 1700)}),),
    "wrr:linux": (Choice("wrr:linux", {"quantum_us": (1000, 2500)}),),
    "priority": (
        Choice(
            "priority",
            {"aging_interval": (0,), "slice": (1, 3), "overtake": (0, 1)}
            | {"preempted_last": (0, 1)},
        ),
        Choice("priority", {"aging_interval": (1, 2, 5), "aging_step": (1, 2), "slice": (1, 2)}),
    ),
    "priority:proposed": (
        Choice("priority:proposed", {}),
        Choice(
            "priority:proposed",
            {"aging_interval": (0,), "slice": (1, 3), "level_width": (1, 3)}
            | {"behaviour": (0,), "placement": (0,)},
        ),
    ),
    "mlfq:allotment-boost": (
        Choice("mlfq:allotment-boost", {}),
        Choice(
            "mlfq:allotment-boost",
            SMALL_LEVELS
            | {"boost": (20, 0, 7), "inherit": (1, 0), "release": (0, 1, 2)}
            | {"preempt": (2, 1, 0), "charge_ticks": (0, 1), "keep_slice": (0, 1)},
        ),
    ),
    "mlfq": (
        Choice("mlfq", NO_CREDIT | SMALL_LEVELS | {"boost": (20, 0, 7)}),
        Choice("mlfq", SMALL_LEVELS | {"boost": (20, 7), "sleep_per_credit": (2, 16)}),
    ),
    "hybrid": (Choice("hybrid", {"slice": (1, 2, 3)}),),
    "stride": (Choice("stride", {"slice": (1, 2, 3)}),),
    "amps": (Choice("amps", {"slice": (1, 2), "moves": (1, 0)}),),
    "bsd": (Choice("bsd", {"second_ms": (1000, 100)}),),
    "ule": (
        Choice("ule", {"slice_us": (100000, 3000), "short_slice_us": (10000, 1000)}),
        Choice("ule", {"threshold": (30, 0, 100), "history_ms": (10, 5000)}),
    ),
    "bore": (Choice("bore", {"slice_us": (3000, 700), "offset": (22, 18), "scale": (125, 1000)}),),
    "shinjuku": (Choice("shinjuku", {"quantum_us": (1000, 300, 0, 2500), "targets": (0, 1)}),),
    "caladan": (
        Choice("caladan", {"look_us": (10, 30), "preempt": (1, 0), "static_percent": (0, 60)}),
    ),
    "srpt": (Choice("srpt", {"knows": (2, 1, 0), "preemption": (1, 0), "error": (100, 300)}),),
    "cfs": (
        Choice("cfs", {"min_granularity_us": (750, 2500), "latency_us": (6000, 20000)}),
        Choice(
            "cfs",
            {"scaling": (0, 1), "wakeup_granularity_us": (1000, 0), "sleeper_credit": (50, 0)},
        ),
    ),
    "eevdf": (
        Choice("eevdf", {"base_slice_us": (700, 300, 3000)}),
        Choice("eevdf", {"exact": (1, 0), "parity": (1, 0), "delay": (1, 0), "scaling": (1, 0)}),
    ),
    "hsfq": (Choice("hsfq", {"slice_us": (3000, 700), "wakeup_us": (1000, 0), "exact": (1, 0)}),),
    "lottery": (
        Choice("lottery", {"compensation": (1,), "slice": (1, 2)}),
        Choice("lottery", {"slice": (1, 3), "overtake": (0, 1)}),
        Choice("lottery:currencies", {"compensation": (1, 256), "slice": (1, 2)}),
    ),
}
"""Policies whose presets and tunables are drawn, too."""


def choices_of(policy: str) -> tuple[Choice, ...]:
    return CHOICES.get(policy, (Choice(policy, {}),))


@cache
def settings_of(policy: str) -> st.SearchStrategy[tuple[str, dict[str, int]]]:
    """A policy, and values for some of its tunables."""
    return st.one_of(
        [
            st.tuples(
                st.just(choice.policy),
                st.fixed_dictionaries(
                    {name: st.sampled_from(values) for name, values in choice.tunables.items()}
                ),
            )
            for choice in choices_of(policy)
        ]
    )


@cache
def tunables_of(policy: str) -> st.SearchStrategy[tuple[str, int]]:
    """One tunable, and a value."""
    return st.sampled_from(
        sorted(
            {
                (name, value)
                for choice in choices_of(policy)
                for name, values in choice.tunables.items()
                for value in values
            }
        )
    )


# ---- the processes' programs

TIMES = st.one_of(
    st.integers(1, 10).map(lambda ticks: ticks * MS),
    st.integers(1, 60).map(lambda number: number * 100 * US),
    st.integers(1, 8 * MS),
)
VALUES = {
    Attribute.PRIORITY: st.integers(0, 10),
    Attribute.TICKETS: st.sampled_from((1, 2, 3, 5, 10, 20, 1_000_000)),
    Attribute.WEIGHT: st.integers(1, 10),
    Attribute.NICE: st.integers(-20, 19),
    Attribute.SLICE: st.integers(0, 4 * MS),
    Attribute.RUNTIME: st.integers(0, 4 * MS),
    Attribute.DEADLINE: st.integers(0, 20 * MS),
    Attribute.PERIOD: st.integers(0, 20 * MS),
    Attribute.TASKGROUP: st.integers(0, 31),
}
ATTRIBUTES = st.sampled_from(tuple(Attribute)).flatmap(
    lambda kind: st.tuples(st.just(kind), VALUES[kind])
)
DECISIVE = {
    "priority": Attribute.PRIORITY,
    "hybrid": Attribute.PRIORITY,
    "wrr": Attribute.WEIGHT,
    "cfs": Attribute.WEIGHT,
    "cfs:nice": Attribute.NICE,
    "eevdf": Attribute.NICE,
    "hsfq": Attribute.NICE,
    "lottery:linux": Attribute.WEIGHT,
}
"""The attribute that orders tasks under each policy; others use tickets, if any."""


def attribute_line(kind: Attribute, value: int) -> str:
    """Returns the line of a program that sets the attribute."""
    is_time = Attribute.SLICE <= kind <= Attribute.PERIOD
    return f"{kind.name.lower()} {value}{'ns' if is_time else ''}"


@cache
def attributes_for(policy: str) -> st.SearchStrategy[tuple[Attribute, int]]:
    """An attribute that the policy reads, as often as any other."""
    kind = DECISIVE.get(policy, DECISIVE.get(policy.partition(":")[0], Attribute.TICKETS))
    return st.one_of(st.tuples(st.just(kind), VALUES[kind]), ATTRIBUTES)


@cache
def simple_steps() -> st.SearchStrategy[str]:
    """Lines of a program that forks no process."""
    channel = st.sampled_from(CHANNELS)
    return st.one_of(
        TIMES.map(lambda time: f"run {time}ns"),
        TIMES.map(lambda time: f"sleep {time}ns"),
        st.integers(1, 5).map(lambda ticks: f"sleep {ticks}ticks"),
        st.just("yield"),
        ATTRIBUTES.map(lambda attribute: attribute_line(*attribute)),
        channel.map(lambda name: f"give {name}"),
        channel.map(lambda name: f"take {name}"),
        TIMES.map(lambda time: f"timer 0 {time}ns"),
    )


@cache
def bodies(name: str) -> st.SearchStrategy[list[str]]:
    """Some lines. Forks start only later programs, so that every workload ends."""
    later = ("a", *PROGRAMS[PROGRAMS.index(name) + 1 :])
    forks = st.sampled_from(later).map(lambda other: f"fork {other}")
    return st.lists(st.one_of(simple_steps(), forks, st.just("wait")), max_size=5)


ROUNDS = st.sampled_from((1, 2, 5, 100))
ENDS = st.sampled_from(("run 1000s", "exit 1"))


def program(name: str, lines: list[str], rounds: int, end: str) -> str:
    """The text of a program that runs once or in a loop; each round takes time."""
    if rounds > 1 and lines and not any(line.startswith("fork") for line in lines):
        lines = [f"loop {rounds}", "run 100us", *lines, "end"]
    return "\n".join([f"program {name}", *lines, end])


ROOT = "program root\nloop\nsleep 1000s\nend"
"""Never ends; all other processes are forked externally, and most of them compute without end."""

WORKLOADS = st.tuples(
    st.just(ROOT),
    st.just("program a\nrun 1000s"),
    st.builds(program, st.just("b"), bodies("b"), ROUNDS, ENDS),
    st.builds(program, st.just("c"), bodies("c"), ROUNDS, ENDS),
).map(lambda parts: "\n".join(parts) + "\n")


# ---- external acts


class Scheduler(RuleBasedStateMachine):
    """A machine under a policy, and the acts on it. Subclasses name the policy."""

    policy = "rr"
    switches = False
    """True if acts include switching the policy."""
    patience = 1
    """Factor for the lengths of periods without external acts."""

    case: Case

    @initialize(data=st.data(), cpus=st.sampled_from((1, 2, 3, 4, 8, 16)), seed=st.integers(1, 9))
    def begin(self, data: st.DataObject, cpus: int, seed: int) -> None:
        policy, tunables = data.draw(settings_of(self.policy), label="policy")
        workload = data.draw(WORKLOADS, label="workload")
        self.case = Case(workload, policy=policy, cpus=cpus, seed=seed, tunables=tunables)

    @rule(count=st.integers(1, 4))
    def fork(self, count: int) -> None:
        for _ in range(count):
            self.case.fork("a")

    @rule(program=st.sampled_from(PROGRAMS[1:]))
    def fork_program(self, program: str) -> None:
        self.case.fork(program)

    @rule(data=st.data())
    def fork_another(self, data: st.DataObject) -> None:
        """Forks a process that is unlike the others."""
        attribute = data.draw(attributes_for(self.policy), label="attribute")
        if pid := self.case.fork("a"):
            self.case.act("set_attribute", pid, *attribute)

    @rule(ticks=st.integers(1, 40), less=st.sampled_from((0, 500 * US, 123_457)))
    def run(self, ticks: int, less: int) -> None:
        self.case.run(ticks * self.patience * MS - less)

    @rule(part=st.integers(1, 30))
    def run_a_little(self, part: int) -> None:
        self.case.run(part * 100 * US)

    def someone(self, number: int, *places: Place) -> int | None:
        """Returns an existing process by a number, which may be too large."""
        pids = self.case.pids(*places)
        return pids[number % len(pids)] if pids else None

    WHO = st.integers(0, 15)

    @rule(number=WHO)
    def kill(self, number: int) -> None:
        if pid := self.someone(number, Place.QUEUED, Place.RUNNING, Place.BLOCKED):
            self.case.kill(pid)

    @rule(number=WHO)
    def wake(self, number: int) -> None:
        if pid := self.someone(number, Place.BLOCKED):
            self.case.act("wake", pid)

    @rule(number=WHO, cpu=st.integers(0, 15))
    def migrate(self, number: int, cpu: int) -> None:
        cpus = self.case.cpus
        if cpus > 1 and (pid := self.someone(number, Place.QUEUED)):
            self.case.act("migrate", pid, cpu % cpus)

    @rule(number=WHO, data=st.data())
    def set_attribute(self, number: int, data: st.DataObject) -> None:
        attribute = data.draw(attributes_for(self.policy), label="attribute")
        if pid := self.someone(number, Place.QUEUED, Place.RUNNING, Place.BLOCKED):
            self.case.act("set_attribute", pid, *attribute)

    @rule(channel=st.integers(0, 1), count=st.integers(1, 3))
    def give(self, channel: int, count: int) -> None:
        if channel < len(self.case.workload.channels):
            self.case.act("give", channel, count)

    @rule(data=st.data())
    @precondition(lambda self: not self.switches and any(choices_of(self.policy)[0].tunables))
    def set_tunable(self, data: st.DataObject) -> None:
        self.case.act("set_tunable", *data.draw(tunables_of(self.policy), label="tunable"))

    @rule(data=st.data())
    @precondition(lambda self: self.switches)
    def set_policy(self, data: st.DataObject) -> None:
        self.case.act(
            "set_policy", data.draw(st.sampled_from(policies_and_presets()), label="policy")
        )

    def teardown(self) -> None:
        if hasattr(self, "case"):
            self.case.end()
