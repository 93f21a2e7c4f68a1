# SPDX-License-Identifier: MIT
"""Draws CPUs, timelines, run queues and metrics with characters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from schedlab.base.display.numbers import (
    NO_VALUE,
    duration,
    format_index,
    format_speed,
    moment,
    percent,
    rate,
)
from schedlab.monitor.frames import CpuFrame, Explanation, Frame, Metrics
from schedlab.monitor.terminal.views import SystemView

_COLOURS = ("bright_blue", "bright_red", "cyan", "magenta", "yellow", "green", "bright_magenta")
"""Colours of processes, chosen by PID; letters distinguish processes with the same colour."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LEVELS_MAX = 16
_QUEUE_PROCESSES_MAX = 24
"""Processes drawn per queue."""
_MARKS_MAX = 3
_EXPLAINED_WAITS_MAX, _PARTS_MAX = 3, 6
"""Number of waits that are broken down, and number of parts named per wait."""


def process_colour(pid: int) -> str:
    """Returns the colour of a process in all drawings."""
    return _COLOURS[pid % len(_COLOURS)] if pid else "bright_black"


def process_letter(pid: int) -> str:
    """Returns the letter that represents a process in timelines."""
    return _LETTERS[pid % len(_LETTERS)] if pid else "·"


def draw_head(system: SystemView, is_current: bool) -> Text:
    """Returns the head line of a system: letter, policy, life, time and cost."""
    frame = system.frame
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f" {system.letter} ", "bold reverse" if is_current else "bold")
    if frame is None:
        return text.append(" starting", "yellow")
    life = "paused" if frame["paused"] else frame["life"]
    text.append(f" {frame['policy']} ", "bold")
    text.append(
        f" {life} ", "green" if life == "running" else "bold red" if life == "failed" else "yellow"
    )
    text.append(f" {moment(frame['now_ns'])}  {format_speed(frame['speed'])}")
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


