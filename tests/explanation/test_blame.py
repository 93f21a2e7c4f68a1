# SPDX-License-Identifier: MIT
"""Tests the attribution of waits against a slow reference and against cases solved by hand."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Command
from naive_blame import Naive
from schedlab.analysis.explanation import (
    Blames,
    Cause,
    check_attribution,
    critical_path,
    sum_delays,
)
from schedlab.analysis.explanation.explained_waits import WaitQuery, explain
from schedlab.analysis.explanation.waits import (
    QUEUED_KINDS,
    WAIT_KINDS,
    rows_to_waits,
    select_waits,
)
from schedlab.analysis.explanation.words import ProcessNames, sum_equal_parts
from schedlab.analysis.tables import TraceTables
from schedlab.commands.cli import cli
from schedlab.commands.explain import _print_explanation
from schedlab.trace import read
from simulator_command import simulate as simulate_text
from trace_simulator import PATIENT, RANDOMS, Script, load, simulate

MS = 1_000_000
SCRIPTS = st.builds(
    Script,
    cpus=st.integers(1, 4),
    steps=st.integers(0, 120),
    pids=st.sampled_from([0, 4]),
    initial_tasks=st.sampled_from([0, 0, 3]),
)


@settings(PATIENT, max_examples=15)
@given(SCRIPTS, RANDOMS)
def test_runnable_waits_equal_the_oracle(script: Script, chance: random.Random) -> None:
    trace = load(simulate(chance, script), script)
    tables, naive = TraceTables(trace), Naive(trace)
    blames = Blames(tables)
    pids = tables.lives.pid
    for wait in tables.waits.iter_rows(named=True):
        blamed_ns: Counter[str | int] = Counter()
        for part in blames.of(wait["life"], wait["begin_ns"], wait["end_ns"]):
            name = part.cause.value if part.life is None else int(pids[part.life])
            blamed_ns[name] += part.duration_ns
        assert blamed_ns == naive.blame(wait)
    before = blames.occupancy.some_idle_before
    for wait in tables.waits.iter_rows(named=True):
        begin, end = before(np.array([wait["begin_ns"], wait["end_ns"]]))
        assert end - begin == naive.waited_while_idle(wait, script.cpus)
    summed = sum_delays(blames, tables.waits.with_row_index("at")["at"])
    assert summed["duration_ns"].sum() == tables.waits["duration_ns"].sum()


@settings(PATIENT, max_examples=15)
@given(SCRIPTS, RANDOMS)
def test_parts_follow_without_gaps(script: Script, chance: random.Random) -> None:
    """Parts cover each wait, any chain of wakers, and complete lives."""
    trace = load(simulate(chance, script), script)
    tables = TraceTables(trace)
    blames = Blames(tables)
    spans = [
        (wait.life, wait.begin_ns, wait.end_ns)
        for wait in rows_to_waits(
            select_waits(tables, None, WAIT_KINDS, trace.begin_ns, trace.end_ns)
        )
    ]
    for (life,), life_states in tables.states.group_by("life"):
        spans.append(
            (int(str(life)), int(life_states["begin_ns"][0]), int(life_states["end_ns"][-1]))
        )
    for life, begin, end in spans:
        parts = blames.of(life, begin, end)
        edges = [begin, *(part.end_ns for part in parts)]
        assert [part.begin_ns for part in parts] == edges[:-1]
        assert edges[-1] == end
        assert all(len(set(part.chain)) == len(part.chain) for part in parts)


# --- by hand: one CPU, round-robin with a 1 ms slice, no costs

CHAIN = """
channel c 0
program root
  fork waiter
  fork helper
  wait
  wait
program waiter
  take c
program helper
  fork hog
  run 4ms
  give c 1
  wait
program hog
  run 3ms
"""


@pytest.fixture(scope="module")
def chained(tmp_path_factory: pytest.TempPathFactory) -> TraceTables:
    place = tmp_path_factory.mktemp("chain")
    options = ("--policy", "rr", "--set", "slice=1", "--cpus", "1", "--tick", "1000000")
    done = simulate_text(
        place, CHAIN, *options, "--costs", "none", "--trace", str(place / "trace.bin")
    )
    assert done.returncode == 0, done.stderr
    return TraceTables(read(place / "trace.bin"))


def test_a_chain_of_wakers_is_followed(chained: TraceTables) -> None:
    """The waiter waits for the helper, which needs 4 ms and shares the CPU with a 3 ms hog."""
    life = {name: chained.lives_of(name)[0] for name in ("root", "waiter", "helper", "hog")}
    (block,) = chained.blocks.filter(chained.blocks["life"] == life["waiter"]).to_dicts()
    parts = Blames(chained).of(life["waiter"], block["begin_ns"], block["end_ns"])
    names = ProcessNames(chained)
    assert {share.words: share.duration_ns for share in sum_equal_parts(parts, names)} == {
        f"{names[life['helper']]} ran on CPU 0": 4 * MS,
        f"{names[life['helper']]} waited while {names[life['hog']]} ran on CPU 0": 3 * MS,
    }
    assert {part.chain for part in parts} == {(life["helper"],)}
    assert {part.cause for part in parts} == {Cause.RAN}


def test_the_path_of_a_process_goes_through_all_that_it_waits_for(chained: TraceTables) -> None:
    """Root waits for the waiter, and so for the helper; then for the helper itself."""
    shares, names, total_ns = critical_path(chained.trace, "root")
    assert sum(share.duration_ns for share in shares) == total_ns
    spent: Counter[str] = Counter()
    for share in shares:
        spent[share.words.rpartition(" waited while ")[2].split(" ")[0]] += share.duration_ns
    assert (spent["helper"] + spent["waiter"], spent["hog"]) == (4 * MS, 3 * MS)
    assert names[chained.lives_of("hog")[0]].startswith("hog ")


# --- the command

TASKS = {
    "tasks": {
        "cpu": {"instance": 2, "loop": 1, "run": 20_000},
        "io": {"instance": 2, "loop": 10, "run": 300, "sleep": "3ticks"},
    }
}


@pytest.fixture(scope="module")
def both(schedlab: Command, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Simulator runs under rr and mlfq; read-only, because all tests of the module share them."""
    place = tmp_path_factory.mktemp("recorded")
    (place / "w.json").write_text(json.dumps(TASKS))
    arguments = ("--machine", "sim", "--workload", str(place / "w.json"), "--policy", "rr,mlfq")
    more = ("--cpus", "1", "--set", "rr.slice=3", "--costs", "none", "--out", str(place / "out"))
    result = schedlab("run", "--json", *arguments, *more)
    assert result.returncode == 0, result.stderr
    folders = [Path(run["folder"]) for run in json.loads(result.stdout)["runs"]]
    return dict(zip(("rr", "mlfq"), folders, strict=True))


