# SPDX-License-Identifier: MIT
"""Records a sweep's sittings and complete input files, by hash, in its data set."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedlab.base.toolchain.versions import process_facts
from schedlab.sweep.plan import Row, SweepPlan
from schedlab.sweep.program_identity import ProgramSet, hash_content, inputs_hash, run_inputs

MADE_OF_KEY = "made_of"
"""Member of the manifest that explains the values of the column of the same name."""
SITTINGS_KEY = "sittings"
_CHARACTERS_MAX = 12


@dataclass(frozen=True)
class Origin:
    """The origin of rows: one call of `./schedlab sweep` that executed runs."""

    process_facts: Row = field(default_factory=dict)
    made_of: Mapping[str, Row] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts by names that contain their hashes."""

    def merged(self, manifest: Mapping[str, Any]) -> Row:
        """Returns the origin merged with earlier sittings in the manifest."""
        return {
            SITTINGS_KEY: [*manifest.get(SITTINGS_KEY, []), self.process_facts],
            MADE_OF_KEY: {**manifest.get(MADE_OF_KEY, {}), **self.made_of},
        }

    def edited_files(self, manifest: Mapping[str, Any]) -> list[str]:
        """Returns workload files whose content differs from an earlier sitting's."""
        hashes_by_file: dict[str, set[str]] = {}
        for facts in manifest.get(MADE_OF_KEY, {}).values():
            hashes_by_file.setdefault(facts["workload"], set()).add(facts.get("workload_sha256"))
        return sorted(
            {
                facts["workload"]
                for facts in self.made_of.values()
                if facts["workload_sha256"] not in hashes_by_file.get(facts["workload"], {None})
            }
            & hashes_by_file.keys()
        )


def make_origin(plan: SweepPlan, program_set: ProgramSet) -> Origin:
    """Returns the origin of the planned runs."""
    files = {}
    for point in plan.points:
        if point.run.file:
            files[f"{point.run.file.sha256}.json"] = point.run.file.source
    software = process_facts()
    if plan.source:
        software["sweep_file_sha256"] = hash_content(plan.source.encode())
        files[f"{software['sweep_file_sha256']}.yaml"] = plan.source
    facts = {
        inputs_hash(point.run, program_set): run_inputs(point.run, program_set)
        for point in plan.points
    }
    return Origin(software, facts, files)


def distinguishing_facts(facts: Iterable[Row | None]) -> list[str]:
    """Returns, for each, the facts that distinguish it from the others; "unknown" without stored facts."""
    rows = list(facts)
    known = [row for row in rows if row]
    keys = [key for key in (known or [{}])[0] if len({str(row.get(key)) for row in known}) > 1]
    return [
        ", ".join(f"{_key_words(key)} {str(row.get(key))[:_CHARACTERS_MAX]}" for key in keys)
        or "known"
        if row
        else "unknown components"
        for row in rows
    ]


def _key_words(key: str) -> str:
    return {"workload_sha256": "workload file"}.get(key, key)