def draw_meters(system: SystemView, width: int) -> Text:
    """Draws a bar per CPU, several in a row: utilisation, running process, queue length."""
    frame = system.frame
    text = Text()
    if frame is None or not frame["cpus"]:
        return text
    meters_per_row = max(1, min(4, width // 44))
    bar_width = width // meters_per_row
    names = system.names()
    for number, cpu in enumerate(frame["cpus"]):
        text.append_text(_draw_meter(number, cpu, bar_width, names))
        if number % meters_per_row == meters_per_row - 1:
            text.append("\n")
    text.rstrip()
    return text


def _draw_meter(number: int, cpu: CpuFrame, width: int, names: dict[int, str]) -> Text:
    size = max(width - 34, 6)
    filled = round(cpu["busy"] * size)
    pid = cpu["running"]
    text = Text(f"{number:>3} ")
    text.append("█" * filled, "green").append("░" * (size - filled), "bright_black")
    text.append(f" {100 * cpu['busy']:3.0f} % ")
    text.append(
        f"{names.get(pid, 'idle' if pid == 0 else str(pid))[:12]:<12} ", process_colour(pid)
    )
    text.append(f"+{len(cpu['queue']):<4}", "yellow" if cpu["queue"] else "dim")
    text.truncate(width, pad=True)
    return text


def draw_timeline(system: SystemView, width: int, span_ns: int) -> Text:
    """Draws the last `span_ns` of a system: a line per CPU, or per level if the policy has levels."""
    frame = system.frame
    picture = Text(no_wrap=True)
    size = width - 8
    if frame is None or size < 10:
        return picture
    begin = max(frame["now_ns"] - span_ns, 0)
    cell_ns = max(span_ns / size, 1.0)
    for cpu in range(len(frame["cpus"])):
        runs = [run for run in system.runs.get(cpu, ()) if run[2] > begin]
        levels_seen = {run[3] for run in runs}
        levels = sorted(levels_seen, reverse=frame["levels_rise"])[:_LEVELS_MAX] or [-1]
        for level in levels:
            label = f"{cpu:>3}" if level == levels[0] else "   "
            picture.append(f"{label} {f'L{level}' if level >= 0 else '':<4}", "bold")
            runs_at_level = [run for run in runs if run[3] == level]
            picture.append_text(
                _draw_lane(runs_at_level, system.idle_intervals.get(cpu, ()), begin, cell_ns, size)
            )
            picture.append("\n")
    picture.append_text(_draw_axis(begin, span_ns, size))
    return picture.append_text(_draw_legend(system, begin))


def _draw_lane(
    runs: Sequence[tuple[int, int, int, int]],
    idle: Iterable[tuple[int, int]],
    begin: int,
    cell_ns: float,
    size: int,
) -> Text:
    """Draws one line of a timeline; each character shows the process that ran longest in its interval."""
    longest = [0.0] * size
    longest_pids = [0] * size
    for pid, start, end, _ in runs:
        first = max(int((start - begin) / cell_ns), 0)
        last = min(int((end - begin) / cell_ns), size - 1)
        for cell in range(first, last + 1):
            edge = begin + cell * cell_ns
            run_ns = min(end, edge + cell_ns) - max(start, edge)
            if run_ns > longest[cell]:
                longest[cell], longest_pids[cell] = run_ns, pid
    warning_cells = _covered_cells(idle, begin, cell_ns, size)
    text = Text()
    for cell, pid in enumerate(longest_pids):
        if pid:
            text.append(process_letter(pid), f"black on {process_colour(pid)}")
        elif cell in warning_cells:
            text.append("!", "bold red")
        else:
            text.append("·", "bright_black")
    return text


def _covered_cells(
    spans: Iterable[tuple[int, int]], begin: int, cell_ns: float, size: int
) -> set[int]:
    cells: set[int] = set()
    for start, end in spans:
        if end > begin:
            first = max(int((start - begin) / cell_ns), 0)
            cells.update(range(first, min(int((end - begin) / cell_ns), size - 1) + 1))
    return cells


def _draw_axis(begin: int, span_ns: int, size: int) -> Text:
    """Draws the begin and the end of a timeline below it."""
    left, right = moment(begin), moment(begin + span_ns)
    gap = max(size - len(left) - len(right), 1)
    return Text(f"{'':8}{left}{' ' * gap}{right}\n", "dim")


def _draw_legend(system: SystemView, begin: int) -> Text:
    """Returns the legend: processes, symbols and recent control actions."""
    run_times: dict[int, int] = {}
    for runs in system.runs.values():
        for pid, start, end, _ in runs:
            if end > begin:
                run_times[pid] = run_times.get(pid, 0) + end - start
    names = system.names()
    text = Text("\n")
    for pid in sorted(run_times, key=lambda pid: -run_times[pid])[:12]:
        text.append(f" {process_letter(pid)} ", f"black on {process_colour(pid)}")
        text.append(f" {names.get(pid, '')} {pid}   ")
    text.append("\n · idle    ! idle while a process waits on another CPU\n", "dim")
    for mark in list(system.marks)[-_MARKS_MAX:]:
        text.append(f" {moment(mark['time_ns'])}  {mark['kind']}: {mark['text']}\n", "cyan")
    return text


def draw_queues(system: SystemView) -> Text:
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
        text.append_text(_draw_running(frame, number, names))
        text.append_text(_draw_waiting(cpu, frame, names))
    return text


def _draw_running(frame: Frame, number: int, names: dict[int, str]) -> Text:
    cpus = frame["cpus"] if frame["shared_queue"] else [frame["cpus"][number]]
    text = Text("  runs  ")
    for cpu in cpus:
        pid = cpu["running"]
        level = f" at level {cpu['level']}" if pid and cpu["level"] >= 0 else ""
        text.append(f"[{names.get(pid, 'idle')} {pid or ''}{level}]", process_colour(pid)).append(
            " "
        )
    return text.append("\n")


def _draw_waiting(cpu: CpuFrame, frame: Frame, names: dict[int, str]) -> Text:
    """Draws waiting processes in order of arrival, grouped by level."""
    text = Text()
    by_level: dict[int, list[int]] = {}
    for pid, level, _ in cpu["queue"]:
        by_level.setdefault(level if frame["levels"] else -1, []).append(pid)
    for level in sorted(by_level, reverse=frame["levels_rise"]):
        label = f"level {level}" if level >= 0 else "waits"
        text.append(f"  {label:<9}", "bold")
        pids = by_level[level]
        for pid in pids[:_QUEUE_PROCESSES_MAX]:
            text.append(f"{names.get(pid, '')} {pid}", process_colour(pid)).append("  ")
        hidden_count = len(pids) - _QUEUE_PROCESSES_MAX
        text.append(f"and {hidden_count} more\n" if hidden_count > 0 else "\n")
    return text


_METRIC_ROWS: tuple[tuple[str, str, str], ...] = (
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
    "index": format_index,
}


def _metric_text(metrics: Metrics, key: str, unit: str) -> str:
    value = metrics[key]  # type: ignore[literal-required]
    if value is None:
        return NO_VALUE
    return f"{value:,}" if unit == "count" else _FORMATS[unit](value)


def metrics_table(systems: Sequence[SystemView]) -> Table:
    """Returns a table with the metrics of all systems."""
    shown_systems = [(system, system.frame) for system in systems if system.frame is not None]
    window = duration(shown_systems[0][1]["metrics"]["window_ns"]) if shown_systems else ""
    table = Table(title=f"the last {window}", title_justify="left", box=None, padding=(0, 2))
    table.add_column("")
    for system, frame in shown_systems:
        table.add_column(Text(f"{system.letter}: {frame['policy']}"), justify="right")
    for title, key, unit in _METRIC_ROWS:
        table.add_row(
            title, *(_metric_text(frame["metrics"], key, unit) for _, frame in shown_systems)
        )
    return table


def decisions_table(system: SystemView, lines: int) -> Table:
    """Returns a table of the policy's last decisions, the newest first."""
    table = Table(box=None, padding=(0, 1))
    for title, justify in (("TIME", "right"), ("CPU", "right"), ("PICKED", "left")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    table.add_column("WAITED", justify="right")
    table.add_column("WHY")
    for decision in list(system.decisions)[: -lines - 1 : -1]:
        picked = Text(f"{decision['name']} {decision['pid']}", process_colour(decision["pid"]))
        table.add_row(
            moment(decision["time_ns"]),
            str(decision["cpu"]),
            picked,
            str(decision["waited"]),
            Text(decision["text"]),
        )
    return table


def draw_waits(
    explanation: Explanation | None, breakdown: Mapping[str, Any] | None, width: int
) -> Text:
    """Shows what ran while a process waited, and breaks down its longest waits.

    `breakdown` is the result of schedlab.monitor.wait_breakdown.
    """
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
        text.append(f"{name:<32}", process_colour(part["pid"]))
        text.append("█" * round(share * size), process_colour(part["pid"]))
        text.append(f" {duration(part['duration_ns'])}, {part['times']} times\n")
    if breakdown and breakdown["pid"] == explanation["pid"]:
        for wait in breakdown["longest"][:_EXPLAINED_WAITS_MAX]:
            text.append_text(_draw_wait(wait, size))
    text.append("\nlast waits\n", "bold")
    for wait in explanation["waits"][:-13:-1]:
        length = duration(wait["end_ns"] - wait["begin_ns"])
        text.append(
            f"{moment(wait['begin_ns']):>14}  {length:>9}  CPU {wait['cpu']}  {wait['why']}\n"
        )
    return text


def _draw_wait(wait: Mapping[str, Any], size: int) -> Text:
    total_ns = wait["duration_ns"]
    text = Text(f"\n{wait['kind']} at {moment(wait['begin_ns'])}: {duration(total_ns)}\n", "bold")
    shown_parts, hidden_parts = wait["parts"][:_PARTS_MAX], wait["parts"][_PARTS_MAX:]
    for part in shown_parts:
        text.append(f"{part['words'][:40]:<42}", process_colour(part["pid"]))
        text.append("█" * round(part["duration_ns"] / total_ns * size), process_colour(part["pid"]))
        times = f", {part['times']} times" if part["times"] > 1 else ""
        text.append(f" {duration(part['duration_ns'])}{times}\n")
    if hidden_parts:
        text.append(
            f"{len(hidden_parts)} more: {duration(sum(part['duration_ns'] for part in hidden_parts))}\n"
        )
    return text
