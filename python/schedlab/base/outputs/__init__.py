# SPDX-License-Identifier: MIT
"""Parses the output of Linux benchmarks into numbers, whose names include the unit.

parse_figures("sysbench cpu --threads=8 run", console)["events_per_second"]

Parses only values that a trace does not contain. Ignores other text on the console.
"""

import re
import shlex
from collections.abc import Callable
from itertools import accumulate

Figures = dict[str, float]


class OutputError(ValueError):
    """The output of a benchmark is incomplete; the message says what is missing."""


def parse_figures(command: str, text: str) -> Figures:
    """Returns the values in the output of a benchmark; empty for other programs.

    Raises OutputError if the output is incomplete.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # the command has an unclosed quote, as in a file's name
        return {}
    read = READERS.get(words[0].rpartition("/")[2]) if words else None
    return read(text.replace("\r", "")) if read else {}


def _number_after(program: str, text: str, figure_name: str, pattern: str) -> float:
    """Returns the number that the pattern's group matches, at the first line that begins with the pattern."""
    match = re.search(rf"^\s*{pattern}", text, re.MULTILINE)
    if not match:
        raise OutputError(
            f"{program} printed no {figure_name}: its version is not supported, or it did not finish; read"
            " console.log"
        )
    return float(match[1])


# --- hackbench (rt-tests)


def _hackbench(text: str) -> Figures:
    """Returns `elapsed_s`, the time until all messages were passed, and the number of `tasks`."""
    return {
        "elapsed_s": _number_after("hackbench", text, "time", r"Time: ([\d.]+)$"),
        "tasks": _number_after(
            "hackbench", text, "number of tasks", r"Running in .*== (\d+) tasks"
        ),
    }


# --- stress-ng --metrics-brief
#
# Its YAML report is not used: stress-ng opens that file again, which overwrites the output of
# other programs in the same file.

_NUMBER = re.compile(r"\d+(\.\d+)?")
_STRESS_NG_COLUMNS = (
    "bogo_ops",
    "elapsed_s",
    "user_s",
    "system_s",
    "bogo_ops_per_second",
    "bogo_ops_per_cpu_second",
)
"""The columns after the name of a stressor. Rates are per real time, and per CPU time."""
_STRESS_NG_LINE = re.compile(r"^stress-ng: metrc: +\[\d+\] +(.*)$", re.MULTILINE)


def _stress_ng(text: str) -> Figures:
    """Returns `bogo_ops_per_second` (real time) and its components, for a single stressor."""
    rows = [row for line in _STRESS_NG_LINE.findall(text) if (row := _stress_ng_row(line.split()))]
    if not rows:
        raise OutputError(
            "stress-ng printed no metrics: run version 0.15 or newer, with --metrics-brief, "
            "to its end"
        )
    if len(rows) > 1:
        raise OutputError(f"stress-ng reported {len(rows)} stressors; run one at a time")
    return rows[0]


def _stress_ng_row(words: list[str]) -> Figures | None:
    """Returns the values of a line, or None for headings and other metrics."""
    numbers = words[1 : 1 + len(_STRESS_NG_COLUMNS)]
    if len(numbers) < len(_STRESS_NG_COLUMNS) or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    return dict(zip(_STRESS_NG_COLUMNS, map(float, numbers), strict=True))


# --- sysbench 1.0

_SYSBENCH_PATTERNS = {
    "threads": r"Number of threads: ([\d.]+)",
    "events_per_second": r"events per second: +([\d.]+)",
    "elapsed_s": r"total time: +([\d.]+)s$",
    "events": r"total number of events: +([\d.]+)",
    "latency_min_ms": r"min: +([\d.]+)$",
    "latency_mean_ms": r"avg: +([\d.]+)$",
    "latency_max_ms": r"max: +([\d.]+)$",
    "latency_sum_ms": r"sum: +([\d.]+)$",
}
_PERCENTILE = re.compile(r"^\s*(\d+)th percentile: +([\d.]+)$", re.MULTILINE)
_SYSBENCH_BUCKET = re.compile(r"^ *([\d.]+) \|\**  *(\d+)$", re.MULTILINE)
"""A line of the histogram: latency in ms, a bar, and the number of events."""
_HISTOGRAM_PERCENTS = (50, 95, 99)


def _sysbench(text: str) -> Figures:
    """Returns `events_per_second`, `latency_max_ms` and others; `latency_p95_ms` for the printed percentile.

    With `--histogram`, returns the 50th, 95th and 99th percentile from buckets 1.8 % wide. sysbench
    rounds latencies to 10 µs, and to 1 µs in the histogram.
    """
    named_figures = {
        name: _number_after("sysbench", text, name, pattern)
        for name, pattern in _SYSBENCH_PATTERNS.items()
    }
    named_figures.update(
        {f"latency_p{percent}_ms": float(latency) for percent, latency in _PERCENTILE.findall(text)}
    )
    buckets = [(float(value), int(count)) for value, count in _SYSBENCH_BUCKET.findall(text)]
    if buckets:
        histogram_events = sum(count for _, count in buckets)
        if histogram_events != named_figures["events"]:
            raise OutputError(
                f"sysbench printed a histogram of {histogram_events} events but ran "
                f"{named_figures['events']:.0f}: lines of its output are missing; run it again"
            )
        named_figures.update(
            {f"latency_p{p}_ms": _percentile(buckets, p) for p in _HISTOGRAM_PERCENTS}
        )
    return named_figures


def _percentile(buckets: list[tuple[float, int]], percent: int) -> float:
    """Returns the upper bound of the first bucket that includes `percent` % of all events."""
    cumulative_counts = accumulate(count for _, count in buckets)
    needed = sum(count for _, count in buckets) * percent / 100
    return next(
        value
        for (value, _), so_far in zip(buckets, cumulative_counts, strict=True)
        if so_far >= needed
    )


READERS: dict[str, Callable[[str], Figures]] = {
    "sysbench": _sysbench,
    "hackbench": _hackbench,
    "stress-ng": _stress_ng,
}
"""Parsers by program name."""
