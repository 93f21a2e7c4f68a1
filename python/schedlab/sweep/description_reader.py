# SPDX-License-Identifier: MIT
"""Reads the description of a sweep from a file and options, which share one tree of values.

Errors name the line or option, the invalid value and what was expected.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object
from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import (
    DEFAULT_POLICY,
    Catalogue,
    Policy,
    PolicyChoice,
    Preset,
    describe_unknown_name,
    describe_unknown_tunable,
    parse_choices,
)
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines import HOST, KERNEL_MACHINES, MACHINES, SIMULATOR, machine_named
from schedlab.machines.published import PUBLISHED_POLICY, is_published
from schedlab.paths import ROOT
from schedlab.runs.plan import MEMORY_RANGE_MIB, TICK_RANGE_NS
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.sweep import ranges, yaml_lines
from schedlab.sweep.description import (
    EXPECTED_CONDITION,
    Condition,
    Description,
    PolicyEntry,
    Sample,
    WorkloadEntry,
    parse_condition,
)
from schedlab.sweep.expansion import METHODS
from schedlab.units import format_time, parse_counts, parse_time
from schedlab.workload.palette import read_palette
from schedlab.workload.shapes.model import Shape
from schedlab.workload.shapes.reading import find_shape as choose_shape
from schedlab.workload.values import members_by_key, read_integer, value_error
from schedlab.workload.workload_files import is_workload_file

KEYS = (
    "description", "workloads", "policies", "machines", "cpus", "seeds", "tick", "costs", "shapes",
    "limit", "memory", "search",
)  # fmt: skip
LIMIT_NS = (1_000_000, 24 * 3600 * 1_000_000_000)
SEED_MAX = 2**63 - 1
SAMPLE_MAX = 1_000_000
_STANDARD_TICK_NS = 1_000_000
_STANDARD_MEMORY_MIB = 512
_SEARCH_BUDGET = re.compile(r"\d+(:\d+)?")
_MACHINES = tuple(name for name in MACHINES if name != HOST)
"""Sweep files must not run commands on this machine's own kernel."""
_WORKLOAD_KINDS = ("file", "experiment", "command")
_EXPERIMENTS = [
    name for name, experiment in EXPERIMENTS.items() if not experiment.repeated_experiment
]
"""Experiments that a sweep can run unchanged; excludes those with the costs of a study's machine."""
_EXPECTED_WORKLOAD = (
    "a workload file, an experiment of the studies, a command of the kernel; or an object such as"
    " {file: study4-mixed.json, with: {tasks.cpu.instance: [10, 20]}}"
)
_EXPECTED_POLICY = (
    f"a policy, such as {DEFAULT_POLICY}; or an object such as"
    f" {{policy: {DEFAULT_POLICY}, set: {{slice: [1, 5]}}}}"
)
_EXPECTED_SAMPLE = f"an object such as {{method: sobol, count: 64}}; methods: {', '.join(METHODS)}"


def read_description(
    path: Path | None, options: Mapping[str, Node], catalogue: Catalogue, searched: bool = False
) -> Description:
    """Returns the description in a file, with overriding options. Raises WrongUsage.

    `searched` means that a search replaces grids and samples of setups.
    """
    with _locate_errors(path):
        members = {**(_members(path) if path else {}), **options}
        folder = path.parent if path else Path()
        return _Reader(members, folder, catalogue, searched).description()


def read_search_budget(path: Path) -> str | None:
    """Returns the file's search budget in the option's syntax, or None. Raises WrongUsage."""
    with _locate_errors(path):
        node = _members(path).get("search")
        if node is not None and not _SEARCH_BUDGET.fullmatch(str(node.value)):
            raise value_error(node, "a number of runs, or RUNS:SEED: 640 or 640:7")
    return None if node is None else str(node.value)


@contextmanager
def _locate_errors(path: Path | None) -> Iterator[None]:
    try:
        yield
    except JsonError as error:
        place = f"{path}:{error.line}: " if error.line else ""
        raise WrongUsage(f"{place}{error}") from None


def _members(path: Path) -> dict[str, Node]:
    return members_by_key(
        yaml_lines.parse_yaml(read_text(path)), "an object with workloads and policies", KEYS
    )


