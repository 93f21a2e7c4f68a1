# SPDX-License-Identifier: MIT
"""Matches the configurations of two sets of runs, and finds the dimensions where they differ."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schedlab.errors import WrongUsage
from schedlab.runs.collection import Collection, ConfigurationRuns, StoredRun
from schedlab.units import format_time
from schedlab.workload.changes import workload_title

DIMENSIONS = ("workload", "policy", "tunables", "CPUs", "tick", "machine")
"""Dimensions of a configuration. Partners are equal in each dimension, or each side has one value."""
ConfigurationKey = tuple[str, ...]
"""A configuration's values in the order of DIMENSIONS."""


@dataclass(frozen=True)
class ComparedProperty:
    """A property of the runs of both sides: its distinct values on the first side and on the second."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Returns whether the sides have different values."""
        return set(self.before) != set(self.after)


def configuration_key(setup: ConfigurationRuns) -> ConfigurationKey:
    """Returns the configuration's values by DIMENSIONS, formatted for users."""
    run = setup.setup
    settings = " ".join(f"{name}={value}" for name, value in run.settings)
    return (
        run.experiment,
        run.policy,
        settings or "none",
        str(run.cpus),
        format_time(run.tick_ns),
        run.machine,
    )


def configurations_by_key(side: Collection) -> dict[ConfigurationKey, ConfigurationRuns]:
    """Returns the configurations by key. Raises WrongUsage if a configuration has the same seed twice."""
    repeated_by_key: dict[ConfigurationKey, ConfigurationRuns] = {}
    for repeated in side.repeated.values():
        seeds = [run.seed for run in repeated.runs]
        repeated_seeds = {seed for seed in seeds if seeds.count(seed) > 1}
        if repeated_seeds:
            folders = ", ".join(
                str(run.folder) for run in repeated.runs if run.seed in repeated_seeds
            )
            raise WrongUsage(
                f"the same configuration and seed exist more than once: {folders}",
                fix="name a folder that holds each run once",
            )
        repeated_by_key[configuration_key(repeated)] = repeated
    return repeated_by_key


def differing_dimensions(
    before: Mapping[ConfigurationKey, ConfigurationRuns],
    after: Mapping[ConfigurationKey, ConfigurationRuns],
) -> tuple[str, ...]:
    """Returns the dimensions without a common value, where at least one side has a single value."""
    dimensions = []
    for number, name in enumerate(DIMENSIONS):
        first = {key[number] for key in before}
        second = {key[number] for key in after}
        if not first & second and min(len(first), len(second)) == 1:
            dimensions.append(name)
    return tuple(dimensions)


def are_partners(
    before: ConfigurationKey, after: ConfigurationKey, across: tuple[str, ...]
) -> bool:
    """True if two configurations are partners."""
    return all(
        one == other
        for name, one, other in zip(DIMENSIONS, before, after, strict=True)
        if name not in across
    )


def no_match_message(
    before: Mapping[ConfigurationKey, ConfigurationRuns],
    after: Mapping[ConfigurationKey, ConfigurationRuns],
) -> str:
    """Returns a message that names the dimension without a common value."""
    for number, name in enumerate(DIMENSIONS):
        sides = [sorted({key[number] for key in side}) for side in (before, after)]
        if not set(sides[0]) & set(sides[1]) and min(map(len, sides)) > 1:
            sides_text = " against ".join(", ".join(side) for side in sides)
            return (
                f"no configurations match: {name} differs: {sides_text}; name folders with one value"
                " each, or with common values"
            )
    return (
        "no configurations match in all properties but one; name folders of the same workload,"
        " CPUs, tick and machine"
    )


def _hash_reader(name: str) -> Callable[[StoredRun], str]:
    """Returns a function that gives the first 12 digits of a hash in a manifest, or "" if there is none."""
    return lambda run: str(run.manifest.get(f"{name}_sha256") or "")[:12]


_FACT_READERS: dict[str, Callable[[StoredRun], str]] = {
    "seeds": lambda run: str(run.seed),
    "command": lambda run: workload_title(run.manifest),
    "memory": lambda run: f"{run.manifest.get('memory_mib')} MiB",
    "limit": lambda run: format_time(run.manifest.get("limit_ns") or 0),
    "machine's version": lambda run: str(run.manifest.get("machine_version")),
    "time": lambda run: str(run.manifest.get("mode") or ""),
    "kernel": _hash_reader("kernel"),
    "disk": _hash_reader("disk"),
    "simulator": _hash_reader("simulator"),
    "Linux kernel": _hash_reader("linux_kernel"),
    "Linux guest": _hash_reader("linux_image"),
    "programs for Linux": _hash_reader("linux_programs"),
    "workload file": _hash_reader("workload"),
    "costs": lambda run: str(run.manifest.get("costs") or ""),
    "delays": lambda run: str(run.manifest.get("delays") or ""),
    "machine's shape": lambda run: str(run.manifest.get("shape") or ""),
    "branch": lambda run: str(run.manifest.get("branch") or ""),
    "measuring code": lambda run: (run.manifest.get("measuring") or {}).get("sources_sha256", "")[
        :12
    ],
    "schedlab": lambda run: _commit_text(run.manifest),
    "host": lambda run: str(run.manifest.get("host") or ""),
}


_FACTS_NOT_IN_BASELINES = ("host",)
"""Facts that baselines do not record."""


def _commit_text(manifest: Mapping[str, Any]) -> str:
    """Returns the commit of a run's sources, and says if they had uncommitted changes."""
    commit = str(manifest.get("commit") or "unknown")[:12]
    changed = " and changes" if manifest.get("changed") else ""
    return f"{manifest.get('schedlab')}, commit {commit}{changed}"


def compare_facts(before: Collection, after: Collection) -> Iterable[ComparedProperty]:
    """Yields the dimensions and other facts that may explain a difference."""
    all_keys = [
        [configuration_key(repeated) for repeated in side.repeated.values()]
        for side in (before, after)
    ]
    for number, name in enumerate(DIMENSIONS):
        both = [tuple(dict.fromkeys(key[number] for key in side)) for side in all_keys]
        yield ComparedProperty(name, *both)
    for name, read in _FACT_READERS.items():
        all_values_by_side = [dict.fromkeys(read(run) for run in side) for side in (before, after)]
        both = [tuple(value for value in side if value) for side in all_values_by_side]
        if all(both) if name in _FACTS_NOT_IN_BASELINES else any(both):
            yield ComparedProperty(name, *both)
