# SPDX-License-Identifier: MIT
"""Draws a moment of a run as text and as a picture, next to the solution's run."""

from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase, digits

import jinja2
import polars as pl

from schedlab.base.display.names import map_texts
from schedlab.base.display.numbers import milliseconds
from schedlab.courses.grading.graded_run import GradedRun
from schedlab.metrics.intervals import cpu_intervals

_TICKS_BEFORE, _TICKS_AFTER = 16, 32
"""Ticks drawn before and after the moment."""
_SIGNS = ascii_uppercase + ascii_uppercase.lower() + digits
_IDLE_SIGN, _OTHER_SIGN, _NO_SIGN = "-", "*", " "


def draw_moment(
    submission_run: GradedRun, solution_run: GradedRun | None, at_ns: int, tick_ns: int
) -> str:
    """Draws each CPU's processes with one character per tick, for the process that ran longest in it.

    `solution_run` is the solution's run; its rows come first. A ^ marks the tick of `at_ns`.
    """
    begin, end = tick_range(at_ns, tick_ns)
    runs = (
        {"right": solution_run, "yours": submission_run}
        if solution_run
        else {"yours": submission_run}
    )
    groups = {
        **(solution_run.group_by_pid() if solution_run else {}),
        **submission_run.group_by_pid(),
    }
    rows: list[str] = []
    drawn_pids: set[int] = set()
    for title, run in runs.items():
        for cpu, lane in _cpu_lanes(run, begin, end, tick_ns):
            drawn_pids.update(pid for pid in lane if pid in groups)
            rows.append(f"{title} CPU {cpu:<2} {lane_text(lane, groups)}".rstrip())
    width = len("right CPU 0  ")
    ruler = f"{'ms':<{width}}{_ruler(begin, end, tick_ns, submission_run.window.begin_ns)}".rstrip()
    marker = " " * (width + at_ns // tick_ns - begin) + "^"
    legend = ", ".join(
        f"{process_sign(pid, groups)} {groups[pid]} ({pid})" for pid in sorted(drawn_pids)
    )
    return "\n".join(
        [ruler, *rows, marker, f"{legend}; {_IDLE_SIGN} idle" if legend else f"{_IDLE_SIGN} idle"]
    )


def tick_range(at_ns: int, tick_ns: int) -> tuple[int, int]:
    """Returns the range of ticks drawn around a time; the end is exclusive."""
    begin = max(at_ns // tick_ns - _TICKS_BEFORE, 0)
    return begin, begin + _TICKS_BEFORE + _TICKS_AFTER


def lane_text(lane: list[int | None], groups: dict[int, str]) -> str:
    """Returns the processes that a CPU ran, one character per tick."""
    return "".join(
        _NO_SIGN if pid is None else _IDLE_SIGN if pid == 0 else process_sign(pid, groups)
        for pid in lane
    )


def process_sign(pid: int, groups: dict[int, str]) -> str:
    """Returns the letter of a process, which is the same in all pictures of a workload."""
    index = sorted(groups).index(pid) if pid in groups else len(_SIGNS)
    return _SIGNS[index] if index < len(_SIGNS) else _OTHER_SIGN


def _ruler(begin: int, end: int, tick_ns: int, origin_ns: int) -> str:
    """Returns the line below the lanes that marks times."""
    text = ""
    for tick in range(begin, end):
        if (tick - begin) % 10 == 0:
            text = f"{text:<{tick - begin}}{(tick * tick_ns - origin_ns) / 1e6:g}"
    return text


def _cpu_lanes(
    run: GradedRun, begin: int, end: int, tick_ns: int
) -> list[tuple[int, list[int | None]]]:
    """Returns, for each CPU and tick, the process that ran longest; 0 for idle, None after the run's end."""
    table = cpu_intervals(run.trace).filter(
        (pl.col("end_ns") > begin * tick_ns) & (pl.col("begin_ns") < end * tick_ns)
    )
    run_times: dict[tuple[int, int], dict[int, int]] = {}
    for cpu, pid, first, last in table.select("cpu", "pid", "begin_ns", "end_ns").iter_rows():
        for tick in range(max(first // tick_ns, begin), min(-(-last // tick_ns), end)):
            spent = min(last, (tick + 1) * tick_ns) - max(first, tick * tick_ns)
            tick_times = run_times.setdefault((cpu, tick), {})
            tick_times[pid] = tick_times.get(pid, 0) + spent
    return [
        (cpu, [_longest_running(run_times.get((cpu, tick))) for tick in range(begin, end)])
        for cpu in range(run.trace.header.cpus)
    ]


def _longest_running(times: dict[int, int] | None) -> int | None:
    """Returns the task that ran longest in a tick; 0 for idle, None for no entry."""
    return max(times, key=lambda pid: (times[pid], -pid)) if times else None


_TEMPLATE = Path(__file__).with_name("timeline.svg")
_PALETTE = ("#0858f8", "#e86868", "#38a098", "#8848b8", "#888800", "#a84838", "#c868d8")
_OTHERS_COLOUR = "#606878"
"""Must match the reports' colours (templates/theme.css); importing them would take longer than grading."""
_LEFT, _TOP, _WIDTH, _LANE, _GAP = 96, 34, 720, 28, 10
"""Pixels, as for all following sizes."""
_BOX_WIDTH_MIN = 0.5
_TICKS_PER_LABEL = 8
_SIGN_WIDTH = 9
_KEYS_PER_ROW = 6


@dataclass(frozen=True)
class StayBox:
    """A process's stay on a CPU; `x` and `width` in pixels."""

    x: float
    width: float
    colour: str
    title: str
    sign: str
    """Empty if the letter does not fit."""


@dataclass(frozen=True)
class LaneRow:
    """A CPU of one of the runs, `y` pixels below the top."""

    title: str  # the run and the CPU
    y: float
    boxes: list[StayBox]


def draw_timeline(
    submission_run: GradedRun, solution_run: GradedRun, at_ns: int, tick_ns: int
) -> str:
    """Returns an SVG of the ticks around `at_ns`, which a dashed line marks.

    The solution's CPUs are above the submission's. Times count from the beginning of the measured
    window.
    """
    first, last = tick_range(at_ns, tick_ns)
    begin, end = first * tick_ns, last * tick_ns
    groups = {**solution_run.group_by_pid(), **submission_run.group_by_pid()}
    colours = {pid: _PALETTE[index % len(_PALETTE)] for index, pid in enumerate(sorted(groups))}
    scale = _WIDTH / (end - begin)
    origin = submission_run.window.begin_ns

    def x(time_ns: int) -> float:
        """Returns the horizontal position of a time."""
        return round(_LEFT + (min(max(time_ns, begin), end) - begin) * scale, 2)

    def box(pid: int, begin_ns: int, end_ns: int) -> StayBox:
        """Returns the box of a task's stay on a CPU."""
        name = f"{groups[pid]} ({pid})" if pid in groups else f"process {pid}"
        times = f"{milliseconds(begin_ns - origin)} to {milliseconds(end_ns - origin)}"
        width = round(max(x(end_ns) - x(begin_ns), _BOX_WIDTH_MIN), 2)
        letter = process_sign(pid, groups) if width >= _SIGN_WIDTH else ""
        return StayBox(
            x(begin_ns), width, colours.get(pid, _OTHERS_COLOUR), f"{name}: {times}", letter
        )

    rows: list[LaneRow] = []
    drawn_pids: set[int] = set()
    y = float(_TOP)
    for title, run in (("right", solution_run), ("yours", submission_run)):
        table = cpu_intervals(run.trace).filter(
            (pl.col("end_ns") > begin) & (pl.col("begin_ns") < end) & (pl.col("pid") != 0)
        )
        for cpu in range(run.trace.header.cpus):
            stays = table.filter(pl.col("cpu") == cpu).select("pid", "begin_ns", "end_ns")
            rows.append(
                LaneRow(f"{title}, CPU {cpu}", y, [box(*stay) for stay in stays.iter_rows()])
            )
            drawn_pids.update(stays["pid"].to_list())
            y += _LANE
        y += _GAP
    ticks = [
        {"x": x(tick * tick_ns), "text": f"{(tick * tick_ns - origin) / 1e6:g}"}
        for tick in range(first, last, _TICKS_PER_LABEL)
    ]
    legend = [
        {"colour": colours[pid], "name": f"{process_sign(pid, groups)} {groups[pid]} ({pid})"}
        for pid in sorted(drawn_pids & groups.keys())
    ]
    template_values = {
        "label": "Who had each CPU: above, in the run that is right; below, in this one",
        "left": _LEFT,
        "top": _TOP,
        "width": _WIDTH,
        "bottom": y - _GAP,
        "rows": rows,
        "ticks": ticks,
        "mark": x(at_ns),
        "key": legend,
        "key_row": _KEYS_PER_ROW,
    }
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.from_string(_TEMPLATE.read_text()).render(map_texts(template_values)) + "\n"
