# SPDX-License-Identifier: MIT
"""Grades a class: many submissions for one lab, each in a separate process, with a page for the teacher."""

import errno
import hashlib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

import jinja2

from schedlab import __version__
from schedlab.base.display.names import json_text, map_texts, visible_line
from schedlab.base.files import replacement
from schedlab.base.files.atomic import atomic_write, file_hash
from schedlab.base.host.isolated import call_command, request_text
from schedlab.base.toolchain import versions
from schedlab.courses.grading.grading import LINK_REFUSED, check_output_folders, grader
from schedlab.courses.grading.lab import Lab, find_lab
from schedlab.courses.grading.verdict import picture_name
from schedlab.errors import NotGraded, WrongUsage, format_parameter

PAGE_FILE = "class.html"
_TEMPLATE = Path(__file__).with_name("class.html")
UNPRINTABLE_NAME = "its name has characters that cannot be printed"
NO_POINTS_TEXT = "–"
"""Shown instead of points if a submission was not graded."""
_HUNG_AFTER_SECONDS = 1800
"""Host seconds after which a grading process is considered hung."""


@dataclass(frozen=True)
class GradedSubmission:
    """A submission's verdict as printed by the command, or the reason why there is none."""

    name: str
    verdict: dict[str, Any] | None
    why: str = ""
    """Why there is no verdict, or that the submission does not compile; otherwise ""."""
    is_graded: bool = True
    """False if a fault of the host prevented grading; then it neither gets nor loses points."""

    @property
    def points(self) -> float:
        """Returns the points of the submission; 0 without a verdict."""
        return float(self.verdict["points"]) if self.verdict else 0.0

    def points_of(self, test: str) -> float:
        """Returns the points of one test."""
        tests = self.verdict["tests"] if self.verdict else []
        return next(
            (
                float(test_verdict["points"])
                for test_verdict in tests
                if test_verdict["name"] == test
            ),
            0.0,
        )

    def format_points(self, points: float) -> str:
        """Formats points of this submission."""
        return f"{points:g}" if self.is_graded else NO_POINTS_TEXT

    @property
    def note(self) -> str:
        """A note in addition to the points."""
        if self.verdict is None:
            return self.why
        return "does not compile" if self.verdict["refused"] else ""


@dataclass(frozen=True)
class ClassLoss:
    """Points that a class lost at one expectation of a test."""

    test: str
    expected: str
    submissions: int
    points: float
    """Total points lost."""
    example: str
    """A submission that lost points."""
    why: str
    picture: str
    """The example's picture, as in SubmissionLoss."""


@dataclass(frozen=True)
class SubmissionLoss:
    """Points that a submission lost at one expectation."""

    name: str
    """Name of the submission."""
    test: str
    expected: str
    points: float
    why: str
    picture: str
    """Picture's address relative to the page; empty if there is none."""


def submissions_in(folder: Path) -> list[Path]:
    """Returns all C files in a folder and its subfolders; links, too, so that each gets a row.

    Raises WrongUsage if there are none.
    """
    files = sorted(file for file in folder.rglob("*.c") if file.is_file() or file.is_symlink())
    if not files:
        raise WrongUsage(
            f"{folder}: contains no C file; name the folder of the submissions, one C file each"
        )
    return files


