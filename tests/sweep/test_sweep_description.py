# SPDX-License-Identifier: MIT
"""Tests descriptions of sweeps: their expansion, and the messages for wrong ones."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.files.json_lines import JsonError, Node
from schedlab.base.toolchain.policies import Catalogue, Policy, Preset, Tunable
from schedlab.commands import sweep_options as options
from schedlab.errors import WrongUsage
from schedlab.sweep import command, description, description_reader, expansion, ranges, yaml_lines
from schedlab.sweep.expansion import Point, count_runs_max, expand
from schedlab.sweep.plan import SweepPlan
from schedlab.sweep.program_identity import ProgramSet

MIXED = ROOT / "workloads" / "files" / "study4-mixed.json"
CATALOGUE: Catalogue = {
    "rr": Policy("rr", "", "", tunables={"slice": Tunable("slice", "ticks of a turn", 1, 1, 100)}),
    "mlfq": Policy(
        "mlfq",
        "",
        "",
        tunables={
            name: Tunable(name, "ticks", 0, standard, 100_000)
            for name, standard in (("slice_0", 8), ("slice_1", 4), ("boost", 480))
        },
        presets={"short": Preset("short", "", {"slice_0": 2})},
    ),
}

MAKE = ProgramSet({}, {"sim": {}}, {})


def node(text: str) -> Node:
    return yaml_lines.parse_yaml(text)


def sweep(folder: Path, text: str, **given: Node) -> list[Point]:
    """Returns the runs of a sweep of study4-mixed.json; the text contains the other settings."""
    path = folder / "sweep.yaml"
    path.write_text(text.replace("MIXED", str(MIXED)))
    return expand(description_reader.read_description(path, given, CATALOGUE))


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(WrongUsage) as error:
        sweep(folder, text)
    return str(error.value).replace(f"{folder}/", "")


def settings(points: list[Point]) -> list[dict[str, int]]:
    return [dict(point.run.settings) for point in points]


# --- values


@pytest.mark.parametrize(
    "text",
    [
        *("x", "1.5", "true", "[]", "[1, [2]]", "[1, 2, 1]", "4..1", "4-1", "1-3,2", "1-999999,7"),
        *("0..8*2", "1..8*1", "1..8+0", "{from: 1}", "{from: 1, to: 2, step: 1, factor: 2}"),
        *("{from: 1, to: 2, by: 2}", "{from: 0, to: 2, log: true}"),
    ],
)
def test_values_that_are_none(text: str) -> None:
    with pytest.raises(JsonError, match=r"expected|twice|first|at most|unknown"):
        ranges.read_integers(node(text))


def test_values_have_equal_room() -> None:
    places = [(number + 0.5) / 12 for number in range(12)]
    assert [ranges.Span(1, 7, 2).at(place) for place in places] == [1] * 3 + [3] * 3 + [5] * 3 + [
        7
    ] * 3
    assert [ranges.Listed((9, 1, 4)).at(place) for place in places] == [9] * 4 + [1] * 4 + [4] * 4
    assert ranges.Span(1, 7, 2).at(math.nextafter(1, 0)) == 7


def test_logarithmic_range_gives_powers_equal_room() -> None:
    values = [ranges.Logarithmic(1, 999).at((number + 0.5) / 3000) for number in range(3000)]
    below = [sum(isinstance(v, int) and v < 10**power for v in values) for power in (1, 2, 3)]
    assert below == [1000, 2000, 3000]
    assert values[0] == 1 and ranges.Logarithmic(1, 999).at(math.nextafter(1, 0)) == 999


# --- conditions and samples


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a <= b", True),
        ("a < b < c", True),
        ("a < c < b", False),
        ("a == 1 and not b == 1", True),
        ("c > 2 * b or a + b - 1 > c", False),
        ("c != 3", False),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    assert description.parse_condition(text, "abc").holds({"a": 1, "b": 2, "c": 3}) is holds


@pytest.mark.parametrize(
    "text", ["a", "1", "a <", "d < 1", "a ** 2 < 1", "f(a) < 1", "a.b < 1", "a < '1'", "a in b",
             "(lambda: a)() < 1", "a < 1.5", "a < True", "[a] < [b]", "a" * 600 + " < 1"]
)  # fmt: skip
def test_conditions_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        description.parse_condition(text, "abc")


@pytest.mark.parametrize("method", expansion.METHODS)
def test_samples_are_the_same_with_the_same_seed_and_lie_everywhere(method: str) -> None:
    def drawn(seed: int, count: int = 64) -> list[tuple[float, ...]]:
        return list(itertools.islice(expansion.sample_points(method, 2, 64, seed), count))

    places = drawn(1)
    assert places == drawn(1) != drawn(2)
    assert len(set(drawn(1, 200))) == 200
    assert all(0 <= number < 1 for place in places for number in place)
    for dimension in range(2):
        eighths = {int(place[dimension] * 8) for place in places}
        assert eighths == set(range(8))
    if method != "random":  # more even: of 64 points, 8 in each eighth
        for dimension in range(2):
            counts = [sum(int(p[dimension] * 8) == eighth for p in places) for eighth in range(8)]
            assert max(counts) - min(counts) <= (0 if method != "halton" else 2)


# --- expansion


def test_a_grid_is_every_value_with_every_other(tmp_path: Path) -> None:
    points = sweep(
        tmp_path,
        """
        workloads: [MIXED]
        policies:
          - rr
          - {policy: "mlfq:short", set: {slice_1: [1, 2], boost: 0..100+50}}
        cpus: 1-2
        seeds: 1..3
        tick: [1ms, 2ms]
        """,
    )
    assert len(points) == (1 + 2 * 3) * 2 * 3 * 2
    assert len({point.run for point in points}) == len(points)
    assert [point.run.seed for point in points[:3]] == [1, 2, 3]
    last = points[-1]
    assert (last.run.cpus, last.run.tick_ns, str(last.run.policy)) == (2, 2_000_000, "mlfq:short")
    assert dict(last.run.settings) == {"slice_1": 2, "boost": 100}
    # The preset's value, the value set, and the policy's default.
    assert dict(last.tunables) == {"slice_0": 2, "slice_1": 2, "boost": 100}
    assert SweepPlan("", tuple(points)).dimensions == ("set_slice_1", "set_boost")
    row = SweepPlan("", tuple(points)).identity(points[0], MAKE)
    assert (row["set_slice_1"], row["set_boost"], row["policy"]) == (None, None, "rr")


def test_conditions_leave_setups_out_and_know_what_is_not_set(tmp_path: Path) -> None:
    text = """
        workloads: MIXED
        policies: {policy: mlfq, set: {slice_1: 1..10}, where: [slice_1 <= slice_0, slice_1 != 3]}
        """
    assert [values["slice_1"] for values in settings(sweep(tmp_path, text))] == [
        1,
        2,
        4,
        5,
        6,
        7,
        8,
    ]


@pytest.mark.parametrize("method", expansion.METHODS)
def test_a_sample_is_of_different_setups_that_fulfil_the_conditions(
    tmp_path: Path, method: str
) -> None:
    text = f"""
        workloads: MIXED
        policies:
          policy: mlfq
          set: {{slice_0: 1..8, slice_1: 1..8, boost: {{from: 1, to: 10000, log: true}}}}
          where: slice_1 <= slice_0
          sample: {{method: {method}, count: 40, seed: 5}}
        """
    sampled_settings = settings(sweep(tmp_path, text))
    assert len({tuple(setting.items()) for setting in sampled_settings}) == 40
    assert all(setting["slice_1"] <= setting["slice_0"] for setting in sampled_settings)
    assert sampled_settings == settings(sweep(tmp_path, text))
    assert sampled_settings != settings(sweep(tmp_path, text.replace("seed: 5", "seed: 6")))


def test_options_say_the_same_as_a_file(tmp_path: Path) -> None:
    by_file = sweep(
        tmp_path,
        """
        workloads: {file: MIXED, with: {tasks.cpu.instance: [3, 5]}}
        policies: {policy: mlfq, set: {boost: 60..240*2, slice_1: [1, 2]}, where: slice_1 < slice_0,
                   sample: {method: halton, count: 4, seed: 2}}
        cpus: [1, 4]
        seeds: 2..4
        """,
    )
    nodes = options.nodes_of_options(
        [str(MIXED)],
        ["tasks.cpu.instance=3,5"],
        ["mlfq"],
        ["boost=60..240*2", "slice_1=1,2"],
        ["slice_1 < slice_0"],
        "halton:4:2",
        {"cpus": "1,4", "seeds": "2..4"},
    )
    assert expand(description_reader.read_description(None, nodes, CATALOGUE)) == by_file


def test_shapes_have_the_stated_cpus(tmp_path: Path) -> None:
    """A file's name is relative to the sweep's directory; the data set has a column for shapes."""
    (tmp_path / "mine.json").write_text('{"format": 1, "cpus": 3}')
    text = (
        "workloads: MIXED\npolicies: [rr, mlfq]\nshapes: [fast-and-slow, mine.json]\nseeds: [1, 2]"
    )
    points = sweep(tmp_path, text)
    assert len(points) == 8
    assert {
        (str(point.run.shape and point.run.shape.name)[:13], point.run.cpus) for point in points
    } == {
        ("fast-and-slow", 8),
        ("mine.json (e1", 3),
    }
    plan = SweepPlan("", tuple(points))
    assert plan.dimensions == ("shape",)
    identities = [plan.identity(point, MAKE) for point in points]
    assert identities[0]["shape"] == "fast-and-slow"
    assert len({identity["made_of"] for identity in identities}) == 2
    assert (
        count_runs_max(description_reader.read_description(tmp_path / "sweep.yaml", {}, CATALOGUE))
        == 8
    )


def test_count_is_known_before_expansion(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(
        f"workloads: {MIXED}\npolicies: {{policy: mlfq, set: {{boost: 0..99999}}}}\nseeds: 1..11"
    )
    description = description_reader.read_description(path, {}, CATALOGUE)
    assert count_runs_max(description) == 1_100_000
    with pytest.raises(WrongUsage, match=r"up to 1,100,000 runs are too many .at most 1,000,000"):
        expand(description)


# --- errors


RIGHT = "workloads: MIXED\npolicies: rr\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policies: rr", "no workloads"),
        ("workloads: MIXED", "no policies"),
        ("- rr", "sweep.yaml:1"),
        ("", "sweep.yaml"),
        ("a: !!python/x", "sweep.yaml"),
        (RIGHT + "cpu: 2", "sweep.yaml:3: cpu: unknown"),
        (RIGHT + "cpus: 1025", "sweep.yaml:3: cpus: 1025"),
        (RIGHT + "cpus: 2\nshapes: two-sockets", "sweep.yaml:3: cpus: 2"),
        (RIGHT + "cpus: 4-1", "sweep.yaml:3: cpus"),
        (RIGHT + "tick: [1ms, 2h]", "sweep.yaml:3: tick.1"),
        (RIGHT + "limit: [1s, 2s]", "sweep.yaml:3: limit"),
        (RIGHT + "machines: host", "sweep.yaml:3: machines"),
        (RIGHT + "costs: cheap", "cheap"),
        (RIGHT + "shapes: square", "square"),
        ("workloads: [MIXED, 7]\npolicies: rr", "sweep.yaml:1: workloads.1"),
        ("workloads: none.json\npolicies: rr", "none.json"),
        ("workloads: {file: MIXED, with: {tasks.cpu.instance: -1}}\npolicies: rr", "-1"),
        ("workloads: {file: MIXED, command: x}\npolicies: rr", "one of file, experiment"),
        ("workloads: cpu-bound -n 3\npolicies: rr", "sim"),
        ("workloads: {experiment: s4-mixed-5}\npolicies: rr\nmachines: spike", "'s4-mixed-5'"),
        ("workloads: {command: x, with: {a: 1}}\npolicies: rr\nmachines: spike",
         "sweep.yaml:1: workloads.with"),
        ("workloads: MIXED\npolicies: rrr", "'rr'"),
        ("workloads: MIXED\npolicies: [rr, 'mlfq:long']", "'long'"),
        ("workloads: MIXED\npolicies:\n  - policy: rr\n    set:\n      slice: 0..4",
         "sweep.yaml:5: policies.0.set.slice"),
        ("workloads: MIXED\npolicies: {policy: rr, set: {slices: 1}}", "'slice'"),
        ("workloads: MIXED\npolicies: {policy: rr, set: {slice: 1, slice: 2}}", "twice"),
        ("workloads: MIXED\npolicies: {policy: rr, set: {slice: {from: 1, to: 9, log: true}}}",
         "factor"),
        ("workloads: MIXED\npolicies: {policy: rr, where: slices < 2}", "slices"),
        ("workloads: MIXED\npolicies: {policy: rr, set: {slice: [1, 2]}, where: slice > 2}",
         "no configuration"),
        ("workloads: MIXED\npolicies: {policy: rr, set: {slice: 1..9}, sample: {method: x, count: 2}}",
         "random, sobol"),
        ("workloads: MIXED\npolicies: {policy: rr, sample: {method: sobol, count: 2}}", "to sample from"),
        ("workloads: MIXED\npolicies: {policy: rr, set: {slice: 1..9}, sample: {method: sobol, count: 10}}",
         "only 9"),
    ],
)  # fmt: skip
def test_errors_name_their_position(tmp_path: Path, text: str, message: str) -> None:
    assert message in complaint(tmp_path, text)


def test_a_tunable_is_set_of_one_policy_or_of_all() -> None:
    """As in `run`, a policy's setting takes precedence over a setting for all."""
    given = ["slice=1", "stride.horizon=2,3", "rr.slice=4"]
    names = ["rr,rr:table-scan,stride"]
    plan = command.plan_sweep(
        None, options.nodes_of_options([str(MIXED)], [], names, given, [], None, {})
    )
    actual = [(str(point.run.policy), point.run.settings_text) for point in plan.points]
    assert actual == [
        ("rr", "slice=4"),
        ("rr:table-scan", "slice=4"),
        ("stride", "slice=1,horizon=2"),
        ("stride", "slice=1,horizon=3"),
    ]
