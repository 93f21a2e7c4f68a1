# SPDX-License-Identifier: MIT
"""Loads a sched_ext scheduler: from the user's selection to the image that the engine runs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.base.files.atomic import atomic_write
from schedlab.errors import FileRefused, WrongUsage, format_parameter
from schedlab.paths import cache_folder
from schedlab.sched_ext.btf import ENUMERATIONS
from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.data import GlobalData, Variable
from schedlab.sched_ext.extraction import ObjectFile, find_object
from schedlab.sched_ext.image import check
from schedlab.sched_ext.kernel import DEFAULT_PROFILE, Kernel, kernel_of
from schedlab.sched_ext.linker import Configuration, Linked, Linker
from schedlab.sched_ext.object_file import BpfObject
from schedlab.sched_ext.user_space import (
    PROFILES,
    MachineFacts,
    Profile,
    add_steps,
    configuration_of,
    known_profiles,
    profile_of,
)

ATTRIBUTES = {
    "weights": (("set_weight",), (".scx.weight", "sched_ext_entity.weight")),
    "group weights": (("cgroup_set_weight",), ("scx_cgroup_init_args.weight",)),
    "quotas": (("cgroup_set_bandwidth",), ("scx_cgroup_init_args.bw_quota_us",)),
    "hotplug": (("cpu_offline",), ()),
}
"""How a scheduler learns of attributes, and of CPUs: callbacks, and ends of the names of fields."""

PREFIX = "scx:"
"""The beginning of a policy that is a sched_ext scheduler."""


@dataclass(frozen=True)
class Scheduler:
    """The image of a scheduler for the simulator, and warnings."""

    name: str
    """The name in its struct sched_ext_ops."""
    sha256: str
    """Of the object."""
    image: bytes
    warnings: Sequence[str]
    attributes: Sequence[str]
    """The attributes of tasks and groups that it reads: the names of ATTRIBUTES."""
    zeros: Sequence[str]
    """Settings that stay 0 and that no profile and no user has set."""


@dataclass(frozen=True)
class Loading:
    """A linked scheduler with the profile that configured it."""

    file: ObjectFile
    linked: Linked
    profile: Profile | None
    zeros: Sequence[str]
    """Settings that stay 0 and that no profile and no user has set."""
    warnings: Sequence[str]


def load(
    selection: str,
    machine: MachineFacts,
    settings: Mapping[str, Any] | None = None,
    kernel: str = DEFAULT_PROFILE,
) -> Scheduler:
    """Returns a scheduler by the object's file or the installed program's name.

    Raises WrongUsage if there is none, if a setting does not fit, or if the kernel lacks what the
    scheduler needs; FileRefused if the object is damaged.
    """
    file = find_object(selection.removeprefix(PREFIX))
    return load_object(file, machine, settings or {}, kernel)


def load_object(
    file: ObjectFile,
    machine: MachineFacts,
    settings: Mapping[str, Any],
    kernel: str = DEFAULT_PROFILE,
) -> Scheduler:
    """Returns the scheduler of an object, from the cache if it was loaded before. Raises like load."""
    sha256 = hashlib.sha256(file.content).hexdigest()
    key_parts = [sha256, kernel_of(kernel).digest, _loader_digest(), repr(machine)]
    key_parts.append(json.dumps(dict(settings), sort_keys=True, default=str))
    key = hashlib.sha256("\0".join(key_parts).encode()).hexdigest()[:16]
    place = cache_folder() / "sched_ext" / f"{key}.image"
    facts_file = place.with_suffix(".json")
    if place.is_file() and facts_file.is_file():
        stored_facts = json.loads(facts_file.read_text())
        return Scheduler(sha256=sha256, image=place.read_bytes(), **stored_facts)
    loading = link(file, machine, settings, kernel)
    fatal = [missing for missing in loading.linked.missing if missing.is_fatal]
    if fatal:
        raise WrongUsage(
            f"Linux {kernel} lacks what the scheduler needs; choose another version with the setting "
            + "\n  ".join(["`kernel`, or another scheduler:", *map(str, fatal)]),
            what=str(file.path),
        )
    image = loading.linked.image.encode()
    stored_facts = {
        "name": loading.linked.description.name,
        "warnings": list(loading.warnings),
        "attributes": _attributes(loading.linked),
        "zeros": list(loading.zeros),
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(place) as new:
        new.write_bytes(image)
    with atomic_write(facts_file) as new:
        new.write_text(json.dumps(stored_facts))
    return Scheduler(sha256=sha256, image=image, **stored_facts)


def _attributes(linked: Linked) -> list[str]:
    callbacks = {callback.op for callback in linked.description.callbacks}
    return [
        name
        for name, (ops, fields) in ATTRIBUTES.items()
        if callbacks & set(ops) or any(field.endswith(fields) for field in linked.code.fields)
    ]


def link(
    file: ObjectFile,
    machine: MachineFacts,
    settings: Mapping[str, Any],
    kernel: str = DEFAULT_PROFILE,
) -> Loading:
    """Links an object and adds its user space's part. Also returns what cannot run.

    Raises FileRefused if the object is damaged, and WrongUsage if a setting does not fit.
    """
    target = kernel_of(kernel)
    try:
        program = BpfObject(file.content)
        plain = Linker(program, target, Configuration(cpus=machine.cpus)).link()
    except BadObject as error:
        raise _file_refused(file, error) from None
    profile = _profile_for(plain, file)
    variable_names = (*plain.data.variables, *plain.data.map_values)
    configuration = configuration_of(
        profile, machine, settings, _enumerator_values(target), variable_names
    )
    try:
        linked = Linker(program, target, configuration).link()
        absent = add_steps(linked, profile, machine) if profile else []
        check(linked.image)
    except BadObject as error:
        raise WrongUsage(str(error), what=str(file.path)) from None
    zeros = zero_settings(linked.data, configuration)
    return Loading(file, linked, profile, zeros, _warnings(linked, profile, absent, zeros))


def _file_refused(file: ObjectFile, error: BadObject) -> FileRefused:
    why, _, fix = str(error).partition("; ")
    return FileRefused(why, what=str(file.path), fix=fix)


def _profile_for(linked: Linked, file: ObjectFile) -> Profile | None:
    """Returns the profile by the scheduler's name; versions follow an underscore in it."""
    for name in (linked.description.name.split("_")[0], file.name):
        if name in known_profiles():
            return profile_of(name)
    return None


