# SPDX-License-Identifier: MIT
"""Builds and locates parts: the programs that runs need, by their names in manifests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from schedlab.base.toolchain.build import PARTS, build, need_checkout
from schedlab.errors import WrongUsage, parameter
from schedlab.paths import ROOT

LINUX_KERNEL = "linux_kernel"
PartReplacements = Mapping[str, Path]
"""The user's files, by the names of the parts they replace."""


def supply(names: Iterable[str], replacement: PartReplacements | None = None) -> dict[str, Path]:
    """Builds parts if necessary, and returns them in the order of the names."""
    supplied = dict(replacement or {})
    for name, path in supplied.items():
        check_user_part(name, path)
    names = list(dict.fromkeys(names))
    needed = [name for name in names if name not in supplied]
    made = [name for name in needed if name in PARTS]
    if made:
        build(*(os.path.relpath(PARTS[name], ROOT) for name in made))
    parts = {name: PARTS[name] for name in made}
    others = [name for name in needed if name not in parts]
    if others:
        from schedlab.machines.linux.parts import supply_linux

        parts |= supply_linux(others)
    parts |= supplied
    return {name: parts[name] for name in names}


def check_parts_exist(names: Iterable[str]) -> None:
    """Raises WrongUsage if an installed package lacks one of the parts.

    Only a checkout has such parts.
    """
    for name in names:
        if name not in PARTS or not PARTS[name].exists():
            need_checkout(name)


def check_user_part(name: str, path: Path) -> None:
    """Raises WrongUsage or MachineUnfit if the user's file cannot replace this part."""
    if not path.is_file():
        raise WrongUsage(
            "the file does not exist",
            what=parameter(name.rpartition("_")[2], path),
            fix="name an existing file",
        )
    if name == LINUX_KERNEL:
        from schedlab.machines.linux.kernel import named_kernel

        named_kernel(path)
