# SPDX-License-Identifier: MIT
"""`./schedlab verify`: repeats stored runs from their manifests, and compares the traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.names import visible
from schedlab.base.display.terminal import print_result, say
from schedlab.commands.consent import Consent, require_consent, trust_options
from schedlab.commands.execution import perform, print_plan, report_if_ended_by_signal
from schedlab.commands.options import (
    EXISTING_PATH,
    echo_json,
    execution_options,
    no_kvm_option,
)
from schedlab.commands.request_options import out_option
from schedlab.errors import WrongUsage
from schedlab.paths import new_runs_folder
from schedlab.runs import branch_runs, results
from schedlab.runs.plan import Plan
from schedlab.runs.results import read_sequential_checks, write_sequential_checks

if TYPE_CHECKING:
    from schedlab.machines.spec import RunSpec
    from schedlab.report.artifact_check import FigureCheck
    from schedlab.runs.plan_execution import Finished

Traces = Mapping[Path, str | None]
"""Folders of runs and the hashes of their traces; None for a run without a trace."""


@dataclass(frozen=True)
class Check:
    """A stored run and the result of its repetition."""

    stored: Path
    again: Path
    same: bool
    """True if the traces are identical byte for byte and both runs ended alike."""
    repeatable: bool
    differences: dict[str, str]
    """Differences between the sources of both runs, such as `kernel`, with both values."""

    def to_dict(self) -> dict[str, object]:
        """Returns the check for JSON."""
        return {
            "folder": str(self.stored),
            "again": str(self.again),
            "same": self.same,
            "repeatable": self.repeatable,
            "differences": self.differences,
        }

    @property
    def difference_text(self) -> str:
        """Describes a run whose repetition differs, in one line."""
        if not self.repeatable:
            reason = "its machine uses the host's clock and is not repeatable"
        elif self.differences:
            source_differences = "; ".join(
                f"{what} {values}" for what, values in self.differences.items()
            )
            reason = f"these components changed: {source_differences}"
        else:
            reason = "although its components are the same"
        return f"schedlab: {visible(self.again.name)} differs: {reason}"


@click.command()
@click.argument("place", type=EXISTING_PATH)
@out_option
@trust_options
@no_kvm_option
@execution_options
def verify(
    place: Path, out: Path | None, trust: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Repeat kept runs, and report which are the same, byte for byte.

    PLACE is the folder of a run, a folder of runs, or the file of `report --artifact`, whose figures are then
    compared too. The exit status is 1 if a figure, or a run of a repeatable machine, differs.
    """
    consent = Consent(trust, yes)
    if place.is_file():
        _verify_artifact(place, out, dry_run, as_json, consent)
        return
    planned = planned_runs(_runs_in(place), str(place), consent)
    if not planned:
        raise WrongUsage(
            f"{place}: no run in it can be repeated; name a folder with repeatable runs"
        )
    if dry_run:
        print_plan(list(planned.values()), as_json)
        return
    folder = _output_folder(place, out)
    checks = _repeat_runs(planned, folder, {run: results.hash_trace(run) for run in planned})
    if as_json:
        echo_json({"folder": str(folder), "runs": [check.to_dict() for check in checks]})
    else:
        _print_checks(checks)
        print_result(f"Kept in {folder}")
    if not _all_same(checks):
        raise SystemExit(1)


def _verify_artifact(
    file: Path, out: Path | None, dry_run: bool, as_json: bool, consent: Consent
) -> None:
    from schedlab.report import artifact_check
    from schedlab.report.artifact import FIGURES_FOLDER

    with artifact_check.unpacked_artifact(file) as artifact:
        traces = artifact.traces
        planned = planned_runs(list(traces), str(file), consent)
        if missing := [name for name in traces if name not in planned]:
            raise WrongUsage(
                f"{file}: {visible(missing[0].name)} cannot be repeated; export the artifact again without this run"
            )
        if dry_run:
            print_plan(list(planned.values()), as_json)
            return
        other = artifact_check.source_difference(artifact)
        if other:
            say(f"schedlab: {visible(other)}")
        folder = _output_folder(file.with_suffix(""), out)
        if (folder / FIGURES_FOLDER).exists():
            raise WrongUsage(
                f"--out {folder}: already contains {FIGURES_FOLDER}; name another folder"
            )
        checks = _repeat_runs(planned, folder, traces)
        again = {check.stored: check.again for check in checks}
        figures = artifact_check.compare_figures(artifact, again, folder / FIGURES_FOLDER)
        if as_json:
            figure_rows = [{**vars(figure.figure), "same": figure.same} for figure in figures]
            runs = [{**check.to_dict(), "folder": f"runs/{check.stored.name}"} for check in checks]
            echo_json({"folder": str(folder), "runs": runs, "figures": figure_rows})
        else:
            _print_checks(checks)
            _print_figures(figures, _difference_reason(checks, other))
            print_result(f"Kept in {folder}")
    if not _all_same(checks) or not all(figure.same for figure in figures):
        raise SystemExit(1)


def _output_folder(path: Path, out: Path | None) -> Path:
    """Returns the folder for the repeated runs."""
    return (out or new_runs_folder(f"again-{path.resolve().name[:40]}")).absolute()


def _runs_in(path: Path) -> list[Path]:
    """Returns the folder itself if it is a run, else the runs in it."""
    if results.is_complete(path):
        return [path]
    run_folders = sorted(entry for entry in path.iterdir() if results.is_complete(entry))
    if not run_folders:
        raise WrongUsage(f"{path}: contains no run; name a folder of runs")
    return run_folders


