# SPDX-License-Identifier: MIT
"""Tests reading traces and detecting their errors, with random and with damaged traces."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conftest import ROOT
from naive_validation import first_breach
from schedlab.metrics import compute
from schedlab.metrics.shares import ATTRIBUTE_DEFAULTS
from schedlab.trace import (
    AttributeKind,
    Kind,
    MarkKind,
    TraceError,
    read,
    validate,
)
from trace_simulator import PATIENT, RANDOMS, Record, Script, header, load, simulate, write

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 5),
    steps=st.integers(0, 250),
    first_sequence=st.sampled_from([0, 2**32 - 100]),
    pids=st.sampled_from([0, 4]),
    initial_tasks=st.sampled_from([0, 0, 3, 7]),
    queues=st.booleans(),
)


def check(records: list[Record], script: Script, path: Path) -> TraceError:
    """Returns the error for a damaged trace."""
    with pytest.raises(TraceError) as caught:
        validate(read(write(path, records, script, 8)))
    return caught.value


def named_by_validate(records: list[Record], script: Script) -> int | None:
    """Returns the sequence number of the record that `validate` names, or None for a valid
    trace.
    """
    with tempfile.TemporaryDirectory() as directory:
        trace = read(write(Path(directory) / "trace.bin", records, script, 8))
        try:
            validate(trace)
        except TraceError as error:
            return error.record.sequence if error.record else -1
    return None


def named_by_hand(records: list[Record], script: Script) -> int | None:
    """Returns the same, computed slowly."""
    place = first_breach(records, script.cpus)
    return None if place is None else records[place].sequence


# --- the format


def test_attributes_that_nobody_set_are_those_of_the_policies() -> None:
    """They match policies/policy.h; there the root of all groups is 0, without another name."""
    text = (ROOT / "policies" / "policy.h").read_text()
    others = {kind: value for kind, value in ATTRIBUTE_DEFAULTS.items() if kind.name != "TASKGROUP"}
    assert ATTRIBUTE_DEFAULTS.get(AttributeKind.TASKGROUP) == 0
    for kind, value in others.items():
        assert re.search(rf"#define {kind.name}_DEFAULT\s+{value}\b", text)


@settings(PATIENT, max_examples=60)
@given(script=SCRIPTS, source=RANDOMS, shuffled=st.booleans())
def test_events_come_in_order_whatever_the_order_of_blocks(
    script: Script, source: random.Random, shuffled: bool
) -> None:
    """Each record occurs once, in sequence order, with all its numbers."""
    records = simulate(source, script)
    trace = load(records, script, source if shuffled else None)
    rows = [
        (time, sequence, process, kind, cpu, first, second)
        for sequence, time, cpu, kind, process, first, second in trace.events.iter_rows()
    ]
    assert rows == records
    assert (trace.truncated, trace.lost) == (False, 0)
    validate(trace)


@pytest.mark.parametrize("length", [1, 8, 11, 12, 13, 24, 25, 252])
def test_texts_of_any_length(length: int) -> None:
    """A text has one record or many, with other CPUs' records in between."""
    text = "".join(chr(ord("a") + index % 26) for index in range(length))
    parts = [text.encode()[index : index + 12].ljust(12, b"\0") for index in range(0, length, 12)]
    records = [Record(0, cpu, 0, Kind.START, cpu, 0, 0) for cpu in (0, 1)]
    for number, part in enumerate(parts):
        kind = Kind.TEXT if number else Kind.POLICY
        first, second = int.from_bytes(part[8:], "little"), int.from_bytes(part[:8], "little")
        for cpu in (0, 1):
            records.append(Record(0, len(records), 0, kind, cpu, first, second))
    for cpu in (0, 1):
        records.append(Record(0, len(records), 0, Kind.END, cpu, 0, len(parts) + 2))
    trace = load(records, Script(cpus=2))
    validate(trace)
    assert trace.texts.rows() == [(2, text), (3, text)]


