# SPDX-License-Identifier: MIT
"""Breaks down a watched process's waits by their causes, as `./schedlab explain` does (docs/explain.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab import trace
from schedlab.analysis.explanation import WaitQuery, explain
from schedlab.analysis.explanation.waits import WAIT_KINDS
from schedlab.base.toolchain.policies import Catalogue, describe_unknown_name
from schedlab.errors import WrongUsage
from schedlab.monitor.system import Refused

_WAITS_MAX = 8
"""Number of waits that are broken down."""
_PARTS_MAX = 40
"""Maximum number of parts that are listed per wait."""
_CHOICES_MAX = 5
_IDLE_CPUS_MAX = 4


@dataclass(frozen=True)
class WaitQuestion:
    """Which waits of a process to break down."""

    pid: int
    kinds: Sequence[str]
    """Kinds of waits, with the names of `./schedlab explain`."""
    time_ns: int
    """The time (ns) that the user looks at; later events are ignored."""
    begin_ns: int
    """Waits that began before this time (ns) are ignored."""
    at_ns: int | None
    """If set, only waits in progress at this time (ns) count, regardless of `begin_ns`."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in WAIT_KINDS:
                raise WrongUsage(describe_unknown_name("kind of wait", kind, WAIT_KINDS))


def break_down_waits(path: Path, question: WaitQuestion, known: Catalogue) -> dict[str, Any]:
    """Breaks down the longest waits that match a question; docs/monitor.md lists the result's
    fields.

    `path`: the trace file. Raises Refused if the trace has no such process.
    """
    read = trace.read(path)
    request = WaitQuery(
        str(question.pid),
        question.kinds,
        _WAITS_MAX,
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
                **{
                    name: wait[name]
                    for name in ("kind", "begin_ns", "end_ns", "duration_ns", "ended")
                },
                "parts": _parts(wait["parts"]),
                "idle_elsewhere": _longest_idle(entry.idle_elsewhere_ns),
                "choices": [
                    {
                        "time_ns": choice.time_ns,
                        "cpu": choice.cpu,
                        "words": choice.describe(explanation.names),
                    }
                    for choice in entry.choices[-_CHOICES_MAX:]
                ],
                "choices_before": max(len(entry.choices) - _CHOICES_MAX, 0),
            }
            for wait, entry in zip(content["longest"], explanation.longest, strict=True)
        ],
    }


def _longest_idle(spent: Mapping[int, int]) -> list[dict[str, int]]:
    """Returns the other CPUs that were idle for longest during a wait, at most four."""
    longest = sorted(spent, key=lambda cpu: -spent[cpu])[:_IDLE_CPUS_MAX]
    return [{"cpu": cpu, "duration_ns": spent[cpu]} for cpu in longest]


def _parts(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the parts of a wait; merges the shortest ones to keep within the limit."""
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
    hidden_entries = entries[_PARTS_MAX:]
    if len(hidden_entries) < 2:
        return entries
    summed = {
        "words": f"{len(hidden_entries)} more",
        "pid": 0,
        "cause": "several",
        "times": sum(part["times"] for part in hidden_entries),
        "duration_ns": sum(part["duration_ns"] for part in hidden_entries),
    }
    return [*entries[:_PARTS_MAX], summed]
