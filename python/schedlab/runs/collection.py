# SPDX-License-Identifier: MIT
"""Reads stored runs: their specifications, outcomes and metrics.

Control characters in names are made visible (schedlab.base.display.names).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from schedlab.base.display.names import all_visible, visible, visible_frame
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.untrusted import read_object, read_tables
from schedlab.errors import WrongUsage
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.runs import results
from schedlab.runs.results import read_sequential_checks
from schedlab.workload.changes import workload_title

if TYPE_CHECKING:
    import polars as pl

    from schedlab.metrics import Metrics
    from schedlab.trace import Trace


@dataclass(frozen=True)
class Setup:
    """A configuration: the specification of a run, except the seed."""

    experiment: str
    """The label of an experiment (schedlab.studies.experiments).

    Without an experiment: the workload's command, or the workload file with its changes.
    """
    policy: str
    settings: tuple[tuple[str, int], ...]
    cpus: int
    tick_ns: int
    machine: str
    changes: tuple[tuple[str, str], ...] = ()
    """Changed values of the workload file."""

    @property
    def policy_title(self) -> str:
        """The policy's name with its changed tunables."""
        changed = ",".join(f"{name}={value}" for name, value in self.settings)
        return f"{self.policy} {changed}" if changed else self.policy


@dataclass(frozen=True)
class StoredRun:
    """A stored run."""

    folder: Path
    manifest: Mapping[str, Any]
    metrics_folder: Path | None = None
    """The folder of the run's metrics; None: the run's own folder."""
    distinction: str = ""
    """Text that distinguishes this run from runs with the same names but other inputs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "manifest", all_visible(self.manifest))

    @property
    def measured(self) -> Path:
        """The folder of the run's metrics."""
        return self.metrics_folder or self.folder / results.METRICS

    @property
    def evaluations_max(self) -> int:
        """The maximum number of evaluations, with more seeds each time, of the runs in the same folder."""
        return read_sequential_checks(self.folder.parent)

    @cached_property
    def setup(self) -> Setup:
        title = self.manifest.get("label") or workload_title(self.manifest)
        return Setup(
            f"{title} ({self.distinction})" if self.distinction else title,
            self.manifest["policy"],
            tuple(self.manifest["tunables"].items()),
            self.manifest["cpus"],
            self.manifest["tick_ns"],
            self.manifest["machine"],
            tuple(self.manifest.get("with", {}).items()),
        )

    @property
    def seed(self) -> int:
        return int(self.manifest["seed"])

    @property
    def status(self) -> str:
        """The outcome in one word:

        `success`, or the kind of failure (schedlab.machines.outcome).
        """
        return str(self.manifest["status"])

    @property
    def succeeded(self) -> bool:
        return results.succeeded(self.manifest)

    @property
    def trace_hash(self) -> str | None:
        """The hash of the trace, even if the trace was not stored; None if the run had no trace."""
        trace = self.folder / TRACE_FILE
        return file_hash(trace) if trace.is_file() else self.manifest.get("trace_sha256")

    def metrics(self) -> Metrics:
        """Returns all metrics. Raises FileRefused if the run was not measured or a table is incomplete."""
        from schedlab import metrics
        from schedlab.metrics.model import TABLES

        read = metrics.load(self.measured)
        tables: dict[str, Any] = {name: visible_frame(getattr(read, name)) for name in TABLES}
        return replace(read, **tables)

    def summary(self) -> pl.DataFrame:
        """Returns only the summary table, with one row.

        Raises FileRefused in the same cases as `metrics`.
        """
        from schedlab import metrics

        return visible_frame(metrics.load_table(self.measured, "summary"))

    def trace(self) -> Trace:
        """Returns the trace. Raises TraceError if it is invalid."""
        from schedlab import trace

        recorded = trace.read(self.folder / TRACE_FILE)
        trace.validate(recorded)
        return replace(recorded, texts=visible_frame(recorded.texts))

    def console(self) -> str:
        """Returns the output of the kernel and the programs."""
        text = (self.folder / CONSOLE).read_text(errors="replace")
        return visible(text.replace("\r", ""))


@dataclass(frozen=True)
class Repeated:
    """The runs of one configuration, with different seeds."""

    setup: Setup
    runs: tuple[StoredRun, ...]
    """The runs, by seed."""

    @property
    def failed(self) -> tuple[StoredRun, ...]:
        return tuple(run for run in self.runs if not run.succeeded)

    @property
    def succeeded(self) -> bool:
        """True if all runs succeeded. A mean over only some of them would be biased."""
        return not self.failed


