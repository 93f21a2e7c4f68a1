# SPDX-License-Identifier: MIT
"""Queries about the runs and the published figures of any study, for its page and tables.

A study with further queries has a module whose Queries class extends this one. A method
that returns Measured is a number. A method that returns a bool is a predicate. A method that
returns blocks is a table or picture.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import polars as pl

from schedlab.analysis.comparison.statistics import UNBOUNDED, ValueRange, difference
from schedlab.base.display.markdown import code
from schedlab.base.display.numbers import NO_VALUE, format_count
from schedlab.machines import SIMULATOR
from schedlab.machines.folder import TRACE_FILE
from schedlab.report.markup import OPEN_TRIAL_TEXT, TRIAL_PREFIX
from schedlab.report.model import Trial
from schedlab.report.study_tables import Measurement, NumbersByRun, measure_seeds
from schedlab.report.trials import trial_of_setups
from schedlab.report.wording import provenance_text
from schedlab.runs.collection import Collection, ConfigurationRuns, StoredRun
from schedlab.studies.costs import StudyCosts, costs_of
from schedlab.studies.experiment import name_with_study_costs
from schedlab.studies.experiments import DEFAULT_POLICIES, EXPERIMENTS
from schedlab.studies.figures import Figure, Source
from schedlab.studies.planning import experiment_labels
from schedlab.studies.study import Study
from schedlab.trace import Trace, TraceError


def evaluate_per_run(collection: Collection, rows: pl.DataFrame, value: pl.Expr) -> NumbersByRun:
    """Evaluates an expression over the rows of each run. Runs with null are left out."""
    if rows.is_empty() or not set(value.meta.root_names()) <= set(rows.columns):
        return {}
    values = rows.group_by("run", maintain_order=True).agg(value.alias("value"))
    return {
        collection.runs[number].folder: float(run_value)
        for number, run_value in values.rows()
        if run_value is not None
    }


def combine_by_seed(
    first: Measurement, second: Measurement, make: Callable[[float, float], float]
) -> Measurement:
    """Combines two measurements seed by seed. The result is missing if either is missing."""
    for measured in (first, second):
        if measured.mean is None:
            return measured
    if len(first.values) != len(second.values):
        return Measurement((), NO_VALUE, "The two have different numbers of seeds.")
    pairs = zip(first.values, second.values, strict=True)
    return Measurement(tuple(make(*pair) for pair in pairs), within=UNBOUNDED)


def traces(
    repeated: ConfigurationRuns | None, runs_max: int | None = None
) -> list[tuple[StoredRun, Trace]]:
    """Returns the traces of the configuration's runs, at most `runs_max`.

    Returns [] if a run failed or has no trace.
    """
    if repeated is None or repeated.failed:
        return []
    if not all((run.folder / TRACE_FILE).is_file() for run in repeated.runs):
        return []
    return [(run, run.trace()) for run in repeated.runs[:runs_max]]


def number(value: object) -> float:
    """Returns a column's sum, mean or maximum as a float; 0 for a column without values."""
    return float(value) if isinstance(value, int | float) else 0.0


def in_order(values: Mapping[str, Measurement], falling: bool, paired: bool = True) -> str:
    """Returns the order of the means, such as `A > B ≈ C`. The sign ≈ means equal, or not significantly different.

    `paired`: compares seed by seed, since a seed has the same effect under all policies.

    """
    means = {name: measured.mean or 0.0 for name, measured in values.items()}
    names = sorted(means, key=lambda name: means[name], reverse=falling)
    text = names[0]
    for one, other in pairwise(names):
        sign = " > " if falling else " < "
        text += f"{sign if _are_distinct(values[one], values[other], paired) else ' ≈ '}{other}"
    return text


LEAST_DIFFERENCE = 1e-4
"""Relative difference of means below which they are equal, even if no seed varies."""


def _are_distinct(one: Measurement, other: Measurement, paired: bool) -> bool:
    """Returns True if the two differ significantly. Single runs are never distinct."""
    if paired and len(one.values) != len(other.values):
        return False
    change = difference(one.values, other.values, paired)
    if abs(change.change) <= LEAST_DIFFERENCE * abs(change.before.mean):
        return False
    return change.low > 0 or change.high < 0


