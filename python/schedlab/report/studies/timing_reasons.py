# SPDX-License-Identifier: MIT
"""Why the times of studies 1 and 2 differ from ours, as far as runs and tables tell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from schedlab.report.studies.timing_runs import (
    PRIORITIES,
    Suite,
    TimingRuns,
    figure,
    study_tick_ms,
)
from schedlab.report.study_tables import Numbers, measure
from schedlab.report.wording import cpus as cpus_text
from schedlab.report.wording import listed
from schedlab.studies import Figure
from schedlab.studies.experiments import ALL_CPUS, TIMING_TESTS
from schedlab.studies.ideal import ideal_completion

NOT_KNOWN = "Not known."
_FORKING = ("switch", "creation", "short")
"""Tests in which processes do next to nothing."""
_COMPUTING = ("cpu-heavy", "starvation")


@dataclass(frozen=True)
class ForkCost:
    """A process that does nothing, from its fork until it has been waited for."""

    processes: float
    here_ticks: float
    there_ticks: float
    here_us: float
    there_us: float

    @property
    def times(self) -> float:
        """So many times as long there."""
        return self.there_us / self.here_us

    @property
    def each(self) -> str:
        """In ticks."""
        return (
            f"{self.there_ticks:.2f} ticks there and {self.here_ticks:.3f} here (Process Creation on"
            f" one CPU ÷ {self.processes:.0f})"
        )

    def __str__(self) -> str:
        return (
            "A process that does nothing takes, from its fork until it has been waited for,"
            f" {self.here_us:.0f} µs here, {self.here_ticks:.3f} ticks; there it took"
            f" {self.there_us / 1000:.1f} ms, {self.there_ticks:.2f} ticks, {self.times:.0f} times as"
            f" long (Process Creation on one CPU ÷ {self.processes:.0f})."
        )


class TimingReasons:
    """Why a cell of a suite's table is as it is, in Markdown; empty if there is nothing to say.

    The same words stand for all cells that they are true of.
    """

    def __init__(self, runs: TimingRuns, suite: Suite) -> None:
        self.runs = runs
        self.suite = suite

    def told(self, test: str, cpus: int, off: bool, off_ideal: bool) -> str:
        """Of the cell that the study has; `off`: ours is not near theirs."""
        if test == "mixed":
            return self.constant
        if test == "io-bound" and self.suite == PRIORITIES:
            return self.bursts
        if not off:
            return self.stay(test) if off_ideal and test in _COMPUTING else ""
        if test in _FORKING:
            return self.forks(test) or NOT_KNOWN
        if test == "io-bound":
            return self.sleeps or NOT_KNOWN
        if cpus == 1:
            return self.few_forks(test) or NOT_KNOWN
        return _joined(self.stay(test), self.several_cpus(test)) or NOT_KNOWN

    def whole(self, off_ideal: bool) -> str:
        """Of Mixed Load until all have ended."""
        return self.sleepers_wait if off_ideal and self.suite.name == "priority" else ""

    @cached_property
    def fork(self) -> ForkCost | None:
        """None if that test was not run, or its run failed."""
        ticks = self._mean(self.runs.completion, "creation", 1)
        processes = self._mean(self.runs.processes, "creation", 1)
        setup = self.runs.setup(self.suite, "creation", 1)
        theirs = self._figure("creation", 1)
        if not ticks or not processes or setup is None or theirs is None:
            return None
        return ForkCost(
            processes,
            ticks / processes,
            theirs.value / processes,
            ticks / processes * setup.setup.tick_ns / 1000,
            theirs.value / processes * study_tick_ms() * 1000,
        )

    def forks(self, test: str) -> str:
        """Of a test that does little else."""
        fork = self.fork
        if fork is None:
            return ""
        text = f"A fork and its end take {fork.each}."
        processes = self._mean(self.runs.processes, test, 1)
        ticks = self._mean(self.runs.completion, test, 1)
        theirs = self._figure(test, 1)
        if test == "creation" or not processes or not ticks or theirs is None:
            return text
        return text + (
            f" {processes:.0f} of them are {processes * fork.there_ticks:.0f} ticks of one CPU there"
            f" ({theirs.text} in all), and {processes * fork.here_ticks:.1f} here ({ticks:.1f})."
        )

    def few_forks(self, test: str) -> str:
        """Of a test that computes, and forks a few times before."""
        processes = self._mean(self.runs.processes, test, 1)
        if not processes or self.fork is None:
            return ""
        return (
            f"{processes:.0f} forks are {processes * self.fork.there_ticks:.1f} ticks there, and"
            f" {processes * self.fork.here_ticks:.1f} here."
        )

    @cached_property
    def sleeps(self) -> str:
        """Of the processes that do nothing but sleep, on one CPU."""
        ideal = ideal_completion(1, TIMING_TESTS["io-bound"], 1)
        ticks = self._mean(self.runs.completion, "io-bound", 1)
        processes = self._mean(self.runs.processes, "io-bound", 1)
        theirs = self._figure("io-bound", 1)
        if not ticks or not processes or theirs is None or self.fork is None:
            return ""
        here_us = self.fork.here_us / self.fork.here_ticks * (ticks - ideal) / processes
        there_ms = study_tick_ms() * (theirs.value - ideal) / processes
        return (
            f"The sleeps take {ideal:.0f} ticks. What is left on one CPU, {theirs.value - ideal:.0f}"
            f" ticks there and {ticks - ideal:.1f} here, is {there_ms:.1f} ms and {here_us:.0f} µs"
            f" for each of {processes:.0f} processes: about a fork, which takes {self.fork.each}."
        )

    @cached_property
    def bursts(self) -> str:
        """Of the processes that compute and sleep in turns: what there is to compute."""
        work = self._mean(self.runs.running, "io-bound", 1)
        ticks = self._mean(self.runs.completion, "io-bound", 1)
        processes = self._mean(self.runs.processes, "io-bound", 1)
        theirs = self._figure("io-bound", 1)
        if not work or not ticks or not processes or theirs is None or self.fork is None:
            return ""
        forks = processes * self.fork.there_ticks
        return (
            f"Not the same work. Here the processes run for {work:.1f} ticks in all, and one CPU"
            f" takes {ticks:.1f}. There, of {theirs.text} ticks on one CPU, {processes:.0f} forks take"
            f" {forks:.0f}, which leaves {theirs.value - forks:.0f} for all else: the bursts took next"
            " to no time. Their loop has no effect, so that a compiler may leave it out; whether it"
            " did is not known."
        )

    @cached_property
    def constant(self) -> str:
        """Of Mixed Load, which tells the least time of those that sleep."""
        found = self.runs.measured(self.runs.completion, self.suite, "mixed", 1)
        text = (
            "What is told is the least time of the processes that sleep, a constant whatever the"
            " scheduler does with the others."
        )
        if found.mean is None:
            return f"{text} When all had ended on one CPU is not known here: {found.missing}."
        return f"{text} On one CPU all have ended after {found.mean:.1f} ticks."

    @cached_property
    def sleepers_wait(self) -> str:
        """Of Mixed Load under priorities: who is to sleep must run first, and has the lowest."""
        longest = self.runs.of_group("mix-io", "waiting_max_ns")
        waits = [(cpus, self._mean(longest, "mixed", cpus)) for cpus in ALL_CPUS]
        long = [
            f"{wait:.0f} ticks on {cpus_text([cpus])}" for cpus, wait in waits if wait and wait >= 1
        ]
        if not long:
            return ""
        return (
            "The processes that are to sleep set the lowest priority for themselves first. Then they"
            " wait for all of higher priority on their CPU, the longest for"
            f" {listed(long)}, and only then begin to sleep."
        )

    def stay(self, test: str) -> str:
        """Processes that never move: the busiest CPU decides."""
        if test not in self._stays:
            self._stays[test] = self._staying(test) if self.suite == PRIORITIES else ""
        return self._stays[test]

    @cached_property
    def _stays(self) -> dict[str, str]:
        return {}

    def _staying(self, test: str) -> str:
        row = TIMING_TESTS[test]
        found = []
        for cpus in ALL_CPUS[1:]:
            setup = self.runs.setup(self.suite, test, cpus)
            busiest = self._mean(self.runs.busiest(setup), test, cpus) if setup else None
            moved = self._mean(self.runs.migrations, test, cpus)
            ideal = ideal_completion(2, row, cpus)
            if busiest and moved == 0 and busiest > 1.1 * ideal:
                found.append(f"{busiest:.1f} on {cpus} CPUs ({ideal:.1f})")
        if not found:
            return ""
        return (
            "Here no process changes its CPU once it has been forked, and the busiest CPU has more"
            f" than its part to do: {listed(found)}, in ticks and beside the ideal."
        )

    def several_cpus(self, test: str) -> str:
        """What several CPUs of an emulator have to do with it: of processes that compute."""
        most = ALL_CPUS[-1]
        theirs = self._figure(test, most)
        if theirs is None:
            return ""
        ideal = ideal_completion(2, TIMING_TESTS[test], most)
        text = (
            f"On {cpus_text([most])} theirs takes {theirs.value / ideal:.1f} times the ideal; what part"
            " their emulator has in it is not known."
        )
        again = self._figure(test, most, "rerun")
        if again is None:
            return text
        return text + (
            f" Run again on a host of two CPUs, the test {_ended(again)} there: an emulator that has"
            " more CPUs than its host measures the host."
        )

    def _figure(self, test: str, cpus: int, source: str = "study") -> Figure | None:
        return figure(self.suite, TIMING_TESTS[test], cpus, source=source)

    def _mean(self, numbers: Numbers, test: str, cpus: int) -> float | None:
        return measure(self.runs.setup(self.suite, test, cpus), numbers).mean


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _ended(again: Figure) -> str:
    return f"took {again.text} ticks" if again.finished else f"was {again.text}"
