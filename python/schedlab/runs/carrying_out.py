# SPDX-License-Identifier: MIT
"""Carries out a plan: machines side by side, each in a folder that appears when it is whole."""

from __future__ import annotations

import asyncio
import platform
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schedlab import __version__
from schedlab.display.names import json_text
from schedlab.files.whole import file_hash
from schedlab.host.supervision import cancelled_by_signals, supervise, to_the_end
from schedlab.machines import SIMULATOR, machine_named
from schedlab.machines.base import Machine, Parts
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import Outcome, hung, read_console
from schedlab.machines.run import Run
from schedlab.runs import results
from schedlab.runs.plan import Plan
from schedlab.runs.printed import printed
from schedlab.runs.waiting import Waiting
from schedlab.units import format_time
from schedlab.workload.delays import delays_text

if TYPE_CHECKING:
    from schedlab.metrics import Metrics
    from schedlab.runs.progress import Board

T = TypeVar("T")


@dataclass(frozen=True)
class Finished:
    """A run that has ended, and what came of it."""

    run: Run
    folder: Path
    outcome: Outcome
    manifest: dict[str, Any]
    metrics: Metrics | None
    """None if there are none, or they were not asked for."""


@dataclass(frozen=True)
class Software:
    """What all runs of a plan start from."""

    parts: Parts
    """The parts of all machines, and the tools if a run has a workload file."""
    facts: dict[str, Any]


class Interrupted(Exception):
    """A signal ended it. What was finished is kept; `finished` says what that is, where it is known."""

    def __init__(self, number: int, finished: Sequence[Finished] = ()) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.finished = finished


@contextmanager
def software(
    parts: Mapping[str, Path], facts: dict[str, Any], tools: Mapping[str, Path] | None = None
) -> Iterator[Software]:
    """Copies of a machine's parts, so that a build during the runs does not change them.

    What tools make is another's to tell.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        copies = {
            name: Path(shutil.copy(path, Path(folder) / name))
            for name, path in {**parts, **(tools or {})}.items()
        }
        hashes = {f"{name}_sha256": file_hash(copies[name]) for name in parts}
        yield Software(copies, {**facts, **hashes})


def carry_out(
    plan: Plan,
    machine: Machine,
    base: Software,
    slots: int,
    board: Board,
    with_metrics: bool = True,
) -> list[Finished]:
    """Runs all, and returns them in the plan's order. Raises Interrupted on SIGINT, SIGTERM, SIGHUP.

    Metrics are on disk in any case; those of thousands of runs are too many to be given, too.
    """
    conductor = _Conductor(plan, machine, base, slots, board, with_metrics)
    return asyncio.run(conductor.conduct())


class _Conductor:
    """Keeps as many CPUs of the host busy as there are, and no more."""

    def __init__(
        self,
        plan: Plan,
        machine: Machine,
        base: Software,
        slots: int,
        board: Board,
        with_metrics: bool,
    ) -> None:
        self.with_metrics = with_metrics
        self.plan = plan
        self.machine = machine
        self.base = base
        self.waiting = Waiting(
            ((run, min(slots, machine.host_cpus(run.cpus))) for run in plan.runs), slots
        )
        self.board = board
        self.finished: dict[Run, Finished] = {}

    async def conduct(self) -> list[Finished]:
        with cancelled_by_signals(asyncio.current_task()) as caught:
            begun: set[asyncio.Task[None]] = set()
            try:
                await self.all(begun)
            except asyncio.CancelledError:
                if not caught.number:
                    raise
            finally:
                for task in begun:
                    task.cancel()
                await asyncio.gather(*begun, return_exceptions=True)
        if caught.number:
            raise Interrupted(caught.number, self.in_order())
        return self.in_order()

    async def all(self, begun: set[asyncio.Task[None]]) -> None:
        """Carries out all runs. `begun` holds, at any time, those that are under way."""
        while True:
            begun |= {asyncio.create_task(self.one(run, n)) for run, n in self.waiting.begin()}
            if not begun:
                return
            done, _ = await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
            begun -= done
            for task in done:
                task.result()

    def in_order(self) -> list[Finished]:
        return [self.finished[run] for run in self.plan.runs if run in self.finished]

    async def one(self, run: Run, cpus: int) -> None:
        """Carries out a run that has this many CPUs of the host."""
        try:
            finished = await self.perform(run)
        finally:
            self.waiting.give_back(cpus)
        self.finished[run] = finished
        self.board.ended(run, finished.outcome)

    async def perform(self, run: Run) -> Finished:
        place = self.plan.folder / run.name
        with results.new_folder(place) as folder:
            manifest = self.manifest_before(run)
            self.board.started(run, folder / TRACE_FILE)
            began = time.monotonic()
            outcome = await self.run_machine(run, folder)
            manifest["host_seconds"] = round(time.monotonic() - began, 3)
            metrics, outcome = await to_the_end(asyncio.to_thread(evaluate, folder, outcome))
            manifest.update(status=outcome.status, message=outcome.message)
            if outcome.note:
                manifest["mode"] = outcome.note
            results.write_json(folder / results.MANIFEST, manifest)
        return Finished(run, place, outcome, manifest, metrics if self.with_metrics else None)

    async def run_machine(self, run: Run, folder: Path) -> Outcome:
        for name, text in run.files().items():
            (folder / name).write_text(text)
        seconds = self.machine.host_limit(run.cpus, run.limit_ns)
        console = folder / CONSOLE
        with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
            place = Path(scratch)
            starting = asyncio.to_thread(self.machine.start, run, self.base.parts, folder, place)
            command = await to_the_end(starting)
            status = await supervise(command, folder, console, seconds)
            ending = asyncio.to_thread(ended, self.machine, status, seconds, folder, place, console)
            return await to_the_end(ending)

    def manifest_before(self, run: Run) -> dict[str, Any]:
        return {
            **inputs(run, self.machine, self.base),
            "host": f"{platform.node()}, {platform.platform()}",
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }


def inputs(run: Run, machine: Machine, base: Software) -> dict[str, Any]:
    """What the manifest says of a run before it has begun."""
    from schedlab.toolchain.measuring import measuring_code

    release = machine.release()
    return {
        "format": results.FORMAT,
        "schedlab": __version__,
        **base.facts,
        "measuring": measuring_code(),
        "label": run.label,
        "workload": run.workload,
        **_given(run),
        **({"with": dict(run.changes)} if run.changes else {}),
        **({"delays": delays_text(run.delays)} if run.delays else {}),
        **({"shape": run.shape.name} if run.shape else {}),
        **({"ignore_limits": True} if run.ignore_limits else {}),
        "policy": str(run.policy),
        "tunables": dict(run.settings),
        "cpus": run.cpus,
        "seed": run.seed,
        "tick_ns": run.tick_ns,
        "limit_ns": run.limit_ns,
        "memory_mib": run.memory_mib,
        "boot_arguments": machine.arguments(run),
        "machine": machine.name,
        "machine_version": release.version,
        "machine_origin": release.origin,
        "repeatable": machine.repeatable,
        **({"mode": machine.note} if machine.note else {}),
    }


def _given(run: Run) -> dict[str, Any]:
    """What a run of a file is given: the file; on the simulator, the costs and the recording that
    it replays."""
    given = run.given
    if not given:
        return {}
    told: dict[str, Any] = {"workload_sha256": given.sha256}
    if run.machine == SIMULATOR:
        told["costs"] = run.costs.name
    return {**told, "replay_of": run.replay.facts} if run.replay else told


def ended(
    machine: Machine,
    status: int | None,
    seconds: float,
    folder: Path,
    scratch: Path,
    console: Path,
) -> Outcome:
    """What came of a machine's process; None: it had to be ended after `seconds`."""
    killed = -signal.SIGKILL
    outcome = machine.outcome(killed if status is None else status, folder, scratch, console)
    if status is not None:
        return outcome
    return replace(hung(seconds, read_console(console)), note=outcome.note)


