# SPDX-License-Identifier: MIT
"""What our policies cost on Linux: sysbench under the fair class and under ours, in turns.

All in one boot, by switching the policy while the machine runs: what differs from boot to boot, and
what drifts while it runs, is then the same for all, and falls out of the ratios.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.outputs import OutputError, figures
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.machines import machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.studies.linux_experiments import FAIR

BOUND = 0.05
"""The part of the fair class's events a second by which a policy's may differ."""
_MARK = "== round"
_ROUND = re.compile(rf"^{_MARK} (\d+), (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Setting:
    """How it is measured."""

    policies: tuple[PolicyChoice, ...]
    """Ours; the fair class is added, and goes first."""
    machine: str
    cpus: int = 2
    threads: int = 4
    rounds: int = 5
    seconds: int = 3
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The fair class first."""
        return tuple(dict.fromkeys((FAIR, *map(str, self.policies))))

    def command(self) -> str:
        """The command for the guest's shell: each policy in each round; each round begins with
        another policy."""
        order = " ".join(
            f"{number}/{name}"
            for number in range(1, self.rounds + 1)
            for name in _turned(self.names, number - 1)
        )
        return (
            f"for each in {order}; do"
            " schedlab-linux policy ${each#*/} >/dev/null || exit 1;"
            f' echo "{_MARK} ${{each%%/*}}, ${{each#*/}}";'
            f" sysbench cpu --threads={self.threads} --time={self.seconds}"
            " --cpu-max-prime=10000 run || exit 1;"
            " done; schedlab-linux policy fair"
        )


def _turned(names: Sequence[str], by: int) -> list[str]:
    place = by % len(names)
    return [*names[place:], *names[:place]]


def plan(folder: Path, setting: Setting) -> Plan:
    """The one run. It begins under the fair class."""
    machine = machine_named(setting.machine)
    measured_s = setting.rounds * len(setting.names) * (setting.seconds + 1)
    run = RunSpec(
        workload=setting.command(),
        policy=PolicyChoice(FAIR),
        settings=(),
        cpus=setting.cpus,
        machine=setting.machine,
        seed=setting.seed,
        tick_ns=machine.tick_ns,
        limit_ns=(measured_s + 60) * 10**9,
        memory_mib=machine.memory_mib,
        label="throughput",
    )
    return Plan(folder, (run,))


@dataclass(frozen=True)
class Row:
    """A policy beside the fair class, round by round."""

    policy: str
    rates: tuple[float, ...]
    """Events a second, of each round."""
    ratio: Estimate
    """Its ratio to the fair class's rate in the same round: the mean, and its interval of 95 %."""

    @property
    def verdict(self) -> str:
        return "met" if abs(self.ratio.mean - 1) <= BOUND else "off"

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        ratio = {"mean": self.ratio.mean, "low": self.ratio.low, "high": self.ratio.high}
        return {"policy": self.policy, "rates": self.rates, "ratio": ratio, "verdict": self.verdict}


def evaluate(console: str) -> list[Row]:
    """Raises OutputError if a round is missing."""
    rates = read_rates(console)
    if FAIR not in rates:
        raise OutputError("no round of the fair class was printed")
    if len({len(each) for each in rates.values()}) != 1:
        raise OutputError("not every policy was there in every round")
    return [
        Row(
            policy,
            tuple(own),
            estimate([one / fair for one, fair in zip(own, rates[FAIR], strict=True)]),
        )
        for policy, own in rates.items()
    ]


def read_rates(console: str) -> Mapping[str, list[float]]:
    """Events a second by policy, the fair class first, in the order of rounds."""
    found: dict[str, list[tuple[int, float]]] = {FAIR: []}
    for number, policy, output in _rounds(console.replace("\r", "")):
        rate = figures("sysbench", output)["events_per_second"]
        found.setdefault(policy, []).append((number, rate))
    return {policy: [rate for _, rate in sorted(each)] for policy, each in found.items() if each}


def _rounds(console: str) -> Iterator[tuple[int, str, str]]:
    marks = list(_ROUND.finditer(console))
    ends = [mark.start() for mark in marks[1:]] + [len(console)]
    for mark, end in zip(marks, ends, strict=True):
        yield int(mark[1]), mark[2], console[mark.end() : end]
