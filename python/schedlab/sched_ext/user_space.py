# SPDX-License-Identifier: MIT
"""The part of a scheduler that its user space has: settings, flags and calls before it is attached.

A profile (profiles/NAME.yaml) describes it for one published scheduler. Values are numbers, durations
such as `20 ms`, or names of facts about the machine (MachineFacts.names).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from schedlab.errors import WrongUsage
from schedlab.sched_ext.btf import COMPOSITES, Btf
from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.image import (
    STEP_CALL,
    STEP_CONTEXT_MAX,
    STEP_KEEP,
    STEP_SLOTS,
    STEP_STORE,
    STEP_USE,
    Image,
    Step,
)
from schedlab.sched_ext.linker import Configuration, Linked

PROFILES = Path(__file__).with_name("profiles")
_UNITS_NS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+) (ns|us|ms|s)")

Value = int | Sequence[int]


@dataclass(frozen=True)
class Call:
    """A program that user space runs, once or for each of several CPUs."""

    program: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Values of the context's members."""
    for_each: str = ""
    condition: str = ""
    keep: Mapping[str, int] = field(default_factory=dict)
    """Members of the context whose values are kept in slots after the call."""
    use: Mapping[str, int] = field(default_factory=dict)
    """Members of the context that get the values of slots."""
    store: Mapping[int, str] = field(default_factory=dict)
    """Masks of CPUs that are stored at the addresses in slots after the call."""


@dataclass(frozen=True)
class Profile:
    """What the user space of one published scheduler does."""

    name: str
    version: str
    """The version that the profile was written for."""
    variables: Mapping[str, Any]  # values of global variables, or expressions for them
    ops: Mapping[str, Any]  # the same for members of struct sched_ext_ops
    flags: Mapping[str, Sequence[str]]
    """Names of SCX_OPS_* flags, by the fact that they depend on; `always` for the others."""
    sections: Mapping[str, Any]  # sizes of sections in bytes
    map_entries: Mapping[str, Any]  # maximum numbers of entries of maps
    start: Sequence[Call]
    not_modelled: Sequence[str]


