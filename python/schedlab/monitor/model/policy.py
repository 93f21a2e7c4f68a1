# SPDX-License-Identifier: MIT
"""What the policy in force means by its numbers."""

from __future__ import annotations

from schedlab.toolchain.policies import Catalogue
from schedlab.trace.format import AttributeKind

_LEVELS_IN_REMARK = {"mlfq", "priority"}
"""Policies whose DECISION says the level."""
_LEVELS = _LEVELS_IN_REMARK | {"hybrid"}
_RISING = {"mlfq"}
"""Policies of which the highest number is the best level; of the others it is 0."""
_WITHOUT_LEVELS = {"rr", "lottery", "stride", "wrr", "fair"}
"""Whose `task->level`, if they set it, is no level."""
_TICKETS = {"lottery", "hybrid", "stride"}
"""Policies under which tickets say more than levels."""
_SHARED_PRESETS = {"rr:table-scan", "lottery:equal-lfsr"}
"""What is known of `table_scan` without a catalogue."""
_LOTTERY_UNITS = 64
"""SCALE of policies/lottery.c: parts of a ticket in a draw, where something multiplies tickets."""
_LOTTERY_MULTIPLIES = {"compensation": 1, "adaptation": 0, "recent_penalty": 0}
"""If one of these tunables is above that."""

SHARES_BY = {0: "equal", int(AttributeKind.TICKETS): "tickets", int(AttributeKind.WEIGHT): "weight"}
SHARES_NUMBER = {name: number for number, name in SHARES_BY.items()}


class PolicyNow:
    """The policy in force, its tunables, and how its remarks are to be read."""

    def __init__(self, policy: str, shares_by: str, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
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
        self.name = self.text.partition(":")[0]
        self.remark_is_level = self.name in _LEVELS_IN_REMARK
        self._shared_by_tunable = bool(
            self.tunable("table_scan", int(self.text in _SHARED_PRESETS))
        )

    @property
    def levels(self) -> bool:
        """Does it have levels? Of a policy that we do not know: if it has shown any."""
        unknown = self.name not in _LEVELS and self.name not in _WITHOUT_LEVELS
        return self.name in _LEVELS or (unknown and self._levels_seen)

    @property
    def levels_rise(self) -> bool:
        """Is a higher number served first?"""
        return self.name in _RISING

    @property
    def shared_queue(self) -> bool:
        """Is there one queue for all CPUs?"""
        return self._shared_by_tunable or self.shared_seen

    @property
    def tells_tickets(self) -> bool:
        """Do tickets say more of those who wait than levels?"""
        return self.name in _TICKETS or (not self.levels and self.shares_by == "tickets")

    def tunable(self, name: str, otherwise: int) -> int:
        """Its value now: as set, of the preset, the default, or `otherwise`."""
        if name in self.tunables:
            return self.tunables[name]
        policy = self._catalogue.get(self.name)
        if policy is None:
            return otherwise
        preset = policy.presets.get(self.text.partition(":")[2])
        if preset and name in preset.values:
            return preset.values[name]
        return policy.tunables[name].default if name in policy.tunables else otherwise

    def level_of_waiting(self, level: int, since_ns: int, now_ns: int, tick_ns: int) -> int:
        """At which someone is served now who was queued at `level`.

        A boost of mlfq lifts all who wait at once, and no trace tells of it: it comes at each
        multiple of its time, to all but those above the top (policies/mlfq.c).
        """
        length_ns = self.tunable("boost", 0) * tick_ns if self.name == "mlfq" else 0
        if length_ns <= 0 or since_ns // length_ns == now_ns // length_ns:
            return level
        return max(level, self.tunable("levels", 1) - 1)

    def in_words(self, remark: int, level: int, tickets: int | None) -> str:
        """What a decision's remark means. `tickets`: of all among whom was drawn, if known."""
        if self.name == "mlfq" or self.name == "priority":
            return f"level {remark}: the best at which anyone waits"
        if self.name == "hybrid":
            return f"{_of(remark, tickets)} at level {level}"
        if self.name == "lottery":
            return self._ticket_drawn(remark, tickets)
        if self.name == "stride":
            return f"the least pass: {remark / 1e6:,.3f} ms"
        if self.name == "wrr" or self.name == "rr":
            return "next in turn"
        return f"remark {remark}" if remark else ""

    def _ticket_drawn(self, remark: int, tickets: int | None) -> str:
        fixed = self.tunable("fixed_tickets", 100 if self.text == "lottery:equal-lfsr" else 0)
        multiplies = any(
            self.tunable(name, 256 if name == "compensation" and ":" not in self.text else least)
            > least
            for name, least in _LOTTERY_MULTIPLIES.items()
        )
        if multiplies:
            return f"ticket {remark // _LOTTERY_UNITS}, by tickets as they count now"
        return _of(remark, None if fixed else tickets)


def _of(ticket: int, tickets: int | None) -> str:
    if tickets is None or ticket >= tickets:
        return f"ticket {ticket}"
    return f"ticket {ticket} of {tickets}"
