# SPDX-License-Identifier: MIT
"""Compares study 4's mixed benchmark with the published output of its programs.

The output has the task that ran at each tick, and the turnaround of each task. Times are in ticks.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from types import SimpleNamespace
from typing import ClassVar

import polars as pl

from schedlab.base.display.numbers import NO_VALUE
from schedlab.report.studies import queries
from schedlab.report.studies.page_writer import line
from schedlab.report.studies.queries import first, in_ticks
from schedlab.report.study_tables import Measurement
from schedlab.studies.agreement import NEAR_FRACTION, NEAR_TICKS, is_near
from schedlab.studies.experiment import name_with_study_costs
from schedlab.studies.experiments import MIXED_SIZES, PHASE_SIZES
from schedlab.studies.figures import Figure, Source
from schedlab.studies.study import Study

ROUNDS, PHASES = "s4-rounds", "s4-phases"


class MixedBenchmark(queries.Queries):
    """Queries about the mixed benchmark. Times are in ticks."""

    kinds: ClassVar = {"interactive": "inter", "CPU-bound": "cpu"}
    """Kinds of tasks of the mixed benchmark, and their groups in schedlab's runs."""
    sizes = MIXED_SIZES
    rounds_experiment = ROUNDS

    def turnaround(self, kind: str, scheduler: str, size: int) -> Measurement:
        """Returns the mean turnaround of one kind of task, in ticks."""
        value, rows = in_ticks(first("turnaround_mean_ns")), self._group(self.kinds[kind])
        return self.of(f"s4-mixed-{size}", scheduler, value, rows)

    def in_rounds(
        self, kind: str, scheduler: str, size: int, with_study_costs: bool = False
    ) -> Measurement:
        """Returns the mean turnaround in whole ticks that programs
        report, with all rounds in one boot.
        """
        rows = self._with_last("round")
        if len(rows):
            is_finish_time = (pl.col("round") == size) & (pl.col("name") == "finished")
            rows = rows.filter(is_finish_time & (pl.col("group") == self.kinds[kind]))
        experiment = name_with_study_costs(ROUNDS) if with_study_costs else ROUNDS
        return self.of(experiment, scheduler, pl.col("value").mean(), rows)

    def compared_turnaround(self, kind: str, scheduler: str, size: int) -> Measurement:
        """Returns the turnaround (ticks) that is compared with the authors' value.

        If all rounds were run in one boot, uses these; otherwise uses separate rounds.
        """
        if self.ran(ROUNDS, scheduler):
            return self.in_rounds(kind, scheduler, size)
        return self.turnaround(kind, scheduler, size)

    def feedback_is_quicker(self, size: int) -> bool:
        """True if interactive tasks finish earlier under the feedback
        queue than under round-robin.
        """
        feedback_mean, round_robin_mean = (
            self.compared_turnaround("interactive", scheduler, size).mean
            for scheduler in ("MLFQ", "RR")
        )
        return (
            feedback_mean is not None
            and round_robin_mean is not None
            and feedback_mean < round_robin_mean
        )

    def benchmark_runs(self) -> list[str]:
        """Returns the experiments that `compared_turnaround` reads."""
        if self.ran(ROUNDS):
            return [ROUNDS]
        return [f"s4-mixed-{size}" for size in self.sizes]

    def turnaround_by_moment(self, with_study_costs: bool = False) -> Measurement:
        """Returns the turnaround (ticks) of interactive tasks under MLFQ with the most CPU-bound tasks.

        There is a value for each moment when the round began.
        """
        return self.turnaround_by_phase(
            name_with_study_costs(PHASES) if with_study_costs else PHASES
        )

    def moments(self, with_study_costs: bool = False) -> SimpleNamespace:
        """Returns the minimum, the maximum and the number of the turnarounds of
        `turnaround_by_moment`.
        """
        values = self.turnaround_by_moment(with_study_costs).values
        return SimpleNamespace(least=min(values), most=max(values), count=len(values))

    def has_moments(self, with_study_costs: bool = False) -> bool:
        """Returns whether the turnarounds of `turnaround_by_moment` were measured."""
        return bool(self.turnaround_by_moment(with_study_costs).values)

    def within_moments(self) -> bool:
        """Returns whether the authors' turnaround lies between the minimum and the maximum."""
        published = self.authors("interactive", "MLFQ", max(self.sizes))
        moments = self.moments()
        return bool(published and moments.least <= published.value <= moments.most)

    phases: ClassVar = {
        **{f"{PHASES}-{size}": size for size in PHASE_SIZES},
        PHASES: MIXED_SIZES[-1],
    }
    """Experiments that begin a round at eight moments between two boosts, and the size of each."""

    def turnaround_by_phase(self, experiment: str) -> Measurement:
        """Returns the mean turnaround of interactive processes, begun at each moment, in ticks."""
        value, rows = in_ticks(first("turnaround_mean_ns")), self._group(self.kinds["interactive"])
        return self.of(experiment, "MLFQ", value, rows)

    def phase_extreme(
        self, which: Callable[[Iterable[float]], float], experiment: str
    ) -> Measurement:
        """Returns the minimum (`min`) or maximum (`max`) of `turnaround_by_phase`, in ticks."""
        measured = self.turnaround_by_phase(experiment)
        return Measurement((which(measured.values),)) if measured.values else measured

    def phase_footnote(self, kind: str, scheduler: str, size: int) -> str:
        """Returns the footnote about a difference that the beginning of the round explains; otherwise ""."""
        experiment = next(
            (name for name, phase_size in self.phases.items() if phase_size == size), ""
        )
        figure, measured = (
            self.authors(kind, scheduler, size),
            self.compared_turnaround(kind, scheduler, size).mean,
        )
        if (kind, scheduler) != ("interactive", "MLFQ") or figure is None or measured is None:
            return ""
        if is_near(figure, measured) or not self.published_within_phases(
            [experiment] if experiment else []
        ):
            return ""
        times = self.turnaround_by_phase(experiment).values
        return line(f"""Explained by the start of the round between two boosts: started at {len(times)} moments, it
        takes {min(times):.0f} to {max(times):.0f} ticks.""")

    def published_within_phases(self, experiments: Iterable[str]) -> list[str]:
        """Returns the experiments whose published value lies between
        the minimum and the maximum.
        """
        within_range = []
        for experiment in experiments:
            figure = self.authors("interactive", "MLFQ", self.phases[experiment])
            times = self.turnaround_by_phase(experiment).values
            if figure and times and min(times) <= figure.value <= max(times):
                within_range.append(experiment)
        return within_range

    def authors(
        self, kind: str, scheduler: str, size: int, source: Source = "authors"
    ) -> Figure | None:
        """Returns the published turnaround in the authors' output, or in the rerun."""
        return self.figure("section 4.2", f"{size} CPU-bound", f"{scheduler} {kind}", source)


