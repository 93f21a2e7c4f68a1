# SPDX-License-Identifier: MIT
"""Identifies the programs and measuring code of a sweep's runs, and computes each run's key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.build import build_lock
from schedlab.base.toolchain.measuring import Facts, measuring_code
from schedlab.machines import machine_named
from schedlab.machines.spec import Machine, Parts, RunSpec
from schedlab.runs.worker import Unfit
from schedlab.workload.model import WorkloadFile

MEASURING = ("sweep/rows.py", "sweep/columns.py")
"""Files of the package that affect rows, in addition to programs and measuring code."""


@dataclass(frozen=True)
class Make:
    """The machines' programs and the code that measures their traces."""

    measuring: Facts
    machines: Mapping[str, Facts]
    """Hashes of programs and version, by machine."""
    programs: Mapping[str, bytes]
    """Programs sent to workers, by the names of schedlab.runs.parts."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the values for the data set's manifest."""
        return {"measuring": self.measuring, "machines": dict(self.machines)}


def make_of(machines: set[Machine], parts: Parts, tools: tuple[str, ...] = ()) -> Make:
    """Reads the built programs once, so that later builds do not affect the sweep.

    `parts` are their paths. `tools` write workload files to a kernel's disk; the files and the
    kernel's own program determine their output.
    """
    programs: dict[str, bytes] = {}
    facts: dict[str, Facts] = {}
    with build_lock():
        programs |= {name: parts[name].read_bytes() for name in tools}
        for machine in sorted(machines, key=str):
            files = {part: parts[part].read_bytes() for part in machine.parts}
            programs |= files
            hashes = {f"{part}_sha256": sha256(content) for part, content in files.items()}
            facts[machine.name] = {**hashes, "machine_version": machine.release().version}
    return Make(measuring(), facts, programs)


def check_worker(make: Mapping[str, Any], traces: Path | None, worker: str) -> None:
    """Raises Unfit if a worker's programs or measuring code differ from the manifest's, or if it
    lacks the `traces` folder.
    """
    _check_same(worker, make["measuring"], measuring())
    for name, facts in make["machines"].items():
        version = machine_named(name).release().version
        _check_same(worker, {name: facts["machine_version"]}, {name: version})
    if traces and not traces.is_dir():
        raise Unfit(f"{worker}: the folder for traces, {traces}, does not exist; create it")


def _check_same(worker: str, expected: Facts, actual: Facts) -> None:
    for name, value in expected.items():
        other = actual.get(name)
        if other != value:
            raise Unfit(
                f"{worker}: has another {name.removesuffix('_sha256')}: {_shown(other)} "
                f"there, {_shown(value)} here; start it with the same version of schedlab:"
                " ./schedlab dask worker"
            )


def _shown(value: str | None) -> str:
    text = str(value)
    return text if len(text) < 32 else f"{text[:12]}…"


def measuring() -> Facts:
    """Returns the measuring code of this checkout and Python."""
    return measuring_code(*MEASURING)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def key_of(run: RunSpec, make: Make) -> str:
    """Returns a run's key of 32 hexadecimal digits, which is the same on all hosts."""
    decisive = {
        "measuring": make.measuring,
        "machine": {"name": run.machine.name, **make.machines[run.machine.name]},
        "label": run.label,
        "workload": run.workload,
        "changes": run.changes,
        "file": _hash_of_file(run.file) if run.file else None,
        "boot_arguments": run.machine.arguments(run),
        "cpus": run.cpus,
        "seed": run.seed,
        "memory_mib": run.memory_mib,
    }
    return _hash_of(decisive)[:32]


def facts_of(run: RunSpec, make: Make) -> dict[str, Any]:
    """Returns all inputs of a run except policy, tunables and seed."""
    return {
        "label": run.label,
        "workload": run.workload,
        "changes": dict(run.changes),
        "workload_sha256": run.file.sha256 if run.file else None,
        "machine": {"name": run.machine.name, **make.machines[run.machine.name]},
        "costs": run.costs.text,
        **({"shape": run.shape.name} if run.shape else {}),
        "cpus": run.cpus,
        "tick_ns": run.tick_ns,
        "limit_ns": run.limit_ns,
        "memory_mib": run.memory_mib,
        "measuring": make.measuring,
    }


def made_of(run: RunSpec, make: Make) -> str:
    """Returns a hash (16 hexadecimal digits) of `facts_of`; only runs with equal hashes are compared."""
    return _hash_of(facts_of(run, make))[:16]


def _hash_of(facts: dict[str, Any]) -> str:
    return sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode())


_hashes: dict[int, tuple[WorkloadFile, str]] = {}


def _hash_of_file(file: WorkloadFile) -> str:
    """Returns a hash of a file's content with its changed values; cached per file."""
    known = _hashes.get(id(file))
    if known is None or known[0] is not file:
        known = _hashes[id(file)] = (file, sha256(repr(file).encode()))
    return known[1]
