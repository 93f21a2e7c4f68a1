# SPDX-License-Identifier: MIT
"""Tests how a verdict is printed and written."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from conftest import Command
from schedlab.courses.submissions import sandbox
from submissions import LAB, picking, small_lab, solution_with

pytestmark = pytest.mark.xdist_group("grading")

TRUST = ["--trust"] if sandbox.missing_requirement() else []


def test_a_lost_point_is_shown_with_its_decision_and_its_picture(
    schedlab: Command, tmp_path: Path
) -> None:
    folder = small_lab(tmp_path / "small")
    source = tmp_path / "mine.c"
    source.write_text(solution_with("ticks >= slice", "ticks > slice"))
    files = ["--gradescope", str(tmp_path / "results.json"), "--classroom", str(tmp_path / "class")]
    verdict_folder = tmp_path / "kept"
    result = schedlab(
        "grade", str(folder), str(source), "--out", str(verdict_folder), *files, *TRUST
    )
    assert result.returncode == 1, result.stderr
    assert "Small: 2 of 9 points for mine.c" in result.stdout
    assert (
        "after 1 of 8 decisions that are right, CPU 0 turns to b (4) at 2.000 ms;"
        " right is b (4) at 1.000 ms" in result.stdout
    )
    assert "right CPU 0  ABABAA\n" in result.stdout
    assert "yours CPU 0  AABBAA\n                      ^\n" in result.stdout
    picture = verdict_folder / "small" / "expectation-2.svg"
    assert f"Picture: {picture}\n" in result.stdout
    lanes = re.split(r"(?:right|yours), CPU 0", picture.read_text())
    first = [re.findall(r"<title>(.*?) to ", lane)[:2] for lane in lanes[1:]]
    assert first == [["a (3): 0.000 ms", "b (4): 1.000 ms"], ["a (3): 0.000 ms", "b (4): 2.000 ms"]]
    explained = schedlab("explain", str(verdict_folder / "small"))
    assert "waits, " in explained.stdout, explained.stderr

    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["score"], results["max_score"]) == (2, 9)
    (test,) = results["tests"]
    assert (test["name"], test["score"], test["max_score"]) == ("small", 2, 9)
    assert test["visibility"] == "visible"
    assert "right is b (4)" in test["output"]

    reported = json.loads(base64.b64decode((tmp_path / "class").read_text()))
    assert (reported["status"], reported["max_score"]) == ("fail", 9)
    assert sum(test_result["score"] for test_result in reported["tests"]) == 2


def test_of_hidden_tests_students_read_no_words(schedlab: Command, tmp_path: Path) -> None:
    folder = small_lab(tmp_path / "small")
    (folder / "lab.json").write_text(LAB.replace('"workload"', '"hidden": true, "workload"', 1))
    source = tmp_path / "mine.c"
    source.write_text(picking("if (queue->queued)\n        return NULL;"))
    path = tmp_path / "results.json"
    reported = tmp_path / "class"
    result = schedlab(
        *("grade", str(folder), str(source), "--json", "--gradescope", str(path)),
        *("--classroom", str(reported), "--out", str(tmp_path / "kept"), *TRUST),
    )
    assert result.returncode == 1
    assert json.loads(result.stdout)["tests"][0]["broken"].startswith("policy turns broke a rule")
    assert json.loads(path.read_text())["tests"][0]["visibility"] == "hidden"
    assert json.loads(base64.b64decode(reported.read_text()))["tests"][0]["message"] == ""
    logged = schedlab(
        *("grade", str(folder), str(source), "--classroom", str(tmp_path / "log")),
        *("--out", str(tmp_path / "other"), *TRUST),
    )
    assert "small (hidden)" in logged.stdout
    assert "broke a rule" not in logged.stdout + logged.stderr


@pytest.mark.spike
def test_the_kernel_is_to_do_what_the_simulator_does(schedlab: Command, tmp_path: Path) -> None:
    """A policy that detects its host by the size of a pointer cannot have the points of both."""
    folder = small_lab(tmp_path / "small")
    kernel = '{"law": "ends", "points": 1}, {"kernel": true, "points": 3}'
    (folder / "lab.json").write_text(LAB.replace('{"law": "ends", "points": 1}', kernel))
    for body, points, words in (
        ("", 12, ""),
        ("if (sizeof(void *) == 8)\n        while (true)\n            ;", 9, "on the kernel: "),
        (
            "if (sizeof(void *) == 8 && queue->queued > 1)\n"
            "        task_list_append(&STATE_OF(queue, struct turns_queue)->line,"
            " task_list_take_first(&STATE_OF(queue, struct turns_queue)->line));",
            9,
            "switches alike",
        ),
    ):
        source = tmp_path / "mine.c"
        source.write_text(picking(body))
        options = ["--json", "--out", str(tmp_path / "kept"), *TRUST]
        result = schedlab("grade", str(folder), str(source), *options)
        assert result.returncode == (points < 12), result.stderr
        verdict = json.loads(result.stdout)
        assert verdict["points"] == points, verdict
        assert words in verdict["tests"][0]["expectations"][1]["why"]
