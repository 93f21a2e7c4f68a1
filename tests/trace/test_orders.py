# SPDX-License-Identifier: MIT
"""Tests records in the order of processes, and their lives: fast algorithms against plain ones."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np
import polars.selectors as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.metrics import measure
from schedlab.trace import Kind
from schedlab.trace.cpu_records import difference, stable_order
from schedlab.trace.timeline import life_at
from trace_simulator import Record, Script, simulate, write

NUMBERS = st.lists(st.integers(0, 70_000) | st.integers(0, 2**32 - 1), max_size=60)
PIDS = st.integers(1, 9) | st.integers(2**31 - 3, 2**31 - 1)
_NAMES = {Kind.FORK: ("process", "first", "second")} | dict.fromkeys(
    (Kind.SWITCH, Kind.WAKEUP), ("process", "first")
)
"""Fields that contain a PID, by kind."""
_NO_PIDS = (Kind.START, Kind.END, Kind.LOST, Kind.TEXT, Kind.POLICY, Kind.TUNABLE)


@given(NUMBERS)
def test_equal_numbers_stay_in_their_order(numbers: list[int]) -> None:
    """Compares with numpy's stable sort."""
    values = np.array(numbers, np.uint32)
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


@given(places=st.sets(st.integers(0, 20)), others=st.sets(st.integers(0, 20)))
def test_places_that_are_not_among_others(places: set[int], others: set[int]) -> None:
    """Compares with the difference of sets."""
    ascending = (np.array(sorted(some), np.int64) for some in (places, others))
    assert difference(*ascending).tolist() == sorted(places - others)


@given(lives=st.sets(st.tuples(PIDS, st.integers(0, 20))), pid=PIDS, row=st.integers(0, 20))
def test_row_belongs_to_the_latest_life(lives: set[tuple[int, int]], pid: int, row: int) -> None:
    """PIDs are used once or repeatedly, and are close to one another or far apart."""
    ordered = sorted(lives)
    life_owners = np.array([of for of, _ in ordered], np.int64)
    begins = np.array([at for _, at in ordered], np.int64)
    before = [index for index, (of, at) in enumerate(ordered) if of == pid and at <= row]
    life_numbers = life_at(life_owners, begins, np.array([pid], np.uint32), np.array([row]))
    assert life_numbers.tolist() == [max(before, default=-1)]


def renamed(record: Record) -> Record:
    """Returns the record with other PIDs, whose low 16 bits are all the same."""
    if record.kind in _NO_PIDS:
        return record
    fields = _NAMES.get(Kind(record.kind), ("process",))
    pids = {name: getattr(record, name) for name in fields}
    return record._replace(**{name: pid * 2**16 + 3 if pid else 0 for name, pid in pids.items()})


@pytest.mark.parametrize("seed", range(6))
def test_high_pids_change_no_figure(seed: int) -> None:
    """Processes are ordered by all bits of their PIDs."""
    script = Script(cpus=3, queues=seed % 2 == 1, pids=4 if seed < 3 else 0, marks=False)
    records = simulate(random.Random(seed), script)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace.bin"
        low = measure(write(path, records, script, 8))
        high = measure(write(path, [renamed(record) for record in records], script, 8))
    # An unnamed process is called by its PID.
    figures = cs.exclude("pid", "parent", "name", "group")
    assert low.processes.select(figures).equals(high.processes.select(figures))
    assert low.cpus.equals(high.cpus)
