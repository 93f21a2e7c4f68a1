# SPDX-License-Identifier: MIT
"""The states in which threads leave a CPU, where a recording has them as numbers.

Which bit means what is no promise of Linux. The lowest four have been the same for long; the others were given new
meanings by release 4.14, which a recording shows by values that the older releases did not report.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from schedlab.recordings.events import Events, Switch

_LOW = "SDTt"
"""The lowest four bits."""
_SINCE_4_14 = "XZPI"
"""The next four, since then; then comes the one that says "preempted"."""
_PREEMPTED_SINCE_4_14 = 0x100
_ONLY_SINCE_4_14 = frozenset((0x10, 0x20, 0x80, _PREEMPTED_SINCE_4_14))
"""Before, a thread that ended left with _DEAD, an idle one of the kernel with _IDLE, and one that was preempted with a
bit above those, which moved as states were added."""
_DEAD, _PARKED, _IDLE = 0x40, 0x200, 0x402
_IDLE_IN_TRACE_CMD = "W"
"""So its plugin calls the number that Linux calls I since 4.14; before, no thread left with that number alone."""
_OF_A_CPU = re.compile(r"(ksoftirqd|kworker|migration|cpuhp|swapper)/|rcu_|irq/")
"""Names of some threads of the kernel. Only they are idle (I) when they wait, but not all of them are."""


def finish(events: Events) -> None:
    """Makes letters of the numbers of all switches, notes threads whose states show that they are the kernel's, and
    removes headers that are wrong."""
    events.forget_false_headers()
    numbers = {
        event.state: int(event.state, 0)
        for event in events.events
        if isinstance(event, Switch) and event.state[0].isdigit()
    }
    letters = {state: _teller(set(numbers.values()))(number) for state, number in numbers.items()}
    for at, event in enumerate(events.events):
        if not isinstance(event, Switch):
            continue
        state = letters.get(event.state, event.state)
        if state is not event.state:
            events.events[at] = event._replace(state=state)
        if "I" in state or state == _IDLE_IN_TRACE_CMD or _OF_A_CPU.match(event.previous_name):
            events.of_kernel.add(event.previous)


def _teller(numbers: set[int]) -> Callable[[int], str]:
    return _since_4_14 if numbers & _ONLY_SINCE_4_14 else _before_4_14


def _since_4_14(number: int) -> str:
    if number & _PREEMPTED_SINCE_4_14:
        return "R+"
    return _letters(number, _LOW + _SINCE_4_14)


def _before_4_14(number: int) -> str:
    if number & _DEAD:
        return "X"
    if number == _PARKED:
        return "P"
    if number & _IDLE == _IDLE:
        return "I"
    return "R+" if number > _PARKED and not number & 0xF else _letters(number, _LOW)


def _letters(number: int, of: str) -> str:
    return "|".join(letter for bit, letter in enumerate(of) if number & 1 << bit) or "R"
