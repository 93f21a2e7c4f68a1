# SPDX-License-Identifier: MIT
"""Tests the random values of jobs: each distribution has its declared moments, and values are
assigned in order.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import pytest

from schedlab.base.files.json_lines import parse
from schedlab.workload.changes import parse_change
from schedlab.workload.text import format_workload
from schedlab.workload.values import read_distribution
from test_workload_files import complaint, read

TICK_NS = 1_000_000
MEAN = 1_000_000
DISTRIBUTIONS = [
    ('{"distribution": "constant", "mean": 1000}', 1.0),
    ('{"distribution": "uniform", "mean": 1000}', 4 / 3),
    ('{"distribution": "exponential", "mean": "1ms"}', 2.0),
    ('{"distribution": "lognormal", "mean": "1tick", "sigma": 0.5}', math.exp(0.25)),
    ('{"distribution": "pareto", "mean": 1000, "shape": 6}', 25 / 24),
    ('{"distribution": "values", "values": [500, 5500], "weights": [9, 1]}', 3.25),
    ('{"distribution": "hyperexponential", "means": [500, 5500], "weights": [9, 1]}', 6.5),
]
"""Each has mean 1 ms; with the second moment in units of the squared mean."""


@pytest.mark.parametrize(("text", "square"), DISTRIBUTIONS)
def test_drawn_moments_equal_the_stated_ones(text: str, square: float) -> None:
    parsed_distribution = read_distribution(parse(text))
    assert parsed_distribution.moments_ns(TICK_NS) == pytest.approx((MEAN, square * MEAN**2))
    below = Random(1).randrange
    drawn = [parsed_distribution.draw(below, TICK_NS).nanoseconds(TICK_NS) for _ in range(20_000)]
    for power, expected in ((1, MEAN), (2, square * MEAN**2)):
        powers = [float(sample) ** power for sample in drawn]
        error = stdev(powers) / math.sqrt(len(drawn))
        assert abs(fmean(powers) - expected) <= 4 * error + 1e-9 * expected


def test_a_bounded_pareto_stays_within_its_bounds() -> None:
    text = '{"distribution": "pareto", "least": 10, "most": 10000, "shape": 1}'
    parsed_distribution = read_distribution(parse(text))
    below = Random(1).randrange
    drawn = [parsed_distribution.draw(below, TICK_NS).nanoseconds(TICK_NS) for _ in range(20_000)]
    assert 10_000 <= min(drawn) < max(drawn) <= 10_000_000
    mean, square = parsed_distribution.moments_ns(TICK_NS)
    error = math.sqrt((square - mean**2) / len(drawn))
    assert abs(fmean(drawn) - mean) < 4 * error


WRONG = [
    ('{"distribution": "normal"}', "a `distribution`: constant, uniform, exponential"),
    ('{"distribution": "lognormal", "mean": 1}', "expected `sigma` in it"),
    ('{"distribution": "pareto", "mean": 1, "shape": 1}', "a number above 1, because"),
    ('{"distribution": "pareto", "least": 5, "most": 4, "shape": 2}', "and a `most` above it"),
    ('{"distribution": "values", "values": []}', "an array of 1 to"),
    ('{"distribution": "values", "values": [1, 2], "weights": [1]}', "2 weights, not all of them"),
    ('{"distribution": "exponential", "mean": 1, "sigma": 1}', "sigma: unknown"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_what_is_no_distribution_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    task = {"loop": 1, "run": json.loads(text)}
    assert expected in complaint(tmp_path, {"tasks": {"a": task}})


def test_attributes_and_batches_are_drawn_separately(tmp_path: Path) -> None:
    task = {
        "instance": 3_000,
        "arrivals": {"distribution": "constant", "mean": 10, "batch": {"values": [1, 5]}},
        "priority": {"values": [1, 8], "weights": [3, 1]},
        "loop": 1,
        "run": 1,
    }
    text = format_workload(read(tmp_path, {"tasks": {"a": task, "b": {"run": 1}}}), 1, TICK_NS)
    drawn = re.findall(r"program a@\d+\n  priority (\d)\n  group a\n", text)
    assert len(drawn) == 3_000
    assert drawn.count("1") == pytest.approx(2_250, abs=100)
    times = re.findall(r"arrive a@\d+ (\d+)ns", text)
    assert len(set(times)) == pytest.approx(1_000, abs=60)
    assert text == format_workload(
        read(tmp_path, {"tasks": {"a": task, "b": {"run": 1}}}), 1, TICK_NS
    )


def test_arrivals_follow_a_list_of_times(tmp_path: Path) -> None:
    task = {"delay": 5, "arrivals": {"times": [0, "1ms", "2ticks"]}, "loop": 1, "run": 1}
    text = format_workload(read(tmp_path, {"tasks": {"a": task}}), 1, TICK_NS)
    assert re.findall(r"arrive a (\d+)ns", text) == ["5000", "1005000", "2005000"]


def test_a_load_sets_the_gaps_by_the_work_and_the_cpus(tmp_path: Path) -> None:
    gaps = {"distribution": "exponential", "mean": 1}
    short = {"instance": 4_000, "arrivals": gaps, "loop": 2, "run1": 30, "run2": 20}
    content = {"load": 0.5, "tasks": {"a": short, "b": {"run": 1}}}
    for cpus in (1, 4):
        text = format_workload(read(tmp_path, content), 1, TICK_NS, cpus)
        last = int(re.findall(r"arrive a (\d+)ns", text)[-1])
        assert 4_000 * 100_000 / (cpus * last) == pytest.approx(0.5, rel=0.07)
    for wrong in ({"run": 1}, {"arrivals": {"times": [1]}, "loop": 1, "run": 1}):
        expected = "0.5: expected no load, or a task with gaps between its arrivals"
        assert expected in complaint(tmp_path, {"load": 0.5, "tasks": {"a": wrong}})


def test_a_value_may_stand_in_a_file(tmp_path: Path) -> None:
    measured = tmp_path / "measured.txt"
    measured.write_text("10\n2.5\n3ms\n")
    assert parse_change(f"a.values=@{measured}") == ("a.values", '[10, 2.5, "3ms"]')
    measured.write_text('{"from": 1}')
    assert parse_change(f"a=@{measured}") == ("a", '{"from": 1}')
    with pytest.raises(ValueError, match="not a readable text file"):
        parse_change("a=@/nowhere")
