# SPDX-License-Identifier: MIT
"""Branches a run: repeats it up to a moment, applies a change, and shows both branches."""

import platform
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor import worker
from schedlab.monitor.recorder import manifest_facts
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused
from schedlab.monitor.systems.kernel import KernelSystem
from schedlab.monitor.systems.recorded import recorded_setup
from schedlab.monitor.trace_state import TraceState
from schedlab.monitor.watched_system import WatchedSystem
from schedlab.monitor.worker import ReportProgress
from schedlab.paths import new_runs_folder
from schedlab.runs import results
from schedlab.runs.branches import BranchChanges
from schedlab.trace import read_records
from schedlab.units import format_time

_RECORDS_PER_READ = 262_144


async def branch_system(
    session: Session,
    system: WatchedSystem,
    at_ns: int,
    change: BranchChanges,
    report_progress: ReportProgress,
) -> dict[str, str]:
    """Runs and shows two branches of a system: one unchanged, one with `change`.

    Both are shown paused at the branch point `at_ns`. Returns the two new systems' letters, and the
    folder that stores the branches. Replaces the branches shown before. Raises Refused if the
    system cannot be branched.
    """
    if system.system is None or system.system.why_no_branches:
        raise Refused(
            system.system.why_no_branches if system.system else "it has not begun yet; try again"
        )
    await system.pause_if_possible()
    report_progress("its past is repeated")
    source = system.setup.source
    out = new_runs_folder(f"branch-{source.name if source else system.setup.machine}")
    # The branch point's events are kept; the change applies from the next nanosecond.
    if source:
        folders = await worker.branch(
            source, at_ns + 1, str(change.policy or ""), change.settings, out, report_progress
        )
    else:
        folders = await _branch_live(session, system, at_ns + 1, change, out)
    letters = await session.show_branches(
        system, [recorded_setup(place) for place in folders], at_ns
    )
    session.recorded_folders.append(out)
    return {
        "unchanged": letters[0] if len(letters) > 1 else system.letter,
        "changed": letters[-1],
        "folder": str(out),
    }


async def _branch_live(
    session: Session, system: WatchedSystem, at_ns: int, change: BranchChanges, out: Path
) -> list[Path]:
    """Runs the branches of a live system; returns their run folders, the unchanged branch first."""
    assert isinstance(system.system, KernelSystem)
    changes = {out / "unchanged": BranchChanges(), out / "changed": change}
    with ExitStack() as stack:
        folders = [stack.enter_context(results.create_run_folder(place)) for place in changes]
        commands = [
            "".join(f"{line}\n" for line in branch_changes.commands)
            for branch_changes in changes.values()
        ]
        outcomes = await system.system.run_again(at_ns, dict(zip(folders, commands, strict=True)))
        for folder, branch_changes, outcome in zip(
            folders, changes.values(), outcomes, strict=True
        ):
            if outcome.status == "refused":
                raise Refused(outcome.message, fix="Choose another change, or a later moment")
            measured = await worker.measure_run(folder) if outcome.succeeded else outcome
            manifest = _branch_manifest(session, system, at_ns, branch_changes, folder)
            manifest.update(status=measured.status, message=measured.message)
            results.write_json(folder / results.MANIFEST_FILE, manifest)
    return list(changes)


def _branch_manifest(
    session: Session, system: WatchedSystem, at_ns: int, change: BranchChanges, folder: Path
) -> dict[str, Any]:
    """Returns the manifest of a branch: a recording's manifest, plus the origin and the change."""
    assert system.tape and system.system
    state = _state_at(folder, at_ns)
    facts = manifest_facts(
        system.setup, system.workload_names, "", system.tape.state, session.software
    )
    settings = {} if change.policy else dict(state.tunables)
    changes_text = ", ".join(change.changes)
    return {
        **facts,
        "policy": str(change.policy or state.policy or system.setup.policy),
        "tunables": {**settings, **dict(change.settings)},
        "recorded_from_ns": 0,
        "repeatable": False,
        **({"branch": f"from {format_time(at_ns)} on: {changes_text}"} if changes_text else {}),
        "branch_of": {
            "at_ns": at_ns,
            "policy": str(system.setup.policy),
            "tunables": dict(system.setup.settings),
            "seed": system.setup.seed,
            "told": change.commands,
            "own": sorted(system.system.monitor_pids),
        },
        "host": platform.node(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _state_at(folder: Path, at_ns: int) -> TraceState:
    """Returns the state (queues, policy, processes) of a stored run just before a time (ns)."""
    records = read_records(folder / TRACE_FILE)
    state = TraceState(records.header.cpus)
    for index in range(0, len(records), _RECORDS_PER_READ):
        records_piece = records.piece(index, min(index + _RECORDS_PER_READ, len(records)))
        is_later = records_piece["time"] >= at_ns
        state.apply(records_piece[: int(is_later.argmax())] if is_later.any() else records_piece)
        if is_later.any():
            break
    return state
