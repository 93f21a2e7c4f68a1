# SPDX-License-Identifier: MIT
"""Expands a description to its runs: all combinations, or a sample of them."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from schedlab.base.display.terminal import say
from schedlab.base.toolchain.needs import need_extra
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR, machine_named
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import check_cpus
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.sweep import ranges
from schedlab.sweep.description import Description, PolicyEntry, Sample, WorkloadEntry
from schedlab.workload import costs, workload_files
from schedlab.workload.model import WorkloadFile, default_limit_ns
from schedlab.workload.shapes.model import Shape

if TYPE_CHECKING:
    from scipy.stats.qmc import QMCEngine

RUNS_MAX = 1_000_000
TESTED_SETUPS_MAX = 5_000_000
"""Maximum number of setups tested against conditions."""
_DRAWS_PER_SETUP = 1000

Settings = tuple[tuple[str, int], ...]
Setup = tuple[PolicyEntry, Settings]
"""A policy and the values of its tunables."""


@dataclass(frozen=True)
class Point:
    """One run of a sweep."""

    run: RunSpec
    tunables: Settings = ()
    """All tunables of the policy with their values in this run."""


def expand(description: Description) -> list[Point]:
    """Returns each run once, grouped by setup. Raises WrongUsage."""
    count = count_runs_max(description)
    if count > RUNS_MAX:
        raise WrongUsage(
            f"up to {count:,} runs are too many (at most {RUNS_MAX:,}); use fewer "
            "values, or a sample"
        )
    chosen = [(entry, choice) for entry in description.policies for choice in list_setups(entry)]
    point_by_run: dict[RunSpec, Point] = {}
    for base in base_runs(description):
        for point in with_seeds(base, chosen, description):
            point_by_run.setdefault(point.run, point)
    return list(point_by_run.values())


def base_runs(description: Description) -> Iterator[RunSpec]:
    """Yields a run for each combination of all dimensions but policy and seed. Raises WrongUsage."""
    for base in _base_runs(description):
        base.machine.check(base)
        for cpus in (base.shape.cpus,) if base.shape else description.cpus:
            check_cpus(replace(base, cpus=cpus))
            yield replace(base, cpus=cpus)


def with_seeds(base: RunSpec, chosen: Iterable[Setup], description: Description) -> Iterator[Point]:
    """Yields these setups with all seeds."""
    for entry, values in chosen:
        effective = tuple({**entry.standard(), **dict(values)}.items())
        setup = replace(base, policy=entry.choice, settings=values)
        for seed in description.seeds:
            yield Point(replace(setup, seed=seed), effective)


def count_runs_max(description: Description) -> int:
    """Returns the number of runs without conditions and duplicates."""
    setups_count = sum(
        entry.sample.count
        if entry.sample
        else math.prod(ranges.count_values(values) for values in entry.tunables.values())
        for entry in description.policies
    )
    workloads = sum(
        len(workload.machines)
        * math.prod(ranges.count_values(values) for values in workload.changes.values())
        for workload in description.workloads
    )
    ticks, costs = len(description.ticks_ns), len(description.costs)
    machines = len(description.shapes or description.cpus)
    return setups_count * workloads * ticks * costs * machines * len(description.seeds)


# --- tunables


def list_setups(entry: PolicyEntry) -> Iterator[Settings]:
    """Yields the settings of a policy's setups.

    Raises WrongUsage if no setup fulfils the conditions.
    """
    drawn = _sampled_setups(entry, entry.sample) if entry.sample else _grid_setups(entry)
    has_choice = False
    for values in drawn:
        has_choice = True
        yield values
    if not has_choice:
        conditions = "; ".join(condition.text for condition in entry.conditions)
        raise WrongUsage(
            f"{entry.choice}: no configuration fulfils the conditions {conditions}; change them"
        )


def _grid_setups(entry: PolicyEntry) -> Iterator[Settings]:
    """Yields all setups of the grid that fulfil the conditions."""
    grids = [ranges.list_values(values) for values in entry.tunables.values()]
    size = math.prod(len(values) for values in grids)
    if size > TESTED_SETUPS_MAX:
        raise WrongUsage(f"{entry.choice}: {size:,} configurations are too many; use a sample")
    for chosen in itertools.product(*grids):
        settings = name_settings(entry, chosen)
        if fulfils_conditions(entry, settings):
            yield settings


def _sampled_setups(entry: PolicyEntry, sample: Sample) -> Iterator[Settings]:
    """Yields distinct sampled setups; draws replacements for setups that violate the conditions."""
    varied = {
        name: values for name, values in entry.tunables.items() if ranges.count_values(values) > 1
    }
    places = sample_points(sample.method, len(varied), sample.count, sample.seed)
    drawn: dict[Settings, None] = {}
    draws_max = min(TESTED_SETUPS_MAX, _DRAWS_PER_SETUP * sample.count)
    for place in itertools.islice(places, draws_max):
        position_by_name = dict(zip(varied, place, strict=True))
        chosen = tuple(
            values.at(position_by_name.get(name, 0.0)) for name, values in entry.tunables.items()
        )
        settings = name_settings(entry, chosen)
        if settings not in drawn and fulfils_conditions(entry, settings):
            drawn[settings] = None
            yield settings
            if len(drawn) == sample.count:
                return
    if drawn:
        raise WrongUsage(
            f"{entry.choice}: only {len(drawn)} different configurations that fulfil "
            f"the conditions were found in {draws_max:,} draws, and the sample has "
            f"{sample.count}; use a smaller sample"
        )


def name_settings(entry: PolicyEntry, chosen: Sequence[ranges.Scalar]) -> Settings:
    """Returns values with their names, in the order of the entry's tunables."""
    pairs = zip(entry.tunables, chosen, strict=True)
    return tuple((name, value) for name, value in pairs if isinstance(value, int))


