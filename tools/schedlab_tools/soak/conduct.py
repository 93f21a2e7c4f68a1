# SPDX-License-Identifier: MIT
"""Starts the parts of loads, samples them until the time has elapsed, and ends them in order."""

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

from schedlab.base.host.isolated import complete_prefix
from schedlab_tools.soak.loads import PART_LOG, Load, Part

SHORTEST_PERIOD_S, LONGEST_PERIOD_S = 0.5, 30.0
SAMPLES_TARGET = 600
"""Target number of samples of each figure."""
END_TIMEOUT_S = 180.0
"""Seconds that a part has to end after its time has elapsed."""
GRACE_S = 5.0
"""Seconds that child processes have to end after their part has ended."""
_CHECK_INTERVAL_S = 0.05
"""Interval between checks for a signal or an end, in seconds."""
_TERMINATED = (-signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit statuses of a part that ended by SIGTERM."""
TEMPORARY = "temporary"
"""The folder for temporary files of a load's parts."""


@dataclass(frozen=True)
class Sample:
    """A figure of a part at a moment."""

    load: str
    part: str
    seconds: float
    """Seconds since the start of the soak."""
    figure: str
    value: float


@dataclass
class RunningPart:
    """A started part, and its result."""

    load: Load
    """The load that the part belongs to."""
    part: Part
    folder: Path
    process: subprocess.Popen[bytes]
    watched: psutil.Process
    log_reader: PartLog
    status: int | None = None
    problem: str = ""
    """Why it did not end normally; "" if it did."""

    @property
    def log(self) -> Path:
        """Returns the path of the part's log."""
        return self.folder / PART_LOG.format(self.part.name)


@dataclass
class Soak:
    """The results of a soak."""

    seconds: float
    """Its duration in seconds."""
    samples: list[Sample] = field(default_factory=list)
    problems: dict[str, list[str]] = field(default_factory=dict)
    """Problems by the name of the load; [] if there are none."""
    leftover_files: dict[str, list[str]] = field(default_factory=dict)
    """Temporary files left by a load's parts, by the name of the load."""
    signal: int = 0
    """The signal that ended it early; 0: none."""


@dataclass
class StopRequest:
    """Signals received since the loads started."""

    signal: int = 0
    """The first signal; 0: none."""
    hurry: bool = False
    """True after another signal: parts that do not end at once are killed."""


def conduct(
    loads: Sequence[Load],
    seconds: float,
    out: Path,
    show: Callable[[float, Mapping[str, RunningPart]], object] = lambda _seconds, _parts: None,
) -> Soak:
    """Runs loads in parallel for this many seconds, each in its folder of `out`, and samples them.

    `show` is called after each round of samples with the elapsed seconds and the parts by name. If
    a part fails, its load is ended; the others continue. A signal ends the soak early; samples so
    far are kept. All started processes have ended when this returns.
    """
    made = [(load, load.make(seconds, out / load.name)) for load in loads]
    running: list[RunningPart] = []
    soak = Soak(0)
    began = time.monotonic()
    with _signals_noted() as interruption:
        try:
            for load, parts in made:
                start(load, parts, out / load.name, running)
            period = min(max(seconds / SAMPLES_TARGET, SHORTEST_PERIOD_S), LONGEST_PERIOD_S)
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
        soak.leftover_files[load.name] = files_in(out / load.name / TEMPORARY)
    return soak


@contextmanager
def _signals_noted() -> Iterator[StopRequest]:
    """Records signals that would end schedlab, so that no part loses its supervisor.

    SIGINT is recorded even if it was ignored, as for background jobs of a shell, because it is the
    way to end a soak. An ignored SIGHUP stays ignored, for `nohup`.
    """
    interruption = StopRequest()

    def note(number: int, _frame: FrameType | None) -> None:
        """Notes a signal."""
        interruption.hurry = bool(interruption.signal)
        interruption.signal = interruption.signal or number

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous_handlers = {number: signal.signal(number, note) for number in numbers}
    try:
        yield interruption
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def ticks(
    began: float, period: float, seconds: float, interruption: StopRequest
) -> Iterator[float]:
    """Yields the elapsed seconds periodically, until the time has elapsed or a signal comes."""
    while not interruption.signal and (now := time.monotonic() - began) < seconds:
        yield now
        limit = time.monotonic() + min(period, seconds - now)
        while not interruption.signal and (leftover_files := limit - time.monotonic()) > 0:
            time.sleep(min(leftover_files, _CHECK_INTERVAL_S))


def start(load: Load, parts: Sequence[Part], folder: Path, running: list[RunningPart]) -> None:
    """Starts the parts of a load, and adds each to `running`."""
    (folder / TEMPORARY).mkdir(parents=True)
    environment = {**os.environ, "TMPDIR": str(folder / TEMPORARY)}
    for part in parts:
        with (folder / PART_LOG.format(part.name)).open("wb") as log:
            process = subprocess.Popen(
                [*complete_prefix(), *part.command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        part_log = PartLog(folder / (part.values_file or PART_LOG.format(part.name)))
        watched = psutil.Process(process.pid)
        running.append(RunningPart(load, part, folder, process, watched, part_log))


def sample(running: RunningPart, now: float) -> list[Sample]:
    """Returns a part's use of the host, and the values in its log since the last sample."""
    figures = host_figures(running.watched) if running.status is None else {}
    for log_line in running.log_reader.read():
        figures |= log_line
    names = running.load.name, running.part.name
    return [Sample(*names, now, figure, value) for figure, value in figures.items()]


def check(running: Sequence[RunningPart], interruption: StopRequest) -> None:
    """Records which parts have ended. A part that ended too early, or failed, ends its load."""
    for part in running:
        if part.status is not None or part.process.poll() is None:
            continue
        settle(part, part.part.statuses)
        if part.part.ends_by is not None and not part.problem:
            part.problem = f"{part.part.name} ended before its time{tail(part.log)}"
        if part.problem:
            end([other for other in running if other.load is part.load], interruption, early=True)


def settle(running: RunningPart, statuses: Sequence[int]) -> None:
    """Stores the exit status of a part, and kills its remaining processes."""
    running.status = running.process.wait()
    if running.status not in statuses:
        ending = f"ended with status {running.status}"
        running.problem = f"{running.part.name} {ending}{tail(running.log)}"
    if end_group(running.process.pid, GRACE_S):
        running.problem = running.problem or f"{running.part.name} left processes behind"


def end(running: Sequence[RunningPart], interruption: StopRequest, early: bool) -> None:
    """Ends parts in the reverse order of their start, by force if necessary.

    `early`: also ends parts that would end on their own later.
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
        problem = "" if _ends_in_time(part, interruption) else _kill(part, interruption)
        settle(part, statuses)
        part.problem = problem or part.problem


def _ends_in_time(running: RunningPart, interruption: StopRequest) -> bool:
    """True if the part ends within PATIENCE_S."""
    limit = time.monotonic() + END_TIMEOUT_S
    while running.process.poll() is None:
        if interruption.hurry or time.monotonic() >= limit:
            return False
        time.sleep(_CHECK_INTERVAL_S)
    return True


def _kill(running: RunningPart, interruption: StopRequest) -> str:
    """Kills the part; returns the reason."""
    end_group(running.process.pid)
    name = running.part.name
    if interruption.hurry:
        return f"{name} was ended by force, at a second signal"
    return f"{name} did not end within {END_TIMEOUT_S:.0f} s{tail(running.log)}"


def end_group(group: int, grace_s: float = 0) -> bool:
    """Kills the rest of a process group after a grace period. Returns True if there was any."""
    limit = time.monotonic() + grace_s
    with suppress(ProcessLookupError):
        while time.monotonic() < limit:
            os.killpg(group, 0)
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)
        return True
    return False


def tail(log: Path) -> str:
    """Returns the last lines of a log, as the end of a message."""
    lines = log.read_text(errors="replace").strip().splitlines()[-8:]
    return "".join(f"\n    {line}" for line in ["; its last words:", *lines]) if lines else ""


def files_in(folder: Path) -> list[str]:
    """Returns the names of the files in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


SOAK_LINE = re.compile(r"^(?:\[[^\]]*\] )?soak ((?:\w+=-?\d+(?:\.\d+)? ?)+)\r?$")
"""A line with values that a program reports: soak free_pages=27747 processes=2."""

HOST_FIGURES = ("memory_bytes", "open_files", "processes", "threads")
"""Memory is the unique set size, which the host would regain if the processes ended."""


def tree(root: psutil.Process) -> list[psutil.Process]:
    """Returns the process and its descendants, except ended ones."""
    with suppress(psutil.Error):
        processes = [root, *root.children(recursive=True)]
        return [process for process in processes if process.status() != psutil.STATUS_ZOMBIE]
    return []


def host_figures(root: psutil.Process) -> dict[str, float]:
    """Returns HOST_FIGURES of a process and its descendants; {} if it has ended.

    A process that ends while it is read counts partially.
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
class PartLog:
    """Values that a part reports in its log, read as the log grows."""

    log: Path
    _position: int = 0
    _rest: bytes = field(default=b"")

    def read(self) -> Iterator[dict[str, float]]:
        """Yields the values of each line since the last call."""
        with suppress(FileNotFoundError), self.log.open("rb") as stream:
            stream.seek(self._position)
            output = stream.read()
            self._position += len(output)
            *lines, self._rest = (self._rest + output).split(b"\n")
            for line in lines:
                match = SOAK_LINE.match(line.decode(errors="replace"))
                if match:
                    pairs = (pair.split("=") for pair in match[1].split())
                    yield {name: float(value) for name, value in pairs}
