# SPDX-License-Identifier: MIT
"""Tests which arguments the command line refuses, and the messages."""

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
    check_choices,
    parse_catalogue,
    parse_choices,
    parse_setting,
)
from schedlab.commands.policies import format_policies
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.runs import request
from schedlab.runs.request import Request
from schedlab.sweep import ranges
from schedlab.units import format_time, parse_counts, parse_time


def test_doctor_names_a_qemu_that_is_too_old(
    schedlab: Command, program: Programs, tmp_path: Path
) -> None:
    qemu = program("qemu-system-riscv64", "echo QEMU emulator version 6.2.0 '(Debian 1:6.2)'")
    result = schedlab("doctor", "--json", environment={"PATH": f"{qemu.parent}:/usr/bin:/bin"})
    assert result.returncode == 1
    findings = json.loads(result.stdout)["dependencies"]
    (finding,) = (candidate for candidate in findings if candidate["name"] == "qemu-system-riscv64")
    assert finding["status"] == "unfit"
    assert "is QEMU 6.2.0" in finding["advice"]
    assert "7.2 or newer" in finding["advice"]


def test_a_host_with_nothing_on_its_path_is_healthy(schedlab: Command, tmp_path: Path) -> None:
    """The default run needs no program on the PATH; `doctor` still lists what other commands
    need."""
    result = schedlab("doctor", "--json", environment={"PATH": str(tmp_path)})
    assert result.returncode == 0, result.stdout
    dependencies = {f["name"]: f for f in json.loads(result.stdout)["dependencies"]}
    for name in ("qemu-system-riscv64", "qemu-system-x86_64", "bwrap"):
        assert (dependencies[name]["status"], bool(dependencies[name]["advice"])) == (
            "absent",
            True,
        )


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
    return parse_catalogue(LISTING)


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
    policies = [*parse_catalogue(MANY).values(), *catalogue().values()]
    for columns in (40, 80, 100):
        lines = format_policies(policies, columns).splitlines()
        assert all(line == line.rstrip() and len(line) <= columns for line in lines)
    shown = " ".join(format_policies(policies[:1], 100).split())
    assert shown.startswith("3 feedback: queues [of levels], each with a slice")
    assert "source: Corbató, Merwin-Daggett" in shown
    assert "shares of the CPU: by tickets" in shown
    assert (
        "feedback:same as it is feedback:study as in [a] study slice=7, shares by weight" in shown
    )
    assert "boost_period=… 480 0 to 1000000000 ticks ticks" in shown
    assert "slice=… 1 -1 to 9 ticks" in shown
    assert "shares of the CPU: equal" in format_policies(policies[1:])


@pytest.mark.parametrize(
    ("choice", "settings", "message"),
    [
        ("mlfq", {}, "unknown policy 'mlfq'; choose from rr"),
        ("r", {}, "did you mean 'rr'"),
        ("rr:thesis", {}, "unknown preset of rr 'thesis'; choose from table-scan"),
        ("rr", {"slize": 1}, "did you mean 'slice'"),
        ("rr", {"slice": 0}, "rr allows 1 to 1000"),
        ("rr", {"slice": 1001}, "rr allows 1 to 1000"),
    ],
)
def test_names_that_no_policy_knows(choice: str, settings: dict[str, int], message: str) -> None:
    with pytest.raises(WrongUsage, match=r"^`") as refused:
        check_choices(catalogue(), parse_choices(choice), settings)
    assert message in str(refused.value)


@given(st.integers(0, 10**12 - 1), st.sampled_from(["ns", "us", "ms", "s", "min", "h"]))
def test_times_are_read_as_they_are_written(number: int, unit: str) -> None:
    minute = 60 * 10**9
    factor = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": minute, "h": 60 * minute}[unit]
    nanoseconds = parse_time(f"{number}{unit}")
    assert nanoseconds == number * factor
    shown = format_time(nanoseconds)
    assert shown.endswith(("ns", "us", "ms", "s"))
    if len(shown) <= 12:
        assert parse_time(shown) == nanoseconds


@pytest.mark.parametrize("text", ["0.5ns", "1.s", ".5s", "1.2.3s", "0.0000000001s"])
def test_time_is_an_integer_of_nanoseconds(text: str) -> None:
    with pytest.raises(ValueError, match="write a"):
        parse_time(text)


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
    assert list(ranges.read_integers(Node(text, 1, "cpus")).values) == numbers  # type: ignore[union-attr]


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_time, parse_choices, parse_setting, lambda text: parse_counts(text, 1, 64)):
        with suppress(ValueError):
            read(text)


@pytest.mark.parametrize(
    ("machine", "expected"), [("spike", (1, 2, 3, 4)), ("linux", (2,)), ("linux-free", (2,))]
)
def test_a_linux_guest_has_as_many_cpus_as_the_host(
    machine: str, expected: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "count_host_cpus", lambda: 2)
    assert Request(machine=machine_named(machine)).filled().cpus == expected
    assert Request(machine=machine_named(machine), cpus=(3,)).filled().cpus == (3,)
