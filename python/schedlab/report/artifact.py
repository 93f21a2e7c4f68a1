# SPDX-License-Identifier: MIT
"""Writes an artifact: one file with the data and runs of figures, so that another machine can repeat the runs."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any

from schedlab import __version__
from schedlab.base.display.markdown import literal
from schedlab.base.display.names import json_text, write_csv
from schedlab.base.display.terminal import say
from schedlab.base.files.archive import write_archive
from schedlab.base.toolchain.versions import commit_facts, uncommitted_patch
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.folder import (
    BINARY_WORKLOAD_FILE,
    CONSOLE_FILE,
    SHAPE_FILE,
    TRACE_FILE,
    TYPED_FILE,
    WORKLOAD_FILE,
    WORKLOAD_TEXT_FILE,
)
from schedlab.report.build import make_selected_pages
from schedlab.report.files import FILES_FOLDER as FILES
from schedlab.report.files import REPORT_FILE
from schedlab.report.latex import citation
from schedlab.report.markup import plain_title
from schedlab.report.model import Chart, Table, Text
from schedlab.report.runs import workload_page_name
from schedlab.report.workload_tables import find_workloads
from schedlab.runs import results
from schedlab.runs.collection import Collection, StoredRun
from schedlab.runs.repeat_commands import repeat_command
from schedlab.runs.results import EVALUATIONS_FILE, sequential_checks_json
from schedlab.studies.experiments import EXPERIMENTS

ARTIFACT_FORMAT = 1
LISTING_FILE = "artifact.json"
FIGURES_FOLDER = "figures"
ARTIFACT_SUFFIX = ".zip"
CHANGES_FILE = "changes.patch"
_README_TEMPLATE = Path(__file__).parent / "templates" / "artifact.md"
_ALL_FILES = (
    *(results.MANIFEST_FILE, TRACE_FILE, CONSOLE_FILE, TYPED_FILE, SHAPE_FILE),
    *(WORKLOAD_FILE, BINARY_WORKLOAD_FILE, WORKLOAD_TEXT_FILE),
)
_FILES_TO_REPEAT = (results.MANIFEST_FILE, WORKLOAD_FILE, SHAPE_FILE)
"""Names of the files that an artifact stores for a repeatable run."""


@dataclass(frozen=True)
class ArtifactFigure:
    """A table or chart of a report, with a `label` such as `Figure 3`."""

    name: str
    label: str
    title: str
    page: str


def figures_in(report: Path) -> list[ArtifactFigure]:
    """Returns the tables and charts of the report in a folder.

    Lists are excluded: no paper prints them.
    """
    content = json.loads((report / REPORT_FILE).read_text(encoding="utf-8"))
    return [
        ArtifactFigure(block["name"], block["label"], block["title"], page["name"])
        for page in content["pages"]
        for block in page["blocks"]
        if not block["list"]
    ]


def select_figures(figures: Sequence[ArtifactFigure], names: Sequence[str]) -> list[ArtifactFigure]:
    """Returns the figures with these names, numbers (`4` is Figure 4) or
    labels (`table 12`). () means all.

    Raises WrongUsage for an unknown figure.
    """
    by_word = {word: figure for figure in figures for word in (figure.name, figure.label.lower())}
    chosen_figures = []
    for word in names:
        label = f"figure {word}" if re.fullmatch(r"\d+", word) else " ".join(word.lower().split())
        figure = by_word.get(word) or by_word.get(label)
        if figure is None:
            raise WrongUsage(
                "the report has no such figure or table",
                what=format_parameter("figures", word),
                fix="use a number, such as `4` or `table 12`, or the name at the end of its address",
            )
        chosen_figures.append(figure)
    return chosen_figures or list(figures)


def check_artifact_path(path: Path) -> None:
    """Raises WrongUsage unless an artifact can be written to this path."""
    from schedlab.base.files.replacement import check_file

    if path.suffix != ARTIFACT_SUFFIX:
        raise WrongUsage(
            "the artifact is a zip file",
            what=format_parameter("artifact", path),
            fix=f"use a name that ends in {ARTIFACT_SUFFIX}",
        )
    check_file("artifact", path)


def write_artifact(
    place: Path, collection: Collection, report: Path, names: Sequence[str]
) -> list[ArtifactFigure]:
    """Writes an artifact of figures of the report in the folder `report`, and returns the figures.

    `collection`: the report's runs. `names`: the figures, as `select_figures` accepts them.
    """
    figures = select_figures(figures_in(report), names)
    tables = {
        figure.name: (report / FILES / f"{figure.name}.csv").read_bytes() for figure in figures
    }
    runs = select_needed_runs(collection, figures, tables) if names else collection
    sources = commit_facts()
    patch = uncommitted_patch() if "changes_sha256" in sources else b""
    _warn_of_other_sources(runs, sources)
    run_folders = [(f"runs/{number}", run) for number, run in enumerate(runs, start=1)]
    listing = {
        "format": ARTIFACT_FORMAT,
        "schedlab": __version__,
        **sources,
        "figures": [
            {**vars(figure), "sha256": hashlib.sha256(tables[figure.name]).hexdigest()}
            for figure in figures
        ],
        "runs": [
            {
                "folder": name,
                "repeated": is_repeated(run),
                "trace_sha256": results.hash_trace(run.folder),
            }
            for name, run in run_folders
        ],
    }
    files: dict[str, bytes | Path] = {
        LISTING_FILE: (json_text(listing, indent=2) + "\n").encode(),
        "README.md": _readme_text(place.name, figures, runs, sources).encode(),
        "schedlab.bib": citation().encode(),
        **({CHANGES_FILE: patch} if patch else {}),
        f"runs/{EVALUATIONS_FILE}": sequential_checks_json(
            max((run.evaluations_max for run in runs), default=1)
        ).encode(),
    }
    for figure in figures:
        for path in sorted((report / FILES).glob(f"{figure.name}.*")):
            if path.suffix in (".csv", ".svg"):
                files[f"{FIGURES_FOLDER}/{path.name}"] = path
    for name, run in run_folders:
        for file in _FILES_TO_REPEAT if is_repeated(run) else _ALL_FILES:
            if (run.folder / file).is_file():
                files[f"{name}/{file}"] = run.folder / file
    write_archive(place, files)
    return figures


def is_repeated(run: StoredRun) -> bool:
    """True if a repetition of the run gives the same outcome. For other runs, the artifact stores the trace."""
    return bool(run.manifest.get("repeatable", True)) and repeat_command(run.manifest) is not None


def figure_data(collection: Collection, figures: Iterable[ArtifactFigure]) -> dict[str, bytes]:
    """Returns the CSV data of figures by name.

    Figures that a report of these runs does not have are missing.
    """
    return {name: block_csv(block) for name, block in figure_blocks(collection, figures).items()}


def figure_blocks(
    collection: Collection, figures: Iterable[ArtifactFigure]
) -> dict[str, Table | Chart]:
    """Returns the figures by name.

    Figures that a report of these runs does not have are missing.
    """
    page_by_figure = {figure.name: figure.page for figure in figures}
    return {
        block.name: block
        for page in make_selected_pages(collection, set(page_by_figure.values()))
        for page_block in page.blocks()
        for block in (
            (page_block, *page_block.still) if isinstance(page_block, Chart) else (page_block,)
        )
        if not isinstance(block, Text) and block.name in page_by_figure
    }


def block_csv(block: Table | Chart) -> bytes:
    """Returns a figure's numbers, as in its CSV file."""
    file = BytesIO()
    write_csv(block.data, file)
    return file.getvalue()


