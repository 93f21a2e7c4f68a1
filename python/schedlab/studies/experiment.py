# SPDX-License-Identifier: MIT
"""Defines an experiment: a test of a study, run under policies, on CPUs, with seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Depth = Literal["quick", "full"]

TICK_NS = 1_000_000
ITERATION_NS = 10
"""One iteration of workload_burn() on Spike, in nanoseconds: ten instructions at 1 GHz."""


@dataclass(frozen=True)
class RunGrid:
    """The CPU counts and the number of seeds of an experiment."""

    cpus: tuple[int, ...]
    seeds: int


@dataclass(frozen=True)
class PolicyGroup:
    """Policies that run with the same share."""

    policies: tuple[str, ...]
    """Policies with their settings: `priority aging_interval=0`."""
    grid: RunGrid


@dataclass(frozen=True)
class Experiment:
    """One test of a study, as one program of the guest."""

    name: str
    """The label of its runs: `s1-timing-cpu-heavy`."""
    study: int
    title: str
    command: str
    study_policies: tuple[str, ...]
    """Policies that correspond to those of the study."""
    quick: tuple[PolicyGroup, ...]
    full: tuple[PolicyGroup, ...]
    """The parts of a full run. If several contain a policy, the first counts."""
    scales_with_tick: bool = True
    """True if it takes -w, the number of iterations that fill a tick."""
    tick_ns: int | None = None
    """A fixed tick, if the ratio of system calls to ticks affects the result; None: the plan's tick."""
    quick_options: str = ""
    """Options that shorten it."""
    machine: str | None = None
    """The only machine that can run it. None: the schedlab kernel, and usually the simulator."""
    limit_ticks: int = 60_000
    """The time limit in ticks, on the schedlab kernel and in the simulator."""
    options_on: tuple[tuple[int, str], ...] = ()
    """Options for a number of CPUs, after all others, for calibration per CPU count."""
    repeated_experiment: str = ""
    """The experiment that it repeats with the study's costs (schedlab.studies.costs); "" for none."""
    omitted_cost: str = ""
    """An omitted operation or boot argument of those costs; the difference shows its effect."""

    def grid_by_policy(self, depth: Depth) -> dict[str, RunGrid]:
        """Returns the share of each policy. Those of the study come first."""
        grids: dict[str, RunGrid] = {}
        for part in self.quick if depth == "quick" else self.full:
            for policy in part.policies:
                grids.setdefault(policy, part.grid)
        return grids

    def command_at(self, tick_ns: int, depth: Depth = "full", cpus: int = 1) -> str:
        """Returns the command for this tick length and number of CPUs, which determine the amount of work."""
        command = self.command + (self.quick_options if depth == "quick" else "")
        command += dict(self.options_on).get(cpus, "")
        if not self.scales_with_tick or tick_ns == TICK_NS:
            return command
        return f"{command} -w {tick_ns // ITERATION_NS}"

    def with_study_costs(self, quick: RunGrid, full: RunGrid, *policies: str) -> Experiment:
        """Returns the experiment repeated with the study's costs; by default under its own policies."""
        study_policies = policies or self.study_policies
        return replace(
            self,
            name=name_with_study_costs(self.name),
            title=f"{self.title}, study costs",
            study_policies=study_policies,
            quick=(PolicyGroup(study_policies, quick),),
            full=(PolicyGroup(study_policies, full),),
            repeated_experiment=self.name,
        )

    def without_cost_of(self, cost: str, quick: RunGrid, full: RunGrid) -> Experiment:
        """Returns a copy of an experiment with the study's costs, without one of them."""
        return replace(
            self,
            name=name_without_cost(self.name, cost),
            title=f"{self.title}, without {cost}",
            quick=(PolicyGroup(self.study_policies, quick),),
            full=(PolicyGroup(self.study_policies, full),),
            omitted_cost=cost,
        )


def name_with_study_costs(name: str) -> str:
    """Returns the name of the experiment that repeats another with the study's costs."""
    return f"{name}-on-their-costs"


def name_without_cost(name: str, cost: str) -> str:
    """Returns the name of the experiment that lacks one of the study's costs."""
    return f"{name}-without-{cost}"
