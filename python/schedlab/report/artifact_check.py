# SPDX-License-Identifier: MIT
"""Reads an untrusted artifact, and compares its figures with figures made now."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from schedlab.base.files.archive import unpack
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.reading import check_format
from schedlab.base.files.untrusted import Field, flag_field, list_field, read_object, text_field
from schedlab.base.toolchain.versions import commit_facts
from schedlab.errors import FileRefused
from schedlab.machines.folder import TRACE_FILE
from schedlab.report import drawing
from schedlab.report.artifact import (
    ARTIFACT_FORMAT,
    FIGURES_FOLDER,
    LISTING_FILE,
    ArtifactFigure,
    block_csv,
    figure_blocks,
)
from schedlab.report.model import Chart
from schedlab.report.specifications import paper_specification
from schedlab.runs import collection, results
from schedlab.runs.worker import measure_run

_HASH_PATTERN = re.compile(r"[0-9a-f]{64}")
_FIGURE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_LINE_CHARACTERS_MAX = 80


@dataclass(frozen=True)
class Artifact:
    """An unpacked artifact, in a temporary folder."""

    folder: Path
    listing: Mapping[str, Any]

    @property
    def figures(self) -> list[ArtifactFigure]:
        return [
            ArtifactFigure(figure["name"], figure["label"], figure["title"], figure["page"])
            for figure in self.listing["figures"]
        ]

    @property
    def runs(self) -> list[Path]:
        """The folders of all runs, in the order of the report."""
        return [self.folder / run["folder"] for run in self.listing["runs"]]

    @property
    def traces(self) -> dict[Path, str | None]:
        """Hashes of the traces of runs to repeat; None for a run without a trace."""
        return {
            self.folder / run["folder"]: run.get("trace_sha256")
            for run in self.listing["runs"]
            if run["repeated"]
        }


@dataclass(frozen=True)
class FigureCheck:
    """A figure of an artifact, and the result of its comparison."""

    figure: ArtifactFigure
    same: bool
    """True if the data is identical byte for byte."""
    difference: str
    """The differences, in words."""


@contextmanager
def unpacked_artifact(path: Path) -> Iterator[Artifact]:
    """Unpacks an artifact. Raises FileRefused for other files, and for other releases' formats."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        folder = Path(scratch)
        unpack(path, folder)
        if not (folder / LISTING_FILE).is_file():
            raise FileRefused(
                f"not an artifact of a report: {LISTING_FILE} is missing",
                what=str(path),
                fix="name a file that was made with `artifact=FILE`",
            )
        format_fields = read_object(folder / LISTING_FILE, {})
        check_format(path, format_fields, ARTIFACT_FORMAT, "an artifact")
        artifact = Artifact(folder, read_object(folder / LISTING_FILE, _FIELDS))
        for run in artifact.runs:
            if not results.is_complete(run):
                raise FileRefused(
                    f"{run.relative_to(folder)} is listed but is not a run",
                    what=str(path),
                    fix="get the artifact again",
                )
        _check_hashes(path, artifact)
        yield artifact


def source_difference(artifact: Artifact) -> str:
    """Returns how this checkout differs from the artifact's sources, in
    words; "" if they are the same.
    """
    stored, current = artifact.listing, commit_facts()
    return (
        ""
        if _source_text(stored) == _source_text(current)
        else f"it was made at {_source_text(stored)}; this is {_source_text(current)}"
    )


def compare_figures(
    artifact: Artifact, repeated_runs: Mapping[Path, Path], out: Path
) -> list[FigureCheck]:
    """Makes the figures from the repeated runs `repeated_runs` and the other
    stored runs, and compares them.

    Writes the figures to `out`.
    """
    folders = [repeated_runs.get(run, run) for run in artifact.runs]
    for run in set(artifact.runs) & set(folders):
        if results.has_succeeded(results.read_manifest(run)):
            measure_run(run)
    blocks = figure_blocks(collection.read_collection(folders), artifact.figures)
    out.mkdir(parents=True)
    for name, block in blocks.items():
        (out / f"{name}.csv").write_bytes(block_csv(block))
        if isinstance(block, Chart):
            drawing.draw_files((paper_specification(block), str(out / name)))
    return [_check_figure(artifact, figure, out) for figure in artifact.figures]


def _check_figure(artifact: Artifact, figure: ArtifactFigure, out: Path) -> FigureCheck:
    """Compares a figure's stored CSV file with the new one in `out`."""
    stored = (artifact.folder / FIGURES_FOLDER / f"{figure.name}.csv").read_bytes()
    path = out / f"{figure.name}.csv"
    if not path.is_file():
        return FigureCheck(figure, False, "not in a report of these runs")
    repeated = path.read_bytes()
    if repeated == stored:
        return FigureCheck(figure, True, "")
    return FigureCheck(figure, False, _first_difference(stored, repeated))


def _first_difference(stored: bytes, repeated: bytes) -> str:
    """Returns in words the first line where two CSV files differ."""
    lines = zip_longest(
        *(data.decode(errors="replace").splitlines() for data in (stored, repeated))
    )
    for number, (one, other) in enumerate(lines, start=1):
        if one != other:
            return f"line {number} was {_shorten_line(one)} and is {_shorten_line(other)}"
    return "ends of lines"


def _shorten_line(line: str | None) -> str:
    """Shortens a line for a message; None means the line is missing."""
    return "missing" if line is None else repr(line[:_LINE_CHARACTERS_MAX])


def _source_text(sources: Mapping[str, Any]) -> str:
    """Returns the commit and the hash of its changes in words."""
    changes = sources.get("changes_sha256")
    return f"commit {sources.get('commit')}" + (f" with changes {changes[:12]}" if changes else "")


def _check_hashes(path: Path, artifact: Artifact) -> None:
    """Raises FileRefused if the data or the traces do not match the artifact's list of hashes."""
    expected_hashes = {
        f"{FIGURES_FOLDER}/{e['name']}.csv": e["sha256"] for e in artifact.listing["figures"]
    }
    for run in artifact.listing["runs"]:
        if not run["repeated"] and run.get("trace_sha256"):
            expected_hashes[f"{run['folder']}/{TRACE_FILE}"] = run["trace_sha256"]
    for name, digest in expected_hashes.items():
        file = artifact.folder / name
        if not file.is_file() or file_hash(file) != digest:
            raise FileRefused(
                f"{path}: {name} does not match its hash in {LISTING_FILE}: damaged or changed; "
                "get the artifact again"
            )


def _is_figure(value: Any) -> bool:
    """Returns whether the value has the form of a figure in the list of an artifact."""
    return (
        isinstance(value, dict)
        and all(
            isinstance(value.get(key), str) for key in ("name", "label", "title", "page", "sha256")
        )
        and _FIGURE_NAME_PATTERN.fullmatch(value["name"]) is not None
    )


def _is_run(value: Any) -> bool:
    """Returns whether the value has the form of a run in the list of an artifact."""
    if not isinstance(value, dict) or not isinstance(value.get("folder"), str):
        return False
    trace = value.get("trace_sha256")
    return (
        re.fullmatch(r"runs/\d{1,9}", value["folder"]) is not None
        and isinstance(value.get("repeated"), bool)
        and (
            trace is None or (isinstance(trace, str) and _HASH_PATTERN.fullmatch(trace) is not None)
        )
    )


_FIELDS: Mapping[str, Field] = {
    "schedlab": text_field(),
    "commit": text_field(),
    "changed": flag_field(),
    "changes_sha256": text_field(),
    "figures": list_field("figures", _is_figure, required=True),
    "runs": list_field("runs", _is_run, required=True),
}