def fulfils_conditions(entry: PolicyEntry, values: Settings) -> bool:
    """Returns whether the entry's conditions hold."""
    if not entry.conditions:
        return True
    all_values = {**entry.standard(), **dict(values)}
    return all(condition.holds(all_values) for condition in entry.conditions)


# --- everything else


def _base_runs(description: Description) -> Iterator[RunSpec]:
    """Yields a run for each workload, machine, tick, costs and shape, without CPUs, policy and seed."""
    cost_choices = [costs.parse_costs(text) for text in description.costs]
    for entry in description.workloads:
        for file in _changed_files(entry):
            for machine in entry.machines:
                for tick_ns in description.ticks_ns:
                    base = _base_run(description, entry, machine, tick_ns, file)
                    runs_with_costs = (
                        [replace(base, costs=costs) for costs in cost_choices]
                        if machine == SIMULATOR
                        else [base]
                    )
                    for run_with_costs in runs_with_costs:
                        yield from _with_shapes(run_with_costs, description.shapes)


def _with_shapes(base: RunSpec, shapes: tuple[Shape, ...]) -> list[RunSpec]:
    """Returns a run for each shape, or the run itself without shapes."""
    return [replace(base, shape=shape, cpus=shape.cpus) for shape in shapes] or [base]


def _base_run(
    description: Description,
    entry: WorkloadEntry,
    machine: str,
    tick_ns: int,
    file: WorkloadFile | None,
) -> RunSpec:
    """Returns a run of the workload on a machine, without CPUs, policy and seed."""
    command, label = entry.name, ""
    if entry.kind == "experiment":
        experiment = EXPERIMENTS[entry.name]
        tick_ns = experiment.tick_ns or tick_ns
        command, label = experiment.command_at(tick_ns), entry.name
    return RunSpec(
        workload=command,
        policy=description.policies[0].choice,
        settings=(),
        cpus=description.cpus[0],
        machine=machine_named(machine),
        seed=description.seeds[0],
        tick_ns=tick_ns,
        limit_ns=default_limit_ns(file) if description.limit_ns is None else description.limit_ns,
        memory_mib=0 if machine == SIMULATOR else description.memory_mib,
        label=label,
        file=file,
        changes=file.changes if file else (),
    )


def _changed_files(entry: WorkloadEntry) -> Iterator[WorkloadFile | None]:
    """Yields the file with each combination of changes; None for other workloads."""
    if entry.place is None:
        yield None
        return
    shown_notes: set[str] = set()
    grids = [ranges.list_values(values) for values in entry.changes.values()]
    for chosen in itertools.product(*grids):
        pairs = zip(entry.changes, chosen, strict=True)
        file = workload_files.read_workload_file(
            entry.place, [(place, _change_text(value)) for place, value in pairs]
        )
        for note in (note for note in file.notes if note not in shown_notes):
            say(f"schedlab: {entry.place}, {note}")
        shown_notes.update(file.notes)
        yield file


def _change_text(value: ranges.Scalar) -> str:
    """Returns a value in the syntax of workload changes."""
    return value if isinstance(value, str) else json.dumps(value)


Method = Literal["random", "sobol", "halton", "latin-hypercube"]
METHODS: tuple[str, ...] = get_args(Method)


def sample_points(
    method: str, dimensions: int, count: int, seed: int
) -> Iterator[tuple[float, ...]]:
    """Yields an endless sequence of points; the first `count` form the sample of that size.

    random: independent points. sobol (Sobol' 1967, scrambled as by Owen 1998) and halton (Halton
    1960, scrambled): evenly spread sequences. latin-hypercube (McKay, Beckman and Conover 1979):
    one point in each of `count` equal parts of each dimension. The same seed gives the same points.
    """
    if method != "random":
        need_extra("sweep")
    if method == "latin-hypercube":
        from scipy.stats import qmc  # takes longer to import than a small sweep to run

        hypercube = qmc.LatinHypercube(dimensions, rng=seed)
        while True:
            yield from map(tuple, hypercube.random(count).tolist())
    engine = _engine(method, dimensions, seed)
    while True:
        with warnings.catch_warnings():
            # scipy warns that Sobol' points are uneven unless their number is a power of two.
            warnings.simplefilter("ignore", UserWarning)
            drawn = engine.random(count)
        yield from map(tuple, drawn.tolist())


def _engine(method: str, dimensions: int, seed: int) -> QMCEngine:
    if method == "random":
        return _Independent(dimensions, seed)
    from scipy.stats import qmc

    if method == "sobol":
        return qmc.Sobol(dimensions, rng=seed)
    return qmc.Halton(dimensions, rng=seed)


class _Independent:
    """Independent draws with the interface of scipy's engines."""

    def __init__(self, dimensions: int, seed: int) -> None:
        """Begins independent draws in this many dimensions."""
        import numpy as np

        self.dimensions = dimensions
        self.generator = np.random.default_rng(seed)

    def random(self, count: int):  # type: ignore[no-untyped-def]
        """Returns `count` points: rows of numbers from 0 to 1."""
        return self.generator.random((count, self.dimensions))