class Collection:
    """Runs from one or more folders."""

    def __init__(self, runs: Iterable[StoredRun]) -> None:
        self.runs = tuple(runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[StoredRun]:
        return iter(self.runs)

    def of(self, runs: Sequence[StoredRun]) -> Collection:
        """Returns a collection of some of the runs."""
        return Collection(runs)

    @cached_property
    def repeated(self) -> dict[Setup, Repeated]:
        """Runs by configuration, in the order of the runs."""
        by_setup: dict[Setup, list[StoredRun]] = {}
        for run in self.runs:
            by_setup.setdefault(run.setup, []).append(run)
        return {
            setup: Repeated(setup, tuple(sorted(runs, key=lambda run: run.seed)))
            for setup, runs in by_setup.items()
        }

    @cached_property
    def _by_experiment(self) -> dict[str | None, list[Repeated]]:
        """The configurations of each experiment. The key None has all configurations."""
        setups_by_experiment: dict[str | None, list[Repeated]] = {
            None: list(self.repeated.values())
        }
        for setup in self.repeated.values():
            setups_by_experiment.setdefault(setup.setup.experiment, []).append(setup)
        return setups_by_experiment

    def select(
        self, *, experiment: str | None = None, policy: str | None = None, cpus: int | None = None
    ) -> list[Repeated]:
        """Returns the configurations that match all given criteria."""
        return [
            setup
            for setup in self._by_experiment.get(experiment, [])
            if policy in (None, setup.setup.policy) and cpus in (None, setup.setup.cpus)
        ]

    def one(self, experiment: str, policy: str, cpus: int | None) -> Repeated | None:
        """Returns the configuration of an experiment under a policy, or None if it was not run.

        `policy`: the policy's title, which includes changed tunables. `cpus`: the number of CPUs;
        None: the first configuration with any number.
        """
        candidates = self.select(experiment=experiment, cpus=cpus)
        return next((setup for setup in candidates if setup.setup.policy_title == policy), None)

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row per run: the columns of `identity`, and the metrics.

        Metrics are null if the run has none.
        """
        return self._frame("summary")

    @cached_property
    def groups(self) -> pl.DataFrame:
        """One row per run and group of processes."""
        return self._frame("groups")

    @cached_property
    def processes(self) -> pl.DataFrame:
        """One row per run and process."""
        return self._frame("processes")

    @cached_property
    def cpus(self) -> pl.DataFrame:
        """One row for each run and CPU."""
        return self._frame("cpus")

    @cached_property
    def values(self) -> pl.DataFrame:
        """One row per run and value that a program reported: pid, group, time_ns, name, value."""
        return self._frame("values")

    def _frame(self, table: str) -> pl.DataFrame:
        import polars as pl

        if not self.runs:
            return pl.DataFrame()
        places = [str(run.measured / f"{table}.parquet") for run in self.runs]
        who = pl.DataFrame(
            [
                {"run": number, **identity(run), _PLACE: place}
                for number, (run, place) in enumerate(zip(self.runs, places, strict=True))
            ]
        )
        measured = [
            place
            for run, place in zip(self.runs, places, strict=True)
            if run.succeeded and Path(place).is_file()
        ]
        tables = _read_tables(table, measured)
        shared = [name for name in tables.columns if name in who.columns and name != _PLACE]
        joined = who.join(
            tables.drop(shared),
            on=_PLACE,
            how="left" if table == "summary" else "inner",
            maintain_order="left_right",
        )
        return visible_frame(joined.drop(_PLACE))


_PLACE = "place"
"""The column with the path of the file that a row was read from."""


def _read_tables(table: str, places: list[str]) -> pl.DataFrame:
    """Returns all rows of many files, with their paths."""
    import polars as pl

    from schedlab.metrics import schemas

    if not places:
        return pl.DataFrame(schema={_PLACE: pl.String})
    schema = schemas()[table]
    return read_tables([Path(place) for place in places], schema, include_file_paths=_PLACE)


def identity(run: StoredRun) -> dict[str, Any]:
    """Returns the columns that identify the run of a row."""
    setup = run.setup
    return {
        "experiment": setup.experiment,
        "policy": setup.policy_title,
        "cpus": setup.cpus,
        "seed": run.seed,
        "machine": setup.machine,
        "tick_ns": setup.tick_ns,
        "status": run.status,
    }


def read(places: Sequence[Path], remeasure: bool = False) -> Collection:
    """Reads all complete runs in some folders. Each is the folder of a run, or contains runs at any depth.

    Duplicates of a repeatable run are read once. If runs with equal names have different inputs,
    such as another workload file or simulator, they become separate configurations.

    `remeasure`: accepts metrics of any version of the measuring code, because the caller recomputes
    them. Raises WrongUsage for a folder without runs, and for different inputs within one
    experiment of the studies.
    """
    runs: dict[Path, StoredRun] = {}
    for place in places:
        place_runs = list(_runs_in(place))
        if not place_runs:
            raise WrongUsage(f"{place}: contains no run; name a folder that `./schedlab run` made")
        single_runs = [run for run in place_runs if not _is_sweep(run)]
        if not single_runs:
            raise WrongUsage(
                f"{place}: contains a sweep; only `report` and `compare` read it, as "
                f"{place_runs[0].folder}. For other commands, sweep with "
                "`keep_traces=True`"
            )
        for run in single_runs:
            runs.setdefault(run.folder.resolve(), run)
    passed_over = ("measuring",) if remeasure else ()
    parts = {key: what for key, what in results.MADE_OF.items() if key not in passed_over}
    return Collection(_without_duplicates(distinguish(list(runs.values()), parts), passed_over))


def distinguish(runs: Sequence[StoredRun], parts: Mapping[str, str]) -> Iterator[StoredRun]:
    """Yields the runs.

    If runs have equal names and different inputs, sets `distinction`, so that they become separate
    configurations.

    `parts`: the relevant manifest entries, with their display names.

    """
    by_setup: dict[Setup, list[StoredRun]] = {}
    for run in runs:
        by_setup.setdefault(run.setup, []).append(run)
    differing = {
        setup: [
            key for key in parts if len({results.shown(key, run.manifest) for run in alike}) > 1
        ]
        for setup, alike in by_setup.items()
    }
    for run in runs:
        keys = differing[run.setup]
        if keys and run.manifest.get("label"):
            _refuse(*_two_that_differ(by_setup[run.setup], keys[0]), parts[keys[0]])
        words = ", ".join(f"{parts[key]} {results.shown(key, run.manifest)}" for key in keys)
        yield replace(run, distinction=words) if words else run


def _two_that_differ(runs: Sequence[StoredRun], key: str) -> tuple[StoredRun, StoredRun]:
    first = runs[0]
    return first, next(
        run
        for run in runs
        if results.shown(key, run.manifest) != results.shown(key, first.manifest)
    )


def _without_duplicates(
    runs: Iterable[StoredRun], passed_over: Sequence[str] = ()
) -> Iterator[StoredRun]:
    seen: dict[tuple[Setup, int], list[StoredRun]] = {}
    for run in runs:
        others = seen.setdefault((run.setup, run.seed), [])
        if others and run.manifest.get("repeatable"):
            _check_same(others[0], run, passed_over)
            if run.status in (run.status for run in others):
                continue
        others.append(run)
        yield run


def _check_same(one: StoredRun, other: StoredRun, passed_over: Sequence[str]) -> None:
    """Raises WrongUsage if runs of one configuration and seed differ on a repeatable machine."""
    for key, what in results.DECISIVE.items():
        if key not in passed_over and one.manifest.get(key) != other.manifest.get(key):
            _refuse(one, other, what)


def _refuse(one: StoredRun, other: StoredRun, what: str) -> NoReturn:
    raise WrongUsage(
        f"{one.folder} and {other.folder}: runs of the same configuration with "
        f"different {what}; report them separately, or use `./schedlab compare`"
    )


def _is_sweep(run: StoredRun) -> bool:
    """True for a sweep, whose tables contain the rows of many runs that were not stored."""
    return "dimensions" in run.manifest


def _runs_in(place: Path) -> Iterator[StoredRun]:
    """Yields the runs in a folder, and the data sets of sweeps, which may also contain folders of runs."""
    if results.is_complete(place):
        run = load_run(place)
        if not _is_sweep(run):
            yield run
            return
    for folder in sorted(_folders(place)):
        if results.is_complete(folder):
            yield load_run(folder)


def _folders(place: Path) -> Iterator[Path]:
    """Yields a folder and all folders in it, following links.

    Each folder is visited once, even with circular links.
    """
    known: set[Path] = set()
    for name, inner, files in os.walk(place, followlinks=True):
        folder = Path(name)
        if folder.resolve() in known:
            inner.clear()
            continue
        known.add(folder.resolve())
        inner.sort()
        if results.MANIFEST in files:
            yield folder


def load_run(folder: Path) -> StoredRun:
    """Returns a run or a sweep, without validating the manifest of a sweep."""
    path = folder / results.MANIFEST
    content = read_object(path, {})
    is_sweep = _is_sweep(StoredRun(folder, content))
    return StoredRun(folder, content if is_sweep else results.checked_manifest(path, content))
