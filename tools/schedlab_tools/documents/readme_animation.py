# SPDX-License-Identifier: MIT
"""Generates the README's animation: three processes under round-robin, and under MLFQ with its levels and boosts."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import jinja2
import polars as pl

from schedlab import trace
from schedlab.base.display.numbers import duration
from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build
from schedlab.metrics import compute
from schedlab.paths import ROOT
from schedlab.report.charts.levels import find_boosts, find_stays, marks_in_span
from schedlab.report.charts.processes import Span, chart_processes
from schedlab.report.charts.theme import BLUE, OLIVE, SALMON
from schedlab.workload import workload_files
from schedlab.workload.text import encode_workload
from schedlab_tools.documents.shown_policies import shown

WORKLOAD = ROOT / "docs" / "typist.json"
INTERACTIVE_TASK = "typist"
TICK_NS = 10_000_000
SHOWN_NS = 1_600_000_000
_LIMIT_NS = 60_000_000_000
_COLOURS = (BLUE, SALMON, OLIVE)
_WIDTH, _HEIGHT = 420, 150
_BOX_WIDTH_MIN = 0.8
"""Pixels."""


@dataclass(frozen=True)
class Box:
    """A stay on the CPU, in pixels; the colour identifies the process."""

    x: float
    width: float
    row: int
    process: int


@dataclass(frozen=True)
class Panel:
    """One policy's half of the picture."""

    title: str
    rows: tuple[str, ...]
    has_levels: bool
    """If false, each process has a row."""
    waits: tuple[Box, ...]
    """Drawn at the level where the process runs next."""
    runs: tuple[Box, ...]
    boosts: tuple[float, ...]
    processes: tuple[str, ...]
    latency: str
    """The interactive process's waiting time: median and maximum."""


def picture() -> str:
    """Returns the SVG: two panels, and a cover that moves from left to right.

    A renderer without animations, or with `prefers-reduced-motion`, shows the whole picture: the
    covers are outside the visible area.
    """
    build(SIMULATOR_LIBRARY)
    panels = [_panel(**stairs_panel) for stairs_panel in shown()["stairs"]]
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("stairs.svg").render(
        panels=panels,
        colours=_COLOURS,
        person=INTERACTIVE_TASK,
        width=_WIDTH,
        height=_HEIGHT,
        seconds=SHOWN_NS / 1e9,
    )


def _panel(policy: str, tunables: dict[str, int], title: str) -> Panel:
    """Runs the workload under a policy and returns the panel of this run."""
    from schedlab_simulator import Simulator, Workload

    workload = Workload.of_file(
        encode_workload(workload_files.read_workload_file(WORKLOAD), 1, TICK_NS)
    )
    with TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / "trace.bin"
        with Simulator(
            workload, policy=policy, tunables=tunables, tick_ns=TICK_NS, trace=path
        ) as machine:
            machine.run(_LIMIT_NS)
        recorded = trace.read(path)
    return _panel_of_trace(recorded, title)


def _panel_of_trace(recorded: trace.Trace, title: str) -> Panel:
    processes = chart_processes(recorded)
    stays = find_stays(processes)
    span = Span(processes.window.begin_ns, processes.window.begin_ns + SHOWN_NS)
    workload_stays = span.clip(stays.filter(pl.col("role") == "workload"))
    labels = sorted(workload_stays["label"].unique(), key=lambda label: int(label.split()[0]))
    levels = sorted(workload_stays["level"].drop_nulls().unique(), reverse=True)

    def x(time_ns: int) -> float:
        """Returns the horizontal position of a time."""
        return round(_WIDTH * (time_ns - span.begin_ns) / SHOWN_NS, 1)

    def place(begin_ns: int, end_ns: int) -> tuple[float, float]:
        """Returns begin and width within the panel, which its cover hides at first."""
        width = max(round(x(end_ns) - x(begin_ns), 1), _BOX_WIDTH_MIN)
        return min(x(begin_ns), _WIDTH - width), width

    def boxes(frame: pl.DataFrame) -> tuple[Box, ...]:
        """Returns a box for each interval of a frame."""
        return tuple(
            Box(
                *place(begin, end),
                labels.index(label) if level is None else levels.index(level),
                labels.index(label),
            )
            for label, level, begin, end in frame.select(
                "label", "level", "begin_ns", "end_ns"
            ).iter_rows()
        )

    waits = processes.intervals().filter(
        pl.col("state") == "runnable", pl.col("role") == "workload"
    )
    at_level = waits.sort("begin_ns").join_asof(
        stays.select("label", "level", "begin_ns").sort("begin_ns"),
        on="begin_ns",
        by="label",
        strategy="forward",
        check_sortedness=False,
    )
    person = compute(recorded).groups.filter(pl.col("group") == INTERACTIVE_TASK)
    median, most = (person[f"wakeup_latency_{statistic}_ns"][0] for statistic in ("median", "max"))
    return Panel(
        title,
        tuple(f"level {level}" for level in levels) or tuple(map(_name, labels)),
        bool(levels),
        boxes(span.clip(at_level)),
        boxes(workload_stays),
        tuple(x(time) for time in marks_in_span(find_boosts(stays), span)["time_ns"]),
        tuple(map(_name, labels)),
        f"{duration(median)} at the median, {duration(most)} at most",
    )


def _name(label: str) -> str:
    """Returns the name of a process without its number."""
    return label.partition(" ")[2]
