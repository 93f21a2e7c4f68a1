# SPDX-License-Identifier: MIT
"""Tests that runs that are measured together have the same metrics as each run alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.metrics import measure
from schedlab.metrics.compute import measure_joined
from schedlab.metrics.fairness import quantiles
from schedlab.sweep.rows import select_rows
from schedlab.trace import TraceError
from schedlab.trace.format import HEADER, RECORD, Kind
from schedlab.trace.joined import group_traces, join_traces, read_short
from trace_simulator import PATIENT, RANDOMS, Script, simulate, write

SCRIPTS = st.builds(
    Script,
    cpus=st.just(3),
    steps=st.integers(20, 200),
    marks=st.booleans(),
    drain=st.booleans(),
    pids=st.sampled_from([0, 4]),
    queues=st.booleans(),
)


def written(folder: Path, number: int, script: Script, seed: int) -> Path:
    """Writes a random trace, in order."""
    return write(folder / f"{number}.bin", simulate(random.Random(seed), script), script, block=1)


@settings(PATIENT, max_examples=30)
@given(scripts=st.lists(SCRIPTS, min_size=2, max_size=5), source=RANDOMS)
def test_rows_equal_those_of_single_runs(
    tmp_path_factory: pytest.TempPathFactory, scripts: list[Script], source: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("traces")
    paths = [
        written(folder, number, script, source.randrange(1000))
        for number, script in enumerate(scripts)
    ]
    traces = [trace for path in paths if (trace := read_short(path))]
    assert len(traces) == len(paths)
    (group,) = group_traces(traces)
    chosen, joined = join_traces([traces[index] for index in group])
    alone = [select_rows(measure(path).joined())[0] for path in paths]
    if joined:
        assert select_rows(measure_joined(joined)) == [alone[index] for index in chosen]
    usual = [
        index
        for index, trace in enumerate(traces)
        if not np.isin(trace.records["kind"], [Kind.FOUND, Kind.LOST]).any()
        and np.isin([Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT], trace.records["kind"]).all()
    ]
    assert set(chosen) <= set(usual)


def test_usual_traces_are_joined(tmp_path: Path) -> None:
    paths = [written(tmp_path, seed, Script(cpus=2), seed) for seed in range(4)]
    chosen, joined = join_traces([trace for path in paths if (trace := read_short(path))])
    assert chosen == [0, 1, 2, 3]
    assert joined
    assert len(joined.runs) == 4


@pytest.mark.parametrize("field", ["sequence", "cpu", "kind", "process"])
def test_an_invalid_trace_is_measured_alone(tmp_path: Path, field: str) -> None:
    """Its message then names its own record; the other traces are joined or measured alone, too."""
    paths = [written(tmp_path, seed, Script(cpus=2), seed) for seed in range(3)]
    data = bytearray(paths[1].read_bytes())
    records = np.frombuffer(data, RECORD, offset=HEADER.itemsize)
    switch = int(np.flatnonzero(records["kind"] == Kind.SWITCH)[3])
    records[field][switch] = 99
    paths[1].write_bytes(data)
    with pytest.raises(TraceError):
        measure(paths[1])
    chosen, joined = join_traces([trace for path in paths if (trace := read_short(path))])
    if 1 in chosen:
        assert joined
        with pytest.raises(TraceError):
            measure_joined(joined)


@given(values=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40))
def test_quantiles_are_those_of_numpy(values: list[float]) -> None:
    parts = (0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0)
    array = np.array(values)
    assert quantiles(array, parts) == [float(np.quantile(array, part)) for part in parts]
