# SPDX-License-Identifier: MIT
"""Judges a run by a test's expectations, and finds its first difference from the solution."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl

from schedlab.base.display.numbers import milliseconds, moment
from schedlab.courses.grading.graded_run import GradedRun
from schedlab.courses.grading.lab import Expectation, LabTest
from schedlab.courses.grading.moment_pictures import draw_moment
from schedlab.courses.reasons import REASONS, reason
from schedlab.metrics.intervals import cpu_intervals
from schedlab.trace import Kind
from schedlab.trace.divergence import Divergence, first_divergence, list_picks

_CREDIT_STEPS = 100
"""Partial credit is rounded down to this fraction of a point."""


@dataclass(frozen=True)
class Judgement:
    """The points for an expectation, and why points were lost."""

    points: Fraction
    why: str = ""
    """Why points were lost."""
    picture: str = ""
    at_ns: int | None = None
    """Time (ns) of the failure in the trace; None if it has no moment."""


def judge_expectation(
    test: LabTest, expected: Expectation, submission_run: GradedRun, solution_run: GradedRun
) -> Judgement:
    """Judges a run; `solution_run` is the solution's run.

    Expectations about the kernel and about instructions are judged elsewhere.
    """
    judges = {
        "law": _judge_rule,
        "order": _judge_order,
        "levels": _judge_levels,
        "figure": _judge_figure,
    }
    judgement = judges[expected.kind](test, expected, submission_run, solution_run)
    if judgement.points != expected.points and (initial_times := describe_initial_times(test)):
        judgement = replace(judgement, why=f"{judgement.why}; {initial_times}")
    if judgement.points == expected.points or judgement.at_ns is not None:
        return judgement
    return _add_first_difference(judgement, test, submission_run, solution_run)


def describe_initial_times(test: LabTest) -> str:
    """Returns where the policy's clock and run times began, as a clause; empty if the clock began at 0."""
    if not test.policy_clock_ns:
        return ""
    clock, run_time = moment(test.policy_clock_ns, 0), moment(test.policy_run_time_ns, 0)
    name = "clock_and_run_times" if test.policy_run_time_ns else "clock"
    return reason(name, clock=clock, run_time=run_time)


def _add_first_difference(
    judgement: Judgement, test: LabTest, submission_run: GradedRun, solution_run: GradedRun
) -> Judgement:
    """Adds the first decision that differs from the solution's, which may have caused the loss."""
    difference = first_divergence(submission_run.trace, solution_run.trace, timed=True)
    if difference is None:
        return judgement
    at_ns = submission_run.window.begin_ns + difference.time_ns
    why = reason("first_difference", why=judgement.why, turn=_describe_decisions(difference))
    return replace(
        judgement,
        why=why,
        picture=draw_moment(submission_run, solution_run, at_ns, test.tick_ns),
        at_ns=at_ns,
    )


def judge_instructions(
    expected: Expectation, executed: int, solution_instructions: int
) -> Judgement:
    """Compares the WebAssembly instructions of all hooks with the solution's.

    Another compiler version changes both counts.
    """
    assert expected.at_most
    if executed <= expected.at_most * solution_instructions:
        return Judgement(expected.points)
    why = (
        f"its hooks execute {executed:,} instructions of WebAssembly,"
        f" {executed / solution_instructions:.2f} times as many as the solution's,"
        f" which execute {solution_instructions:,}"
    )
    return Judgement(Fraction(0), why)


def _describe_decisions(difference: Divergence) -> str:
    """Describes the picks that differ: the solution's task and the submission's."""
    return reason(
        "turn",
        cpu=difference.cpu,
        picked=difference.one or REASONS["no_pick"],
        right=difference.other or REASONS["no_right_pick"],
    )


def _judge_rule(
    test: LabTest, expected: Expectation, submission_run: GradedRun, _solution_run: GradedRun
) -> Judgement:
    """Judges a rule: "ends" is met, because a failed run is not judged; otherwise, CPUs must not idle."""
    if expected.invariant == "ends":
        return Judgement(expected.points)
    violation = _idle_while_waiting(test, submission_run)
    if violation is None:
        return Judgement(expected.points)
    cpu, begin, end, name = violation
    length = milliseconds(end - begin)
    why = reason(
        "idle", time=_time_text(begin, submission_run), cpu=cpu, length=length, process=name
    )
    return Judgement(
        Fraction(0), why, draw_moment(submission_run, None, begin, test.tick_ns), begin
    )


