# SPDX-License-Identifier: MIT
"""Determines which CPUs and which threads a recording covers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from schedlab.recordings.events import Events, Loss, Switch

_BREAKS_FRACTION, _BREAKS_MIN = 0.05, 10
"""If switches contradict each other more often, the recording is one of single threads, not of
CPUs.

The two numbers are a fraction of all switches, and a minimum. A contradiction is a switch away from
a thread although the CPU's previous switch led to another thread. Lost events also cause
contradictions, so only recordings without losses are tested.
"""
_CPU_OPTION = re.compile(r"(?:^| )(?:-C|--cpu)(?:=| +)?([\d,-]+)(?= |$)")
_ALL_CPUS = re.compile(r"(?:^| )(?:-a|--all-cpus)(?= |$)| sched record(?= |$)")
_RECORD = re.compile(r" record(?= |$)")


@dataclass(frozen=True)
class Coverage:
    """The recorded CPUs and threads."""

    unrecorded: frozenset[int] = frozenset()
    """CPUs that the recording does not cover."""
    by_thread: bool = False
    """True if only some threads were recorded: a CPU's activity is known only while one of them runs."""

    @property
    def is_complete(self) -> bool:
        """Returns whether the activity of all CPUs was recorded."""
        return not self.unrecorded and not self.by_thread


def coverage_of(events: Events, cpus: int, command: str = "", all_cpus: bool = False) -> Coverage:
    """Returns what the recording of a machine with `cpus` CPUs covers.

    `command`: perf's command line, if known. `all_cpus`: the tool always records all CPUs.
    Otherwise, CPUs without events count as not recorded.
    """
    silent = set(range(cpus)) - {event.cpu for event in events.events}
    words = command.partition(" -- ")[0]
    if chosen := _CPU_OPTION.search(words):
        return Coverage(frozenset(range(cpus)) - frozenset(_parse_cpu_list(chosen[1])))
    if _ALL_CPUS.search(words):
        all_cpus = True
    elif _RECORD.search(words):
        return Coverage(frozenset(silent), by_thread=True)
    by_thread = _has_contradictions(events)
    return Coverage(frozenset() if all_cpus and not by_thread else frozenset(silent), by_thread)


def _parse_cpu_list(text: str) -> Iterator[int]:
    """Yields the CPUs in a list such as 0,2-3."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit():
            yield from range(int(first), min(int(last) if last.isdigit() else int(first), 8191) + 1)


def _has_contradictions(events: Events) -> bool:
    """Returns whether the switches of many CPUs contradict each other, although no event was lost."""
    current: dict[int, int] = {}
    switches = breaks = 0
    for event in events.events:
        if isinstance(event, Loss):
            return False
        if isinstance(event, Switch):
            switches += 1
            breaks += current.get(event.cpu, event.previous) != event.previous
            current[event.cpu] = event.next
    return breaks > max(_BREAKS_FRACTION * switches, _BREAKS_MIN)
