# SPDX-License-Identifier: MIT
"""`./schedlab verify`: kept runs, carried out once more from what they keep, and held against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.names import visible
from schedlab.base.display.terminal import say, tell
from schedlab.base.files.whole import file_hash
from schedlab.commands.carrying_out import ended_by_signal, perform, print_plan
from schedlab.commands.options import (
    PLACE_THERE,
    echo_json,
    execution_options,
    no_kvm_option,
)
from schedlab.commands.request_options import out_option
from schedlab.commands.trust import Consent, need_consent, trust_options
from schedlab.errors import WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.paths import new_runs_folder
from schedlab.runs import branching, results
from schedlab.runs.plan import Plan
from schedlab.runs.results import looks_at, note_looks

if TYPE_CHECKING:
    from schedlab.machines.spec import RunSpec
    from schedlab.report.proof import Held as HeldFigure
    from schedlab.runs.carrying_out import Finished

Traces = Mapping[Path, str | None]
"""Folders of runs, and the hashes of their traces; None: there was none."""


@dataclass(frozen=True)
class Held:
    """A kept run, and what came of it now."""

    kept: Path
    again: Path
    same: bool
    """Are the traces the same, byte for byte, and did both end alike?"""
    repeatable: bool
    differences: dict[str, str]
    """What the two were made of, where that differs: `kernel`, and both values."""

    def to_dict(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "folder": str(self.kept),
            "again": str(self.again),
            "same": self.same,
            "repeatable": self.repeatable,
            "differences": self.differences,
        }

    @property
    def told(self) -> str:
        """A line on one that did not come out the same."""
        if not self.repeatable:
            reason = "its machine has the host's time, and is never the same twice"
        elif self.differences:
            made_of = "; ".join(f"{what} {values}" for what, values in self.differences.items())
            reason = f"it is made of other parts: {made_of}"
        else:
            reason = "although it is made of the same parts"
        return f"schedlab: {visible(self.again.name)} came out otherwise: {reason}"


@click.command()
@click.argument("place", type=PLACE_THERE)
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
        _prove(place, out, dry_run, as_json, consent)
        return
    planned = planned_runs(_runs_in(place), str(place), consent)
    if not planned:
        raise WrongUsage(
            f"{place}: no run in it can be repeated; name a folder with repeatable runs"
        )
    if dry_run:
        print_plan(list(planned.values()), as_json)
        return
    folder = _folder(place, out)
    held = _carry_out(planned, folder, {each: _trace_hash(each) for each in planned})
    if as_json:
        echo_json({"folder": str(folder), "runs": [each.to_dict() for each in held]})
    else:
        _tell(held)
        tell(f"Kept in {folder}")
    if not _all_same(held):
        raise SystemExit(1)


def _prove(file: Path, out: Path | None, dry_run: bool, as_json: bool, consent: Consent) -> None:
    """Does so with an artifact, and its figures."""
    from schedlab.report import proof
    from schedlab.report.artifact import FIGURES

    with proof.opened(file) as artifact:
        traces = artifact.traces
        planned = planned_runs(list(traces), str(file), consent)
        if len(planned) < len(traces):
            raise WrongUsage(f"{file}: it contains a run that cannot be repeated")
        if dry_run:
            print_plan(list(planned.values()), as_json)
            return
        other = proof.other_sources(artifact)
        if other:
            say(f"schedlab: {visible(other)}")
        folder = _folder(file.with_suffix(""), out)
        if (folder / FIGURES).exists():
            raise WrongUsage(f"--out {folder}: already contains {FIGURES}; name another folder")
        held = _carry_out(planned, folder, traces)
        again = {each.kept: each.again for each in held}
        figures = proof.hold(artifact, again, folder / FIGURES)
        if as_json:
            told = [{**vars(each.figure), "same": each.same} for each in figures]
            runs = [{**each.to_dict(), "folder": f"runs/{each.kept.name}"} for each in held]
            echo_json({"folder": str(folder), "runs": runs, "figures": told})
        else:
            _tell(held)
            _tell_figures(figures, _why(held, other))
            tell(f"Kept in {folder}")
    if not _all_same(held) or not all(each.same for each in figures):
        raise SystemExit(1)


def _folder(place: Path, out: Path | None) -> Path:
    return (out or new_runs_folder(f"again-{place.resolve().name[:40]}")).absolute()


def _runs_in(place: Path) -> list[Path]:
    """Returns the folder itself if it is a run's, else the runs in it."""
    if results.is_whole(place):
        return [place]
    found = sorted(entry for entry in place.iterdir() if results.is_whole(entry))
    if not found:
        raise WrongUsage(f"{place}: contains no run; name a folder of runs")
    return found


