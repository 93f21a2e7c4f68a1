# SPDX-License-Identifier: MIT
"""Tests that a trace read in parts gives the same results as a whole, wherever the parts meet."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.metrics import compute, measure
from schedlab.trace import TraceError, read, validate
from trace_simulator import PATIENT, RANDOMS, Record, Script, simulate, write

SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 5),
    steps=st.integers(0, 250),
    first_sequence=st.sampled_from([0, 2**32 - 100]),
    drain=st.booleans(),
    pids=st.sampled_from([0, 4]),
    initial_tasks=st.sampled_from([0, 0, 3, 7]),
    queues=st.booleans(),
)
SIZES = st.integers(1, 60)
FIELDS = ("time", "process", "kind", "cpu", "first", "second")


def read_at_once(path: Path) -> dict[str, Any] | str:
    """Returns the metrics, or the error."""
    try:
        trace = read(path)
        validate(trace)
        return compute(trace).to_dict()
    except TraceError as error:
        return str(error)


def by_parts(path: Path, size: int) -> dict[str, Any] | str:
    """Returns the same, from parts of this many records."""
    with (
        patch("schedlab.trace.parts.PART_RECORDS", size),
        patch("schedlab.trace.outline.PART_RECORDS", size),
        patch("schedlab.trace.ordered.PART_RECORDS", size),
    ):
        try:
            return measure(path).to_dict()
        except TraceError as error:
            return str(error)


def check(records: list[Record], script: Script, size: int, cut: int | None = None) -> None:
    """Checks that both ways give the same."""
    with tempfile.TemporaryDirectory() as directory:
        path = write(Path(directory) / "trace.bin", records, script, 8)
        if cut is not None:
            path.write_bytes(path.read_bytes()[:cut])
        assert by_parts(path, size) == read_at_once(path)


@settings(PATIENT, max_examples=40)
@given(script=SCRIPTS, source=RANDOMS, size=SIZES)
def test_metrics_of_parts_equal_the_total(script: Script, source: random.Random, size: int) -> None:
    """Each number of each table."""
    check(simulate(source, script), script, size)


@settings(PATIENT, max_examples=30)
@given(script=SCRIPTS, source=RANDOMS, size=SIZES)
def test_a_trace_that_was_cut_off(script: Script, source: random.Random, size: int) -> None:
    """Some of its CPUs lack their last records."""
    records = simulate(source, script)
    check(records, script, size, source.randrange(64, 64 + 32 * len(records)))


@settings(PATIENT, max_examples=100)
@given(
    script=SCRIPTS,
    source=RANDOMS,
    size=SIZES,
    fields=st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3),
)
def test_the_same_record_is_named(
    script: Script, source: random.Random, size: int, fields: list[str]
) -> None:
    """The message is the same, wherever the damage is."""
    records = simulate(source, script)
    for field in fields:
        at = source.randrange(len(records))
        values = [getattr(source.choice(records), field), source.randrange(24), 0, 2**31 + 5]
        limit = {"kind": 2**16, "cpu": 2**16, "process": 2**32, "first": 2**32}.get(field, 2**64)
        records[at] = records[at]._replace(**{field: source.choice(values) % limit})
    check(records, script, size)