@cache
def known_profiles() -> tuple[str, ...]:
    """Returns the names of the schedulers that have a profile."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.yaml")))


def profile_of(name: str) -> Profile | None:
    """Returns the profile of a scheduler by the name in its struct sched_ext_ops, or None."""
    if name not in known_profiles():
        return None
    content = yaml.safe_load((PROFILES / f"{name}.yaml").read_text())
    return Profile(
        name,
        str(content["version"]),
        content.get("variables", {}),
        content.get("ops", {}),
        content.get("flags", {}),
        content.get("sections", {}),
        content.get("map_entries", {}),
        [_call_of(entry) for entry in content.get("start", ())],
        content.get("not_modelled", ()),
    )


def _call_of(entry: Mapping[str, Any]) -> Call:
    return Call(
        entry["call"],
        entry.get("arguments", {}),
        entry.get("for_each", ""),
        entry.get("if", ""),
        entry.get("keep", {}),
        entry.get("use", {}),
        entry.get("store", {}),
    )


def value_of(written: Any, names: Mapping[str, Value]) -> Value:
    """Returns the value of a number, duration, fact or list. Raises WrongUsage if it is none."""
    if isinstance(written, (bool, int)):
        return int(written)
    if isinstance(written, (list, tuple)):
        return [int(element) for element in written]
    expression = str(written).strip()
    if match := _DURATION.fullmatch(expression):
        return int(match[1]) * _UNITS_NS[match[2]]
    if expression in names:
        return names[expression]
    try:
        return int(expression, 0)
    except ValueError:
        raise WrongUsage(
            f"{expression!r} is not a number, a duration (20 ms) or a fact of the machine",
            fix=f"write a number or a duration, or choose from the facts {', '.join(sorted(names))}",
        ) from None


def configuration_of(
    profile: Profile | None,
    machine: MachineFacts,
    given: Mapping[str, Any],
    enumerator: Mapping[str, int],
    known_variables: Sequence[str] | None = None,
) -> Configuration:
    """Returns the configuration of a scheduler on a machine.

    `given` are values of variables from the user, which replace the profile's; `ops.flags` and the
    like name members of struct sched_ext_ops, `section.NAME` sizes of sections, and `map.NAME` sizes
    of maps. `enumerator` gives the kernel's flags by name. Variables of the profile that are not in
    `known_variables` are left out: they belong to another version.
    """
    names = machine.names()
    variables: dict[str, Value] = {}
    ops_values: dict[str, int] = {}
    sections: dict[str, int] = {}
    map_entries: dict[str, int] = {}
    if profile:
        for path, written in profile.variables.items():
            if known_variables is None or re.split(r"[.\[]", path)[0] in known_variables:
                variables[path] = value_of(written, names)
        ops_values = {name: _number_of(written, names) for name, written in profile.ops.items()}
        if profile.flags:
            ops_values["flags"] = _flags_of(profile, names, enumerator)
        sections = {name: _number_of(written, names) for name, written in profile.sections.items()}
        map_entries = {
            name: _number_of(written, names) for name, written in profile.map_entries.items()
        }
    targets = {"ops": ops_values, "section": sections, "map": map_entries}
    for path, written in given.items():
        begin, _, rest = path.partition(".")
        if begin in targets and rest:
            targets[begin][rest] = _number_of(written, names)
        else:
            variables[path] = value_of(written, names)
    return Configuration(
        variables, ops_values, sections, map_entries, cpus=machine.cpus, hz=machine.hz
    )


def _number_of(written: Any, names: Mapping[str, Value]) -> int:
    value = value_of(written, names)
    if not isinstance(value, int):
        raise WrongUsage(f"{written!r} is a list; write one number")
    return value


def _flags_of(profile: Profile, names: Mapping[str, Value], enumerator: Mapping[str, int]) -> int:
    """Returns the SCX_OPS_* flags that the profile sets on this machine."""
    flags = 0
    for fact, texts in profile.flags.items():
        if fact == "always" or names.get(fact):
            for text in texts:
                flags |= enumerator.get(text, 0)  # an older kernel lacks some
    return flags


# ---- calls ----


def add_steps(linked: Linked, profile: Profile, machine: MachineFacts) -> list[str]:
    """Adds the profile's calls to the image. Returns the programs that the object lacks."""
    image = linked.image
    programs = {image.text_of(entry.name): index for index, entry in enumerate(image.programs)}
    missing = []
    for call in profile.start:
        if call.condition and not machine.names().get(call.condition):
            continue
        if call.program not in programs:
            missing.append(call.program)
            continue
        context = _Context(linked.program.btf, call.program)
        for names in _cpus_of_rounds(call.for_each, machine):
            image.steps += _steps_of(image, call, programs[call.program], context, names)
    return missing


def _cpus_of_rounds(for_each: str, machine: MachineFacts) -> Iterator[Mapping[str, Value]]:
    """Yields the names that a call's arguments may use, once per call."""
    facts = machine.names()
    if not for_each:
        yield facts
    elif for_each == "cpu":
        for cpu in range(machine.cpus):
            yield {**facts, "cpu": cpu, "mask": 1 << cpu}
    elif for_each == "sibling_pair":
        for cpu, sibling in machine.sibling_pairs():
            yield {**facts, "cpu": cpu, "sibling": sibling}
    elif for_each in ("machine", "node", "cache", "core"):
        groups = {
            "machine": (0,) * machine.cpus,
            "node": machine.node,
            "cache": machine.cache,
            "core": machine.core,
        }[for_each]
        for number in sorted(set(groups)):
            mask = sum(1 << cpu for cpu, group in enumerate(groups) if group == number)
            yield {**facts, "number": number, "mask": mask}
    else:
        raise WrongUsage(
            f"profile: for_each: unknown value {for_each!r}; choose from cpu, sibling_pair, "
            "machine, node, cache, core, or leave it out"
        )


