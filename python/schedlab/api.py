# SPDX-License-Identifier: MIT
"""The Python API: run workloads under policies, open what was run, and draw conclusions from it.

`import schedlab` has all names of `__all__`. No function prints, reads options, or ends the process. Results are
returned, with notes in `notes`. A failure raises schedlab.errors.SchedlabError; WrongUsage means that the caller can
fix the call. An error has the fields what (the parameter or the file), why and fix, and its text is `what: why; fix`.
Tables are polars frames. Times are nanoseconds.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.display.terminal import collect_notes
from schedlab.base.toolchain.policies import (
    DEFAULT_POLICY,
    PolicyChoice,
    parse_choices,
    read_catalogue,
)
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import SIMULATOR, machine_named
from schedlab.runs.collection import Collection
from schedlab.runs.collection import read_collection as read_collection
from schedlab.runs.request import DEFAULT_WORKLOAD_FILE, Request, replay_request

if TYPE_CHECKING:
    import polars as pl

    from schedlab.analysis.comparison.compare import Comparison
    from schedlab.analysis.explanation import Explained
    from schedlab.analysis.tables import Run
    from schedlab.machines.checked_simulator import Passed

__all__ = [
    "Runs",
    "check",
    "compare",
    "explain",
    "open_run",
    "open_runs",
    "policies",
    "query",
    "replay",
    "run",
    "run_sweep",
    "workloads",
    "write_report",
]

Place = str | Path
Policies = str | Iterable[str]
"""Names as on the command line: "rr,lottery:thesis", or several texts."""


class Runs:
    """Finished runs and their metrics.

    Each table begins with columns that identify the run: run (a number), experiment (the workload or its label),
    policy with its settings, cpus, seed, machine, tick_ns and status. The metrics follow (docs/metrics.md). Failed
    runs are only in `summary`, without metrics.
    """

    def __init__(
        self,
        collection: Collection,
        notes: Sequence[str] = (),
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self._collection = collection
        self._folder = folder  # exists as long as this object or one of its runs
        self.notes = tuple(notes)
        """Notes on the runs, such as keys of a workload file without effect."""

    def __len__(self) -> int:
        return len(self._collection)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __getitem__(self, number: int) -> Run:
        return self.runs[number]

    def __repr__(self) -> str:
        return f"<{len(self)} runs, {len(self.failed)} failed>"

    def _repr_html_(self) -> str:
        """Returns the summary for a notebook."""
        return f"<p>{len(self)} runs, {len(self.failed)} failed</p>{self.summary._repr_html_()}"

    @cached_property
    def runs(self) -> list[Run]:
        """The single runs, each with its manifest, trace, metrics and tables (docs/tables.md)."""
        from schedlab.analysis.tables import Run

        return [Run(stored, self._folder) for stored in self._collection]

    @property
    def failed(self) -> dict[str, str]:
        """The reason of each failed run, by the name of its folder."""
        return {
            stored.folder.name: str(stored.manifest.get("message") or stored.status)
            for stored in self._collection
            if not stored.succeeded
        }

    @property
    def summary(self) -> pl.DataFrame:
        """One row per run."""
        return self._collection.summary

    @property
    def groups(self) -> pl.DataFrame:
        """One row per run and group of tasks."""
        return self._collection.groups

    @property
    def processes(self) -> pl.DataFrame:
        """One row per run and task."""
        return self._collection.processes

    @property
    def cpus(self) -> pl.DataFrame:
        """One row per run and CPU."""
        return self._collection.cpus

    @property
    def values(self) -> pl.DataFrame:
        """One row per value that a program reported: pid, group, time_ns, name, value."""
        return self._collection.values

    def compare(
        self, after: Runs, metrics: Sequence[str] = (), matters: float = 0.01
    ) -> Comparison:
        """Compares these runs with later ones; see `compare`."""
        return compare(self, after, metrics, matters)

    def report(self, folder: Place, formats: Sequence[str] = ("html",)) -> Path:
        """Writes a report; see `write_report`."""
        return write_report(self, folder, formats)


def run(
    workload: str = DEFAULT_WORKLOAD_FILE,
    policy: Policies = DEFAULT_POLICY,
    *,
    cpus: int | Iterable[int] = 1,
    machine: str = SIMULATOR,
    seeds: int = 1,
    first_seed: int = 1,
    settings: Mapping[str, int] | None = None,
    changes: Mapping[str, str] | None = None,
    tick_ns: int | None = None,
    limit_ns: int | None = None,
    costs: str | None = None,
    shape: str | None = None,
    memory_mib: int | None = None,
    out: Place | None = None,
    unchecked: bool = False,
    progress: bool | None = None,
) -> Runs:
    """Runs a workload under each policy, on each number of CPUs, with each seed. Uses all CPUs of this host.

    `workload`: a workload file, the name of a shipped workload, or a program with its arguments. `seeds`: the number
    of seeds, counted from `first_seed`. `settings`: values of tunables, by NAME or POLICY.NAME. `changes`: new values
    in the workload file, such as {"tasks.cpu.instance": "40"}. `costs`: the simulator's cost profile. `shape`: the
    name or file of a machine shape. None means the default of the machine or the workload.

    `out`: a folder for the runs. If it is None, they are removed together with the returned object. `unchecked`: also
    runs changed policies that have not passed `check`. `progress`: shows a progress bar; None shows it only in a
    notebook.

    Raises WrongUsage before anything runs if an argument is wrong. Failed runs are in `failed`.
    """
    from schedlab.workload.shapes.reading import find_shape

    request = Request(
        workload=workload,
        changes=tuple((changes or {}).items()),
        policies=_parse_policies(policy),
        settings=tuple((settings or {}).items()),
        cpus=(cpus,) if isinstance(cpus, int) else tuple(cpus),
        machine=machine_named(machine),
        repeats=seeds,
        seed=first_seed,
        tick=tick_ns,
        limit=limit_ns,
        costs=costs,
        shape=find_shape(shape) if shape else None,
        memory=memory_mib,
        unchecked=unchecked,
    )
    return _perform(request.filled, out, progress)


def replay(
    recording: Place,
    policy: Policies | None = None,
    *,
    settings: Mapping[str, int] | None = None,
    costs: str | None = None,
    out: Place | None = None,
    progress: bool | None = None,
) -> Runs:
    """Replays the CPU demand of a recorded run in the simulator, under each policy.

    `recording`: a run's folder, a trace, or a folder of runs that differ only in their seeds. `policy`: by default the
    policy of the recording. For the other arguments see `run`. docs/replay.md says how far to trust a replay.
    """
    options: dict[str, Any] = {"costs": costs} if costs else {}
    if policy is not None:
        options["policies"] = _parse_policies(policy)
    if settings:
        options["settings"] = tuple(settings.items())
    return _perform(lambda: replay_request(Path(recording), **options), out, progress)


def run_sweep(
    description: Place, out: Place, *, workers: int | None = None, progress: bool | None = None
) -> dict[str, pl.DataFrame]:
    """Runs the sweep of a sweep file (docs/sweeps.md) and returns its tables: runs, groups and told.

    Finished runs in `out` are kept and not repeated. `workers`: number of processes; by default one per CPU. Raises
    WrongUsage if the file is wrong.
    """
    from schedlab.sweep import command
    from schedlab.sweep.dataset import read_table

    folder = Path(out).absolute()
    with _notes(progress):
        plan = command.plan_sweep(Path(description), {}, None)
        command.execute_plan(
            plan, command.ExecutionOptions(folder, None, None, workers, False, False)
        )
    return {name: read_table(folder, name) for name in ("runs", "groups", "told")}


def open_run(place: Place) -> Run:
    """Opens a run's folder, or a folder with exactly one run. Raises WrongUsage for any other folder."""
    from schedlab.analysis.tables import open_run as opened

    return opened(place)


