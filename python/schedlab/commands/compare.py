# SPDX-License-Identifier: MIT
"""`./schedlab compare`: compares two folders of runs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import print_result, result_console, say
from schedlab.commands.consent import Consent, trust_options
from schedlab.commands.execution import out_option, print_plan
from schedlab.commands.options import (
    EXISTING_PATH,
    FILE,
    PATH,
    Parsed,
    echo_json,
    execution_options,
    pass_as_object,
)
from schedlab.commands.wording import parts_with_options, with_options
from schedlab.errors import WrongUsage

if TYPE_CHECKING:
    from schedlab.analysis.comparison.compare import Comparison
    from schedlab.analysis.gate.baseline import Baseline, Instructions
    from schedlab.analysis.gate.verdict import GateVerdict
    from schedlab.machines.spec import RunSpec


@dataclass(frozen=True)
class Options:
    """The parameters of `./schedlab compare`."""

    before: Path
    after: Path | None
    metrics: tuple[str, ...]
    matters: float
    everything: bool
    keep: Path | None
    instructions: bool
    gate: bool
    markdown: Path | None
    out: Path | None
    trust: bool
    """True if commands of a file may run on this machine, after a question (`Consent.trust`)."""
    yes: bool
    dry_run: bool
    as_json: bool


@contextmanager
def open_side(path: Path) -> Iterator[Baseline]:
    """Gives the runs of a folder, a sweep or a baseline file."""
    from schedlab.analysis.gate.baseline import Baseline, unpacked_baseline
    from schedlab.runs.collection import read_collection
    from schedlab.sweep import as_runs

    if path.is_file():
        with unpacked_baseline(path) as baseline:
            yield baseline
    elif as_runs.is_sweep(path):
        yield Baseline(as_runs.read_collection(path))
    else:
        yield Baseline(read_collection([path]))


def keep_baseline(runs: Path, path: Path, with_instructions: bool) -> None:
    """Writes the metrics that a comparison needs into one baseline file."""
    from schedlab.analysis.gate.baseline import check_baseline_path, write_baseline
    from schedlab.sweep import as_runs

    check_baseline_path(path)
    if as_runs.is_sweep(runs):
        raise WrongUsage(
            f"--keep: {runs} is a sweep, which needs no baseline; compare with the sweep itself"
        )
    with open_side(runs) as side_data:
        instructions = (
            _count_instructions({run.setup.policy for run in side_data.runs})
            if with_instructions
            else {}
        )
        write_baseline(path, side_data.runs, instructions)
        count = len(side_data.runs)
    print_result(
        f"{format_count(count, 'run')} {'is' if count == 1 else 'are'} kept in {path}, {path.stat().st_size:,} bytes"
    )


def run_gate(options: Options, consent: Consent) -> None:
    """Compares, prints what is worse, and exits with status 1 if anything is."""
    from schedlab.analysis.comparison.compare import check_metrics, compare
    from schedlab.analysis.gate.verdict import judge_comparison
    from schedlab.analysis.gate.verdict import verdict_markdown as as_markdown
    from schedlab.commands.verify import repeat_runs

    before, after_folder, out = options.before, options.after, options.out
    check_metrics(options.metrics)
    if after_folder and out:
        raise WrongUsage("--out: a comparison with AFTER runs nothing; leave out --out or AFTER")
    if not after_folder and not before.is_file():
        raise WrongUsage(
            f"--gate: AFTER is missing, and {before} is not a baseline that can be run"
            " again; name AFTER, or create a baseline with --keep"
        )
    with ExitStack() as stack:
        first = stack.enter_context(open_side(before))
        if after_folder is None:
            planned = _planned_runs(first, before, consent)
            if options.dry_run:
                print_plan(list(planned.values()), options.as_json)
                return
            after_folder = out or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-"))
            )
            repeat_runs(planned, after_folder.absolute())
        second = stack.enter_context(open_side(after_folder))
        instructions_after = second.instructions or _count_instructions(set(first.instructions))
        result = compare(first.runs, second.runs, options.metrics, options.matters)
        gate = judge_comparison(result, first.instructions, instructions_after)
        if options.markdown:
            with options.markdown.open("a", encoding="utf-8") as file:
                file.write(with_options(as_markdown(gate)))
        if options.as_json:
            echo_json(gate.to_dict())
        else:
            print_gate(result, gate)
    if not gate.passes:
        raise SystemExit(1)


def print_gate(result: Comparison, gate: GateVerdict) -> None:
    """Prints the differences, the regressions and the verdict."""
    from schedlab.analysis.comparison.listing import comparison_listing

    for part in parts_with_options(comparison_listing(result, False)):
        result_console().print(part, soft_wrap=isinstance(part, str))
    for count in gate.worse_counts:
        result_console().print(
            f"{count.policy}, {count.tasks} tasks: {count.before:,} → {count.after} instructions"
        )
    for reason in gate.not_comparable():
        say(f"schedlab: can no longer be compared: {reason}")
    result_console().print(f"Gate {gate.summary}")


def _planned_runs(baseline: Baseline, path: Path, consent: Consent) -> dict[Path, RunSpec]:
    """Returns the specifications of the baseline's runs, for the present policies and kernel."""
    from schedlab.commands.verify import planned_runs

    folders = [run.folder for run in baseline.runs]
    planned = planned_runs(folders, f"--gate {path}", consent)
    if not planned:
        raise WrongUsage(
            "--gate: no run of the baseline can be run again; name a folder of newer runs after the baseline"
        )
    return planned


