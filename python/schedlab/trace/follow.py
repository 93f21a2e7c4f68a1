# SPDX-License-Identifier: MIT
"""Reads a trace while it is being written."""

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from schedlab.trace.bounds import has_impossible_field
from schedlab.trace.errors import TraceError
from schedlab.trace.format import HEADER, RECORD, TEXT_FOLLOWS, TEXT_RECORDS_MAX, Kind
from schedlab.trace.model import Header, Integers
from schedlab.trace.reader import parse_header, select_records

Records = npt.NDArray[np.void]
"""Records of dtype RECORD."""

POLL_RECORDS = 262_144
"""Maximum number of records per read (8 MiB)."""
BUFFERED_RECORDS = 1 << 20
"""Maximum number of records held back behind a gap (32 MiB); then the gap counts as lost."""

_KEEP_SIZE_AND_PUNCH_HOLE = 0x01 | 0x02
"""Modes of fallocate(2)."""


class Follower:
    """Returns each record of a growing trace once, in sequence order.

    A CPU writes a block of records only when it is full, so the file may have gaps for a while.
    Records after a gap are held back until the gap is filled. The file and its header may be
    missing at first. `opener`: as for open(), for example with stricter checks than os.open.
    """

    def __init__(
        self,
        path: Path,
        buffered_records: int = BUFFERED_RECORDS,
        opener: Callable[[str, int], int] = os.open,
    ) -> None:
        self.path = path
        self.missing = 0
        """Number of sequence numbers that were skipped, because their records were not in the file in time."""
        self._buffer_limit = buffered_records
        self._header: Header | None = None
        self._opener = opener
        self._descriptor = -1
        self._offset = 0
        """Offset of the first unread byte."""
        self._punched = 0
        """Blocks before this offset were freed, except the header's block."""
        self._buffered = np.empty(0, RECORD)
        self._buffered_sequence = np.empty(0, np.int64)
        self._next: int | None = None
        """The next sequence number to return, unwrapped; None until the first records of all CPUs are known."""
        self._started: set[int] = set()
        self._ended: set[int] = set()

    @property
    def header(self) -> Header | None:
        """The header, or None until it is written. Raises TraceError if the file is not a trace."""
        if self._header is None and self._open():
            data = os.pread(self._descriptor, HEADER.itemsize, 0)
            if len(data) == HEADER.itemsize:
                self._header = parse_header(self.path, data)
                self._offset = self._header.header_bytes
        return self._header

    @property
    def unread_bytes(self) -> int:
        """Number of bytes in the file that are not yet read."""
        if self.header is None:
            return 0
        return max(os.fstat(self._descriptor).st_size - self._offset, 0)

    @property
    def quiet_s(self) -> float:
        """Seconds since the last write to the file. Call only when the header is known."""
        return time.time() - os.fstat(self._descriptor).st_mtime

    @property
    def ended(self) -> bool:
        """True once all CPUs have written END and all records were returned."""
        return self._all_ended() and len(self._buffered) == 0

    def poll(self, records_max: int = POLL_RECORDS) -> Records:
        """Reads more of the file, and returns the records up to the first gap.

        Reads at most `records_max` records. Raises TraceError if the file is not a trace or a record has
        impossible numbers, and OSError if the file cannot be read.
        """
        self._hold_back(self._read(records_max))
        if self._all_ended():
            return self._pop_all()
        complete_records = self._pop_until_gap()
        while len(complete_records) == 0 and len(self._buffered) > self._buffer_limit:
            self._skip_gap()
            complete_records = self._pop_until_gap()
        return complete_records

    def finish(self) -> Records:
        """Returns all remaining records, even behind gaps. Call after the last write.

        Raises the same errors as poll().
        """
        while len(records := self._read(POLL_RECORDS)):
            self._hold_back(records)
        return self._pop_all()

    def punch(self) -> bool:
        """Frees the disk blocks that were read; the file keeps its size.

        Returns False if the file system cannot do this, or if the file is not writable.
        """
        if self.header is None:
            return True
        block = os.fstat(self._descriptor).st_blksize
        begin = max(self._punched, block)
        end = self._offset // block * block
        if end <= begin:
            return True
        done = _free_blocks(self.path, self._descriptor, begin, end - begin)
        self._punched = end if done else self._punched
        return done

    def close(self) -> None:
        """Closes the file. May be called repeatedly."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> bool:
        if self._descriptor < 0:
            try:
                self._descriptor = self._opener(str(self.path), os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        return True

    def _read(self, records_max: int) -> Records:
        """Returns the next complete records of the file, in file order."""
        if self.header is None:
            return np.empty(0, RECORD)
        # A buffer that is larger than the available data would shrink in place and fragment the
        # heap.
        limit = min(records_max, self.unread_bytes // RECORD.itemsize)
        data = os.pread(self._descriptor, limit * RECORD.itemsize, self._offset)
        count = len(data) // RECORD.itemsize
        records = np.frombuffer(data, RECORD, count)
        is_impossible = has_impossible_field(records, self.header.cpus)
        if is_impossible.any():
            at = self._offset + int(is_impossible.argmax()) * RECORD.itemsize
            raise TraceError(
                f"{self.path}: the record at byte {at} has an impossible time, CPU, "
                "process or cycle counter: the trace is damaged; record it again"
            )
        self._offset += count * RECORD.itemsize
        return records

    def _hold_back(self, records: Records) -> None:
        """Adds records to the held-back ones, in sequence order."""
        if len(records) == 0:
            return
        self._note_starts_and_ends(records)
        sequence = np.concatenate((self._buffered_sequence, self._unwrap(records["sequence"])))
        joined = np.concatenate((self._buffered, records)) if len(self._buffered) else records
        if bool((sequence[1:] <= sequence[:-1]).any()):
            order = np.argsort(sequence, kind="stable")
            sequence, joined = sequence[order], select_records(joined, order)
        self._buffered, self._buffered_sequence = joined, sequence
        if self._next is None and self._header and len(self._started) >= self._header.cpus:
            # Each CPU writes its records in order, so none of these precedes a record already held
            # back.
            self._next = int(sequence[0])

    def _note_starts_and_ends(self, records: Records) -> None:
        for kind, cpus in ((Kind.START, self._started), (Kind.END, self._ended)):
            cpus.update(records["cpu"][records["kind"] == kind].tolist())

    def _unwrap(self, sequence: npt.NDArray[np.uint32]) -> Integers:
        """Returns the sequence numbers as 64-bit numbers without wrap-around, near the next expected one."""
        near = self._next
        if near is None:
            near = (
                int(self._buffered_sequence[0])
                if len(self._buffered)
                else int(sequence[0]) + (1 << 32)
            )
        difference: Integers = (sequence - np.uint32(near & 0xFFFF_FFFF)).view(np.int32)
        return difference.astype(np.int64) + near

    def _all_ended(self) -> bool:
        return self._header is not None and len(self._ended) >= self._header.cpus

    def _pop_until_gap(self) -> Records:
        """Removes and returns the records before the first gap."""
        sequence = self._buffered_sequence
        if self._next is None or len(sequence) == 0 or sequence[0] > self._next:
            return np.empty(0, RECORD)
        gaps = np.flatnonzero(np.diff(sequence) > 1)
        count = int(gaps[0]) + 1 if len(gaps) else len(sequence)
        records = self._buffered[:count]
        self._next = max(self._next, int(sequence[count - 1]) + 1)
        # Copies, so that the caller does not keep the whole buffer in memory.
        self._buffered, self._buffered_sequence = (
            self._buffered[count:].copy(),
            sequence[count:].copy(),
        )
        return records

    def _skip_gap(self) -> None:
        """Counts the missing records before the next buffered one as lost."""
        first = int(self._buffered_sequence[0])
        self.missing += max(first - self._next, 0) if self._next is not None else 0
        self._next = first

    def _pop_all(self) -> Records:
        given, sequence = self._buffered, self._buffered_sequence
        if len(given):
            first = int(sequence[0]) if self._next is None else self._next
            steps = np.diff(sequence, prepend=first - 1) - 1
            self.missing += int(steps[steps > 0].sum())
            self._next = max(first, int(sequence[-1]) + 1)
            self._buffered, self._buffered_sequence = given[:0].copy(), sequence[:0].copy()
        return given


def _free_blocks(path: Path, read_descriptor: int, offset: int, length: int) -> bool:
    """Frees disk blocks with fallocate(2), whose modes os.posix_fallocate does not support."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if not os.path.sameopenfile(descriptor, read_descriptor):
            return False  # another file has replaced this file
        call = ctypes.CDLL(None, use_errno=True).fallocate
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        return bool(call(descriptor, _KEEP_SIZE_AND_PUNCH_HOLE, offset, length) == 0)
    finally:
        os.close(descriptor)


class TextAssembler:
    """Assembles texts from their records, which may be interleaved with those of other CPUs.

    `begin` and `go_on` return the text so far. A text is complete when the CPU's next record is not
    a TEXT.
    """

    def __init__(self) -> None:
        self._data: dict[int, bytes] = {}
        self._records: dict[int, int] = {}

    def begin(self, cpu: int, kind: int, first: int, second: int) -> str:
        """Starts a text with a record of TEXT_OWNERS."""
        self._data[cpu] = b"" if kind in TEXT_FOLLOWS else _packed_text(first, second)
        self._records[cpu] = 1
        return self._text(cpu)

    def go_on(self, cpu: int, first: int, second: int) -> str:
        """Appends a TEXT record."""
        count = self._records.get(cpu, TEXT_RECORDS_MAX)
        if count < TEXT_RECORDS_MAX:
            self._data[cpu] += _packed_text(first, second)
            self._records[cpu] = count + 1
        return self._text(cpu)

    def _text(self, cpu: int) -> str:
        return self._data.get(cpu, b"").partition(b"\0")[0].decode("utf-8", "replace")


def _packed_text(first: int, second: int) -> bytes:
    return second.to_bytes(8, "little") + first.to_bytes(4, "little")
