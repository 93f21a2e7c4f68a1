# SPDX-License-Identifier: MIT
"""Determines which CPUs and threads a recording covers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from schedlab.recordings.events import Events, Loss, Switch

_BREAKS_FRACTION, _BREAKS_MIN = 0.05, 10
"""Thresholds above which a recording without lost events is classified as a recording of threads.

A break is a switch away from a thread although the CPU's previous switch led to another thread.
"""
_CPU_OPTION = re.compile(r"(?:^| )(?:-C|--cpu)(?:=| +)?([\d,-]+)(?= |$)")
_ALL_CPUS = re.compile(r"(?:^| )(?:-a|--all-cpus)(?= |$)| sched record(?= |$)")
_RECORD = re.compile(r" record(?= |$)")


@dataclass(frozen=True)
class Coverage:
    """The recorded CPUs and threads."""

    unrecorded: frozenset[int] = frozenset()
    """CPUs that were not recorded."""
    by_thread: bool = False
    """True if only some threads were recorded: a CPU's activity is known only while one of them runs."""

    @property
    def is_complete(self) -> bool:
        """True if the activity of all CPUs was recorded."""
        return not self.unrecorded and not self.by_thread


def coverage_of(events: Events, cpus: int, command: str = "", all_cpus: bool = False) -> Coverage:
    """Returns what a recording of a machine with `cpus` CPUs covers.

    `command`: perf's command line, if the file contains it. `all_cpus`: the tool always
    records all CPUs. Otherwise a CPU without events counts as unrecorded.
    """
    silent = set(range(cpus)) - {event.cpu for event in events.events}
    words = command.partition(" -- ")[0]
    if chosen := _CPU_OPTION.search(words):
        return Coverage(frozenset(range(cpus)) - frozenset(_numbers(chosen[1])))
    if _ALL_CPUS.search(words):
        all_cpus = True
    elif _RECORD.search(words):
        return Coverage(frozenset(silent), by_thread=True)
    by_thread = _is_broken(events)
    return Coverage(frozenset() if all_cpus and not by_thread else frozenset(silent), by_thread)


def _numbers(text: str) -> Iterator[int]:
    """Yields the CPUs of a list such as 0,2-3."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit():
            yield from range(int(first), min(int(last) if last.isdigit() else int(first), 8191) + 1)


def _is_broken(events: Events) -> bool:
    """True if the switches of many CPUs are inconsistent, although no event was lost."""
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
