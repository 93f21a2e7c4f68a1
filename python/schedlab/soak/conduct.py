# SPDX-License-Identifier: MIT
"""Starts the parts of loads, samples them until the time is over, and ends them in order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from schedlab.machines.linux.guest import signals_raised, tied
from schedlab.soak.loads import PART_LOG, Load, Part
from schedlab.soak.sampling import Told, host_figures

SHORTEST_PERIOD_S, LONGEST_PERIOD_S = 0.5, 30.0
SAMPLES = 600
"""So many are wanted of each figure."""
PATIENCE_S = 180.0
"""For a part to end once its time is over."""
GRACE_S = 5.0
"""For what a part has started, once the part itself has ended."""
TEMPORARY = "temporary"
"""The folder of a load in which its parts make their temporary files."""


@dataclass(frozen=True)
class Sample:
    """A figure of a part at a moment."""

    load: str
    part: str
    seconds: float
    """Since the soak began."""
    figure: str
    value: float


@dataclass
class Running:
    """A part that was started, and what came of it."""

    load: Load
    part: Part
    folder: Path
    process: subprocess.Popen[bytes]
    watched: psutil.Process
    told: Told
    status: int | None = None
    problem: str = ""
    """Why it did not end as it should; "": it did."""

    @property
    def log(self) -> Path:
        return self.folder / PART_LOG.format(self.part.name)


@dataclass
class Soak:
    """What was seen."""

    seconds: float
    """How long it lasted."""
    samples: list[Sample] = field(default_factory=list)
    problems: dict[str, list[str]] = field(default_factory=dict)
    """By the name of the load: what went wrong; []: nothing."""
    left: dict[str, list[str]] = field(default_factory=dict)
    """By the name of the load: temporary files that its parts left behind."""


def conduct(
    loads: Sequence[Load],
    seconds: float,
    out: Path,
    show: Callable[[float, Mapping[str, Running]], object] = lambda _seconds, _parts: None,
) -> Soak:
    """Runs loads side by side for so many seconds, each in its folder of `out`, and samples them.

    `show` is called after each round of samples with the seconds that are over and the parts by
    their names. A load whose part fails is ended; the others go on. Ctrl-C ends the soak early: what
    was sampled counts. Nothing that was started is left when this returns.
    """
    running: list[Running] = []
    soak = Soak(0)
    began = time.monotonic()
    with signals_raised():
        try:
            for load in loads:
                running += start(load, seconds, out / load.name)
            began = time.monotonic()  # they may have been built before
            period = min(max(seconds / SAMPLES, SHORTEST_PERIOD_S), LONGEST_PERIOD_S)
            for now in ticks(began, period, seconds):
                for each in running:
                    soak.samples += sample(each, now)
                check(running)
                show(now, {f"{each.load.name} {each.part.name}": each for each in running})
                if all(each.status is not None for each in running):
                    break
        except KeyboardInterrupt:
            pass
        finally:
            soak.seconds = time.monotonic() - began
            end(running)
            for each in running:
                soak.samples += sample(each, soak.seconds)
    for load in loads:
        mine = [each for each in running if each.load is load]
        soak.problems[load.name] = [each.problem for each in mine if each.problem]
        soak.left[load.name] = left_in(out / load.name / TEMPORARY)
    return soak


def ticks(began: float, period: float, seconds: float) -> Iterator[float]:
    """Seconds since the beginning, a period apart, until the time is over."""
    while (now := time.monotonic() - began) < seconds:
        yield now
        time.sleep(max(0.0, min(period, seconds - now)))


def start(load: Load, seconds: float, folder: Path) -> list[Running]:
    """The parts of a load. If one cannot be started, none is left."""
    (folder / TEMPORARY).mkdir(parents=True)
    started: list[Running] = []
    environment = {**os.environ, "TMPDIR": str(folder / TEMPORARY)}
    try:
        for part in load.make(seconds, folder):
            with (folder / PART_LOG.format(part.name)).open("wb") as log:
                process = subprocess.Popen(
                    [*tied(), *part.command],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            told = Told(folder / (part.told_in or PART_LOG.format(part.name)))
            watched = psutil.Process(process.pid)
            started.append(Running(load, part, folder, process, watched, told))
    except BaseException:
        end(started)
        raise
    return started


def sample(running: Running, now: float) -> list[Sample]:
    """What a part has of the host, and what it has told since the last time."""
    figures = host_figures(running.watched) if running.status is None else {}
    for told in running.told.read():
        figures |= told
    names = running.load.name, running.part.name
    return [Sample(*names, now, figure, value) for figure, value in figures.items()]


def check(running: Sequence[Running]) -> None:
    """Notes which parts have ended. One that ended too early, or badly, ends its load."""
    for each in running:
        if each.status is not None or each.process.poll() is None:
            continue
        settle(each)
        if each.part.ends_by is not None and not each.problem:
            each.problem = f"{each.part.name} ended before its time{tail(each.log)}"
        if each.problem:
            end([other for other in running if other.load is each.load])


def settle(running: Running) -> None:
    """Takes the status of a part that has ended, and ends what it left behind."""
    running.status = running.process.wait()
    if running.status not in running.part.statuses:
        how = f"ended with status {running.status}"
        running.problem = f"{running.part.name} {how}{tail(running.log)}"
    if end_group(running.process.pid, GRACE_S):
        running.problem = running.problem or f"{running.part.name} left processes behind"


def end(running: Sequence[Running]) -> None:
    """Ends parts in the order opposite to that of their start; by force, what does not end."""
    for each in reversed(running):
        if each.status is not None:
            continue
        if each.part.ends_by is not None:
            each.process.send_signal(each.part.ends_by)
        try:
            each.process.wait(PATIENCE_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            each.problem = f"{each.part.name} did not end within {PATIENCE_S:.0f} s{tail(each.log)}"
            end_group(each.process.pid)
        problem = each.problem
        settle(each)
        each.problem = problem or each.problem


def end_group(group: int, grace_s: float = 0) -> bool:
    """Kills what is left of a process group after a grace. True: something was."""
    limit = time.monotonic() + grace_s
    with suppress(ProcessLookupError):
        while time.monotonic() < limit:
            os.killpg(group, 0)
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)
        return True
    return False


def tail(log: Path) -> str:
    """The last lines of a log, as the end of a message."""
    lines = log.read_text(errors="replace").strip().splitlines()[-8:]
    return "".join(f"\n    {line}" for line in ["; its last words:", *lines]) if lines else ""


def left_in(folder: Path) -> list[str]:
    """Names of what lies in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
