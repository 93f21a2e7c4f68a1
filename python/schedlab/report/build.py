# SPDX-License-Identifier: MIT
"""Makes a report of runs: selects the pages, and writes them in each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from schedlab import __version__
from schedlab.analysis.comparison.suites import Suite, suites
from schedlab.base.display.names import all_visible
from schedlab.machines import SIMULATOR
from schedlab.report import files, index, runs
from schedlab.report.findings import findings
from schedlab.report.model import Page, Report, Table, Text
from schedlab.report.numbering import Numbering
from schedlab.report.output import MARK, check_place, report_folder
from schedlab.report.page_splitting import divided
from schedlab.runs import results
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.proposals import is_of_proposals
from schedlab.studies.study import studies, study_numbered

Format = Literal["html", "markdown", "latex"]
Progress = Callable[[str, int, int], None]
"""Called with the current step, the number of finished steps and their total."""

TITLE = "schedlab report"


def write_report(
    collection: Collection,
    out: Path,
    formats: Sequence[str] = ("html",),
    progress: Progress = lambda what, done, of: None,
    *,
    pictures: bool = False,
) -> Path:
    """Writes a report of these runs to the folder `out`, and returns the file to open.

    The folder appears when it is complete. An existing report is replaced. Anything else at
    that path raises WrongUsage before any work is done. `pictures`: draws each chart as SVG
    and PNG, as Markdown needs it.
    """
    check_place(out)
    report = make_report(collection, progress)
    return write_into(report, out, formats, progress, pictures=pictures)


def write_into(
    report: Report,
    out: Path,
    formats: Sequence[str] = ("html",),
    progress: Progress = lambda what, done, of: None,
    *,
    pictures: bool = False,
) -> Path:
    """Writes an existing report to the folder `out`, as `write_report` does."""
    check_place(out)
    report = all_visible(report)
    files.check_names(report)
    with report_folder(out) as folder:
        first = write(report, folder, formats, progress, pictures=pictures)
        opened = first.relative_to(folder)
    return out / opened


def write(
    report: Report,
    folder: Path,
    formats: Sequence[str],
    progress: Progress = lambda what, done, of: None,
    *,
    pictures: bool = False,
) -> Path:
    """Writes a report into an existing folder, and returns the file to open."""
    pictures = pictures or "markdown" in formats
    files.write_files(report, folder / files.FOLDER, on_paper=pictures)
    if pictures:
        counter = _Counter(progress, "pictures", len(files.charts_of(report)))
        files.draw_pictures(report, folder / files.FOLDER, counter.advance)
    results.write_json(folder / MARK, _contents(report))
    first = None
    if "html" in formats:
        from schedlab.report.html import write_pages

        first = write_pages(report, folder, progress, pictures=pictures)
    if "markdown" in formats:
        from schedlab.report.markdown import write_document

        document = write_document(report, folder)
        first = first or document
    if "latex" in formats:
        from schedlab.report.latex import write_latex

        figures = sum(not chart.still for chart in files.charts_of(report))
        drawn = _Counter(progress, "pictures for a paper", figures)
        paper = write_latex(report, folder, drawn.advance)
        first = first or paper
    if first is None:
        raise ValueError(f"a report is written as html, markdown or latex, not as {formats}")
    return first


def make_report(collection: Collection, progress: Progress = lambda what, done, of: None) -> Report:
    """Returns a report with all pages that have content. The first page links to the others."""
    compared_suites = compared_in(collection)
    pages = make_pages(collection, lambda: compared_suites, progress)
    texts = tuple(finding.text for finding in findings(compared_suites))
    return Report(TITLE, tuple(pages), facts(collection), texts)


def only_pages(collection: Collection, names: set[str]) -> list[Page]:
    """Returns the pages with these names, as in a report of these runs.

    For a page that is split, returns all its parts.
    """
    return make_pages(collection, cache(lambda: compared_in(collection)), only=names)


def make_pages(
    collection: Collection,
    find_suites: Callable[[], list[Suite]],
    progress: Progress = lambda what, done, of: None,
    only: set[str] | None = None,
) -> list[Page]:
    """Returns the pages in the report's order. `find_suites` returns
    the suites of the compared runs.

    `only`: names of the pages to make; None for all.
    """
    from schedlab.report import agreement, comparison, proposals

    of_studies = without_simulated(collection)
    compared = _compared(collection)
    makers: dict[str, Callable[[], Page | None]] = {
        **{f"study-{n}": partial(page_maker(n), of_studies) for n in (s.number for s in studies())},
        proposals.NAME: lambda: proposals.page(collection),
        comparison.NAME: lambda: comparison.page(compared, find_suites()),
        agreement.NAME: lambda: agreement.page(collection),
        runs.NAME: lambda: runs.page(collection),
    }
    of_workloads = runs.workload_makers(collection)
    total = len(makers) + len(of_workloads) + 1
    pages: list[Page] = []
    for number, (name, maker) in enumerate(makers.items()):
        if only is None or any(
            short_name == name or short_name.startswith(f"{name}-") for short_name in only
        ):
            progress(f"making page {name}", number, total)
            page = maker()
            pages += divided(page) if page else []
    for number, (name, make) in enumerate(of_workloads.items(), len(makers)):
        if only is None or name in only:
            progress(f"making page {name}", number, total)
            pages.append(make())
    if only is None or index.NAME in only:
        progress(f"making page {index.NAME}", total - 1, total)
        pages.insert(0, index.page(collection, find_suites()))
    return pages


def compared_in(collection: Collection) -> list[Suite]:
    """Returns the suites that a report of these runs compares, which
    are the basis of its findings.
    """
    return suites(_compared(collection))


def page_maker(number: int) -> Callable[[Collection], Page | None]:
    """Returns the function that makes the page of a study."""

    def page(collection: Collection) -> Page | None:
        from schedlab.report.studies.pages import page_of

        return page_of(study_numbered(number), collection)

    return page


def without_simulated(collection: Collection) -> Collection:
    """Returns the runs that reproduce the studies.

    If the kernel ran an experiment, the simulator's runs of that experiment are left out.
    """
    on_kernel = {run.setup.experiment for run in collection if run.setup.machine != SIMULATOR}
    return Collection(
        run
        for run in collection
        if run.setup.machine != SIMULATOR
        or run.setup.experiment not in EXPERIMENTS
        or run.setup.experiment not in on_kernel
    )


def _compared(collection: Collection) -> Collection:
    return without_proposals(without_simulated(collection))


def without_proposals(collection: Collection) -> Collection:
    """Returns the runs that are compared under many policies.

    Tests of proposals are excluded, because they have a separate page.
    """
    return Collection(run for run in collection if not is_of_proposals(run.setup.experiment))


def facts(collection: Collection) -> dict[str, str]:
    """Returns the facts at the foot of all pages: versions, commit, machines, host and dates."""
    manifests = [run.manifest for run in collection]
    now = datetime.now(timezone.utc)
    return {
        "schedlab": __version__,
        "commit": _unique(
            f"{manifest.get('commit')}{', changed' if manifest.get('changed') else ''}"
            for manifest in manifests
        ),
        "machine": _unique(
            f"{manifest['machine']} {manifest.get('machine_version') or ''}".strip()
            for manifest in manifests
        ),
        "host": _unique(str(manifest.get("host")) for manifest in manifests),
        "run": _period([manifest["started"] for manifest in manifests if "started" in manifest]),
        "report made": f"{now:%Y-%m-%d %H:%M} UTC",
    }


def _unique(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))


def _period(times: list[str]) -> str:
    """Returns the first and the last date, to the minute."""
    if not times:
        return "unknown"
    first, last = (time[:16].replace("T", " ") for time in (min(times), max(times)))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def _contents(report: Report) -> dict[str, Any]:
    """Returns the report's content and its files, for programs."""
    numbering = Numbering(report)
    return {
        "format": 1,
        "title": report.title,
        "facts": report.facts,
        "findings": list(report.findings),
        "pages": [
            {
                "name": page.name,
                "title": page.title,
                "above": page.above or None,
                "blocks": [
                    {
                        "name": block.name,
                        "label": numbering.labels[block.name],
                        "title": block.title,
                        "list": isinstance(block, Table) and block.is_list,
                    }
                    for block in page.blocks()
                    if not isinstance(block, Text)
                ],
            }
            for page in report.pages
        ],
    }


class _Counter:
    """Counts finished steps of one kind, and reports progress."""

    def __init__(self, progress: Progress, what: str, of: int) -> None:
        self.progress = progress
        self.what = what
        self.of = of
        self.done = 0

    def advance(self, name: str) -> None:
        self.done += 1
        self.progress(self.what, self.done, self.of)
