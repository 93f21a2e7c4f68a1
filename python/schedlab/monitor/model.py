# SPDX-License-Identifier: MIT
"""The live model: from a trace's records to what frames show (docs/monitor.md). Its C code, in model/, does
all of that; here it is called."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import numpy as np
from cffi import FFI

from schedlab.base.toolchain.build import MODEL, build
from schedlab.monitor import message
from schedlab.monitor.frames import Explanation, ModelFrame, Past
from schedlab.monitor.system import Records, Status
from schedlab.paths import ROOT
from schedlab.trace.bounds import PROCESS_MAX, TIME_MAX
from schedlab.trace.format import (
    HEADER,
    MAGIC,
    RECORD,
    SHARES_BY_CURRENCIES,
    VERSION,
    AttributeKind,
)
from schedlab.trace.model import Header
from schedlab_simulator.declarations import declarations

WINDOW_NS = 10_000_000_000
_MEMORY = 512 << 20
"""Bytes of each model, of which those are used that it needs."""
_SHARES_BY = {
    "equal": 0,
    "tickets": int(AttributeKind.TICKETS),
    "weight": int(AttributeKind.WEIGHT),
    "nice": int(AttributeKind.NICE),
    "groups": int(AttributeKind.TASKGROUP),
    "currencies": SHARES_BY_CURRENCIES,
}


@cache
def _library() -> tuple[Any, Any]:
    """cffi's types, and the library's functions."""
    build(str(MODEL.relative_to(ROOT)))
    ffi = FFI()
    ffi.cdef(declarations((ROOT / "model" / "model.h").read_text()))
    return ffi, ffi.dlopen(str(MODEL))


class Model:
    """Takes records in, and says at any time what is the case and what has happened.

    `policy` (name or name:preset) and `shares_by` (tickets, weight, nice, groups or equal) are as the system was
    started; the trace's POLICY and TUNABLE records rule afterwards. One loop owns a model: it is not
    for several threads.
    """

    def __init__(
        self, header: Header, policy: str, shares_by: str, window_ns: int = WINDOW_NS
    ) -> None:
        """Raises ValueError if no trace has such a header."""
        self.header = header
        self._own_pids: frozenset[int] = frozenset()
        self._record_cost_ns = 0.0
        self._ffi, self._c = _library()
        self._get_memory()
        name, packed = policy.encode(), _packed(header)
        status = self._c.model_begin(
            self._model, _MEMORY, packed, len(packed), name, len(name), _SHARES_BY[shares_by]
        )
        if status == self._ffi.NULL:
            raise ValueError(f"no model of a trace with such a header: {header}")
        self.set_window(window_ns)

    def __deepcopy__(self, memo: object) -> Model:
        """Returns another one that is as this one is now."""
        other = object.__new__(Model)
        other.header, other._ffi, other._c = self.header, self._ffi, self._c
        other._own_pids, other._record_cost_ns = self._own_pids, self._record_cost_ns
        other._get_memory()
        self._c.model_copy(other._model, self._model)
        return other

    def _get_memory(self) -> None:
        """Zeroed pages, which exist once they are written to."""
        self._memory = mmap.mmap(-1, _MEMORY, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._model = self._ffi.cast(
            "struct model *", self._ffi.from_buffer(self._memory, require_writable=True)
        )

    @property
    def own_pids(self) -> frozenset[int]:
        """Processes that are there for the monitor's sake. Set it as it changes."""
        return self._own_pids

    @own_pids.setter
    def own_pids(self, pids: Iterable[int]) -> None:
        pids = frozenset(pids)
        if pids != self._own_pids:
            self._own_pids = pids
            self._c.model_own(self._model, sorted(pids), len(pids))

    @property
    def record_cost_ns(self) -> float:
        """What a record takes of a CPU's time."""
        return self._record_cost_ns

    @record_cost_ns.setter
    def record_cost_ns(self, cost_ns: float) -> None:
        self._record_cost_ns = cost_ns
        self._c.model_record_cost(self._model, cost_ns)

    @property
    def now_ns(self) -> int:
        """The latest time that is known."""
        return int(self._c.model_now(self._model))

    @property
    def events(self) -> int:
        """Records so far."""
        return int(self._c.model_events(self._model))

    def feed(self, records: Records) -> None:
        """The next records, in the order of their sequence. Texts may go on in the next call."""
        data = np.ascontiguousarray(records, RECORD)
        self._c.model_feed(self._model, self._ffi.from_buffer(data.view(np.uint8)), len(data))

    def reach(self, time_ns: int) -> None:
        """It is at least so late, though nothing may have happened since."""
        self._c.model_reach(self._model, time_ns)

    def apply_status(self, status: Status) -> None:
        """What sched_status says of slices, priorities and tickets. What the trace says later holds."""
        rows = [
            (row.pid, row.priority, row.tickets, -1 if row.slice_ns is None else row.slice_ns)
            for row in status.rows
        ]
        self._c.model_status(self._model, rows, len(rows))

    def set_window(self, window_ns: int) -> None:
        """Sets how much of the past the metrics cover. A longer window fills as time goes on."""
        self._c.model_set_window(self._model, min(window_ns, TIME_MAX))

    def frame(self, max_runs: int = 2000) -> ModelFrame:
        """What is the case, and what is new since the last call."""
        return cast(ModelFrame, self._told(self._c.model_frame(self._model, max_runs)))

    def history(self) -> Past:
        """All that is kept of what frames have told: the last 60 s of runs, more coarsely if there
        were many; 1,000 marks; 500 decisions. What is newer than the last frame, the next one tells."""
        return cast(Past, self._told(self._c.model_history(self._model)))

    def explain(self, pid: int) -> Explanation:
        """Why a process had to wait, in the window. KeyError: no such process lives, or did in the
        window."""
        known = 0 < pid <= PROCESS_MAX
        explanation = self._c.model_explain(self._model, pid) if known else self._ffi.NULL
        if explanation == self._ffi.NULL:
            raise KeyError(pid)
        return cast(Explanation, self._told(explanation))

    def _told(self, pointer: Any) -> Any:
        assert pointer != self._ffi.NULL, "a message had no room"
        length = self._ffi.cast("struct model_message *", pointer).bytes
        return message.read(self._ffi.buffer(pointer, length)[:])


def _packed(header: Header) -> bytes:
    """A header as a trace's file has it."""
    fields = np.zeros(1, HEADER)
    fields["magic"], fields["version"], fields["header_bytes"] = MAGIC, VERSION, HEADER.itemsize
    fields["record_bytes"], fields["cpus"] = RECORD.itemsize, header.cpus
    fields["tick_ns"], fields["cycles_per_second"] = header.tick_ns, header.cycles_per_second
    fields["seed"] = header.seed
    return fields.tobytes()
