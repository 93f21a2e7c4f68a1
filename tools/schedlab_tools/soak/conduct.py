# SPDX-License-Identifier: MIT
"""Starts the parts of loads, samples them until the time is over, and ends them in order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import psutil

from schedlab.base.host.tied import tied
from schedlab_tools.soak.loads import PART_LOG, Load, Part

SHORTEST_PERIOD_S, LONGEST_PERIOD_S = 0.5, 30.0
SAMPLES = 600
"""So many are wanted of each figure."""
PATIENCE_S = 180.0
"""The time that a part has to end once its own time is over."""
GRACE_S = 5.0
"""The time that processes of a part have to end once the part itself has ended."""
_LOOK_S = 0.05
"""The time from one look for a signal, or for an end, to the next."""
_TERMINATED = (-signal.SIGTERM, 128 + signal.SIGTERM)
"""Statuses of a part that has obeyed SIGTERM."""
TEMPORARY = "temporary"
"""The folder of a load in which its parts make their temporary files."""


@dataclass(frozen=True)
class Sample:
    """A figure of a part at a moment."""

    load: str
    part: str
    seconds: float
    """Seconds since the soak began."""
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
    """What went wrong, by the name of the load; []: nothing did."""
    left: dict[str, list[str]] = field(default_factory=dict)
    """Temporary files that the parts of a load left behind, by the name of the load."""
    signal: int = 0
    """The signal that ended it early; 0: none did."""


@dataclass
class Asked:
    """What signals have asked for since the loads began."""

    signal: int = 0
    """The first one; 0: none has come."""
    hurry: bool = False
    """There was another: what does not end at once is ended by force."""


def conduct(
    loads: Sequence[Load],
    seconds: float,
    out: Path,
    show: Callable[[float, Mapping[str, Running]], object] = lambda _seconds, _parts: None,
) -> Soak:
    """Runs loads side by side for this many seconds, each in its folder of `out`, and samples them.

    `show` is called after each round of samples with the seconds that are over and the parts by
    their names. A load whose part fails is ended; the others go on. A signal ends the soak early:
    what was sampled counts. Nothing that was started is left when this returns.
    """
    made = [(load, load.make(seconds, out / load.name)) for load in loads]
    running: list[Running] = []
    soak = Soak(0)
    began = time.monotonic()
    with _signals_noted() as interruption:
        try:
            for load, parts in made:
                start(load, parts, out / load.name, running)
            period = min(max(seconds / SAMPLES, SHORTEST_PERIOD_S), LONGEST_PERIOD_S)
            for now in ticks(began, period, seconds, interruption):
                for part in running:
                    soak.samples += sample(part, now)
                check(running, interruption)
                show(now, {f"{part.load.name} {part.part.name}": part for part in running})
                if all(part.status is not None for part in running):
                    break
        finally:
            soak.seconds = time.monotonic() - began
            soak.signal = interruption.signal
            end(running, interruption, early=soak.seconds < seconds)
            for part in running:
                soak.samples += sample(part, soak.seconds)
    for load in loads:
        mine = [part for part in running if part.load is load]
        soak.problems[load.name] = [part.problem for part in mine if part.problem]
        soak.left[load.name] = left_in(out / load.name / TEMPORARY)
    return soak


@contextmanager
def _signals_noted() -> Iterator[Asked]:
    """Signals that would end schedlab are noted: wherever one comes, no part is lost sight of.

    SIGINT counts though it was ignored before, as a shell has it for what runs in the background: it
    is how a soak is ended. SIGHUP that is ignored stays so: `nohup` wants it.
    """
    interruption = Asked()

    def note(number: int, _frame: FrameType | None) -> None:
        interruption.hurry = bool(interruption.signal)
        interruption.signal = interruption.signal or number

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ticks(began: float, period: float, seconds: float, interruption: Asked) -> Iterator[float]:
    """Seconds since the beginning, a period apart, until the time is over or a signal comes."""
    while not interruption.signal and (now := time.monotonic() - began) < seconds:
        yield now
        limit = time.monotonic() + min(period, seconds - now)
        while not interruption.signal and (left := limit - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))


def start(load: Load, parts: Sequence[Part], folder: Path, running: list[Running]) -> None:
    """Starts the parts of a load, and adds each to `running`."""
    (folder / TEMPORARY).mkdir(parents=True)
    environment = {**os.environ, "TMPDIR": str(folder / TEMPORARY)}
    for part in parts:
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
        part_log = Told(folder / (part.told_in or PART_LOG.format(part.name)))
        watched = psutil.Process(process.pid)
        running.append(Running(load, part, folder, process, watched, part_log))


def sample(running: Running, now: float) -> list[Sample]:
    """What a part has of the host, and what it has told since the last time."""
    figures = host_figures(running.watched) if running.status is None else {}
    for log_line in running.told.read():
        figures |= log_line
    names = running.load.name, running.part.name
    return [Sample(*names, now, figure, value) for figure, value in figures.items()]


def check(running: Sequence[Running], interruption: Asked) -> None:
    """Notes which parts have ended. A part that ended too early, or badly, ends its load."""
    for part in running:
        if part.status is not None or part.process.poll() is None:
            continue
        settle(part, part.part.statuses)
        if part.part.ends_by is not None and not part.problem:
            part.problem = f"{part.part.name} ended before its time{tail(part.log)}"
        if part.problem:
            end([other for other in running if other.load is part.load], interruption, early=True)


def settle(running: Running, statuses: Sequence[int]) -> None:
    """Takes the status of a part that has ended, and ends what it left behind."""
    running.status = running.process.wait()
    if running.status not in statuses:
        how = f"ended with status {running.status}"
        running.problem = f"{running.part.name} {how}{tail(running.log)}"
    if end_group(running.process.pid, GRACE_S):
        running.problem = running.problem or f"{running.part.name} left processes behind"


def end(running: Sequence[Running], interruption: Asked, early: bool) -> None:
    """Ends parts in the order opposite to that of their start; by force, what does not end.

    `early`: those, too, that would end by themselves when their time is over.
    """
    for part in reversed(running):
        if part.status is not None:
            continue
        statuses = part.part.statuses
        if part.part.ends_by is not None:
            part.process.send_signal(part.part.ends_by)
        elif early:
            part.process.send_signal(signal.SIGTERM)
            statuses = (*statuses, *_TERMINATED)
        problem = "" if _ends(part, interruption) else _forced(part, interruption)
        settle(part, statuses)
        part.problem = problem or part.problem


def _ends(running: Running, interruption: Asked) -> bool:
    """Does it end while we wait for it?"""
    limit = time.monotonic() + PATIENCE_S
    while running.process.poll() is None:
        if interruption.hurry or time.monotonic() >= limit:
            return False
        time.sleep(_LOOK_S)
    return True


def _forced(running: Running, interruption: Asked) -> str:
    """Ends it by force; says why."""
    end_group(running.process.pid)
    name = running.part.name
    if interruption.hurry:
        return f"{name} was ended by force, at a second signal"
    return f"{name} did not end within {PATIENCE_S:.0f} s{tail(running.log)}"


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


TOLD = re.compile(r"^(?:\[[^\]]*\] )?soak ((?:\w+=-?\d+(?:\.\d+)? ?)+)\r?$")
"""A line by which a program tells figures of its own: soak free_pages=27747 processes=2."""

HOST_FIGURES = ("memory_bytes", "open_files", "processes", "threads")
"""Memory is what would come back to the host if the processes ended (the unique set size)."""


def tree(root: psutil.Process) -> list[psutil.Process]:
    """The process and all that descend from it, except those that have ended."""
    with suppress(psutil.Error):
        processes = [root, *root.children(recursive=True)]
        return [process for process in processes if process.status() != psutil.STATUS_ZOMBIE]
    return []


def host_figures(root: psutil.Process) -> dict[str, float]:
    """HOST_FIGURES of a process and its descendants; {} if it has ended.

    A process that ends meanwhile counts as far as it was read.
    """
    figures = dict.fromkeys(HOST_FIGURES, 0.0)
    processes = tree(root)
    for process in processes:
        with suppress(psutil.Error), process.oneshot():
            figures["memory_bytes"] += process.memory_full_info().uss
            figures["open_files"] += process.num_fds()
            figures["threads"] += process.num_threads()
            figures["processes"] += 1
    return figures if figures["processes"] else {}


@dataclass
class Told:
    """Figures that a part tells in its log, read as the log grows."""

    log: Path
    _position: int = 0
    _rest: bytes = field(default=b"")

    def read(self) -> Iterator[dict[str, float]]:
        """The figures of each line since the last call."""
        with suppress(FileNotFoundError), self.log.open("rb") as stream:
            stream.seek(self._position)
            data = stream.read()
            self._position += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                match = TOLD.match(line.decode(errors="replace"))
                if match:
                    pairs = (pair.split("=") for pair in match[1].split())
                    yield {name: float(value) for name, value in pairs}
