# SPDX-License-Identifier: MIT
"""Stores runs on disk. Each run has a folder, which appears when the run is complete."""

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
from schedlab.base.files.atomic import atomic_write, file_hash
from schedlab.base.files.reading import check_format
from schedlab.base.files.untrusted import (
    Field,
    check_members,
    flag_field,
    integer_field,
    mapping_field,
    number_field,
    read_object,
    text_field,
)
from schedlab.base.outputs import Figures, OutputError, parse_figures
from schedlab.errors import WrongUsage
from schedlab.machines import MACHINES
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE
from schedlab.machines.outcome import read_console
from schedlab.machines.spec import RunSpec
from schedlab.workload.delays import parse_delays

MANIFEST_FILE = "manifest.json"
FORMAT = 1
"""The version of the manifest's format."""
METRICS_FOLDER = "metrics"
UNFINISHED_PREFIX = ".unfinished-"
"""Prefix of folders that are still being filled."""

_SHOWN_MAX, _TEXT_MAX = 12, 40
_ABSENT_MEANING = {"branch": "none", "delays": "none", "shape": "none"}
"""What a missing manifest entry means."""

DECISIVE_INPUTS = {
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
"""Manifest entries about programs that affect results, with their display names.

Not every machine has all of them.
"""
SHARED_INPUTS = {
    "workload": "workload",
    **{key: what for key, what in DECISIVE_INPUTS.items() if key not in ("boot_arguments", "cpus")},
    "limit_ns": "limit",
}
"""Manifest entries that runs of one configuration must have in common, with their display names."""


@contextmanager
def create_run_folder(path: Path) -> Iterator[Path]:
    """Provides a temporary folder, which is renamed to `path` after a successful `with` block.

    If the block raises an exception, the folder is removed. The folder gets a list of its files
    (schedlab.base.files.replacement). If `path` is a failed run that nobody modified, it is
    replaced; anything else at `path` raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{UNFINISHED_PREFIX}{path.name}-"))
    try:
        yield folder
        replacement.write_list(folder)
        folder.chmod(0o755)
        if (
            not replacement.why_not_replaceable(path)
            and is_complete(path)
            and not has_succeeded(read_manifest(path))
        ):
            replacement.remove(path)
        os.rename(folder, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            path.parent.rmdir()  # fails unless the folder is empty
        raise


def write_json(path: Path, content: Any) -> None:
    """Writes indented JSON with the keys in the given order."""
    path.write_text(json_text(content, indent=2) + "\n")


def list_runs(path: Path) -> list[Path]:
    """Returns the folders of complete runs with a trace that are directly in `path`, sorted by name."""
    return sorted(
        entry.parent for entry in path.glob(f"*/{TRACE_FILE}") if is_complete(entry.parent)
    )


def find_run(path: Path) -> Path:
    """Returns a run's folder: the path itself, or the folder of the only run in it.

    Raises WrongUsage if there is no run, or more than one.
    """
    if (path / MANIFEST_FILE).is_file() and (path / TRACE_FILE).is_file():
        return path
    if not path.is_dir():
        raise WrongUsage(f"{path}: not a run's folder; name a folder that `./schedlab run` made")
    runs = list_runs(path)
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise WrongUsage(f"{path}: contains no run with a trace; name another folder")
    names = "\n".join(f"  {run}" for run in runs)
    raise WrongUsage(f"{path}: contains {len(runs)} runs; name one of them:\n{names}")


def shorten_entry(key: str, manifest: Mapping[str, Any]) -> str:
    """Returns a manifest entry as a short text; shortens a long value to the start of its hash."""
    value = manifest.get(key)
    if value is None:
        return _ABSENT_MEANING.get(key, "unknown")
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    if key.endswith("sha256"):
        return text[:_SHOWN_MAX]
    if len(text) <= _TEXT_MAX and not isinstance(value, dict):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN_MAX]


def is_complete(folder: Path) -> bool:
    """Returns whether a folder is that of a complete run."""
    return not folder.name.startswith(UNFINISHED_PREFIX) and (folder / MANIFEST_FILE).is_file()


def has_succeeded(manifest: Mapping[str, Any]) -> bool:
    """Returns whether the run with this manifest succeeded (see schedlab.machines.outcome)."""
    return bool(manifest["status"] == "success")


def initial_policy(manifest: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """Returns a run's initial policy and tunables; for a branch, those before the branch point."""
    initial_manifest = manifest.get("branch_of", manifest)
    return initial_manifest["policy"], initial_manifest["tunables"]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Returns the manifest in a run's folder: the specification and the outcome.

    Raises FileRefused if it is missing, invalid, or of another version of the format.
    """
    path = folder / MANIFEST_FILE
    return check_manifest(path, read_object(path, {}))


def why_unrepeatable(manifest: Mapping[str, Any]) -> str:
    """Returns the reason why a run cannot be repeated; "" if it can."""
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


def check_manifest(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `content`, the manifest read from `path`, if it is valid. Raises FileRefused."""
    check_format(path, content, FORMAT, "a run's manifest")
    return check_members(path, content, MANIFEST_FIELDS)


def _are_delays(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(parse_delays(value))
    except ValueError:
        return False


_TEXT_FIELD, _NAME_FIELD = text_field(), text_field(required=True, allow_empty=False)
_NONEMPTY_FIELD = text_field(allow_empty=False)
_NANOSECONDS_FIELD = integer_field(0, 10**18)
_BITS = 64
_TUNABLES_FIELD = mapping_field(
    "whole numbers", integer_field(-(2 ** (_BITS - 1)), 2 ** (_BITS - 1) - 1).sound, required=True
)
_BRANCH_FIELDS: Mapping[str, Field] = {
    "policy": _NAME_FIELD,
    "tunables": _TUNABLES_FIELD,
    "seed": integer_field(0, 2**_BITS - 1),
    "at_ns": integer_field(0, 10**18, required=True),
    "run": _NONEMPTY_FIELD,
    "trace_sha256": _NONEMPTY_FIELD,
    "told": Field(
        "commands",
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
        required=True,
    ),
}
MANIFEST_FIELDS: Mapping[str, Field] = {
    "status": _NAME_FIELD,
    "policy": _NAME_FIELD,
    "machine": _NAME_FIELD,
    "workload": _NAME_FIELD,
    "tunables": _TUNABLES_FIELD,
    "branch_of": Field(
        "an object: the repeated run, the time of the branch, and the kernel's commands",
        lambda value: (
            isinstance(value, dict)
            and all(field.allows(value.get(name)) for name, field in _BRANCH_FIELDS.items())
        ),
    ),
    "replay_of": Field("an object: the recording", lambda value: isinstance(value, dict)),
    "processes": integer_field(1, 2**24),
    "cpus": integer_field(1, 2**16, required=True),
    "seed": integer_field(0, 2**_BITS - 1, required=True),
    "tick_ns": integer_field(0, 10**18, required=True),
    "limit_ns": _NANOSECONDS_FIELD,
    "memory_mib": integer_field(0, 2**40),
    "host_seconds": number_field(),
    "with": mapping_field("texts", _TEXT_FIELD.sound),
    "delays": Field("operations and times, such as fork=380us", _are_delays),
    "ignore_limits": flag_field(),
    "repeatable": flag_field(),
    "changed": flag_field(),
    "measuring": mapping_field("texts", _TEXT_FIELD.sound),
    **dict.fromkeys((*(name for name in DECISIVE_INPUTS if name.endswith("_sha256")), "label", "message", "compiler",
                     "commit", "changes_sha256", "costs", "costs_text", "shape", "machine_version", "machine_origin",
                     "arguments", "boot_arguments", "mode", "host", "started", "schedlab", "branch"), _TEXT_FIELD),
}  # fmt: skip
"""The type and the limits of each manifest entry."""


# --- number of evaluations of a folder of runs

EVALUATIONS_FILE = "looks.json"
"""File with the planned number of evaluations of a folder of runs.

Adding seeds until policies differ significantly means several tests, each with a chance of error.
Conclusions must account for the number of tests (docs/comparing.md). The number is stored for later
evaluations.
"""
_CHECKS_FIELDS: dict[str, Field] = {"looks": integer_field(1, 100, required=True)}


def hash_trace(folder: Path) -> str | None:
    """Returns the SHA-256 of a run's trace, or None if it has none."""
    trace = folder / TRACE_FILE
    return file_hash(trace) if trace.is_file() else None


def read_sequential_checks(folder: Path) -> int:
    """Returns the stored number of evaluations; 1 without a file. Raises FileRefused."""
    path = folder / EVALUATIONS_FILE
    return int(read_object(path, _CHECKS_FIELDS)["looks"]) if path.is_file() else 1


def write_sequential_checks(folder: Path, checks: int) -> None:
    """Stores the number of evaluations if it is larger than before."""
    if checks > read_sequential_checks(folder):
        with atomic_write(folder / EVALUATIONS_FILE) as new:
            new.write_text(sequential_checks_json(checks))


def sequential_checks_json(checks: int) -> str:
    """Returns the content of the file."""
    return json_text({"looks": checks}, indent=2) + "\n"


# --- output of benchmarks


def read_printed_figures(folder: Path, command: str) -> Figures:
    """Returns the values that a known benchmark printed to the console, by name with unit.

    Empty if the command is not a known benchmark, or printed none of them.
    """
    try:
        return parse_figures(command, read_console(folder / CONSOLE_FILE))
    except (OutputError, OSError):
        return {}
