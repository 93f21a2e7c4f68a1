# SPDX-License-Identifier: MIT
"""A moment of a run as a picture: who had which CPU, below who should have had it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jinja2
import polars as pl

from schedlab.base.display.names import all_visible
from schedlab.base.display.numbers import milliseconds
from schedlab.courses.grading.drawing import sign, window
from schedlab.courses.grading.seen import Seen
from schedlab.metrics.intervals import cpu_intervals

_TEMPLATE = Path(__file__).with_name("timeline.svg")
_PALETTE = ("#0858f8", "#e86868", "#38a098", "#8848b8", "#888800", "#a84838", "#c868d8")
_OTHERS = "#606878"
"""Those of the reports' series (templates/theme.css), whose room would take longer to import than to grade."""
_LEFT, _TOP, _WIDTH, _LANE, _GAP = 96, 34, 720, 28, 10
"""Pixels, as all that follows."""
_THINNEST = 0.5
_TICKS_EVERY = 8
_SIGN_WIDTH = 9
_KEY_ROW = 6


@dataclass(frozen=True)
class Box:
    """A stay on a CPU."""

    x: float
    width: float
    colour: str
    title: str
    sign: str
    """"": there is no room for it."""


@dataclass(frozen=True)
class Row:
    """A CPU of one of the runs."""

    title: str
    y: float
    boxes: list[Box]


def timeline(seen: Seen, right: Seen, at_ns: int, tick_ns: int) -> str:
    """Returns an SVG of the ticks around `at_ns`, which a dashed line marks: each CPU of the run that is right, then of
    the other. Times count from where what is measured begins."""
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
    told = {
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
    return environment.from_string(_TEMPLATE.read_text()).render(all_visible(told)) + "\n"
