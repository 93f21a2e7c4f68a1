# SPDX-License-Identifier: MIT
"""Tests the search for the best configuration: its proposals, the results it receives, and a
real search.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Command
from schedlab.base.toolchain.policies import Catalogue, Policy, Tunable
from schedlab.sweep import description_reader
from schedlab.sweep.description import Description
from schedlab.sweep.expansion import Setup
from schedlab.sweep.optimizer import Budget, Search, Values
from sweeps import WORKLOAD

CATALOGUE: Catalogue = {
    name: Policy(
        name,
        "",
        "",
        tunables={
            tunable_name: Tunable(tunable_name, "ticks", 1, 4, 100_000) for tunable_name in tunables
        },
    )
    for name, tunables in {
        "rr": ["slice"],
        "mlfq": ["slice_0", "slice_1"],
        "fifo": ["none"],
    }.items()
}
SPACE = """
workloads: w.json
policies:
  - fifo
  - {policy: rr, set: {slice: [64, 1, 16, 4, 2, 8, 32, 512]}}
  - policy: mlfq
    set: {slice_0: {from: 1, to: 1000, log: true}, slice_1: 1..1000}
    where: slice_1 <= slice_0
    sample: {method: sobol, count: 9}
seeds: 1,2
"""


def described(folder: Path, text: str) -> Description:
    (folder / "w.json").write_text(WORKLOAD)
    (folder / "sweep.yaml").write_text(text)
    return description_reader.read_description(folder / "sweep.yaml", {}, CATALOGUE, searched=True)


def measured(setup: Setup) -> Values:
    """The best value is 0, at 200 and 50; rr's best is 4, at 16; a mistake of rr fails."""
    entry, settings = setup
    at = dict(settings)
    if entry.policy.name == "mlfq":
        return [abs(at["slice_0"] / 200 - 1) + abs(at["slice_1"] / 50 - 1)]
    return None if at.get("slice") == 512 else [4 + abs(at.get("slice", 1000) - 16)]


def tried(search: Search, value: Callable[[Setup], Values] = measured) -> list[Setup]:
    tried_configurations: list[Setup] = []
    for chosen in search.rounds():
        tried_configurations += chosen
        search.report_results([value(configuration) for configuration in chosen])
    return tried_configurations


def test_search_approaches_the_best_and_repeats(tmp_path: Path) -> None:
    description = described(tmp_path, SPACE)
    tried_configurations = tried(Search(description, Budget(100, 1), ["lower"]))
    assert len(tried_configurations) == 50  # with two seeds each
    assert len({(entry.choice, settings) for entry, settings in tried_configurations}) == 50
    assert all(
        dict(settings)["slice_1"] <= dict(settings)["slice_0"]
        for entry, settings in tried_configurations
        if entry.conditions
    )
    assert [entry.policy.name for entry, _ in tried_configurations[:9]] == ["fifo"] + ["rr"] * 8, (
        "all of few"
    )
    values = [
        value[0] for configuration in tried_configurations if (value := measured(configuration))
    ]
    assert min(values[:17]) > 0.5 > min(values), "nothing is known before"
    begin = tried(Search(description, Budget(50, 1), ["lower"]))
    assert (
        begin == tried_configurations[:25] != tried(Search(description, Budget(50, 2), ["lower"]))
    )


def test_a_search_may_be_for_the_most_or_for_two_metrics(tmp_path: Path) -> None:
    def negative(setup: Setup) -> Values:
        values = measured(setup)
        return values and [-values[0]]

    def both(setup: Setup) -> Values:
        values = measured(setup)
        return values and [values[0], 5 - values[0]]

    description = described(tmp_path, SPACE)
    least = tried(Search(description, Budget(50, 1), ["lower"]))
    assert tried(Search(description, Budget(50, 1), ["higher"]), negative) == least
    assert len(tried(Search(description, Budget(50, 1), ["lower", "higher"]), both)) == 25


def test_a_search_is_run_and_its_best_measured_again(tmp_path: Path, schedlab: Command) -> None:
    (tmp_path / "w.json").write_text(WORKLOAD)
    call = (
        "sweep", "--workload", str(tmp_path / "w.json"), "--policy", "rr", "--set", "slice=1..40",
        "--seeds", "1,2", "--search", "24", "--best", "turnaround",
    )  # fmt: skip
    one = schedlab(*call, "--jobs", "1", "--out", str(tmp_path / "one"), "--json")
    assert one.returncode == 0, one.stderr
    output = json.loads(one.stdout)
    searched, places = output["search"], output["scenes"][0]["setups"]
    assert (searched["runs"], searched["setups"], searched["grid_setups"]) == (24, 12, 40)
    assert searched["best"]["settings"] == places[0]["settings"]
    assert searched["again"]["seeds"] == [3, 4]
    assert len(places) == 12
    search_file = tmp_path / "said.yaml"
    policy = "{policy: rr, set: {slice: 1..40}}"
    search_file.write_text(f"workloads: w.json\npolicies: {policy}\nseeds: 1..2\nsearch: 24\n")
    options = ("--best", "turnaround", "--jobs", "2", "--out", str(tmp_path / "two"), "--json")
    again = schedlab("sweep", str(search_file), *options)
    assert json.loads(again.stdout)["scenes"][0]["setups"] == places
    assert json.loads(again.stdout)["search"] == searched
    search_file.write_text(search_file.read_text().replace("24", "many"))
    wrong = schedlab("sweep", str(search_file), *options)
    assert wrong.returncode == 2
    assert 'said.yaml:4: search: "many": expected a number of runs, or RUNS:SEED' in wrong.stderr
    completed = schedlab(*call, "--out", str(tmp_path / "one"))
    assert (
        "Searched: 12 configurations, 24 runs; the full grid has 40 configurations, 80 runs."
        in completed.stdout
    )
    assert "again with seeds 3 to 4" in completed.stdout
