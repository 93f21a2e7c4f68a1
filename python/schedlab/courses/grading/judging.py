# SPDX-License-Identifier: MIT
"""Judges a run by a test's expectations, and finds its first difference from the solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl

from schedlab.base.display.numbers import milliseconds, moment
from schedlab.courses.grading.graded_run import Seen
from schedlab.courses.grading.lab import Expectation, LabTest
from schedlab.courses.grading.moment_pictures import drawn
from schedlab.metrics.intervals import cpu_intervals
from schedlab.trace import Kind
from schedlab.trace.divergence import Divergence, first_divergence, picks

_PARTS = 100
"""Partial credit is rounded down to this fraction of a point."""


@dataclass(frozen=True)
class Judged:
    """The result of an expectation."""

    points: Fraction
    why: str = ""
    """Why points were lost."""
    picture: str = ""
    at_ns: int | None = None
    """Time (ns) of the failure in the trace; None if it has no moment."""


def judge(test: LabTest, expected: Expectation, seen: Seen, right: Seen) -> Judged:
    """Judges a run; `right` is the solution's run.

    Expectations about the kernel and about instructions are judged elsewhere.
    """
    judges = {"law": _law, "order": _order, "levels": _levels, "figure": _figure}
    judged = judges[expected.kind](test, expected, seen, right)
    if judged.points != expected.points and test.policy_clock_ns:
        begins = f"the policy's clock began at {moment(test.policy_clock_ns, 0)}"
        if test.policy_run_time_ns:
            begins += f", run times at {moment(test.policy_run_time_ns, 0)}"
        judged = replace(judged, why=f"{judged.why}; {begins}")
    if judged.points == expected.points or judged.at_ns is not None:
        return judged
    return _with_the_first_decision(judged, test, seen, right)


def _with_the_first_decision(judged: Judged, test: LabTest, seen: Seen, right: Seen) -> Judged:
    """Adds the first decision that differs from the solution's, which may have caused the loss."""
    difference = first_divergence(seen.trace, right.trace, timed=True)
    if difference is None:
        return judged
    at_ns = seen.window.begin_ns + difference.time_ns
    why = f"{judged.why}; it first decides otherwise than the solution when {_turns(difference)}"
    return replace(judged, why=why, picture=drawn(seen, right, at_ns, test.tick_ns), at_ns=at_ns)


def judge_instructions(expected: Expectation, executed: int, right: int) -> Judged:
    """Compares the WebAssembly instructions of all hooks with the solution's.

    Another compiler version changes both counts.
    """
    assert expected.at_most
    if executed <= expected.at_most * right:
        return Judged(expected.points)
    why = (
        f"its hooks execute {executed:,} instructions of WebAssembly, {executed / right:.2f} times as many as the"
        f" solution's, which execute {right:,}"
    )
    return Judged(Fraction(0), why)


def _turns(difference: Divergence) -> str:
    return (
        f"CPU {difference.cpu} turns to {difference.one or 'no process any more'}; right is"
        f" {difference.other or 'none: it had picked for the last time'}"
    )


def _law(test: LabTest, expected: Expectation, seen: Seen, _right: Seen) -> Judged:
    """Judges a rule: "ends" is met, because a failed run is not judged; otherwise, CPUs must not idle."""
    if expected.law == "ends":
        return Judged(expected.points)
    violation = _idle_while_waiting(test, seen)
    if violation is None:
        return Judged(expected.points)
    cpu, begin, end, name = violation
    why = f"from {_ms(begin, seen)} on, CPU {cpu} idles for {milliseconds(end - begin)} while {name} waits for a CPU"
    return Judged(Fraction(0), why, drawn(seen, None, begin, test.tick_ns), begin)


def _idle_while_waiting(test: LabTest, seen: Seen) -> tuple[int, int, int, str] | None:
    """Returns the first CPU that idles longer than a tick while a process waits: CPU, begin, end, process."""
    idle = cpu_intervals(seen.trace).filter(pl.col("pid") == 0)
    waits = seen.states.filter(pl.col("state") == "runnable")
    names = seen.groups_of()
    violations: list[tuple[int, int, int, str]] = []
    begins, ends = waits["begin_ns"].to_numpy(), waits["end_ns"].to_numpy()
    pids = waits["pid"].to_numpy()
    for cpu, begin, end in idle.select("cpu", "begin_ns", "end_ns").iter_rows():
        first = np.maximum(begins, begin)
        last = np.minimum(ends, end)
        for place in np.flatnonzero(last - first > test.tick_ns).tolist():
            pid = int(pids[place])
            if pid in names:
                violations.append(
                    (cpu, int(first[place]), int(last[place]), f"{names[pid]} ({pid})")
                )
    return min(violations, key=lambda violation: (violation[1], violation[0]), default=None)