_TRACED_TASKS = ("4", "5", "6")
"""The three tasks of figures 7 and 8. Other tasks ran at the other ticks."""
_FIGURE_OF_SCHEDULER = {"MLFQ": "7", "RR": "8"}


def published_ticks(study: Study, scheduler: str) -> pl.DataFrame:
    """Returns which of the three traced tasks ran at each tick of a published figure.

    Ticks count from the first tick of a traced task.

    Columns: tick, process (0 to 2), level.
    """
    turns = pl.read_csv(study.folder / f"figure-{_FIGURE_OF_SCHEDULER[scheduler]}.csv")
    ticks = (
        turns.with_columns(pl.int_ranges(pl.col("ticks")).alias("later"))
        .explode("later")
        .filter(pl.col("process").cast(pl.String).is_in(_TRACED_TASKS))
    )
    first = int(_TRACED_TASKS[0])
    return ticks.select(
        (pl.col("tick") + pl.col("later")).alias("tick") - pl.col("tick").first(),
        pl.col("process") - first,
        "level",
    )


def count_same_ticks(published: pl.DataFrame, measured_schedule: pl.DataFrame) -> SimpleNamespace:
    """Returns `same`, the number of published ticks when the same task ran here; `of`, all ticks; `levels`.

    If `measured_schedule` (tick, pid, level) has levels, `levels` is true, and the published levels
    must be equal, too. Tasks correspond in the order of their PIDs, and both schedules begin at their first
    tick.
    """
    pids = sorted(set(measured_schedule["pid"]))
    levels = measured_schedule["level"].null_count() < len(measured_schedule)
    measured = measured_schedule.select(
        (pl.col("tick") - pl.col("tick").first()).cast(pl.Int64).alias("tick"),
        pl.col("pid").cast(pl.Int64).replace_strict(pids, range(len(pids))).alias("process_here"),
        pl.col("level").alias("level_here"),
    )
    joined = published.join(measured, on="tick", how="left")
    is_same = pl.col("process") == pl.col("process_here")
    if levels:
        is_same &= pl.col("level") == pl.col("level_here")
    return SimpleNamespace(
        same=int(joined.select(is_same.sum()).item()), of=len(joined), levels=levels
    )


