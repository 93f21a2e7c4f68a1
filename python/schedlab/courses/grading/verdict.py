# SPDX-License-Identifier: MIT
"""The verdict of a submission, for people and for course systems; independent of time and place."""

import base64
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from schedlab import __version__
from schedlab.base.display.names import json_text


@dataclass(frozen=True)
class ScoredExpectation:
    """The result of one expectation."""

    title: str
    points: Fraction
    max_points: Fraction
    why: str = ""
    picture: str = ""
    """Text drawing of the processes around `at_ns` (draw_moment), or ""."""
    at_ns: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        return {
            "expected": self.title,
            "points": as_number(self.points),
            "most": as_number(self.max_points),
            "why": self.why,
            "picture": self.picture,
            "at_ns": self.at_ns,
        }


@dataclass(frozen=True)
class TestVerdict:
    """The result of one test; `run_failure` says why its run failed, "" if it did not."""

    name: str
    title: str
    hidden: bool
    expectations: tuple[ScoredExpectation, ...]
    run_failure: str = ""

    @property
    def points(self) -> Fraction:
        """Returns the points of the submission."""
        return sum((scored.points for scored in self.expectations), Fraction(0))

    @property
    def max_points(self) -> Fraction:
        """Returns the maximum number of points."""
        return sum((scored.max_points for scored in self.expectations), Fraction(0))

    @property
    def lost_points(self) -> bool:
        """Returns whether points were lost."""
        return self.points < self.max_points

    def describe_losses(self) -> str:
        """Returns why points were lost."""
        lines = [f"{self.run_failure}"] if self.run_failure else []
        for scored in self.expectations:
            if scored.points < scored.max_points and not self.run_failure:
                lines.append(
                    f"{format_points(scored.points)} of {format_points(scored.max_points)} for:"
                    f" {scored.title}\n{scored.why}"
                )
                lines += [scored.picture] if scored.picture else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        return {
            "name": self.name,
            "says": self.title,
            "hidden": self.hidden,
            "points": as_number(self.points),
            "most": as_number(self.max_points),
            "broken": self.run_failure,
            "expectations": [scored.to_dict() for scored in self.expectations],
        }


@dataclass(frozen=True)
class Verdict:
    """A submission's verdict; `refused` says why it could not be run, "" if it was."""

    lab: str
    lab_sha256: str
    submission: str
    submission_sha256: str
    tests: tuple[TestVerdict, ...]
    refused: str = ""
    """Why the submission was not tested; "" if it was."""

    @property
    def points(self) -> Fraction:
        """Returns the points of the submission."""
        return sum((test.points for test in self.tests), Fraction(0))

    @property
    def max_points(self) -> Fraction:
        """Returns the maximum number of points."""
        return sum((test.max_points for test in self.tests), Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        return {
            "schedlab": __version__,
            "lab": self.lab,
            "lab_sha256": self.lab_sha256,
            "submission": self.submission,
            "submission_sha256": self.submission_sha256,
            "points": as_number(self.points),
            "most": as_number(self.max_points),
            "refused": self.refused,
            "tests": [test.to_dict() for test in self.tests],
        }


def picture_name(number: int) -> str:
    """Returns the file name of the picture of a failed expectation, in its run's folder."""
    return f"expectation-{number + 1}.svg"


def as_number(points: Fraction) -> float | int:
    """Returns points with at most two decimals."""
    return int(points) if points.denominator == 1 else float(round(points, 2))


def format_points(points: Fraction) -> str:
    """Returns points as text, with at most two decimals."""
    return f"{as_number(points):g}"


def gradescope_results(verdict: Verdict) -> dict[str, Any]:
    """Returns Gradescope's results/results.json. Only the course's staff sees hidden tests."""
    return {
        "score": as_number(verdict.points),
        "max_score": as_number(verdict.max_points),
        "output": verdict.refused,
        "output_format": "text",
        "tests": [
            {
                "name": test.name,
                "score": as_number(test.points),
                "max_score": as_number(test.max_points),
                "output": "\n".join(filter(None, (test.title, test.describe_losses()))),
                "output_format": "text",
                "visibility": "hidden" if test.hidden else "visible",
            }
            for test in verdict.tests
        ],
    }


def classroom_input(verdict: Verdict) -> str:
    """Returns the input of GitHub Classroom's reporter: JSON encoded in base64.

    Students can read the log, so hidden tests have only names and points.
    """
    result = {
        "version": 1,
        "status": "pass" if verdict.points == verdict.max_points else "fail",
        "max_score": as_number(verdict.max_points),
        "tests": [
            {
                "name": test.name,
                "status": "fail" if test.lost_points else "pass",
                "score": as_number(test.points),
                "message": "" if test.hidden else verdict.refused or test.describe_losses(),
            }
            for test in verdict.tests
        ],
    }
    return base64.b64encode(json_text(result).encode()).decode()
