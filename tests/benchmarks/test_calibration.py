# SPDX-License-Identifier: MIT
"""Tests the calibration of costs from traces of the simulator, whose costs are known, and the
kernel."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from conftest import Command
from schedlab import trace
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM
from schedlab.workload import costs
from schedlab_tools import calibration
from schedlab_tools.calibration import (
    CROWD,
    FORK,
    PIPE,
    SLEEP,
    YIELD,
)
from schedlab_tools.cpu_activity import Observed, observe
from simulator_command import write_workload

# --- wall clock: the simulator, whose costs are known

KNOWN = {
    "scheduler": 300,
    "switch": 100,
    "call": 900,
    "sleep": 700,
    "pipe": 1100,
    "reap": 50,
    "interrupt": 4000,
    "first_run": 2500,
    "exit": 3500,
}

CALLS = f"""
channel pipe 0
program root
  mark begin
  mark note {YIELD}
  loop 9
    yield
  end
  mark note {PIPE}
  loop 9
    yield
    give pipe
    yield
    take pipe
  end
  yield
  mark note {SLEEP}
  loop 9
    yield
    sleep 1tick
  end
  mark note {FORK}
  loop 9
    yield
    fork yields
    yield
    wait
  end
  mark note {CROWD}
  fork sleeper
  loop 9
    give pipe
    sleep 1tick
  end
  wait
  mark end
program yields
  yield
program sleeper
  loop 9
    take pipe
  end
  yield
"""

CREATION = """
program root
  mark begin
  loop 20
    fork child
  end
  loop 20
    wait
  end
  mark end
program child
  group child
"""


def simulated(folder: Path, text: str, cpus: int) -> Observed:
    build_once("simulator")
    workload, path = write_workload(folder, text), folder / "trace.bin"
    cost_option = ",".join(["none", *(f"{name}={value}" for name, value in KNOWN.items())])
    options = ("--cpus", str(cpus), "--costs", cost_option, "--trace", str(path))
    subprocess.run(
        [SIMULATOR_PROGRAM, *options, workload], check=True, capture_output=True, timeout=60
    )
    return observe(trace.read(path), by_cycles=False)


def test_known_costs_are_estimated(tmp_path: Path) -> None:
    calls, creation = simulated(tmp_path, CALLS, 1), simulated(tmp_path, CREATION, 1)
    call = calibration.call_cost(calls)
    scheduler = calibration.scheduler_cost(calls)
    estimated_costs = {
        "scheduler": scheduler,
        "switch": calibration.switch_cost(calls, scheduler),
        "call": call,
        "sleep": calibration.sleep_cost(calls),
        "pipe": calibration.pipe_cost(calls, call),
        "interrupt": calibration.interrupt_cost(simulated(tmp_path, CALLS, 2)),
        **calibration.child_costs(creation, calls, call),
    }
    assert {name: cost.ns for name, cost in estimated_costs.items()} == {
        name: KNOWN[name] for name in estimated_costs
    }


# --- outcomes


@pytest.mark.spike
def test_the_kernel_has_the_costs_that_ship(schedlab: Command, tmp_path: Path) -> None:
    """The same machine gives the same values, to the instruction."""
    path = tmp_path / "profile.json"
    result = schedlab("calibrate", "--policy", "lottery,rr:table-scan", "-o", str(path), "--json")
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["drifts"] == []
    measured, shipped = costs.read_profile(path), costs.read_profile(costs.SHIPPED_PROFILE)
    assert output["costs"] == measured.costs_as_dicts()
    not_measured = {"boot", "instructions", "arrival"}  # of a workload, sched_ext, other machines
    assert not_measured.isdisjoint(measured.costs)
    expected = len(costs.COST_MEANINGS) - len(not_measured) + 2 * len(calibration.POLICY_COSTS)
    assert len(measured.costs) == expected
    for name, cost in measured.costs.items():
        shipped_cost = shipped.costs[name]
        bound = max(shipped_cost.spread_ns, 0.03 * shipped_cost.ns, 20)
        assert abs(cost.ns - shipped_cost.ns) <= bound, name