class AuthorsOutput(MixedBenchmark):
    """Queries about the authors' output. Times are in ticks."""

    def authors_times(self, scheduler: str, kind: str, size: int) -> list[int]:
        """Returns the authors' times from fork to exit of one kind of task in a round, sorted."""
        (ticks_text,) = self._rounds.filter(
            (pl.col("scheduler") == scheduler)
            & (pl.col("kind") == kind)
            & (pl.col("cpu_bound") == size)
        )["ticks"]
        return [int(number) for number in str(ticks_text).split()]

    @cached_property
    def _rounds(self) -> pl.DataFrame:
        """Returns the authors' output: the turnaround of each task of each round."""
        return pl.read_csv(self.study.folder / "rounds.csv", schema_overrides={"ticks": pl.String})

    def _times(
        self, scheduler: str, with_study_costs: bool
    ) -> dict[tuple[str, int], list[float]] | None:
        """Returns the measured times by kind and size, sorted: means over seeds
        of the shortest, the next, etc.

        Returns None if the rounds were not run, or a run failed.
        """
        experiment = name_with_study_costs(ROUNDS) if with_study_costs else ROUNDS
        setup = self.setup(experiment, scheduler)
        if setup is None or not setup.succeeded:
            return None
        texts = self._with_last("round")
        if texts.is_empty():
            return {}
        rows = texts.filter(
            (pl.col("experiment") == experiment)
            & (pl.col("policy") == self.schedulers[scheduler])
            & (pl.col("name") == "finished")
        )
        place = pl.col("value").rank("ordinal").over("run", "group", "round")
        by_place = (
            rows.with_columns(place.alias("place"))
            .group_by("group", "round", "place")
            .agg(pl.col("value").mean())
            .sort("place")
        )
        groups = {group: kind for kind, group in self.kinds.items()}
        times: dict[tuple[str, int], list[float]] = {}
        for group, size, _, value in by_place.iter_rows():
            times.setdefault((groups[group], int(size)), []).append(value)
        return times

    def agreement_of_tasks(
        self, agreement: str, scheduler: str, kind: str, with_study_costs: bool
    ) -> Measurement:
        """Compares the turnaround of each task with the authors' value, over all rounds.

        `agreement` is `near_flags` for the percentage of tasks with a near time, or `differences` for the mean
        difference in percent.
        """
        measured_times = self._times(scheduler, with_study_costs)
        if measured_times is None:
            return Measurement()
        near_flags, differences = [], []
        for size in self.sizes:
            published, measured = (
                self.authors_times(scheduler, kind, size),
                measured_times.get((kind, size), []),
            )
            if len(measured) != len(published):
                return Measurement((), NO_VALUE)
            for measured_ticks, published_ticks in zip(measured, published, strict=True):
                near_flags.append(
                    abs(measured_ticks - published_ticks)
                    <= max(NEAR_TICKS, NEAR_FRACTION * published_ticks)
                )
                differences.append(100 * abs(measured_ticks / published_ticks - 1))
        return Measurement(
            (
                100 * sum(near_flags) / len(near_flags)
                if agreement == "near"
                else sum(differences) / len(differences),
            )
        )

    def shortest_and_longest(
        self, scheduler: str, kind: str, size: int, which: int, whose: str
    ) -> Measurement:
        """Returns the shortest (0) or longest (-1) time of a round:
        `published`, `measured` or `costs`.
        """
        if whose == "published":
            return Measurement((self.authors_times(scheduler, kind, size)[which],))
        measured_times = self._times(scheduler, whose == "costs")
        if measured_times is None:
            return Measurement()
        measured = measured_times.get((kind, size))
        return Measurement((measured[which],)) if measured else Measurement((), NO_VALUE)
