# SPDX-License-Identifier: MIT
"""Builds and locates "parts": the programs and files that runs need.

Each part has a name, such as `kernel` or `disk`, which manifests use for its hash.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from schedlab.base.toolchain.build import BUILT_FILES, build, require_checkout
from schedlab.errors import WrongUsage, format_parameter
from schedlab.paths import ROOT

LINUX_KERNEL = "linux_kernel"
PartReplacements = Mapping[str, Path]
"""The user's files, by the names of the parts they replace."""


def build_parts(
    names: Iterable[str], replacement: PartReplacements | None = None
) -> dict[str, Path]:
    """Builds parts if necessary, and returns their paths in the order of the names.

    `replacement`: the user's own files for some of the parts.
    """
    supplied = dict(replacement or {})
    for name, path in supplied.items():
        check_user_part(name, path)
    names = list(dict.fromkeys(names))
    needed = [name for name in names if name not in supplied]
    built_names = [name for name in needed if name in BUILT_FILES]
    if built_names:
        build(*(os.path.relpath(BUILT_FILES[name], ROOT) for name in built_names))
    parts = {name: BUILT_FILES[name] for name in built_names}
    machine_parts = [name for name in needed if name not in parts]
    if machine_parts:
        from schedlab.machines.linux.parts import build_linux_parts

        parts |= build_linux_parts(machine_parts)
    parts |= supplied
    return {name: parts[name] for name in names}


def check_parts_exist(names: Iterable[str]) -> None:
    """Raises WrongUsage if the installed package lacks a part that only a checkout can build."""
    for name in names:
        if name not in BUILT_FILES or not BUILT_FILES[name].exists():
            require_checkout(name)


def check_user_part(name: str, path: Path) -> None:
    """Raises WrongUsage or MachineUnfit if the user's file cannot replace this part."""
    if not path.is_file():
        raise WrongUsage(
            "the file does not exist",
            what=format_parameter(name.rpartition("_")[2], path),
            fix="name an existing file",
        )
    if name == LINUX_KERNEL:
        from schedlab.machines.linux.kernel import read_user_kernel

        read_user_kernel(path)
