# SPDX-License-Identifier: MIT
"""Rejects numbers that no record can have, because later code computes with them or uses them as indices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import Kind, is_kind

TIME_MAX = 1 << 61
"""Nanoseconds (73 years); also the simulator's last time. Sums of a few such times do not overflow."""
PROCESS_MAX = (1 << 31) - 1
CYCLES_MAX = (1 << 63) - 1

_OTHERS = {"first": (Kind.FORK, Kind.SWITCH, Kind.WAKEUP), "second": (Kind.FORK, Kind.FOUND)}
"""Fields with a PID, other than `process`, and the kinds of records where they have one."""
_COUNTERS = (Kind.START, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)


def too_late(time: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Marks times after TIME_MAX. The file stores unsigned 64-bit numbers."""
    late: npt.NDArray[np.bool_] = time.view(np.uint64) > TIME_MAX
    return late


def no_process(
    kind: npt.NDArray[np.integer],
    process: npt.NDArray[np.integer],
    first: npt.NDArray[np.integer],
    second: npt.NDArray[np.integer],
) -> npt.NDArray[np.bool_]:
    """Marks records with an impossible PID."""
    wrong: npt.NDArray[np.bool_] = process > PROCESS_MAX
    for name, numbers in (("first", first), ("second", second)):
        if numbers.max(initial=0) > PROCESS_MAX:
            wrong |= is_kind(kind, *_OTHERS[name]) & (numbers > PROCESS_MAX)
    return wrong


def no_counter(
    kind: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> npt.NDArray[np.bool_]:
    """Marks records with an impossible cycle counter."""
    wrong: npt.NDArray[np.bool_] = second > CYCLES_MAX
    if wrong.any():
        wrong &= is_kind(kind, *_COUNTERS)
    return wrong


def impossible(records: npt.NDArray[np.void], cpus: int) -> npt.NDArray[np.bool_]:
    """Marks records that any of these checks rejects, and records of unknown CPUs."""
    kind, second = records["kind"], records["second"]
    is_impossible: npt.NDArray[np.bool_] = too_late(records["time"]) | (records["cpu"] >= cpus)
    is_impossible |= no_process(kind, records["process"], records["first"], second)
    return is_impossible | no_counter(kind, second)
