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

from schedlab.base.display.names import is_visible, map_texts, visible, visible_frame
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.untrusted import read_object
from schedlab.errors import WrongUsage
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE
from schedlab.runs import results
from schedlab.runs.results import read_sequential_checks
from schedlab.workload.changes import workload_title

if TYPE_CHECKING:
    import polars as pl

    from schedlab.metrics import Metrics
    from schedlab.trace import Trace


@dataclass(frozen=True)
class Setup:
    """A configuration: all values of a run's specification except the seed."""

    experiment: str
    """Label of the experiment, in runs of a study (schedlab.studies.experiments).

    In other runs: the workload's command, or the workload file with its changes.
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
    """A stored run: its folder and its manifest."""

    folder: Path
    manifest: Mapping[str, Any]
    metrics_folder: Path | None = None
    """Folder of the run's metrics, if it is not the run's folder."""
    distinction: str = ""
    """Suffix that distinguishes this run from runs with equal names and different inputs."""

    def __post_init__(self) -> None:
        if not is_visible(self.manifest):
            object.__setattr__(self, "manifest", map_texts(self.manifest))

    @property
    def measured(self) -> Path:
        """The folder of the run's metrics."""
        return self.metrics_folder or self.folder / results.METRICS_FOLDER

    @property
    def evaluations_max(self) -> int:
        """How often the runs of this folder may be evaluated, with more seeds each time.

        Conclusions account for this number; see `results.EVALUATIONS_FILE`.
        """
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
        """The outcome in one word: `success`, or a kind of failure (schedlab.machines.outcome)."""
        return str(self.manifest["status"])

    @property
    def succeeded(self) -> bool:
        return results.has_succeeded(self.manifest)

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
        """Returns the summary table (one row) only, which is faster than `metrics`.

        Raises FileRefused like `metrics`.
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
        text = (self.folder / CONSOLE_FILE).read_text(errors="replace")
        return visible(text.replace("\r", ""))


@dataclass(frozen=True)
class ConfigurationRuns:
    """The runs of one configuration, which differ in their seeds."""

    setup: Setup
    runs: tuple[StoredRun, ...]
    """The runs, sorted by seed."""

    @property
    def failed(self) -> tuple[StoredRun, ...]:
        return tuple(run for run in self.runs if not run.succeeded)

    @property
    def succeeded(self) -> bool:
        """True if all runs succeeded; a mean of the successful runs only would be biased."""
        return not self.failed


class Collection:
    """Runs from one or more folders."""

    def __init__(self, runs: Iterable[StoredRun], source: Collection | None = None) -> None:
        """`source`: a collection that has these runs, whose tables are not read again."""
        self.runs = tuple(runs)
        self._source = source

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[StoredRun]:
        return iter(self.runs)

    def of(self, runs: Sequence[StoredRun]) -> Collection:
        """Returns a collection with a subset of the runs."""
        return Collection(runs, self)

    @cached_property
    def repeated(self) -> dict[Setup, ConfigurationRuns]:
        """Runs by configuration, in the order of the runs."""
        by_setup: dict[Setup, list[StoredRun]] = {}
        for run in self.runs:
            by_setup.setdefault(run.setup, []).append(run)
        return {
            setup: ConfigurationRuns(setup, tuple(sorted(runs, key=lambda run: run.seed)))
            for setup, runs in by_setup.items()
        }

    @cached_property
    def _by_experiment(self) -> dict[str | None, list[ConfigurationRuns]]:
        """Configurations by experiment; the key None has those of all experiments."""
        setups_by_experiment: dict[str | None, list[ConfigurationRuns]] = {
            None: list(self.repeated.values())
        }
        for setup in self.repeated.values():
            setups_by_experiment.setdefault(setup.setup.experiment, []).append(setup)
        return setups_by_experiment

    def select(
        self, *, experiment: str | None = None, policy: str | None = None, cpus: int | None = None
    ) -> list[ConfigurationRuns]:
        """Returns the configurations that match all given criteria."""
        return [
            setup
            for setup in self._by_experiment.get(experiment, [])
            if policy in (None, setup.setup.policy) and cpus in (None, setup.setup.cpus)
        ]

    def one(self, experiment: str, policy: str, cpus: int | None) -> ConfigurationRuns | None:
        """Returns one configuration of an experiment, or None if it was not run.

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
        """Returns a table of all runs' metrics, with columns that identify the run."""
        import polars as pl

        if not self.runs:
            return pl.DataFrame()
        identities = pl.DataFrame(
            [{"run": number, **identity(run)} for number, run in enumerate(self.runs)]
        )
        stored_rows = self._tables[table]
        shared_columns = [
            name for name in stored_rows.columns if name in identities.columns and name != "run"
        ]
        joined = identities.join(
            stored_rows.drop(shared_columns),
            on="run",
            how="left" if table == "summary" else "inner",
            maintain_order="left_right",
        )
        return visible_frame(joined)

    @cached_property
    def _tables(self) -> dict[str, pl.DataFrame]:
        """The tables of all runs that succeeded, with each row's run."""
        import polars as pl

        from schedlab.metrics import load_many

        if self._source is None:
            return load_many(
                {number: run.measured for number, run in enumerate(self.runs) if run.succeeded}
            )
        number_in_source = {id(run): number for number, run in enumerate(self._source)}
        numbers = pl.DataFrame(
            {
                "run": [number_in_source[id(run)] for run in self.runs],
                "number": range(len(self.runs)),
            },
            schema={"run": pl.Int64, "number": pl.Int64},
        )
        return {
            name: numbers.join(rows, on="run", how="inner", maintain_order="left_right").select(
                pl.col("number").alias("run"), pl.exclude("run", "number")
            )
            for name, rows in self._source._tables.items()
        }


