# SPDX-License-Identifier: MIT
"""Tests a long recording on the page: each sought moment equals the native model's state
after the trace up to it.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser

from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build, wasm_module
from schedlab.monitor.model import Model
from schedlab.monitor.standalone.modules import bundled
from schedlab.trace import read_records
from schedlab.trace.format import HEADER, RECORD
from schedlab_tools.benchmarks.monitor_model import Scene, simulate

HAPPENED = ("timeline", "marks", "decisions")
SCENE = Scene("rr-60", 60, 4, "rr", 60_000_000, 0)


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(element) for element in value]
    return value


def in_blocks(trace: Path) -> bytes:
    """Returns the same trace as written by a machine with several CPUs: in blocks of one CPU
    each.
    """
    data = trace.read_bytes()
    records = np.frombuffer(data, RECORD, offset=HEADER.itemsize)
    cuts = range(0, len(records), 500)
    pieces = [records[cut : cut + 500] for cut in cuts]
    sorted_by_cpu = [piece[np.argsort(piece["cpu"], kind="stable")] for piece in pieces]
    return data[: HEADER.itemsize] + np.concatenate(sorted_by_cpu).tobytes()


def test_moments_equal_the_native_model(browser: Browser, tmp_path: Path) -> None:
    build(SIMULATOR_LIBRARY)
    trace = tmp_path / "trace.bin"
    simulate(SCENE, trace)
    records = read_records(trace)
    everything = records.piece(0, len(records))
    assert len(everything) > 5000
    latest = np.maximum.accumulate(everything["time"].astype(np.int64))
    times = [int(latest[at]) for at in (4000, 100, len(latest) - 1, 2500, 2501, 3000)]
    page = browser.new_page()
    page.evaluate(f"() => {{ {bundled(Path(__file__).with_name('sought.js'), {})} }}")
    answer = page.evaluate(
        "(given) => sought(given)",
        {
            "module": base64_of(wasm_module()),
            "trace": base64_of(in_blocks(trace)),
            "policy": SCENE.policy,
            "stretch": 700,  # so that copies exist to start from
            "times": times,
        },
    )
    page.close()
    assert (answer["begun"], answer["end"]) == (int(everything["time"][0]), int(latest[-1]))
    assert answer["bytes"] > 0
    for time_ns, shown in zip(times, answer["frames"], strict=True):
        model = Model(records.header, SCENE.policy, "equal", 10_000_000_000)
        model.feed(everything[: int(np.searchsorted(latest, time_ns, side="right"))])
        model.reach(time_ns)
        expected = plain(model.frame())
        assert {key: shown[key] for key in expected if key not in HAPPENED} == {
            key: value for key, value in expected.items() if key not in HAPPENED
        }
