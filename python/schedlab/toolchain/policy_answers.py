# SPDX-License-Identifier: MIT
"""What the policies themselves answer about tasks and machines of which only a trace tells.

Their C code is called (tools/policy_answers.c): nothing that a policy computes is computed here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from schedlab.toolchain.policies import Catalogue

TUNABLES_MAX = 32
"""POLICY_TUNABLES_MAX of policies/policy.h."""


class _Question(ctypes.Structure):
    _fields_ = (
        ("policy", ctypes.c_char_p),
        ("tick_ns", ctypes.c_uint64),
        ("tunables", ctypes.c_int64 * TUNABLES_MAX),
    )


class _Answer(ctypes.Structure):
    _fields_ = (("shared_queue", ctypes.c_uint64), ("ticket_parts", ctypes.c_uint64))


class _Waiting(ctypes.Structure):
    _fields_ = (
        ("level", ctypes.c_uint64),
        ("since", ctypes.c_uint64),
        ("pid", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("weight", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("tickets", ctypes.c_uint64),
    )


class WaitingTask(NamedTuple):
    """What a trace tells of a task that waits; `since`: nanoseconds."""

    level: int
    since: int
    pid: int
    priority: int
    weight: int
    tickets: int


class Standing(NamedTuple):
    """Where a task stands now: the level at which it is served, the tickets with which it draws."""

    level: int
    tickets: int


class PolicyAnswers:
    """The answers of a policy or preset (name or name:preset) under tunables."""

    def __init__(
        self, catalogue: Catalogue, text: str, set_values: Mapping[str, int], tick_ns: int
    ) -> None:
        """Of a policy that is not in the catalogue, or not ours, nothing is known: each CPU has a
        queue, and a level is what it was."""
        name, _, preset = text.partition(":")
        policy = catalogue.get(name)
        self._question: _Question | None = None
        answer = _Answer(0, 1)
        if policy is not None and policy.number is not None:
            known = policy.tunables_of(preset if preset in policy.presets else "")
            values = [set_values.get(each, policy.value(preset, each)) for each in known]
            tunables = (ctypes.c_int64 * TUNABLES_MAX)(*values)
            question = _Question(text.encode(), tick_ns, tunables)
            if _library().policy_answer(ctypes.byref(question), ctypes.byref(answer)):
                self._question = question
        self.shared_queue = bool(answer.shared_queue)
        """Does one queue serve all CPUs?"""
        self.ticket_parts: int = answer.ticket_parts
        """The number of parts into which a draw divides a ticket."""

    def __deepcopy__(self, memo: object) -> PolicyAnswers:
        """Returns itself: it never changes."""
        return self

    def standing(self, tasks: Iterable[WaitingTask], now_ns: int) -> list[Standing]:
        """The standing of tasks that wait, in their order."""
        rows = list(tasks)
        if self._question is None or not rows:
            return [Standing(row.level, row.tickets) for row in rows]
        waiting = (_Waiting * len(rows))()
        for place, row in enumerate(rows):
            waiting[place] = _Waiting(
                row.level, row.since, row.pid, row.priority, row.weight, 0, row.tickets
            )
        _library().policy_standing(ctypes.byref(self._question), now_ns, waiting, len(rows))
        return [Standing(each.level, each.tickets) for each in waiting]


@cache
def _library() -> ctypes.CDLL:
    from schedlab.toolchain.build import POLICY_ANSWERS, build

    build(str(POLICY_ANSWERS.relative_to(POLICY_ANSWERS.parents[1])))
    library = ctypes.CDLL(str(POLICY_ANSWERS))
    pointer = ctypes.c_void_p
    library.policy_answer.argtypes = [pointer, pointer]
    library.policy_answer.restype = ctypes.c_bool
    library.policy_standing.argtypes = [pointer, ctypes.c_uint64, pointer, ctypes.c_uint64]
    library.policy_standing.restype = ctypes.c_bool
    return library
