# SPDX-License-Identifier: MIT
"""Tests that a smaller sweep of the configurations in docs/tuning.md gives the page's figures.

Figures have three digits and a tolerance of 1 %, so that small changes of the kernel or the
simulator need no new page. Statements in the text must hold exactly. `SCHEDLAB_GOLDEN=write` runs
the complete sweeps, and writes the page's figures and its picture.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.analysis.comparison.statistics import Estimate
from schedlab.base.display.numbers import duration
from schedlab.commands import sweep_options as options
from schedlab.sweep import best, command, dataset, ranking
from schedlab.sweep.expansion import Point
from schedlab.sweep.objectives import parse_objective
from schedlab.sweep.plan import SweepPlan

PAGE = ROOT / "docs" / "tuning.md"
PICTURE = ROOT / "docs" / "tuning-frontier.svg"
SWEEP = ROOT / "sweeps" / "mlfq-mixed.yaml"
CHECK = ROOT / "sweeps" / "mlfq-mixed-check.yaml"
OBJECTIVES = [parse_objective("turnaround"), parse_objective("response")]
PRESET = ("mlfq:allotment-boost", "")
BASELINES = [PRESET, ("rr:table-scan", "")]
WRITE = os.environ.get("SCHEDLAB_GOLDEN") == "write"
pytestmark = pytest.mark.xdist_group("sweeps")


# --- the page


def block(name: str) -> str:
    """Returns the text between the comments <!-- NAME --> and <!-- end -->."""
    match = re.search(rf"<!-- {name} -->(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert match, name
    return match[1].strip()


def agrees(name: str, text: str) -> None:
    """Requires the same words, and numbers within 1 %; writes the block if asked to."""
    if WRITE:
        page = PAGE.read_text()
        between = f"\n{text}\n" if "|" in text else text
        new, count = re.subn(
            rf"(<!-- {name} -->).*?(<!-- end -->)",
            lambda match: match[1] + between + match[2],
            page,
            flags=re.DOTALL,
        )
        assert count == 1, name
        PAGE.write_text(new)
    assert_near(block(name), text)


_NUMBER = re.compile(r"(?<![=\w])-?\d[\d,]*(?:\.\d+)?(?: (?:m?s|%)\b)?")


def assert_near(actual: str, expected: str) -> None:
    assert _NUMBER.sub("N", actual) == _NUMBER.sub("N", expected)
    for one, other in zip(_NUMBER.findall(actual), _NUMBER.findall(expected), strict=True):
        near = 1.0 if one.endswith("%") else 0.01 * number_of(other)  # one percentage point, or 1 %
        assert abs(number_of(one) - number_of(other)) <= abs(near), (one, other)


def number_of(text: str) -> float:
    """Returns the number of a text: `1.12 s` in milliseconds, `8` as it is."""
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "")) * (1000 if unit == "s" else 1)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def rows_of(name: str) -> list[list[str]]:
    """Returns the cells of a table, headings first."""
    lines = block(name).splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [rows[0], *rows[2:]]


def setups_of(name: str, column: int) -> list[ranking.PolicySettings]:
    """Returns the configurations that a table names."""
    parts = [row[column].strip("`").partition(" ") for row in rows_of(name)[1:]]
    return [(policy, settings) for policy, _, settings in parts]


# --- runs


def choice_of(point: Point) -> ranking.PolicySettings:
    return str(point.run.policy), point.run.settings_text


def run(
    plan: SweepPlan, folder: Path, is_selected: Callable[[Point], bool], traces: bool = False
) -> Path:
    """Runs the selected points of a sweep, or all points when the page is written; returns the
    folder."""
    points = tuple(point for point in plan.points if WRITE or is_selected(point))
    done = command.execute_plan(
        replace(plan, points=points), command.ExecutionOptions(folder, keep_traces=traces)
    )
    assert done.failed == 0
    return folder


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> ranking.Values:
    """Values of the sweep: of the configurations that the page names, or of all."""
    named = [] if WRITE else setups_of("found", 1)
    folder = run(
        command.plan_sweep(SWEEP, {}),
        tmp_path_factory.mktemp("tuned") / "out",
        lambda point: choice_of(point) in named,
    )
    if WRITE:
        PICTURE.unlink(missing_ok=True)  # no command replaces an existing picture
        best.draw_fronts(folder, OBJECTIVES, PICTURE)
    (values,) = ranking.read_values(folder, OBJECTIVES)
    return values


def test_number_of_runs_is_as_stated() -> None:
    plan = command.plan_sweep(SWEEP, {})
    setups = {choice_of(point) for point in plan.points}
    text = f"{len(plan.points):,} runs: {len(setups)} setups with 5 seeds each"
    assert text in PAGE.read_text()
    shown = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown and SWEEP.read_text().endswith(shown[1])
    sizes = 32 * 128 * 256 * 512 * 3811
    assert 0.5e12 < sizes < 5e12


def test_the_front(tuned: ranking.Values) -> None:
    front = ranking.find_front(tuned, OBJECTIVES)
    rows = []
    before = front.estimates[PRESET][0].mean
    for index, choice in enumerate((*front.members, *BASELINES), start=1):
        turnaround, response = front.estimates[choice]
        rows.append(
            [
                str(index) if choice in front.members else "",
                f"`{ranking.setup_title(choice)}`",
                duration(turnaround.mean),
                "" if choice == PRESET else f"{100 * (turnaround.mean / before - 1):+.1f} %",
                duration(response.mean),
            ]
        )
    headings = ["", "setup", "turnaround, mean", "against the preset", "response, mean"]
    agrees("found", table(headings, rows))
    # Statements of the text.
    assert all(narrow(value, 0.01) for choice in front.members for value in front.estimates[choice])
    first, second = front.members
    by_name = front.estimates
    for one, other in ((first, PRESET), (second, BASELINES[1])):
        assert abs(by_name[one][1].mean / by_name[other][1].mean - 1) < 0.01
    assert "slice_3=2," in first[1] and "slice_3=1," in second[1]
    assert by_name[second][1].mean < 0.55 * by_name[first][1].mean
    checked = {choice_of(point) for point in command.plan_sweep(CHECK, {}).points}
    assert checked == {*front.members, *BASELINES}, "sweeps/mlfq-mixed-check.yaml has other setups"


SIZES_TESTED = ("10", "20")


@pytest.mark.long
def test_other_seeds_and_sizes(tmp_path: Path) -> None:
    folder = run(
        command.plan_sweep(CHECK, {}),
        tmp_path / "out",
        lambda point: point.run.changes[0][1] in SIZES_TESTED,
    )
    scenes = {
        values.scene[1].partition("=")[2]: values
        for values in ranking.read_values(folder, OBJECTIVES)
    }
    estimates = {
        size: ranking.find_front(values, OBJECTIVES).estimates for size, values in scenes.items()
    }
    sizes = ("10", "20", "30", "40")
    choices = setups_of("found", 1)
    headings = ["setup", *(f"{size} compute" for size in sizes)]
    if WRITE:
        rows = [
            [
                f"`{ranking.setup_title(choice)}`",
                *(duration(estimates[size][choice][0].mean) for size in sizes),
            ]
            for choice in choices
        ]
        agrees("sizes", table(headings, rows))
    shown = rows_of("sizes")
    assert shown[0] == headings
    assert setups_of("sizes", 0) == choices
    for row, choice in zip(shown[1:], choices, strict=True):
        for size in SIZES_TESTED:
            assert_near(row[1 + sizes.index(size)], duration(estimates[size][choice][0].mean))
            assert narrow(estimates[size][choice][0], 0.01)
    # Statements of the text.
    first, _, preset, _ = [[number_of(cell) for cell in row[1:]] for row in shown[1:]]
    gains = [1 - ours / theirs for ours, theirs in zip(first, preset, strict=True)]
    assert gains[1] > 0.1
    assert max(gains[0], gains[2]) < 0.05 and gains[3] < 0.02
    assert first[2] > min(number_of(row[3]) for row in shown[1:])


@pytest.mark.spike
def test_the_kernel_confirms_it(tmp_path: Path) -> None:
    given = options.nodes_of_options(
        ["s4-mixed-20"], [], [], [], [], None, {"machines": "spike", "seeds": "101..103"}
    )
    first = setups_of("found", 1)[0]
    plan = command.plan_sweep(CHECK, given)
    folder = run(plan, tmp_path / "out", lambda point: choice_of(point) == first)
    (values,) = ranking.read_values(folder, OBJECTIVES)
    estimates = ranking.find_front(values, OBJECTIVES).estimates
    if WRITE:
        rows = [kernel_row(choice, estimates[choice]) for choice in setups_of("found", 1)]
        agrees("kernel", table(["setup", "turnaround, mean", "response, mean"], rows))
        means = [estimates[choice][0].mean for choice in setups_of("found", 1)]
        assert means == sorted(means)
    row = kernel_row(first, estimates[first])
    (shown,) = (candidate for candidate in rows_of("kernel") if candidate[0] == row[0])
    assert_near(" | ".join(shown), " | ".join(row))
    assert narrow(estimates[first][0], 0.01) and narrow(estimates[first][1], 0.06)
    assert dataset.read_table(folder, "runs")["status"].unique().to_list() == ["success"]


def kernel_row(choice: ranking.PolicySettings, both: Sequence[Estimate]) -> list[str]:
    return [f"`{ranking.setup_title(choice)}`", *(duration(value.mean) for value in both)]


def narrow(value: Estimate, part: float) -> bool:
    """Returns whether the interval extends at most this fraction of the mean to either side."""
    return max(value.high - value.mean, value.mean - value.low) <= part * value.mean
