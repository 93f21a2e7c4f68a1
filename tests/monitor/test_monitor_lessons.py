# SPDX-License-Identifier: MIT
"""Tests lessons: their files are valid, and each finished lesson is played through in a real
browser. The machine decides whether the file's answers are correct.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from page_waits import PATIENCE_S
from schedlab.base.toolchain.build import wasm_module
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.errors import WrongUsage
from schedlab.monitor.lesson import LESSONS_FOLDER, built_in_lessons, read_lesson
from schedlab.monitor.standalone.build import page_of
from schedlab.paths import ROOT
from schedlab.workload.palette import read_palette

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

PLAYED = ("lottery", "mlfq", "inversion")
"""Lessons that every run of the tests plays; the others are played with --long."""
STEP: dict[str, Any] = {"text": "Look."}
LESSON: dict[str, Any] = {"title": "A lesson", "policies": "rr", "steps": [STEP]}
QUESTION = {"question": "Which is next?", "options": ["a", "b"], "answer": "a", "because": "It is."}


def written(tmp_path: Path, lesson: Any) -> str:
    file = tmp_path / "lesson.json"
    file.write_text(json.dumps(lesson))
    return str(file)


def test_a_lesson_of_a_file(tmp_path: Path) -> None:
    lesson_data = LESSON | {"tick": "1ms", "settings": {"slice": 3}, "workloads": ["hog"]}
    lesson = read_lesson(written(tmp_path, lesson_data))
    assert [str(policy) for policy in lesson.policies] == ["rr"]
    assert (lesson.cpus, lesson.tick_ns, lesson.seed) == (1, 1_000_000, 1)
    assert (lesson.settings, lesson.workloads, lesson.json_object) == (
        (("slice", 3),),
        ("hog",),
        lesson_data,
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"titel": "x"}, "titel: unknown: expected one of title"),
        ({"steps": []}, "at least one step"),
        ({"steps": [{}]}, "`text` in it"),
        ({"steps": [STEP | {"until": {"event": "miracle"}}]}, "an event of demotion, boost"),
        ({"steps": [STEP | {"until": {"time": "3 apples"}}]}, "write a number and its unit"),
        ({"steps": [STEP | {"act": {"pace": "fast"}}]}, 'pace: "fast": expected a number'),
        ({"steps": [STEP | {"ask": QUESTION | {"answer": "c"}}]}, "one of the options"),
        ({"steps": [STEP | {"ask": QUESTION | {"options": 2}}]}, "an array of names"),
        ({"pace": 0}, "pace: 0: expected a number"),
        ({"workloads": "hog"}, "an array of names"),
        ({"policies": "RR!"}, "is not of the form POLICY"),
    ],
)
def test_errors_are_reported(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongUsage, match=r"lesson=.*lesson\.json.*: ") as caught:
        read_lesson(written(tmp_path, LESSON | change))
    assert words in str(caught.value)


def test_what_is_no_lesson(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="did you mean 'mlfq'"):
        read_lesson("mlfk")
    with pytest.raises(WrongUsage, match="No such file"):
        read_lesson(str(tmp_path / "none.json"))
    file = tmp_path / "torn.json"
    for text in ("{", "[]", "[" * 100_000, "\x00"):
        file.write_text(text)
        with pytest.raises(WrongUsage):
            read_lesson(str(file))


def test_ready_workloads_name_existing_parts() -> None:
    """Their policies, tunables and workloads exist, and the monitor's documentation names all
    of them.
    """
    catalogue = read_catalogue()
    words = (ROOT / "docs" / "monitor.md").read_text()
    for name in built_in_lessons():
        lesson = read_lesson(name)
        assert f"`{name}` (" in words
        assert set(lesson.workloads) <= set(read_palette())
        for policy in lesson.policies:
            known = catalogue[policy.name].tunables_of(policy.preset)
            assert {setting for setting, _ in lesson.settings} <= set(known)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the standalone page, with the simulator of this checkout."""
    file = tmp_path_factory.mktemp("page") / "schedlab.html"
    file.write_text(page_of(wasm_module()))
    return file


@pytest.mark.skipif(
    not find_browser(),
    reason=f"NO BROWSER: lessons are NOT PLAYED. Install one of {BROWSERS}",
)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in PLAYED else [pytest.mark.long])
        for name in built_in_lessons()
    ],
)
def test_a_ready_lesson_is_played_to_its_end(browser: Browser, file: Path, name: str) -> None:
    steps = json.loads((LESSONS_FOLDER / f"{name}.json").read_text())["steps"]
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_S * 1000)
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(f"{file.as_uri()}#lesson={name}")
    lesson = page.locator("#lesson")
    for number, step in enumerate(steps, 1):
        lesson.get_by_text(f"{number} of {len(steps)}").wait_for()
        lesson.get_by_text(step["text"]).wait_for()
        if "ask" in step:
            lesson.get_by_label(f"Answer: {step['ask']['answer']}").click()
            lesson.get_by_text(f"Yes: {step['ask']['answer']}.").wait_for()
            lesson.get_by_text(step["ask"]["because"]).wait_for()
        lesson.get_by_label("Go to the next step").click()
    lesson.get_by_text("The lesson is finished.").wait_for()
    page.close()
    assert trouble == []