class _Reader:
    """Reads the members of a description."""

    def __init__(
        self, members: Mapping[str, Node], folder: Path, catalogue: Catalogue, searched: bool
    ) -> None:
        """Prepares to read. `folder`: the folder of relative paths; `searched`: as in `read_description`."""
        self.members = members
        self.folder = folder
        """Base folder of workload file names."""
        self.catalogue = catalogue
        self.searched = searched

    def description(self) -> Description:
        for key, name in (("workloads", "workload"), ("policies", "policy")):
            if key not in self.members:
                raise JsonError(
                    0,
                    f"nothing to sweep: no {key} in the file, and no {format_parameter(name)}; give one of them",
                )
        machines = self.machines(self.members.get("machines"), (SIMULATOR,))
        workloads = [
            self.workload(node, machines) for node in list_items(self.members["workloads"])
        ]
        return Description(
            title=self.title(self.members.get("description")),
            workloads=tuple(workloads),
            policies=tuple(self.policy(node) for node in list_items(self.members["policies"])),
            cpus=self.cpus([machine for workload in workloads for machine in workload.machines]),
            seeds=self.seeds(),
            ticks_ns=self.times("tick", _STANDARD_TICK_NS, TICK_RANGE_NS),
            costs=self.costs(),
            shapes=self.shapes(),
            limit_ns=self.limit(),
            memory_mib=self.memory(),
        )

    # --- single values

    def title(self, node: Node | None) -> str:
        if node is None:
            return ""
        if not isinstance(node.value, str):
            raise value_error(node, "a text")
        return node.value

    def seeds(self) -> tuple[int, ...]:
        node = self.members.get("seeds")
        if node is None:
            return (1,)
        values = ranges.read_integers(node)
        check_bounds(node, values, 0, SEED_MAX, f"numbers from 0 to {SEED_MAX}")
        return grid_integers(node, values)

    def cpus(self, machines: Iterable[str]) -> tuple[int, ...]:
        names = sorted(set(machines))
        cpus_max = min(machine_named(name).cpus_max for name in names)
        node = self.members.get("cpus")
        if node is not None and isinstance(node.value, str) and "-" in node.value:
            try:
                return parse_counts(node.value, 1, cpus_max)
            except ValueError as error:
                raise value_error(node, f"numbers of CPUs, such as 1-4: {error}") from None
        values = ranges.read_integers(node) if node else ranges.Listed((1,))
        if node:
            check_bounds(
                node,
                values,
                1,
                cpus_max,
                f"1 to {cpus_max} CPUs, which {', '.join(names)} can have",
            )
        return grid_integers(node, values) if node else (1,)

    def times(self, key: str, standard: int, within: tuple[int, int]) -> tuple[int, ...]:
        """Returns the times of a key in ns within limits; `standard` if the key is missing."""
        node = self.members.get(key)
        if node is None:
            return (standard,)
        return tuple(dict.fromkeys(read_time_ns(item, within) for item in list_items(node)))

    def limit(self) -> int | None:
        """Returns the limit of runs in ns, or None if it is not given."""
        if "limit" not in self.members:
            return None
        limit_ns = self.times("limit", 0, LIMIT_NS)
        if len(limit_ns) > 1:
            raise value_error(self.members["limit"], "one time")
        return limit_ns[0]

    def memory(self) -> int:
        """Returns the memory of machines in MiB."""
        node = self.members.get("memory")
        return read_integer(node, *MEMORY_RANGE_MIB) if node else _STANDARD_MEMORY_MIB

    def costs(self) -> tuple[str, ...]:
        node = self.members.get("costs")
        if node is None:
            return ("kernel",)
        return tuple(
            dict.fromkeys(
                read_text_value(item, "kernel, none, textbook, or a profile")
                for item in list_items(node)
            )
        )

    def shapes(self) -> tuple[Shape, ...]:
        node = self.members.get("shapes")
        if node is None:
            return ()
        if "cpus" in self.members:
            raise value_error(
                self.members["cpus"], "no `cpus` together with shapes, which determine the number"
            )
        names = (
            read_text_value(item, "a shape: a file, or the name of one")
            for item in list_items(node)
        )
        return tuple(dict.fromkeys(choose_shape(name, self.folder) for name in names))

    def machines(self, node: Node | None, standard: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the names of machines; `standard` if they are not given."""
        if node is None:
            return standard
        names: dict[str, None] = {}
        for item in list_items(node):
            if item.value not in _MACHINES:
                raise value_error(item, f"a machine: {', '.join(_MACHINES)}")
            names[str(item.value)] = None
        return tuple(names)

    # --- workloads

    def workload(self, node: Node, machines: tuple[str, ...]) -> WorkloadEntry:
        """Returns a workload: a name, or an object with a kind and changes."""
        if not isinstance(node.value, Object):
            return self.workload_of_name(node, machines)
        fields = members_by_key(node, _EXPECTED_WORKLOAD, (*_WORKLOAD_KINDS, "with", "machines"))
        kinds = [kind for kind in _WORKLOAD_KINDS if kind in fields]
        if len(kinds) != 1:
            raise value_error(node, f"one of {', '.join(_WORKLOAD_KINDS)} in it")
        machine_names = self.machines(fields.get("machines"), machines)
        return self.workload_of(kinds[0], fields[kinds[0]], machine_names, fields.get("with"))

    def workload_of_name(self, node: Node, machines: tuple[str, ...]) -> WorkloadEntry:
        """Returns the workload of a name, whose kind follows from its form."""
        text = read_text_value(node, _EXPECTED_WORKLOAD)
        if is_workload_file(text) or (SIMULATOR in machines and text in read_palette()):
            return self.workload_of("file", node, machines, None)
        kind = "experiment" if text in _EXPERIMENTS else "command"
        return self.workload_of(kind, node, machines, None)

    def workload_of(
        self, kind: str, node: Node, machines: tuple[str, ...], changes: Node | None
    ) -> WorkloadEntry:
        """Returns the workload of a kind.

        `changes`: the object of values that replace values of the file.
        """
        text = read_text_value(node, _EXPECTED_WORKLOAD)
        if kind != "file" and changes is not None:
            raise JsonError(
                changes.line, f"{changes.path}: only files have values to change; leave it out"
            )
        if kind == "file":
            ready = None if is_workload_file(text) else read_palette().get(text)
            place = ready.file if ready else Path(self.folder, text)
            values = {key: ranges.read_scalars(change) for key, change in unique_members(changes)}
            for key, change in unique_members(changes):
                check_grid(change, values[key])
            return WorkloadEntry("file", relative_name(place, text), place, values, machines)
        if SIMULATOR in machines:
            raise value_error(
                node,
                "a workload file, or a built-in one by its name (`./schedlab workloads` lists"
                f" them), because {SIMULATOR} runs only files; programs run on"
                f" {' and '.join(KERNEL_MACHINES)} (machines: [spike])",
            )
        if kind == "experiment" and text not in _EXPERIMENTS:
            raise value_error(node, describe_unknown_name("experiment", text, _EXPERIMENTS))
        experiment_machine = EXPERIMENTS[text].machine if kind == "experiment" else None
        if experiment_machine and set(machines) != {experiment_machine}:
            raise value_error(
                node,
                f"another experiment: {text} runs only on {experiment_machine} (machines: [{experiment_machine}])",
            )
        return WorkloadEntry(
            "experiment" if kind == "experiment" else "command", text, None, {}, machines
        )

    # --- policies

    def policy(self, node: Node) -> PolicyEntry:
        """Returns a policy with the values of its tunables, its conditions and its sample."""
        if not isinstance(node.value, Object):
            choice, policy = self.choice(node)
            return PolicyEntry(choice, policy, {}, (), None)
        fields = members_by_key(node, _EXPECTED_POLICY, ("policy", "set", "where", "sample"))
        if "policy" not in fields:
            raise value_error(node, _EXPECTED_POLICY)
        choice, policy = self.choice(fields["policy"])
        tunables = {
            name: self.tunable(choice, policy, name, tunable_node)
            for name, tunable_node in unique_members(fields.get("set"))
        }
        conditions = list_items(fields["where"]) if "where" in fields else ()
        sample = self.sample(fields["sample"]) if "sample" in fields else None
        if self.searched:
            sample = None
        elif sample is None:
            for name, tunable_node in unique_members(fields.get("set")):
                check_grid(tunable_node, tunables[name])
        elif not any(ranges.count_values(values) > 1 for values in tunables.values()):
            raise value_error(fields["sample"], "tunables with several values to sample from")
        read = tuple(self.condition(choice, policy, condition) for condition in conditions)
        return PolicyEntry(choice, policy, tunables, read, sample)

    def choice(self, node: Node) -> tuple[PolicyChoice, Policy]:
        try:
            choices = parse_choices(read_text_value(node, _EXPECTED_POLICY))
        except ValueError as error:
            raise value_error(node, f"{_EXPECTED_POLICY}: {error}") from None
        choice = choices[0]
        if len(choices) > 1:
            raise value_error(node, "one policy; several are a list: [NAME, NAME]")
        if is_published(choice):
            preset = Preset(choice.preset, "", {})
            return choice, replace(PUBLISHED_POLICY, presets={choice.preset: preset})
        policy = self.catalogue.get(choice.name)
        if policy is None:
            raise value_error(
                node, f"a policy: {describe_unknown_name('policy', choice.name, self.catalogue)}"
            )
        if choice.preset and choice.preset not in policy.presets:
            expected = f"preset of {policy.name}"
            raise value_error(
                node, f"a preset: {describe_unknown_name(expected, choice.preset, policy.presets)}"
            )
        return choice, policy

    def tunable(self, choice: PolicyChoice, policy: Policy, name: str, node: Node) -> ranges.Values:
        """Returns the values of a tunable.

        Raises JsonError for values that the policy does not permit.
        """
        if is_published(choice):  # its settings are known when it is loaded
            return ranges.read_integers(node)
        declared = policy.tunables_of(choice.preset).get(name)
        if declared is None:
            expected = describe_unknown_tunable(policy, choice, name)
            raise JsonError(node.line, f"{node.path}: {expected}")
        values = ranges.read_integers(node)
        allowed = (
            f"{declared.minimum} to {declared.maximum}, which {choice} allows ({declared.meaning})"
        )
        check_bounds(node, values, declared.minimum, declared.maximum, allowed)
        return values

    def condition(self, choice: PolicyChoice, policy: Policy, node: Node) -> Condition:
        text = read_text_value(node, EXPECTED_CONDITION)
        try:
            return parse_condition(text, policy.tunables_of(choice.preset))
        except ValueError as error:
            raise value_error(node, str(error)) from None

    def sample(self, node: Node) -> Sample:
        fields = members_by_key(node, _EXPECTED_SAMPLE, ("method", "count", "seed"))
        if "method" not in fields or "count" not in fields:
            raise value_error(node, _EXPECTED_SAMPLE)
        if fields["method"].value not in METHODS:
            raise value_error(fields["method"], f"one of {', '.join(METHODS)}")
        seed = read_integer(fields["seed"], 0, SEED_MAX) if "seed" in fields else 1
        return Sample(
            str(fields["method"].value), read_integer(fields["count"], 1, SAMPLE_MAX), seed
        )


# --- what several values have in common


def relative_name(place: Path, text: str) -> str:
    """Returns a file's path relative to this checkout, or else the text."""
    path = place.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else text


def list_items(node: Node) -> tuple[Node, ...]:
    """Returns the values of a list; a single value is a list of one."""
    if not isinstance(node.value, tuple):
        return (node,)
    if not node.value:
        raise value_error(node, "at least one value in it")
    return node.value


def unique_members(node: Node | None) -> tuple[tuple[str, Node], ...]:
    """Returns the members of an object with unique keys; empty for None."""
    if node is None:
        return ()
    if not isinstance(node.value, Object):
        raise value_error(node, "an object of names and values")
    keys_seen: set[str] = set()
    for key, member in node.value.members:
        if key in keys_seen:
            raise JsonError(member.line, f"{member.path}: given twice; remove one of the two")
        keys_seen.add(key)
    return node.value.members


def read_text_value(node: Node, expected: str) -> str:
    """Returns a text. Raises JsonError with `expected`."""
    if not isinstance(node.value, str) or not node.value.strip():
        raise value_error(node, expected)
    return node.value.strip()


def read_time_ns(node: Node, within: tuple[int, int]) -> int:
    """Returns a time in ns within limits. Raises JsonError."""
    low, high = within
    expected = f"a time from {format_time(low)} to {format_time(high)}, such as 10ms"
    return _parse_integer(node, expected, low, high)


def _parse_integer(node: Node, expected: str, low: int, high: int) -> int:
    """Returns the integer of a text within limits. Raises JsonError with `expected`."""
    try:
        nanoseconds = parse_time(read_text_value(node, expected))
    except ValueError:
        raise value_error(node, expected) from None
    if not low <= nanoseconds <= high:
        raise value_error(node, expected)
    return nanoseconds


def check_bounds(node: Node, values: ranges.Values, least: int, most: int, allowed: str) -> None:
    """Raises JsonError if a value is not between `least` and `most`."""
    low, high = ranges.smallest_and_largest(values)
    if not (isinstance(low, int) and isinstance(high, int) and least <= low and high <= most):
        raise value_error(node, allowed)


def check_grid(node: Node, values: ranges.Values) -> None:
    """Raises JsonError for values that a grid cannot enumerate."""
    if isinstance(values, ranges.Logarithmic):
        raise value_error(
            node, "a range with a factor, as in 1..1000*2, because `log` is for samples"
        )
    if ranges.count_values(values) > ranges.VALUES_MAX:
        raise value_error(node, f"at most {ranges.VALUES_MAX:,} values")


def grid_integers(node: Node, values: ranges.Values) -> tuple[int, ...]:
    """Returns the integers of a grid. Raises JsonError."""
    check_grid(node, values)
    return tuple(value for value in ranges.list_values(values) if isinstance(value, int))
