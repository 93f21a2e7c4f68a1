# SPDX-License-Identifier: MIT
"""Makes a report of runs: selects the pages, and writes them in each format."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache, partial
from pathlib import Path
from typing import Any

from schedlab import __version__
from schedlab.analysis.comparison.suites import Suite, compared_suites
from schedlab.base.display.names import map_texts, slug
from schedlab.base.display.numbers import format_count
from schedlab.machines import SIMULATOR
from schedlab.report import files, index, runs
from schedlab.report.files import REPORT_FILE, check_report_path, report_folder
from schedlab.report.findings import compute_findings
from schedlab.report.markup import title_markdown
from schedlab.report.model import Block, Chart, Page, Report, Section, Table, Text
from schedlab.report.numbering import Numbering
from schedlab.report.trials import PAGE_TRIAL
from schedlab.report.wording import listed
from schedlab.runs import results
from schedlab.runs.collection import Collection
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.proposals import is_proposal_label
from schedlab.studies.study import find_studies, find_study

Progress = Callable[[str, int, int], None]
"""Called with the current step, the number of finished steps and their total."""

REPORT_TITLE = "schedlab report"


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
    check_report_path(out)
    report = make_report(collection, progress)
    return write_existing_report(report, out, formats, progress, pictures=pictures)


def write_existing_report(
    report: Report,
    out: Path,
    formats: Sequence[str] = ("html",),
    progress: Progress = lambda what, done, of: None,
    *,
    pictures: bool = False,
) -> Path:
    """Writes an existing report to the folder `out`, as `write_report` does."""
    check_report_path(out)
    report = map_texts(report)
    files.check_names(report)
    with report_folder(out) as folder:
        first = write_formats(report, folder, formats, progress, pictures=pictures)
        first_file = first.relative_to(folder)
    return out / first_file


def write_formats(
    report: Report,
    folder: Path,
    formats: Sequence[str],
    progress: Progress = lambda what, done, of: None,
    *,
    pictures: bool = False,
) -> Path:
    """Writes a report into an existing folder, and returns the file to open."""
    pictures = pictures or "markdown" in formats
    files.write_files(report, folder / files.FILES_FOLDER, on_paper=pictures)
    if pictures:
        counter = _StepCounter(progress, "pictures", len(files.report_charts(report)))
        files.draw_pictures(report, folder / files.FILES_FOLDER, counter.advance)
    results.write_json(folder / REPORT_FILE, _report_json(report))
    first_document = None
    if "html" in formats:
        from schedlab.report.html import write_pages

        first_document = write_pages(report, folder, progress, pictures=pictures)
    if "markdown" in formats:
        from schedlab.report.markdown import write_document

        document = write_document(report, folder)
        first_document = first_document or document
    if "latex" in formats:
        from schedlab.report.latex import write_latex

        figures = sum(not chart.still for chart in files.report_charts(report))
        paper_counter = _StepCounter(progress, "pictures for a paper", figures)
        paper = write_latex(report, folder, paper_counter.advance)
        first_document = first_document or paper
    if first_document is None:
        raise ValueError(f"a report is written as html, markdown or latex, not as {formats}")
    return first_document


def make_report(collection: Collection, progress: Progress = lambda what, done, of: None) -> Report:
    """Returns a report with all pages that have content. The first page links to the others."""
    compared_suites = find_compared_suites(collection)
    pages = make_pages(collection, lambda: compared_suites, progress)
    texts = tuple(finding.text for finding in compute_findings(compared_suites))
    return Report(REPORT_TITLE, tuple(pages), report_facts(collection), texts)


def make_selected_pages(collection: Collection, names: set[str]) -> list[Page]:
    """Returns the pages with these names, as in a report of these runs.

    For a page that is split, returns all its parts.
    """
    return make_pages(collection, cache(lambda: find_compared_suites(collection)), only=names)


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

    study_runs = runs_for_studies(collection)
    compared = _compared_runs(collection)
    makers: dict[str, Callable[[], Page | None]] = {
        **{
            f"study-{n}": partial(page_maker(n), study_runs)
            for n in (s.number for s in find_studies())
        },
        proposals.PAGE_NAME: lambda: proposals.make_page(collection),
        comparison.PAGE_NAME: lambda: comparison.make_page(compared, find_suites()),
        agreement.PAGE_NAME: lambda: agreement.make_page(collection),
        runs.PAGE_NAME: lambda: runs.make_page(collection),
    }
    makers_by_workload = runs.workload_makers(collection)
    total = len(makers) + len(makers_by_workload) + 1
    pages: list[Page] = []
    for number, (name, maker) in enumerate(makers.items()):
        if only is None or any(
            short_name == name or short_name.startswith(f"{name}-") for short_name in only
        ):
            progress(f"making page {name}", number, total)
            page = maker()
            pages += split_page(page) if page else []
    for number, (name, make) in enumerate(makers_by_workload.items(), len(makers)):
        if only is None or name in only:
            progress(f"making page {name}", number, total)
            pages.append(make())
    if only is None or index.PAGE_NAME in only:
        progress(f"making page {index.PAGE_NAME}", total - 1, total)
        pages.insert(0, index.make_page(collection, find_suites()))
    return pages


def find_compared_suites(collection: Collection) -> list[Suite]:
    """Returns the suites that a report of these runs compares, which
    are the basis of its findings.
    """
    return compared_suites(_compared_runs(collection))


def page_maker(number: int) -> Callable[[Collection], Page | None]:
    """Returns the function that makes the page of a study."""

    def page(collection: Collection) -> Page | None:
        from schedlab.report.studies.pages import page_of

        return page_of(find_study(number), collection)

    return page


def runs_for_studies(collection: Collection) -> Collection:
    """Returns the runs that reproduce the studies.

    If the kernel ran an experiment, the simulator's runs of that experiment are left out.
    """
    on_kernel = {run.setup.experiment for run in collection if run.setup.machine != SIMULATOR}
    return collection.of(
        [
            run
            for run in collection
            if run.setup.machine != SIMULATOR
            or run.setup.experiment not in EXPERIMENTS
            or run.setup.experiment not in on_kernel
        ]
    )


def _compared_runs(collection: Collection) -> Collection:
    """Returns the runs that the page of comparisons uses."""
    return without_proposals(runs_for_studies(collection))


def without_proposals(collection: Collection) -> Collection:
    """Returns the runs that are compared under many policies.

    Tests of proposals are excluded, because they have a separate page.
    """
    return collection.of([run for run in collection if not is_proposal_label(run.setup.experiment)])


def report_facts(collection: Collection) -> dict[str, str]:
    """Returns the facts at the foot of all pages: versions, commit, machines, host and dates."""
    manifests = [run.manifest for run in collection]
    now = datetime.now(timezone.utc)
    return {
        "schedlab": __version__,
        "commit": _join_distinct(
            f"{manifest.get('commit')}{', changed' if manifest.get('changed') else ''}"
            for manifest in manifests
        ),
        "machine": _join_distinct(
            f"{manifest['machine']} {manifest.get('machine_version') or ''}".strip()
            for manifest in manifests
        ),
        "host": _join_distinct(str(manifest.get("host")) for manifest in manifests),
        "run": _period_text(
            [manifest["started"] for manifest in manifests if "started" in manifest]
        ),
        "report made": f"{now:%Y-%m-%d %H:%M} UTC",
    }


def _join_distinct(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))


def _period_text(times: list[str]) -> str:
    """Returns the first and the last date, to the minute."""
    if not times:
        return "unknown"
    first, last = (time[:16].replace("T", " ") for time in (min(times), max(times)))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def _report_json(report: Report) -> dict[str, Any]:
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


class _StepCounter:
    """Counts finished steps of one kind, and reports progress."""

    def __init__(self, progress: Progress, what: str, of: int) -> None:
        """Begins to count. `what`: the kind of step; `of`: the number of steps."""
        self.progress = progress
        self.what = what
        self.of = of
        self.done = 0

    def advance(self, name: str) -> None:
        """Counts a finished step and reports it."""
        self.done += 1
        self.progress(self.what, self.done, self.of)


FIGURES_MAX = 20
"""Maximum number of tables and charts of a page. Pages with more are split."""


def split_page(page: Page) -> list[Page]:
    """Returns the pages that replace a page: the page itself if it is short, otherwise an index and the parts."""
    moved_numbers = _choose_moved_sections(page.sections)
    if not moved_numbers:
        return [page]
    pages = {number: _part_page(page, page.sections[number]) for number in sorted(moved_numbers)}
    index = replace(
        page,
        sections=tuple(
            _link_section(pages[number], section) if number in pages else section
            for number, section in enumerate(page.sections)
        ),
    )
    return [index, *(part_section for part in pages.values() for part_section in split_page(part))]


def _choose_moved_sections(sections: Sequence[Section]) -> set[int]:
    """Returns the indices of the sections to move, largest first, until the rest is short.

    The first section stays, because it introduces the page. Sections with a single table or chart
    also stay.
    """
    sizes = {number: len(_figures(section)) for number, section in enumerate(sections)}
    remaining, moved = sum(sizes.values()), set()
    for number in sorted(list(sizes)[1:], key=lambda number: -sizes[number]):
        if remaining <= FIGURES_MAX or sizes[number] < 2:
            break
        remaining -= sizes[number]
        moved.add(number)
    return moved


def _figures(section: Section) -> list[Block]:
    section_blocks = Page("", "", "", (section,)).blocks()
    return [block for block in section_blocks if not isinstance(block, Text)]


def _part_page(page: Page, section: Section) -> Page:
    subsections = (Section("", section.blocks),) if section.blocks else ()
    return Page(
        f"{page.name}-{slug(section.title)}",
        section.title,
        f"A part of [{title_markdown(page.title)}](#{page.name}): {_count_figures(section)}.",
        (*subsections, *section.sections),
        above=page.above or page.name,
        trials={name: trial for name, trial in page.trials.items() if name != PAGE_TRIAL},
    )


def _link_section(part: Page, section: Section) -> Section:
    """Returns the section that replaces a moved section and links to its page."""
    subsection_titles = [title_markdown(subsection.title) for subsection in section.sections]
    sentence = f" It has {listed(subsection_titles)}." if subsection_titles else ""
    link = f"[{title_markdown(part.title)}](#{part.name})"
    return Section(
        section.title, (Text(f"{link}, on a separate page: {_count_figures(section)}.{sentence}"),)
    )


def _count_figures(section: Section) -> str:
    """Returns in words how many tables and charts the section has."""
    figures = _figures(section)
    tables = sum(isinstance(figure, Table) for figure in figures)
    charts = sum(isinstance(figure, Chart) for figure in figures)
    return listed(
        [
            format_count(number, what)
            for number, what in ((tables, "table"), (charts, "picture"))
            if number
        ]
    )
