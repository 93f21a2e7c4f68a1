# SPDX-License-Identifier: MIT
"""The report of sysbench 1.0."""

from __future__ import annotations

import re
from itertools import accumulate

from schedlab.base.outputs.errors import OutputError, number_after

_NUMBER = r"([\d.]+)"
_LINES = {
    "threads": rf"Number of threads: {_NUMBER}",
    "events_per_second": rf"events per second: +{_NUMBER}",
    "elapsed_s": rf"total time: +{_NUMBER}s$",
    "events": rf"total number of events: +{_NUMBER}",
    "latency_min_ms": rf"min: +{_NUMBER}$",
    "latency_mean_ms": rf"avg: +{_NUMBER}$",
    "latency_max_ms": rf"max: +{_NUMBER}$",
    "latency_sum_ms": rf"sum: +{_NUMBER}$",
}
_PERCENTILE = re.compile(r"^\s*(\d+)th percentile: +([\d.]+)$", re.MULTILINE)
_BUCKET = re.compile(r"^ *([\d.]+) \|\**  *(\d+)$", re.MULTILINE)
_FROM_HISTOGRAM = (50, 95, 99)


def figures(text: str) -> dict[str, float]:
    """`events_per_second`, `latency_max_ms` and so on; `latency_p95_ms` for the percentile printed.

    With `--histogram` there are the 50th, 95th and 99th percentile, of buckets 1.8 % wide. All is
    rounded as sysbench rounds it: latencies to 10 µs, the histogram's to 1 µs.
    """
    told = {name: number_after("sysbench", text, name, line) for name, line in _LINES.items()}
    told.update({f"latency_p{which}_ms": float(at) for which, at in _PERCENTILE.findall(text)})
    buckets = [(float(value), int(count)) for value, count in _BUCKET.findall(text)]
    if buckets:
        _check_all_there(buckets, told["events"])
        told.update({f"latency_p{p}_ms": _percentile(buckets, p) for p in _FROM_HISTOGRAM})
    return told


def _check_all_there(buckets: list[tuple[float, int]], events: float) -> None:
    counted = sum(count for _, count in buckets)
    if counted != events:
        raise OutputError(
            f"sysbench printed a histogram of {counted} events, and did {events:.0f}: some of its"
            " lines are missing"
        )


def _percentile(buckets: list[tuple[float, int]], percent: int) -> float:
    """The bucket that this many hundredths of all do not exceed."""
    counted = accumulate(count for _, count in buckets)
    wanted = sum(count for _, count in buckets) * percent / 100
    return next(
        value for (value, _), so_far in zip(buckets, counted, strict=True) if so_far >= wanted
    )
