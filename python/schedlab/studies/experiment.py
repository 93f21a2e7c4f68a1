# SPDX-License-Identifier: MIT
"""What an experiment is: a test of a study, run under policies, on CPUs, with seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Depth = Literal["quick", "full"]

TICK_NS = 1_000_000
WORK_NS = 10
"""One iteration of workload_burn() on Spike: ten instructions at 1 GHz."""


@dataclass(frozen=True)
class Share:
    """How much of an experiment is run: on which numbers of CPUs, and with how many seeds."""

    cpus: tuple[int, ...]
    seeds: int


@dataclass(frozen=True)
class Part:
    """Policies that are run alike."""

    policies: tuple[str, ...]
    """Policies with their settings: `priority aging_interval=0`."""
    share: Share


@dataclass(frozen=True)
class Experiment:
    """One test of a study, as one program of the guest."""

    name: str
    """The label of its runs: `s1-timing-cpu-heavy`."""
    study: int
    title: str
    command: str
    own: tuple[str, ...]
    """Policies that are like those that the study ran it under."""
    quick: tuple[Part, ...]
    full: tuple[Part, ...]
    """The parts. If a policy is in several of them, the first counts."""
    scaled: bool = True
    """Does it take -w, the iterations that fill a tick?"""
    tick_ns: int | None = None
    """A tick of its own, whatever the others have: where what a system call takes beside a tick
    decides what comes out."""
    quick_options: str = ""
    """What makes it shorter."""
    machine: str | None = None
    """The only one that can run it. None: our kernel, and mostly the simulator."""
    limit_ticks: int = 60_000
    """After which a run is given up, on our kernel and in the simulator."""
    options_on: tuple[tuple[int, str], ...] = ()
    """Options that hold on that many CPUs, after all others: what is calibrated for each number."""
    repeats: str = ""
    """The experiment that it runs once more, with operations as slow as they were on the study's
    machine (schedlab.studies.costs); "": none."""
    without: str = ""
    """An operation or a boot argument of those costs that it does not have: its effect is the difference."""

    def policies(self, depth: Depth) -> dict[str, Share]:
        """How much is run under each policy. Those of the study come first."""
        shares: dict[str, Share] = {}
        for part in self.quick if depth == "quick" else self.full:
            for policy in part.policies:
                shares.setdefault(policy, part.share)
        return shares

    def command_at(self, tick_ns: int, depth: Depth = "full", cpus: int = 1) -> str:
        """Its command where a tick is this long, and on this many CPUs: the work changes with it."""
        command = self.command + (self.quick_options if depth == "quick" else "")
        command += dict(self.options_on).get(cpus, "")
        if not self.scaled or tick_ns == TICK_NS:
            return command
        return f"{command} -w {tick_ns // WORK_NS}"

    def on_their_costs(self, quick: Share, full: Share, *policies: str) -> Experiment:
        """The same once more, with operations as slow as they were on the study's machine. Under
        its own policies, if no others are named."""
        own = policies or self.own
        return replace(
            self,
            name=on_their_costs(self.name),
            title=f"{self.title}, study costs",
            own=own,
            quick=(Part(own, quick),),
            full=(Part(own, full),),
            repeats=self.name,
        )

    def lacking(self, cost: str, quick: Share, full: Share) -> Experiment:
        """Returns an experiment on the study's costs once more without one of them."""
        return replace(
            self,
            name=without_cost(self.name, cost),
            title=f"{self.title}, without {cost}",
            quick=(Part(self.own, quick),),
            full=(Part(self.own, full),),
            without=cost,
        )


def on_their_costs(name: str) -> str:
    """The name of the experiment that repeats another with the study's costs."""
    return f"{name}-on-their-costs"


def without_cost(name: str, cost: str) -> str:
    """Returns the name of the experiment that lacks one of the study's costs."""
    return f"{name}-without-{cost}"
