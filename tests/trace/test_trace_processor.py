# SPDX-License-Identifier: MIT
"""What Perfetto's own trace processor makes of an exported trace, where a user has that program.

It is no package of any registry; `bin_path` keeps the library from fetching it.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest

from schedlab.metrics import cpu_intervals
from schedlab.trace import Kind, Trace, export, read
from trace_simulator import Script, simulate, write

PROGRAMS = ("trace_processor_shell", "trace_processor")
PROCESSOR = os.environ.get("SCHEDLAB_TRACE_PROCESSOR") or next(
    filter(None, map(shutil.which, PROGRAMS)), None
)
pytestmark = pytest.mark.skipif(
    not PROCESSOR,
    reason="NO TRACE PROCESSOR: what Perfetto's queries say of our export is NOT TESTED. Have its"
    f" {PROGRAMS[0]} on the PATH, or name it by SCHEDLAB_TRACE_PROCESSOR",
)
SCRIPT = Script(cpus=3, steps=4000, drain=True)

Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    records = simulate(random.Random(6), SCRIPT)
    return read(write(tmp_path_factory.mktemp("trace") / "trace.bin", records, SCRIPT))


@pytest.fixture(scope="module")
def ask(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Gives a query's rows."""
    from perfetto.trace_processor import (  # type: ignore[import-untyped]
        TraceProcessor,
        TraceProcessorConfig,
    )

    place = tmp_path_factory.mktemp("perfetto") / "trace.perfetto-trace"
    export(trace, place, "perfetto")
    with TraceProcessor(str(place), config=TraceProcessorConfig(bin_path=PROCESSOR)) as processor:
        yield lambda query: [tuple(vars(row).values()) for row in processor.query(query)]


def test_nothing_of_it_is_an_error(ask: Ask) -> None:
    assert ask("select name, value from stats where severity = 'error' and value > 0") == []


def test_the_cpus_ran_what_they_ran(trace: Trace, ask: Ask) -> None:
    found = ask(
        "select s.cpu, t.tid, s.ts, s.dur from sched s join thread t using (utid)"
        " where t.tid != 0 and s.dur > 0"
    )
    ran = cpu_intervals(trace).filter(
        (pl.col("pid") != 0) & (pl.col("begin_ns") < pl.col("end_ns"))
    )
    expected = ran.select("cpu", "pid", "begin_ns", pl.col("end_ns") - pl.col("begin_ns")).rows()
    last = max(begin for _, _, begin, _ in expected)
    assert len(found) > 100
    # Of what runs when the trace ends, it does not know for how long.
    assert set(found) <= set(expected)
    ends = {begin + length for _, _, begin, length in set(expected) - set(found)}
    assert all(end >= last for end in ends)


def test_states_of_threads_are_ours(ask: Ask) -> None:
    """What a thread runs, by its states, is what CPUs ran of it."""
    ran = ask("select utid, sum(dur) from sched where dur > 0 and utid != 0 group by utid")
    running = ask(
        "select utid, sum(dur) from thread_state where state = 'Running' and dur > 0 and utid != 0"
        " group by utid"
    )
    assert sorted(running) == sorted(ran)
    states = {state for (state,) in ask("select distinct state from thread_state")}
    assert {"Running", "R", "R+", "S", "D"} <= states


def test_wake_ups_are_flows_from_the_waker(trace: Trace, ask: Ask) -> None:
    found = ask(
        "select waker.tid as by_tid, woken.tid as of_tid from thread_state s join thread woken using (utid)"
        " join thread waker on waker.utid = s.waker_utid where waker.tid != 0"
    )
    rows = trace.rows(Kind.WAKEUP)
    by, of = trace.at("first", rows).tolist(), trace.at("process", rows).tolist()
    assert len(found) > 20
    assert set(found) <= set(zip(by, of, strict=True))
