# SPDX-License-Identifier: MIT
"""Measures the cost of a decision of each policy: exact instruction counts on Spike."""

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.base.host.supervision import supervise
from schedlab.base.toolchain.policies import known_policies
from schedlab.errors import SchedlabError
from schedlab.machines.folder import CONSOLE_FILE
from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.machines.outcome import hung_outcome, interpret_exit, read_console
from schedlab_tools.targets import JudgedRow

_POLICY = re.compile(
    r"^bench (enqueue\+pick(?:-worst)?|pick|enqueue|dequeue|change) (\S+) (\d+) (\d+)\s*$",
    re.MULTILINE,
)
_LIMIT_NS = 120_000_000_000
GROWTH_ALLOWED = {"constant": 1.1, "logarithmic": 2.0}
"""Allowed ratio of the cost of enqueue and pick with 4,096 tasks to that with 64, by the policy's declared cost."""


@dataclass(frozen=True)
class PolicyRow(JudgedRow):
    """Instructions of one enqueue and one pick of a policy, by number of tasks: mean and worst."""

    policy: str
    mean: dict[int, int]
    worst: dict[int, int]
    operations: dict[str, dict[int, int]] = field(default_factory=dict)
    """Means of each operation: `pick`, `enqueue`, `dequeue`, and `change` of a queued task's attributes."""

    @property
    def verdict(self) -> str:
        """The verdict on a built-in policy with a declared cost; presets have none."""
        catalogue_entry = known_policies().get(self.policy)
        allowed = GROWTH_ALLOWED.get(catalogue_entry.cost) if catalogue_entry else None
        if allowed is None or not {64, 4096} <= set(self.mean):
            return ""
        return "met" if self.mean[4096] <= allowed * self.mean[64] else "grows"


def measure_policies(machine: KernelMachine, program: Path) -> list[PolicyRow]:
    """Measures with a program that contains all policies and no kernel."""
    rows = policy_rows(console_of(machine, Boot(program, None, 1, 512, "")))
    if not rows:
        raise SchedlabError(f"{program} printed no line `bench enqueue+pick …`")
    return rows


def console_of(machine: KernelMachine, boot: Boot) -> str:
    """Returns a machine's output until it ends successfully."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        seconds = machine.host_limit(1, _LIMIT_NS)
        console = Path(folder) / CONSOLE_FILE
        status = supervise(machine.command(boot), Path(folder), console, seconds)
        text = read_console(console)
    outcome = hung_outcome(seconds, text) if status is None else interpret_exit(status, text)
    if not outcome.succeeded:
        raise SchedlabError(f"the benchmark did not end well: {outcome.message}")
    return text


def policy_rows(console: str) -> list[PolicyRow]:
    """Parses lines "bench OPERATION POLICY TASKS INSTRUCTIONS"."""
    rows: dict[str, PolicyRow] = {}
    for operation, policy, tasks, count in _POLICY.findall(console):
        row = rows.setdefault(policy, PolicyRow(policy, {}, {}))
        decisions = {"enqueue+pick": row.mean, "enqueue+pick-worst": row.worst}
        costs = decisions.get(operation)
        if costs is None:
            costs = row.operations.setdefault(operation, {})
        costs[int(tasks)] = int(count)
    return list(rows.values())
