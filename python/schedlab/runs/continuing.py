# SPDX-License-Identifier: MIT
"""Going on with a plan of which some runs are finished: what is there must be of the same make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedlab.errors import WrongUsage
from schedlab.files import placing
from schedlab.machines.base import Machine
from schedlab.machines.run import Run
from schedlab.runs import results
from schedlab.runs.carrying_out import Software, inputs
from schedlab.runs.plan import Plan


def still_to_run(plan: Plan) -> Iterator[Run]:
    """Gives the runs that are not there, and those that are and failed, whatever they were made from."""
    for run in plan.runs:
        place = plan.folder / run.name
        if not (results.is_whole(place) and results.succeeded(results.read_manifest(place))):
            yield run


def unfinished(plan: Plan, machine: Machine, base: Software) -> Plan:
    """The runs that are not there, and those that are there and failed.

    Raises WrongUsage if what is there was made from something else than what would be run now.
    """
    return replace(
        plan, runs=tuple(run for run in plan.runs if not _is_done(plan, run, machine, base))
    )


def _is_done(plan: Plan, run: Run, machine: Machine, base: Software) -> bool:
    place = plan.folder / run.name
    if not place.exists():
        return False
    if not results.is_whole(place):
        raise WrongUsage(f"--out {plan.folder}: {run.name} in it is no run; name another folder")
    manifest = results.read_manifest(place)
    wanted = inputs(run, machine, base)
    for key, what in results.DECISIVE.items():
        if manifest.get(key) != wanted.get(key):
            raise WrongUsage(
                f"--out {plan.folder}: {run.name} in it was made with other {what}:"
                f" {results.shown(key, manifest)}, now {results.shown(key, wanted)}. The two do not"
                " belong together: name another folder, or move that one away"
            )
    done = results.succeeded(manifest)
    if not done:
        placing.check_folder("--out", place)
    return done
