# SPDX-License-Identifier: MIT
"""One file that holds what figures of a report are made of, so that another machine makes them again."""

from __future__ import annotations

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
from schedlab.base.files.whole import file_hash
from schedlab.base.toolchain.versions import changes, commit
from schedlab.errors import WrongUsage, parameter
from schedlab.machines.folder import (
    CONSOLE,
    SHAPE_FILE,
    TRACE_FILE,
    TYPED,
    WORKLOAD_FILE,
    WORKLOAD_PLAYED,
    WORKLOAD_TEXT,
)
from schedlab.report.build import only_pages
from schedlab.report.files import FOLDER as FILES
from schedlab.report.latex import citation
from schedlab.report.markup import plain_title
from schedlab.report.model import Chart, Table, Text
from schedlab.report.output import MARK
from schedlab.report.runs import page_name
from schedlab.report.workload_tables import workloads
from schedlab.runs import results
from schedlab.runs.again import command_of
from schedlab.runs.collection import Collection, Kept
from schedlab.runs.results import LOOKS, looks_text
from schedlab.studies.experiments import EXPERIMENTS

FORMAT = 1
LISTING = "artifact.json"
FIGURES = "figures"
SUFFIX = ".zip"
CHANGES = "changes.patch"
_README = Path(__file__).parent / "templates" / "artifact.md"
_WHOLE = (
    *(results.MANIFEST, TRACE_FILE, CONSOLE, TYPED, SHAPE_FILE),
    *(WORKLOAD_FILE, WORKLOAD_PLAYED, WORKLOAD_TEXT),
)
_OF_AGAIN = (results.MANIFEST, WORKLOAD_FILE, SHAPE_FILE)
"""What is kept of a run that is carried out again."""


@dataclass(frozen=True)
class Figure:
    """A table or chart of a report. `label`: `Figure 3`."""

    name: str
    label: str
    title: str
    page: str


def figures_in(report: Path) -> list[Figure]:
    """Returns all tables and charts of the report in a folder, except lists, which are of no paper."""
    told = json.loads((report / MARK).read_text(encoding="utf-8"))
    return [
        Figure(block["name"], block["label"], block["title"], page["name"])
        for page in told["pages"]
        for block in page["blocks"]
        if not block["list"]
    ]


def chosen(figures: Sequence[Figure], wanted: Sequence[str]) -> list[Figure]:
    """Returns those that are named: by name, number (`4` is Figure 4) or label (`table 12`). () means all.

    Raises WrongUsage for what is not there.
    """
    by_word = {word: each for each in figures for word in (each.name, each.label.lower())}
    found = []
    for word in wanted:
        label = f"figure {word}" if re.fullmatch(r"\d+", word) else " ".join(word.lower().split())
        each = by_word.get(word) or by_word.get(label)
        if each is None:
            raise WrongUsage(
                "the report has no such figure or table",
                what=parameter("figures", word),
                fix="use a number, as `4` or `table 12`, or a name, the last part of its address",
            )
        found.append(each)
    return found or list(figures)


def check_place(place: Path) -> None:
    """Raises WrongUsage for a place that is not to be written to."""
    from schedlab.base.files.placing import check_file

    if place.suffix != SUFFIX:
        raise WrongUsage(
            "the artifact is a zip file",
            what=parameter("artifact", place),
            fix=f"use a name that ends in {SUFFIX}",
        )
    check_file("artifact", place)


def write_artifact(
    place: Path, collection: Collection, report: Path, wanted: Sequence[str]
) -> list[Figure]:
    """Writes the artifact of figures of a report, which is in a folder, of these runs; returns the figures."""
    figures = chosen(figures_in(report), wanted)
    data = {each.name: (report / FILES / f"{each.name}.csv").read_bytes() for each in figures}
    runs = needed(collection, figures, data) if wanted else collection
    sources = commit()
    patch = changes() if "changes_sha256" in sources else b""
    _warn(runs, sources)
    kept = [(f"runs/{number}", run) for number, run in enumerate(runs, start=1)]
    listing = {
        "format": FORMAT,
        "schedlab": __version__,
        **sources,
        "figures": [
            {**vars(each), "sha256": hashlib.sha256(data[each.name]).hexdigest()}
            for each in figures
        ],
        "runs": [
            {"folder": name, "repeated": is_repeated(run), "trace_sha256": trace_hash(run.folder)}
            for name, run in kept
        ],
    }
    files: dict[str, bytes | Path] = {
        LISTING: (json_text(listing, indent=2) + "\n").encode(),
        "README.md": _readme(place.name, figures, runs, sources).encode(),
        "schedlab.bib": citation().encode(),
        **({CHANGES: patch} if patch else {}),
        f"runs/{LOOKS}": looks_text(max((run.looks for run in runs), default=1)).encode(),
    }
    for each in figures:
        for path in sorted((report / FILES).glob(f"{each.name}.*")):
            if path.suffix in (".csv", ".svg"):
                files[f"{FIGURES}/{path.name}"] = path
    for name, run in kept:
        for own in _OF_AGAIN if is_repeated(run) else _WHOLE:
            if (run.folder / own).is_file():
                files[f"{name}/{own}"] = run.folder / own
    write_archive(place, files)
    return figures


