# SPDX-License-Identifier: MIT
"""Converts runs into trials: configurations for the standalone page, which
a reader can follow and change.
"""

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
from schedlab.report.wording import cpus_text, listed
from schedlab.runs.collection import Collection, ConfigurationRuns, StoredRun
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.files import EXPERIMENT_FILES
from schedlab.studies.study import Study
from schedlab.units import format_time
from schedlab.workload.changes import Change
from schedlab.workload.costs import KERNEL_COSTS
from schedlab.workload.palette import read_palette
from schedlab.workload.text import count_lines, format_workload
from schedlab.workload.workload_files import read_workload_file

PAGE_TRIAL = "page"
"""The name of the trial that a page offers below its lead."""
POLICIES_MAX = 4
"""Maximum number of policies that the page simulates side by side."""
_PAGE_TICK_NS = 10_000_000
"""The tick in ns for which the page has its workloads."""
_TEXT_LINES_MAX = 400
"""Maximum number of lines of a workload in an address."""
_KERNEL_COSTS = "operations as fast as in the schedlab kernel"
_IDENTICAL_CPUS = "identical CPUs"
_FILE_REASON = "a workload file instead of the program"
_SIMILAR_FILE = "the workload file that is most similar to the command"
_UNCHANGED_FILE = "the file without its changes"
_PAGE_TICK = f"ticks of {format_time(_PAGE_TICK_NS)}"


@dataclass(frozen=True)
class _PageWorkload:
    """A workload for the page: the name of a built-in one, or a text."""

    title: str
    tick_ns: int
    name: str = ""
    text: str = ""
    notes: tuple[str, ...] = ()
    """Differences from the workload that was run."""


def trial_of_setups(setups: Sequence[ConfigurationRuns]) -> Trial | None:
    """Returns a trial of configurations with the same workload, under up to four policies.

    The trial has the number of CPUs that most of the configurations ran on. Returns None if the
    page lacks the policies or a similar workload.
    """
    known_setups = [setup for setup in setups if _is_known(setup.setup.policy)]
    counts = [setup.setup.cpus for setup in known_setups]
    count = max(sorted(set(counts)), key=counts.count, default=0)
    chosen_setups = [setup for setup in known_setups if setup.setup.cpus == count][:POLICIES_MAX]
    if not chosen_setups:
        return None
    run = chosen_setups[0].runs[0]
    workload = _workload_of_run(run)
    policies = [_link_policy(setup.setup.policy_title) for setup in chosen_setups]
    return _make_trial(workload, policies, count, run.seed) if workload else None


def trial_of_suite(collection: Collection, suite: Suite, policies: Sequence[str]) -> Trial | None:
    """Returns a trial of some policies of a suite, as `trial_of_setups` does."""
    setups_by_policy = {
        setup.policy_title: repeated
        for setup, repeated in collection.repeated.items()
        if (setup.experiment, setup.cpus, setup.tick_ns, setup.machine)
        == (suite.experiment, suite.cpus, suite.tick_ns, suite.machine)
    }
    return trial_of_setups([setups_by_policy[policy] for policy in policies])


def trial_of_study(study: Study) -> Trial | None:
    """Returns the trial of `try` in a study's study.yaml (experiment, policies, CPUs), or None."""
    trial = study.facts.get("try")
    if not trial:
        return None
    count = int(trial["cpus"])
    workload = _workload_of_experiment(trial["experiment"], count, _PAGE_TICK_NS)
    policies = [_link_policy(name) for name in trial["policies"]]
    return _make_trial(workload, policies, count, 1) if workload else None


def _make_trial(workload: _PageWorkload, policies: Sequence[str], count: int, seed: int) -> Trial:
    """Returns the trial of a workload under these policies."""
    return Trial(
        f"{workload.title} under {listed([code(policy) for policy in policies])} on {cpus_text([count])}",
        tuple(policies),
        count,
        seed,
        workload.tick_ns,
        workload.name,
        workload.text,
        workload.notes,
    )


