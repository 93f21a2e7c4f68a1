# SPDX-License-Identifier: MIT
"""Grades one submission: compiles it, runs it in each test, judges the runs and stores evidence."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from schedlab import trace
from schedlab.base.display.names import slug
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.replacement import check_folder
from schedlab.base.toolchain.build import BUILT_FILES, DISK_IMAGE, build
from schedlab.base.toolchain.diagnosis import KERNEL_FLAGS
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import require_compiler
from schedlab.courses.grading.graded_run import GradedRun, store_run
from schedlab.courses.grading.judging import Judgement, judge_expectation, judge_instructions
from schedlab.courses.grading.lab import Expectation, Lab, LabTest
from schedlab.courses.grading.moment_pictures import draw_timeline
from schedlab.courses.grading.verdict import ScoredExpectation, TestVerdict, Verdict, picture_name
from schedlab.courses.reasons import REASONS
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import (
    CompiledPolicy,
    CompileError,
    clang_command,
    compile_policy,
)
from schedlab.courses.submissions.sandbox import (
    OUT_PATH,
    WORK_PATH,
    Sandbox,
    SandboxResult,
    need_sandbox,
)
from schedlab.courses.submissions.trial import UNWRAPPED_TIME_NS
from schedlab.errors import FileRefused, MachineUnfit, NotGraded, WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import Boot
from schedlab.machines.outcome import interpret_exit
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import Spike
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab.trace.divergence import first_divergence
from schedlab.trace.errors import TraceError
from schedlab.workload.loading import make_disk

LINK_REFUSED = "it is a symbolic link, which is not followed: it could lead to the solution, or to another's submission"


@dataclass(frozen=True)
class Grader:
    """A lab that is ready to grade: its solution was run in each test."""

    lab: Lab
    trusted: bool
    _references: Path
    _instructions: Mapping[str, int]
    """Instructions of the solution by test."""

    def solution_run(self, test: LabTest) -> GradedRun:
        """Returns the solution's run of a test."""
        return GradedRun(self._references / f"{test.name}.bin")

    def grade(
        self,
        source: Path,
        runs_folder: Path | None = None,
        report: Callable[[str], None] | None = None,
    ) -> Verdict:
        """Grades a submission. Raises WrongUsage if `source` is not a regular file.

        `runs_folder` is a folder for the runs of tests that lost points. `report` is called with each
        test's name before it runs.
        """
        if not source.is_file():
            raise WrongUsage(f"{source}: missing, or not a file; name the submission's C file")
        if source.is_symlink():
            raise WrongUsage(f"{source}: {LINK_REFUSED}")
        tests: list[TestVerdict] = []
        refused = ""
        try:
            policy = compile_policy(self.lab.form, source, self.trusted)
        except CompileError as error:
            refused = str(error)
            tests = [_zero_verdict(test, REASONS["not_compiled"]) for test in self.lab.tests]
        else:
            for test in self.lab.tests:
                if report:
                    report(test.name)
                tests.append(self.run_test(test, policy, runs_folder))
        return Verdict(
            self.lab.title, self.lab.sha256, source.name, file_hash(source), tuple(tests), refused
        )

    def run_test(
        self, test: LabTest, policy: CompiledPolicy, runs_folder: Path | None = None
    ) -> TestVerdict:
        """Runs and judges a test; `runs_folder` is a folder for the run if it loses points.

        A policy that uses the total run time of tasks loses no points because of large initial run
        times.
        """
        verdict = self._run(test, policy, runs_folder)
        if not (verdict.lost_points and test.policy_run_time_ns):
            return verdict
        with_zero_run_times = _with_initial_times(test, test.policy_clock_ns)
        if self._run(with_zero_run_times, policy).points <= verdict.points:
            return verdict
        if not _depends_on_run_time(test, policy):
            return verdict
        if runs_folder:
            shutil.rmtree(runs_folder / test.name)
        return self._run(with_zero_run_times, policy, runs_folder)

    def _run(
        self, test: LabTest, policy: CompiledPolicy, runs_folder: Path | None = None
    ) -> TestVerdict:
        """Runs and judges a test with its usual clock and run times."""
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            path = Path(folder) / TRACE_FILE
            try:
                result = wasm_policy.run(test, policy, path)
            except wasm_policy.PolicyBroken as error:
                return _zero_verdict(test, str(error))
            submission_run, solution_run = GradedRun(path), self.solution_run(test)
            judgements = [
                self._judge(
                    test, expectation, submission_run, solution_run, policy, result.instructions
                )
                for expectation in test.expectations
            ]
            scored = tuple(map(_scored_expectation, test.expectations, judgements))
            verdict = TestVerdict(test.name, test.title, test.hidden, scored)
            if runs_folder and verdict.lost_points:
                lab, run_folder = self.lab, runs_folder / test.name
                pictures = _draw_pictures(test, verdict, submission_run, solution_run)
                form = lab.form
                store_run(
                    test,
                    form.policy,
                    submission_run,
                    run_folder,
                    slug(lab.title),
                    lab.sha256,
                    pictures,
                )
            return verdict

    def _judge(
        self,
        test: LabTest,
        expected: Expectation,
        submission_run: GradedRun,
        solution_run: GradedRun,
        policy: CompiledPolicy,
        executed: int,
    ) -> Judgement:
        """Judges one expectation. `executed`: the WebAssembly instructions of the run."""
        if expected.kind == "kernel":
            return judge_on_kernel(test, expected, policy, self.trusted)
        if expected.kind == "instructions":
            return judge_instructions(expected, executed, self._instructions[test.name])
        return judge_expectation(test, expected, submission_run, solution_run)


