# SPDX-License-Identifier: MIT
"""Breaks down the waits of a process in a watched system, as `./schedlab explain` does (docs/explain.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab import trace
from schedlab.analysis.explanation import WaitQuery, explain
from schedlab.analysis.explanation.waits import KINDS
from schedlab.base.toolchain.policies import Catalogue, unknown
from schedlab.errors import WrongUsage
from schedlab.monitor.system import Refused

_WORST = 8
"""Number of waits that are broken down."""
_PARTS = 40
"""Parts of a wait that are reported separately."""
_CHOICES = 5
_CPUS = 4


@dataclass(frozen=True)
class Question:
    """The waits of a process that `explain` breaks down."""

    pid: int
    kinds: Sequence[str]
    """Kinds of waits, as in `./schedlab explain`."""
    time_ns: int
    """The moment shown (ns); later events are ignored."""
    begin_ns: int
    """Only waits that begin at or after this time (ns) are considered."""
    at_ns: int | None
    """If set, only waits in progress at this time (ns) are considered, regardless of `begin_ns`."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise WrongUsage(unknown("kind of wait", kind, KINDS))


def blamed(path: Path, question: Question, known: Catalogue) -> dict[str, Any]:
    """Breaks down the longest matching waits of a trace file; docs/monitor.md lists the fields.

    Raises Refused if the trace has no such process.
    """
    read = trace.read(path)
    request = WaitQuery(
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
        raise Refused(
            f"process {question.pid}: not in the stored part of the trace; choose another"
        ) from None
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
                        "words": choice.describe(explanation.names),
                    }
                    for choice in entry.choices[-_CHOICES:]
                ],
                "choices_before": max(len(entry.choices) - _CHOICES, 0),
            }
            for wait, entry in zip(content["longest"], explanation.longest, strict=True)
        ],
    }


def _idle(spent: Mapping[int, int]) -> list[dict[str, int]]:
    """Returns the other CPUs that idled longest, at most four."""
    longest = sorted(spent, key=lambda cpu: -spent[cpu])[:_CPUS]
    return [{"cpu": cpu, "duration_ns": spent[cpu]} for cpu in longest]


def _parts(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the parts, which add up to the wait; beyond the limit, the shortest become one part."""
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
