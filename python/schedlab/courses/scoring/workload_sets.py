# SPDX-License-Identifier: MIT
"""Sets of workloads that score policies; a published set never changes, but newer sets may replace it.

A set is a folder with `set.json` and workload files. For each number, a variant of each file is
drawn: a seed and a value for each variable place, which may depend on the CPUs. A key determines
all draws.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schedlab.analysis.comparison.measures import GROUP_MEASURES, MEASURES
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices
from schedlab.machines import machine_named
from schedlab.machines.linux.machine import Linux
from schedlab.machines.spec import RunSpec
from schedlab.workload import workload_files
from schedlab.workload.changes import Change
from schedlab.workload.model import default_limit_ns

SETS_FOLDER = Path(__file__).parent / "sets"
LATEST_SET = "2"
SHOWN_KEY = b"shown"
"""Key of the public variants."""
TICK_NS = 1_000_000
MEMORY_MIB = 512
_SEED_COUNT = 2**31


@dataclass(frozen=True)
class Objective:
    """A metric that policies are scored by, in one or several workloads; lower is better."""

    name: str
    title: str
    metric: str
    floor: float
    """Smaller values are raised to this value, because differences below it are irrelevant."""
    group_by_workload: Mapping[str, str]
    """Measured group by workload; empty for all processes."""
    weight: float
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Level:
    """How thoroughly policies are measured."""

    name: str
    machine: str
    variants: int  # number of variants of each workload
    cpus: tuple[int, ...]
    tick_ns: int = TICK_NS
    memory_mib: int = MEMORY_MIB
    compares_all_policies: bool = True
    """True to compare with all policies; False for the reference and explicitly named policies only."""


CONFIRMED = Level("confirmed", Linux.name, 4, (2,), Linux.tick_ns, Linux.memory_mib, False)
"""A level of every set: the same workloads on the Linux kernel.

Each run boots Linux, so there are few.
"""


@dataclass(frozen=True)
class WorkloadSet:
    """A set of workloads that policies are scored with."""

    name: str
    sha256: str
    reference: PolicyChoice
    """The policy whose factors are all 1."""
    levels: Mapping[str, Level]
    """How thoroughly policies are measured, by name."""
    workloads: Mapping[str, Mapping[str, Sequence[Any]]]
    """Variable places of each workload, with their values."""
    objectives: tuple[Objective, ...]

    def objectives_of(self, level: Level) -> tuple[Objective, ...]:
        """Returns the objectives measured at a level."""
        return tuple(objective for objective in self.objectives if level.name in objective.levels)

    def runs(self, key: bytes, level: Level, policy: PolicyChoice) -> Iterator[RunSpec]:
        """Yields all runs of a policy: workloads × variants × CPUs.

        The label is the workload with its variant's number.
        """
        for workload, places in self.workloads.items():
            for number in range(level.variants):
                draws = KeyedDraws(key, f"{self.name}/{workload}/{number}")
                drawn_values = {place: draws.one_of(choices) for place, choices in places.items()}
                seed = draws.below(_SEED_COUNT)
                for cpus in level.cpus:
                    changes = tuple(
                        (place, json.dumps(size_for_cpus(value, cpus)))
                        for place, value in drawn_values.items()
                    )
                    run = self._run_spec(workload, changes, cpus, seed, level, policy)
                    yield replace(run, label=f"{workload}-{number}")

    def _run_spec(
        self,
        workload: str,
        changes: tuple[Change, ...],
        cpus: int,
        seed: int,
        level: Level,
        policy: PolicyChoice,
    ) -> RunSpec:
        path = SETS_FOLDER / self.name / f"{workload}.json"
        file = workload_files.read_workload_file(path, changes)
        return RunSpec(
            str(path),
            policy,
            (),
            cpus,
            machine_named(level.machine),
            seed,
            level.tick_ns,
            default_limit_ns(file),
            level.memory_mib,
            file=file,
            changes=file.changes,
        )


def size_for_cpus(value: Any, cpus: int) -> Any:
    """Returns a set's value for a number of CPUs.

    {"per_cpu": 1.5} is 1.5 × CPUs, rounded, at least 1. {"at": {"1": 40, "8": 10}} is 40 for 1 to 7
    CPUs and 10 from 8 CPUs. Both may be nested in objects.
    """
    if not isinstance(value, dict):
        return value
    if "per_cpu" in value:
        return max(1, round(value["per_cpu"] * cpus))
    if "at" in value:
        return value["at"][
            str(max(first_cpus for first_cpus in map(int, value["at"]) if first_cpus <= cpus))
        ]
    return {key: size_for_cpus(item, cpus) for key, item in value.items()}


class KeyedDraws:
    """Reproducible random numbers from a key and a name, by SHA-256."""

    def __init__(self, key: bytes, name: str) -> None:
        """Begins the sequence of this key and name."""
        self._prefix = key + b"\0" + name.encode()
        self._count = 0

    def below(self, count: int) -> int:
        """Returns the next number from 0 to count - 1; probabilities differ by less than 2**-32 of themselves."""
        self._count += 1
        digest = hashlib.sha256(self._prefix + b"\0" + str(self._count).encode()).digest()
        return int.from_bytes(digest[:12], "big") % count

    def one_of(self, values: Sequence[Any]) -> Any:
        """Returns one of the values."""
        return values[self.below(len(values))]


def set_names() -> list[str]:
    """Returns the names of all sets, the latest last."""
    return sorted((path.name for path in SETS_FOLDER.iterdir() if path.is_dir()), key=int)


def read_set(name: str = LATEST_SET) -> WorkloadSet:
    """Returns a set by name."""
    folder = SETS_FOLDER / name
    content = json.loads((folder / "set.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    levels = {
        level: Level(level, entry["machine"], entry["variants"], tuple(entry["cpus"]))
        for level, entry in content["levels"].items()
    }
    levels[CONFIRMED.name] = CONFIRMED
    objectives = tuple(
        Objective(
            objective,
            entry["title"],
            entry["metric"],
            entry["floor"],
            entry["of"],
            entry["weight"],
            tuple(entry.get("levels", levels)),
        )
        for objective, entry in content["objectives"].items()
    )
    assert {objective.metric for objective in objectives} <= {
        measure.name for measure in (*MEASURES, *GROUP_MEASURES)
    }
    return WorkloadSet(
        name,
        digest.hexdigest(),
        parse_choices(content["reference"])[0],
        levels,
        content["workloads"],
        objectives,
    )
