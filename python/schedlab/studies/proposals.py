# SPDX-License-Identifier: MIT
"""What the studies proposed, one by one: proposals.yaml in their folders says what each proposal is,
and in which test it should show, off and on. Each value there is a text."""

from __future__ import annotations

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
from schedlab.studies.pack import Study, merged, read_list, studies
from schedlab.workload.shapes import reading as shapes
from schedlab.workload.workload_files import read

PROPOSALS = "proposals.yaml"
SEEDS: dict[Depth, int] = {"quick": 5, "full": 20}
_LIMIT_TICKS = 60_000
_LABEL = "proposal-"

Machine = Literal["sim", "spike"]
Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Test:
    """Where a proposal should show: a workload without it and with it."""

    shows: str
    """What is looked at, in words."""
    workload: str
    """A workload file of the study's folder, which is simulated; or a command of our kernel."""
    off: str
    on: str
    """The policies with their settings: `lottery:thesis wait_limit=200`."""
    column: str
    """Of the metrics, in the runs' table of summaries or of groups; `a / b`: one by the other."""
    better: Better
    group: str = ""
    """The group whose column it is; empty: the run's."""
    cpus: str = "1"
    shape: str = ""
    """The shape of the simulated machine, which has as many CPUs: one that ships, or a file of the
    study's folder; empty: all CPUs are alike."""

    @property
    def machine(self) -> Machine:
        return "sim" if self.workload.endswith(".json") else "spike"

    @property
    def label(self) -> str:
        """The name of its runs: tests of one workload share those that are alike."""
        stem = self.workload.removesuffix(".json").replace(" ", "-")
        shape = f"-{self.shape.removesuffix('.json')}" if self.shape else ""
        return f"{_LABEL}{stem}{shape}"


@dataclass(frozen=True)
class Proposal:
    """One thing that a study would have changed."""

    study: int
    name: str
    place: str
    """The section that proposes it."""
    proposes: str
    tests: tuple[Test, ...] = ()
    missing: str = ""
    """Why there is no test of it; empty: there is."""


def is_of_proposals(experiment: str | None) -> bool:
    """Is it the label of a test of proposals?"""
    return bool(experiment and experiment.startswith(_LABEL))


def proposals(only: Iterable[int] = ()) -> tuple[Proposal, ...]:
    """Those of all studies, or of some. Raises FileRefused."""
    wanted = set(only)
    return tuple(
        each
        for study in studies()
        if not wanted or study.number in wanted
        for each in _proposals(study)
    )


@cache
def _proposals(study: Study) -> tuple[Proposal, ...]:
    expected = "a list of proposals, each with name, place, proposes, and tests or missing"
    return read_list(study.folder / PROPOSALS, partial(_proposal, study.number), expected)


def _proposal(study: int, said: dict[str, Any]) -> Proposal:
    tests = tuple(Test(**merged(each)) for each in said.get("tests", ()))
    for each in tests:
        if each.better not in get_args(Better):
            raise ValueError(f"{said['name']}: {each.better} is neither lower nor higher")
    if bool(tests) == bool(said.get("missing")):
        raise ValueError(f"{said['name']}: expected either tests or missing")
    return Proposal(**{**said, "study": study, "tests": tests})


def plan_of_proposals(
    folder: Path, depth: Depth, only: Iterable[int], seed: int, machine: str
) -> Plan:
    """The runs of their tests on this machine. The work is in ticks and nanoseconds, so a tick has its
    usual length."""
    runs: dict[str, RunSpec] = {}
    for proposal in proposals(only):
        for test in proposal.tests:
            if test.machine == machine:
                for run in _runs(proposal, test, depth, seed):
                    runs.setdefault(run.name, run)
    return Plan(folder, tuple(runs.values()))


def _runs(proposal: Proposal, test: Test, depth: Depth, seed: int) -> Iterator[RunSpec]:
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
        shape=shapes.choose(test.shape, ROOT / f"studies/{proposal.study}") if test.shape else None,
    )
    if test.machine == SIMULATOR:
        place = f"studies/{proposal.study}/{test.workload}"
        base = replace(base, workload=place, file=read(ROOT / place))
    for policy in (test.off, test.on):
        name, *settings = policy.split()
        for repeat in range(SEEDS[depth]):
            yield replace(
                base,
                policy=parse_choices(name)[0],
                settings=tuple(parse_setting(each) for each in settings),
                seed=seed + repeat,
            )