def _idle_while_waiting(
    test: LabTest, submission_run: GradedRun
) -> tuple[int, int, int, str] | None:
    """Returns the first CPU that idles longer than a tick while a process waits: CPU, begin, end, process."""
    idle = cpu_intervals(submission_run.trace).filter(pl.col("pid") == 0)
    waits = submission_run.states.filter(pl.col("state") == "runnable")
    names = submission_run.group_by_pid()
    violations: list[tuple[int, int, int, str]] = []
    begins, ends = waits["begin_ns"].to_numpy(), waits["end_ns"].to_numpy()
    pids = waits["pid"].to_numpy()
    for cpu, begin, end in idle.select("cpu", "begin_ns", "end_ns").iter_rows():
        first = np.maximum(begins, begin)
        last = np.minimum(ends, end)
        for index in np.flatnonzero(last - first > test.tick_ns).tolist():
            pid = int(pids[index])
            if pid in names:
                violations.append(
                    (cpu, int(first[index]), int(last[index]), f"{names[pid]} ({pid})")
                )
    return min(violations, key=lambda violation: (violation[1], violation[0]), default=None)


def _judge_order(
    test: LabTest, expected: Expectation, submission_run: GradedRun, solution_run: GradedRun
) -> Judgement:
    """Judges the order of time slices: points for the part before the first difference from the
    expected order.
    """
    difference = first_divergence(submission_run.trace, solution_run.trace, timed=True)
    if difference is None:
        return Judgement(expected.points)
    at_ns = difference.time_ns
    groups = solution_run.group_by_pid()
    times = [
        pick.time_ns
        for cpu in range(test.cpus)
        for pick in list_picks(solution_run.trace, cpu)
        if pick.pid in groups
    ]
    matching_picks = sum(time < at_ns for time in times)
    fraction = (
        Fraction(matching_picks, len(times))
        if times and not expected.all_or_nothing
        else Fraction(0)
    )
    points = Fraction(int(expected.points * fraction * _CREDIT_STEPS), _CREDIT_STEPS)
    begin_ns = submission_run.window.begin_ns
    waited = _waiting_since(
        submission_run, begin_ns + at_ns, difference.other.pid if difference.other else 0
    )
    decisions = _describe_decisions(difference)
    why = reason("order", same=matching_picks, all=len(times), turn=decisions, waited=waited)
    return Judgement(
        points,
        why,
        draw_moment(submission_run, solution_run, begin_ns + at_ns, test.tick_ns),
        begin_ns + at_ns,
    )


def _waiting_since(submission_run: GradedRun, at_ns: int, pid: int) -> str:
    """Returns since when the correct process had waited, as a clause for a message."""
    rows = submission_run.states.filter(
        (pl.col("pid") == pid)
        & (pl.col("state") == "runnable")
        & (pl.col("begin_ns") <= at_ns)
        & (pl.col("end_ns") >= at_ns)
    )
    return (
        reason("waited", time=_time_text(int(rows["begin_ns"][0]), submission_run))
        if len(rows)
        else ""
    )