def check_output_folders(lab: Lab, out: Path) -> None:
    """Raises WrongUsage if `out` has folders of the tests that may not be replaced."""
    for test in lab.tests:
        check_folder("out", out / test.name)


@contextmanager
def grader(lab: Lab, trusted: bool, solution_checked: bool = False) -> Iterator[Grader]:
    """Prepares a lab: runs its solution in each test, which must get all points.

    `solution_checked` skips this check if it passed on this host before. Raises NotGraded for faults
    of the host, also from the body, and FileRefused if the solution fails.
    """
    try:
        if not trusted:
            need_sandbox()
        wasm_policy.need_library()
        if any(
            expectation.kind == "kernel" for test in lab.tests for expectation in test.expectations
        ):
            need_kernel()
        with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
            references = Path(folder)
            failure = "the lab's own solution fails"
            lab_solution = {"what": str(lab.solution), "fix": "correct it, or the test"}
            try:
                solution = compile_policy(lab.form, lab.solution, trusted)
                tests = tuple(_with_large_clocks(test, solution) for test in lab.tests)
                instructions = {
                    test.name: wasm_policy.run(
                        test, solution, references / f"{test.name}.bin"
                    ).instructions
                    for test in tests
                }
            except (CompileError, wasm_policy.PolicyBroken) as error:
                raise FileRefused(f"{failure}: {error}", **lab_solution) from None
            lab_grader = Grader(replace(lab, tests=tests), trusted, references, instructions)
            for test in () if solution_checked else tests:
                for scored in lab_grader.run_test(test, solution).expectations:
                    if scored.points < scored.max_points:
                        raise FileRefused(f"{failure} in {test.name}: {scored.why}", **lab_solution)
            yield lab_grader
    except MachineUnfit as error:
        raise NotGraded(f"not graded: {error}") from None


def _with_initial_times(test: LabTest, clock_ns: int = 0, run_time_ns: int = 0) -> LabTest:
    return replace(test, policy_clock_ns=clock_ns, policy_run_time_ns=run_time_ns)


