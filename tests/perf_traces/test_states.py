# SPDX-License-Identifier: MIT
"""Tests recordings with raw fields: numeric states, as written by trace-cmd report -R and LISA."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf_recordings import imported
from schedlab import trace
from schedlab.recordings.events import Switch
from schedlab.recordings.text import parse
from schedlab.trace import Kind

RAW = (
    " x-7 [001] 3.000001: sched_switch:          prev_comm=x prev_pid={pid} prev_prio=120 prev_state={state}"
    " next_comm=y next_pid=8 next_prio=120"
)


def states(*numbers: int | str) -> list[str]:
    """Returns the imported states of a recording."""
    text = "\n".join(RAW.format(pid=pid, state=number) for pid, number in enumerate(numbers, 10))
    return [event.state for event in parse(text).events if isinstance(event, Switch)]


@pytest.mark.parametrize(
    ("numbers", "letters"),
    [
        # since 4.14: ended (X, Z), parked, idle, preempted
        ((0, 1, 2, 16, 32, 64, 128, 256), ["R", "S", "D", "X", "Z", "P", "I", "R+"]),
        # before: dead, killable, parked, idle, preempted in three releases
        ((1, 64, 130, 512, 1026, 2048), ["S", "X", "D", "P", "I", "R+"]),
        ((1, 4096), ["S", "R+"]),
        ((64,), ["X"]),
        (("0x1", "0x100"), ["S", "R+"]),
    ],
)
def test_numbers_keep_the_meaning_of_their_release(
    numbers: tuple[int | str, ...], letters: list[str]
) -> None:
    assert states(*numbers) == letters


def test_raw_text_equals_trace_cmd_output(tmp_path: Path) -> None:
    """The same recording is printed raw, and read from its file."""
    for name in ("raw", "read"):
        (tmp_path / name).mkdir()
    raw = trace.read(imported("raw.txt", tmp_path / "raw").folder / "trace.bin")
    read = trace.read(imported("sched.dat", tmp_path / "read").folder / "trace.bin")
    assert raw.header == read.header
    # Only the latency format contains interrupts, and so identifies wakers.
    for kind in set(Kind) - {Kind.WAKEUP}:
        columns = ("time_ns", "cpu", "process", "first", "second")
        records = [
            trace_data.events[trace_data.rows(kind)].select(columns) for trace_data in (raw, read)
        ]
        assert records[0].equals(records[1]), kind
    assert raw.rows(Kind.WAKEUP).tolist() == read.rows(Kind.WAKEUP).tolist()
