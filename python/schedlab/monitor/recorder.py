# SPDX-License-Identifier: MIT
"""Records a watched system into a run folder.

The folder has the same files as that of `./schedlab run`: trace, metrics and manifest.
"""

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
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.monitor import worker
from schedlab.monitor.system import Records, Setup
from schedlab.monitor.trace_file import TraceFile
from schedlab.monitor.trace_state import TraceState
from schedlab.runs import results
from schedlab.trace.model import Header

RECORDING_KIND = "monitor"
"""Manifest entry `kind` of live recordings: a user may have controlled the system during the recording."""


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
        """Starts a recording. `facts` are the manifest entries known so far.

        `state` is the system's current state. If `state` has seen no records, the recording is the
        complete trace. `excluded`: PIDs as in `TraceState.opening`. `marks`: as in `TraceFile`.
        """
        self.path = place
        self._facts = dict(facts)
        self._began_s = time.monotonic()
        self._started = datetime.now(timezone.utc)
        self._stack = ExitStack()
        self.folder = self._stack.enter_context(results.create_run_folder(place))
        try:
            self._console = self._stack.enter_context((self.folder / CONSOLE_FILE).open("w"))
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
            outcome = await self._compute_metrics()
        manifest = {
            **self._facts,
            "host": f"{platform.node()}, {platform.platform()}",
            "started": self._started.isoformat(timespec="seconds"),
            **facts,
            "host_seconds": round(time.monotonic() - self._began_s, 3),
            "status": outcome.status,
            "message": outcome.message,
        }
        results.write_json(self.folder / results.MANIFEST_FILE, manifest)
        self._stack.close()
        return self.path

    async def _compute_metrics(self) -> Outcome:
        """Computes the metrics of the recording. A failure goes to the outcome; the trace is kept."""
        try:
            return await worker.measure_run(self.folder)
        except SchedlabError as error:
            return Outcome(
                "unmeasured", f"the trace could not be measured; record it again: {error}"
            )

    def discard(self) -> None:
        """Deletes the recording."""
        error = SchedlabError("discarded")
        with suppress(SchedlabError):
            self._stack.__exit__(SchedlabError, error, None)


def manifest_facts(
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
        "kind": RECORDING_KIND,
        "label": label,
        "workload": title,
        "policy": policy,
        "tunables": dict(state.tunables) or _initial_tunables(setup, policy),
        "cpus": state.cpus,
        "seed": setup.seed,
        "tick_ns": setup.tick_ns,
        **_machine_entries(setup),
        "machine": setup.machine,
        "mode": "recorded live",
        "recorded_from_ns": state.time_ns,
        "commit": None,
        "machine_version": "",
        "machine_origin": "",
        **software,
    }


def _initial_tunables(setup: Setup, policy: str) -> dict[str, int]:
    """Returns the initial tunables, which some machines do not write to their trace."""
    return dict(setup.settings) if policy == str(setup.policy) else {}


def _machine_entries(setup: Setup) -> dict[str, Any]:
    """Returns the manifest entries that only this kind of machine has."""
    if setup.machine == "sim":
        return {"costs": setup.costs, "boot_arguments": f"--costs {setup.costs}"}
    return {"memory_mib": setup.memory_mib}


def free_path(path: Path) -> Path:
    """Returns `path` if it does not exist yet, or else `path` with the first free number.

    Recordings of restarts thus have separate folders.
    """
    name, number = path, 2
    while name.exists():
        name, number = path.with_name(f"{path.name}-{number}"), number + 1
    return name
