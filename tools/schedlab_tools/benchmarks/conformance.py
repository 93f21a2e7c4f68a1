# SPDX-License-Identifier: MIT
"""Compares the behaviour of schedulers with the expectations of small scenarios."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import polars as pl
from rich.table import Table

from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.execution import check_finished, out_option, run_plan
from schedlab.commands.options import POLICIES, json_option, no_kvm_option
from schedlab.errors import WrongUsage
from schedlab.machines import MACHINES, machine_named
from schedlab.machines.spec import RunSpec
from schedlab.metrics import measured_window, state_intervals
from schedlab.metrics.lives import lives
from schedlab.metrics.processes import process_table
from schedlab.paths import ROOT
from schedlab.runs.plan import Plan
from schedlab.runs.plan_execution import Finished
from schedlab.trace import Trace, read
from schedlab.workload import workload_files
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.targets import JudgedRow

SUITES = ROOT / "workloads" / "conformance"
SHORTEST_STAY_NS = 300_000
"""Shorter stays on a CPU are ignored, such as those of a task that ends."""
_KEYS = {"name", "rule", "workload", "order", "shares"}


@dataclass(frozen=True)
class Scenario:
    """The behaviour of tasks, and the expected order or shares."""

    name: str
    rule: str
    workload: Mapping[str, Any]
    order: Sequence[tuple[str, Any]] = ()
    """The expected sequence of groups and their durations in milliseconds: a number, a range
    (least, most), or None for any.
    """
    shares: Mapping[str, float] = field(default_factory=dict)
    """Expected percentage of the total running time, by group."""


@dataclass(frozen=True)
class Suite:
    """The scenarios of one scheduler."""

    path: Path
    policy: str
    begin_ms: float
    """End of the preparation within the measured window."""
    within_ms: float
    within_points: float
    scenarios: tuple[Scenario, ...]


@dataclass(frozen=True)
class Row(JudgedRow):
    """A scenario under a policy."""

    suite: str
    scenario: str
    rule: str
    policy: str
    expected: str
    found: str
    kept: bool

    @property
    def verdict(self) -> str:
        """Returns whether the scenario was kept."""
        return "met" if self.kept else "not met"


def read_suite(path: Path) -> Suite:
    """Reads a file of scenarios. Raises WrongUsage if it is invalid."""
    try:
        content = json.loads(path.read_text("utf-8"))
        scenarios = tuple(_scenario(scenario) for scenario in content["scenarios"])
        return Suite(
            path,
            str(content["policy"]),
            float(content["begin_ms"]),
            float(content["within_ms"]),
            float(content["within_points"]),
            scenarios,
        )
    except OSError as error:
        raise WrongUsage(f"{path}: it cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise WrongUsage(
            f"{path}: there is no {error}, which a suite or a scenario must have"
        ) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise WrongUsage(f"{path}: not a suite of scenarios: {error}") from None


def _scenario(content: dict[str, Any]) -> Scenario:
    """Returns the scenario of an entry of the file."""
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise ValueError(f"a scenario has no key {unknown[0]!r}")
    if ("order" in content) == ("shares" in content):
        raise ValueError(f"scenario {content['name']!r} expects neither order nor shares, or both")
    order = [(str(group), length) for group, length in content.get("order", [])]
    for group, length in order:
        span = isinstance(length, list) and len(length) == 2
        if not (length is None or isinstance(length, (int, float)) or span):
            raise ValueError(f"{group!r} is to run for {length!r}, which is no time")
    shares = {str(group): float(share) for group, share in content.get("shares", {}).items()}
    return Scenario(str(content["name"]), str(content["rule"]), content["workload"], order, shares)


def plan(
    folder: Path, texts: Path, suite: Suite, policies: Iterable[PolicyChoice], machine: str
) -> Plan:
    """Plans a run for each scenario and policy, on one CPU. `texts`: a folder for workload files."""
    target = machine_named(machine)
    runs = []
    for scenario in suite.scenarios:
        path = texts / f"{scenario.name}.json"
        path.write_text(json.dumps(scenario.workload))
        file = workload_files.read_workload_file(path)
        runs += [
            RunSpec(
                workload=str(path),
                policy=policy,
                settings=(),
                cpus=1,
                machine=target,
                seed=1,
                tick_ns=target.tick_ns,
                limit_ns=60 * 10**9,
                memory_mib=target.memory_mib,
                label=scenario.name,
                file=file,
            )
            for policy in policies
        ]
    return Plan(folder, tuple(runs))


def evaluate(suite: Suite, finished: Iterable[Finished]) -> list[Row]:
    """Returns the result of each scenario under each policy, in the order of the runs."""
    scenario_by_name = {scenario.name: scenario for scenario in suite.scenarios}
    rows = []
    for run in finished:
        scenario = scenario_by_name[run.run.label]
        stays = stays_of(read(run.folder / "trace.bin"), suite.begin_ms)
        judge = _judge_order if scenario.order else _judge_shares
        rows.append(
            Row(
                suite.path.stem,
                scenario.name,
                scenario.rule,
                str(run.run.policy),
                *judge(suite, scenario, stays),
            )
        )
    return rows


def stays_of(trace: Trace, begin_ms: float) -> list[tuple[str, float]]:
    """Returns the sequence of groups that ran, with durations in milliseconds.

    Other programs or idle times do not divide a stay.
    """
    who, window = lives(trace), measured_window(trace)
    groups = process_table(trace, who, window).filter(pl.col("role") == "workload")
    begin = window.begin_ns + int(begin_ms * 1e6)
    runs = (
        state_intervals(trace, who)
        .filter((pl.col("state") == "running") & (pl.col("begin_ns") >= begin))
        .filter(pl.col("begin_ns") < window.end_ns)
        .join(groups.select("life", "group"), on="life")
        .sort("begin_ns")
        .with_columns(length=pl.col("end_ns") - pl.col("begin_ns"))
        .with_columns(stay=pl.col("group").rle_id())
        .group_by("stay", "group", maintain_order=True)
        .agg(pl.col("length").sum())
        .filter(pl.col("length") >= SHORTEST_STAY_NS)
        .with_columns(stay=pl.col("group").rle_id())
        .group_by("stay", "group", maintain_order=True)
        .agg(pl.col("length").sum())
    )
    return [(group, length / 1e6) for group, length in runs.select("group", "length").iter_rows()]


def _judge_order(
    suite: Suite, scenario: Scenario, stays: Sequence[tuple[str, float]]
) -> tuple[str, str, bool]:
    """Returns the expected order, the measured order, and whether they agree."""
    expected = ", ".join(
        f"{group} {_expected_length_text(length)}" for group, length in scenario.order
    )
    begin = stays[: len(scenario.order)]
    order_text = ", ".join(f"{group} {length:.3g}" for group, length in begin)
    matches = len(begin) == len(scenario.order) and all(
        group == other and _is_near(length, expected_length, suite.within_ms)
        for (group, length), (other, expected_length) in zip(begin, scenario.order, strict=True)
    )
    return f"{expected} ms", f"{order_text} ms", matches


def _expected_length_text(expected: Any) -> str:
    """Returns the expected duration in words."""
    if expected is None:
        return "…"
    return f"{expected[0]} to {expected[1]}" if isinstance(expected, list) else str(expected)


def _is_near(length: float, expected: Any, within: float) -> bool:
    """Returns whether a duration in ms is as expected, within the tolerance."""
    if expected is None:
        return True
    least, most = expected if isinstance(expected, list) else (expected, expected)
    return bool(least - within <= length <= most + within)


def _judge_shares(
    suite: Suite, scenario: Scenario, stays: Sequence[tuple[str, float]]
) -> tuple[str, str, bool]:
    """Returns the expected shares, the measured shares, and whether they agree."""
    total = sum(length for _, length in stays) or 1
    shares = {
        group: 100 * sum(length for other, length in stays if other == group) / total
        for group in scenario.shares
    }
    expected, actual = (
        ", ".join(f"{group} {share:.3g}" for group, share in group_shares.items()) + " %"
        for group_shares in (scenario.shares, shares)
    )
    matches = all(
        abs(shares[group] - share) <= suite.within_points
        for group, share in scenario.shares.items()
    )
    return expected, actual, matches


@click.command("conformance")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "policies",
    type=POLICIES,
    help="POLICY or POLICY:PRESET, several with commas; on Linux also fair, the kernel's own class."
    "  [default: the policy in FILE]",
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
    """Compare a scheduler with small scenarios and their expected order.

    FILE contains scenarios, in the format of workloads/conformance, which are the default. Exit
    status 1 if the order, a time or a share differs.
    """

    suites = [file] if file else sorted(SUITES.glob("*.json"))
    rows: list[Row] = []
    for path in suites:
        suite = read_suite(path)
        rows += _run_suite(suite, policies or (PolicyChoice(suite.policy),), machine, out)
    finish(
        as_json,
        {"machine": machine, "rows": [asdict(row) for row in rows]},
        _result_tables(rows, machine),
        rows,
    )


def _run_suite(
    suite: Suite, policies: tuple[PolicyChoice, ...], machine: str, out: Path | None
) -> list[Row]:
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-") as texts,
        run_plan(
            lambda folder: plan(folder, Path(texts), suite, policies, machine),
            out,
        ) as runs,
    ):
        check_finished(runs)
        return evaluate(suite, runs)


def _result_tables(rows: list[Row], machine: str) -> Iterator[Table | str]:
    table = new_table(f"Scenarios on {machine}", "scenario", "policy", "expected", "found", "")
    for row in rows:
        verdict = "kept" if row.kept else "otherwise"
        table.add_row(row.scenario, row.policy, row.expected, row.found, verdict)
    yield table
    for policy in dict.fromkeys(row.policy for row in rows):
        policy_rows = [row for row in rows if row.policy == policy]
        yield f"{policy}: {sum(row.kept for row in policy_rows)} of {len(policy_rows)} scenarios as expected"
    for row in {row.rule: row for row in rows if not row.kept}.values():
        yield f"{row.scenario}: {row.rule}"
