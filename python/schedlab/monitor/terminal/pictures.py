# SPDX-License-Identifier: MIT
"""Draws CPUs, timelines, run queues and metrics with characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from schedlab.base.display.numbers import NOTHING, duration, index, moment, percent, rate, times
from schedlab.monitor.frames import CpuFrame, Explanation, Frame, Metrics
from schedlab.monitor.terminal.views import SystemView

_COLOURS = ("bright_blue", "bright_red", "cyan", "magenta", "yellow", "green", "bright_magenta")
"""Colours of processes by PID; a letter distinguishes processes of the same colour."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LEVELS_MAX = 16
_QUEUE_MAX = 24
"""Processes drawn per queue."""
_MARKS_SHOWN = 3
_EXPLAINED_WAITS, _PARTS = 3, 6
"""Waits that are broken down, and parts named in each."""


def style_of(pid: int) -> str:
    """Returns the colour of a process."""
    return _COLOURS[pid % len(_COLOURS)] if pid else "bright_black"


def letter_of(pid: int) -> str:
    """Returns the letter of a process."""
    return _LETTERS[pid % len(_LETTERS)] if pid else "·"


def head(system: SystemView, current: bool) -> Text:
    """Returns the head line of a system: letter, policy, life, time and cost."""
    frame = system.frame
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f" {system.letter} ", "bold reverse" if current else "bold")
    if frame is None:
        return text.append(" starting", "yellow")
    life = "paused" if frame["paused"] else frame["life"]
    text.append(f" {frame['policy']} ", "bold")
    text.append(
        f" {life} ", "green" if life == "running" else "bold red" if life == "failed" else "yellow"
    )
    text.append(f" {moment(frame['now_ns'])}  {times(frame['speed'])}")
    text.append(f"  {frame['events_per_s']:,.0f} events/s", "dim")
    cost = frame["cost"]["total"]
    text.append(f"  watching takes {percent(cost)}", "bold red" if cost > 0.05 else "dim")
    if frame["lost"]:
        text.append(f"  {frame['lost']:,} events lost", "bold red")
    if frame["skipped_frames"]:
        text.append(f"  {frame['skipped_frames']:,} pictures skipped", "dim")
    if frame["recording"]:
        text.append("  ● recording", "bold red")
    if frame["message"]:
        text.append(f"\n{frame['message'].strip()}", "red")
    return text


