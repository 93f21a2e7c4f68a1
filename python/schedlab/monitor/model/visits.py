# SPDX-License-Identifier: MIT
"""Each CPU's visits to its scheduler: from SCHEDULER_ENTER to SCHEDULER_EXIT."""

from __future__ import annotations

from array import array

import numpy as np

from schedlab.trace.follow import Records
from schedlab.trace.format import Kind, is_kind


class Visits:
    """Pairs what comes in batches: a visit may begin in one and end in the next."""

    def __init__(self) -> None:
        self._entered: dict[int, np.void] = {}
        """The last SCHEDULER_ENTER of each CPU, if it was not left yet."""

    def take(self, records: Records) -> array[int]:
        """Rows of the visits that end in these records: when each began, its cycles."""
        entries = records[is_kind(records["kind"], Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)]
        if self._entered:
            pending = np.array(list(self._entered.values()), records.dtype)
            entries = np.concatenate((pending, entries))
        entries = entries[np.argsort(entries["cpu"], kind="stable")]
        enters = entries["kind"] == Kind.SCHEDULER_ENTER
        cpu = entries["cpu"]
        is_last = np.append(cpu[1:] != cpu[:-1], True)[: len(cpu)]
        open_ones = entries[enters & is_last]
        self._entered = dict(zip(open_ones["cpu"].tolist(), open_ones, strict=True))
        pairs = np.flatnonzero(enters[:-1] & ~enters[1:] & (cpu[1:] == cpu[:-1]))
        cycles = (entries["second"][pairs + 1] - entries["second"][pairs]).astype(np.int64)
        begun = entries["time"][pairs].astype(np.int64)
        return array("q", np.column_stack((begun, cycles)).tobytes())
