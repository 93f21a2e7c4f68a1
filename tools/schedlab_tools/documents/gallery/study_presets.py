# SPDX-License-Identifier: MIT
"""Generates a page for each preset of a study: its rule in words, the code, and where they differ."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.base.toolchain.policies import Preset, known_policies, parse_setting
from schedlab.paths import ROOT
from schedlab.studies.study import Statement, Study, find_studies, parse_statement, read_list
from schedlab_tools.documents.gallery.code import with_marks
from schedlab_tools.documents.marked_parts import markdown_templates, marked, with_marked, write

FOLDER = ROOT / "docs" / "gallery"
INDEX = FOLDER / "README.md"
PART = "study presets"
TEMPLATE = "preset.md"
PRESETS_FILE = "presets.yaml"


@dataclass(frozen=True)
class StudyPreset:
    """An entry of a study's presets.yaml."""

    study: Study
    policy: str
    """`POLICY:PRESET`, or `POLICY TUNABLE=VALUE` where no preset is needed."""
    code: str
    """The policy's source file."""
    rule: tuple[Statement, ...]
    differences: tuple[str, ...]
    lines: tuple[str, ...]
    """Pieces of the source lines to mark; the excerpt is the functions around them."""

    @property
    def name(self) -> str:
        """The policy's name."""
        return re.split("[: ]", self.policy)[0]

    @property
    def preset(self) -> Preset | None:
        """The preset, or None if the entry names a tunable's value instead."""
        _, colon, preset = self.policy.partition(":")
        return known_policies()[self.name].presets[preset] if colon else None

    @property
    def file(self) -> Path:
        """The file of the page."""
        return FOLDER / f"study-{self.study.number}-{re.sub('[: =]', '-', self.policy)}.md"


def study_presets() -> list[StudyPreset]:
    """Returns the entries of all studies. Raises FileRefused."""
    expected = "a list of presets, each with policy, code, rule, differences and lines"

    def entries(study: Study) -> tuple[StudyPreset, ...]:
        """Returns the entries of one study."""
        return read_list(study.folder / PRESETS_FILE, lambda entry: _entry(study, entry), expected)

    return [preset for study in find_studies() for preset in entries(study)]


def files() -> tuple[Path, ...]:
    """Returns all files that `make` writes."""
    return (INDEX, *(preset.file for preset in study_presets()))


def make() -> None:
    """Writes all pages and their list. Raises SchedlabError if a marked line is not in the source."""
    for preset in study_presets():
        write(preset.file, page(preset))
    write(INDEX, with_marked(INDEX.read_text("utf-8"), PART, table()))


def page(preset: StudyPreset) -> str:
    """Returns the text of a page. Raises SchedlabError if a marked line is not in the source."""
    source = (ROOT / preset.code).read_text("utf-8")
    return (
        markdown_templates()
        .get_template(TEMPLATE)
        .render(
            preset=preset,
            study=preset.study,
            meaning=meaning(preset),
            settings=list(settings(preset)),
            code=with_marks(source, preset.lines),
        )
    )


def table() -> str:
    """Returns the list of all pages."""
    rows = ["| study | policy | what it is |", "|---|---|---|"]
    rows += [
        f"| {preset.study.number} | [`{preset.policy}`]({preset.file.name}) | {meaning(preset)} |"
        for preset in study_presets()
    ]
    return "\n" + "\n".join(rows) + "\n"


def stored_table() -> str:
    """Returns the list of all pages as stored in the index."""
    return marked(INDEX.read_text("utf-8"), PART)


def meaning(preset: StudyPreset) -> str:
    """Returns the preset's own description, or the policy with the changed tunables."""
    if preset.preset:
        return preset.preset.meaning
    _, _, given = preset.policy.partition(" ")
    return f"`{preset.name}` with {given}"


def settings(preset: StudyPreset) -> Iterator[dict[str, Any]]:
    """Yields the tunables with values other than the defaults."""
    policy = known_policies()[preset.name]
    if preset.preset:
        tunables, values = policy.tunables_of(preset.preset.name), preset.preset.values
    else:
        name, given = parse_setting(preset.policy.partition(" ")[2])
        tunables, values = policy.tunables, {name: given}
    for name, value in values.items():
        if value != tunables[name].default:
            yield {"name": name, "value": value, "meaning": tunables[name].meaning}


def _entry(study: Study, entry: dict[str, Any]) -> StudyPreset:
    rule = tuple(map(parse_statement, entry["rule"]))
    differences, lines = tuple(entry["differences"]), tuple(entry["lines"])
    return StudyPreset(study, entry["policy"], entry["code"], rule, differences, lines)