def _with_large_clocks(test: LabTest, solution: CompiledPolicy) -> LabTest:
    """Returns the test with initial clock and run times that the solution handles like 0.

    Raises PolicyBroken if its decisions differ only where numbers wrap.
    """
    decisions_from_zero = _decisions(_with_initial_times(test), solution)
    if _decisions(test, solution) == decisions_from_zero:
        return test
    first, later = (
        _with_initial_times(test, test.policy_clock_ns),
        _with_initial_times(test, 0, UNWRAPPED_TIME_NS),
    )
    suffix = "run times wrap"
    if _decisions(first, solution) != decisions_from_zero:
        first, later = _with_initial_times(test), _with_initial_times(test, UNWRAPPED_TIME_NS)
        suffix = "clocks wrap"
    if _decisions(later, solution) == decisions_from_zero:
        raise wasm_policy.PolicyBroken(
            f"its decisions differ in {test.name} only where {suffix}; compare "
            "times by the sign of their difference"
        )
    return first


def _depends_on_run_time(test: LabTest, policy: CompiledPolicy) -> bool:
    """Returns whether a policy's decisions depend on total run times even where nothing wraps."""
    later = _with_initial_times(test, 0, UNWRAPPED_TIME_NS)
    return _decisions(later, policy) != _decisions(_with_initial_times(test), policy)


def _decisions(test: LabTest, policy: CompiledPolicy) -> bytes:
    """Returns the trace of a run, or the reason of its failure."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        try:
            return wasm_policy.run(test, policy, Path(folder) / TRACE_FILE).trace.read_bytes()
        except wasm_policy.PolicyBroken as error:
            return str(error).encode()


def _scored_expectation(expected: Expectation, judged: Judgement) -> ScoredExpectation:
    return ScoredExpectation(
        expected.title, judged.points, expected.points, judged.why, judged.picture, judged.at_ns
    )


def _draw_pictures(
    test: LabTest, verdict: TestVerdict, submission_run: GradedRun, solution_run: GradedRun
) -> dict[str, str]:
    """Returns pictures of the lost points that have a moment, by file name."""
    return {
        picture_name(number): draw_timeline(
            submission_run, solution_run, scored.at_ns, test.tick_ns
        )
        for number, scored in enumerate(verdict.expectations)
        if scored.points < scored.max_points and scored.at_ns is not None
    }


def _zero_verdict(test: LabTest, why: str) -> TestVerdict:
    """Returns the verdict of a test that could not be judged. `why`: the reason."""
    scored = tuple(
        ScoredExpectation(expectation.title, Fraction(0), expectation.points, why)
        for expectation in test.expectations
    )
    return TestVerdict(test.name, test.title, test.hidden, scored, why)


KERNEL_OBJECT = BUILD_FOLDER / "apart" / "kernel.o"
MEMORY_MIB = 64
_TRACE_NAME = "trace.bin"
_HEADERS = ("policy.h", "registry.h")


def need_kernel() -> None:
    """Builds the parts of submissions' kernels.

    Raises MachineUnfit without schedlab's Spike driver.
    """
    build(
        *(
            os.path.relpath(path, ROOT)
            for path in (KERNEL_OBJECT, DISK_IMAGE, *BUILT_FILES.values())
        )
    )
    if not Spike().release().turn:
        raise MachineUnfit(
            "the lab has tests on the schedlab kernel, which need schedlab's own "
            "driver of Spike: another Spike would let a submission open files of this"
            " host; unset SCHEDLAB_SPIKE (docs/spike.md)"
        )


def judge_on_kernel(
    test: LabTest, expected: Expectation, policy: CompiledPolicy, trusted: bool
) -> Judgement:
    """Gives all points if the kernel completes the workload with the same decisions as the simulator."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        folder_path = Path(folder)
        simulated = folder_path / "simulated.bin"
        try:
            wasm_policy.run(replace(test, costs="kernel"), policy, simulated)
        except wasm_policy.PolicyBroken as error:
            return Judgement(Fraction(0), f"in the simulator at the kernel's costs: {error}")
        try:
            result, path = _boot(test, policy, trusted, folder_path)
        except CompileError as error:
            return Judgement(Fraction(0), f"no kernel can be made with it:\n{error}")
        return _judge_kernel_run(expected, GradedRun(simulated), result, path)


