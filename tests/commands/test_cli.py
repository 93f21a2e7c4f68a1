# SPDX-License-Identifier: MIT
"""The command line: what it refuses, and what it says then."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Command, Programs
from schedlab.base.files.json_lines import Node
from schedlab.base.toolchain.policies import (
    Catalogue,
    PolicyChoice,
    catalogue_of,
    check_choices,
    parse_choices,
    parse_setting,
    those_named,
)
from schedlab.commands.policy_listing import listing
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.runs import request
from schedlab.runs.request import Request
from schedlab.sweep import ranges
from schedlab.units import format_time, parse_counts, parse_time

WRONG = [
    ("--cpus", "0", "1 to 1024"),
    ("--cpus", "1025", "1 to 1024"),
    ("--cpus", "4-1", "lowest first"),
    ("--cpus", "", "numbers and ranges"),
    ("--cpus", "1;2", "numbers and ranges"),
    ("--cpus", "1-8*1", "factor of 2"),
    ("--policy", "", "POLICY or POLICY:PRESET"),
    ("--policy", "rr,", "POLICY or POLICY:PRESET"),
    ("--policy", "rr:a:b", "POLICY or POLICY:PRESET"),
    ("--set", "slice", "NAME=VALUE"),
    ("--set", "slice=1.5", "NAME=VALUE"),
    ("--machine", "bochs", "'spike', 'qemu'"),
    ("--runs", "0", "1<=x<=10000"),
    ("--seed", "-1", "0<=x"),
    ("--seed", str(2**63), "0<=x"),
    ("--tick", "10", "ns, us, ms, s or m"),
    ("--tick", "1us", "100us to 1s"),
    ("--limit", "0s", "1ms to"),
    ("--limit", "1h", "ns, us, ms, s or m"),
    ("--memory", "1", "32<=x<=65536"),
    ("--workload", "", "name a program"),
    ("--workload", 'say "x"', "printable ASCII"),
    ("--workload", "a\nb", "printable ASCII"),
    ("--workload", "x" * 2000, "too long"),
]


@pytest.mark.parametrize(("option", "value", "allowed"), WRONG)
def test_wrong_values_are_refused_and_write_nothing(
    schedlab: Command, tmp_path: Path, option: str, value: str, allowed: str
) -> None:
    out = tmp_path / "out"
    done = schedlab("run", "--out", str(out), option, value)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert option in done.stderr
    assert len(value) > 100 or value.strip() in done.stderr.replace("\\n", "\n")
    assert allowed in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["run", "--frobnicate"],
        ["run", "surplus"],
        ["run", "--set", "slice=1", "--set", "slice=2"],
        ["trace", "/nowhere"],
        ["boot", "--policy", "rr,rr:table-scan"],
        ["boot", "--cpus", "1-4"],
        ["boot", "--machine", "qemu", "--record", "/nowhere/at/all"],
        ["boot", "--machine", "spike", "--typed", "/nowhere/at/all"],
    ],
)
def test_wrong_usage_ends_with_status_2(schedlab: Command, arguments: list[str]) -> None:
    done = schedlab(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_folder_that_holds_the_run_already_is_not_touched(
    schedlab: Command, tmp_path: Path
) -> None:
    (tmp_path / "rr-2cpu-seed1").mkdir()
    done = schedlab("run", "--cpus", "2", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "holds a run called rr-2cpu-seed1 already" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rr-2cpu-seed1"]


@pytest.mark.parametrize("command", ["run", "demo"])
def test_help_comes_from_a_start_too(schedlab: Command, command: str) -> None:
    """All others: test_help.py."""
    done = schedlab(command, "--help")
    assert done.returncode == 0
    assert done.stdout.lower().startswith(f"usage: schedlab {command} ")


def test_doctor_tells_programs_about_every_dependency(schedlab: Command) -> None:
    report = json.loads(schedlab("doctor", "--json").stdout)
    by_name = {finding["name"]: finding for finding in report["dependencies"]}
    for name in ("Python", "polars", "click", "make", "dtc", "spike", "qemu-system-riscv64"):
        assert by_name[name]["status"] in ("ok", "missing", "unfit", "absent")
    assert by_name["Python"]["version"]
    for finding in report["dependencies"]:
        assert finding["advice"] or finding["status"] == "ok", finding


def test_doctor_names_a_qemu_that_is_too_old(
    schedlab: Command, program: Programs, tmp_path: Path
) -> None:
    qemu = program("qemu-system-riscv64", "echo QEMU emulator version 6.2.0 '(Debian 1:6.2)'")
    done = schedlab("doctor", "--json", environment={"PATH": f"{qemu.parent}:/usr/bin:/bin"})
    assert done.returncode == 1
    findings = json.loads(done.stdout)["dependencies"]
    (finding,) = (each for each in findings if each["name"] == "qemu-system-riscv64")
    assert finding["status"] == "unfit"
    assert "is QEMU 6.2.0" in finding["advice"]
    assert "7.2 or newer" in finding["advice"]


def test_doctor_survives_an_empty_path(schedlab: Command, tmp_path: Path) -> None:
    done = schedlab("doctor", "--json", environment={"PATH": str(tmp_path)})
    assert done.returncode == 1
    missing = [
        f["name"] for f in json.loads(done.stdout)["dependencies"] if f["status"] == "missing"
    ]
    assert {"clang", "make", "dtc", "qemu-system-riscv64"} <= set(missing)


LISTING = [
    {
        "name": "rr",
        "meaning": "round-robin",
        "source": "",
        "tunables": [
            {"name": "slice", "meaning": "ticks", "minimum": 1, "default": 1, "maximum": 1000}
        ],
        "presets": [{"name": "table-scan", "meaning": "", "values": {"slice": 1}}],
    }
]


def catalogue() -> Catalogue:
    return catalogue_of(LISTING)


MANY = [
    {
        "number": 3,
        "name": "feedback",
        "meaning": "queues [of levels], each with a slice that is longer than that of the one above",
        "source": "Corbató, Merwin-Daggett and Daley 1962; and others who wrote about it since then",
        "shares_by": "tickets",
        "tunables": [
            {"name": "boost_period", "meaning": "ticks " * 20, "minimum": 0, "default": 480}
            | {"maximum": 10**9},
            {"name": "slice", "meaning": "ticks", "minimum": -1, "default": 1, "maximum": 9},
        ],
        "presets": [
            {"name": "same", "meaning": "as it is", "values": {"boost_period": 480, "slice": 1}}
            | {"shares_by": "tickets"},
            {"name": "study", "meaning": "as in [a] study", "shares_by": "weight"}
            | {"values": {"boost_period": 480, "slice": 7}},
        ],
    }
]


def test_policies_are_shown_with_what_presets_change() -> None:
    policies = [*catalogue_of(MANY).values(), *catalogue().values()]
    for columns in (40, 80, 100):
        lines = listing(policies, columns).splitlines()
        assert all(line == line.rstrip() and len(line) <= columns for line in lines)
    shown = " ".join(listing(policies[:1], 100).split())
    assert shown.startswith("3 feedback: queues [of levels], each with a slice")
    assert "source: Corbató, Merwin-Daggett" in shown
    assert "shares of the CPU: by tickets" in shown
    assert (
        "feedback:same as it is feedback:study as in [a] study slice=7, shares by weight" in shown
    )
    assert "boost_period=… 480 0 to 1000000000 ticks ticks" in shown
    assert "slice=… 1 -1 to 9 ticks" in shown
    assert "shares of the CPU: equal for all" in listing(policies[1:])


def test_policies_are_found_by_name() -> None:
    known = {**catalogue(), **catalogue_of(MANY)}
    assert [policy.name for policy in those_named(known, ["feedback", "rr", "feedback"])] == [
        "feedback",
        "rr",
    ]
    with pytest.raises(WrongUsage, match="did you mean 'feedback'"):
        those_named(known, ["rr", "feedbac"])


@pytest.mark.parametrize(
    ("choice", "settings", "message"),
    [
        ("mlfq", {}, "no policy is called 'mlfq'; there is: rr"),
        ("r", {}, "did you mean 'rr'"),
        ("rr:thesis", {}, "no preset of rr is called 'thesis'; there is: table-scan"),
        ("rr", {"slize": 1}, "did you mean 'slice'"),
        ("rr", {"slice": 0}, "--set slice=0: rr allows 1 to 1000"),
        ("rr", {"slice": 1001}, "--set slice=1001: rr allows 1 to 1000"),
    ],
)
def test_names_that_no_policy_knows(choice: str, settings: dict[str, int], message: str) -> None:
    with pytest.raises(WrongUsage, match="--") as refused:
        check_choices(catalogue(), parse_choices(choice), settings)
    assert message in str(refused.value)


def test_names_that_policies_know() -> None:
    check_choices(catalogue(), parse_choices("rr,rr:table-scan"), {"slice": 1000})


def test_choices_and_settings_are_read() -> None:
    assert parse_choices("rr, lottery:thesis,rr") == (
        PolicyChoice("rr"),
        PolicyChoice("lottery", "thesis"),
    )
    assert parse_setting("boost_period=-3") == ("boost_period", -3)


@given(st.integers(0, 10**12 - 1), st.sampled_from(["ns", "us", "ms", "s", "m"]))
def test_times_are_read_as_they_are_written(number: int, unit: str) -> None:
    factor = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}[unit]
    nanoseconds = parse_time(f"{number}{unit}")
    assert nanoseconds == number * factor
    shown = format_time(nanoseconds)
    assert shown.endswith(("ns", "us", "ms", "s"))
    if len(shown) <= 12:
        assert parse_time(shown) == nanoseconds


@pytest.mark.parametrize(
    ("text", "nanoseconds"), [("1.2s", 1_200_000_000), ("0.5us", 500), ("1.50m", 90 * 10**9)]
)
def test_times_have_decimals(text: str, nanoseconds: int) -> None:
    assert parse_time(text) == nanoseconds


@pytest.mark.parametrize("text", ["0.5ns", "1.s", ".5s", "1.2.3s", "0.0000000001s"])
def test_a_time_is_a_whole_number_of_nanoseconds(text: str) -> None:
    with pytest.raises(ValueError, match="write a"):
        parse_time(text)


@given(st.lists(st.integers(1, 64), min_size=1, max_size=20))
def test_counts_keep_their_order_once_each(numbers: list[int]) -> None:
    assert parse_counts(",".join(map(str, numbers)), 1, 64) == tuple(dict.fromkeys(numbers))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1-3,7", [1, 2, 3, 7]),
        ("8,1..3", [8, 1, 2, 3]),
        ("1-9+4", [1, 5, 9]),
        ("1-64*4", [1, 4, 16, 64]),
        ("2-9*2", [2, 4, 8]),
    ],
)
def test_all_options_have_one_grammar_of_numbers(text: str, numbers: list[int]) -> None:
    assert list(parse_counts(text, 1, 64)) == numbers
    assert list(ranges.whole_numbers(Node(text, 1, "cpus")).values) == numbers  # type: ignore[union-attr]


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_time, parse_choices, parse_setting, lambda text: parse_counts(text, 1, 64)):
        with suppress(ValueError):
            read(text)


@pytest.mark.parametrize(
    ("machine", "wanted"), [("spike", (1, 2, 3, 4)), ("linux", (2,)), ("linux-free", (2,))]
)
def test_a_linux_guest_has_as_many_cpus_as_the_host(
    machine: str, wanted: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "host_processors", lambda: 2)
    assert Request(machine=machine).filled().cpus == wanted
    assert Request(machine=machine, cpus=(3,)).filled().cpus == (3,)


def test_a_linux_guest_has_no_more_cpus_than_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "host_processors", lambda: 4096)
    assert Request(machine="linux").filled().cpus == (machine_named("linux").cpus_max,)