def _count_instructions(policies: set[str]) -> Instructions:
    """Counts the instructions of one pick and one enqueue, exactly, on Spike."""
    if not policies:
        return {}
    from schedlab.base.toolchain.build import POLICY_COST, build
    from schedlab.machines import kernel_machine
    from schedlab_tools.policy_cost import measure_policies

    build("policy-cost")
    rows = measure_policies(kernel_machine("spike"), POLICY_COST)
    return {
        row.policy: {str(tasks): count for tasks, count in row.mean.items()}
        for row in rows
        if row.policy in policies
    }


def _parse_percentage(text: str) -> float:
    """Returns the fraction that "2%", "0.5 %" or "2" means: a hundredth of the number."""
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,6})?) ?%?", text.strip())
    if not match:
        raise ValueError("expected a percentage below 100, such as 2%")
    return float(match[1]) / 100


@click.command()
@click.argument("before", type=EXISTING_PATH)
@click.argument("after", required=False, type=EXISTING_PATH)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Compare only this metric, such as turnaround. May be repeated.",
)
@click.option(
    "--matters",
    default="1%",
    show_default=True,
    type=Parsed("PERCENT", _parse_percentage),
    help="Ignore changes of a mean below this percentage.",
)
@click.option("--all", "everything", is_flag=True, help="Also show what did not change.")
@click.option(
    "--keep",
    type=PATH,
    metavar="FILE.baseline",
    help="Save BEFORE in one small file that can replace its folder.",
)
@click.option(
    "--instructions",
    is_flag=True,
    help="With --keep, also save the instructions of one pick and one enqueue under its policies.",
)
@click.option(
    "--gate",
    is_flag=True,
    help="Exit with status 1 if anything is worse or can no longer be compared. "
    "Without AFTER, run a baseline's runs again with the current policies and"
    " kernel.",
)
@click.option(
    "--markdown",
    type=FILE,
    help="With --gate, append the verdict to this file, as a comment with a picture.",
)
@out_option
@trust_options
@execution_options
@pass_as_object(Options)
def compare(options: Options) -> None:
    """Compare two folders of runs, and separate significant changes from chance.

    Each folder holds one run, or many: several policies, CPUs, workloads and seeds; or a sweep. Configurations
    are paired with the same configuration on the other side; if one property differs, such as the policy, across
    it. Runs with the same seed are compared in pairs. docs/comparing.md explains the results.
    """
    consent = Consent(options.trust, options.yes)
    if options.instructions and not options.keep:
        raise WrongUsage("--instructions: only a baseline stores them; add --keep FILE.baseline")
    if options.keep:
        if options.after or options.gate:
            raise WrongUsage("--keep: saves one side; leave out AFTER and --gate")
        keep_baseline(options.before, options.keep, options.instructions)
        return
    if options.dry_run and (options.after or not options.gate):
        raise WrongUsage(
            "--dry-run: nothing would run; leave it out, or add --gate and leave out AFTER"
        )
    if options.gate:
        run_gate(options, consent)
        return
    if options.markdown or options.out or consent.option:
        option = (options.markdown and "--markdown") or (options.out and "--out") or consent.option
        raise WrongUsage(f"{option}: works only with --gate; add --gate or leave it out")
    if options.after is None:
        raise WrongUsage("AFTER: missing; name a second folder of runs, or add --gate or --keep")
    from schedlab.analysis.comparison import compare as comparison
    from schedlab.analysis.comparison.listing import comparison_listing

    with open_side(options.before) as first, open_side(options.after) as second:
        result = comparison.compare(first.runs, second.runs, options.metrics, options.matters)
    if options.as_json:
        echo_json(result.to_dict())
        return
    for part in parts_with_options(comparison_listing(result, options.everything)):
        result_console().print(part, soft_wrap=isinstance(part, str))
