# SPDX-License-Identifier: MIT
"""Reads an untrusted artifact, and compares its figures with figures made now."""

from __future__ import annotations

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
from schedlab.base.files.formats import check_format
from schedlab.base.files.untrusted import Field, flag, list_of, read_object, text
from schedlab.base.toolchain.versions import commit
from schedlab.errors import FileRefused
from schedlab.machines.folder import TRACE_FILE
from schedlab.report import drawing
from schedlab.report.artifact import FIGURES, FORMAT, LISTING, Figure, as_csv, blocks_of
from schedlab.report.model import Chart
from schedlab.report.specifications import for_paper
from schedlab.runs import collection, results
from schedlab.runs.worker import measure

_HASH = re.compile(r"[0-9a-f]{64}")
_FIGURE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_SHOWN_MAX = 80


@dataclass(frozen=True)
class Artifact:
    """An unpacked artifact, in a temporary folder."""

    folder: Path
    listing: Mapping[str, Any]

    @property
    def figures(self) -> list[Figure]:
        return [
            Figure(figure["name"], figure["label"], figure["title"], figure["page"])
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

    figure: Figure
    same: bool
    """True if the data is identical byte for byte."""
    difference: str
    """The differences, in words."""


@contextmanager
def opened(path: Path) -> Iterator[Artifact]:
    """Unpacks an artifact. Raises FileRefused for other files, and for other releases' formats."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        folder = Path(scratch)
        unpack(path, folder)
        if not (folder / LISTING).is_file():
            raise FileRefused(f"{path}: not an artifact of a report: {LISTING} is missing")
        listing = read_object(folder / LISTING, {})
        check_format(path, listing, FORMAT, "an artifact")
        artifact = Artifact(folder, read_object(folder / LISTING, _FIELDS))
        for run in artifact.runs:
            if not results.is_complete(run):
                raise FileRefused(f"{path}: {run.relative_to(folder)} is listed but is not a run")
        _check_hashes(path, artifact)
        yield artifact


def other_sources(artifact: Artifact) -> str:
    """Returns how this checkout differs from the artifact's sources, in
    words; "" if they are the same.
    """
    then, now = artifact.listing, commit()
    return (
        ""
        if _source_text(then) == _source_text(now)
        else f"it was made at {_source_text(then)}; this is {_source_text(now)}"
    )


def hold(artifact: Artifact, again: Mapping[Path, Path], out: Path) -> list[FigureCheck]:
    """Makes the figures from the repeated runs `again` and the other
    stored runs, and compares them.

    Writes the figures to `out`.
    """
    folders = [again.get(run, run) for run in artifact.runs]
    for run in set(artifact.runs) & set(folders):
        if results.succeeded(results.read_manifest(run)):
            measure(run)
    blocks = blocks_of(collection.read(folders), artifact.figures)
    out.mkdir(parents=True)
    for name, block in blocks.items():
        (out / f"{name}.csv").write_bytes(as_csv(block))
        if isinstance(block, Chart):
            drawing.draw((for_paper(block), str(out / name)))
    return [_check_figure(artifact, figure, out) for figure in artifact.figures]


def _check_figure(artifact: Artifact, figure: Figure, out: Path) -> FigureCheck:
    then = (artifact.folder / FIGURES / f"{figure.name}.csv").read_bytes()
    place = out / f"{figure.name}.csv"
    if not place.is_file():
        return FigureCheck(figure, False, "not in a report of these runs")
    now = place.read_bytes()
    if now == then:
        return FigureCheck(figure, True, "")
    return FigureCheck(figure, False, _first_difference(then, now))


def _first_difference(then: bytes, now: bytes) -> str:
    lines = zip_longest(*(data.decode(errors="replace").splitlines() for data in (then, now)))
    for number, (one, other) in enumerate(lines, start=1):
        if one != other:
            return f"line {number} was {_short(one)} and is {_short(other)}"
    return "ends of lines"


def _short(line: str | None) -> str:
    return "missing" if line is None else repr(line[:_SHOWN_MAX])


def _source_text(sources: Mapping[str, Any]) -> str:
    changes = sources.get("changes_sha256")
    return f"commit {sources.get('commit')}" + (f" with changes {changes[:12]}" if changes else "")


def _check_hashes(path: Path, artifact: Artifact) -> None:
    """Raises FileRefused if the data or the traces do not match the artifact's list of hashes."""
    listed = {f"{FIGURES}/{e['name']}.csv": e["sha256"] for e in artifact.listing["figures"]}
    for run in artifact.listing["runs"]:
        if not run["repeated"] and run.get("trace_sha256"):
            listed[f"{run['folder']}/{TRACE_FILE}"] = run["trace_sha256"]
    for name, digest in listed.items():
        place = artifact.folder / name
        if not place.is_file() or file_hash(place) != digest:
            raise FileRefused(
                f"{path}: {name} does not match its hash in {LISTING}: damaged or changed; "
                "get the artifact again"
            )


def _is_figure(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(
            isinstance(value.get(key), str) for key in ("name", "label", "title", "page", "sha256")
        )
        and _FIGURE_NAME.fullmatch(value["name"]) is not None
    )


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("folder"), str):
        return False
    trace = value.get("trace_sha256")
    return (
        re.fullmatch(r"runs/\d{1,9}", value["folder"]) is not None
        and isinstance(value.get("repeated"), bool)
        and (trace is None or (isinstance(trace, str) and _HASH.fullmatch(trace) is not None))
    )


_FIELDS: Mapping[str, Field] = {
    "schedlab": text(),
    "commit": text(),
    "changed": flag(),
    "changes_sha256": text(),
    "figures": list_of("figures", _is_figure, required=True),
    "runs": list_of("runs", _is_run, required=True),
}
