# SPDX-License-Identifier: MIT
"""What the policy in force means by its numbers, as it says itself."""

from __future__ import annotations

from schedlab.monitor.model.processes import Process
from schedlab.toolchain.policies import Catalogue, Policy
from schedlab.toolchain.policy_answers import PolicyAnswers, Standing, WaitingTask
from schedlab.trace.format import AttributeKind

SHARES_BY = {0: "equal", int(AttributeKind.TICKETS): "tickets", int(AttributeKind.WEIGHT): "weight"}
SHARES_NUMBER = {name: number for number, name in SHARES_BY.items()}


class PolicyNow:
    """The policy in force, its tunables, and how its remarks are to be read.

    Of a policy that the catalogue does not have, no more is known than the trace shows.
    """

    def __init__(self, policy: str, shares_by: str, catalogue: Catalogue, tick_ns: int) -> None:
        self._catalogue = catalogue
        self._tick_ns = tick_ns
        self._levels_seen = False
        self.shared_seen = False
        """A process was picked on a CPU in whose queue it was not, though queues are told of."""
        self.text = policy
        self.shares_by = shares_by
        self.tunables: dict[str, int] = {}
        """Those that were set since it is in force."""
        self._read()

    def start(self, text: str, shares_by: int) -> None:
        """It is in force from here on."""
        self.text = text
        self.shares_by = SHARES_BY.get(shares_by, "equal")
        self.tunables = {}
        self._levels_seen = self.shared_seen = False
        self._read()

    def set(self, name: str, value: int, shares_by: int) -> None:
        """A tunable has this value."""
        self.tunables[name] = value
        self.shares_by = SHARES_BY.get(shares_by, "equal")
        self._read()

    def see_level(self) -> None:
        """A task had a level other than 0."""
        self._levels_seen = True

    def _read(self) -> None:
        self._policy: Policy | None = self._catalogue.get(self.text.partition(":")[0])
        self._answers = PolicyAnswers(self._catalogue, self.text, self.tunables, self._tick_ns)
        kind = self._policy.remark_kind if self._policy else "none"
        self.remark_is_level = kind == "level"
        self.draws = kind == "ticket"

    @property
    def levels(self) -> bool:
        """Does it have levels? Of a policy that is not known: has it shown any?"""
        return self._policy.level_order != "none" if self._policy else self._levels_seen

    @property
    def levels_rise(self) -> bool:
        """Is a higher number served first?"""
        return self._policy is not None and self._policy.level_order == "highest first"

    @property
    def draws_by_level(self) -> bool:
        """Is drawn among the tasks of one level alone?"""
        return self.draws and self.levels

    @property
    def shared_queue(self) -> bool:
        """Is there one queue for all CPUs?"""
        return self._answers.shared_queue or self.shared_seen

    @property
    def tells_tickets(self) -> bool:
        """Do tickets say more of the tasks that wait than levels?"""
        return self.draws or (not self.levels and self.shares_by == "tickets")

    def standing(self, waiting: list[Process], now_ns: int) -> list[Standing]:
        """The standing of processes that wait, as the policy itself says it."""
        return self._answers.standing(
            (
                WaitingTask(
                    each.next_level, each.since, each.pid, each.priority, each.weight, each.tickets
                )
                for each in waiting
            ),
            now_ns,
        )

    def in_words(self, remark: int, level: int, tickets: int | None) -> str:
        """What a decision's remark means. `tickets`: of all among which was drawn, if known."""
        if self._policy is None:
            return f"remark {remark}" if remark else ""
        kind = self._policy.remark_kind
        number = f"{remark}"
        if kind == "time":
            number = f"{remark / 1e6:,.3f} ms"
        elif kind == "ticket":
            number = self._ticket(remark, tickets)
        text = self._policy.remark.replace("{}", number)
        return f"{text} at level {level}" if self.draws_by_level else text

    def _ticket(self, remark: int, tickets: int | None) -> str:
        parts = self._answers.ticket_parts
        if parts > 1:
            return f"{remark // parts}, by tickets as they count now"
        return f"{remark}" if tickets is None or remark >= tickets else f"{remark} of {tickets}"
