# SPDX-License-Identifier: MIT
"""Draws load curves of policies: turnaround against load, with theoretical curves (docs/sweeps.md)."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table

from schedlab.analysis import queueing as means
from schedlab.analysis.comparison.statistics import estimate
from schedlab.base.display.numbers import three_digits
from schedlab.base.display.terminal import new_table
from schedlab.base.files.replacement import check_file, path_in_folder
from schedlab.base.toolchain.policies import known_policies, parse_choices
from schedlab.errors import WrongUsage, format_parameter
from schedlab.metrics.registry import STEADY
from schedlab.report.model import Chart
from schedlab.sweep import dataset, ranges
from schedlab.sweep.columns import SHAPE_COLUMN
from schedlab.sweep.description import Description
from schedlab.sweep.expansion import Point
from schedlab.sweep.origin import MADE_OF_KEY
from schedlab.sweep.plan import change_column
from schedlab.units import parse_time
from schedlab.workload import workload_files
from schedlab.workload.distributions import Constant, Distribution, Exponential
from schedlab.workload.model import ATTRIBUTES, Step, Task, WorkloadFile, all_items
from schedlab.workload.times import Time

LOAD_PLACE = "load"
"""The load's place in a workload file."""
LOAD_COLUMN = change_column(LOAD_PLACE)
DEFAULT_POINTS = 10
DEFAULT_SEEDS = "1..5"
"""Default seeds; intervals need several."""
DEFAULT_LIMIT = "60m"
"""Default limit in guest time; at low loads, jobs arrive for a long time."""
DRAWN_COLUMNS = {
    metric.column: metric.short
    for metric in STEADY
    if metric.error and metric.column != metric.error
}
"""Drawn columns with their titles."""
_TABLE_COLUMNS = (
    "steady_turnaround_mean_ns",
    "steady_turnaround_p99_ns",
    "steady_slowdown_mean",
    "steady_slowdown_p99",
    "steady_slowdown_p999",
    "steady_response_p99_ns",
)
_SCENE_COLUMNS = ("workload", "machine", "costs", "cpus", "tick_ns")
_MOST_POINTS = 1000
_LOAD_RANGE = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)(?:\+(\d+(?:\.\d+)?))?")


def expand_loads(text: str) -> str:
    """Expands an option's loads to a list: "0.1-0.95" gives ten, "0.1-0.9+0.2" five.

    Raises WrongUsage.
    """
    loads: list[float] = []
    for part in text.split(","):
        range_match = _LOAD_RANGE.fullmatch(part.strip())
        if range_match:
            first, last = float(range_match[1]), float(range_match[2])
            step = (
                float(range_match[3]) if range_match[3] else (last - first) / (DEFAULT_POINTS - 1)
            )
            if last <= first:
                raise WrongUsage(
                    "the lower end must come first",
                    what=format_parameter("load", part),
                    fix=f"write {range_match[2]}-{range_match[1]}",
                )
            if step * _MOST_POINTS < last - first:
                raise WrongUsage(
                    f"the step is too small: there are at most {_MOST_POINTS} steps",
                    what=format_parameter("load", part),
                    fix="write a larger step after +",
                )
            loads += [first + step * i for i in range(int((last - first) / step + 1.000001))]
        elif re.fullmatch(r"\d+(\.\d+)?", part.strip()):
            loads.append(float(part))
        else:
            raise WrongUsage(
                "not a list of loads",
                what=format_parameter("load", part),
                fix="write 0.1-0.95, 0.1-0.9+0.1 or 0.3,0.6,0.9",
            )
    return ",".join(dict.fromkeys(f"{load:.4g}" for load in loads))


@dataclass(frozen=True)
class Scene:
    """The data of one picture: runs that differ only in policy, load and seed."""

    title: str
    runs: pl.DataFrame
    """Columns: load, setup, seed, and the columns of SHOWN."""
    theory: pl.DataFrame
    """Columns: load, series, and the columns of SHOWN that theory covers."""


@dataclass(frozen=True)
class Jobs:
    """A workload whose jobs theory describes."""

    workload: str
    """Name of the workload, as in the data set's column."""
    cpus: int
    tick_ns: int
    file: WorkloadFile


def list_jobs(points: Iterable[Point]) -> list[Jobs]:
    """Returns the jobs of a sweep that has just run."""
    return [
        Jobs(run.workload, run.cpus, run.tick_ns, run.file)
        for run in (point.run for point in points)
        if run.file and run.file.load
    ]