def _judge_kernel_run(
    expected: Expectation, simulated: GradedRun, result: SandboxResult, path: Path
) -> Judgement:
    """Judges the outcome of the kernel's run against the simulated run."""
    outcome = interpret_exit(result.status, result.output)
    if not outcome.succeeded:
        return Judgement(Fraction(0), f"on the kernel: {outcome.message}")
    try:
        trace_data = trace.read(path)
        trace.validate(trace_data)
        difference = first_divergence(trace_data, simulated.trace)
    except (OSError, TraceError) as error:
        return Judgement(Fraction(0), f"the kernel's trace is none: {error}")
    if difference is None:
        return Judgement(expected.points)
    return Judgement(Fraction(0), difference.describe("on the kernel", "in the simulator"))


def _boot(
    test: LabTest, policy: CompiledPolicy, trusted: bool, folder: Path
) -> tuple[SandboxResult, Path]:
    """Links a kernel with the policy and boots it; returns the outcome and the trace's path.

    Raises CompileError if the linker rejects the policy.
    """
    out = folder / "out"
    out.mkdir()
    disk = make_disk(DISK_IMAGE, test.encoded_workload, BUILT_FILES["mkfs"], folder)
    policy_object = folder / "policy.o"
    policy_object.write_bytes(policy.kernel_object)
    table = folder / "table.c"
    table.write_text(
        subprocess.run(
            ["sh", str(ROOT / "tools" / "make_policy_table.sh"), f"{policy.name}.c"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    files = {
        **{f"policies/{name}": ROOT / "policies" / name for name in _HEADERS},
        "table.c": table,
        "policy.o": policy_object,
        "kernel.o": KERNEL_OBJECT,
        "kernel.ld": ROOT / "kernel" / "boot" / "kernel.ld",
        "disk.img": disk,
    }
    tools = require_compiler()
    programs = (*tools.programs, Spike().release().path)
    sandbox = Sandbox(out, files, trusted, programs, tools.headers)
    link_result = sandbox.run(
        f"{clang_command()} {KERNEL_FLAGS} -std=c17 -O2 -ffreestanding -I{WORK_PATH}"
        f" -c {WORK_PATH}/table.c -o {OUT_PATH}/table.o"
        f" && {shlex.join(tools.linker)} -T {WORK_PATH}/kernel.ld --no-relax -z max-page-size=4096 --fatal-warnings"
        f" {WORK_PATH}/kernel.o {WORK_PATH}/policy.o {OUT_PATH}/table.o -o {OUT_PATH}/kernel.elf"
    )
    if link_result.status:
        raise CompileError(link_result.output)
    return sandbox.run(
        f"exec {shlex.join(_boot_command(_run_spec(policy, test)))}"
    ), out / _TRACE_NAME


def _run_spec(policy: CompiledPolicy, test: LabTest) -> RunSpec:
    """Returns the specification of the kernel's run of a test."""
    return RunSpec(
        workload=test.name,
        policy=PolicyChoice(policy.name, ""),
        settings=tuple(test.settings.items()),
        cpus=test.cpus,
        machine=Spike(),
        seed=test.seed,
        tick_ns=test.tick_ns,
        limit_ns=test.limit_ns,
        memory_mib=MEMORY_MIB,
        file=test.workload,
    )


def _boot_command(run: RunSpec) -> list[str]:
    """Returns the command that boots the kernel in the sandbox."""
    spike = Spike()
    elf, disk = Path(f"{OUT_PATH}/kernel.elf"), Path(f"{WORK_PATH}/disk.img")
    return spike.command(Boot(elf, disk, run.cpus, run.memory_mib, spike.arguments(run)))
