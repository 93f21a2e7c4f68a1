# SPDX-License-Identifier: MIT
"""Converts numbers of thread states in recordings to Linux's letters.

Linux does not guarantee the meaning of the bits. The lowest four have long been the same. Release
4.14 changed the others. Some values were used only since then, which distinguishes recordings.
"""

import re
from collections.abc import Callable

from schedlab.recordings.events import Events, Switch

_LOW_LETTERS = "SDTt"
"""Letters of the lowest four bits."""
_SINCE_4_14 = "XZPI"
"""Letters of the next four bits since release 4.14. The bit after them means "preempted"."""
_PREEMPTED_SINCE_4_14 = 0x100
_ONLY_SINCE_4_14 = frozenset((0x10, 0x20, 0x80, _PREEMPTED_SINCE_4_14))
"""Values that only releases since 4.14 use.

Before, a thread that ended had _DEAD, and an idle kernel thread had _IDLE. A preempted thread had a
higher bit, whose position changed over time.
"""
_DEAD, _PARKED, _IDLE = 0x40, 0x200, 0x402
_IDLE_IN_TRACE_CMD = "W"
"""Letter that trace-cmd's plugin prints for the state that Linux calls I since 4.14.

Before, no thread left its CPU with that value alone.
"""
_KERNEL_THREAD_NAME = re.compile(r"(ksoftirqd|kworker|migration|cpuhp|swapper)/|rcu_|irq/")
"""Names of kernel threads. Only kernel threads can be in the idle state (I), but not all of them are."""


def finish(events: Events) -> None:
    """Converts the numeric states of all switches to letters.

    Also finds kernel threads by their states, and discards headers that are wrong.
    """
    events.forget_false_headers()
    numbers = {
        event.state: int(event.state, 0)
        for event in events.events
        if isinstance(event, Switch) and event.state[0].isdigit()
    }
    letters = {
        state: _letter_function(set(numbers.values()))(number) for state, number in numbers.items()
    }
    for index, event in enumerate(events.events):
        if not isinstance(event, Switch):
            continue
        state = letters.get(event.state, event.state)
        if state is not event.state:
            events.events[index] = event._replace(state=state)
        if (
            "I" in state
            or state == _IDLE_IN_TRACE_CMD
            or _KERNEL_THREAD_NAME.match(event.previous_name)
        ):
            events.of_kernel.add(event.previous)


def _letter_function(numbers: set[int]) -> Callable[[int], str]:
    """Returns the function that maps state numbers to letters, for this kernel's version."""
    return _letter_since_4_14 if numbers & _ONLY_SINCE_4_14 else _letter_before_4_14


def _letter_since_4_14(number: int) -> str:
    if number & _PREEMPTED_SINCE_4_14:
        return "R+"
    return _letters(number, _LOW_LETTERS + _SINCE_4_14)


def _letter_before_4_14(number: int) -> str:
    if number & _DEAD:
        return "X"
    if number == _PARKED:
        return "P"
    if number & _IDLE == _IDLE:
        return "I"
    return "R+" if number > _PARKED and not number & 0xF else _letters(number, _LOW_LETTERS)


def _letters(mask: int, letters: str) -> str:
    """Returns the letters whose bits are set, with | between them."""
    return "|".join(letter for bit, letter in enumerate(letters) if mask & 1 << bit) or "R"