# --- incomplete files


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "too few for a trace"),
        (b"SCHEDLAB", "too few for a trace"),
        (b"#!/bin/sh\n" * 10, "not a trace"),
        (
            header(1, version=2),
            r"version 2, but schedlab \S+ reads version 1; use the release in its manifest.json",
        ),
        (header(1, version=0), "trace version 0, but "),
        (header(1, record_bytes=24), "records of 24 bytes"),
        (header(1, header_bytes=32), "a header of 32 bytes"),
        (header(0), "0 CPUs"),
        (header(1, 0), "0 cycles"),
    ],
)
def test_what_is_no_trace(data: bytes, problem: str, tmp_path: Path) -> None:
    """The error states the reason."""
    path = tmp_path / "trace.bin"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=problem):
        read(path)


def test_a_longer_header_is_skipped(tmp_path: Path) -> None:
    """Later versions may add fields there."""
    script = Script(cpus=1, steps=50)
    records = simulate(random.Random(1), script)
    path = write(tmp_path / "trace.bin", records, script)
    data = path.read_bytes()
    path.write_bytes(header(1, header_bytes=96) + bytes(32) + data[64:])
    assert read(path).events.equals(load(records, script).events)


@settings(PATIENT, max_examples=60)
@given(script=SCRIPTS, source=RANDOMS)
def test_complete_part_of_a_truncated_trace_is_valid(script: Script, source: random.Random) -> None:
    """Records that a CPU could not write are counted."""
    records = simulate(source, script)
    cut = source.randrange(64, 64 + 32 * len(records))
    trace = load(records, script, None, cut)
    validate(trace)
    assert trace.truncated
    sequences = set(trace.events["sequence"])
    assert len(sequences) == (cut - 64) // 32
    assert trace.missing == (
        max(sequences) - min(sequences) + 1 - len(sequences) if sequences else 0
    )


def test_a_gap_before_the_cut_is_no_truncation(tmp_path: Path) -> None:
    """Only a CPU's last records may be missing."""
    script = Script(cpus=2, steps=200)
    records = simulate(random.Random(3), script)
    missing = len(records) // 3
    path = write(tmp_path / "trace.bin", records[:missing] + records[missing + 1 :], script, 4)
    path.write_bytes(path.read_bytes()[:-100])
    trace = read(path)
    assert trace.truncated
    with pytest.raises(TraceError, match="1 records before it are missing") as caught:
        validate(trace)
    assert caught.value.record
    assert caught.value.record.sequence == missing + 1


