# SPDX-License-Identifier: MIT
"""Reconstructs the commands that repeat stored runs, from their manifests."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schedlab.machines import MACHINES
from schedlab.units import format_time
from schedlab.workload.costs import KERNEL_COSTS

_RUN_COMMAND = ("./schedlab", "run")
_UNREPEATABLE = ("branch", "replay_of", "arguments")
"""Manifest entries that no option of `./schedlab run` can reproduce."""
_SHARED_ENTRIES = (
    *("workload", "with", "delays", "costs", "shape", "tunables"),
    *("machine", "tick_ns", "limit_ns", "memory_mib", "ignore_limits"),
)
"""Manifest entries that all runs of one command share."""
_VARIED_ENTRIES = ("policy", "cpus", "seed")
"""Manifest entries whose combinations one command runs."""

Manifest = Mapping[str, Any]


def repeat_commands(manifests: Iterable[Manifest]) -> list[str]:
    """Returns a few commands that together repeat exactly these runs.

    Omits runs that no command can repeat: branches, replays, runs with costs or a shape from a
    file, and runs of machines without commands.
    """
    unique_manifests = {
        json.dumps([manifest.get(key) for key in (*_SHARED_ENTRIES, *_VARIED_ENTRIES)]): manifest
        for manifest in manifests
    }
    repeatable_manifests = [
        manifest for manifest in unique_manifests.values() if _is_repeatable_by_command(manifest)
    ]
    return [
        command
        for group in _group_by(repeatable_manifests, _SHARED_ENTRIES)
        for command in _commands_of_similar_runs(group, _VARIED_ENTRIES)
    ]


def repeat_command(manifest: Manifest) -> str | None:
    """Returns the command that repeats this run, or None if no command can express it."""
    return _format_command([manifest]) if _is_repeatable_by_command(manifest) else None


def _is_repeatable_by_command(manifest: Manifest) -> bool:
    has_user_files = any(manifest.get(key, "").endswith(")") for key in ("costs", "shape"))
    return (
        manifest["machine"] in MACHINES
        and not has_user_files
        and not set(_UNREPEATABLE) & manifest.keys()
    )


def _commands_of_similar_runs(manifests: Sequence[Manifest], varied: Sequence[str]) -> list[str]:
    """Splits runs into groups. Each group has all combinations of its `varied` values."""
    if _is_product(manifests):
        return [_format_command(manifests)]
    first, *others = varied
    return [
        command
        for group in _group_by(manifests, (first,))
        for command in _commands_of_similar_runs(group, others)
    ]


def _is_product(manifests: Sequence[Manifest]) -> bool:
    policies, cpus, seeds = (_distinct_values(manifests, key) for key in _VARIED_ENTRIES)
    every_seed = max(seeds) - min(seeds) + 1 == len(seeds)
    return every_seed and len(policies) * len(cpus) * len(seeds) == len(manifests)


def _distinct_values(manifests: Sequence[Manifest], key: str) -> list[Any]:
    return list(dict.fromkeys(manifest[key] for manifest in manifests))


def _group_by(manifests: Sequence[Manifest], keys: Sequence[str]) -> list[list[Manifest]]:
    groups: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        groups.setdefault(json.dumps([manifest.get(key) for key in keys]), []).append(manifest)
    return list(groups.values())


def _format_command(manifests: Sequence[Manifest]) -> str:
    first = manifests[0]
    policies, cpus, seeds = (_distinct_values(manifests, key) for key in _VARIED_ENTRIES)
    command = [
        *_RUN_COMMAND,
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
        *(
            ("--costs", first["costs"])
            if first.get("costs", KERNEL_COSTS.name) != KERNEL_COSTS.name
            else ()
        ),
    ]
    return shlex.join(command)


def _option_words(option: str, values: Iterable[Sequence[object]]) -> list[str]:
    return [word for name, value in values for word in (option, f"{name}={value}")]
