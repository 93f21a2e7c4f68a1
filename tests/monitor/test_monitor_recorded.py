# SPDX-License-Identifier: MIT
"""Tests a recorded run as a system of the monitor: all records arrive, in order, at their
times, repeatedly.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from kept_runs import keep_simulated
from schedlab.errors import SchedlabError
from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor.system import Life, Records
from schedlab.monitor.systems import recorded
from schedlab.monitor.systems.driven_system import PlayedSystem
from schedlab.monitor.systems.recorded import RecordedSystem, recorded_setup
from schedlab.trace.format import HEADER, RECORD
from trace_simulator import Record, Script, simulate, write

SCRIPT = Script(cpus=3, steps=2_000, initial_tasks=4)

Result = TypeVar("Result")


def keep(folder: Path, records: list[Record], script: Script = SCRIPT, **manifest: Any) -> Path:
    """Makes a run's directory with this trace; its blocks are in any order of CPUs."""
    run = folder / "runs" / "one"
    keep_simulated(run, 1, **manifest)
    write(run / TRACE_FILE, records, script, source=random.Random(2))
    return run


def in_order(records: list[Record]) -> Records:
    packed = b"".join(
        record.pack() for record in sorted(records, key=lambda record: record.sequence)
    )
    return np.frombuffer(packed, RECORD)


def played(run: Path, act: Callable[[RecordedSystem], Awaitable[Result]]) -> Result:
    """Returns the result of an act on a recording that has begun."""

    async def play() -> Result:
        system = RecordedSystem(recorded_setup(run), run.parent)
        await system.begin()
        try:
            return await act(system)
        finally:
            await system.end()

    return asyncio.run(play())


def taken(system: PlayedSystem) -> Records:
    pieces = [np.empty(0, RECORD)]
    while len(piece := system.take_records()):
        pieces.append(piece)
    return np.concatenate(pieces)


@pytest.fixture
def records() -> list[Record]:
    return simulate(random.Random(7), SCRIPT)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits a short trace into many pieces."""
    monkeypatch.setattr(recorded, "RECORDS_PER_READ", 97)


def test_it_plays_from_its_beginning_to_its_end(tmp_path: Path, records: list[Record]) -> None:
    ordered_records = in_order(records)
    begin, end = int(ordered_records["time"].min()), int(ordered_records["time"].max())

    async def play(system: RecordedSystem) -> Records:
        assert system.life is Life.RUNNING and system.message == "" and system.header
        assert (system.header.cpus, system.now_ns, system.end_ns) == (
            3,
            begin,
            end,
        )
        pieces = []
        while system.now_ns < end:
            before = system.now_ns
            await system.advance(before + 5_000, 0.01)
            piece = taken(system)
            assert system.now_ns == min(before + 5_000, end)
            assert (piece["time"] <= system.now_ns).all()
            pieces.append(piece)
        assert len(pieces) > 50 and sum(len(piece) > 0 for piece in pieces) > 50
        await system.advance(end + 1, 0.01)
        assert system.now_ns == end and not len(system.take_records())
        return np.concatenate(pieces)

    assert played(keep(tmp_path, records), play).tobytes() == ordered_records.tobytes()


def test_a_trace_that_was_cut_off_is_played_as_far_as_it_goes(
    tmp_path: Path, records: list[Record]
) -> None:
    run = keep(tmp_path, records)
    data = write(run / TRACE_FILE, records, SCRIPT).read_bytes()
    (run / TRACE_FILE).write_bytes(data[: len(data) * 2 // 3 // 32 * 32 + 7])

    async def play(system: RecordedSystem) -> None:
        assert "truncated" in system.message and system.life is Life.RUNNING
        await system.advance(10**15, 0.01)
        played_records = taken(system)
        assert len(played_records) == (len(data) * 2 // 3 - HEADER.itemsize) // 32
        assert (np.diff(played_records["sequence"].astype(np.int64)) > 0).all()

    played(run, play)


def test_impossible_events_play_up_to_that_point(tmp_path: Path, records: list[Record]) -> None:
    at = len(records) // 2
    wrong = [*records[:at], records[at]._replace(kind=99), *records[at + 1 :]]

    async def play(system: RecordedSystem) -> None:
        assert f"record {at} " in system.message and "there is no kind 99" in system.message
        await system.advance(10**15, 0.01)
        assert taken(system).tobytes() == in_order(records[:at]).tobytes()
        assert system.now_ns == max(record.time for record in records[:at])

    played(keep(tmp_path, wrong), play)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "too few"), (b"x" * 100, "not a trace"), (None, "cannot be played")],
)
def test_what_is_no_trace_cannot_begin(
    tmp_path: Path, records: list[Record], content: bytes | None, words: str
) -> None:
    run = keep(tmp_path, records)
    configuration = recorded_setup(run)
    if content is None:
        (run / TRACE_FILE).unlink()
    else:
        (run / TRACE_FILE).write_bytes(content)
    with pytest.raises(SchedlabError, match=words):
        asyncio.run(RecordedSystem(configuration, tmp_path).begin())
