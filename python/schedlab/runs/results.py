# SPDX-License-Identifier: MIT
"""What a run leaves on disk: one folder, which appears when it is whole."""

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
from schedlab.base.files import placing
from schedlab.base.files.formats import check_format
from schedlab.base.files.kept import Field, by_name, checked, flag, number, read_object, text, whole
from schedlab.base.files.whole import written
from schedlab.base.outputs import Figures, OutputError, figures
from schedlab.errors import WrongUsage
from schedlab.machines import MACHINES
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import read_console
from schedlab.machines.spec import RunSpec
from schedlab.workload.delays import delays_of

MANIFEST = "manifest.json"
FORMAT = 1
"""The format of the manifest."""
METRICS = "metrics"
UNFINISHED = ".unfinished-"
"""The names of folders that are being filled begin so."""

_SHOWN_MAX, _TEXT_MAX = 12, 40
_ABSENT = {"branch": "none", "delays": "none", "shape": "none"}
"""What it means that a manifest does not have it."""

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
"""Members of a manifest that a run's figures depend on, in words. Not every machine has all of
them."""
MADE_OF = {
    "workload": "workload",
    **{key: what for key, what in DECISIVE.items() if key not in ("boot_arguments", "cpus")},
    "limit_ns": "limit",
}
"""What runs of one setup have in common, besides what its name says: they differ in seeds alone."""


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which is `place` after the block, or gone if the block raises.

    It has a list of what schedlab has put into it (schedlab.base.files.placing). A failed run that is there
    already, as it was made, gives way; anything else does not, and raises OSError.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=place.parent, prefix=f"{UNFINISHED}{place.name}-"))
    try:
        yield folder
        placing.write_list(folder)
        folder.chmod(0o755)
        if not placing.strange(place) and is_whole(place) and not succeeded(read_manifest(place)):
            placing.remove(place)
        os.rename(folder, place)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            place.parent.rmdir()  # only if nothing else is in it
        raise


def write_json(path: Path, content: Any) -> None:
    """Writes JSON for people, too: indented, in the order given."""
    path.write_text(json_text(content, indent=2) + "\n")


def runs_in(path: Path) -> list[Path]:
    """The folders of whole runs with a trace in a folder, in the order of their names."""
    return sorted(entry.parent for entry in path.glob(f"*/{TRACE_FILE}") if is_whole(entry.parent))


def find_run(path: Path) -> Path:
    """The run's folder that a person means: itself, or the only one in it."""
    if (path / MANIFEST).is_file() and (path / TRACE_FILE).is_file():
        return path
    if not path.is_dir():
        raise WrongUsage(f"{path} is not a folder of a run")
    runs = runs_in(path)
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise WrongUsage(f"{path} holds no run with a trace")
    names = "\n".join(f"  {run}" for run in runs)
    raise WrongUsage(f"{path} holds {len(runs)} runs; name one of them:\n{names}")


def shown(key: str, manifest: Mapping[str, Any]) -> str:
    """A part of a manifest in a few characters: what is long is told by its hash's beginning."""
    value = manifest.get(key)
    if value is None:
        return _ABSENT.get(key, "unknown")
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    if key.endswith("sha256"):
        return text[:_SHOWN_MAX]
    if len(text) <= _TEXT_MAX and not isinstance(value, dict):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN_MAX]


def is_whole(folder: Path) -> bool:
    """False for a folder that is being filled."""
    return not folder.name.startswith(UNFINISHED) and (folder / MANIFEST).is_file()


def succeeded(manifest: Mapping[str, Any]) -> bool:
    """Did that run end well? (schedlab.machines.outcome has the words for how it did not.)"""
    return bool(manifest["status"] == "success")


def began_under(manifest: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """The policy under which a run began, and its tunables: a branch has others from a moment on."""
    at_first = manifest.get("branch_of", manifest)
    return at_first["policy"], at_first["tunables"]


def read_manifest(folder: Path) -> dict[str, Any]:
    """What was run there, and how it ended. Raises FileRefused, of another release's format, too."""
    path = folder / MANIFEST
    return checked_manifest(path, read_object(path, {}))


def why_unrepeatable(manifest: Mapping[str, Any]) -> str:
    """Returns why a run cannot be carried out again; "" if it can."""
    if manifest["machine"] not in MACHINES:
        return f"it was recorded on {manifest['machine']}, which schedlab does not run"
    if "recorded_from_ns" in manifest:
        return "it was recorded live"
    return ""


def read_spec(folder: Path) -> RunSpec:
    """Returns the specification of the run that was carried out there. Raises FileRefused and WrongUsage."""
    return RunSpec.from_manifest(read_manifest(folder), folder)


def checked_manifest(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """The same of an object that was read from `path` before."""
    check_format(path, content, FORMAT, "a run's manifest")
    return checked(path, content, FIELDS)


def _are_delays(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(delays_of(value))
    except ValueError:
        return False


_TEXT, _NAME = text(), text(required=True, empty=False)
_SOME_TEXT = text(empty=False)
_NANOSECONDS = whole(0, 10**18)
_BITS = 64
_TUNABLES = by_name(
    "whole numbers", whole(-(2 ** (_BITS - 1)), 2 ** (_BITS - 1) - 1).sound, required=True
)
_BRANCH_FIELDS: Mapping[str, Field] = {
    "policy": _NAME,
    "tunables": _TUNABLES,
    "seed": whole(0, 2**_BITS - 1),
    "at_ns": whole(0, 10**18, required=True),
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
        "an object: what a run was, from which time on it is continued, and what its kernel was told",
        lambda value: (
            isinstance(value, dict)
            and all(field.allows(value.get(name)) for name, field in _BRANCH_FIELDS.items())
        ),
    ),
    "replay_of": Field("an object: what was recorded", lambda value: isinstance(value, dict)),
    "processes": whole(1, 2**24),
    "cpus": whole(1, 2**16, required=True),
    "seed": whole(0, 2**_BITS - 1, required=True),
    "tick_ns": whole(0, 10**18, required=True),
    "limit_ns": _NANOSECONDS,
    "memory_mib": whole(0, 2**40),
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
"""What each member of a run's manifest must be."""


# --- how often a folder of runs is looked at

LOOKS = "looks.json"
"""How often it is looked at a folder of runs, at most, whether they tell policies apart.

To add seeds until policies are told apart is to look several times, each time with a chance to err. What is
concluded from the runs must know how often (docs/comparing.md): the folder says so, as whoever looks may come
later, and more than once.
"""
_LOOKS_FIELDS: dict[str, Field] = {"looks": whole(1, 100, required=True)}


def looks_at(folder: Path) -> int:
    """Returns what the folder says; 1, if it says nothing. Raises FileRefused."""
    place = folder / LOOKS
    return int(read_object(place, _LOOKS_FIELDS)["looks"]) if place.is_file() else 1


def note_looks(folder: Path, checks: int) -> None:
    """Notes it, if it is more than was noted before."""
    if checks > looks_at(folder):
        with written(folder / LOOKS) as new:
            new.write_text(looks_text(checks))


def looks_text(checks: int) -> str:
    """Returns the note, as it stands in its file."""
    return json_text({"looks": checks}, indent=2) + "\n"


# --- what a benchmark printed


def printed(folder: Path, command: str) -> Figures:
    """Returns them by name, with the unit in the name; none if the command is no benchmark that is known, or did not
    get so far."""
    try:
        return figures(command, read_console(folder / CONSOLE))
    except (OutputError, OSError):
        return {}