def meters(system: SystemView, width: int) -> Text:
    """Draws a bar per CPU, several in a row: utilisation, running process, queue length."""
    frame = system.frame
    text = Text()
    if frame is None or not frame["cpus"]:
        return text
    across = max(1, min(4, width // 44))
    bar_width = width // across
    names = system.names()
    for number, cpu in enumerate(frame["cpus"]):
        text.append_text(_meter(number, cpu, bar_width, names))
        if number % across == across - 1:
            text.append("\n")
    text.rstrip()
    return text


def _meter(number: int, cpu: CpuFrame, width: int, names: dict[int, str]) -> Text:
    size = max(width - 34, 6)
    filled = round(cpu["busy"] * size)
    pid = cpu["running"]
    text = Text(f"{number:>3} ")
    text.append("█" * filled, "green").append("░" * (size - filled), "bright_black")
    text.append(f" {100 * cpu['busy']:3.0f} % ")
    text.append(f"{names.get(pid, 'idle' if pid == 0 else str(pid))[:12]:<12} ", style_of(pid))
    text.append(f"+{len(cpu['queue']):<4}", "yellow" if cpu["queue"] else "dim")
    text.truncate(width, pad=True)
    return text


def time_line(system: SystemView, width: int, span_ns: int) -> Text:
    """Draws the last `span_ns` with a line per CPU, or per level if the policy has levels."""
    frame = system.frame
    text = Text(no_wrap=True)
    size = width - 8
    if frame is None or size < 10:
        return text
    begin = max(frame["now_ns"] - span_ns, 0)
    cell_ns = max(span_ns / size, 1.0)
    for cpu in range(len(frame["cpus"])):
        runs = [run for run in system.runs.get(cpu, ()) if run[2] > begin]
        seen = {run[3] for run in runs}
        levels = sorted(seen, reverse=frame["levels_rise"])[:_LEVELS_MAX] or [-1]
        for level in levels:
            label = f"{cpu:>3}" if level == levels[0] else "   "
            text.append(f"{label} {f'L{level}' if level >= 0 else '':<4}", "bold")
            runs_at_level = [run for run in runs if run[3] == level]
            text.append_text(_lane(runs_at_level, system.idle.get(cpu, ()), begin, cell_ns, size))
            text.append("\n")
    text.append_text(_axis(begin, span_ns, size))
    return text.append_text(_legend(system, begin))


def _lane(
    runs: Sequence[tuple[int, int, int, int]],
    idle: Iterable[tuple[int, int]],
    begin: int,
    cell_ns: float,
    size: int,
) -> Text:
    """Draws one line; each cell shows the process that ran longest in it."""
    longest = [0.0] * size
    who = [0] * size
    for pid, start, end, _ in runs:
        first = max(int((start - begin) / cell_ns), 0)
        last = min(int((end - begin) / cell_ns), size - 1)
        for cell in range(first, last + 1):
            edge = begin + cell * cell_ns
            ran = min(end, edge + cell_ns) - max(start, edge)
            if ran > longest[cell]:
                longest[cell], who[cell] = ran, pid
    warned = _cells_of(idle, begin, cell_ns, size)
    text = Text()
    for cell, pid in enumerate(who):
        if pid:
            text.append(letter_of(pid), f"black on {style_of(pid)}")
        elif cell in warned:
            text.append("!", "bold red")
        else:
            text.append("·", "bright_black")
    return text


def _cells_of(spans: Iterable[tuple[int, int]], begin: int, cell_ns: float, size: int) -> set[int]:
    cells: set[int] = set()
    for start, end in spans:
        if end > begin:
            first = max(int((start - begin) / cell_ns), 0)
            cells.update(range(first, min(int((end - begin) / cell_ns), size - 1) + 1))
    return cells


def _axis(begin: int, span_ns: int, size: int) -> Text:
    left, right = moment(begin), moment(begin + span_ns)
    gap = max(size - len(left) - len(right), 1)
    return Text(f"{'':8}{left}{' ' * gap}{right}\n", "dim")


def _legend(system: SystemView, begin: int) -> Text:
    """Returns the legend: processes, symbols and recent control actions."""
    ran: dict[int, int] = {}
    for runs in system.runs.values():
        for pid, start, end, _ in runs:
            if end > begin:
                ran[pid] = ran.get(pid, 0) + end - start
    names = system.names()
    text = Text("\n")
    for pid in sorted(ran, key=lambda pid: -ran[pid])[:12]:
        text.append(f" {letter_of(pid)} ", f"black on {style_of(pid)}")
        text.append(f" {names.get(pid, '')} {pid}   ")
    text.append("\n · idle    ! idle while a process waits on another CPU\n", "dim")
    for mark in list(system.marks)[-_MARKS_SHOWN:]:
        text.append(f" {moment(mark['time_ns'])}  {mark['kind']}: {mark['text']}\n", "cyan")
    return text


def queues(system: SystemView) -> Text:
    """Draws each CPU's run queue, with one line per level."""
    frame = system.frame
    text = Text()
    if frame is None:
        return text
    names = system.names()
    for number, cpu in enumerate(frame["cpus"]):
        title = "all CPUs" if frame["shared_queue"] else f"CPU {number}"
        if frame["shared_queue"] and number:
            break
        text.append(f"{title}: {len(cpu['queue'])} waiting\n", "bold")
        text.append_text(_running(frame, number, names))
        text.append_text(_waiting(cpu, frame, names))
    return text


def _running(frame: Frame, number: int, names: dict[int, str]) -> Text:
    cpus = frame["cpus"] if frame["shared_queue"] else [frame["cpus"][number]]
    text = Text("  runs  ")
    for cpu in cpus:
        pid = cpu["running"]
        level = f" at level {cpu['level']}" if pid and cpu["level"] >= 0 else ""
        text.append(f"[{names.get(pid, 'idle')} {pid or ''}{level}]", style_of(pid)).append(" ")
    return text.append("\n")


def _waiting(cpu: CpuFrame, frame: Frame, names: dict[int, str]) -> Text:
    """Draws waiting processes in order of arrival, grouped by level."""
    text = Text()
    by_level: dict[int, list[int]] = {}
    for pid, level, _ in cpu["queue"]:
        by_level.setdefault(level if frame["levels"] else -1, []).append(pid)
    for level in sorted(by_level, reverse=frame["levels_rise"]):
        label = f"level {level}" if level >= 0 else "waits"
        text.append(f"  {label:<9}", "bold")
        pids = by_level[level]
        for pid in pids[:_QUEUE_MAX]:
            text.append(f"{names.get(pid, '')} {pid}", style_of(pid)).append("  ")
        more = len(pids) - _QUEUE_MAX
        text.append(f"and {more} more\n" if more > 0 else "\n")
    return text


_ROWS: tuple[tuple[str, str, str], ...] = (
    ("response", "response_ns", "ns"),
    ("turnaround", "turnaround_ns", "ns"),
    ("waiting", "waiting_ns", "ns"),
    ("wake-up latency, median", "wakeup_median_ns", "ns"),
    ("  99th percentile", "wakeup_p99_ns", "ns"),
    ("  maximum", "wakeup_maximum_ns", "ns"),
    ("wake-ups", "wakeups", "count"),
    ("processes that ended", "finished", "count"),
    ("throughput", "throughput_per_s", "rate"),
    ("fairness of shares", "fairness", "index"),
    ("fairness of turnaround", "fairness_turnaround", "index"),
    ("scheduler's overhead", "overhead", "part"),
    ("utilisation", "utilisation", "part"),
    ("switches", "switches_per_s", "rate"),
    ("migrations", "migrations_per_s", "rate"),
    ("idle while queued", "idle_while_queued_ns", "ns"),
)


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "ns": duration,
    "part": percent,
    "rate": rate,
    "index": index,
}


def _figure(metrics: Metrics, key: str, unit: str) -> str:
    value = metrics[key]  # type: ignore[literal-required]
    if value is None:
        return NOTHING
    return f"{value:,}" if unit == "count" else _FORMATS[unit](value)


def figures(systems: Sequence[SystemView]) -> Table:
    """Returns a table with the metrics of all systems."""
    shown = [(system, system.frame) for system in systems if system.frame is not None]
    window = duration(shown[0][1]["metrics"]["window_ns"]) if shown else ""
    table = Table(title=f"the last {window}", title_justify="left", box=None, padding=(0, 2))
    table.add_column("")
    for system, frame in shown:
        table.add_column(Text(f"{system.letter}: {frame['policy']}"), justify="right")
    for title, key, unit in _ROWS:
        table.add_row(title, *(_figure(frame["metrics"], key, unit) for _, frame in shown))
    return table


def decisions(system: SystemView, lines: int) -> Table:
    """Returns a table of the policy's last decisions, the newest first."""
    table = Table(box=None, padding=(0, 1))
    for title, justify in (("TIME", "right"), ("CPU", "right"), ("PICKED", "left")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    table.add_column("WAITED", justify="right")
    table.add_column("WHY")
    for decision in list(system.decisions)[: -lines - 1 : -1]:
        picked = Text(f"{decision['name']} {decision['pid']}", style_of(decision["pid"]))
        table.add_row(
            moment(decision["time_ns"]),
            str(decision["cpu"]),
            picked,
            str(decision["waited"]),
            Text(decision["text"]),
        )
    return table


def waits(explanation: Explanation | None, blamed: Mapping[str, Any] | None, width: int) -> Text:
    """Shows what ran while a process waited, and the longest waits in `blamed` (schedlab.monitor.wait_breakdown)."""
    text = Text()
    if explanation is None:
        return text.append("Choose a process in the table to see what ran while it waited.")
    total = explanation["total_ns"]
    text.append(
        f"{explanation['name']} {explanation['pid']} waited {duration(total)} in the window, ",
        "bold",
    )
    text.append(f"{duration(explanation['beside_idle_ns'])} of it while a CPU idled\n\n")
    size = max(width - 60, 10)
    for part in explanation["parts"][:12]:
        share = part["duration_ns"] / total if total else 0.0
        name = f"{part['name']} {part['pid'] or ''} on CPU {part['cpu']}"
        text.append(f"{name:<32}", style_of(part["pid"]))
        text.append("█" * round(share * size), style_of(part["pid"]))
        text.append(f" {duration(part['duration_ns'])}, {part['times']} times\n")
    if blamed and blamed["pid"] == explanation["pid"]:
        for wait in blamed["longest"][:_EXPLAINED_WAITS]:
            text.append_text(_part_by_part(wait, size))
    text.append("\nlast waits\n", "bold")
    for wait in explanation["waits"][:-13:-1]:
        took = duration(wait["end_ns"] - wait["begin_ns"])
        text.append(
            f"{moment(wait['begin_ns']):>14}  {took:>9}  CPU {wait['cpu']}  {wait['why']}\n"
        )
    return text


def _part_by_part(wait: Mapping[str, Any], size: int) -> Text:
    """Draws a wait and its parts, which add up to it."""
    total_ns = wait["duration_ns"]
    text = Text(f"\n{wait['kind']} at {moment(wait['begin_ns'])}: {duration(total_ns)}\n", "bold")
    shown, rest = wait["parts"][:_PARTS], wait["parts"][_PARTS:]
    for part in shown:
        text.append(f"{part['words'][:40]:<42}", style_of(part["pid"]))
        text.append("█" * round(part["duration_ns"] / total_ns * size), style_of(part["pid"]))
        times = f", {part['times']} times" if part["times"] > 1 else ""
        text.append(f" {duration(part['duration_ns'])}{times}\n")
    if rest:
        text.append(f"{len(rest)} more: {duration(sum(part['duration_ns'] for part in rest))}\n")
    return text
