# SPDX-License-Identifier: MIT
"""Tests a lab: finds mutants of its solution that lose no points, and checks whether they behave differently."""

from __future__ import annotations

import copy
import hashlib
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from schedlab.base.files.json_lines import JsonError
from schedlab.base.host.workers import worker_pool
from schedlab.courses.grading.graded_run import GradedRun
from schedlab.courses.grading.grading import Grader, grader
from schedlab.courses.grading.lab import SOLUTION_FILE, Lab, LabTest, parse_test, read
from schedlab.courses.grading.mutants import Mutant, make_mutants
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import CompiledPolicy, CompileError, compile_policy
from schedlab.errors import FileRefused
from schedlab.trace.divergence import first_divergence
from schedlab.workload.random_workloads import exact_workload

RANDOM_WORKLOAD_COUNT = 1000
"""Number of random workloads; an equivalent mutant has the solution's traces in all of them."""
EQUIVALENT_FRACTION_MAX = 0.1
"""Maximum fraction of equivalent mutants."""
_SOURCE_ENCODING = "latin-1"
"""Preserves all bytes of a source."""
_TASKS_MAX = 4
_TUNABLE_VALUE_MAX = 12
"""Tunables are also drawn from 1 to this value."""
_CUSTOM_SECTION = 0
"""Kind of WebAssembly sections with names and lines instead of code."""


@dataclass(frozen=True)
class MutantOutcome:
    """The result of a mutant; `code` is a hash of its compiled code, "" if it does not compile."""

    mutant: Mutant
    code: str = ""
    killed_by: str = ""
    """The first test where it loses points, or "" if it survives."""
    difference: str = ""
    """How a survivor differs from the solution; empty if it does not on WORKLOADS workloads."""
    example: dict[str, Any] | None = None
    """A small workload that shows the difference, as a test of lab.json."""

    @property
    def status(self) -> str:
        """Returns the result in one word: whether the mutant was killed, survived, is equivalent or
        does not compile.
        """
        if self.killed_by:
            return "killed"
        return "survived" if self.difference else "equivalent"

    @property
    def text(self) -> str:
        """The result as text for people."""
        if not self.code:
            return "does not compile"
        return f"killed by {self.killed_by}" if self.killed_by else self.status

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        mutant = self.mutant
        return {
            "line": mutant.line,
            "before": mutant.before,
            "after": mutant.after,
            "status": self.status,
            "killed_by": self.killed_by,
            "difference": self.difference,
            "example": self.example,
        }


@dataclass(frozen=True)
class MutationReport:
    """The results of testing a lab."""

    lab: Lab
    mutants: tuple[MutantOutcome, ...]
    mistakes: tuple[MutantOutcome, ...]
    """The lab's common mistakes; `after` is the mistake's name."""

    def count(self, status: str) -> int:
        """Returns the number of mutants with a status."""
        return sum(outcome.status == status for outcome in self.mutants)

    @property
    def unkilled(self) -> list[MutantOutcome]:
        """Mutants and mistakes that lose no points."""
        outcomes = (*self.mutants, *self.mistakes)
        return [outcome for outcome in outcomes if not outcome.killed_by]

    @property
    def passed(self) -> bool:
        """True if all mistakes and all mutants lose points, except a few equivalent mutants."""
        equivalent = self.count("equivalent")
        has_few_equivalents = equivalent <= EQUIVALENT_FRACTION_MAX * len(self.mutants)
        return has_few_equivalents and bool(self.mutants) and len(self.unkilled) == equivalent

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        statuses = ("killed", "equivalent", "survived")
        return {
            "lab": self.lab.folder.name,
            "passed": self.passed,
            **{status: self.count(status) for status in statuses},
            "mutants": [outcome.to_dict() for outcome in self.mutants],
            "mistakes": [outcome.to_dict() for outcome in self.mistakes],
        }


def without_kernel_expectations(lab: Lab) -> Lab:
    """Returns the lab without expectations about the kernel, which must decide like the simulator."""

    def simulated(test: LabTest) -> LabTest:
        """Returns the test without expectations about the kernel."""
        expectations = (
            expectation for expectation in test.expectations if expectation.kind != "kernel"
        )
        return replace(test, expectations=tuple(expectations))

    return replace(lab, tests=tuple(map(simulated, lab.tests)))


