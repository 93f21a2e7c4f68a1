# SPDX-License-Identifier: MIT
"""What any study's page and tables may ask of its runs and of its published figures.

A study that needs more has a module of its own, whose Queries add to these: a method whose result
is Measured is a number, one whose result is true or false a predicate, and one whose result is
blocks a table or picture.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import polars as pl

from schedlab.analysis.comparison.statistics import ANYWHERE, Within, difference
from schedlab.base.display.markdown import code
from schedlab.base.display.numbers import NOTHING, counted
from schedlab.machines import SIMULATOR
from schedlab.machines.folder import TRACE_FILE
from schedlab.report.markup import OPEN, TRIAL
from schedlab.report.model import Trial
from schedlab.report.study_tables import Measured, Numbers, measure
from schedlab.report.trials import of_setups
from schedlab.report.wording import provenance
from schedlab.runs.collection import Collection, Repeated, StoredRun
from schedlab.studies.costs import StudyCosts, costs_of
from schedlab.studies.experiment import on_their_costs
from schedlab.studies.experiments import OTHERS
from schedlab.studies.figures import Figure, Source
from schedlab.studies.pack import Study
from schedlab.studies.planning import experiment_labels
from schedlab.trace import Trace, TraceError


def of_rows(collection: Collection, rows: pl.DataFrame, value: pl.Expr) -> Numbers:
    """What an expression comes to over the rows of each run; no number where it is null."""
    if rows.is_empty() or not set(value.meta.root_names()) <= set(rows.columns):
        return {}
    values = rows.group_by("run", maintain_order=True).agg(value.alias("value")).drop_nulls()
    return {collection.runs[number].folder: float(run_value) for number, run_value in values.rows()}


def combined(first: Measured, second: Measured, make: Callable[[float, float], float]) -> Measured:
    """Seed by seed. What is missing of either is missing."""
    for measured in (first, second):
        if measured.mean is None:
            return measured
    if len(first.values) != len(second.values):
        return Measured((), NOTHING, "The two were run with different numbers of seeds.")
    pairs = zip(first.values, second.values, strict=True)
    return Measured(tuple(make(*pair) for pair in pairs), within=ANYWHERE)


def traces(repeated: Repeated | None, most: int | None = None) -> list[tuple[StoredRun, Trace]]:
    """The traces of the setup's runs, or the first of them, if all succeeded and kept their traces."""
    if repeated is None or repeated.failed:
        return []
    if not all((run.folder / TRACE_FILE).is_file() for run in repeated.runs):
        return []
    return [(run, run.trace()) for run in repeated.runs[:most]]


def number(value: object) -> float:
    """What a column's sum, mean or maximum came to; 0 for a column without values."""
    return float(value) if isinstance(value, int | float) else 0.0


def in_order(values: Mapping[str, Measured], falling: bool, paired: bool = True) -> str:
    """Returns `A > B ≈ C`: by their means, and ≈ where they are equal or not significantly different.

    `paired`: seed by seed, since a seed does the same to all.
    """
    means = {name: measured.mean or 0.0 for name, measured in values.items()}
    names = sorted(means, key=lambda name: means[name], reverse=falling)
    text = names[0]
    for one, other in pairwise(names):
        sign = " > " if falling else " < "
        text += f"{sign if _are_distinct(values[one], values[other], paired) else ' ≈ '}{other}"
    return text


LEAST_DIFFERENCE = 1e-4
"""Means that differ by a smaller part are equal, even if no seed varies."""


def _are_distinct(one: Measured, other: Measured, paired: bool) -> bool:
    """Returns True if the two differ significantly. One run each cannot tell."""
    if paired and len(one.values) != len(other.values):
        return False
    change = difference(one.values, other.values, paired)
    if abs(change.change) <= LEAST_DIFFERENCE * abs(change.before.mean):
        return False
    return change.low > 0 or change.high < 0


POSITIVE: Within = (0, float("inf"))


def first(column: str) -> pl.Expr:
    """The value of one row."""
    return pl.col(column).first()


def in_ticks(time: pl.Expr) -> pl.Expr:
    """The value in ticks of a column in ns."""
    return time / first("tick_ns")


_NAMED = 6
"""The most experiments that a command names one by one."""
_UNLIMITED = 1_000_000_000
"""A tick of which parts are told."""