def test_a_wait_that_has_not_ended_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The root computes until the run is stopped, and its children wait."""
    options = ("--policy", "rr", "--set", "slice=1000", "--cpus", "1", "--costs", "none")
    place = ("--trace", str(tmp_path / "trace.bin"), "--limit", str(50 * MS))
    assert simulate_text(tmp_path, ENDLESS, *options, *place).returncode == LIMIT_REACHED
    tables = TraceTables(read(tmp_path / "trace.bin"))
    waits = rows_to_waits(select_waits(tables, None, QUEUED_KINDS, 0, 50 * MS))
    assert [wait.end_ns for wait in waits if not wait.ended] == 2 * [50 * MS]
    assert [wait.ended for wait in waits[:3]] == [False, False, True]
    answer = explain(tables.trace, WaitQuery(), {})
    _print_explanation(answer, "group")
    assert capsys.readouterr().out.count("50.0 ms, not ended\n") == 2
    assert [wait["ended"] for wait in answer.to_dict()["longest"][:3]] == [False, False, True]


LIMIT_REACHED = 3
ENDLESS = """
program root
  fork hog
  fork hog
  run 1s
program hog
  run 1s
"""


@pytest.fixture
def recorded(both: dict[str, Path]) -> Path:
    return both["rr"]


def explained(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["explain", *map(str, words)])


def explained_json(*words: str | Path) -> dict[str, Any]:
    done = explained(*words, "--json")
    assert done.exit_code == 0, done.output
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def test_the_longest_waits_come_first_and_add_up(recorded: Path) -> None:
    explanation = explained_json(recorded, "--worst", "7")
    lengths = [wait["duration_ns"] for wait in explanation["longest"]]
    assert len(lengths) == 7
    assert lengths == sorted(lengths, reverse=True)
    for wait in explanation["longest"]:
        assert sum(part["duration_ns"] for part in wait["parts"]) == wait["duration_ns"]
    assert sum(row["duration_ns"] for row in explanation["delays"]) == explanation["waited_ns"]
    io = explained_json(
        recorded, "--task", "io", "--kind", "wake-up", "--percentile", "90", "--by", "pid"
    )
    assert 0 < io["waits"] < explanation["waits"]
    assert {wait["kind"] for wait in io["longest"]} == {"wake-up"}


def test_choices_at_the_cpu_are_listed(both: dict[str, Path]) -> None:
    """The last choice is the decision that gave the process its CPU."""
    (wait,) = explained_json(both["mlfq"], "--worst", "1")["longest"]
    last = wait["choices"][-1]
    assert (last["life"], last["time_ns"]) == (wait["life"], wait["end_ns"])
    assert re.fullmatch("level [0-9]: the best at which a task waits", last["words"])


def test_blame_that_holds_is_confirmed(recorded: Path) -> None:
    """Without the hogs' computation, nothing delays the others."""
    rows = explained_json(recorded, "--without", "cpu")["otherwise"]["waiting"]
    (io,) = (row for row in rows if row["waiting"] == "io")
    assert io["confirmed"] is True
    assert io["before_ns"] - io["after_ns"] >= io["blamed_ns"] > 0.9 * io["before_ns"]


def test_half_of_what_is_blamed_must_be_saved() -> None:
    """The blame is not confirmed if other tasks replace the omitted one."""
    waits = pl.DataFrame(
        {"waiting": ["a", "b", "c"], "before_ns": [100, 100, 100], "after_ns": [60, 61, 0]}
    )
    blamed = pl.DataFrame(
        {
            "waiting": ["a", "b", "b", "c"],
            "because_of": ["x", "x", "y", "z"],
            "duration_ns": [80, 60, 20, 100],
        }
    )
    assert check_attribution(waits, blamed, ["x", "y"]).select(
        "waiting", "blamed_ns", "confirmed"
    ).rows() == [("a", 80, True), ("b", 80, False), ("c", 0, None)]


def test_other_policies_and_attributes_are_tried(recorded: Path) -> None:
    alternative = explained_json(recorded, "--policy", "priority", "--attribute", "io:priority=0")[
        "otherwise"
    ]
    (io,) = (row for row in alternative["waiting"] if row["waiting"] == "io")
    assert io["after_ns"] < 0.2 * io["before_ns"]
    assert io["confirmed"] is None
    assert alternative["what"] == "under priority, io:priority=0"
