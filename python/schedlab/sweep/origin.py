# SPDX-License-Identifier: MIT
"""Records a sweep's sittings and complete input files, by hash, in its data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedlab.base.toolchain.versions import sitting
from schedlab.sweep.plan import Row, SweepPlan
from schedlab.sweep.program_identity import Make, facts_of, made_of, sha256

MADE_OF = "made_of"
"""Member of the manifest that explains the values of the column of the same name."""
SITTINGS = "sittings"
_SHOWN_MAX = 12


@dataclass(frozen=True)
class Origin:
    """The origin of rows: one call of `./schedlab sweep` that executed runs."""

    sitting: Row = field(default_factory=dict)
    made_of: Mapping[str, Row] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts by names that contain their hashes."""

    def merged(self, manifest: Mapping[str, Any]) -> Row:
        """Returns the origin merged with earlier sittings in the manifest."""
        return {
            SITTINGS: [*manifest.get(SITTINGS, []), self.sitting],
            MADE_OF: {**manifest.get(MADE_OF, {}), **self.made_of},
        }

    def edited(self, manifest: Mapping[str, Any]) -> list[str]:
        """Returns workload files whose content differs from an earlier sitting's."""
        before: dict[str, set[str]] = {}
        for facts in manifest.get(MADE_OF, {}).values():
            before.setdefault(facts["workload"], set()).add(facts.get("workload_sha256"))
        return sorted(
            {
                facts["workload"]
                for facts in self.made_of.values()
                if facts["workload_sha256"] not in before.get(facts["workload"], {None})
            }
            & before.keys()
        )


def origin_of(plan: SweepPlan, make: Make) -> Origin:
    """Returns the origin of the planned runs."""
    files = {}
    for point in plan.points:
        if point.run.file:
            files[f"{point.run.file.sha256}.json"] = point.run.file.source
    software = sitting()
    if plan.source:
        software["sweep_file_sha256"] = sha256(plan.source.encode())
        files[f"{software['sweep_file_sha256']}.yaml"] = plan.source
    facts = {made_of(point.run, make): facts_of(point.run, make) for point in plan.points}
    return Origin(software, facts, files)


def differences(facts: Iterable[Row | None]) -> list[str]:
    """Returns, for each, the facts that distinguish it from the others; "unknown" without stored facts."""
    rows = list(facts)
    known = [row for row in rows if row]
    keys = [key for key in (known or [{}])[0] if len({str(row.get(key)) for row in known}) > 1]
    return [
        ", ".join(f"{_word(key)} {str(row.get(key))[:_SHOWN_MAX]}" for key in keys) or "known"
        if row
        else "unknown components"
        for row in rows
    ]


def _word(key: str) -> str:
    return {"workload_sha256": "workload file"}.get(key, key)