def write_mistake(patch: Path, folder: Path) -> Path:
    """Writes the lab's solution with a common mistake into a folder; returns its path.

    Raises FileRefused.
    """
    source = folder / SOLUTION_FILE
    source.write_bytes((patch.parent.parent / SOLUTION_FILE).read_bytes())
    # Git would treat a folder in a checkout as a part of it.
    git = ["git", "-C", str(folder), "--git-dir=.", "apply", "--unidiff-zero"]
    command = [*git, str(patch.resolve())]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise FileRefused(
            f"cannot be applied to {SOLUTION_FILE}: {result.stderr.strip()}",
            what=str(patch),
            fix=f"make it again for this {SOLUTION_FILE}",
        )
    return source


def try_lab(
    lab: Lab,
    trusted: bool,
    jobs: int,
    max_mutants: int | None,
    report: Callable[[MutantOutcome, int, int], None],
) -> MutationReport:
    """Grades mutants of the solution, at most `max_mutants`, and the lab's mistakes, `jobs` at a time.

    `report` is called with each outcome, the number so far and the total. Raises FileRefused if the
    solution loses points or has unmatched brackets.
    """
    lab = without_kernel_expectations(lab)
    try:
        mutants = make_mutants(_read_source(lab.solution))
    except LookupError:
        why = "its brackets do not match; keep both brackets of a pair in the same branch of #if"
        raise FileRefused(f"{lab.solution}: {why}") from None
    if max_mutants:
        mutants = mutants[:: max(-(-len(mutants) // max_mutants), 1)]
    candidates = [*mutants, *_mistake_mutants(lab)]
    outcomes: list[MutantOutcome] = []
    with grader(lab, trusted) as lab_grader, worker_pool(jobs) as pool:
        solution = compile_policy(lab.form, lab.solution, trusted)
        for outcome in pool.map(partial(_grade_mutant, lab_grader), candidates):
            outcomes.append(outcome)
            report(outcome, len(outcomes), len(candidates))
    codes = {"", _code_hash(solution)}
    distinct_outcomes: list[MutantOutcome] = []
    for outcome in outcomes[: len(mutants)]:
        if outcome.code not in codes:
            codes.add(outcome.code)
            distinct_outcomes.append(outcome)
    return MutationReport(lab, tuple(distinct_outcomes), tuple(outcomes[len(mutants) :]))


def _read_source(source: Path) -> str:
    """Returns the text of a source."""
    return source.read_text(_SOURCE_ENCODING)


def _mistake_mutants(lab: Lab) -> Iterator[Mutant]:
    """Yields the lab's common mistakes as mutants."""
    for patch in sorted((lab.folder / "wrong").glob("*.patch")):
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            yield Mutant(0, "", patch.stem, _read_source(write_mistake(patch, Path(folder))))


def _grade_mutant(lab_grader: Grader, mutant: Mutant) -> MutantOutcome:
    """Grades a mutant up to the first test where it loses points."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        source = Path(folder) / "mutant.c"
        source.write_text(mutant.source, _SOURCE_ENCODING)
        try:
            policy = compile_policy(lab_grader.lab.form, source, lab_grader.trusted)
        except CompileError:
            return MutantOutcome(mutant)
        code = _code_hash(policy)
        if test := _first_lost_test(lab_grader, policy):
            return MutantOutcome(mutant, code, test)
        reference = _solution_reference(lab_grader.lab.folder, lab_grader.trusted)
        return MutantOutcome(mutant, code, "", *reference.compare(policy))


def _first_lost_test(lab_grader: Grader, policy: CompiledPolicy) -> str:
    """Returns the first test where the policy loses points, or ""."""
    lost = (
        test.name for test in lab_grader.lab.tests if lab_grader.run_test(test, policy).lost_points
    )
    return next(lost, "")


def _code_hash(policy: CompiledPolicy) -> str:
    """Returns a hash of the compiled code."""
    return hashlib.sha256(b"".join(_code_sections(policy.module))).hexdigest()


def _code_sections(module: bytes) -> Iterator[bytes]:
    """Yields the sections of a WebAssembly module that affect its behaviour."""
    offset = 8
    while offset < len(module):
        end = size = 0
        for shift, byte in enumerate(module[offset + 1 : offset + 6]):
            size |= (byte & 127) << 7 * shift
            if byte < 128:
                end = offset + 2 + shift + size
                break
        if module[offset] != _CUSTOM_SECTION:
            yield module[offset:end]
        offset = end


class _Reference:
    """The solution and its runs of random workloads."""

    def __init__(self, folder: Path, trusted: bool) -> None:
        """Prepares the solution in the lab's folder."""
        self._lab = read(folder)
        self._policy = compile_policy(self._lab.form, self._lab.solution, trusted)
        self._runs: list[tuple[dict[str, Any], str]] = []

    def compare(self, policy: CompiledPolicy) -> tuple[str, dict[str, Any] | None]:
        """Returns how a policy differs from the solution, with a small test that shows it; or "" and None."""
        for random_test, trace in chain(self._runs, self._new_runs()):
            if _trace_hash(random_test, policy) != trace:
                smallest = self._shrink(random_test, policy)
                return self._describe_difference(smallest, policy), smallest
        return "", None

    def _new_runs(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yields new random workloads up to WORKLOADS, small ones first.

        Skips workloads that the solution does not complete.
        """
        seed = self._runs[-1][0]["seed"] if self._runs else 0
        while len(self._runs) < RANDOM_WORKLOAD_COUNT:
            seed += 1
            random_test = self._draw_workload(
                seed, 1 + len(self._runs) * _TASKS_MAX // RANDOM_WORKLOAD_COUNT
            )
            if trace := _trace_hash(random_test, self._policy):
                self._runs.append((random_test, trace))
                yield self._runs[-1]

    def _draw_workload(self, seed: int, tasks: int) -> dict[str, Any]:
        """Returns a random test with this number of tasks, in the form of lab.json."""
        generator = random.Random(f"trial {seed}")
        tunables = {
            name: value for test in self._lab.tests for name, value in test.settings.items()
        }
        return {
            "workload": exact_workload(seed, tasks),
            "cpus": generator.choice((1, 1, 2, 4)),
            "seed": seed,
            "set": {
                name: generator.choice((value, generator.randint(1, _TUNABLE_VALUE_MAX)))
                for name, value in tunables.items()
            },
            "limit": "2s",
            "expect": [{"order": "solution", "points": 1}],
        }

    def _shrink(self, test: dict[str, Any], policy: CompiledPolicy) -> dict[str, Any]:
        """Removes parts of a test while the policy still differs; returns the rest."""
        index = 0
        while index < len(paths := sorted(_value_paths(test), key=len)):
            smaller = _remove_value(test, paths[index])
            trace = _trace_hash(smaller, self._policy)
            if trace and _trace_hash(smaller, policy) != trace:
                test = smaller
            else:
                index += 1
        return test

    def _describe_difference(self, content: dict[str, Any], policy: CompiledPolicy) -> str:
        """Returns how a policy's run of the test differs from the solution's, in words; "" if it
        does not.
        """
        test = parse_test(content)
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            runs = Path(folder, "mutant.bin"), Path(folder, "solution.bin")
            try:
                for path, compiled in zip(runs, (policy, self._policy), strict=True):
                    wasm_policy.run(test, compiled, path)
            except wasm_policy.PolicyBroken as error:
                return str(error)
            mutant_trace, solution_trace = (GradedRun(path).trace for path in runs)
            first = first_divergence(mutant_trace, solution_trace, timed=True)
        if first is None:
            return "the decisions are the same, but not the levels, annotations, or calls of pick()"
        return first.describe("in the mutant", "in the solution")


@lru_cache(1)
def _solution_reference(folder: Path, trusted: bool) -> _Reference:
    """Returns the reference of a lab, cached in each process."""
    return _Reference(folder, trusted)


def _trace_hash(test: dict[str, Any], policy: CompiledPolicy) -> str:
    """Returns a hash of a run's trace; "" for an invalid test or a failed run."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        path = Path(folder, "trace.bin")
        try:
            wasm_policy.run(parse_test(test), policy, path)
        except (JsonError, wasm_policy.PolicyBroken):
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _value_paths(test: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yields the path of keys to each value."""
    for key, value in test.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _value_paths(value))


def _remove_value(test: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Returns the test without the value at this path."""
    smaller = copy.deepcopy(test)
    inner = smaller
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return smaller
