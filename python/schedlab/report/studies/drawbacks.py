# SPDX-License-Identifier: MIT
"""Tasks that study 3's feedback queue serves badly, by its section 3.1.3: without a boost and with one."""

from __future__ import annotations

import polars as pl

from schedlab.base.toolchain.policies import parse_setting
from schedlab.report.studies.queries import Queries, first, in_ticks
from schedlab.report.study_tables import Measured
from schedlab.studies.experiment import TICK_NS
from schedlab.studies.proposals import Test, proposals
from schedlab.trace import Trace

_BOOST = "boost"
"""The proposal against all of them."""
_SHIPPED = "mlfq"


class DrawbackQueries(Queries):
    """The tests are those of the proposal, which have one CPU."""

    def drawbacks(self) -> list[Test]:
        """A test for each drawback; none that was not run."""
        return [
            test
            for each in proposals((self.study.number,))
            if each.name == _BOOST
            for test in each.tests
            if self.ran(test.label)
        ]

    def feedback_queues(self) -> dict[str, str]:
        """Policies by what they are: without a boost, with one, and the feedback queue as shipped."""
        test = self.drawbacks()[0]
        return {"no boost": test.off, "boost": test.on, f"{_SHIPPED} as shipped": _SHIPPED}

    def drawback(self, test: Test, policy: str) -> Measured:
        """The figure that the test looks at: a share in percent, or a time in ticks."""
        column = first(test.column)
        value: pl.Expr = column * 100 if test.column == "share" else in_ticks(column)
        return self.of(test.label, _titled(policy), value, self._group(test.group), cpus=1)

    def drawback_of(self, group: str, which: str) -> Measured:
        """The same of the first test that looks at this group, under one of `feedback_queues`."""
        return self.drawback(self._of_group(group), self.feedback_queues()[which])

    def boosted_at(self, number: int, ticks: int) -> int:
        """When the boost of that number comes, and so many ticks later or, below 0, before; in ns."""
        settings = dict(map(parse_setting, self.feedback_queues()["boost"].split()[1:]))
        return (number * settings[_BOOST] + ticks) * TICK_NS

    def _of_group(self, group: str) -> Test:
        return next(each for each in self.drawbacks() if each.group == group)

    def drawback_trace(self, group: str, which: str) -> Trace | None:
        """The first seed's trace of that; None if it was not kept."""
        policy = self.feedback_queues()[which]
        return self.first_trace(self._of_group(group).label, _titled(policy), 1)


def _titled(policy: str) -> str:
    """A policy with settings, as setups of runs are titled."""
    name, *settings = policy.split()
    return " ".join((name, ",".join(settings))).strip()
