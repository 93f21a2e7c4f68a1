# SPDX-License-Identifier: MIT
"""Tests waits for the locks of run queues and of processes: the kernel's counters and the benchmark's report."""

from __future__ import annotations

import json

import pytest

from conftest import Command
from schedlab_tools.benchmarks.contention import TURN_LENGTHS, WORK

ONE_QUEUE = "rr:table-scan"
_COARSE_TURN = int(TURN_LENGTHS[-1])
"""With turns of this length, a lock that is held at a turn's end delays another CPU for far too long."""


@pytest.mark.long
@pytest.mark.spike
def test_one_queue_for_all_cpus_keeps_them_waiting(schedlab: Command) -> None:
    result = schedlab(
        "dev", "bench", "contention", "--policy", f"rr,{ONE_QUEUE}", "--cpus", "5", "--json"
    )
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert len(rows) == 2 * len(TURN_LENGTHS) * len(WORK)
    for row in rows:
        assert (row["waits"] > 0) == (row["waited_us"] > 0)
        assert row["waited_us"] < row["scheduler_us"]
        assert 0 <= row["of_time"] < 0.01, "or finer locks are worth building: docs/studies.md"
        assert (row["process_waits"] > 0) == (row["process_of_time"] > 0)
        if row["turn"] < _COARSE_TURN:
            assert row["process_of_time"] < 0.001, "or finer locks are worth building, as above"
    assert any(row["process_waits"] for row in rows)
    waits = {policy: waits_of(rows, policy) for policy in ("rr", ONE_QUEUE)}
    assert waits[ONE_QUEUE] > 10 * waits["rr"]


def waits_of(rows: list[dict[str, object]], policy: str) -> int:
    """Returns the waits of a policy with the shortest time slices, while processes yield all the
    time."""
    shortest = int(TURN_LENGTHS[0])
    return sum(
        int(str(row["waits"]))
        for row in rows
        if (row["policy"], row["turn"], row["work"]) == (policy, shortest, WORK[-1])
    )
