# SPDX-License-Identifier: MIT
"""Tests a policy with timers on a real kernel: slices between ticks, and refills on idle CPUs.

The policy (tests/linux/policies/budget.c) ends itself if the adapter breaks one of its rules. The
guest counts instructions, so its times are exact.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT
from schedlab import trace
from schedlab.machines.linux.guest import GuestJob, boot
from schedlab.machines.linux.parts import build_linux
from schedlab.paths import BUILD_FOLDER
from schedlab.trace import Kind

pytestmark = [pytest.mark.linux, pytest.mark.xdist_group("linux-times")]

PLACE = BUILD_FOLDER / "linux-tests"
CPUS = 2
PERIOD_S, TICK_S = 0.04, 0.004
BUDGET = 0.25
"""Each hog's part of a CPU: 10 ms of 40 ms; the heavier hog has twice that in the second second."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the script."""
    build_linux("linux-tests")
    names = ("observer", "tasks", "budget")
    job = GuestJob(
        files={
            "schedlab-linux": PLACE / "schedlab-linux",
            **{f"bpf/{name}.bpf.o": PLACE / "bpf" / f"{name}.bpf.o" for name in names},
        },
        script=(ROOT / "tests" / "linux" / "times.sh").read_text(),
        cpus=CPUS,
        programs=(),
        limit_s=60,
    )
    outcome = boot(job, tmp_path_factory.mktemp("guest"))
    assert outcome.finished, outcome.message
    return outcome.results


@pytest.fixture(scope="module")
def hogs(left: Path) -> list[int]:
    """Returns the hogs' PIDs; the last hog becomes heavier."""
    return [int(pid) for pid in (left / "hogs").read_text().split()]


@pytest.fixture(scope="module")
def stays(left: Path) -> pl.DataFrame:
    """Returns the CPUs' intervals, sorted by time, with their neighbours.

    The columns are `cpu`, `begin_ns`, `end_ns`, `process` (0: idle), and the neighbours `before`
    and `after`.
    """
    recording = trace.read(left / "trace.bin")
    trace.validate(recording)
    assert (recording.lost, recording.truncated) == (0, False)
    switches = recording.events.filter(pl.col("kind") == Kind.SWITCH)
    return (
        switches.select("cpu", "process", begin_ns="time_ns", before="first")
        .with_columns(
            end_ns=pl.col("begin_ns").shift(-1).over("cpu"),
            after=pl.col("process").shift(-1).over("cpu"),
        )
        .drop_nulls()
    )


@pytest.fixture(scope="module")
def seconds(left: Path) -> list[tuple[int, int]]:
    """Returns the begin and end of each of the two seconds, in ns."""
    return spans(left / "times")


def spans(file: Path) -> list[tuple[int, int]]:
    """Returns the spans between the times of a file, which are in seconds."""
    return list(pairwise(round(float(line) * 1e9) for line in file.read_text().split()))


def share(stays: pl.DataFrame, process: int, second: tuple[int, int]) -> float:
    """Returns the share of one CPU."""
    begin, end = second
    process_stays = stays.filter(pl.col("process") == process)
    within = process_stays["end_ns"].clip(begin, end) - process_stays["begin_ns"].clip(begin, end)
    return float(within.sum()) / (end - begin)


def error_limit_s(budget: float) -> float:
    """Returns how far, in seconds, a hog's run time in a span may lie from its budget.

    A hog may use its budget early or late in each period. At the beginning and at the end of the
    span, it is therefore ahead of or behind a steady rate. The difference is at most `budget` times
    the rest of the period, plus one tick, because a hog may overrun its budget until the next tick.
    """
    return 2 * (budget * PERIOD_S * (1 - budget) + TICK_S)


def has_its_share(
    stays: pl.DataFrame, process: int, second: tuple[int, int], budget: float
) -> bool:
    error = share(stays, process, second) - budget
    return abs(error) * (second[1] - second[0]) / 1e9 < error_limit_s(budget)


def test_the_adapter_keeps_to_the_rules(left: Path) -> None:
    state, title, policy, *_ = (left / "status").read_text().splitlines()
    assert (state, title, policy) == ("enabled", "Scheduler status", "Policy: budget")
    assert (left / "complaints").read_text() == ""


def test_threads_have_their_budgets(
    stays: pl.DataFrame, hogs: list[int], seconds: list[tuple[int, int]]
) -> None:
    """A new weight takes effect at once."""
    first, second = seconds
    assert all(has_its_share(stays, hog, first, BUDGET) for hog in hogs)
    *others, heavier = hogs
    assert all(has_its_share(stays, hog, second, BUDGET) for hog in others)
    assert has_its_share(stays, heavier, second, 2 * BUDGET)


def test_cpus_idle_while_threads_are_throttled(
    stays: pl.DataFrame, hogs: list[int], seconds: list[tuple[int, int]]
) -> None:
    """The CPUs idle for the time that neither the hogs' budgets nor other threads fill.

    (Whether an idle CPU asks for a thread is unknown: the trace has no scheduler visits if the
    emulator runs the CPUs alternately.)
    """
    begin, end = seconds[0]
    others = set(stays["process"]) - {0, *hogs}
    idle = share(stays, 0, seconds[0]) + sum(share(stays, pid, seconds[0]) for pid in others)
    error = idle - (CPUS - len(hogs) * BUDGET)
    assert abs(error) * (end - begin) / 1e9 < len(hogs) * error_limit_s(BUDGET)


def test_remarks_are_in_the_trace(left: Path, hogs: list[int]) -> None:
    """Nearly all budgets are overdrawn by less than a tick."""
    recording = trace.read(left / "trace.bin")
    rows = recording.rows(Kind.SAID)
    annotations = recording.texts.filter(pl.col("row").is_in(rows.tolist()))
    assert set(annotations["text"]) == {"has used its budget, and {} ns more; {} wait"}
    assert len(annotations) == len(rows) > 100
    assert set(hogs) <= set(recording.at("process", rows).tolist())
    assert set(recording.at("first", rows).tolist()) <= set(range(10))
    beyond = recording.at("second", rows).astype("int64")
    assert (beyond >= 0).all()
    assert (beyond < 4_000_000).mean() > 0.95


def test_turns_end_between_ticks(stays: pl.DataFrame, hogs: list[int], left: Path) -> None:
    """Time slices that begin while others wait last the policy's 1.5 ms, although a tick is 4 ms.

    Between two SWITCH records they take 15 µs more. Interrupts in progress finish first, which
    takes Linux about 0.1 ms. Slices that only ticks end would last 4 ms.
    """
    ((begin, end),) = spans(left / "shared")
    within = (pl.col("begin_ns") > begin) & (pl.col("end_ns") < end)
    among_hogs = pl.all_horizontal(pl.col("before", "process", "after").is_in(hogs))
    turns = stays.filter(within & among_hogs)
    lengths = (turns["end_ns"] - turns["begin_ns"]).to_numpy() / 1e6
    assert lengths.sum() > 0.8 * (end - begin) / 1e6
    assert lengths.min() >= 1.5
    assert lengths.max() < 2
    assert (lengths < 1.65).mean() > 0.99
    assert (lengths < 1.52).mean() > 0.9
