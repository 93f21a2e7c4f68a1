# SPDX-License-Identifier: MIT
"""What could not be measured, as the lead of a study's page says it."""

from __future__ import annotations

from collections.abc import Iterator

from schedlab.report.wording import counted
from schedlab.runs.collection import Collection


def failures(collection: Collection, prefix: str) -> Iterator[str]:
    """A sentence, if runs of the experiments whose names begin so failed; else nothing."""
    runs = [run for run in collection if run.setup.experiment.startswith(prefix)]
    failed = sum(not run.succeeded for run in runs)
    if failed:
        yield (
            f"**{failed} of its {counted(len(runs), 'run')} failed**: their cells say how, and no mean"
            " is made of the others."
        )