def grade_all(
    lab: Lab,
    folder: Path,
    out: Path,
    trusted: bool,
    jobs: int,
    report: Callable[[GradedSubmission], None],
) -> list[GradedSubmission]:
    """Grades all submissions of a folder, `jobs` at a time, and stores the verdicts in `out`.

    If grading a submission fails, the others continue. Stored verdicts of the same submission, lab
    and schedlab are reused, so that an interrupted grading can resume. Raises WrongUsage before
    grading if other files occupy the verdicts' paths. `out` must not be inside of the submissions'
    folder, because submissions could contain forged verdicts.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise WrongUsage(
            "this folder is inside the folder of submissions, where a submission "
            "could replace its own verdict",
            what=format_parameter("out", out),
            fix="name a folder elsewhere",
        )
    sources = submissions_in(folder)
    for source in sources:
        verdict_file = _verdict_file(out, folder, source)
        if os.path.lexists(verdict_file):
            replacement.check_file("out", verdict_file, has_default_name=True)
    out.mkdir(parents=True, exist_ok=True)
    verdict_key = _verdict_key(lab, trusted)
    list_lock = Lock()  # the folder's list is rewritten for each verdict

    def verdict_of(source: Path, name: str) -> GradedSubmission:
        """Grades a submission in a separate process, or returns its stored verdict."""
        if why := _refusal_reason(source, name):
            return GradedSubmission(visible_line(name), None, why)
        verdict_file = _verdict_file(out, folder, source)
        runs_folder = verdict_file.with_suffix("")
        key = hashlib.sha256(f"{verdict_key} {file_hash(source)}".encode()).hexdigest()
        with list_lock:
            graded = _read_verdict(verdict_file, key, name)
        if graded is None:
            _delete_runs(lab, runs_folder)
            graded = _grade_submission(lab, source, name, runs_folder, trusted)
            with list_lock:
                _store_verdict(verdict_file, key, graded)
        return graded

    def grade_source(source: Path) -> GradedSubmission:
        name = str(source.relative_to(folder))
        try:
            graded = verdict_of(source, name)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            graded = GradedSubmission(
                name,
                None,
                f"it cannot be graded: {error.strerror}; shorten the names of its folders",
            )
        report(graded)
        return graded

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(grade_source, sources))


def _refusal_reason(source: Path, name: str) -> str:
    """Returns why a submission is not opened; "" if it is."""
    if source.is_symlink():
        return LINK_REFUSED
    return UNPRINTABLE_NAME if visible_line(name) != name else ""


def _verdict_file(out: Path, folder: Path, source: Path) -> Path:
    return (out / source.relative_to(folder)).with_suffix(".json")


def _verdict_key(lab: Lab, trusted: bool) -> str:
    """Returns everything that a verdict depends on, except the submission."""
    files = sorted(file for file in lab.folder.iterdir() if file.is_file())
    hashes = {file.name: file_hash(file) for file in files}
    return json.dumps([__version__, versions.commit_facts(), hashes, trusted])


def _read_verdict(path: Path, key: str, name: str) -> GradedSubmission | None:
    """Returns the stored verdict if it has the same key and is unchanged."""
    listed_hashes = replacement.read_list(path.parent) or {}
    if not path.is_file() or listed_hashes.get(path.name) != file_hash(path):
        return None
    verdict = json.loads(path.read_text("utf-8"))
    return GradedSubmission(name, verdict["verdict"]) if verdict["key"] == key else None


def _store_verdict(path: Path, key: str, graded: GradedSubmission) -> None:
    if graded.verdict is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    replacement.check_file("out", path, has_default_name=True)
    with atomic_write(path) as new_file:
        new_file.write_text(json_text({"key": key, "verdict": graded.verdict}), "utf-8")
    replacement.add_to_list(path)


def _delete_runs(lab: Lab, path: Path) -> None:
    """Deletes the runs of earlier gradings if they are unchanged."""
    for test in lab.tests:
        folder = path / test.name
        if folder.is_dir() and not replacement.why_not_replaceable(folder):
            replacement.remove(folder)


def grade_one(lab: str, source: str, out: str, trusted: bool) -> dict[str, Any]:
    """Grades a submission for a lab whose solution passed on this host; returns its verdict."""
    selected_lab = find_lab(lab)
    check_output_folders(selected_lab, Path(out))
    with grader(selected_lab, trusted, solution_checked=True) as lab_grader:
        return lab_grader.grade(Path(source), Path(out)).to_dict()


def _grade_submission(
    lab: Lab, source: Path, name: str, out: Path, trusted: bool
) -> GradedSubmission:
    """Grades one submission in a separate process. A fault of the host is noted in the result."""
    try:
        result = subprocess.run(
            call_command(grade_one),
            input=request_text(lab=lab.folder, source=source, out=out, trusted=trusted),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_HUNG_AFTER_SECONDS,
            check=False,
        )
        return GradedSubmission(name, json.loads(result.stdout))
    except subprocess.TimeoutExpired:
        return GradedSubmission(
            name,
            None,
            f"its grading did not end within {_HUNG_AFTER_SECONDS} s; {_RETRY_HINT}",
            False,
        )
    except json.JSONDecodeError:
        last_line = result.stderr.strip().splitlines()[-1:] or ["no output"]
        if result.returncode == NotGraded.exit_status:
            return GradedSubmission(name, None, last_line[0].removeprefix("schedlab: "), False)
        why = f"its grading failed (status {result.returncode}): {last_line[0]}; {_RETRY_HINT}"
        return GradedSubmission(name, None, why, False)


_RETRY_HINT = "grade it alone with `./schedlab grade LAB FILE` and report the message"


def class_losses(losses: list[SubmissionLoss]) -> list[ClassLoss]:
    """Returns where points were lost, the largest loss first."""
    by_place: dict[tuple[str, str], list[SubmissionLoss]] = {}
    for expectation in losses:
        by_place.setdefault((expectation.test, expectation.expected), []).append(expectation)
    class_losses = [
        ClassLoss(
            test,
            expected,
            len(those),
            round(sum(expectation.points for expectation in those), 2),
            usual.name,
            usual.why,
            usual.picture,
        )
        for (test, expected), those in by_place.items()
        for usual in [_most_frequent_loss(those)]
    ]
    return sorted(
        class_losses,
        key=lambda class_losses: (-class_losses.points, class_losses.test, class_losses.expected),
    )


def _submission_losses(graded: GradedSubmission, out: Path) -> Iterator[SubmissionLoss]:
    """Yields the points that a submission lost, by expectation."""
    if graded.verdict is None or graded.verdict["refused"]:
        return
    for test in graded.verdict["tests"]:
        for number, expectation in enumerate(test["expectations"]):
            if expectation["points"] < expectation["most"]:
                path = Path(graded.name.removesuffix(".c"), test["name"], picture_name(number))
                yield SubmissionLoss(
                    graded.name,
                    test["name"],
                    expectation["expected"],
                    expectation["most"] - expectation["points"],
                    expectation["why"],
                    quote(str(path)) if (out / path).is_file() else "",
                )


def _most_frequent_loss(losses: list[SubmissionLoss]) -> SubmissionLoss:
    """Returns the first loss with the most frequent reason."""
    why = Counter(expectation.why for expectation in losses).most_common(1)[0][0]
    return next(expectation for expectation in losses if expectation.why == why)


def class_page(lab: Lab, graded: list[GradedSubmission], out: Path) -> str:
    """Returns the teacher's page as HTML without dependencies, except pictures in `out`."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    lost = {submission.name: list(_submission_losses(submission, out)) for submission in graded}
    rows = [
        {
            "name": submission.name,
            "points": submission.format_points(submission.points),
            "tests": [
                {
                    "shown": submission.format_points(points),
                    "lost": submission.is_graded and points < test.points,
                }
                for test in lab.tests
                for points in [submission.points_of(test.name)]
            ],
            "note": submission.note,
            "lost": lost[submission.name],
            "refused": submission.verdict["refused"] if submission.verdict else "",
        }
        for submission in graded
    ]
    template_values = {
        "title": lab.title,
        "most": float(lab.points),
        "tests": [{"name": test.name, "most": float(test.points)} for test in lab.tests],
        "mean": sum(submission.points for submission in graded)
        / max(1, sum(submission.is_graded for submission in graded)),
        "all": sum(submission.points == lab.points for submission in graded),
        "rows": rows,
        "failings": class_losses([expectation for those in lost.values() for expectation in those]),
    }
    return environment.from_string(_TEMPLATE.read_text()).render(map_texts(template_values))
