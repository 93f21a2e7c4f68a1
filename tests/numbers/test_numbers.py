# SPDX-License-Identifier: MIT
"""Tests that Python and the page format numbers in the same way."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from conftest import ROOT
from schedlab.base.display import numbers

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())
WORDS = ROOT / "python/schedlab/monitor/page/words.js"
SCRIPT = """
const words = await import(process.argv[1]);
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const all = Object.entries(JSON.parse(process.argv[2]));
console.log(JSON.stringify(Object.fromEntries(
    all.map(([name, cases]) => [name, cases.map(([given]) => [given, words[camel(name)](...given)])]))));
"""


def test_python_writes_the_cases() -> None:
    for name, cases in CASES.items():
        assert [[given, getattr(numbers, name)(*given)] for given, _ in cases] == cases


@pytest.mark.browser
def test_the_page_writes_the_cases() -> None:
    node, _ = compute_driver_executable()
    result = subprocess.run(
        [node, "--input-type=module", "-e", SCRIPT, str(WORDS), json.dumps(CASES)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(result.stdout) == CASES


def test_times_of_the_host() -> None:
    assert [numbers.host_time(seconds) for seconds in (0.44, 12, 185)] == [
        "0.4 s",
        "12 s",
        "3 min 05 s",
    ]


def test_sizes_and_changes() -> None:
    assert [numbers.format_size(count) for count in (1500, 2_500_000)] == ["2 kB", "2 MB"]
    assert [numbers.percent_change(change) for change in (None, 0.0321, -0.5)] == [
        "–",
        "+3.2 %",
        "-50.0 %",
    ]
