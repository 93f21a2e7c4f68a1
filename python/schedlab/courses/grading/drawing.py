# SPDX-License-Identifier: MIT
"""A moment of a run as text: who had which CPU, beside who should have had it."""

from __future__ import annotations

from string import ascii_uppercase, digits

import polars as pl

from schedlab.courses.grading.seen import Seen
from schedlab.metrics.intervals import cpu_intervals

_BEFORE, _AFTER = 16, 32
"""Ticks that are drawn."""
_SIGNS = ascii_uppercase + ascii_uppercase.lower() + digits
_IDLE, _OTHER, _NOTHING = "-", "*", " "


def drawn(seen: Seen, right: Seen | None, at_ns: int, tick_ns: int) -> str:
    """Each CPU's processes, a character for each tick: that which ran the longest in it. `right`: the run that the
    first is held against; its rows come first. A ^ is under the tick of `at_ns`."""
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
    """The ticks that are drawn around a time: from which one to which, without the last."""
    begin = max(at_ns // tick_ns - _BEFORE, 0)
    return begin, begin + _BEFORE + _AFTER


def lane_text(lane: list[int | None], groups: dict[int, str]) -> str:
    """A character for each tick."""
    return "".join(
        _NOTHING if pid is None else _IDLE if pid == 0 else sign(pid, groups) for pid in lane
    )


def sign(pid: int, groups: dict[int, str]) -> str:
    """The letter of a process, in every picture of a workload the same."""
    place = sorted(groups).index(pid) if pid in groups else len(_SIGNS)
    return _SIGNS[place] if place < len(_SIGNS) else _OTHER


def _ruler(begin: int, end: int, tick_ns: int, origin_ns: int) -> str:
    text = ""
    for tick in range(begin, end):
        if (tick - begin) % 10 == 0:
            text = f"{text:<{tick - begin}}{(tick * tick_ns - origin_ns) / 1e6:g}"
    return text


def _lanes(run: Seen, begin: int, end: int, tick_ns: int) -> list[tuple[int, list[int | None]]]:
    """For each CPU, and each tick, the process that had the most of it; 0: none; None: the run is over."""
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
