# SPDX-License-Identifier: MIT
"""Describes a scheduler's object: what it asks of the kernel, and whether it can run."""

from dataclasses import dataclass

from schedlab.sched_ext.code import Missing
from schedlab.sched_ext.data import Variable
from schedlab.sched_ext.fields import KINDS
from schedlab.sched_ext.image import CALLBACK, SYSCALL
from schedlab.sched_ext.kernel import PROFILES, all_functions, kernel_of, linux_name
from schedlab.sched_ext.loading import Loading, is_setting

_SHOWN_BYTES = 8


@dataclass(frozen=True)
class Inspection:
    """The description of a scheduler's object."""

    name: str
    file: str
    sha256: str
    kernel: str
    instructions: int
    flags: int
    timeout_ms: int
    profile: str
    """The profile of its user space, with the version; empty if none is known."""
    not_modelled: list[str]
    callbacks: dict[str, str]
    """Callback to program."""
    start_programs: list[str]
    """Programs that user space may run before it attaches the scheduler."""
    other_programs: dict[str, str]
    """Programs that never run here, with their sections."""
    kernel_functions: list[str]
    helpers: list[str]
    maps: list[dict[str, object]]
    settings: dict[str, int | None]
    """Read-only variables with their values; None for a value of more than 8 bytes."""
    zero_settings: list[str]
    missing: list[str]
    """What keeps the scheduler from running."""
    possibly_missing: list[str]
    """What ends a run if a program needs it."""
    notes: list[str]

    @property
    def can_run(self) -> bool:
        return not self.missing


def inspect(loading: Loading, sha256: str) -> Inspection:
    """Returns the description of a linked scheduler."""
    linked = loading.linked
    image, code = linked.image, linked.code
    text = image.text_of
    kernels = {number: name for name, number in PROFILES.items()}
    programs = {program.first: text(program.name) for program in image.programs}
    ops = {number: name for name, number in kernel_of(kernels[image.profile]).ops.items()}
    profile = loading.profile
    return Inspection(
        name=linked.description.name,
        file=str(loading.file.path),
        sha256=sha256,
        kernel=kernels[image.profile],
        instructions=len(image.instructions),
        flags=image.flags,
        timeout_ms=image.timeout_ms,
        profile=f"{profile.name} {profile.version}" if profile else "",
        not_modelled=list(profile.not_modelled) if profile else [],
        callbacks={ops[op.op]: programs.get(op.instruction, "") for op in image.ops},
        start_programs=[
            text(program.name) for program in image.programs if program.kind == SYSCALL
        ],
        other_programs={
            text(program.name): text(program.section)
            for program in image.programs
            if program.kind not in (CALLBACK, SYSCALL) and text(program.section) != ".text"
        },
        kernel_functions=sorted(code.kernel_functions),
        helpers=sorted(linux_name("helpers", number) for number in code.helpers),
        maps=[_describe_map(loading, number) for number in range(len(image.maps))],
        settings={
            name: _initial_value(variable)
            for name, variable in sorted(linked.data.variables.items())
            if is_setting(variable)
        },
        zero_settings=list(loading.zeros),
        missing=[_describe_missing(missing) for missing in linked.missing if missing.is_fatal],
        possibly_missing=[
            _describe_missing(missing) for missing in linked.missing if not missing.is_fatal
        ],
        notes=list(linked.notes),
    )


def _describe_missing(missing: Missing) -> str:
    function = all_functions().get(missing.name) if missing.kind == "kernel function" else None
    if not function:
        return str(missing)
    return f"{missing} (in Linux from {_format_version(function.first)} to {_format_version(function.last)})"


def _format_version(number: int) -> str:
    return "now" if number >= 9999 else f"{number // 100}.{number % 100}"


def _describe_map(loading: Loading, number: int) -> dict[str, object]:
    image = loading.linked.image
    entry = image.maps[number]
    fields = image.fields[entry.first_field : entry.first_field + entry.fields]
    return {
        "name": image.text_of(entry.name),
        "type": linux_name("map_types", entry.type),
        "key_bytes": entry.key_size,
        "value_bytes": entry.value_size,
        "entries": entry.max_entries,
        "special": sorted({KINDS[special.kind] for special in fields}),
    }


def _initial_value(variable: Variable) -> int | None:
    """Returns the number that a variable has at the start; None if it is too long."""
    if variable.size > _SHOWN_BYTES:
        return None
    content = variable.data.content[variable.offset : variable.offset + variable.size]
    return int.from_bytes(content, "little")
