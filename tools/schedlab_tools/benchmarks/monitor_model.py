# SPDX-License-Identifier: MIT
"""Measures how many records per second the live model processes, on one core of this host.

It follows the simulator's traces of busy machines as a monitor does. The follower reads pieces, and
the model processes them and creates five frames per second of the trace's rate. It also measures
how long it takes to explain the longest waits of a process.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import which

import click
from rich.table import Table

from schedlab.analysis.explanation.waits import QUEUED_KINDS
from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.build import WASM_MODULE, build, wasm_module
from schedlab.base.toolchain.policies import (
    DEFAULT_POLICY,
    Catalogue,
    find_policy_sharing_by,
    known_policies,
    read_catalogue,
)
from schedlab.commands.options import json_option
from schedlab.monitor.model import Model
from schedlab.monitor.standalone.build import PAGE
from schedlab.monitor.standalone.modules import bundled
from schedlab.monitor.trace_file import RecentRecords
from schedlab.monitor.wait_breakdown import WaitQuestion, break_down_waits
from schedlab.trace.bounds import TIME_MAX
from schedlab.trace.follow import Follower
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.targets import Aim, JudgedRow

FRAMES_A_SECOND = 5
RATE = 200_000
"""Records per second that a monitor must process."""
BLAME_MS = 500
"""Largest CPU time for explaining the waits of a process."""
_EXPLAINED_RECORDS = 100_000
_TALKER = 4
"""A process that waits often."""
_ROUNDS = 3
_PIECE = RATE // 50
"""Records per poll, if polled fifty times per second."""


@dataclass(frozen=True)
class Scene:
    """A run of the simulator that the model reads."""

    name: str
    processes: int
    cpus: int
    policy: str
    until_ns: int
    aim: int
    """Records per second."""


HOGS_AND_TALKERS = """
program root
  group root
  mark begin
  loop {half}
    fork hog
    fork talker
  end
  wait
program hog
  group hog
  loop
    run 3ms
  end
program talker
  group talker
  loop
    run 40us
    sleep 400us
  end
"""
"""Half of the processes compute; the other half wait between short bursts."""


def scenes(catalogue: Catalogue) -> Iterator[Scene]:
    """Yields demanding runs: many tickets, many changing levels, many processes."""
    tickets = find_policy_sharing_by(catalogue, "tickets").name
    levels = next(entry.name for entry in catalogue.values() if entry.boost)
    yield Scene(f"{tickets}-100", 100, 4, tickets, 1_500_000_000, 4_000_000)
    yield Scene(f"{levels}-100", 100, 4, levels, 3_000_000_000, 4_000_000)
    yield Scene(f"{DEFAULT_POLICY}-4096", 4096, 4, DEFAULT_POLICY, 1_500_000_000, 4_000_000)


@dataclass(frozen=True)
class Measured(JudgedRow):
    """The result of one scene."""

    name: str
    records: int
    frames: int
    records_per_second: float
    """Records per second of CPU time, including frames."""
    frame_ms: float
    """Mean CPU time of a frame."""
    aim: int
    blame_ms: float = 0.0
    """CPU time for explaining the waits of a process, in a trace of 100,000 records."""

    @property
    def verdict(self) -> str:
        """Returns whether the speed and the time for explanations meet their targets."""
        fast = self.records_per_second >= self.aim and self.blame_ms <= BLAME_MS
        return "met" if fast else "not met"


def measure() -> list[Measured]:
    """Returns the best round of each scene, because other load on the host can only slow it down."""
    times = []
    for scene in scenes(read_catalogue()):
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            trace = Path(folder) / "trace.bin"
            simulate(scene, trace)
            rounds = [follow(scene, trace) for _ in range(_ROUNDS)]
            blame_ms = min(explain_all_waits(trace) for _ in range(_ROUNDS))
        best = max(rounds, key=lambda one: one.records_per_second)
        times.append(replace(best, blame_ms=blame_ms))
    return times


def explain_all_waits(trace: Path) -> float:
    """Returns the CPU time for explaining waits in milliseconds, as in a monitor that holds this many records."""
    follower = Follower(trace)
    records = follower.poll(_EXPLAINED_RECORDS)
    assert follower.header
    recent = RecentRecords(follower.header)
    recent.add(records)
    now = int(records["time"].max())
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / "waits.bin"
        begin = time.process_time()
        recent.write(path, frozenset(), TIME_MAX, now)
        explanation = break_down_waits(
            path, WaitQuestion(_TALKER, QUEUED_KINDS, now, 0, None), known_policies()
        )
        took = time.process_time() - begin
    assert explanation["longest"]
    return 1000 * took


def simulate(scene: Scene, trace: Path) -> None:
    """Runs a simulation where half of the processes compute, and half wait between short bursts."""
    from schedlab_simulator import Simulator

    with Simulator(
        HOGS_AND_TALKERS.format(half=scene.processes // 2),
        policy=scene.policy,
        cpus=scene.cpus,
        tick_ns=200_000,
        trace=trace,
        trace_queues=True,
        processes=scene.processes + 16,
    ) as simulator:
        simulator.run(scene.until_ns)


def follow(scene: Scene, trace: Path) -> Measured:
    """Follows the trace as a monitor does, at the rate that it must sustain."""
    follower = Follower(trace)
    model: Model | None = None
    records = frames = 0
    frame_s = 0.0
    begin = time.process_time()
    while not follower.ended:
        piece = follower.poll(_PIECE)
        assert follower.header
        model = model or Model(follower.header, scene.policy, "equal")
        model.feed(piece)
        records += len(piece)
        if records * FRAMES_A_SECOND >= (frames + 1) * RATE:
            frames += 1
            frame_begin = time.process_time()
            model.frame()
            frame_s += time.process_time() - frame_begin
    took = time.process_time() - begin
    return Measured(
        scene.name, records, frames, records / took, 1000 * frame_s / max(frames, 1), scene.aim
    )


CPUS = 64
PROCESSES = 4096
_UNTIL_NS = 890_000_000
"""Results in a trace of 100 MB."""


@dataclass(frozen=True)
class PageTimes:
    """CPU seconds of a page's session."""

    records: int
    cpus: int
    ordering_s: float
    feeding_s: float
    """For the model alone."""
    taking_s: float
    """For the model and its snapshots, which steps backwards need."""
    seek_s: float
    """The longest of 20 seeks, including its frame."""
    copies_bytes: int

    def aims(self) -> list[Aim]:
        """Returns targets and results."""
        opening_s = self.ordering_s + self.taking_s
        return [
            Aim("opening it", opening_s, 5, "s"),
            Aim("3,000,000 records into the model", 3e6 * self.feeding_s / self.records, 1, "s"),
            Aim("the longest of 20 seeks", self.seek_s, 1, "s"),
            Aim("copies for seeks", self.copies_bytes / 1e6, 201.4, "MB"),
        ]


