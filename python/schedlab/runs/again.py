# SPDX-License-Identifier: MIT
"""The commands that carry out kept runs again, from what their manifests say."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schedlab.machines import MACHINES
from schedlab.units import format_time
from schedlab.workload.costs import KERNEL

_COMMAND = ("./schedlab", "run")
_OTHER = ("branch", "replay_of", "arguments")
"""Members of a manifest that no option names: of runs that took their course from another one, and the kernel's further
boot arguments."""
_FIXED = (
    *("workload", "with", "delays", "costs", "shape", "tunables"),
    *("machine", "tick_ns", "limit_ns", "memory_mib", "ignore_limits"),
)
"""What the runs of one command have in common."""
_VARIED = ("policy", "cpus", "seed")
"""What one command can run several of: each with each."""

Manifest = Mapping[str, Any]


def commands(manifests: Iterable[Manifest]) -> list[str]:
    """Returns commands that carry out these runs again and no others: few, where they are whole products.

    Those that no command can name are left out: a branch, a replay, a run whose costs or shape came from a
    file, and one of a machine that runs no commands.
    """
    once = {
        json.dumps([manifest.get(key) for key in (*_FIXED, *_VARIED)]): manifest
        for manifest in manifests
    }
    repeatable_manifests = [manifest for manifest in once.values() if _can_be_told(manifest)]
    return [
        command
        for group in _grouped(repeatable_manifests, _FIXED)
        for command in _of_alike(group, _VARIED)
    ]


def command_of(manifest: Manifest) -> str | None:
    """Returns the command that carries out this run again, or None if none can name it."""
    return _command([manifest]) if _can_be_told(manifest) else None


def _can_be_told(manifest: Manifest) -> bool:
    has_user_files = any(manifest.get(key, "").endswith(")") for key in ("costs", "shape"))
    return (
        manifest["machine"] in MACHINES and not has_user_files and not set(_OTHER) & manifest.keys()
    )


def _of_alike(manifests: Sequence[Manifest], varied: Sequence[str]) -> list[str]:
    """Splits runs that differ in these until each part is all of its policies × CPUs × seeds."""
    if _is_product(manifests):
        return [_command(manifests)]
    first, *others = varied
    return [
        command for group in _grouped(manifests, (first,)) for command in _of_alike(group, others)
    ]


def _is_product(manifests: Sequence[Manifest]) -> bool:
    policies, cpus, seeds = (_values(manifests, key) for key in _VARIED)
    every_seed = max(seeds) - min(seeds) + 1 == len(seeds)
    return every_seed and len(policies) * len(cpus) * len(seeds) == len(manifests)


def _values(manifests: Sequence[Manifest], key: str) -> list[Any]:
    return list(dict.fromkeys(manifest[key] for manifest in manifests))


def _grouped(manifests: Sequence[Manifest], keys: Sequence[str]) -> list[list[Manifest]]:
    groups: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        groups.setdefault(json.dumps([manifest.get(key) for key in keys]), []).append(manifest)
    return list(groups.values())


def _command(manifests: Sequence[Manifest]) -> str:
    first = manifests[0]
    policies, cpus, seeds = (_values(manifests, key) for key in _VARIED)
    words = [
        *_COMMAND,
        *("--workload", first["workload"]),
        *_each("--with", first.get("with", {}).items()),
        *("--policy", ",".join(policies)),
        *_each("--set", first["tunables"].items()),
        *("--cpus", ",".join(map(str, cpus))),
        *("--machine", first["machine"]),
        *(("--runs", str(len(seeds))) if len(seeds) > 1 else ()),
        *("--seed", str(min(seeds))),
        *("--tick", format_time(first["tick_ns"])),
        *(("--limit", format_time(first["limit_ns"])) if "limit_ns" in first else ()),
        *(("--memory", str(first["memory_mib"])) if first.get("memory_mib") else ()),
        *_each(
            "--delay", (delay.split("=") for delay in first.get("delays", "").split(",") if delay)
        ),
        *(("--shape", first["shape"]) if "shape" in first else ()),
        *(["--ignore-limits"] if first.get("ignore_limits") else ()),
        *(("--costs", first["costs"]) if first.get("costs", KERNEL.name) != KERNEL.name else ()),
    ]
    return shlex.join(words)


def _each(option: str, values: Iterable[Sequence[object]]) -> list[str]:
    return [word for name, value in values for word in (option, f"{name}={value}")]
