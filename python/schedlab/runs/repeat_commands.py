# SPDX-License-Identifier: MIT
"""Reconstructs the commands that repeat stored runs, from their manifests."""

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
"""Manifest entries that no option can express: those of derived runs, and more boot arguments of the kernel."""
_FIXED = (
    *("workload", "with", "delays", "costs", "shape", "tunables"),
    *("machine", "tick_ns", "limit_ns", "memory_mib", "ignore_limits"),
)
"""Manifest entries that all runs of one command have in common."""
_VARIED = ("policy", "cpus", "seed")
"""Manifest entries that vary among the runs of one command, in all combinations."""

Manifest = Mapping[str, Any]


def commands(manifests: Iterable[Manifest]) -> list[str]:
    """Returns a few commands that repeat exactly these runs.

    Runs that no command can express are omitted: branches, replays, runs with costs or a shape from
    a file, and runs of machines without commands.
    """
    once = {
        json.dumps([manifest.get(key) for key in (*_FIXED, *_VARIED)]): manifest
        for manifest in manifests
    }
    repeatable_manifests = [
        manifest for manifest in once.values() if _is_repeatable_by_command(manifest)
    ]
    return [
        command
        for group in _grouped(repeatable_manifests, _FIXED)
        for command in _of_alike(group, _VARIED)
    ]


def command_of(manifest: Manifest) -> str | None:
    """Returns the command that repeats this run, or None if no command can express it."""
    return _command([manifest]) if _is_repeatable_by_command(manifest) else None


def _is_repeatable_by_command(manifest: Manifest) -> bool:
    has_user_files = any(manifest.get(key, "").endswith(")") for key in ("costs", "shape"))
    return (
        manifest["machine"] in MACHINES and not has_user_files and not set(_OTHER) & manifest.keys()
    )


def _of_alike(manifests: Sequence[Manifest], varied: Sequence[str]) -> list[str]:
    """Splits runs into parts.

    Each part has all combinations of its policies, numbers of CPUs and seeds.
    """
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
        *_option_words("--with", first.get("with", {}).items()),
        *("--policy", ",".join(policies)),
        *_option_words("--set", first["tunables"].items()),
        *("--cpus", ",".join(map(str, cpus))),
        *("--machine", first["machine"]),
        *(("--runs", str(len(seeds))) if len(seeds) > 1 else ()),
        *("--seed", str(min(seeds))),
        *("--tick", format_time(first["tick_ns"])),
        *(("--limit", format_time(first["limit_ns"])) if "limit_ns" in first else ()),
        *(("--memory", str(first["memory_mib"])) if first.get("memory_mib") else ()),
        *_option_words(
            "--delay", (delay.split("=") for delay in first.get("delays", "").split(",") if delay)
        ),
        *(("--shape", first["shape"]) if "shape" in first else ()),
        *(["--ignore-limits"] if first.get("ignore_limits") else ()),
        *(("--costs", first["costs"]) if first.get("costs", KERNEL.name) != KERNEL.name else ()),
    ]
    return shlex.join(words)


def _option_words(option: str, values: Iterable[Sequence[object]]) -> list[str]:
    return [word for name, value in values for word in (option, f"{name}={value}")]
