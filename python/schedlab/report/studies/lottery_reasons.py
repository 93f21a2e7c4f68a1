# SPDX-License-Identifier: MIT
"""Why shares of study 1's tables 3 to 8 differ from ours, as far as runs and tables tell."""

from __future__ import annotations

import math
from itertools import groupby

from schedlab.report.studies.lottery_runs import THESIS, LotteryRuns, original, share_figure
from schedlab.report.studies.timing_runs import ROUND_ROBIN, figure
from schedlab.report.wording import counted, listed
from schedlab.report.wording import cpus as cpus_text
from schedlab.studies.experiments import ALL_CPUS, TIMING_TESTS
from schedlab.studies.ideal import LOTTERY_GROUPS, unmeetable
from schedlab.studies.ideal import TIMING_TESTS as TIMING_WORK
from schedlab.studies.shares import BOUND, LotteryTest

NOT_KNOWN = "Not known."
OFF_POINTS = 2.0
"""From this difference on between their share and ours, a reason is given."""
_LEAVE = "who sleeps or ends asks for less than its tickets say, and leaves it to the others."
_LAYOUT, _NO_WORK, _FEW_FIRST, _PROGRAM = 3, 6, 7, 8
"""Tables with a reason of their own."""


class LotteryReasons:
    """Why a cell of the tables is as it is, in Markdown; empty if there is nothing to say."""

    def __init__(self, runs: LotteryRuns, test: LotteryTest) -> None:
        self.runs = runs
        self.test = test

    def expected(self, row: str) -> str:
        """Of what the study expects there: on how many CPUs no scheduler could meet it."""
        if self.test.table == _PROGRAM:
            return "No scheduler can meet that: " + _LEAVE
        off = [
            (cpus, found[row][1])
            for cpus in ALL_CPUS
            if row in (found := unmeetable(self.test.table, cpus))
        ]
        if not off:
            return ""
        said = [
            f"on {cpus_text(cpus for cpus, _ in same)} (ideal {ideal:.1f} %)"
            for ideal, same in (
                (ideal, list(group)) for ideal, group in groupby(off, key=lambda each: each[1])
            )
        ]
        return f"No scheduler can meet that {listed(said)}."

    def here(self, group: str, cpus: int) -> str:
        """Of ours, by the study's own program, where it is not near theirs."""
        ours = self.runs.picked(self.test, group, cpus).mean
        theirs = share_figure(self.test, self.test.rows[group], cpus)
        if ours is None or theirs is None or abs(ours - theirs.value) < OFF_POINTS:
            return ""
        return self._reason(group, cpus, abs(ours - theirs.value)) or NOT_KNOWN

    def _reason(self, group: str, cpus: int, off: float) -> str:
        if self.test.table == _NO_WORK:
            return self.ended(cpus)
        if self.test.table == _PROGRAM:
            return self.sleepers(group, cpus)
        late = self.late(cpus)
        if cpus == 1:
            return late or self.chance(group, off) or self.forked_first()
        if cpus >= sum(each.processes for each in LOTTERY_GROUPS[self.test.table]):
            return self.one_each(cpus)
        where = self.layout() if self.test.table == _LAYOUT else self.places()
        return f"{where} {late}".strip()

    def late(self, cpus: int) -> str:
        """Of processes that did not get to set their tickets."""
        found = []
        missing = 0.0
        groups = LOTTERY_GROUPS[self.test.table]
        for group, whole in zip(self.test.rows, groups, strict=True):
            there = self._count(group, "processes", cpus)
            if there is None:
                return ""
            missing += whole.processes - there
            if there < whole.processes:
                found.append(f"{whole.processes - there:.3g} of {whole.processes} of {group}")
        if missing < 1:
            return ""
        return (
            f"On {cpus_text([cpus])} {listed(found)} were never picked here in the window. Until its"
            " first turn a process has its parent's one ticket, and with so many others it waits long"
            " for it."
        )

    def forked_first(self) -> str:
        """Of table 7 on one CPU: what slow forks may do."""
        forks = sum(each.processes for each in LOTTERY_GROUPS[self.test.table])
        creation = figure(ROUND_ROBIN, TIMING_TESTS["creation"], 1)
        if self.test.table != _FEW_FIRST or creation is None:
            return ""
        (created,) = (each.batches for each in TIMING_WORK[1] if each.row == creation.row)
        ticks = forks * creation.value / created
        return (
            f"Not known. It may be the forks: {forks} of them take {ticks:.0f} ticks there (table 1),"
            " and those with the fewest tickets are forked first, and are alone until the others come."
        )

    def chance(self, group: str, off: float) -> str:
        """Of one CPU: could so much be chance, with as many draws as ours had?"""
        setup = self.runs.setup(original(self.test), THESIS, 1)
        part = self.runs.picked(self.test, group, 1).mean
        counts = [
            self.runs.count(original(self.test), THESIS, each, "selections", 1).mean
            for each in self.test.rows
        ]
        if setup is None or part is None or None in counts:
            return ""
        draws = sum(each for each in counts if each)
        p = part / 100
        bound = 100 * BOUND * math.sqrt(p * (1 - p) / (draws * len(setup.runs)))
        if off > bound:
            return ""
        return (
            f"No more than chance allows: with {draws:.0f} draws a run, the mean of"
            f" {counted(len(setup.runs), 'run')} may come out {bound:.1f} points off."
        )

    def layout(self) -> str:
        """Of table 3 on two CPUs: who shares a CPU with whom."""
        shares = {group: self.runs.share(self.test, group, THESIS, 2).mean for group in "ABC"}
        theirs = {
            group: share_figure(self.test, self.test.rows[group], 2) for group in self.test.rows
        }
        a, b, c = (shares[group] for group in "ABC")
        if a is None or b is None or not c or any(each is None for each in theirs.values()):
            return self.places()
        if abs(b - 50) > 1 or not 2.5 < a / c < 3.5:
            return self.places()
        printed = [each for each in theirs.values() if each is not None]
        return (
            "A matter of who shares a CPU with whom, which is settled at the fork. When all compete,"
            f" ours are laid out as theirs were: B has a CPU for itself ({b:.1f} %), and A and C share"
            f" the other by their tickets ({a:.1f} and {c:.1f}; theirs: {printed[0].text} and"
            f" {printed[2].text}). Theirs of B, {printed[1].text}, cannot be right: the column adds up"
            f" to {sum(each.value for each in printed):.1f} %."
        )

    def one_each(self, cpus: int) -> str:
        """Of as many CPUs as processes, or more."""
        return (
            "From as many CPUs as processes on, each has one for itself, and no scheduler can give"
            " it more. Why the study counts other shares is not known: there, too, each selection"
            " follows a yield, and how many yields a process gets done depends on how fast the"
            " emulator runs its CPU."
        )

    def places(self) -> str:
        """Of processes that stay where they were forked."""
        return (
            "A process stays on the CPU on which it was forked, and a ticket is worth more where"
            " fewer are. Who is where depends on how the forks are timed, and that was another"
            " machine's. Each CPU draws fairly among those that it has."
        )

    def ended(self, cpus: int) -> str:
        """Of table 6: whose work was done before the window ended."""
        found = []
        for group in self.test.rows:
            finished = self._count(group, "finished", cpus)
            there = self._count(group, "processes", cpus)
            picked = self._count(group, "selections", cpus)
            if finished and there and picked:
                found.append(
                    f"{finished:.3g} of {there:.0f} of {group} (picked {picked / there:.0f} times"
                    " each)"
                )
        if not found:
            return ""
        return (
            f"The program's processes end after so many yields. Here, on {cpus_text([cpus])}, these had"
            f" ended when the window did: {'; '.join(found)}. What is counted from then on are the"
            " others. How many end in time depends on the CPU's speed."
        )

    def sleepers(self, group: str, cpus: int) -> str:
        """Of table 8: how often those that sleep were picked, beside those that end in time."""
        computing, picked = (self._count(each, "selections", cpus) for each in ("CPU", group))
        members = self._count(group, "processes", cpus)
        theirs = [share_figure(self.test, self.test.rows[each], cpus) for each in ("CPU", group)]
        if not computing or not picked or not members or None in theirs or group == "CPU":
            return self.sleepers("I/O", cpus) if group == "CPU" and computing else ""
        part = [each.value for each in theirs if each]
        return (
            f"Those that sleep from tick to tick are picked {picked / members:.0f} times each here."
            f" If those that compute were picked as often there as here, {computing:.0f} times in all,"
            f" it was {computing * part[1] / part[0] / members:.0f} times there: their window was a few"
            " ticks longer."
        )

    def _count(self, group: str, column: str, cpus: int) -> float | None:
        return self.runs.count(original(self.test), THESIS, group, column, cpus).mean