def evaluate(
    folder: Path, outcome: Outcome, place: Path | None = None
) -> tuple[Metrics | None, Outcome]:
    """Checks the trace and computes the metrics, where the run left enough for that.

    They are written into `place`; None: into the run's folder.
    """
    if outcome.status not in ("success", "limit"):
        return None, outcome
    from polars.exceptions import PanicException  # which is no Exception

    try:
        return measure(folder, place), outcome
    except (
        Exception,
        PanicException,
    ) as error:  # whatever it is, the trace is kept, and the other runs go on
        words = traceback.format_exception_only(error)[-1].strip().replace(f"{folder}/", "")
        told = f"the trace could not be measured: {words}"
        return None, replace(outcome, status="unmeasured", message=told)


def measure(folder: Path, place: Path | None = None) -> Metrics:
    """Checks a run's trace, and writes its metrics beside it, or into `place`."""
    from schedlab import metrics

    computed = metrics.measure(folder / TRACE_FILE)
    computed.write(place or folder / results.METRICS)
    return computed


def as_json(finished: list[Finished], **more: Any) -> str:
    """The results for programs, and what is told besides them."""
    runs = [
        {
            "folder": str(each.folder),
            "manifest": each.manifest,
            "metrics": each.metrics.to_dict() if each.metrics else None,
            "printed": printed(each.folder, each.run.workload) if each.outcome.succeeded else {},
        }
        for each in finished
    ]
    return json_text({"schedlab": __version__, "runs": runs, **more}, indent=2)


def label(run: Run, several_seeds: bool) -> str:
    """The label of the run's column in a table."""
    seed = f", seed {run.seed}" if several_seeds else ""
    repeatable = machine_named(run.machine).repeatable
    mark = "" if repeatable else f" ({run.machine}: not repeatable)"
    return f"{run.title}{seed}{mark}"


def describe(finished: list[Finished]) -> Iterator[str]:
    """One message for each run that failed."""
    for each in finished:
        if not each.outcome.succeeded:
            title = f"{each.run.title}, seed {each.run.seed}"
            yield f"{title}: {each.outcome.message}\n  kept in {each.folder}"


def summary(runs: Sequence[Run]) -> str:
    """One line on what all runs of a plan share."""
    run = runs[0]
    shared = [each for each in run.settings if all(each in other.settings for other in runs)]
    settings = "".join(f", {name}={value}" for name, value in shared)
    note = machine_named(run.machine).note
    machine = f"{run.machine} ({note})" if note else run.machine
    return f"{run.workload_title} on {machine}, tick {format_time(run.tick_ns)}{settings}"
