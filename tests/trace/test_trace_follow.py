# SPDX-License-Identifier: MIT
"""Tests traces that are read while being written."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.trace import Kind, TraceError, read
from schedlab.trace.follow import Follower, Records, TextAssembler
from schedlab.trace.format import HEADER, RECORD, TEXT_OWNERS
from trace_simulator import PATIENT, RANDOMS, Record, Script, header, simulate, write

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 4),
    steps=st.integers(0, 200),
    first_sequence=st.sampled_from([0, 7, 2**31 - 50, 2**32 - 100]),
    initial_tasks=st.sampled_from([0, 3]),
)


def sequences(parts: list[Records]) -> list[int]:
    """Returns the sequence numbers in order of delivery."""
    return [number for part in parts for number in part["sequence"].tolist()]


def expected(path: Path) -> list[int]:
    """Returns the output of the reader of whole traces."""
    return [number & 0xFFFF_FFFF for number in read(path).events["sequence"].to_list()]


@settings(PATIENT, max_examples=60)
@given(script=SCRIPTS, source=RANDOMS, shuffled=st.booleans())
def test_growing_file_gives_the_same_records(
    script: Script, source: random.Random, shuffled: bool
) -> None:
    """This holds for any order of blocks, and if a write ends within a record or the header."""
    with tempfile.TemporaryDirectory() as directory:
        full_path = write(Path(directory) / "whole", simulate(source, script), script, 8, None)
        if shuffled:  # Blocks of one CPU stay in order; blocks of several CPUs need not.
            mix_cpus(full_path, source)
        data = full_path.read_bytes()
        path = Path(directory) / "trace.bin"
        follower = Follower(path)
        assert follower.header is None and len(follower.poll()) == 0
        parts: list[Records] = []
        at = 0
        with path.open("wb", buffering=0) as file:
            while at < len(data):
                size = source.choice((1, 31, 32, 63, 64, 500, 5000))
                at += file.write(data[at : at + size])
                given_now = follower.poll(source.choice((1, 3, 1000)))
                assert not in_order_but_gaps([*parts, given_now])
                parts.append(given_now)
                follower.punch()
        while follower.unread_bytes:
            parts.append(follower.poll())
        parts.append(follower.poll())
        assert follower.ended
        assert sequences(parts) == expected(full_path)
        assert follower.missing == 0
        follower.close()


def mix_cpus(path: Path, source: random.Random) -> None:
    """Reorders the records of several CPUs, but keeps each CPU's order."""
    data = path.read_bytes()
    records = np.frombuffer(data, RECORD, offset=64)
    queues = {cpu: list(records[records["cpu"] == cpu]) for cpu in set(records["cpu"].tolist())}
    out = []
    while queues:
        cpu = source.choice(sorted(queues))
        for _ in range(source.randrange(1, 40)):
            if queues[cpu]:
                out.append(queues[cpu].pop(0))
        if not queues[cpu]:
            del queues[cpu]
    path.write_bytes(data[:64] + b"".join(record.tobytes() for record in out))


def in_order_but_gaps(parts: list[Records]) -> bool:
    """Returns True if there is a gap between two neighbours."""
    numbers = np.array(sequences(parts), np.uint32)
    return bool((np.diff(numbers) != 1).any())


def small_trace(path: Path, steps: int = 300) -> list[Record]:
    """Returns a trace of two CPUs."""
    script = Script(cpus=2, steps=steps)
    records = simulate(random.Random(5), script)
    write(path, records, script, 8)
    return records


def test_no_trace_is_refused(tmp_path: Path) -> None:
    """It is refused as soon as its header is complete."""
    path = tmp_path / "trace.bin"
    path.write_bytes(b"no trace" * 7)
    follower = Follower(path)
    assert follower.header is None
    with path.open("ab") as file:
        file.write(b"no trace")
    with pytest.raises(TraceError, match="not a trace"):
        follower.poll()


