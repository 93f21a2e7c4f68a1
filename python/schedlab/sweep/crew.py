# SPDX-License-Identifier: MIT
"""Workers as a sweep sees them, whether they are processes of this host or a cluster's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from schedlab.sweep.one_run import Result, Task
from schedlab.sweep.worker import Laboratory


@dataclass(frozen=True)
class Ended:
    """A batch that is no longer under way."""

    key: str
    results: tuple[Result, ...] | None
    """The results in the order of its tasks; None: its worker is gone."""
    died: bool = False
    """Its worker died of it, perhaps. Otherwise what is not done is to be given again."""


class Crew(Protocol):
    """Workers, which are told of batches by their keys."""

    def prepare(self, laboratory: Laboratory) -> None:
        """Prepares all workers, those that come later too. Raises SchedlabError if one is unfit."""

    def room(self) -> int:
        """Returns how many batches it takes at a time, now. Raises SchedlabError if it is gone."""

    def give(self, key: str, tasks: Sequence[Task]) -> None:
        """Gives a batch to a worker; there must be room for it."""

    def ended(self, seconds: float) -> list[Ended]:
        """Waits that long for the first. Raises SchedlabError if a worker itself failed."""
