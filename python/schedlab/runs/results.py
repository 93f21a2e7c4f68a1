# SPDX-License-Identifier: MIT
"""Stores runs on disk. Each run has a folder, which appears when the run is complete."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from schedlab.base.display.names import json_text
from schedlab.base.files import replacement
from schedlab.base.files.atomic import written
from schedlab.base.files.formats import check_format
from schedlab.base.files.untrusted import (
    Field,
    by_name,
    checked,
    flag,
    integer,
    number,
    read_object,
    text,
)
from schedlab.base.outputs import Figures, OutputError, figures
from schedlab.errors import WrongUsage
from schedlab.machines import MACHINES
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import read_console
from schedlab.machines.spec import RunSpec
from schedlab.workload.delays import delays_of

MANIFEST = "manifest.json"
FORMAT = 1
"""The version of the manifest's format."""
METRICS = "metrics"
UNFINISHED = ".unfinished-"
"""Prefix of folders that are still being filled."""

_SHOWN_MAX, _TEXT_MAX = 12, 40
_ABSENT = {"branch": "none", "delays": "none", "shape": "none"}
"""The meaning of a missing manifest entry."""

DECISIVE = {
    "compiler": "compiler",
    "kernel_sha256": "kernel",
    "disk_sha256": "disk image",
    "simulator_sha256": "simulator",
    "linux_kernel_sha256": "Linux kernel",
    "linux_image_sha256": "Linux guest",
    "linux_programs_sha256": "programs for Linux",
    "workload_sha256": "workload file",
    "costs": "costs",
    "delays": "delays",
    "shape": "machine's shape",
    "with": "values of the workload file",
    "machine": "machine",
    "machine_version": "machine's version",
    "boot_arguments": "boot arguments",
    "cpus": "CPUs",
    "memory_mib": "memory",
    "measuring": "measuring code",
    "branch": "branch",
}
"""Manifest entries that affect results, with their display names. Not every machine has all of them."""
MADE_OF = {
    "workload": "workload",
    **{key: what for key, what in DECISIVE.items() if key not in ("boot_arguments", "cpus")},
    "limit_ns": "limit",
}
"""Manifest entries that runs of one configuration must have in common, besides its name."""


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """Provides a new folder to fill.

    After the block, the folder is renamed to `place`; if the block raises an exception, the folder
    is removed.

    schedlab lists its files in the folder (schedlab.base.files.replacement). An existing, unmodified
    failed run is replaced; anything else at `place` raises OSError.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=place.parent, prefix=f"{UNFINISHED}{place.name}-"))
    try:
        yield folder
        replacement.write_list(folder)
        folder.chmod(0o755)
        if (
            not replacement.strange(place)
            and is_complete(place)
            and not succeeded(read_manifest(place))
        ):
            replacement.remove(place)
        os.rename(folder, place)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            place.parent.rmdir()  # succeeds only if the folder is empty
        raise


def write_json(path: Path, content: Any) -> None:
    """Writes readable JSON: indented, in the given order."""
    path.write_text(json_text(content, indent=2) + "\n")


def runs_in(path: Path) -> list[Path]:
    """Returns the folders of complete runs with a trace in a folder, sorted by name."""
    return sorted(
        entry.parent for entry in path.glob(f"*/{TRACE_FILE}") if is_complete(entry.parent)
    )


def find_run(path: Path) -> Path:
    """Returns a run's folder: the path itself, or the folder of the only run in it.

    Raises WrongUsage if there is no run, or more than one.
    """
    if (path / MANIFEST).is_file() and (path / TRACE_FILE).is_file():
        return path
    if not path.is_dir():
        raise WrongUsage(f"{path}: not a run's folder; name a folder that `./schedlab run` made")
    runs = runs_in(path)
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise WrongUsage(f"{path}: contains no run with a trace; name another folder")
    names = "\n".join(f"  {run}" for run in runs)
    raise WrongUsage(f"{path}: contains {len(runs)} runs; name one of them:\n{names}")


def shown(key: str, manifest: Mapping[str, Any]) -> str:
    """Returns a short text for a manifest entry; long values are represented by the start of their hash."""
    value = manifest.get(key)
    if value is None:
        return _ABSENT.get(key, "unknown")
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    if key.endswith("sha256"):
        return text[:_SHOWN_MAX]
    if len(text) <= _TEXT_MAX and not isinstance(value, dict):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN_MAX]


def is_complete(folder: Path) -> bool:
    """True if a run's folder is complete."""
    return not folder.name.startswith(UNFINISHED) and (folder / MANIFEST).is_file()


def succeeded(manifest: Mapping[str, Any]) -> bool:
    """True if the run succeeded. (schedlab.machines.outcome defines the kinds of failures.)"""
    return bool(manifest["status"] == "success")


