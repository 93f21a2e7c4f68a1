# SPDX-License-Identifier: MIT
"""Grades one submission: compiles it, runs it in each test, judges the runs and stores evidence."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from schedlab.base.display.names import slug
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.replacement import check_folder
from schedlab.courses.grading import kernel
from schedlab.courses.grading.graded_run import Seen, keep_run
from schedlab.courses.grading.judging import Judged, judge, judge_instructions
from schedlab.courses.grading.lab import Expectation, Lab, LabTest
from schedlab.courses.grading.moment_pictures import timeline
from schedlab.courses.grading.verdict import Scored, TestVerdict, Verdict, picture_of
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import Compiled, NotCompiled, compile_policy
from schedlab.courses.submissions.sandbox import need_sandbox
from schedlab.courses.submissions.trial import NO_WRAPS_NS
from schedlab.errors import FileRefused, MachineUnfit, NotGraded, WrongUsage
from schedlab.machines.folder import TRACE_FILE

LINK = "it is a symbolic link, which is not followed: it could lead to the solution, or to another's submission"


@dataclass(frozen=True)
class Grader:
    """A lab that is ready to grade: its solution was run in each test."""

    lab: Lab
    trusted: bool
    _references: Path
    _instructions: Mapping[str, int]
    """Instructions of the solution by test."""

    def right(self, test: LabTest) -> Seen:
        """Returns the solution's run of a test."""
        return Seen(self._references / f"{test.name}.bin")

    def grade(
        self, source: Path, keep: Path | None = None, report: Callable[[str], None] | None = None
    ) -> Verdict:
        """Grades a submission. Raises WrongUsage if `source` is not a regular file.

        `keep` is a folder for the runs of tests that lost points. `report` is called with each
        test's name before it runs.
        """
        if not source.is_file():
            raise WrongUsage(f"{source}: not a file; a submission is one C file")
        if source.is_symlink():
            raise WrongUsage(f"{source}: {LINK}")
        tests: list[TestVerdict] = []
        refused = ""
        try:
            policy = compile_policy(self.lab.form, source, self.trusted)
        except NotCompiled as error:
            refused = str(error)
            tests = [_nothing(test, "it does not compile") for test in self.lab.tests]
        else:
            for test in self.lab.tests:
                if report:
                    report(test.name)
                tests.append(self.run_test(test, policy, keep))
        return Verdict(
            self.lab.title, self.lab.sha256, source.name, file_hash(source), tuple(tests), refused
        )

    def run_test(self, test: LabTest, policy: Compiled, keep: Path | None = None) -> TestVerdict:
        """Runs and judges a test; `keep` is a folder for the run if it loses points.

        A policy that uses the total run time of tasks loses no points because of large initial run
        times.
        """
        verdict = self._run(test, policy, keep)
        if not (verdict.lost and test.policy_run_time_ns):
            return verdict
        young = _beginning(test, test.policy_clock_ns)
        if self._run(young, policy).points <= verdict.points:
            return verdict
        if not _goes_by_run_time(test, policy):
            return verdict
        if keep:
            shutil.rmtree(keep / test.name)
        return self._run(young, policy, keep)

    def _run(self, test: LabTest, policy: Compiled, keep: Path | None = None) -> TestVerdict:
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            path = Path(folder) / TRACE_FILE
            try:
                ran = wasm_policy.run(test, policy, path)
            except wasm_policy.Broken as error:
                return _nothing(test, str(error))
            seen, right = Seen(path), self.right(test)
            judged = [
                self._judged(test, expectation, seen, right, policy, ran.instructions)
                for expectation in test.expectations
            ]
            scored = tuple(map(_scored, test.expectations, judged))
            verdict = TestVerdict(test.name, test.title, test.hidden, scored)
            if keep and verdict.lost:
                lab, place = self.lab, keep / test.name
                pictures = _pictures(test, verdict, seen, right)
                form = lab.form
                keep_run(test, form.policy, seen, place, slug(lab.title), lab.sha256, pictures)
            return verdict

    def _judged(
        self,
        test: LabTest,
        expected: Expectation,
        seen: Seen,
        right: Seen,
        policy: Compiled,
        executed: int,
    ) -> Judged:
        if expected.kind == "kernel":
            return kernel.judge(test, expected, policy, self.trusted)
        if expected.kind == "instructions":
            return judge_instructions(expected, executed, self._instructions[test.name])
        return judge(test, expected, seen, right)


