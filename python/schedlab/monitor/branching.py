# SPDX-License-Identifier: MIT
"""Branches a run: repeats it up to a moment, applies a change, and shows both branches."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor import worker
from schedlab.monitor.recorder import facts_of
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused
from schedlab.monitor.systems.kernel import KernelSystem
from schedlab.monitor.systems.recorded import recorded_setup
from schedlab.monitor.trace_state import TraceState
from schedlab.monitor.watched_system import Watched
from schedlab.monitor.worker import Report
from schedlab.paths import new_runs_folder
from schedlab.runs import results
from schedlab.trace import read_records
from schedlab.units import format_time

_PIECE = 262_144


@dataclass(frozen=True)
class Change:
    """The changed policy or parameters of a branch."""

    policy: str
    """`name` or `name:preset`; empty if the policy stays the same."""
    settings: Sequence[tuple[str, int]]

    @property
    def commands(self) -> str:
        """The change as commands of the kernel (abi/machine_commands.h)."""
        policy = [f"sched_status {self.policy}"] if self.policy else []
        lines = [*policy, *(f"sched_tunables {name}={value}" for name, value in self.settings)]
        return "".join(f"{line}\n" for line in lines)


async def what_if(
    session: Session, system: Watched, at_ns: int, change: Change, show: Report
) -> dict[str, str]:
    """Runs and shows the unchanged and the changed branch of a moment, both paused at that moment.

    Returns the letters of both branches and the folder that stores them. Replaces branches shown
    earlier.

    Raises Refused if the system cannot be branched.
    """
    if system.system is None or system.system.no_branches:
        raise Refused(system.system.no_branches if system.system else "it has not begun yet")
    await system.stand()
    show("its past is repeated")
    source = system.setup.source
    out = new_runs_folder(f"branch-{source.name if source else system.setup.machine}")
    # The branch keeps the events of this moment; the change applies from the next nanosecond.
    if source:
        folders = await worker.branch(source, at_ns + 1, change.policy, change.settings, out, show)
    else:
        folders = await _of_live(session, system, at_ns + 1, change, out)
    letters = await session.show_futures(
        system, [recorded_setup(place) for place in folders], at_ns
    )
    session.recorded_folders.append(out)
    return {
        "unchanged": letters[0] if len(letters) > 1 else system.letter,
        "changed": letters[-1],
        "folder": str(out),
    }


async def _of_live(
    session: Session, system: Watched, at_ns: int, change: Change, out: Path
) -> list[Path]:
    """Runs the branches of a live system; returns their folders, the unchanged branch first."""
    assert isinstance(system.system, KernelSystem)
    changes = {out / "unchanged": Change("", ()), out / "changed": change}
    with ExitStack() as stack:
        folders = [stack.enter_context(results.new_folder(place)) for place in changes]
        commands = [other.commands for other in changes.values()]
        outcomes = await system.system.run_again(at_ns, dict(zip(folders, commands, strict=True)))
        for folder, other, outcome in zip(folders, changes.values(), outcomes, strict=True):
            if outcome.status == "refused":
                raise Refused(outcome.message)
            measured = await worker.measure(folder) if outcome.succeeded else outcome
            manifest = _manifest(session, system, at_ns, other, folder)
            manifest.update(status=measured.status, message=measured.message)
            results.write_json(folder / results.MANIFEST, manifest)
    return list(changes)


def _manifest(
    session: Session, system: Watched, at_ns: int, change: Change, folder: Path
) -> dict[str, Any]:
    """Returns a branch's manifest: the manifest of a recording, with the branch's source, time and change."""
    assert system.tape and system.system
    now = _state_at(folder, at_ns)
    facts = facts_of(system.setup, system.workload, "", system.tape.state, session.software)
    settings = {} if change.policy else dict(now.tunables)
    what = ", ".join([change.policy, *(f"{name}={value}" for name, value in change.settings)])
    return {
        **facts,
        "policy": change.policy or now.policy or str(system.setup.policy),
        "tunables": {**settings, **dict(change.settings)},
        "recorded_from_ns": 0,
        "repeatable": False,
        **({"branch": f"from {format_time(at_ns)} on: {what.strip(', ')}"} if what else {}),
        "branch_of": {
            "at_ns": at_ns,
            "policy": str(system.setup.policy),
            "tunables": dict(system.setup.settings),
            "seed": system.setup.seed,
            "told": change.commands.splitlines(),
            "own": sorted(system.system.monitor_pids),
        },
        "host": platform.node(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _state_at(folder: Path, at_ns: int) -> TraceState:
    """Returns a run's state just before a moment."""
    records = read_records(folder / TRACE_FILE)
    state = TraceState(records.header.cpus)
    for place in range(0, len(records), _PIECE):
        piece = records.piece(place, min(place + _PIECE, len(records)))
        later = piece["time"] >= at_ns
        state.apply(piece[: int(later.argmax())] if later.any() else piece)
        if later.any():
            break
    return state