def _enumerator_values(kernel: Kernel) -> dict[str, int]:
    return {
        member.name: member.value
        for entry in kernel.btf.types
        if entry.kind in ENUMERATIONS
        for member in entry.members
    }


def zero_settings(data: GlobalData, configuration: Configuration) -> list[str]:
    """Returns the read-only variables that are 0 and were not set: a program may rely on a value."""
    configured = {path.split(".")[0].split("[")[0] for path in configuration.variables}
    return sorted(
        variable.name
        for variable in data.variables.values()
        if is_setting(variable) and variable.name not in configured and data.is_zero(variable)
    )


def is_setting(variable: Variable) -> bool:
    """Returns whether a variable is a setting of the scheduler, not of the library that all use."""
    name = variable.name
    is_local = name.startswith("_") or "." in name
    return (
        variable.data.section.name == ".rodata"
        and not is_local
        and name not in ("uei_dump_len", "scx_lib_features")
    )


def _warnings(
    linked: Linked, profile: Profile | None, absent: Sequence[str], zeros: Sequence[str]
) -> list[str]:
    name = linked.description.name
    warnings = []
    if profile:
        warnings += [f"{name}: {text}" for text in profile.not_modelled]
        warnings += [
            f"{name}: the object has no program {program}, which version {profile.version} has"
            for program in absent
        ]
    elif zeros:
        warnings.append(
            f"{name}: no profile is known; these settings stay 0: {', '.join(zeros)};"
            f" give them values with {format_parameter('settings', {zeros[0]: 1})}"
        )
    return warnings


@cache
def _loader_digest() -> str:
    """Returns a hash of the loader and its profiles."""
    digest = hashlib.sha256()
    files = [*Path(__file__).parent.glob("*.py"), *PROFILES.glob("*.yaml")]
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()
