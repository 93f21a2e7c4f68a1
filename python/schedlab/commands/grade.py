# SPDX-License-Identifier: MIT
"""`./schedlab grade`: grades a policy with a lab's tests, and shows
evidence for each lost point.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.activity import working
from schedlab.base.display.names import json_text
from schedlab.base.display.terminal import (
    message_console,
    new_table,
    print_full_width,
    print_result,
    say,
)
from schedlab.base.files.atomic import atomic_write
from schedlab.base.host.processor import count_host_cpus
from schedlab.commands.options import (
    EXISTING_PATH,
    PATH,
    echo_json,
    json_option,
    pass_as_object,
    quiet_option,
)
from schedlab.errors import NotGraded, WrongUsage

if TYPE_CHECKING:
    from schedlab.courses.grading.lab import Lab
    from schedlab.courses.grading.verdict import TestVerdict, Verdict


@dataclass(frozen=True)
class Options:
    """The parameters of `./schedlab grade`."""

    lab: str
    submission: Path | None
    out: Path | None
    gradescope: Path | None
    classroom: Path | None
    trust: bool
    jobs: int
    try_lab: bool
    mutants: int | None
    as_json: bool


@click.command()
@click.argument("lab", metavar="LAB")
@click.argument("submission", required=False, type=EXISTING_PATH)
@click.option(
    "--out",
    type=PATH,
    help="Keep runs that lost points in this folder.  [default: a new one in runs/]",
)
@click.option(
    "--gradescope",
    type=PATH,
    help="Also write the verdict to this file in Gradescope's format: results.json.",
)
@click.option(
    "--classroom",
    type=PATH,
    help="Also write the verdict for the reporter of GitHub Classroom, and print "
    "nothing about hidden tests: students read the log.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Compile submissions without a sandbox. Use this only for code that you "
    "would compile yourself.",
)
@click.option(
    "--jobs",
    default=count_host_cpus,
    show_default="the CPUs of this host",
    type=click.IntRange(1, 1024),
    help="Number of submissions or mutants graded at a time.",
)
@click.option(
    "--try-lab",
    is_flag=True,
    help="Test the lab itself: grade mutants of its solution, and list mutants that lose no points.",
)
@click.option(
    "--mutants",
    type=click.IntRange(1),
    help="With --try-lab: number of mutants to grade, spread over the solution.  [default: all]",
)
@quiet_option
@json_option
@pass_as_object(Options)
def grade(options: Options) -> None:
    """Grade a policy by the tests of a LAB, with evidence for each lost point.

    LAB is a folder, or the name of a shipped lab (labs/). SUBMISSION is one C file, or a folder of many: a page
    for the teacher is then written too. Submissions are compiled in a sandbox (bubblewrap) and run in their own
    WebAssembly machine; the simulator takes only decisions from them. The same submission gets the same verdict
    on every machine and under any load. The exit status is 0 if no point is lost, 1 if some are, and 2 if a
    submission could not be graded, which costs no points. docs/grading.md has details.

    --try-lab takes no SUBMISSION. It makes mutants, copies of the lab's solution with one small mistake each, and
    lists those that lose no points. The exit status is 1 if a mutant decides differently and loses none, if a
    usual mistake (wrong/) loses none, or if more than 10 % of the mutants are equivalent to the solution.
    """
    from schedlab.courses.grading.grading import grader
    from schedlab.courses.grading.lab import find_lab
    from schedlab.courses.grading.verdict import classroom_input, gradescope_results

    lab = find_lab(options.lab)
    source = options.submission
    report_missing_sandbox(options.trust)
    if options.try_lab:
        print_lab_trial(lab, options)
        return
    if options.mutants:
        raise WrongUsage("--mutants: works only with --try-lab; add --try-lab")
    if source is None:
        raise WrongUsage("SUBMISSION: missing; name a C file or a folder, or add --try-lab")
    if source.is_dir():
        grade_class(lab, source, options)
        return
    runs_folder = _output_folder(options, lab)
    with (
        working(f"{source.name}: compiling") as update,
        grader(lab, options.trust) as lab_grader,
    ):

        def show_test(test: str) -> None:
            """Shows the test that runs."""
            update(f"{source.name}: {test}")

        verdict = lab_grader.grade(source, runs_folder, show_test)
    if options.gradescope:
        _write_file(options.gradescope, json_text(gradescope_results(verdict), indent=2) + "\n")
    if options.classroom:
        _write_file(options.classroom, classroom_input(verdict) + "\n")
    if options.as_json:
        echo_json(verdict.to_dict())
    else:
        print_verdict(verdict, runs_folder, to_students=options.classroom is not None)
    if verdict.points < verdict.max_points:
        raise SystemExit(1)


def report_missing_sandbox(trust: bool) -> None:
    """Reports if this host could not compile the trusted submissions in a sandbox."""
    from schedlab.courses.submissions.sandbox import missing_requirement

    if trust and (why := missing_requirement()):
        say(f"schedlab: --trust: submissions are compiled without a sandbox: {why}")


def print_lab_trial(lab: Lab, options: Options) -> None:
    """Grades mutants of a lab's solution and prints the results.

    Exits with status 1 if a mutant or a usual mistake survives, or if
    too many mutants are equivalent.
    """
    from schedlab.courses.grading.lab_testing import RANDOM_WORKLOAD_COUNT, MutantOutcome, try_lab

    for option, value in (
        ("SUBMISSION", options.submission),
        ("--out", options.out),
        ("--gradescope", options.gradescope),
        ("--classroom", options.classroom),
    ):
        if value:
            raise WrongUsage(
                f"{option}: --try-lab grades no submission; leave out {option} or --try-lab"
            )

    def show_outcome(outcome: MutantOutcome, done: int, of: int) -> None:
        """Shows the progress with the result of a mutant."""
        place = f"line {outcome.mutant.line}: " if outcome.mutant.line else ""
        say(f"[{done}/{of}] {place}{outcome.mutant.after}: {outcome.text}")

    trial = try_lab(lab, options.trust, options.jobs, options.mutants, show_outcome)
    if options.as_json:
        echo_json(trial.to_dict())
    else:
        headings = (">mutants", ">killed", ">equivalent", ">survived", ">mistakes", ">without loss")
        table = new_table(lab.title, "lab", *headings)
        counts = [trial.count(status) for status in ("killed", "equivalent", "survived")]
        undetected = sum(not mistake.killed_by for mistake in trial.mistakes)
        numbers = (len(trial.mutants), *counts, len(trial.mistakes), undetected)
        table.add_row(lab.folder.name, *map(str, numbers))
        print_full_width(table)
        for mutant in trial.unkilled:
            print_result(
                f"line {mutant.mutant.line}: {mutant.status}"
                if mutant.mutant.line
                else "usual mistake:"
            )
            print_result(_indent(f"{mutant.mutant.before}\n{mutant.mutant.after}"))
            if mutant.example:
                print_result(
                    _indent(f"{mutant.difference}, in this test:\n{json_text(mutant.example)}")
                )
        print_result(
            f"Equivalent mutants have the solution's traces on {RANDOM_WORKLOAD_COUNT:,} random workloads."
        )
    if not trial.passed:
        raise SystemExit(1)


def grade_class(lab: Lab, folder: Path, options: Options) -> None:
    """Grades all submissions of a folder, prints a row for each, and writes the teacher's page.

    Exits with status 1 unless every submission has all points.
    """
    from schedlab.base.files.replacement import add_to_list, check_file
    from schedlab.courses.grading.class_grading import (
        PAGE_FILE,
        GradedSubmission,
        class_page,
        grade_all,
        submissions_in,
    )
    from schedlab.courses.grading.grading import grader
    from schedlab.paths import new_runs_folder

    if options.gradescope or options.classroom:
        raise WrongUsage("--gradescope and --classroom: apply to one submission; name a file")
    submissions = submissions_in(folder)
    out = options.out or new_runs_folder("grade")
    if (out / PAGE_FILE).exists():
        check_file("out", out / PAGE_FILE, has_default_name=True)
    done = 0

    def print_graded(graded: GradedSubmission) -> None:
        """Prints the row of a graded submission."""
        nonlocal done
        done += 1
        message_console().print(f"[{done}/{len(submissions)}] {graded.name}", soft_wrap=True)

    with working(f"grading {len(submissions)} submissions"):
        with grader(lab, options.trust):
            pass  # runs the lab's solution once for all submissions
        results_list = grade_all(lab, folder, out, options.trust, options.jobs, print_graded)
    _write_file(out / PAGE_FILE, class_page(lab, results_list, out))
    add_to_list(out / PAGE_FILE)
    if options.as_json:
        echo_json(
            [
                {"name": graded.name, "verdict": graded.verdict, "why": graded.why}
                for graded in results_list
            ]
        )
    else:
        headings = [f">{test.name}" for test in lab.tests]
        table = new_table(lab.title, "submission", ">points", *headings, "")
        for submission in results_list:
            tests = [
                submission.format_points(submission.points_of(test.name)) for test in lab.tests
            ]
            table.add_row(
                submission.name,
                submission.format_points(submission.points),
                *tests,
                submission.note,
            )
        print_full_width(table)
        print_result(f"The teacher's page: {out / PAGE_FILE}")
    if not all(graded.is_graded for graded in results_list):
        raise SystemExit(NotGraded.exit_status)
    if any(graded.points < lab.points for graded in results_list):
        raise SystemExit(1)


def _output_folder(options: Options, lab: Lab) -> Path:
    """Returns the folder for the runs of tests that lost points."""
    from schedlab.base.files.replacement import check_file
    from schedlab.courses.grading.grading import check_output_folders
    from schedlab.paths import new_runs_folder

    for name, place in (("gradescope", options.gradescope), ("classroom", options.classroom)):
        if place:
            check_file(name, place, has_default_name=True)
    if options.out is None:
        return new_runs_folder("grade")
    check_output_folders(lab, options.out)
    return options.out


def _write_file(path: Path, text: str) -> None:
    """Writes a text to a file. Raises WrongUsage if that is not possible."""
    try:
        with atomic_write(path) as new:
            new.write_text(text)
    except OSError as error:
        raise WrongUsage(
            f"cannot be written: {error.strerror}", what=str(path), fix="name another file"
        ) from None


def print_verdict(verdict: Verdict, runs_folder: Path, to_students: bool) -> None:
    """Prints the points and why points are lost.

    `to_students`: without the reasons of hidden tests.
    """
    from schedlab.courses.grading.verdict import format_points

    print_result(
        f"{verdict.lab}: {format_points(verdict.points)} of {format_points(verdict.max_points)}"
        f" points for {verdict.submission}"
    )
    if verdict.refused:
        print_result(f"\nIt does not compile:\n{_indent(verdict.refused)}")
        return
    table = new_table("", "test", ">points", ">of", "topic")
    for test in verdict.tests:
        name = f"{test.name} (hidden)" if test.hidden else test.name
        table.add_row(name, format_points(test.points), format_points(test.max_points), test.title)
    print_full_width(table)
    for test in verdict.tests:
        if test.lost_points and not (test.hidden and to_students):
            print_lost_points(test, runs_folder / test.name)


def print_lost_points(test: TestVerdict, folder: Path) -> None:
    """Prints why a test lost points, and how to inspect its run."""
    from schedlab.courses.grading.verdict import format_points, picture_name

    print_result(f"{test.name}:")
    if test.run_failure:
        print_result(_indent(f"no points: {test.run_failure}") + "\n")
        return
    for number, part in enumerate(test.expectations):
        if part.points < part.max_points:
            print_result(
                _indent(
                    f"{format_points(part.points)} of {format_points(part.max_points)}: {part.title}\n{part.why}"
                )
            )
            if part.picture:
                print_result("\n" + _indent(_indent(part.picture)))
            if (folder / picture_name(number)).is_file():
                print_result("\n" + _indent(f"Picture: {folder / picture_name(number)}"))
            print_result("")
    if folder.is_dir():
        print_result(_indent(f"See it: ./schedlab monitor {shlex.quote(str(folder))}") + "\n")


def _indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