def read_stored_jobs(folder: Path) -> list[Jobs]:
    """Returns the jobs of a data set, from its stored files."""
    jobs = []
    for facts in dataset.read_manifest(folder).get(MADE_OF_KEY, {}).values():
        place = path_in_folder(
            folder / dataset.FILES_FOLDER, f"{facts.get('workload_sha256')}.json"
        )
        if place.is_file():
            file = workload_files.read_workload_file(place, list(facts.get("changes", {}).items()))
            jobs.append(Jobs(facts["workload"], facts["cpus"], facts["tick_ns"], file))
    return jobs


def with_loads(description: Description, loads: str) -> Description:
    """Returns the description with these loads for each workload file. Raises WrongUsage."""
    workloads_without_load = [
        workload.name for workload in description.workloads if workload.kind != "file"
    ]
    if workloads_without_load:
        raise WrongUsage(
            f"{workloads_without_load[0]} is not a workload file",
            what="`load=`",
            fix="name a workload file with arriving jobs",
        )
    values = ranges.Listed(tuple(float(load) for load in loads.split(",")))
    return replace(
        description,
        workloads=tuple(
            replace(workload, changes={**workload.changes, LOAD_PLACE: values})
            for workload in description.workloads
        ),
        limit_ns=parse_time(DEFAULT_LIMIT)
        if description.limit_ns is None
        else description.limit_ns,
    )


def read_scenes(
    folder: Path, group: str | None, jobs: Iterable[Jobs], loads: str | None = None
) -> Iterator[Scene]:
    """Yields the scenes of a data set, optionally only these loads.

    Raises WrongUsage if there are none.
    """
    if LOAD_COLUMN not in dataset.read_runs_columns(folder):
        raise WrongUsage("was not swept over loads", what=str(folder), fix="sweep it with `load=`")
    runs = dataset.read_table(folder, dataset.RUNS).filter(pl.col("status") == "success")
    if group is not None:
        group_rows = dataset.read_table(folder, dataset.GROUPS).filter(pl.col("group") == group)
        runs = runs.drop(*DRAWN_COLUMNS).join(group_rows.select("key", *DRAWN_COLUMNS), on="key")
    setup = pl.col("policy") + pl.when(pl.col("settings") != "").then(
        " " + pl.col("settings")
    ).otherwise(pl.lit(""))
    runs_with_load = runs.filter(pl.col(LOAD_COLUMN).is_not_null()).with_columns(
        setup=setup, load=pl.col(LOAD_COLUMN).cast(pl.Float64)
    )
    if loads is not None:
        runs_with_load = runs_with_load.filter(
            pl.col("load").is_in([float(load) for load in loads.split(",")])
        )
    if runs_with_load.is_empty():
        raise WrongUsage(
            "no run with a load succeeded"
            + (f", or none has processes of the group {group}" if group else ""),
            what=str(folder),
            fix="see the messages of its failed runs"
            + (", or name another group" if group else ""),
        )
    files = [run for run in jobs if run.file.load]
    scene_columns = (*_SCENE_COLUMNS, *({SHAPE_COLUMN} & set(runs_with_load.columns)))
    for scene, part in (
        runs_with_load.sort(*scene_columns)
        .partition_by(*scene_columns, as_dict=True, maintain_order=True)
        .items()
    ):
        scene_values = dict(zip(scene_columns, scene, strict=True))
        shape = scene_values.get(SHAPE_COLUMN)
        scene_runs = [
            run
            for run in files
            # Theory assumes equally fast CPUs and does not cover shapes.
            if shape is None
            and (run.workload, run.cpus, run.tick_ns)
            == (scene_values["workload"], scene_values["cpus"], scene_values["tick_ns"])
        ]
        of_group = f", group {group}" if group else ""
        cpus = f"{scene_values['cpus']} CPU{'s' if scene_values['cpus'] > 1 else ''}"
        if shape:
            cpus += f" ({shape})"
        title = f"{scene_values['workload']} on {scene_values['machine']}, {cpus}{of_group}"
        runs_by_load = {run.file.load: run for run in scene_runs}
        rules = priority_effects(part["policy"].unique())
        rows = [
            row
            for run in runs_by_load.values()
            for row in theoretical_rows(run.file, group, run.tick_ns, run.cpus, rules)
        ]
        yield Scene(
            title,
            part.select("load", "setup", "seed", *DRAWN_COLUMNS),
            pl.DataFrame(rows, infer_schema_length=None),
        )