def check_out(lab: Lab, out: Path) -> None:
    """Raises WrongUsage if `out` has folders of the tests that may not be replaced."""
    for test in lab.tests:
        check_folder("out", out / test.name)


@contextmanager
def grader(lab: Lab, trusted: bool, solution_tried: bool = False) -> Iterator[Grader]:
    """Prepares a lab: runs its solution in each test, which must get all points.

    `solution_tried` skips this check if it passed on this host before. Raises NotGraded for faults
    of the host, also from the body, and FileRefused if the solution fails.
    """
    try:
        if not trusted:
            need_sandbox()
        wasm_policy.need_library()
        if any(
            expectation.kind == "kernel" for test in lab.tests for expectation in test.expectations
        ):
            kernel.need_kernel()
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            references = Path(folder)
            fails = f"{lab.solution}: the lab's own solution fails"
            try:
                solution = compile_policy(lab.form, lab.solution, trusted)
                tests = tuple(_with_clocks(test, solution) for test in lab.tests)
                instructions = {
                    test.name: wasm_policy.run(
                        test, solution, references / f"{test.name}.bin"
                    ).instructions
                    for test in tests
                }
            except (NotCompiled, wasm_policy.Broken) as error:
                raise FileRefused(f"{fails}: {error}") from None
            made = Grader(replace(lab, tests=tests), trusted, references, instructions)
            for test in () if solution_tried else tests:
                for scored in made.run_test(test, solution).scored:
                    if scored.points < scored.most:
                        raise FileRefused(f"{fails} in {test.name}: {scored.why}")
            yield made
    except MachineUnfit as error:
        raise NotGraded(f"not graded: {error}") from None


def _beginning(test: LabTest, clock_ns: int = 0, run_time_ns: int = 0) -> LabTest:
    return replace(test, policy_clock_ns=clock_ns, policy_run_time_ns=run_time_ns)


def _with_clocks(test: LabTest, solution: Compiled) -> LabTest:
    """Returns the test with initial clock and run times that the solution handles like 0.

    Raises apart.Broken if its decisions differ only where numbers wrap.
    """
    right = _decisions(_beginning(test), solution)
    if _decisions(test, solution) == right:
        return test
    first, later = _beginning(test, test.policy_clock_ns), _beginning(test, 0, NO_WRAPS_NS)
    suffix = "run times wrap"
    if _decisions(first, solution) != right:
        first, later = _beginning(test), _beginning(test, NO_WRAPS_NS)
        suffix = "clocks wrap"
    if _decisions(later, solution) == right:
        raise wasm_policy.Broken(f"its decisions differ in {test.name} only where {suffix}")
    return first


def _goes_by_run_time(test: LabTest, policy: Compiled) -> bool:
    """Returns whether a policy's decisions depend on total run times even where nothing wraps."""
    later = _beginning(test, 0, NO_WRAPS_NS)
    return _decisions(later, policy) != _decisions(_beginning(test), policy)


def _decisions(test: LabTest, policy: Compiled) -> bytes:
    """Returns the trace of a run, or the reason of its failure."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        try:
            return wasm_policy.run(test, policy, Path(folder) / TRACE_FILE).trace.read_bytes()
        except wasm_policy.Broken as error:
            return str(error).encode()


def _scored(expected: Expectation, judged: Judged) -> Scored:
    return Scored(
        expected.title, judged.points, expected.points, judged.why, judged.picture, judged.at_ns
    )


def _pictures(test: LabTest, verdict: TestVerdict, seen: Seen, right: Seen) -> dict[str, str]:
    """Returns pictures of the lost points that have a moment, by file name."""
    return {
        picture_of(number): timeline(seen, right, scored.at_ns, test.tick_ns)
        for number, scored in enumerate(verdict.scored)
        if scored.points < scored.most and scored.at_ns is not None
    }


def _nothing(test: LabTest, why: str) -> TestVerdict:
    scored = tuple(
        Scored(expectation.title, Fraction(0), expectation.points, why)
        for expectation in test.expectations
    )
    return TestVerdict(test.name, test.title, test.hidden, scored, why)
