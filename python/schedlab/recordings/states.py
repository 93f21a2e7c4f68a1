# SPDX-License-Identifier: MIT
"""Converts numeric thread states in recordings to letters.

Linux does not guarantee the meaning of the bits. The lowest four have been stable for long. Release
4.14 changed the others; a recording of a newer release shows values that older releases did not
use.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from schedlab.recordings.events import Events, Switch

_LOW = "SDTt"
"""The lowest four bits."""
_SINCE_4_14 = "XZPI"
"""The next four bits since release 4.14; the bit after them means "preempted"."""
_PREEMPTED_SINCE_4_14 = 0x100
_ONLY_SINCE_4_14 = frozenset((0x10, 0x20, 0x80, _PREEMPTED_SINCE_4_14))
"""Before 4.14, a thread that ended had _DEAD, and an idle kernel thread had _IDLE. A preempted
thread had a higher bit, whose position changed as states were added.
"""
_DEAD, _PARKED, _IDLE = 0x40, 0x200, 0x402
_IDLE_IN_TRACE_CMD = "W"
"""trace-cmd's plugin prints this letter for the state that Linux calls I since 4.14. Before, no
thread left with that value alone.
"""
_OF_A_CPU = re.compile(r"(ksoftirqd|kworker|migration|cpuhp|swapper)/|rcu_|irq/")
"""Names of some kernel threads. Only kernel threads can wait in the idle state (I), but not all of them do."""


def finish(events: Events) -> None:
    """Converts numeric states of all switches to letters, identifies kernel threads by their
    states, and removes wrong headers.
    """
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
