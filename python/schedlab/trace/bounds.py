# SPDX-License-Identifier: MIT
"""Rejects numbers that no record can contain.

Later code computes with them or uses them as indices.
"""

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import Kind, is_kind

TIME_MAX = 1 << 61
"""Largest time in ns (73 years), also the simulator's. Sums of a few such times do not overflow."""
PROCESS_MAX = (1 << 31) - 1
CYCLES_MAX = (1 << 63) - 1

_PID_FIELDS = {"first": (Kind.FORK, Kind.SWITCH, Kind.WAKEUP), "second": (Kind.FORK, Kind.FOUND)}
"""Fields other than `process` that contain a PID, and the kinds of those records."""
_COUNTERS = (Kind.START, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)


def is_too_late(time: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Returns which times are after TIME_MAX. (The file could store larger numbers.)"""
    late: npt.NDArray[np.bool_] = time.view(np.uint64) > TIME_MAX
    return late


def has_impossible_pid(
    kind: npt.NDArray[np.integer],
    process: npt.NDArray[np.integer],
    first: npt.NDArray[np.integer],
    second: npt.NDArray[np.integer],
) -> npt.NDArray[np.bool_]:
    """Returns which records contain an impossible PID."""
    is_impossible: npt.NDArray[np.bool_] = process > PROCESS_MAX
    for name, numbers in (("first", first), ("second", second)):
        if numbers.max(initial=0) > PROCESS_MAX:
            is_impossible |= is_kind(kind, *_PID_FIELDS[name]) & (numbers > PROCESS_MAX)
    return is_impossible


def has_impossible_counter(
    kind: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> npt.NDArray[np.bool_]:
    """Returns which records contain an impossible cycle counter."""
    is_impossible: npt.NDArray[np.bool_] = second > CYCLES_MAX
    if is_impossible.any():
        is_impossible &= is_kind(kind, *_COUNTERS)
    return is_impossible


def has_impossible_field(records: npt.NDArray[np.void], cpus: int) -> npt.NDArray[np.bool_]:
    """Returns which records any of these checks rejects, or which name a CPU that does not exist."""
    kind, second = records["kind"], records["second"]
    is_impossible: npt.NDArray[np.bool_] = is_too_late(records["time"]) | (records["cpu"] >= cpus)
    is_impossible |= has_impossible_pid(kind, records["process"], records["first"], second)
    return is_impossible | has_impossible_counter(kind, second)