def identity(run: StoredRun) -> dict[str, Any]:
    """Returns the values of the columns that say to which run a row belongs."""
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


def read_collection(places: Sequence[Path], remeasure: bool = False) -> Collection:
    """Reads all complete runs in the given folders.

    Each folder is a run's folder, or contains runs at any depth. Duplicates of a repeatable run are
    read once. If runs with equal names have different inputs, such as another workload file, they
    become separate configurations. `remeasure`: accepts metrics of any version of the measuring
    code, because the caller computes them again. Raises WrongUsage for a folder without runs, and
    for different inputs within one experiment of a study.
    """
    runs: dict[Path, StoredRun] = {}
    for place in places:
        place_runs = list(_runs_in(place))
        if not place_runs:
            raise WrongUsage(f"{place}: contains no run; name a folder that `./schedlab run` made")
        single_runs = [run for run in place_runs if not _is_sweep(run)]
        if not single_runs:
            raise WrongUsage(
                f"{place}: a sweep, which only `report` and `compare` read: name "
                f"{place_runs[0].folder} there. For other commands, sweep with `keep_traces=True`"
            )
        for run in single_runs:
            runs.setdefault(run.folder.resolve(), run)
    ignored_entries = ("measuring",) if remeasure else ()
    inputs = {
        key: title for key, title in results.SHARED_INPUTS.items() if key not in ignored_entries
    }
    return Collection(
        _without_duplicates(distinguish(list(runs.values()), inputs), ignored_entries)
    )


def distinguish(runs: Sequence[StoredRun], inputs: Mapping[str, str]) -> Iterator[StoredRun]:
    """Sets `distinction` of runs that have equal names and different inputs; yields all runs.

    The runs thus become separate configurations. `inputs`: the manifest entries to compare, with
    their display names.
    """
    by_setup: dict[Setup, list[StoredRun]] = {}
    for run in runs:
        by_setup.setdefault(run.setup, []).append(run)
    differing = {
        setup: [
            key
            for key in inputs
            if len({results.shorten_entry(key, run.manifest) for run in same_setup}) > 1
        ]
        for setup, same_setup in by_setup.items()
    }
    for run in runs:
        keys = differing[run.setup]
        if keys and run.manifest.get("label"):
            _raise_difference(*_first_difference(by_setup[run.setup], keys[0]), inputs[keys[0]])
        distinction = ", ".join(
            f"{inputs[key]} {results.shorten_entry(key, run.manifest)}" for key in keys
        )
        yield replace(run, distinction=distinction) if distinction else run


def _first_difference(runs: Sequence[StoredRun], key: str) -> tuple[StoredRun, StoredRun]:
    first = runs[0]
    return first, next(
        run
        for run in runs
        if results.shorten_entry(key, run.manifest) != results.shorten_entry(key, first.manifest)
    )


def _without_duplicates(
    runs: Iterable[StoredRun], ignored_entries: Sequence[str] = ()
) -> Iterator[StoredRun]:
    """Yields runs without equal repetitions. Raises WrongUsage if their inputs differ."""
    runs_by_key: dict[tuple[Setup, int], list[StoredRun]] = {}
    for run in runs:
        runs_of_key = runs_by_key.setdefault((run.setup, run.seed), [])
        if runs_of_key and run.manifest.get("repeatable"):
            _check_same_inputs(runs_of_key[0], run, ignored_entries)
            if run.status in (run.status for run in runs_of_key):
                continue
        runs_of_key.append(run)
        yield run


def _check_same_inputs(one: StoredRun, other: StoredRun, ignored_entries: Sequence[str]) -> None:
    """Raises WrongUsage if runs of one configuration and seed differ on a repeatable machine."""
    for key, what in results.DECISIVE_INPUTS.items():
        if key not in ignored_entries and one.manifest.get(key) != other.manifest.get(key):
            _raise_difference(one, other, what)


def _raise_difference(one: StoredRun, other: StoredRun, property_name: str) -> NoReturn:
    raise WrongUsage(
        f"{one.folder} and {other.folder}: runs of the same configuration with "
        f"different {property_name}; report them separately, or use `./schedlab compare`"
    )


def _is_sweep(run: StoredRun) -> bool:
    """Returns whether this is a sweep's data set, which has tables of runs that were not stored."""
    return "dimensions" in run.manifest


def _runs_in(path: Path) -> Iterator[StoredRun]:
    """Yields the runs in a folder and below it.

    These include the data sets of sweeps, which may also contain run folders.
    """
    if results.is_complete(path):
        run = load_run(path)
        if not _is_sweep(run):
            yield run
            return
    for folder in sorted(_all_folders(path)):
        if results.is_complete(folder):
            yield load_run(folder)


def _all_folders(path: Path) -> Iterator[Path]:
    """Yields a folder and all folders below it, also through links; each of them once."""
    visited: set[Path] = set()
    for name, inner, files in os.walk(path, followlinks=True):
        folder = Path(name)
        if folder.resolve() in visited:
            inner.clear()
            continue
        visited.add(folder.resolve())
        inner.sort()
        if results.MANIFEST_FILE in files:
            yield folder


def load_run(folder: Path) -> StoredRun:
    """Opens a run or a sweep's data set; does not check the manifest of a sweep."""
    path = folder / results.MANIFEST_FILE
    content = read_object(path, {})
    manifest = content if "dimensions" in content else results.check_manifest(path, content)
    return StoredRun(folder, manifest)
