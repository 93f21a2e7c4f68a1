# SPDX-License-Identifier: MIT
"""Study 4's mixed benchmark, and what its authors published as output of their programs, beside ours: who ran at
each tick, and how long each process took."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from types import SimpleNamespace
from typing import ClassVar

import polars as pl

from schedlab.base.display.numbers import NOTHING
from schedlab.report.studies import queries
from schedlab.report.studies.queries import first, in_ticks
from schedlab.report.studies.writing import line
from schedlab.report.study_tables import Measured
from schedlab.studies.agreement import NEAR, NEAR_TICKS, is_near
from schedlab.studies.experiment import on_their_costs
from schedlab.studies.experiments import MIXED_SIZES, PHASE_SIZES
from schedlab.studies.figures import Figure, Source
from schedlab.studies.pack import Study

ROUNDS, PHASES = "s4-rounds", "s4-phases"


class MixedBenchmark(queries.Queries):
    """Times are in ticks."""

    kinds: ClassVar = {"interactive": "inter", "CPU-bound": "cpu"}
    """The processes of the mixed benchmark, and their groups in our runs."""
    sizes = MIXED_SIZES
    rounds_experiment = ROUNDS

    def turnaround(self, kind: str, scheduler: str, size: int) -> Measured:
        """Mean of the processes of one kind, in ticks."""
        value, rows = in_ticks(first("turnaround_mean_ns")), self._group(self.kinds[kind])
        return self.of(f"s4-mixed-{size}", scheduler, value, rows)

    def in_rounds(
        self, kind: str, scheduler: str, size: int, their_costs: bool = False
    ) -> Measured:
        """The same where all rounds are run in one boot, in whole ticks, as the programs tell it."""
        rows = self._told_since("round")
        if len(rows):
            is_finish_time = (pl.col("round") == size) & (pl.col("name") == "finished")
            rows = rows.filter(is_finish_time & (pl.col("group") == self.kinds[kind]))
        experiment = on_their_costs(ROUNDS) if their_costs else ROUNDS
        return self.of(experiment, scheduler, pl.col("value").mean(), rows)

    def here(self, kind: str, scheduler: str, size: int) -> Measured:
        """What is held against theirs: of all rounds in one boot, or of each by itself if they were
        not run so."""
        if self.ran(ROUNDS, scheduler):
            return self.in_rounds(kind, scheduler, size)
        return self.turnaround(kind, scheduler, size)

    def feedback_is_quicker(self, size: int) -> bool:
        """True if interactive processes end earlier under the feedback queue than under round-robin."""
        one, other = (
            self.here("interactive", scheduler, size).mean for scheduler in ("MLFQ", "RR")
        )
        return one is not None and other is not None and one < other

    def benchmark_runs(self) -> list[str]:
        """The experiments that `here` is of."""
        if self.ran(ROUNDS):
            return [ROUNDS]
        return [f"s4-mixed-{size}" for size in self.sizes]

    def at_any_moment(self, their_costs: bool = False) -> Measured:
        """The interactive processes beside the most others under MLFQ, begun at several moments."""
        return self.at_phases(on_their_costs(PHASES) if their_costs else PHASES)

    def moments(self, their_costs: bool = False) -> SimpleNamespace:
        """The least and the greatest of these times, and how many there are."""
        values = self.at_any_moment(their_costs).values
        return SimpleNamespace(least=min(values), most=max(values), count=len(values))

    def began_at_moments(self, their_costs: bool = False) -> bool:
        """Are these times known?"""
        return bool(self.at_any_moment(their_costs).values)

    def within_moments(self, their_costs: bool = False) -> bool:
        """Does the authors' time lie among them?"""
        theirs = self.authors("interactive", "MLFQ", max(self.sizes))
        moments = self.moments(their_costs)
        return bool(theirs and moments.least <= theirs.value <= moments.most)

    phases: ClassVar = {
        **{f"{PHASES}-{size}": size for size in PHASE_SIZES},
        PHASES: MIXED_SIZES[-1],
    }
    """Experiments that begin a round at eight moments between two boosts, by its size."""

    def at_phases(self, experiment: str) -> Measured:
        """Returns the mean turnaround of interactive processes, begun at each moment, in ticks."""
        value, rows = in_ticks(first("turnaround_mean_ns")), self._group(self.kinds["interactive"])
        return self.of(experiment, "MLFQ", value, rows)

    def extreme_of_phases(
        self, which: Callable[[Iterable[float]], float], experiment: str
    ) -> Measured:
        """Returns the least (`min`) or the greatest (`max`) of these."""
        measured = self.at_phases(experiment)
        return Measured((which(measured.values),)) if measured.values else measured

    def why_by_phase(self, kind: str, scheduler: str, size: int) -> str:
        """Returns the footnote of a time that the moment of its round explains, or nothing."""
        experiment = next(
            (name for name, phase_size in self.phases.items() if phase_size == size), ""
        )
        figure, ours = self.authors(kind, scheduler, size), self.here(kind, scheduler, size).mean
        if (kind, scheduler) != ("interactive", "MLFQ") or figure is None or ours is None:
            return ""
        if is_near(figure, ours) or not self.published_within_phases(
            [experiment] if experiment else []
        ):
            return ""
        times = self.at_phases(experiment).values
        return line(f"""Explained by when the round begins between two boosts: begun at {len(times)} moments, it takes
        {min(times):.0f} to {max(times):.0f} ticks.""")

    def published_within_phases(self, experiments: Iterable[str]) -> list[str]:
        """Returns those experiments whose published value lies between the least and the greatest time."""
        inside = []
        for experiment in experiments:
            figure = self.authors("interactive", "MLFQ", self.phases[experiment])
            times = self.at_phases(experiment).values
            if figure and times and min(times) <= figure.value <= max(times):
                inside.append(experiment)
        return inside

    def authors(
        self, kind: str, scheduler: str, size: int, source: Source = "authors"
    ) -> Figure | None:
        """What the authors' output, or the rerun, has for it."""
        return self.figure("section 4.2", f"{size} CPU-bound", f"{scheduler} {kind}", source)


