# SPDX-License-Identifier: MIT
"""Carries out branches: a past once more, on a machine that forks at the moment, and each future in
a folder of its own, as any run. All are there at the end, or none."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from filecmp import cmp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.display.terminal import messages, say
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.files.whole import file_hash
from schedlab.host.supervision import cancelled_by_signals, supervise, to_the_end
from schedlab.machines import Branching, machine_named
from schedlab.machines.base import Machine
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import read_console, tail_of
from schedlab.runs import results
from schedlab.runs.branches import Future, Past
from schedlab.runs.carrying_out import (
    Finished,
    Interrupted,
    Software,
    ended,
    evaluate,
    inputs,
    software,
)
from schedlab.runs.parts import supply
from schedlab.toolchain.build import host_processors
from schedlab.toolchain.versions import sitting
from schedlab.units import format_time

if TYPE_CHECKING:
    from schedlab.metrics import Metrics

_BRANCH_FAILED = "the machine did not come to its branches"


def perform(past: Past, at_ns: int, futures: Sequence[Future], out: Path) -> list[Finished]:
    """Returns the futures in their order. Raises Interrupted on a signal; then nothing is left."""
    machine = machine_named(past.run.machine)
    for future in futures:
        if (out / future.name).exists():
            raise WrongUsage(f"--out {out}: it holds {future.name} already; name another folder")
    told = [past.commands(future, at_ns) for future in futures]
    machine.release()
    tools = machine.tools if past.run.file else ()
    found = supply((*machine.parts, *tools))
    own = {name: found.pop(name) for name in machine.parts}
    with software(own, sitting(), found) as base:
        for line in _differences(past, machine, base):
            say(line)
        branching = _Branching(past, at_ns, futures, told, machine, base, out)
        return asyncio.run(branching.carry_out())


def _differences(past: Past, machine: Machine, base: Software) -> list[str]:
    """What the past is now made of instead of what the run was made of, in words."""
    now = inputs(past.run, machine, base)
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
    """One past and its futures."""

    def __init__(
        self,
        past: Past,
        at_ns: int,
        futures: Sequence[Future],
        told: Sequence[str],
        machine: Machine,
        base: Software,
        out: Path,
    ) -> None:
        self.past = past
        self.at_ns = at_ns
        self.futures = futures
        self.told = told
        self.machine = machine
        self.base = base
        self.out = out

    async def carry_out(self) -> list[Finished]:
        with cancelled_by_signals(asyncio.current_task()) as caught:
            try:
                return await self.branch()
            except asyncio.CancelledError:
                if not caught.number:
                    raise
        raise Interrupted(caught.number)

    async def branch(self) -> list[Finished]:
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-")))
            folders = [
                stack.enter_context(results.new_folder(self.out / future.name))
                for future in self.futures
            ]
            stack.enter_context(messages().status(f"{len(folders)} branches"))
            await self.run_machine(folders, scratch)
            return [
                await to_the_end(asyncio.to_thread(self.finish, future, folder, scratch))
                for future, folder in zip(self.futures, folders, strict=True)
            ]

    async def run_machine(self, folders: list[Path], scratch: Path) -> None:
        """Raises SchedlabError if it did not come to the moment."""
        run = self.past.run
        place = scratch / "past"
        place.mkdir()
        for name, text in run.files().items():
            (place / name).write_text(text)
        starting = asyncio.to_thread(self.machine.start, run, self.base.parts, place, scratch)
        command = await to_the_end(starting)
        told = dict(zip(folders, self.told, strict=True))
        assert isinstance(self.machine, Branching)
        command = self.machine.branched(command, self.at_ns, told, host_processors())
        seconds = self.seconds()
        status = await supervise(command, place, scratch / CONSOLE, seconds)
        if status != 0:
            console = read_console(scratch / CONSOLE)
            why = f"within {seconds:.0f} s" if status is None else f"and ended with status {status}"
            raise SchedlabError(f"{_BRANCH_FAILED} {why}{tail_of(console)}")

    def seconds(self) -> float:
        """Returns the seconds of the host after which it must be hanging."""
        run = self.past.run
        return (1 + len(self.futures)) * self.machine.host_limit(run.cpus, run.limit_ns)

    def finish(self, future: Future, folder: Path, scratch: Path) -> Finished:
        """Makes a run's folder of what a branch left."""
        assert isinstance(self.machine, Branching)
        status = self.machine.branch_status(folder)
        for name, text in self.past.run.files().items():
            (folder / name).write_text(text)
        outcome = ended(self.machine, status, self.seconds(), folder, scratch, folder / CONSOLE)
        metrics, outcome = evaluate(folder, outcome)
        manifest = self.manifest(future)
        manifest.update(status=outcome.status, message=outcome.message)
        results.write_json(folder / results.MANIFEST, manifest)
        run = self.past.future(future, self.at_ns)
        return Finished(run, self.out / future.name, outcome, manifest, metrics)

    def manifest(self, future: Future) -> dict[str, Any]:
        """As of any run: under what it went on, and of what it is a branch."""
        run = self.past.run
        changes = (*future.changes, *(() if future.seed is None else ("another seed",)))
        told = f"from {format_time(self.at_ns)} on: {', '.join(changes)}"
        return {
            **inputs(self.past.future(future, self.at_ns), self.machine, self.base),
            "boot_arguments": self.machine.arguments(run),
            **({"branch": told} if changes else {}),
            "branch_of": {
                "run": self.past.folder.name,
                "trace_sha256": file_hash(self.past.folder / TRACE_FILE),
                "at_ns": self.at_ns,
                "policy": str(run.policy),
                "tunables": dict(run.settings),
                "seed": run.seed,
                "told": self.past.commands(future, self.at_ns).splitlines(),
            },
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }


def is_the_run(past: Past, unchanged: Finished) -> bool:
    """Whether the unchanged future is the run itself, byte for byte."""
    return all(
        cmp(past.folder / name, unchanged.folder / name, shallow=False)
        for name in (TRACE_FILE, CONSOLE)
    )


def metrics_since(finished: Finished, at_ns: int) -> Metrics | None:
    """Returns the metrics of what comes after a moment in the measured window, or None if nothing does."""
    from schedlab import metrics, trace

    if not finished.metrics:
        return None
    found = trace.read(finished.folder / TRACE_FILE)
    if metrics.measured_window(found).end_ns <= at_ns:
        return None
    return metrics.compute(found, since_ns=at_ns)
