# SPDX-License-Identifier: MIT
"""Identifies the programs and measuring code of a sweep's runs, and computes each run's key."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.build import build_lock
from schedlab.base.toolchain.versions import CodeFacts, identify_measuring_code
from schedlab.machines import machine_named
from schedlab.machines.spec import BuiltParts, Machine, RunSpec
from schedlab.runs.worker import Unfit
from schedlab.workload.model import WorkloadFile

MEASURING_FILES = ("sweep/rows.py", "sweep/columns.py")
"""Files of the package that affect rows, in addition to programs and measuring code."""


@dataclass(frozen=True)
class ProgramSet:
    """The machines' programs and the code that measures their traces."""

    measuring: CodeFacts
    machines: Mapping[str, CodeFacts]
    """Hashes of programs and version, by machine."""
    programs: Mapping[str, bytes]
    """Programs sent to workers, by the names of schedlab.runs.parts."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the values for the data set's manifest."""
        return {"measuring": self.measuring, "machines": dict(self.machines)}


def read_program_set(
    machines: set[Machine], parts: BuiltParts, tools: tuple[str, ...] = ()
) -> ProgramSet:
    """Reads the built programs once, so that later builds do not affect the sweep.

    `parts` are their paths. `tools` write workload files to a kernel's disk; the files and the
    kernel's own program determine their output.
    """
    programs: dict[str, bytes] = {}
    facts: dict[str, CodeFacts] = {}
    with build_lock():
        programs |= {name: parts[name].read_bytes() for name in tools}
        for machine in sorted(machines, key=str):
            files = {part: parts[part].read_bytes() for part in machine.parts}
            programs |= files
            hashes = {f"{part}_sha256": hash_content(content) for part, content in files.items()}
            facts[machine.name] = {**hashes, "machine_version": machine.release().version}
    return ProgramSet(identify_measuring(), facts, programs)


def check_worker(program_set: Mapping[str, Any], traces: Path | None, worker: str) -> None:
    """Raises Unfit if a worker's programs or measuring code differ from the manifest's, or if it
    lacks the `traces` folder.
    """
    _check_same(worker, program_set["measuring"], identify_measuring())
    for name, facts in program_set["machines"].items():
        version = machine_named(name).release().version
        _check_same(worker, {name: facts["machine_version"]}, {name: version})
    if traces and not traces.is_dir():
        raise Unfit(f"{worker}: the folder for traces, {traces}, does not exist; create it")


def _check_same(worker: str, expected: CodeFacts, actual: CodeFacts) -> None:
    """Raises Unfit if the worker's facts differ from the expected ones."""
    for name, value in expected.items():
        present = actual.get(name)
        if present != value:
            raise Unfit(
                f"{worker}: has another {name.removesuffix('_sha256')}: {_hash_text(present)} "
                f"there, {_hash_text(value)} here; start it with the same version of schedlab:"
                " ./schedlab dask worker"
            )


def _hash_text(value: str | None) -> str:
    """Returns the first digits of a hash, or a word for None."""
    text = str(value)
    return text if len(text) < 32 else f"{text[:12]}…"


def identify_measuring() -> CodeFacts:
    """Returns the measuring code of this checkout and Python."""
    return identify_measuring_code(*MEASURING_FILES)


def hash_content(content: bytes) -> str:
    """Returns the SHA-256 of the content in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def run_key(run: RunSpec, program_set: ProgramSet) -> str:
    """Returns a run's key of 32 hexadecimal digits, which is the same on all hosts."""
    determining_facts = {
        "measuring": program_set.measuring,
        "machine": {"name": run.machine.name, **program_set.machines[run.machine.name]},
        "label": run.label,
        "workload": run.workload,
        "changes": run.changes,
        "file": _hash_of_file(run.file) if run.file else None,
        "boot_arguments": run.machine.arguments(run),
        "cpus": run.cpus,
        "seed": run.seed,
        "memory_mib": run.memory_mib,
    }
    return _hash_of(determining_facts)[:32]


def run_inputs(run: RunSpec, program_set: ProgramSet) -> dict[str, Any]:
    """Returns all inputs of a run except policy, tunables and seed."""
    return {
        "label": run.label,
        "workload": run.workload,
        "changes": dict(run.changes),
        "workload_sha256": run.file.sha256 if run.file else None,
        "machine": {"name": run.machine.name, **program_set.machines[run.machine.name]},
        "costs": run.costs.text,
        **({"shape": run.shape.name} if run.shape else {}),
        "cpus": run.cpus,
        "tick_ns": run.tick_ns,
        "limit_ns": run.limit_ns,
        "memory_mib": run.memory_mib,
        "measuring": program_set.measuring,
    }


def inputs_hash(run: RunSpec, program_set: ProgramSet) -> str:
    """Returns a hash (16 hexadecimal digits) of `run_inputs`; only runs with equal hashes are compared."""
    return _hash_of(run_inputs(run, program_set))[:16]


def _hash_of(facts: dict[str, Any]) -> str:
    return hash_content(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode())


_file_hashes: dict[int, tuple[WorkloadFile, str]] = {}


def _hash_of_file(file: WorkloadFile) -> str:
    """Returns a hash of a file's content with its changed values; cached per file."""
    cached = _file_hashes.get(id(file))
    if cached is None or cached[0] is not file:
        cached = _file_hashes[id(file)] = (file, hash_content(repr(file).encode()))
    return cached[1]