def planned_runs(folders: Sequence[Path], option: str, consent: Consent) -> dict[Path, RunSpec]:
    """Returns the specifications of the runs in these folders.

    Raises WrongUsage if a run cannot be repeated, or would run on this
    machine without the user's consent.
    """
    planned = {}
    for folder in folders:
        reason = results.why_unrepeatable(results.read_manifest(folder))
        if reason:
            say(f"schedlab: {visible(folder.name)} is skipped: {reason}")
        else:
            planned[folder] = results.read_spec(folder)
    require_consent(option, planned.values(), consent)
    return planned


def _repeat_runs(planned: Mapping[Path, RunSpec], folder: Path, traces: Traces) -> list[Check]:
    """Repeats runs in another folder, and compares each with its original."""
    finished = repeat_runs(planned, folder, with_metrics=False)
    return [
        _compare_with_original(run_folder, traces[run_folder], finished[run_folder])
        for run_folder in planned
    ]


def repeat_runs(
    planned: Mapping[Path, RunSpec], folder: Path, with_metrics: bool = True
) -> dict[Path, Finished]:
    """Repeats runs in another folder. Runs with equal names get separate folders."""
    branches = {original: spec for original, spec in planned.items() if spec.branch}
    batches: list[dict[str, Path]] = []
    for original, spec in planned.items():
        if original in branches:
            continue
        batch = next((batch for batch in batches if spec.name not in batch), None)
        if batch is None:
            batches.append(batch := {})
        batch[spec.name] = original
    plans = [
        Plan(
            folder / str(number) if number > 1 else folder,
            tuple(planned[name] for name in batch.values()),
        )
        for number, batch in enumerate(batches, start=1)
    ]
    for plan in plans:
        plan.check()
        plan.check_new()
    finished = {
        original: done
        for plan, batch in zip(plans, batches, strict=True)
        for original, done in _repeat_by_machine(plan, batch, with_metrics)
    }
    for plan, batch in zip(plans, batches, strict=True):
        write_sequential_checks(
            plan.folder, max(read_sequential_checks(original.parent) for original in batch.values())
        )
    return {**finished, **_repeat_branches(branches, folder)}


def _repeat_branches(branches: Mapping[Path, RunSpec], folder: Path) -> dict[Path, Finished]:
    """Repeats branches, one saved run after the other."""
    groups: dict[tuple[RunSpec, int], list[Path]] = {}
    for original, spec in branches.items():
        assert spec.branch
        groups.setdefault((spec.past, spec.branch.at_ns), []).append(original)
    finished: dict[Path, Finished] = {}
    for saved_run_branches in groups.values():
        specs = {original.name: branches[original] for original in saved_run_branches}
        with report_if_ended_by_signal(lambda _: ""):
            finished.update(
                zip(
                    saved_run_branches, branch_runs.perform_branch_specs(specs, folder), strict=True
                )
            )
    return finished


def _repeat_by_machine(
    plan: Plan, originals: Mapping[str, Path], with_metrics: bool
) -> list[tuple[Path, Finished]]:
    """Repeats the runs, one machine after the other."""
    machines = dict.fromkeys(run.machine for run in plan.runs)
    machine_plans = (
        replace(plan, runs=tuple(run for run in plan.runs if run.machine == machine))
        for machine in machines
    )
    return [
        (originals[finished.run.name], finished)
        for part in machine_plans
        for finished in perform(part, with_metrics=with_metrics)
    ]


def _compare_with_original(original: Path, trace: str | None, finished: Finished) -> Check:
    """Compares a repeated run with its original. `trace`: the hash of the original trace."""
    before, repeated = results.read_manifest(original), finished.manifest
    ended_alike = before["status"] == repeated["status"] and _failure_message(
        before
    ) == _failure_message(repeated)
    return Check(
        original,
        finished.folder,
        ended_alike and trace == results.hash_trace(finished.folder),
        finished.run.machine.repeatable,
        {
            what: f"{results.shorten_entry(key, before)}, now {results.shorten_entry(key, repeated)}"
            for key, what in results.DECISIVE_INPUTS.items()
            if before.get(key) != repeated.get(key)
        },
    )


def _failure_message(manifest: Mapping[str, Any]) -> str:
    """Returns why a run failed. Older manifests name an option if a run reached its limit."""
    return str(manifest.get("message") or "").replace(" (--limit)", "")


def _all_same(checks: Sequence[Check]) -> bool:
    """Returns whether all repetitions are the same."""
    return all(check.same for check in checks if check.repeatable)


def _print_checks(checks: Sequence[Check]) -> None:
    """Prints a line for each run that differs, and a summary."""
    for check in checks:
        if not check.same:
            say(check.difference_text)
    count = sum(check.same for check in checks)
    click.echo(f"{count} of {len(checks)} runs are the same, byte for byte.")


def _difference_reason(checks: Sequence[Check], other: str) -> str:
    """Returns why figures differ, in words."""
    count = sum(not check.same for check in checks)
    if count:
        return f"{count} runs differ"
    return other or "all runs are the same, so a library may have another version"


def _print_figures(figures: Sequence[FigureCheck], why: str) -> None:
    """Prints the figures of the artifact, and which of them differ. `why`: the reason in words."""
    for figure in figures:
        if not figure.same:
            name = visible(f"{figure.figure.label}, {figure.figure.name}")
            say(f"schedlab: {name}: its data differ: {visible(figure.difference)}; {why}")
    count = sum(figure.same for figure in figures)
    click.echo(f"{count} of {len(figures)} figures and tables have the same data, byte for byte.")
