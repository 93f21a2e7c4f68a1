# SPDX-License-Identifier: MIT
"""Performs branches of stored runs.

A machine repeats the run until the branch point, and forks into the branches there. Each branch is
stored like a run; either all branches are stored, or none.
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
from schedlab.base.host.processor import host_processors
from schedlab.base.host.supervision import signals_caught, supervise
from schedlab.base.toolchain.policies import check_choices, read_catalogue
from schedlab.base.toolchain.versions import sitting
from schedlab.errors import SchedlabError, WrongUsage, parameter
from schedlab.machines import Branching
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import read_console, tail_of
from schedlab.machines.spec import RunSpec
from schedlab.runs import results
from schedlab.runs.branches import Future, Past
from schedlab.runs.parts import supply
from schedlab.runs.plan_execution import (
    Finished,
    Interrupted,
    Software,
    inputs,
    software,
)
from schedlab.runs.worker import ended, evaluate

if TYPE_CHECKING:
    from schedlab.metrics import Metrics

_BRANCH_FAILED = "the machine did not come to its branches"
_BRANCH_FIX = "choose an earlier moment, or repeat the original run first"


def check(history: Past, at_ns: int, futures: Sequence[Future]) -> None:
    """Raises WrongUsage if one of the changes is impossible at this moment."""
    catalogue = read_catalogue()
    now, _ = history.under(at_ns)
    for future in futures:
        check_choices(catalogue, [future.policy or now], dict(future.settings))
        history.commands(future, at_ns)
    names = [future.name for future in futures]
    for name in names:
        if names.count(name) > 1:
            raise WrongUsage(f"two branches would have the name {name}; run the command twice")


def perform(past: Past, at_ns: int, futures: Sequence[Future], out: Path) -> list[Finished]:
    """Performs the branches, and returns the finished runs in the given order.

    Raises WrongUsage if a change is impossible. On a signal, raises Interrupted and keeps no
    branch.
    """
    check(past, at_ns, futures)
    specs = {future.name: past.future(future, at_ns) for future in futures}
    return carry_out(specs, out, lambda base: _differences(past, base))


def carry_out(
    specs: Mapping[str, RunSpec],
    out: Path,
    notes: Callable[[Software], list[str]] = lambda _base: [],
) -> list[Finished]:
    """Performs branches of one run at one moment.

    The folder of each branch is in `out`, and has the branch's name. On a signal, raises
    Interrupted and keeps no branch.
    """
    past = next(iter(specs.values())).past
    machine = past.machine
    if not isinstance(machine, Branching):
        raise WrongUsage(
            f"{past.machine} has no branches; the manifest of {next(iter(specs))} is wrong"
        )
    for name in specs:
        if (out / name).exists():
            raise WrongUsage(
                f"already contains {name}", what=parameter("out", out), fix="name another folder"
            )
    machine.release()
    tools = machine.tools if past.file else ()
    parts = supply((*machine.parts, *tools))
    machine_parts = {name: parts.pop(name) for name in machine.parts}
    with software(machine_parts, sitting(), parts) as base:
        for line in notes(base):
            say(line)
        return _Branching(past, specs, base, out).carry_out()


def _differences(past: Past, base: Software) -> list[str]:
    """Returns messages about inputs that differ from the stored run, such as another kernel."""
    now = inputs(past.run, base)
    other = [
        f"{what} ({results.shown(key, past.manifest)}, now {results.shown(key, now)})"
        for key, what in results.DECISIVE.items()
        if key != "measuring" and past.manifest.get(key) != now.get(key)
    ]
    if not other:
        return []
    return [
        f"schedlab: {past.folder} was made with another {', '.join(other)}: its past is run with"
        " today's, and may be another past"
    ]


class _Branching:
    """Repeats one run up to the branch point, and performs its branches."""

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
        with signals_caught() as self.caught, ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-")))
            folders = {
                name: stack.enter_context(results.new_folder(self.out / name))
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
        place = scratch / "past"
        place.mkdir()
        self.past.write_files(place)
        command = self.machine.start(self.past, self.base.parts, place, scratch)
        branches = {name: spec.branch for name, spec in self.specs.items() if spec.branch}
        commands_by_folder = {folders[name]: branch.commands for name, branch in branches.items()}
        (at_ns,) = {branch.at_ns for branch in branches.values()}
        assert isinstance(self.machine, Branching)
        command = self.machine.branched(command, at_ns, commands_by_folder, host_processors())
        seconds = self.seconds()
        disk = DiskWatch(scratch, *folders.values())
        status = supervise(
            command,
            place,
            scratch / CONSOLE,
            seconds,
            lambda: bool(self.caught.number) or disk.has_problem(),
        )
        self.check_interrupted()
        if disk.problem:
            raise SchedlabError(f"{_BRANCH_FAILED}: {disk.problem}")
        if status != 0:
            console = read_console(scratch / CONSOLE)
            why = f"within {seconds:.0f} s" if status is None else f"and ended with status {status}"
            raise SchedlabError(f"{_BRANCH_FAILED} {why}; {_BRANCH_FIX}{tail_of(console)}")

    def seconds(self) -> float:
        """Returns the host time limit in seconds."""
        limit = self.machine.host_limit(self.past.cpus, self.past.limit_ns)
        return (1 + len(self.specs)) * limit

    def finish(self, name: str, folder: Path, scratch: Path) -> Finished:
        """Completes the folder of a branch's run."""
        assert isinstance(self.machine, Branching)
        status = self.machine.branch_status(folder)
        self.past.write_files(folder)
        outcome = ended(self.machine, status, self.seconds(), folder, scratch, folder / CONSOLE)
        metrics, outcome = evaluate(folder, outcome)
        manifest = {
            **inputs(self.specs[name], self.base),
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "status": outcome.status,
            "message": outcome.message,
        }
        results.write_json(folder / results.MANIFEST, manifest)
        return Finished(self.specs[name], self.out / name, outcome, manifest, metrics)


def is_the_run(past: Past, unchanged: Finished) -> bool:
    """True if the trace of the unchanged branch equals the stored run's trace, byte for byte."""
    return all(
        cmp(past.folder / name, unchanged.folder / name, shallow=False)
        for name in (TRACE_FILE, CONSOLE)
    )


def metrics_since(finished: Finished, at_ns: int) -> Metrics | None:
    """Returns the metrics of the measured window after a moment, or None if the window ends before it."""
    from schedlab import metrics, trace

    if not finished.metrics:
        return None
    recorded = trace.read(finished.folder / TRACE_FILE)
    if metrics.measured_window(recorded).end_ns <= at_ns:
        return None
    return metrics.compute(recorded, since_ns=at_ns)
