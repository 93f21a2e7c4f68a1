# SPDX-License-Identifier: MIT
"""Grades a class: many submissions for one lab, each in a separate process, with a page for the teacher."""

from __future__ import annotations

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
from schedlab.base.display.names import all_visible, json_text, visible_line
from schedlab.base.files import replacement
from schedlab.base.files.atomic import file_hash, written
from schedlab.base.host.isolated import call_command, request_text
from schedlab.base.toolchain import versions
from schedlab.courses.grading.grading import LINK, check_out, grader
from schedlab.courses.grading.lab import Lab, find_lab
from schedlab.courses.grading.verdict import picture_of
from schedlab.errors import NotGraded, WrongUsage, parameter

PAGE = "class.html"
_TEMPLATE = Path(__file__).with_name("class.html")
UNPRINTABLE = "its name has characters that cannot be printed"
NO_POINTS = "–"
"""Shown instead of points if a submission was not graded."""
_MOST_SECONDS = 1800
"""Host seconds after which a grading process is considered hung."""


@dataclass(frozen=True)
class Graded:
    """A submission's verdict as printed by the command, or the reason why there is none."""

    name: str
    verdict: dict[str, Any] | None
    why: str = ""
    is_graded: bool = True
    """False if a fault of the host prevented grading; then it neither gets nor loses points."""

    @property
    def points(self) -> float:
        return float(self.verdict["points"]) if self.verdict else 0.0

    def points_of(self, test: str) -> float:
        tests = self.verdict["tests"] if self.verdict else []
        return next(
            (float(test_name["points"]) for test_name in tests if test_name["name"] == test), 0.0
        )

    def shown(self, points: float) -> str:
        """Formats points of this submission."""
        return f"{points:g}" if self.is_graded else NO_POINTS

    @property
    def note(self) -> str:
        """A note in addition to the points."""
        if self.verdict is None:
            return self.why
        return "does not compile" if self.verdict["refused"] else ""


@dataclass(frozen=True)
class Failing:
    """Points that a class lost at one expectation of a test."""

    test: str
    expected: str
    lost_by: int
    points: float
    """Total points lost."""
    example: str
    """A submission that lost points."""
    why: str
    picture: str
    """The example's picture, as in Lost."""


@dataclass(frozen=True)
class Lost:
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
        raise WrongUsage(f"{folder}: contains no C file; each submission is one C file")
    return files


def grade_all(
    lab: Lab, folder: Path, out: Path, trusted: bool, jobs: int, report: Callable[[Graded], None]
) -> list[Graded]:
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
            what=parameter("out", out),
            fix="name a folder elsewhere",
        )
    sources = submissions_in(folder)
    for source in sources:
        verdict_file = _verdict_file(out, folder, source)
        if os.path.lexists(verdict_file):
            replacement.check_file("out", verdict_file, ours=True)
    out.mkdir(parents=True, exist_ok=True)
    made_of = _made_of(lab, trusted)
    one_at_a_time = Lock()  # the folder's list is rewritten for each verdict

    def verdict_of(source: Path, name: str) -> Graded:
        if why := _refused(source, name):
            return Graded(visible_line(name), None, why)
        verdict_file = _verdict_file(out, folder, source)
        place = verdict_file.with_suffix("")
        key = hashlib.sha256(f"{made_of} {file_hash(source)}".encode()).hexdigest()
        with one_at_a_time:
            graded = _read_verdict(verdict_file, key, name)
        if graded is None:
            _clear(lab, place)
            graded = _graded(lab, source, name, place, trusted)
            with one_at_a_time:
                _keep(verdict_file, key, graded)
        return graded

    def one(source: Path) -> Graded:
        name = str(source.relative_to(folder))
        try:
            graded = verdict_of(source, name)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            graded = Graded(name, None, f"it cannot be graded: {error.strerror}")
        report(graded)
        return graded

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, sources))


def _refused(source: Path, name: str) -> str:
    """Returns why a submission is not opened; "" if it is."""
    if source.is_symlink():
        return LINK
    return UNPRINTABLE if visible_line(name) != name else ""


def _verdict_file(out: Path, folder: Path, source: Path) -> Path:
    """Returns the path of a submission's verdict."""
    return (out / source.relative_to(folder)).with_suffix(".json")


def _made_of(lab: Lab, trusted: bool) -> str:
    """Returns everything that a verdict depends on, except the submission."""
    files = sorted(file for file in lab.folder.iterdir() if file.is_file())
    hashes = {file.name: file_hash(file) for file in files}
    return json.dumps([__version__, versions.commit(), hashes, trusted])


