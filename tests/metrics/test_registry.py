# SPDX-License-Identifier: MIT
"""Tests that a metric is declared in one place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import ROOT
from kept_runs import keep_simulated
from schedlab.metrics import registry, schemas

ADDED = """METRICS: tuple[Metric, ...] = (
    Metric("blocked_mean_ns", "time blocked: mean over processes", "blocking", "mean", "blocking", better="lower",
           best="0", rows="processes", value=pl.col("blocked_ns").mean(), in_groups=True),
"""
SCRIPT = """
import io, json, sys
from importlib.abc import MetaPathFinder
from importlib.util import spec_from_file_location
from pathlib import Path

class Changed(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "schedlab.metrics.registry":
            return spec_from_file_location(name, sys.argv[1])

sys.meta_path.insert(0, Changed())

from rich.console import Console
from schedlab import metrics, trace
from schedlab.analysis.comparison.measures import GROUP_MEASURES, MEASURES_BY_NAME, measure_values
from schedlab.commands.metric_tables import tables
from schedlab.courses.grading.lab import FIGURES
from schedlab.report.workload_tables import find_workloads, metrics_table
from schedlab.runs import collection, results
from schedlab.sweep import columns

place = Path(sys.argv[2])
found = metrics.compute(trace.read(place / "trace.bin"))
found.write(place / results.METRICS_FOLDER)
console = Console(width=200, record=True, file=io.StringIO())
for table in tables([("run", found)]):
    console.print(table)
runs = collection.read_collection([place.parent])
compared = measure_values(runs)
(report,) = (metrics_table(runs, each) for each in find_workloads(runs))
print(json.dumps({
    "table": console.export_text().count("blocking"),
    "better": MEASURES_BY_NAME["blocking"].better,
    "of groups": any(each.name == "blocking" for each in GROUP_MEASURES),
    "compared": compared.filter(compared["measure"] == "blocking")["value"].is_not_null().any(),
    "sweep": [each.meaning for each in columns.METRICS if each.name == "blocked_mean_ns"],
    "report": [each.title for each in report.columns if each.group == "blocking"],
    "lab": FIGURES["blocked_mean"],
}))
"""


def test_a_metric_that_is_added_to_the_registry_is_everywhere(tmp_path: Path) -> None:
    keep_simulated(tmp_path / "runs" / "one", seed=1)
    source = Path(registry.__file__).read_text()
    changed = tmp_path / "registry.py"
    changed.write_text(source.replace("METRICS: tuple[Metric, ...] = (\n", ADDED))
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(changed), str(tmp_path / "runs" / "one")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    output = json.loads(result.stdout)
    assert output.pop("table") >= 2  # of the workload, and of its groups
    (title,) = output.pop("report")
    assert title.startswith("mean")
    assert output == {
        "better": "lower",
        "of groups": True,
        "compared": True,
        "sweep": ["time blocked: mean over processes"],
        "lab": True,
    }


def test_columns_of_a_run_have_meanings() -> None:
    known_columns = {"policy", "cpus", "seed", "tick_ns"}
    for table in ("summary", "groups"):
        assert all(
            registry.meaning_of(name) for name in schemas()[table] if name not in known_columns
        )
