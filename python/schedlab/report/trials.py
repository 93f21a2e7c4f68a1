# SPDX-License-Identifier: MIT
"""Converts runs into trials: configurations for the standalone page, which
a reader can follow and change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.markdown import code
from schedlab.base.toolchain.committed import committed_policies
from schedlab.errors import WrongUsage
from schedlab.machines.folder import WORKLOAD_FILE
from schedlab.report.model import Trial
from schedlab.report.wording import cpus, listed
from schedlab.runs.collection import Collection, Repeated, StoredRun
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.files import FILES
from schedlab.studies.study import Study
from schedlab.units import format_time
from schedlab.workload.changes import Change
from schedlab.workload.costs import KERNEL
from schedlab.workload.palette import palette
from schedlab.workload.text import length, text_of
from schedlab.workload.workload_files import read

NAME = "page"
"""The name of the trial that a page offers below its lead."""
SYSTEMS = 4
"""Maximum number of policies that the page simulates side by side."""
TICK_NS = 10_000_000
"""The page's tick in ns."""
_LINES = 400
"""Maximum number of lines of a workload in an address."""
_OTHER_COSTS = "operations as fast as in the schedlab kernel"
_ALIKE = "identical CPUs"
_FILE_REASON = "a workload file instead of the program"
_NEAREST = "the workload file that is most similar to the command"
_AS_IT_IS = "the file without its changes"


@dataclass(frozen=True)
class _Load:
    """A workload for the page: the name of a built-in one, or a text."""

    title: str
    name: str = ""
    text: str = ""
    notes: tuple[str, ...] = ()
    """Differences from the workload that was run."""


def of_setups(setups: Sequence[Repeated]) -> Trial | None:
    """Returns a trial of configurations with the same workload, under up to four policies.

    The trial has the number of CPUs that most of the configurations ran on. Returns None if the
    page lacks the policies or a similar workload.
    """
    known_setups = [setup for setup in setups if _is_known(setup.setup.policy)]
    counts = [setup.setup.cpus for setup in known_setups]
    count = max(sorted(set(counts)), key=counts.count, default=0)
    chosen = [setup for setup in known_setups if setup.setup.cpus == count][:SYSTEMS]
    if not chosen:
        return None
    load = _load_of(chosen[0].runs[0])
    policies = [_in_link(setup.setup.policy_title) for setup in chosen]
    if load is None:
        return None
    return _trial(load, policies, count, chosen[0].runs[0].seed, chosen[0].setup.tick_ns)


def of_suite(collection: Collection, suite: Suite, policies: Sequence[str]) -> Trial | None:
    """Returns a trial of some policies of a suite, as `of_setups` does."""
    ran = {
        setup.policy_title: repeated
        for setup, repeated in collection.repeated.items()
        if (setup.experiment, setup.cpus, setup.tick_ns, setup.machine)
        == (suite.experiment, suite.cpus, suite.tick_ns, suite.machine)
    }
    return of_setups([ran[policy] for policy in policies])


def of_study(study: Study) -> Trial | None:
    """Returns the trial of `try` in a study's study.yaml (experiment, policies, CPUs), or None."""
    trial = study.facts.get("try")
    if not trial:
        return None
    count = int(trial["cpus"])
    load = _load_of_experiment(trial["experiment"], count)
    if load is None:
        return None
    return _trial(load, [_in_link(name) for name in trial["policies"]], count, 1, TICK_NS)


def _trial(load: _Load, policies: Sequence[str], count: int, seed: int, tick_ns: int) -> Trial:
    tick = () if tick_ns == TICK_NS else (f"ticks of {format_time(TICK_NS)}",)
    return Trial(
        f"{load.title} under {listed([code(policy) for policy in policies])} on {cpus([count])}",
        tuple(policies),
        count,
        seed,
        load.name,
        load.text,
        "; ".join((*load.notes, *tick)),
    )


def _is_known(policy: str) -> bool:
    return policy.partition(":")[0] in committed_policies()


def _in_link(policy: str) -> str:
    """Converts `mlfq:preset boost=100` to `mlfq:preset,boost=100`."""
    return policy.replace(" ", ",")


# --- workloads


def _load_of(run: StoredRun) -> _Load | None:
    """Returns the workload of a run, or the most similar one of the page; None without one."""
    file = run.folder / WORKLOAD_FILE
    known = EXPERIMENTS.get(run.setup.experiment)
    if file.is_file():
        costs = run.manifest.get("costs") or KERNEL.name
        other = costs != KERNEL.name or (known is not None and known.repeats)
        notes = (
            *((_OTHER_COSTS,) if other else ()),
            *((_ALIKE,) if "shape" in run.manifest else ()),
        )
        return _load_of_file(file, run.setup.changes, run.seed, notes)
    experiment_load = _load_of_experiment(run.setup.experiment, run.setup.cpus)
    return experiment_load or _load_of_program(str(run.manifest["workload"]))


def _load_of_file(
    file: Path, changes: Sequence[Change], seed: int, notes: tuple[str, ...] = ()
) -> _Load | None:
    name = _in_page(file)
    if name and not changes:
        return _Load(code(name), name, notes=notes)
    try:
        workload = read(file, changes)
    except WrongUsage:  # the file is of another version
        return None
    title = f"{code(name)}, changed," if name else "its workload"
    if length(workload) > _LINES:
        return _Load(code(name), name, notes=(*notes, _AS_IT_IS)) if name else None
    return _Load(title, text=text_of(workload, seed, TICK_NS), notes=notes)


def _load_of_experiment(experiment: str, count: int) -> _Load | None:
    known = EXPERIMENTS.get(experiment)
    file = FILES.get((known and known.repeats) or experiment)
    if known is None or file is None:
        return None
    notes = (_FILE_REASON, _OTHER_COSTS) if known.repeats else (_FILE_REASON,)
    return _load_of_file(file.path, file.changed("full", count), 1, notes)


def _load_of_program(command: str) -> _Load | None:
    program, *options = command.split()
    entry = palette().get(program)
    if entry is None:
        return None
    return _load_of_file(entry.file, (), 1, (_NEAREST,) if options else ())


@cache
def _known_files() -> dict[str, str]:
    """Returns the names of the page's workloads by the content of their files."""
    return {
        hashlib.sha256(entry.file.read_bytes()).hexdigest(): name
        for name, entry in palette().items()
    }


def _in_page(file: Path) -> str:
    return _known_files().get(hashlib.sha256(file.read_bytes()).hexdigest(), "")