_TRACED = ("4", "5", "6")
"""The three processes of figures 7 and 8; at the other ticks others ran."""
_FIGURES = {"MLFQ": "7", "RR": "8"}


def printed_ticks(study: Study, scheduler: str) -> pl.DataFrame:
    """The ticks of a figure at which one of the three processes ran, from the first of these on.

    Columns: tick, process (0 to 2), level.
    """
    turns = pl.read_csv(study.folder / f"figure-{_FIGURES[scheduler]}.csv")
    ticks = (
        turns.with_columns(pl.int_ranges(pl.col("ticks")).alias("later"))
        .explode("later")
        .filter(pl.col("process").cast(pl.String).is_in(_TRACED))
    )
    first = int(_TRACED[0])
    return ticks.select(
        (pl.col("tick") + pl.col("later")).alias("tick") - pl.col("tick").first(),
        pl.col("process") - first,
        "level",
    )


def alike(theirs: pl.DataFrame, ours: pl.DataFrame) -> SimpleNamespace:
    """At how many of their ticks the same process ran here, on the same level if ours have any; `of`:
    how many there are. Of `ours`, the columns are tick, pid and level; process for process in the
    order of their PIDs, both from their first tick on."""
    pids = sorted(set(ours["pid"]))
    levels = ours["level"].null_count() < len(ours)
    measured = ours.select(
        (pl.col("tick") - pl.col("tick").first()).cast(pl.Int64).alias("tick"),
        pl.col("pid").cast(pl.Int64).replace_strict(pids, range(len(pids))).alias("process_here"),
        pl.col("level").alias("level_here"),
    )
    both = theirs.join(measured, on="tick", how="left")
    same = pl.col("process") == pl.col("process_here")
    if levels:
        same &= pl.col("level") == pl.col("level_here")
    return SimpleNamespace(same=int(both.select(same.sum()).item()), of=len(both), levels=levels)


class AuthorsOutput(MixedBenchmark):
    """Times are in ticks."""

    def printed_times(self, scheduler: str, kind: str, size: int) -> list[int]:
        """What the authors' processes of a kind took from fork to end in a round, the shortest time
        first."""
        (printed,) = self._rounds.filter(
            (pl.col("scheduler") == scheduler)
            & (pl.col("kind") == kind)
            & (pl.col("cpu_bound") == size)
        )["ticks"]
        return [int(number) for number in str(printed).split()]

    @cached_property
    def _rounds(self) -> pl.DataFrame:
        return pl.read_csv(self.study.folder / "rounds.csv", schema_overrides={"ticks": pl.String})

    def _times(
        self, scheduler: str, their_costs: bool
    ) -> dict[tuple[str, int], list[float]] | None:
        """Ours, by kind and size: the mean over the seeds of the shortest, of the next, and so on.
        None if the rounds were not run, or one failed."""
        experiment = on_their_costs(ROUNDS) if their_costs else ROUNDS
        setup = self.setup(experiment, scheduler)
        if setup is None or not setup.succeeded:
            return None
        texts = self._told_since("round")
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

    def each_process(self, what: str, scheduler: str, kind: str, their_costs: bool) -> Measured:
        """Process by process, in all rounds: `near`, how many percent of them are near theirs; `off`,
        by how many percent they are off, in the mean."""
        ours = self._times(scheduler, their_costs)
        if ours is None:
            return Measured()
        near, off = [], []
        for size in self.sizes:
            theirs, measured = self.printed_times(scheduler, kind, size), ours.get((kind, size), [])
            if len(measured) != len(theirs):
                return Measured((), NOTHING)
            for measured_ticks, published_ticks in zip(measured, theirs, strict=True):
                near.append(
                    abs(measured_ticks - published_ticks) <= max(NEAR_TICKS, NEAR * published_ticks)
                )
                off.append(100 * abs(measured_ticks / published_ticks - 1))
        return Measured((100 * sum(near) / len(near) if what == "near" else sum(off) / len(off),))

    def shortest_and_longest(
        self, scheduler: str, kind: str, size: int, which: int, whose: str
    ) -> Measured:
        """The shortest (0) or the longest (-1) of a round: `published`, `measured`, or `costs`."""
        if whose == "published":
            return Measured((self.printed_times(scheduler, kind, size)[which],))
        ours = self._times(scheduler, whose == "costs")
        if ours is None:
            return Measured()
        measured = ours.get((kind, size))
        return Measured((measured[which],)) if measured else Measured((), NOTHING)
