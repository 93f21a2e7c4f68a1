# SPDX-License-Identifier: MIT
"""Reads a trace file into tables: columns, order and texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab import __version__
from schedlab.trace.bounds import TIME_MAX
from schedlab.trace.errors import TraceError
from schedlab.trace.format import (
    HEADER,
    MAGIC,
    RECORD,
    TEXT_BYTES_PER_RECORD,
    TEXT_FOLLOWS,
    TEXT_OWNERS,
    TEXT_RECORDS_MAX,
    VERSION,
    Kind,
    is_kind,
)
from schedlab.trace.model import EVENTS_SCHEMA, TEXTS_SCHEMA, Header, Integers, Trace

Records = npt.NDArray[np.void]

AT_ONCE = 1 << 17
"""Records of a long trace to process together (4 MiB), so that derived data fits the processor's caches."""
_CPUS_MAX = 0x10000
_SPARSE = 4
"""If sequence numbers span more than this many times the number of records, they are sorted by comparison."""


def read(path: str | Path) -> Trace:
    """Reads a trace and sorts its records.

    A truncated file is read up to where it ends, and `truncated` is set. `validate` checks whether
    the trace is consistent.

    Raises TraceError if the file is not a trace or has another version, and OSError if it cannot be
    read.
    """
    path = Path(path)
    header, record_bytes = read_header(path)
    records = map_records(path, header, record_bytes // RECORD.itemsize)
    sequence = unwrap(records["sequence"])
    order = order_of(sequence)
    if order is not None:
        sequence = sequence[order]
        records = gather(records, order)
    events = _event_table(records, sequence)
    missing = int(sequence[-1] - sequence[0]) + 1 - len(sequence) if len(sequence) else 0
    kinds = events["kind"].to_numpy()
    return Trace(
        path=path,
        header=header,
        events=events,
        texts=read_texts(records, kinds),
        truncated=bool(record_bytes % RECORD.itemsize) or not _all_ended(records, kinds, header),
        missing=max(missing, 0),
        declared_lost=int(records["second"][kinds == Kind.LOST].sum()),
    )


def read_header(path: Path) -> tuple[Header, int]:
    """Returns the header, and the number of bytes of records after it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        data = file.read(HEADER.itemsize)
    if len(data) < HEADER.itemsize:
        raise TraceError(
            f"{path}: {size} bytes are too few for a trace: the machine wrote no header"
        )
    header = header_of(path, data)
    return header, max(size - header.header_bytes, 0)


def header_of(path: Path, data: bytes) -> Header:
    """Parses the first 64 bytes of a file. Raises TraceError if they are not a supported header."""
    fields = np.frombuffer(data, HEADER)[0]
    _check_header(path, fields)
    return Header(
        cpus=int(fields["cpus"]),
        tick_ns=int(fields["tick_ns"]),
        cycles_per_second=int(fields["cycles_per_second"]),
        seed=int(fields["seed"]),
        header_bytes=int(fields["header_bytes"]),
    )


def _check_header(path: Path, fields: np.void) -> None:
    if bytes(fields["magic"]) != MAGIC:
        raise TraceError(f"{path}: not a trace: it does not begin with {MAGIC.decode()}")
    if fields["version"] != VERSION:
        raise TraceError(
            f"{path}: trace version {fields['version']}, but schedlab {__version__} "
            f"reads version {VERSION}; use the release in its manifest.json"
        )
    if fields["record_bytes"] != RECORD.itemsize:
        raise TraceError(
            f"{path}: records of {fields['record_bytes']} bytes, but version {VERSION}"
            f" has {RECORD.itemsize}: the file is damaged; record it again"
        )
    if fields["header_bytes"] < HEADER.itemsize or fields["header_bytes"] % 8:
        raise TraceError(
            f"{path}: a header of {fields['header_bytes']} bytes; expected "
            f"{HEADER.itemsize}, or a larger multiple of 8: the file is damaged; record it again"
        )
    if not 1 <= fields["cpus"] <= _CPUS_MAX:
        raise TraceError(f"{path}: a machine of {fields['cpus']} CPUs; expected 1 to {_CPUS_MAX}")
    if not 1 <= fields["cycles_per_second"] <= TIME_MAX:
        raise TraceError(
            f"{path}: the header says {fields['cycles_per_second']} cycles per second; expected 1 to"
            f" {TIME_MAX}"
        )
    if fields["tick_ns"] > TIME_MAX:
        raise TraceError(f"{path}: a tick of {fields['tick_ns']} ns; expected at most {TIME_MAX}")


def map_records(path: Path, header: Header, count: int) -> Records:
    if count == 0:
        return np.empty(0, RECORD)
    return np.memmap(path, RECORD, mode="r", offset=header.header_bytes, shape=(count,))


def unwrap(sequence: npt.NDArray[np.uint32]) -> Integers:
    """Converts 32-bit sequence numbers to 64-bit ones without wrap-around; valid for up to 2**31 records."""
    if len(sequence) == 0:
        return np.empty(0, np.int64)
    origin = sequence[0]
    unwrapped: Integers = (sequence - origin).view(np.int32).astype(np.int64)
    unwrapped += int(origin)
    if unwrapped.min() < 0:
        unwrapped += 1 << 32
    return unwrapped


def rises(
    before: npt.NDArray[np.uint32] | None, sequence: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Returns by how much each sequence number exceeds its predecessor. A huge value is a step back.

    `before`: the predecessor of the first number; None if it is the trace's first, whose result is
    1.
    """
    numbers = np.empty(len(sequence) + 1, np.uint32)
    numbers[1:] = sequence
    numbers[:1] = numbers[1:2] - 1 if before is None else before
    risen: npt.NDArray[np.uint32] = numbers[1:] - numbers[:-1]
    return risen


def order_of(sequence: Integers) -> Integers | None:
    """Returns the position of the record of each place in the order, or None if the records are in order."""
    if len(sequence) == 0 or bool((sequence[1:] > sequence[:-1]).all()):
        return None
    lowest = int(sequence.min())
    span = int(sequence.max()) - lowest + 1
    if span <= _SPARSE * len(sequence):
        order_by_life = np.full(span, -1, np.int64)
        order_by_life[sequence - lowest] = np.arange(len(sequence))
        order = order_by_life if span == len(sequence) else order_by_life[order_by_life >= 0]
        if len(order) == len(sequence) and order.min() >= 0:
            return order
    by_comparing: Integers = np.argsort(sequence, kind="stable")
    return by_comparing


def gather(records: Records, order: Integers) -> Records:
    """Returns the records at some positions; several times faster than indexing."""
    gathered: Records = np.take(_words(records), order, axis=0).view(RECORD).reshape(-1)
    return gathered


def joined(records: Records, others: Records) -> Records:
    """Concatenates records; several times faster than numpy's concatenate for structures."""
    both: Records = np.concatenate((_words(records), _words(others))).view(RECORD).reshape(-1)
    return both


def _words(records: Records) -> npt.NDArray[np.uint64]:
    return records.view(np.uint64).reshape(-1, RECORD.itemsize // 8)


def _event_table(records: Records, sequence: Integers) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "sequence": sequence,
            "time_ns": np.ascontiguousarray(records["time"]).view(np.int64),
            "cpu": records["cpu"].copy(),
            "kind": records["kind"].copy(),
            "process": records["process"].copy(),
            "first": records["first"].copy(),
            "second": records["second"].copy(),
        },
        schema=EVENTS_SCHEMA,
    )


