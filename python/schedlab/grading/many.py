# SPDX-License-Identifier: MIT
"""A class: many submissions against one lab, each graded by a process of its own; and a page for the teacher."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from schedlab.display.names import all_visible
from schedlab.errors import WrongUsage
from schedlab.grading.lab import Lab
from schedlab.host.interpreter import module_command

PAGE = "class.html"
_TEMPLATE = Path(__file__).with_name("class.html")
_MOST_SECONDS = 1800
"""Of the host: a process that is graded for longer hangs."""


@dataclass(frozen=True)
class Graded:
    """One submission: its verdict as the command prints it, or why there is none."""

    name: str
    verdict: dict[str, Any] | None
    why: str = ""

    @property
    def points(self) -> float:
        return float(self.verdict["points"]) if self.verdict else 0.0

    def points_of(self, test: str) -> float:
        tests = self.verdict["tests"] if self.verdict else []
        return next((float(each["points"]) for each in tests if each["name"] == test), 0.0)

    @property
    def note(self) -> str:
        """What is to be said besides points."""
        if self.verdict is None:
            return self.why
        return "does not compile" if self.verdict["refused"] else ""


@dataclass(frozen=True)
class Failing:
    """Where a class loses points: one expectation of one test."""

    test: str
    expected: str
    lost_by: int
    points: float
    """That were lost, by all together."""
    example: str
    """A submission that lost some."""
    why: str


def submissions_in(folder: Path) -> list[Path]:
    """All C files of a folder, and of folders in it. Raises WrongUsage if there is none."""
    found = sorted(file for file in folder.rglob("*.c") if file.is_file())
    if not found:
        raise WrongUsage(f"{folder} has no C file in it: a submission is one")
    return found


def grade_all(
    lab: Lab, folder: Path, out: Path, trusted: bool, jobs: int, told: Callable[[Graded], None]
) -> list[Graded]:
    """Grades all submissions of a folder, `jobs` at a time, and keeps their verdicts in `out`. One whose grading breaks
    down has none, and the others go on."""
    out.mkdir(parents=True, exist_ok=True)

    def one(source: Path) -> Graded:
        name = str(source.relative_to(folder))
        graded = _graded(lab, source, name, out / name.removesuffix(".c"), trusted)
        told(graded)
        return graded

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, submissions_in(folder)))


def _graded(lab: Lab, source: Path, name: str, out: Path, trusted: bool) -> Graded:
    options = ["--json", "--out", str(out), *(["--trust"] if trusted else [])]
    words = ("grade", str(lab.folder), str(source), *options)
    try:
        done = subprocess.run(
            module_command("schedlab", *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MOST_SECONDS,
            check=False,
        )
        return Graded(name, json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return Graded(name, None, f"its grading did not end within {_MOST_SECONDS} s")
    except json.JSONDecodeError:
        last = done.stderr.strip().splitlines()[-1:] or ["no words"]
        return Graded(name, None, f"its grading broke down (status {done.returncode}): {last[0]}")


def failings(graded: list[Graded]) -> list[Failing]:
    """Where points were lost, the most first."""
    lost: dict[tuple[str, str], list[tuple[float, str, str]]] = {}
    for each in graded:
        for test, expected, points, why in _lost(each):
            lost.setdefault((test, expected), []).append((points, each.name, why))
    found = [
        Failing(
            test, expected, len(rows), round(sum(points for points, _, _ in rows), 2), *_usual(rows)
        )
        for (test, expected), rows in lost.items()
    ]
    return sorted(found, key=lambda each: (-each.points, each.test, each.expected))


def _lost(graded: Graded) -> Iterator[tuple[str, str, float, str]]:
    if graded.verdict is None or graded.verdict["refused"]:
        return
    for test in graded.verdict["tests"]:
        for each in test["expectations"]:
            if each["points"] < each["most"]:
                yield test["name"], each["expected"], each["most"] - each["points"], each["why"]


def _usual(rows: list[tuple[float, str, str]]) -> tuple[str, str]:
    """The most frequent reason, and the first submission that has it."""
    why = Counter(why for _, _, why in rows).most_common(1)[0][0]
    return next(name for _, name, each in rows if each == why), why


def page(lab: Lab, graded: list[Graded]) -> str:
    """The teacher's page, as HTML that needs nothing besides."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    rows = [
        {
            "name": each.name,
            "points": each.points,
            "tests": [each.points_of(test.name) for test in lab.tests],
            "note": each.note,
            "lost": [
                {"test": test, "expected": expected, "why": why}
                for test, expected, _, why in _lost(each)
            ],
            "refused": each.verdict["refused"] if each.verdict else "",
        }
        for each in graded
    ]
    told = {
        "title": lab.title,
        "most": float(lab.points),
        "tests": [{"name": test.name, "most": float(test.points)} for test in lab.tests],
        "mean": sum(each.points for each in graded) / len(graded),
        "all": sum(each.points == lab.points for each in graded),
        "rows": rows,
        "failings": [vars(each) for each in failings(graded)],
    }
    return environment.from_string(_TEMPLATE.read_text()).render(all_visible(told))