def _read_verdict(place: Path, key: str, name: str) -> Graded | None:
    """Returns the stored verdict if it has the same key and is unchanged."""
    listed = replacement.read_list(place.parent) or {}
    if not place.is_file() or listed.get(place.name) != file_hash(place):
        return None
    verdict = json.loads(place.read_text("utf-8"))
    return Graded(name, verdict["verdict"]) if verdict["key"] == key else None


def _keep(place: Path, key: str, graded: Graded) -> None:
    if graded.verdict is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    replacement.check_file("out", place, ours=True)
    with written(place) as new:
        new.write_text(json_text({"key": key, "verdict": graded.verdict}), "utf-8")
    replacement.add_to_list(place)


def _clear(lab: Lab, place: Path) -> None:
    """Deletes the runs of earlier gradings if they are unchanged."""
    for test in lab.tests:
        folder = place / test.name
        if folder.is_dir() and not replacement.strange(folder):
            replacement.remove(folder)


def grade_one(lab: str, source: str, out: str, trusted: bool) -> dict[str, Any]:
    """Grades a submission for a lab whose solution passed on this host; returns its verdict."""
    selected_lab = find_lab(lab)
    check_out(selected_lab, Path(out))
    with grader(selected_lab, trusted, solution_tried=True) as ready:
        return ready.grade(Path(source), Path(out)).to_dict()


def _graded(lab: Lab, source: Path, name: str, out: Path, trusted: bool) -> Graded:
    try:
        done = subprocess.run(
            call_command(grade_one),
            input=request_text(lab=lab.folder, source=source, out=out, trusted=trusted),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MOST_SECONDS,
            check=False,
        )
        return Graded(name, json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return Graded(name, None, f"its grading did not end within {_MOST_SECONDS} s", False)
    except json.JSONDecodeError:
        last = done.stderr.strip().splitlines()[-1:] or ["no words"]
        if done.returncode == NotGraded.exit_status:
            return Graded(name, None, last[0].removeprefix("schedlab: "), False)
        why = f"its grading broke down (status {done.returncode}): {last[0]}"
        return Graded(name, None, why, False)


def failings(lost: list[Lost]) -> list[Failing]:
    """Returns where points were lost, the largest loss first."""
    by_place: dict[tuple[str, str], list[Lost]] = {}
    for expectation in lost:
        by_place.setdefault((expectation.test, expectation.expected), []).append(expectation)
    failing = [
        Failing(
            test,
            expected,
            len(those),
            round(sum(expectation.points for expectation in those), 2),
            usual.name,
            usual.why,
            usual.picture,
        )
        for (test, expected), those in by_place.items()
        for usual in [_usual(those)]
    ]
    return sorted(failing, key=lambda failing: (-failing.points, failing.test, failing.expected))


def _lost(graded: Graded, out: Path) -> Iterator[Lost]:
    if graded.verdict is None or graded.verdict["refused"]:
        return
    for test in graded.verdict["tests"]:
        for number, expectation in enumerate(test["expectations"]):
            if expectation["points"] < expectation["most"]:
                place = Path(graded.name.removesuffix(".c"), test["name"], picture_of(number))
                yield Lost(
                    graded.name,
                    test["name"],
                    expectation["expected"],
                    expectation["most"] - expectation["points"],
                    expectation["why"],
                    quote(str(place)) if (out / place).is_file() else "",
                )


def _usual(lost: list[Lost]) -> Lost:
    """Returns the first loss with the most frequent reason."""
    why = Counter(expectation.why for expectation in lost).most_common(1)[0][0]
    return next(expectation for expectation in lost if expectation.why == why)


def page(lab: Lab, graded: list[Graded], out: Path) -> str:
    """Returns the teacher's page as HTML without dependencies, except pictures in `out`."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    lost = {submission.name: list(_lost(submission, out)) for submission in graded}
    rows = [
        {
            "name": submission.name,
            "points": submission.shown(submission.points),
            "tests": [
                {
                    "shown": submission.shown(points),
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
    values = {
        "title": lab.title,
        "most": float(lab.points),
        "tests": [{"name": test.name, "most": float(test.points)} for test in lab.tests],
        "mean": sum(submission.points for submission in graded)
        / max(1, sum(submission.is_graded for submission in graded)),
        "all": sum(submission.points == lab.points for submission in graded),
        "rows": rows,
        "failings": failings([expectation for those in lost.values() for expectation in those]),
    }
    return environment.from_string(_TEMPLATE.read_text()).render(all_visible(values))
