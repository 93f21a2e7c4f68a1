# SPDX-License-Identifier: MIT
"""Tests reading figures from benchmark output; `outputs/` holds real output."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.base.outputs import OutputError, parse_figures

OUTPUTS = Path(__file__).parent


def output(name: str) -> str:
    return (OUTPUTS / f"{name}.txt").read_text()


def test_sysbench_prints_rate_and_latencies() -> None:
    parsed_figures = parse_figures("sysbench cpu run", output("sysbench-1-thread"))
    assert parsed_figures == {
        "threads": 1,
        "events_per_second": 1873.50,
        "elapsed_s": 2.0082,
        "events": 3764,
        "latency_min_ms": 0.21,
        "latency_mean_ms": 0.53,
        "latency_max_ms": 12.64,
        "latency_p95_ms": 2.03,
        "latency_sum_ms": 1996.99,
    }


def test_sysbench_prints_percentiles_of_its_histogram() -> None:
    """The percentile that sysbench computes from the same buckets verifies the others."""
    text = output("sysbench-4-threads")
    parsed_figures = parse_figures("/usr/bin/sysbench cpu --histogram=on run", text)
    printed = float(text.split("99th percentile:")[1].split()[0])
    assert parsed_figures["latency_p99_ms"] == pytest.approx(printed, abs=0.005)
    assert (
        parsed_figures["latency_p50_ms"]
        < parsed_figures["latency_p95_ms"]
        < parsed_figures["latency_p99_ms"]
    )
    assert parsed_figures["latency_p99_ms"] <= parsed_figures["latency_max_ms"]
    assert parsed_figures["threads"] == 4


def test_hackbench_prints_its_time() -> None:
    assert parse_figures("hackbench -g 2 -l 50", output("hackbench")) == {
        "elapsed_s": 0.271,
        "tasks": 80,
    }


def test_stress_ng_prints_its_stressor() -> None:
    parsed_figures = parse_figures("stress-ng --cpu 2 --metrics-brief", output("stress-ng-cpu"))
    assert parsed_figures["bogo_ops_per_second"] == pytest.approx(
        parsed_figures["bogo_ops"] / parsed_figures["elapsed_s"], rel=0.01
    )


@pytest.mark.parametrize("stressor", ["switch", "pipe"])
def test_stress_ng_may_print_other_metrics(stressor: str) -> None:
    text = output(f"stress-ng-{stressor}")
    assert "miscellaneous metrics" in text
    parsed_figures = parse_figures(f"stress-ng --{stressor} 2", text)
    assert parsed_figures["bogo_ops"] > 0
    assert parsed_figures["bogo_ops_per_cpu_second"] > parsed_figures["bogo_ops_per_second"] > 0


def test_what_is_around_an_output_does_no_harm() -> None:
    """A console adds carriage returns and kernel messages."""
    for command, name in (("sysbench", "sysbench-4-threads"), ("hackbench", "hackbench")):
        text = output(name)
        console = ("[    1.2] avg: nothing\n" + text + "[    9.9] reboot\n").replace("\n", "\r\n")
        assert parse_figures(command, console) == parse_figures(command, text)


def test_other_commands_have_no_figures() -> None:
    assert parse_figures("wakeups -m 2", "Time: 3\n") == {}
    assert parse_figures("", "") == {}


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        ("sysbench", "sysbench 1.0.20\nThreads started!\n", "sysbench printed no threads"),
        ("hackbench", "Running in process mode == 80 tasks\n", "hackbench printed no time"),
        ("stress-ng", "stress-ng: info: [1] dispatching hogs\n", "stress-ng printed no metrics"),
    ],
)
def test_an_output_that_broke_off_is_refused(command: str, text: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        parse_figures(command, text)


def test_outputs_with_something_missing_or_too_much_are_refused() -> None:
    text = output("sysbench-4-threads")
    line = next(line for line in text.splitlines() if " |**" in line)
    with pytest.raises(OutputError, match="but ran 3473: lines of its output"):
        parse_figures("sysbench", text.replace(f"{line}\n", ""))
    twice = output("stress-ng-cpu") + output("stress-ng-pipe")
    with pytest.raises(OutputError, match="2 stressors"):
        parse_figures("stress-ng", twice)