@settings(PATIENT, max_examples=30)
@given(script=SCRIPTS, source=RANDOMS)
def test_machine_may_omit_scheduler_events(script: Script, source: random.Random) -> None:
    """A trace without any SCHEDULER_ENTER and _EXIT is valid: picks are counted by switches."""
    visits = (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
    remaining_records = [record for record in simulate(source, script) if record.kind not in visits]
    of_cpu: Counter[int] = Counter()
    records = []
    for number, record in enumerate(remaining_records):
        of_cpu[record.cpu] += 1
        second = of_cpu[record.cpu] if record.kind == Kind.END else record.second
        records.append(record._replace(sequence=number, second=second))
    trace = load(records, script)
    validate(trace)
    measured = compute(trace)
    assert measured.summary["overhead_share"].is_null().all()
    if not any(record.kind == Kind.MARK and record.first == MarkKind.BEGIN for record in records):
        picked = sum(record.kind == Kind.SWITCH and record.process != 0 for record in records)
        assert measured.processes["selections"].sum() == picked


# --- damaged traces


FIELDS = ("time", "process", "kind", "cpu", "first", "second")


@settings(PATIENT, max_examples=300)
@given(script=SCRIPTS, source=RANDOMS, field=st.sampled_from(FIELDS))
def test_any_single_wrong_number_is_judged_like_the_oracle(
    script: Script, source: random.Random, field: str
) -> None:
    """Changes one field of one record; the same record is named, or none if the change is
    harmless.
    """
    records = simulate(source, script)
    at = source.randrange(len(records))
    values = [getattr(source.choice(records), field), source.randrange(24), 0, 2**31 + 5]
    values += [getattr(records[at], field) + change for change in (-1, 1)]
    limit = {"kind": 2**16, "cpu": 2**16, "process": 2**32, "first": 2**32}.get(field, 2**64)
    records[at] = records[at]._replace(**{field: source.choice(values) % limit})
    trace = load(records, script)
    assume(not trace.truncated)
    assert named_by_validate(records, script) == named_by_hand(records, script)


@settings(PATIENT, max_examples=150)
@given(script=SCRIPTS, source=RANDOMS, change=st.integers(0, 2))
def test_invented_record_is_detected(script: Script, source: random.Random, change: int) -> None:
    """Removes a record, duplicates one, or swaps two, and renumbers them."""
    records = simulate(source, script)
    at = source.randrange(len(records) - 1)
    if change == 0:
        del records[at]
    elif change == 1:
        records.insert(at, records[at])
    else:
        records[at], records[at + 1] = records[at + 1], records[at]
    records = [record._replace(sequence=number) for number, record in enumerate(records)]
    assume(not load(records, script).truncated)
    assert named_by_validate(records, script) == named_by_hand(records, script)


def story(*after: tuple[int, int, int, int, int]) -> list[Record]:
    """Two CPUs, process 1 on CPU 0, process 2 runnable; then the given records: kind, cpu, …"""
    common = [
        (Kind.START, 0, 0, 0, 0),
        (Kind.START, 1, 0, 0, 0),
        (Kind.FORK, 0, 0, 1, 0),
        (Kind.SCHEDULER_ENTER, 0, 0, 0, 10),
        (Kind.SWITCH, 0, 1, 0, 0),
        (Kind.SCHEDULER_EXIT, 0, 1, 0, 20),
        (Kind.FORK, 0, 1, 2, 0),
    ]
    rows = [*common, *after]
    for cpu in (0, 1):
        rows.append((Kind.END, cpu, 0, 0, sum(row[1] == cpu for row in rows) + 1))
    return [
        Record(100 * number, number, process, kind, cpu, first, second)
        for number, (kind, cpu, process, first, second) in enumerate(rows)
    ]


def enter(cpu: int, process: int, cycles: int = 30) -> tuple[int, int, int, int, int]:
    """SCHEDULER_ENTER."""
    return (Kind.SCHEDULER_ENTER, cpu, process, 0, cycles)


IMPOSSIBLE: list[tuple[list[Record], int, str]] = [
    (story(enter(1, 0), (Kind.SWITCH, 1, 1, 0, 0)), 8,
     "process 1 runs on CPU 0 since record 4 .SWITCH on CPU 0.; expected a runnable one"),
    (story(enter(1, 0), (Kind.SWITCH, 1, 3, 0, 0)), 8, "process 3 was never forked"),
    (story((Kind.WAKEUP, 0, 2, 1, 0)), 7,
     "process 2 is runnable since record 6 .FORK on CPU 0.; expected a blocked one"),
    (story((Kind.FORK, 0, 1, 2, 0)), 7, "process 2 is runnable .* expected a free PID"),
    (story(enter(0, 1), (Kind.SWITCH, 0, 2, 0, 0)), 8, "process 1 runs on this CPU"),
    (story((Kind.EXIT, 0, 1, 0, 0), enter(0, 1), (Kind.SWITCH, 0, 0, 1, 4),
           (Kind.SCHEDULER_EXIT, 0, 0, 0, 40), enter(1, 0), (Kind.SWITCH, 1, 1, 0, 0)), 12,
     "process 1 is a zombie since record 9"),
    (story((Kind.BLOCK, 0, 2, 1, 0)), 7, "process 1 runs on this CPU"),
    (story((Kind.BLOCK, 0, 1, 10, 0)), 7, "no reason to block 10"),
    (story((Kind.SWITCH, 0, 2, 1, 1)), 7, "the scheduler was not entered"),
    (story((Kind.SCHEDULER_EXIT, 0, 1, 0, 30)), 7, "the scheduler was not entered"),
    (story(enter(0, 1), enter(0, 1)), 8, "the scheduler was entered before"),
    (story(enter(0, 1, 19)), 7, "cycle counter was higher"),
    (story((Kind.TEXT, 0, 0, 0, 0)), 7, "no EXEC, POLICY, TUNABLE, FOUND or SAID before it"),
    (story((Kind.LOST, 0, 0, 0, 5)), 7, "could not keep 5 records"),
    (story((28, 0, 0, 0, 0)), 7, "no kind 28"),
    (story((Kind.DISPATCH, 0, 2, 6, 0)), 7, "no callback 6"),
    (story((Kind.KICK, 0, 2, 6, 0)), 7, "no callback 6"),
    (story((Kind.KICK, 0, 2, 1, 2)), 7, "there is no CPU 2: the header says 2 CPUs"),
    (story((Kind.KICK, 0, 2, 1, 8 << 32)), 7, "no flags 8 of a kick"),
    (story((Kind.TASK_GROUP, 0, 1, 5, 0)), 7, "no field of a group of tasks 5"),
    (story((Kind.AFFINITY, 0, 2, 0, 2), enter(0, 1), (Kind.SWITCH, 0, 2, 1, 1)), 9,
     "process 2 may not run on this CPU"),
    (story((Kind.AFFINITY, 1, 1, 0, 1), (Kind.FORK, 0, 1, 3, 0), enter(1, 0),
           (Kind.SWITCH, 1, 3, 0, 0)), 10, "process 3 may not run on this CPU"),
    (story((Kind.AFFINITY, 0, 2, 1, 0)), 7, "CPUs that do not exist"),
    (story((Kind.QUEUED, 0, 2, 2, 0)), 7, "no queue of CPU 2: the header says 2 CPUs"),
    (story((Kind.FOUND, 0, 3, 4, 0)), 7, "no process can be found as zombie"),
    (story((Kind.FOUND, 0, 1, 3, 0)), 7, "expected a process that is new in the trace"),
    (story((Kind.FOUND, 0, 3, 2, 0)), 7, "is found right after its START"),
    (story((Kind.YIELD, 2, 0, 0, 0)), 7, "no CPU 2: the header says 2 CPUs"),
]  # fmt: skip


@pytest.mark.parametrize(("records", "row", "problem"), IMPOSSIBLE)
def test_what_cannot_have_happened(
    records: list[Record], row: int, problem: str, tmp_path: Path
) -> None:
    """The error names the record and the expectation."""
    error = check(records, Script(cpus=2), tmp_path / "trace.bin")
    assert error.record
    assert error.record.sequence == row
    assert re.search(problem, str(error)), error


Spoil = Callable[[list[Record]], list[Record]]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda records: records[:5] + records[6:], "1 records before it are missing"),
        (lambda records: [*records, records[5]], "the sequence number 5 is there twice"),
        (lambda records: [records[0]._replace(kind=Kind.YIELD), *records[1:]], "must be START"),
        (lambda records: [*records[:-1], records[-1]._replace(second=7)], "it counts 7 records"),
        (lambda records: [*records[:5], records[5]._replace(time=1), *records[6:]], "is 400 ns"),
        (lambda records: [*records[:5], records[5]._replace(time=2**63), *records[6:]], "292"),
        (
            lambda records: [
                *records,
                records[5]._replace(sequence=len(records), kind=Kind.DECISION, time=10**6),
            ],
            "this CPU has ended before",
        ),
    ],
)
def test_broken_files(spoil: Spoil, problem: str, tmp_path: Path) -> None:
    """Records are missing, duplicated, or misplaced."""
    error = check(spoil(story()), Script(cpus=2), tmp_path / "trace.bin")
    assert problem in str(error)
