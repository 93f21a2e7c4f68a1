# SPDX-License-Identifier: MIT
"""What does not fit together in a study, told where a reader meets it, and once."""

from __future__ import annotations

from collections.abc import Iterable

from schedlab.report.markup import literal
from schedlab.report.model import Text
from schedlab.studies.pack import Contradiction, Study


class Doubts:
    """A study's contradictions: each is handed out once, at the first place that asks for it."""

    def __init__(self, study: Study) -> None:
        self.all = study.contradictions
        self.told: set[str] = set()

    def at(self, *places: str) -> tuple[Text, ...]:
        """The contradictions that concern a table or section, and have not been told yet."""
        found = {each.name: each for place in places for each in self.all if each.concerns(place)}
        return self._tell(found.values(), "**What does not fit together there:**\n\n")

    def named(self, *names: str) -> tuple[Text, ...]:
        """The contradictions of these names."""
        found = [each for each in self.all if each.name in names]
        return self._tell(found)

    def rest(self) -> tuple[Text, ...]:
        """All others."""
        return self._tell(self.all)

    def _tell(self, found: Iterable[Contradiction], heading: str = "") -> tuple[Text, ...]:
        new = [each for each in found if each.name not in self.told]
        self.told |= {each.name for each in new}
        if not new:
            return ()
        lines = [f"- {literal(str(each))}" for each in new]
        return (Text(heading + "\n".join(lines), "note"),)
