# SPDX-License-Identifier: MIT
"""Records a watched system. A recording is stored like a run of `./schedlab run`: trace, metrics and manifest."""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.errors import SchedlabError
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.monitor import worker
from schedlab.monitor.system import Records, Setup
from schedlab.monitor.trace_file import TraceFile
from schedlab.monitor.trace_state import TraceState
from schedlab.runs import results
from schedlab.trace.model import Header

KIND = "monitor"
"""The kind in the manifests of live recordings, during which a user may have controlled the system."""


class Recorder:
    """A recording in progress. Its run folder appears only when the recording is complete."""

    def __init__(
        self,
        place: Path,
        header: Header,
        facts: Mapping[str, Any],
        state: TraceState,
        excluded: Iterable[int] = (),
        marks: bool = False,
    ) -> None:
        """Starts a recording.

        `facts` are the manifest's entries known so far. `state` is the current state; if it has no
        records, the recording is the complete trace. `excluded` is described at `Standing.opening`,
        `marks` at `TraceFile`.
        """
        self.place = place
        self._facts = dict(facts)
        self._began = time.monotonic()
        self._started = datetime.now(timezone.utc)
        self._stack = ExitStack()
        self.folder = self._stack.enter_context(results.new_folder(place))
        try:
            self._console = self._stack.enter_context((self.folder / CONSOLE).open("w"))
            opening = state.opening(excluded) if state.count else None
            self._trace = TraceFile(self.folder / TRACE_FILE, header, opening, marks)
        except BaseException:
            self.discard()
            raise

    def copy_trace(self, path: Path) -> None:
        """Copies the records so far to a complete trace file."""
        self._trace.copy(path)

    def add(self, records: Records) -> None:
        """Appends records to the trace."""
        self._trace.add(records)

    def add_log(self, lines: Iterable[str]) -> None:
        """Appends lines to the console log."""
        self._console.writelines(f"{line}\n" for line in lines)

    async def stop(
        self, outcome: Outcome, facts: Mapping[str, Any], files: Iterable[Path] = ()
    ) -> Path:
        """Ends the trace, computes its metrics and returns the run folder.

        `facts` are the remaining manifest entries; `files` are copied into the folder.
        """
        self._trace.finish()
        for file in files:
            shutil.copy(file, self.folder)
        self._console.flush()
        if outcome.succeeded:
            outcome = await self._measured()
        manifest = {
            **self._facts,
            "host": f"{platform.node()}, {platform.platform()}",
            "started": self._started.isoformat(timespec="seconds"),
            **facts,
            "host_seconds": round(time.monotonic() - self._began, 3),
            "status": outcome.status,
            "message": outcome.message,
        }
        results.write_json(self.folder / results.MANIFEST, manifest)
        self._stack.close()
        return self.place

    async def _measured(self) -> Outcome:
        """Computes the metrics. A failure is reported in the outcome, and the trace is kept."""
        try:
            return await worker.measure(self.folder)
        except SchedlabError as error:
            return Outcome("unmeasured", f"the trace could not be measured: {error}")

    def discard(self) -> None:
        """Deletes the recording."""
        error = SchedlabError("discarded")
        with suppress(SchedlabError):
            self._stack.__exit__(SchedlabError, error, None)


def facts_of(
    setup: Setup, title: str, label: str, state: TraceState, software: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the manifest entries of a system that is being recorded.

    `title` describes the workloads. `software` has schedlab's commit and the machine's version and
    origin.
    """
    policy = state.policy or str(setup.policy)
    return {
        "format": results.FORMAT,
        "schedlab": __version__,
        "kind": KIND,
        "label": label,
        "workload": title,
        "policy": policy,
        "tunables": dict(state.tunables) or _given(setup, policy),
        "cpus": state.cpus,
        "seed": setup.seed,
        "tick_ns": setup.tick_ns,
        **_room(setup),
        "machine": setup.machine,
        "mode": "recorded live",
        "recorded_from_ns": state.time_ns,
        "commit": None,
        "machine_version": "",
        "machine_origin": "",
        **software,
    }


def _given(setup: Setup, policy: str) -> dict[str, int]:
    """Returns the initial tunables, which some machines do not write to their trace."""
    return dict(setup.settings) if policy == str(setup.policy) else {}


def _room(setup: Setup) -> dict[str, Any]:
    """Returns the entries that depend on the machine."""
    if setup.machine == "sim":
        return {"costs": setup.costs, "boot_arguments": f"--costs {setup.costs}"}
    return {"memory_mib": setup.memory_mib}


def free_name(place: Path) -> Path:
    """Returns a path that does not exist: `place`, or `place` with a number.

    Recordings of restarts thus have separate folders.
    """
    name, number = place, 2
    while name.exists():
        name, number = place.with_name(f"{place.name}-{number}"), number + 1
    return name
