# SPDX-License-Identifier: MIT
"""Draws a moment of a run as text and as a picture, next to the solution's run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase, digits

import jinja2
import polars as pl

from schedlab.base.display.names import all_visible
from schedlab.base.display.numbers import milliseconds
from schedlab.courses.grading.graded_run import Seen
from schedlab.metrics.intervals import cpu_intervals

_BEFORE, _AFTER = 16, 32
"""Ticks drawn before and after the moment."""
_SIGNS = ascii_uppercase + ascii_uppercase.lower() + digits
_IDLE, _OTHER, _NOTHING = "-", "*", " "


def drawn(seen: Seen, right: Seen | None, at_ns: int, tick_ns: int) -> str:
    """Draws each CPU's processes with one character per tick, for the process that ran longest in it.

    `right` is the solution's run; its rows come first. A ^ marks the tick of `at_ns`.
    """
    begin, end = window(at_ns, tick_ns)
    runs = {"right": right, "yours": seen} if right else {"yours": seen}
    groups = {**(right.groups_of() if right else {}), **seen.groups_of()}
    rows: list[str] = []
    used: set[int] = set()
    for title, run in runs.items():
        for cpu, lane in _lanes(run, begin, end, tick_ns):
            used.update(pid for pid in lane if pid in groups)
            rows.append(f"{title} CPU {cpu:<2} {lane_text(lane, groups)}".rstrip())
    width = len("right CPU 0  ")
    ruler = f"{'ms':<{width}}{_ruler(begin, end, tick_ns, seen.window.begin_ns)}".rstrip()
    mark = " " * (width + at_ns // tick_ns - begin) + "^"
    key = ", ".join(f"{sign(pid, groups)} {groups[pid]} ({pid})" for pid in sorted(used))
    return "\n".join([ruler, *rows, mark, f"{key}; {_IDLE} idle" if key else f"{_IDLE} idle"])


def window(at_ns: int, tick_ns: int) -> tuple[int, int]:
    """Returns the range of ticks drawn around a time; the end is exclusive."""
    begin = max(at_ns // tick_ns - _BEFORE, 0)
    return begin, begin + _BEFORE + _AFTER


def lane_text(lane: list[int | None], groups: dict[int, str]) -> str:
    """Returns one character per tick."""
    return "".join(
        _NOTHING if pid is None else _IDLE if pid == 0 else sign(pid, groups) for pid in lane
    )


def sign(pid: int, groups: dict[int, str]) -> str:
    """Returns the letter of a process, which is the same in all pictures of a workload."""
    place = sorted(groups).index(pid) if pid in groups else len(_SIGNS)
    return _SIGNS[place] if place < len(_SIGNS) else _OTHER


def _ruler(begin: int, end: int, tick_ns: int, origin_ns: int) -> str:
    text = ""
    for tick in range(begin, end):
        if (tick - begin) % 10 == 0:
            text = f"{text:<{tick - begin}}{(tick * tick_ns - origin_ns) / 1e6:g}"
    return text


def _lanes(run: Seen, begin: int, end: int, tick_ns: int) -> list[tuple[int, list[int | None]]]:
    """Returns, for each CPU and tick, the process that ran longest; 0 for idle, None after the run's end."""
    table = cpu_intervals(run.trace).filter(
        (pl.col("end_ns") > begin * tick_ns) & (pl.col("begin_ns") < end * tick_ns)
    )
    most: dict[tuple[int, int], dict[int, int]] = {}
    for cpu, pid, first, last in table.select("cpu", "pid", "begin_ns", "end_ns").iter_rows():
        for tick in range(max(first // tick_ns, begin), min(-(-last // tick_ns), end)):
            spent = min(last, (tick + 1) * tick_ns) - max(first, tick * tick_ns)
            times = most.setdefault((cpu, tick), {})
            times[pid] = times.get(pid, 0) + spent
    return [
        (cpu, [_longest(most.get((cpu, tick))) for tick in range(begin, end)])
        for cpu in range(run.trace.header.cpus)
    ]


def _longest(times: dict[int, int] | None) -> int | None:
    return max(times, key=lambda pid: (times[pid], -pid)) if times else None


_TEMPLATE = Path(__file__).with_name("timeline.svg")
_PALETTE = ("#0858f8", "#e86868", "#38a098", "#8848b8", "#888800", "#a84838", "#c868d8")
_OTHERS = "#606878"
"""Must match the reports' colours (templates/theme.css); importing them would take longer than grading."""
_LEFT, _TOP, _WIDTH, _LANE, _GAP = 96, 34, 720, 28, 10
"""Pixels, as for all following sizes."""
_THINNEST = 0.5
_TICKS_EVERY = 8
_SIGN_WIDTH = 9
_KEY_ROW = 6


@dataclass(frozen=True)
class Box:
    """A process's stay on a CPU."""

    x: float
    width: float
    colour: str
    title: str
    sign: str
    """Empty if the letter does not fit."""


@dataclass(frozen=True)
class Row:
    """A CPU of one of the runs."""

    title: str
    y: float
    boxes: list[Box]


def timeline(seen: Seen, right: Seen, at_ns: int, tick_ns: int) -> str:
    """Returns an SVG of the ticks around `at_ns`, which a dashed line marks.

    The solution's CPUs are above the submission's. Times count from the beginning of the measured
    window.
    """
    first, last = window(at_ns, tick_ns)
    begin, end = first * tick_ns, last * tick_ns
    groups = {**right.groups_of(), **seen.groups_of()}
    colours = {pid: _PALETTE[place % len(_PALETTE)] for place, pid in enumerate(sorted(groups))}
    scale = _WIDTH / (end - begin)
    origin = seen.window.begin_ns

    def x(time_ns: int) -> float:
        return round(_LEFT + (min(max(time_ns, begin), end) - begin) * scale, 2)

    def box(pid: int, since: int, until: int) -> Box:
        name = f"{groups[pid]} ({pid})" if pid in groups else f"process {pid}"
        times = f"{milliseconds(since - origin)} to {milliseconds(until - origin)}"
        width = round(max(x(until) - x(since), _THINNEST), 2)
        inside = sign(pid, groups) if width >= _SIGN_WIDTH else ""
        return Box(x(since), width, colours.get(pid, _OTHERS), f"{name}: {times}", inside)

    rows: list[Row] = []
    shown: set[int] = set()
    y = float(_TOP)
    for title, run in (("right", right), ("yours", seen)):
        table = cpu_intervals(run.trace).filter(
            (pl.col("end_ns") > begin) & (pl.col("begin_ns") < end) & (pl.col("pid") != 0)
        )
        for cpu in range(run.trace.header.cpus):
            stays = table.filter(pl.col("cpu") == cpu).select("pid", "begin_ns", "end_ns")
            rows.append(Row(f"{title}, CPU {cpu}", y, [box(*stay) for stay in stays.iter_rows()]))
            shown.update(stays["pid"].to_list())
            y += _LANE
        y += _GAP
    ticks = [
        {"x": x(tick * tick_ns), "text": f"{(tick * tick_ns - origin) / 1e6:g}"}
        for tick in range(first, last, _TICKS_EVERY)
    ]
    key = [
        {"colour": colours[pid], "name": f"{sign(pid, groups)} {groups[pid]} ({pid})"}
        for pid in sorted(shown & groups.keys())
    ]
    values = {
        "label": "Who had each CPU: above, in the run that is right; below, in this one",
        "left": _LEFT,
        "top": _TOP,
        "width": _WIDTH,
        "bottom": y - _GAP,
        "rows": rows,
        "ticks": ticks,
        "mark": x(at_ns),
        "key": key,
        "key_row": _KEY_ROW,
    }
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.from_string(_TEMPLATE.read_text()).render(all_visible(values)) + "\n"
