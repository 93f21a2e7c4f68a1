# SPDX-License-Identifier: MIT
"""Converts a recording to the folder of a run, like that of a built-in machine."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.versions import commit
from schedlab.errors import WrongUsage, parameter
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.metrics import Metrics
from schedlab.recordings.reader import Recording, read
from schedlab.recordings.trace_builder import Story
from schedlab.runs import results
from schedlab.runs.worker import evaluate

MACHINE = "linux-recording"
"""The machine in manifests: schedlab did not control it."""
POLICY = "fair"
"""Linux's default scheduling class."""
TICK_NS = 4_000_000
"""A tick of 4 ms, because most distributions have 250 ticks per second."""


@dataclass(frozen=True)
class Imported:
    """A recording converted to a run."""

    folder: Path
    manifest: dict[str, Any]
    metrics: Metrics | None
    outcome: Outcome
    notes: tuple[str, ...]
    """Limitations of the recording that affect its metrics."""


def convert(
    file: Path, place: Path, policy: str, tick_ns: int, root: str | None = None
) -> Imported:
    """Converts a recording and fills the folder `place`. Raises WrongUsage if it is not empty, or
    if the file is not a recording.

    `root`: name or PID of a process; only its descendants are measured, during its lifetime. None:
    all processes.
    """
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise WrongUsage(f"{place}: exists already", fix="name another folder with `out=`")
    began = time.monotonic()
    recording = read(file)
    story = Story(recording.events, recording.cpus, tick_ns, policy, root, recording.coverage)
    with results.new_folder(place) as folder:
        try:
            story.write(folder / TRACE_FILE)
        except struct.error:
            raise WrongUsage(
                f"{file}: contains numbers that no thread or CPU of Linux can have; record it again"
            ) from None
        if root and not story.root_pid:
            raise WrongUsage(
                f"{file} has no process of this name or PID",
                what=parameter("root", root),
                fix="name another",
            )
        notes = tuple(_notes(recording, story))
        (folder / CONSOLE).write_text("".join(f"{note}\n" for note in notes))
        metrics, outcome = evaluate(folder, Outcome("success"))
        manifest = _manifest(file, recording, story)
        manifest.update(
            host_seconds=round(time.monotonic() - began, 3),
            status=outcome.status,
            message=outcome.message,
        )
        results.write_json(folder / results.MANIFEST, manifest)
    return Imported(place, manifest, metrics, outcome, notes)


def _manifest(file: Path, recording: Recording, story: Story) -> dict[str, Any]:
    facts = recording.facts
    return {
        "format": results.FORMAT,
        "schedlab": __version__,
        **commit(),
        "label": "",
        "workload": facts.get("command") or file.name,
        "workload_sha256": file_hash(file),
        "policy": story.policy,
        "tunables": {},
        "cpus": recording.cpus,
        "seed": 0,
        "tick_ns": story.tick_ns,
        "machine": MACHINE,
        "machine_version": facts.get("release", ""),
        "machine_origin": f"{file.name}, read by {recording.tool}",
        "repeatable": False,
        "recording": {
            **facts,
            "file": file.name,
            "read_by": recording.tool,
            "begin_ns": story.begin_ns,
            "lost": story.lost,
            "mended": story.mended,
            "cpus_unrecorded": sorted(recording.coverage.unrecorded),
            "by_thread": recording.coverage.by_thread,
            "events": recording.events.seen,
        },
        "host": facts.get("host", ""),
        "started": _written(file),
    }


def _written(file: Path) -> str:
    """Returns the time of the file's last change, normally the end of the recording."""
    written = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
    return written.isoformat(timespec="seconds")


def _notes(recording: Recording, story: Story) -> Iterator[str]:
    events = recording.events
    if story.lost:
        yield f"the recording has lost {story.lost:,} events or more"
    coverage = recording.coverage
    if story.mended and not coverage.by_thread:
        yield (
            f"{story.mended:,} switches or wake-ups are missing: the state of their threads and"
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
