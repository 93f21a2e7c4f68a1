# SPDX-License-Identifier: MIT
"""Computes theoretical turnaround times and slowdowns of a workload's jobs, for load curves (docs/sweeps.md)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from schedlab.analysis import queueing as means
from schedlab.workload.distributions import Constant, Distribution, Exponential
from schedlab.workload.model import ATTRIBUTES, Step, Task, WorkloadFile, all_items
from schedlab.workload.times import Time

PRIORITY_ATTRIBUTE = "priority"
PRIORITY_CURVES = {"preempt": "priorities, preemptive", "wait": "priorities, non-preemptive"}
"""Names of the curves for the effects of priorities (`Policy.priorities`)."""


@dataclass(frozen=True)
class Stream:
    """Jobs of a task with Poisson arrivals and one priority; times in nanoseconds."""

    group: str
    priority: int
    rate: float
    work: means.Work
    drawn: Distribution


def theoretical_rows(
    file: WorkloadFile, group: str | None, tick_ns: int, cpus: int, rules: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Returns rows of load, series and means for Poisson jobs that only compute, without overhead.

    `group` selects jobs for the means; the others still compete. `rules` are the effects of
    priorities, which give a curve each if jobs have several priorities.
    """
    streams = _streams(file, tick_ns, cpus)
    shown = [stream for stream in streams if group in (None, stream.group)]
    if not shown:
        return []
    all_jobs, shown_moments = _merge_streams(streams), _merge_streams(shown)
    rate, work, mean = all_jobs.rate, all_jobs.work, shown_moments.work.mean
    drawn = {stream.drawn for stream in streams}
    is_single_exponential = len(drawn) == 1 and isinstance(all_jobs.drawn, Exponential)
    expected: dict[str, tuple[float, float | None]] = {}
    if cpus == 1:
        waits = means.first_come_response(rate, work) - work.mean
        slowdown = means.processor_sharing_slowdown(rate, work.mean)
        expected["first come, first served"] = waits + mean, None
        expected["processor sharing"] = mean * slowdown, slowdown
        if is_single_exponential:
            shortest = means.shortest_remaining_response(
                rate, lambda part: -mean * math.log(1 - part)
            )
            expected["shortest remaining first"] = shortest, None
        if len({stream.priority for stream in streams}) > 1:
            for rule, name in PRIORITY_CURVES.items():
                if rule in rules:
                    expected[name] = _priority_turnaround(streams, shown, rule == "preempt"), None
    elif is_single_exponential:
        expected["one queue, first come, first served"] = (
            means.several_servers_response(rate, work.mean, cpus),
            None,
        )
    return [
        {
            "load": file.load,
            "series": name,
            "steady_turnaround_mean_ns": stay,
            "steady_slowdown_mean": slow,
        }
        for name, (stay, slow) in expected.items()
        if math.isfinite(stay)
    ]


def _priority_turnaround(
    streams: Sequence[Stream], shown: Sequence[Stream], preemptive: bool
) -> float:
    """Returns the mean turnaround (ns) of the shown jobs if the lowest priority number runs first."""
    levels = sorted({stream.priority for stream in streams})
    classes = [_merge_streams([s for s in streams if s.priority == level]) for level in levels]
    delays = means.priority_delays(
        [(stream_class.rate, stream_class.work) for stream_class in classes], preemptive
    )
    delay_by_priority = dict(zip(levels, delays, strict=True))
    stays = (
        stream.rate * delay_by_priority[stream.priority].response_time(stream.work.mean)
        for stream in shown
    )
    return sum(stays) / sum(stream.rate for stream in shown)


def _merge_streams(streams: Sequence[Stream]) -> Stream:
    """Merges streams: adds the rates and mixes the work."""
    rate = sum(stream.rate for stream in streams)
    mean = sum(stream.rate * stream.work.mean for stream in streams) / rate
    square = sum(stream.rate * stream.work.square for stream in streams) / rate
    first = streams[0]
    return Stream(first.group, first.priority, rate, means.Work(mean, square), first.drawn)


def _streams(file: WorkloadFile, tick_ns: int, cpus: int) -> list[Stream]:
    """Returns all jobs of a file; empty if theory does not cover one of its tasks."""
    works = {task.name: _work_distribution(task) for task in file.tasks if task.instances}
    if not file.load or None in works.values():
        return []
    scale = file.gap_scale(tick_ns, cpus)
    return [
        stream
        for task in file.tasks
        if (work := works.get(task.name))
        for stream in _streams_by_priority(task, work, scale, tick_ns)
    ]


def _streams_by_priority(
    task: Task, drawn: Distribution, scale: float, tick_ns: int
) -> Iterator[Stream]:
    """Yields the task's jobs by priority, which may be random."""
    assert task.arrivals and task.arrivals.gaps
    rate = 1 / task.arrivals.gaps.moments_ns(tick_ns)[0] / scale
    work = means.Work(*drawn.moments_ns(tick_ns))
    chosen = task.drawn.get(PRIORITY_ATTRIBUTE)
    if chosen is None:
        standard = ATTRIBUTES[PRIORITY_ATTRIBUTE].standard
        yield Stream(
            task.group, task.attributes.get(PRIORITY_ATTRIBUTE, standard), rate, work, drawn
        )
        return
    for priority, weight in zip(chosen.values, chosen.weights, strict=True):
        probability = weight / sum(chosen.weights)
        if probability:
            yield Stream(task.group, priority, rate * probability, work, drawn)


def _work_distribution(task: Task) -> Distribution | None:
    """Returns the distribution of a job's work; None if jobs do anything else or arrivals are not Poisson."""
    steps = [
        item for item in all_items(task.body) if not (isinstance(item, Step) and not item.time)
    ]
    arrivals = task.arrivals
    if (
        arrivals is None
        or not isinstance(arrivals.gaps, Exponential)
        or arrivals.batch.values != (1,)
    ):
        return None
    if (
        len(task.body) != 1
        or len(steps) != 1
        or not isinstance(steps[0], Step)
        or steps[0].words != "run"
    ):
        return None
    time = steps[0].time
    if isinstance(time, Time):
        return Constant(time)
    return time if isinstance(time, Distribution) else None
