# SPDX-License-Identifier: MIT
"""`./schedlab dev bench simulator`: what it makes of what programs print. Speeds are in no test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from built_once import build_once
from schedlab.errors import SchedlabError
from schedlab_tools.benchmarks import peers
from schedlab_tools.benchmarks.simulator_speed import Decision, aims, decisions, process_bytes

PRINTED = """bench simulator-bare-loop 100 2.50
bench simulator-decision 100 20.00
bench simulator-decision 100000 50.00
bench simulator-decision-traced 100 334.00
"""


def test_each_aim_is_judged() -> None:
    judged = {aim.name: (aim.value, aim.verdict) for aim in aims(decisions(PRINTED), 264)}
    assert judged == {
        "a decision, 100 processes, no trace": (20, "met"),
        "the same with a trace, to a file": (334, "not met"),
        "a decision over a bare loop of pick and enqueue": (8, "met"),
        "a decision with 100,000 processes over one with 100": (2.5, "not met"),
        "memory for a process, under the policy that needs most": (264, "not met"),
    }


def test_decisions_a_second() -> None:
    assert Decision("decision", 100, 20.0).per_second == 50e6


def test_a_program_that_prints_nothing_is_an_error() -> None:
    with pytest.raises(SchedlabError, match="printed no line"):
        decisions("what?")


def test_memory_is_that_of_the_greediest_policy() -> None:
    build_once("simulator")
    assert process_bytes(["rr"]) == 232
    assert process_bytes(["rr", "lottery"]) == process_bytes(["lottery"]) == 376


def test_our_answers_to_the_two_cases() -> None:
    build_once("simulator")
    ours = peers.ours(1e6)
    assert (ours.tie, ours.gap) == ((6, 8), (4, 14))
    assert (ours.schedule_of_tie, ours.remark) == ("AABBAABB", "")


@pytest.mark.parametrize(
    ("gap", "remark"),
    [
        ((4, 14), ""),
        ((4, None), "loses a task that arrives when none is left"),
        ((14, 16), "wrong: tasks that arrive at 0 and 10 and run for 4 end at 14 and 16"),
    ],
)
def test_what_a_peer_gets_wrong_is_said(gap: peers.Ends, remark: str) -> None:
    assert peers.Peer("one", 1, 1e6, (4, 8), gap).remark == remark


def test_a_schedule_that_is_neither_is_said() -> None:
    assert peers.Peer("one", 1, 1e6, (8, 8), (4, 14)).schedule_of_tie == "neither"


def test_a_peer_that_does_not_run_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without the peer: the reason is the last thing that Python says."""
    monkeypatch.setattr(peers, "environment", lambda name: Path(sys.executable))
    peer = peers.ask("vance", 1)
    assert peer.remark == "does not run here: ModuleNotFoundError: No module named 'vance'"
    assert peer.per_second is None


def test_an_environment_is_made_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(folder: Path, lock: Path) -> None:
        (folder / "half").touch()
        raise subprocess.CalledProcessError(1, ["pip"], stderr="no\nsuch package\n")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(peers, "install", fail)
    assert peers.ask("vance", 1).remark == "does not run here: such package"
    assert not list((tmp_path / "schedlab" / "peers").iterdir())


def test_all_peers_are_known_to_the_runner() -> None:
    assert all((peers.FOLDER / f"{name}.lock").exists() for name in peers.PEERS)
    script = f"import runpy; print(list(runpy.run_path({str(peers.RUNNER)!r})['PEERS']))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.replace("'", '"')) == list(peers.PEERS)