def priority_effects(policies: Iterable[str]) -> set[str]:
    """Returns the effects of priorities under these policies and presets; skips unknown ones."""
    rules = set()
    for choice in (choice for name in policies for choice in parse_choices(name)):
        policy = known_policies().get(choice.name)
        if policy and (not choice.preset or choice.preset in policy.presets):
            rules.add(policy.priorities_under(choice.preset))
    return rules


# --- what is shown


def load_table(scene: Scene) -> Table:
    """Returns a table of each policy at each load, with means over the seeds."""
    units = {name: unit_of_column(scene, name) for name in _TABLE_COLUMNS}
    headings = []
    for name in _TABLE_COLUMNS:
        title = DRAWN_COLUMNS[name].replace(", ", ",\n").replace(" percentile", "")
        unit = units[name][1]
        headings.append(f">{title}\n({unit})" if unit else f">{title}")
    result_table = new_table(scene.title, ">load", "policy", *headings)
    for (load, setup), policy_rows in (
        scene.runs.sort("load", "setup")
        .partition_by("load", "setup", as_dict=True, maintain_order=True)
        .items()
    ):
        cells = []
        for name in _TABLE_COLUMNS:
            values = policy_rows[name].drop_nulls().to_list()
            cells.append(_mean_with_spread([value * units[name][0] for value in values]))
        result_table.add_row(f"{load:g}", str(setup), *cells)
    return result_table


def _mean_with_spread(values: list[float]) -> str:
    """Returns the mean of the seeds' values as text; a dash if a value is missing."""
    if not values:
        return "–"
    mean = estimate(values)
    spread = f" ± {three_digits((mean.high - mean.low) / 2)}" if mean.has_interval else ""
    return f"{three_digits(mean.mean)}{spread}"


def unit_of_column(scene: Scene, column: str) -> tuple[float, str]:
    """Returns the factor and unit for displaying a column."""
    if not column.endswith("_ns"):
        return 1.0, ""
    typical_ns = scene.runs[column].drop_nulls().median() or 0
    return (1e-6, "ms") if float(str(typical_ns)) >= 1e5 else (1e-3, "µs")


def load_charts(scene: Scene) -> Iterator[tuple[str, Chart]]:
    """Yields a chart for each column of SHOWN with values, by name; none if all values are zero."""
    from schedlab.report.charts import draw_if_possible, lines

    for column, title in DRAWN_COLUMNS.items():
        factor, unit = unit_of_column(scene, column)
        measured = scene.runs.select("load", "setup", value=pl.col(column) * factor)
        if measured["value"].null_count() == len(measured):
            continue
        ideal = _theoretical_curves(scene.theory, column, factor)
        name = column.removesuffix("_ns").removeprefix("steady_").replace("_", "-")
        for chart in draw_if_possible(
            lines,
            column.replace("_", "-"),
            measured,
            title=f"{title[0].upper()}{title[1:]}, against the load",
            caption=f"{scene.title}. The first tenth of the jobs is excluded."
            + (" Thin lines: theory, without overhead." if ideal is not None else ""),
            x="load",
            y="value",
            x_title="load (part of all CPUs)",
            y_title=f"{title} ({unit})" if unit else title,
            series="setup",
            ideal=ideal,
            log=True,
        ):
            yield name, chart


def _theoretical_curves(theory: pl.DataFrame, column: str, factor: float) -> pl.DataFrame | None:
    """Returns the theoretical curves of a column (load, series, value), merging equal curves.

    None if there are none.
    """
    if column not in theory.columns:
        return None
    value = pl.col(column).cast(pl.Float64) * factor
    lines = theory.select("load", "series", value=value).drop_nulls().sort("load")
    curves = lines.group_by("series", maintain_order=True).agg(
        "load", "value", shape=pl.col("value").round_sig_figs(6)
    )
    joined = curves.group_by("shape", maintain_order=True).agg(
        pl.col("series").str.join("; "), pl.col("load", "value").first()
    )
    points = joined.select("series", "load", "value").explode("load", "value")
    return None if points.is_empty() else points


def draw_load_curves(scene: Scene, place: Path, replaces: bool) -> list[Path]:
    """Writes the charts to paths that begin with `place`; overwrites files only if `replaces` is true."""
    from schedlab.sweep.best import write_chart

    drawn = []
    for name, chart in load_charts(scene):
        path = place.with_name(f"{place.stem}-{name}{place.suffix}")
        if not replaces:
            check_file("chart", path)
        write_chart(chart, path)
        drawn.append(path)
    return drawn


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
