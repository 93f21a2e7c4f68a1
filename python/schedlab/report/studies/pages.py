# SPDX-License-Identifier: MIT
"""Returns a study's page, with a notice if its runs were simulated."""

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

from schedlab.base.display.markdown import code
from schedlab.base.display.numbers import format_count
from schedlab.machines import SIMULATOR
from schedlab.report.model import Page, Section, Text
from schedlab.report.wording import listed
from schedlab.runs.collection import Collection, StoredRun
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.files import EXPERIMENT_FILES, EXPERIMENTS_WITHOUT_FILE
from schedlab.studies.study import Study, find_study


def page_of(study: Study, collection: Collection) -> Page | None:
    """Returns a study's page, or None if it has none or none of its experiments was run."""
    name = f"schedlab.report.studies.page_{study.number}"
    label = f"s{study.number}-"
    if not find_spec(name) or not any(run.setup.experiment.startswith(label) for run in collection):
        return None
    module = import_module(name)
    return with_notice(
        module.make_page(module.Queries(study, collection)), collection, study.number
    )


NOTICE_TITLE = "These runs are simulated"


def with_notice(page: Page, collection: Collection, study: int) -> Page:
    """Returns the page with a notice on simulated runs after its
    first section, if it has such runs.
    """
    runs = [run for run in collection if run.setup.experiment.startswith(f"s{study}-")]
    planned = {name for name, experiment in EXPERIMENTS.items() if experiment.machine == SIMULATOR}
    simulated = [
        run
        for run in runs
        if run.setup.machine == SIMULATOR and run.setup.experiment not in planned
    ]
    if not simulated:
        return page
    notice = Section(NOTICE_TITLE, (Text(_runs_text(simulated, len(runs), study), "warning"),))
    return replace(page, sections=(*page.sections[:1], notice, *page.sections[1:]))


def _runs_text(simulated: list[StoredRun], runs: int, study: int) -> str:
    """Returns in words which runs were simulated, out of `runs` runs."""
    is_complete_set = len(simulated) == runs
    which = "All" if is_complete_set else f"{len(simulated)} of the {runs}"
    lines = [
        f"{which} runs of this page are **simulated**: the simulator has the policies, but no"
        " kernel. Workload files reproduce the kernel's programs, so statements about the kernel"
        f" are about the simulator{_share(is_complete_set)}. The costs of calls and switches were"
        " measured on the kernel."
    ]
    if missing := find_study(study).facts.get("only_programs_tell"):
        lines.append(f"**Missing** are values that only a program reports: {missing}.")
    experiments = dict.fromkeys(run.setup.experiment for run in simulated)
    remarks: dict[str, list[str]] = {}
    for name in experiments:
        if name in EXPERIMENT_FILES and EXPERIMENT_FILES[name].remark:
            remarks.setdefault(EXPERIMENT_FILES[name].remark, []).append(name)
    for remark, names in remarks.items():
        lines.append(f"{_list_names(names)}: {remark}")
    without: dict[str, list[str]] = {}
    for name, reason in EXPERIMENTS_WITHOUT_FILE.items():
        if name.startswith(f"s{study}-"):
            without.setdefault(reason, []).append(name)
    for reason, names in without.items():
        lines.append(
            f"{_list_names(names)} {'was' if len(names) == 1 else 'were'} not run: {reason}"
        )
    return "\n".join(f"- {line}" for line in lines)


def _share(is_complete_set: bool) -> str:
    """Returns whether all runs were simulated, in words."""
    return "" if is_complete_set else " in these"


_NAMED_MAX = 3


def _list_names(names: list[str]) -> str:
    """Returns the names in words, or the first of many."""
    if len(names) <= _NAMED_MAX:
        return listed([code(name) for name in names])
    return f"{code(names[0])} and {format_count(len(names) - 1, 'other')} like it"