def open_runs(*places: Place) -> Runs:
    """Opens all runs in folders, at any depth. Raises WrongUsage if they contain no run."""
    with _notes(False) as notes:
        collection = read_collection([Path(place).absolute() for place in places])
    return Runs(collection, notes)


def compare(
    before: Runs | Place, after: Runs | Place, metrics: Sequence[str] = (), matters: float = 0.01
) -> Comparison:
    """Compares the metrics of two sets of runs and returns differences with confidence intervals (docs/comparing.md).

    `metrics`: names of metrics; by default all. `matters`: the smallest relevant change, as a part of the mean.
    Raises WrongUsage if no run has a counterpart on the other side.
    """
    from schedlab.analysis.comparison.compare import compare as compared

    return compared(_collection(before), _collection(after), metrics, matters)


def explain(place: Run | Place, task: str | None = None, *, worst: int = 5) -> Explained:
    """Explains why tasks waited: breaks each wait down by what its CPU did during it (docs/explain.md).

    `task`: a PID, a name or a group; by default all tasks. `worst`: number of longest waits to list one by one.
    """
    from schedlab.analysis.explanation import WaitQuery
    from schedlab.analysis.explanation import explain as explained

    opened = open_run(place) if isinstance(place, str | Path) else place
    return explained(opened.trace, WaitQuery(task=task, worst=worst), read_catalogue())