POSITIVE: ValueRange = (0, float("inf"))


def first(column: str) -> pl.Expr:
    """Returns the column's value in the first row."""
    return pl.col(column).first()


def in_ticks(time: pl.Expr) -> pl.Expr:
    """Returns the value of a column in ns, converted to ticks."""
    return time / first("tick_ns")


_NAMED_MAX = 6
"""Maximum number of experiments that a command names."""
_UNLIMITED = 1_000_000_000
"""Number of parts of a tick, so that costs below a tick become fractions."""


class Queries:
    """Queries about one study and the runs of a report.

    Where a method takes a policy, it also accepts the study's name of a scheduler.
    """

    cpus = 0
    """Default number of CPUs of the study's experiments; 0 for any number."""
    schedulers: ClassVar[Mapping[str, str]] = {}
    """The study's names of schedulers, and the corresponding presets."""
    built_in: tuple[str, ...] = DEFAULT_POLICIES
    """The built-in policies with default tunables."""

    def __init__(self, study: Study, collection: Collection) -> None:
        self.study = study
        self.collection = collection

    # --- published figures

    @cached_property
    def _figures(self) -> Mapping[tuple[str, str, str, Source], Sequence[Figure]]:
        """The figures of each cell. Cached, since a page asks for hundreds."""
        figures_by_place: defaultdict[tuple[str, str, str, Source], list[Figure]] = defaultdict(
            list
        )
        for figure in self.study.figures:
            figures_by_place[figure.place, figure.row, figure.column, figure.source].append(figure)
        return figures_by_place

    def figure(
        self, place: str, row: str, column: str, source: Source = "study", quantity: str = ""
    ) -> Figure | None:
        """Returns the first published number of a cell, or None."""
        candidates = self._figures.get((place, row, column, source), ())
        return next((figure for figure in candidates if quantity in ("", figure.quantity)), None)

    def printed_table(self, name: str) -> list[tuple[str, ...]]:
        """Returns the rows of a table of words from the file of that name in the study's folder."""
        table = pl.read_csv(self.study.folder / f"{name}.csv", infer_schema=False)
        return table.with_columns(pl.all().fill_null("")).rows()

    def determined_a_cost(self, figure: Figure | None) -> bool:
        """True if a study cost was derived from this published figure.

        The measured figure then agrees by definition.
        """
        return figure is not None and self._costs.is_calibrated(
            figure.place, figure.row, figure.column
        )

    # --- runs

    def experiment_with_study_costs(self, experiment: str) -> str:
        """Returns the experiment that repeats another with the study costs."""
        return name_with_study_costs(experiment)

    def extra_ticks(self, operation: str, policy: str, count: int = 1) -> float:
        """Returns how many ticks longer an operation takes with the study costs."""
        full_name = self.schedulers.get(policy, policy)
        return (
            dict(self._costs.delays_of(full_name, count, _UNLIMITED)).get(operation, 0) / _UNLIMITED
        )

    @cached_property
    def _costs(self) -> StudyCosts:
        return costs_of(self.study.number)

    def setup(self, experiment: str, policy: str, cpus: int = 0) -> ConfigurationRuns | None:
        """Returns all seeds of an experiment under a policy, or None if it was not run."""
        full_name = self.schedulers.get(policy, policy)
        return self.collection.one(experiment, full_name, cpus or self.cpus or None)

    def first_trace(self, experiment: str, policy: str, cpus: int = 0) -> Trace | None:
        """Returns the trace of the first seed, or None if the run is
        missing, failed or has no trace.
        """
        setup = self.setup(experiment, policy, cpus)
        if setup is None or not setup.runs[0].succeeded:
            return None
        try:
            return setup.runs[0].trace()
        except (OSError, TraceError):
            return None

    def ran(self, experiment: str, policy: str = "", cpus: int = 0) -> bool:
        """Returns whether the experiment was run under this policy, or under any policy."""
        if policy:
            return self.setup(experiment, policy, cpus) is not None
        return bool(self.collection.select(experiment=experiment))

    def policies_of(self, experiment: str) -> tuple[str, ...]:
        """Returns the study's policies of an experiment."""
        return EXPERIMENTS[experiment].study_policies

    def all_simulated(self) -> bool:
        """True if only the simulator ran this study's experiments."""
        simulated = (
            s for s in self.collection.repeated if s.experiment.startswith(f"s{self.study.number}-")
        )
        return all(setup.machine == SIMULATOR for setup in simulated)

    def built_in_policies_run(self, experiments: Iterable[str] | str) -> list[str]:
        """Returns the default built-in policies that ran any of the experiments."""
        names = _as_tuple(experiments)
        return [policy for policy in self.built_in if any(self.ran(name, policy) for name in names)]

    def failures(self) -> str:
        """Returns a sentence if runs of this study failed; otherwise ""."""
        prefix = f"s{self.study.number}-"
        runs = [run for run in self.collection if run.setup.experiment.startswith(prefix)]
        failed = sum(not run.succeeded for run in runs)
        if not failed:
            return ""
        return (
            f"**{failed} of its {format_count(len(runs), 'run')} failed**: their cells show the failure"
            " instead of a mean."
        )

    def how(self, experiments: Iterable[str] | str, policies: Iterable[str] = ()) -> str:
        """Returns text for a caption: the machine, the tick length and the number of seeds.

        `policies`: only runs under these policies; None: under any policy.
        """
        experiment_names, whose = set(_as_tuple(experiments)), set(policies)
        setups = [
            repeated
            for setup, repeated in self.collection.repeated.items()
            if setup.experiment in experiment_names and (not whose or setup.policy in whose)
        ]
        return f"{provenance_text(setups, brackets=False)} {self._repeat(setups)}" if setups else ""

    @cached_property
    def trials(self) -> dict[str, Trial]:
        """Returns the trials that captions link to, by the experiment's name."""
        return {}

    def _repeat(self, setups: Sequence[ConfigurationRuns]) -> str:
        """Returns the command that repeats these runs, and a link that
        opens one of them in the page.
        """
        names = list(dict.fromkeys(setup.setup.experiment for setup in setups))
        if not set(names) <= set(experiment_labels()):
            return ""
        study_name = f"study-{self.study.number}"
        command = code(
            f"./schedlab reproduce {' '.join(names) if len(names) <= _NAMED_MAX else study_name}"
        )
        first = names[0]
        if first not in self.trials:
            first_setups = [setup for setup in setups if setup.setup.experiment == first]
            if trial := trial_of_setups(first_setups):
                self.trials[first] = trial
        link = f" [{OPEN_TRIAL_TEXT}]({TRIAL_PREFIX}{first})." if first in self.trials else ""
        return f"Repeat: {command}.{link}"

    def tick_lengths(self, experiments: Iterable[str]) -> list[str]:
        """Returns the lengths of a tick in all their runs, such as `1 ms`."""
        names = set(experiments)
        lengths = {s.tick_ns for s in self.collection.repeated if s.experiment in names}
        return [f"{length / 1e6:g} ms" for length in sorted(lengths)]

    def summary(self, experiment: str, policy: str, column: str, factor: float = 1) -> Measurement:
        """Returns a column of the runs' summary, multiplied by the factor."""
        return self.of(experiment, policy, first(column) * factor)

    def ticks(self, experiment: str, policy: str, column: str, cpus: int = 0) -> Measurement:
        """Returns a time of the runs' summary, in ticks."""
        return self.of(experiment, policy, in_ticks(first(column)), cpus=cpus)

    def of(
        self,
        experiment: str,
        policy: str,
        value: pl.Expr,
        rows: pl.DataFrame | None = None,
        within: ValueRange = POSITIVE,
        cpus: int = 0,
    ) -> Measurement:
        """Evaluates an expression over the rows of each run, by default those of its summary."""
        setup = self.setup(experiment, policy, cpus)
        if setup is None:
            return measure_seeds(None, {}, within)
        numbers = self._numbers(experiment, value, self._succeeded if rows is None else rows)
        return measure_seeds(setup, numbers, within)

    def _numbers(self, experiment: str, value: pl.Expr, rows: pl.DataFrame) -> NumbersByRun:
        """Evaluates an expression over these rows of an experiment, once for all its configurations."""
        key = (id(rows), experiment, value.meta.serialize())
        if key not in self._evaluated:
            experiment_rows = rows.filter(pl.col("experiment") == experiment) if len(rows) else rows
            numbers = evaluate_per_run(self.collection, experiment_rows, value)
            self._evaluated[key] = rows, numbers  # the rows are kept, so that their id stays theirs
        return self._evaluated[key][1]

    @cached_property
    def _evaluated(self) -> dict[tuple[int, str, bytes], tuple[pl.DataFrame, NumbersByRun]]:
        """A cache of numbers: a page asks for those of each policy and number of CPUs."""
        return {}

    @cached_property
    def _succeeded(self) -> pl.DataFrame:
        """The summary of successful runs."""
        return self.collection.summary.filter(pl.col("status") == "success")

    @cached_property
    def _filtered(self) -> dict[tuple[str, ...], pl.DataFrame]:
        """A cache of filtered rows: a page asks for hundreds of figures of few groups."""
        return {}

    def _only(self, table: str, column: str, value: str) -> pl.DataFrame:
        key = (table, column, value)
        if key not in self._filtered:
            rows: pl.DataFrame = getattr(self.collection, table)
            self._filtered[key] = rows.filter(pl.col(column) == value) if len(rows) else rows
        return self._filtered[key]

    def _processes(self, column: str, value: str) -> pl.DataFrame:
        """Returns the tasks of all runs with this value in a column."""
        return self._only("processes", column, value)

    def _group(self, name: str) -> pl.DataFrame:
        """Returns the rows of a group of tasks, of all runs."""
        return self._only("groups", "group", name)

    def _with_last(self, name: str) -> pl.DataFrame:
        """Returns the values that programs reported.

        The column `last` has the latest value that was reported under `name`.
        """
        if (name,) not in self._filtered:
            rows = self.collection.values
            last = pl.when(pl.col("name") == name).then(pl.col("value")).forward_fill()
            self._filtered[name,] = (
                rows.with_columns(last.over("run").alias(name)) if len(rows) else rows
            )
        return self._filtered[name,]

    def _values_reported_as(self, name: str) -> pl.DataFrame:
        """Returns the values that programs of all runs reported under a name, as `value`."""
        return self._only("values", "name", name)

    # --- derived numbers

    def ratio(self, above: Measurement, below: Measurement) -> Measurement:
        """Returns the ratio, seed by seed."""
        return combine_by_seed(above, below, lambda one, other: one / other)

    def gain(self, more: Measurement, less: Measurement) -> Measurement:
        """Returns by how many percent the first exceeds the second, seed by seed."""
        return combine_by_seed(more, less, lambda one, other: (one / other - 1) * 100)

    def order(
        self, values: Mapping[str, Measurement], falling: bool = False, paired: bool = True
    ) -> str | Measurement:
        """Returns `A > B ≈ C` as `in_order` does, or the first missing measurement.

        `paired`: compares seed by seed.
        """
        missing = (measured for measured in values.values() if measured.mean is None)
        return next(missing, None) or in_order(values, falling, paired)

    def order_of_published(self, values: Mapping[str, Figure], falling: bool = False) -> str:
        """Returns the order of published figures, such as `A > B = C`."""
        names = sorted(values, key=lambda name: values[name].value, reverse=falling)
        text = names[0]
        for one, other in pairwise(names):
            equal = values[one].value == values[other].value
            text += f" {'=' if equal else '>' if falling else '<'} {other}"
        return text


def _as_tuple(experiments: Iterable[str] | str) -> list[str]:
    """Returns a tuple of experiments, also of a single one."""
    return [experiments] if isinstance(experiments, str) else list(experiments)
