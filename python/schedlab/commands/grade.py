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
from schedlab.base.display.terminal import messages, new_table, print_full_width, print_result, say
from schedlab.base.files.atomic import written
from schedlab.base.host.processor import host_processors
from schedlab.commands.options import (
    EXISTING_PATH,
    PLACE,
    as_object,
    echo_json,
    json_option,
    quiet_option,
)
from schedlab.errors import NotGraded, WrongUsage

if TYPE_CHECKING:
    from schedlab.courses.grading.lab import Lab
    from schedlab.courses.grading.verdict import TestVerdict, Verdict


@dataclass(frozen=True)
class Options:
    """The command's parameters."""

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
    type=PLACE,
    help="Keep runs that lost points in this folder.  [default: a new one in runs/]",
)
@click.option(
    "--gradescope",
    type=PLACE,
    help="Also write the verdict to this file in Gradescope's format: results.json.",
)
@click.option(
    "--classroom",
    type=PLACE,
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
    default=host_processors,
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
@as_object(Options)
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
    from schedlab.courses.grading.verdict import classroom, gradescope

    lab = find_lab(options.lab)
    source = options.submission
    say_protection(options.trust)
    if options.try_lab:
        test_lab(lab, options)
        return
    if options.mutants:
        raise WrongUsage("--mutants: works only with --try-lab; add --try-lab")
    if source is None:
        raise WrongUsage("SUBMISSION: missing; name a C file or a folder, or add --try-lab")
    if source.is_dir():
        grade_class(lab, source, options)
        return
    keep = _place(options, lab)
    with (
        working(f"{source.name}: compiling") as update,
        grader(lab, options.trust) as ready,
    ):

        def show_test(test: str) -> None:
            update(f"{source.name}: {test}")

        verdict = ready.grade(source, keep, show_test)
    if options.gradescope:
        _write(options.gradescope, json_text(gradescope(verdict), indent=2) + "\n")
    if options.classroom:
        _write(options.classroom, classroom(verdict) + "\n")
    if options.as_json:
        echo_json(verdict.to_dict())
    else:
        show(verdict, keep, to_students=options.classroom is not None)
    if verdict.points < verdict.most:
        raise SystemExit(1)


def say_protection(trust: bool) -> None:
    """Reports if this host could not compile the trusted submissions in a sandbox."""
    from schedlab.courses.submissions.sandbox import missing_requirement

    if trust and (why := missing_requirement()):
        say(f"schedlab: --trust: submissions are compiled without a sandbox: {why}")


def test_lab(lab: Lab, options: Options) -> None:
    """Grades mutants of a lab's solution and prints the results.

    Exits with status 1 if a mutant or a usual mistake survives, or if
    too many mutants are equivalent.
    """
    from schedlab.courses.grading.lab_testing import WORKLOADS, Outcome, try_lab

    for option, value in (
        ("SUBMISSION", options.submission),
        ("--out", options.out),
        ("--gradescope", options.gradescope),
        ("--classroom", options.classroom),
    ):
        if value:
            raise WrongUsage(f"{option}: --try-lab grades no submission; leave it out")

    def show_outcome(outcome: Outcome, done: int, of: int) -> None:
        place = f"line {outcome.mutant.line}: " if outcome.mutant.line else ""
        say(f"[{done}/{of}] {place}{outcome.mutant.after}: {outcome.words}")

    tried = try_lab(lab, options.trust, options.jobs, options.mutants, show_outcome)
    if options.as_json:
        echo_json(tried.to_dict())
    else:
        headings = (">mutants", ">killed", ">equivalent", ">survived", ">mistakes", ">without loss")
        table = new_table(lab.title, "lab", *headings)
        counts = [tried.count(status) for status in ("killed", "equivalent", "survived")]
        free = sum(not mistake.killed_by for mistake in tried.mistakes)
        numbers = (len(tried.mutants), *counts, len(tried.mistakes), free)
        table.add_row(lab.folder.name, *map(str, numbers))
        print_full_width(table)
        for mutant in tried.unkilled:
            print_result(
                f"line {mutant.mutant.line}: {mutant.status}"
                if mutant.mutant.line
                else "usual mistake:"
            )
            print_result(_set_in(f"{mutant.mutant.before}\n{mutant.mutant.after}"))
            if mutant.example:
                print_result(
                    _set_in(f"{mutant.difference}, in this test:\n{json_text(mutant.example)}")
                )
        print_result(
            f"Equivalent mutants have the solution's traces on {WORKLOADS:,} random workloads."
        )
    if not tried.passed:
        raise SystemExit(1)


def grade_class(lab: Lab, folder: Path, options: Options) -> None:
    """Grades all submissions of a folder, prints a row for each, and writes the teacher's page.

    Exits with status 1 unless every submission has all points.
    """
    from schedlab.base.files.replacement import add_to_list, check_file
    from schedlab.courses.grading.class_grading import PAGE, Graded, grade_all, page, submissions_in
    from schedlab.courses.grading.grading import grader
    from schedlab.paths import new_runs_folder

    if options.gradescope or options.classroom:
        raise WrongUsage("--gradescope and --classroom: apply to one submission; name a file")
    submissions = submissions_in(folder)
    out = options.out or new_runs_folder("grade")
    if (out / PAGE).exists():
        check_file("out", out / PAGE, ours=True)
    done = 0

    def report_graded(graded: Graded) -> None:
        nonlocal done
        done += 1
        messages().print(f"[{done}/{len(submissions)}] {graded.name}", soft_wrap=True)

    with working(f"grading {len(submissions)} submissions"):
        with grader(lab, options.trust):
            pass  # runs the lab's solution once for all submissions
        results_list = grade_all(lab, folder, out, options.trust, options.jobs, report_graded)
    _write(out / PAGE, page(lab, results_list, out))
    add_to_list(out / PAGE)
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
            tests = [submission.shown(submission.points_of(test.name)) for test in lab.tests]
            table.add_row(
                submission.name, submission.shown(submission.points), *tests, submission.note
            )
        print_full_width(table)
        print_result(f"The teacher's page: {out / PAGE}")
    if not all(graded.is_graded for graded in results_list):
        raise SystemExit(NotGraded.exit_status)
    if any(graded.points < lab.points for graded in results_list):
        raise SystemExit(1)


def _place(options: Options, lab: Lab) -> Path:
    from schedlab.base.files.replacement import check_file
    from schedlab.courses.grading.grading import check_out
    from schedlab.paths import new_runs_folder

    for name, place in (("gradescope", options.gradescope), ("classroom", options.classroom)):
        if place:
            check_file(name, place, ours=True)
    if options.out is None:
        return new_runs_folder("grade")
    check_out(lab, options.out)
    return options.out


def _write(place: Path, text: str) -> None:
    try:
        with written(place) as new:
            new.write_text(text)
    except OSError as error:
        raise WrongUsage(f"{place} cannot be written: {error.strerror}") from None


def show(verdict: Verdict, keep: Path, to_students: bool) -> None:
    """Prints the points and why points are lost.

    `to_students`: without the reasons of hidden tests.
    """
    from schedlab.courses.grading.verdict import shown

    print_result(
        f"{verdict.lab}: {shown(verdict.points)} of {shown(verdict.most)} points for {verdict.submission}"
    )
    if verdict.refused:
        print_result(f"\nIt does not compile:\n{_set_in(verdict.refused)}")
        return
    table = new_table("", "test", ">points", ">of", "topic")
    for test in verdict.tests:
        name = f"{test.name} (hidden)" if test.hidden else test.name
        table.add_row(name, shown(test.points), shown(test.most), test.title)
    print_full_width(table)
    for test in verdict.tests:
        if test.lost and not (test.hidden and to_students):
            show_lost(test, keep / test.name)


def show_lost(test: TestVerdict, folder: Path) -> None:
    """Prints why a test lost points, and how to inspect its run."""
    from schedlab.courses.grading.verdict import picture_of, shown

    print_result(f"{test.name}:")
    if test.broken:
        print_result(_set_in(f"no points: {test.broken}") + "\n")
        return
    for number, part in enumerate(test.scored):
        if part.points < part.most:
            print_result(
                _set_in(f"{shown(part.points)} of {shown(part.most)}: {part.title}\n{part.why}")
            )
            if part.picture:
                print_result("\n" + _set_in(_set_in(part.picture)))
            if (folder / picture_of(number)).is_file():
                print_result("\n" + _set_in(f"Picture: {folder / picture_of(number)}"))
            print_result("")
    if folder.is_dir():
        print_result(_set_in(f"See it: ./schedlab monitor {shlex.quote(str(folder))}") + "\n")


def _set_in(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
