# SPDX-License-Identifier: MIT
"""Reads the description of a sweep from a file and options, which share one tree of values.

Errors name the line or option, the invalid value and what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object
from schedlab.base.files.reading import read_text
from schedlab.base.toolchain.policies import (
    STANDARD,
    Catalogue,
    Policy,
    PolicyChoice,
    parse_choices,
    unknown,
    unknown_tunable,
)
from schedlab.errors import WrongUsage, parameter
from schedlab.machines import HOST, KERNEL_MACHINES, MACHINES, SIMULATOR, machine_named
from schedlab.paths import ROOT
from schedlab.runs.plan import MEMORY_MIB, TICK_NS
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.sweep import conditions, ranges, sampling, yaml_lines
from schedlab.sweep.description import Description, PolicyEntry, Sample, WorkloadEntry
from schedlab.units import format_time, parse_counts, parse_time
from schedlab.workload.palette import palette
from schedlab.workload.shapes.model import Shape
from schedlab.workload.shapes.reading import choose as choose_shape
from schedlab.workload.values import by_key, integer, wrong
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
_SEARCH = re.compile(r"\d+(:\d+)?")
_MACHINES = tuple(name for name in MACHINES if name != HOST)
"""Sweep files must not run commands on this machine's own kernel."""
_WORKLOAD_KINDS = ("file", "experiment", "command")
_EXPERIMENTS = [name for name, experiment in EXPERIMENTS.items() if not experiment.repeats]
"""Experiments that a sweep can run unchanged; excludes those with the costs of a study's machine."""
_WORKLOAD = (
    "a workload file, an experiment of the studies, a command of the kernel; or an object such as"
    " {file: study4-mixed.json, with: {tasks.cpu.instance: [10, 20]}}"
)
_POLICY = (
    f"a policy, such as {STANDARD}; or an object such as"
    f" {{policy: {STANDARD}, set: {{slice: [1, 5]}}}}"
)
_SAMPLE = f"an object such as {{method: sobol, count: 64}}; methods: {', '.join(sampling.METHODS)}"


def read(
    path: Path | None, options: Mapping[str, Node], catalogue: Catalogue, searched: bool = False
) -> Description:
    """Returns the description in a file, with overriding options. Raises WrongUsage.

    `searched` means that a search replaces grids and samples of setups.
    """
    with _placed(path):
        members = {**(_members(path) if path else {}), **options}
        folder = path.parent if path else Path()
        return _Reader(members, folder, catalogue, searched).description()


def search_of(path: Path) -> str | None:
    """Returns the file's search budget in the option's syntax, or None. Raises WrongUsage."""
    with _placed(path):
        node = _members(path).get("search")
        if node is not None and not _SEARCH.fullmatch(str(node.value)):
            raise wrong(node, "a number of runs, or RUNS:SEED: 640 or 640:7")
    return None if node is None else str(node.value)


@contextmanager
def _placed(path: Path | None) -> Iterator[None]:
    """Adds the file and line to errors."""
    try:
        yield
    except JsonError as error:
        place = f"{path}:{error.line}: " if error.line else ""
        raise WrongUsage(f"{place}{error}") from None


def _members(path: Path) -> dict[str, Node]:
    return by_key(yaml_lines.parse(read_text(path)), "an object with workloads and policies", KEYS)