def is_repeated(run: Kept) -> bool:
    """Can it be carried out again, with the same outcome? Of any other, the artifact holds the trace."""
    return bool(run.manifest.get("repeatable", True)) and command_of(run.manifest) is not None


def trace_hash(folder: Path) -> str | None:
    """Returns the SHA-256 of a run's trace, or None if it has none."""
    trace = folder / TRACE_FILE
    return file_hash(trace) if trace.is_file() else None


def data_of(collection: Collection, figures: Iterable[Figure]) -> dict[str, bytes]:
    """Returns the data behind figures, as a report of these runs has them in CSV: those that there are, by name."""
    return {name: as_csv(block) for name, block in blocks_of(collection, figures).items()}


def blocks_of(collection: Collection, figures: Iterable[Figure]) -> dict[str, Table | Chart]:
    """Returns the figures, as a report of these runs has them: those that there are, by name."""
    wanted = {each.name: each.page for each in figures}
    return {
        block.name: block
        for page in only_pages(collection, set(wanted.values()))
        for each in page.blocks()
        for block in ((each, *each.still) if isinstance(each, Chart) else (each,))
        if not isinstance(block, Text) and block.name in wanted
    }


def as_csv(block: Table | Chart) -> bytes:
    """Returns the numbers behind it, as in its file."""
    file = BytesIO()
    write_csv(block.data, file)
    return file.getvalue()


# --- which runs


def needed(
    collection: Collection, figures: Sequence[Figure], data: Mapping[str, bytes]
) -> Collection:
    """Returns the runs of the studies and workloads on whose pages figures stand, if these give the same data;
    else all runs."""
    own = _of(collection, _of_pages(collection, {each.page for each in figures}))
    return own if len(own) and data_of(own, figures) == data else collection


def _of(collection: Collection, labels: Iterable[str]) -> Collection:
    wanted = set(labels)
    return Collection(run for run in collection if run.setup.experiment in wanted)


def _of_pages(collection: Collection, pages: set[str]) -> list[str]:
    """Returns the experiments of studies and workloads that have a page of these names, which may be a part of it,
    or [] if another page is among them."""
    found: dict[str, None] = {}
    named = set()
    for workload in workloads(collection):
        label = workload.first.experiment
        study = EXPERIMENTS[label].study if label in EXPERIMENTS else None
        for page in pages:
            if page == page_name(workload) or f"{page}-".startswith(f"study-{study}-"):
                found[label] = None
                named.add(page)
    return list(found) if named == pages else []


# --- what is said of it


def _warn(runs: Collection, sources: Mapping[str, Any]) -> None:
    count = sum(not _is_of(run, sources) for run in runs)
    if count:
        say(
            f"schedlab: {count} of {len(runs)} runs were made by sources that have "
            "changed since; `./schedlab verify` of the artifact shows whether the "
            "current sources give the same results"
        )


def _is_of(run: Kept, sources: Mapping[str, Any]) -> bool:
    """Was it made by these sources?"""
    same = all(run.manifest.get(key) == sources.get(key) for key in ("commit", "changes_sha256"))
    # A run of an earlier release does not say which changes there were.
    unknown = run.manifest.get("changed") and "changes_sha256" not in run.manifest
    return same and not (unknown and "changes_sha256" in sources)


def _readme(
    name: str, figures: Sequence[Figure], runs: Collection, sources: Mapping[str, Any]
) -> str:
    head = sources["commit"]
    patched = "changes_sha256" in sources
    steps = [
        *([f"git checkout {head}"] if head else []),
        *([f"unzip -p {name} {CHANGES} | git apply"] if patched else []),
        f"./schedlab verify {name}",
    ]
    others = sum(not is_repeated(run) for run in runs)
    rows = (
        f"| {each.label} | {literal(plain_title(each.title))} | `{FIGURES}/{each.name}.csv` |"
        for each in figures
    )
    machines = dict.fromkeys(
        f"{run.manifest['machine']} {run.manifest.get('machine_version') or ''}".strip()
        for run in runs
    )
    return Template(_README.read_text()).substitute(
        version=__version__,
        commit=f", commit {head}" if head else "",
        changed=f" with the changes in `{CHANGES}`" if patched else "",
        steps="\n".join(f"    {step}" for step in steps),
        runs=len(runs),
        machines="; ".join(literal(each) for each in machines),
        figures="\n".join(rows),
        others=f"\n{others} of the runs cannot be carried out again; their traces are in the file, and are measured"
        " again."
        if others
        else "",
    )
