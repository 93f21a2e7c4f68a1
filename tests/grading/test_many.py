# SPDX-License-Identifier: MIT
"""Tests the grading of a class: each submission has a verdict, even if other submissions fail."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conftest import Command
from hostile_names import NAMES
from schedlab.courses.grading import class_grading
from schedlab.courses.grading.grading import LINK_REFUSED
from schedlab.courses.grading.lab import read
from schedlab.courses.submissions import sandbox
from schedlab.errors import WrongUsage
from submissions import SOLUTION, small_lab, solution_with

pytestmark = pytest.mark.xdist_group("grading")

HOSTILE = " ".join(NAMES)
VERDICT = '{"points": 9, "most": 9, "refused": "", "tests": []}'


def stand_in(
    monkeypatch: pytest.MonkeyPatch, folder: Path, crashing: str = "-", by: str = "KILL"
) -> Path:
    """Replaces the grading process by a script that logs its request, and crashes at one name.

    Returns the log file.
    """
    request_log = folder / "asked"
    script = (
        f"request=$(cat); printf '%s\\n' \"$request\" >> '{request_log}'; case $request in"
        f" */{crashing}\\\"*) kill -{by} $$;; *) echo '{VERDICT}';; esac"
    )
    monkeypatch.setattr(class_grading, "call_command", lambda _: ["sh", "-c", script])
    return request_log


def test_folder_of_submissions_has_rows_and_a_page(schedlab: Command, tmp_path: Path) -> None:
    lab = small_lab(tmp_path / "small")
    folder = tmp_path / "submissions"
    (folder / "ben").mkdir(parents=True)
    (folder / "anna.c").write_text(SOLUTION.read_text())
    (folder / "ben" / "mine.c").write_text(solution_with("ticks >= slice", "ticks > slice"))
    out = tmp_path / "graded"
    trust = ["--trust"] if sandbox.missing_requirement() else []
    result = schedlab("grade", str(lab), str(folder), "--out", str(out), *trust)
    assert result.returncode == 1, result.stderr
    rows = {
        line.split()[0]: line.split()[1] for line in result.stdout.splitlines() if ".c " in line
    }
    assert rows == {"anna.c": "9", "ben/mine.c": "2"}
    page = (out / "class.html").read_text()
    assert "2 submissions; 5.50 of 9 points on the mean; 1 have all" in page
    assert "right is b (4) at 1.000 ms" in page
    assert page.count('src="ben/mine/small/expectation-2.svg"') == 2
    assert (out / "ben" / "mine" / "small" / "trace.bin").is_file()


def test_one_whose_grading_breaks_down_has_no_verdict_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = read(small_lab(tmp_path / "small"))
    folder = tmp_path / "submissions"
    folder.mkdir()
    for name in ("a.c", "b.c"):
        (folder / name).touch()
    stand_in(monkeypatch, tmp_path, "a.c", "SEGV")
    reported_grades: list[class_grading.GradedSubmission] = []
    grades = class_grading.grade_all(lab, folder, tmp_path / "out", True, 2, reported_grades.append)
    assert [(grade.name, grade.points) for grade in grades] == [("a.c", 0), ("b.c", 9)]
    assert "grading failed (status -11)" in grades[0].note
    assert [grade.is_graded for grade in grades] == [False, True]
    assert "9.00 of 9 points on the mean; 1 have all" in class_grading.class_page(
        lab, grades, tmp_path
    )
    assert len(reported_grades) == 2


def test_what_was_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict is kept until the submission or the lab changes; foreign files are not replaced."""
    lab = read(small_lab(tmp_path / "small"))
    folder, out = tmp_path / "submissions", tmp_path / "out"
    (folder / "ben").mkdir(parents=True)
    names = ("a.c", "ben/b.c", "c.c")
    for name in names:
        (folder / name).write_text(name)
    request_log = stand_in(monkeypatch, tmp_path, "c.c", "KILL")

    def started() -> list[str]:
        requests = map(json.loads, request_log.read_text().splitlines())
        return [str(Path(request["source"]).relative_to(folder)) for request in requests]

    def graded() -> list[str]:
        request_log.write_text("")
        grades = class_grading.grade_all(lab, folder, out, True, 1, lambda _: None)
        assert [(grade.name, grade.points) for grade in grades] == list(
            zip(names, (9, 9, 0), strict=True)
        )
        return started()

    assert graded() == [*names]
    assert graded() == ["c.c"]
    (folder / "ben" / "b.c").write_text("another")
    assert graded() == ["ben/b.c", "c.c"]
    (lab.folder / "README.md").write_text("another text")
    assert graded() == [*names]
    (out / "ben" / "b.json").write_text('{"key": "", "verdict": {"points": 100}}')
    with pytest.raises(WrongUsage, match=r"b\.json.*: the file exists and is not replaced"):
        graded()
    assert not started()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (b"two\nlines.c", class_grading.UNPRINTABLE_NAME),
        (b"bytes \xff.c", class_grading.UNPRINTABLE_NAME),
        (b"n" * 253 + b".c", "File name too long"),
    ],
)
def test_unusable_name_has_no_verdict_and_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes, why: str
) -> None:
    lab = read(small_lab(tmp_path / "small"))
    folder = tmp_path / "submissions"
    folder.mkdir()
    for file_name in (name, b"z.c"):
        (folder / os.fsdecode(file_name)).touch()
    stand_in(monkeypatch, tmp_path)
    bad, good = class_grading.grade_all(lab, folder, tmp_path / "out", True, 1, lambda _: None)
    assert (bad.verdict, good.points) == (None, 9)
    assert why in bad.note
    assert bad.name.isprintable()
    class_grading.class_page(lab, [bad, good], tmp_path / "out").encode()


def test_no_submission_brings_a_verdict_along(tmp_path: Path) -> None:
    """Neither a forged verdict file nor a link to a verdict with all points is accepted."""
    lab = read(small_lab(tmp_path / "small"))
    folder = tmp_path / "submissions"
    folder.mkdir()
    (folder / "a.c").symlink_to(lab.solution)
    (folder / "b.c").symlink_to("nowhere")
    grades = class_grading.grade_all(lab, folder, tmp_path / "out", True, 1, lambda _: None)
    assert [(grade.name, grade.points, grade.note) for grade in grades] == [
        ("a.c", 0, LINK_REFUSED),
        ("b.c", 0, LINK_REFUSED),
    ]
    for out in (folder, folder / "ben" / "graded"):
        with pytest.raises(WrongUsage, match="where a submission could replace its own verdict"):
            class_grading.grade_all(lab, folder, out, True, 1, lambda _: None)


def test_names_and_words_that_attack_are_texts_on_the_page(tmp_path: Path) -> None:
    lab = read(small_lab(tmp_path / "small"))
    test = {
        "name": "small",
        "points": 0,
        "expectations": [{"expected": "order", "points": 0, "most": 8, "why": HOSTILE}],
    }
    verdict = {"points": 0, "most": 9, "refused": "", "tests": [test]}
    page = class_grading.class_page(
        lab, [class_grading.GradedSubmission(HOSTILE, verdict)], tmp_path
    )
    assert "<script" not in page
    assert "\x1b" not in page