def _judge_levels(
    test: LabTest, expected: Expectation, submission_run: GradedRun, _solution_run: GradedRun
) -> Judgement:
    """Judges the levels of a group's first process at the times of its queueing."""
    pids = [pid for pid, group in submission_run.group_by_pid().items() if group == expected.group]
    if not pids:
        return Judgement(Fraction(0), reason("no_group", group=expected.group))
    rows = submission_run.trace.rows(Kind.QUEUED)
    rows = rows[submission_run.trace.at("process", rows) == min(pids)]
    levels = submission_run.trace.at("second", rows)
    times = submission_run.trace.at("time_ns", rows)
    level_changes = np.flatnonzero(np.diff(levels, prepend=-1) != 0)
    levels_seen = levels[level_changes].tolist()[: len(expected.levels)]
    if tuple(levels_seen) == expected.levels:
        return Judgement(expected.points)
    matching_levels = next(
        (
            i
            for i, (one, other) in enumerate(zip(levels_seen, expected.levels, strict=False))
            if one != other
        ),
        len(levels_seen),
    )
    at_ns = (
        int(times[level_changes[matching_levels]]) if matching_levels < len(levels_seen) else None
    )
    actual_level = (
        reason(
            "at_level", level=levels_seen[matching_levels], time=_time_text(at_ns, submission_run)
        )
        if at_ns is not None
        else REASONS["at_no_level"]
    )
    expected_level = expected.levels[matching_levels]
    why = reason(
        "levels",
        same=matching_levels,
        group=expected.group,
        pid=min(pids),
        got=actual_level,
        right=expected_level,
    )
    return Judgement(
        Fraction(0),
        why,
        draw_moment(submission_run, None, at_ns, test.tick_ns) if at_ns else "",
        at_ns,
    )


def _judge_figure(
    test: LabTest, expected: Expectation, submission_run: GradedRun, _solution_run: GradedRun
) -> Judgement:
    """Judges whether a metric is within its limits."""
    value = _figure_value(expected, submission_run)
    group = expected.group or "the workload"
    if value is None:
        return Judgement(Fraction(0), reason("no_figure", figure=expected.figure, group=group))
    least, most = expected.at_least, expected.at_most
    if (least is None or value >= least) and (most is None or value <= most):
        return Judgement(expected.points)
    at_ns = (
        _longest_wait(expected, submission_run)[1] if expected.figure == "longest_wait" else None
    )
    is_below = least is not None and value < least
    bound = least if is_below else most
    assert bound is not None
    texts = {"value": expected.format_value(value), "bound": expected.format_value(bound)}
    why = reason("below" if is_below else "above", figure=expected.figure, group=group, **texts)
    if at_ns is None:
        return Judgement(Fraction(0), why)
    why = reason("wait_begins", why=why, time=_time_text(at_ns, submission_run))
    return Judgement(
        Fraction(0), why, draw_moment(submission_run, None, at_ns, test.tick_ns), at_ns
    )


def _figure_value(expected: Expectation, submission_run: GradedRun) -> float | None:
    """Returns the metric of the expectation's group; None if it has no value."""
    if expected.figure == "longest_wait":
        return _longest_wait(expected, submission_run)[0]
    if expected.figure == "remark_max":
        return _largest_annotation(submission_run)
    table = submission_run.metrics.summary
    if expected.group:
        table = submission_run.metrics.groups.filter(pl.col("group") == expected.group)
    column = f"{expected.figure}_ns" if expected.is_time else expected.figure
    if not len(table) or column not in table.columns:
        return None
    value: float | None = table[column][0]
    return value


def _largest_annotation(submission_run: GradedRun) -> int | None:
    """Returns the largest annotation value among decisions for the workload's processes."""
    rows = submission_run.trace.rows(Kind.DECISION)
    rows = rows[
        np.isin(submission_run.trace.at("process", rows), list(submission_run.group_by_pid()))
    ]
    return int(submission_run.trace.at("second", rows).max()) if len(rows) else None


def _longest_wait(expected: Expectation, submission_run: GradedRun) -> tuple[int | None, int]:
    """Returns the longest wait of a process in the group (ns), and its begin."""
    pids = [
        pid for pid, group in submission_run.group_by_pid().items() if expected.group in ("", group)
    ]
    waits = submission_run.states.filter(
        (pl.col("state") == "runnable") & pl.col("pid").is_in(pids)
    )
    if not len(waits):
        return (0 if pids else None), 0
    lengths = (waits["end_ns"] - waits["begin_ns"]).to_numpy()
    longest_index = int(lengths.argmax())
    return int(lengths[longest_index]), int(waits["begin_ns"][longest_index])


def _time_text(time_ns: int, submission_run: GradedRun) -> str:
    """Returns a time relative to the measured window's begin."""
    return milliseconds(time_ns - submission_run.window.begin_ns)