def measure_page() -> PageTimes | None:
    """Measures a page with a trace of 64 CPUs and 4,096 processes; returns None without Node.js."""
    node = which("node")
    if not node:
        return None
    wasm_module()
    scene = Scene(f"{DEFAULT_POLICY}-{PROCESSES}", PROCESSES, CPUS, DEFAULT_POLICY, _UNTIL_NS, 0)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        trace, script = Path(folder) / "trace.bin", Path(folder) / "measure.cjs"
        simulate(scene, trace)
        script.write_text(bundled(PAGE / "measure.js", {}))
        command = [node, str(script), str(WASM_MODULE), str(trace), DEFAULT_POLICY]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return PageTimes(**json.loads(output))


@click.command("monitor-model")
@json_option
def monitor_model(as_json: bool) -> None:
    """Measure how many records a second the live monitor takes in on this host.

    In CPU time of one core, with five frames for each 200,000 records; how long it takes to take the waits of
    a process apart, in a trace of 100,000; and how long a page takes to open a trace of 100 MB and to go to any
    of its moments, if there is Node.js. Exit status 1 if an aim is not met.
    """

    build("simulator")
    measured = measure()
    opened = measure_page()
    aims = opened.aims() if opened else []
    page = {**asdict(opened), "aims": [aim.to_dict() for aim in aims]} if opened else None
    finish(
        as_json,
        {"scenes": [one.to_dict() for one in measured], "page": page},
        (
            model_table(measured),
            page_table(opened) if opened else "The page was not measured: there is no node.",
        ),
        [*measured, *aims],
    )


def page_table(opened: PageTimes) -> Table:
    """Returns one row for each target."""
    title = f"A page and a trace of {opened.records:,} records, {opened.cpus} CPUs (CPU time)"
    table = new_table(title, "what", ">value", ">aim: at most", "aim")
    for aim in opened.aims():
        value, most = f"{aim.value:.2f} {aim.unit}", f"{aim.most:g} {aim.unit}"
        table.add_row(aim.name, value, most, aim.verdict)
    return table


def model_table(measured: list[Measured]) -> Table:
    """Returns one row for each scene."""
    title = "Records that the monitor takes in on one core of this host (CPU time)"
    figures = (">records", ">a second", ">aim: at least", ">a frame", ">waits, taken apart")
    table = new_table(title, "policy and processes", *figures, "aim")
    for one in measured:
        table.add_row(
            one.name,
            f"{one.records:,}",
            f"{one.records_per_second:,.0f}",
            f"{one.aim:,}",
            f"{one.frame_ms:.1f} ms",
            f"{one.blame_ms:.0f} ms",
            one.verdict,
        )
    return table