class Queries:
    """Queries about one study, and about the runs that a report is made of. A policy may be named
    as the study names its scheduler."""

    cpus = 0
    """The number of CPUs on which its experiments run, if nothing else is said; 0: any number."""
    schedulers: ClassVar[Mapping[str, str]] = {}
    """The study's names of schedulers, and the presets that are like them."""
    shipped: tuple[str, ...] = OTHERS
    """The policies as we ship them."""

    def __init__(self, study: Study, collection: Collection) -> None:
        self.study = study
        self.collection = collection

    # --- what was published

    @cached_property
    def _figures(self) -> Mapping[tuple[str, str, str, Source], Sequence[Figure]]:
        """Those of each cell: a page asks for hundreds."""
        figures_by_place: defaultdict[tuple[str, str, str, Source], list[Figure]] = defaultdict(
            list
        )
        for figure in self.study.figures:
            figures_by_place[figure.place, figure.row, figure.column, figure.source].append(figure)
        return figures_by_place

    def figure(
        self, place: str, row: str, column: str, source: Source = "study", quantity: str = ""
    ) -> Figure | None:
        """The first number there; None if there is none."""
        candidates = self._figures.get((place, row, column, source), ())
        return next((figure for figure in candidates if quantity in ("", figure.quantity)), None)

    def printed_table(self, name: str) -> list[tuple[str, ...]]:
        """The rows of a table of words, as the file of that name in the study's folder has them."""
        table = pl.read_csv(self.study.folder / f"{name}.csv", infer_schema=False)
        return table.with_columns(pl.all().fill_null("")).rows()

    def gave_a_constant(self, figure: Figure | None) -> bool:
        """Returns True if a cost of the study's machine is from this figure, so that ours agrees by definition."""
        return figure is not None and self._costs.gave(figure.place, figure.row, figure.column)

    # --- what was run

    def on_their_costs(self, experiment: str) -> str:
        """The experiment that repeats another with the costs of the study's machine."""
        return on_their_costs(experiment)

    def longer(self, operation: str, policy: str, count: int = 1) -> float:
        """By how many ticks an operation took longer on the study's machine."""
        full_name = self.schedulers.get(policy, policy)
        return dict(self._costs.of(full_name, count, _UNLIMITED)).get(operation, 0) / _UNLIMITED

    @cached_property
    def _costs(self) -> StudyCosts:
        return costs_of(self.study.number)

    def setup(self, experiment: str, policy: str, cpus: int = 0) -> Repeated | None:
        """All seeds of an experiment under a policy; None if it was not run."""
        full_name = self.schedulers.get(policy, policy)
        return self.collection.one(experiment, full_name, cpus or self.cpus or None)

    def first_trace(self, experiment: str, policy: str, cpus: int = 0) -> Trace | None:
        """The trace of the first seed; None if that was not run, failed, or its trace was not kept."""
        setup = self.setup(experiment, policy, cpus)
        if setup is None or not setup.runs[0].succeeded:
            return None
        try:
            return setup.runs[0].trace()
        except (OSError, TraceError):
            return None

    def ran(self, experiment: str, policy: str = "", cpus: int = 0) -> bool:
        """Was it, under this policy or under any?"""
        if policy:
            return self.setup(experiment, policy, cpus) is not None
        return bool(self.collection.select(experiment=experiment))

    def all_simulated(self) -> bool:
        """True if no machine but the simulator ran this study's experiments."""
        simulated = (
            s for s in self.collection.repeated if s.experiment.startswith(f"s{self.study.number}-")
        )
        return all(setup.machine == SIMULATOR for setup in simulated)

    def shipped_run(self, experiments: Iterable[str] | str) -> list[str]:
        """The policies as shipped under which any of the experiments was run."""
        names = _several(experiments)
        return [policy for policy in self.shipped if any(self.ran(name, policy) for name in names)]

    def failures(self) -> str:
        """A sentence, if runs of this study failed; else nothing."""
        prefix = f"s{self.study.number}-"
        runs = [run for run in self.collection if run.setup.experiment.startswith(prefix)]
        failed = sum(not run.succeeded for run in runs)
        if not failed:
            return ""
        return (
            f"**{failed} of its {counted(len(runs), 'run')} failed**: their cells say how, and no mean"
            " is made of the others."
        )

    def how(self, experiments: Iterable[str] | str, policies: Iterable[str] = ()) -> str:
        """Words for a caption: the machine, the tick, the number of seeds. No policies: any."""
        experiment_names, whose = set(_several(experiments)), set(policies)
        setups = [
            repeated
            for setup, repeated in self.collection.repeated.items()
            if setup.experiment in experiment_names and (not whose or setup.policy in whose)
        ]
        return f"{provenance(setups, brackets=False)} {self._repeat(setups)}" if setups else ""

    @cached_property
    def trials(self) -> dict[str, Trial]:
        """Returns the trials that captions lead to, by the experiment's name."""
        return {}

    def _repeat(self, setups: Sequence[Repeated]) -> str:
        """Returns the command that runs these setups anew, and a link that opens one of them in the page."""
        names = list(dict.fromkeys(setup.setup.experiment for setup in setups))
        if not set(names) <= set(experiment_labels()):
            return ""
        most = f"study-{self.study.number}"
        command = code(f"./schedlab reproduce {' '.join(names) if len(names) <= _NAMED else most}")
        first = names[0]
        if first not in self.trials:
            first_setups = [setup for setup in setups if setup.setup.experiment == first]
            if trial := of_setups(first_setups):
                self.trials[first] = trial
        link = f" [{OPEN}]({TRIAL}{first})." if first in self.trials else ""
        return f"Repeat: {command}.{link}"

    def tick_lengths(self, experiments: Iterable[str]) -> list[str]:
        """The lengths of a tick in all their runs: `1 ms`."""
        names = set(experiments)
        lengths = {s.tick_ns for s in self.collection.repeated if s.experiment in names}
        return [f"{length / 1e6:g} ms" for length in sorted(lengths)]

    def summary(
        self, experiment: str, policy: str, column: str, factor: float = 1, cpus: int = 0
    ) -> Measured:
        """A column of the runs' summary, times the factor."""
        return self.of(experiment, policy, first(column) * factor, cpus=cpus)

    def ticks(self, experiment: str, policy: str, column: str, cpus: int = 0) -> Measured:
        """A time of the runs' summary, in ticks."""
        return self.of(experiment, policy, in_ticks(first(column)), cpus=cpus)

    def of(
        self,
        experiment: str,
        policy: str,
        value: pl.Expr,
        rows: pl.DataFrame | None = None,
        within: Within = POSITIVE,
        cpus: int = 0,
    ) -> Measured:
        """What an expression comes to over the rows of each run; these are its summary's, if no
        others are given."""
        setup = self.setup(experiment, policy, cpus)
        if setup is None:
            return measure(None, {}, within)
        if rows is None:
            setups = self._succeeded_of(experiment)
        else:
            setups = rows.filter(pl.col("experiment") == experiment) if len(rows) else rows
        return measure(setup, of_rows(self.collection, setups, value), within)

    @cached_property
    def _succeeded(self) -> pl.DataFrame:
        """The summary of the runs that did."""
        return self.collection.summary.filter(pl.col("status") == "success")

    def _succeeded_of(self, experiment: str) -> pl.DataFrame:
        """The same of one experiment."""
        key = ("succeeded", experiment)
        if key not in self._found:
            rows = self._succeeded
            self._found[key] = (
                rows.filter(pl.col("experiment") == experiment) if len(rows) else rows
            )
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[str, ...], pl.DataFrame]:
        """Rows that were looked for: a page asks for hundreds of figures of few groups."""
        return {}

    def _only(self, table: str, column: str, value: str) -> pl.DataFrame:
        """The rows of one of the collection's tables whose column has this value."""
        key = (table, column, value)
        if key not in self._found:
            rows: pl.DataFrame = getattr(self.collection, table)
            self._found[key] = rows.filter(pl.col(column) == value) if len(rows) else rows
        return self._found[key]

    def _processes(self, column: str, value: str) -> pl.DataFrame:
        """The processes of all runs whose column has this value."""
        return self._only("processes", column, value)

    def _group(self, name: str) -> pl.DataFrame:
        """The row of a group of processes, of all runs."""
        return self._only("groups", "group", name)

    def _told_since(self, name: str) -> pl.DataFrame:
        """What programs told, of all runs, with what was told last under a name in a column of that
        name."""
        if (name,) not in self._found:
            rows = self.collection.values
            last = pl.when(pl.col("name") == name).then(pl.col("value")).forward_fill()
            self._found[name,] = (
                rows.with_columns(last.over("run").alias(name)) if len(rows) else rows
            )
        return self._found[name,]

    def _told(self, name: str) -> pl.DataFrame:
        """What programs told under a name, of all runs, as `value`."""
        return self._only("values", "name", name)

    # --- what follows from numbers

    def ratio(self, above: Measured, below: Measured) -> Measured:
        """Seed by seed."""
        return combined(above, below, lambda one, other: one / other)

    def gain(self, more: Measured, less: Measured) -> Measured:
        """By how many percent the first is more, seed by seed."""
        return combined(more, less, lambda one, other: (one / other - 1) * 100)

    def order(
        self, values: Mapping[str, Measured], falling: bool = False, paired: bool = True
    ) -> str | Measured:
        """`A > B ≈ C`, where the difference of the latter may be chance; or the first that is missing.
        `paired`: seed by seed."""
        missing = (measured for measured in values.values() if measured.mean is None)
        return next(missing, None) or in_order(values, falling, paired)

    def order_printed(self, values: Mapping[str, Figure], falling: bool = False) -> str:
        """`A > B = C`: the same of published figures."""
        names = sorted(values, key=lambda name: values[name].value, reverse=falling)
        text = names[0]
        for one, other in pairwise(names):
            equal = values[one].value == values[other].value
            text += f" {'=' if equal else '>' if falling else '<'} {other}"
        return text


def _several(experiments: Iterable[str] | str) -> list[str]:
    return [experiments] if isinstance(experiments, str) else list(experiments)
