# SPDX-License-Identifier: MIT
"""What is watched, kept as a run: with trace, metrics and manifest, as `./schedlab run` makes them."""

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
from schedlab.monitor.standing import Standing
from schedlab.monitor.system import Records, Setup
from schedlab.monitor.trace_file import TraceFile
from schedlab.runs import results
from schedlab.trace.model import Header

KIND = "monitor"
"""The kind in manifests: recorded while it was watched, and perhaps steered."""


class Recorder:
    """A recording under way. Its folder appears when it is whole, at the stop."""

    def __init__(
        self,
        place: Path,
        header: Header,
        facts: Mapping[str, Any],
        state: Standing,
        excluded: Iterable[int] = (),
        marks: bool = False,
    ) -> None:
        """`facts`: what the manifest says of the run, as of now. `state`: what stands now; if it
        is at the trace's beginning, the recording is all of the trace. `excluded`: as of
        Standing.opening; `marks`: as of TraceFile."""
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
        """Copies all of it so far, as a trace that ends here."""
        self._trace.copy(path)

    def add(self, records: Records) -> None:
        """Adds what comes next of the trace."""
        self._trace.add(records)

    def add_log(self, lines: Iterable[str]) -> None:
        """Adds what comes next of the console."""
        self._console.writelines(f"{line}\n" for line in lines)

    async def stop(
        self, outcome: Outcome, facts: Mapping[str, Any], files: Iterable[Path] = ()
    ) -> Path:
        """Ends the trace and computes its metrics; gives the run's folder. `facts`: what is known
        only now. `files`: are copied into it."""
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
        """Keeps the trace, whatever goes wrong with the metrics."""
        try:
            return await worker.measure(self.folder)
        except SchedlabError as error:
            return Outcome("unmeasured", f"the trace could not be measured: {error}")

    def discard(self) -> None:
        """Nothing of it is kept."""
        error = SchedlabError("discarded")
        with suppress(SchedlabError):
            self._stack.__exit__(SchedlabError, error, None)


def facts_of(
    setup: Setup, title: str, label: str, state: Standing, software: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns what a manifest says of a system that is being recorded.

    `title`: what runs there, in words. `software`: schedlab's commit, the machine's version and
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
    """Some machines begin with tunables of which their trace does not tell."""
    return dict(setup.settings) if policy == str(setup.policy) else {}


def _room(setup: Setup) -> dict[str, Any]:
    """Returns what only some machines have."""
    if setup.machine == "sim":
        return {"costs": setup.costs, "boot_arguments": f"--costs {setup.costs}"}
    return {"memory_mib": setup.memory_mib}


def free_name(place: Path) -> Path:
    """Returns the same place, or one with a number: what was started anew is recorded beside the others."""
    name, number = place, 2
    while name.exists():
        name, number = place.with_name(f"{place.name}-{number}"), number + 1
    return name