def _is_known(policy: str) -> bool:
    """Returns whether the page has the policy."""
    return policy.partition(":")[0] in committed_policies()


def _link_policy(policy: str) -> str:
    """Converts `mlfq:preset boost=100` to `mlfq:preset,boost=100`."""
    return policy.replace(" ", ",")


# --- workloads


def _workload_of_run(run: StoredRun) -> _PageWorkload | None:
    """Returns the workload of a run, or the most similar one of the page; None without one."""
    file = run.folder / WORKLOAD_FILE
    known_experiment = EXPERIMENTS.get(run.setup.experiment)
    if file.is_file():
        costs = run.manifest.get("costs") or KERNEL_COSTS.name
        has_other_costs = costs != KERNEL_COSTS.name or (
            known_experiment is not None and known_experiment.repeated_experiment
        )
        notes = (
            *((_KERNEL_COSTS,) if has_other_costs else ()),
            *((_IDENTICAL_CPUS,) if "shape" in run.manifest else ()),
        )
        return _workload_of_file(file, run.setup.changes, run.seed, run.setup.tick_ns, notes)
    experiment_load = _workload_of_experiment(
        run.setup.experiment, run.setup.cpus, run.setup.tick_ns
    )
    return experiment_load or _workload_of_program(str(run.manifest["workload"]), run.setup.tick_ns)


def _workload_of_file(
    file: Path, changes: Sequence[Change], seed: int, tick_ns: int, notes: tuple[str, ...] = ()
) -> _PageWorkload | None:
    """Returns the workload of a file with changed parameters; None if the page cannot play it."""
    name = _name_in_page(file)
    try:
        workload = read_workload_file(file, changes)
    except WrongUsage:  # the file is of another version
        return None
    text = format_workload(workload, seed, tick_ns)
    is_in_page = name and not changes and text == format_workload(workload, seed, _PAGE_TICK_NS)
    if is_in_page:
        return _PageWorkload(code(name), tick_ns, name, notes=notes)
    if count_lines(workload) <= _TEXT_LINES_MAX:
        title = code(name) + (", changed," if changes else "") if name else "its workload"
        return _PageWorkload(title, tick_ns, text=text, notes=notes)
    if not name:
        return None
    if changes:
        notes = (*notes, _UNCHANGED_FILE)
    if tick_ns != _PAGE_TICK_NS:
        notes = (*notes, _PAGE_TICK)
    return _PageWorkload(code(name), _PAGE_TICK_NS, name, notes=notes)


def _workload_of_experiment(experiment: str, count: int, tick_ns: int) -> _PageWorkload | None:
    """Returns the workload file of a study's experiment, on `count` CPUs; None without one."""
    known_experiment = EXPERIMENTS.get(experiment)
    file = EXPERIMENT_FILES.get(
        (known_experiment and known_experiment.repeated_experiment) or experiment
    )
    if known_experiment is None or file is None:
        return None
    notes = (
        (_FILE_REASON, _KERNEL_COSTS) if known_experiment.repeated_experiment else (_FILE_REASON,)
    )
    return _workload_of_file(file.path, file.changes_for("full", count), 1, tick_ns, notes)


def _workload_of_program(command: str, tick_ns: int) -> _PageWorkload | None:
    """Returns the workload file that resembles a program's command; None without one."""
    program, *options = command.split()
    entry = read_palette().get(program)
    if entry is None:
        return None
    return _workload_of_file(entry.file, (), 1, tick_ns, (_SIMILAR_FILE,) if options else ())


@cache
def _workloads_by_hash() -> dict[str, str]:
    """Returns the names of the page's workloads by the content of their files."""
    return {
        hashlib.sha256(entry.file.read_bytes()).hexdigest(): name
        for name, entry in read_palette().items()
    }


def _name_in_page(file: Path) -> str:
    """Returns the page's name for the workload in this file; "" if the page lacks it."""
    return _workloads_by_hash().get(hashlib.sha256(file.read_bytes()).hexdigest(), "")