def began_under(manifest: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """Returns the initial policy of a run and its tunables; a branch changes them later."""
    at_first = manifest.get("branch_of", manifest)
    return at_first["policy"], at_first["tunables"]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Returns the manifest in a run's folder: the specification and the outcome.

    Raises FileRefused if it is missing, invalid, or of another version of the format.
    """
    path = folder / MANIFEST
    return checked_manifest(path, read_object(path, {}))


def why_unrepeatable(manifest: Mapping[str, Any]) -> str:
    """Returns why a run cannot be repeated; "" if it can."""
    if manifest["machine"] not in MACHINES:
        return f"it was recorded on {manifest['machine']}, which schedlab does not run"
    if "recorded_from_ns" in manifest:
        return "it was recorded live"
    return ""


def read_spec(folder: Path) -> RunSpec:
    """Returns the specification of a stored run.

    Raises FileRefused if the manifest is invalid, and WrongUsage if the run cannot be repeated.
    """
    return RunSpec.from_manifest(read_manifest(folder), folder)


def checked_manifest(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Validates a manifest that was read from `path`. Raises FileRefused."""
    check_format(path, content, FORMAT, "a run's manifest")
    return checked(path, content, FIELDS)


def _are_delays(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(delays_of(value))
    except ValueError:
        return False


_TEXT, _NAME = text(), text(required=True, empty=False)
_SOME_TEXT = text(empty=False)
_NANOSECONDS = integer(0, 10**18)
_BITS = 64
_TUNABLES = by_name(
    "whole numbers", integer(-(2 ** (_BITS - 1)), 2 ** (_BITS - 1) - 1).sound, required=True
)
_BRANCH_FIELDS: Mapping[str, Field] = {
    "policy": _NAME,
    "tunables": _TUNABLES,
    "seed": integer(0, 2**_BITS - 1),
    "at_ns": integer(0, 10**18, required=True),
    "run": _SOME_TEXT,
    "trace_sha256": _SOME_TEXT,
    "told": Field(
        "commands",
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
        required=True,
    ),
}
FIELDS: Mapping[str, Field] = {
    "status": _NAME,
    "policy": _NAME,
    "machine": _NAME,
    "workload": _NAME,
    "tunables": _TUNABLES,
    "branch_of": Field(
        "an object: the repeated run, the time of the branch, and the kernel's commands",
        lambda value: (
            isinstance(value, dict)
            and all(field.allows(value.get(name)) for name, field in _BRANCH_FIELDS.items())
        ),
    ),
    "replay_of": Field("an object: the recording", lambda value: isinstance(value, dict)),
    "processes": integer(1, 2**24),
    "cpus": integer(1, 2**16, required=True),
    "seed": integer(0, 2**_BITS - 1, required=True),
    "tick_ns": integer(0, 10**18, required=True),
    "limit_ns": _NANOSECONDS,
    "memory_mib": integer(0, 2**40),
    "host_seconds": number(),
    "with": by_name("texts", _TEXT.sound),
    "delays": Field("operations and times, such as fork=380us", _are_delays),
    "ignore_limits": flag(),
    "repeatable": flag(),
    "changed": flag(),
    "measuring": by_name("texts", _TEXT.sound),
    **dict.fromkeys((*(name for name in DECISIVE if name.endswith("_sha256")), "label", "message", "compiler",
                     "commit", "changes_sha256", "costs", "costs_text", "shape", "machine_version", "machine_origin",
                     "arguments", "boot_arguments", "mode", "host", "started", "schedlab", "branch"), _TEXT),
}  # fmt: skip
"""The type of each manifest entry."""


# --- number of evaluations of a folder of runs

EVALUATIONS_FILE = "looks.json"
"""The file with the planned number of evaluations of a folder of runs.

Adding seeds until policies differ significantly means several tests, each with a chance of error.
Conclusions must account for their number (docs/comparing.md). The number is stored, because later
evaluations need it, too.
"""
_CHECKS_FIELDS: dict[str, Field] = {"looks": integer(1, 100, required=True)}


def read_sequential_checks(folder: Path) -> int:
    """Returns the stored number of evaluations; 1 by default. Raises FileRefused."""
    place = folder / EVALUATIONS_FILE
    return int(read_object(place, _CHECKS_FIELDS)["looks"]) if place.is_file() else 1


def write_sequential_checks(folder: Path, checks: int) -> None:
    """Stores the number of evaluations if it is larger than before."""
    if checks > read_sequential_checks(folder):
        with written(folder / EVALUATIONS_FILE) as new:
            new.write_text(sequential_checks_json(checks))


def sequential_checks_json(checks: int) -> str:
    """Returns the content of the file."""
    return json_text({"looks": checks}, indent=2) + "\n"


# --- output of benchmarks


def printed_figures(folder: Path, command: str) -> Figures:
    """Returns the values that a benchmark printed, by name with unit; empty if the command is not a
    known benchmark, or did not print them.
    """
    try:
        return figures(command, read_console(folder / CONSOLE))
    except (OutputError, OSError):
        return {}