# --- selection of runs


def select_needed_runs(
    collection: Collection, figures: Sequence[ArtifactFigure], data: Mapping[str, bytes]
) -> Collection:
    """Returns the runs that the figures need: the runs of the studies and workloads whose pages contain the figures.

    If a report of these runs has other data, returns all runs.
    """
    candidates = _select_labels(
        collection, _labels_of_pages(collection, {figure.page for figure in figures})
    )
    return (
        candidates if len(candidates) and figure_data(candidates, figures) == data else collection
    )


def _select_labels(collection: Collection, labels: Iterable[str]) -> Collection:
    """Returns the runs of these experiments and workloads."""
    label_set = set(labels)
    return collection.of([run for run in collection if run.setup.experiment in label_set])


def _labels_of_pages(collection: Collection, pages: set[str]) -> list[str]:
    """Returns the experiments and workloads of pages, given the names of pages or of their parts.

    Returns [] if a page belongs to neither a study nor a workload.
    """
    labels: dict[str, None] = {}
    listed_pages = set()
    for workload in find_workloads(collection):
        label = workload.first.experiment
        study = EXPERIMENTS[label].study if label in EXPERIMENTS else None
        for page in pages:
            if page == workload_page_name(workload) or f"{page}-".startswith(f"study-{study}-"):
                labels[label] = None
                listed_pages.add(page)
    return list(labels) if listed_pages == pages else []


# --- description of the artifact


def _warn_of_other_sources(runs: Collection, sources: Mapping[str, Any]) -> None:
    """Warns if runs were made by sources other than these."""
    count = sum(not _is_made_by(run, sources) for run in runs)
    if count:
        say(
            f"schedlab: {count} of {len(runs)} runs were made by other sources; `./schedlab"
            " verify` of the artifact shows whether the "
            "current sources give the same results"
        )


def _is_made_by(run: StoredRun, sources: Mapping[str, Any]) -> bool:
    """Returns whether the run was made by these sources."""
    same = all(run.manifest.get(key) == sources.get(key) for key in ("commit", "changes_sha256"))
    # Runs of earlier releases do not record their uncommitted changes.
    unknown = run.manifest.get("changed") and "changes_sha256" not in run.manifest
    return same and not (unknown and "changes_sha256" in sources)


def _readme_text(
    name: str, figures: Sequence[ArtifactFigure], runs: Collection, sources: Mapping[str, Any]
) -> str:
    """Returns the artifact's README: its figures, and the steps that repeat the runs."""
    commit_hash = sources["commit"]
    has_changes = "changes_sha256" in sources
    steps = [
        *([f"git checkout {commit_hash}"] if commit_hash else []),
        *([f"unzip -p {name} {CHANGES_FILE} | git apply"] if has_changes else []),
        f"./schedlab verify {name}",
    ]
    unrepeated_count = sum(not is_repeated(run) for run in runs)
    rows = (
        f"| {figure.label} | {literal(plain_title(figure.title))} | `{FIGURES_FOLDER}/{figure.name}.csv` |"
        for figure in figures
    )
    machines = dict.fromkeys(
        f"{run.manifest['machine']} {run.manifest.get('machine_version') or ''}".strip()
        for run in runs
    )
    return Template(_README_TEMPLATE.read_text()).substitute(
        version=__version__,
        commit=f", commit {commit_hash}" if commit_hash else "",
        changed=f" with the changes in `{CHANGES_FILE}`" if has_changes else "",
        steps="\n".join(f"    {step}" for step in steps),
        runs=len(runs),
        machines="; ".join(literal(machine) for machine in machines),
        figures="\n".join(rows),
        others=f"\n{unrepeated_count} of the runs cannot be repeated; their traces are in the file"
        " and are measured again."
        if unrepeated_count
        else "",
    )