def _all_ended(records: Records, kinds: npt.NDArray[np.int64], header: Header) -> bool:
    ended = np.unique(records["cpu"][kinds == Kind.END])
    return len(ended) >= header.cpus


def read_texts(records: Records, kinds: npt.NDArray[np.integer]) -> pl.DataFrame:
    """Assembles each text from its record and the TEXT records that follow on its CPU."""
    holders = np.flatnonzero(is_kind(kinds, *TEXT_OWNERS, Kind.TEXT))
    holders = holders[np.argsort(records["cpu"][holders], kind="stable")]
    is_owner = kinds[holders] != Kind.TEXT
    owner = np.cumsum(is_owner) - 1
    slot = np.arange(len(holders)) - np.maximum.accumulate(
        np.where(is_owner, np.arange(len(holders)), 0)
    )
    usable = (owner >= 0) & (slot < TEXT_RECORDS_MAX)
    holders, owner, slot = holders[usable], owner[usable], slot[usable]
    owners = holders[slot == 0]
    parts = np.zeros((len(owners), int(slot.max(initial=0)) + 1, TEXT_BYTES_PER_RECORD), np.uint8)
    parts[owner, slot] = _text_bytes(records[holders])
    follows = is_kind(kinds[owners], *TEXT_FOLLOWS)
    parts[follows, :-1] = parts[follows, 1:]
    parts[follows, -1] = 0
    return pl.DataFrame(
        {"row": owners, "text": _decode(parts)},
        schema=TEXTS_SCHEMA,
    ).sort("row")


def _text_bytes(records: Records) -> npt.NDArray[np.uint8]:
    joined = np.empty(len(records), np.dtype([("second", "<u8"), ("first", "<u4")]))
    joined["second"] = records["second"]
    joined["first"] = records["first"]
    return joined.view(np.uint8).reshape(-1, TEXT_BYTES_PER_RECORD)


def _decode(texts: npt.NDArray[np.uint8]) -> list[str]:
    """Decodes each text up to its first 0 byte. Few texts differ, so each distinct one is decoded once."""
    count, records, size = texts.shape
    joined = texts.reshape(count, records * size).view(f"S{records * size}").reshape(count)
    different, which = np.unique(joined, return_inverse=True)
    decoded = [text.partition(b"\0")[0].decode("utf-8", "replace") for text in different.tolist()]
    return [decoded[index] for index in which.tolist()]