class _Context:
    """The structure that a `syscall` program gets."""

    def __init__(self, btf: Btf, program: str) -> None:
        self._btf = btf
        functions = [entry for entry in btf.by_name.get(program, ()) if entry.kind == "func"]
        prototype = btf.type(functions[0].target) if functions else btf.type(0)
        pointer = btf.plain(prototype.members[0].type) if prototype.members else btf.type(0)
        self._type = btf.plain(pointer.target)
        self.size = self._type.size
        if self._type.kind not in COMPOSITES or self.size > STEP_CONTEXT_MAX:
            raise BadObject(
                f"program {program} gets no structure of at most {STEP_CONTEXT_MAX} bytes"
            )

    def place(self, name: str) -> tuple[int, int]:
        """Returns offset and size of a member in bytes."""
        member = self._btf.find_member(self._type, name)
        if not member:
            raise BadObject(f"structure {self._type.name} has no member {name}")
        return member.offset // 8, self._btf.size_of(member.type)


def _steps_of(
    image: Image, call: Call, number: int, context: _Context, names: Mapping[str, Value]
) -> list[Step]:
    """Returns the steps that run a program once."""
    content = bytearray(context.size)
    for member, written in call.arguments.items():
        offset, size = context.place(member)
        value = _number_of(written, names) & (1 << size * 8) - 1
        content[offset : offset + size] = value.to_bytes(size, "little")
    steps = [
        Step(STEP_USE, slot % STEP_SLOTS, context.place(member)[0], 0, 0, 0)
        for member, slot in call.use.items()
    ]
    data_offset = image.place(content)
    steps.append(Step(STEP_CALL, number, 0, context.size, data_offset, len(content)))
    for member, slot in call.keep.items():
        steps.append(Step(STEP_KEEP, slot % STEP_SLOTS, context.place(member)[0], 0, 0, 0))
    for slot, name in call.store.items():
        bits = _number_of(name, names)
        mask = bits.to_bytes((bits.bit_length() + 63) // 64 * 8 or 8, "little")
        steps.append(Step(STEP_STORE, slot % STEP_SLOTS, 0, 0, image.place(mask), len(mask)))
    return steps


@dataclass(frozen=True)
class MachineFacts:
    """CPUs, and what they share. Lists are by CPU; numbers begin at 0."""

    core: tuple[int, ...]
    cache: tuple[int, ...]
    node: tuple[int, ...]
    capacity: tuple[int, ...]
    """1024 for the fastest CPU."""
    hz: int = field(default=1000)
    """Ticks per second."""

    @classmethod
    def of_equal_cpus(cls, cpus: int, hz: int = 1000) -> MachineFacts:
        """Returns the facts of a machine whose CPUs have one cache and no siblings."""
        return cls(tuple(range(cpus)), (0,) * cpus, (0,) * cpus, (1024,) * cpus, hz)

    @property
    def cpus(self) -> int:
        return len(self.core)

    @property
    def has_siblings(self) -> bool:
        return len(set(self.core)) < self.cpus

    @property
    def fastest_first(self) -> tuple[int, ...]:
        """CPUs by falling capacity."""
        return tuple(sorted(range(self.cpus), key=lambda cpu: (-self.capacity[cpu], cpu)))

    def sibling_pairs(self) -> list[tuple[int, int]]:
        """Returns the pairs of different CPUs of one core."""
        return [
            (cpu, other)
            for cpu in range(self.cpus)
            for other in range(self.cpus)
            if cpu != other and self.core[cpu] == self.core[other]
        ]

    def names(self) -> dict[str, int | Sequence[int]]:
        """Returns the values that profiles name."""
        kinds = sorted(set(self.capacity))
        return {
            "cpus": self.cpus,
            "cores": len(set(self.core)),
            "caches": len(set(self.cache)),
            "nodes": len(set(self.node)),
            "several_caches": int(len(set(self.cache)) > 1),
            "one_node": int(len(set(self.node)) == 1),
            "several_nodes": int(len(set(self.node)) > 1),
            "has_siblings": int(self.has_siblings),
            "has_kinds": int(len(kinds) > 1),
            "core_of_cpu": self.core,
            "cache_of_cpu": self.cache,
            "node_of_cpu": self.node,
            "capacity_of_cpu": self.capacity,
            "fastest_first": self.fastest_first,
        }
