# SPDX-License-Identifier: MIT
"""Tests boot arguments that imitate another kernel: exec-delay, recheck, count-picks,
changes-wait, scan.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from guest_machine import run_guest, sound_trace
from schedlab import metrics

pytestmark = pytest.mark.spike

PROCESSES, SLEEP = 100, 10
"""timingtests io-bound: number of processes, and ticks that each sleeps."""
EXECS = 50
"""timingtests creation in study 2: number of execs, one after another."""


def event_counts(folder: Path, command: str, arguments: str = "", cpus: int = 1) -> dict[str, int]:
    """Returns the test's last values (ticks, complete, switches) and the picks in its trace."""
    folder.mkdir()
    words = f"policy=rr:table-scan tick=1ms {arguments}"
    guest = run_guest(folder, f"{command} -w 100000", cpus=cpus, arguments=words, traced=True)
    assert guest.status == 0, guest.console
    run_metrics = metrics.compute(sound_trace(guest.trace))
    values = dict(run_metrics.values.select("name", "value").rows())
    return {**values, "picks": int(run_metrics.processes["selections"].sum())}


def test_sleepers_are_woken_at_each_tick(tmp_path: Path) -> None:
    """Sleeps still have the same length."""
    plain = event_counts(tmp_path / "plain", "timingtests io-bound")
    woken = event_counts(tmp_path / "woken", "timingtests io-bound", "recheck=1")
    more = woken["picks"] - plain["picks"]
    assert PROCESSES * (SLEEP - 2) <= more <= PROCESSES * SLEEP
    assert abs(woken["complete"] - plain["complete"]) <= 1


def test_picks_are_counted(tmp_path: Path) -> None:
    """Processes compute alone for several ticks, so most picks keep the previous process."""
    switches = event_counts(tmp_path / "switches", "timingtests cpu-heavy -b 0")
    picks = event_counts(tmp_path / "picks", "timingtests cpu-heavy", "count-picks=1")
    assert switches["switches"] <= switches["picks"]
    assert abs(picks["switches"] - picks["picks"]) <= 2


def test_a_process_that_sets_its_priority_runs_on(tmp_path: Path) -> None:
    """Each of the test's six processes sets its priority once."""
    command, policy = "prioritytest starvation", "policy=priority:passes"
    plain = event_counts(tmp_path / "plain", command, policy)
    waits = event_counts(tmp_path / "waits", command, f"{policy} changes-wait=1")
    assert plain["picks"] - waits["picks"] == pytest.approx(6, abs=1)


def test_idle_cpus_take_what_a_tick_stops(tmp_path: Path) -> None:
    """A process that goes to a CPU with a later tick is stopped again before a whole tick. The
    parent forks alone most of the time.
    """
    command, slow = "timingtests creation", "fork-delay=400us stagger=10ms"
    plain = event_counts(tmp_path / "plain", command, slow, cpus=4)
    scanned = event_counts(tmp_path / "scanned", command, f"{slow} scan=1", cpus=4)
    more = scanned["picks"] - plain["picks"]
    assert 0.3 * plain["complete"] < more < plain["complete"]
    assert abs(scanned["complete"] - plain["complete"]) <= 1


def test_an_exec_takes_longer(tmp_path: Path) -> None:
    plain = event_counts(tmp_path / "plain", "timingtests creation -v 2")
    slow = event_counts(tmp_path / "slow", "timingtests creation -v 2", "exec-delay=2ms")
    assert abs(slow["complete"] - plain["complete"] - 2 * EXECS) <= 2
