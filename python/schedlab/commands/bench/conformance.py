# SPDX-License-Identifier: MIT
"""`./schedlab dev bench conformance`: a scheduler held against scenarios."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results, tell
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.carrying_out import carried_out, check_finished, out_option
from schedlab.commands.options import POLICIES, echo_json, json_option, no_kvm_option
from schedlab.machines import MACHINES

if TYPE_CHECKING:
    from schedlab_tools.benchmarks.conformance import Row, Suite


@click.command("conformance")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas; on Linux also fair, the kernel's own class."
    "  [default: the one that FILE names]",
)
@click.option("--machine", default="sim", show_default=True, type=click.Choice(tuple(MACHINES)))
@out_option
@no_kvm_option
@json_option
def conformance(
    file: Path | None,
    policies: tuple[PolicyChoice, ...] | None,
    machine: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Hold a scheduler against small scenarios with the expected order.

    FILE has the scenarios, as those in workloads/conformance have them, which is the default. Exit
    status 1 if the order, a time or a share is another.
    """
    from schedlab_tools.benchmarks import conformance as scenarios

    suites = [file] if file else sorted(scenarios.SUITES.glob("*.json"))
    rows: list[Row] = []
    for path in suites:
        suite = scenarios.read_suite(path)
        rows += _carried_out(suite, policies or (PolicyChoice(suite.policy),), machine, out)
    if as_json:
        echo_json({"machine": machine, "rows": [asdict(row) for row in rows]})
    else:
        _show(rows, machine)
    if not all(row.kept for row in rows):
        raise SystemExit(1)


def _carried_out(
    suite: Suite, policies: tuple[PolicyChoice, ...], machine: str, out: Path | None
) -> list[Row]:
    from schedlab_tools.benchmarks import conformance as scenarios

    with (
        tempfile.TemporaryDirectory(prefix="schedlab-") as texts,
        carried_out(
            lambda folder: scenarios.plan(folder, Path(texts), suite, policies, machine),
            machine,
            out,
        ) as runs,
    ):
        check_finished(runs)
        return scenarios.evaluate(suite, runs)


def _show(rows: list[Row], machine: str) -> None:
    table = new_table(f"Scenarios on {machine}", "scenario", "policy", "expected", "found", "")
    for row in rows:
        verdict = "kept" if row.kept else "otherwise"
        table.add_row(row.scenario, row.policy, row.expected, row.found, verdict)
    results().print(table)
    for policy in dict.fromkeys(row.policy for row in rows):
        own = [row for row in rows if row.policy == policy]
        tell(f"{policy}: {sum(row.kept for row in own)} of {len(own)} scenarios as expected")
    for row in {row.rule: row for row in rows if not row.kept}.values():
        tell(f"{row.scenario}: {row.rule}")
