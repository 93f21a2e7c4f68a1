# SPDX-License-Identifier: MIT
"""Performs branches of stored runs.

A machine repeats the stored run up to the branch point, and forks there: one process per branch.
Each branch is stored like a run. Either all branches are stored, or none.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from filecmp import cmp
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import say
from schedlab.base.host.disk import DiskWatch
from schedlab.base.host.processor import count_host_cpus
from schedlab.base.host.supervision import catch_signals, supervise
from schedlab.base.toolchain.policies import check_choices, read_catalogue
from schedlab.base.toolchain.versions import process_facts
from schedlab.errors import SchedlabError, WrongUsage, format_parameter
from schedlab.machines import Branching
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE
from schedlab.machines.outcome import describe_tail, read_console
from schedlab.machines.spec import RunSpec
from schedlab.runs import results
from schedlab.runs.branches import BranchChanges, BranchSource
from schedlab.runs.parts import build_parts
from schedlab.runs.plan_execution import (
    Finished,
    Interrupted,
    Software,
    copy_software,
    manifest_inputs,
)
from schedlab.runs.worker import evaluate_run, judge_ended_machine

if TYPE_CHECKING:
    from schedlab.metrics import Metrics

_BRANCH_FAILED = "the machine did not reach the moment of its branches"
_BRANCH_FIX = "choose an earlier moment, or repeat the original run first"


def check_branches(source: BranchSource, at_ns: int, branches: Sequence[BranchChanges]) -> None:
    """Raises WrongUsage if one of the changes is impossible at the time `at_ns`."""
    catalogue = read_catalogue()
    active_policy, _ = source.policy_at(at_ns)
    for branch in branches:
        check_choices(catalogue, [branch.policy or active_policy], dict(branch.settings))
        source.commands(branch, at_ns)
    names = [branch.name for branch in branches]
    for name in names:
        if names.count(name) > 1:
            raise WrongUsage(
                f"two branches would have the name {name}; run the command once for each"
            )


def perform_branches(
    past: BranchSource, at_ns: int, branches: Sequence[BranchChanges], out: Path
) -> list[Finished]:
    """Performs the branches of one run from the time `at_ns` on; returns the finished runs in
    order.

    Raises WrongUsage if a change is impossible. On a signal, raises Interrupted and keeps no
    branch.
    """
    check_branches(past, at_ns, branches)
    specs = {branch.name: past.branch_spec(branch, at_ns) for branch in branches}
    return perform_branch_specs(specs, out, lambda base: _describe_differences(past, base))


def perform_branch_specs(
    specs: Mapping[str, RunSpec],
    out: Path,
    notes: Callable[[Software], list[str]] = lambda _base: [],
) -> list[Finished]:
    """Performs branches of one run that all begin at the same time.

    `specs`: the branches by name; each branch is stored in the folder `out`/name. On a signal,
    raises Interrupted and keeps no branch.
    """
    past = next(iter(specs.values())).past
    machine = past.machine
    if not isinstance(machine, Branching):
        raise WrongUsage(
            f"{past.machine} has no branches, so the manifest of {next(iter(specs))} was changed;"
            " make the branch again"
        )
    for name in specs:
        if (out / name).exists():
            raise WrongUsage(
                f"already contains {name}",
                what=format_parameter("out", out),
                fix="name another folder",
            )
    machine.release()
    tools = machine.tools if past.file else ()
    parts = build_parts((*machine.parts, *tools))
    machine_parts = {name: parts.pop(name) for name in machine.parts}
    with copy_software(machine_parts, process_facts(), parts) as base:
        for line in notes(base):
            say(line)
        return _Branching(past, specs, base, out).carry_out()


def _describe_differences(past: BranchSource, base: Software) -> list[str]:
    """Returns a message for each input that differs from the stored run, such as another kernel."""
    present_inputs = manifest_inputs(past.run, base)
    differing = [
        f"{what} ({results.shorten_entry(key, past.manifest)}, now {results.shorten_entry(key, present_inputs)})"
        for key, what in results.DECISIVE_INPUTS.items()
        if key != "measuring" and past.manifest.get(key) != present_inputs.get(key)
    ]
    if not differing:
        return []
    return [
        f"schedlab: {past.folder} was made with another {', '.join(differing)}: its past is run with"
        " today's, and may be another past"
    ]


class _Branching:
    """Repeats a stored run up to the branch point, and performs its branches."""

    def __init__(
        self,
        past: RunSpec,
        specs: Mapping[str, RunSpec],
        base: Software,
        out: Path,
    ) -> None:
        self.past = past
        self.specs = specs
        self.machine = past.machine
        self.base = base
        self.out = out

    def carry_out(self) -> list[Finished]:
        """Returns all branches, after the run was repeated up to the branch point."""
        with catch_signals() as self.caught, ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-")))
            folders = {
                name: stack.enter_context(results.create_run_folder(self.out / name))
                for name in self.specs
            }
            stack.enter_context(working(f"{len(folders)} branches"))
            self.run_machine(folders, scratch)
            finished = [self.finish(name, folder, scratch) for name, folder in folders.items()]
            self.check_interrupted()
        return finished

    def check_interrupted(self) -> None:
        if self.caught.number:
            raise Interrupted(self.caught.number)

    def run_machine(self, folders: Mapping[str, Path], scratch: Path) -> None:
        """Runs the machine. Raises SchedlabError if the machine did not reach the branch point."""
        path = scratch / "past"
        path.mkdir()
        self.past.write_files(path)
        command = self.machine.prepare_command(self.past, self.base.parts, path, scratch)
        branches = {name: spec.branch for name, spec in self.specs.items() if spec.branch}
        commands_by_folder = {folders[name]: branch.commands for name, branch in branches.items()}
        (at_ns,) = {branch.at_ns for branch in branches.values()}
        assert isinstance(self.machine, Branching)
        command = self.machine.branched(command, at_ns, commands_by_folder, count_host_cpus())
        seconds = self.seconds()
        disk = DiskWatch(scratch, *folders.values())
        status = supervise(
            command,
            path,
            scratch / CONSOLE_FILE,
            seconds,
            lambda: bool(self.caught.number) or disk.has_problem(),
        )
        self.check_interrupted()
        if disk.problem:
            raise SchedlabError(f"{_BRANCH_FAILED}: {disk.problem}")
        if status != 0:
            console = read_console(scratch / CONSOLE_FILE)
            why = f"within {seconds:.0f} s" if status is None else f"and ended with status {status}"
            raise SchedlabError(f"{_BRANCH_FAILED} {why}; {_BRANCH_FIX}{describe_tail(console)}")

    def seconds(self) -> float:
        """Returns the time limit in host seconds."""
        limit = self.machine.host_limit(self.past.cpus, self.past.limit_ns)
        return (1 + len(self.specs)) * limit

    def finish(self, name: str, folder: Path, scratch: Path) -> Finished:
        """Completes the run folder of a branch: manifest, trace and metrics."""
        assert isinstance(self.machine, Branching)
        status = self.machine.branch_status(folder)
        self.past.write_files(folder)
        outcome = judge_ended_machine(
            self.machine, status, self.seconds(), folder, scratch, folder / CONSOLE_FILE
        )
        metrics, outcome = evaluate_run(folder, outcome)
        manifest = {
            **manifest_inputs(self.specs[name], self.base),
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "status": outcome.status,
            "message": outcome.message,
        }
        results.write_json(folder / results.MANIFEST_FILE, manifest)
        return Finished(self.specs[name], self.out / name, outcome, manifest, metrics)


def equals_stored_run(past: BranchSource, unchanged: Finished) -> bool:
    """Returns whether the unchanged branch's trace equals the stored run's trace, byte for byte."""
    return all(
        cmp(past.folder / name, unchanged.folder / name, shallow=False)
        for name in (TRACE_FILE, CONSOLE_FILE)
    )


def metrics_since(finished: Finished, at_ns: int) -> Metrics | None:
    """Returns the metrics of the measured window after `at_ns`, or None if the window ends before."""
    from schedlab import metrics, trace

    if not finished.metrics:
        return None
    recorded = trace.read(finished.folder / TRACE_FILE)
    if metrics.measured_window(recorded).end_ns <= at_ns:
        return None
    return metrics.compute(recorded, since_ns=at_ns)