def planned_runs(folders: Sequence[Path], option: str, consent: Consent) -> dict[Path, RunSpec]:
    """Returns the specifications of the runs that folders keep.

    Raises WrongUsage if one of them cannot be carried out, or would run on this machine without the user's consent.
    """
    planned = {}
    for folder in folders:
        reason = results.why_unrepeatable(results.read_manifest(folder))
        if reason:
            say(f"schedlab: {visible(folder.name)} is skipped: {reason}")
        else:
            planned[folder] = results.read_spec(folder)
    need_consent(option, planned.values(), consent)
    return planned


def _carry_out(planned: Mapping[Path, RunSpec], folder: Path, traces: Traces) -> list[Held]:
    """Carries out the runs of folders in another one, and holds each against its folder."""
    finished = carry_out(planned, folder, with_metrics=False)
    return [_hold(kept, traces[kept], finished[kept]) for kept in planned]


def carry_out(
    planned: Mapping[Path, RunSpec], folder: Path, with_metrics: bool = True
) -> dict[Path, Finished]:
    """Carries out the runs of folders in another one. Runs of one name, such as those of two files of one name, go
    into folders of their own."""
    branches = {kept: spec for kept, spec in planned.items() if spec.branch}
    parts: list[dict[str, Path]] = []
    for kept, spec in planned.items():
        if kept in branches:
            continue
        part = next((part for part in parts if spec.name not in part), None)
        if part is None:
            parts.append(part := {})
        part[spec.name] = kept
    plans = [
        Plan(
            folder / str(number) if number > 1 else folder,
            tuple(planned[each] for each in part.values()),
        )
        for number, part in enumerate(parts, start=1)
    ]
    for plan in plans:
        plan.check()
        plan.check_new()
    finished = {
        kept: done
        for plan, part in zip(plans, parts, strict=True)
        for kept, done in _perform(plan, part, with_metrics)
    }
    for plan, part in zip(plans, parts, strict=True):
        note_looks(plan.folder, max(looks_at(kept.parent) for kept in part.values()))
    return {**finished, **_carry_out_branches(branches, folder)}


def _carry_out_branches(branches: Mapping[Path, RunSpec], folder: Path) -> dict[Path, Finished]:
    """One past after the other."""
    groups: dict[tuple[RunSpec, int], list[Path]] = {}
    for kept, spec in branches.items():
        assert spec.branch
        groups.setdefault((spec.past, spec.branch.at_ns), []).append(kept)
    finished: dict[Path, Finished] = {}
    for alike in groups.values():
        specs = {kept.name: branches[kept] for kept in alike}
        with ended_by_signal(lambda _: ""):
            finished.update(zip(alike, branching.carry_out(specs, folder), strict=True))
    return finished


def _perform(
    plan: Plan, kept: Mapping[str, Path], with_metrics: bool
) -> list[tuple[Path, Finished]]:
    """One machine after the other."""
    machines = dict.fromkeys(run.machine for run in plan.runs)
    parts = (
        replace(plan, runs=tuple(run for run in plan.runs if run.machine == machine))
        for machine in machines
    )
    return [
        (kept[each.run.name], each)
        for part in parts
        for each in perform(part, with_metrics=with_metrics)
    ]


def _hold(kept: Path, trace: str | None, finished: Finished) -> Held:
    before, now = results.read_manifest(kept), finished.manifest
    alike = before["status"] == now["status"] and _message(before) == _message(now)
    return Held(
        kept,
        finished.folder,
        alike and trace == _trace_hash(finished.folder),
        finished.run.machine.repeatable,
        {
            what: f"{results.shown(key, before)}, now {results.shown(key, now)}"
            for key, what in results.DECISIVE.items()
            if before.get(key) != now.get(key)
        },
    )


def _message(manifest: Mapping[str, Any]) -> str:
    """Returns why a run failed. Runs that reached their limit once named an option there."""
    return str(manifest.get("message") or "").replace(" (--limit)", "")


def _trace_hash(folder: Path) -> str | None:
    trace = folder / TRACE_FILE
    return file_hash(trace) if trace.is_file() else None


def _all_same(held: Sequence[Held]) -> bool:
    return all(each.same for each in held if each.repeatable)


def _tell(held: Sequence[Held]) -> None:
    for each in held:
        if not each.same:
            say(each.told)
    count = sum(each.same for each in held)
    click.echo(f"{count} of {len(held)} runs came out the same, byte for byte.")


def _why(held: Sequence[Held], other: str) -> str:
    """What makes figures come out otherwise, in words."""
    count = sum(not each.same for each in held)
    if count:
        return f"{count} runs came out otherwise"
    return other or "although all its runs came out the same: a library may have another version"


def _tell_figures(figures: Sequence[HeldFigure], why: str) -> None:
    for each in figures:
        if not each.same:
            name = visible(f"{each.figure.label}, {each.figure.name}")
            say(f"schedlab: {name}: other data: {visible(each.difference)}; {why}")
    count = sum(each.same for each in figures)
    click.echo(f"{count} of {len(figures)} figures and tables have the same data, byte for byte.")