def test_memory_is_bounded_by_giving_up_a_gap(tmp_path: Path) -> None:
    """The follower does not wait forever for missing records; it reports their number."""
    path = tmp_path / "trace.bin"
    records = [record for record in small_trace(path) if record.kind != Kind.END]
    others = [record for record in records if not 40 <= record.sequence < 45]
    path.write_bytes(header(2) + b"".join(record.pack() for record in others))
    follower = Follower(path, buffered_records=100)
    parts = []
    while follower.unread_bytes:
        parts.append(follower.poll(50))
    assert sequences(parts) == [record.sequence for record in others]
    assert follower.missing == 5


def test_punching_frees_blocks_and_reading_goes_on(tmp_path: Path) -> None:
    """The file keeps its size and its header."""
    path = tmp_path / "trace.bin"
    records = small_trace(path, 30_000)
    data = path.read_bytes()
    half = 64 + (len(data) // 64) * 32
    path.write_bytes(data[:half])
    os.sync()
    follower = Follower(path)
    parts = [follower.poll()]
    before = path.stat().st_blocks
    if not follower.punch():
        pytest.skip("this file system cannot punch holes")
    assert path.stat().st_size == half
    assert path.stat().st_blocks <= before / 4
    assert path.read_bytes()[: HEADER.itemsize] == data[: HEADER.itemsize]
    with path.open("ab") as file:
        file.write(data[half:])
    parts.append(follower.poll())
    assert follower.punch() and path.stat().st_blocks <= before / 4
    assert sequences(parts) == [record.sequence for record in records]


@settings(PATIENT, max_examples=20)
@given(script=SCRIPTS, source=RANDOMS)
def test_texts_are_those_of_the_reader(script: Script, source: random.Random) -> None:
    """They are joined record by record, with other CPUs' records in between."""
    records = simulate(source, script)
    with tempfile.TemporaryDirectory() as directory:
        trace = read(write(Path(directory) / "trace.bin", records, script, 8))
    reader = TextAssembler()
    owner: dict[int, int] = {}
    texts: dict[int, str] = {}
    for row, record in enumerate(records):
        if record.kind in TEXT_OWNERS:
            owner[record.cpu] = row
            texts[row] = reader.begin(record.cpu, record.kind, record.first, record.second)
        elif record.kind == Kind.TEXT:
            texts[owner[record.cpu]] = reader.go_on(record.cpu, record.first, record.second)
    assert texts == dict(trace.texts.iter_rows())


KEEPS_THE_LAST = """
import sys
from collections import deque
from pathlib import Path

import numpy as np
import psutil

from schedlab.trace.follow import Follower
from schedlab.trace.format import RECORD, Kind

path, polls, kept, piece = Path(sys.argv[1]), *map(int, sys.argv[2:])
records = np.zeros(polls * piece, RECORD)
records["sequence"] = np.arange(len(records))
records["kind"] = Kind.YIELD
records["kind"][0] = Kind.START
follower, last = Follower(path), deque(maxlen=kept)
memory = psutil.Process().memory_full_info
for at in range(0, len(records), piece):
    with path.open("ab") as file:
        file.write(records[at : at + piece].tobytes())
    last.append(follower.poll())
    assert len(last[-1]) == piece and len(follower.poll()) == 0
    if at == len(records) // 2:
        before = memory().uss
print(memory().uss - before)
"""


def test_polling_needs_memory_only_for_buffered_records(tmp_path: Path) -> None:
    """As in a monitor: the last polls are kept completely, earlier ones are discarded."""
    path, polls, retained_count, piece = tmp_path / "trace.bin", 8000, 500, 20
    path.write_bytes(header(1))
    numbers = map(str, (polls, retained_count, piece))
    command = [sys.executable, "-c", KEEPS_THE_LAST, str(path), *numbers]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    of_a_leak = polls // 2 * piece * RECORD.itemsize
    assert int(result.stdout) < of_a_leak / 4
