# SPDX-License-Identifier: MIT
"""The studies' pages: module page_N writes that of study N, from what study_N's Queries find in the runs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from schedlab.report.model import Page
from schedlab.runs.collection import Collection
from schedlab.studies.pack import Study


def page_of(study: Study, collection: Collection) -> Page | None:
    """Returns a study's page, or None if it has none or none of its experiments was run."""
    name = f"schedlab.report.studies.page_{study.number}"
    label = f"s{study.number}-"
    if not find_spec(name) or not any(run.setup.experiment.startswith(label) for run in collection):
        return None
    module = import_module(name)
    page: Page = module.make(module.Queries(study, collection))
    return page
