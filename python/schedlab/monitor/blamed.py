# SPDX-License-Identifier: MIT
"""Waits of a process that is watched, taken apart as `./schedlab explain` does (docs/explain.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab import trace
from schedlab.analysis.explanation import Asked, explain
from schedlab.analysis.explanation.waits import KINDS
from schedlab.base.toolchain.policies import Catalogue, unknown
from schedlab.errors import WrongUsage
from schedlab.monitor.system import Refused

_WORST = 8
"""So many waits are taken apart."""
_PARTS = 40
"""So many parts of a wait are told one by one."""
_CHOICES = 5
_CPUS = 4


@dataclass(frozen=True)
class Question:
    """Which waits of a process are to be taken apart."""

    pid: int
    kinds: Sequence[str]
    """As of `./schedlab explain`."""
    time_ns: int
    """The moment that is shown: what comes later is not known."""
    begin_ns: int
    """Those that begin from here on."""
    at_ns: int | None
    """In place of these: those that go on then."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise WrongUsage(unknown("kind of wait", kind, KINDS))


def blamed(path: Path, question: Question, known: Catalogue) -> dict[str, Any]:
    """The longest of these waits in a trace's file; docs/monitor.md has the fields. Refused: it has no such process."""
    read = trace.read(path)
    request = Asked(
        str(question.pid),
        question.kinds,
        _WORST,
        begin_ns=question.begin_ns,
        end_ns=read.end_ns,
        at_ns=question.at_ns,
    )
    try:
        explanation = explain(read, request, known)
    except WrongUsage:
        raise Refused(f"no process {question.pid} has lived as far as the trace is kept") from None
    content = explanation.to_dict()
    return {
        "pid": question.pid,
        "begin_ns": question.begin_ns,
        "end_ns": read.end_ns,
        **{name: content[name] for name in ("waits", "waited_ns", "beside_idle_ns")},
        "wakeups_untold": content["wakeups_untold"],
        "longest": [
            {
                **{name: wait[name] for name in ("kind", "begin_ns", "end_ns", "duration_ns")},
                "parts": _parts(wait["parts"]),
                "idle_elsewhere": _idle(entry.idle_elsewhere_ns),
                "choices": [
                    {
                        "time_ns": choice.time_ns,
                        "cpu": choice.cpu,
                        "words": choice.told(explanation.names),
                    }
                    for choice in entry.choices[-_CHOICES:]
                ],
                "choices_before": max(len(entry.choices) - _CHOICES, 0),
            }
            for wait, entry in zip(content["longest"], explanation.longest, strict=True)
        ],
    }


def _idle(spent: Mapping[int, int]) -> list[dict[str, int]]:
    """The other CPUs that idled longest."""
    longest = sorted(spent, key=lambda cpu: -spent[cpu])[:_CPUS]
    return [{"cpu": cpu, "duration_ns": spent[cpu]} for cpu in longest]


def _parts(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """They add up to the wait; the shortest of many are one."""
    entries = [
        {
            "words": part["words"],
            "pid": part["pid"] or 0,
            "cause": part["cause"],
            "times": part["parts"],
            "duration_ns": part["duration_ns"],
        }
        for part in parts
    ]
    rest = entries[_PARTS:]
    if len(rest) < 2:
        return entries
    summed = {
        "words": f"{len(rest)} more",
        "pid": 0,
        "cause": "several",
        "times": sum(part["times"] for part in rest),
        "duration_ns": sum(part["duration_ns"] for part in rest),
    }
    return [*entries[:_PARTS], summed]
