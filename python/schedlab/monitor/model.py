# SPDX-License-Identifier: MIT
"""Python interface of the live model, which turns trace records into frames (docs/monitor.md).

The implementation is the C code in model/.
"""

import mmap
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import numpy as np
from cffi import FFI

from schedlab.base.toolchain.build import MODEL_LIBRARY, build
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
_MEMORY_BYTES = 512 << 20
"""Address space of each model in bytes; only touched pages use memory."""
_SHARES_BY_CODES = {
    "equal": 0,
    "tickets": int(AttributeKind.TICKETS),
    "weight": int(AttributeKind.WEIGHT),
    "nice": int(AttributeKind.NICE),
    "groups": int(AttributeKind.TASKGROUP),
    "currencies": SHARES_BY_CURRENCIES,
}


@cache
def _library() -> tuple[Any, Any]:
    """Returns cffi's types and the library's functions."""
    build(str(MODEL_LIBRARY.relative_to(ROOT)))
    ffi = FFI()
    ffi.cdef(declarations((ROOT / "model" / "model.h").read_text()))
    return ffi, ffi.dlopen(str(MODEL_LIBRARY))


class Model:
    """Takes trace records, and computes the current state and the history shown to users.

    `policy` (name or name:preset) and `shares_by` (tickets, weight, nice, groups or equal) are the
    system's initial settings. POLICY and TUNABLE records of the trace override them. Not thread-
    safe.
    """

    def __init__(
        self, header: Header, policy: str, shares_by: str, window_ns: int = WINDOW_NS
    ) -> None:
        """Raises ValueError if the header is invalid."""
        self._monitor_pids: frozenset[int] = frozenset()
        self._record_cost_ns = 0.0
        self._ffi, self._c = _library()
        # zeroed memory, whose pages use memory only once they are written
        self._memory = mmap.mmap(-1, _MEMORY_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._model = self._ffi.cast(
            "struct model *", self._ffi.from_buffer(self._memory, require_writable=True)
        )
        name, packed = policy.encode(), _header_record(header)
        status = self._c.model_begin(
            self._model,
            _MEMORY_BYTES,
            packed,
            len(packed),
            name,
            len(name),
            _SHARES_BY_CODES[shares_by],
        )
        if status == self._ffi.NULL:
            raise ValueError(f"no model supports a trace with this header: {header}")
        self.set_window(window_ns)

    @property
    def monitor_pids(self) -> frozenset[int]:
        """PIDs that belong to the monitor. Assign this property again when the PIDs change."""
        return self._monitor_pids

    @monitor_pids.setter
    def monitor_pids(self, pids: Iterable[int]) -> None:
        pids = frozenset(pids)
        if pids != self._monitor_pids:
            self._monitor_pids = pids
            self._c.model_own(self._model, sorted(pids), len(pids))

    @property
    def record_cost_ns(self) -> float:
        """CPU time (ns) that one record costs."""
        return self._record_cost_ns

    @record_cost_ns.setter
    def record_cost_ns(self, cost_ns: float) -> None:
        self._record_cost_ns = cost_ns
        self._c.model_record_cost(self._model, cost_ns)

    def feed(self, records: Records) -> None:
        """Adds the next records in sequence order.

        The parts of a long text may be split between this call and the next.
        """
        data = np.ascontiguousarray(records, RECORD)
        self._c.model_feed(self._model, self._ffi.from_buffer(data.view(np.uint8)), len(data))

    def reach(self, time_ns: int) -> None:
        """Advances the model's clock to a time (ns), so that waits grow even without new records."""
        self._c.model_reach(self._model, time_ns)

    def apply_status(self, status: Status) -> None:
        """Applies slices, priorities and tickets from sched_status; later records override them."""
        rows = [
            (row.pid, row.priority, row.tickets, -1 if row.slice_ns is None else row.slice_ns)
            for row in status.rows
        ]
        self._c.model_status(self._model, rows, len(rows))

    def set_window(self, window_ns: int) -> None:
        """Sets the window of the metrics. After an increase, the window fills gradually."""
        self._c.model_set_window(self._model, min(window_ns, TIME_MAX))

    def frame(self, max_runs: int = 2000) -> ModelFrame:
        """Returns the current state, and the events since the last call; merges runs beyond `max_runs`."""
        return cast(ModelFrame, self._parse_message(self._c.model_frame(self._model, max_runs)))

    def history(self) -> Past:
        """Returns the kept events up to the last frame: 60 s of runs, 1,000 marks, 500 decisions.

        If there were many runs, neighbouring runs are merged.
        """
        return cast(Past, self._parse_message(self._c.model_history(self._model)))

    def explain(self, pid: int) -> Explanation:
        """Explains the waits of a process in the window.

        Raises KeyError if no such process lived in the window.
        """
        is_valid_pid = 0 < pid <= PROCESS_MAX
        explanation = self._c.model_explain(self._model, pid) if is_valid_pid else self._ffi.NULL
        if explanation == self._ffi.NULL:
            raise KeyError(pid)
        return cast(Explanation, self._parse_message(explanation))

    def _parse_message(self, pointer: Any) -> Any:
        assert pointer != self._ffi.NULL, "a message was too large"
        length = self._ffi.cast("struct model_message *", pointer).bytes
        return parse_message(self._ffi.buffer(pointer, length)[:])


def _header_record(header: Header) -> bytes:
    """Returns a header in the layout of a trace file."""
    fields = np.zeros(1, HEADER)
    fields["magic"], fields["version"], fields["header_bytes"] = MAGIC, VERSION, HEADER.itemsize
    fields["record_bytes"], fields["cpus"] = RECORD.itemsize, header.cpus
    fields["tick_ns"], fields["cycles_per_second"] = header.tick_ns, header.cycles_per_second
    fields["seed"] = header.seed
    return fields.tobytes()


_COLUMN_TYPE = np.dtype(
    [
        (name, "<u4")
        for name in ("name", "name_bytes", "kind", "width", "count", "data", "ends", "records")
    ]
)
_HEADER_BYTES = 8
_NULL, _TEXT, _LIST = 0, 5, 6
_NUMBERS = {1: "<i8", 2: "<i4", 3: "?", 4: "<f8"}
"""Kinds of columns, as `enum model_kind` numbers them."""

Record = dict[str, Any]


def parse_message(message: bytes) -> Record:
    """Parses a message into its root record: a dictionary by column name.

    Numeric columns of the root are numpy arrays. All other values are plain Python; rows are
    tuples.
    """
    count = int(np.frombuffer(message, "<u4", 2)[1])
    root: Record = {}
    lists: dict[str, list[Record]] = {"": [root]}
    for column in np.frombuffer(message, _COLUMN_TYPE, count, _HEADER_BYTES):
        begin = int(column["name"])
        name = message[begin : begin + int(column["name_bytes"])].decode()
        owner = max(
            (short_name for short_name in lists if name.startswith(f"{short_name}.")),
            key=len,
            default="",
        )
        records = lists[owner]
        values = _column_values(message, column, is_of_root=not owner)
        if int(column["kind"]) == _LIST:
            lists[name] = values
        path = name[len(owner) + 1 :] if owner else name
        for record, value in zip(records, _split_by_record(message, column, values), strict=True):
            _set_value(record, path, value)
    return root


def _column_values(message: bytes, column: np.void, is_of_root: bool) -> Any:
    """Returns a column's values by row: numbers, tuples, texts, {} for lists, or None."""
    kind, count, width = (int(column[field]) for field in ("kind", "count", "width"))
    begin = int(column["data"])
    if kind == _NULL:
        return [None] * count
    if kind == _LIST:
        return [{} for _ in range(count)]
    if kind == _TEXT:
        return _column_texts(message, begin, count)
    values = np.frombuffer(message, _NUMBERS[kind], count * max(width, 1), begin)
    if width:
        return list(map(tuple, values.reshape(-1, width).tolist()))
    return values if is_of_root and column["ends"] else values.tolist()


def _column_texts(message: bytes, begin: int, count: int) -> list[str]:
    ends = [0, *np.frombuffer(message, "<u4", count, begin).tolist()]
    texts = message[begin + 4 * count : begin + 4 * count + ends[-1]]
    return [texts[ends[index] : ends[index + 1]].decode() for index in range(count)]


def _split_by_record(message: bytes, column: np.void, values: Any) -> Any:
    """Splits a column's values among the records: each record gets one value, or a list."""
    if not column["ends"]:
        return values
    ends = np.frombuffer(message, "<u4", int(column["records"]), int(column["ends"])).tolist()
    return [values[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _set_value(record: Record, path: str, value: Any) -> None:
    """Sets a value at a path such as "cost.total"."""
    *outer, name = path.split(".")
    for item in outer:
        record = record.setdefault(item, {})
    record[name] = value