def _order(test: LabTest, expected: Expectation, seen: Seen, right: Seen) -> Judged:
    difference = first_divergence(seen.trace, right.trace, timed=True)
    if difference is None:
        return Judged(expected.points)
    at_ns = difference.time_ns
    whose = right.groups_of()
    times = [
        pick.time_ns
        for cpu in range(test.cpus)
        for pick in picks(right.trace, cpu)
        if pick.pid in whose
    ]
    before = sum(time < at_ns for time in times)
    part = Fraction(before, len(times)) if times and not expected.all_or_nothing else Fraction(0)
    points = Fraction(int(expected.points * part * _PARTS), _PARTS)
    begin_ns = seen.window.begin_ns
    why = (
        f"after {before} of {len(times)} decisions that are right, {_turns(difference)}"
        f"{_waiting(seen, begin_ns + at_ns, difference.other.pid if difference.other else 0)}"
    )
    return Judged(points, why, drawn(seen, right, begin_ns + at_ns, test.tick_ns), begin_ns + at_ns)


def _waiting(seen: Seen, at_ns: int, pid: int) -> str:
    """Returns since when the correct process had waited, as a clause for a message."""
    rows = seen.states.filter(
        (pl.col("pid") == pid)
        & (pl.col("state") == "runnable")
        & (pl.col("begin_ns") <= at_ns)
        & (pl.col("end_ns") >= at_ns)
    )
    return f", which waited since {_ms(int(rows['begin_ns'][0]), seen)}" if len(rows) else ""


def _levels(test: LabTest, expected: Expectation, seen: Seen, _right: Seen) -> Judged:
    """Judges the levels of a group's first process at the times of its queueing."""
    pids = [pid for pid, group in seen.groups_of().items() if group == expected.of]
    if not pids:
        return Judged(Fraction(0), f"there is no process of the group {expected.of}")
    rows = seen.trace.rows(Kind.QUEUED)
    rows = rows[seen.trace.at("process", rows) == min(pids)]
    levels = seen.trace.at("second", rows)
    times = seen.trace.at("time_ns", rows)
    new = np.flatnonzero(np.diff(levels, prepend=-1) != 0)
    levels_seen = levels[new].tolist()[: len(expected.levels)]
    if tuple(levels_seen) == expected.levels:
        return Judged(expected.points)
    same = next(
        (
            i
            for i, (one, other) in enumerate(zip(levels_seen, expected.levels, strict=False))
            if one != other
        ),
        len(levels_seen),
    )
    expected_levels = expected.levels[same]
    at_ns = int(times[new[same]]) if same < len(levels_seen) else None
    got = (
        f"is queued at level {levels_seen[same]} at {_ms(at_ns, seen)}"
        if at_ns is not None
        else "is queued at no other level"
    )
    why = f"after {same} levels that are right, {expected.of} ({min(pids)}) {got}; right is {expected_levels}"
    return Judged(Fraction(0), why, drawn(seen, None, at_ns, test.tick_ns) if at_ns else "", at_ns)


def _figure(test: LabTest, expected: Expectation, seen: Seen, _right: Seen) -> Judged:
    value = _value(expected, seen)
    if value is None:
        return Judged(
            Fraction(0), f"there is no {expected.figure} of {expected.of or 'the workload'}"
        )
    least, most = expected.at_least, expected.at_most
    if (least is None or value >= least) and (most is None or value <= most):
        return Judged(expected.points)
    at_ns = _longest(expected, seen)[1] if expected.figure == "longest_wait" else None
    bound = least if least is not None and value < least else most
    assert bound is not None
    word = "at least" if bound is least else "at most"
    why = (
        f"{expected.figure} of {expected.of or 'the workload'} is {expected.shown(value)}, and is to be {word}"
        f" {expected.shown(bound)}"
    )
    if at_ns is None:
        return Judged(Fraction(0), why)
    why += f": the wait begins at {_ms(at_ns, seen)}"
    return Judged(Fraction(0), why, drawn(seen, None, at_ns, test.tick_ns), at_ns)


def _value(expected: Expectation, seen: Seen) -> float | None:
    if expected.figure == "longest_wait":
        return _longest(expected, seen)[0]
    if expected.figure == "remark_max":
        return _remark_max(seen)
    table = seen.metrics.summary
    if expected.of:
        table = seen.metrics.groups.filter(pl.col("group") == expected.of)
    column = f"{expected.figure}_ns" if expected.is_time else expected.figure
    if not len(table) or column not in table.columns:
        return None
    value: float | None = table[column][0]
    return value


def _remark_max(seen: Seen) -> int | None:
    """Returns the largest annotation value among decisions for the workload's processes."""
    rows = seen.trace.rows(Kind.DECISION)
    rows = rows[np.isin(seen.trace.at("process", rows), list(seen.groups_of()))]
    return int(seen.trace.at("second", rows).max()) if len(rows) else None


def _longest(expected: Expectation, seen: Seen) -> tuple[int | None, int]:
    """Returns the longest wait of a process in the group (ns), and its begin."""
    pids = [pid for pid, group in seen.groups_of().items() if expected.of in ("", group)]
    waits = seen.states.filter((pl.col("state") == "runnable") & pl.col("pid").is_in(pids))
    if not len(waits):
        return (0 if pids else None), 0
    lengths = (waits["end_ns"] - waits["begin_ns"]).to_numpy()
    place = int(lengths.argmax())
    return int(lengths[place]), int(waits["begin_ns"][place])


def _ms(time_ns: int, seen: Seen) -> str:
    """Returns a time relative to the measured window's begin."""
    return milliseconds(time_ns - seen.window.begin_ns)