class _Reader:
    def __init__(
        self, members: Mapping[str, Node], folder: Path, catalogue: Catalogue, searched: bool
    ) -> None:
        self.members = members
        self.folder = folder
        """Base folder of workload file names."""
        self.catalogue = catalogue
        self.searched = searched

    def description(self) -> Description:
        for key, name in (("workloads", "workload"), ("policies", "policy")):
            if key not in self.members:
                raise JsonError(
                    0, f"nothing to sweep: no {key} in the file, and no {parameter(name)}"
                )
        machines = self.machines(self.members.get("machines"), (SIMULATOR,))
        workloads = [self.workload(node, machines) for node in items(self.members["workloads"])]
        return Description(
            title=self.title(self.members.get("description")),
            workloads=tuple(workloads),
            policies=tuple(self.policy(node) for node in items(self.members["policies"])),
            cpus=self.cpus([machine for workload in workloads for machine in workload.machines]),
            seeds=self.numbers("seeds", (1,), 0, SEED_MAX),
            ticks_ns=self.times("tick", _STANDARD_TICK_NS, TICK_NS),
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
            raise wrong(node, "a text")
        return node.value

    def numbers(
        self, key: str, standard: tuple[int, ...], least: int, most: int
    ) -> tuple[int, ...]:
        node = self.members.get(key)
        if node is None:
            return standard
        values = ranges.integer_range(node)
        check_bounds(node, values, least, most, f"numbers from {least} to {most}")
        return numbers_of(node, values)

    def cpus(self, machines: Iterable[str]) -> tuple[int, ...]:
        """Returns numbers of CPUs that all machines support."""
        names = sorted(set(machines))
        most = min(machine_named(name).cpus_max for name in names)
        node = self.members.get("cpus")
        if node is not None and isinstance(node.value, str) and "-" in node.value:
            try:
                return parse_counts(node.value, 1, most)
            except ValueError as error:
                raise wrong(node, f"numbers of CPUs, such as 1-4: {error}") from None
        values = ranges.integer_range(node) if node else ranges.Listed((1,))
        if node:
            check_bounds(
                node, values, 1, most, f"1 to {most} CPUs, which {', '.join(names)} can have"
            )
        return numbers_of(node, values) if node else (1,)

    def times(self, key: str, standard: int, within: tuple[int, int]) -> tuple[int, ...]:
        node = self.members.get(key)
        if node is None:
            return (standard,)
        return tuple(dict.fromkeys(time_of(item, within) for item in items(node)))

    def limit(self) -> int | None:
        if "limit" not in self.members:
            return None
        limit_ns = self.times("limit", 0, LIMIT_NS)
        if len(limit_ns) > 1:
            raise wrong(self.members["limit"], "one time")
        return limit_ns[0]

    def memory(self) -> int:
        node = self.members.get("memory")
        return integer(node, *MEMORY_MIB) if node else _STANDARD_MEMORY_MIB

    def costs(self) -> tuple[str, ...]:
        node = self.members.get("costs")
        if node is None:
            return ("kernel",)
        return tuple(
            dict.fromkeys(
                text_of(item, "kernel, none, textbook, or a profile") for item in items(node)
            )
        )

    def shapes(self) -> tuple[Shape, ...]:
        node = self.members.get("shapes")
        if node is None:
            return ()
        if "cpus" in self.members:
            raise wrong(
                self.members["cpus"], "no `cpus` together with shapes, which determine the number"
            )
        names = (text_of(item, "a shape: a file, or the name of one") for item in items(node))
        return tuple(dict.fromkeys(choose_shape(name, self.folder) for name in names))

    def machines(self, node: Node | None, standard: tuple[str, ...]) -> tuple[str, ...]:
        if node is None:
            return standard
        names: dict[str, None] = {}
        for item in items(node):
            if item.value not in _MACHINES:
                raise wrong(item, f"a machine: {', '.join(_MACHINES)}")
            names[str(item.value)] = None
        return tuple(names)

    # --- workloads

    def workload(self, node: Node, machines: tuple[str, ...]) -> WorkloadEntry:
        if not isinstance(node.value, Object):
            return self.named_workload(node, machines)
        fields = by_key(node, _WORKLOAD, (*_WORKLOAD_KINDS, "with", "machines"))
        kinds = [kind for kind in _WORKLOAD_KINDS if kind in fields]
        if len(kinds) != 1:
            raise wrong(node, f"one of {', '.join(_WORKLOAD_KINDS)} in it")
        machine_names = self.machines(fields.get("machines"), machines)
        return self.workload_of(kinds[0], fields[kinds[0]], machine_names, fields.get("with"))

    def named_workload(self, node: Node, machines: tuple[str, ...]) -> WorkloadEntry:
        text = text_of(node, _WORKLOAD)
        if is_workload_file(text) or (SIMULATOR in machines and text in palette()):
            return self.workload_of("file", node, machines, None)
        kind = "experiment" if text in _EXPERIMENTS else "command"
        return self.workload_of(kind, node, machines, None)

    def workload_of(
        self, kind: str, node: Node, machines: tuple[str, ...], changes: Node | None
    ) -> WorkloadEntry:
        text = text_of(node, _WORKLOAD)
        if kind != "file" and changes is not None:
            raise JsonError(changes.line, f"{changes.path}: only files have values to change")
        if kind == "file":
            ready = None if is_workload_file(text) else palette().get(text)
            place = ready.file if ready else Path(self.folder, text)
            values = {key: ranges.scalars(change) for key, change in paths_of(changes)}
            for key, change in paths_of(changes):
                check_grid(change, values[key])
            return WorkloadEntry("file", name_of(place, text), place, values, machines)
        if SIMULATOR in machines:
            raise wrong(
                node,
                "a workload file, or a built-in one by its name (`./schedlab workloads` lists"
                f" them), because {SIMULATOR} runs only files; programs run on"
                f" {' and '.join(KERNEL_MACHINES)} (machines: [spike])",
            )
        if kind == "experiment" and text not in _EXPERIMENTS:
            raise wrong(node, unknown("experiment", text, _EXPERIMENTS))
        experiment_machine = EXPERIMENTS[text].machine if kind == "experiment" else None
        if experiment_machine and set(machines) != {experiment_machine}:
            raise wrong(
                node,
                f"another experiment: {text} runs only on {experiment_machine} (machines: [{experiment_machine}])",
            )
        return WorkloadEntry(
            "experiment" if kind == "experiment" else "command", text, None, {}, machines
        )

    # --- policies

    def policy(self, node: Node) -> PolicyEntry:
        if not isinstance(node.value, Object):
            choice, policy = self.choice(node)
            return PolicyEntry(choice, policy, {}, (), None)
        fields = by_key(node, _POLICY, ("policy", "set", "where", "sample"))
        if "policy" not in fields:
            raise wrong(node, _POLICY)
        choice, policy = self.choice(fields["policy"])
        tunables = {
            name: self.tunable(choice, policy, name, tunable_node)
            for name, tunable_node in paths_of(fields.get("set"))
        }
        conditions = items(fields["where"]) if "where" in fields else ()
        sample = self.sample(fields["sample"]) if "sample" in fields else None
        if self.searched:
            sample = None
        elif sample is None:
            for name, tunable_node in paths_of(fields.get("set")):
                check_grid(tunable_node, tunables[name])
        elif not any(ranges.size(values) > 1 for values in tunables.values()):
            raise wrong(fields["sample"], "tunables with several values to sample from")
        read = tuple(self.condition(choice, policy, condition) for condition in conditions)
        return PolicyEntry(choice, policy, tunables, read, sample)

    def choice(self, node: Node) -> tuple[PolicyChoice, Policy]:
        try:
            choices = parse_choices(text_of(node, _POLICY))
        except ValueError as error:
            raise wrong(node, f"{_POLICY}: {error}") from None
        choice = choices[0]
        if len(choices) > 1:
            raise wrong(node, "one policy; several are a list: [NAME, NAME]")
        policy = self.catalogue.get(choice.name)
        if policy is None:
            raise wrong(node, f"a policy: {unknown('policy', choice.name, self.catalogue)}")
        if choice.preset and choice.preset not in policy.presets:
            what = f"preset of {policy.name}"
            raise wrong(node, f"a preset: {unknown(what, choice.preset, policy.presets)}")
        return choice, policy

    def tunable(self, choice: PolicyChoice, policy: Policy, name: str, node: Node) -> ranges.Values:
        known = policy.tunables_of(choice.preset).get(name)
        if known is None:
            what = unknown_tunable(policy, choice, name)
            raise JsonError(node.line, f"{node.path}: {what}")
        values = ranges.integer_range(node)
        allowed = f"{known.minimum} to {known.maximum}, which {choice} allows ({known.meaning})"
        check_bounds(node, values, known.minimum, known.maximum, allowed)
        return values

    def condition(self, choice: PolicyChoice, policy: Policy, node: Node) -> conditions.Condition:
        text = text_of(node, conditions.EXPECTED)
        try:
            return conditions.read(text, policy.tunables_of(choice.preset))
        except ValueError as error:
            raise wrong(node, str(error)) from None

    def sample(self, node: Node) -> Sample:
        fields = by_key(node, _SAMPLE, ("method", "count", "seed"))
        if "method" not in fields or "count" not in fields:
            raise wrong(node, _SAMPLE)
        if fields["method"].value not in sampling.METHODS:
            raise wrong(fields["method"], f"one of {', '.join(sampling.METHODS)}")
        seed = integer(fields["seed"], 0, SEED_MAX) if "seed" in fields else 1
        return Sample(str(fields["method"].value), integer(fields["count"], 1, SAMPLE_MAX), seed)


# --- what several values have in common


def name_of(place: Path, text: str) -> str:
    """Returns a file's path relative to this checkout, or else the text."""
    path = place.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else text


def items(node: Node) -> tuple[Node, ...]:
    """Returns the values of a list; a single value is a list of one."""
    if not isinstance(node.value, tuple):
        return (node,)
    if not node.value:
        raise wrong(node, "at least one value in it")
    return node.value


def paths_of(node: Node | None) -> tuple[tuple[str, Node], ...]:
    """Returns the members of an object with unique keys; empty for None."""
    if node is None:
        return ()
    if not isinstance(node.value, Object):
        raise wrong(node, "an object of names and values")
    seen: set[str] = set()
    for key, member in node.value.members:
        if key in seen:
            raise JsonError(member.line, f"{member.path}: given twice: expected once")
        seen.add(key)
    return node.value.members


def text_of(node: Node, expected: str) -> str:
    if not isinstance(node.value, str) or not node.value.strip():
        raise wrong(node, expected)
    return node.value.strip()


def time_of(node: Node, within: tuple[int, int]) -> int:
    low, high = within
    expected = f"a time from {format_time(low)} to {format_time(high)}, such as 10ms"
    return _parsed(node, expected, low, high)


def _parsed(node: Node, expected: str, low: int, high: int) -> int:
    try:
        nanoseconds = parse_time(text_of(node, expected))
    except ValueError:
        raise wrong(node, expected) from None
    if not low <= nanoseconds <= high:
        raise wrong(node, expected)
    return nanoseconds


def check_bounds(node: Node, values: ranges.Values, least: int, most: int, allowed: str) -> None:
    low, high = ranges.bounds(values)
    if not (isinstance(low, int) and isinstance(high, int) and least <= low and high <= most):
        raise wrong(node, allowed)


def check_grid(node: Node, values: ranges.Values) -> None:
    """Raises JsonError for values that a grid cannot enumerate."""
    if isinstance(values, ranges.Logarithmic):
        raise wrong(node, "a range with a factor, as in 1..1000*2, because `log` is for samples")
    if ranges.size(values) > ranges.VALUES_MAX:
        raise wrong(node, f"at most {ranges.VALUES_MAX:,} values")


def numbers_of(node: Node, values: ranges.Values) -> tuple[int, ...]:
    check_grid(node, values)
    assert not isinstance(values, ranges.Logarithmic)
    return tuple(value for value in values.values if isinstance(value, int))
