# SPDX-License-Identifier: MIT
"""Reads a trace file into memory: sorts its records, and assembles its texts."""

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

PART_RECORDS = 1 << 17
"""Number of records that are processed together (4 MiB), so that derived data stays in caches."""
_CPUS_MAX = 0x10000
_SPARSE_RATIO = 4
"""If sequence numbers reach over more than this × the number of records, they are sorted by comparison."""


def read(path: str | Path) -> Trace:
    """Reads a trace and sorts its records.

    A truncated file is read as far as it goes, and `truncated` is set. Use `validate` to check the
    records. Raises TraceError if the file is not a trace or has another version, and OSError if it
    cannot be read.
    """
    path = Path(path)
    header, record_bytes = read_header(path)
    records = map_records(path, header, record_bytes // RECORD.itemsize)
    sequence = unwrap_sequence(records["sequence"])
    order = sequence_order(sequence)
    if order is not None:
        sequence = sequence[order]
        records = select_records(records, order)
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
    """Returns the header, and how many bytes of records follow it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        data = file.read(HEADER.itemsize)
    if len(data) < HEADER.itemsize:
        raise TraceError(
            f"{path}: {size} bytes are too few for a trace: the machine wrote no header; repeat the run"
        )
    header = parse_header(path, data)
    return header, max(size - header.header_bytes, 0)


def parse_header(path: Path, data: bytes) -> Header:
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


_DAMAGED_FIX = "the file is damaged; record it again"


def _check_header(path: Path, fields: np.void) -> None:
    if bytes(fields["magic"]) != MAGIC:
        raise TraceError(
            f"{path}: not a trace: it does not begin with {MAGIC.decode()}; name the trace.bin of a run"
        )
    if fields["version"] != VERSION:
        raise TraceError(
            f"{path}: trace version {fields['version']}, but schedlab {__version__} "
            f"reads version {VERSION}; use the release in its manifest.json"
        )
    if fields["record_bytes"] != RECORD.itemsize:
        raise TraceError(
            f"{path}: records of {fields['record_bytes']} bytes, but version {VERSION}"
            f" has {RECORD.itemsize}: {_DAMAGED_FIX}"
        )
    if fields["header_bytes"] < HEADER.itemsize or fields["header_bytes"] % 8:
        raise TraceError(
            f"{path}: a header of {fields['header_bytes']} bytes; expected "
            f"{HEADER.itemsize}, or a larger multiple of 8: {_DAMAGED_FIX}"
        )
    if not 1 <= fields["cpus"] <= _CPUS_MAX:
        raise TraceError(
            f"{path}: a machine of {fields['cpus']} CPUs; expected 1 to {_CPUS_MAX}: {_DAMAGED_FIX}"
        )
    if not 1 <= fields["cycles_per_second"] <= TIME_MAX:
        raise TraceError(
            f"{path}: the header says {fields['cycles_per_second']} cycles per second; expected 1 to"
            f" {TIME_MAX}: {_DAMAGED_FIX}"
        )
    if fields["tick_ns"] > TIME_MAX:
        raise TraceError(
            f"{path}: a tick of {fields['tick_ns']} ns; expected at most {TIME_MAX}: {_DAMAGED_FIX}"
        )


def map_records(path: Path, header: Header, count: int) -> Records:
    """Returns the records of a file, mapped into memory."""
    if count == 0:
        return np.empty(0, RECORD)
    return np.memmap(path, RECORD, mode="r", offset=header.header_bytes, shape=(count,))


def unwrap_sequence(sequence: npt.NDArray[np.uint32]) -> Integers:
    """Converts 32-bit sequence numbers to 64-bit numbers without wrap-around; for up to 2**31 records."""
    if len(sequence) == 0:
        return np.empty(0, np.int64)
    origin = sequence[0]
    unwrapped: Integers = (sequence - origin).view(np.int32).astype(np.int64)
    unwrapped += int(origin)
    if unwrapped.min() < 0:
        unwrapped += 1 << 32
    return unwrapped


def sequence_differences(
    before: npt.NDArray[np.uint32] | None, sequence: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Returns the differences between consecutive sequence numbers; a huge difference is a step
    back.

    `before`: the number before the first one. If it is None, the first difference is 1.
    """
    numbers = np.empty(len(sequence) + 1, np.uint32)
    numbers[1:] = sequence
    numbers[:1] = numbers[1:2] - 1 if before is None else before
    differences: npt.NDArray[np.uint32] = numbers[1:] - numbers[:-1]
    return differences


def sequence_order(sequence: Integers) -> Integers | None:
    """Returns the indices that sort records by sequence number, or None if they are in order."""
    if len(sequence) == 0 or bool((sequence[1:] > sequence[:-1]).all()):
        return None
    lowest = int(sequence.min())
    span = int(sequence.max()) - lowest + 1
    if span <= _SPARSE_RATIO * len(sequence):
        index_by_sequence = np.full(span, -1, np.int64)
        index_by_sequence[sequence - lowest] = np.arange(len(sequence))
        order = (
            index_by_sequence
            if span == len(sequence)
            else index_by_sequence[index_by_sequence >= 0]
        )
        if len(order) == len(sequence) and order.min() >= 0:
            return order
    by_comparing: Integers = np.argsort(sequence, kind="stable")
    return by_comparing


def select_records(records: Records, order: Integers) -> Records:
    """Returns the records at some indices; several times faster than numpy's own indexing."""
    gathered: Records = np.take(_as_words(records), order, axis=0).view(RECORD).reshape(-1)
    return gathered


def concatenate_records(records: Records, others: Records) -> Records:
    """Concatenates records; several times faster than numpy's concatenate for structures."""
    both: Records = np.concatenate((_as_words(records), _as_words(others))).view(RECORD).reshape(-1)
    return both


def _as_words(records: Records) -> npt.NDArray[np.uint64]:
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
    ended_cpus = np.unique(records["cpu"][kinds == Kind.END])
    return len(ended_cpus) >= header.cpus


def read_texts(
    records: Records, kinds: npt.NDArray[np.integer], rows: Integers | None = None
) -> pl.DataFrame:
    """Assembles each text from its record and the TEXT records that follow on its CPU.

    `rows`: the row of each record; by default its index.
    """
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
    pieces = np.zeros((len(owners), int(slot.max(initial=0)) + 1, TEXT_BYTES_PER_RECORD), np.uint8)
    pieces[owner, slot] = _text_bytes(records[holders])
    follows = is_kind(kinds[owners], *TEXT_FOLLOWS)
    pieces[follows, :-1] = pieces[follows, 1:]
    pieces[follows, -1] = 0
    order = np.argsort(owners)
    owners = owners[order]
    return pl.DataFrame(
        {"row": owners if rows is None else rows[owners], "text": _decode(pieces[order])},
        schema=TEXTS_SCHEMA,
    )


def _text_bytes(records: Records) -> npt.NDArray[np.uint8]:
    joined = np.empty(len(records), np.dtype([("second", "<u8"), ("first", "<u4")]))
    joined["second"] = records["second"]
    joined["first"] = records["first"]
    return joined.view(np.uint8).reshape(-1, TEXT_BYTES_PER_RECORD)


def _decode(texts: npt.NDArray[np.uint8]) -> list[str]:
    """Decodes each text up to its first 0 byte; each distinct text only once, because few differ."""
    count, records, size = texts.shape
    joined = texts.reshape(count, records * size).view(f"S{records * size}").reshape(count)
    distinct, which = np.unique(joined, return_inverse=True)
    decoded = [text.partition(b"\0")[0].decode("utf-8", "replace") for text in distinct.tolist()]
    return [decoded[index] for index in which.tolist()]
