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
from schedlab.courses.grading.graded_run import Seen
from schedlab.courses.grading.grading import Grader, grader
from schedlab.courses.grading.lab import SOLUTION, Lab, LabTest, made_test, read
from schedlab.courses.grading.mutants import Mutant, mutants_of
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import Compiled, NotCompiled, compile_policy
from schedlab.errors import FileRefused
from schedlab.trace.divergence import first_divergence
from schedlab.workload.random_workloads import exact_workload

WORKLOADS = 1000
"""Number of random workloads; an equivalent mutant has the solution's traces in all of them."""
EQUIVALENT_MAX = 0.1
"""Maximum fraction of equivalent mutants."""
_ENCODING = "latin-1"
"""Preserves all bytes of a source."""
_TASKS_MAX = 4
_TUNABLE_MAX = 12
"""Tunables are also drawn from 1 to this value."""
_CUSTOM = 0
"""Kind of WebAssembly sections with names and lines instead of code."""


@dataclass(frozen=True)
class Outcome:
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
        if self.killed_by:
            return "killed"
        return "survived" if self.difference else "equivalent"

    @property
    def words(self) -> str:
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
class LabTrial:
    """The results of testing a lab."""

    lab: Lab
    mutants: tuple[Outcome, ...]
    mistakes: tuple[Outcome, ...]
    """The lab's common mistakes; `after` is the mistake's name."""

    def count(self, status: str) -> int:
        """Returns the number of mutants with a status."""
        return sum(outcome.status == status for outcome in self.mutants)

    @property
    def unkilled(self) -> list[Outcome]:
        """Mutants and mistakes that lose no points."""
        outcomes = (*self.mutants, *self.mistakes)
        return [outcome for outcome in outcomes if not outcome.killed_by]

    @property
    def passed(self) -> bool:
        """True if all mistakes and all mutants lose points, except a few equivalent mutants."""
        equivalent = self.count("equivalent")
        few = equivalent <= EQUIVALENT_MAX * len(self.mutants)
        return few and bool(self.mutants) and len(self.unkilled) == equivalent

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


def without_kernel(lab: Lab) -> Lab:
    """Returns the lab without expectations about the kernel, which must decide like the simulator."""

    def simulated(test: LabTest) -> LabTest:
        expectations = (
            expectation for expectation in test.expectations if expectation.kind != "kernel"
        )
        return replace(test, expectations=tuple(expectations))

    return replace(lab, tests=tuple(map(simulated, lab.tests)))