def query(runs: Iterable[Run] | Runs, sql: str) -> pl.DataFrame:
    """Returns the result of an SQL query on the tables of runs (docs/tables.md). The query cannot read files.

    Raises WrongUsage if DuckDB rejects the query.
    """
    from schedlab.analysis.tables import query as run_query

    return run_query(runs, sql)


def write_report(runs: Runs | Place, folder: Place, formats: Sequence[str] = ("html",)) -> Path:
    """Writes a report of runs into a folder and returns the file to open. `formats`: html, markdown, latex.

    Replaces an existing report. Raises WrongUsage if the folder contains anything else.
    """
    from schedlab.report import build

    with _notes(False):
        return build.write_report(_collection(runs), Path(folder).absolute(), tuple(formats))


def check(source: Place) -> Passed:
    """Checks a policy's C file for mistakes (docs/mistakes.md) and returns the observations if there are none.

    Otherwise raises SchedlabError, whose text names the mistake, the line and the time.
    """
    from schedlab.machines.checked_simulator import check as checked

    with _notes(False):
        return checked(Path(source))


def policies() -> pl.DataFrame:
    """Returns one row per policy: name, meaning, source, presets, and tunables as NAME=DEFAULT."""
    import polars as pl

    return pl.DataFrame(
        [
            {
                "name": policy.name,
                "meaning": policy.meaning,
                "source": policy.source,
                "presets": list(policy.presets),
                "tunables": [
                    f"{name}={tunable.default}" for name, tunable in policy.tunables.items()
                ],
            }
            for policy in read_catalogue().values()
            if policy.number is not None
        ],
        schema_overrides=dict.fromkeys(("presets", "tunables"), pl.List(pl.String)),
    )


def workloads() -> pl.DataFrame:
    """Returns one row per shipped workload file: name, description, file."""
    import polars as pl

    from schedlab.workload.palette import read_palette
    from schedlab.workload.workload_files import read_description

    return pl.DataFrame(
        [
            {"name": name, "description": read_description(ready.file), "file": str(ready.file)}
            for name, ready in read_palette().items()
        ]
    )


def _parse_policies(policy: Policies) -> tuple[PolicyChoice, ...]:
    text = policy if isinstance(policy, str) else ",".join(policy)
    try:
        return parse_choices(text)
    except ValueError as error:
        raise WrongUsage(str(error), what=format_parameter("policy", text)) from None


def _collection(runs: Runs | Place) -> Collection:
    return runs._collection if isinstance(runs, Runs) else open_runs(runs)._collection


def _perform(make_request: Any, out: Place | None, progress: bool | None) -> Runs:
    """Performs the runs of a request, in `out` or a temporary folder, and returns them."""
    from dataclasses import replace

    from schedlab.runs.collection import load_run
    from schedlab.runs.perform import perform
    from schedlab.runs.plan_execution import Interrupted

    scratch = None if out else tempfile.TemporaryDirectory(prefix="schedlab-")
    folder = Path(out or scratch.name).absolute()  # type: ignore[union-attr]
    with _notes(progress) as notes:
        plan = replace(make_request(), out=folder).plan()
        try:
            finished = perform(plan, with_metrics=False)
        except Interrupted as interruption:
            raise KeyboardInterrupt from interruption
    return Runs(
        Collection(load_run(finished_run.folder) for finished_run in finished), notes, scratch
    )


@contextmanager
def _notes(progress: bool | None) -> Iterator[list[str]]:
    """Collects messages within the block, and shows progress in a notebook or if asked to."""
    shows_progress = "ipykernel" in sys.modules if progress is None else progress
    with collect_notes(shows_progress) as notes:
        yield notes
