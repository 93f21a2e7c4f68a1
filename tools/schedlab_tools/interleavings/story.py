# SPDX-License-Identifier: MIT
"""Describes how a run fails: where CPUs were held, what other CPUs did during that time, and the consequence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from schedlab import trace
from schedlab.base.display.numbers import milliseconds
from schedlab.base.toolchain.source_lines import Place, find_places
from schedlab.machines.folder import TRACE_FILE
from schedlab.metrics.intervals import cpu_intervals, state_intervals
from schedlab.trace import Kind, Trace
from schedlab_tools.interleavings.holds import Hold
from schedlab_tools.interleavings.search import SmallestFailure

_EVENTS_MAX = 6
"""The most records of other CPUs to show."""
_TURNS_MAX = 12
"""The most turns to show; of more, the last ones are shown."""
_HELPER_CODE = ("kernel/sync/spinlock.", "kernel/lib/")
"""Code whose callers are more informative."""


def describe_failure(
    result: SmallestFailure, holds: tuple[Hold, ...], folder: Path
) -> Iterator[str]:
    """Yields lines that describe a run, whose trace is in a folder."""
    setup = result.setup
    yield f"{setup.workload} under {setup.policy} on {setup.cpus} CPUs, seed {result.seed}:"
    if not holds:
        yield "  it breaks even if all turns have their normal length"
    else:
        yield f"  {len(holds)} of {result.drawn:,} turns of other than normal length are enough:"
    addresses = {place for hold in holds for place in (hold.address, hold.caller - 1)}
    places = find_places(setup.kernel, addresses)
    trace = _read(folder / TRACE_FILE)
    if len(holds) > _TURNS_MAX:
        yield f"  …, and then the last {_TURNS_MAX}:"
    for number, hold in enumerate(sorted(holds, key=lambda hold: hold.at_ns)[-_TURNS_MAX:], 1):
        hold_places = [*places.get(hold.address, []), *places.get(hold.caller - 1, [])]
        yield from _hold_lines(number, hold, hold_places, trace)
    yield f"  Then {result.failure.words}"
    if trace is not None and result.failure.kind in ("limit", "hung"):
        yield from _blocked(trace)


def _read(path: Path) -> Trace | None:
    """Returns the trace at this path, or None if it cannot be read."""
    try:
        return trace.read(path)
    except (OSError, trace.TraceError):
        return None


def _hold_lines(number: int, hold: Hold, places: list[Place], seen: Trace | None) -> Iterator[str]:
    """Yields the lines about one held CPU."""
    location = next(
        (place for place in places if not any(part in place.file for part in _HELPER_CODE)), None
    )
    call_text = " (called, and not yet awake)" if hold.called else ""
    yield (
        f"  {number}. at {milliseconds(hold.at_ns, 4)} CPU {hold.cpu}{_running_text(hold, seen)} stands still for"
        f" {hold.length_ns / 1000:.1f} µs{call_text}, in {_place_text(location)}"
    )
    if seen is not None:
        yield from (f"       {line}" for line in _events_during(hold, seen))


def _place_text(place: Place | None) -> str:
    """Returns a place in the kernel's source in words."""
    if place is None:
        return "a program"
    is_named = not place.function.startswith(".")  # a label of the assembler
    return str(place) if is_named else f"{place.file}:{place.line}"


def _running_text(hold: Hold, seen: Trace | None) -> str:
    """Returns which process ran on the held CPU."""
    if seen is None:
        return ""
    spans = cpu_intervals(seen).filter(
        (pl.col("cpu") == hold.cpu)
        & (pl.col("begin_ns") <= hold.at_ns)
        & (pl.col("end_ns") >= hold.at_ns)
    )
    pid = int(spans["pid"][-1]) if len(spans) else 0
    return f", which runs process {pid}," if pid else ""


_EVENT_TEXTS: dict[Kind, str] = {
    Kind.FORK: "process {process} forks {first}",
    Kind.EXIT: "process {process} ends",
    Kind.BLOCK: "process {process} begins to wait",
    Kind.WAKEUP: "process {process} is woken",
    Kind.SWITCH: "it turns to {process}",
    Kind.QUEUED: "process {process} is queued for CPU {first}",
}


def _events_during(hold: Hold, trace: Trace) -> list[str]:
    """Returns the records of other CPUs during the hold."""
    rows = trace.events.filter(
        (pl.col("cpu") != hold.cpu)
        & pl.col("time_ns").is_between(hold.at_ns, hold.at_ns + hold.length_ns)
        & pl.col("kind").is_in([int(kind) for kind in _EVENT_TEXTS])
    )
    event_texts = [_event_text(row) for row in rows.head(_EVENTS_MAX).iter_rows(named=True)]
    hidden_count = len(rows) - len(event_texts)
    return [*event_texts, *([f"and {hidden_count} more"] if hidden_count else [])]


def _event_text(row: dict[str, Any]) -> str:
    """Returns a record in words."""
    kind = Kind(int(row["kind"]))
    if kind is Kind.SWITCH and not row["process"]:
        description = "it idles"
    else:
        description = _EVENT_TEXTS[kind].format(process=row["process"], first=row["first"])
    return f"{milliseconds(row['time_ns'], 4)}, CPU {row['cpu']}: {description}"


def _blocked(trace: Trace) -> Iterator[str]:
    """Yields the processes that are blocked at the end, with their reasons."""
    rows = state_intervals(trace).filter(
        (pl.col("state") == "blocked") & pl.col("end_row").is_null()
    )
    for row in rows.tail(_EVENTS_MAX).iter_rows(named=True):
        reason = row["cause"].removeprefix("blocked: ")
        yield f"  Process {row['pid']} waits since {milliseconds(row['begin_ns'], 4)}: {reason}"