def with_mistake(patch: Path, folder: Path) -> Path:
    """Writes the lab's solution with a common mistake into a folder; returns its path.

    Raises FileRefused.
    """
    source = folder / SOLUTION
    source.write_bytes((patch.parent.parent / SOLUTION).read_bytes())
    # Git would treat a folder in a checkout as a part of it.
    git = ["git", "-C", str(folder), "--git-dir=.", "apply", "--unidiff-zero"]
    command = [*git, str(patch.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FileRefused(f"{patch}: cannot be applied to {SOLUTION}: {done.stderr.strip()}")
    return source


def try_lab(
    lab: Lab,
    trusted: bool,
    jobs: int,
    most: int | None,
    report: Callable[[Outcome, int, int], None],
) -> LabTrial:
    """Grades mutants of the solution, at most `most`, and the lab's mistakes, `jobs` at a time.

    `report` is called with each outcome, the number so far and the total. Raises FileRefused if the
    solution loses points or has unmatched brackets.
    """
    lab = without_kernel(lab)
    try:
        mutants = mutants_of(_read(lab.solution))
    except LookupError:
        why = "its brackets do not match; keep both brackets of a pair in the same branch of #if"
        raise FileRefused(f"{lab.solution}: {why}") from None
    if most:
        mutants = mutants[:: max(-(-len(mutants) // most), 1)]
    work = [*mutants, *_mistakes(lab)]
    outcomes: list[Outcome] = []
    with grader(lab, trusted) as ready, worker_pool(jobs) as pool:
        solution = compile_policy(lab.form, lab.solution, trusted)
        for outcome in pool.map(partial(_outcome, ready), work):
            outcomes.append(outcome)
            report(outcome, len(outcomes), len(work))
    codes = {"", _code_hash(solution)}
    counted: list[Outcome] = []
    for outcome in outcomes[: len(mutants)]:
        if outcome.code not in codes:
            codes.add(outcome.code)
            counted.append(outcome)
    return LabTrial(lab, tuple(counted), tuple(outcomes[len(mutants) :]))


def _read(source: Path) -> str:
    return source.read_text(_ENCODING)


def _mistakes(lab: Lab) -> Iterator[Mutant]:
    for patch in sorted((lab.folder / "wrong").glob("*.patch")):
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            yield Mutant(0, "", patch.stem, _read(with_mistake(patch, Path(folder))))


def _outcome(ready: Grader, mutant: Mutant) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        source = Path(folder) / "mutant.c"
        source.write_text(mutant.source, _ENCODING)
        try:
            policy = compile_policy(ready.lab.form, source, ready.trusted)
        except NotCompiled:
            return Outcome(mutant)
        code = _code_hash(policy)
        if test := _first_lost(ready, policy):
            return Outcome(mutant, code, test)
        reference = _reference(ready.lab.folder, ready.trusted)
        return Outcome(mutant, code, "", *reference.compare(policy))


def _first_lost(ready: Grader, policy: Compiled) -> str:
    """Returns the first test where the policy loses points, or ""."""
    lost = (test.name for test in ready.lab.tests if ready.run_test(test, policy).lost)
    return next(lost, "")


def _code_hash(policy: Compiled) -> str:
    return hashlib.sha256(b"".join(_code(policy.module))).hexdigest()


def _code(module: bytes) -> Iterator[bytes]:
    """Yields the sections of a WebAssembly module that affect its behaviour."""
    place = 8
    while place < len(module):
        end = size = 0
        for shift, byte in enumerate(module[place + 1 : place + 6]):
            size |= (byte & 127) << 7 * shift
            if byte < 128:
                end = place + 2 + shift + size
                break
        if module[place] != _CUSTOM:
            yield module[place:end]
        place = end


class _Reference:
    """The solution and its runs of random workloads."""

    def __init__(self, folder: Path, trusted: bool) -> None:
        self._lab = read(folder)
        self._policy = compile_policy(self._lab.form, self._lab.solution, trusted)
        self._runs: list[tuple[dict[str, Any], str]] = []

    def compare(self, policy: Compiled) -> tuple[str, dict[str, Any] | None]:
        """Returns how a policy differs from the solution, with a small test that shows it; or "" and None."""
        for made, trace in chain(self._runs, self._new_runs()):
            if _trace(made, policy) != trace:
                smallest = self._smallest(made, policy)
                return self._difference(smallest, policy), smallest
        return "", None

    def _new_runs(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yields new random workloads up to WORKLOADS, small ones first.

        Skips workloads that the solution does not complete.
        """
        seed = self._runs[-1][0]["seed"] if self._runs else 0
        while len(self._runs) < WORKLOADS:
            seed += 1
            made = self._draw(seed, 1 + len(self._runs) * _TASKS_MAX // WORKLOADS)
            if trace := _trace(made, self._policy):
                self._runs.append((made, trace))
                yield self._runs[-1]

    def _draw(self, seed: int, tasks: int) -> dict[str, Any]:
        generator = random.Random(f"trial {seed}")
        tunables = {
            name: value for test in self._lab.tests for name, value in test.settings.items()
        }
        return {
            "workload": exact_workload(seed, tasks),
            "cpus": generator.choice((1, 1, 2, 4)),
            "seed": seed,
            "set": {
                name: generator.choice((value, generator.randint(1, _TUNABLE_MAX)))
                for name, value in tunables.items()
            },
            "limit": "2s",
            "expect": [{"order": "solution", "points": 1}],
        }

    def _smallest(self, made: dict[str, Any], policy: Compiled) -> dict[str, Any]:
        """Removes parts of a test while the policy still differs; returns the rest."""
        place = 0
        while place < len(paths := sorted(_paths(made), key=len)):
            smaller = _without(made, paths[place])
            trace = _trace(smaller, self._policy)
            if trace and _trace(smaller, policy) != trace:
                made = smaller
            else:
                place += 1
        return made

    def _difference(self, made: dict[str, Any], policy: Compiled) -> str:
        test = made_test(made)
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            runs = Path(folder, "mutant.bin"), Path(folder, "solution.bin")
            try:
                for path, compiled in zip(runs, (policy, self._policy), strict=True):
                    wasm_policy.run(test, compiled, path)
            except wasm_policy.Broken as error:
                return str(error)
            mutant, right = (Seen(path).trace for path in runs)
            first = first_divergence(mutant, right, timed=True)
        if first is None:
            return "the decisions are the same, but not the levels, annotations, or calls of pick()"
        return first.describe("in the mutant", "in the solution")


@lru_cache(1)
def _reference(folder: Path, trusted: bool) -> _Reference:
    return _Reference(folder, trusted)


def _trace(made: dict[str, Any], policy: Compiled) -> str:
    """Returns a hash of a run's trace; "" for an invalid test or a failed run."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        path = Path(folder, "trace.bin")
        try:
            wasm_policy.run(made_test(made), policy, path)
        except (JsonError, wasm_policy.Broken):
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _paths(made: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yields the path of keys to each value."""
    for key, value in made.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _paths(value))


def _without(made: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    smaller = copy.deepcopy(made)
    inner = smaller
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return smaller
