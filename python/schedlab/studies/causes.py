# SPDX-License-Identifier: MIT
"""Reads the causes of differences from published figures: causes.yaml in a study's folder.

A cause is shown by two runs, with and without it, and their measurements.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from schedlab.base.display.markdown import code
from schedlab.paths import STUDIES_FOLDER
from schedlab.studies.figures import Figure
from schedlab.studies.study import Study, find_studies, read_list

CAUSES_FILE = "causes.yaml"
"""The name of the optional file in each study's folder."""


Effects = Mapping[str, tuple[float, float]]
"""The values without and with a cause, by column of the published figures."""
_FIELD_BY_KEY = {
    "says": "statement",
    "run": "experiment",
    "without": "counterpart",
    "measured": "metric",
}
"""Fields of `Cause` by their keys in the file, where these differ."""


@dataclass(frozen=True)
class Cause:
    """A cause of differences between a study's figures and the measured ones, and the two runs that show it."""

    study: int
    name: str
    statement: str
    """The cause in a sentence."""
    experiment: str
    """The experiment with the cause; if it has several policies, a blank and the policy follow."""
    counterpart: str
    """The corresponding experiment without the cause."""
    metric: str
    """The metric of the effects: `context switches`."""
    effects: Effects
    """The values of a quick run without and with the cause, by column of the published figures.

    Pages show the values of the shown runs. A test compares these with the runs.
    """
    places: tuple[str, ...] = ()
    """Tables or sections whose differences this text explains; empty if a page has its own text."""
    rows: tuple[str, ...] = ()
    """Their rows; empty for all."""

    def covers(self, figure: Figure) -> bool:
        """True if the cause affects the metric of this figure."""
        return (
            figure.study == self.study
            and figure.place in self.places
            and (not self.rows or figure.row in self.rows)
            and figure.quantity == self.metric
            and figure.column in self.effects
        )

    def footnote(self, measured: Effects, decimals: int) -> str:
        """Returns the footnote of the figures that it covers: the cause, and its effect in a report's runs.

        `measured`: as `effects`; empty if the report has not both runs.
        """
        if not measured:
            return self.statement
        effects = "; ".join(
            f"{column}: {before:,.{decimals}f} → {after:,.{decimals}f}"
            for column, (before, after) in measured.items()
        )
        runs = f"without it ({code(self.counterpart)}) and with it ({code(self.experiment)})"
        return f"{self.statement} {self.metric.capitalize()} {runs}: {effects}."


def read_causes(study: int, folder: Path = STUDIES_FOLDER) -> tuple[Cause, ...]:
    """Returns the causes of a study. Raises FileRefused."""
    return next(
        (_causes_of_study(entry) for entry in find_studies(folder) if entry.number == study), ()
    )


def cause_of(figure: Figure) -> Cause | None:
    """Returns the first cause that covers the figure, or None."""
    return next((cause for cause in read_causes(figure.study) if cause.covers(figure)), None)


@cache
def _causes_of_study(study: Study) -> tuple[Cause, ...]:
    expected = "a list of causes, each with name, says, run, without, measured and effects"
    return read_list(study.folder / CAUSES_FILE, partial(_parse_cause, study.number), expected)


def _parse_cause(study: int, entry: Mapping[str, Any]) -> Cause:
    effects = {
        column: (float(before), float(after))
        for column, (before, after) in entry["effects"].items()
    }
    lists = {name: tuple(entry.get(name, ())) for name in ("places", "rows")}
    fields = {_FIELD_BY_KEY.get(name, name): value for name, value in entry.items()}
    return Cause(**{**fields, **lists, "study": study, "effects": effects})
