# SPDX-License-Identifier: MIT
"""Reads the studies' proposals from proposals.yaml: each with a test of its effect. All values are texts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

from schedlab.base.toolchain.policies import PolicyChoice, parse_choices, parse_setting
from schedlab.machines import SIMULATOR, machine_named
from schedlab.machines.spec import RunSpec
from schedlab.paths import ROOT
from schedlab.runs.plan import Plan
from schedlab.studies.experiment import TICK_NS, Depth
from schedlab.studies.study import Study, apply_merge_key, find_studies, read_list
from schedlab.workload.shapes import reading as shapes
from schedlab.workload.workload_files import read_workload_file

PROPOSALS_FILE = "proposals.yaml"
SEEDS_PER_TEST: dict[Depth, int] = {"quick": 5, "full": 20}
_LIMIT_TICKS = 60_000
_LABEL_PREFIX = "proposal-"

Machine = Literal["sim", "spike"]
BetterDirection = Literal["lower", "higher"]


@dataclass(frozen=True)
class Test:
    """A test of a proposal's effect: a workload without and with it."""

    shows: str
    """The observed effect, as text."""
    workload: str
    """A workload file in the study's folder, for the simulator; or a command of the schedlab kernel."""
    off: str
    on: str
    """The policies with their settings: `lottery:thesis wait_limit=200`."""
    column: str
    """The column of the metrics, in the table of summaries or of groups; `a / b` for a quotient."""
    better: BetterDirection
    group: str = ""
    """The group of the column; empty: the whole run."""
    cpus: str = "1"
    shape: str = ""
    """The shape of the simulated machine, with as many CPUs: predefined, or a file in the study's
    folder. Empty: all CPUs are alike.
    """

    @property
    def machine(self) -> Machine:
        """Returns the machine that runs the test: the simulator for a workload file, otherwise
        Spike.
        """
        return "sim" if self.workload.endswith(".json") else "spike"

    @property
    def label(self) -> str:
        """The label of its runs. Tests of one workload share equal runs."""
        stem = self.workload.removesuffix(".json").replace(" ", "-")
        shape = f"-{self.shape.removesuffix('.json')}" if self.shape else ""
        return f"{_LABEL_PREFIX}{stem}{shape}"


@dataclass(frozen=True)
class Proposal:
    """One change that a study proposes."""

    study: int
    name: str
    place: str
    """The section with the proposal."""
    proposes: str
    tests: tuple[Test, ...] = ()
    missing: str = ""
    """Why the proposal has no test; empty if it has one."""


def is_proposal_label(experiment: str | None) -> bool:
    """True if the label belongs to a test of proposals."""
    return bool(experiment and experiment.startswith(_LABEL_PREFIX))


def read_proposals(only: Iterable[int] = ()) -> tuple[Proposal, ...]:
    """Returns the proposals of all or some studies. Raises FileRefused."""
    study_numbers = set(only)
    return tuple(
        proposal
        for study in find_studies()
        if not study_numbers or study.number in study_numbers
        for proposal in _proposals_of_study(study)
    )


@cache
def _proposals_of_study(study: Study) -> tuple[Proposal, ...]:
    expected = "a list of proposals, each with name, place, proposes, and tests or missing"
    return read_list(
        study.folder / PROPOSALS_FILE, partial(_parse_proposal, study.number), expected
    )


def _parse_proposal(study: int, entry: dict[str, Any]) -> Proposal:
    tests = tuple(Test(**apply_merge_key(test)) for test in entry.get("tests", ()))
    for test in tests:
        if test.better not in get_args(BetterDirection):
            raise ValueError(f"{entry['name']}: {test.better} is neither lower nor higher")
    if bool(tests) == bool(entry.get("missing")):
        raise ValueError(f"{entry['name']}: expected either tests or missing")
    return Proposal(**{**entry, "study": study, "tests": tests})


def plan_proposal_tests(
    folder: Path, depth: Depth, only: Iterable[int], seed: int, machine: str
) -> Plan:
    """Plans the runs of the proposals' tests on this machine. Work is in ticks and nanoseconds, so
    the tick has its usual length.
    """
    runs: dict[str, RunSpec] = {}
    for proposal in read_proposals(only):
        for test in proposal.tests:
            if test.machine == machine:
                for run in _runs(proposal, test, depth, seed):
                    runs.setdefault(run.name, run)
    return Plan(folder, tuple(runs.values()))


def _runs(proposal: Proposal, test: Test, depth: Depth, seed: int) -> Iterator[RunSpec]:
    """Yields the runs of a test, without and with the proposal."""
    base = RunSpec(
        workload=test.workload,
        policy=PolicyChoice(""),
        settings=(),
        cpus=int(test.cpus),
        machine=machine_named(test.machine),
        seed=0,
        tick_ns=TICK_NS,
        limit_ns=_LIMIT_TICKS * TICK_NS,
        memory_mib=512,
        label=test.label,
        shape=shapes.find_shape(test.shape, ROOT / f"studies/{proposal.study}")
        if test.shape
        else None,
    )
    if test.machine == SIMULATOR:
        workload_path = f"studies/{proposal.study}/{test.workload}"
        base = replace(base, workload=workload_path, file=read_workload_file(ROOT / workload_path))
    for policy in (test.off, test.on):
        name, *settings = policy.split()
        for repeat in range(SEEDS_PER_TEST[depth]):
            yield replace(
                base,
                policy=parse_choices(name)[0],
                settings=tuple(parse_setting(setting) for setting in settings),
                seed=seed + repeat,
            )
