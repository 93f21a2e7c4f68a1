# SPDX-License-Identifier: MIT
"""One submission against a lab: compiled, tried in each test, judged; and what is kept of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from schedlab.base.display.names import slug
from schedlab.base.files.placing import check_folder
from schedlab.base.files.whole import file_hash
from schedlab.courses.grading import kernel
from schedlab.courses.grading.drawing import timeline
from schedlab.courses.grading.judging import Judged, judge, judge_instructions
from schedlab.courses.grading.lab import Expectation, Lab, LabTest
from schedlab.courses.grading.seen import Seen, keep_run
from schedlab.courses.grading.verdict import Scored, TestVerdict, Verdict, picture_of
from schedlab.courses.submissions import apart
from schedlab.courses.submissions.compiling import Compiled, NotCompiled, compile_policy
from schedlab.courses.submissions.sandbox import need_sandbox
from schedlab.errors import FileRefused, MachineUnfit, NotGraded, WrongUsage
from schedlab.machines.folder import TRACE_FILE

LINK = "it is a symbolic link, which is not followed: it could lead to the solution, or to another's submission"


@dataclass(frozen=True)
class Grader:
    """A lab that is ready to grade: the runs of its solution are there."""

    lab: Lab
    trusted: bool
    _references: Path
    _instructions: Mapping[str, int]
    """Of the solution, by test."""

    def right(self, test: LabTest) -> Seen:
        """The solution's run of a test."""
        return Seen(self._references / f"{test.name}.bin")

    def grade(
        self, source: Path, keep: Path | None = None, told: Callable[[str], None] | None = None
    ) -> Verdict:
        """`keep`: a folder for the runs of tests that lost points. `told` hears the name of each test before it is
        tried."""
        if not source.is_file():
            raise WrongUsage(f"{source} is no file: a submission is one C file")
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
                if told:
                    told(test.name)
                tests.append(self.run_test(test, policy, keep))
        return Verdict(
            self.lab.title, self.lab.sha256, source.name, file_hash(source), tuple(tests), refused
        )

    def run_test(self, test: LabTest, policy: Compiled, keep: Path | None = None) -> TestVerdict:
        """`keep`: a folder for the run if it loses points."""
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            path = Path(folder) / TRACE_FILE
            try:
                ran = apart.run(test, policy, path)
            except apart.Broken as error:
                return _nothing(test, str(error))
            seen, right = Seen(path), self.right(test)
            judged = [
                self._judged(test, each, seen, right, policy, ran.instructions)
                for each in test.expectations
            ]
            scored = tuple(map(_scored, test.expectations, judged))
            verdict = TestVerdict(test.name, test.says, test.hidden, scored)
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
    """Raises WrongUsage if folders that a grading makes in `out` are there and may not be replaced."""
    for test in lab.tests:
        check_folder("out", out / test.name)


@contextmanager
def grader(lab: Lab, trusted: bool, kernel_tried: bool = False) -> Iterator[Grader]:
    """Makes a lab ready: runs its solution in each test, which must get all points of the kernel's tests.
    `kernel_tried`: it got them on this host before. Raises NotGraded, also out of the body, for a fault of the host,
    and FileRefused if the lab's own solution fails."""
    try:
        if not trusted:
            need_sandbox()
        apart.need_library()
        on_kernel = [
            (test, expected)
            for test in lab.tests
            for expected in test.expectations
            if expected.kind == "kernel"
        ]
        if on_kernel:
            kernel.need_kernel()
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            references = Path(folder)
            try:
                solution = compile_policy(lab.form, lab.solution, trusted)
                instructions = {
                    test.name: apart.run(
                        test, solution, references / f"{test.name}.bin"
                    ).instructions
                    for test in lab.tests
                }
            except (NotCompiled, apart.Broken) as error:
                raise FileRefused(
                    f"{lab.solution}: the lab's own solution fails: {error}"
                ) from None
            for test, expected in on_kernel if not kernel_tried else ():
                judged = kernel.judge(test, expected, solution, trusted)
                if judged.points < expected.points:
                    raise FileRefused(
                        f"{lab.solution}: the lab's own solution fails in {test.name}: {judged.why}"
                    )
            yield Grader(lab, trusted, references, instructions)
    except MachineUnfit as error:
        raise NotGraded(f"not graded: {error}") from None


def _scored(expected: Expectation, judged: Judged) -> Scored:
    return Scored(
        expected.title, judged.points, expected.points, judged.why, judged.picture, judged.at_ns
    )


def _pictures(test: LabTest, verdict: TestVerdict, seen: Seen, right: Seen) -> dict[str, str]:
    """Of each point that is lost at a moment, by the name of its file."""
    return {
        picture_of(number): timeline(seen, right, each.at_ns, test.tick_ns)
        for number, each in enumerate(verdict.scored)
        if each.points < each.most and each.at_ns is not None
    }


def _nothing(test: LabTest, why: str) -> TestVerdict:
    scored = tuple(Scored(each.title, Fraction(0), each.points, why) for each in test.expectations)
    return TestVerdict(test.name, test.says, test.hidden, scored, why)
