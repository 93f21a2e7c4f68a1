# SPDX-License-Identifier: MIT
"""Converts a recording to a run folder like that of a schedlab machine."""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.versions import commit_facts
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.metrics import Metrics
from schedlab.recordings.reader import Recording, read
from schedlab.recordings.trace_builder import TraceBuilder
from schedlab.runs import results
from schedlab.runs.worker import evaluate_run

MACHINE = "linux-recording"
"""Name of the machine in manifests; schedlab did not control it."""
POLICY = "fair"
"""Linux's default scheduling class."""
TICK_NS = 4_000_000
"""Assumed tick length (ns): most Linux distributions have 250 ticks per second."""
_PERSONAL = ("host", "command")
"""Facts that an anonymous run does not contain."""


@dataclass(frozen=True)
class Imported:
    """The run that a recording was converted to."""

    folder: Path
    manifest: dict[str, Any]
    metrics: Metrics | None
    outcome: Outcome
    notes: tuple[str, ...]
    """Limitations of the recording that affect its metrics, for users."""


def convert(
    file: Path,
    path: Path,
    policy: str,
    tick_ns: int,
    root: str | None = None,
    *,
    workload: str = "",
    anonymous: bool = False,
) -> Imported:
    """Converts a recording to a trace with metrics, in the folder `path`, which must be empty.

    `root`: name or PID of a process; only its descendants are measured, during its lifetime. None:
    all processes. `workload`: the command that ran, if the recording does not contain it.
    `anonymous`: leaves out the names of programs, of the host and of the file. Raises WrongUsage if
    the folder is not empty, or the file is not a recording.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise WrongUsage(f"{path}: exists already", fix="name another folder with `out=`")
    began = time.monotonic()
    recording = read(file)
    if anonymous:
        recording.events.anonymize()
        facts = {name: fact for name, fact in recording.facts.items() if name not in _PERSONAL}
        recording = replace(recording, facts=facts)
    if workload:
        recording = replace(recording, facts={**recording.facts, "command": workload})
    builder = TraceBuilder(
        recording.events, recording.cpus, tick_ns, policy, root, recording.coverage
    )
    with results.create_run_folder(path) as folder:
        try:
            builder.write(folder / TRACE_FILE)
        except struct.error:
            raise WrongUsage(
                f"{file}: contains numbers that no thread or CPU of Linux can have; record it again"
            ) from None
        if root and not builder.root_pid:
            raise WrongUsage(
                f"{file} has no process of this name or PID",
                what=format_parameter("root", root),
                fix="name a process of the recording, or leave it out",
            )
        notes = tuple(_notes(recording, builder))
        (folder / CONSOLE_FILE).write_text("".join(f"{note}\n" for note in notes))
        metrics, outcome = evaluate_run(folder, Outcome("success"))
        name = "recording" if anonymous else file.name
        manifest = _manifest(file, name, recording, builder)
        manifest.update(
            host_seconds=round(time.monotonic() - began, 3),
            status=outcome.status,
            message=outcome.message,
        )
        results.write_json(folder / results.MANIFEST_FILE, manifest)
    return Imported(path, manifest, metrics, outcome, notes)


def _manifest(file: Path, name: str, recording: Recording, builder: TraceBuilder) -> dict[str, Any]:
    facts = recording.facts
    return {
        "format": results.FORMAT,
        "schedlab": __version__,
        **commit_facts(),
        "label": "",
        "workload": facts.get("command") or name,
        "workload_sha256": file_hash(file),
        "policy": builder.policy,
        "tunables": {},
        "cpus": recording.cpus,
        "seed": 0,
        "tick_ns": builder.tick_ns,
        "machine": MACHINE,
        "machine_version": facts.get("release", ""),
        "machine_origin": f"{name}, read by {recording.tool}",
        "repeatable": False,
        "recording": {
            **facts,
            "file": name,
            "read_by": recording.tool,
            "begin_ns": builder.begin_ns,
            "lost": builder.lost,
            "mended": builder.mended,
            "cpus_unrecorded": sorted(recording.coverage.unrecorded),
            "by_thread": recording.coverage.by_thread,
            "events": recording.events.seen,
        },
        "host": facts.get("host", ""),
        "started": _modified_time(file),
    }


def _modified_time(file: Path) -> str:
    """Returns when the file was last changed, which is normally the end of the recording."""
    written = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
    return written.isoformat(timespec="seconds")


def _notes(recording: Recording, builder: TraceBuilder) -> Iterator[str]:
    events = recording.events
    if builder.lost:
        yield f"the recording has lost {builder.lost:,} events or more"
    coverage = recording.coverage
    if builder.mended and not coverage.by_thread:
        yield (
            f"{builder.mended:,} switches or wake-ups are missing: the state of their threads and"
            " CPUs until the next event is unknown"
        )
    if coverage.by_thread:
        yield (
            "only some threads were recorded: other threads and the idle time of CPUs are"
            " unknown; `perf sched record` and `perf record -a` record all"
        )
    if coverage.unrecorded:
        names = ", ".join(map(str, sorted(coverage.unrecorded)))
        yield f"CPUs that were not recorded: {names}; their state and the state of threads on them is unknown"
    if not events.has_wakeups:
        yield (
            "there is neither sched_waking nor sched_wakeup: CPU time and switches are known, but"
            " not how long threads waited. Waiting, blocked time, wake-up latency and the ideal"
            " share are empty"
        )
    elif "sched_waking" not in events.seen:
        yield "there is no sched_waking: waiting begins at sched_wakeup, slightly later"
    if not events.has_forks:
        yield "there is no sched_process_fork: new and existing threads cannot be distinguished"
    if events.unreadable:
        yield f"some events have an unknown format, such as {events.unreadable[0]}"
